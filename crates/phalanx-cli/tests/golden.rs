//! Are results the bytes that they were? `golden/cases.tsv` lists short runs, `golden/golden.sha256` what
//! they leave. The same bytes on every x86-64 processor with AVX2 and FMA.
//!
//! `PHALANX_GOLDEN=all` runs every case instead of the quick ones; `PHALANX_GOLDEN=write` writes the bytes
//! anew, where results are meant to change. `PHALANX_GOLDEN_CASES=exact,wireless` picks cases,
//! `PHALANX_RUNNER="qemu-x86_64 -cpu Haswell"` stands in front of the program, `PHALANX_BIN` is another one.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Cases of a second or two without optimisation.
const QUICK: [&str; 9] = [
    "synthetic",
    "synthetic-proximal-sgd",
    "synthetic-direct",
    "wireless",
    "apprenticeship",
    "feasibility",
    "entropy",
    "exact",
    "paper-synthetic",
];

const FILES: [&str; 4] = ["metrics.csv", "agents.csv", "returns.csv", "policy.safetensors"];

fn has_fused_products() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

fn program() -> Command {
    let program =
        std::env::var("PHALANX_BIN").map_or(PathBuf::from(env!("CARGO_BIN_EXE_phalanx")), PathBuf::from);
    let runner = std::env::var("PHALANX_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    match words.next() {
        None => Command::new(program),
        Some(first) => {
            let mut command = Command::new(first);
            command.args(words).arg(program);
            command
        }
    }
}

/// Lines `<sum> <case>/<file>` of what a case leaves in `folder`.
fn sums(name: &str, folder: &Path) -> Option<String> {
    let mut lines = String::new();
    for file in FILES.iter().filter(|file| folder.join(file).exists()) {
        let summed = Command::new("sha256sum").arg(folder.join(file)).output().ok()?;
        let text = String::from_utf8_lossy(&summed.stdout).into_owned();
        writeln!(lines, "{} {name}/{file}", text.split(' ').next()?).ok()?;
    }
    Some(lines)
}

#[test]
fn results_are_the_bytes_that_they_were() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mode = std::env::var("PHALANX_GOLDEN").unwrap_or_default();
    let picked = std::env::var("PHALANX_GOLDEN_CASES").ok();
    if !has_fused_products() {
        println!("skipped: this processor has no AVX2 and FMA");
        return;
    }
    let cases = std::fs::read_to_string(golden.join("cases.tsv")).unwrap();
    let known = std::fs::read_to_string(golden.join("golden.sha256")).unwrap_or_default();
    let work = tempfile::tempdir().unwrap();
    let (mut written, mut different) = (String::new(), Vec::new());
    for (name, words) in cases.lines().filter_map(|line| line.split_once('\t')) {
        let wanted = match &picked {
            Some(picked) => picked.split(',').any(|case| case == name),
            None => !mode.is_empty() || QUICK.contains(&name),
        };
        if !wanted {
            continue;
        }
        let mut command = program();
        let run = command.args(words.split(' ')).args(["--out", name]).current_dir(&work).output().unwrap();
        assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stderr));
        let Some(found) = sums(name, &work.path().join(name)) else {
            println!("skipped: there is no sha256sum");
            return;
        };
        assert!(!found.is_empty(), "{name} left nothing");
        different.extend(
            found.lines().filter(|&line| !known.lines().any(|other| other == line)).map(str::to_owned),
        );
        written += &found;
    }
    if mode == "write" {
        std::fs::write(golden.join("golden.sha256"), written).unwrap();
    } else {
        assert!(different.is_empty(), "other bytes:\n{}", different.join("\n"));
    }
}
