//! The numbers that a run ends with.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use super::checksums;
use super::evaluate::Evaluation;
use super::exact_evaluation::ExactEvaluation;
use super::session::Session;
use crate::Result;
use crate::base::{document, durable};
use crate::distributed::{ProcessTraffic, Traffic, TrafficBound};
use crate::learn::shield::ShieldReport;

/// The closing line of a run, as `--json` prints it and `outcome.json` keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// The run's folder.
    pub run: PathBuf,
    /// Seed.
    pub seed: u64,
    /// Iterations done.
    pub iterations: usize,
    /// Undiscounted episode return, mean over agents.
    #[serde(rename = "return")]
    pub return_: Option<f64>,
    /// F(θ).
    pub objective: f64,
    /// Σ_i Σ_k max(0, −g_ik).
    pub violation_total: f64,
    /// The largest violation.
    pub violation_max: f64,
    /// The mean violation over constraints.
    pub violation_mean: f64,
    /// Seconds in the training loop, metrics and checkpoints included.
    pub wall_s: f64,
    /// Agent-steps simulated in training.
    pub agent_steps: u64,
    /// Their rate.
    #[serde(deserialize_with = "number_or_null")]
    pub agent_steps_per_s: f64,
    /// Bytes that agents sent each other in training.
    pub comm_bytes: u64,
    /// The same by kind, with the number of messages.
    #[serde(default)]
    pub traffic: Traffic,
    /// The most that one agent can send in one iteration, in bytes by kind.
    #[serde(default)]
    pub traffic_bound: TrafficBound,
    /// What every process sent in the last iteration, and could at most; empty if there was one.
    #[serde(default)]
    pub processes: Vec<ProcessTraffic>,
    /// Which scaling the run used.
    pub scaling: crate::utility::problem::Scaling,
    /// Episodes of the closing evaluation.
    pub evaluation_episodes: usize,
    /// What the shield did in training, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shield: Option<ShieldReport>,
    /// The final policy evaluated exactly, where the graph is small enough.
    pub exact: Option<ExactEvaluation>,
}

pub(super) const FILE: &str = "outcome.json";

impl Outcome {
    /// What `session`, trained to its end in `path`, has reached; `exact` if that is known.
    pub(super) fn new(
        session: &Session,
        path: &Path,
        evaluation: &Evaluation,
        wall: Duration,
        exact: Option<ExactEvaluation>,
    ) -> Self {
        let algorithm = session.algorithm();
        let agent_steps = algorithm.progress().agent_steps;
        Outcome {
            run: path.to_path_buf(),
            seed: session.config().seed,
            iterations: algorithm.iteration(),
            return_: evaluation.return_,
            objective: evaluation.objective,
            violation_total: evaluation.violations.total,
            violation_max: evaluation.violations.max,
            violation_mean: evaluation.violations.mean,
            wall_s: wall.as_secs_f64(),
            agent_steps,
            agent_steps_per_s: agent_steps as f64 / wall.as_secs_f64().max(1e-9),
            comm_bytes: algorithm.traffic().bytes(),
            traffic: algorithm.traffic(),
            traffic_bound: algorithm.traffic_bound(),
            processes: algorithm.process_traffic().to_vec(),
            scaling: session.config().scaling,
            evaluation_episodes: evaluation.episodes,
            shield: algorithm.shield(),
            exact,
        }
    }

    /// Writes `outcome.json`, durably.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        durable::replace_json(&folder.join(FILE), self)
    }

    /// Reads `outcome.json`; none if there is no such file. Fields of later versions are passed over.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let outcome: Outcome = document::read(&path, &[])?;
        checksums::check(folder, FILE)?;
        // Folders get moved, and are named from elsewhere.
        Ok(Some(Outcome { run: folder.to_path_buf(), ..outcome }))
    }
}

/// A rate over no time at all, or the distance of multipliers beyond all bounds from a stationary point, is
/// no number, which JSON writes as `null`.
pub(super) fn number_or_null<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}
