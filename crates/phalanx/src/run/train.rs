//! The training loop with everything that a run records.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::evaluate::Evaluation;
use super::folder::RunFolder;
use super::session::Session;
use super::truth::Truth;
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
    /// Seconds in the training loop, metrics and checkpoints included.
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
    /// The final policy evaluated exactly, where the network is small enough.
    pub exact: Option<Truth>,
}

/// How a call of [`train`] ended.
pub enum Ending {
    /// All iterations are done and the policy is evaluated.
    Finished(Box<Outcome>, Box<Evaluation>),
    /// It was asked to stop; a checkpoint holds the iterations done.
    Stopped {
        /// How many.
        iteration: usize,
    },
}

/// Trains `session` to the end (or until `stop` is set), calling `progress` after every iteration, and evaluates the
/// final policy. `elapsed` is what earlier calls for the same run have spent.
pub fn train(
    session: &mut Session,
    folder: &mut RunFolder,
    elapsed: Duration,
    stop: &AtomicBool,
    mut progress: impl FnMut(&Summary),
) -> Result<Ending> {
    let result = iterate(session, folder, elapsed, stop, &mut progress);
    result.inspect_err(|error| folder.fail(&error.to_string()))
}

fn iterate(
    session: &mut Session,
    folder: &mut RunFolder,
    elapsed: Duration,
    stop: &AtomicBool,
    progress: &mut impl FnMut(&Summary),
) -> Result<Ending> {
    let begin = Instant::now();
    let mut pace = Pace::new(session);
    while let Some(summary) = session.advance()? {
        folder.record(&summary, session)?;
        progress(&summary);
        let stopping = stop.load(Ordering::Relaxed);
        if stopping || pace.is_due() {
            pace.time(|| folder.checkpoint(session, elapsed + begin.elapsed()))?;
        }
        if stopping && !session.is_done() {
            folder.set_status("stopped")?;
            return Ok(Ending::Stopped { iteration: session.algorithm().iteration() });
        }
    }
    if pace.is_affordable() {
        pace.time(|| folder.checkpoint(session, elapsed + begin.elapsed()))?;
    }
    folder.commit()?;
    let wall = elapsed + begin.elapsed();
    folder.save_policy(session)?;
    let evaluation = session.evaluate()?;
    folder.finish(session, &evaluation)?;
    let truth = session.truth();
    let outcome = outcome(session, folder.path(), &evaluation, truth, wall);
    Ok(Ending::Finished(Box::new(outcome), Box::new(evaluation)))
}

/// When to write checkpoints: often, but for no more than a fiftieth of the time.
struct Pace {
    /// Least time between two; none if there are to be none.
    shortest: Option<Duration>,
    last: Instant,
    cost: Duration,
}

impl Pace {
    const SHARE: u32 = 50;
    /// Assumed before the first one is timed.
    const BYTES_PER_SECOND: f64 = 1e8;

    fn new(session: &mut Session) -> Self {
        let seconds = 0.003 + session.state_bytes() as f64 / Pace::BYTES_PER_SECOND;
        Pace {
            shortest: Duration::try_from_secs_f64(session.config().checkpoint.seconds).ok(),
            last: Instant::now(),
            cost: Duration::from_secs_f64(seconds),
        }
    }

    fn is_affordable(&self) -> bool {
        self.shortest.is_some() && self.last.elapsed() >= self.cost * Pace::SHARE
    }

    fn is_due(&self) -> bool {
        self.shortest.is_some_and(|shortest| self.last.elapsed() >= shortest) && self.is_affordable()
    }

    fn time(&mut self, write: impl FnOnce() -> Result<()>) -> Result<()> {
        let begin = Instant::now();
        write()?;
        self.cost = begin.elapsed();
        self.last = Instant::now();
        Ok(())
    }
}

fn outcome(
    session: &Session,
    path: &Path,
    evaluation: &Evaluation,
    exact: Option<Truth>,
    wall: Duration,
) -> Outcome {
    let algorithm = session.algorithm();
    let agent_steps = algorithm.agent_steps();
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
        exact,
    }
}
