//! Whether agents learn a critic together.

use serde::{Deserialize, Serialize};

use super::CriticSection;
use crate::base::error::ensure;
use crate::policy;
use crate::{Error, Result};

/// Who has a neural network of values in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Sharing {
    /// Nobody.
    None,
    /// Agents of one kind, as in a shared policy.
    Kind,
}

/// Keys of `[critic]` on sharing (returns).
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SharingKeys {
    /// `none` or `kind`.
    pub sharing: Sharing,
}

impl Default for SharingKeys {
    fn default() -> Self {
        SharingKeys { sharing: Sharing::None }
    }
}

/// Sharing cannot be used.
pub(super) fn sharing_error(message: impl Into<String>) -> Error {
    Error::config("critic.sharing", message)
}

/// Whether the critic can be shared as it says, beside a policy that `is_shared` or not.
pub fn check_sharing(critic: &CriticSection, is_shared: bool) -> Result<()> {
    let SharingKeys { sharing } = critic.keys()?;
    if sharing == Sharing::None {
        return Ok(());
    }
    ensure(critic.can_share(), || {
        let kind = critic.kind;
        sharing_error(format!("`kind`, but `{kind}` finds values agent by agent; use `none`"))
    })?;
    ensure(is_shared, || {
        sharing_error(format!("`kind` needs kinds of agents, {} = \"shared\"; or use `none`", policy::KIND))
    })
}

/// Sums over all agents that learning takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SharedSums {
    /// How often everybody's numbers are summed up.
    pub rounds: usize,
    /// Numbers of all rounds together.
    pub numbers: usize,
}
