//! Linear truncated Q-functions over indicator features, for neighbourhoods that are too large for tables.

mod kernel;

use std::cell::RefCell;

use serde::{Deserialize, Serialize};

use super::chains::ChainKeys;
use super::features::{AllFeatures, FEATURES, FeatureRows, FeatureSet, read_group};
use super::lstd::RidgeKeys;
use super::utility_rows::{UtilityRows, fit};
use super::{
    Critic, CriticContext, CriticFeatures, CriticInput, CriticSettings, QValues, SampleRequest, StepSettings,
    StepsKeys, ValueReceiver, ValueRequest,
};
use crate::base::elimination;
use crate::base::fields::{Field, Fields};
use crate::base::limits::check_memory;
use crate::base::parallel::for_each_agent;
use crate::base::range::Share;
use crate::base::section::Keys;
use crate::learn::shadow::{Signals, reward_column};
use crate::utility::problem::Problem;
use crate::world::Trajectory;
use crate::world::{Columns, LARGEST_LOCAL_SPACE};
use crate::{Ragged, Result};

/// How the weights are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Solver {
    Lstd,
    Td,
}

/// Keys of `[critic]` on features and their weights (linear).
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(default)]
struct LinearKeys {
    /// `lstd` or `td`.
    solver: Solver,
    /// Share of the last iteration's equations that LSTD keeps.
    average: Share,
    /// `own`, `additive` or `pair`.
    features: CriticFeatures,
    /// Add the features that the world knows, if it does.
    world_features: bool,
}

impl Default for LinearKeys {
    fn default() -> Self {
        let features = CriticFeatures::Pair;
        LinearKeys { solver: Solver::Lstd, average: Share(0.0), features, world_features: true }
    }
}

/// The settings of `linear`.
#[derive(Debug)]
pub struct LinearCriticSettings {
    samples: StepsKeys,
    sizes: StepSettings,
    equations: RidgeKeys,
    chains: ChainKeys,
    own: LinearKeys,
}

impl LinearCriticSettings {
    pub(crate) fn read(keys: &mut Keys) -> Result<Self> {
        Ok(LinearCriticSettings {
            samples: keys.read()?,
            sizes: keys.read()?,
            equations: keys.read()?,
            chains: keys.read()?,
            own: keys.read()?,
        })
    }
}

impl CriticSettings for LinearCriticSettings {
    fn check(&self, batch: usize, _is_exact: bool) -> Result<()> {
        if self.own.solver == Solver::Td {
            self.sizes.check()?;
        }
        self.chains.check(&self.samples, batch)
    }

    fn build(&self, context: CriticContext<'_>) -> Result<Box<dyn Critic>> {
        let CriticContext { world, problem, kappa_q, .. } = context;
        let LinearKeys { solver, average, features, world_features } = self.own;
        let features = AllFeatures::new(world, kappa_q, features, world_features)?;
        // Weights of every utility, and their weighted sum.
        let rows = features.sets.iter().zip(&problem.agents);
        let weights: usize = rows.map(|(set, agent)| set.count * (2 + agent.constraints.len())).sum();
        check_memory(8 * weights as u128, FEATURES, &format!("linear critics of {weights} weights"))?;
        let rule = match solver {
            Solver::Lstd => LinearRule::Lstd { ridge: *self.equations.ridge, average: *average },
            Solver::Td => LinearRule::Td(self.sizes),
        };
        if solver == Solver::Lstd {
            // Equations are kept for every agent, or made anew on every thread.
            let square = |set: &FeatureSet| (set.count as u128).pow(2);
            let largest = features.sets.iter().map(square).max().unwrap_or(0);
            let kept: u128 = if *average > 0.0 { features.sets.iter().map(square).sum() } else { 0 };
            let bytes = 8 * (kept + 3 * largest * rayon::current_num_threads() as u128);
            let most = features.sets.iter().map(|set| set.count).max().unwrap_or(0);
            let what = format!("LSTD over up to {most} features of {} agents", features.sets.len());
            check_memory(bytes, FEATURES, &what)?;
        }
        Ok(Box::new(LinearCritic::new(features, problem, rule, self.chains.wanted(&self.samples))))
    }
}

/// How the weights are found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LinearRule {
    /// The fixed point of TD on the samples: (A + ridge·I)·w = b, with A = mean of φ(φ − γφ')ᵀ.
    Lstd {
        /// Added to the diagonal.
        ridge: f64,
        /// Share of the last iteration's equations that is kept: exponential averaging over policies that
        /// change slowly.
        average: f64,
    },
    /// One pass of TD over the samples, the step divided by the number of active features.
    Td(StepSettings),
}

/// Q_u(s, a)_{N_j} ≈ ⟨w_u, φ_j(s, a)⟩ for every utility u of agent j.
pub struct LinearCritic {
    features: AllFeatures,
    rule: LinearRule,
    samples: SampleRequest,
    /// A row of a utility has a weight for every feature.
    weights: UtilityRows,
    /// LSTD's equations, row j: A as `[feature][feature]`, then the mean of φ·(own cell, sampled rewards)ᵀ as
    /// `[feature][row]`: right-hand sides follow from it for any shadow reward. Empty unless they are
    /// averaged.
    equations: Ragged<f64>,
    /// Weight of all averaged iterations so far, 1 in the limit.
    averaged: f64,
    /// Values at all alternatives of all members along the batch, row j as `[trajectory][step][member,
    /// action]`; empty where that would be too much.
    ahead: Ragged<f64>,
    /// Whether receivers are told how much the alternatives of a step differ, which is all that a gradient
    /// depends on: where nothing is worked out ahead, that is far less work.
    tells_changes: bool,
    horizon: usize,
}

/// Values kept ahead at most: enough for small graphs, where every sender would work them out once for each
/// receiver.
const MOST_AHEAD: usize = 1 << 23;

impl LinearCritic {
    /// Zero weights.
    pub fn new(features: AllFeatures, problem: &Problem, rule: LinearRule, samples: SampleRequest) -> Self {
        let count = |j: usize| features.sets[j].count;
        let length = |j: usize| (1 + problem.agents[j].constraints.len()) * count(j);
        let n = features.sets.len();
        let kept = matches!(rule, LinearRule::Lstd { average, .. } if average > 0.0);
        let equations = Ragged::zeros(
            (0..n).map(|j| if kept { count(j) * (count(j) + problem.row_length(j)) } else { 0 }),
        );
        LinearCritic {
            weights: UtilityRows::new(Ragged::zeros((0..n).map(length))),
            equations,
            averaged: 0.0,
            ahead: Ragged::zeros(std::iter::repeat_n(0, n)),
            tells_changes: false,
            horizon: 0,
            rule,
            samples,
            features,
        }
    }
}

impl LinearCritic {
    /// Values of agent j that are kept ahead along so many steps; 0 where that would be too much. An agent's
    /// share of the memory depends on nobody else, so that a process with a part of them does the same.
    fn length_ahead(&self, j: usize, steps: usize) -> usize {
        let length = steps * width_of(&self.features.sets[j]);
        if length.saturating_mul(self.features.total) <= MOST_AHEAD { length } else { 0 }
    }
}

thread_local! {
    static CHANGES: RefCell<Vec<f64>> = RefCell::default();
}

/// Alternatives of all members together.
fn width_of(set: &FeatureSet) -> usize {
    set.actions.iter().sum()
}

/// Buffers of one agent's learning.
#[derive(Default)]
struct LinearWorkspace {
    rows: FeatureRows,
    /// This iteration's equations of LSTD.
    equations: Vec<f64>,
    /// As [`elimination::solve`] wants them.
    system: Vec<f64>,
    /// Rewards of every utility along a trajectory, for TD.
    rewards: Vec<Vec<f64>>,
}

impl Critic for LinearCritic {
    fn samples(&self) -> SampleRequest {
        self.samples
    }

    fn learn(&mut self, evidence: CriticInput<'_>) -> Result<()> {
        let trajectories = evidence.wanted(self.samples);
        let (rule, mass, signals) = (self.rule, self.advance_average(), evidence.signals);
        let (features, blocks) = (&self.features, &self.features.blocks);
        let rows =
            self.weights.all.split_rows_mut(blocks).into_iter().zip(self.equations.split_rows_mut(blocks));
        for_each_agent(blocks, rows, |scratch: &mut LinearWorkspace, j, (weights, equations)| {
            let (actions, rewards, gamma) = (signals.actions[j], signals.rewards.row(j), signals.gamma);
            let agent = Agent { features, j, actions, rewards, trajectories, gamma };
            match rule {
                LinearRule::Lstd { ridge, average } => {
                    agent.lstd(ridge, average, mass, equations.row_mut(j), weights.row_mut(j), scratch);
                }
                LinearRule::Td(steps) => agent.td(steps, weights.row_mut(j), scratch),
            }
        });
        Ok(())
    }

    fn values(&self) -> &dyn QValues {
        self
    }

    fn values_mut(&mut self) -> &mut dyn QValues {
        self
    }

    fn fields(&mut self) -> Fields<'_> {
        match self.rule {
            LinearRule::Lstd { average: 0.0, .. } => Vec::new(),
            LinearRule::Lstd { .. } => vec![
                ("critic", Field::Rows(&mut self.equations)),
                ("critic.averaged", Field::Numbers(std::slice::from_mut(&mut self.averaged))),
            ],
            LinearRule::Td(_) => vec![("critic", Field::Rows(&mut self.weights.all))],
        }
    }
}

/// What one agent learns from.
struct Agent<'a> {
    features: &'a AllFeatures,
    j: usize,
    actions: usize,
    rewards: &'a [f64],
    trajectories: &'a [Trajectory],
    gamma: f64,
}

impl Agent<'_> {
    fn lstd(
        &self,
        ridge: f64,
        average: f64,
        mass: f64,
        equations: &mut [f64],
        weights: &mut [f64],
        scratch: &mut LinearWorkspace,
    ) {
        let (set, j) = (&self.features.sets[self.j], self.j);
        let count = set.count;
        let utilities = weights.len() / count;
        let width = self.rewards.len() / utilities;
        let LinearWorkspace { rows, equations: fresh, system, .. } = scratch;
        fresh.clear();
        fresh.resize(count * (count + width), 0.0);
        let (matrix, visits) = fresh.split_at_mut(count * count);
        let mut transitions = 0.0;
        for trajectory in self.trajectories {
            rows.read(set, self.features.groups.row(j), trajectory);
            let cells = width - trajectory.channels();
            for k in 0..trajectory.transitions() {
                let (now, next) = (rows.row(k), rows.row(k + 1));
                let own = usize::from(trajectory.states(j)[k]) * self.actions
                    + usize::from(trajectory.actions(j)[k]);
                for &x in now {
                    let row = &mut matrix[x as usize * count..][..count];
                    now.iter().for_each(|&y| row[y as usize] += 1.0);
                    next.iter().for_each(|&y| row[y as usize] -= self.gamma);
                    let visits = &mut visits[x as usize * width..][..width];
                    visits[own] += 1.0;
                    for (channel, visit) in visits[cells..].iter_mut().enumerate() {
                        *visit += f64::from(trajectory.rewards(channel, j)[k]);
                    }
                }
                transitions += 1.0;
            }
        }
        fresh.iter_mut().for_each(|x| *x /= transitions);
        // Exponential average, divided by its mass: the first iterations count as they are.
        for (f, e) in fresh.iter_mut().zip(equations) {
            *e = average * *e + (1.0 - average) * *f;
            *f = *e / mass;
        }
        let (matrix, visits) = fresh.split_at(count * count);
        // Every equation with its right-hand sides behind it.
        let columns = count + utilities;
        system.clear();
        system.resize(count * columns, 0.0);
        for (x, row) in system.chunks_exact_mut(columns).enumerate() {
            row[..count].copy_from_slice(&matrix[x * count..][..count]);
            row[x] += ridge;
            let visits = &visits[x * width..][..width];
            for (b, reward) in row[count..].iter_mut().zip(self.rewards.chunks_exact(width)) {
                *b = visits.iter().zip(reward).map(|(v, r)| v * r).sum();
            }
        }
        elimination::solve(system, count, columns);
        for (u, weights) in weights.chunks_exact_mut(count).enumerate() {
            let solution = system[count + u..].iter().step_by(columns);
            weights.iter_mut().zip(solution).for_each(|(w, x)| *w = *x);
        }
    }

    fn td(&self, steps: StepSettings, weights: &mut [f64], scratch: &mut LinearWorkspace) {
        let (set, j) = (&self.features.sets[self.j], self.j);
        let count = set.count;
        let utilities = weights.len() / count;
        let width = self.rewards.len() / utilities;
        let LinearWorkspace { rows, rewards, .. } = scratch;
        rewards.resize(utilities, Vec::new());
        let mut update = 0;
        for trajectory in self.trajectories {
            rows.read(set, self.features.groups.row(j), trajectory);
            for (column, row) in rewards.iter_mut().zip(self.rewards.chunks_exact(width)) {
                reward_column(row, trajectory, j, self.actions, trajectory.steps(), column);
            }
            for k in 0..trajectory.transitions() {
                let (now, next) = (rows.row(k), rows.row(k + 1));
                let step = steps.step(update) / now.len() as f64;
                update += 1;
                for (weights, column) in weights.chunks_exact_mut(count).zip(rewards.iter()) {
                    let value = |row: &[u32]| row.iter().map(|&x| weights[x as usize]).sum::<f64>();
                    let difference = column[k] + self.gamma * value(next) - value(now);
                    now.iter().for_each(|&x| weights[x as usize] += step * difference);
                }
            }
        }
    }
}

impl QValues for LinearCritic {
    fn set_multipliers(&mut self, _signals: &Signals, mu: &Ragged<f64>) -> Option<(usize, f64)> {
        self.weights.set_multipliers(mu, &self.features.blocks)
    }

    fn precompute(&mut self, batch: &[Trajectory], steps: usize, wanted: ValueRequest) {
        let length =
            |j: usize| if wanted.alternatives { self.length_ahead(j, batch.len() * steps) } else { 0 };
        let mut lengths = vec![0; self.features.sets.len()];
        self.features.blocks.iter().cloned().flatten().for_each(|j| lengths[j] = length(j));
        fit(&mut self.ahead, lengths.iter().copied());
        self.horizon = steps;
        self.tells_changes = wanted.alternatives && !wanted.levels;
        let (features, weighted, blocks) = (&self.features, &self.weights.weighted, &self.features.blocks);
        let ahead = self.ahead.split_rows_mut(blocks);
        for_each_agent(blocks, ahead, |(states, actions): &mut (Vec<u8>, Vec<u8>), j, ahead| {
            let (set, group) = (&features.sets[j], features.groups.row(j));
            let row = ahead.row_mut(j);
            if row.is_empty() {
                return;
            }
            row.fill(0.0);
            let width = width_of(set);
            for (trajectory, row) in batch.iter().zip(row.chunks_exact_mut(steps * width)) {
                for (k, out) in row.chunks_exact_mut(width).take(trajectory.steps()).enumerate() {
                    read_group(group, trajectory, k, states, actions);
                    set.add_all_alternatives(weighted.row(j), states, actions, out);
                }
            }
        });
    }

    fn add_taken(&self, sender: u32, inbox: &ValueReceiver<'_>, active: &mut Vec<u32>, out: &mut [f64]) {
        let (mut states, mut actions) = (Vec::new(), Vec::new());
        let j = sender as usize;
        let (set, group, weights) =
            (&self.features.sets[j], self.features.groups.row(j), self.weights.told(inbox, sender));
        for (k, out) in out[..inbox.steps].iter_mut().enumerate() {
            read_group(group, inbox.trajectory, k, &mut states, &mut actions);
            active.clear();
            set.active(&states, &actions, active);
            *out += active.iter().map(|&x| weights[x as usize]).sum::<f64>();
        }
    }

    fn knows_alternatives(&self) -> bool {
        true
    }

    fn add_alternatives(
        &self,
        sender: u32,
        inbox: &ValueReceiver<'_>,
        actions: usize,
        active: &mut Vec<u32>,
        out: &mut [f64],
    ) {
        let (mut states, mut taken) = (Vec::new(), Vec::new());
        let j = sender as usize;
        let (set, group, weights) =
            (&self.features.sets[j], self.features.groups.row(j), self.weights.told(inbox, sender));
        let member = group.iter().position(|&m| m as usize == inbox.to);
        // What was worked out ahead has the constraints in it.
        let ahead = if inbox.counts_constraints(sender) { self.ahead.row(j) } else { &[] };
        if let Some(member) = member.filter(|_| !ahead.is_empty()) {
            let (width, first) = (width_of(set), set.actions[..member].iter().sum::<usize>());
            let rows = ahead[inbox.number * self.horizon * width..].chunks_exact(width);
            for (row, out) in rows.zip(out.chunks_exact_mut(actions).take(inbox.steps)) {
                out.iter_mut().zip(&row[first..]).for_each(|(out, q)| *out += q);
            }
            return;
        }
        if self.tells_changes && self.ahead.row(j).is_empty() {
            let columns = |m: usize| {
                let agent = group[m] as usize;
                Columns { states: inbox.trajectory.states(agent), actions: inbox.trajectory.actions(agent) }
            };
            let told = CHANGES.with_borrow_mut(|changes| {
                changes.clear();
                changes.resize(inbox.steps * actions, 0.0);
                // A sender that does not see the receiver has the same value whatever it does.
                let told = member.is_none_or(|m| set.add_changes(weights, &columns, m, actions, changes));
                out.iter_mut().zip(&*changes).filter(|_| told).for_each(|(out, q)| *out += q);
                told
            });
            if told {
                return;
            }
        }
        let mut values = [0.0; LARGEST_LOCAL_SPACE];
        let values = &mut values[..actions];
        for (k, out) in out.chunks_exact_mut(actions).take(inbox.steps).enumerate() {
            read_group(group, inbox.trajectory, k, &mut states, &mut taken);
            match member {
                Some(member) => {
                    values.fill(0.0);
                    set.add_alternatives(weights, &states, &mut taken, member, values);
                }
                None => {
                    active.clear();
                    set.active(&states, &taken, active);
                    values.fill(active.iter().map(|&x| weights[x as usize]).sum::<f64>());
                }
            }
            out.iter_mut().zip(&*values).for_each(|(out, q)| *out += q);
        }
    }
}
