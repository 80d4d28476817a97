//! Rows of unequal length in one block of memory: the layout of everything kept per agent.

use std::ops::Range;
use std::sync::Arc;

/// `rows` slices of `T`, contiguous in row order (compressed sparse rows).
#[derive(Debug, PartialEq)]
pub struct Ragged<T> {
    data: Vec<T>,
    /// `offsets[i]..offsets[i + 1]` is row i; one entry more than there are rows. Shared by all of the same
    /// shape.
    offsets: Arc<Vec<usize>>,
}

/// By hand, so that `clone_from` writes into the memory that is there.
impl<T: Clone> Clone for Ragged<T> {
    fn clone(&self) -> Self {
        Ragged { data: self.data.clone(), offsets: self.offsets.clone() }
    }

    fn clone_from(&mut self, source: &Self) {
        self.data.clone_from(&source.data);
        self.offsets.clone_from(&source.offsets);
    }
}

impl<T> Default for Ragged<T> {
    fn default() -> Self {
        Ragged::with_capacity(0)
    }
}

impl<T> Ragged<T> {
    /// No rows, with room for `rows` of them.
    pub fn with_capacity(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Ragged { data: Vec::new(), offsets: offsets.into() }
    }

    /// Collects rows in order.
    pub fn from_rows<R: IntoIterator<Item = T>>(rows: impl IntoIterator<Item = R>) -> Self {
        let (mut data, mut offsets) = (Vec::new(), vec![0]);
        for row in rows {
            data.extend(row);
            offsets.push(data.len());
        }
        data.shrink_to_fit();
        offsets.shrink_to_fit();
        Ragged { data, offsets: offsets.into() }
    }

    /// Appends a row.
    pub fn push_row(&mut self, row: impl IntoIterator<Item = T>) {
        self.data.extend(row);
        Arc::make_mut(&mut self.offsets).push(self.data.len());
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Row `i`.
    #[inline]
    pub fn row(&self, i: usize) -> &[T] {
        &self.data[self.offsets[i]..self.offsets[i + 1]]
    }

    /// Row `i`, to be changed.
    #[inline]
    pub fn row_mut(&mut self, i: usize) -> &mut [T] {
        &mut self.data[self.offsets[i]..self.offsets[i + 1]]
    }

    /// Where each row starts in [`Ragged::data`], and where the last one ends.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// All rows, one after the other.
    pub fn iter(&self) -> impl Iterator<Item = &[T]> {
        self.offsets.windows(2).map(|w| &self.data[w[0]..w[1]])
    }

    /// All entries in row order.
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// All entries in row order, to be changed.
    pub fn data_mut(&mut self) -> &mut [T] {
        &mut self.data
    }

    /// Disjoint mutable views of consecutive row ranges, for work split by agent.
    pub fn split_rows_mut(&mut self, ranges: &[Range<usize>]) -> Vec<RowsMut<'_, T>> {
        let mut views = Vec::with_capacity(ranges.len());
        let mut rest: &mut [T] = &mut self.data;
        let mut consumed = 0;
        for range in ranges {
            let (start, end) = (self.offsets[range.start], self.offsets[range.end]);
            let (_, tail) = rest.split_at_mut(start - consumed);
            let (block, tail) = tail.split_at_mut(end - start);
            views.push(RowsMut {
                data: block,
                offsets: &self.offsets[range.start..=range.end],
                first: range.start,
            });
            rest = tail;
            consumed = end;
        }
        views
    }
}

impl<T: Clone + Default> Ragged<T> {
    /// Rows of the given lengths, filled with the default value.
    pub fn zeros(lengths: impl IntoIterator<Item = usize>) -> Self {
        let mut offsets = vec![0];
        let mut total = 0;
        for length in lengths {
            total += length;
            offsets.push(total);
        }
        offsets.shrink_to_fit();
        Ragged { data: vec![T::default(); total], offsets: offsets.into() }
    }

    /// Rows of the same lengths as in `other`, filled with the default value.
    pub fn zeros_like<U>(other: &Ragged<U>) -> Self {
        Ragged { data: vec![T::default(); other.data.len()], offsets: other.offsets.clone() }
    }
}

/// A run of consecutive rows of a [`Ragged`], still addressed by their row numbers there.
#[derive(Debug)]
pub struct RowsMut<'a, T> {
    data: &'a mut [T],
    offsets: &'a [usize],
    first: usize,
}

impl<T> RowsMut<'_, T> {
    /// Row `i` of the whole.
    #[inline]
    pub fn row_mut(&mut self, i: usize) -> &mut [T] {
        let k = i - self.first;
        &mut self.data[self.offsets[k] - self.offsets[0]..self.offsets[k + 1] - self.offsets[0]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_lengths_and_numbers_when_split() {
        let mut ragged = Ragged::from_rows([vec![1, 2], vec![], vec![3], vec![4, 5, 6]]);
        assert_eq!(ragged.rows(), 4);
        let mut blocks = ragged.split_rows_mut(&[0..2, 2..4]);
        blocks[1].row_mut(3)[1] = 50;
        blocks[0].row_mut(0)[0] = 10;
        assert!(blocks[0].row_mut(1).is_empty());
        assert_eq!(ragged.iter().collect::<Vec<_>>(), [&[10, 2][..], &[], &[3], &[4, 50, 6]]);
    }
}
