//! (I − γP) x = b for several right-hand sides at once, given only how to apply P.
//!
//! Restarted GMRES (Saad and Schultz, 1986). It stops at the true residual; since the inverse has norm
//! 1/(1−γ) for a stochastic P, that bounds the error. The lanes are independent problems that share the
//! applications of P.
//!
//! The eigenvalue 1−γ would make restarts stall when γ is close to 1, so its mode is kept out of the
//! iteration. Of P itself it is the constant: known, and subtracted. Of Pᵀ it is the total mass, which is
//! right from the start.

use multiversion::multiversion;

use crate::base::elementary::hypot;

/// Krylov vectors between restarts.
const RESTART: usize = 40;

/// Residuals below this, relative to x and b, are rounding.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

/// Residuals below this may be rounding.
const MOST_ROUNDING: f64 = 256.0 * f64::EPSILON;

/// The most by which a cycle reduces a residual; more is left to the next one, which begins with a new
/// residual.
const GAIN: f64 = 1e-12;

/// Whether P or its transpose is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// P: values of states.
    Values,
    /// Pᵀ: visits of states.
    Visits,
}

/// Why there is no solution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// P may mix too slowly for so many applications.
    TooSlow,
    /// Numbers are too large to be squared, or were never finite.
    Overflow,
}

/// x with ‖b − (I − γP)x‖∞ as small as rounding allows, within `most` applications. `apply` writes P·v, or
/// Pᵀ·v.
pub fn solve<const L: usize>(
    side: Side,
    gamma: f64,
    mut apply: impl FnMut(&[[f64; L]], &mut [[f64; L]]),
    b: &[[f64; L]],
    most: usize,
) -> Result<Vec<[f64; L]>, Failure> {
    let size = b.len();
    let mut x = vec![mean(b).map(|mean| mean / (1.0 - gamma)); size];
    let mut applied = vec![[0.0; L]; size];
    let mut basis: Vec<Vec<[f64; L]>> = Vec::new();
    let mut used = 0;
    // The best so far, lane by lane.
    let mut best = x.clone();
    let (mut reached, mut done) = ([f64::INFINITY; L], [false; L]);
    loop {
        // r = b − x + γPx.
        apply(&x, &mut applied);
        used += 1;
        let rows = b.iter().zip(&x).zip(&applied);
        let mut residual: Vec<[f64; L]> =
            rows.map(|((b, x), p)| std::array::from_fn(|l| b[l] - x[l] + gamma * p[l])).collect();
        if side == Side::Values {
            let mean = subtract_mean(&mut residual);
            x.iter_mut().for_each(|x| (0..L).for_each(|l| x[l] += mean[l] / (1.0 - gamma)));
        }
        if residual.iter().flatten().any(|r| !r.is_finite()) {
            return Err(Failure::Overflow);
        }
        let (left, of_x, of_b) = (largest(&residual), largest(&x), largest(b));
        for l in 0..L {
            let relative = left[l] / (of_x[l] + of_b[l]).max(f64::MIN_POSITIVE);
            let halved = relative <= 0.5 * reached[l];
            if relative < reached[l] {
                reached[l] = relative;
                best.iter_mut().zip(&x).for_each(|(best, x)| best[l] = x[l]);
            }
            // How much rounding there is depends on P: a lane is also done where a whole cycle gains nothing
            // more.
            done[l] |= reached[l] <= ROUNDING || (reached[l] <= MOST_ROUNDING && !halved);
            if done[l] {
                // Another cycle would only work on rounding errors, and make them larger.
                residual.iter_mut().for_each(|r| r[l] = 0.0);
            }
        }
        if done == [true; L] {
            return Ok(best);
        }
        if used >= most {
            return Err(Failure::TooSlow);
        }
        let norm = norms(&residual);
        if norm.iter().any(|norm| !norm.is_finite()) {
            return Err(Failure::Overflow);
        }
        basis.clear();
        basis.push(scaled(&residual, norm));
        // Column k of the Hessenberg matrix, rotated to triangular form as it grows; `rhs` is rotated along.
        let mut columns: Vec<Vec<[f64; L]>> = Vec::new();
        let mut rotations: Vec<[[f64; L]; 2]> = Vec::new();
        let mut rhs = vec![norm];
        for k in 0..RESTART.min(size) {
            apply(&basis[k], &mut applied);
            used += 1;
            let rows = basis[k].iter().zip(&applied);
            let mut w: Vec<[f64; L]> =
                rows.map(|(v, p)| std::array::from_fn(|l| v[l] - gamma * p[l])).collect();
            if side == Side::Values {
                subtract_mean(&mut w);
            }
            let mut column: Vec<[f64; L]> = basis.iter().map(|v| take_out(&mut w, v)).collect();
            let mut rest = norms(&w);
            for (i, [c, s]) in rotations.iter().enumerate() {
                for l in 0..L {
                    let (a, b) = (column[i][l], column[i + 1][l]);
                    (column[i][l], column[i + 1][l]) = (c[l] * a + s[l] * b, -s[l] * a + c[l] * b);
                }
            }
            let (mut rotation, mut carried) = ([[1.0; L], [0.0; L]], [0.0; L]);
            for l in 0..L {
                let (a, b) = (column[k][l], rest[l]);
                let length = hypot(a, b);
                if length > 0.0 {
                    (rotation[0][l], rotation[1][l]) = (a / length, b / length);
                }
                column[k][l] = length;
                carried[l] = -rotation[1][l] * rhs[k][l];
                rhs[k][l] *= rotation[0][l];
                // Further vectors of a lane that has come this far are rounding, and would do harm: it gets
                // none.
                if carried[l].abs() <= GAIN * norm[l] {
                    (carried[l], rest[l]) = (0.0, 0.0);
                }
            }
            basis.push(scaled(&w, rest));
            rotations.push(rotation);
            rhs.push(carried);
            columns.push(column);
            if carried == [0.0; L] {
                break;
            }
        }
        let steps = columns.len();
        let mut y = vec![[0.0; L]; steps];
        for i in (0..steps).rev() {
            for l in 0..L {
                let known: f64 = (i + 1..steps).map(|j| columns[j][i][l] * y[j][l]).sum();
                // A lane that was solved earlier has nothing left to add.
                y[i][l] = if columns[i][i][l] > 0.0 { (rhs[i][l] - known) / columns[i][i][l] } else { 0.0 };
            }
        }
        for (y, v) in y.iter().zip(&basis) {
            for (x, v) in x.iter_mut().zip(v) {
                let (old, direction) = (*x, *v);
                *x = std::array::from_fn(|l| old[l] + y[l] * direction[l]);
            }
        }
    }
}

fn subtract_mean<const L: usize>(x: &mut [[f64; L]]) -> [f64; L] {
    let mean = mean(x);
    x.iter_mut().for_each(|x| (0..L).for_each(|l| x[l] -= mean[l]));
    mean
}

fn mean<const L: usize>(x: &[[f64; L]]) -> [f64; L] {
    let mut sum = [0.0; L];
    x.iter().for_each(|x| (0..L).for_each(|l| sum[l] += x[l]));
    sum.map(|sum| sum / x.len() as f64)
}

fn largest<const L: usize>(x: &[[f64; L]]) -> [f64; L] {
    x.iter().fold([0.0; L], |m, x| std::array::from_fn(|l| f64::max(m[l], x[l].abs())))
}

/// Subtracts from w what lies along the unit vector v, and returns how much that was.
#[multiversion(targets("x86_64+avx2"))]
fn take_out<const L: usize>(w: &mut [[f64; L]], v: &[[f64; L]]) -> [f64; L] {
    let mut along = [0.0; L];
    for (w, v) in w.iter().zip(v) {
        for l in 0..L {
            along[l] += w[l] * v[l];
        }
    }
    for (w, v) in w.iter_mut().zip(v) {
        // By value: otherwise the compiler vectorises across rows, with gathers.
        let (old, direction) = (*w, *v);
        *w = std::array::from_fn(|l| old[l] - along[l] * direction[l]);
    }
    along
}

fn norms<const L: usize>(x: &[[f64; L]]) -> [f64; L] {
    let mut sum = [0.0; L];
    x.iter().for_each(|x| (0..L).for_each(|l| sum[l] += x[l] * x[l]));
    sum.map(f64::sqrt)
}

/// x divided by `norm`; zero where that is.
fn scaled<const L: usize>(x: &[[f64; L]], norm: [f64; L]) -> Vec<[f64; L]> {
    let inverse = norm.map(|norm| if norm > 0.0 { 1.0 / norm } else { 0.0 });
    x.iter().map(|x| std::array::from_fn(|l| x[l] * inverse[l])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring on which one moves left or right with unequal odds, and a state that is rarely left.
    fn matrix(n: usize) -> Vec<Vec<f64>> {
        let mut p = vec![vec![0.0; n]; n];
        for s in 0..n {
            let (stay, left) = if s == 3 { (0.99, 0.005) } else { (0.1, 0.3) };
            p[s][s] += stay;
            p[s][(s + n - 1) % n] += left;
            p[s][(s + 1) % n] += 1.0 - stay - left;
        }
        p
    }

    fn multiply(p: &[Vec<f64>], side: Side, v: &[[f64; 2]], out: &mut [[f64; 2]]) {
        for (s, out) in out.iter_mut().enumerate() {
            let weight = |t: usize| if side == Side::Values { p[s][t] } else { p[t][s] };
            *out = std::array::from_fn(|l| (0..v.len()).map(|t| weight(t) * v[t][l]).sum());
        }
    }

    #[test]
    fn solves_to_rounding_whatever_the_discount() {
        let p = matrix(60);
        for side in [Side::Values, Side::Visits] {
            for gamma in [0.0, 0.5, 0.99, 0.9999, 0.9999999] {
                let b: Vec<[f64; 2]> =
                    (0..60).map(|s| [f64::from(u8::from(s == 7)), (s as f64).sin()]).collect();
                let apply = |v: &[[f64; 2]], out: &mut [[f64; 2]]| multiply(&p, side, v, out);
                let x = solve(side, gamma, apply, &b, 10_000).unwrap();
                let mut again = vec![[0.0; 2]; 60];
                multiply(&p, side, &x, &mut again);
                for l in 0..2 {
                    let scale = 1.01 + x.iter().fold(0.0, |m: f64, x| m.max(x[l].abs()));
                    for s in 0..60 {
                        let off = x[s][l] - gamma * again[s][l] - b[s][l];
                        assert!(off.abs() <= MOST_ROUNDING * scale, "{side:?}, γ = {gamma}: {off}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_lane_of_zeros_stays_zero() {
        let p = matrix(30);
        let b: Vec<[f64; 2]> = (0..30).map(|s| [0.0, s as f64]).collect();
        let apply = |v: &[[f64; 2]], out: &mut [[f64; 2]]| multiply(&p, Side::Values, v, out);
        let x = solve(Side::Values, 0.9, apply, &b, 1000).unwrap();
        assert!(x.iter().all(|x| x[0] == 0.0 && x[1].is_finite()));
    }

    #[test]
    fn numbers_that_cannot_be_squared_are_given_up_at_once() {
        let p = matrix(30);
        for large in [1e200, 1e308, f64::INFINITY, f64::NAN] {
            let b: Vec<[f64; 2]> = (0..30).map(|s| [large * s as f64, 1.0]).collect();
            let mut applied = 0;
            let apply = |v: &[[f64; 2]], out: &mut [[f64; 2]]| {
                applied += 1;
                multiply(&p, Side::Values, v, out);
            };
            assert_eq!(solve(Side::Values, 0.9, apply, &b, 1000), Err(Failure::Overflow), "{large}");
            assert_eq!(applied, 1);
        }
    }
}
