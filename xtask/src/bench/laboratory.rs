//! Runs of the real command, measured.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{machine, memory};
use crate::{cargo, target};

/// A run to be measured.
#[derive(Debug, Clone, Default)]
pub struct Trial {
    pub preset: String,
    /// `--set`.
    pub settings: Vec<(String, String)>,
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

    pub fn set(mut self, key: &str, value: impl ToString) -> Self {
        self.settings.push((key.into(), value.to_string()));
        self
    }

    /// What `phalanx` is told, but for the folder.
    fn arguments(&self) -> Vec<String> {
        // Checkpoints at chance moments would disturb the times.
        let fixed = [("evaluation.episodes", "1".to_string()), ("checkpoint.seconds", "inf".to_string())];
        let iterations = [("iterations", self.iterations.to_string())];
        let own = self.settings.iter().map(|(key, value)| (key.as_str(), value.clone()));
        let settings = own.chain(fixed).chain(iterations);
        let mut arguments: Vec<String> = vec!["train".into(), self.preset.clone(), "--json".into()];
        arguments.extend(self.ranks.map(|_| "--mpi".to_string()));
        arguments.extend(self.threads.iter().flat_map(|n| ["--threads".to_string(), n.to_string()]));
        arguments.extend(settings.flat_map(|(key, value)| ["--set".to_string(), format!("{key}={value}")]));
        arguments
    }

    /// As one would type it.
    fn command(&self) -> String {
        let ranks = self.ranks.map(|ranks| format!("mpirun -n {ranks} ")).unwrap_or_default();
        format!("{ranks}phalanx {}", self.arguments().join(" "))
    }
}

/// What a run took.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The closing line of `--json`.
    pub outcome: Value,
    /// Columns of `timings.csv` that are seconds, each with its value in every iteration.
    pub stages: Vec<(String, Vec<f64>)>,
    /// Largest resident memory of every process, in bytes.
    pub peaks: Vec<u64>,
    /// From start to end, in seconds.
    pub whole_s: f64,
    /// Everything, to be kept.
    pub raw: Value,
}

impl Measured {
    fn number(&self, key: &str) -> f64 {
        self.outcome[key].as_f64().unwrap_or(f64::NAN)
    }

    /// Seconds of the training loop.
    pub fn wall_s(&self) -> f64 {
        self.number("wall_s")
    }

    /// Agent-steps per second.
    pub fn rate(&self) -> f64 {
        self.number("agent_steps_per_s")
    }

    /// Nanoseconds of a stage per agent-step.
    pub fn stage_ns(&self, name: &str) -> f64 {
        let stage = self.stages.iter().find(|(stage, _)| stage == name);
        stage.map_or(f64::NAN, |(_, times)| 1e9 * times.iter().sum::<f64>() / self.number("agent_steps"))
    }

    /// Seconds of a typical iteration: the median, without the first one if there are three or more. It is
    /// the one in which memory is touched for the first time.
    pub fn iteration_s(&self) -> f64 {
        let mut times = iterations(&self.stages);
        let first = usize::from(times.len() > 2);
        median(&mut times[first..])
    }
}

/// The middle one, or the mean of the two.
pub fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let n = numbers.len();
    if n == 0 { f64::NAN } else { (numbers[(n - 1) / 2] + numbers[n / 2]) / 2.0 }
}

/// The program to be measured, and room for its runs.
pub struct Laboratory {
    program: PathBuf,
    folder: PathBuf,
    /// Why there is no MPI.
    pub without_mpi: Option<String>,
    count: usize,
}

/// `mpirun` and its options. All ranks are on this machine: containers often say that it has one slot, and
/// binding would give the threads of a rank one core.
const MPIRUN: [&str; 5] = ["mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none"];

impl Laboratory {
    /// Builds the program, with MPI if that is installed, unless `PHALANX_BIN` names one.
    pub fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("phalanx-bench-{}", std::process::id()));
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
        let mut laboratory = Laboratory { program, folder, without_mpi: None, count: 0 };
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

    /// Carries out a run and removes its folder.
    pub fn run(&mut self, trial: &Trial) -> Result<Measured> {
        self.count += 1;
        let out = self.folder.join(self.count.to_string());
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
        let peaks = memory::watch(pid, trial.ranks, || ending.is_finished());
        let output = ending.join().ok().context("the run cannot be waited for")??;
        let whole_s = begin.elapsed().as_secs_f64();
        let command = trial.command();
        ensure!(output.status.success(), "`{command}`: {}", String::from_utf8_lossy(&output.stderr));
        let mut outcome: Value = serde_json::from_slice(&output.stdout).context("no line of JSON")?;
        // It is removed at once.
        outcome.as_object_mut().map(|outcome| outcome.remove("run"));
        let stages = stages(&std::fs::read_to_string(out.join("timings.csv"))?)?;
        let built: Value = serde_json::from_str(&std::fs::read_to_string(out.join("meta.json"))?)?;
        std::fs::remove_dir_all(&out).with_context(|| format!("cannot remove {}", out.display()))?;
        let raw = json!({
            "command": command,
            "iterations": trial.iterations,
            "ranks": trial.ranks,
            "threads": trial.threads.unwrap_or_else(machine::cores),
            "program_commit": built["commit"],
            "load_before": load,
            "whole_s": whole_s,
            "peak_bytes": peaks,
            "stages_s": stages.iter().map(|(name, times)| (name.clone(), times.iter().sum())).collect::<BTreeMap<_, f64>>(),
            "iterations_s": iterations(&stages),
            "outcome": outcome,
        });
        Ok(Measured { outcome, stages, peaks, whole_s, raw })
    }
}

impl Drop for Laboratory {
    fn drop(&mut self) {
        // Nothing is lost if it stays.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Seconds of every iteration, all stages together.
fn iterations(stages: &[(String, Vec<f64>)]) -> Vec<f64> {
    let count = stages.first().map_or(0, |(_, times)| times.len());
    (0..count).map(|t| stages.iter().map(|(_, times)| times[t]).sum()).collect()
}

/// The columns of `timings.csv` that are seconds.
fn stages(timings: &str) -> Result<Vec<(String, Vec<f64>)>> {
    let mut lines = timings.lines();
    let names = lines.next().unwrap_or_default().split(',');
    let mut columns: Vec<(String, Vec<f64>)> = names.map(|name| (name.to_string(), Vec::new())).collect();
    for line in lines {
        for ((name, column), field) in columns.iter_mut().zip(line.split(',')) {
            if name.ends_with("_s") {
                column.push(field.parse().with_context(|| format!("timings.csv: {name} = {field}"))?);
            }
        }
    }
    columns.retain(|(name, _)| name.ends_with("_s"));
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_and_other_columns_passed_over() {
        let columns =
            stages("iteration,sampling_s,update_s,mpi_bytes\n0,1.5,2,12;40\n1,0.5,1,12;40\n").unwrap();
        assert_eq!(iterations(&columns), [3.5, 1.5]);
        assert_eq!(columns, [("sampling_s".into(), vec![1.5, 0.5]), ("update_s".into(), vec![2.0, 1.0])]);
    }

    #[test]
    fn medians() {
        assert_eq!((median(&mut [3.0, 1.0, 2.0]), median(&mut [4.0, 1.0])), (2.0, 2.5));
        assert!(median(&mut []).is_nan());
    }
}
