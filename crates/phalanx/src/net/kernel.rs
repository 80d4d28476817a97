//! The one matrix product behind every linear operation.
//!
//! `C = finish(start + A·B)` in tiles of R rows and L columns whose sums stay in registers: each step of the depth loads L
//! numbers of B and multiplies them with R numbers of A. Plain loops of fixed length, which the compiler turns into vector
//! instructions; the sum of an element runs over the depth in order, whatever the tile, so that a sample's result does
//! not depend on the batch it is in.
//!
//! B is used where it lies. Only what cannot be loaded as L neighbouring numbers is copied into `scratch` first: a
//! transposed B, and the last columns.

use multiversion::multiversion;
use multiversion::target::match_target;

use super::matrix::{Finish, Matrix, MatrixMut, Start};
use super::real::Real;

/// How the operands of a product lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// C = A·B.
    Plain,
    /// C = Aᵀ·B.
    LeftTransposed,
    /// C = A·Bᵀ.
    RightTransposed,
}

pub(super) const PLAIN: u8 = Form::Plain as u8;
const LEFT_TRANSPOSED: u8 = Form::LeftTransposed as u8;
const RIGHT_TRANSPOSED: u8 = Form::RightTransposed as u8;

/// `C = finish(start + A·B)`, with A or B transposed as `form` says.
pub(super) fn product<T: Real>(
    form: Form,
    left: Matrix<T>,
    right: Matrix<T>,
    start: Start<T>,
    finish: Finish<T>,
    result: MatrixMut<T>,
    scratch: &mut Vec<T>,
) {
    match form {
        Form::Plain => product_of::<T, PLAIN>(left, right, start, finish, result, scratch),
        Form::LeftTransposed => product_of::<T, LEFT_TRANSPOSED>(left, right, start, finish, result, scratch),
        Form::RightTransposed => {
            product_of::<T, RIGHT_TRANSPOSED>(left, right, start, finish, result, scratch)
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl+fma", "x86_64+avx2+fma"))]
fn product_of<T: Real, const FORM: u8>(
    left: Matrix<T>,
    right: Matrix<T>,
    start: Start<T>,
    finish: Finish<T>,
    result: MatrixMut<T>,
    scratch: &mut Vec<T>,
) {
    // Tiles are as large as the registers allow: 32 of 16 numbers, or 16 of 8 or fewer.
    match_target! {
        "x86_64+avx512f+avx512vl+fma" => panels::<T, FORM, true, 8, 32>(left, right, start, finish, result, scratch),
        "x86_64+avx2+fma" => panels::<T, FORM, true, 4, 16>(left, right, start, finish, result, scratch),
        _ => panels::<T, FORM, false, 4, 8>(left, right, start, finish, result, scratch),
    }
}

/// One panel of L columns after the other; narrower panels for the last columns.
#[inline(always)]
pub(super) fn panels<T: Real, const FORM: u8, const FUSED: bool, const R: usize, const L: usize>(
    left: Matrix<T>,
    right: Matrix<T>,
    start: Start<T>,
    finish: Finish<T>,
    mut result: MatrixMut<T>,
    scratch: &mut Vec<T>,
) {
    let columns = result.columns;
    if FORM == PLAIN && columns == 1 && right.stride == 1 {
        return inner_products::<T, FUSED>(left, right.data, start, finish, result);
    }
    let mut column = 0;
    while L > 16 && columns - column > 16 {
        let used = (columns - column).min(L);
        panel::<T, FORM, FUSED, R, L>(left, right, start, finish, &mut result, column, used, scratch);
        column += used;
    }
    while L > 8 && columns - column > 8 {
        let used = (columns - column).min(16);
        panel::<T, FORM, FUSED, R, 16>(left, right, start, finish, &mut result, column, used, scratch);
        column += used;
    }
    while column < columns {
        let used = (columns - column).min(8);
        panel::<T, FORM, FUSED, R, 8>(left, right, start, finish, &mut result, column, used, scratch);
        column += used;
    }
}

/// The columns `column..column + used` of the result, `used` ≤ L.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn panel<T: Real, const FORM: u8, const FUSED: bool, const R: usize, const L: usize>(
    left: Matrix<T>,
    right: Matrix<T>,
    start: Start<T>,
    finish: Finish<T>,
    result: &mut MatrixMut<T>,
    column: usize,
    used: usize,
    scratch: &mut Vec<T>,
) {
    let depth = if FORM == LEFT_TRANSPOSED { left.rows } else { left.columns };
    let right = if FORM == RIGHT_TRANSPOSED {
        pack_transposed::<T, L>(right, column, used, scratch)
    } else if used < L {
        pack::<T, L>(right, column, used, scratch)
    } else {
        Matrix {
            data: right.data.get(column..).unwrap_or(&[]),
            rows: depth,
            columns: L,
            stride: right.stride,
        }
    };
    let mut row = 0;
    while row + R <= result.rows {
        tile::<T, FORM, FUSED, R, L>(left, right, start, finish, result, row, column, used, depth);
        row += R;
    }
    if R > 4 && row + 4 <= result.rows {
        tile::<T, FORM, FUSED, 4, L>(left, right, start, finish, result, row, column, used, depth);
        row += 4;
    }
    if row + 2 <= result.rows {
        tile::<T, FORM, FUSED, 2, L>(left, right, start, finish, result, row, column, used, depth);
        row += 2;
    }
    if row < result.rows {
        tile::<T, FORM, FUSED, 1, L>(left, right, start, finish, result, row, column, used, depth);
    }
}

/// R rows by L columns of the result, of which `used` columns exist.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn tile<T: Real, const FORM: u8, const FUSED: bool, const R: usize, const L: usize>(
    left: Matrix<T>,
    right: Matrix<T>,
    start: Start<T>,
    finish: Finish<T>,
    result: &mut MatrixMut<T>,
    row: usize,
    column: usize,
    used: usize,
    depth: usize,
) {
    let mut sums = [[T::ZERO; L]; R];
    match start {
        Start::Zero => {}
        Start::Bias(bias) => {
            let mut first = [T::ZERO; L];
            copy(&mut first, &bias[column..column + used]);
            sums = [first; R];
        }
        Start::Result => {
            for r in 0..R {
                copy(&mut sums[r], &result.row(row + r)[column..column + used]);
            }
        }
    }
    let steps = right.data.chunks(right.stride).take(depth);
    if FORM == LEFT_TRANSPOSED {
        for (step, a) in steps.zip(left.data.chunks(left.stride)) {
            let b: &[T; L] = step[..L].try_into().expect("L numbers");
            let a: &[T; R] = a[row..row + R].try_into().expect("R numbers");
            for r in 0..R {
                for l in 0..L {
                    sums[r][l] = multiply_add::<T, FUSED>(a[r], b[l], sums[r][l]);
                }
            }
        }
    } else {
        let rows: [&[T]; R] = std::array::from_fn(|r| &left.row(row + r)[..depth]);
        for (k, step) in steps.enumerate() {
            let b: &[T; L] = step[..L].try_into().expect("L numbers");
            for r in 0..R {
                let a = rows[r][k];
                for l in 0..L {
                    sums[r][l] = multiply_add::<T, FUSED>(a, b[l], sums[r][l]);
                }
            }
        }
    }
    for r in 0..R {
        match finish {
            Finish::Plain => {}
            Finish::Relu => {
                for l in 0..L {
                    sums[r][l] = if sums[r][l] > T::ZERO { sums[r][l] } else { T::ZERO };
                }
            }
            Finish::Mask(kept) => {
                let mut mask = [T::ZERO; L];
                copy(&mut mask, &kept.row(row + r)[column..column + used]);
                for l in 0..L {
                    sums[r][l] = if mask[l] > T::ZERO { sums[r][l] } else { T::ZERO };
                }
            }
        }
        let target = &mut result.row_mut(row + r)[column..column + used];
        match <&mut [T; L]>::try_from(&mut *target) {
            Ok(target) => *target = sums[r],
            Err(_) => target.copy_from_slice(&sums[r][..used]),
        }
    }
}

/// A·b for a vector b, which lies in one piece.
#[inline(always)]
fn inner_products<T: Real, const FUSED: bool>(
    left: Matrix<T>,
    right: &[T],
    start: Start<T>,
    finish: Finish<T>,
    mut result: MatrixMut<T>,
) {
    for row in 0..result.rows {
        let first = match start {
            Start::Zero => T::ZERO,
            Start::Bias(bias) => bias[0],
            Start::Result => result.row(row)[0],
        };
        let sum = first + inner_product::<T, FUSED>(left.row(row), &right[..left.columns]);
        let keep = match finish {
            Finish::Plain => true,
            Finish::Relu => sum > T::ZERO,
            Finish::Mask(kept) => kept.row(row)[0] > T::ZERO,
        };
        result.row_mut(row)[0] = if keep { sum } else { T::ZERO };
    }
}

/// Σ a·b in sixteen partial sums.
#[inline(always)]
pub(super) fn inner_product<T: Real, const FUSED: bool>(a: &[T], b: &[T]) -> T {
    let (a, a_rest) = a.as_chunks::<16>();
    let (b, b_rest) = b.as_chunks::<16>();
    let mut sums = [T::ZERO; 16];
    for (a, b) in a.iter().zip(b) {
        for l in 0..16 {
            sums[l] = multiply_add::<T, FUSED>(a[l], b[l], sums[l]);
        }
    }
    for (l, (&a, &b)) in a_rest.iter().zip(b_rest).enumerate() {
        sums[l] = multiply_add::<T, FUSED>(a, b, sums[l]);
    }
    for half in [8, 4, 2, 1] {
        for l in 0..half {
            sums[l] += sums[l + half];
        }
    }
    sums[0]
}

/// Fills the beginning of `target`: in one piece where the lengths agree.
#[inline(always)]
fn copy<T: Copy, const L: usize>(target: &mut [T; L], source: &[T]) {
    match <&[T; L]>::try_from(source) {
        Ok(source) => *target = *source,
        Err(_) => target[..source.len()].copy_from_slice(source),
    }
}

/// a·b + c. Where no instruction does both at once, `mul_add` would call a function.
#[inline(always)]
pub(super) fn multiply_add<T: Real, const FUSED: bool>(a: T, b: T, c: T) -> T {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// Columns `column..column + used` of B, filled up with zeros to L.
#[inline(always)]
fn pack<'a, T: Real, const L: usize>(
    right: Matrix<T>,
    column: usize,
    used: usize,
    scratch: &'a mut Vec<T>,
) -> Matrix<'a, T> {
    let rows = right.rows;
    if scratch.len() < rows * L {
        scratch.resize(rows * L, T::ZERO);
    }
    for (target, source) in
        scratch.as_chunks_mut::<L>().0.iter_mut().zip(right.data.chunks(right.stride)).take(rows)
    {
        let source = &source[column..column + used];
        for l in 0..L {
            target[l] = if l < used { source[l] } else { T::ZERO };
        }
    }
    Matrix { data: &scratch[..rows * L], rows, columns: L, stride: L }
}

/// Rows `column..column + used` of B as columns, filled up with zeros to L.
#[inline(always)]
fn pack_transposed<'a, T: Real, const L: usize>(
    right: Matrix<T>,
    column: usize,
    used: usize,
    scratch: &'a mut Vec<T>,
) -> Matrix<'a, T> {
    let rows = right.columns;
    if scratch.len() < rows * L {
        scratch.resize(rows * L, T::ZERO);
    }
    let (packed, _) = scratch.as_chunks_mut::<L>();
    for l in 0..L {
        if l < used {
            let source = &right.row(column + l)[..rows];
            for k in 0..rows {
                packed[k][l] = source[k];
            }
        } else {
            for k in 0..rows {
                packed[k][l] = T::ZERO;
            }
        }
    }
    Matrix { data: &scratch[..rows * L], rows, columns: L, stride: L }
}
