//! Tells the program which commit it was built from; runs record it.

use std::path::Path;
use std::process::Command;

fn main() {
    // Sources without their history have no commit to tell.
    let commit = packaged().or_else(checked_out).unwrap_or_else(|| "unknown".into());
    println!("cargo::rustc-env=PHALANX_COMMIT={commit}");
    for path in [PACKAGED, "../../.git/HEAD", "../../.git/refs/heads"] {
        if Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
}

/// What `cargo package` writes beside the manifest.
const PACKAGED: &str = ".cargo_vcs_info.json";

/// The commit that a package was made from.
fn packaged() -> Option<String> {
    let text = std::fs::read_to_string(PACKAGED).ok()?;
    let (_, sha) = text.split_once("\"sha1\"")?;
    sha.split('"').nth(1)?.get(..12).map(str::to_string)
}

/// The commit of the repository that this crate stands in. A repository further up is somebody else's.
fn checked_out() -> Option<String> {
    if !Path::new("../../.git").exists() {
        return None;
    }
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}
