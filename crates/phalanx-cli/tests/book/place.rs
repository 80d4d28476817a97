//! Where the commands of a page are run.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_phalanx");

/// A fresh folder, and beside it their processor time.
pub struct Place(tempfile::TempDir);

impl Place {
    pub fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        std::fs::create_dir(place.folder()).unwrap();
        place
    }

    pub fn folder(&self) -> PathBuf {
        self.0.path().join("work")
    }

    /// Runs a command line with the program in front of everything else on the path.
    pub fn shell(&self, command: &str) -> Output {
        self.spawn(command).wait_with_output().unwrap()
    }

    /// Asks the program to read a configuration and to fill in what it does not say.
    pub fn config(&self, text: &str) -> Output {
        let file = self.folder().join(".excerpt.toml");
        std::fs::write(&file, text).unwrap();
        let output = self.shell("phalanx config .excerpt.toml");
        std::fs::remove_file(file).unwrap();
        output
    }

    /// Starts a training run and presses Ctrl-C once it has begun.
    pub fn interrupted(&self, command: &str) -> Output {
        let (_, run) = command.split_once("--out ").expect("an interrupted command with --out");
        let meta = self.folder().join(run.split(' ').next().unwrap()).join("meta.json");
        let process = self.spawn(&format!("exec {command}"));
        let begin = Instant::now();
        while !meta.exists() && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        // Enough for a few iterations.
        std::thread::sleep(Duration::from_millis(50));
        assert!(Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap().success());
        process.wait_with_output().unwrap()
    }

    fn spawn(&self, command: &str) -> Child {
        let programs = Path::new(BINARY).parent().unwrap().display();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("trap 'times >> \"$TIMES\"' EXIT\n{command}")]);
        shell.current_dir(self.folder()).env("PATH", path).env("TIMES", self.0.path().join("times"));
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// What the commands so far have taken, of users and of the system: numbers like `0m1.23s`.
    pub fn processor_seconds(&self) -> f64 {
        let times = std::fs::read_to_string(self.0.path().join("times")).unwrap().replace(',', ".");
        let seconds = times.split_whitespace().map(|time| {
            let (minutes, seconds) = time.trim_end_matches('s').split_once('m').unwrap();
            minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
        });
        seconds.sum()
    }
}
