//! The clipped surrogate objective of an actor.

use crate::policy::{entropy_slopes, score};

/// mean[M·min(ρ·Â, clip(ρ, 1 ± ε)·Â)] + c·mean[entropy of π], to be increased; ρ = π/π_old at the action
/// taken.
///
/// Literature: Schulman and others, "Proximal policy optimization algorithms", 2017; Gu and others,
/// "Multi-agent constrained policy optimisation", 2021.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Surrogate {
    /// ε.
    pub clip: f64,
    /// c.
    pub entropy: f64,
}

/// What is known about one sample.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// The action taken.
    pub action: u8,
    /// π_old of it.
    pub probability: f64,
    /// Â.
    pub advantage: f64,
    /// M: product of the ratios of the agents that were updated before.
    pub weight: f64,
}

impl Surrogate {
    /// One sample's part of the objective, times `share`. `law` becomes its slope in the logits; returns the
    /// objective and ρ. `bonuses` is a buffer.
    pub fn evaluate(
        &self,
        sample: Sample,
        share: f64,
        law: &mut [f64],
        bonuses: &mut Vec<f64>,
    ) -> (f64, f64) {
        let Sample { action, probability, advantage, weight } = sample;
        let ratio = law[usize::from(action)] / probability;
        let (plain, clipped) = (ratio * advantage, ratio.clamp(1.0 - self.clip, 1.0 + self.clip) * advantage);
        // Where the clipped one counts, ρ is beyond the clip: nothing to gain there.
        let factor = if plain <= clipped { share * weight * plain } else { 0.0 };
        let bonus = share * self.entropy;
        let mut entropy = 0.0;
        if bonus == 0.0 {
            bonuses.clear();
            bonuses.resize(law.len(), 0.0);
        } else {
            entropy = entropy_slopes(law, bonus, bonuses);
        }
        for (b, (p, bonus)) in law.iter_mut().zip(bonuses).enumerate() {
            *p = factor * score(b, action, *p) + *bonus;
        }
        let least = if plain <= clipped { plain } else { clipped };
        (share * weight * least + bonus * entropy, ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::softmax;

    const RULE: Surrogate = Surrogate { clip: 0.2, entropy: 0.3 };

    fn value(logits: &[f64], sample: Sample) -> f64 {
        let mut law = logits.to_vec();
        softmax(&mut law);
        RULE.evaluate(sample, 0.25, &mut law, &mut Vec::new()).0
    }

    #[test]
    fn slopes_are_finite_differences() {
        let logits = [0.3, -0.7, 1.1];
        let mut law = logits;
        softmax(&mut law);
        // Ratios below, inside and above the clip, with advantages of both signs.
        for probability in [law[2] / 0.7, law[2] / 1.1, law[2] / 1.5] {
            for advantage in [2.0, -1.5] {
                let sample = Sample { action: 2, probability, advantage, weight: 1.3 };
                let mut slopes = law;
                let (_, ratio) = RULE.evaluate(sample, 0.25, &mut slopes, &mut Vec::new());
                assert!((ratio - law[2] / probability).abs() < 1e-15);
                for b in 0..3 {
                    let moved = |h: f64| {
                        let mut logits = logits;
                        logits[b] += h;
                        value(&logits, sample)
                    };
                    let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                    assert!((slopes[b] - difference).abs() < 1e-8, "{sample:?}: {} {difference}", slopes[b]);
                }
            }
        }
    }

    #[test]
    fn what_goes_too_far_earns_nothing_more() {
        let rule = Surrogate { clip: 0.2, entropy: 0.0 };
        let at = |probability: f64, advantage: f64| {
            let mut law = [0.5, 0.5];
            let sample = Sample { action: 0, probability, advantage, weight: 2.0 };
            let (value, _) = rule.evaluate(sample, 1.0, &mut law, &mut Vec::new());
            (value, law)
        };
        // ρ = 2: what was good is clipped, what was bad is not.
        assert_eq!(at(0.25, 1.0), (2.0 * 1.2, [0.0, 0.0]));
        assert_eq!(at(0.25, -1.0), (2.0 * -2.0, [-2.0, 2.0]));
        // ρ = 1/2: the other way round.
        assert_eq!(at(1.0, -1.0), (2.0 * -0.8, [0.0, 0.0]));
        assert_eq!(at(1.0, 1.0), (2.0 * 0.5, [0.5, -0.5]));
    }
}
