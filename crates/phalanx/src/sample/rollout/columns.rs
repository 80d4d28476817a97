//! From rows of a simulation, one per step, to columns, one per agent.

use rayon::prelude::*;

/// Turns the first `chunk[0]` of `chunk[1]` rows `[channel][step][agent]` into the steps from `first` on of
/// columns `[channel][agent][step]`.
pub fn copy_rewards(
    rows: &[f32],
    agents: usize,
    chunk: [usize; 2],
    first: usize,
    steps: usize,
    columns: &mut [f32],
) {
    if columns.is_empty() {
        return;
    }
    let [count, chunk] = chunk;
    for (rows, columns) in rows.chunks_exact(chunk * agents).zip(columns.chunks_exact_mut(agents * steps)) {
        columns.par_chunks_mut(COLUMN_BLOCK * steps).enumerate().for_each(|(block, columns)| {
            for (m, column) in columns.chunks_exact_mut(steps).enumerate() {
                let agent = block * COLUMN_BLOCK + m;
                let out = column[first..first + count].iter_mut();
                out.enumerate().for_each(|(k, out)| *out = rows[k * agents + agent]);
            }
        });
    }
}

/// Agents whose columns are written at a time.
const COLUMN_BLOCK: usize = 4096;

/// Turns rows `[step][agent]` into steps `first..first + chunk` of columns `[agent][step]`.
pub fn copy_columns(
    rows: &[u8],
    agents: usize,
    chunk: usize,
    first: usize,
    steps: usize,
    columns: &mut [u8],
    split: usize,
) {
    let copy = |(block, columns): (usize, &mut [u8])| {
        for (group, columns) in columns.chunks_mut(8 * steps).enumerate() {
            let start = block * split + group * 8;
            let whole = if columns.len() == 8 * steps { chunk / 8 * 8 } else { 0 };
            for k in (0..whole).step_by(8) {
                let mut square = [0; 8];
                for (row, word) in square.iter_mut().enumerate() {
                    *word = u64_at(rows, (k + row) * agents + start);
                }
                transpose_bytes(&mut square);
                for (m, word) in square.into_iter().enumerate() {
                    let at = m * steps + first + k;
                    columns[at..at + 8].copy_from_slice(&word.to_le_bytes());
                }
            }
            for (m, column) in columns.chunks_exact_mut(steps).enumerate() {
                for (k, out) in column[first..first + chunk].iter_mut().enumerate().skip(whole) {
                    *out = rows[k * agents + start + m];
                }
            }
        }
    };
    if split >= agents {
        copy((0, columns));
    } else {
        columns.par_chunks_mut(split * steps).enumerate().for_each(copy);
    }
}

/// Eight bytes from `at` on, the first in the lowest place.
#[inline(always)]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Transposes an 8 × 8 matrix of bytes, one row per word: swaps off-diagonal 4 × 4, then 2 × 2, then single
/// bytes.
#[inline(always)]
fn transpose_bytes(rows: &mut [u64; 8]) {
    for (distance, shift, mask) in
        [(4, 32, 0x0000_0000_ffff_ffff), (2, 16, 0x0000_ffff_0000_ffff), (1, 8, 0x00ff_00ff_00ff_00ff)]
    {
        for upper in 0..8 {
            if upper & distance == 0 {
                let lower = upper | distance;
                let swap = ((rows[upper] >> shift) ^ rows[lower]) & mask;
                rows[lower] ^= swap;
                rows[upper] ^= swap << shift;
            }
        }
    }
}
