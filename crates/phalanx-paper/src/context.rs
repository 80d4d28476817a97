//! Where and how an experiment is made: its folder, its runs, and what is written beside the results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use phalanx::Error;
use phalanx::base::durable;
use phalanx::run::{Job, JobOutcome, Outcome, Provenance, Registry};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::archive::{self, Archive, ArchivedRun, Fingerprint};
use super::catalogue::{self, ALL, Experiment};
use super::distinct;
use super::setting::Setting;
use super::sheet::{Sheet, if_there};
use phalanx_pictures::plot::{self, canvas};

/// How long training runs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// As the settings say.
    Whole,
    /// A fifteenth: to see that everything works, in minutes. No result counts.
    Quick,
    /// This many iterations at most.
    Cut(usize),
}

impl Length {
    /// Iterations instead of `whole`; none if they are not changed.
    pub fn iterations(self, whole: usize) -> Option<usize> {
        match self {
            Length::Whole => None,
            Length::Quick => Some((whole / 15).max(20).min(whole)),
            Length::Cut(most) => Some(whole.min(most)),
        }
    }

    /// Episodes of the closing evaluation of a shortened run.
    pub fn episodes(self) -> usize {
        if let Length::Cut(_) = self { 20 } else { 100 }
    }

    /// The title of a picture, which says if it is not whole.
    pub fn titled(self, title: String) -> String {
        if self == Length::Whole { title } else { format!("[{}] {title}", self.words().to_uppercase()) }
    }

    /// In words, for everything that is drawn or written.
    pub fn words(self) -> String {
        match self {
            Length::Whole => "whole".into(),
            Length::Quick => "quick".into(),
            Length::Cut(most) => format!("cut to {most} iterations"),
        }
    }
}

/// How much a computed experiment does, by length.
#[derive(Debug, Deserialize)]
pub struct ByLength<T> {
    pub whole: T,
    pub quick: T,
    pub cut: T,
}

impl<T> ByLength<T> {
    /// What it does.
    pub fn of(&self, length: Length) -> &T {
        match length {
            Length::Whole => &self.whole,
            Length::Quick => &self.quick,
            Length::Cut(_) => &self.cut,
        }
    }
}

/// What all experiments of a call share.
pub struct Reproduction {
    /// Folder of all experiments.
    pub root: PathBuf,
    /// Seeds of every training run.
    pub seeds: Vec<u64>,
    /// How long they are.
    pub length: Length,
    /// Set when the user wants to stop.
    pub stop: Arc<AtomicBool>,
    /// Worlds.
    pub registry: Registry,
    /// How the program was called.
    pub provenance: Provenance,
    /// Trains.
    pub run_jobs: RunJobs,
    /// Shows text to the user.
    pub print: fn(&str),
}

/// Carries out jobs until all are done or the user wants to stop: one outcome per job, in their order.
pub type RunJobs = Box<dyn Fn(&[Job]) -> anyhow::Result<Vec<JobOutcome>> + Sync>;

/// What a run came to, or why it failed.
pub type Trained<T = ArchivedRun> = std::result::Result<T, String>;

/// A run that an experiment asks for.
struct Wanted<'s> {
    setting: &'s Setting,
    job: Job,
    /// What it is known by, its own checksum first.
    checksums: Vec<String>,
}

impl Wanted<'_> {
    fn is_same(&self, other: &Wanted<'_>) -> bool {
        self.setting.preset == other.setting.preset && self.checksums.contains(&other.checksums[0])
    }

    /// The run as the archive has it, however it was written.
    fn archived(&self, archive: &mut Archive, commit: &str) -> phalanx::Result<Option<ArchivedRun>> {
        archive.find_any(&self.setting.preset, &self.checksums, commit)
    }
}

/// An experiment that is being made.
pub struct ExperimentContext<'a> {
    /// What it shares with others.
    pub reproduction: &'a Reproduction,
    /// Its ID.
    pub id: &'static str,
    begin: Instant,
    elapsed: f64,
}

/// `experiment.json`: how the results beside it were made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// The experiment.
    pub id: String,
    /// Version of phalanx.
    pub version: String,
    /// Commit that it was built from.
    pub commit: String,
    /// How it was called.
    pub command: String,
    /// Seeds of training runs.
    pub seeds: Vec<u64>,
    /// `whole`, `quick`, or what the runs were cut to.
    pub length: String,
    /// Seconds, over all calls that worked on it.
    pub wall_s: f64,
    /// Cores of the machine.
    pub cores: usize,
    /// Whether everything is there.
    pub complete: bool,
    /// What was computed, if it was ([`Experiment::definition`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
}

impl Record {
    /// The record in the folder of an experiment; none if there is none.
    pub fn read(folder: &Path) -> phalanx::Result<Option<Record>> {
        let file = folder.join("experiment.json");
        let Some(text) = if_there(&file, std::fs::read_to_string(&file))? else { return Ok(None) };
        Record::parse(&text, &file).map(Some)
    }

    /// The same from text at hand; `file` is what errors call it.
    pub fn parse(text: &str, file: &Path) -> phalanx::Result<Record> {
        let record: Record =
            serde_json::from_str(text).map_err(|error| Error::file(file, error.to_string()))?;
        let ours = env!("CARGO_PKG_VERSION");
        if record.version != ours {
            let message = format!(
                "the results were made by phalanx {} (this is {ours}), and may mean something else; remove \
                 the folder or name another with --out",
                record.version
            );
            return Err(Error::file(file, message));
        }
        Ok(record)
    }
}

impl Reproduction {
    /// The folder of an experiment.
    pub fn folder(&self, id: &str) -> PathBuf {
        self.root.join(id)
    }

    /// The settings of the catalogue that come to the same runs as this one, which is the first: panels have
    /// points in common, which each of them writes in its own way.
    pub fn alike<'s>(&self, setting: &'s Setting) -> phalanx::Result<Vec<&'s Setting>> {
        let resolved = |setting: &Setting| Ok(setting.config(1, self.length, &self.registry)?.to_toml());
        let (wanted, mut alike) = (resolved(setting)?, vec![setting]);
        for other in ALL.iter().flat_map(|experiment| &experiment.settings) {
            let is_written_so = alike.iter().any(|known| known.set == other.set);
            if other.preset == setting.preset && !is_written_so && resolved(other)? == wanted {
                alike.push(other);
            }
        }
        Ok(alike)
    }

    /// What the run of settings that are alike is known by, in the archive and among folders: a checksum for
    /// each way in which it is written.
    pub fn checksums(&self, alike: &[&Setting], seed: u64) -> phalanx::Result<Vec<String>> {
        let checksum =
            |setting: &&Setting| Ok(archive::checksum(&setting.config(seed, self.length, &self.registry)?));
        Ok(distinct(alike.iter().map(checksum).collect::<phalanx::Result<Vec<_>>>()?))
    }

    /// The folder of a run: that of its first checksum, unless one of the others is there.
    fn run_folder(&self, preset: &str, checksums: &[String], seed: u64) -> PathBuf {
        let folder = |checksum: &String| {
            self.root.join("runs").join(format!("{}-{checksum}-seed{seed}", archive::slug(preset)))
        };
        let all: Vec<PathBuf> = checksums.iter().map(folder).collect();
        all.iter().find(|folder| folder.exists()).or(all.first()).cloned().unwrap_or_default()
    }

    /// Finished runs of earlier calls, and what is to be said of this program before it trains these presets.
    pub fn archive<'a>(&self, presets: impl IntoIterator<Item = &'a str>) -> anyhow::Result<Archive> {
        let mut archive = Archive::open(&self.root.join("archive"))?;
        let commit = &self.provenance.commit;
        // What is not whole is not kept for another commit.
        let presets = presets.into_iter().filter(|_| self.length == Length::Whole);
        for preset in distinct(presets).into_iter() {
            if !archive.knows(preset, commit) {
                archive.fingerprints.push(Fingerprint::of(preset, &self.registry, self.provenance.clone())?);
            }
        }
        Ok(archive)
    }

    /// Makes an experiment, or what is missing of it.
    pub(crate) fn make(&self, experiment: &'static Experiment) -> anyhow::Result<()> {
        let context = self.begin(&experiment.id)?;
        experiment.make(&context)?;
        context.record(true)
    }

    /// Begins or goes on with an experiment.
    fn begin(&self, id: &'static str) -> anyhow::Result<ExperimentContext<'_>> {
        let folder = self.folder(id);
        let mut elapsed = 0.0;
        if let Some(record) = Record::read(&folder)? {
            let length = self.length.words();
            if record.length != length {
                let message = format!(
                    "holds results that are {}, but this call makes {length} ones; remove it or name another \
                     folder with --out",
                    record.length
                );
                return Err(Error::file(&folder, message).into());
            }
            elapsed = record.wall_s;
        }
        durable::create_dirs(&folder).map_err(|error| Error::write(&folder, error))?;
        let context = ExperimentContext { reproduction: self, id, begin: Instant::now(), elapsed };
        context.record(false)?;
        Ok(context)
    }

    /// Fails if the user has asked to stop.
    pub fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(!self.stop.load(Ordering::Relaxed), "stopped; the same command goes on from here");
        Ok(())
    }
}

const BUSY: &str = "another process trains it; call again when it is done";

/// Why a run in a folder does not count.
fn foreign(commit: &str) -> String {
    format!(
        "trained by commit {commit}, which is not known to give the same bytes as this program; remove the \
         folder to train again, or add the commit's short run to archive/fingerprints.csv"
    )
}

impl ExperimentContext<'_> {
    /// A file of the experiment.
    pub fn file(&self, name: &str) -> PathBuf {
        self.reproduction.folder(self.id).join(name)
    }

    /// Trains every setting with every seed, but for what the archive has: what each run came to, or why it
    /// failed, by setting, then by seed.
    pub fn train(&self, settings: &[Setting], seeds: &[u64]) -> anyhow::Result<Vec<Vec<Trained>>> {
        let Reproduction { provenance, .. } = self.reproduction;
        let wanted = self.wanted(settings, seeds)?;
        let mut archive =
            self.reproduction.archive(settings.iter().map(|setting| setting.preset.as_str()))?;
        let mut missing: Vec<&Wanted<'_>> = Vec::new();
        for run in &wanted {
            let is_asked_for = missing.iter().any(|other| other.is_same(run));
            if !is_asked_for && run.archived(&mut archive, &provenance.commit)?.is_none() {
                missing.push(run);
            }
        }
        let mut failures = BTreeMap::new();
        let outcomes = self.outcomes(missing.iter().map(|run| &run.job))?;
        // Another process may have added to it meanwhile.
        archive.forget_runs();
        for (run, outcome) in missing.iter().zip(outcomes) {
            let Wanted { setting, job, checksums } = run;
            match outcome {
                JobOutcome::Done(outcome) => {
                    let run = ArchivedRun::of(&outcome, &job.config, &setting.set)?;
                    let is_ours = archive.agree(&setting.preset, &run.commit, &provenance.commit);
                    anyhow::ensure!(is_ours, "{}: {}", job.folder.display(), foreign(&run.commit));
                    archive.add(&setting.preset, run)?;
                }
                JobOutcome::Failed(reason) => {
                    failures.insert((setting.preset.as_str(), checksums[0].clone()), reason);
                }
                JobOutcome::Busy | JobOutcome::Stopped => {}
            }
        }
        archive.write()?;
        self.reproduction.check()?;
        let mut trained = wanted.iter().map(|run| {
            let preset = run.setting.preset.as_str();
            let mut names = run.checksums.iter().map(|checksum| (preset, checksum.clone()));
            match (
                run.archived(&mut archive, &provenance.commit)?,
                names.find_map(|name| failures.get(&name)),
            ) {
                (Some(run), _) => Ok(Ok(run)),
                (None, Some(reason)) => Ok(Err(reason.clone())),
                (None, None) => anyhow::bail!("{}: {BUSY}", run.job.name),
            }
        });
        let by_setting = settings.iter().map(|it| trained.by_ref().take(it.seeds(seeds).len()).collect());
        by_setting.collect()
    }

    /// The same where the folders of the runs are needed: what is only in the archive is trained once more.
    pub fn train_in_folders(&self, settings: &[Setting], seed: u64) -> anyhow::Result<Vec<Trained<Outcome>>> {
        let wanted = self.wanted(settings, &[seed])?;
        let outcomes = self.outcomes(wanted.iter().map(|run| &run.job))?;
        self.reproduction.check()?;
        let trained = outcomes.into_iter().zip(&wanted).map(|(outcome, run)| match outcome {
            JobOutcome::Done(outcome) => Ok(Ok(*outcome)),
            JobOutcome::Failed(reason) => Ok(Err(reason)),
            JobOutcome::Busy | JobOutcome::Stopped => anyhow::bail!("{}: {BUSY}", run.job.name),
        });
        trained.collect()
    }

    /// A run per setting and seed, by setting, then by seed.
    fn wanted<'s>(&self, settings: &'s [Setting], seeds: &[u64]) -> anyhow::Result<Vec<Wanted<'s>>> {
        let reproduction = self.reproduction;
        let mut wanted = Vec::new();
        for setting in settings {
            let alike = reproduction.alike(setting)?;
            for seed in setting.seeds(seeds) {
                let checksums = reproduction.checksums(&alike, seed)?;
                let job = Job {
                    name: format!("{}: {}, {}, seed {seed}", self.id, setting.method, setting.name),
                    folder: reproduction.run_folder(&setting.preset, &checksums, seed),
                    config: setting.config(seed, reproduction.length, &reproduction.registry)?,
                };
                wanted.push(Wanted { setting, job, checksums });
            }
        }
        Ok(wanted)
    }

    fn outcomes<'j>(&self, jobs: impl Iterator<Item = &'j Job>) -> anyhow::Result<Vec<JobOutcome>> {
        let jobs: Vec<Job> = jobs.cloned().collect();
        if jobs.is_empty() { Ok(Vec::new()) } else { (self.reproduction.run_jobs)(&jobs) }
    }

    /// The part called `name`: read from `parts/`, or made and written there; what another commit made is not
    /// taken. Fails if the user has asked to stop. (A folder holds results of one length only, which
    /// [`Reproduction::begin`] sees to.)
    pub fn part<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        make: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        self.reproduction.check()?;
        let file = self.file("parts").join(format!("{name}-{}.json", self.reproduction.provenance.commit));
        // What cannot be read was cut short, or is of an older program: it is made once more.
        let read = |text: String| serde_json::from_str(&text).ok();
        if let Some(part) = std::fs::read_to_string(&file).ok().and_then(read) {
            return Ok(part);
        }
        let text = serde_json::to_string(&make()?)?;
        durable::create_dirs(&self.file("parts")).map_err(|error| Error::write(&file, error))?;
        durable::replace_bytes(&file, text.as_bytes())?;
        // As a later call will read it, to the last digit.
        Ok(serde_json::from_str(&text)?)
    }

    /// Writes a file, in a folder that is made if need be.
    pub fn write(&self, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let path = self.file(name);
        if let Some(folder) = path.parent() {
            durable::create_dirs(folder).map_err(|error| Error::write(folder, error))?;
        }
        Ok(durable::replace_bytes(&path, bytes)?)
    }

    /// Writes a table.
    pub fn sheet(&self, name: &str, sheet: &Sheet) -> anyhow::Result<()> {
        self.write(name, sheet.to_csv().as_bytes())
    }

    /// Draws figures into `figures/`, as SVG and PNG. What is not whole says so.
    pub fn figures(&self, mut figures: Vec<(&str, canvas::Figure)>) -> anyhow::Result<()> {
        for (_, figure) in &mut figures {
            figure.title = self.reproduction.length.titled(std::mem::take(&mut figure.title));
        }
        plot::write(&self.file("figures"), figures)?;
        Ok(())
    }

    /// Says how it was made, and whether everything is there.
    fn record(&self, complete: bool) -> anyhow::Result<()> {
        let reproduction = self.reproduction;
        // The program by its name alone.
        let arguments = reproduction.provenance.command_line.iter().skip(1);
        let command = arguments.fold("phalanx".to_string(), |command, word| command + " " + word);
        let record = Record {
            id: self.id.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            commit: reproduction.provenance.commit.clone(),
            command,
            seeds: reproduction.seeds.clone(),
            length: reproduction.length.words(),
            wall_s: self.elapsed + self.begin.elapsed().as_secs_f64(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            complete,
            definition: catalogue::find(self.id).and_then(Experiment::definition),
        };
        self.write("experiment.json", format!("{}\n", serde_json::to_string_pretty(&record)?).as_bytes())
    }
}

impl Drop for ExperimentContext<'_> {
    /// Time that was spent on what is not complete counts too.
    fn drop(&mut self) {
        let folder = self.reproduction.folder(self.id);
        if let Ok(Some(Record { complete: false, .. })) = Record::read(&folder) {
            // There is nobody left to tell; the next call only counts less time.
            let _ = self.record(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reproduction(root: &Path) -> Reproduction {
        Reproduction {
            root: root.into(),
            seeds: vec![1],
            length: Length::Whole,
            stop: Arc::default(),
            registry: Registry::default(),
            provenance: Provenance { commit: "this".into(), command_line: Vec::new() },
            run_jobs: Box::new(|_| Ok(Vec::new())),
            print: |_| {},
        }
    }

    /// The panels of an environment have points in common: each is one run, under every name that it has.
    #[test]
    fn settings_that_come_to_the_same_run_share_it() {
        let folder = tempfile::tempdir().unwrap();
        let reproduction = reproduction(folder.path());
        let setting = |id: &str, name: &str| catalogue::setting(id, "ours", name).unwrap();
        let checksums = |id: &str, name: &str| {
            let setting = setting(id, name);
            reproduction.checksums(&reproduction.alike(&setting).unwrap(), 1).unwrap()
        };
        // Written in two ways, and in one.
        for (one, other, names) in [
            (("pistonball-kappa", "κ = 3"), ("pistonball-threshold", "c = 2"), 2),
            (("wireless-kappa", "κ = 1"), ("wireless-threshold", "c = 0.2"), 1),
        ] {
            let [mut a, mut b] = [one, other].map(|(id, name)| checksums(id, name));
            assert!(a.len() >= names && (names == 1 || a[0] != b[0]), "{one:?}: {a:?}");
            a.sort();
            b.sort();
            assert_eq!(a, b, "{one:?} and {other:?}");
        }
        assert_eq!(checksums("pistonball-kappa", "κ = 2").len(), 1);
        // A folder is found by any of its names.
        let names = checksums("pistonball-kappa", "κ = 3");
        let own = reproduction.run_folder("pistonball", &names, 1);
        assert!(own.ends_with(format!("pistonball-{}-seed1", names[0])));
        let other = reproduction.run_folder("pistonball", &names[1..], 1);
        std::fs::create_dir_all(&other).unwrap();
        assert_eq!(reproduction.run_folder("pistonball", &names, 1), other);
    }
}
