//! What stands behind a neural network's outputs: probabilities, and losses with their gradients.

use multiversion::multiversion;

use super::real::Real;

/// Rows of `width` logits become rows of probabilities, in place. The largest logit of a row is taken off
/// first, so that nothing overflows.
pub fn softmax<T: Real>(logits: &mut [T], width: usize) {
    for row in logits.chunks_exact_mut(width) {
        let largest = row.iter().fold(row[0], |m, &x| if x > m { x } else { m });
        row.iter_mut().for_each(|x| *x -= largest);
    }
    exponentials(logits);
    for row in logits.chunks_exact_mut(width) {
        let scale = T::ONE / row.iter().fold(T::ZERO, |sum, &x| sum + x);
        row.iter_mut().for_each(|x| *x *= scale);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl+fma", "x86_64+avx2+fma"))]
fn exponentials<T: Real>(x: &mut [T]) {
    for x in x {
        *x = x.exponential();
    }
}

/// A loss of one output against its target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// (y − t)².
    Squared,
    /// ½e² for |e| ≤ `width`, `width`·(|e| − ½·`width`) beyond, e = y − t.
    Huber {
        /// Where the parabola becomes a line.
        width: f64,
    },
}

impl Loss {
    /// The mean over all outputs; `d_outputs` becomes its gradient. All have the same length.
    pub fn evaluate<T: Real>(self, outputs: &[T], targets: &[T], d_outputs: &mut [T]) -> T {
        assert!(outputs.len() == targets.len() && outputs.len() == d_outputs.len());
        let scale = T::from_f64(1.0 / outputs.len() as f64);
        let mut total = T::ZERO;
        for (i, d) in d_outputs.iter_mut().enumerate() {
            let (value, slope) = self.value_and_slope(outputs[i] - targets[i]);
            total += scale * value;
            *d = scale * slope;
        }
        total
    }

    #[inline(always)]
    fn value_and_slope<T: Real>(self, e: T) -> (T, T) {
        match self {
            Loss::Squared => (e * e, e + e),
            Loss::Huber { width } => {
                let (half, width) = (T::from_f64(0.5), T::from_f64(width));
                if e.abs() <= width {
                    (half * e * e, e)
                } else {
                    (width * (e.abs() - half * width), if e > T::ZERO { width } else { -width })
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_by_hand() {
        let mut rows = [0.0, 2f64.ln(), 1000.0, 1000.0, -1000.0, 1000.0];
        softmax(&mut rows, 2);
        for (found, expected) in rows.iter().zip([1.0 / 3.0, 2.0 / 3.0, 0.5, 0.5, 0.0, 1.0]) {
            assert!((found - expected).abs() < 1e-15, "{rows:?}");
        }
        let mut rows = [0.1f32, -3.0, 7.0, 88.0, 88.0, 88.0];
        softmax(&mut rows, 3);
        let total = 0.1f64.exp() + (-3f64).exp() + 7f64.exp();
        for (found, expected) in rows[..3].iter().zip([0.1f64.exp(), (-3f64).exp(), 7f64.exp()]) {
            assert!((f64::from(*found) - expected / total).abs() < 2e-7, "{rows:?}");
        }
        assert_eq!(rows[3], 1.0 / 3.0);
    }

    #[test]
    fn losses_by_hand() {
        let mut d = [0.0; 2];
        assert_eq!(Loss::Squared.evaluate(&[3.0, 1.0], &[1.0, 1.5], &mut d), (4.0 + 0.25) / 2.0);
        assert_eq!(d, [2.0, -0.5]);
        let huber = Loss::Huber { width: 1.0 };
        assert_eq!(huber.evaluate(&[3.0, 1.0], &[1.0, 1.5], &mut d), (1.5 + 0.125) / 2.0);
        assert_eq!(d, [0.5, -0.25]);
    }
}
