//! The long test: one run after another, each stopped, killed, crowded out and starved of disk at random,
//! until the time is up. Bytes must be equal and memory flat.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::{cargo, target};

/// What is trained.
const TRAINED: [&str; 4] = [
    "synthetic --set iterations=8000",
    "wireless --set iterations=60",
    "epidemic --set iterations=30",
    "pistonball --set iterations=10 --set evaluation.episodes=20",
];

const RESULTS: [&str; 5] =
    ["metrics.csv", "agents.csv", "returns.csv", "policy.safetensors", "multipliers.safetensors"];

/// What was done to the runs so far.
#[derive(Default)]
struct Tally {
    runs: usize,
    stops: usize,
    kills: usize,
    full_disks: usize,
    refused: usize,
    /// Largest resident memory of a run, in KiB, by what is trained.
    first: [u64; TRAINED.len()],
    most: [u64; TRAINED.len()],
}

/// Trains for so many minutes.
pub fn run(minutes: f64) -> Result<()> {
    cargo(&["build", "--release"], &[])?;
    let soak = Soak { program: target()?.join("release/phalanx"), folder: target()?.join("soak") };
    let _ = std::fs::remove_dir_all(&soak.folder);
    std::fs::create_dir_all(&soak.folder)?;
    let disk = Disk::mount(&soak.folder.join("disk"));
    if disk.is_none() {
        println!("full disks are left out: this user may not mount a small file system");
    }
    for (k, trained) in TRAINED.iter().enumerate() {
        let out = soak.folder.join(format!("whole{k}"));
        ensure!(soak.start(&format!("train {trained}"), &out)?.wait()?.success(), "{trained} failed");
    }
    let (begin, mut tally, mut random) = (Instant::now(), Tally::default(), Random(1));
    while begin.elapsed().as_secs_f64() < 60.0 * minutes {
        let kind = tally.runs % TRAINED.len();
        soak.one(kind, disk.as_ref(), &mut random, &mut tally)?;
        tally.runs += 1;
        if tally.runs.is_multiple_of(20) {
            println!("{}", tally.words(begin.elapsed()));
        }
    }
    println!("{}", tally.words(begin.elapsed()));
    println!("all bytes equal");
    drop(disk);
    std::fs::remove_dir_all(&soak.folder)?;
    Ok(())
}

struct Soak {
    program: PathBuf,
    folder: PathBuf,
}

impl Soak {
    fn start(&self, command: &str, out: &Path) -> Result<Child> {
        let mut phalanx = Command::new(&self.program);
        phalanx.args(command.split_whitespace());
        if command.starts_with("train") {
            phalanx.arg("--out");
        }
        let quiet = phalanx.arg(out).arg("--json").stdout(Stdio::null()).stderr(Stdio::null());
        quiet.spawn().with_context(|| format!("cannot start {}", self.program.display()))
    }

    /// A run to its end, whatever happens to it on the way.
    fn one(&self, kind: usize, disk: Option<&Disk>, random: &mut Random, tally: &mut Tally) -> Result<()> {
        let starved = disk.filter(|_| random.below(4) == 0);
        let out = starved.map_or(&self.folder, |disk| &disk.path).join("run");
        let _ = std::fs::remove_dir_all(&out);
        if let Some(disk) = starved {
            disk.resize(200 + 100 * random.below(8))?;
        }
        let mut process = self.start(&format!("train {}", TRAINED[kind]), &out)?;
        loop {
            let patience = Duration::from_millis(50 + random.below(1500));
            // Another process at the same folder has to leave it alone.
            if random.below(3) == 0 && out.join("lock").exists() {
                std::thread::sleep(patience / 4);
                let intruded = self.start("resume", &out)?.wait()?;
                let is_alone = process.try_wait()?.is_none();
                ensure!(!is_alone || !intruded.success(), "two processes trained in one folder");
                tally.refused += usize::from(is_alone);
            }
            let (ended, memory) = wait(&mut process, patience)?;
            tally.most[kind] = tally.most[kind].max(memory);
            match ended {
                Some(0) => break,
                Some(_) => {
                    // The disk is full: there is more room now.
                    if let Some(disk) = starved {
                        disk.resize(200_000)?;
                        tally.full_disks += 1;
                    }
                }
                None if random.below(2) == 0 => {
                    process.kill()?;
                    process.wait()?;
                    tally.kills += 1;
                }
                None => {
                    let begin = Instant::now();
                    let sent = Command::new("kill").args(["-TERM", &process.id().to_string()]).status()?;
                    ensure!(sent.success(), "cannot send a signal");
                    process.wait()?;
                    let taken = begin.elapsed();
                    ensure!(taken < Duration::from_millis(1500), "a stop took {taken:?}");
                    tally.stops += 1;
                }
            }
            let is_run = out.join("config.toml").exists();
            let again = if is_run { "resume".into() } else { format!("train {}", TRAINED[kind]) };
            process = self.start(&again, &out)?;
        }
        if tally.first[kind] == 0 {
            tally.first[kind] = tally.most[kind];
        }
        for name in RESULTS {
            let read =
                |run: &Path| std::fs::read(run.join(name)).with_context(|| format!("{name} is not there"));
            let whole = self.folder.join(format!("whole{kind}"));
            ensure!(read(&out)? == read(&whole)?, "{}: {name} differs", TRAINED[kind]);
        }
        Ok(())
    }
}

/// Waits for a process for so long: how it ended, if it did, and its largest memory in KiB.
fn wait(process: &mut Child, patience: Duration) -> Result<(Option<i32>, u64)> {
    let (begin, mut memory) = (Instant::now(), 0);
    while begin.elapsed() < patience {
        if let Some(status) = process.try_wait()? {
            return Ok((Some(status.code().unwrap_or(-1)), memory));
        }
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let found = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        memory = memory.max(found.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok((None, memory))
}

impl Tally {
    fn words(&self, elapsed: Duration) -> String {
        let Tally { runs, stops, kills, full_disks, refused, first, most } = self;
        let memory: Vec<String> =
            first.iter().zip(most).map(|(first, most)| format!("{first} to {most}")).collect();
        format!(
            "{:.1} min: {runs} runs, {stops} stops, {kills} kills, {full_disks} full disks, {refused} intruders refused; \
             largest memory in KiB of the first run to that of all: {}",
            elapsed.as_secs_f64() / 60.0,
            memory.join(", ")
        )
    }
}

/// A small file system of its own.
struct Disk {
    path: PathBuf,
}

impl Disk {
    fn mount(path: &Path) -> Option<Self> {
        std::fs::create_dir_all(path).ok()?;
        let mut mount = Command::new("mount");
        let mount = mount.args(["-t", "tmpfs", "-o", "size=1m", "phalanx-soak"]).arg(path);
        let mounted = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        mounted.then(|| Disk { path: path.into() })
    }

    fn resize(&self, kilobytes: u64) -> Result<()> {
        let mut mount = Command::new("mount");
        let mount = mount.args(["-o", &format!("remount,size={kilobytes}k")]).arg(&self.path);
        ensure!(mount.status()?.success(), "cannot change the size of {}", self.path.display());
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.path).status();
    }
}

/// Numbers that are the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % end
    }
}
