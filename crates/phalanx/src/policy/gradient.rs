//! What a policy needs to know to form its gradient, and the gradient of tables. Paper: eq:grad_estimate.

use serde::{Deserialize, Serialize};

use super::columns::state_column;
use super::logits::Spread;
use super::{Parameterisation, Receive, Tabular, entropy_slopes};
use crate::neural::{Inputs, Training};
use crate::world::Trajectory;

/// What is subtracted from the summed Q values before they weigh a score. None of it changes the expected gradient of
/// a soft-max policy, except that `mean` contains the sample itself: a bias of the order 1/(B·H).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Baseline {
    /// Nothing: the literal estimator.
    None,
    /// The agent's own mean over the batch.
    Mean,
    /// The expectation over the agent's own action, everyone else's held: Σ_b π_i(b|x)·Σ_j Q_j(…, b, …).
    Counterfactual,
}

/// How samples are weighed.
#[derive(Debug, Clone)]
pub struct GradientSettings {
    /// Weight of step k: γ^k with the batch size, the scaling and 1/n in it.
    pub weights: Vec<f64>,
    /// What is subtracted.
    pub baseline: Baseline,
    /// Divide the sum that agent i receives by |N_i^{κ_q}| (the authors' scaling).
    pub neighbour_mean: bool,
    /// Sum over all actions with their probabilities, Σ_b π(b|x)·A(b)·∇ log π(b|x), instead of the one taken.
    pub all_actions: bool,
    /// Divide what weighs the scores by its standard deviation over the agent's batch.
    pub normalise: bool,
    /// Weight of the entropy of π(·|x), added to what is maximised.
    pub entropy: f64,
}

impl GradientSettings {
    /// Steps of a trajectory that count.
    pub fn steps(&self, trajectory: &Trajectory) -> usize {
        trajectory.steps().min(self.weights.len())
    }

    /// Whether agents need Q at their alternative actions, or at the taken one only. The direct parameterisation
    /// always does: its score 1/π is unbounded, so its gradient is formed without it (errata 9).
    pub fn needs_alternatives(&self, is_direct: bool) -> bool {
        self.baseline == Baseline::Counterfactual || self.all_actions || is_direct
    }
}

/// Buffers of one agent's gradient.
#[derive(Debug, Default)]
pub struct GradientScratch {
    pub(crate) values: Vec<f64>,
    pub(crate) pairs: Vec<u32>,
    pub(crate) laws: Vec<f64>,
    pub(crate) inputs: Inputs,
    pub(crate) training: Training,
    pub(crate) active: Vec<u32>,
    pub(crate) ends: Vec<usize>,
    pub(crate) seen: Vec<u8>,
    observations: Vec<u32>,
    visits: Vec<f64>,
}

/// Agent i's gradient of a table. Reads the columns of N_i^κ only.
pub(crate) fn tabular_gradient(
    policy: &Tabular,
    agent: usize,
    batch: &[Trajectory],
    receive: &Receive<'_>,
    rule: &GradientSettings,
    scratch: &mut GradientScratch,
    out: &mut [f64],
) {
    let actions = policy.actions(agent);
    let pi = policy.probabilities(agent);
    let direct = policy.parameterisation() == Parameterisation::Direct;
    let per_step = if rule.needs_alternatives(direct) { actions } else { 1 };
    let by_mean = rule.baseline == Baseline::Mean && !rule.all_actions && !direct;
    let GradientScratch { values, pairs, laws, observations, visits, .. } = scratch;
    out.fill(0.0);
    visits.clear();
    visits.resize(if by_mean || rule.entropy != 0.0 { out.len() } else { 0 }, 0.0);
    let mut spread = Spread::default();
    for (number, trajectory) in batch.iter().enumerate() {
        let steps = rule.steps(trajectory);
        values.resize(steps * per_step, 0.0);
        receive(number, pairs, values);
        if rule.normalise {
            spread.add(values, &rule.weights);
        }
        let terms = policy.observations().terms(agent);
        state_column(terms, trajectory, steps, observations);
        let steps = observations.iter().zip(trajectory.actions(agent)).zip(&rule.weights);
        let steps = steps.zip(values.chunks_exact(per_step));
        if direct {
            // Less the expectation: projection onto the simplex would undo a common shift of a row, but Adam, which
            // rescales each entry by itself, would follow it.
            for (((&x, _), &w), values) in steps {
                let row = x as usize * actions;
                let expected: f64 = pi[row..row + actions].iter().zip(values).map(|(p, v)| p * v).sum();
                out[row..row + actions].iter_mut().zip(values).for_each(|(g, v)| *g += w * (v - expected));
            }
            continue;
        }
        if rule.entropy != 0.0 && !by_mean {
            for ((&x, &a), &w) in observations.iter().zip(trajectory.actions(agent)).zip(&rule.weights) {
                visits[x as usize * actions + usize::from(a)] += w;
            }
        }
        if rule.all_actions {
            for (((&x, _), &w), values) in steps {
                let row = x as usize * actions;
                let law = &pi[row..row + actions];
                let expected: f64 = law.iter().zip(values).map(|(p, v)| p * v).sum();
                for ((g, p), v) in out[row..row + actions].iter_mut().zip(law).zip(values) {
                    *g += w * p * (v - expected);
                }
            }
            continue;
        }
        match rule.baseline {
            Baseline::Counterfactual => {
                for (((&x, &a), &w), values) in steps {
                    let row = x as usize * actions;
                    let mut expected = 0.0;
                    for (p, v) in pi[row..row + actions].iter().zip(values) {
                        expected += p * v;
                    }
                    out[row + usize::from(a)] += w * (values[usize::from(a)] - expected);
                }
            }
            Baseline::Mean => {
                for (((&x, &a), &w), values) in steps {
                    let cell = x as usize * actions + usize::from(a);
                    out[cell] += w * values[0];
                    visits[cell] += w;
                }
            }
            Baseline::None => {
                for (((&x, &a), &w), values) in steps {
                    out[x as usize * actions + usize::from(a)] += w * values[0];
                }
            }
        }
    }
    if direct {
        return;
    }
    if by_mean {
        let mean = out.iter().sum::<f64>() / visits.iter().sum::<f64>();
        out.iter_mut().zip(visits.iter()).for_each(|(c, v)| *c -= mean * v);
    }
    if rule.normalise {
        out.iter_mut().for_each(|c| *c /= spread.deviation());
    }
    // ∂ log π(a|x)/∂θ(x, b) = 1[a = b] − π(b|x), summed over the samples of x.
    for (row, law) in out.chunks_exact_mut(actions).zip(pi.chunks_exact(actions)) {
        let total: f64 = row.iter().sum();
        row.iter_mut().zip(law).for_each(|(g, p)| *g -= p * total);
    }
    if rule.entropy == 0.0 {
        return;
    }
    // The slopes of the entropy, once for every visit of x.
    let laws_and_visits = pi.chunks_exact(actions).zip(visits.chunks_exact(actions));
    for (row, (law, visits)) in out.chunks_exact_mut(actions).zip(laws_and_visits) {
        entropy_slopes(law, rule.entropy * visits.iter().sum::<f64>(), laws);
        row.iter_mut().zip(laws.iter()).for_each(|(g, slope)| *g += slope);
    }
}
