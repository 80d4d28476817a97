//! What an iteration looked like, in numbers.

use crate::Ragged;
use crate::exact::Stationarity;
use crate::projection::clip;
use crate::shadow::Signals;
use crate::world::{World, sampled_channels, sampled_number};

/// What an iteration looked like: estimates from its own batch, or exact values.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// t.
    pub iteration: usize,
    /// Undiscounted sum of the channel `reward` over an episode, mean over agents; none without such a channel, or if
    /// nothing was sampled.
    pub return_: Option<f64>,
    /// F̃ = mean of f̃_i.
    pub objective: f64,
    /// Σ max(0, −g̃_ik).
    pub violation_total: f64,
    /// Largest of them.
    pub violation_max: f64,
    /// Mean over constraints.
    pub violation_mean: f64,
    /// Mean of μ^{t+1}.
    pub mu_mean: f64,
    /// Largest of μ^{t+1}.
    pub mu_largest: f64,
    /// ‖∇̃_θ L‖₂.
    pub gradient_norm: f64,
    /// Distance of (θ^t, μ^{t+1}) from a stationary point, where it is known.
    pub stationarity: Option<Stationarity>,
}

impl Summary {
    /// From the signals, multipliers and gradient of iteration t.
    pub fn new(iteration: usize, signals: &Signals, mu: &Ragged<f64>, gradient: &Ragged<f64>) -> Self {
        let violations = Violations::of(signals.slack.data());
        let mu = mu.data();
        Summary {
            iteration,
            return_: None,
            objective: signals.objective.iter().sum::<f64>() / signals.objective.len() as f64,
            violation_total: violations.total,
            violation_max: violations.max,
            violation_mean: violations.mean,
            mu_mean: if mu.is_empty() { 0.0 } else { mu.iter().sum::<f64>() / mu.len() as f64 },
            mu_largest: mu.iter().copied().fold(0.0, f64::max),
            gradient_norm: gradient.data().iter().map(|g| g * g).sum::<f64>().sqrt(),
            stationarity: None,
        }
    }
}

/// Constraint violations max(0, −g_ik), summed up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Violations {
    /// Their sum.
    pub total: f64,
    /// The largest.
    pub max: f64,
    /// Their mean.
    pub mean: f64,
}

impl Violations {
    /// From all g_ik, in agent order. A NaN makes them NaN.
    pub fn of(slack: &[f64]) -> Self {
        let (mut total, mut max) = (0.0, 0.0f64);
        for &g in slack {
            // Plus 0, or a slack of 0 would count as −0.
            let violation = clip(-g, 0.0, f64::INFINITY) + 0.0;
            total += violation;
            max = if max > violation { max } else { violation };
        }
        Violations { total, max, mean: if slack.is_empty() { 0.0 } else { total / slack.len() as f64 } }
    }
}

/// Undiscounted return of the channel `reward` over an episode, mean over agents.
pub fn mean_return(world: &dyn World, counts: &Ragged<f64>, episodes: f64) -> Option<f64> {
    let total: f64 = returns(world, counts)?.sum();
    Some(total / (episodes * counts.rows() as f64))
}

/// Every agent's plain return, summed over the episodes that `counts` are of, if the world has the channel `reward`.
pub fn returns<'a>(
    world: &'a dyn World,
    counts: &'a Ragged<f64>,
) -> Option<Box<dyn Iterator<Item = f64> + 'a>> {
    let place = world.channels().iter().position(|channel| channel.name == "reward")?;
    Some(match world.channels()[place].tables() {
        Some(tables) => {
            let rows = counts.iter().zip(tables.iter());
            Box::new(rows.map(|(counts, r)| counts.iter().zip(r).map(|(count, r)| count * r).sum::<f64>()))
        }
        None => {
            let behind = sampled_channels(world).len() - sampled_number(world, place);
            Box::new(counts.iter().map(move |counts| counts[counts.len() - behind]))
        }
    })
}
