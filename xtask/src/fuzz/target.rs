//! One target, with libFuzzer.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// Bytes of an input: more choices than these no document needs.
const LONGEST: &str = "-max_len=160";

/// Findings after which a target is left: they are probably all the same.
const MOST_FINDINGS: usize = 5;

/// What targets are in: a program with libFuzzer. `PHALANX_FUZZ_TARGET` names one; of an unknown name it says
/// which there are.
#[derive(Clone)]
pub struct Program {
    pub path: PathBuf,
    /// The script, where the program is an interpreter.
    pub script: Option<PathBuf>,
}

impl Program {
    /// The program on one target.
    fn command(&self, target: &str) -> Command {
        let mut command = Command::new(&self.path);
        // Which code is reached must not depend on how threads take turns.
        command.args(&self.script).env("PHALANX_FUZZ_TARGET", target).env("RAYON_NUM_THREADS", "1");
        command
    }

    /// The names of all its targets.
    pub fn targets(&self) -> Result<Vec<String>> {
        // It ends in a way that libFuzzer takes for a crash, and keeps its input.
        let folder = self.path.parent().context("the program has no folder")?;
        let output = self.command("?").arg("-runs=0").current_dir(folder).output()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix("targets: "));
        Ok(line.context("the program does not say its targets")?.split(' ').map(String::from).collect())
    }
}

/// What to do with a target.
#[derive(Clone)]
pub struct Job {
    pub program: Program,
    pub name: String,
    /// Inputs in the repository: a file with one per line, in hexadecimal digits.
    pub kept: PathBuf,
    /// Inputs that were found to reach new code, in this run and earlier ones.
    pub corpus: PathBuf,
    pub artifacts: PathBuf,
    pub seed: u64,
    /// Inputs to try at least.
    pub runs: u64,
    /// Time to spend at least.
    pub time: Duration,
}

/// What came of it.
#[derive(Default)]
pub struct Fuzzed {
    pub name: String,
    pub executions: u64,
    /// Shares of the inputs that got past the first check, and that were accepted.
    pub past_first_check: f64,
    pub accepted: f64,
    pub wall: Duration,
    /// Edges of our own code that were reached, of all; these are not known of Python.
    pub edges: u64,
    pub all_edges: u64,
    /// Of these, the edges of the files that the target is about, and all edges there.
    pub own_edges: [u64; 2],
    /// Inputs that each reach something of their own.
    pub corpus: u64,
    pub slowest: Duration,
    pub peak_mb: u64,
    /// Files with inputs that broke something.
    pub findings: Vec<String>,
    /// How a finding is tried again, if not by `reproduce`.
    pub reproduced_by: Option<String>,
}

impl Job {
    /// Tries inputs until there were enough and the time is over, also after a finding.
    pub fn run(&self) -> Result<Fuzzed> {
        for folder in [&self.corpus, &self.artifacts] {
            std::fs::create_dir_all(folder)?;
        }
        let kept = std::fs::read_to_string(&self.kept).unwrap_or_default();
        for (number, line) in kept.lines().enumerate() {
            std::fs::write(self.corpus.join(format!("kept-{number}")), bytes(line)?)?;
        }
        let Program { path, script } = &self.program;
        let reproduced_by = script.as_ref().map(|script| format!("{} {}", path.display(), script.display()));
        let mut fuzzed = Fuzzed { name: self.name.clone(), reproduced_by, ..Fuzzed::default() };
        let (begin, mut counts) = (Instant::now(), [0; 3]);
        for turn in 0.. {
            let left = self.time.saturating_sub(begin.elapsed()).as_secs();
            let missing = self.runs.saturating_sub(fuzzed.executions);
            if turn > 0 && left == 0 && missing == 0 || fuzzed.findings.len() >= MOST_FINDINGS {
                break;
            }
            // Zero means no end to libFuzzer. What is asked for by number comes first.
            let end = if missing > 0 {
                format!("-runs={missing}")
            } else {
                format!("-max_total_time={}", left.max(1))
            };
            self.turn(turn, &end, &mut fuzzed, &mut counts)?;
        }
        fuzzed.wall = begin.elapsed();
        fuzzed.own_edges = self.coverage().unwrap_or_default();
        let [counted, past, accepted] = counts.map(|count| count as f64);
        (fuzzed.past_first_check, fuzzed.accepted) = (past / counted.max(1.0), accepted / counted.max(1.0));
        Ok(fuzzed)
    }

    /// The program on one target, with all inputs that are known.
    fn command(&self) -> Command {
        self.program.command(&self.name)
    }

    /// Edges of the target's own files that its inputs reach, and all there.
    fn coverage(&self) -> Option<[u64; 2]> {
        let file = self.corpus.with_extension("coverage");
        self.command().arg(&self.corpus).arg("-runs=0").env("PHALANX_FUZZ_COVERAGE", &file).output().ok()?;
        let written = std::fs::read_to_string(&file).ok()?;
        let (reached, all) = written.split_once(' ')?;
        Some([reached.parse().ok()?, all.parse().ok()?])
    }

    /// One process, to its end or to a finding.
    fn turn(&self, turn: u64, end: &str, fuzzed: &mut Fuzzed, counts: &mut [u64; 3]) -> Result<()> {
        let before = files(&self.artifacts)?;
        let statistics = self.corpus.with_extension("counts");
        // Those of an earlier process, if there was one.
        let _ = std::fs::remove_file(&statistics);
        let output = self
            .command()
            .arg(&self.corpus)
            .args([
                end,
                LONGEST,
                "-len_control=0",
                // The program has a watch of its own.
                "-timeout=1000000",
                "-rss_limit_mb=1024",
                "-print_final_stats=1",
            ])
            .arg(format!("-seed={}", self.seed + turn))
            .arg(format!("-artifact_prefix={}/", self.artifacts.display()))
            .env("PHALANX_FUZZ_STATISTICS", &statistics)
            .env("PHALANX_FUZZ_ARTIFACTS", &self.artifacts)
            .output()
            .with_context(|| format!("cannot start {}", self.program.path.display()))?;
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        std::fs::write(self.corpus.with_extension("log"), &log)?;
        let found: Vec<String> =
            files(&self.artifacts)?.into_iter().filter(|file| !before.contains(file)).collect();
        let is_known = !found.is_empty() || output.status.success();
        ensure!(
            is_known,
            "it ended without a finding ({}); see {}",
            output.status,
            self.corpus.with_extension("log").display()
        );
        fuzzed.findings.extend(found);
        fuzzed.peak_mb = fuzzed.peak_mb.max(final_number(&log, "stat::peak_rss_mb:"));
        fuzzed.edges = fuzzed.edges.max(last_number(&log, " cov: "));
        fuzzed.corpus = last_number(&log, " corp: ").max(fuzzed.corpus);
        fuzzed.all_edges = last_number(&log, "INFO: Loaded 1 PC tables (");
        let mut executed = final_number(&log, "stat::number_of_executed_units:");
        let written = std::fs::read_to_string(&statistics).unwrap_or_default();
        let numbers: Vec<u64> = written.split(' ').filter_map(|number| number.parse().ok()).collect();
        if let [executions, past, accepted, slowest] = numbers[..] {
            counts.iter_mut().zip([executions, past, accepted]).for_each(|(all, more)| *all += more);
            fuzzed.slowest = fuzzed.slowest.max(Duration::from_micros(slowest));
            // A process that ended itself, at a slow input, has no closing statistics.
            executed = executed.max(executions);
        }
        fuzzed.executions += executed;
        Ok(())
    }

    /// Makes the inputs in the repository the smallest set that reaches all that is reached, within bounds.
    pub fn keep(&self) -> Result<()> {
        let smallest = self.corpus.with_extension("smallest");
        // One of an earlier run, if there is any.
        let _ = std::fs::remove_dir_all(&smallest);
        std::fs::create_dir_all(&smallest)?;
        let merged = self.command().args(["-merge=1", LONGEST]).args([&smallest, &self.corpus]).output()?;
        ensure!(merged.status.success(), "inputs of {} cannot be merged", self.name);
        let inputs = files(&smallest)?.into_iter().map(std::fs::read).collect::<std::io::Result<Vec<_>>>()?;
        let mut lines: Vec<String> = inputs.iter().map(|input| digits(input)).collect();
        lines.sort_by_key(|line| (line.len(), line.clone()));
        lines.truncate(MOST_KEPT);
        if let Some(folder) = self.kept.parent() {
            std::fs::create_dir_all(folder)?;
        }
        Ok(std::fs::write(&self.kept, lines.join("\n") + "\n")?)
    }
}

/// Inputs of a target in the repository at most.
const MOST_KEPT: usize = 300;

/// An input as it is kept.
fn digits(input: &[u8]) -> String {
    input.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The input of a line.
fn bytes(line: &str) -> Result<Vec<u8>> {
    let pair = |k: usize| line.get(k..k + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
    let bytes: Option<Vec<u8>> = (0..line.len()).step_by(2).map(pair).collect();
    bytes.with_context(|| format!("`{line}` is not an input in hexadecimal digits"))
}

fn files(folder: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in folder.read_dir()? {
        files.push(entry?.path().display().to_string());
    }
    files.sort();
    Ok(files)
}

/// The number in a line of the closing statistics.
fn final_number(log: &str, name: &str) -> u64 {
    let line = log.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
}

/// The number behind the last `name` in a log.
fn last_number(log: &str, name: &str) -> u64 {
    let rest = log.rsplit_once(name).map_or("", |(_, rest)| rest);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_survive_their_digits() {
        let input = [0, 1, 16, 171, 255];
        assert_eq!(digits(&input), "000110abff");
        assert_eq!(bytes("000110abff").unwrap(), input);
        assert!(bytes("0").is_err() && bytes("zz").is_err());
    }

    #[test]
    fn numbers_are_found_in_a_log() {
        let log = "INFO: Loaded 1 PC tables (5210 PCs): 5210\n#2\tINITED cov: 7 ft: 9 corp: 1/1b\n\
                   #9\tNEW    cov: 12 ft: 20 corp: 3/9b\nstat::number_of_executed_units: 77\n";
        assert_eq!(last_number(log, " cov: "), 12);
        assert_eq!(last_number(log, " corp: "), 3);
        assert_eq!(last_number(log, "INFO: Loaded 1 PC tables ("), 5210);
        assert_eq!(final_number(log, "stat::number_of_executed_units:"), 77);
        assert_eq!(last_number(log, "no such name"), 0);
    }
}
