//! The delete-one jackknife over episodes.

use super::per_episode::PerEpisode;
use super::tails::Tails;
use super::{Assessment, ConstraintAssessment, Interval, Levels, Verdict};
use crate::algorithm::{CardEpisodes, Task};
use crate::base::beta::student_quantile;
use crate::base::binomial;
use crate::base::elementary::{ln, powi};
use crate::base::parallel::{agent_blocks, for_each_agent};
use crate::run::evaluate::check;
use crate::sample::occupancy::{Visits, lived};
use crate::utility::problem::{Constraint, Problem, Scaling};
use crate::world::{ChannelValues, Evolution, Trajectory, World};
use crate::{Error, Ragged, Result};

/// Visits in fewer episodes than this are too few for a normal approximation.
const FEW_EPISODES: u32 = 10;

/// Running sums over left-out episodes.
pub(super) struct Jackknife<'a> {
    pool: Pool<'a>,
    /// Σ and Σ² of (value without an episode − value), of every g, and of F.
    sums: Ragged<[f64; 2]>,
    objective: [f64; 2],
    /// The same of the sums of groups.
    groups: Vec<[f64; 2]>,
    per_episode: PerEpisode<'a>,
    tails: Tails<'a>,
    /// Number of episodes that visited each (state, action), per agent.
    visited: Ragged<u32>,
}

/// All episodes together.
struct Pool<'a> {
    problem: &'a Problem,
    world: &'a dyn World,
    /// Of the steps of an episode.
    weights: &'a [f64],
    episodes: usize,
    occupancy: &'a Ragged<f64>,
    /// Plain counts, those of events among them.
    counts: &'a Ragged<f64>,
    /// Discounted share of the horizon that was lived.
    live: f64,
    /// Utilities at the pooled occupancy, `[f, g₁, …]` per agent.
    values: Ragged<f64>,
}

impl<'a> Jackknife<'a> {
    pub fn new(
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
            pool: Pool { problem, world, weights, episodes, occupancy, counts: &visits.counts, live, values },
            objective: [0.0; 2],
            groups: vec![[0.0; 2]; problem.groups.len()],
            per_episode: PerEpisode::new(world, horizon),
            tails: Tails::new(problem),
            visited: Ragged::zeros_like(occupancy),
        })
    }

    pub fn leave_out(&mut self, batch: &[Trajectory]) {
        let pool = &self.pool;
        let n = pool.problem.agents.len();
        let blocks = agent_blocks(n);
        let lives: Vec<f64> = batch.iter().map(|trajectory| pool.live_without(trajectory)).collect();
        // Per agent and episode of the batch: the change of f, then of every g.
        let width = |i: usize| pool.values.row(i).len();
        let mut changes: Ragged<f64> = Ragged::zeros((0..n).map(|i| batch.len() * width(i)));
        let outputs = changes.split_rows_mut(&blocks).into_iter().zip(self.visited.split_rows_mut(&blocks));
        for_each_agent(&blocks, outputs, |scratch: &mut Vec<f64>, i, (changes, visited)| {
            let agent = &pool.problem.agents[i];
            let rows = changes.row_mut(i).chunks_exact_mut(width(i));
            for ((trajectory, &live), row) in batch.iter().zip(&lives).zip(rows) {
                pool.leave_one_out(trajectory, i, live, scratch);
                let values = agent.utilities().zip(pool.values.row(i));
                for (change, (utility, value)) in row.iter_mut().zip(values) {
                    *change = utility.value(scratch, agent.space) - value;
                }
                count_episode(trajectory, i, agent.space.actions, visited.row_mut(i));
            }
        });
        let widths: Vec<usize> = (0..n).map(width).collect();
        self.add_changes(batch.len(), |e, i, utility| changes.row(i)[e * widths[i] + utility]);
        for trajectory in batch {
            self.per_episode.add(trajectory);
            self.tails.add(trajectory);
        }
    }

    /// The same for all episodes, where a card leaves them out.
    pub fn leave_out_on(&mut self, card: &CardEpisodes, go_on: &dyn Fn() -> Result<()>) -> Result<()> {
        let values = self.pool.values.clone();
        self.visited = card.leave_out(&values, go_on, |numbers| {
            self.add_changes(numbers.episodes(), |e, i, utility| numbers.changes(utility, e)[i]);
            (0..numbers.episodes()).for_each(|e| self.per_episode.add_numbers(numbers, e));
        })?;
        Ok(())
    }

    /// Adds up what changes without single episodes: `change(e, i, u)` is that of agent i's utility u without
    /// the e-th of some episodes.
    fn add_changes(&mut self, episodes: usize, change: impl Fn(usize, usize, usize) -> f64 + Sync) {
        let problem = self.pool.problem;
        let n = problem.agents.len();
        let blocks = agent_blocks(n);
        for_each_agent(&blocks, self.sums.split_rows_mut(&blocks), |(): &mut (), i, sums| {
            for (k, sums) in sums.row_mut(i).iter_mut().enumerate() {
                for e in 0..episodes {
                    let change = change(e, i, 1 + k);
                    *sums = [sums[0] + change, sums[1] + change * change];
                }
            }
        });
        for e in 0..episodes {
            let of_all = (0..n).map(|i| change(e, i, 0)).sum::<f64>() / n as f64;
            self.objective = [self.objective[0] + of_all, self.objective[1] + of_all * of_all];
            for (group, sums) in problem.groups.iter().zip(&mut self.groups) {
                let changes: Vec<f64> = group.entries().map(|(i, k)| change(e, i, 1 + k)).collect();
                let of_group = group.total(&changes);
                *sums = [sums[0] + of_group, sums[1] + of_group * of_group];
            }
        }
    }

    /// The assessment with the errors that are allowed.
    pub fn finish(&self, levels: Levels) -> Result<Assessment> {
        let Pool { problem, episodes, occupancy, .. } = self.pool;
        if episodes < 2 {
            return Err(Error::argument("episodes", format!("{episodes}: an interval needs 2")));
        }
        let quantile = |miss: f64| student_quantile((episodes - 1) as f64, miss / 2.0);
        let (alone, each) = (quantile(levels.alone), quantile(levels.each));
        let n = problem.agents.len() as f64;
        let of_groups: Vec<Interval> =
            (0..problem.groups.len()).map(|number| self.group_interval(number, each, levels)).collect();
        let mut constraints = Vec::with_capacity(problem.constraint_count());
        let (mut objective, mut objective_tail) = (0.0, 0.0);
        let (mut violation_total, mut violation_max) = (0.0, 0.0f64);
        for (i, agent) in problem.agents.iter().enumerate() {
            let (lambda, values) = (occupancy.row(i), self.pool.values.row(i));
            let mut gradient = vec![0.0; lambda.len()];
            objective += values[0] / n;
            agent.objective.gradient(lambda, agent.space, &mut gradient);
            objective_tail += self.pool.tail(i, &gradient) / n;
            objective_tail += self.rare(i, &gradient, levels.alone) / n;
            for (k, constraint) in agent.constraints.iter().enumerate() {
                let utility = match (constraint.event(), constraint.group) {
                    (Some(event), _) => self.event_interval(i, constraint, event, levels),
                    (_, Some(number)) => of_groups[number],
                    (None, None) => {
                        constraint.utility.gradient(lambda, agent.space, &mut gradient);
                        let tail = self.pool.tail(i, &gradient) + self.rare(i, &gradient, levels.each);
                        interval(values[k + 1], self.sums.row(i)[k], episodes, each, tail).within(
                            constraint.utility.range(agent.space, problem.mass(self.pool.weights.len())),
                        )
                    }
                };
                let slack = constraint.bound.slack(utility.value);
                // That of a group counts once.
                let counts =
                    constraint.group.is_none_or(|number| problem.groups[number].members[0] as usize == i);
                let violation = if counts { (-slack).max(0.0) } else { 0.0 };
                violation_total += violation;
                violation_max = violation_max.max(violation);
                constraints.push(ConstraintAssessment {
                    agent: i,
                    constraint: constraint.name.clone(),
                    bound: constraint.bound.key(),
                    threshold: constraint.bound.threshold(),
                    utility,
                    slack,
                    verdict: Verdict::of(constraint.bound, utility),
                });
            }
        }
        let ends_early = match self.pool.world.evolution() {
            Evolution::Factored(_) => false,
            Evolution::Joint(joint) => joint.ends_early(),
        };
        let [solved, steps] = self.per_episode.ends(episodes).map(|x| ends_early.then_some(x));
        let mean_rewards = self.per_episode.mean_rewards();
        Ok(Assessment {
            episodes,
            horizon: self.pool.weights.len(),
            confidence: 1.0 - levels.alone,
            return_: self.per_episode.return_(alone),
            returns: self.per_episode.agent_returns(),
            mean_reward: mean_rewards.map(|[published, _]| published),
            mean_reward_full: mean_rewards.map(|[_, full]| full),
            channel_means: self.per_episode.channel_means(),
            measures: self.per_episode.measures(episodes),
            solved,
            steps,
            objective: interval(objective, self.objective, episodes, alone, objective_tail),
            violation_total,
            violation_max,
            constraints,
            tails: self.tails.finish(levels.each),
            events: self.per_episode.events(episodes, levels.alone),
        })
    }

    /// The sum over a group; what widens its members' intervals adds up.
    fn group_interval(&self, number: usize, quantile: f64, levels: Levels) -> Interval {
        let Pool { problem, episodes, occupancy, values, .. } = &self.pool;
        let group = &problem.groups[number];
        let own: Vec<f64> = group.entries().map(|(i, k)| values.row(i)[k + 1]).collect();
        let each = levels.each / group.members.len() as f64;
        let widened = group.entries().map(|(i, k)| {
            let agent = &problem.agents[i];
            let mut gradient = vec![0.0; occupancy.row(i).len()];
            agent.constraints[k].utility.gradient(occupancy.row(i), agent.space, &mut gradient);
            self.pool.tail(i, &gradient) + self.rare(i, &gradient, each)
        });
        interval(group.total(&own), self.groups[number], *episodes, quantile, widened.sum())
    }

    /// The probability of an event of whole episodes, or that it does not happen: exact, because every
    /// episode has it or not.
    fn event_interval(
        &self,
        agent: usize,
        constraint: &Constraint,
        event: usize,
        levels: Levels,
    ) -> Interval {
        let Pool { problem, episodes, counts, .. } = &self.pool;
        let count = counts.row(agent)[problem.row_length(agent) + event];
        let (k, n) = (count as u64, *episodes as u64);
        let bounds = if levels.at_any_time {
            binomial::sequential_interval(k, n, levels.each_event)
        } else {
            binomial::interval(k, n, levels.each_event)
        };
        let utility = &constraint.utility;
        let [a, b] = bounds.map(|p| utility.scale * p + utility.offset);
        let value = utility.scale * count / *episodes as f64 + utility.offset;
        Interval { value, lower: a.min(b), upper: a.max(b) }
    }

    /// What a (state, action) that few episodes visited could change. If k of E did, an episode visits it
    /// with probability (k + ln(1/miss) + √(2·k·ln(1/miss)))/E at most, with confidence 1 − `miss` (for k = 0
    /// the rule of three), and then it can take all of the episode's mass. Without this, an event too rare to
    /// be seen, or seen at the end of a single episode, would pass for one that cannot happen.
    fn rare(&self, agent: usize, gradient: &[f64], miss: f64) -> f64 {
        let Pool { problem, episodes, occupancy, live, .. } = &self.pool;
        let log = ln(1.0 / miss);
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
        let cells = self.problem.agents[agent].space.cells();
        out[..cells].iter_mut().for_each(|x| *x *= self.live);
        let pairs = trajectory.states(agent).iter().zip(trajectory.actions(agent));
        for ((&s, &a), w) in pairs.zip(self.weights) {
            out[usize::from(s) * actions + usize::from(a)] -= w;
        }
        for (channel, total) in out[cells..].iter_mut().enumerate().take(trajectory.channels()) {
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
        let remainder = powi(self.problem.gamma, self.weights.len().min(i32::MAX as usize) as i32);
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
