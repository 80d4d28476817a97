//! Everything that networks do with numbers.

use multiversion::multiversion;
use pulp::{Simd, WithSimd};

use super::kernel::{Form, Product};
use super::matrix::{Codes, Finish, Matrix, MatrixMut, Start};
use super::optimizer::AdamStep;
use super::real::Real;

/// The operations on one thread of the CPU.
#[derive(Debug, Clone, Default)]
pub struct Cpu<T> {
    pub(super) scratch: Vec<T>,
}

impl<T: Real> Cpu<T> {
    /// `y = finish(start + x·w)`.
    pub fn linear(
        &mut self,
        x: Matrix<T>,
        w: Matrix<T>,
        start: Start<T>,
        finish: Finish<T>,
        y: MatrixMut<T>,
    ) {
        Product { left: x, right: w, start, finish, result: y, scratch: &mut self.scratch }
            .compute(Form::Plain);
    }

    /// Backward to the data: `dx = finish(start + dy·wᵀ)`.
    pub fn linear_to_data(
        &mut self,
        dy: Matrix<T>,
        w: Matrix<T>,
        start: Start<T>,
        finish: Finish<T>,
        dx: MatrixMut<T>,
    ) {
        Product { left: dy, right: w, start, finish, result: dx, scratch: &mut self.scratch }
            .compute(Form::RightTransposed);
    }

    /// Backward to the weights: `dw = start + xᵀ·dy`.
    pub fn linear_to_weights(&mut self, x: Matrix<T>, dy: Matrix<T>, start: Start<T>, dw: MatrixMut<T>) {
        let finish = Finish::Plain;
        Product { left: x, right: dy, start, finish, result: dw, scratch: &mut self.scratch }
            .compute(Form::LeftTransposed);
    }

    /// Backward to the biases: `db` += the sum of the rows of `dy`.
    pub fn add_rows(&mut self, dy: Matrix<T>, db: &mut [T]) {
        add_rows(dy, db);
    }

    /// `y[s] = [table[c₀] | table[c₁] | …]` for the symbols c of sample s.
    pub fn gather(&mut self, table: Matrix<T>, codes: Codes, mut y: MatrixMut<T>) {
        let width = table.columns;
        for s in 0..y.rows {
            let row = y.row_mut(s);
            for (target, &code) in row.chunks_exact_mut(width).zip(codes.sample(s)) {
                debug_assert!(usize::from(code) < table.rows, "symbol {code} of {}", table.rows);
                target.copy_from_slice(table.row(usize::from(code)));
            }
        }
    }

    /// Backward of [`Cpu::gather`]: `table[c_j] += dy[s][j-th part]`.
    pub fn scatter(&mut self, dy: Matrix<T>, codes: Codes, mut table: MatrixMut<T>) {
        let width = table.columns;
        for s in 0..dy.rows {
            for (part, &code) in dy.row(s).chunks_exact(width).zip(codes.sample(s)) {
                add(table.row_mut(usize::from(code)), part);
            }
        }
    }

    /// `y[s] = start + Σ_j table[j·vocabulary + c_j]`, a table for each slot.
    pub fn gather_sum(
        &mut self,
        table: Matrix<T>,
        codes: Codes,
        vocabulary: usize,
        start: Start<T>,
        y: MatrixMut<T>,
    ) {
        T::dispatch(GatherSum { table, codes, vocabulary, start, y });
    }

    /// Backward of [`Cpu::gather_sum`]: `table[j·vocabulary + c_j] += dy[s]`.
    pub fn scatter_sum(&mut self, dy: Matrix<T>, codes: Codes, vocabulary: usize, table: MatrixMut<T>) {
        scatter_sum(dy, codes, vocabulary, table);
    }
}

#[inline(always)]
fn add<T: Real>(target: &mut [T], source: &[T]) {
    for (t, &s) in target.iter_mut().zip(source) {
        *t += s;
    }
}

/// See [`Cpu::gather_sum`].
struct GatherSum<'a, T> {
    table: Matrix<'a, T>,
    codes: Codes<'a>,
    vocabulary: usize,
    start: Start<'a, T>,
    y: MatrixMut<'a, T>,
}

impl<T: Real> WithSimd for GatherSum<'_, T> {
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

impl<T: Real> GatherSum<'_, T> {
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

#[multiversion(targets("x86_64+avx512f+avx512vl+fma", "x86_64+avx2+fma"))]
fn add_rows<T: Real>(dy: Matrix<T>, db: &mut [T]) {
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

#[multiversion(targets("x86_64+avx512f+avx512vl+fma", "x86_64+avx2+fma"))]
fn scatter_sum<T: Real>(dy: Matrix<T>, codes: Codes, vocabulary: usize, mut table: MatrixMut<T>) {
    for s in 0..dy.rows {
        let source = dy.row(s);
        for (slot, &code) in codes.sample(s).iter().enumerate() {
            add(table.row_mut(slot * vocabulary + usize::from(code)), source);
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl+fma", "x86_64+avx2+fma"))]
pub(super) fn adam<T: Real>(
    step: AdamStep<T>,
    w: &mut [T],
    gradient: &[T],
    first: &mut [T],
    second: &mut [T],
) {
    let AdamStep { beta, rest, correction, rate, epsilon } = step;
    let count = w.len();
    let (gradient, first, second) = (&gradient[..count], &mut first[..count], &mut second[..count]);
    for i in 0..count {
        let g = gradient[i];
        let m = beta[0] * first[i] + rest[0] * g;
        let v = beta[1] * second[i] + rest[1] * g * g;
        first[i] = m;
        second[i] = v;
        w[i] -= rate * (m * correction[0]) / ((v * correction[1]).sqrt() + epsilon);
    }
}

/// `y = a·x + b·y`.
#[multiversion(targets("x86_64+avx512f+avx512vl+fma", "x86_64+avx2+fma"))]
pub(super) fn blend<T: Real>(a: T, x: &[T], b: T, y: &mut [T]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = a * x + b * *y;
    }
}
