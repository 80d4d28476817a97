//! How critics' neural networks learn.

use serde::{Deserialize, Serialize};

use crate::base::limits::check_memory;
use crate::base::range::{Limit, NonNegative, Passes, Share};
use crate::neural::{Descent, Loss, OptimizerKind};
use crate::{Error, Result};

/// Which loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LossKind {
    /// δ².
    Mse,
    /// ½·δ² within 1, linear beyond.
    Huber,
}

/// Keys of `[critic]` on how neural networks learn (network, returns).
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct LearningKeys {
    /// `adam` or `sgd`.
    pub(super) optimizer: OptimizerKind,
    /// Step size of the optimiser.
    learning_rate: NonNegative,
    /// Transitions of a gradient step; 0 for one at a time, in order (network).
    pub(super) minibatch: usize,
    /// Passes over the K transitions (network, with minibatches) or the batch (returns).
    pub(super) passes: Passes,
    /// `mse` or `huber` (network, with minibatches; returns).
    loss: LossKind,
    /// Share of itself that the target network keeps at each step; 0 for no target (network).
    pub(super) polyak: Share,
    /// Largest norm of a gradient; `inf` for any (network, with minibatches; returns).
    clip: Limit,
}

impl Default for LearningKeys {
    fn default() -> Self {
        LearningKeys {
            optimizer: OptimizerKind::Adam,
            learning_rate: NonNegative(1e-3),
            minibatch: 64,
            passes: Passes(1),
            loss: LossKind::Mse,
            polyak: Share(0.95),
            clip: Limit(f64::INFINITY),
        }
    }
}

impl LearningKeys {
    /// Without minibatches there are plain gradient steps only.
    pub(super) fn check_optimizer(&self) -> Result<()> {
        if self.minibatch > 0 || self.optimizer == OptimizerKind::Sgd {
            return Ok(());
        }
        let message = "`adam` needs minibatches; set critic.minibatch above 0, or critic.optimizer = \"sgd\"";
        Err(Error::config("critic.optimizer", message))
    }

    /// For a critic that cannot do without minibatches.
    pub(super) fn check_minibatches(&self, critic: &str) -> Result<()> {
        if self.minibatch > 0 {
            return Ok(());
        }
        let message = format!("0; `{critic}` learns in minibatches of at least 1");
        Err(Error::config("critic.minibatch", message))
    }

    pub(super) fn descent(&self) -> Descent {
        Descent::new(self.optimizer, *self.learning_rate, *self.clip)
    }

    pub(super) fn loss(&self) -> Loss {
        match self.loss {
            LossKind::Mse => Loss::Squared,
            LossKind::Huber => Loss::Huber { width: 1.0 },
        }
    }

    /// Every thread holds the order of an agent's samples in all passes.
    pub(super) fn check_memory(&self, samples: u128) -> Result<()> {
        let passes = *self.passes;
        let bytes = 4 * passes as u128 * samples * rayon::current_num_threads() as u128;
        check_memory(bytes, "critic.passes", &format!("{passes} passes over {samples} transitions"))
    }
}
