//! What an agent earned along a batch, against what its neural network had expected.

use crate::learn::gae;
use crate::learn::shadow::{Signals, reward_column};
use crate::world::Trajectory;

/// One agent's batch.
pub(super) struct Along<'a> {
    /// The agent.
    pub j: usize,
    /// λ.
    pub lambda: f64,
    /// What it is paid.
    pub signals: &'a Signals,
    /// What happened.
    pub batch: &'a [Trajectory],
    /// What its neural network says, `[sample][utility]`; every step of the batch is a sample.
    pub values: &'a [f32],
    /// 1 + m_j.
    pub utilities: usize,
}

/// Rewards and values along one trajectory.
#[derive(Debug, Default)]
pub(super) struct Columns {
    rewards: Vec<f64>,
    values: Vec<f64>,
}

impl Along<'_> {
    /// Writes the advantages of a utility, `[trajectory][step]`, and its λ-returns into `targets`, `[sample]
    /// [utility]`. The neural network's outputs are worth `size` each. Returns the sum of the squared
    /// λ-returns.
    pub fn advantages(
        &self,
        utility: usize,
        size: f64,
        advantages: &mut [f64],
        targets: &mut [f32],
        columns: &mut Columns,
    ) -> f64 {
        let Signals { rewards, gamma, actions, .. } = self.signals;
        let (rewards, actions) = (rewards.row(self.j), actions[self.j]);
        let row = rewards.len() / self.utilities;
        let reward = &rewards[utility * row..(utility + 1) * row];
        let Columns { rewards: column, values: along } = columns;
        let (mut sample, mut out, mut squares) = (0, 0, 0.0);
        for trajectory in self.batch {
            let (steps, transitions) = (trajectory.steps(), trajectory.transitions());
            reward_column(reward, trajectory, self.j, actions, transitions, column);
            let value = |k: usize| size * f64::from(self.values[(sample + k) * self.utilities + utility]);
            along.clear();
            along.extend((0..steps).map(value));
            // 0 where the episode ended.
            let bootstrap = along.get(transitions).copied().unwrap_or(0.0);
            let advantages = &mut advantages[out..out + transitions];
            gae::advantages(column, along, bootstrap, *gamma, self.lambda, advantages);
            for k in (0..transitions).rev() {
                let target = advantages[k] + along[k];
                targets[(sample + k) * self.utilities + utility] = target as f32;
                squares += target * target;
            }
            sample += steps;
            out += transitions;
        }
        squares
    }
}

/// Share of itself that the running size of returns keeps at an iteration.
const KEEPS: f64 = 0.98;

/// The running mean of squared returns after `count` more of them, whose squares sum up to `found`; before
/// the first ones nothing has `begun`.
pub(super) fn advance_squares(squares: f64, begun: bool, found: f64, count: f64) -> f64 {
    let kept = if begun { KEEPS } else { 0.0 };
    kept * squares + (1.0 - kept) * found / count
}

/// What a neural network's outputs are multiplied by.
pub(super) fn scale(squares: f64) -> f64 {
    squares.sqrt().max(1e-6)
}
