//! The program that trains, and what a run of it took.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::machine;

/// A program and the device to look at.
pub struct Trainer {
    pub program: PathBuf,
    pub device: String,
}

/// What a run took.
pub struct Taken {
    /// Seconds of the iterations, and of the whole command.
    pub wall_s: f64,
    pub whole_s: f64,
    pub iterations: f64,
    pub agent_steps: f64,
    /// Largest memory of the host in bytes.
    pub peak_bytes: u64,
    /// The device as the program describes it; nothing on the processor.
    pub device: Option<String>,
}

impl Trainer {
    /// What a short command prints.
    pub fn said(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new(&self.program).args(arguments).output();
        let output = output.with_context(|| format!("cannot start {}", self.program.display()))?;
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
        ensure!(output.status.success(), "{}", words(&output.stderr));
        Ok(words(&output.stdout))
    }

    /// Starts `phalanx` with words separated by spaces, and a folder.
    pub fn start(&self, words: &str, folder: &[&Path]) -> Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(words.split(' ')).args(folder);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().with_context(|| format!("cannot start {}", self.program.display()))
    }

    /// Trains into a folder that is not there yet.
    pub fn train(&self, settings: &str, device: &str, out: &Path) -> Result<Taken> {
        let words = format!("train {settings} --device {device} --out");
        let begin = Instant::now();
        let mut child = self.start(&words, &[out])?;
        let (pid, mut errors) = (child.id(), child.stderr.take().context("no errors to read")?);
        let said = std::thread::spawn(move || {
            let mut text = String::new();
            errors.read_to_string(&mut text).map(|_| text)
        });
        let peaks = machine::watch_memory(pid, None, || said.is_finished());
        let status = child.wait()?;
        let text = said.join().ok().context("the run cannot be waited for")??;
        ensure!(status.success(), "`phalanx {words}`: {}", text.trim());
        Ok(Taken {
            wall_s: number(out, "wall_s")?,
            whole_s: begin.elapsed().as_secs_f64(),
            iterations: number(out, "iterations")?,
            agent_steps: number(out, "agent_steps")?,
            peak_bytes: peaks.into_iter().max().unwrap_or(0),
            device: text.lines().find_map(|line| line.strip_prefix("device: ")).map(str::to_string),
        })
    }

    /// Starts to train and asks it to stop once some iterations are on disk; fails if it was done before.
    pub fn train_half(&self, settings: &str, device: &str, out: &Path) -> Result<()> {
        let mut child = self.start(&format!("train {settings} --device {device} --out"), &[out])?;
        let begin = Instant::now();
        let rows = || std::fs::read_to_string(out.join("metrics.csv")).map_or(0, |text| text.lines().count());
        while rows() < 10 && child.try_wait()?.is_none() && begin.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(2));
        }
        // A builtin of the shell: the machine may have little installed.
        let sent = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status()?;
        let output = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
        ensure!(sent.success(), "a run cannot be stopped: {said}");
        ensure!(!out.join("outcome.json").exists(), "a run ended before it could be stopped");
        ensure!(out.join("config.toml").exists(), "a run did not begin: {said}");
        Ok(())
    }

    /// Goes on with a run.
    pub fn resume(&self, run: &Path, device: &str) -> Result<()> {
        let output = self.start(&format!("resume --device {device}"), &[run])?.wait_with_output()?;
        ensure!(output.status.success(), "resume: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(())
    }
}

/// A number of what a run has come to.
pub fn number(run: &Path, name: &str) -> Result<f64> {
    let outcome: Value = serde_json::from_slice(&std::fs::read(run.join("outcome.json"))?)?;
    outcome[name].as_f64().with_context(|| format!("outcome.json has no {name}"))
}

/// For the first iterations of a run.
const PATIENCE: Duration = Duration::from_secs(120);
