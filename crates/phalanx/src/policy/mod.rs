//! κ-hop policies π_i(a_i | s_{N_i^κ}). Paper: assump:khop_policy.

pub(crate) mod columns;
mod file;
mod gradient;
mod linear;
mod logits;
mod neural;
pub mod observation;
mod rule;
mod softmax;
mod tabular;

use std::fmt::Debug;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::Ragged;
use crate::world::Trajectory;

pub use file::{load, save};
pub(crate) use gradient::tabular_gradient;
pub use gradient::{Baseline, GradientScratch, GradientSettings};
pub use linear::{LinearPolicy, PolicyFeatures};
pub use logits::logit_gradients;
pub use neural::NeuralPolicy;
pub use rule::RulePolicy;
pub(crate) use softmax::{entropy_slopes, score, softmax};
pub use tabular::Tabular;

/// How θ_i makes a law over actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Parameterisation {
    /// π(b | x) = exp θ(x, b) / Σ exp θ(x, ·).
    Softmax,
    /// π(b | x) = θ(x, b), every row in the simplex.
    Direct,
}

/// What an agent receives along a trajectory, given by its number in the batch (written over the last argument): Σ_j of
/// its neighbours' values, one per step, or `[step][own action]` where the rule needs alternatives. The vector is a
/// buffer.
pub type Receive<'a> = dyn Fn(usize, &mut Vec<u32>, &mut [f64]) + 'a;

/// Policies of all agents. Agent i's parameters are row i of θ; it reads the states of N_i^κ and nothing else.
pub trait Policy: Send + Sync + Debug {
    /// |A_i| of every agent.
    fn action_counts(&self) -> &[usize];

    /// Row i is N_i^κ, ascending.
    fn groups(&self) -> Ragged<u32>;

    /// θ.
    fn theta(&self) -> &Ragged<f64>;

    /// θ, to be changed; [`Policy::refresh`] must follow.
    fn theta_mut(&mut self) -> &mut Ragged<f64>;

    /// Brings everything that is derived from θ in step with it.
    fn refresh(&mut self);

    /// How it draws actions.
    fn acting(&self) -> Acting<'_>;

    /// Agent i's probabilities of its actions at step k of a trajectory.
    fn law(&self, agent: usize, trajectory: &Trajectory, k: usize, out: &mut [f64]);

    /// The same where its network reads `rows`, all that a [view](crate::world::View) shows of the present and of earlier moments. False if it
    /// reads something else.
    fn law_of_rows(&self, agent: usize, rows: &[f32], out: &mut [f64]) -> bool {
        let _ = (agent, rows, out);
        false
    }

    /// How many numbers [`Policy::law_of_rows`] reads of agent i; none if it reads something else.
    fn rows_read(&self, agent: usize) -> Option<usize> {
        let _ = agent;
        None
    }

    /// Agent i's gradient from the batch and what it `receive`s, written over `out`. Paper: eq:grad_estimate.
    fn gradient(
        &self,
        agent: usize,
        batch: &[Trajectory],
        receive: &Receive<'_>,
        rule: &GradientSettings,
        scratch: &mut GradientScratch,
        out: &mut [f64],
    );

    /// Name of its kind in files.
    fn kind(&self) -> &'static str;

    /// Names and shapes of agent i's tensors, which make up its row of θ in order.
    fn tensors(&self, agent: usize) -> Vec<(String, Vec<usize>)>;

    /// Whether files hold single precision: all there is to know of a policy that computes in it.
    fn is_single(&self) -> bool {
        false
    }

    /// The tables, for exact computations.
    fn tabular(&self) -> Option<&Tabular> {
        None
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
    /// Draws actions in one trajectory: `actions[m]` and `draws[m]` (31 bits) belong to agent `agents.start + m`;
    /// `states` has one entry per agent of the world.
    fn act(&self, agents: Range<usize>, states: &[u8], draws: &[u32], actions: &mut [u8]);
}

/// Acting in many trajectories at once.
pub trait ActTogether: Sync {
    /// Draws the actions of step k of several trajectories, whose states up to then are known: `draws` and `actions` are
    /// `[trajectory][agent]`.
    fn act(&self, trajectories: &[&Trajectory], k: usize, draws: &[u32], actions: &mut [u8]);
}
