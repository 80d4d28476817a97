//! Numbers per agent on the card: entry after entry, so that neighbouring threads read neighbouring numbers.

use phalanx_gpu::Memory;
use rayon::prelude::*;

use super::device::failure;
use crate::base::fields::Field;
use crate::{Ragged, Result};

/// How the rows of agents lie on the card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowsForm {
    /// Entry e of agent i at e·n + i. Rows may be blocks of unequal length one after the other: block b of a
    /// row begins at entry b·`stride`; row i has as many blocks as `blocks` says, or one.
    ByEntry {
        /// Entries of the longest block.
        stride: usize,
        /// Blocks of every row; none if each has one.
        blocks: Option<Vec<u32>>,
    },
    /// Row after row, as in a [`Ragged`].
    RowAfterRow,
}

/// A field of the algorithm's state that lives on the card.
#[derive(Debug, Clone)]
pub struct Mirror {
    /// Its name among [`Algorithm::fields`](crate::algorithm::Algorithm::fields).
    pub field: &'static str,
    /// The array.
    pub array: &'static str,
    /// Where its numbers are.
    pub form: RowsForm,
}

impl Mirror {
    /// One block per agent, `stride` entries at most.
    pub fn by_entry(field: &'static str, array: &'static str, stride: usize) -> Self {
        Mirror { field, array, form: RowsForm::ByEntry { stride, blocks: None } }
    }

    /// Row after row.
    pub fn row_after_row(field: &'static str, array: &'static str) -> Self {
        Mirror { field, array, form: RowsForm::RowAfterRow }
    }

    /// Whether it is 0 before anything is learnt: moments, tables and averages are, and θ may be.
    pub fn begins_at_zero(&self, field: &Field<'_>) -> bool {
        match (self.field, field) {
            ("theta" | "dual.mu" | "dual.integral", Field::Rows(rows)) => {
                rows.data().par_iter().all(|x| x.to_bits() == 0)
            }
            (_, Field::SingleRows(rows)) => rows.data().par_iter().all(|x| x.to_bits() == 0),
            _ => true,
        }
    }

    /// Copies the host's numbers to the card.
    pub fn upload(&self, field: &Field<'_>, memory: &Memory) -> Result<()> {
        match (field, &self.form) {
            (Field::Rows(rows), RowsForm::ByEntry { stride, blocks }) => {
                upload(rows, *stride, blocks.as_deref(), memory)
            }
            (Field::Rows(rows), RowsForm::RowAfterRow) => memory.write(0, rows.data()).map_err(failure),
            (Field::SingleRows(rows), _) => memory.write(0, rows.data()).map_err(failure),
            _ => Ok(()),
        }
    }

    /// Copies the card's numbers to the host.
    pub fn download(&self, field: &mut Field<'_>, memory: &Memory) -> Result<()> {
        match (field, &self.form) {
            (Field::Rows(rows), RowsForm::ByEntry { stride, blocks }) => {
                download(rows, *stride, blocks.as_deref(), memory)
            }
            (Field::Rows(rows), RowsForm::RowAfterRow) => memory.read(0, rows.data_mut()).map_err(failure),
            (Field::SingleRows(rows), _) => memory.read(0, rows.data_mut()).map_err(failure),
            _ => Ok(()),
        }
    }
}

/// Agents that are copied at a time.
const CHUNK: usize = 1 << 16;

/// The entry on the card of number `e` of a row of so many blocks.
fn entry(e: usize, length: usize, blocks: usize, stride: usize) -> usize {
    let size = length / blocks;
    e / size * stride + e % size
}

fn blocks_of(blocks: Option<&[u32]>, agent: usize) -> usize {
    blocks.map_or(1, |blocks| blocks[agent] as usize)
}

fn entries_of(rows: &Ragged<f64>, stride: usize, blocks: Option<&[u32]>) -> usize {
    let most = blocks.and_then(|blocks| blocks.iter().max().copied()).unwrap_or(1) as usize;
    if rows.data().is_empty() { 0 } else { most * stride }
}

fn upload(rows: &Ragged<f64>, stride: usize, blocks: Option<&[u32]>, memory: &Memory) -> Result<()> {
    let (agents, entries) = (rows.rows(), entries_of(rows, stride, blocks));
    for first in (0..agents).step_by(CHUNK) {
        let count = CHUNK.min(agents - first);
        let mut turned = vec![0.0; entries * count];
        for m in 0..count {
            let row = rows.row(first + m);
            let blocks = blocks_of(blocks, first + m);
            for (e, &x) in row.iter().enumerate() {
                turned[entry(e, row.len(), blocks, stride) * count + m] = x;
            }
        }
        for (e, numbers) in turned.chunks_exact(count).enumerate() {
            memory.write(e * agents + first, numbers).map_err(failure)?;
        }
    }
    Ok(())
}

fn download(rows: &mut Ragged<f64>, stride: usize, blocks: Option<&[u32]>, memory: &Memory) -> Result<()> {
    let (agents, entries) = (rows.rows(), entries_of(rows, stride, blocks));
    let mut turned = Vec::new();
    for first in (0..agents).step_by(CHUNK) {
        let count = CHUNK.min(agents - first);
        turned.resize(entries * count, 0.0);
        for (e, numbers) in turned.chunks_exact_mut(count).enumerate() {
            memory.read(e * agents + first, numbers).map_err(failure)?;
        }
        let runs: Vec<_> = (first..first + count).step_by(1 << 10).collect();
        let runs: Vec<_> =
            runs.into_iter().map(|start| start..(start + (1 << 10)).min(first + count)).collect();
        let parts = rows.split_rows_mut(&runs);
        let turned = &turned;
        runs.par_iter().zip(parts).for_each(|(run, mut part)| {
            for agent in run.clone() {
                let row = part.row_mut(agent);
                let (length, blocks) = (row.len(), blocks_of(blocks, agent));
                for (e, x) in row.iter_mut().enumerate() {
                    *x = turned[entry(e, length, blocks, stride) * count + (agent - first)];
                }
            }
        });
    }
    Ok(())
}

/// Rows turned entry by entry, `width` of them; what a row lacks is `missing(agent)`.
pub fn by_entry<T: Copy, R: AsRef<[T]>>(
    agents: usize,
    width: usize,
    row: impl Fn(usize) -> R,
    missing: impl Fn(usize) -> T,
) -> Vec<T> {
    if agents == 0 {
        return Vec::new();
    }
    let mut turned: Vec<T> = (0..width * agents).map(|at| missing(at % agents)).collect();
    for agent in 0..agents {
        for (e, &x) in row(agent).as_ref().iter().enumerate() {
            turned[e * agents + agent] = x;
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use phalanx_gpu::Gpu;

    use super::*;

    #[test]
    fn rows_come_back_as_they_went() {
        let Ok(gpu) = Gpu::emulated() else { return eprintln!("skipped: no C compiler") };
        // Blocks of 2, 1 and 3 numbers; row 1 has two blocks.
        let mut rows = Ragged::from_rows([vec![1.0, 2.0], vec![3.0, 4.0], vec![5.0, 6.0, 7.0]]);
        let before = rows.clone();
        let form = RowsForm::ByEntry { stride: 3, blocks: Some(vec![1, 2, 1]) };
        let mirror = Mirror { field: "critic", array: "q", form };
        let memory = gpu.memory(8 * 6 * 3).unwrap();
        mirror.upload(&Field::Rows(&mut rows), &memory).unwrap();
        let mut there = [0.0; 18];
        memory.read(0, &mut there).unwrap();
        assert_eq!((there[0], there[3], there[1], there[9 + 1], there[6 + 2]), (1.0, 2.0, 3.0, 4.0, 7.0));
        rows.data_mut().fill(0.0);
        mirror.download(&mut Field::Rows(&mut rows), &memory).unwrap();
        assert_eq!(rows, before);
    }
}
