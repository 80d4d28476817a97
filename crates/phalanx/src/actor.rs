//! Policy gradients from received Q values. Paper: alg:pdac line 8, eq:grad_estimate.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::Ragged;
use crate::columns::state_column;
use crate::critic::{Inbox, QValues};
use crate::parallel::agent_blocks;
use crate::policy::{Parameterisation, Tabular};
use crate::rollout::Trajectory;

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
pub struct GradientRule {
    /// Weight of step k: γ^k with the batch size, the scaling and 1/n in it.
    pub weights: Vec<f64>,
    /// What is subtracted.
    pub baseline: Baseline,
    /// Divide agent i's sum by |N_i^{κ_q}| (the authors' scaling).
    pub neighbour_mean: bool,
}

impl GradientRule {
    /// Whether agents need Q at their alternative actions, or at the taken one only. The direct parameterisation
    /// always does: its score 1/π is unbounded, so its gradient is formed without it (errata 9).
    pub fn needs_alternatives(&self, parameterisation: Parameterisation) -> bool {
        self.baseline == Baseline::Counterfactual || parameterisation == Parameterisation::Direct
    }
}

/// Buffers of one agent's gradient.
#[derive(Debug, Default)]
pub struct Scratch {
    values: Vec<f64>,
    pairs: Vec<u32>,
    observations: Vec<u32>,
    visits: Vec<f64>,
}

/// ∇̃_{θ_i} L for every agent, from the batch and the values that its neighbours send.
///
/// `q_groups` row i is N_i^{κ_q}. Cost: |N_i^{κ_q}|·|A_i| table look-ups an agent and step.
pub fn gradients(
    policy: &Tabular,
    batch: &[Trajectory],
    values: &dyn QValues,
    q_groups: &Ragged<u32>,
    rule: &GradientRule,
    out: &mut Ragged<f64>,
) {
    let blocks = agent_blocks(policy.agents());
    let rows = out.split_rows_mut(&blocks);
    let alternatives = rule.needs_alternatives(policy.parameterisation());
    blocks.par_iter().zip(rows).for_each_init(Scratch::default, |scratch, (block, mut rows)| {
        for i in block.clone() {
            let group = q_groups.row(i);
            let receive = |trajectory: &Trajectory, pairs: &mut Vec<u32>, out: &mut [f64]| {
                let inbox = Inbox { to: i, from: group, trajectory, steps: rule.weights.len() };
                if alternatives {
                    values.receive_alternatives(inbox, policy.actions(i), pairs, out);
                } else {
                    values.receive_taken(inbox, pairs, out);
                }
            };
            local_gradient(policy, i, batch, receive, rule, scratch, rows.row_mut(i));
            if rule.neighbour_mean {
                let factor = 1.0 / group.len() as f64;
                rows.row_mut(i).iter_mut().for_each(|g| *g *= factor);
            }
        }
    });
}

/// Agent i's gradient, given what it `receive`s (written over its last argument): Σ_j of the neighbours' values along
/// a trajectory, one a step, or `[step][own action]` where the rule needs alternatives. Reads the columns of N_i^κ only.
pub fn local_gradient(
    policy: &Tabular,
    agent: usize,
    batch: &[Trajectory],
    receive: impl Fn(&Trajectory, &mut Vec<u32>, &mut [f64]),
    rule: &GradientRule,
    scratch: &mut Scratch,
    out: &mut [f64],
) {
    let actions = policy.actions(agent);
    let pi = policy.probabilities(agent);
    let direct = policy.parameterisation() == Parameterisation::Direct;
    let per_step = if rule.needs_alternatives(policy.parameterisation()) { actions } else { 1 };
    let Scratch { values, pairs, observations, visits } = scratch;
    out.fill(0.0);
    visits.clear();
    visits.resize(if rule.baseline == Baseline::Mean && !direct { out.len() } else { 0 }, 0.0);
    for trajectory in batch {
        values.resize(rule.weights.len() * per_step, 0.0);
        receive(trajectory, pairs, values);
        let terms = policy.observations().terms(agent);
        state_column(terms, trajectory, rule.weights.len(), observations);
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
    if rule.baseline == Baseline::Mean {
        let mean = out.iter().sum::<f64>() / visits.iter().sum::<f64>();
        out.iter_mut().zip(visits.iter()).for_each(|(c, v)| *c -= mean * v);
    }
    // ∂ log π(a|x)/∂θ(x, b) = 1[a = b] − π(b|x), summed over the samples of x.
    for (row, law) in out.chunks_exact_mut(actions).zip(pi.chunks_exact(actions)) {
        let total: f64 = row.iter().sum();
        row.iter_mut().zip(law).for_each(|(g, p)| *g -= p * total);
    }
}
