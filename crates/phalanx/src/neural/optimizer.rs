//! Gradient steps on flat slices of parameters. The caller owns every state.

use multiversion::multiversion;
use serde::{Deserialize, Serialize};

use super::real::Real;
use crate::base::elementary::powi;

/// Which gradient step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerKind {
    /// θ + η·∇, the paper's.
    Sgd,
    /// Adam (Kingma and Ba, 2015) with β = (0.9, 0.999), ε = 1e-8.
    Adam,
}

/// How a neural network follows the gradients of minibatches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Descent {
    /// Which step.
    pub optimizer: OptimizerKind,
    /// Its size.
    pub learning_rate: f64,
    /// Adam's ε.
    pub epsilon: f64,
    /// Largest norm of a minibatch's gradient.
    pub clip: f64,
}

impl Descent {
    /// With ε = 1e-8.
    pub fn new(optimizer: OptimizerKind, learning_rate: f64, clip: f64) -> Self {
        Descent { optimizer, learning_rate, epsilon: 1e-8, clip }
    }
}

/// β: what Adam's first and second moments keep of themselves.
pub(crate) const BETA: [f64; 2] = [0.9, 0.999];

/// Adam (Kingma and Ba, 2015) with β = (0.9, 0.999).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adam {
    /// Step size η.
    pub rate: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
}

/// One step of Adam: its constants, the same for every parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamStep<T> {
    /// Factors of the moments that correct for their beginning at 0.
    correction: [T; 2],
    /// η; negative for a step up.
    rate: T,
    /// ε.
    epsilon: T,
}

impl Adam {
    /// With ε = 1e-8.
    pub fn new(rate: f64) -> Self {
        Adam { rate, epsilon: 1e-8 }
    }

    /// w ← w − η·m̂/(√v̂ + ε) with bias-corrected moments. `step` counts from 1; `first` and `second` begin
    /// at 0.
    pub fn descend<T: Real>(
        &self,
        step: u64,
        w: &mut [T],
        gradient: &[T],
        first: &mut [T],
        second: &mut [T],
    ) {
        adam(self.descent(step), w, gradient, first, second);
    }

    /// Step number `step`, from 1, down a gradient. The corrections of m̂ and v̂ are moved into η and ε,
    /// which rounds differently than in [`Adam::ascent`].
    fn descent<T: Real>(&self, step: u64) -> AdamStep<T> {
        let [of_first, of_second] = bias(step);
        let root = of_second.sqrt();
        AdamStep::new([1.0; 2], self.rate * root / of_first, self.epsilon * root)
    }

    /// Step number `step`, from 1, *up* a gradient, with m̂ and v̂ corrected one by one.
    pub fn ascent<T: Real>(&self, step: u64) -> AdamStep<T> {
        AdamStep::new(bias(step).map(|bias| 1.0 / bias), -self.rate, self.epsilon)
    }
}

/// 1 − βᵗ.
fn bias(step: u64) -> [f64; 2] {
    debug_assert!(step >= 1);
    BETA.map(|beta| 1.0 - powi(beta, step.min(i32::MAX as u64) as i32))
}

impl<T: Copy> AdamStep<T> {
    /// Factors of the moments that correct for their beginning at 0.
    pub fn correction(&self) -> [T; 2] {
        self.correction
    }

    /// η; negative for a step up.
    pub fn rate(&self) -> T {
        self.rate
    }
}

impl<T: Real> AdamStep<T> {
    fn new(correction: [f64; 2], rate: f64, epsilon: f64) -> Self {
        let [rate, epsilon] = [rate, epsilon].map(T::from_f64);
        AdamStep { correction: correction.map(T::from_f64), rate, epsilon }
    }
}

/// One step: moves parameters and moments.
#[multiversion(targets("x86_64+avx512f+avx512vl+fma", "x86_64+avx2+fma"))]
pub fn adam<T: Real>(step: AdamStep<T>, w: &mut [T], gradient: &[T], first: &mut [T], second: &mut [T]) {
    let AdamStep { correction, rate, epsilon } = step;
    let (beta, rest) = (BETA.map(T::from_f64), BETA.map(|beta| T::from_f64(1.0 - beta)));
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

/// w ← w − η·gradient.
pub fn sgd<T: Real>(rate: T, w: &mut [T], gradient: &[T]) {
    blend(-rate, gradient, T::ONE, w);
}

/// target ← τ·target + (1 − τ)·w.
pub fn polyak<T: Real>(tau: T, w: &[T], target: &mut [T]) {
    blend(T::ONE - tau, w, tau, target);
}

/// `y = a·x + b·y`.
#[multiversion(targets("x86_64+avx512f+avx512vl+fma", "x86_64+avx2+fma"))]
pub(super) fn blend<T: Real>(a: T, x: &[T], b: T, y: &mut [T]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = a * x + b * *y;
    }
}

/// Shrinks the gradient to the norm `largest` if it is longer; returns the norm it had.
pub fn clip<T: Real>(largest: T, gradient: &mut [T]) -> T {
    let norm = norm(gradient);
    if norm > largest {
        let factor = largest / norm;
        gradient.iter_mut().for_each(|g| *g *= factor);
    }
    norm
}

/// Euclidean norm. Sixteen partial sums, each in order: the same on every CPU.
fn norm<T: Real>(x: &[T]) -> T {
    let mut sums = [T::ZERO; 16];
    let (blocks, rest) = x.as_chunks::<16>();
    for block in blocks {
        for l in 0..16 {
            sums[l] += block[l] * block[l];
        }
    }
    for (sum, &x) in sums.iter_mut().zip(rest) {
        *sum += x * x;
    }
    sums.into_iter().fold(T::ZERO, |a, b| a + b).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adam_by_hand() {
        let adam = Adam::new(0.1);
        let (mut w, mut first, mut second) = ([1.0, 1.0], [0.0; 2], [0.0; 2]);
        // First step: m̂ = g, v̂ = g², so the move is −η·sign(g); a gradient of 0 moves nothing.
        adam.descend(1, &mut w, &[2.0, 0.0], &mut first, &mut second);
        assert!((w[0] - 0.9f64).abs() < 1e-8 && w[1] == 1.0);
        // Second: m̂ = (0.09·2 + 0.1·(−1))/0.19, v̂ = (0.000999·4 + 0.001)/0.001999.
        adam.descend(2, &mut w, &[-1.0, 0.0], &mut first, &mut second);
        let (m, v): (f64, f64) = ((0.18 - 0.1) / 0.19, (0.003996 + 0.001) / 0.001999);
        assert!((w[0] - (0.9 - 0.1 * m / v.sqrt())).abs() < 1e-8, "{w:?}");
        assert!((first[0] - 0.08).abs() < 1e-15 && (second[0] - 0.004996).abs() < 1e-15);
    }

    #[test]
    fn adam_of_f32_is_that_of_f64() {
        let count = 1003;
        let gradient = |i: usize, step: u64| {
            ((i as f64 * 0.37 + step as f64).sin() * 10f64.powi(i as i32 % 9 - 6)) as f32
        };
        let (mut w, mut first, mut second) = (vec![0.0f32; count], vec![0.0f32; count], vec![0.0f32; count]);
        let (mut exact, mut m, mut v) = (vec![0.0f64; count], vec![0.0f64; count], vec![0.0f64; count]);
        let adam = Adam::new(1e-3);
        for step in 1..=20 {
            let g: Vec<f32> = (0..count).map(|i| gradient(i, step)).collect();
            adam.descend(step, &mut w, &g, &mut first, &mut second);
            for i in 0..count {
                let g = f64::from(g[i]);
                m[i] = 0.9 * m[i] + 0.1 * g;
                v[i] = 0.999 * v[i] + 0.001 * g * g;
                let (m, v) =
                    (m[i] / (1.0 - 0.9f64.powi(step as i32)), v[i] / (1.0 - 0.999f64.powi(step as i32)));
                exact[i] -= 1e-3 * m / (v.sqrt() + 1e-8);
            }
        }
        for i in 0..count {
            assert!((f64::from(w[i]) - exact[i]).abs() < 2e-7, "{i}: {} {}", w[i], exact[i]);
        }
    }

    #[test]
    fn sgd_and_polyak() {
        let (mut w, mut target) = ([1.0, 2.0, 3.0], [5.0, 5.0, 5.0]);
        sgd(0.5, &mut w, &[2.0, -2.0, 0.0]);
        assert_eq!(w, [0.0, 3.0, 3.0]);
        polyak(0.75, &w, &mut target);
        assert_eq!(target, [3.75, 4.5, 4.5]);
    }

    #[test]
    fn clipping_keeps_the_direction() {
        let mut gradient = vec![0.0; 20];
        (gradient[1], gradient[19]) = (3.0, -4.0);
        assert_eq!(clip(10.0, &mut gradient), 5.0);
        assert_eq!((gradient[1], gradient[19]), (3.0, -4.0));
        assert_eq!(clip(1.0, &mut gradient), 5.0);
        assert!((gradient[1] - 0.6f64).abs() < 1e-15 && (gradient[19] + 0.8f64).abs() < 1e-15);
    }
}
