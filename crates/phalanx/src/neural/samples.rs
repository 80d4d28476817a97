//! Samples that neural networks read, and which of them each gradient step uses.

use super::pass::Batch;
use crate::base::stream::Sequence;

/// Passes over samples in minibatches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Minibatches {
    /// Passes over all samples.
    pub passes: usize,
    /// Samples per gradient step.
    pub size: usize,
}

impl Minibatches {
    /// Gradient steps over so many samples.
    pub fn steps(&self, samples: usize) -> u64 {
        (self.passes * samples.div_ceil(self.size)) as u64
    }

    /// Calls `each` with the number of every gradient step (from 1) and its samples, in the `order` of
    /// [`shuffle`]. `None` stands for all samples, in every pass, where there is no order.
    pub fn each(&self, samples: usize, order: &[u32], mut each: impl FnMut(u64, Option<&[u32]>)) {
        if order.is_empty() {
            (1..=self.passes as u64).for_each(|number| each(number, None));
            return;
        }
        let passes = order.chunks_exact(samples).flat_map(|pass| pass.chunks(self.size));
        passes.zip(1..).for_each(|(members, number)| each(number, Some(members)));
    }
}

/// The numbers 0, …, `count` − 1 in a fresh order for every pass.
pub fn shuffle(passes: usize, count: usize, sequence: &mut Sequence, order: &mut Vec<u32>) {
    order.clear();
    for _ in 0..passes {
        let first = order.len();
        order.extend(0..count as u32);
        // Fisher and Yates.
        for k in (1..count).rev() {
            let other = (u64::from(sequence.next_u32()) * (k as u64 + 1)) >> 32;
            order.swap(first + k, first + other as usize);
        }
    }
}

/// Inputs of many samples, ready for a neural network.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::stream::{Place, Purpose, Stream};

    #[test]
    fn every_pass_sees_every_sample_once() {
        let minibatches = Minibatches { passes: 2, size: 3 };
        let place = Place { purpose: Purpose::UpdateOrder, iteration: 0, trajectory: 0 };
        let mut order = Vec::new();
        shuffle(2, 7, &mut Stream::new(1).sequence(place, 0), &mut order);
        let mut seen = Vec::new();
        minibatches.each(7, &order, |number, part| seen.push((number, part.unwrap_or_default().to_vec())));
        assert_eq!(
            seen.iter().map(|(number, part)| (*number, part.len())).collect::<Vec<_>>(),
            [(1, 3), (2, 3), (3, 1), (4, 3), (5, 3), (6, 1)]
        );
        assert_eq!(minibatches.steps(7), 6);
        for pass in seen.chunks(3) {
            let mut all: Vec<u32> = pass.iter().flat_map(|(_, part)| part.clone()).collect();
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3, 4, 5, 6]);
        }
    }
}
