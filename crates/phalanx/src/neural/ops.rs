//! What neural networks do with numbers beside products.

use multiversion::multiversion;
use pulp::{Simd, WithSimd};

use super::lanes::Lanes;
use super::matrix::{Codes, Matrix, MatrixMut, Start};
use super::real::Real;

/// `y[s] = [table[c₀] | table[c₁] | …]` for the symbols c of sample s.
pub fn gather<T: Real>(table: Matrix<T>, codes: Codes, mut y: MatrixMut<T>) {
    for s in 0..y.rows {
        for (target, &code) in y.row_mut(s).chunks_exact_mut(table.columns).zip(codes.sample(s)) {
            debug_assert!(usize::from(code) < table.rows, "symbol {code} of {}", table.rows);
            target.copy_from_slice(table.row(usize::from(code)));
        }
    }
}

/// Backward of [`gather`]: `table[c_j] += dy[s][j-th part]`.
pub fn scatter<T: Real>(dy: Matrix<T>, codes: Codes, mut table: MatrixMut<T>) {
    for s in 0..dy.rows {
        for (part, &code) in dy.row(s).chunks_exact(table.columns).zip(codes.sample(s)) {
            add(table.row_mut(usize::from(code)), part);
        }
    }
}

#[inline(always)]
fn add<T: Real>(target: &mut [T], source: &[T]) {
    for (t, &s) in target.iter_mut().zip(source) {
        *t += s;
    }
}

/// `y[s] = start + Σ_j table[j·vocabulary + c_j]`, a table for each slot.
pub struct GatherSum<'a, T> {
    pub table: Matrix<'a, T>,
    pub codes: Codes<'a>,
    pub vocabulary: usize,
    pub start: Start<'a, T>,
    pub y: MatrixMut<'a, T>,
}

impl<T: Lanes> WithSimd for GatherSum<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (lanes, columns) = (T::lanes::<S>(), self.y.columns);
        for s in 0..self.y.rows {
            let mut column = 0;
            while column + 8 * lanes <= columns {
                self.strip::<S, 8>(simd, s, column);
                column += 8 * lanes;
            }
            while column + lanes <= columns {
                self.strip::<S, 1>(simd, s, column);
                column += lanes;
            }
            for column in column..columns {
                let mut sum = match self.start {
                    Start::Zero => T::ZERO,
                    Start::Bias(bias) => bias[column],
                    Start::Result => self.y.row(s)[column],
                };
                for (slot, &code) in self.codes.sample(s).iter().enumerate() {
                    sum += self.table.row(slot * self.vocabulary + usize::from(code))[column];
                }
                self.y.row_mut(s)[column] = sum;
            }
        }
    }
}

impl<T: Lanes> GatherSum<'_, T> {
    /// C vectors of columns of sample `s`, summed up in registers.
    #[inline(always)]
    fn strip<S: Simd, const C: usize>(&mut self, simd: S, s: usize, column: usize) {
        let columns = column..column + C * T::lanes::<S>();
        let target = T::vectors_mut::<S>(&mut self.y.row_mut(s)[columns.clone()]);
        let mut sum = [T::splat(simd, T::ZERO); C];
        match self.start {
            Start::Zero => {}
            Start::Bias(bias) => sum.copy_from_slice(T::vectors::<S>(&bias[columns.clone()])),
            Start::Result => sum.copy_from_slice(target),
        }
        for (slot, &code) in self.codes.sample(s).iter().enumerate() {
            let row = self.table.row(slot * self.vocabulary + usize::from(code));
            let row = T::vectors::<S>(&row[columns.clone()]);
            for c in 0..C {
                sum[c] = T::sum_of(simd, sum[c], row[c]);
            }
        }
        target.copy_from_slice(&sum);
    }
}

/// Columns handled together by the sum of rows.
const STRIP: usize = 32;

/// Backward to the biases: `db` += the sum of the rows of `dy`.
#[multiversion(targets("x86_64+avx512f+avx512vl+fma", "x86_64+avx2+fma"))]
pub fn add_rows<T: Real>(dy: Matrix<T>, db: &mut [T]) {
    let (strips, rest) = db.as_chunks_mut::<STRIP>();
    let mut column = 0;
    for strip in strips {
        let mut sum = *strip;
        for row in dy.data.chunks(dy.stride).take(dy.rows) {
            let row: &[T; STRIP] = row[column..column + STRIP].try_into().expect("a strip");
            for l in 0..STRIP {
                sum[l] += row[l];
            }
        }
        *strip = sum;
        column += STRIP;
    }
    if !rest.is_empty() {
        for row in dy.data.chunks(dy.stride).take(dy.rows) {
            add(rest, &row[column..]);
        }
    }
}

/// Backward of [`GatherSum`]: `table[j·vocabulary + c_j] += dy[s]`.
#[multiversion(targets("x86_64+avx512f+avx512vl+fma", "x86_64+avx2+fma"))]
pub fn scatter_sum<T: Real>(dy: Matrix<T>, codes: Codes, vocabulary: usize, mut table: MatrixMut<T>) {
    for s in 0..dy.rows {
        let source = dy.row(s);
        for (slot, &code) in codes.sample(s).iter().enumerate() {
            add(table.row_mut(slot * vocabulary + usize::from(code)), source);
        }
    }
}
