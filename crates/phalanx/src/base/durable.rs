//! Files that are either as they were or as they should be, whatever happens in between.

use std::borrow::Cow;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Replaces `path` by what `write` makes of the path of a temporary file beside it: written, made durable,
/// renamed.
pub fn replace(path: &Path, write: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let replaced = write(&temporary)
        .and_then(|()| File::open(&temporary)?.sync_all())
        .and_then(|()| std::fs::rename(&temporary, path))
        .and_then(|()| sync_folder(path));
    replaced.map_err(|e| {
        // Half a file is of no use to anybody; that it cannot be removed changes nothing.
        let _ = std::fs::remove_file(&temporary);
        Error::write(path, e)
    })
}

/// As [`replace`], with text at hand.
pub fn replace_text(path: &Path, text: &str) -> Result<()> {
    replace(path, |temporary| std::fs::write(temporary, text))
}

/// As [`replace`], with JSON and a line's end.
pub fn replace_json(path: &Path, value: &dyn erased_serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Error::write(path, e.into()))?;
    replace_text(path, &format!("{text}\n"))
}

/// Makes a folder, if it is not there, in one that is.
pub fn create_dir(path: &Path) -> Result<()> {
    match std::fs::create_dir(path) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => Err(Error::write(path, e)),
        _ => sync_folder(path).map_err(|e| Error::write(path, e)),
    }
}

/// A rename is durable once the folder is.
fn sync_folder(path: &Path) -> std::io::Result<()> {
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
    length: u64,
}

/// Memory for pending bytes; more is written (but not yet made durable) as it comes.
const PENDING: usize = 1 << 18;

impl Log {
    /// A new file that begins with `start`.
    pub fn create(path: PathBuf, start: &[u8]) -> Result<Self> {
        let file = File::create(&path).map_err(|e| Error::write(&path, e))?;
        sync_folder(&path).map_err(|e| Error::write(&path, e))?;
        let mut log = Log { path, file, pending: Vec::with_capacity(PENDING), length: 0 };
        log.push(start)?;
        Ok(log)
    }

    /// An existing file, cut back to `length` bytes.
    pub fn reopen(path: PathBuf, length: u64) -> Result<Self> {
        let opened = File::options().append(true).open(&path).and_then(|file| {
            file.set_len(length)?;
            Ok(file)
        });
        let file = opened.map_err(|e| Error::write(&path, e))?;
        Ok(Log { path, file, pending: Vec::with_capacity(PENDING), length })
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
        self.file.write_all(&self.pending).map_err(|e| Error::write(&self.path, e))?;
        self.length += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Makes everything durable and says how long the file is.
    pub fn commit(&mut self) -> Result<u64> {
        self.write_pending()?;
        self.file.sync_data().map_err(|e| Error::write(&self.path, e))?;
        Ok(self.length)
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
        let length = log.commit().unwrap();
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
        replace_text(&path, "old").unwrap();
        let failed = replace(&path, |temporary| {
            std::fs::write(temporary, "half")?;
            Err(std::io::Error::other("disk full"))
        });
        assert!(failed.unwrap_err().to_string().contains("disk full"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }
}
