//! How sure a policy is to be safe: every constraint's value with a confidence interval.
//!
//! Method: the delete-one jackknife over independent episodes. It takes away the leading bias of a non-linear
//! utility of an estimated occupancy (errata 22) and estimates its variance without knowing its gradient;
//! Student's t with one degree of freedom less than there are episodes gives the interval. Assumptions:
//! independent episodes (keyed streams), and a utility that is smooth where the policy is; at a kink of an
//! unsquared distance the interval is a guide only.
//!
//! A (state, action) that fewer than ten episodes visited adds what it could change if it were as frequent as
//! that allows: an event too rare to be seen must not pass for one that cannot happen.
//!
//! Episodes are cut at a horizon. In the normalised scaling they are run until γ^H ≤ 0.001, and intervals are
//! widened by what the missing tail could change: γ^H·(mass)·(largest − smallest shadow reward), to first
//! order. The other scalings define their utilities on episodes of length H, so nothing is missing.

use std::sync::Arc;

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::agents::keep_least;
use super::evaluate::{Episodes, check};
use crate::algorithm::Task;
use crate::base::error::ensure;
use crate::base::key::GAMMA;
use crate::base::limits::MOST_STEPS;
use crate::base::parallel::{agent_blocks, for_each_agent};
use crate::sample::occupancy::{Visits, lived};
use crate::utility::problem::{Problem, Scaling};
use crate::world::{ChannelValues, Trajectory, World, sampled_number};
use crate::{Error, Ragged, Result};

/// What is left of the discounted mass when episodes are cut, in the normalised scaling.
const REMAINDER: f64 = 1e-3;

/// Visits in fewer episodes than this are too few for a normal approximation.
const FEW_EPISODES: u32 = 10;

/// An estimate with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

impl Interval {
    /// With its ends cut to what is possible, where that is known. The estimate itself stays: one without
    /// bias may be beyond.
    fn within(self, range: Option<(f64, f64)>) -> Self {
        let Some((low, high)) = range else { return self };
        let Interval { value, lower, upper } = self;
        Interval {
            value,
            lower: lower.clamp(low.min(value), value),
            upper: upper.clamp(value, high.max(value)),
        }
    }
}

/// What can be said about a constraint, or about all constraints of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The whole interval keeps the bound.
    Safe,
    /// The interval holds the bound: more episodes would tell, or nothing would.
    Undecided,
    /// The whole interval breaks the bound.
    Unsafe,
}

/// One constraint of one agent.
#[derive(Debug, Clone, Serialize)]
pub struct ConstraintAssessment {
    /// The agent.
    pub agent: usize,
    /// The constraint's name.
    #[serde(serialize_with = "as_text")]
    pub constraint: Arc<str>,
    /// `at_least` or `at_most`.
    pub bound: &'static str,
    /// The bound.
    pub threshold: f64,
    /// The utility.
    #[serde(flatten)]
    pub utility: Interval,
    /// g at the estimate: its distance from the bound, negative if it is broken.
    #[serde(skip)]
    pub slack: f64,
    /// What follows.
    pub verdict: Verdict,
}

fn as_text<S: serde::Serializer>(name: &Arc<str>, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(name)
}

/// A policy's assessment.
#[derive(Debug, Clone, Serialize)]
pub struct Assessment {
    /// Episodes run.
    pub episodes: usize,
    /// Their length.
    pub horizon: usize,
    /// Confidence of all constraints' intervals together (Bonferroni), and of each of the others alone.
    pub confidence: f64,
    /// Undiscounted return over the training horizon, mean over agents.
    #[serde(rename = "return")]
    pub return_: Option<Interval>,
    /// Share of the episodes that ended before the training horizon, where they can: what `solved` means is
    /// the world's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solved: Option<f64>,
    /// Mean length of the episodes within the training horizon, where they can end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<f64>,
    /// F(θ).
    pub objective: Interval,
    /// Σ max(0, −g) at the estimates.
    pub violation_total: f64,
    /// The largest violation at the estimates.
    pub violation_max: f64,
    /// Every constraint.
    pub constraints: Vec<ConstraintAssessment>,
}

impl Assessment {
    /// Keeps the constraints with the least slack, `count` at most, least first.
    pub fn keep_worst(&mut self, count: usize) {
        keep_least(&mut self.constraints, count, |a, b| {
            a.slack.total_cmp(&b.slack).then(a.agent.cmp(&b.agent))
        });
    }

    /// Each agent's verdict, the worst of its constraints': unsafe if any is, safe if all are.
    pub fn agents(&self, n: usize) -> Vec<Verdict> {
        let mut verdicts = vec![Verdict::Safe; n];
        for constraint in &self.constraints {
            let verdict = &mut verdicts[constraint.agent];
            *verdict = constraint.verdict.max(*verdict);
        }
        verdicts
    }
}

/// The length of episodes that `problem` should be assessed on; fails where γ is so close to 1 that they
/// would never end.
pub fn assessment_horizon(problem: &Problem, horizon: usize) -> Result<usize> {
    if problem.scaling != Scaling::Normalised || problem.gamma == 0.0 {
        return Ok(horizon);
    }
    let gamma = problem.gamma;
    let needed = (REMAINDER.ln() / gamma.ln()).ceil();
    ensure(needed <= MOST_STEPS as f64, || {
        let message = format!(
            "{gamma} needs episodes of {needed} steps until γ^H is {REMAINDER}, and {MOST_STEPS} are possible; use a \
             smaller one"
        );
        Error::config(GAMMA, message)
    })?;
    Ok(horizon.max(needed as usize))
}

impl Episodes<'_> {
    /// Assesses the policy; the horizon is that of training.
    pub(super) fn assess(self, confidence: f64) -> Result<Assessment> {
        let Episodes { task, horizon, episodes, .. } = self;
        ensure(episodes >= 3, || {
            Error::argument("episodes", format!("{episodes}; an interval needs at least 3"))
        })?;
        ensure(confidence > 0.0 && confidence < 1.0, || {
            Error::argument("confidence", format!("{confidence}; a number between 0 and 1 is needed"))
        })?;
        let length = assessment_horizon(&task.problem, horizon)?;
        let source = Episodes { horizon: length, ..self };
        let weights = task.problem.occupancy_weights(length, episodes);
        let pooled = source.visits(&weights)?;
        let mut jackknife = Jackknife::new(task, horizon, &weights, episodes, &pooled)?;
        // The same episodes once more, one left out at a time: cheaper than keeping them.
        source.for_each_chunk(|batch| jackknife.leave_out(batch))?;
        jackknife.finish(confidence)
    }
}

/// Running sums over left-out episodes.
struct Jackknife<'a> {
    pool: Pool<'a>,
    /// Σ and Σ² of (value without an episode − value), of every g, and of F.
    sums: Ragged<[f64; 2]>,
    objective: [f64; 2],
    returns: Vec<f64>,
    /// Episodes that ended within the training horizon, and steps of all within it.
    ended: usize,
    steps: usize,
    /// Number of episodes that visited each (state, action), per agent.
    visited: Ragged<u32>,
}

/// All episodes together.
struct Pool<'a> {
    problem: &'a Problem,
    world: &'a dyn World,
    /// Of the steps of an episode.
    weights: &'a [f64],
    /// That of training.
    horizon: usize,
    episodes: usize,
    occupancy: &'a Ragged<f64>,
    /// Discounted share of the horizon that was lived.
    live: f64,
    /// Utilities at the pooled occupancy, `[f, g₁, …]` per agent.
    values: Ragged<f64>,
}

impl<'a> Jackknife<'a> {
    fn new(
        task: &'a Task,
        horizon: usize,
        weights: &'a [f64],
        episodes: usize,
        visits: &'a Visits,
    ) -> Result<Self> {
        let (world, problem, occupancy) = (&*task.world, &*task.problem, &visits.occupancy);
        let mut values: Ragged<f64> =
            Ragged::zeros(problem.agents.iter().map(|agent| 1 + agent.constraints.len()));
        for (i, agent) in problem.agents.iter().enumerate() {
            agent.utilities().zip(values.row_mut(i)).try_for_each(|(utility, value)| {
                *value = utility.value(occupancy.row(i), agent.space);
                check(*value, i, "a utility")
            })?;
        }
        let live = if problem.rescales_lives() { visits.lived_fraction() } else { 1.0 };
        Ok(Jackknife {
            sums: Ragged::zeros(problem.agents.iter().map(|agent| agent.constraints.len())),
            pool: Pool { problem, world, weights, horizon, episodes, occupancy, live, values },
            objective: [0.0; 2],
            returns: Vec::new(),
            ended: 0,
            steps: 0,
            visited: Ragged::zeros_like(occupancy),
        })
    }

    fn leave_out(&mut self, batch: &[Trajectory]) {
        let pool = &self.pool;
        let n = pool.problem.agents.len();
        let blocks = agent_blocks(n);
        let return_along = return_along(pool.world, pool.horizon);
        let lives: Vec<f64> = batch.iter().map(|trajectory| pool.live_without(trajectory)).collect();
        // Per agent and episode of the batch: the change of f, and the return.
        let mut per_episode: Ragged<[f64; 2]> = Ragged::zeros(std::iter::repeat_n(batch.len(), n));
        let outputs = self.sums.split_rows_mut(&blocks).into_iter().zip(self.visited.split_rows_mut(&blocks));
        let outputs = outputs.zip(per_episode.split_rows_mut(&blocks));
        for_each_agent(&blocks, outputs, |scratch: &mut Vec<f64>, i, ((sums, visited), per_episode)| {
            let agent = &pool.problem.agents[i];
            for (e, (trajectory, &live)) in batch.iter().zip(&lives).enumerate() {
                pool.leave_one_out(trajectory, i, live, scratch);
                let values = agent.utilities().zip(pool.values.row(i));
                let mut changes = values.map(|(utility, value)| utility.value(scratch, agent.space) - value);
                let change = changes.next().unwrap_or_default();
                for (change, sums) in changes.zip(sums.row_mut(i)) {
                    sums[0] += change;
                    sums[1] += change * change;
                }
                count_episode(trajectory, i, agent.space.actions, visited.row_mut(i));
                let return_ =
                    return_along.as_ref().map_or(0.0, |along| along(trajectory, i, agent.space.actions));
                per_episode.row_mut(i)[e] = [change, return_];
            }
        });
        for (e, trajectory) in batch.iter().enumerate() {
            self.ended += usize::from(trajectory.ended() && trajectory.steps() <= pool.horizon);
            self.steps += trajectory.steps().min(pool.horizon);
            let total = |which: usize| (0..n).map(|i| per_episode.row(i)[e][which]).sum::<f64>() / n as f64;
            let change = total(0);
            self.objective[0] += change;
            self.objective[1] += change * change;
            self.returns.push(total(1));
        }
    }

    fn finish(self, confidence: f64) -> Result<Assessment> {
        let Pool { problem, world, episodes, occupancy, .. } = self.pool;
        let (length, miss) = (self.pool.weights.len(), 1.0 - confidence);
        let count = problem.constraint_count().max(1) as f64;
        let student = StudentsT::new(0.0, 1.0, (episodes - 1) as f64)
            .map_err(|e| Error::argument("episodes", format!("{episodes}: {e}")))?;
        let quantile = |miss: f64| student.inverse_cdf(1.0 - miss / 2.0);
        let (alone, together) = (quantile(miss), quantile(miss / count));
        let n = problem.agents.len() as f64;
        let mut constraints = Vec::with_capacity(problem.constraint_count());
        let (mut objective, mut objective_tail) = (0.0, 0.0);
        let (mut violation_total, mut violation_max) = (0.0, 0.0f64);
        for (i, agent) in problem.agents.iter().enumerate() {
            let (lambda, values) = (occupancy.row(i), self.pool.values.row(i));
            let mut gradient = vec![0.0; lambda.len()];
            objective += values[0] / n;
            agent.objective.gradient(lambda, agent.space, &mut gradient);
            objective_tail += self.pool.tail(i, &gradient) / n;
            objective_tail += self.rare(i, &gradient, miss) / n;
            for (k, constraint) in agent.constraints.iter().enumerate() {
                constraint.utility.gradient(lambda, agent.space, &mut gradient);
                let tail = self.pool.tail(i, &gradient) + self.rare(i, &gradient, miss / count);
                let utility = interval(values[k + 1], self.sums.row(i)[k], episodes, together, tail)
                    .within(constraint.utility.range(agent.space, problem.mass(length)));
                let ends = [utility.lower, utility.upper].map(|end| constraint.bound.slack(end));
                let verdict = match ends {
                    [a, b] if a >= 0.0 && b >= 0.0 => Verdict::Safe,
                    [a, b] if a < 0.0 && b < 0.0 => Verdict::Unsafe,
                    _ => Verdict::Undecided,
                };
                let slack = constraint.bound.slack(utility.value);
                let violation = (-slack).max(0.0);
                violation_total += violation;
                violation_max = violation_max.max(violation);
                constraints.push(ConstraintAssessment {
                    agent: i,
                    constraint: constraint.name.clone(),
                    bound: constraint.bound.key(),
                    threshold: constraint.bound.threshold(),
                    utility,
                    slack,
                    verdict,
                });
            }
        }
        let has_rewards = world.channels().iter().any(|channel| channel.name == "reward");
        let per_episode = |count: usize| problem.episodic.then_some(count as f64 / episodes as f64);
        Ok(Assessment {
            episodes,
            horizon: length,
            confidence,
            return_: has_rewards.then(|| mean_interval(&self.returns, alone)),
            solved: per_episode(self.ended),
            steps: per_episode(self.steps),
            objective: interval(objective, self.objective, episodes, alone, objective_tail),
            violation_total,
            violation_max,
            constraints,
        })
    }

    /// What a (state, action) that few episodes visited could change. If k of E did, an episode visits it
    /// with probability (k + ln(1/miss) + √(2·k·ln(1/miss)))/E at most, with confidence 1 − `miss` (for k = 0
    /// the rule of three), and then it can take all of the episode's mass. Without this, an event too rare to
    /// be seen, or seen at the end of a single episode, would pass for one that cannot happen.
    fn rare(&self, agent: usize, gradient: &[f64], miss: f64) -> f64 {
        let Pool { problem, episodes, occupancy, live, .. } = &self.pool;
        let log = (1.0 / miss).ln();
        let few = FEW_EPISODES.min(*episodes as u32);
        let excess = |&k: &u32| (log + (2.0 * f64::from(k) * log).sqrt()) / *episodes as f64;
        let cells = problem.agents[agent].space.cells();
        let rare = self.visited.row(agent)[..cells].iter().filter(|&&k| k < few);
        let largest = rare.map(excess).fold(0.0, f64::max);
        // Where episodes end early, one that does not weighs more than its number. Of sampled channels, a
        // rare cell tells nothing.
        (largest / live).min(1.0)
            * occupancy.row(agent)[..cells].iter().sum::<f64>()
            * spread(&gradient[..cells])
    }
}

impl Pool<'_> {
    /// Discounted share of the horizon that was lived without one episode.
    fn live_without(&self, trajectory: &Trajectory) -> f64 {
        if !self.problem.rescales_lives() {
            return 1.0;
        }
        let (episodes, whole) = (self.episodes as f64, self.weights.iter().sum::<f64>());
        (episodes * self.live - lived(trajectory, self.weights) / whole) / (episodes - 1.0)
    }

    /// λ̄ without one episode: (E·λ̄ − λ_e)/(E − 1). Weights hold 1/E. Cells were divided by the share of the
    /// horizon that all episodes lived, and are divided by `live`, that of the others.
    fn leave_one_out(&self, trajectory: &Trajectory, agent: usize, live: f64, out: &mut Vec<f64>) {
        let actions = self.problem.agents[agent].space.actions;
        out.clear();
        out.extend_from_slice(self.occupancy.row(agent));
        let cells = out.len() - trajectory.channels();
        out[..cells].iter_mut().for_each(|x| *x *= self.live);
        let pairs = trajectory.states(agent).iter().zip(trajectory.actions(agent));
        for ((&s, &a), w) in pairs.zip(self.weights) {
            out[usize::from(s) * actions + usize::from(a)] -= w;
        }
        for (channel, total) in out[cells..].iter_mut().enumerate() {
            let rewards = trajectory.rewards(channel, agent).iter().zip(self.weights);
            *total -= rewards.map(|(&r, w)| w * f64::from(r)).sum::<f64>();
        }
        let rescale = self.episodes as f64 / (self.episodes as f64 - 1.0);
        out.iter_mut().for_each(|x| *x *= rescale);
        // Rounding may leave a cell that only this episode visited a little below zero.
        out[..cells].iter_mut().for_each(|x| *x = x.max(0.0) / live);
    }

    /// What steps beyond the horizon could change, to first order.
    fn tail(&self, agent: usize, gradient: &[f64]) -> f64 {
        if self.problem.scaling != Scaling::Normalised {
            return 0.0;
        }
        let remainder = self.problem.gamma.powi(self.weights.len().min(i32::MAX as usize) as i32);
        remainder / (1.0 - self.problem.gamma) * self.oscillation(agent, gradient)
    }

    /// Largest less smallest that a step can pay; of cells, as a share of the time lived.
    fn oscillation(&self, agent: usize, gradient: &[f64]) -> f64 {
        let (table, weights) = gradient.split_at(self.problem.agents[agent].space.cells());
        let channels = self.world.channels().iter().filter_map(|channel| match &channel.values {
            ChannelValues::Sampled { range: [low, high] } => Some(high - low),
            ChannelValues::Table(_) => None,
        });
        spread(table) / self.live
            + channels.zip(weights).map(|(span, weight)| span * weight.abs()).sum::<f64>()
    }
}

/// Largest less smallest.
fn spread(numbers: &[f64]) -> f64 {
    let largest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest - numbers.iter().copied().fold(f64::INFINITY, f64::min)
}

/// An agent's undiscounted return from the channel `reward` over the first `horizon` steps; none without such
/// a channel.
fn return_along(
    world: &dyn World,
    horizon: usize,
) -> Option<impl Fn(&Trajectory, usize, usize) -> f64 + Sync + '_> {
    let place = world.channels().iter().position(|channel| channel.name == "reward")?;
    let (tables, channel) = (world.channels()[place].tables(), sampled_number(world, place));
    Some(move |trajectory: &Trajectory, agent: usize, actions: usize| match tables {
        Some(tables) => {
            let pairs = trajectory.states(agent).iter().zip(trajectory.actions(agent)).take(horizon);
            let row = tables.row(agent);
            pairs.map(|(&s, &a)| row[usize::from(s) * actions + usize::from(a)]).sum()
        }
        None => trajectory.rewards(channel, agent).iter().take(horizon).map(|&r| f64::from(r)).sum(),
    })
}

/// Counts the episode for every cell that it visited.
fn count_episode(trajectory: &Trajectory, agent: usize, actions: usize, visited: &mut [u32]) {
    let mut seen = vec![false; visited.len()];
    for (&s, &a) in trajectory.states(agent).iter().zip(trajectory.actions(agent)) {
        seen[usize::from(s) * actions + usize::from(a)] = true;
    }
    visited.iter_mut().zip(seen).for_each(|(count, seen)| *count += u32::from(seen));
}

/// The jackknife's bias-corrected estimate ± (quantile·standard error + quantile²·|bias| + tail).
///
/// The bias is that of the second-order term ½·Δ'HΔ; its quantile² multiple covers that term itself, which is
/// all there is where the slope vanishes: at a policy whose entropy is close to the largest possible.
fn interval(value: f64, [sum, squares]: [f64; 2], episodes: usize, quantile: f64, tail: f64) -> Interval {
    let e = episodes as f64;
    let bias = (e - 1.0) / e * sum;
    let corrected = value - bias;
    let variance = (e - 1.0) / e * (squares - sum * sum / e).max(0.0);
    let half = quantile * variance.sqrt() + quantile * quantile * bias.abs() + tail;
    Interval { value: corrected, lower: corrected - half, upper: corrected + half }
}

fn mean_interval(samples: &[f64], quantile: f64) -> Interval {
    let e = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / e;
    let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (e - 1.0);
    let half = quantile * (variance / e).sqrt();
    Interval { value: mean, lower: mean - half, upper: mean + half }
}
