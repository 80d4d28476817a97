//! Soft-max laws, the slopes of their entropy in the logits, and the gradient of soft-max policies with
//! respect to their logits, step by step. Paper: eq:grad_estimate.

use super::{Baseline, GradientInput};
use crate::base::elementary::{ln, powi};

pub(crate) use phalanx_agent::law::softmax;

/// ∂ log π(`action`)/∂ logit of b: 1[b = `action`] − π(b).
pub(crate) fn score(b: usize, action: u8, p: f64) -> f64 {
    f64::from(u8::from(b == usize::from(action))) - p
}

/// Slopes of `bonus`·entropy(π) in the logits, −`bonus`·π(b)·(ln π(b) + entropy), written over `out`. Returns
/// the entropy.
pub(crate) fn entropy_slopes(law: &[f64], bonus: f64, out: &mut Vec<f64>) -> f64 {
    // A probability may have underflowed to 0.
    out.clear();
    out.extend(law.iter().map(|p| ln(p.max(f64::MIN_POSITIVE))));
    let entropy = -law.iter().zip(&*out).map(|(p, ln)| p * ln).sum::<f64>();
    out.iter_mut().zip(law).for_each(|(ln, p)| *ln = -bonus * p * (*ln + entropy));
    entropy
}

/// Σ over steps of w_k·(Q − baseline)·∇ log π plus the entropy bonus, as one row of |A_i| numbers per step of
/// the batch.
///
/// `laws` holds π(·|x) at every step of every trajectory, `[trajectory][step][action]`; it is replaced by the
/// gradient with respect to the logits there. `values` and `pairs` are buffers.
pub fn logit_gradients(
    input: GradientInput<'_>,
    laws: &mut [f64],
    values: &mut Vec<f64>,
    pairs: &mut Vec<u32>,
) {
    let GradientInput { agent, batch, receive, rule } = input;
    let total: usize = batch.iter().map(|trajectory| rule.steps(trajectory)).sum();
    let actions = laws.len() / total;
    let per_step = if rule.needs_alternatives(false) { actions } else { 1 };
    values.resize(total * per_step, 0.0);
    let mut rest = &mut values[..];
    for (number, trajectory) in batch.iter().enumerate() {
        let (own, tail) = rest.split_at_mut(rule.steps(trajectory) * per_step);
        receive(number, pairs, own);
        rest = tail;
    }
    let mut spread = Spread::default();
    if per_step == 1 {
        let mut first = 0;
        for trajectory in batch {
            let steps = rule.steps(trajectory);
            spread.add(&values[first..first + steps], &rule.weights);
            first += steps;
        }
    }
    let mean = if rule.baseline == Baseline::Mean && !rule.all_actions { spread.mean() } else { 0.0 };
    let scale = if rule.normalise { 1.0 / spread.deviation() } else { 1.0 };
    let mut bonuses = vec![0.0; actions];
    let (mut laws, mut values) = (laws, &values[..]);
    for trajectory in batch {
        let steps = rule.steps(trajectory);
        let (own_laws, other_laws) = laws.split_at_mut(steps * actions);
        let (own_values, other_values) = values.split_at(steps * per_step);
        (laws, values) = (other_laws, other_values);
        let steps = own_laws.chunks_exact_mut(actions).zip(own_values.chunks_exact(per_step));
        for (((law, values), &a), &w) in steps.zip(trajectory.actions(agent)).zip(&rule.weights) {
            if rule.entropy * w != 0.0 {
                entropy_slopes(law, rule.entropy * w, &mut bonuses);
            } else {
                bonuses.fill(0.0);
            }
            let expected: f64 =
                if per_step == 1 { mean } else { law.iter().zip(values).map(|(p, v)| p * v).sum() };
            let taken = if per_step == 1 { values[0] } else { values[usize::from(a)] };
            for (b, p) in law.iter_mut().enumerate() {
                let slope = if rule.all_actions {
                    *p * (values[b] - expected)
                } else {
                    scale * (taken - expected) * score(b, a, *p)
                };
                *p = w * slope + bonuses[b];
            }
        }
    }
}

/// Weighted mean and spread of values.
#[derive(Debug, Default)]
pub(super) struct Spread {
    mass: f64,
    total: f64,
    squares: f64,
}

impl Spread {
    /// Adds values with their weights.
    pub fn add(&mut self, values: &[f64], weights: &[f64]) {
        for (v, w) in values.iter().zip(weights) {
            self.mass += w;
            self.total += w * v;
            self.squares += w * v * v;
        }
    }

    /// Σ w·v / Σ w.
    pub fn mean(&self) -> f64 {
        self.total / self.mass
    }

    /// Standard deviation, a little above 0.
    pub fn deviation(&self) -> f64 {
        (self.squares / self.mass - powi(self.mean(), 2)).max(0.0).sqrt() + 1e-8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_finite_differences() {
        let logits = [0.3, -0.7, 1.1];
        let at = |logits: [f64; 3], slopes: &mut Vec<f64>| {
            let mut law = logits;
            softmax(&mut law);
            (law, entropy_slopes(&law, 2.0, slopes))
        };
        let (mut slopes, mut other) = (Vec::new(), Vec::new());
        let (law, _) = at(logits, &mut slopes);
        for b in 0..3 {
            let mut moved = |h: f64| {
                let mut logits = logits;
                logits[b] += h;
                at(logits, &mut other)
            };
            let ((up, entropy_up), (down, entropy_down)) = (moved(1e-5), moved(-1e-5));
            assert!((slopes[b] - 2.0 * (entropy_up - entropy_down) / 2e-5).abs() < 1e-8);
            assert!((score(b, 2, law[b]) - (up[2].ln() - down[2].ln()) / 2e-5).abs() < 1e-8);
        }
        assert_eq!(entropy_slopes(&[1.0, 0.0], 1.0, &mut slopes), 0.0);
        assert!(slopes.iter().all(|slope| *slope == 0.0));
    }
}
