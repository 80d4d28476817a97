//! Faulty links between agents: messages that are lost or late, and agents that fall silent.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{LinkedPolicy, Policy};
use crate::base::error::ensure;
use crate::base::range::Fraction;
use crate::world::{Evolution, World};
use crate::{Error, Result};

/// `[links]`: what happens to the messages by which agents tell their states.
///
/// An agent always knows its own state. Of another it knows the newest state that has reached it; if none
/// has, or the newest is too old, it assumes the sender's usual state. What agents tell each other in order
/// to learn, their values and multipliers, is never lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkSettings {
    /// Probability that a message is lost on a link; over several links it must pass every one.
    pub loss: Fraction,
    /// Steps that a message takes.
    pub delay: usize,
    /// Agents that send nothing.
    pub silent: Vec<usize>,
    /// Steps after which a state is too old to be used; any age if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age: Option<usize>,
}

impl Default for LinkSettings {
    fn default() -> Self {
        LinkSettings { loss: Fraction(0.0), delay: 0, silent: Vec::new(), max_age: None }
    }
}

/// Name of the key of the probability.
pub const LOSS: &str = "links.loss";

/// Section of the configuration.
pub const SECTION: &str = "links";

impl LinkSettings {
    /// Whether every message arrives at once.
    pub fn is_off(&self) -> bool {
        *self.loss == 0.0 && self.delay == 0 && self.silent.is_empty()
    }

    /// Whether the keys go together.
    pub fn check(&self) -> Result<()> {
        let delay = self.delay;
        ensure(self.max_age.is_none_or(|age| age >= delay), || {
            let message = format!("{} is below the delay of {delay}", self.max_age.unwrap_or_default());
            Error::config(format!("{SECTION}.max_age"), message + ": every state would be too old")
        })
    }

    /// Refuses links that are faulty, for the reason `why`.
    pub fn refuse(&self, why: &str) -> Result<()> {
        ensure(self.is_off(), || Error::config(LOSS, why))
    }

    /// `policy`, over κ-hop neighbourhoods, where agents know of each other what these links let through;
    /// `policy` itself if they let everything through.
    pub fn over(&self, policy: Box<dyn Policy>, world: &dyn World, kappa: usize) -> Result<Box<dyn Policy>> {
        if self.is_off() {
            return Ok(policy);
        }
        let agents = world.graph().total();
        if let Some(agent) = self.silent.iter().find(|&&agent| agent >= agents) {
            let message = format!("there is no agent {agent}; there are {agents}, numbered from 0");
            return Err(Error::config(format!("{SECTION}.silent"), message));
        }
        if kappa == 0 {
            return Ok(policy);
        }
        ensure(matches!(world.evolution(), Evolution::Factored(_)), joint_error)?;
        Ok(Box::new(LinkedPolicy::new(policy, self, world, kappa)))
    }
}

/// In words: `loss 0.1; delay 2; silent 3, 7`.
impl fmt::Display for LinkSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let silent: Vec<String> = self.silent.iter().map(usize::to_string).collect();
        let parts = [
            (*self.loss > 0.0).then(|| format!("loss {}", *self.loss)),
            (self.delay > 0).then(|| format!("delay {}", self.delay)),
            (!silent.is_empty()).then(|| format!("silent {}", silent.join(", "))),
            self.max_age.map(|age| format!("max_age {age}")),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
    }
}

/// The world is one whose agents see more than states.
pub fn joint_error() -> Error {
    let message =
        "agents of this world see more than each other's states, which links cannot carry; set it to 0";
    Error::config(LOSS, message)
}
