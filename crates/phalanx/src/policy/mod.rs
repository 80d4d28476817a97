//! κ-hop policies π_i(a_i | s_{N_i^κ}). Paper: assump:khop_policy.

mod arrivals;
pub(crate) mod columns;
mod file;
mod gradient;
mod greedy;
mod linear;
mod linked;
mod links;
mod neural;
pub mod observation;
mod rule;
mod shared;
mod softmax;
mod tabular;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use phalanx_agent::policy::{Network, Rule};
use serde::{Deserialize, Serialize};

use crate::base::error::ensure;
use crate::base::range::NonNegative;
use crate::base::section::{Family, Kind, Section};
use crate::base::stream::{Place, Purpose, Stream};
use crate::world::{Trajectory, World};
use crate::{Error, Ragged, Result};

pub use file::{from_bytes, load, save};
pub use gradient::{Baseline, GradientInput, GradientScratch, GradientSettings};
pub use greedy::GreedyPolicy;
pub(crate) use linear::Term as LinearTerm;
pub use linear::{LinearPolicy, LinearPolicySettings, PolicyFeatures};
pub use linked::LinkedPolicy;
pub use links::{LOSS, LinkSettings, SECTION as LINKS, joint_error};
pub(crate) use neural::HIDDEN;
pub use neural::{NeuralPolicy, NeuralPolicySettings};
pub use rule::RulePolicy;
pub(crate) use shared::{KINDS_KEY, PlaceEncoder};
pub use shared::{KindsKey, Reads, SharedKeys, SharedPolicy, SharedPolicySettings};
pub use softmax::logit_gradients;
pub(crate) use softmax::{entropy_slopes, score, softmax};
pub use tabular::{Tabular, TabularSettings};

/// `[policy]`.
pub type PolicySection = Section<dyn PolicySettings>;

/// The settings of a kind of policy, and what is made from them.
pub trait PolicySettings: Debug + Send + Sync {
    /// Whether its keys go together.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// The policy over κ-hop neighbourhoods, as it is at the start.
    fn build(&self, world: &dyn World, kappa: usize, stream: &Stream) -> Result<Box<dyn Policy>>;

    /// Θ_i as a box, if it is one.
    fn theta_box(&self) -> Option<[f64; 2]> {
        None
    }

    /// If it is a table, which exact computations need.
    fn tables(&self) -> Option<&TabularSettings> {
        None
    }

    /// Whether agents of a kind share their parameters.
    fn is_shared(&self) -> bool {
        false
    }

    /// If it is a neural network, which MAPPO needs.
    fn neural(&self) -> Option<&NeuralPolicySettings> {
        None
    }
}

impl Family for dyn PolicySettings {
    const SECTION: &'static str = "policy";

    fn kinds() -> &'static [Kind<Self>] {
        KINDS
    }
}

/// One line per kind.
const KINDS: &[Kind<dyn PolicySettings>] = &[
    Kind {
        name: "softmax",
        read: |keys| Ok(Arc::new(TabularSettings::read(Parameterisation::Softmax, keys)?)),
    },
    Kind {
        name: "direct",
        read: |keys| Ok(Arc::new(TabularSettings::read(Parameterisation::Direct, keys)?)),
    },
    Kind { name: "linear", read: |keys| Ok(Arc::new(LinearPolicySettings::read(keys)?)) },
    Kind { name: "network", read: |keys| Ok(Arc::new(NeuralPolicySettings::read(keys)?)) },
    Kind { name: "shared", read: |keys| Ok(Arc::new(SharedPolicySettings::read(keys)?)) },
];

/// Name of the key that chooses a kind.
pub const KIND: &str = "policy.kind";

/// The kind of policy cannot be used.
pub fn kind_error(message: impl Into<String>) -> Error {
    Error::config(KIND, message)
}

/// Something enumerates a policy that is not a table.
pub fn not_tables() -> Error {
    kind_error("exact computations enumerate tables; use `softmax` or `direct`")
}

/// Keys of `[policy]` on where θ starts and stays.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(default)]
pub struct ThetaKeys {
    /// Standard deviation of the initial parameters around uniform (tables, linear).
    pub init_std: NonNegative,
    /// Θ_i as a box `[low, high]` (softmax, linear).
    #[serde(rename = "box", skip_serializing_if = "Option::is_none")]
    pub theta_box: Option<ThetaBox>,
}

impl Default for ThetaKeys {
    fn default() -> Self {
        ThetaKeys { init_std: NonNegative(0.0), theta_box: None }
    }
}

impl ThetaKeys {
    /// Refuses a box, for kinds that cannot have one; `allowed` says which can.
    fn without_box(&self, allowed: &str) -> Result<()> {
        ensure(self.theta_box.is_none(), || Error::config("policy.box", format!("is for {allowed}")))
    }

    fn theta_box(&self) -> Option<[f64; 2]> {
        self.theta_box.map(|ThetaBox(ends)| ends)
    }
}

/// An interval that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "[f64; 2]")]
pub struct ThetaBox(pub [f64; 2]);

impl TryFrom<[f64; 2]> for ThetaBox {
    type Error = String;

    fn try_from([low, high]: [f64; 2]) -> std::result::Result<Self, String> {
        let is_empty = low > high || low == f64::INFINITY || high == f64::NEG_INFINITY;
        ensure(!is_empty, || format!("[{low}, {high}] holds no number"))?;
        Ok(ThetaBox([low, high]))
    }
}

/// Normal noise of size `init_std`, which θ starts from.
fn draw_theta(theta: &mut Ragged<f64>, init_std: f64, world: &dyn World, stream: &Stream) {
    if init_std > 0.0 {
        let place = Place { purpose: Purpose::PolicyInit, iteration: 0, trajectory: 0 };
        for i in 0..theta.rows() {
            let mut sequence = stream.sequence(place, world.graph().global_id(i));
            theta.row_mut(i).iter_mut().for_each(|x| *x = init_std * sequence.normal());
        }
    }
}

/// How θ_i makes a law over actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Parameterisation {
    /// π(b | x) = exp θ(x, b) / Σ exp θ(x, ·).
    Softmax,
    /// π(b | x) = θ(x, b), every row in the simplex.
    Direct,
}

/// What an agent receives along a trajectory, given by its number in the batch (written over the last
/// argument): Σ_j of its neighbours' values, one per step, or `[step][own action]` where the rule needs
/// alternatives. The vector is a buffer.
pub type Receive<'a> = dyn Fn(usize, &mut Vec<u32>, &mut [f64]) + 'a;

/// Policies of all agents. Agent i's parameters are row i of θ, or that of its kind where agents share them;
/// it reads the states of N_i^κ and nothing else.
pub trait Policy: Send + Sync + Debug {
    /// |A_i| of every agent.
    fn action_counts(&self) -> &[usize];

    /// Row i is N_i^κ, ascending.
    fn groups(&self) -> Ragged<u32>;

    /// θ.
    fn theta(&self) -> &Ragged<f64>;

    /// θ, to be changed; [`Policy::refresh`] must follow.
    fn theta_mut(&mut self) -> &mut Ragged<f64>;

    /// The row of θ that agent i acts by.
    fn row_of(&self, agent: usize) -> usize {
        agent
    }

    /// Whether agents share rows of θ. The gradient of a row is the sum of its agents' then.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether agent i is the one whose row of θ counts in sums over agents: the first of those who share
    /// it.
    fn stands_for_row(&self, agent: usize) -> bool {
        let _ = agent;
        true
    }

    /// Brings everything that is derived from θ in step with it.
    fn refresh(&mut self) {}

    /// How it draws actions.
    fn acting(&self) -> Acting<'_>;

    /// Agent i's probabilities of its actions at step k of a trajectory.
    fn law(&self, agent: usize, trajectory: &Trajectory, k: usize, out: &mut [f64]);

    /// The same where its neural network reads `rows`, all that a [view](crate::world::View) shows of the
    /// present and of earlier moments. False if it reads something else.
    fn law_of_rows(&self, agent: usize, rows: &[f32], out: &mut [f64]) -> bool {
        let _ = (agent, rows, out);
        false
    }

    /// How many numbers [`Policy::law_of_rows`] reads of agent i; none if it reads something else.
    fn rows_read(&self, agent: usize) -> Option<usize> {
        let _ = agent;
        None
    }

    /// Agent i's gradient in its row of θ, from the batch and what it receives, written over `out`. Paper:
    /// eq:grad_estimate.
    fn gradient(&self, input: GradientInput<'_>, scratch: &mut GradientScratch, out: &mut [f64]);

    /// Name of its kind in files.
    fn kind(&self) -> &'static str;

    /// Names and shapes of the tensors that make up a row of θ, in order.
    fn tensors(&self, row: usize) -> Vec<(String, Vec<usize>)> {
        let actions = self.actions(row);
        vec![(format!("theta.{row}"), vec![self.theta().row(row).len() / actions, actions])]
    }

    /// Whether files hold single precision: all there is to know of a policy that computes in it.
    fn is_single(&self) -> bool {
        false
    }

    /// Agent i's rule as data, for other programs: `states` says how many states each member of its group
    /// has. A neural network goes to the end of `networks`, where the rule names it by its place; agents that
    /// share one name the same place.
    fn portable(&self, agent: usize, states: &[usize], networks: &mut Vec<Network>) -> Result<Rule> {
        let _ = (agent, states, networks);
        Err(kind_error(format!("`{}` is code, not data, and cannot be exported", self.kind())))
    }

    /// The tables, for exact computations.
    fn tabular(&self) -> Option<&Tabular> {
        None
    }

    /// If it is log-linear.
    fn linear(&self) -> Option<&LinearPolicy> {
        None
    }

    /// The neural networks, one per agent, for devices that compute with them.
    fn network(&self) -> Option<&NeuralPolicy> {
        None
    }

    /// The state that its agents assume of each when nothing is known of it; none if they always know.
    fn usual_states(&self) -> Option<&[u8]> {
        None
    }

    /// Sets [`Policy::usual_states`], one for every agent of the world, if it has any.
    fn set_usual_states(&mut self, states: Vec<u8>) {
        let _ = states;
    }

    /// Whether rows of θ are laws, which steps must be projected to.
    fn is_direct(&self) -> bool {
        false
    }

    /// Number of agents.
    fn agents(&self) -> usize {
        self.action_counts().len()
    }

    /// |A_i|.
    fn actions(&self, agent: usize) -> usize {
        self.action_counts()[agent]
    }
}

/// How a policy draws actions.
#[derive(Clone, Copy)]
pub enum Acting<'a> {
    /// From the present states, in one trajectory at a time.
    Alone(&'a dyn ActAlone),
    /// In many trajectories at once, from all that they tell so far.
    Together(&'a dyn ActTogether),
}

/// Acting from the present states.
pub trait ActAlone: Sync {
    /// Draws actions in one trajectory: `actions[m]` and `draws[m]` (31 bits) belong to agent `agents.start +
    /// m`; `states` has one entry per agent of the world.
    fn act(&self, agents: Range<usize>, states: &[u8], draws: &[u32], actions: &mut [u8]);
}

/// Acting in many trajectories at once.
pub trait ActTogether: Sync {
    /// Draws the actions of step k of several trajectories, whose states up to then are known: `draws` and
    /// `actions` are `[trajectory][agent]`.
    fn act(&self, trajectories: &[&Trajectory], k: usize, draws: &[u32], actions: &mut [u8]);
}
