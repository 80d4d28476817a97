//! The one matrix product behind every linear operation.
//!
//! `C = finish(start + A·B)` in tiles of R rows and one or two vectors of columns whose sums stay in
//! registers: each step of the depth loads the vectors of B and multiplies them with R numbers of A. The sum
//! of an element runs over the depth in order, whatever the tile: a row's result does not depend on the rows
//! beside it.
//!
//! B is used where it lies. Only what cannot be loaded as whole vectors is copied into `scratch` first: a
//! transposed B, and the last columns.

use pulp::{Simd, WithSimd};

use super::lanes::Lanes;
use super::matrix::{Finish, Matrix, MatrixMut, Start};

/// How the operands of a product lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// C = A·B: forward.
    Plain,
    /// C = Aᵀ·B: backward to the weights.
    LeftTransposed,
    /// C = A·Bᵀ: backward to the data.
    RightTransposed,
}

const PLAIN: u8 = Form::Plain as u8;
const LEFT_TRANSPOSED: u8 = Form::LeftTransposed as u8;
const RIGHT_TRANSPOSED: u8 = Form::RightTransposed as u8;

/// `result = finish(start + left·right)`.
pub(super) struct Product<'a, T> {
    pub left: Matrix<'a, T>,
    pub right: Matrix<'a, T>,
    pub start: Start<'a, T>,
    pub finish: Finish<'a, T>,
    pub result: MatrixMut<'a, T>,
    pub scratch: &'a mut Vec<T>,
}

/// `result = finish(start + left·right)` with the best instructions there are, and with an operand transposed
/// as `form` says. `scratch` is a buffer.
pub(super) fn multiply<T: Lanes>(
    form: Form,
    left: Matrix<T>,
    right: Matrix<T>,
    start: Start<T>,
    finish: Finish<T>,
    result: MatrixMut<T>,
    scratch: &mut Vec<T>,
) {
    let product = Product { left, right, start, finish, result, scratch };
    match form {
        Form::Plain => T::dispatch(Formed::<T, PLAIN>(product)),
        Form::LeftTransposed => T::dispatch(Formed::<T, LEFT_TRANSPOSED>(product)),
        Form::RightTransposed => T::dispatch(Formed::<T, RIGHT_TRANSPOSED>(product)),
    }
}

struct Formed<'a, T, const FORM: u8>(Product<'a, T>);

impl<T: Lanes, const FORM: u8> WithSimd for Formed<'_, T, FORM> {
    type Output = ();

    /// One panel of columns after the other; narrower panels for the last ones.
    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        if FORM == PLAIN && self.0.result.columns == 1 && self.0.right.stride == 1 {
            // A column that lies in one piece is a row of Bᵀ.
            let right = Matrix::new(self.0.right.data, 1, self.0.left.columns);
            return Product { right, ..self.0 }.narrow(simd);
        }
        let lanes = T::lanes::<S>();
        let columns = self.0.result.columns;
        if FORM == RIGHT_TRANSPOSED && columns <= T::WIDTH / 2 {
            return self.0.narrow(simd);
        }
        let mut column = 0;
        while columns - column >= 2 * lanes {
            self.panel::<S, 2, true>(simd, column);
            column += 2 * lanes;
        }
        if columns - column >= lanes {
            self.panel::<S, 1, true>(simd, column);
            column += lanes;
        }
        if column < columns {
            self.panel::<S, 1, false>(simd, column);
        }
    }
}

impl<T: Lanes, const FORM: u8> Formed<'_, T, FORM> {
    /// C vectors of columns from `column` on; the last columns if not `FULL`.
    #[inline(always)]
    fn panel<S: Simd, const C: usize, const FULL: bool>(&mut self, simd: S, column: usize) {
        let Product { left, right, start, finish, ref mut result, ref mut scratch } = self.0;
        let wide = C * T::lanes::<S>();
        let used = if FULL { wide } else { result.columns - column };
        let depth = if FORM == LEFT_TRANSPOSED { left.rows } else { left.columns };
        let right = if FORM == RIGHT_TRANSPOSED {
            pack_transposed::<T, S>(right, column, used, wide, scratch)
        } else if FULL {
            Matrix { data: right.data.get(column..).unwrap_or(&[]), rows: depth, ..right }
        } else {
            pack::<T, S>(simd, right, column, scratch)
        };
        let mut tiles = Tiles::<T, FORM> { left, right, start, finish, result, depth, column, used };
        let rows = tiles.result.rows;
        let mut row = 0;
        // As many sums as registers allow.
        if S::REGISTER_COUNT >= 32 {
            while row + 8 <= rows {
                tiles.tile::<S, 8, C, FULL>(simd, row);
                row += 8;
            }
        }
        while row + 4 <= rows {
            tiles.tile::<S, 4, C, FULL>(simd, row);
            row += 4;
        }
        if row + 2 <= rows {
            tiles.tile::<S, 2, C, FULL>(simd, row);
            row += 2;
        }
        if row < rows {
            tiles.tile::<S, 1, C, FULL>(simd, row);
        }
    }
}

/// The tiles of one panel: `used` columns from `column` on. `right` begins at its first column.
struct Tiles<'a, 'b, T, const FORM: u8> {
    left: Matrix<'a, T>,
    right: Matrix<'a, T>,
    start: Start<'a, T>,
    finish: Finish<'a, T>,
    result: &'a mut MatrixMut<'b, T>,
    depth: usize,
    column: usize,
    used: usize,
}

impl<T: Lanes, const FORM: u8> Tiles<'_, '_, T, FORM> {
    /// R rows from `row` on.
    #[inline(always)]
    fn tile<S: Simd, const R: usize, const C: usize, const FULL: bool>(&mut self, simd: S, row: usize) {
        let columns = self.column..self.column + self.used;
        let mut sums = [[T::splat(simd, T::ZERO); C]; R];
        match self.start {
            Start::Zero => {}
            Start::Bias(bias) => sums = [load::<T, S, C, FULL>(simd, &bias[columns.clone()]); R],
            Start::Result => {
                for r in 0..R {
                    sums[r] = load::<T, S, C, FULL>(simd, &self.result.row(row + r)[columns.clone()]);
                }
            }
        }
        let wide = C * T::lanes::<S>();
        let steps = self.right.data.chunks(self.right.stride).take(self.depth);
        if FORM == LEFT_TRANSPOSED {
            for (b, a) in steps.zip(self.left.data.chunks(self.left.stride)) {
                let b = T::vectors::<S>(&b[..wide]);
                let a = &a[row..row + R];
                for r in 0..R {
                    let a = T::splat(simd, a[r]);
                    for c in 0..C {
                        sums[r][c] = T::mul_add(simd, a, b[c], sums[r][c]);
                    }
                }
            }
        } else {
            let mut rows = [&[][..]; R];
            for r in 0..R {
                rows[r] = &self.left.row(row + r)[..self.depth];
            }
            for (k, b) in steps.enumerate() {
                let b = T::vectors::<S>(&b[..wide]);
                for r in 0..R {
                    let a = T::splat(simd, rows[r][k]);
                    for c in 0..C {
                        sums[r][c] = T::mul_add(simd, a, b[c], sums[r][c]);
                    }
                }
            }
        }
        match self.finish {
            Finish::Plain => {}
            Finish::Relu => {
                for r in 0..R {
                    for c in 0..C {
                        sums[r][c] = T::relu(simd, sums[r][c]);
                    }
                }
            }
            Finish::Mask(kept) => {
                for r in 0..R {
                    let kept = load::<T, S, C, FULL>(simd, &kept.row(row + r)[columns.clone()]);
                    for c in 0..C {
                        sums[r][c] = T::where_positive(simd, kept[c], sums[r][c]);
                    }
                }
            }
        }
        for r in 0..R {
            let target = &mut self.result.row_mut(row + r)[columns.clone()];
            if FULL {
                T::vectors_mut::<S>(target)[..C].copy_from_slice(&sums[r]);
            } else {
                T::store_part(simd, target, sums[r][0]);
            }
        }
    }
}

/// C whole vectors, or one in part.
#[inline(always)]
fn load<T: Lanes, S: Simd, const C: usize, const FULL: bool>(simd: S, x: &[T]) -> [T::Vector<S>; C] {
    // Plain loops here and below: a closure would be compiled without the vector instructions.
    let mut vectors = [T::splat(simd, T::ZERO); C];
    if FULL {
        vectors.copy_from_slice(&T::vectors::<S>(x)[..C]);
    } else {
        vectors[0] = T::load_part(simd, x);
    }
    vectors
}

impl<T: Lanes> Product<'_, T> {
    /// A plain product with instructions that the caller chose already. A call, not a copy of all tiles.
    pub fn compute_with<S: Simd>(self, simd: S) {
        simd.vectorize(Formed::<T, PLAIN>(self));
    }

    /// A·Bᵀ with few columns: vectors along the depth, summed up at the end, which needs no transposed copy
    /// of B.
    #[inline(always)]
    fn narrow<S: Simd>(mut self, simd: S) {
        // As many sums as registers allow.
        match T::parts::<S>() {
            1 => self.narrow_tiles::<S, 4, 1>(simd),
            2 => self.narrow_tiles::<S, 2, 2>(simd),
            4 => self.narrow_tiles::<S, 2, 4>(simd),
            _ => self.narrow_tiles::<S, 1, 16>(simd),
        }
    }

    /// Tiles of N × N elements, and what is left of rows and columns; P vectors for each sum.
    #[inline(always)]
    fn narrow_tiles<S: Simd, const N: usize, const P: usize>(&mut self, simd: S) {
        let rows = self.result.rows;
        let mut row = 0;
        while row + N <= rows {
            self.narrow_rows::<S, N, N, P>(simd, row);
            row += N;
        }
        while row < rows {
            self.narrow_rows::<S, 1, N, P>(simd, row);
            row += 1;
        }
    }

    #[inline(always)]
    fn narrow_rows<S: Simd, const R: usize, const N: usize, const P: usize>(&mut self, simd: S, row: usize) {
        let columns = self.result.columns;
        let mut column = 0;
        while column + N <= columns {
            self.narrow_tile::<S, R, N, P>(simd, row, column);
            column += N;
        }
        while column < columns {
            self.narrow_tile::<S, R, 1, P>(simd, row, column);
            column += 1;
        }
    }

    #[inline(always)]
    fn narrow_tile<S: Simd, const R: usize, const C: usize, const P: usize>(
        &mut self,
        simd: S,
        row: usize,
        column: usize,
    ) {
        let (lanes, depth) = (T::lanes::<S>(), self.left.columns);
        let (mut a, mut b) = ([&[][..]; R], [&[][..]; C]);
        for r in 0..R {
            a[r] = &self.left.row(row + r)[..depth];
        }
        for c in 0..C {
            b[c] = &self.right.row(column + c)[..depth];
        }
        let mut sums = [[[T::splat(simd, T::ZERO); P]; C]; R];
        let whole = depth / (P * lanes);
        let (mut vectors_a, mut vectors_b) = ([&[][..]; R], [&[][..]; C]);
        for r in 0..R {
            vectors_a[r] = &T::vectors::<S>(a[r])[..whole * P];
        }
        for c in 0..C {
            vectors_b[c] = &T::vectors::<S>(b[c])[..whole * P];
        }
        for k in 0..whole {
            for p in 0..P {
                for r in 0..R {
                    for c in 0..C {
                        let (a, b) = (vectors_a[r][k * P + p], vectors_b[c][k * P + p]);
                        sums[r][c][p] = T::mul_add(simd, a, b, sums[r][c][p]);
                    }
                }
            }
        }
        for p in 0..P {
            let first = (whole * P + p) * lanes;
            if first >= depth {
                break;
            }
            let last = depth.min(first + lanes);
            for r in 0..R {
                let a = T::load_part(simd, &a[r][first..last]);
                for c in 0..C {
                    let b = T::load_part(simd, &b[c][first..last]);
                    sums[r][c][p] = T::mul_add(simd, a, b, sums[r][c][p]);
                }
            }
        }
        for r in 0..R {
            for c in 0..C {
                self.finish_one(row + r, column + c, T::sum_of_parts::<S, P>(simd, sums[r][c]));
            }
        }
    }

    /// Stores one element of the result, given its sum over the depth.
    #[inline(always)]
    fn finish_one(&mut self, row: usize, column: usize, sum: T) {
        let target = &mut self.result.row_mut(row)[column];
        let sum = sum
            + match self.start {
                Start::Zero => T::ZERO,
                Start::Bias(bias) => bias[column],
                Start::Result => *target,
            };
        let drop = match self.finish {
            Finish::Plain => false,
            Finish::Relu => sum < T::ZERO,
            Finish::Mask(kept) => kept.row(row)[column] <= T::ZERO,
        };
        *target = if drop { T::ZERO } else { sum };
    }
}

/// The columns of B from `column` on, less than a vector of them, filled up with zeros.
#[inline(always)]
fn pack<'a, T: Lanes, S: Simd>(
    simd: S,
    right: Matrix<T>,
    column: usize,
    scratch: &'a mut Vec<T>,
) -> Matrix<'a, T> {
    let (rows, lanes) = (right.rows, T::lanes::<S>());
    let packed = ensure_length(scratch, rows * lanes);
    for (target, source) in T::vectors_mut::<S>(packed).iter_mut().zip(right.data.chunks(right.stride)) {
        *target = T::load_part(simd, &source[column..right.columns]);
    }
    Matrix { data: packed, rows, columns: lanes, stride: lanes }
}

/// The rows of B from `column` on, `used` of them, as columns, filled up with zeros to `wide`.
#[inline(always)]
fn pack_transposed<'a, T: Lanes, S: Simd>(
    right: Matrix<T>,
    column: usize,
    used: usize,
    wide: usize,
    scratch: &'a mut Vec<T>,
) -> Matrix<'a, T> {
    let (rows, lanes) = (right.columns, T::lanes::<S>());
    let packed = ensure_length(scratch, rows * wide);
    // Whole blocks, then what is left of rows and columns.
    let (whole_rows, whole_columns) = (rows / lanes * lanes, used / lanes * lanes);
    for l in (0..whole_columns).step_by(lanes) {
        let source = &right.data[(column + l) * right.stride..];
        for k in (0..whole_rows).step_by(lanes) {
            T::transpose::<S>(&source[k..], right.stride, &mut packed[k * wide + l..], wide);
        }
        for k in whole_rows..rows {
            for i in 0..lanes {
                packed[k * wide + l + i] = source[i * right.stride + k];
            }
        }
    }
    for k in 0..rows {
        for l in whole_columns..wide {
            packed[k * wide + l] = if l < used { right.row(column + l)[k] } else { T::ZERO };
        }
    }
    Matrix { data: packed, rows, columns: wide, stride: wide }
}

/// The first `length` numbers of a buffer, made if there are fewer.
#[inline(always)]
pub(super) fn ensure_length<T: Lanes>(buffer: &mut Vec<T>, length: usize) -> &mut [T] {
    if buffer.len() < length {
        buffer.resize(length, T::ZERO);
    }
    &mut buffer[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of 16, of 8 and of 1 number. AVX-512 and AVX2 give the same bits; without fused products
    /// roundings differ.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn every_instruction_set_gives_the_product() {
        for (rows, depth, columns) in [(13, 37, 43), (8, 16, 64), (3, 5, 7), (64, 20, 4), (1, 40, 1)] {
            for (scale, is_whole) in [(1.0f32, true), (0.1, false)] {
                let numbers = |count: usize, seed: usize| -> Vec<f32> {
                    (0..count).map(|i| (((i * 7 + seed) % 11) as f32 - 5.0) * scale).collect()
                };
                let (a, b, bias) =
                    (numbers(rows * depth, 1), numbers(depth * columns, 2), numbers(columns, 3));
                let run = |form: Form, set: usize| {
                    let left = match form {
                        Form::LeftTransposed => Matrix::new(&a, depth, rows),
                        _ => Matrix::new(&a, rows, depth),
                    };
                    let right = match form {
                        Form::RightTransposed => Matrix::new(&b, columns, depth),
                        _ => Matrix::new(&b, depth, columns),
                    };
                    let mut y = vec![0.0; rows * columns];
                    let result = MatrixMut::new(&mut y, rows, columns);
                    let (start, finish, scratch) = (Start::Bias(&bias), Finish::Relu, &mut Vec::new());
                    let product = Product { left, right, start, finish, result, scratch };
                    match form {
                        Form::Plain => with_set(set, Formed::<f32, PLAIN>(product)),
                        Form::LeftTransposed => with_set(set, Formed::<f32, LEFT_TRANSPOSED>(product)),
                        Form::RightTransposed => with_set(set, Formed::<f32, RIGHT_TRANSPOSED>(product)),
                    }
                    y
                };
                for form in [Form::Plain, Form::LeftTransposed, Form::RightTransposed] {
                    let (scalar, avx2, best) = (run(form, 0), run(form, 1), run(form, 2));
                    assert_eq!(avx2, best, "{form:?} of {rows}×{depth}×{columns}");
                    // With whole numbers nothing rounds.
                    assert!(!is_whole || scalar == best, "{form:?} of {rows}×{depth}×{columns}");
                }
            }
        }
    }

    /// Scalar, AVX2, or the best there is; AVX2 falls back to scalar where it is missing.
    #[cfg(target_arch = "x86_64")]
    fn with_set(set: usize, op: impl WithSimd<Output = ()>) {
        match (set, pulp::x86::V3::try_new()) {
            (1, Some(simd)) => Simd::vectorize(simd, op),
            (2, _) => pulp::Arch::new().dispatch(op),
            _ => op.with_simd(pulp::Scalar::new()),
        }
    }
}
