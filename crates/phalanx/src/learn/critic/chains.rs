//! Which samples linear and neural critics learn from.

use serde::{Deserialize, Serialize};

use super::{STEPS, SampleRequest, StepsKeys};
use crate::base::limits::MOST_TRAJECTORIES;
use crate::{Error, Result};

/// Which samples the critic learns from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum On {
    Batch,
    #[default]
    Chain,
}

/// Keys of `[critic]` on samples (linear, network).
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ChainKeys {
    /// `chain` (K transitions of their own) or `batch`.
    on: On,
    /// Transitions after which the K start over from ρ₀; 0 for one chain of K.
    episode: usize,
}

impl ChainKeys {
    /// The number of chains, and transitions of each: K altogether, rounded up.
    fn chains(&self, samples: &StepsKeys) -> (usize, usize) {
        let steps = *samples.steps;
        let length = if self.episode == 0 { steps } else { self.episode.min(steps) };
        (steps.div_ceil(length), length)
    }

    /// Whether the chains can be numbered, beside the batch.
    pub(super) fn check(&self, samples: &StepsKeys, batch: usize) -> Result<()> {
        let (chains, _) = self.chains(samples);
        let most = MOST_TRAJECTORIES - batch;
        if chains <= most {
            return Ok(());
        }
        let message = format!("{} makes {chains} chains of {STEPS} = {}", self.episode, *samples.steps);
        Err(Error::config("critic.episode", format!("{message}; at most {most} are possible")))
    }

    pub(super) fn wanted(&self, samples: &StepsKeys) -> SampleRequest {
        let (count, steps) = self.chains(samples);
        match self.on {
            // One step more than the horizon.
            On::Batch => SampleRequest::batch(1),
            On::Chain => SampleRequest::chains(count, steps),
        }
    }
}
