//! Files that are either as they were or as they should be, whatever happens in between.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::files::{self, change};
use crate::{Error, Result};

/// What the name of a file ends in until it is whole.
pub const UNFINISHED: &str = ".tmp";

/// Replaces `path` by what `write` makes of the path of a temporary file beside it: written, made durable,
/// renamed.
pub fn replace(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> Result<()> {
    replace_by_way_of(path, UNFINISHED, write)
}

/// As [`replace`], with the bytes at hand.
pub fn replace_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(path, |temporary| std::fs::write(temporary, bytes))
}

/// As [`replace_bytes`], where several processes may do it at the same time: the last one is right.
pub fn replace_shared(path: &Path, bytes: &[u8]) -> Result<()> {
    let ending = format!(".{}{UNFINISHED}", std::process::id());
    replace_by_way_of(path, &ending, |temporary| std::fs::write(temporary, bytes))
}

/// As [`replace`], with JSON and a line's end.
pub fn replace_json(path: &Path, value: &dyn erased_serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Error::write(path, e.into()))?;
    replace_bytes(path, format!("{text}\n").as_bytes())
}

fn replace_by_way_of(path: &Path, ending: &str, write: impl FnOnce(&Path) -> io::Result<()>) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(ending);
    let temporary = path.with_file_name(name);
    let replaced = written(&temporary, write)
        .and_then(|()| File::open(&temporary)?.sync_all())
        .and_then(|()| change())
        .and_then(|_| std::fs::rename(&temporary, path))
        .and_then(|()| sync_folder(path));
    replaced.map_err(|e| {
        // Half a file is of no use to anybody; that it cannot be removed changes nothing.
        let _ = remove(&temporary);
        Error::write(path, e)
    })
}

fn written(temporary: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let is_torn = change()?;
    write(temporary)?;
    if is_torn {
        let file = File::options().write(true).open(temporary)?;
        file.set_len(file.metadata()?.len() / 2)?;
        change()?;
    }
    Ok(())
}

/// Makes a folder, if it is not there, in one that is.
pub fn create_dir(path: &Path) -> Result<()> {
    let made = change().and_then(|_| match std::fs::create_dir(path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => sync_folder(path),
    });
    made.map_err(|e| Error::write(path, e))
}

/// Makes a folder and those that it is in, where they are not there.
pub fn create_dirs(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    change()?;
    std::fs::create_dir_all(path)
}

/// Removes a file.
pub fn remove(path: &Path) -> io::Result<()> {
    change()?;
    std::fs::remove_file(path)
}

/// Opens a file for what the operating system knows of it, such as a lock; it is made if it is not there.
pub fn open_marker(path: &Path) -> io::Result<File> {
    if !path.exists() {
        change()?;
    }
    File::options().write(true).create(true).truncate(false).open(path)
}

/// A rename is durable once the folder is.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => File::open(parent)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

/// A file that grows at the end: what is pushed is in memory until it is committed.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    pending: Vec<u8>,
    written: Extent,
}

/// The beginning of a file: how long it is, and its CRC-32C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// In bytes.
    pub length: u64,
    /// CRC-32C of them.
    pub crc32c: u32,
}

/// Memory for pending bytes; more is written (but not yet made durable) as it comes.
const PENDING: usize = 1 << 18;

impl Log {
    /// A new file that begins with `start`.
    pub fn create(path: PathBuf, start: &[u8]) -> Result<Self> {
        let file = change().and_then(|_| File::create(&path)).map_err(|e| Error::write(&path, e))?;
        sync_folder(&path).map_err(|e| Error::write(&path, e))?;
        let mut log = Log { path, file, pending: Vec::with_capacity(PENDING), written: Extent::default() };
        log.push(start)?;
        Ok(log)
    }

    /// An existing file, cut back to `length` bytes.
    pub fn reopen(path: PathBuf, length: u64) -> Result<Self> {
        let opened = files::checksum(&path, Some(length)).and_then(|crc32c| {
            let file = File::options().append(true).open(&path)?;
            change()?;
            file.set_len(length)?;
            Ok((file, Extent { length, crc32c }))
        });
        let (file, written) = opened.map_err(|e| Error::write(&path, e))?;
        Ok(Log { path, file, pending: Vec::with_capacity(PENDING), written })
    }

    /// Whether the file is still the one under its name: folders get moved, removed and made again.
    pub fn is_in_place(&self) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
            let (open, named) = (self.file.metadata().map(identity), self.path.metadata().map(identity));
            matches!((open, named), (Ok(open), Ok(named)) if open == named)
        }
        #[cfg(not(unix))]
        self.path.exists()
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= PENDING { self.write_pending() } else { Ok(()) }
    }

    /// Adds a line.
    pub fn push_line(&mut self, line: std::fmt::Arguments<'_>) -> Result<()> {
        // Writing to memory cannot fail.
        let _ = writeln!(self.pending, "{line}");
        self.push(&[])
    }

    /// Hands everything to the operating system.
    pub fn write_pending(&mut self) -> Result<()> {
        let written = match change() {
            Ok(false) => self.file.write_all(&self.pending),
            // Half of it arrives.
            Ok(true) => {
                self.file.write_all(&self.pending[..self.pending.len() / 2]).and_then(|()| change().map(drop))
            }
            Err(e) => Err(e),
        };
        written.map_err(|e| Error::write(&self.path, e))?;
        let Extent { length, crc32c } = self.written;
        let crc32c = crc32c::crc32c_append(crc32c, &self.pending);
        self.written = Extent { length: length + self.pending.len() as u64, crc32c };
        self.pending.clear();
        Ok(())
    }

    /// Makes everything durable and says what the file is.
    pub fn commit(&mut self) -> Result<Extent> {
        self.write_pending()?;
        self.file.sync_data().map_err(|e| Error::write(&self.path, e))?;
        Ok(self.written)
    }
}

/// The bytes of numbers as files hold them; the very memory where the machine has that order.
pub(crate) fn little_endian<T: bytemuck::Pod>(numbers: &[T]) -> Cow<'_, [u8]> {
    let bytes: &[u8] = bytemuck::cast_slice(numbers);
    if cfg!(target_endian = "little") {
        return Cow::Borrowed(bytes);
    }
    Cow::Owned(bytes.chunks_exact(size_of::<T>()).flat_map(|word| word.iter().rev().copied()).collect())
}

/// The numbers that a file holds as [`little_endian`] bytes.
pub(crate) fn from_little_endian<T: bytemuck::Pod>(bytes: &[u8]) -> impl Iterator<Item = T> {
    bytes.chunks_exact(size_of::<T>()).map(|word| {
        if cfg!(target_endian = "little") {
            return bytemuck::pod_read_unaligned(word);
        }
        bytemuck::pod_read_unaligned(&word.iter().rev().copied().collect::<Vec<u8>>())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_goes_on_where_it_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        let mut log = Log::create(path.clone(), b"header\n").unwrap();
        log.push_line(format_args!("row {}", 1)).unwrap();
        let Extent { length, crc32c } = log.commit().unwrap();
        assert_eq!(crc32c, crc32c::crc32c(b"header\nrow 1\n"));
        log.push_line(format_args!("row {}", 2)).unwrap();
        log.commit().unwrap();
        let mut log = Log::reopen(path.clone(), length).unwrap();
        log.push_line(format_args!("row {}", 3)).unwrap();
        log.commit().unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "header\nrow 1\nrow 3\n");
    }

    #[test]
    fn a_failed_replacement_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("meta.json");
        replace_bytes(&path, b"old").unwrap();
        let failed = replace(&path, |temporary| {
            std::fs::write(temporary, "half")?;
            Err(std::io::Error::other("disk full"))
        });
        assert!(failed.unwrap_err().to_string().contains("disk full"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }
}
