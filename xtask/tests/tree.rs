//! Nothing large comes into the repository by accident: a run's folder, a page with all its pictures.

use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Bytes that a tracked file may have.
const LARGEST: u64 = 2_000_000;

/// Files that may be larger, each with its reason.
const EXCEPTED: [&str; 0] = [];

#[test]
fn no_tracked_file_is_large() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let listed = Command::new("git").arg("-C").arg(&root).args(["ls-files", "-z"]).output();
    let Some(listed) = listed.ok().filter(|listed| listed.status.success()) else {
        // Past the test's capture: a person shall see it.
        writeln!(std::io::stderr(), "skipped: {} is in no git repository", root.display()).unwrap();
        return;
    };
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    // A file that was deleted and is still listed has no size.
    let size = |name: &str| root.join(name).symlink_metadata().map_or(0, |data| data.len());
    let large: Vec<String> = names
        .split('\0')
        .filter(|name| !name.is_empty() && !EXCEPTED.contains(name) && size(name) > LARGEST)
        .map(|name| format!("{name}: {} bytes", size(name)))
        .collect();
    assert!(large.is_empty(), "larger than {LARGEST} bytes:\n{}", large.join("\n"));
}
