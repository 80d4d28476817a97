//! Evaluation of truncated shadow Q-functions. Paper: alg:pdac line 6 (Eval), alg:subroutine.
//!
//! A critic hands over Q values *along a trajectory*: what neighbours exchange in the paper, and all that the
//! actor needs to know. Agent j's critic reads the states and actions of N_j^{κ_q} only.

mod alternatives;
mod chains;
mod features;
mod learning;
mod linear;
mod lstd;
mod montecarlo;
mod neural;
mod returns;
mod settings;
mod sharing;
mod tables;
mod td;
mod utility_rows;

use crate::base::fields::Fields;
use crate::learn::shadow::Signals;
use crate::policy::Policy;
use crate::world::Trajectory;
use crate::{Error, Ragged, Result};

pub use crate::neural::Descent;
pub use features::{AllFeatures, CriticFeatures, FeatureSet};
pub use linear::{LinearCritic, LinearCriticSettings, LinearRule};
pub use lstd::{Lstd, LstdSettings};
pub use montecarlo::{MonteCarlo, MonteCarloSettings};
pub use neural::{NeuralCritic, NeuralCriticSettings, NeuralSettings};
pub use returns::{Returns, ReturnsCriticSettings, ReturnsSettings, SharedReturns};
pub(crate) use settings::HIDDEN;
pub use settings::{CriticContext, CriticSection, CriticSettings, KIND, STEPS, StepsKeys, kind_error};
pub use sharing::{SharedSums, check_sharing};
pub use tables::{QTables, TableLearning};
pub use td::{StepSettings, Td, TdSettings};

pub use crate::sample::batch::SampleRequest;

/// What line 6 works from.
#[derive(Clone, Copy)]
pub struct CriticInput<'a> {
    /// t.
    pub iteration: usize,
    /// π_θ itself, which only the exact critic looks at.
    pub policy: &'a dyn Policy,
    /// μ^t, before line 7.
    pub mu: &'a Ragged<f64>,
    /// Shadow rewards of line 5.
    pub signals: &'a Signals,
    /// The trajectories of line 3, with the tail that the critic asked for.
    pub batch: &'a [Trajectory],
    /// The trajectories of Q-evaluation, from the uniform ρ₀, as many as the critic asked for.
    pub evaluation: &'a [Trajectory],
}

impl<'a> CriticInput<'a> {
    /// What a critic learns from that asked for `samples`: trajectories of its own if it wanted any, else the
    /// batch.
    fn wanted(&self, samples: SampleRequest) -> &'a [Trajectory] {
        if samples.chains > 0 { self.evaluation } else { self.batch }
    }
}

/// Values that agent `to` receives along a trajectory.
#[derive(Debug, Clone, Copy)]
pub struct ValueReceiver<'a> {
    /// The receiver i.
    pub to: usize,
    /// The senders j ∈ N_i^{κ_q}, i among them, ascending.
    pub from: &'a [u32],
    /// Those whose constraints count, j ∈ N_i^{κ_g}, ascending; the others send values of Q_f alone.
    pub constrained: &'a [u32],
    /// Number of the trajectory in the batch that the critic was [told of](QValues::precompute).
    pub number: usize,
    /// The trajectory, of which the first `steps` steps are wanted.
    pub trajectory: &'a Trajectory,
    /// How many steps.
    pub steps: usize,
}

impl ValueReceiver<'_> {
    /// Whether the constraints of sender j count.
    #[inline]
    pub fn counts_constraints(&self, sender: u32) -> bool {
        self.constrained.len() == self.from.len() || self.constrained.binary_search(&sender).is_ok()
    }
}

/// Estimates Q_{f_j} and Q_{g_jk} for the current policy.
pub trait Critic: std::any::Any + Send + Sync {
    /// What it needs sampled.
    fn samples(&self) -> SampleRequest;

    /// Learns every agent's Q-functions from the shadow rewards.
    fn learn(&mut self, input: CriticInput<'_>) -> Result<()>;

    /// What it has learnt.
    fn values(&self) -> &dyn QValues;

    /// What it has learnt, to be given multipliers.
    fn values_mut(&mut self) -> &mut dyn QValues;

    /// Line 6: learns, and hands over what it has learnt. It gives its values in three steps, each of
    /// which consumes the one before: [`LearntValues`], [`WeightedValues`], [`BatchValues`].
    fn evaluate(&mut self, input: CriticInput<'_>) -> Result<LearntValues<'_>> {
        self.learn(input)?;
        Ok(LearntValues(self.values_mut()))
    }

    /// How it learns tables by temporal differences, if that is what it does, for devices that do the same.
    fn table_learning(&self) -> Option<TableLearning<'_>> {
        None
    }

    /// Sums over all agents, in all processes, that it takes to learn from so many transitions of a batch;
    /// none where every agent learns by itself.
    fn sums(&self, transitions: usize) -> Option<SharedSums> {
        let _ = transitions;
        None
    }

    /// What it carries from one iteration to the next, if anything.
    fn fields(&mut self) -> Fields<'_> {
        Vec::new()
    }
}

/// Q-functions of line 6, which wait for the multipliers of line 7.
pub struct LearntValues<'a>(&'a mut dyn QValues);

impl<'a> LearntValues<'a> {
    /// Values of Q_f + Σ_k μ_k·Q_gk. Fails if one of them is not finite.
    pub fn set_multipliers(
        self,
        signals: &Signals,
        mu: &Ragged<f64>,
        iteration: usize,
    ) -> Result<WeightedValues<'a>> {
        match self.0.set_multipliers(signals, mu) {
            Some((agent, value)) => {
                Err(Error::Diverged { iteration, agent, quantity: "Q", value, advice: "" })
            }
            None => Ok(WeightedValues(self.0)),
        }
    }
}

/// Q-functions with multipliers, which wait for a batch.
pub struct WeightedValues<'a>(&'a mut dyn QValues);

impl<'a> WeightedValues<'a> {
    /// Values along the first `steps` steps of `batch`.
    pub fn precompute(self, batch: &[Trajectory], steps: usize, wanted: ValueRequest) -> BatchValues<'a> {
        self.0.precompute(batch, steps, wanted);
        BatchValues(self.0)
    }
}

/// Values along a batch, to be sent to neighbours.
pub struct BatchValues<'a>(&'a mut dyn QValues);

impl BatchValues<'_> {
    /// The values.
    pub fn values(&self) -> &dyn QValues {
        self.0
    }

    /// Gives back memory that the next iteration fills again.
    pub fn release(self) {
        self.0.release();
    }
}

/// What values will be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueRequest {
    /// Whether at all alternatives of the receivers ([`QValues::add_alternatives`]), or at the actions
    /// taken.
    pub alternatives: bool,
    /// Whether some senders' constraints do not count.
    pub partial: bool,
    /// Whether what all alternatives of a step share matters: the gradient of a soft-max does not depend on
    /// it.
    pub levels: bool,
}

/// Q values along trajectories: what neighbours send each other.
pub trait QValues: Send + Sync {
    /// Fixes the multipliers: from now on values are of Q_f + Σ_k μ_k·Q_gk. Returns an agent with a value
    /// that is not finite, and that value.
    fn set_multipliers(&mut self, signals: &Signals, mu: &Ragged<f64>) -> Option<(usize, f64)>;

    /// Gives back memory that is filled again at the next [`QValues::set_multipliers`].
    fn release(&mut self) {}

    /// Looks at the first `steps` steps of the batch before its values are received, for critics that are
    /// faster at once than one trajectory at a time.
    fn precompute(&mut self, batch: &[Trajectory], steps: usize, wanted: ValueRequest) {
        let _ = (batch, steps, wanted);
    }

    /// Adds sender j's values at the pairs visited, one per step. Each is one number that is worked out
    /// before it is added: a value that was sent from elsewhere must make the same sum.
    fn add_taken(&self, sender: u32, inbox: &ValueReceiver<'_>, scratch: &mut Vec<u32>, out: &mut [f64]);

    /// Whether values at other actions than those taken are known.
    fn knows_alternatives(&self) -> bool {
        false
    }

    /// As [`QValues::add_taken`] with agent i's action replaced by each of its `actions`, as `[step][action
    /// of i]`. NaN if they are not known. A critic that was [told of](QValues::precompute) a batch may leave
    /// out what all alternatives of a step share, unless that is [wanted](ValueRequest::levels).
    fn add_alternatives(
        &self,
        sender: u32,
        inbox: &ValueReceiver<'_>,
        actions: usize,
        scratch: &mut Vec<u32>,
        out: &mut [f64],
    ) {
        let _ = (sender, inbox, actions, scratch);
        out.fill(f64::NAN);
    }

    /// Agent j's table of Q values of utility `which` (0: f, then g_jk), as `[∏ S][∏ A]` over N_j^{κ_q}, if
    /// there are tables.
    fn table(&self, agent: usize, which: usize) -> Option<&[f64]> {
        let _ = (agent, which);
        None
    }
}
