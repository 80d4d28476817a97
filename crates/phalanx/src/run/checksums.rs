//! `checksums.json`: what the files of a finished run are, so that damage is noticed when they are used.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::folder::RESULT_FILES;
use crate::base::error::ensure;
use crate::base::{files, sealed};
use crate::{Error, Result};

pub(super) const FILE: &str = "checksums.json";

#[derive(Default, Serialize, Deserialize)]
struct Checksums {
    /// CRC-32C, by name within the folder.
    files: BTreeMap<String, u32>,
}

impl Checksums {
    /// Those of the run in `folder`; none for one that is not finished, or that an earlier version finished.
    fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(Checksums::default());
        }
        sealed::read(&path, &[])
    }
}

/// Writes the checksums of the files that are there.
pub(super) fn write(folder: &Path) -> Result<()> {
    let mut checksums = Checksums::default();
    for name in RESULT_FILES.iter().filter(|name| folder.join(name).is_file()) {
        let path = folder.join(name);
        let checksum = files::checksum(&path, None).map_err(|e| Error::unreadable(&path, e))?;
        checksums.files.insert((*name).into(), checksum);
    }
    sealed::write(&folder.join(FILE), &checksums)
}

/// Whether a file of the run in `folder` is as the run left it; true of what has no checksum.
pub fn check(folder: &Path, name: &str) -> Result<()> {
    match Checksums::read(folder)?.files.get(name) {
        Some(&expected) => check_file(&folder.join(name), expected),
        None => Ok(()),
    }
}

/// The same of a file by its path; true of what is in no run's folder.
pub fn check_path(path: &Path) -> Result<()> {
    match (path.parent(), path.file_name().and_then(|name| name.to_str())) {
        (Some(folder), Some(name)) => check(folder, name),
        _ => Ok(()),
    }
}

/// What is wrong with the files of the run in `folder`: one error per file that is not as the run left it.
pub fn damages(folder: &Path) -> Result<Vec<Error>> {
    let checksums = Checksums::read(folder)?;
    let checked = checksums.files.iter().map(|(name, &expected)| check_file(&folder.join(name), expected));
    Ok(checked.filter_map(Result::err).collect())
}

fn check_file(path: &Path, expected: u32) -> Result<()> {
    let found = files::checksum(path, None).map_err(|e| Error::unreadable(path, e))?;
    ensure(found == expected, || Error::file(path, "is damaged: it is not as the run left it"))
}
