//! The whole state of a run on disk.
//!
//! A checkpoint is a safetensors file with every piece of state and, written after it, a manifest with its checksum
//! and with the lengths that the run's tables had at that moment. One without a whole manifest does not exist.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, SafeTensors, View};
use serde::{Deserialize, Serialize};

use crate::durable::{self, little_endian};
use crate::state::{Field, Fields};
use crate::{Error, Result};

/// Checkpoints kept: the newest, and one in case it is damaged.
const KEPT: usize = 2;

/// What is known of a checkpoint without opening it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Iterations done.
    pub iteration: usize,
    /// Seconds spent in the training loop.
    pub elapsed_s: f64,
    /// Length of `metrics.csv` at that moment.
    pub metrics_bytes: u64,
    /// Length of `timings.csv`.
    pub timings_bytes: u64,
    /// Length of the TensorBoard events.
    pub events_bytes: u64,
    /// Checksum (CRC-32C) of `config.toml` and the files it names: a checkpoint belongs to its configuration.
    pub config_crc32c: u32,
    /// Checksum of the state; filled in on writing.
    pub state_crc32c: u32,
}

/// Writes a checkpoint into `folder` and removes those before the last two.
pub fn write(folder: &Path, fields: Fields<'_>, mut manifest: Manifest) -> Result<()> {
    durable::create_dir(folder)?;
    let state = state_path(folder, manifest.iteration);
    let mut checksum = 0;
    durable::replace(&state, |temporary| {
        let tensors = fields.iter().map(|(name, field)| (*name, FieldView::new(field)));
        safetensors::serialize_to_file(tensors, None, temporary).map_err(std::io::Error::other)?;
        durable::readable_by_all(temporary)?;
        checksum = file_checksum(temporary)?;
        Ok(())
    })?;
    manifest.state_crc32c = checksum;
    let path = manifest_path(folder, manifest.iteration);
    let text = serde_json::to_string_pretty(&manifest).map_err(|e| Error::write(&path, e.into()))?;
    durable::replace_text(&path, &text)?;
    for iteration in iterations(folder).into_iter().rev().skip(KEPT) {
        // The manifest first: state without one is nothing. What cannot be removed does no harm.
        let _ = std::fs::remove_file(manifest_path(folder, iteration));
        let _ = std::fs::remove_file(state_path(folder, iteration));
    }
    Ok(())
}

/// Removes every checkpoint but those up to `last` (all, if none), and what a kill may have left half-written: numbers
/// above would be taken for newer ones.
pub fn discard_after(folder: &Path, last: Option<usize>) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        let number =
            path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<usize>().ok());
        if number.is_none_or(|number| last.is_none_or(|last| number > last)) {
            // What cannot be removed is found out by its checksum.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Iterations of the checkpoints in `folder`, ascending, whole or not.
pub fn iterations(folder: &Path) -> Vec<usize> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let number = |path: PathBuf| -> Option<usize> {
        (path.extension()? == "json").then(|| path.file_stem()?.to_str()?.parse().ok())?
    };
    let mut found: Vec<usize> = entries.filter_map(|entry| number(entry.path())).collect();
    found.sort_unstable();
    found
}

/// Reads the manifest of a checkpoint and checks that its state is whole.
pub fn verify(folder: &Path, iteration: usize) -> Result<Manifest> {
    let path = manifest_path(folder, iteration);
    let manifest: Manifest = crate::document::read(&path, &[])?;
    let state = state_path(folder, iteration);
    let checksum = file_checksum(&state).map_err(|e| Error::file(&state, format!("cannot be read: {e}")))?;
    if checksum != manifest.state_crc32c || manifest.iteration != iteration {
        return Err(Error::file(&state, "is damaged: its checksum is not the one in its manifest"));
    }
    Ok(manifest)
}

/// Restores every field from a checkpoint that [`verify`] found whole.
pub fn restore(folder: &Path, iteration: usize, fields: Fields<'_>) -> Result<()> {
    let path = state_path(folder, iteration);
    let bytes = std::fs::read(&path).map_err(|e| Error::file(&path, format!("cannot be read: {e}")))?;
    let unfit = |message: String| Error::file(&path, message);
    let tensors = SafeTensors::deserialize(&bytes).map_err(|e| unfit(format!("is not whole: {e}")))?;
    if tensors.len() != fields.len() {
        return Err(unfit(format!(
            "holds {} pieces of state, but this run has {}",
            tensors.len(),
            fields.len()
        )));
    }
    for (name, field) in fields {
        let tensor = tensors.tensor(name).map_err(|e| unfit(format!("{name}: {e}")))?;
        let expected = FieldView::new(&field);
        if tensor.dtype() != expected.dtype() || tensor.shape() != expected.shape() {
            let (found, wanted) = (tensor.shape(), expected.shape());
            return Err(unfit(format!("{name} has shape {found:?}, but this run has {wanted:?}")));
        }
        let words = tensor.data().as_chunks::<8>().0;
        match field {
            Field::Singles(numbers) => {
                let words = tensor.data().as_chunks::<4>().0;
                numbers.iter_mut().zip(words).for_each(|(x, word)| *x = f32::from_le_bytes(*word));
            }
            Field::Numbers(numbers) => {
                numbers.iter_mut().zip(words).for_each(|(x, word)| *x = f64::from_le_bytes(*word));
            }
            Field::Counter(counter) => {
                if let Some(word) = words.first() {
                    *counter = u64::from_le_bytes(*word);
                }
            }
        }
    }
    Ok(())
}

fn state_path(folder: &Path, iteration: usize) -> PathBuf {
    folder.join(format!("{iteration:09}.safetensors"))
}

fn manifest_path(folder: &Path, iteration: usize) -> PathBuf {
    folder.join(format!("{iteration:09}.json"))
}

/// CRC-32C of a file, read in pieces.
fn file_checksum(path: &Path) -> std::io::Result<u32> {
    use std::io::Read;
    let mut file = std::fs::File::open(path)?;
    let (mut piece, mut checksum) = (vec![0; 1 << 16], 0);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok(checksum);
        }
        checksum = crc32c::crc32c_append(checksum, &piece[..read]);
    }
}

/// A field as a tensor.
struct FieldView<'a> {
    data: Cow<'a, [u8]>,
    shape: [usize; 1],
    dtype: Dtype,
}

impl<'a> FieldView<'a> {
    fn new(field: &'a Field<'_>) -> Self {
        match field {
            Field::Numbers(numbers) => {
                FieldView { data: little_endian(numbers), shape: [numbers.len()], dtype: Dtype::F64 }
            }
            Field::Singles(numbers) => {
                FieldView { data: little_endian(numbers), shape: [numbers.len()], dtype: Dtype::F32 }
            }
            Field::Counter(counter) => {
                FieldView { data: Cow::Owned(counter.to_le_bytes().to_vec()), shape: [1], dtype: Dtype::U64 }
            }
        }
    }
}

impl View for FieldView<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.data)
    }

    fn data_len(&self) -> usize {
        self.data.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(iteration: usize) -> Manifest {
        Manifest {
            iteration,
            elapsed_s: 1.5,
            metrics_bytes: 10,
            timings_bytes: 20,
            events_bytes: 30,
            config_crc32c: 7,
            state_crc32c: 0,
        }
    }

    fn write_one(folder: &Path, iteration: usize) {
        let (mut numbers, mut counter) = ([iteration as f64, f64::MIN_POSITIVE], iteration as u64);
        let fields = vec![("a", Field::Numbers(&mut numbers)), ("b", Field::Counter(&mut counter))];
        write(folder, fields, manifest(iteration)).unwrap();
    }

    #[test]
    fn what_is_written_is_restored_and_two_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        for iteration in [3, 10, 200] {
            write_one(folder.path(), iteration);
        }
        assert_eq!(iterations(folder.path()), [10, 200]);
        let found = verify(folder.path(), 200).unwrap();
        assert_eq!(Manifest { state_crc32c: 0, ..found }, manifest(200));
        let (mut numbers, mut counter) = ([0.0; 2], 0);
        let fields = vec![("a", Field::Numbers(&mut numbers)), ("b", Field::Counter(&mut counter))];
        restore(folder.path(), 10, fields).unwrap();
        assert_eq!((numbers, counter), ([10.0, f64::MIN_POSITIVE], 10));
        let mut short = [0.0; 1];
        let fields = vec![("a", Field::Numbers(&mut short)), ("b", Field::Counter(&mut counter))];
        let message = restore(folder.path(), 10, fields).unwrap_err().to_string();
        assert!(message.contains("a has shape [2], but this run has [1]"), "{message}");
    }

    #[test]
    fn damage_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        write_one(folder.path(), 5);
        let path = state_path(folder.path(), 5);
        let whole = std::fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() - 3] ^= 1;
        for broken in [&whole[..whole.len() - 1], &flipped, &[]] {
            std::fs::write(&path, broken).unwrap();
            assert!(verify(folder.path(), 5).unwrap_err().to_string().contains("damaged"));
        }
        std::fs::remove_file(&path).unwrap();
        assert!(verify(folder.path(), 5).unwrap_err().to_string().contains("cannot be read"));
    }
}
