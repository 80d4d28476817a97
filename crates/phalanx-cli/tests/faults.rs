//! Every change of the file system that a command makes goes wrong once: the same command goes on, or says in
//! one line what to do, and nobody else's file is touched.
//!
//! The commands run in this process, one after another: which change goes wrong is a setting of the process.
#![cfg(debug_assertions)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use phalanx::base::files::fault::{Fault, changes, inject};
use phalanx::run::Registry;

const FAULTS: &[Fault] = &[Fault::Dies, Fault::Tears, Fault::Fails];
/// A kill within or behind every change, where the same code fails in another command or drawing takes long.
const KILLS: &[Fault] = &[Fault::Tears];

/// Runs a command line in `folder`; the exit status.
fn phalanx(command: &str) -> u8 {
    let words = std::iter::once("phalanx").chain(command.split_whitespace());
    phalanx_cli::main_of(words.map(OsString::from), &Registry::default())
}

/// Every file below a folder with its bytes; without those that hold times.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    const TIMED: [&str; 5] = ["timings.csv", "meta.json", "outcome.json", "checksums.json", "summary.csv"];
    let mut found = BTreeMap::new();
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        if path.is_dir() && !["checkpoints", "tb"].contains(&name.as_str()) {
            found.extend(files(&path));
        } else if path.is_file() && !TIMED.contains(&name.as_str()) && !name.ends_with(".tmp") {
            // The names inside an SVG are numbered on from one drawing of a process to the next.
            let is_compared = !name.ends_with(".svg");
            let bytes = if is_compared { std::fs::read(&path).unwrap() } else { Vec::new() };
            found.insert(path, bytes);
        }
    }
    found
}

fn same(found: &Path, expected: &BTreeMap<PathBuf, Vec<u8>>, whole: &Path, what: &str) {
    let found: BTreeMap<PathBuf, Vec<u8>> = files(found)
        .into_iter()
        .map(|(path, bytes)| (whole.join(path.strip_prefix(found).unwrap()), bytes))
        .collect();
    assert!(found.keys().eq(expected.keys()), "{what}: {:?} instead of {:?}", found.keys(), expected.keys());
    for (path, bytes) in expected {
        assert!(&found[path] == bytes, "{what}: {} differs", path.display());
    }
}

/// A command with a place `OUT` for its folder.
struct Subject {
    name: &'static str,
    command: &'static str,
    /// What is there before, made by these commands without faults.
    before: &'static [&'static str],
    /// What goes on where the command itself says that this is to be done.
    otherwise: Option<&'static str>,
    faults: &'static [Fault],
}

const SMALL: &str = "--set iterations=3 --set horizon=8 --set world.n=3 --set critic.steps=10 \
                     --set evaluation.episodes=4 --set checkpoint.seconds=0";

const SUBJECTS: [Subject; 15] = [
    Subject {
        name: "train",
        command: "train synthetic SMALL --threads 1 --json --out OUT/run",
        before: &[],
        otherwise: Some("resume OUT/run --threads 1 --json"),
        faults: FAULTS,
    },
    Subject {
        name: "init",
        command: "train synthetic SMALL --threads 1 --json --init OUT/first --out OUT/run",
        before: &["train synthetic SMALL --seed 2 --threads 1 --json --out OUT/first"],
        otherwise: Some("resume OUT/run --threads 1 --json"),
        faults: KILLS,
    },
    Subject {
        name: "resume",
        command: "resume OUT/run --threads 1 --json",
        before: &["HALF"],
        otherwise: None,
        faults: FAULTS,
    },
    Subject {
        name: "sweep",
        command: "sweep OUT/sweep.toml --jobs 1 --json --out OUT/sweep",
        before: &["SWEEP"],
        otherwise: None,
        faults: KILLS,
    },
    Subject {
        name: "certify",
        command: "certify synthetic SMALL --set constraint.0.at_least=0.01 --episodes 20 --threads 1 --json --out OUT/certified",
        before: &[],
        otherwise: None,
        faults: KILLS,
    },
    Subject {
        name: "eval",
        command: "eval OUT/run --episodes 3 --threads 1 --json",
        before: &["train synthetic SMALL --threads 1 --json --out OUT/run"],
        otherwise: None,
        faults: FAULTS,
    },
    Subject {
        name: "map",
        command: "eval junctions-grid4x4 --set world.town.grid=[1,1] --set horizon=3 --set constraint.0.budget=1 --policy cycle \
                  --episodes 3 --threads 1 --json --map OUT/map.png",
        before: &[],
        otherwise: None,
        faults: FAULTS,
    },
    Subject {
        name: "occupancy",
        command: "occupancy OUT/run --episodes 3 --threads 1 --out OUT/o.json",
        before: &["train synthetic SMALL --threads 1 --json --out OUT/run"],
        otherwise: None,
        faults: FAULTS,
    },
    Subject {
        name: "new",
        command: "new junctions --grid 1x2 --seconds 60 --out OUT/town",
        before: &[],
        otherwise: None,
        faults: FAULTS,
    },
    Subject { name: "man", command: "man --out OUT/man", before: &[], otherwise: None, faults: KILLS },
    Subject {
        name: "export",
        command: "export OUT/run --to json --episodes 3 --threads 1 --json --out OUT/policy",
        before: &["train synthetic SMALL --threads 1 --json --out OUT/run"],
        otherwise: None,
        faults: FAULTS,
    },
    Subject {
        name: "plot",
        command: "plot OUT/run",
        before: &["train synthetic SMALL --threads 1 --json --out OUT/run"],
        otherwise: None,
        faults: KILLS,
    },
    Subject {
        name: "plots",
        command: "plot OUT/run OUT/run --out OUT/plots",
        before: &["train synthetic SMALL --threads 1 --json --out OUT/run"],
        otherwise: None,
        faults: KILLS,
    },
    Subject {
        name: "loss",
        command: "plot OUT/run --loss 0,0.5 --episodes 8",
        before: &["train synthetic SMALL --threads 1 --json --out OUT/run"],
        otherwise: None,
        faults: KILLS,
    },
    Subject {
        name: "render",
        command: "render OUT/run --steps 2 --out OUT/frames/",
        before: &["train synthetic SMALL --threads 1 --json --out OUT/run"],
        otherwise: None,
        faults: KILLS,
    },
];

impl Subject {
    fn command(&self, text: &str, out: &Path) -> String {
        text.replace("SMALL", SMALL).replace("OUT", out.to_str().unwrap())
    }

    /// What is there before the command; and files of somebody else, beside and in the folder.
    fn prepare(&self, out: &Path) {
        std::fs::create_dir_all(out).unwrap();
        std::fs::write(out.join("thesis.tex"), "mine").unwrap();
        for step in self.before {
            match *step {
                "HALF" => half(&out.join("run")),
                "SWEEP" => {
                    let text = "base = \"synthetic\"\nseeds = 2\n[set]\niterations = 2\nhorizon = 8\n\"world.n\" = 3\n\
                                \"critic.steps\" = 10\n\"evaluation.episodes\" = 4\n\"checkpoint.seconds\" = 0\n";
                    std::fs::write(out.join("sweep.toml"), text).unwrap();
                }
                command => assert_eq!(phalanx(&self.command(command, out)), 0, "{command}"),
            }
        }
    }
}

/// A run of `synthetic` that was stopped half-way.
fn half(run: &Path) {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use phalanx::run::{Config, Provenance, Run, Session};

    let sets = SMALL.split_whitespace().filter_map(|word| word.split_once('='));
    let config = Config::preset("synthetic").unwrap().with_all(sets).unwrap();
    let session = Session::new(&config).unwrap();
    let mut run = Run::begin(session, run, Provenance::default()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    run.train(&stop.clone(), |summary| stop.store(summary.iteration == 1, Ordering::Relaxed)).unwrap();
}

#[test]
fn every_change_may_go_wrong() {
    for subject in &SUBJECTS {
        let (folder, begin) = (tempfile::tempdir().unwrap(), std::time::Instant::now());
        inject(None);
        let whole = folder.path().join("whole");
        subject.prepare(&whole);
        inject(None);
        assert_eq!(phalanx(&subject.command(subject.command, &whole)), 0, "{}", subject.name);
        let count = changes();
        let expected = files(&whole);
        for &fault in subject.faults {
            for k in 0..count {
                let what = format!("{}: change {k} of {count} {fault:?}", subject.name);
                let out = folder.path().join(format!("{fault:?}{k}"));
                inject(None);
                subject.prepare(&out);
                let command = subject.command(subject.command, &out);
                inject(Some((k, fault)));
                let status = phalanx(&command);
                inject(None);
                // A fault that is mended on the way, as of a file that need not be removed, is none.
                assert!(status <= 2, "{what}: status {status}");
                let again = phalanx(&command);
                if again != 0 {
                    let otherwise =
                        subject.otherwise.unwrap_or_else(|| panic!("{what}: stuck with status {again}"));
                    assert_eq!(phalanx(&subject.command(otherwise, &out)), 0, "{what}: cannot be resumed");
                }
                same(&out, &expected, &whole, &what);
                std::fs::remove_dir_all(&out).unwrap();
            }
        }
        println!(
            "{}: {count} changes, each wrong in {} ways, {:.1?}",
            subject.name,
            FAULTS.len(),
            begin.elapsed()
        );
    }
}
