//! The training loop with everything that a run records.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::evaluate::Evaluation;
use super::folder::{Provenance, RunFolder};
use super::session::Session;
use crate::Result;
use crate::algorithm::Summary;

/// The closing line of a run, as `--json` prints it.
#[derive(Debug, Clone, Serialize)]
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
    /// Seconds in the training loop, metrics included.
    pub wall_s: f64,
    /// Agent-steps simulated in training.
    pub agent_steps: u64,
    /// Their rate.
    pub agent_steps_per_s: f64,
    /// Bytes that agents sent each other in training.
    pub comm_bytes: u64,
    /// Which scaling the run used.
    pub scaling: crate::problem::Scaling,
    /// Episodes of the closing evaluation.
    pub evaluation_episodes: usize,
}

/// Trains `session` to the end into a new folder at `path`, calling `progress` after every iteration, and evaluates
/// the final policy.
pub fn train(
    session: &mut Session,
    path: &Path,
    provenance: Provenance,
    mut progress: impl FnMut(&Summary),
) -> Result<(Outcome, Evaluation)> {
    let mut folder = RunFolder::create(path, session, provenance)?;
    let result = iterate(session, &mut folder, &mut progress);
    result.inspect_err(|error| folder.fail(&error.to_string()))
}

fn iterate(
    session: &mut Session,
    folder: &mut RunFolder,
    progress: &mut impl FnMut(&Summary),
) -> Result<(Outcome, Evaluation)> {
    let begin = Instant::now();
    while let Some(summary) = session.advance()? {
        folder.record(&summary, session)?;
        progress(&summary);
    }
    folder.flush()?;
    let wall = begin.elapsed();
    folder.save_policy(session)?;
    let evaluation = session.evaluate();
    folder.finish(session, &evaluation)?;
    Ok((outcome(session, folder.path(), &evaluation, wall), evaluation))
}

fn outcome(session: &Session, path: &Path, evaluation: &Evaluation, wall: Duration) -> Outcome {
    let algorithm = session.algorithm();
    let agent_steps = algorithm.agent_steps_per_iteration() * algorithm.iteration() as u64;
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
        agent_steps_per_s: agent_steps as f64 / wall.as_secs_f64(),
        comm_bytes: algorithm.traffic().bytes(),
        scaling: session.config().scaling,
        evaluation_episodes: evaluation.episodes,
    }
}
