//! Algorithms: one iteration each; the loop around it is `run`'s.

mod critics;
mod cuda;
mod exact;
mod kind;
mod mappo;
mod primal_dual;
mod summary;
mod update;

use crate::base::fields::Fields;
use crate::distributed::{ProcessTraffic, Traffic, TrafficBound};
use crate::learn::shield::ShieldReport;
use crate::policy::Policy;
use crate::{Ragged, Result};

pub(crate) use cuda::{CardEpisodes, EpisodeNumbers, EpisodePlan, card_depth};
pub use cuda::{DEVICE, DeviceChoice, DeviceDescription, EvaluationDevice, WORTH_A_GPU, devices};
pub use exact::ExactPrimalDual;
pub use kind::{AlgorithmChoice, AlgorithmKind, Plan, Task};
pub use mappo::{ActorSees, Behaviour, Mappo, MappoSettings, Scope};
pub use primal_dual::{LastIteration, PrimalDual};
pub use summary::{Summary, mean_return, undiscounted_returns};
pub use update::{Progress, Stage};

/// One iteration at a time, with a state that can be saved and restored.
pub trait Algorithm: Send + Sync {
    /// One iteration.
    fn step(&mut self) -> Result<Summary>;

    /// Copies the state to the device that iterates, so that the first iteration takes as long as the others.
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    /// Brings what the host knows of policy and multipliers in step with the device that iterates. To be
    /// called before they are looked at.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    /// The same for everything that [`Algorithm::fields`] shows.
    fn settle_fields(&mut self) -> Result<()> {
        self.settle()
    }

    /// The text of the kernels that iterate, where a device does.
    fn kernels(&self) -> Option<&str> {
        None
    }

    /// The device that iterates and the memory that it takes there, in words; none for the processor.
    fn device(&self) -> Option<String> {
        None
    }

    /// Gives back memory that only the next iteration needs.
    fn forget_samples(&mut self) {}

    /// Everything that the next iteration depends on.
    fn fields(&mut self) -> Fields<'_>;

    /// To be called after [`Algorithm::fields`] have been written to.
    fn restored(&mut self) {
        self.policy_mut().refresh();
    }

    /// Tells neighbouring processes what they must know of a restored state; all do it at the same time.
    fn share_restored(&mut self) -> Result<()> {
        Ok(())
    }

    /// The policy after the last iteration.
    fn policy(&self) -> &dyn Policy;

    /// The same, to be changed; [`Policy::refresh`] must follow.
    fn policy_mut(&mut self) -> &mut dyn Policy;

    /// μ after the last iteration.
    fn mu(&self) -> &Ragged<f64>;

    /// How far it has come.
    fn progress(&self) -> &Progress;

    /// Iterations done.
    fn iteration(&self) -> usize {
        self.progress().iteration as usize
    }

    /// Starts from another policy.
    fn start_from(&mut self, theta: Ragged<f64>) {
        *self.policy_mut().theta_mut() = theta;
        self.policy_mut().refresh();
    }

    /// Messages and bytes so far.
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }

    /// The most that an agent can send in an iteration.
    fn traffic_bound(&self) -> TrafficBound {
        TrafficBound::default()
    }

    /// What every process sent in the last iteration, where there are several; known to the first only.
    fn process_traffic(&self) -> &[ProcessTraffic] {
        &[]
    }

    /// What a shield has done so far, if there is one.
    fn shield(&self) -> Option<ShieldReport> {
        None
    }

    /// What the last iteration of a sampled algorithm found on its way, for tests and diagnostics.
    fn last(&self) -> Option<LastIteration<'_>> {
        None
    }

    /// Whether [`Summary::stationarity`] is reported.
    fn knows_stationarity(&self) -> bool {
        false
    }
}
