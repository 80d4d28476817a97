//! The whole state of a run on disk.
//!
//! A checkpoint is a safetensors file with every piece of state, or one for each process of several, and,
//! written after them, a manifest with their checksums and with the lengths that the run's tables had at that
//! moment. One without a whole manifest does not exist. Rows of state say whose they are, so that other
//! processes, or another number of them, can go on with it.

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytemuck::{Pod, Zeroable};
use safetensors::tensor::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

use crate::base::durable::{self, from_little_endian, little_endian};
use crate::base::error::ensure;
use crate::base::fields::{Field, Fields};
use crate::base::tensor::{self, Numbers};
use crate::base::{files, sealed};
use crate::graph::Graph;
use crate::{Error, Ragged, Result};

/// Checkpoints kept: the newest, and one in case it is damaged.
const KEPT: usize = 2;

/// No run counts further; iterations after it must not overflow.
const MOST_COUNTED: u64 = 1 << 61;

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
    /// Checksums (CRC-32C) of these three; earlier versions did not keep them.
    #[serde(default)]
    pub logs_crc32c: Option<[u32; 3]>,
    /// Checksum (CRC-32C) of `config.toml` and the files it names: a checkpoint belongs to its configuration.
    pub config_crc32c: u32,
    /// The files of state, one for each process.
    pub pieces: Vec<Piece>,
}

impl Manifest {
    /// Lengths of the three logs, and their checksums where they are known.
    pub fn logs(&self) -> [(u64, Option<u32>); 3] {
        let lengths = [self.metrics_bytes, self.timings_bytes, self.events_bytes];
        std::array::from_fn(|k| (lengths[k], self.logs_crc32c.map(|checksums| checksums[k])))
    }
}

/// The keys of manifests that earlier versions wrote.
pub(super) const EARLIER_KEYS: [&str; 7] =
    ["iteration", "elapsed_s", "metrics_bytes", "timings_bytes", "events_bytes", "config_crc32c", "pieces"];

/// One process's file of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[repr(C)]
pub struct Piece {
    /// Its first agent.
    pub first: u32,
    /// Its last agent.
    pub last: u32,
    /// Checksum of the file.
    pub crc32c: u32,
}

/// Writes the state of the agents that `graph` owns, as number `which.0` of `which.1` pieces. They are a
/// checkpoint once [`write_manifest`] has written its manifest.
pub fn write(
    folder: &Path,
    iteration: usize,
    which: (usize, usize),
    fields: &Fields<'_>,
    graph: &Graph,
) -> Result<Piece> {
    durable::create_dir(folder)?;
    let own = graph.owned();
    let ids: Vec<u32> = graph.owned_agents().map(|i| graph.global_id(i)).collect();
    let (first, last) = (ids.first().copied().unwrap_or(0), ids.last().copied().unwrap_or(0));
    let mut tensors: Vec<(String, Numbers<'_>)> = Vec::new();
    for (name, field) in fields {
        let (data, lengths) = match field {
            Field::Numbers(numbers) => (little_endian(numbers), None),
            Field::SingleNumbers(numbers) => (little_endian(numbers), None),
            Field::Counter(counter) => (Cow::Owned(counter.to_le_bytes().to_vec()), None),
            Field::Rows(rows) => own_rows(rows, &own),
            Field::SingleRows(rows) => own_rows(rows, &own),
        };
        tensors.push((name.to_string(), Numbers::list(field.shape().0, data)));
        tensors.extend(lengths.map(|data| (format!("{name}.rows"), Numbers::list(Dtype::U32, data))));
    }
    if (last - first) as usize + 1 != ids.len() {
        tensors.push((AGENTS.into(), Numbers::list(Dtype::U32, little_endian(&ids))));
    }
    let mut crc32c = 0;
    durable::replace(&state_path(folder, iteration, which), |temporary| {
        tensor::write(temporary, tensors, None)?;
        crc32c = files::checksum(temporary, None)?;
        Ok(())
    })?;
    Ok(Piece { first, last, crc32c })
}

/// Numbers of the agents in a file, where they do not follow each other.
const AGENTS: &str = "agents";

/// Writes the manifest of a checkpoint whose pieces are written, and removes those before the last two.
pub fn write_manifest(folder: &Path, manifest: &Manifest) -> Result<()> {
    let path = manifest_path(folder, manifest.iteration);
    sealed::write(&path, manifest)?;
    let all = iterations(folder);
    let (old, kept) = all.split_at(all.len().saturating_sub(KEPT));
    for &iteration in old {
        // The manifest first: state without one is nothing. What cannot be removed does no harm.
        let _ = durable::remove(&manifest_path(folder, iteration));
    }
    let oldest = kept.first().copied().unwrap_or(0);
    remove(folder, |number| number.is_some_and(|number| number < oldest));
    Ok(())
}

/// Removes every checkpoint but those up to `last` (all, if none), and what a kill may have left
/// half-written: numbers above would be taken for newer ones.
pub fn discard_after(folder: &Path, last: Option<usize>) {
    // What cannot be removed is found out by its checksum.
    remove(folder, |number| number.is_none_or(|number| last.is_none_or(|last| number > last)));
}

/// Removes files by the iteration in their names; half-written ones have none.
fn remove(folder: &Path, unwanted: impl Fn(Option<usize>) -> bool) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let whole = name.ends_with(".json") || name.ends_with(".safetensors");
        let number = name.split('.').next().filter(|_| whole).and_then(|number| number.parse().ok());
        if unwanted(number) {
            let _ = durable::remove(&entry.path());
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
    let manifest = sealed::read(&path, &EARLIER_KEYS)?;
    check(manifest, folder, iteration, &|state| files::checksum(state, None))
}

/// Checks that the state of a manifest that stands under the number `iteration` is whole, by the checksums
/// of its files.
pub fn check(
    manifest: Manifest,
    folder: &Path,
    iteration: usize,
    checksum: &dyn Fn(&Path) -> std::io::Result<u32>,
) -> Result<Manifest> {
    for (number, piece) in manifest.pieces.iter().enumerate() {
        let state = state_path(folder, iteration, (number, manifest.pieces.len()));
        let checksum = checksum(&state).map_err(|e| Error::unreadable(&state, e))?;
        let is_whole = checksum == piece.crc32c && manifest.iteration == iteration;
        let damaged = "is damaged: its checksum is not the one in its manifest";
        ensure(is_whole, || Error::file(&state, damaged))?;
    }
    let path = manifest_path(folder, iteration);
    ensure(!manifest.pieces.is_empty(), || Error::file(&path, "names no files of state"))?;
    Ok(manifest)
}

/// Restores the state of the agents that `graph` owns from a checkpoint that [`verify`] found whole.
pub fn restore(folder: &Path, manifest: &Manifest, fields: Fields<'_>, graph: &Graph) -> Result<()> {
    restore_with(&files::read, folder, manifest, fields, graph)
}

/// As [`restore`], with the files that `read` gives.
pub fn restore_with(
    read: &dyn Fn(&Path) -> Result<Vec<u8>>,
    folder: &Path,
    manifest: &Manifest,
    mut fields: Fields<'_>,
    graph: &Graph,
) -> Result<()> {
    let own: Vec<usize> = graph.owned_agents().collect();
    let place = |id: &u32| own.binary_search_by_key(id, |&i| graph.global_id(i)).ok().map(|k| own[k]);
    // Everything is in one file and here: rows need not be those of agents.
    let everything = manifest.pieces.len() == 1 && graph.ids().is_none();
    let (mut restored, all) = (0, graph.total());
    for (number, piece) in manifest.pieces.iter().enumerate() {
        ensure(piece.first <= piece.last && (piece.last as usize) < all, || {
            let Piece { first, last, .. } = piece;
            let message = format!("names agents {first} to {last}, but this run has {all}");
            Error::file(manifest_path(folder, manifest.iteration), message)
        })?;
        let from = own.partition_point(|&i| graph.global_id(i) < piece.first);
        if own.get(from).is_none_or(|&i| graph.global_id(i) > piece.last) {
            continue;
        }
        let path = state_path(folder, manifest.iteration, (number, manifest.pieces.len()));
        let bytes = read(&path)?;
        let found = restore_piece(piece, &bytes, &mut fields, (!everything).then_some(&place));
        restored += found.map_err(|message| Error::file(&path, message))?.unwrap_or(own.len());
    }
    let message = || format!("holds the state of {restored} agents, but this run has {}", own.len());
    ensure(restored == own.len(), || Error::file(manifest_path(folder, manifest.iteration), message()))
}

/// Where an agent's rows belong, and nowhere if they are another process's.
type PlaceOfAgent<'a> = &'a dyn Fn(&u32) -> Option<usize>;

/// Restores what a file holds; says for how many agents. Without `place` all rows are as they are here.
fn restore_piece(
    piece: &Piece,
    bytes: &[u8],
    fields: &mut Fields<'_>,
    place: Option<PlaceOfAgent<'_>>,
) -> std::result::Result<Option<usize>, String> {
    let tensors = SafeTensors::deserialize(bytes).map_err(|e| format!("is not whole: {e}"))?;
    let ids: Option<Vec<u32>> =
        tensors.tensor(AGENTS).ok().map(|tensor| from_little_endian(tensor.data()).collect());
    let is_rows = |field: &Field<'_>| matches!(field, Field::Rows(_) | Field::SingleRows(_));
    let expected: usize = fields.iter().map(|(_, field)| 1 + usize::from(is_rows(field))).sum();
    let found = tensors.len() - usize::from(ids.is_some());
    ensure(found == expected, || format!("holds {found} pieces of state, but this run has {expected}"))?;
    let ids = ids.unwrap_or_else(|| (piece.first..=piece.last).collect());
    let places: Option<Vec<_>> = place.map(|place| ids.iter().map(place).collect());
    for (name, field) in fields.iter_mut() {
        let tensor = |name: &str, dtype: Dtype| {
            let tensor = tensors.tensor(name).map_err(|e| format!("{name}: {e}"))?;
            let found = tensor.dtype();
            ensure(found == dtype, || format!("{name} is {found:?}, but this run has {dtype:?}"))?;
            Ok::<_, String>(tensor.data())
        };
        let lengths = || tensor(&format!("{name}.rows"), Dtype::U32);
        let (dtype, wanted) = field.shape();
        let data = tensor(name, dtype)?;
        let fits = match field {
            Field::Numbers(numbers) => fill_all(numbers, data),
            Field::SingleNumbers(numbers) => fill_all(numbers, data),
            Field::Counter(counter) if data.len() == size_of_val(*counter) => {
                from_little_endian(data).for_each(|number| **counter = number);
                let count = **counter;
                ensure(count <= MOST_COUNTED, || format!("{name} is {count}, more than a run can count"))?;
                true
            }
            Field::Counter(_) => false,
            Field::Rows(rows) => fill(rows, places.as_deref(), lengths()?, data),
            Field::SingleRows(rows) => fill(rows, places.as_deref(), lengths()?, data),
        };
        let found = data.len() * 8 / dtype.bitsize();
        ensure(fits, || format!("{name} has shape [{found}], but this run has [{wanted}]"))?;
    }
    Ok(places.map(|places| places.iter().flatten().count()))
}

/// Writes numbers over those that are there. False if they are not as many.
fn fill_all<T: Pod>(numbers: &mut [T], data: &[u8]) -> bool {
    let fits = data.len() == size_of_val(numbers);
    if fits {
        numbers.iter_mut().zip(from_little_endian(data)).for_each(|(x, number)| *x = number);
    }
    fits
}

/// Writes rows of the given lengths to where they belong. False if one does not fit there.
fn fill<T: Pod>(
    rows: &mut Ragged<T>,
    places: Option<&[Option<usize>]>,
    lengths: &[u8],
    mut data: &[u8],
) -> bool {
    let lengths: Vec<usize> = from_little_endian::<u32>(lengths).map(|length| length as usize).collect();
    let has_all = lengths.len() == places.map_or(rows.rows(), <[_]>::len);
    if !has_all || lengths.iter().sum::<usize>() * size_of::<T>() != data.len() {
        return false;
    }
    for (k, &length) in lengths.iter().enumerate() {
        let (row, rest) = data.split_at(length * size_of::<T>());
        data = rest;
        match places.map_or(Some(k), |places| places[k]) {
            None => {}
            Some(i) if rows.row(i).len() != length => return false,
            Some(i) => {
                rows.row_mut(i).iter_mut().zip(from_little_endian(row)).for_each(|(x, number)| *x = number)
            }
        }
    }
    true
}

/// The rows of some agents, one after the other (the very memory where they follow each other), and their
/// lengths.
fn own_rows<'a, T: Pod>(rows: &'a Ragged<T>, own: &[Range<usize>]) -> (Cow<'a, [u8]>, Option<Cow<'a, [u8]>>) {
    let all = 0..rows.rows();
    let runs = match own {
        // All there are, which need not be those of agents.
        [run] if run.start == 0 && run.end >= rows.rows() => std::slice::from_ref(&all),
        runs => runs,
    };
    let part =
        |run: &Range<usize>| little_endian(&rows.data()[rows.offsets()[run.start]..rows.offsets()[run.end]]);
    let data = match runs {
        [run] => part(run),
        runs => Cow::Owned(runs.iter().map(part).collect::<Vec<_>>().concat()),
    };
    let lengths = runs.iter().cloned().flatten().flat_map(|i| (rows.row(i).len() as u32).to_le_bytes());
    (data, Some(lengths.collect()))
}

fn state_path(folder: &Path, iteration: usize, (number, count): (usize, usize)) -> PathBuf {
    if count == 1 {
        return folder.join(format!("{iteration:09}.safetensors"));
    }
    folder.join(format!("{iteration:09}.{number}-of-{count}.safetensors"))
}

fn manifest_path(folder: &Path, iteration: usize) -> PathBuf {
    folder.join(format!("{iteration:09}.json"))
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
            logs_crc32c: Some([1, 2, 3]),
            config_crc32c: 7,
            pieces: Vec::new(),
        }
    }

    fn write_one(folder: &Path, iteration: usize) {
        let (mut numbers, mut counter) = ([iteration as f64, f64::MIN_POSITIVE], iteration as u64);
        let fields = vec![("a", Field::Numbers(&mut numbers)), ("b", Field::Counter(&mut counter))];
        let piece = write(folder, iteration, (0, 1), &fields, &Graph::line(3).unwrap()).unwrap();
        write_manifest(folder, &Manifest { pieces: vec![piece], ..manifest(iteration) }).unwrap();
    }

    #[test]
    fn what_is_written_is_restored_and_two_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let graph = Graph::line(3).unwrap();
        for iteration in [3, 10, 200] {
            write_one(folder.path(), iteration);
        }
        assert_eq!(iterations(folder.path()), [10, 200]);
        assert_eq!(folder.path().read_dir().unwrap().count(), 4);
        let found = verify(folder.path(), 200).unwrap();
        assert_eq!(Manifest { pieces: Vec::new(), ..found }, manifest(200));
        let found = verify(folder.path(), 10).unwrap();
        let (mut numbers, mut counter) = ([0.0; 2], 0);
        let fields = vec![("a", Field::Numbers(&mut numbers)), ("b", Field::Counter(&mut counter))];
        restore(folder.path(), &found, fields, &graph).unwrap();
        assert_eq!((numbers, counter), ([10.0, f64::MIN_POSITIVE], 10));
        let mut short = [0.0; 1];
        let fields = vec![("a", Field::Numbers(&mut short)), ("b", Field::Counter(&mut counter))];
        let message = restore(folder.path(), &found, fields, &graph).unwrap_err().to_string();
        assert!(message.contains("a has shape [2], but this run has [1]"), "{message}");
    }

    /// Agent i has i numbers, in both precisions.
    fn rows(graph: &Graph, filled: bool) -> (Ragged<f64>, Ragged<f32>) {
        let value = |id: u32, k: u32| if filled { f64::from(100 * id + k) } else { -1.0 };
        let row = |i: usize| (0..graph.global_id(i)).map(move |k| value(graph.global_id(i), k));
        let doubles = Ragged::from_rows((0..graph.agents()).map(row));
        let singles = Ragged::from_rows((0..graph.agents()).map(|i| row(i).map(|x| x as f32)));
        (doubles, singles)
    }

    #[test]
    fn any_number_of_processes_goes_on_with_what_others_wrote() {
        let graph = Graph::random_geometric(40, 0.25, 5).unwrap();
        let parts = |count: usize| -> Vec<Graph> {
            let partition = crate::graph::Partition::new(&graph, count).unwrap();
            let part = |process: usize| {
                let share = partition.part(&graph, process, 1, |i| vec![i as u32]);
                graph.part(share.ids, |id| partition.owner(id) == process)
            };
            if count == 1 { vec![graph.clone()] } else { (0..count).map(part).collect() }
        };
        for (before, after) in [(1, 1), (1, 3), (3, 1), (2, 4), (4, 3)] {
            let folder = tempfile::tempdir().unwrap();
            let mut pieces = Vec::new();
            for (number, part) in parts(before).iter().enumerate() {
                let (mut doubles, mut singles) = rows(part, true);
                let mut counter = 9;
                let fields = vec![
                    ("a", Field::Rows(&mut doubles)),
                    ("b", Field::SingleRows(&mut singles)),
                    ("c", Field::Counter(&mut counter)),
                ];
                pieces.push(write(folder.path(), 7, (number, before), &fields, part).unwrap());
            }
            write_manifest(folder.path(), &Manifest { pieces, ..manifest(7) }).unwrap();
            let found = verify(folder.path(), 7).unwrap();
            for part in parts(after) {
                let (mut doubles, mut singles) = rows(&part, false);
                let mut counter = 0;
                let fields = vec![
                    ("a", Field::Rows(&mut doubles)),
                    ("b", Field::SingleRows(&mut singles)),
                    ("c", Field::Counter(&mut counter)),
                ];
                restore(folder.path(), &found, fields, &part).unwrap();
                let (expected, expected_singles) = rows(&part, true);
                assert_eq!(counter, 9);
                for i in part.owned_agents() {
                    assert_eq!(doubles.row(i), expected.row(i), "{before} {after}");
                    assert_eq!(singles.row(i), expected_singles.row(i));
                }
            }
        }
    }

    #[test]
    fn damage_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        write_one(folder.path(), 5);
        let path = state_path(folder.path(), 5, (0, 1));
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
    #[test]
    fn a_count_beyond_all_runs_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let graph = Graph::line(3).unwrap();
        let mut counter = u64::MAX;
        let fields = vec![("b", Field::Counter(&mut counter))];
        let piece = write(folder.path(), 5, (0, 1), &fields, &graph).unwrap();
        let found = Manifest { pieces: vec![piece], ..manifest(5) };
        let fields = vec![("b", Field::Counter(&mut counter))];
        let message = restore(folder.path(), &found, fields, &graph).unwrap_err().to_string();
        assert!(message.contains("b is 18446744073709551615, more than a run can count"), "{message}");
    }
}
