//! What a run leaves behind on disk.

use std::fs::{DirEntry, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::agents;
use super::checkpoint::{self, Manifest, Piece};
use super::checksums;
use super::config::Config;
use super::evaluate::{Evaluation, Evaluator};
use super::events;
use super::meta::{self, CONFIG, FINISHED, INITIAL_POLICY, Meta, Provenance, RUNNING};
use super::multipliers;
use super::outcome::{self, Outcome};
use super::preset;
use super::session::Session;
use super::usual_states;
use crate::algorithm::{Stage, Summary, Task};
use crate::base::durable::{self, Extent, Log, UNFINISHED};
use crate::base::error::ensure;
use crate::base::fields::Fields;
use crate::base::files;
use crate::distributed::{ProcessTraffic, Traffic};
use crate::policy;
use crate::world::Registry;
use crate::{Error, Result};

/// A run's folder: `config.toml`, `meta.json`, `metrics.csv`, `timings.csv`, `checkpoints/`, `tb/`, and at
/// the end `agents.csv`, `returns.csv`, `agents-summary.csv`, `multipliers.safetensors`, `usual_states.json`,
/// `outcome.json`, `policy.safetensors` and `checksums.json`.
pub struct RunFolder {
    path: PathBuf,
    /// Held as long as the run is: two processes in one folder would spoil each other's files.
    _lock: File,
    /// `metrics.csv`, `timings.csv` and the TensorBoard events.
    logs: [Log; 3],
    last_times: [Duration; Stage::COUNT],
    last_traffic: Traffic,
    meta: Meta,
    config_crc32c: u32,
}

/// Rows that TensorBoard is given at most; more would only slow it down.
const EVENTS: usize = 10_000;

impl RunFolder {
    /// Whether a run can begin in `path`: it must be new or an empty folder, with a name that JSON can hold.
    pub fn check_free(path: &Path) -> Result<()> {
        let refused = |why: &str| Error::argument("out", format!("{} {why}", path.display()));
        ensure(path.to_str().is_some(), || refused("is not UTF-8"))?;
        ensure(path.is_dir() || !path.exists(), || refused("is a file, not a folder"))?;
        let has_run = path.join(CONFIG).is_file();
        ensure(!has_run, || refused("is not empty: it holds a run; resume it, or name a new folder"))?;
        let mut entries = path.read_dir().into_iter().flatten().flatten();
        ensure(entries.all(|entry| is_leftover(&entry)), || {
            refused("is not empty; name a new folder, or remove it")
        })
    }

    /// Where the run of a preset or file goes by default: `runs/<name>-seed<seed>`, numbered on if that
    /// exists. The preset `paper/wireless` is called `paper-wireless`: its run must not be taken for one of
    /// `wireless`.
    pub fn unused(source: &str, seed: u64) -> PathBuf {
        let stem = if preset::text(source).is_some() {
            source.replace('/', "-")
        } else {
            Path::new(source).file_stem().unwrap_or_default().to_string_lossy().into_owned()
        };
        let first = Path::new("runs").join(format!("{stem}-seed{seed}"));
        let numbered = |k| Path::new("runs").join(format!("{stem}-seed{seed}-{k}"));
        std::iter::once(first).chain((2..).map(numbered)).find(|path| !path.exists()).unwrap_or_default()
    }

    /// Begins a run in `path`, which must be new or empty.
    pub fn create(path: &Path, session: &Session, provenance: Provenance) -> Result<Self> {
        RunFolder::check_free(path)?;
        durable::create_dirs(path)
            .map_err(|e| Error::argument("out", format!("{} cannot be made: {e}", path.display())))?;
        let lock = lock(path)?;
        RunFolder::check_free(path)?;
        let init = path.join(INITIAL_POLICY);
        match &session.warm_from {
            Some(policy) => durable::replace(&init, |temporary| std::fs::copy(policy, temporary).map(drop))?,
            // A kill may have left that of another attempt.
            None if init.exists() => durable::remove(&init).map_err(|e| Error::write(&init, e))?,
            None => {}
        }
        // From here on it is a run, which `resume` can start: all that it needs is there.
        durable::replace_bytes(&path.join(CONFIG), session.config().to_toml().as_bytes())?;
        let config_crc32c = meta::input_checksum(path, session.config())?;
        let meta = Meta::begin(path, config_crc32c, provenance)?;
        let point = RestartPoint::Beginning { is_warm: meta.is_warm };
        let begun = LockedRun { lock, meta, config_crc32c, notes: Vec::new(), point };
        begun.open(path, session).map(|(folder, ..)| folder)
    }

    /// Adds an iteration to `metrics.csv`, `timings.csv` and the TensorBoard events.
    pub fn record(&mut self, summary: &Summary, session: &Session) -> Result<()> {
        let algorithm = session.algorithm();
        let [metrics, timings, events] = &mut self.logs;
        let Summary { iteration, objective, violation_total, violation_max, violation_mean, .. } = summary;
        let return_ = summary.return_.map(|r| format!("{r:?}")).unwrap_or_default();
        let stationarity =
            summary.stationarity.map(|s| format!(",{:?},{:?},{:?}", s.x, s.y, s.e)).unwrap_or_default();
        let agent_steps = algorithm.progress().agent_steps;
        let traffic = algorithm.traffic();
        let kinds = traffic.since(&self.last_traffic).kinds();
        self.last_traffic = traffic;
        let [states, q_values, duals] = kinds.map(|(_, sent)| format!("{},{}", sent.messages, sent.bytes));
        metrics.push_line(format_args!(
            "{iteration},{return_},{objective:?},{violation_total:?},{violation_max:?},{violation_mean:?},{:?},{:?},\
             {:?},{agent_steps},{},{states},{q_values},{duals}{stationarity}",
            summary.mu_mean,
            summary.mu_largest,
            summary.gradient_norm,
            traffic.bytes(),
        ))?;
        let times = algorithm.progress().stage_times;
        let stages = times.iter().zip(&self.last_times);
        let spent: String =
            stages.map(|(now, before)| format!(",{:.9}", (*now - *before).as_secs_f64())).collect();
        timings.push_line(format_args!(
            "{iteration}{spent},{},{}",
            by_rank(algorithm.process_traffic(), |carried| carried.bytes),
            by_rank(algorithm.process_traffic(), |carried| carried.bound),
        ))?;
        self.last_times = times;
        if iteration.is_multiple_of(session.config().iterations.div_ceil(EVENTS)) {
            let mut scalars = vec![
                ("result/objective", *objective),
                ("violation/total", *violation_total),
                ("violation/max", *violation_max),
                ("dual/mean", summary.mu_mean),
                ("dual/max", summary.mu_largest),
                ("actor/gradient_norm", summary.gradient_norm),
            ];
            if let Some(s) = summary.stationarity {
                scalars.extend([("stationarity/X", s.x), ("stationarity/Y", s.y), ("stationarity/E", s.e)]);
            }
            scalars.extend(summary.return_.map(|r| ("result/return", r)));
            events.push(&events::scalars(unix_time(), *iteration, &scalars))?;
        }
        Ok(())
    }

    /// Completes a checkpoint whose pieces are written.
    pub(super) fn write_manifest(
        &mut self,
        iteration: usize,
        elapsed: Duration,
        pieces: Vec<Piece>,
    ) -> Result<()> {
        let logs = self.commit()?;
        let [metrics_bytes, timings_bytes, events_bytes] = logs.map(|log| log.length);
        let manifest = Manifest {
            iteration,
            elapsed_s: elapsed.as_secs_f64(),
            metrics_bytes,
            timings_bytes,
            events_bytes,
            logs_crc32c: Some(logs.map(|log| log.crc32c)),
            config_crc32c: self.config_crc32c,
            pieces,
        };
        checkpoint::write_manifest(&self.path.join(CHECKPOINTS), &manifest)
    }

    /// The newest checkpoint of the run in a folder, in words.
    pub fn describe_last_checkpoint(path: &Path) -> String {
        match checkpoint::iterations(&path.join(CHECKPOINTS)).last() {
            Some(iteration) => format!("the last checkpoint is of iteration {iteration}"),
            None => "there is no checkpoint yet".into(),
        }
    }

    /// Whether the folder is still the one that the run was begun in.
    pub(super) fn check_in_place(&self) -> Result<()> {
        let gone = || std::io::Error::new(std::io::ErrorKind::NotFound, "the run's folder has vanished");
        ensure(self.logs[0].is_in_place(), || Error::write(&self.path, gone()))
    }

    /// Makes all rows durable; says what the files are.
    fn commit(&mut self) -> Result<[Extent; 3]> {
        self.check_in_place()?;
        let [metrics, timings, events] = &mut self.logs;
        Ok([metrics.commit()?, timings.commit()?, events.commit()?])
    }

    /// Hands what is still in memory to the operating system.
    pub fn flush(&mut self) -> Result<()> {
        self.logs.iter_mut().try_for_each(Log::write_pending)
    }

    /// Writes `policy.safetensors`, after all rows.
    pub(super) fn save_policy(&mut self, whole: &Evaluator) -> Result<()> {
        self.commit()?;
        policy::save(whole.policy(), &self.path.join(POLICY))
    }

    /// Writes what there is to say of the agents, the multipliers and `outcome.json`, and closes the run.
    pub fn finish(&mut self, whole: &Evaluator, evaluation: &Evaluation, outcome: &Outcome) -> Result<()> {
        self.check_in_place()?;
        agents::write(&self.path, whole, evaluation)?;
        multipliers::write(&self.path, whole.mu())?;
        let usual = whole.policy().usual_states().unwrap_or(&evaluation.usual_states);
        usual_states::write(&self.path, usual)?;
        outcome.write(&self.path)?;
        checksums::write(&self.path)?;
        self.set_status(FINISHED)
    }

    /// Notes in `meta.json` that the run stopped before its end.
    pub fn set_status(&mut self, status: &str) -> Result<()> {
        self.meta.status = status.into();
        self.write_meta()
    }

    /// Notes in `meta.json` that the run failed; the rows so far are kept.
    pub fn fail(&mut self, reason: &str) {
        // The failure itself is what the user must see: a second one, in noting it, is not reported.
        let _ = self.flush();
        let _ = self.set_status(&format!("failed: {reason}"));
    }

    fn write_meta(&self) -> Result<()> {
        self.meta.write(&self.path)
    }

    /// Refuses to let `output`, a file that somebody asks for, take the place of a file of a run.
    pub fn check_output(output: &Path) -> Result<()> {
        let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        // By whatever way the folder is named.
        let folder = folder.canonicalize().or_else(|_| std::path::absolute(folder)).unwrap_or_default();
        let file = folder.join(output.file_name().unwrap_or_default());
        let own = [meta::FILE, checksums::FILE, LOCK].into_iter().chain(RESULT_FILES);
        // Some are in a folder of the run's.
        let is_own = file.ancestors().skip(1).take(2).any(|run| {
            let within = file.strip_prefix(run).unwrap_or(&file);
            let is_named =
                within.starts_with(CHECKPOINTS) || own.clone().any(|name| within == Path::new(name));
            is_named && run.join(CONFIG).is_file()
        });
        let message = || format!("{} is a file of the run itself; name another file", output.display());
        ensure(!is_own, || Error::argument("out", message()))
    }
}

const METRICS: &str = "metrics.csv";
const TIMINGS: &str = "timings.csv";
const CHECKPOINTS: &str = "checkpoints";
const EVENTS_FOLDER: &str = "tb";
/// For TensorBoard, which looks for `tfevents` in the name.
const EVENTS_FILE: &str = "tb/events.out.tfevents.phalanx";
const LOCK: &str = "lock";
pub(super) const POLICY: &str = "policy.safetensors";

/// Files of a finished run, where it has them.
pub(super) const RESULT_FILES: [&str; 12] = [
    CONFIG,
    INITIAL_POLICY,
    METRICS,
    TIMINGS,
    EVENTS_FILE,
    POLICY,
    agents::CONSTRAINTS,
    agents::RETURNS,
    agents::SUMMARY,
    multipliers::FILE,
    usual_states::FILE,
    outcome::FILE,
];

/// Whether a kill may have left a file of a folder that was on its way to become a run.
fn is_leftover(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let name = name.to_str().unwrap_or_default();
    let begun = name.strip_suffix(UNFINISHED).unwrap_or(name);
    match name {
        LOCK => entry.metadata().is_ok_and(|metadata| metadata.len() == 0),
        // The lock comes first, so without one these are somebody else's.
        _ => [CONFIG, INITIAL_POLICY].contains(&begun) && entry.path().with_file_name(LOCK).exists(),
    }
}

/// Removes files that a kill has left half-written.
fn remove_unfinished(path: &Path) {
    let own = [meta::FILE, checksums::FILE].into_iter().chain(RESULT_FILES);
    for entry in path.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let is_own = name.strip_suffix(UNFINISHED).is_some_and(|whole| own.clone().any(|own| own == whole));
        // The crate `safetensors` has temporary files of its own.
        let random = name.strip_prefix(".tmp").unwrap_or_default();
        if is_own || (random.len() == 6 && random.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
            // What cannot be removed does no harm.
            let _ = durable::remove(&entry.path());
        }
    }
}

fn new_metrics(path: &Path, with_stationarity: bool) -> Result<Log> {
    let columns = "iteration,return,objective,violation_total,violation_max,violation_mean,mu_mean,mu_largest,\
                   gradient_norm,agent_steps,comm_bytes,states_messages,states_bytes,q_values_messages,\
                   q_values_bytes,duals_messages,duals_bytes";
    let stationarity = if with_stationarity { ",X,Y,E" } else { "" };
    Log::create(path.join(METRICS), format!("{columns}{stationarity}\n").as_bytes())
}

fn new_timings(path: &Path) -> Result<Log> {
    let stages: String = Stage::NAMES.iter().map(|name| format!(",{name}_s")).collect();
    Log::create(path.join(TIMINGS), format!("iteration{stages},mpi_bytes,mpi_bound\n").as_bytes())
}

/// One number for each of several processes.
fn by_rank(carried: &[ProcessTraffic], number: impl Fn(&ProcessTraffic) -> u64) -> String {
    let numbers: Vec<String> = carried.iter().map(|carried| number(carried).to_string()).collect();
    numbers.join(";")
}

fn new_events(path: &Path) -> Result<Log> {
    durable::create_dir(&path.join(EVENTS_FOLDER))?;
    Log::create(path.join(EVENTS_FILE), &events::file_start(unix_time()))
}

fn unix_time() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// Takes the folder for this process; the operating system gives it back when the process ends, however it
/// ends.
fn lock(path: &Path) -> Result<File> {
    let file = durable::open_marker(&path.join(LOCK)).map_err(|e| Error::write(path.join(LOCK), e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::InUse { path: path.display().to_string() }),
        Err(TryLockError::Error(e)) => Err(Error::write(path.join(LOCK), e)),
    }
}

/// A run that is not finished, on the way to go on.
pub(super) struct LockedRun {
    lock: File,
    meta: Meta,
    config_crc32c: u32,
    notes: Vec<String>,
    /// From where.
    pub(super) point: RestartPoint,
}

/// Where a run goes on from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum RestartPoint {
    /// A checkpoint.
    Checkpoint(Manifest),
    /// Its beginning, with the policy that it was given if it was given one.
    Beginning { is_warm: bool },
}

impl RestartPoint {
    /// Brings a session, or one process's part of it, there.
    pub fn apply(&self, path: &Path, session: &mut Session) -> Result<()> {
        match self {
            RestartPoint::Checkpoint(manifest) => {
                let (folder, Task { world, halo, .. }) = (path.join(CHECKPOINTS), session.task.clone());
                let restore =
                    |fields: Fields<'_>| checkpoint::restore(&folder, manifest, fields, world.graph());
                halo.all_ok(session.restore(restore))?;
                let (found, wanted) = (session.algorithm().iteration(), manifest.iteration);
                let message = || format!("the state of checkpoint {wanted} is that of iteration {found}");
                halo.all_ok(ensure(found == wanted, || Error::file(&folder, message())))?;
                session.share_restored()
            }
            RestartPoint::Beginning { is_warm: true } => session.warm_start(&path.join(INITIAL_POLICY)),
            RestartPoint::Beginning { is_warm: false } => Ok(()),
        }
    }
}

impl LockedRun {
    /// Locks the folder and looks for the last whole checkpoint; none if the run is finished.
    pub fn find(path: &Path, registry: &Registry) -> Result<Option<Self>> {
        if path.join(CONFIG).is_file() && Meta::read(path)?.is_finished() {
            return Ok(None);
        }
        Config::of_run(path)?;
        let lock = lock(path)?;
        // Once more: another process may have finished it before the lock was free.
        let meta = Meta::read(path)?;
        if meta.is_finished() {
            return Ok(None);
        }
        let (_, config_crc32c) = meta::checked_config(path, &meta, registry)?;
        let mut notes = Vec::new();
        let found = newest_whole(path, config_crc32c, &mut notes)?;
        checkpoint::discard_after(&path.join(CHECKPOINTS), found.as_ref().map(|manifest| manifest.iteration));
        let point = match found {
            Some(manifest) => RestartPoint::Checkpoint(manifest),
            None => {
                notes.push("there is no whole checkpoint; the run starts at iteration 0".into());
                meta.check_initial_policy(path)?;
                RestartPoint::Beginning { is_warm: meta.is_warm }
            }
        };
        Ok(Some(LockedRun { lock, meta, config_crc32c, notes, point }))
    }

    /// Cuts the files back to where the run goes on. Also says how long it took so far, and what the user
    /// should know.
    pub fn open(self, path: &Path, session: &Session) -> Result<(RunFolder, Duration, Vec<String>)> {
        let LockedRun { lock, mut meta, config_crc32c, mut notes, point } = self;
        remove_unfinished(path);
        // A kill at the very end may have left them; they are of files that are written once more.
        let stale = path.join(checksums::FILE);
        if stale.exists() {
            durable::remove(&stale).map_err(|e| Error::write(&stale, e))?;
        }
        let (metrics, timings, events, elapsed_s) = match &point {
            RestartPoint::Checkpoint(manifest) => {
                let [_, timings, events] = manifest.logs();
                (
                    Log::reopen(path.join(METRICS), manifest.metrics_bytes)?,
                    reopen_or(path.join(TIMINGS), timings, || new_timings(path), &mut notes)?,
                    reopen_or(path.join(EVENTS_FILE), events, || new_events(path), &mut notes)?,
                    manifest.elapsed_s,
                )
            }
            RestartPoint::Beginning { .. } => {
                let metrics = new_metrics(path, session.algorithm().knows_stationarity())?;
                (metrics, new_timings(path)?, new_events(path)?, 0.0)
            }
        };
        meta.status = RUNNING.into();
        let folder = RunFolder {
            logs: [metrics, timings, events],
            last_times: session.algorithm().progress().stage_times,
            last_traffic: session.algorithm().traffic(),
            path: path.to_path_buf(),
            _lock: lock,
            meta,
            config_crc32c,
        };
        folder.write_meta()?;
        Ok((folder, Duration::try_from_secs_f64(elapsed_s).unwrap_or_default(), notes))
    }
}

/// Writes the state of a session, or of one process's part of it.
pub(super) fn write_state(path: &Path, session: &mut Session) -> Result<Piece> {
    session.settle()?;
    let (iteration, Task { world, halo, .. }) = (session.algorithm().iteration(), session.task.clone());
    let which = (halo.peers().rank(), halo.peers().count());
    checkpoint::write(&path.join(CHECKPOINTS), iteration, which, &session.fields(), world.graph())
}

/// The newest checkpoint whose state is whole and whose tables are as long as it says.
fn newest_whole(path: &Path, config_crc32c: u32, notes: &mut Vec<String>) -> Result<Option<Manifest>> {
    let folder = path.join(CHECKPOINTS);
    for iteration in checkpoint::iterations(&folder).into_iter().rev() {
        let verified = checkpoint::verify(&folder, iteration);
        match verified.and_then(|manifest| check_metrics(&path.join(METRICS), manifest)) {
            Ok(manifest) if manifest.config_crc32c != config_crc32c => {
                return Err(meta::changed_config(path));
            }
            Ok(manifest) => return Ok(Some(manifest)),
            Err(error) => notes.push(format!("checkpoint {iteration} cannot be used: {error}")),
        }
    }
    Ok(None)
}

fn check_metrics(metrics: &Path, manifest: Manifest) -> Result<Manifest> {
    let found = metrics.metadata().map_err(|e| Error::unreadable(metrics, e))?.len();
    let [log, ..] = manifest.logs();
    let message = || format!("has {found} bytes where the checkpoint knows of {}", log.0);
    ensure(found >= log.0, || Error::file(metrics, message()))?;
    let damaged = "is damaged: its rows are not those that the checkpoint knows of";
    ensure(is_whole(metrics, log), || Error::file(metrics, damaged))?;
    Ok(manifest)
}

/// Whether a file begins with so many bytes of this checksum, where it is known.
fn is_whole(path: &Path, (length, checksum): (u64, Option<u32>)) -> bool {
    files::checksum(path, Some(length)).is_ok_and(|found| checksum.is_none_or(|expected| found == expected))
}

/// A log that results do not depend on: if it is gone or cut, a new one, and a note.
fn reopen_or(
    path: PathBuf,
    log: (u64, Option<u32>),
    create: impl FnOnce() -> Result<Log>,
    notes: &mut Vec<String>,
) -> Result<Log> {
    if is_whole(&path, log) {
        return Log::reopen(path, log.0);
    }
    notes.push(format!("{} is gone, cut off or damaged; it begins anew", path.display()));
    create()
}
