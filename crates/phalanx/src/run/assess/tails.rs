//! The mean cost of the worst episodes, CVaR, with an interval that needs no more than the cost's range.

use serde::Serialize;

use super::{Interval, Verdict};
use crate::Ragged;
use crate::base::elementary::ln;
use crate::sample::episode_events::total_cost;
use crate::utility::problem::{Bound, Problem};
use crate::world::Trajectory;

/// A bound on the worst episodes of an agent.
#[derive(Debug, Clone, Serialize)]
pub struct TailAssessment {
    /// The agent.
    pub agent: usize,
    /// The constraint's name.
    pub constraint: String,
    /// α.
    pub level: f64,
    /// The bound.
    pub threshold: f64,
    /// The mean over the worst 1 − α of the episodes.
    #[serde(flatten)]
    pub cvar: Interval,
    /// What follows.
    pub verdict: Verdict,
}

/// Costs of all episodes.
pub(super) struct Tails<'a> {
    problem: &'a Problem,
    /// Row i: a list per tail of agent i.
    costs: Ragged<Vec<f64>>,
}

impl<'a> Tails<'a> {
    pub fn new(problem: &'a Problem) -> Self {
        Tails { problem, costs: Ragged::zeros(problem.agents.iter().map(|agent| agent.tails.len())) }
    }

    pub fn add(&mut self, trajectory: &Trajectory) {
        let horizon = self.problem.horizon;
        for (i, agent) in self.problem.agents.iter().enumerate() {
            for (tail, costs) in agent.tails.iter().zip(self.costs.row_mut(i)) {
                costs.push(total_cost(&tail.cost, trajectory, i, agent.space.actions, horizon));
            }
        }
    }

    /// Every tail, each with an error of `miss`.
    pub fn finish(&self, miss: f64) -> Vec<TailAssessment> {
        let mut found = Vec::new();
        for (i, agent) in self.problem.agents.iter().enumerate() {
            for (tail, costs) in agent.tails.iter().zip(self.costs.row(i)) {
                let mut sorted = costs.clone();
                sorted.sort_unstable_by(f64::total_cmp);
                let ends = tail.range.map(|step| step * self.problem.horizon as f64);
                let cvar = interval(&sorted, ends, tail.level, miss);
                found.push(TailAssessment {
                    agent: i,
                    constraint: tail.name.to_string(),
                    level: tail.level,
                    threshold: tail.at_most,
                    cvar,
                    verdict: Verdict::of(Bound::AtMost(tail.at_most), cvar),
                });
            }
        }
        found
    }
}

/// The empirical distribution lies within ε of the true one everywhere, ε² = ln(2/miss)/(2n): in the worst
/// distribution that fits, a share ε costs the most possible; in the best, the worst share ε costs the least
/// possible. Literature: Massart, "The tight constant in the Dvoretzky–Kiefer–Wolfowitz inequality", Annals
/// of Probability 18, 1990.
fn interval(sorted: &[f64], [low, high]: [f64; 2], level: f64, miss: f64) -> Interval {
    let n = sorted.len() as f64;
    let shift = (ln(2.0 / miss) / (2.0 * n)).sqrt().min(1.0);
    let value = tail_mean(sorted, [0.0, 0.0], [low, high], level);
    let upper = tail_mean(sorted, [shift, 0.0], [low, high], level);
    let lower = tail_mean(sorted, [0.0, shift], [low, high], level);
    Interval { value, lower: lower.clamp(low.min(value), value), upper: upper.clamp(value, high.max(value)) }
}

/// Mean over the worst 1 − `level`, where a share `added` costs the most possible, or the worst share
/// `removed` the least.
fn tail_mean(sorted: &[f64], [added, removed]: [f64; 2], [low, high]: [f64; 2], level: f64) -> f64 {
    let (share, whole) = (1.0 / sorted.len() as f64, 1.0 - level);
    let at_end = added.min(whole);
    let (mut left, mut sum, mut removed) = (whole - at_end, at_end * high, removed);
    for x in sorted.iter().rev() {
        let skipped = removed.min(share);
        removed -= skipped;
        let taken = (share - skipped).min(left);
        sum += taken * x;
        left -= taken;
    }
    (sum + left * low) / whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::stream::{Place, Purpose, Stream};

    #[test]
    fn by_hand() {
        let sorted: Vec<f64> = (1..=10).map(f64::from).collect();
        let mean = |shares, level| tail_mean(&sorted, shares, [0.0, 20.0], level);
        assert!((mean([0.0, 0.0], 0.8) - 9.5).abs() < 1e-9);
        assert!((mean([0.0, 0.0], 0.0) - 5.5).abs() < 1e-9);
        // A tenth at 20, then one at 10.
        assert!((mean([0.1, 0.0], 0.8) - 15.0).abs() < 1e-9);
        // Without the worst tenth: 9 and 8.
        assert!((mean([0.0, 0.1], 0.8) - 8.5).abs() < 1e-9);
    }

    /// Uniform costs: CVaR of level α is (1 + α)/2.
    #[test]
    fn intervals_hold_the_truth() {
        let (level, miss, mut wrong) = (0.9, 0.1, 0);
        for repetition in 0..500 {
            let place = Place { purpose: Purpose::Evaluation, iteration: repetition, trajectory: 3 };
            let mut sequence = Stream::new(5).sequence(place, 0);
            let mut costs: Vec<f64> = (0..400).map(|_| sequence.uniform()).collect();
            costs.sort_unstable_by(f64::total_cmp);
            let found = interval(&costs, [0.0, 1.0], level, miss);
            wrong += usize::from(!(found.lower..=found.upper).contains(&0.95));
            assert!(found.upper - found.lower < 0.2);
        }
        assert!(wrong as f64 <= miss * 500.0, "{wrong}");
    }
}
