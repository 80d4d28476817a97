//! Single bits that flip in the files of a run: each is noticed, or is in a file that nothing is read from.
//!
//! A few hundred by default; `PHALANX_FLIPS=10000` tries more.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use phalanx::run::{
    Config, Ending, Provenance, Registry, ResumeOutcome, Run, Session, SingleProcess, checksums,
};

fn config() -> Config {
    let small = [
        ("iterations", "6"),
        ("horizon", "6"),
        ("world.n", "3"),
        ("critic.steps", "8"),
        ("evaluation.episodes", "3"),
        ("checkpoint.seconds", "0"),
    ];
    Config::preset("synthetic").unwrap().with_all(small).unwrap()
}

/// A run that was begun at another's policy, whole or stopped after four iterations.
fn make(folder: &Path, name: &str, init: Option<&Path>, is_whole: bool) -> PathBuf {
    let path = folder.join(name);
    let mut session = Session::new(&config()).unwrap();
    if let Some(init) = init {
        session.warm_start(&init.join("policy.safetensors")).unwrap();
    }
    let mut run = Run::begin(session, &path, Provenance::default()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let decide = |iteration: usize| stop.store(!is_whole && iteration == 3, Ordering::Relaxed);
    run.train(&stop, |summary| decide(summary.iteration)).unwrap();
    path
}

fn files(folder: &Path, within: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in folder.join(within).read_dir().unwrap().flatten() {
        let name = Path::new(within).join(entry.file_name()).to_str().unwrap().to_string();
        if entry.path().is_dir() { found.extend(files(folder, &name)) } else { found.push(name) }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    for name in files(from, "") {
        std::fs::create_dir_all(to.join(&name).parent().unwrap()).unwrap();
        std::fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

/// What is said of a run when it is opened; the run itself where it goes on.
fn opened(path: &Path) -> (Vec<String>, Option<Box<Run>>) {
    match Run::resume(path, &Registry::default(), Arc::new(SingleProcess)) {
        Err(error) => (vec![error.to_string()], None),
        Ok(ResumeOutcome::Ready { run, notes }) => (notes, Some(run)),
        Ok(ResumeOutcome::Finished) => match checksums::damages(path) {
            Err(error) => (vec![error.to_string()], None),
            Ok(damages) => (damages.iter().map(ToString::to_string).collect(), None),
        },
    }
}

#[test]
fn flipped_bits_are_noticed() {
    let flips: usize = std::env::var("PHALANX_FLIPS").ok().and_then(|text| text.parse().ok()).unwrap_or(400);
    let folder = tempfile::tempdir().unwrap();
    let first = make(folder.path(), "first", None, true);
    let whole = make(folder.path(), "whole", Some(&first), true);
    let half = make(folder.path(), "half", Some(&first), false);
    let kept = files(&half, "checkpoints");
    assert_eq!(kept.len(), 4, "two checkpoints are kept: {kept:?}");
    let target = folder.path().join("target");
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) % below
    };
    for (run, is_harmless) in [
        // Only the newest checkpoint is read, as long as it is whole, and the first policy only without one.
        (
            &half,
            Box::new(|name: &str| name.starts_with("checkpoints/000000003") || name == "init.safetensors")
                as Box<dyn Fn(&str) -> bool>,
        ),
        // Nothing is trained any more.
        (&whole, Box::new(|name: &str| name.starts_with("checkpoints/"))),
    ] {
        let names: Vec<String> = files(run, "").into_iter().filter(|name| name != "lock").collect();
        let sizes: Vec<u64> = names.iter().map(|name| run.join(name).metadata().unwrap().len()).collect();
        let (mut noticed, mut harmless) = (0, 0);
        for k in 0..flips / 2 {
            // Places of all files together, and every file in turn: most bytes are in few files.
            let mut place = draw(8 * sizes.iter().sum::<u64>());
            let mut file = sizes
                .iter()
                .take_while(|&&size| {
                    let is_before = place >= 8 * size;
                    if is_before {
                        place -= 8 * size
                    };
                    is_before
                })
                .count();
            if k % 2 == 1 {
                file = k / 2 % names.len();
                place = draw(8 * sizes[file]);
            }
            copy(run, &target);
            let path = target.join(&names[file]);
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[place as usize / 8] ^= 1 << (place % 8);
            std::fs::write(&path, bytes).unwrap();
            let (said, goes_on) = opened(&target);
            let what = format!("bit {place} of {}", names[file]);
            match (said.is_empty(), is_harmless(&names[file])) {
                (false, _) => noticed += 1,
                (true, true) => harmless += 1,
                (true, false) => panic!("{what} is not noticed"),
            }
            if let Some(mut run) = goes_on {
                let ending = run.train(&Arc::new(AtomicBool::new(false)), |_| ()).unwrap();
                assert!(matches!(ending, Ending::Finished(_)));
                for name in [
                    "metrics.csv",
                    "agents.csv",
                    "returns.csv",
                    "policy.safetensors",
                    "multipliers.safetensors",
                ] {
                    let read = |run: &Path| std::fs::read(run.join(name)).unwrap();
                    assert!(read(&target) == read(&whole), "{what}: {name} differs: {said:?}");
                }
            }
        }
        println!(
            "{}: {noticed} flips noticed, {harmless} in files that nothing is read from",
            run.file_name().unwrap().display()
        );
    }
}
