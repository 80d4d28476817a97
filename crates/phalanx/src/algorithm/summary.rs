//! What an iteration looked like, in numbers.

use crate::exact::Stationarity;
use crate::learn::agent_metrics::AgentMetrics;
use crate::learn::shadow::Signals;
use crate::world::{World, sampled_number};
use crate::{Error, Ragged, Result};

/// What an iteration looked like: estimates from its own batch, or exact values.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// t.
    pub iteration: usize,
    /// Undiscounted sum of the channel `reward` over an episode, mean over agents; none without such a
    /// channel, or if nothing was sampled.
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
    /// From the signals, multipliers and gradient of iteration t, and from what agents `earned` in so many
    /// episodes. Fails where a number is not finite.
    pub fn new(
        iteration: usize,
        signals: &Signals,
        mu: &Ragged<f64>,
        gradient: &Ragged<f64>,
        earned: Option<(&dyn Fn(usize) -> f64, usize)>,
    ) -> Result<Self> {
        let agents = signals.objective.len();
        let return_ = |i: usize| earned.map_or(0.0, |(earned, _)| earned(i));
        let of = |i| AgentMetrics::for_agent(i, return_(i), signals, mu, gradient.row(i));
        let each = finite_metrics(iteration, agents, (0..agents).map(of))?;
        let all = AgentMetrics::fold(&each);
        Ok(Summary {
            return_: earned.map(|(_, episodes)| all.return_ / (episodes * agents) as f64),
            ..Summary::of(iteration, &all, agents, mu.data().len())
        })
    }

    /// From what so many agents with so many constraints contribute.
    pub fn of(iteration: usize, tally: &AgentMetrics, agents: usize, constraints: usize) -> Self {
        let mean = |total: f64| if constraints == 0 { 0.0 } else { total / constraints as f64 };
        Summary {
            iteration,
            return_: None,
            objective: tally.objective / agents as f64,
            violation_total: tally.violation_total,
            violation_max: tally.violation_max,
            violation_mean: mean(tally.violation_total),
            mu_mean: mean(tally.mu_total),
            mu_largest: tally.mu_largest,
            gradient_norm: tally.gradient_squares.sqrt(),
            stationarity: None,
        }
    }
}

/// The numbers of single agents, if they are finite and can be summed up over `agents` agents.
pub(super) fn finite_metrics(
    iteration: usize,
    agents: usize,
    metrics: impl Iterator<Item = AgentMetrics>,
) -> Result<Vec<AgentMetrics>> {
    let metrics: Vec<AgentMetrics> = metrics.collect();
    let overflow = |(agent, one): (usize, &AgentMetrics)| Some((agent, one.overflow(agents)?));
    match metrics.iter().enumerate().find_map(overflow) {
        Some((agent, (quantity, value))) => {
            Err(Error::Diverged { iteration, agent, quantity, value, advice: "" })
        }
        None => Ok(metrics),
    }
}

/// What every agent earned from the channel `reward`, undiscounted, over all trajectories that were counted;
/// none without such a channel.
pub fn undiscounted_returns<'a>(
    world: &'a dyn World,
    counts: &'a Ragged<f64>,
) -> Option<impl Fn(usize) -> f64 + 'a> {
    let place = world.channels().iter().position(|channel| channel.name == "reward")?;
    let tables = world.channels()[place].tables();
    let number = sampled_number(world, place);
    Some(move |agent: usize| {
        let counts = counts.row(agent);
        match tables {
            Some(tables) => counts.iter().zip(tables.row(agent)).map(|(count, r)| count * r).sum::<f64>(),
            None => counts[world.states(agent) * world.actions(agent) + number],
        }
    })
}

/// Undiscounted return of the channel `reward` over an episode, mean over agents.
pub fn mean_return(world: &dyn World, counts: &Ragged<f64>, episodes: f64) -> Option<f64> {
    let earned = undiscounted_returns(world, counts)?;
    let tally = |agent: usize| AgentMetrics { return_: earned(agent), ..AgentMetrics::default() };
    let all: Vec<AgentMetrics> = (0..counts.rows()).map(tally).collect();
    Some(AgentMetrics::fold(&all).return_ / (episodes * counts.rows() as f64))
}
