//! Everything that networks do with numbers: the one door that another device would have to offer.

use multiversion::multiversion;

use super::kernel::{Form, product};
use super::matrix::{Codes, Finish, Matrix, MatrixMut, Start};
use super::optimizer::Adam;
use super::real::Real;

/// The operations.
pub trait Ops<T: Real> {
    /// `y = finish(start + x·w)`.
    fn linear(&mut self, x: Matrix<T>, w: Matrix<T>, start: Start<T>, finish: Finish<T>, y: MatrixMut<T>);

    /// Backward to the data: `dx = finish(start + dy·wᵀ)`.
    fn linear_to_data(
        &mut self,
        dy: Matrix<T>,
        w: Matrix<T>,
        start: Start<T>,
        finish: Finish<T>,
        dx: MatrixMut<T>,
    );

    /// Backward to the weights: `dw = start + xᵀ·dy`.
    fn linear_to_weights(&mut self, x: Matrix<T>, dy: Matrix<T>, start: Start<T>, dw: MatrixMut<T>);

    /// Backward to the biases: `db` += the sum of the rows of `dy`.
    fn add_rows(&mut self, dy: Matrix<T>, db: &mut [T]);

    /// `y[s] = [table[c₀] | table[c₁] | …]` for the symbols c of sample s.
    fn gather(&mut self, table: Matrix<T>, codes: Codes, y: MatrixMut<T>);

    /// Backward of [`Ops::gather`]: `table[c_j] += dy[s][j-th part]`.
    fn scatter(&mut self, dy: Matrix<T>, codes: Codes, table: MatrixMut<T>);

    /// `y[s] += Σ_j table[j·vocabulary + c_j]`, a table for each slot.
    fn gather_sum(&mut self, table: Matrix<T>, codes: Codes, vocabulary: usize, y: MatrixMut<T>);

    /// Backward of [`Ops::gather_sum`]: `table[j·vocabulary + c_j] += dy[s]`.
    fn scatter_sum(&mut self, dy: Matrix<T>, codes: Codes, vocabulary: usize, table: MatrixMut<T>);

    /// One Adam step down the gradient; `step` counts from 1.
    fn adam(
        &mut self,
        rule: &Adam,
        step: u64,
        w: &mut [T],
        gradient: &[T],
        first: &mut [T],
        second: &mut [T],
    );

    /// `y = a·x + b·y`.
    fn blend(&mut self, a: T, x: &[T], b: T, y: &mut [T]);
}

/// The operations on one thread of the CPU.
#[derive(Debug, Clone, Default)]
pub struct Cpu<T> {
    pub(super) scratch: Vec<T>,
}

impl<T: Real> Ops<T> for Cpu<T> {
    fn linear(&mut self, x: Matrix<T>, w: Matrix<T>, start: Start<T>, finish: Finish<T>, y: MatrixMut<T>) {
        product(Form::Plain, x, w, start, finish, y, &mut self.scratch);
    }

    fn linear_to_data(
        &mut self,
        dy: Matrix<T>,
        w: Matrix<T>,
        start: Start<T>,
        finish: Finish<T>,
        dx: MatrixMut<T>,
    ) {
        product(Form::RightTransposed, dy, w, start, finish, dx, &mut self.scratch);
    }

    fn linear_to_weights(&mut self, x: Matrix<T>, dy: Matrix<T>, start: Start<T>, dw: MatrixMut<T>) {
        product(Form::LeftTransposed, x, dy, start, Finish::Plain, dw, &mut self.scratch);
    }

    fn add_rows(&mut self, dy: Matrix<T>, db: &mut [T]) {
        add_rows(dy, db);
    }

    fn gather(&mut self, table: Matrix<T>, codes: Codes, mut y: MatrixMut<T>) {
        let width = table.columns;
        for s in 0..y.rows {
            let row = y.row_mut(s);
            for (target, &code) in row.chunks_exact_mut(width).zip(codes.sample(s)) {
                debug_assert!(usize::from(code) < table.rows, "symbol {code} of {}", table.rows);
                target.copy_from_slice(table.row(usize::from(code)));
            }
        }
    }

    fn scatter(&mut self, dy: Matrix<T>, codes: Codes, mut table: MatrixMut<T>) {
        let width = table.columns;
        for s in 0..dy.rows {
            for (part, &code) in dy.row(s).chunks_exact(width).zip(codes.sample(s)) {
                add(table.row_mut(usize::from(code)), part);
            }
        }
    }

    fn gather_sum(&mut self, table: Matrix<T>, codes: Codes, vocabulary: usize, y: MatrixMut<T>) {
        gather_sum(table, codes, vocabulary, y);
    }

    fn scatter_sum(&mut self, dy: Matrix<T>, codes: Codes, vocabulary: usize, table: MatrixMut<T>) {
        scatter_sum(dy, codes, vocabulary, table);
    }

    fn adam(
        &mut self,
        rule: &Adam,
        step: u64,
        w: &mut [T],
        gradient: &[T],
        first: &mut [T],
        second: &mut [T],
    ) {
        let step = step.min(i32::MAX as u64) as i32;
        let [beta1, beta2] = rule.beta;
        // w −= η·m̂/(√v̂ + ε), with the corrections of m̂ and v̂ moved into the constants.
        let root = (1.0 - beta2.powi(step)).sqrt();
        let rate = rule.rate * root / (1.0 - beta1.powi(step));
        let constants = [beta1, 1.0 - beta1, beta2, 1.0 - beta2, rate, rule.epsilon * root].map(T::from_f64);
        adam(constants, w, gradient, first, second);
    }

    fn blend(&mut self, a: T, x: &[T], b: T, y: &mut [T]) {
        blend(a, x, b, y);
    }
}

#[inline(always)]
fn add<T: Real>(target: &mut [T], source: &[T]) {
    for (t, &s) in target.iter_mut().zip(source) {
        *t += s;
    }
}

/// Columns handled together by the sums of rows.
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
fn gather_sum<T: Real>(table: Matrix<T>, codes: Codes, vocabulary: usize, mut y: MatrixMut<T>) {
    for s in 0..y.rows {
        let symbols = codes.sample(s);
        let (strips, rest) = y.row_mut(s).as_chunks_mut::<STRIP>();
        let mut column = 0;
        for strip in strips {
            let mut sum = *strip;
            for (slot, &code) in symbols.iter().enumerate() {
                let row = table.row(slot * vocabulary + usize::from(code));
                let row: &[T; STRIP] = row[column..column + STRIP].try_into().expect("a strip");
                for l in 0..STRIP {
                    sum[l] += row[l];
                }
            }
            *strip = sum;
            column += STRIP;
        }
        if !rest.is_empty() {
            for (slot, &code) in symbols.iter().enumerate() {
                add(rest, &table.row(slot * vocabulary + usize::from(code))[column..]);
            }
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
fn adam<T: Real>(constants: [T; 6], w: &mut [T], gradient: &[T], first: &mut [T], second: &mut [T]) {
    let [beta1, rest1, beta2, rest2, rate, epsilon] = constants;
    let count = w.len();
    let (gradient, first, second) = (&gradient[..count], &mut first[..count], &mut second[..count]);
    for i in 0..count {
        let g = gradient[i];
        let m = beta1 * first[i] + rest1 * g;
        let v = beta2 * second[i] + rest2 * g * g;
        first[i] = m;
        second[i] = v;
        w[i] -= rate * m / (v.sqrt() + epsilon);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl+fma", "x86_64+avx2+fma"))]
fn blend<T: Real>(a: T, x: &[T], b: T, y: &mut [T]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = a * x + b * *y;
    }
}
