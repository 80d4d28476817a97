//! Dense systems of equations by elimination with partial pivoting, in one order of operations.
//!
//! A row of the system is an equation, followed by its right-hand sides where there are any. For
//! k = 0, 1, …, n − 1:
//!
//! 1. the pivot row is the first of rows k, …, n − 1 with the largest |a_ik|; it changes places with row k;
//! 2. for every row i > k: l = a_ik / a_kk, which takes the place of a_ik, and a_ij ← a_ij − l·a_kj for all
//!    j > k, right-hand sides included; product and difference are rounded each.
//!
//! Then, for k = n − 1, …, 0: x_k = b_k / a_kk, and b_i ← b_i − a_ik·x_k for all i < k.
//!
//! What is done to an entry, and in which order, is all that its bits depend on: here entries wait until
//! eight pivots are known, and other programs may do them at once, or on other processors. Factors of 0 may
//! be left out: as long as all numbers are finite and none is −0 nothing changes.

use std::ops::{Index, IndexMut};

use multiversion::multiversion;

/// Pivots that entries wait for.
const BLOCK: usize = 8;

/// A matrix, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Dense {
    columns: usize,
    numbers: Vec<f64>,
}

impl Dense {
    /// With `entry(i, j)` in row i and column j.
    pub fn from_fn(rows: usize, columns: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let numbers = (0..rows * columns).map(|at| entry(at / columns, at % columns)).collect();
        Dense { columns, numbers }
    }

    /// Row i.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.numbers[i * self.columns..][..self.columns]
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.numbers.len().checked_div(self.columns).unwrap_or(0)
    }
}

impl Index<(usize, usize)> for Dense {
    type Output = f64;

    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.numbers[i * self.columns..][..self.columns][j]
    }
}

impl IndexMut<(usize, usize)> for Dense {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.numbers[i * self.columns..][..self.columns][j]
    }
}

/// Solves `system`, `unknowns` rows of `width` numbers: equations, then right-hand sides, which the solutions
/// replace.
pub fn solve(system: &mut [f64], unknowns: usize, width: usize) {
    eliminate(system, unknowns, width, |_, _| ());
    for i in (0..unknowns).rev() {
        let (rows, solved) = system.split_at_mut((i + 1) * width);
        let (equation, sides) = rows[i * width..].split_at_mut(unknowns);
        for k in (i + 1..unknowns).rev() {
            let solved = &solved[(k - i - 1) * width + unknowns..][..width - unknowns];
            sides.iter_mut().zip(solved).for_each(|(b, x)| *b -= equation[k] * x);
        }
        sides.iter_mut().for_each(|b| *b /= equation[i]);
    }
}

/// A square matrix after elimination: U on and above the diagonal, the factors l below it.
#[derive(Debug)]
pub struct Lu {
    factors: Dense,
    /// Row k changed places with row `pivots[k]`.
    pivots: Vec<usize>,
}

impl Lu {
    /// Factors a square matrix.
    pub fn new(mut matrix: Dense) -> Self {
        let (size, mut pivots) = (matrix.columns, Vec::with_capacity(matrix.columns));
        eliminate(&mut matrix.numbers, size, size, |_, pivot| pivots.push(pivot));
        Lu { factors: matrix, pivots }
    }

    /// A⁻¹·`rhs`, as [`solve`] would find it.
    pub fn solve(&self, mut rhs: Dense) -> Dense {
        let (size, width) = (self.pivots.len(), rhs.columns);
        for (k, &pivot) in self.pivots.iter().enumerate() {
            swap_rows(&mut rhs.numbers, width, k, pivot);
        }
        for i in 0..size {
            let (done, rest) = rhs.numbers.split_at_mut(i * width);
            for (b, l) in done.chunks_exact(width).zip(self.factors.row(i)) {
                rest[..width].iter_mut().zip(b).for_each(|(x, b)| *x -= l * b);
            }
        }
        for i in (0..size).rev() {
            let (rows, solved) = rhs.numbers.split_at_mut((i + 1) * width);
            let (row, u) = (&mut rows[i * width..], self.factors.row(i));
            for (x, u) in solved.chunks_exact(width).zip(&u[i + 1..]).rev() {
                row.iter_mut().zip(x).for_each(|(b, x)| *b -= u * x);
            }
            row.iter_mut().for_each(|b| *b /= u[i]);
        }
        rhs
    }

    /// Replaces x by A⁻ᵀ·x.
    pub fn solve_transpose(&self, x: &mut [f64]) {
        for k in 0..x.len() {
            let row = self.factors.row(k);
            x[k] /= row[k];
            let factor = x[k];
            x[k + 1..].iter_mut().zip(&row[k + 1..]).for_each(|(x, u)| *x -= factor * u);
        }
        for k in (0..x.len()).rev() {
            let factor = x[k];
            x[..k].iter_mut().zip(self.factors.row(k)).for_each(|(x, l)| *x -= factor * l);
        }
        for (k, &pivot) in self.pivots.iter().enumerate().rev() {
            x.swap(k, pivot);
        }
    }
}

/// Steps 1 and 2; tells `exchanged` of every k and its pivot row.
fn eliminate(system: &mut [f64], unknowns: usize, width: usize, mut exchanged: impl FnMut(usize, usize)) {
    let mut first = 0;
    while first < unknowns {
        let count = BLOCK.min(unknowns - first);
        // Nothing waits for the last block if it is not whole.
        let end = if count == BLOCK { first + BLOCK } else { width };
        for k in first..first + count {
            let pivot = pivot_row(system, unknowns, width, k);
            exchanged(k, pivot);
            swap_rows(system, width, k, pivot);
            eliminate_column(&mut system[k * width..], width, k, end);
        }
        if count == BLOCK {
            eliminate_block(&mut system[first * width..], width, first);
        }
        first += count;
    }
}

fn pivot_row(system: &[f64], unknowns: usize, width: usize, k: usize) -> usize {
    let (mut pivot, mut largest) = (k, system[k * width + k].abs());
    for i in k + 1..unknowns {
        let size = system[i * width + k].abs();
        if size > largest {
            (pivot, largest) = (i, size);
        }
    }
    pivot
}

fn swap_rows(numbers: &mut [f64], width: usize, a: usize, b: usize) {
    if a != b {
        let (above, below) = numbers.split_at_mut(b * width);
        above[a * width..][..width].swap_with_slice(&mut below[..width]);
    }
}

/// Pivot k, whose row `rows` begin with, in the columns before `end`.
fn eliminate_column(rows: &mut [f64], width: usize, k: usize, end: usize) {
    let (pivot, rows) = rows.split_at_mut(width);
    for row in rows.chunks_exact_mut(width) {
        let factor = row[k] / pivot[k];
        row[k] = factor;
        if factor != 0.0 {
            row[k + 1..end].iter_mut().zip(&pivot[k + 1..end]).for_each(|(x, p)| *x -= factor * p);
        }
    }
}

/// The columns behind a block of pivots from `first` on, whose rows `rows` begin with.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
fn eliminate_block(rows: &mut [f64], width: usize, first: usize) {
    let end = first + BLOCK;
    let (pivots, rows) = rows.split_at_mut(BLOCK * width);
    for r in 1..BLOCK {
        let (above, row) = pivots.split_at_mut(r * width);
        for (k, above) in above.chunks_exact(width).enumerate() {
            let factor = row[first + k];
            for (x, p) in row[end..width].iter_mut().zip(&above[end..]) {
                *x -= factor * p;
            }
        }
    }
    let length = width - end;
    let mut pivot_rows = [&[][..]; BLOCK];
    for (slot, row) in pivot_rows.iter_mut().zip(pivots.chunks_exact(width)) {
        *slot = &row[end..];
    }
    let [a, b, c, d, e, f, g, h] = pivot_rows;
    for row in rows.chunks_exact_mut(width) {
        let (before, row) = row.split_at_mut(end);
        let mut l = [0.0; BLOCK];
        l.copy_from_slice(&before[first..]);
        if l == [0.0; BLOCK] {
            continue;
        }
        let (a, b, c, d) = (&a[..length], &b[..length], &c[..length], &d[..length]);
        let (e, f, g, h) = (&e[..length], &f[..length], &g[..length], &h[..length]);
        let row = &mut row[..length];
        for j in 0..length {
            let x = row[j] - l[0] * a[j] - l[1] * b[j] - l[2] * c[j] - l[3] * d[j];
            row[j] = x - l[4] * e[j] - l[5] * f[j] - l[6] * g[j] - l[7] * h[j];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::stream::{Place, Purpose, Stream};

    /// Steps 1 and 2 and substitution as they are written above.
    fn solve_plainly(system: &mut [f64], n: usize, width: usize) {
        for k in 0..n {
            let pivot = pivot_row(system, n, width, k);
            swap_rows(system, width, k, pivot);
            for i in k + 1..n {
                let l = system[i * width + k] / system[k * width + k];
                for j in k + 1..width {
                    system[i * width + j] -= l * system[k * width + j];
                }
            }
        }
        for k in (0..n).rev() {
            for c in n..width {
                system[k * width + c] /= system[k * width + k];
                for i in 0..k {
                    system[i * width + c] -= system[i * width + k] * system[k * width + c];
                }
            }
        }
    }

    fn drawn(length: usize) -> Vec<f64> {
        let place = Place { purpose: Purpose::Evaluation, iteration: 0, trajectory: 0 };
        let mut numbers = Stream::new(5).sequence(place, length as u32);
        // Some zeros, as in equations of indicators.
        let number = |u: f64| if u < 0.2 { 0.0 } else { u - 0.6 };
        (0..length).map(|_| number(numbers.uniform())).collect()
    }

    #[test]
    fn every_entry_goes_through_the_same_operations() {
        for n in [1, 2, 7, 8, 9, 16, 40, 61] {
            let (sides, width) = (3, n + 3);
            let system = drawn(n * width);
            let (mut found, mut plain) = (system.clone(), system.clone());
            solve(&mut found, n, width);
            solve_plainly(&mut plain, n, width);
            let rhs = Dense::from_fn(n, sides, |i, c| system[i * width + n + c]);
            let lu = Lu::new(Dense::from_fn(n, n, |i, j| system[i * width + j]));
            let solution = lu.solve(rhs);
            let mut transposed: Vec<f64> = (0..n).map(|i| system[i * width + n]).collect();
            lu.solve_transpose(&mut transposed);
            for i in 0..n {
                assert_eq!(found[i * width + n..][..sides], plain[i * width + n..][..sides], "{n}");
                assert_eq!(found[i * width + n..][..sides], *solution.row(i), "{n}");
                // And A·x = b, Aᵀ·y = b.
                let row = |x: &dyn Fn(usize) -> f64| (0..n).map(x).sum::<f64>();
                let back = row(&|j| system[i * width + j] * solution[(j, 1)]);
                assert!((back - system[i * width + n + 1]).abs() < 1e-10, "{n}");
                let back = row(&|j| system[j * width + i] * transposed[j]);
                assert!((back - system[i * width + n]).abs() < 1e-10, "{n}");
            }
        }
    }

    #[test]
    fn rows_change_places() {
        // 0·x + 2·y = 4, 3·x + y = 5.
        let mut system = vec![0.0, 2.0, 4.0, 3.0, 1.0, 5.0];
        solve(&mut system, 2, 3);
        assert_eq!([system[2], system[5]], [1.0, 2.0]);
    }
}
