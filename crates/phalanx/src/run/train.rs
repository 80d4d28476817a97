//! One run: begun or resumed, and trained to its end with everything that it records.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::checkpoint::Piece;
use super::config::Config;
use super::evaluate::{Evaluation, Evaluator};
use super::folder::{LockedRun, RestartPoint, RunFolder, write_state};
use super::meta::Provenance;
use super::outcome::Outcome;
use super::session::Session;
use crate::algorithm::{DeviceChoice, Summary};
use crate::distributed::{Communicator, Halo, numbers};
use crate::world::Registry;
use crate::{Error, Result};

/// Training with its folder. Where several processes share the graph, all of them hold one and call the
/// same methods at the same time; the first of them, rank 0, writes the files and decides when to stop.
pub struct Run {
    session: Session,
    /// On rank 0.
    folder: Option<RunFolder>,
    path: PathBuf,
    /// Time spent in training so far.
    elapsed: Duration,
}

/// A run that was begun before.
pub enum ResumeOutcome {
    /// It is done.
    Finished,
    /// It can go on from where its last whole checkpoint was.
    Ready {
        /// The run.
        run: Box<Run>,
        /// What the user should know: damaged checkpoints, a start from the beginning. On rank 0.
        notes: Vec<String>,
    },
}

/// How a call of [`Run::train`] ended.
pub enum Ending {
    /// All iterations are done and the policy is evaluated; what came of it is known on rank 0.
    Finished(Option<Box<RunResults>>),
    /// It was asked to stop; a checkpoint holds the iterations done.
    Stopped {
        /// How many.
        iteration: usize,
    },
}

/// What a run has come to.
pub struct RunResults {
    /// The numbers that it ends with.
    pub outcome: Outcome,
    /// The closing evaluation.
    pub evaluation: Evaluation,
    /// The policy with its multipliers.
    pub evaluator: Evaluator,
    /// Why there is no exact evaluation, where one was tried.
    pub inexact: Option<String>,
}

/// What rank 0 decides after an iteration.
const CONTINUE: u8 = 0;
const CHECKPOINT: u8 = 1;
const STOP: u8 = 2;

impl Run {
    /// Begins a run in `path` (rank 0's counts), which must be new or empty.
    pub fn begin(session: Session, path: &Path, provenance: Provenance) -> Result<Self> {
        let halo = session.task.halo.clone();
        let heard = halo.broadcast(path.as_os_str().as_encoded_bytes().to_vec())?;
        let path = if halo.is_first() {
            path.to_path_buf()
        } else {
            PathBuf::from(String::from_utf8_lossy(&heard).into_owned())
        };
        let made = halo.is_first().then(|| RunFolder::create(&path, &session, provenance)).transpose();
        let folder = halo.all_ok(made)?;
        Ok(Run { session, folder, path, elapsed: Duration::ZERO })
    }

    /// Opens the folder of a run that was begun before, and brings run and files to its last whole
    /// checkpoint.
    pub fn resume(path: &Path, registry: &Registry, peers: Arc<dyn Communicator>) -> Result<ResumeOutcome> {
        Run::resume_on(path, registry, peers, None)
    }

    /// The same on another device than the run's own: what it writes is of the same form.
    pub fn resume_on(
        path: &Path,
        registry: &Registry,
        peers: Arc<dyn Communicator>,
        device: Option<DeviceChoice>,
    ) -> Result<ResumeOutcome> {
        let halo = Halo::without_borders(peers.clone(), 0);
        let found = if halo.is_first() { LockedRun::find(path, registry) } else { Ok(None) };
        let locked = halo.all_ok(found)?;
        let point = locked.as_ref().map(|locked| &locked.point);
        let heard =
            halo.broadcast(serde_json::to_vec(&point).map_err(|e| Error::file(path, e.to_string()))?)?;
        let point: Option<RestartPoint> =
            serde_json::from_slice(&heard).map_err(|e| Error::file(path, e.to_string()))?;
        let Some(point) = point else { return Ok(ResumeOutcome::Finished) };
        let mut config = halo.all_ok(Config::of_run(path))?.with_registry(registry.clone());
        config.device = device.unwrap_or(config.device);
        let mut session = Session::distributed(&config, peers)?;
        point.apply(path, &mut session)?;
        let opened = locked.map(|locked| locked.open(path, &session)).transpose();
        let mut run = Run { session, folder: None, path: path.to_path_buf(), elapsed: Duration::ZERO };
        let mut notes = Vec::new();
        if let Some((folder, elapsed, found)) = halo.all_ok(opened)? {
            (run.folder, run.elapsed, notes) = (Some(folder), elapsed, found);
        }
        Ok(ResumeOutcome::Ready { run: Box::new(run), notes })
    }

    /// Trains to the end, calling `progress` after every iteration on rank 0, and evaluates the final policy,
    /// which is on disk by then. Stops early, with a checkpoint, soon after `stop` is set on rank 0.
    pub fn train(&mut self, stop: &Arc<AtomicBool>, mut progress: impl FnMut(&Summary)) -> Result<Ending> {
        self.train_with(stop, |summary, _| progress(summary))
    }

    /// The same where `progress` is also given the session, as it is after the iteration. Whoever wants to
    /// see the policy calls [`Session::settle_policy`] first.
    pub fn train_with(
        &mut self,
        stop: &Arc<AtomicBool>,
        progress: impl FnMut(&Summary, &mut Session),
    ) -> Result<Ending> {
        self.session.stop = stop.clone();
        let result = self.run_to_end(stop, progress);
        result.map_err(|error| self.name_checkpoint(error)).inspect_err(|error| self.fail(&error.to_string()))
    }

    /// Notes in `meta.json` that the run failed; the rows so far are kept.
    pub fn fail(&mut self, reason: &str) {
        self.folder.iter_mut().for_each(|folder| folder.fail(reason));
    }

    fn run_to_end(
        &mut self,
        stop: &AtomicBool,
        mut progress: impl FnMut(&Summary, &mut Session),
    ) -> Result<Ending> {
        let halo = self.session.task.halo.clone();
        self.session.prepare()?;
        let (before, begin) = (self.elapsed, Instant::now());
        let mut timer = CheckpointTimer::new(&mut self.session);
        while !self.session.is_done() {
            let Some(summary) = self.session.advance()? else { break };
            let decision = halo.broadcast_decision(|| {
                if let Some(folder) = &mut self.folder {
                    folder.record(&summary, &self.session)?;
                }
                progress(&summary, &mut self.session);
                let due = if timer.is_due() { CHECKPOINT } else { CONTINUE };
                Ok(if stop.load(Ordering::Relaxed) { STOP } else { due })
            })?;
            self.elapsed = before + begin.elapsed();
            if decision != CONTINUE {
                timer.time(|| self.checkpoint(&halo))?;
            }
            if decision == STOP && !self.session.is_done() {
                return self.stopped(&halo);
            }
        }
        let last =
            halo.broadcast_decision(|| Ok(if timer.is_affordable() { CHECKPOINT } else { CONTINUE }))?;
        if last == CHECKPOINT {
            self.checkpoint(&halo)?;
        }
        self.elapsed = before + begin.elapsed();
        self.session.conclude()?;
        let whole = self.session.whole()?;
        let files = self.folder.as_mut().zip(whole.as_ref());
        halo.all_ok(files.map_or(Ok(()), |(folder, whole)| folder.save_policy(whole)))?;
        match self.session.evaluate() {
            Err(Error::Stopped) => {
                if last != CHECKPOINT {
                    self.checkpoint(&halo)?;
                }
                self.stopped(&halo)
            }
            evaluation => {
                let results = self.finish(whole, evaluation?);
                Ok(Ending::Finished(halo.all_ok(results)?))
            }
        }
    }

    fn stopped(&mut self, halo: &Halo) -> Result<Ending> {
        let noted = self.folder.as_mut().map_or(Ok(()), |folder| folder.set_status("stopped"));
        halo.all_ok(noted)?;
        Ok(Ending::Stopped { iteration: self.session.algorithm().iteration() })
    }

    /// Writes everything that a run ends with.
    fn finish(
        &mut self,
        whole: Option<Evaluator>,
        evaluation: Evaluation,
    ) -> Result<Option<Box<RunResults>>> {
        let (Some(folder), Some(evaluator)) = (&mut self.folder, whole) else { return Ok(None) };
        let (exact, inexact) = match evaluator.exact() {
            Ok(exact) => (exact, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let outcome = Outcome::new(&self.session, &self.path, &evaluation, self.elapsed, exact);
        folder.finish(&evaluator, &evaluation, &outcome)?;
        Ok(Some(Box::new(RunResults { outcome, evaluation, evaluator, inexact })))
    }

    /// A checkpoint: every process writes its own piece, rank 0 the manifest.
    fn checkpoint(&mut self, halo: &Halo) -> Result<()> {
        let in_place = self.folder.as_ref().map_or(Ok(()), RunFolder::check_in_place);
        let written = in_place.and_then(|()| write_state(&self.path, &mut self.session));
        // Whoever cannot write says what is there; the others are told.
        let piece = halo.all_ok(written.map_err(|error| self.name_checkpoint(error)))?;
        let all = halo.gather(bytemuck::bytes_of(&piece))?;
        let pieces: Vec<Piece> = all.iter().flat_map(|bytes| numbers(bytes)).collect();
        let iteration = self.session.algorithm().iteration();
        let folder = self.folder.as_mut();
        halo.all_ok(folder.map_or(Ok(()), |folder| folder.write_manifest(iteration, self.elapsed, pieces)))
    }

    /// What cannot be written, or computed by a device, is said with the last checkpoint, from which the run
    /// can go on.
    fn name_checkpoint(&self, error: Error) -> Error {
        match error {
            Error::Write { path, source } if self.path.is_dir() => {
                let checkpoint = RunFolder::describe_last_checkpoint(&self.path);
                Error::RunWrite { path, source, checkpoint }
            }
            Error::Device { message } if self.path.is_dir() => {
                let checkpoint = RunFolder::describe_last_checkpoint(&self.path);
                Error::Device { message: format!("{message}; {checkpoint}") }
            }
            error => error,
        }
    }

    /// What is trained.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The run's folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// When to write checkpoints: often, but for no more than a fiftieth of the time; after every iteration if
/// the least time between two is 0.
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
            shortest: Duration::try_from_secs_f64(*session.config().checkpoint.seconds).ok(),
            last: Instant::now(),
            cost: Duration::from_secs_f64(seconds),
        }
    }

    fn is_affordable(&self) -> bool {
        let is_cheap = self.last.elapsed() >= self.cost * CheckpointTimer::SHARE;
        self.shortest.is_some_and(|shortest| shortest.is_zero() || is_cheap)
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
