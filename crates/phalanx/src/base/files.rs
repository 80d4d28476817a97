//! Reading files that others may have written, and the point that every change of the file system passes.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::limits::LARGEST_INPUT;
use crate::{Error, Result};

/// The text of a file that a user wrote: a regular one of a size that makes sense.
pub fn read_text(path: &Path) -> Result<String> {
    let length = regular_length(path)?;
    if length > LARGEST_INPUT {
        let message = format!("has {length} bytes; at most {LARGEST_INPUT} are read");
        return Err(Error::file(path, message));
    }
    String::from_utf8(read(path)?).map_err(|_| Error::file(path, "cannot be read: it is not UTF-8 text"))
}

/// The bytes of a regular file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    regular_length(path)?;
    std::fs::read(path).map_err(|e| Error::unreadable(path, e))
}

/// How long a file is. A device has no end and a pipe may never have one: nothing is read from them.
fn regular_length(path: &Path) -> Result<u64> {
    let metadata = path.metadata().map_err(|e| Error::unreadable(path, e))?;
    if metadata.is_dir() {
        return Err(Error::file(path, "cannot be read: it is a folder"));
    }
    if !metadata.is_file() {
        return Err(Error::file(path, "cannot be read: it is not a regular file"));
    }
    Ok(metadata.len())
}

/// CRC-32C of the first bytes of a file, or of all; fails where there are not so many.
pub fn checksum(path: &Path, length: Option<u64>) -> io::Result<u32> {
    let file = File::open(path)?;
    let mut rest = file.take(length.unwrap_or(u64::MAX));
    let (mut piece, mut checksum, mut found) = (vec![0; 1 << 16], 0, 0);
    loop {
        let read = rest.read(&mut piece)?;
        if read == 0 {
            break;
        }
        found += read as u64;
        checksum = crc32c::crc32c_append(checksum, &piece[..read]);
    }
    if length.is_some_and(|length| length != found) {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("there are {found} bytes only")));
    }
    Ok(checksum)
}

/// A change of the file system is about to happen. True if only half of what is written may arrive.
#[cfg(not(debug_assertions))]
pub(super) fn change() -> io::Result<bool> {
    Ok(false)
}

#[cfg(debug_assertions)]
pub(super) use fault::change;

/// Faults for tests, in programs with debug assertions only: one change of the file system does not happen.
/// What stops the program there, or fails there, must leave files that it can go on with.
#[cfg(debug_assertions)]
pub mod fault {
    use std::io;
    use std::sync::Mutex;

    /// How a change goes wrong.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Fault {
        /// It fails; later ones do not.
        Fails,
        /// It does not happen, nor does any later one: to the files this is a kill.
        Dies,
        /// As `Dies`, but half of what is written arrives.
        Tears,
    }

    struct State {
        fault: Option<(usize, Fault)>,
        changes: usize,
    }

    static STATE: Mutex<State> = Mutex::new(State { fault: None, changes: 0 });

    fn state() -> std::sync::MutexGuard<'static, State> {
        STATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Counts changes from 0 again, and lets number `at` go wrong; none if nothing is to.
    pub fn inject(fault: Option<(usize, Fault)>) {
        *state() = State { fault, changes: 0 };
    }

    /// How many changes there were, those that went wrong included.
    pub fn changes() -> usize {
        state().changes
    }

    pub(in crate::base) fn change() -> io::Result<bool> {
        let mut state = state();
        let number = state.changes;
        state.changes += 1;
        let Some((at, fault)) = state.fault else { return Ok(false) };
        let failed = || Err(io::Error::new(io::ErrorKind::StorageFull, "a fault was injected"));
        match fault {
            Fault::Fails if number == at => failed(),
            Fault::Tears if number == at => Ok(true),
            Fault::Dies | Fault::Tears if number >= at => failed(),
            _ => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_regular_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| read_text(path).unwrap_err().to_string();
        assert!(refused(folder.path()).contains("is a folder"));
        assert!(refused(&folder.path().join("x")).contains("No such file"));
        #[cfg(unix)]
        assert!(refused(Path::new("/dev/zero")).contains("not a regular file"));
        let file = folder.path().join("large");
        File::create(&file).unwrap().set_len(LARGEST_INPUT + 1).unwrap();
        assert!(refused(&file).contains("at most 1073741824 are read"));
        std::fs::write(&file, b"\xff").unwrap();
        assert!(refused(&file).contains("not UTF-8"));
    }

    #[test]
    fn checksums_are_of_the_first_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, b"abcdef").unwrap();
        assert_eq!(checksum(&file, None).unwrap(), crc32c::crc32c(b"abcdef"));
        assert_eq!(checksum(&file, Some(4)).unwrap(), crc32c::crc32c(b"abcd"));
        assert!(checksum(&file, Some(7)).is_err());
    }
}
