//! Tells the program which commit it was built from; runs record it.

use std::process::Command;

fn main() {
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let commit = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let commit = commit.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_string());
    // Sources without their history, as from a registry, have no commit to tell.
    println!("cargo::rustc-env=PHALANX_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    for path in ["../../.git/HEAD", "../../.git/refs/heads"] {
        if std::path::Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
}
