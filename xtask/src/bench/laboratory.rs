//! Runs of the real command, measured.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::machine;
use crate::{cargo, target};

/// A run to be measured.
#[derive(Debug, Clone, Default)]
pub struct Trial {
    pub preset: String,
    /// `--set`.
    pub settings: Vec<String>,
    pub iterations: usize,
    /// `--threads`; all cores by default.
    pub threads: Option<usize>,
    /// Processes under `mpirun`; without it by default.
    pub ranks: Option<usize>,
}

impl Trial {
    pub fn of(preset: &str, iterations: usize) -> Self {
        Trial { preset: preset.into(), iterations, ..Trial::default() }
    }

    pub fn set(mut self, key: &str, value: impl Display) -> Self {
        self.settings.push(format!("{key}={value}"));
        self
    }

    /// What `phalanx` is told, but for the folder.
    fn arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> = vec!["train".into(), self.preset.clone(), "--json".into()];
        arguments.extend(self.ranks.map(|_| "--mpi".to_string()));
        arguments.extend(self.threads.iter().flat_map(|n| ["--threads".to_string(), n.to_string()]));
        // Checkpoints at chance moments would disturb the times.
        let fixed = ["evaluation.episodes=1", "checkpoint.seconds=inf"].map(String::from);
        let settings = self.settings.iter().cloned().chain(fixed);
        let settings = settings.chain([format!("iterations={}", self.iterations)]);
        arguments.extend(settings.flat_map(|setting| ["--set".to_string(), setting]));
        arguments
    }

    /// As one would type it.
    fn command(&self) -> String {
        let ranks = self.ranks.map(|ranks| format!("mpirun -n {ranks} ")).unwrap_or_default();
        format!("{ranks}phalanx {}", self.arguments().join(" "))
    }
}

/// What a run took: everything, as it is kept.
pub struct Measured(pub Value);

impl Measured {
    fn number(&self, pointer: &str) -> f64 {
        self.0.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    /// From start to end, in seconds.
    pub fn whole_s(&self) -> f64 {
        self.number("/whole_s")
    }

    /// Seconds of the training loop.
    pub fn wall_s(&self) -> f64 {
        self.number("/outcome/wall_s")
    }

    /// Agent-steps per second.
    pub fn rate(&self) -> f64 {
        self.number("/outcome/agent_steps_per_s")
    }

    /// Nanoseconds of a stage per agent-step.
    pub fn stage_ns(&self, name: &str) -> f64 {
        1e9 * self.number(&format!("/stages_s/{name}")) / self.number("/outcome/agent_steps")
    }

    /// Seconds of a typical iteration.
    pub fn iteration_s(&self) -> f64 {
        self.number("/iteration_s")
    }

    /// Largest resident memory of all processes together, in bytes.
    pub fn peak_bytes(&self) -> f64 {
        self.0["peak_bytes"].as_array().into_iter().flatten().filter_map(Value::as_f64).sum()
    }
}

/// Seconds of a typical iteration: the median, without the first one if there are three or more. It is the
/// one in which memory is touched for the first time.
fn typical(iterations: &[f64]) -> f64 {
    median(&mut iterations[usize::from(iterations.len() > 2)..].to_vec())
}

/// The middle one, or the mean of the two.
fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let n = numbers.len();
    if n == 0 { f64::NAN } else { (numbers[(n - 1) / 2] + numbers[n / 2]) / 2.0 }
}

/// The program to be measured.
pub struct Laboratory {
    program: PathBuf,
    /// Why there is no MPI.
    pub without_mpi: Option<String>,
}

/// `mpirun` and its options. All ranks are on this machine: containers often say that it has one slot, and
/// binding would give the threads of a rank one core.
const MPIRUN: [&str; 5] = ["mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none"];

impl Laboratory {
    /// Builds the program, with MPI if that is installed, unless `PHALANX_BIN` names one.
    pub fn new() -> Result<Self> {
        let has_mpirun = Command::new(MPIRUN[0]).arg("--version").output().is_ok();
        let program = match std::env::var_os("PHALANX_BIN") {
            Some(program) => program.into(),
            None => {
                if !has_mpirun || cargo(&["build", "--release", "--features", "mpi"], &[]).is_err() {
                    cargo(&["build", "--release"], &[])?;
                }
                target()?.join("release/phalanx")
            }
        };
        let mut laboratory = Laboratory { program, without_mpi: None };
        let tiny = Trial { ranks: Some(1), ..Trial::of("synthetic", 1) };
        laboratory.without_mpi = match has_mpirun {
            false => Some("mpirun is not installed".into()),
            true => laboratory.run(&tiny).err().map(|error| {
                let text = format!("{error:#}");
                text.lines().find(|line| line.contains("error")).unwrap_or(&text).to_string()
            }),
        };
        Ok(laboratory)
    }

    /// What the program says that it is.
    pub fn version(&self) -> Result<String> {
        let output = Command::new(&self.program).arg("--version").output();
        let output = output.with_context(|| format!("cannot run {}", self.program.display()))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
    }

    /// Carries out a run in a folder that is gone afterwards.
    pub fn run(&self, trial: &Trial) -> Result<Measured> {
        let folder = tempfile::tempdir()?;
        let out = folder.path().join("run");
        let load = machine::load();
        let mut command = match trial.ranks {
            None => Command::new(&self.program),
            Some(ranks) => {
                let mut command = Command::new(MPIRUN[0]);
                command.args(&MPIRUN[1..]).args(["-n", &ranks.to_string()]).arg(&self.program);
                command
            }
        };
        command.args(trial.arguments()).arg("--out").arg(&out);
        let begin = Instant::now();
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.with_context(|| format!("cannot start {}", self.program.display()))?;
        let pid = child.id();
        let ending = std::thread::spawn(move || child.wait_with_output());
        let peaks = machine::watch_memory(pid, trial.ranks, || ending.is_finished());
        let output = ending.join().ok().context("the run cannot be waited for")??;
        let whole_s = begin.elapsed().as_secs_f64();
        let command = trial.command();
        ensure!(output.status.success(), "`{command}`: {}", String::from_utf8_lossy(&output.stderr));
        let mut outcome: Value = serde_json::from_slice(&output.stdout).context("no line of JSON")?;
        // It is removed at once.
        outcome.as_object_mut().map(|outcome| outcome.remove("run"));
        let timings = timings(&std::fs::read_to_string(out.join("timings.csv"))?)?;
        let iterations: Vec<f64> = timings.iter().map(|row| row.values().sum()).collect();
        let mut stages = BTreeMap::new();
        for (name, seconds) in timings.into_iter().flatten() {
            *stages.entry(name).or_insert(0.0) += seconds;
        }
        let built: Value = serde_json::from_str(&std::fs::read_to_string(out.join("meta.json"))?)?;
        Ok(Measured(json!({
            "command": command,
            "iterations": trial.iterations,
            "ranks": trial.ranks,
            "threads": trial.threads.unwrap_or_else(machine::cores),
            "program_commit": built["commit"],
            "load_before": load,
            "whole_s": whole_s,
            "peak_bytes": peaks,
            "stages_s": stages,
            "iterations_s": iterations,
            "iteration_s": typical(&iterations),
            "outcome": outcome,
        })))
    }
}

/// Seconds of every iteration by stage: the columns of `timings.csv` that are seconds.
fn timings(text: &str) -> Result<Vec<BTreeMap<String, f64>>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers()?.clone();
    let seconds = |row: csv::StringRecord| {
        let stages = names.iter().zip(&row).filter(|(name, _)| name.ends_with("_s"));
        let parsed =
            |name, field: &str| field.parse().with_context(|| format!("timings.csv: {name} = {field}"));
        stages.map(|(name, field)| Ok((name.to_string(), parsed(name, field)?))).collect()
    };
    reader.records().map(|row| seconds(row?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_and_other_columns_passed_over() {
        let rows =
            timings("iteration,sampling_s,update_s,mpi_bytes\n0,1.5,2,12;40\n1,0.5,1,12;40\n").unwrap();
        let row = |sampling: f64, update: f64| [("sampling_s", sampling), ("update_s", update)];
        let expected = [row(1.5, 2.0), row(0.5, 1.0)];
        assert_eq!(rows, expected.map(|row| row.map(|(name, seconds)| (name.to_string(), seconds)).into()));
    }

    #[test]
    fn medians() {
        assert_eq!((median(&mut [3.0, 1.0, 2.0]), median(&mut [4.0, 1.0])), (2.0, 2.5));
        assert!(median(&mut []).is_nan());
        assert_eq!((typical(&[9.0, 1.0, 2.0]), typical(&[9.0, 1.0])), (1.5, 5.0));
    }
}
