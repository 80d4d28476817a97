//! `phalanx sweep`: a product of settings, or settings at random, each with several seeds.

mod file;
mod settings;
mod summary;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use phalanx::base::key::SEED;
use phalanx::base::{durable, own_folder};
use phalanx::run::{Config, Registry, RunFolder, RunStatus, Session, preset};
use phalanx::{Error, Result};
use serde_json::json;

use crate::batch::{self, Job, JobOutcome, Workers};
use crate::stop::Stop;
use crate::threads::on_threads;
use crate::train::provenance;
use crate::{print, say};
use file::{Key, SweepFile};
use settings::Setting;

#[derive(clap::Args)]
pub struct SweepArgs {
    /// What to run: `base`, `seeds`, `[set]`, `[grid]`, `[random]`.
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Runs at a time [default: one on every core].
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Threads of each run [default: 1].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Carry out this run alone, from 0: for the array jobs of a cluster.
    #[arg(long, value_name = "I")]
    index: Option<usize>,
    /// Folder of the runs and of the summary [default: runs/<name of the file>].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one line of JSON at the end and nothing else.
    #[arg(long)]
    json: bool,
}

/// Everything that is to be run.
struct Plan {
    base: String,
    settings: Vec<Setting>,
    /// Setting (its number) and seed of every run.
    runs: Vec<(usize, u64)>,
    /// The same runs, ready to be carried out. Their seeds may be others than the file's.
    jobs: Vec<Job>,
}

impl Plan {
    fn new(file: &SweepFile, out: &Path, registry: &Registry) -> Result<Self> {
        let refused = |message: String| Error::file(&file.path, message);
        let settings = settings::settings(file).map_err(refused)?;
        let base = open_base(file)?.with_registry(registry.clone());
        let folders = settings::folder_names(&settings);
        let (mut runs, mut jobs) = (Vec::new(), Vec::new());
        for (number, (setting, folder)) in settings.iter().zip(&folders).enumerate() {
            for &seed in &file.seeds {
                let run_seed = settings::run_seed(file, setting, seed);
                let config = configured(file, &base, setting, run_seed)
                    .map_err(|error| refused(in_words(setting, &error)))?;
                let name =
                    if folder.is_empty() { format!("seed{seed}") } else { format!("{folder}-seed{seed}") };
                jobs.push(Job { folder: out.join(&name), name, config });
                runs.push((number, seed));
            }
        }
        Ok(Plan { base: file.base.clone(), settings, runs, jobs })
    }

    /// Keys that differ between settings.
    fn keys(&self) -> impl Iterator<Item = &str> {
        self.settings.first().into_iter().flat_map(|setting| setting.values.iter().map(|(key, _)| &**key))
    }

    /// Builds a run of each setting, or of one run's: what it refuses is found before the first run begins.
    fn check(&self, file: &SweepFile, only: Option<usize>) -> Result<()> {
        let mut last = None;
        for (k, (&(number, _), job)) in self.runs.iter().zip(&self.jobs).enumerate() {
            if only.is_some_and(|only| only != k) || last == Some(number) {
                continue;
            }
            last = Some(number);
            Session::new(&job.config)
                .map_err(|error| Error::file(&file.path, in_words(&self.settings[number], &error)))?;
        }
        Ok(())
    }
}

/// The names of all runs that the sweep in a text asks for, `most` at most; `path` is what errors call it.
pub fn run_names(path: &Path, text: &str, most: usize) -> Result<Vec<String>> {
    let file = SweepFile::parse(path, text)?;
    let settings = settings::settings(&file).map_err(|message| Error::file(path, message))?;
    if settings.len() * file.seeds.len() > most {
        return Ok(settings::folder_names(&settings));
    }
    let plan = Plan::new(&file, Path::new("runs"), &Registry::default())?;
    Ok(plan.jobs.into_iter().map(|job| job.name).collect())
}

/// How the runs ended that this call was about, by number.
type Done = BTreeMap<usize, JobOutcome>;

/// Names of those that ended in a way, in the words of [`summary::ending`].
fn names<'a>(plan: &'a Plan, done: &Done, ending: &str) -> Vec<&'a str> {
    let ended = done.iter().filter(|(_, finish)| summary::ending(finish) == ending);
    ended.map(|(&k, _)| plan.jobs[k].name.as_str()).collect()
}

fn open_base(file: &SweepFile) -> Result<Config> {
    let path = file.locate(&file.base);
    let is_file = Path::new(&path).exists() || path.ends_with(".toml");
    if preset::text(&file.base).is_none() && is_file {
        return Config::read(Path::new(&path));
    }
    Config::preset(&file.base).map_err(|error| match error {
        Error::Config { message, .. } => Error::file(&file.path, format!("base: {message}")),
        other => other,
    })
}

fn configured(file: &SweepFile, base: &Config, setting: &Setting, seed: u64) -> Result<Config> {
    let as_toml = |(key, value): &(Key, toml::Value)| {
        let value = match value.as_str() {
            Some(name) if key.rsplit('.').next() == Some("file") => toml::Value::String(file.locate(name)),
            _ => value.clone(),
        };
        (key.clone(), value.to_string())
    };
    let seed = (SEED.into(), seed.to_string());
    let pairs: Vec<(Key, String)> =
        file.set.iter().chain(&setting.values).map(as_toml).chain([seed]).collect();
    base.with_all(pairs.iter().map(|(key, value)| (&**key, value.as_str())))
}

/// A mistake with the setting that has it.
fn in_words(setting: &Setting, error: &Error) -> String {
    let message = match error {
        // There is no such flag here.
        Error::Argument { name: "set", message } => message.clone(),
        other => other.to_string(),
    };
    let label = setting.label();
    if label.is_empty() { message } else { format!("setting {label}: {message}") }
}

/// `phalanx sweep`.
pub fn sweep(args: &SweepArgs, registry: &Registry) -> anyhow::Result<()> {
    on_threads(Some(1), || carry_out(args, registry))?
}

fn carry_out(args: &SweepArgs, registry: &Registry) -> anyhow::Result<()> {
    let workers = Workers::of(args.jobs, args.threads, args.json)?;
    let file = SweepFile::read(&args.file)?;
    let out = match &args.out {
        Some(out) => out.clone(),
        None => default_folder(&args.file)?,
    };
    let plan = Plan::new(&file, &out, registry)?;
    let total = plan.jobs.len();
    let jobs = match args.index {
        None => &plan.jobs[..],
        Some(index) => plan.jobs.get(index..=index).ok_or_else(|| {
            let message = format!("{index}; there are {total} runs, numbered from 0 to {}", total - 1);
            Error::argument("index", message)
        })?,
    };
    plan.check(&file, args.index)?;
    let stop = Stop::on_signals()?;
    stop.advise("the same command goes on from here");
    let is_earlier = || plan.jobs.iter().any(|job| job.folder.join("config.toml").is_file());
    own_folder::claim(&out, "sweep", is_earlier)?;
    let finishes = batch::run_jobs(jobs, &workers, &stop.flag, &provenance())?;
    let done = (args.index.unwrap_or(0)..).zip(finishes).collect();
    let table = everything(&plan, &done).map(|finishes| write(&plan, &finishes, &out)).transpose()?;
    report(args, &plan, &done, table.as_deref(), &out)?;
    verdict(&plan, &done)
}

/// `runs/` with the name of the file, where that is the name of a folder.
fn default_folder(file: &Path) -> Result<PathBuf> {
    let name = file.file_stem().unwrap_or_default();
    let mut parts = Path::new(name).components();
    let is_name = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    let message = || format!("is needed: `{}` is no name for a folder", name.display());
    if is_name { Ok(Path::new("runs").join(name)) } else { Err(Error::argument("out", message())) }
}

/// How every run of the sweep ended; none if other calls have still to finish some.
fn everything(plan: &Plan, done: &Done) -> Option<Vec<JobOutcome>> {
    let one = |(k, job): (usize, &Job)| {
        if let Some(finish) = done.get(&k) {
            return Some(finish.clone());
        }
        match RunFolder::status(&job.folder, &job.config) {
            Ok(RunStatus::Finished(outcome)) => Some(JobOutcome::Done(outcome)),
            _ => None,
        }
    };
    plan.jobs.iter().enumerate().map(one).collect()
}

/// The summary's files in the sweep's folder.
const CSV: &str = "summary.csv";
const MARKDOWN: &str = "summary.md";

/// Writes the summary; returns it as a table.
fn write(plan: &Plan, finishes: &[JobOutcome], out: &Path) -> Result<String> {
    // The last jobs of an array may write at the same time.
    durable::replace_shared(&out.join(CSV), summary::csv(plan, finishes).as_bytes())?;
    let table = summary::markdown(plan, finishes);
    durable::replace_shared(&out.join(MARKDOWN), table.as_bytes())?;
    Ok(table)
}

fn report(args: &SweepArgs, plan: &Plan, done: &Done, table: Option<&str>, out: &Path) -> anyhow::Result<()> {
    let (csv, markdown) = (out.join(CSV), out.join(MARKDOWN));
    if args.json {
        let line = json!({
            "sweep": args.file,
            "out": out,
            "runs": plan.jobs.len(),
            "asked_for": done.len(),
            "finished": names(plan, done, "finished").len(),
            "failed": names(plan, done, "failed").len(),
            "in_use": names(plan, done, "in use").len(),
            "stopped": names(plan, done, "stopped").len(),
            "failed_runs": names(plan, done, "failed"),
            "summary_csv": table.map(|_| csv),
            "summary_md": table.map(|_| markdown),
        });
        print(&format!("{}\n", serde_json::to_string(&line)?));
    } else if let Some(table) = table {
        print(&format!("{table}\nalso in {} and {}\n", markdown.display(), csv.display()));
    } else {
        say(&format!("there is no summary yet: other runs of the {} are not finished", plan.jobs.len()));
    }
    Ok(())
}

/// An error if not every run that was asked for is finished.
fn verdict(plan: &Plan, done: &Done) -> anyhow::Result<()> {
    /// Runs named in one line at most; the summary has all.
    const NAMED: usize = 10;
    let endings =
        [("failed", "failed"), ("in use", "are in use by another process"), ("stopped", "are stopped")];
    let mut parts = Vec::new();
    for (ending, what) in endings {
        let names = names(plan, done, ending);
        if names.is_empty() {
            continue;
        }
        let more =
            if names.len() > NAMED { format!(" and {} more", names.len() - NAMED) } else { String::new() };
        let named = names[..names.len().min(NAMED)].join(" ");
        parts.push(format!("{} of {} runs {what}: {named}{more}", names.len(), done.len()));
    }
    if parts.is_empty() {
        return Ok(());
    }
    anyhow::bail!("{}; the same command goes on with them", parts.join("; "))
}
