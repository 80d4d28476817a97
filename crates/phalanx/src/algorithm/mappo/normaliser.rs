//! Running mean and deviation of value targets, so that critics learn numbers of size 1 (PopArt).

use bytemuck::{Pod, Zeroable};

/// Exponential averages of a target and its square, and their weight so far, 1 in the limit.
///
/// Literature: van Hasselt and others, "Learning values across many orders of magnitude", NeurIPS 2016.
#[derive(Debug, Clone, Copy, PartialEq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Normaliser {
    mean: f64,
    square: f64,
    weight: f64,
}

/// Share of itself that an average keeps at an update.
const BETA: f64 = 0.99999;

/// Least variance, as in the published programs: targets that hardly differ are not blown up.
const LEAST_VARIANCE: f64 = 1e-2;

impl Normaliser {
    /// Numbers that a normaliser has in memory.
    pub const LENGTH: usize = 3;

    /// Those that a row of numbers holds.
    pub fn of_row(row: &mut [f64]) -> &mut [Normaliser] {
        bytemuck::cast_slice_mut(row)
    }

    /// Takes a batch of targets in.
    pub fn update(&mut self, targets: &[f64]) {
        let count = targets.len() as f64;
        let mean = targets.iter().sum::<f64>() / count;
        let square = targets.iter().map(|x| x * x).sum::<f64>() / count;
        self.mean = BETA * self.mean + (1.0 - BETA) * mean;
        self.square = BETA * self.square + (1.0 - BETA) * square;
        self.weight = BETA * self.weight + (1.0 - BETA);
    }

    /// Mean and standard deviation of the targets so far; 0 and 1 before there are any.
    pub fn scale(&self) -> (f64, f64) {
        if self.weight == 0.0 {
            return (0.0, 1.0);
        }
        let (mean, square) = (self.mean / self.weight, self.square / self.weight);
        let variance = square - mean * mean;
        // Not `f64::max`, which would hide a NaN.
        (mean, if variance < LEAST_VARIANCE { LEAST_VARIANCE.sqrt() } else { variance.sqrt() })
    }
}

/// Changes a neural network's last layer so that its output, scaled back, is the same with the new scale as
/// it was with the old.
pub fn preserve(old: (f64, f64), new: (f64, f64), weights: &mut [f32], biases: &mut [f32]) {
    let factor = old.1 / new.1;
    weights.iter_mut().for_each(|w| *w = (f64::from(*w) * factor) as f32);
    biases.iter_mut().for_each(|b| *b = (f64::from(*b) * factor + (old.0 - new.0) / new.1) as f32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_by_hand() {
        let mut normaliser = Normaliser::default();
        assert_eq!(normaliser.scale(), (0.0, 1.0));
        // Weights are corrected for: the first batch counts fully.
        normaliser.update(&[1.0, 3.0]);
        let (mean, deviation) = normaliser.scale();
        assert!((mean - 2.0).abs() < 1e-9 && (deviation - 1.0).abs() < 1e-9, "{mean} {deviation}");
        // The second almost as much: mean (β·2 + 6)/(β + 1), squares (β·5 + 40)/(β + 1).
        normaliser.update(&[4.0, 8.0]);
        let (mean, deviation) = normaliser.scale();
        let both = |first: f64, second: f64| (0.99999 * first + second) / 1.99999;
        assert!((mean - both(2.0, 6.0)).abs() < 1e-9);
        assert!((deviation.powi(2) - (both(5.0, 40.0) - mean * mean)).abs() < 1e-7);
        let mut row = [0.0, 0.0, 0.0, normaliser.mean, normaliser.square, normaliser.weight];
        assert_eq!(Normaliser::of_row(&mut row), [Normaliser::default(), normaliser]);
        // Targets that do not differ have a deviation of 0.1.
        let mut flat = Normaliser::default();
        flat.update(&[7.0, 7.0]);
        assert!((flat.scale().1 - 0.1).abs() < 1e-12);
    }

    #[test]
    fn a_new_scale_keeps_what_the_network_says() {
        let (old, new) = ((1.0, 2.0), (-3.0, 0.5));
        let (mut weights, mut biases) = ([0.25f32, -1.5], [0.75f32]);
        let said =
            |scale: (f64, f64), w: &[f32], b: &[f32]| scale.0 + scale.1 * f64::from(w[0] * 2.0 - w[1] + b[0]);
        let before = said(old, &weights, &biases);
        preserve(old, new, &mut weights, &mut biases);
        assert!((said(new, &weights, &biases) - before).abs() < 1e-6);
        assert_eq!(weights, [1.0, -6.0]);
    }
}
