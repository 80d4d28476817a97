//! The gradient of soft-max policies with respect to their logits, step by step. Paper: eq:grad_estimate.

use super::Receive;
use crate::actor::{Baseline, GradientRule};
use crate::rollout::Trajectory;

/// Σ over steps of w_k·(Q − baseline)·∇ log π plus the entropy bonus, as one row of |A_i| numbers a step of the batch.
///
/// `laws` holds π(·|x) at every step of every trajectory, `[trajectory][step][action]`; it is replaced by the gradient
/// with respect to the logits there. `values` and `pairs` are buffers.
pub fn logit_gradients(
    agent: usize,
    batch: &[Trajectory],
    receive: &Receive<'_>,
    rule: &GradientRule,
    laws: &mut [f64],
    values: &mut Vec<f64>,
    pairs: &mut Vec<u32>,
) {
    let steps = rule.weights.len();
    let actions = laws.len() / (batch.len() * steps);
    let per_step = if rule.needs_alternatives(false) { actions } else { 1 };
    values.resize(batch.len() * steps * per_step, 0.0);
    for (number, values) in values.chunks_exact_mut(steps * per_step).enumerate() {
        receive(number, pairs, values);
    }
    let mean =
        if rule.baseline == Baseline::Mean && !rule.all_actions { weighted_mean(values, rule) } else { 0.0 };
    let rows = laws.chunks_exact_mut(steps * actions).zip(values.chunks_exact(steps * per_step)).zip(batch);
    for ((laws, values), trajectory) in rows {
        let steps = laws.chunks_exact_mut(actions).zip(values.chunks_exact(per_step));
        for (((law, values), &a), &w) in steps.zip(trajectory.actions(agent)).zip(&rule.weights) {
            let bonus = rule.entropy * w;
            // −Σ π ln π, for the bonus's slope −π(b)·(ln π(b) + entropy).
            let entropy: f64 =
                if bonus == 0.0 { 0.0 } else { -law.iter().map(|&p| p * floored_ln(p)).sum::<f64>() };
            let expected: f64 =
                if per_step == 1 { mean } else { law.iter().zip(values).map(|(p, v)| p * v).sum() };
            let taken = if per_step == 1 { values[0] } else { values[usize::from(a)] };
            for (b, p) in law.iter_mut().enumerate() {
                let slope = if bonus == 0.0 { 0.0 } else { -bonus * *p * (floored_ln(*p) + entropy) };
                let advantage = if rule.all_actions {
                    *p * (values[b] - expected)
                } else {
                    let indicator = f64::from(u8::from(b == usize::from(a)));
                    (taken - expected) * (indicator - *p)
                };
                *p = w * advantage + slope;
            }
        }
    }
}

/// ln of a probability that may have underflowed to 0.
pub(crate) fn floored_ln(p: f64) -> f64 {
    p.max(f64::MIN_POSITIVE).ln()
}

fn weighted_mean(values: &[f64], rule: &GradientRule) -> f64 {
    let (mut total, mut mass) = (0.0, 0.0);
    for values in values.chunks_exact(rule.weights.len()) {
        for (v, w) in values.iter().zip(&rule.weights) {
            total += w * v;
            mass += w;
        }
    }
    total / mass
}
