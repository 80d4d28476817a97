//! The training loop with everything that a run records.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::evaluate::Evaluation;
use super::folder::RunFolder;
use super::outcome::Outcome;
use super::session::Session;
use crate::Result;
use crate::algorithm::Summary;

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
    let outcome = Outcome::of(session, folder.path(), &evaluation, wall);
    folder.finish(session, &evaluation, &outcome)?;
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
