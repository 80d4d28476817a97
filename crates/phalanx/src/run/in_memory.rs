//! The files of a run from bytes at hand: for tests that try very many of them.

use std::path::Path;

use super::build;
use super::checkpoint::{self, Manifest};
use super::meta::Meta;
use super::multipliers;
use super::outcome::Outcome;
use super::session::Session;
use crate::base::fields::Fields;
use crate::base::{document, sealed};
use crate::policy;
use crate::utility::problem::Problem;
use crate::utility::{LocalSpace, ScaledUtility, UtilitySpec};
use crate::{Error, Ragged, Result};

/// Starts from the policy in the bytes of a `policy.safetensors`.
pub fn start_from(session: &mut Session, bytes: &[u8]) -> Result<()> {
    let theta = policy::from_bytes(session.policy(), bytes, Path::new("policy.safetensors"))?;
    session.set_theta(theta);
    Ok(())
}

/// The state of a session as a manifest and files of state, as a checkpoint has them.
pub struct Checkpoint<'a> {
    /// The manifest, JSON.
    pub manifest: &'a str,
    /// The iteration in its file's name.
    pub iteration: usize,
    /// Files of state, in order.
    pub pieces: &'a [Vec<u8>],
    /// Whether checksums count.
    pub is_checked: bool,
}

/// Brings a session where a checkpoint was written.
pub fn restore(session: &mut Session, checkpoint: &Checkpoint<'_>) -> Result<()> {
    let folder = Path::new("checkpoints");
    let path = folder.join(format!("{}.json", checkpoint.iteration));
    let manifest: Manifest = sealed::parse(checkpoint.manifest, &path, &checkpoint::EARLIER_KEYS)?;
    // Names of files end in `<number>-of-<count>.safetensors`, or say the iteration only.
    let piece = |path: &Path| {
        let name = path.to_string_lossy();
        let number =
            name.rsplit('.').nth(1).and_then(|part| part.split_once("-of-")).map_or("0", |part| part.0);
        let found = number.parse().ok().and_then(|number: usize| checkpoint.pieces.get(number));
        found.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotFound))
    };
    let manifest = if checkpoint.is_checked {
        let checksum = |path: &Path| piece(path).map(|bytes| crc32c::crc32c(bytes));
        checkpoint::check(manifest, folder, checkpoint.iteration, &checksum)?
    } else {
        manifest
    };
    let graph = session.task.world.clone();
    session.restore(|fields: Fields<'_>| {
        let read = |path: &Path| piece(path).cloned().map_err(|e| Error::unreadable(path, e));
        checkpoint::restore_with(&read, folder, &manifest, fields, graph.graph())
    })
}

/// Whether the run of a `meta.json` is finished.
pub fn is_finished(text: &str) -> Result<bool> {
    Meta::parse(text, Path::new("meta.json")).map(|meta| meta.is_finished())
}

/// An `outcome.json`.
pub fn outcome(text: &str) -> Result<Outcome> {
    document::parse(text, Path::new("outcome.json"), &[])
}

/// The multipliers in the bytes of a `multipliers.safetensors`.
pub fn multipliers(bytes: &[u8], problem: &Problem) -> Result<Ragged<f64>> {
    multipliers::from_bytes(bytes, Path::new("multipliers.safetensors"), problem)
}

/// The states in the text of a `usual_states.json`, of agents that have so many.
pub fn usual_states(text: &str, counts: &[usize]) -> Result<Vec<u8>> {
    super::usual_states::parse(text, Path::new("usual_states.json"), counts)
}

/// Every agent's utility, with the tables that a `file` of the configuration would hold.
pub fn utilities(text: &str, shared: &UtilitySpec, spaces: &[LocalSpace]) -> Result<Vec<ScaledUtility>> {
    build::from_text(text, Path::new("tables.json"), shared, spaces)
}
