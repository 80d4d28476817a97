//! What the settings of every critic can do, and keys that several of them share.

use std::fmt::Debug;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Critic;
use crate::base::range::{CountTo, Iterations};
use crate::base::section::Section;
use crate::base::stream::Stream;
use crate::distributed::Halo;
use crate::policy::{Baseline, Policy};
use crate::utility::problem::Problem;
use crate::world::World;
use crate::{Error, Result};

/// `[critic]`.
pub type CriticSection = Section<dyn CriticSettings>;

/// What a critic is made for.
#[derive(Clone, Copy)]
pub struct CriticContext<'a> {
    /// Where it learns.
    pub world: &'a dyn World,
    /// What it values.
    pub problem: &'a Problem,
    /// Whose actions it values.
    pub policy: &'a dyn Policy,
    /// κ_q.
    pub kappa_q: usize,
    /// B.
    pub batch: usize,
    /// H.
    pub horizon: usize,
    /// The processes that the agents live in.
    pub halo: &'a Arc<Halo>,
    /// Randomness of the run.
    pub stream: &'a Stream,
}

/// The settings of a kind of critic, and the critic that is made from them.
pub trait CriticSettings: Debug + Send + Sync {
    /// Whether its keys go together in a run with `batch` trajectories; `is_exact`: of an algorithm that asks
    /// no critic.
    fn check(&self, batch: usize, is_exact: bool) -> Result<()> {
        let _ = (batch, is_exact);
        Ok(())
    }

    /// The critic.
    fn build(&self, context: CriticContext<'_>) -> Result<Box<dyn Critic>>;

    /// Whether Q is known at other actions than those taken.
    fn knows_alternatives(&self) -> bool {
        true
    }

    /// The baseline that goes with it best.
    fn baseline(&self) -> Baseline {
        Baseline::Counterfactual
    }

    /// Whether it enumerates the whole graph, which only policies of tables allow.
    fn enumerates(&self) -> bool {
        false
    }

    /// Whether it has one value for f + Σ μ·g instead of one for each utility.
    fn is_merged(&self) -> bool {
        false
    }

    /// Whether agents of a kind can learn it together.
    fn can_share(&self) -> bool {
        false
    }

    /// Steps that every trajectory of the batch is carried on beyond the horizon.
    fn batch_tail(&self) -> usize {
        0
    }
}

/// Name of the key that chooses a kind.
pub const KIND: &str = "critic.kind";

/// Name of the key with K.
pub const STEPS: &str = "critic.steps";

/// Name of the key with the widths of hidden layers.
pub(crate) const HIDDEN: &str = "critic.hidden";

/// The kind of critic cannot be used.
pub fn kind_error(message: impl Into<String>) -> Error {
    Error::config(KIND, message)
}

/// Keys of `[critic]` on the number of samples.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(default)]
pub struct StepsKeys {
    /// K: TD updates, transitions of LSTD, linear and neural network critics, or steps that Monte-Carlo
    /// returns look beyond the horizon.
    pub steps: Iterations,
}

impl Default for StepsKeys {
    fn default() -> Self {
        StepsKeys { steps: CountTo(500) }
    }
}
