//! Estimated local occupancy measures. Paper: alg:pdac line 4, eq:occupancy_estimate.

use std::ops::Range;

use crate::Ragged;
use crate::base::fields::{Field, Fields};
use crate::base::parallel::{agent_blocks, for_each_agent};
use crate::sample::episode_events::decide;
use crate::utility::problem::Problem;
use crate::world::Trajectory;

/// Visits of every agent to its own (s, a), row i as `[S_i][A_i]`, then the totals of sampled channels, then
/// the shares of episodes in which its events happened.
#[derive(Debug, Clone)]
pub struct Visits {
    /// λ̃_i, discounted totals, and shares of episodes.
    pub occupancy: Ragged<f64>,
    /// Plain counts and totals over all trajectories and steps, for undiscounted returns; numbers of
    /// episodes.
    pub counts: Ragged<f64>,
    /// Weight of all steps so far, and what it would be had no episode ended early.
    mass: [f64; 2],
    /// Events of every agent; none if nobody has any.
    events: Vec<usize>,
    /// Agents that are looked at.
    blocks: Vec<Range<usize>>,
}

impl Visits {
    /// No visits, for what `problem` looks at.
    pub fn for_problem(problem: &Problem) -> Self {
        let agents = 0..problem.agents.len();
        let with_events = if problem.has_events() { agents.clone() } else { 0..0 };
        let events = with_events.map(|i| problem.agents[i].events.len()).collect();
        Visits { events, ..Visits::new(agents.map(|i| problem.occupancy_length(i))) }
    }

    /// No visits, for agents with rows of the given lengths and without events.
    pub fn new(lengths: impl IntoIterator<Item = usize>) -> Self {
        let occupancy = Ragged::zeros(lengths);
        let blocks = agent_blocks(occupancy.rows());
        Visits {
            counts: Ragged::zeros_like(&occupancy),
            occupancy,
            mass: [0.0; 2],
            events: Vec::new(),
            blocks,
        }
    }

    /// Visits that were pooled elsewhere, of episodes that do not end early.
    pub fn pooled(occupancy: Ragged<f64>, counts: Ragged<f64>) -> Self {
        let blocks = agent_blocks(occupancy.rows());
        Visits { occupancy, counts, mass: [1.0; 2], events: Vec::new(), blocks }
    }

    /// Looks at the agents in `blocks` only.
    pub fn restricted_to(self, blocks: Vec<Range<usize>>) -> Self {
        Visits { blocks, ..self }
    }

    /// Forgets all visits.
    pub fn clear(&mut self) {
        self.occupancy.data_mut().fill(0.0);
        self.counts.data_mut().fill(0.0);
        self.mass = [0.0; 2];
    }

    /// Discounted share of the horizon that was lived; 1 unless episodes ended early.
    pub fn lived_fraction(&self) -> f64 {
        let [lived, whole] = self.mass;
        lived / whole
    }

    /// Rescales the cells to the mass that they would have had, had no episode ended early: a law of where an
    /// agent is while the episode goes on. Totals stay as they are, since nothing is earned after the end.
    pub fn rescale(&mut self, problem: &Problem) {
        if !problem.rescales_lives() {
            return;
        }
        let lived_fraction = self.lived_fraction();
        for i in 0..self.occupancy.rows() {
            let cells = problem.agents[i].space.cells();
            self.occupancy.row_mut(i)[..cells].iter_mut().for_each(|x| *x /= lived_fraction);
        }
    }

    /// λ̃_i(s, a) += Σ_τ Σ_k w_k·1[s_i^k = s, a_i^k = a].
    ///
    /// `weights[k]` holds γ^k with the batch size and the scaling in it (`Problem::occupancy_weights`); only
    /// the first `weights.len()` steps count. Reads agent i's own columns only. Cost: one addition per step.
    pub fn add(&mut self, batch: &[Trajectory], weights: &[f64], actions: &[usize]) {
        let whole: f64 = weights.iter().sum();
        for trajectory in batch {
            self.mass = [self.mass[0] + lived(trajectory, weights), self.mass[1] + whole];
        }
        let blocks = &self.blocks;
        let rows = self.occupancy.split_rows_mut(blocks).into_iter().zip(self.counts.split_rows_mut(blocks));
        for_each_agent(blocks, rows, |(): &mut (), i, (occupancy, counts)| {
            for trajectory in batch {
                let pairs = trajectory.states(i).iter().zip(trajectory.actions(i)).zip(weights);
                let visits = pairs.map(|((&s, &a), &w)| (usize::from(s) * actions[i] + usize::from(a), w));
                let events = self.events.get(i).copied().unwrap_or_default();
                let cells = occupancy.row_mut(i).len() - trajectory.channels() - events;
                let (occupancy, totals) = occupancy.row_mut(i).split_at_mut(cells);
                let (counts, plain_totals) = counts.row_mut(i).split_at_mut(cells);
                add_visits(visits, occupancy, counts);
                let totals = totals.iter_mut().zip(plain_totals).take(trajectory.channels());
                for (channel, (total, plain)) in totals.enumerate() {
                    for (&r, w) in trajectory.rewards(channel, i).iter().zip(weights) {
                        *total += w * f64::from(r);
                        *plain += f64::from(r);
                    }
                }
            }
        });
    }
}

impl Visits {
    /// Counts the episodes of the batch in which events happened, of `episodes` in all.
    pub fn count_events(&mut self, batch: &[Trajectory], problem: &Problem, episodes: usize) {
        if self.events.is_empty() {
            return;
        }
        let blocks = &self.blocks;
        let rows = self.occupancy.split_rows_mut(blocks).into_iter().zip(self.counts.split_rows_mut(blocks));
        for_each_agent(blocks, rows, |(): &mut (), i, (shares, counts)| {
            let agent = &problem.agents[i];
            for (e, event) in agent.events.iter().enumerate() {
                let place = problem.row_length(i) + e;
                let happened = |trajectory: &&Trajectory| {
                    decide(event, trajectory, i, agent.space.actions, problem.horizon).happened
                };
                counts.row_mut(i)[place] += batch.iter().filter(happened).count() as f64;
                // Not added up, so that no rounding makes it more than 1.
                shares.row_mut(i)[place] = counts.row_mut(i)[place] / episodes as f64;
            }
        });
    }
}

/// Weight of the steps that a trajectory lived, of those that have one.
pub fn lived(trajectory: &Trajectory, weights: &[f64]) -> f64 {
    weights[..trajectory.steps().min(weights.len())].iter().sum()
}

/// λ̃ averaged over the iterations, for utilities that are not linear: a batch of few episodes makes
/// entropies look smaller than they are (errata 22), and rare cells look rarer or more frequent.
#[derive(Debug, Clone, Default)]
pub struct RunningOccupancy {
    keeps: f64,
    /// Exponential average, and its weight so far, 1 in the limit.
    sums: Ragged<f64>,
    weight: f64,
    /// Their ratio.
    mean: Ragged<f64>,
}

impl RunningOccupancy {
    /// Keeps the share `keeps` of itself per iteration; 0 keeps nothing and needs no memory.
    pub fn new(keeps: f64, like: &Ragged<f64>) -> Self {
        let room = || if keeps > 0.0 { Ragged::zeros_like(like) } else { Ragged::default() };
        RunningOccupancy { keeps, sums: room(), weight: 0.0, mean: room() }
    }

    /// Its weight after one more batch, where the average itself is formed elsewhere.
    pub fn advance_weight(&mut self) -> f64 {
        self.weight = self.keeps * self.weight + (1.0 - self.keeps);
        self.weight
    }

    /// The average with the occupancy of one more batch in it.
    pub fn update<'a>(&'a mut self, batch: &'a Ragged<f64>) -> &'a Ragged<f64> {
        if self.keeps == 0.0 {
            return batch;
        }
        self.advance_weight();
        let sums = self.sums.data_mut().iter_mut().zip(self.mean.data_mut());
        for ((sum, mean), x) in sums.zip(batch.data()) {
            *sum = self.keeps * *sum + (1.0 - self.keeps) * x;
            *mean = *sum / self.weight;
        }
        &self.mean
    }

    /// What it remembers.
    pub(crate) fn fields(&mut self) -> Fields<'_> {
        if self.keeps == 0.0 {
            return Vec::new();
        }
        vec![
            ("occupancy", Field::Rows(&mut self.sums)),
            ("occupancy.weight", Field::Numbers(std::slice::from_mut(&mut self.weight))),
        ]
    }
}

/// Adds weighted visits to cells.
fn add_visits(visits: impl Iterator<Item = (usize, f64)>, occupancy: &mut [f64], counts: &mut [f64]) {
    // Consecutive additions to one cell would wait for each other, so every fourth step has its own partial
    // sums.
    const PHASES: usize = 4;
    const SMALL: usize = 16;
    if occupancy.len() > SMALL {
        for (cell, weight) in visits {
            occupancy[cell] += weight;
            counts[cell] += 1.0;
        }
        return;
    }
    let mut sums = [[(0.0, 0u32); SMALL]; PHASES];
    for (k, (cell, weight)) in visits.enumerate() {
        let (sum, count) = &mut sums[k % PHASES][cell % SMALL];
        *sum += weight;
        *count += 1;
    }
    for (cell, (occupancy, count)) in occupancy.iter_mut().zip(counts).enumerate() {
        *occupancy += (sums[0][cell].0 + sums[1][cell].0) + (sums[2][cell].0 + sums[3][cell].0);
        *count += f64::from(sums.iter().map(|phase| phase[cell].1).sum::<u32>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_are_counted_with_their_weights() {
        let mut trajectory = Trajectory::new(2, 5);
        for (k, (state, action)) in [(0, 1), (1, 0), (0, 1), (2, 2), (1, 0)].into_iter().enumerate() {
            let (s, a) = trajectory.pair_mut(1, k);
            (*s, *a) = (state, action);
        }
        let mut visits = Visits::new([9, 9]);
        visits.add(&[trajectory.clone(), trajectory], &[1.0, 0.5, 0.25, 0.125], &[3, 3]);
        assert_eq!(visits.occupancy.row(0), [3.75, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(visits.occupancy.row(1), [0.0, 2.5, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.25]);
        assert_eq!(visits.counts.row(1), [0.0, 4.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 2.0]);
    }

    #[test]
    fn running_occupancies_weigh_the_first_batches_fully() {
        let mut running = RunningOccupancy::new(0.5, &Ragged::zeros([1]));
        let mut after = |x: f64| running.update(&Ragged::from_rows([[x]])).row(0)[0];
        assert_eq!([after(4.0), after(1.0)], [4.0, (0.25 * 4.0 + 0.5) / 0.75]);
        let batch = Ragged::from_rows([[3.0]]);
        assert_eq!(RunningOccupancy::new(0.0, &batch).update(&batch).row(0), [3.0]);
    }

    #[test]
    fn large_tables_count_alike() {
        let steps = [(3, 0.5), (17, 0.25), (3, 0.125), (9, 1.0), (3, 2.0)];
        let (mut occupancy, mut counts) = (vec![0.0; 20], vec![0.0; 20]);
        add_visits(steps.into_iter(), &mut occupancy, &mut counts);
        assert_eq!((occupancy[3], occupancy[17], counts[3]), (2.625, 0.25, 3.0));
    }
}
