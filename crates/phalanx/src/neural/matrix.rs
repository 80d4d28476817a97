//! Views of numbers that an operation reads and writes.

/// A row-major matrix somewhere in a slice: row r begins at `r · stride`.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a, T> {
    /// The numbers, from the first element on.
    pub data: &'a [T],
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Distance from one row to the next, at least `columns`.
    pub stride: usize,
}

/// A [`Matrix`] to write to.
#[derive(Debug)]
pub struct MatrixMut<'a, T> {
    /// The numbers, from the first element on.
    pub data: &'a mut [T],
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Distance from one row to the next, at least `columns`.
    pub stride: usize,
}

/// What a product is added to.
#[derive(Debug, Clone, Copy)]
pub enum Start<'a, T> {
    /// Nothing.
    Zero,
    /// A bias for each column.
    Bias(&'a [T]),
    /// What the result holds already.
    Result,
}

/// What becomes of a product before it is stored.
#[derive(Debug, Clone, Copy)]
pub enum Finish<'a, T> {
    /// Nothing.
    Plain,
    /// ReLU: negative numbers become 0. A NaN stays one, so that it can be found in the outputs.
    Relu,
    /// Backward through a ReLU: 0 wherever this matrix, the ReLU's result, is not positive.
    Mask(Matrix<'a, T>),
}

/// The bytes of one group of symbols in a batch.
#[derive(Debug, Clone, Copy)]
pub struct Codes<'a> {
    /// Bytes, from the first of the group in the first sample on.
    pub data: &'a [u8],
    /// Symbols of the group in a sample.
    pub slots: usize,
    /// Distance from one sample to the next.
    pub stride: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// A matrix without gaps between its rows.
    pub fn new(data: &'a [T], rows: usize, columns: usize) -> Self {
        debug_assert!(data.len() >= rows * columns);
        Matrix { data, rows, columns, stride: columns }
    }

    /// The columns from `first` on, `columns` of them.
    pub fn columns(self, first: usize, columns: usize) -> Self {
        Matrix { data: self.data.get(first..).unwrap_or(&[]), columns, ..self }
    }

    /// Row `r`.
    #[inline(always)]
    pub fn row(&self, r: usize) -> &'a [T] {
        &self.data[r * self.stride..][..self.columns]
    }
}

impl<'a, T> MatrixMut<'a, T> {
    /// A matrix without gaps between its rows.
    pub fn new(data: &'a mut [T], rows: usize, columns: usize) -> Self {
        debug_assert!(data.len() >= rows * columns);
        MatrixMut { data, rows, columns, stride: columns }
    }

    /// The columns from `first` on, `columns` of them.
    pub fn columns(self, first: usize, columns: usize) -> Self {
        MatrixMut { data: self.data.get_mut(first..).unwrap_or(&mut []), columns, ..self }
    }

    /// Row `r`.
    #[inline(always)]
    pub fn row(&self, r: usize) -> &[T] {
        &self.data[r * self.stride..][..self.columns]
    }

    /// Row `r`.
    #[inline(always)]
    pub fn row_mut(&mut self, r: usize) -> &mut [T] {
        &mut self.data[r * self.stride..][..self.columns]
    }
}

impl<'a> Codes<'a> {
    /// The group's symbols in sample `s`.
    #[inline(always)]
    pub fn sample(&self, s: usize) -> &'a [u8] {
        &self.data[s * self.stride..][..self.slots]
    }
}
