//! The training loop with everything that a run records.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::checkpoint::Piece;
use super::config::Config;
use super::evaluate::Evaluation;
use super::evaluator::Evaluator;
use super::folder::{From, LockedRun, RunFolder, write_state};
use super::outcome::Outcome;
use super::session::Session;
use crate::algorithm::Summary;
use crate::distributed::{Communicator, Halo, all_ok_among};
use crate::world::Registry;
use crate::{Error, Result};

/// How a call of [`train`] ended.
pub enum Ending {
    /// All iterations are done and the policy is evaluated.
    Finished(Box<Outcome>, Box<Evaluation>, Box<Evaluator>),
    /// It was asked to stop; a checkpoint holds the iterations done.
    Stopped {
        /// How many.
        iteration: usize,
    },
}

/// How a call of [`train_part`] ended.
pub enum PartEnding {
    /// All iterations are done and the policy is evaluated; told by the first process, with the whole network.
    Finished(Box<Outcome>, Box<Evaluation>, Box<Evaluator>),
    /// The same, told elsewhere.
    Elsewhere,
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
    let mut pace = CheckpointTimer::new(session);
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
    let whole = session.evaluator()?;
    folder.save_policy(&whole)?;
    let evaluation = match session.evaluate() {
        Err(Error::Stopped) => {
            folder.set_status("stopped")?;
            return Ok(Ending::Stopped { iteration: session.algorithm().iteration() });
        }
        evaluation => evaluation?,
    };
    let outcome = Outcome::of(session, folder.path(), &evaluation, wall, whole.exact());
    folder.finish(&whole, &evaluation, &outcome)?;
    Ok(Ending::Finished(Box::new(outcome), Box::new(evaluation), Box::new(whole)))
}

/// As [`train`] for one process of several: they call it at the same time. The first one has the run's folder, which is `path`
/// for all of them. Its `stop` is the one that counts.
pub fn train_part(
    session: &mut Session,
    mut folder: Option<&mut RunFolder>,
    path: &Path,
    elapsed: Duration,
    stop: &AtomicBool,
    mut progress: impl FnMut(&Summary),
) -> Result<PartEnding> {
    let result = iterate_part(session, folder.as_deref_mut(), path, elapsed, stop, &mut progress);
    result.inspect_err(|error| folder.into_iter().for_each(|folder| folder.fail(&error.to_string())))
}

/// What the first process decides after an iteration.
const GO_ON: u8 = 0;
const CHECKPOINT: u8 = 1;
const STOP: u8 = 2;

fn iterate_part(
    session: &mut Session,
    mut folder: Option<&mut RunFolder>,
    path: &Path,
    elapsed: Duration,
    stop: &AtomicBool,
    progress: &mut impl FnMut(&Summary),
) -> Result<PartEnding> {
    let halo = session.halo().clone();
    let begin = Instant::now();
    let mut pace = CheckpointTimer::new(session);
    while let Some(summary) = session.advance()? {
        let decision = halo.broadcast_decision(|| {
            if let Some(folder) = &mut folder {
                folder.record(&summary, session)?;
            }
            progress(&summary);
            let stopping = stop.load(Ordering::Relaxed);
            Ok(if stopping {
                STOP
            } else if pace.is_due() {
                CHECKPOINT
            } else {
                GO_ON
            })
        })?;
        if decision != GO_ON {
            pace.time(|| save(session, &mut folder, path, &halo, elapsed + begin.elapsed()))?;
        }
        if decision == STOP && !session.is_done() {
            halo.all_ok(folder.map_or(Ok(()), |folder| folder.set_status("stopped")))?;
            return Ok(PartEnding::Stopped { iteration: session.algorithm().iteration() });
        }
    }
    let last = halo.broadcast_decision(|| Ok(if pace.is_affordable() { CHECKPOINT } else { GO_ON }))?;
    if last == CHECKPOINT {
        pace.time(|| save(session, &mut folder, path, &halo, elapsed + begin.elapsed()))?;
    }
    let wall = elapsed + begin.elapsed();
    let evaluation = session.evaluate_all()?;
    let whole = session.whole()?;
    let results = match (folder, evaluation, whole) {
        (Some(folder), Some(evaluation), Some(whole)) => {
            conclude(session, folder, evaluation, whole, wall).map(Some)
        }
        _ => Ok(None),
    };
    Ok(match halo.all_ok(results)? {
        Some((outcome, evaluation, whole)) => PartEnding::Finished(outcome, evaluation, whole),
        None => PartEnding::Elsewhere,
    })
}

type Results = (Box<Outcome>, Box<Evaluation>, Box<Evaluator>);

/// Writes everything that a run ends with.
fn conclude(
    session: &Session,
    folder: &mut RunFolder,
    evaluation: Evaluation,
    whole: Evaluator,
    wall: Duration,
) -> Result<Results> {
    folder.commit()?;
    folder.save_policy(&whole)?;
    let outcome = Outcome::of(session, folder.path(), &evaluation, wall, whole.exact());
    folder.finish(&whole, &evaluation, &outcome)?;
    Ok((Box::new(outcome), Box::new(evaluation), Box::new(whole)))
}

/// A checkpoint of all processes: each writes its own piece, the first one the manifest.
fn save(
    session: &mut Session,
    folder: &mut Option<&mut RunFolder>,
    path: &Path,
    halo: &Halo,
    elapsed: Duration,
) -> Result<()> {
    let piece = halo.all_ok(write_state(path, session))?;
    let numbers = [piece.first, piece.last, piece.crc32c];
    let all = halo.gather(bytemuck::cast_slice(&numbers))?;
    let pieces = all.iter().filter_map(|bytes| {
        let [first, last, crc32c] = bytes.as_chunks::<4>().0 else { return None };
        let [first, last, crc32c] = [first, last, crc32c].map(|word| u32::from_le_bytes(*word));
        Some(Piece { first, last, crc32c })
    });
    let concluded = match folder {
        Some(folder) => folder.conclude(session.algorithm().iteration(), elapsed, pieces.collect()),
        None => Ok(()),
    };
    halo.all_ok(concluded)
}

/// Opens the folder of a run that was begun before and brings every process's part to its last whole checkpoint. Only the first
/// process gets the folder. None if the run is finished.
pub fn resume_part(
    path: &Path,
    registry: &Registry,
    peers: &Arc<dyn Communicator>,
) -> Result<Option<ResumedPart>> {
    let config = all_ok_among(peers, Config::of_run(path))?.with_registry(registry.clone());
    let mut session = Session::shared_out(&config, peers.clone())?;
    let halo = session.halo().clone();
    let found = if halo.is_first() { LockedRun::find(path, &config) } else { Ok(None) };
    let revived = halo.all_ok(found)?;
    let from = revived.as_ref().map(|revived| &revived.from);
    let text = serde_json::to_vec(&from).map_err(|e| Error::file(path, e.to_string()))?;
    let heard = halo.broadcast(text)?;
    let from: Option<From> = serde_json::from_slice(&heard).map_err(|e| Error::file(path, e.to_string()))?;
    let Some(from) = from else { return Ok(None) };
    halo.all_ok(from.apply(path, &mut session))?;
    let opened = revived.map(|revived| revived.open(path, &session)).transpose();
    let (folder, elapsed, notes) = match halo.all_ok(opened)? {
        Some((folder, elapsed, notes)) => (Some(folder), elapsed, notes),
        None => (None, Duration::ZERO, Vec::new()),
    };
    Ok(Some(ResumedPart { session, folder, elapsed, notes }))
}

/// One process's part of a run that was begun before.
pub struct ResumedPart {
    /// The part in memory.
    pub session: Session,
    /// The run's folder, at the first process.
    pub folder: Option<RunFolder>,
    /// Time that it has spent in training already.
    pub elapsed: Duration,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// When to write checkpoints: often, but for no more than a fiftieth of the time.
struct CheckpointTimer {
    /// Least time between two; none if there are to be none.
    shortest: Option<Duration>,
    last: Instant,
    cost: Duration,
}

impl CheckpointTimer {
    const SHARE: u32 = 50;
    /// Assumed before the first one is timed.
    const BYTES_PER_SECOND: f64 = 1e8;

    fn new(session: &mut Session) -> Self {
        let seconds = 0.003 + session.state_bytes() as f64 / CheckpointTimer::BYTES_PER_SECOND;
        CheckpointTimer {
            shortest: Duration::try_from_secs_f64(session.config().checkpoint.seconds).ok(),
            last: Instant::now(),
            cost: Duration::from_secs_f64(seconds),
        }
    }

    fn is_affordable(&self) -> bool {
        self.shortest.is_some() && self.last.elapsed() >= self.cost * CheckpointTimer::SHARE
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
