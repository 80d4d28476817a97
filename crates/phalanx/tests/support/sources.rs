//! The sources of the workspace, for tests that ask where something is named.

use std::fs;
use std::path::{Path, PathBuf};

/// Not counted: tests, presets, policies as data, pictures, the paper's experiments, benchmarks and examples.
const NOT_COUNTED: [&str; 10] = [
    "/target/",
    "/tests/",
    "/tests.rs",
    "/benches/",
    "/examples/",
    "crates/phalanx-agent/",
    "crates/phalanx-pictures/",
    "crates/phalanx-paper/",
    "xtask/src/bench",
    "run/preset.rs",
];

/// Rust sources of the workspace without their tests, by their path in it.
pub fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut folders: Vec<PathBuf> = vec![root.join("crates"), root.join("xtask")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs") && !NOT_COUNTED.iter().any(|part| name.contains(part)) {
                found.push((name, without_tests(&fs::read_to_string(&path).unwrap())));
            }
        }
    }
    found.sort();
    found
}

/// Tests stand at the end of a file.
fn without_tests(source: &str) -> String {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let is_test =
        |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].contains("mod ") && pair[1].ends_with('{');
    let end = lines.windows(2).position(is_test).unwrap_or(lines.len());
    lines[..end].join("\n")
}

/// A source without comments and imports: what is imported counts where it is used.
pub fn code(source: &str) -> String {
    let (mut code, mut in_import) = (String::new(), false);
    for line in source.lines().filter(|line| !line.starts_with("//")) {
        let import = line.strip_prefix("pub ").or(line.strip_prefix("pub(crate) ")).unwrap_or(line);
        in_import |= import.starts_with("use ");
        if !in_import {
            code.push_str(line);
            code.push('\n');
        }
        in_import &= !line.ends_with(';');
    }
    code
}
