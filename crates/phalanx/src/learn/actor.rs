//! Policy gradients from received Q values. Paper: alg:pdac line 8, eq:grad_estimate.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::border_values::BorderValues;
use super::dual::{DualSettings, MU_MAX};
use super::optimizer::OptimizerKind;
use crate::base::exact_sum::ExactSums;
use crate::base::key;
use crate::base::parallel::{blocks_of, for_each_agent};
use crate::base::range::{Fraction, Limit, NonNegative};
use crate::base::schedule::Schedule;
use crate::distributed::Halo;
use crate::graph::Graph;
use crate::learn::critic::{CriticSection, QValues, ValueReceiver};
use crate::policy::{
    self, Baseline, GradientInput, GradientScratch, GradientSettings, Parameterisation, Policy, PolicySection,
};
use crate::world::Trajectory;
use crate::{Error, Ragged, Result};

/// Where η_θ comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepRule {
    /// `eta_theta`.
    Constant,
    /// 1/(L_θθ + 4·L_θμ²·η_μ) with the constants of lemma:properties. Paper: thm:convergence.
    Theorem,
    /// The same formula with constants estimated around the initial policy (errata 7).
    Local,
}

/// `[actor]`: policy gradients and steps along them, lines 8 and 9.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ActorSettings {
    /// `adam` or `sgd`.
    pub optimizer: OptimizerKind,
    /// η_θ.
    pub eta_theta: NonNegative,
    /// `constant` (η_θ as given), `theorem` or `local` (from smoothness constants; exact algorithm).
    pub rule: StepRule,
    /// `none`, `mean` or `counterfactual`. Default: what the scaling and the critic allow.
    pub baseline: Option<Baseline>,
    /// Sum over all actions with their probabilities instead of using the one taken.
    pub all_actions: bool,
    /// Weight of the entropy of π(·|x), which is added to what is maximised.
    pub entropy: NonNegative,
    /// Largest norm of an agent's gradient; `inf` for any.
    pub clip: Limit,
    /// Step k counts γ^k in the gradient, as the estimator says; `false`: every step that was lived counts
    /// alike.
    pub discount: bool,
    /// Divide an agent's advantages by their standard deviation over the batch.
    pub normalise: bool,
    /// Share of training over which what an agent uses goes linearly from its own Q alone to the mean over
    /// its neighbourhood; 0: that mean from the beginning. For `scaling = "authors"`.
    pub mixing: Fraction,
    /// Change of η_θ over the iterations.
    pub schedule: Schedule,
    /// Change of the entropy's weight over the iterations.
    pub entropy_schedule: Schedule,
}

impl Default for ActorSettings {
    fn default() -> Self {
        ActorSettings {
            optimizer: OptimizerKind::Adam,
            eta_theta: NonNegative(0.02),
            rule: StepRule::Constant,
            baseline: None,
            all_actions: false,
            entropy: NonNegative(0.0),
            clip: Limit(f64::INFINITY),
            discount: true,
            normalise: false,
            mixing: Fraction(0.0),
            schedule: Schedule::default(),
            entropy_schedule: Schedule::default(),
        }
    }
}

/// Name of the key with the share of training over which Q values are mixed.
pub const MIXING: &str = "actor.mixing";

/// The rule of η_θ cannot be used.
pub fn rule_error(message: impl Into<String>) -> Error {
    Error::config("actor.rule", message)
}

impl ActorSettings {
    /// The entropy's weight at iteration `t` (from 0) of `total`.
    pub fn entropy_at(&self, t: usize, total: usize) -> f64 {
        if *self.entropy == 0.0 { 0.0 } else { *self.entropy * self.entropy_schedule.factor(t, total) }
    }

    /// Share of an agent's own Q in what it uses at iteration `t` (from 0) of `total`.
    pub fn own_share_at(&self, t: usize, total: usize) -> f64 {
        let until = *self.mixing * total as f64;
        ((until - (t + 1) as f64) / until).max(0.0)
    }

    /// Whether the actor fits what it works with; `is_exact`: nothing is sampled.
    pub fn check(
        &self,
        is_exact: bool,
        policy: &PolicySection,
        critic: &CriticSection,
        dual: &DualSettings,
    ) -> Result<()> {
        let parameterisation = policy.tables().map(|tables| tables.parameterisation);
        let is_direct = parameterisation == Some(Parameterisation::Direct);
        let is_counterfactual = self.baseline == Some(Baseline::Counterfactual);
        let needs =
            |fix: &str| format!("needs Q at other actions, which `{}` cannot tell; use {fix}", critic.kind);
        let is_blind = !critic.knows_alternatives();
        let rule = if self.rule == StepRule::Theorem { "theorem" } else { "local" };
        let of_rule = [
            (key::ALGORITHM, "exact", is_exact),
            ("actor.optimizer", "sgd", self.optimizer == OptimizerKind::Sgd),
            (policy::KIND, "softmax", parameterisation == Some(Parameterisation::Softmax)),
            (MU_MAX, "finite", dual.mu_max.is_finite()),
        ];
        let unmet = of_rule.iter().find(|(_, _, met)| self.rule != StepRule::Constant && !met);
        let looks_at_others = self.all_actions || is_direct || is_counterfactual;
        let has_entropy = *self.entropy > 0.0;
        let refused = [
            (is_exact && self.normalise).then(|| key::sampled_only("actor.normalise")),
            (is_exact && *self.mixing > 0.0).then(|| key::sampled_only(MIXING)),
            (is_exact && !self.discount).then(|| key::sampled_only("actor.discount")),
            (is_blind && is_counterfactual).then(|| {
                Error::config("actor.baseline", format!("`counterfactual` {}", needs("`mean` or `none`")))
            }),
            (is_blind && self.all_actions)
                .then(|| Error::config("actor.all_actions", needs("another critic"))),
            (is_blind && is_direct)
                .then(|| policy::kind_error(format!("`direct` {}", needs("`td` or `lstd`")))),
            unmet.map(|(key, value, _)| rule_error(format!("`{rule}` needs {key} = {value}"))),
            (self.normalise && looks_at_others).then(|| {
                let message = "is for actors that look at the action taken alone: baseline `mean` or `none`, no \
                               `all_actions`, no `direct`";
                Error::config("actor.normalise", message)
            }),
            (has_entropy && is_direct)
                .then(|| Error::config("actor.entropy", "is for soft-max policies; `direct` has none")),
            (has_entropy && is_exact).then(|| key::sampled_only("actor.entropy")),
        ];
        refused.into_iter().flatten().next().map_or(Ok(()), Err)
    }
}

/// Line 8 for the agents of one process, whose neighbours may live in others.
pub struct Actor {
    halo: Arc<Halo>,
    /// Row i is N_i^{κ_q}, and N_i^{κ_g} in it.
    q_groups: Ragged<u32>,
    g_groups: Ragged<u32>,
    border: BorderValues,
    /// Own agents that hear from nobody in other processes, and the others.
    inner: Vec<Range<usize>>,
    outer: Vec<Range<usize>>,
}

impl Actor {
    /// For the agents of `graph`, whose neighbours' values count within κ_q and constraints within κ_g hops.
    /// `wants[i]` values are sent to agent i for each step of `batch` trajectories of `horizon` steps.
    pub fn new(
        halo: Arc<Halo>,
        graph: &Graph,
        [q_groups, g_groups]: [Ragged<u32>; 2],
        wants: Vec<usize>,
        [batch, horizon]: [usize; 2],
    ) -> Self {
        let border = BorderValues::new(&halo, &q_groups, wants, batch, horizon);
        let [inner, outer] = border.split(&graph.owned()).map(|runs| blocks_of(&runs));
        Actor { halo, q_groups, g_groups, border, inner, outer }
    }

    /// For a graph that is all here, and constraints that count wherever objectives do, as in the paper.
    pub fn single(graph: &Graph, groups: &Ragged<u32>) -> Self {
        let halo = Arc::new(Halo::single(graph.agents()));
        Actor::new(halo, graph, [groups.clone(), groups.clone()], Vec::new(), [0, 0])
    }

    /// ∇̃_{θ_i} L of every own agent, from the batch and the values that its neighbours send; of rows of θ
    /// that agents share, the sum over all of them, in all processes. Sends values over the borders itself,
    /// and begins with those agents that need not wait for other processes.
    ///
    /// Cost: |N_i^{κ_q}|·|A_i| table look-ups per agent and step.
    pub fn gradients(
        &mut self,
        policy: &dyn Policy,
        batch: &[Trajectory],
        local: &dyn QValues,
        rule: &GradientSettings,
        out: &mut Ragged<f64>,
    ) -> Result<()> {
        let Actor { halo, q_groups, g_groups, border, inner, outer } = self;
        border.write(batch, local, g_groups, rule.needs_alternatives(policy.is_direct()));
        let heard = NeighbourValues { policy, batch, local, rule, q_groups, g_groups, remote: None };
        if policy.is_shared() {
            let mut sums = ExactSums::zeros(out.data().len());
            border.exchange(halo, &mut || heard.add_gradients(inner, &mut sums))?;
            NeighbourValues { remote: Some(border), ..heard }.add_gradients(outer, &mut sums);
            halo.sum_exactly(&mut sums)?;
            sums.write(out.data_mut());
            return Ok(());
        }
        border.exchange(halo, &mut || heard.gradients(inner, out))?;
        NeighbourValues { remote: Some(border), ..heard }.gradients(outer, out);
        Ok(())
    }
}

/// What agents hear from their neighbours along a batch.
#[derive(Clone, Copy)]
struct NeighbourValues<'a> {
    policy: &'a dyn Policy,
    batch: &'a [Trajectory],
    /// Values of the agents of this process.
    local: &'a dyn QValues,
    rule: &'a GradientSettings,
    /// Whose values reach whom, and whose constraints.
    q_groups: &'a Ragged<u32>,
    g_groups: &'a Ragged<u32>,
    /// Values from other processes; none for agents that hear from this one only.
    remote: Option<&'a BorderValues>,
}

impl NeighbourValues<'_> {
    /// The gradients of the agents in `blocks`.
    fn gradients(&self, blocks: &[Range<usize>], out: &mut Ragged<f64>) {
        for_each_agent(blocks, out.split_rows_mut(blocks), |scratch: &mut GradientScratch, i, rows| {
            self.gradient(i, scratch, rows.row_mut(i));
        });
    }

    /// Adds the gradients of the agents in `blocks` to the rows of θ that they act by.
    fn add_gradients(&self, blocks: &[Range<usize>], sums: &mut ExactSums) {
        let theta = self.policy.theta();
        let nothing = || (GradientScratch::default(), Vec::new(), ExactSums::zeros(theta.data().len()));
        let add = |(mut scratch, mut gradient, mut sums): (_, Vec<f64>, ExactSums), block: &Range<usize>| {
            for i in block.clone() {
                let row = self.policy.row_of(i);
                let range = theta.offsets()[row]..theta.offsets()[row + 1];
                gradient.clear();
                gradient.resize(range.len(), 0.0);
                self.gradient(i, &mut scratch, &mut gradient);
                sums.add_at(range.start, &gradient);
            }
            (scratch, gradient, sums)
        };
        let parts: Vec<ExactSums> = blocks.par_iter().fold(nothing, add).map(|(.., sums)| sums).collect();
        parts.iter().for_each(|part| sums.merge(part.sums()));
    }

    /// The gradient of agent i.
    fn gradient(&self, i: usize, scratch: &mut GradientScratch, out: &mut [f64]) {
        let NeighbourValues { policy, batch, local, rule, q_groups, g_groups, remote } = *self;
        let alternatives = rule.needs_alternatives(policy.is_direct());
        let (group, constrained) = (q_groups.row(i), g_groups.row(i));
        let remote = remote.filter(|border| border.reaches(i));
        let receive = |number: usize, pairs: &mut Vec<u32>, out: &mut [f64]| {
            let (trajectory, steps) = (&batch[number], rule.steps(&batch[number]));
            let inbox = ValueReceiver { to: i, from: group, constrained, number, trajectory, steps };
            let told = |j: u32| remote.and_then(|border| border.received(i, j, number));
            out.fill(0.0);
            for &j in group {
                match told(j) {
                    Some(told) => out.iter_mut().zip(told).for_each(|(out, q)| *out += q),
                    None if alternatives => {
                        local.add_alternatives(j, &inbox, policy.actions(i), pairs, out);
                    }
                    None => local.add_taken(j, &inbox, pairs, out),
                }
            }
            if rule.neighbour_mean {
                out.iter_mut().for_each(|q| *q /= group.len() as f64);
            }
            if rule.own_share > 0.0 {
                out.iter_mut().for_each(|q| *q *= (1.0 - rule.own_share) / rule.own_share);
                match alternatives {
                    true => local.add_alternatives(i as u32, &inbox, policy.actions(i), pairs, out),
                    false => local.add_taken(i as u32, &inbox, pairs, out),
                }
                out.iter_mut().for_each(|q| *q *= rule.own_share);
            }
        };
        policy.gradient(GradientInput { agent: i, batch, receive: &receive, rule }, scratch, out);
    }
}

/// Bytes that a process sends at most to sum up so many numbers, in so many rounds, over all processes.
pub fn sum_bytes(numbers: usize, rounds: usize, halo: &Halo) -> usize {
    (size_of::<i128>() * numbers + 2 * size_of::<u64>() * rounds) * halo.peers().count()
}

/// Shortens every agent's gradient to a norm of `largest` at most.
pub fn clip(gradient: &mut Ragged<f64>, largest: f64) {
    if largest == f64::INFINITY {
        return;
    }
    for i in 0..gradient.rows() {
        let row = gradient.row_mut(i);
        let norm = row.iter().map(|g| g * g).sum::<f64>().sqrt();
        if norm > largest {
            row.iter_mut().for_each(|g| *g *= largest / norm);
        }
    }
}
