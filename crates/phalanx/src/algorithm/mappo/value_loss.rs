//! The clipped loss of a critic.

/// max of the Huber losses of v and of v kept within `clip` of what it was, against its target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValueLoss {
    /// How far a value may move.
    pub clip: f64,
    /// δ: errors beyond it count linearly.
    pub huber: f64,
    /// Whether values that are too large by more than δ cost nothing, as in the published programs.
    pub one_sided: bool,
}

impl ValueLoss {
    /// The mean over samples; `slopes` becomes its gradient in the values.
    pub fn evaluate(&self, values: &[f32], old: &[f32], targets: &[f32], slopes: &mut [f32]) -> f64 {
        let share = 1.0 / values.len() as f64;
        let mut total = 0.0;
        let samples = values.iter().zip(old).zip(targets);
        for (((&value, &old), &target), slope) in samples.zip(slopes) {
            let [value, old, target] = [value, old, target].map(f64::from);
            let moved = value - old;
            let kept = old + moved.clamp(-self.clip, self.clip);
            let (plain, by_error) = self.huber(target - value);
            let (clipped, _) = self.huber(target - kept);
            // Where the clipped one is larger, v is beyond the clip and has no slope.
            let (loss, along) = if clipped > plain { (clipped, 0.0) } else { (plain, -by_error) };
            total += share * loss;
            *slope = (share * along) as f32;
        }
        total
    }

    /// Loss of an error and its slope.
    fn huber(&self, error: f64) -> (f64, f64) {
        let size = error.abs();
        if size <= self.huber {
            (0.5 * error * error, error)
        } else if error < 0.0 && self.one_sided {
            (0.0, 0.0)
        } else {
            (self.huber * (size - 0.5 * self.huber), self.huber * error.signum())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_by_hand() {
        let rule = ValueLoss { clip: 0.25, huber: 2.0, one_sided: false };
        let mut slopes = [f32::NAN; 4];
        // Within both limits; a value that has gone too far towards its target; one that has gone too far
        // away from it; an error beyond δ.
        let loss =
            rule.evaluate(&[0.25, 1.0, 1.0, 0.0], &[0.0, 0.0, 0.0, 0.0], &[1.0, 1.0, -1.0, 5.0], &mut slopes);
        assert_eq!(slopes, [-0.75 / 4.0, 0.0, 2.0 / 4.0, -2.0 / 4.0]);
        assert_eq!(loss, (0.75f64.powi(2) / 2.0 + 0.75f64.powi(2) / 2.0 + 2.0 + 2.0 * 4.0) / 4.0);
    }

    #[test]
    fn published_programs_forget_one_side() {
        let mut slopes = [f32::NAN; 2];
        let both = ValueLoss { clip: 9.0, huber: 2.0, one_sided: false };
        assert_eq!(both.evaluate(&[5.0, -5.0], &[5.0, -5.0], &[0.0, 0.0], &mut slopes), 8.0);
        assert_eq!(slopes, [1.0, -1.0]);
        let one = ValueLoss { one_sided: true, ..both };
        assert_eq!(one.evaluate(&[5.0, -5.0], &[5.0, -5.0], &[0.0, 0.0], &mut slopes), 4.0);
        assert_eq!(slopes, [0.0, -1.0]);
    }

    #[test]
    fn slopes_are_finite_differences() {
        let rule = ValueLoss { clip: 0.25, huber: 2.0, one_sided: false };
        for value in [-3.0f32, -0.5, 0.125, 0.75, 3.5] {
            let mut slope = [0.0];
            rule.evaluate(&[value], &[0.25], &[1.0], &mut slope);
            let at = |v: f32| rule.evaluate(&[v], &[0.25], &[1.0], &mut [0.0]);
            let h = 1.0 / 1024.0;
            let difference = (at(value + h) - at(value - h)) / (2.0 * f64::from(h));
            assert!((f64::from(slope[0]) - difference).abs() < 1e-3, "{value}: {slope:?} {difference}");
        }
    }
}
