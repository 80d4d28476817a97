//! Samples that networks read.

use super::pass::Batch;

/// Inputs of many samples, ready for a network.
#[derive(Debug, Default)]
pub struct Inputs {
    /// Number of samples.
    pub size: usize,
    /// `[sample][row][column]`.
    pub rows: Vec<f32>,
    /// `[sample][slot]`.
    pub symbols: Vec<u8>,
    /// A buffer of those who add samples.
    pub(crate) states: Vec<u8>,
}

impl Inputs {
    /// Forgets all samples.
    pub fn clear(&mut self) {
        self.size = 0;
        self.rows.clear();
        self.symbols.clear();
    }

    /// All samples as a batch.
    pub fn batch(&self) -> Batch<'_, f32> {
        Batch { size: self.size, rows: &self.rows, symbols: &self.symbols }
    }

    /// Adds sample `k` of `other`.
    pub fn add_sample(&mut self, other: &Inputs, k: usize) {
        let (rows, symbols) = (other.rows.len() / other.size, other.symbols.len() / other.size);
        self.rows.extend_from_slice(&other.rows[k * rows..(k + 1) * rows]);
        self.symbols.extend_from_slice(&other.symbols[k * symbols..(k + 1) * symbols]);
        self.size += 1;
    }

    /// Some of the samples, copied into `part`; without `members` all of them as they are.
    pub fn select<'a>(&'a self, members: Option<&[u32]>, part: &'a mut Inputs) -> &'a Inputs {
        let Some(members) = members else { return self };
        part.clear();
        members.iter().for_each(|&sample| part.add_sample(self, sample as usize));
        part
    }
}
