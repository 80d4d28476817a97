//! Folders for many files of one command: new, empty, or made by the same command before.

use std::path::Path;

use super::durable::{self, UNFINISHED};
use crate::base::error::ensure;
use crate::{Error, Result};

/// The file that says which command a folder belongs to.
const MARKER: &str = ".phalanx";

/// Takes a folder for the files of `command`, the argument `out`. `is_earlier` says of a folder without a
/// marker whether an earlier version of the command made it.
pub fn claim(folder: &Path, command: &str, is_earlier: impl FnOnce() -> bool) -> Result<()> {
    check(folder, command, is_earlier)?;
    let unmade = |e: std::io::Error| format!("{} cannot be made: {e}", folder.display());
    durable::create_dirs(folder).map_err(|e| Error::argument("out", unmade(e)))?;
    let marker = folder.join(MARKER);
    if marker.exists() { Ok(()) } else { durable::replace_shared(&marker, format!("{command}\n").as_bytes()) }
}

/// Whether [`claim`] would succeed; nothing is changed.
pub fn check(folder: &Path, command: &str, is_earlier: impl FnOnce() -> bool) -> Result<()> {
    let refused = |why: String| Error::argument("out", format!("{} {why}", folder.display()));
    ensure(folder.is_dir() || !folder.exists(), || refused("is a file, not a folder".into()))?;
    if let Ok(owner) = std::fs::read_to_string(folder.join(MARKER)) {
        let other = || format!("belongs to `phalanx {}`; name another folder", owner.trim());
        return ensure(owner.trim() == command, || refused(other()));
    }
    // A kill may have left half a marker.
    let is_marker = |name: &str| name.starts_with(MARKER) && name.ends_with(UNFINISHED);
    let mut entries = folder.read_dir().into_iter().flatten().flatten();
    let is_empty = entries.all(|entry| entry.file_name().to_str().is_some_and(is_marker));
    let foreign = || format!("is not empty and was not made by `phalanx {command}`; name another folder");
    ensure(is_empty || is_earlier(), || refused(foreign()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_belongs_to_one_command() {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("a/new");
        check(&new, "sweep", || false).unwrap();
        assert!(!new.exists());
        claim(&new, "sweep", || false).unwrap();
        std::fs::write(new.join("results"), "x").unwrap();
        claim(&new, "sweep", || false).unwrap();
        assert!(
            claim(&new, "paper", || true).unwrap_err().to_string().contains("belongs to `phalanx sweep`")
        );
        let mine = folder.path().join("mine");
        std::fs::create_dir(&mine).unwrap();
        std::fs::write(mine.join(".phalanx.7.tmp"), "sw").unwrap();
        check(&mine, "sweep", || false).unwrap();
        std::fs::write(mine.join("thesis"), "x").unwrap();
        let message = claim(&mine, "sweep", || false).unwrap_err().to_string();
        assert!(message.contains("not made by `phalanx sweep`"), "{message}");
        assert!(!mine.join(MARKER).exists());
        claim(&mine, "sweep", || true).unwrap();
        assert!(mine.join(MARKER).exists());
        assert!(check(&mine.join("thesis"), "sweep", || true).is_err());
    }
}
