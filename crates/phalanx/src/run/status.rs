//! Whether a folder holds a run that was asked for: not begun, begun or finished.

use std::path::Path;

use super::build;
use super::config::{Config, Difference};
use super::folder::RunFolder;
use super::meta::{CONFIG, Meta, input_checksum};
use super::outcome::Outcome;
use crate::base::error::ensure;
use crate::{Error, Result};

/// How far the run in a folder is.
#[derive(Debug)]
pub enum RunStatus {
    /// There is none; [`Run::begin`](super::Run::begin) begins it.
    Absent,
    /// [`Run::resume`](super::Run::resume) goes on with it.
    Started,
    /// It is done.
    Finished(Box<Outcome>),
}

impl RunFolder {
    /// How far the run of `config` in `path` is. A folder that holds anything else is refused: a run that is
    /// taken for another one would be a wrong result.
    pub fn status(path: &Path, config: &Config) -> Result<RunStatus> {
        let file = path.join(CONFIG);
        if !file.is_file() {
            return RunFolder::check_free(path).map(|()| RunStatus::Absent);
        }
        let refused = |why: &str| Error::file(path, format!("{why}; remove it or name another folder"));
        let meta = Meta::read(path)?;
        let ours = env!("CARGO_PKG_VERSION");
        let maker = if meta.version == ours {
            String::new()
        } else {
            format!(" by phalanx {} (this is {ours})", meta.version)
        };
        let found = Config::read(&file)?.with_registry(config.registry().clone());
        if let Some(Difference { key, first, second }) = found.first_difference(&build::resolve(config)?) {
            let setting = |value: Option<String>| match value {
                Some(value) => format!("{key} = {value}"),
                None => format!("no {key}"),
            };
            let (there, here) = (setting(first), setting(second));
            return Err(refused(&format!("was made{maker} with {there}, but this run asks for {here}")));
        }
        let warm = "was started from another run's policy, but this run starts afresh";
        ensure(!meta.is_warm, || refused(warm))?;
        let changed = "was made before config.toml, or a file that it names, was changed";
        ensure(meta.has_config(input_checksum(path, &found)?), || refused(changed))?;
        if !meta.is_finished() {
            let other = format!("was begun{maker}, whose checkpoints may mean something else");
            return ensure(maker.is_empty(), || refused(&other)).map(|()| RunStatus::Started);
        }
        let outcome = Outcome::read(path)?;
        let outcome =
            outcome.ok_or_else(|| refused(&format!("was made{maker} before runs had an outcome.json")))?;
        Ok(RunStatus::Finished(Box::new(outcome)))
    }

    /// What the finished run in `path` has reached; none if it is not finished, or from before there was an
    /// `outcome.json`.
    pub fn outcome(path: &Path) -> Result<Option<Outcome>> {
        if path.join("meta.json").exists() && Meta::read(path)?.is_finished() {
            Outcome::read(path)
        } else {
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::run::{Ending, Provenance, Run, Session};

    fn config() -> Config {
        let short = [("iterations", "3"), ("horizon", "10"), ("evaluation.episodes", "4"), ("world.n", "3")];
        Config::preset("synthetic").unwrap().with_all(short).unwrap()
    }

    /// The run of `config` in `path`, to its end or stopped after an iteration.
    fn run(path: &Path, stop: bool) -> Ending {
        let session = Session::new(&config()).unwrap();
        let mut run = Run::begin(session, path, Provenance::default()).unwrap();
        run.train(&Arc::new(AtomicBool::new(stop)), |_| ()).unwrap()
    }

    fn refusal(path: &Path, config: &Config) -> String {
        RunFolder::status(path, config).unwrap_err().to_string()
    }

    #[test]
    fn a_run_is_absent_started_and_finished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        assert!(matches!(RunFolder::status(&path, &config()), Ok(RunStatus::Absent)));
        run(&path, true);
        assert!(matches!(RunFolder::status(&path, &config()), Ok(RunStatus::Started)));
        assert!(RunFolder::outcome(&path).unwrap().is_none());
        std::fs::remove_dir_all(&path).unwrap();
        let Ending::Finished(Some(reached)) = run(&path, false) else { panic!("it was stopped") };
        let reached = reached.outcome;
        // Wherever it is now.
        let moved = folder.path().join("moved");
        std::fs::rename(&path, &moved).unwrap();
        let Ok(RunStatus::Finished(read)) = RunFolder::status(&moved, &config()) else {
            panic!("it is not finished")
        };
        assert_eq!(read.run, moved);
        let numbers = |outcome: &Outcome| {
            let exact = outcome.exact.as_ref().unwrap();
            [outcome.objective, outcome.return_.unwrap(), outcome.violation_total, exact.objective, exact.e]
        };
        // What is no number is `null` in the file, and is read all the same.
        let mut endless = Outcome { agent_steps_per_s: f64::INFINITY, ..reached.clone() };
        endless.exact.as_mut().unwrap().e = f64::INFINITY;
        endless.write(folder.path()).unwrap();
        let endless = Outcome::read(folder.path()).unwrap().unwrap();
        assert!(endless.agent_steps_per_s.is_nan() && endless.exact.unwrap().e.is_nan());
        for (read, reached) in numbers(&read).into_iter().zip(numbers(&reached)) {
            assert!((read - reached).abs() <= 1e-14 * reached.abs(), "{read} instead of {reached}");
        }
    }

    #[test]
    fn what_was_not_asked_for_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        run(&path, false);
        let message = refusal(&path, &config().with("kappa_q", "2").unwrap());
        assert!(
            message.contains("was made with kappa_g = 1, but this run asks for kappa_g = 2; remove"),
            "{message}"
        );
        let edit = |name: &str, from: &str, to: &str| {
            let text = std::fs::read_to_string(path.join(name)).unwrap();
            assert!(text.contains(from), "{text}");
            std::fs::write(path.join(name), text.replace(from, to)).unwrap();
        };
        let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
        edit("meta.json", &version, "\"version\": \"0.0.1\"");
        assert!(refusal(&path, &config()).contains("meta.json: is damaged"));
        // As an earlier version wrote it, without a checksum.
        let text = std::fs::read_to_string(path.join("meta.json")).unwrap();
        let (content, _) = text.split_once(",\n  \"crc32c\"").unwrap();
        std::fs::write(path.join("meta.json"), format!("{content}\n}}\n")).unwrap();
        // Finished and the same: it does not matter who made it.
        assert!(matches!(RunFolder::status(&path, &config()), Ok(RunStatus::Finished(_))));
        let message = refusal(&path, &config().with("seed", "2").unwrap());
        assert!(
            message.contains("was made by phalanx 0.0.1 (this is") && message.contains("seed = 1"),
            "{message}"
        );
        edit("meta.json", "finished", "stopped");
        assert!(refusal(&path, &config()).contains("was begun by phalanx 0.0.1"));
        edit("meta.json", "stopped", "finished");
        std::fs::rename(path.join("outcome.json"), path.join("other.json")).unwrap();
        assert!(refusal(&path, &config()).contains("before runs had an outcome.json"));
        edit("config.toml", "[world]", "# A comment.\n[world]");
        assert!(refusal(&path, &config()).contains("config.toml, or a file that it names, was changed"));
        std::fs::remove_file(path.join("config.toml")).unwrap();
        assert!(refusal(&path, &config()).contains("is not empty"));
    }
}
