//! What a run leaves behind on disk.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::evaluate::Evaluation;
use super::session::Session;
use crate::algorithm::{Stage, Summary};
use crate::{Error, Result};

/// A run's folder: `config.toml`, `meta.json`, `metrics.csv`, `timings.csv`, `agents.csv`, `policy.safetensors`.
pub struct RunFolder {
    path: PathBuf,
    metrics: Table,
    timings: Table,
    last_times: [Duration; Stage::COUNT],
    provenance: Provenance,
}

/// What a run says about its own making.
#[derive(Debug, Clone, Default)]
pub struct Provenance {
    /// Commit that the program was built from.
    pub commit: String,
    /// How it was called.
    pub command_line: Vec<String>,
}

/// A CSV file being written.
struct Table {
    path: PathBuf,
    out: BufWriter<File>,
}

impl Table {
    fn create(path: PathBuf, header: &str) -> Result<Self> {
        let file = File::create(&path).map_err(|e| Error::write(&path, e))?;
        let mut table = Table { out: BufWriter::with_capacity(1 << 16, file), path };
        table.row(format_args!("{header}"))?;
        Ok(table)
    }

    fn row(&mut self, row: std::fmt::Arguments<'_>) -> Result<()> {
        writeln!(self.out, "{row}").map_err(|e| Error::write(&self.path, e))
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush().map_err(|e| Error::write(&self.path, e))
    }
}

impl RunFolder {
    /// Whether a run can begin in `path`: it must be new or an empty folder, with a name that JSON can hold.
    pub fn check_free(path: &Path) -> Result<()> {
        let refused = |why: &str| Err(Error::config("--out", format!("{} {why}", path.display())));
        if path.to_str().is_none() {
            return refused("is not UTF-8");
        }
        if path.exists() && !path.is_dir() {
            return refused("is a file, not a folder");
        }
        if path.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            return refused("is not empty; name a new folder, or remove it");
        }
        Ok(())
    }

    /// Begins a run in `path`, which must be new or empty.
    pub fn create(path: &Path, session: &Session, provenance: Provenance) -> Result<Self> {
        RunFolder::check_free(path)?;
        std::fs::create_dir_all(path)
            .map_err(|e| Error::config("--out", format!("{} cannot be made: {e}", path.display())))?;
        let mut stages = String::from("iteration");
        for name in Stage::NAMES {
            stages += &format!(",{name}_s");
        }
        let folder = RunFolder {
            metrics: Table::create(
                path.join("metrics.csv"),
                "iteration,return,objective,violation_total,violation_max,violation_mean,mu_mean,mu_max,\
                 gradient_norm,agent_steps,comm_bytes",
            )?,
            timings: Table::create(path.join("timings.csv"), &stages)?,
            last_times: [Duration::ZERO; Stage::COUNT],
            path: path.to_path_buf(),
            provenance,
        };
        folder.write("config.toml", &session.config().to_toml())?;
        folder.write_meta("running")?;
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds an iteration to `metrics.csv` and `timings.csv`.
    pub fn record(&mut self, summary: &Summary, session: &Session) -> Result<()> {
        let algorithm = session.algorithm();
        let Summary { iteration, objective, violation_total, violation_max, violation_mean, .. } = summary;
        let return_ = summary.return_.map(|r| format!("{r:?}")).unwrap_or_default();
        let agent_steps = algorithm.agent_steps_per_iteration() * (*iteration as u64 + 1);
        self.metrics.row(format_args!(
            "{iteration},{return_},{objective:?},{violation_total:?},{violation_max:?},{violation_mean:?},{:?},{:?},\
             {:?},{agent_steps},{}",
            summary.mu_mean,
            summary.mu_max,
            summary.gradient_norm,
            algorithm.traffic().bytes(),
        ))?;
        let times = algorithm.stage_times();
        let spent = |k: usize| (times[k] - self.last_times[k]).as_secs_f64();
        self.timings.row(format_args!(
            "{iteration},{:.9},{:.9},{:.9},{:.9},{:.9},{:.9}",
            spent(0),
            spent(1),
            spent(2),
            spent(3),
            spent(4),
            spent(5)
        ))?;
        self.last_times = times;
        Ok(())
    }

    /// Writes what is still buffered.
    pub fn flush(&mut self) -> Result<()> {
        self.metrics.flush()?;
        self.timings.flush()
    }

    /// Writes `policy.safetensors`.
    pub fn save_policy(&self, session: &Session) -> Result<()> {
        session.algorithm().policy().save(&self.path.join("policy.safetensors"))
    }

    /// Writes `agents.csv` and closes the run.
    pub fn finish(&mut self, session: &Session, evaluation: &Evaluation) -> Result<()> {
        let header = "agent,constraint,value,bound,threshold,dual,violation";
        let mut agents = Table::create(self.path.join("agents.csv"), header)?;
        for (i, agent) in session.problem().agents.iter().enumerate() {
            for (k, constraint) in agent.constraints.iter().enumerate() {
                let bound = if constraint.bound.sign() > 0.0 { "at_least" } else { "at_most" };
                agents.row(format_args!(
                    "{i},{},{:?},{bound},{:?},{:?},{:?}",
                    csv_field(&constraint.name),
                    evaluation.values.row(i)[k],
                    constraint.bound.threshold(),
                    session.algorithm().mu().row(i)[k],
                    (-evaluation.slack.row(i)[k]).max(0.0),
                ))?;
            }
        }
        agents.flush()?;
        self.write_meta("finished")
    }

    /// Notes in `meta.json` that the run failed; the rows so far are kept.
    pub fn fail(&mut self, reason: &str) {
        // The failure itself is what the user must see: a second one, in noting it, is not reported.
        let _ = self.flush();
        let _ = self.write_meta(&format!("failed: {reason}"));
    }

    fn write_meta(&self, status: &str) -> Result<()> {
        let meta = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "commit": self.provenance.commit,
            "command_line": self.provenance.command_line,
            "status": status,
        });
        self.write("meta.json", &format!("{meta:#}\n"))
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path.join(name);
        std::fs::write(&path, text).map_err(|e| Error::write(&path, e))
    }
}

/// Quotes a field if it needs it.
fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}
