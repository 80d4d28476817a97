//! Numbers of single agents, put together in agent order: first those of `FOLD` consecutive agents, then
//! those of these groups. The result does not depend on who did which part of it.

use bytemuck::{Pod, Zeroable};

use crate::base::parallel::FOLD;
use crate::distributed::Halo;
use crate::learn::shadow::Signals;
use crate::{Ragged, Result};

/// What agents contribute to the summary of an iteration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct AgentMetrics {
    /// Undiscounted sum of the channel `reward` over all episodes.
    pub return_: f64,
    /// f̃_i.
    pub objective: f64,
    /// Σ_k max(0, −g̃_ik).
    pub violation_total: f64,
    /// The largest of them.
    pub violation_max: f64,
    /// Σ_k μ_ik.
    pub mu_total: f64,
    /// The largest of them.
    pub mu_largest: f64,
    /// ‖∇̃_{θ_i} L‖².
    pub gradient_squares: f64,
}

/// Numbers of a [`AgentMetrics`].
const WIDTH: usize = size_of::<AgentMetrics>() / size_of::<f64>();

/// What the numbers are called, and their sums over agents.
const QUANTITIES: [[&str; 2]; WIDTH] = [
    ["the return", "the return times the number of agents"],
    ["f", "f times the number of agents"],
    ["the violation", "the violation times the number of agents"],
    ["the largest violation", "the largest violation times the number of agents"],
    ["mu", "mu times the number of agents"],
    ["the largest mu", "the largest mu times the number of agents"],
    ["the square of the gradient", "the square of the gradient times the number of agents"],
];

/// How many of them utilities alone decide on.
const OF_UTILITIES: usize = 4;

impl AgentMetrics {
    /// That of agent i with its row of the gradient. A NaN among its slacks makes the violations NaN.
    pub fn for_agent(i: usize, return_: f64, signals: &Signals, mu: &Ragged<f64>, gradient: &[f64]) -> Self {
        AgentMetrics {
            return_,
            objective: signals.objective[i],
            mu_total: mu.row(i).iter().sum(),
            mu_largest: mu.row(i).iter().copied().fold(0.0, f64::max),
            gradient_squares: gradient.iter().map(|g| g * g).sum(),
            ..AgentMetrics::for_slack(signals.slack.row(i))
        }
    }

    /// What it says of an agent that no summary over `agents` such agents could hold, and how large it is.
    pub fn overflow(&self, agents: usize) -> Option<(&'static str, f64)> {
        let numbers: [f64; WIDTH] = bytemuck::cast(*self);
        let all = agents as f64;
        let found = numbers.iter().zip(QUANTITIES).find(|(x, _)| !(**x * all).is_finite());
        found.map(|(&x, [alone, together])| if x.is_finite() { (together, x * all) } else { (alone, x) })
    }

    /// Whether utilities alone decide on a quantity that [`AgentMetrics::overflow`] names.
    pub fn is_of_utility(quantity: &str) -> bool {
        QUANTITIES[..OF_UTILITIES].iter().flatten().any(|name| *name == quantity)
    }

    /// The violations of one agent alone.
    fn for_slack(slack: &[f64]) -> Self {
        let mut tally = AgentMetrics::default();
        for &g in slack {
            // Plus 0, or a slack of 0 would count as −0.
            let violation = (-g).clamp(0.0, f64::INFINITY) + 0.0;
            tally.violation_total += violation;
            tally.violation_max = nan_max(tally.violation_max, violation);
        }
        tally
    }

    fn and(self, other: &AgentMetrics) -> AgentMetrics {
        AgentMetrics {
            return_: self.return_ + other.return_,
            objective: self.objective + other.objective,
            violation_total: self.violation_total + other.violation_total,
            violation_max: nan_max(self.violation_max, other.violation_max),
            mu_total: self.mu_total + other.mu_total,
            mu_largest: self.mu_largest.max(other.mu_largest),
            gradient_squares: self.gradient_squares + other.gradient_squares,
        }
    }

    fn together(agent_metrics: &[AgentMetrics]) -> AgentMetrics {
        agent_metrics.iter().fold(AgentMetrics::default(), AgentMetrics::and)
    }

    /// All agents' together, in their order, where this process has all of them.
    pub fn fold(agents: &[AgentMetrics]) -> AgentMetrics {
        AgentMetrics::together(&agents.chunks(FOLD).map(AgentMetrics::together).collect::<Vec<_>>())
    }

    /// The same over the agents of all processes, of which these are `own`; valid on rank 0 only.
    pub fn fold_all(own: &[AgentMetrics], halo: &Halo) -> Result<AgentMetrics> {
        if !halo.partition.is_aligned() {
            let all = halo.gather_rows(WIDTH, bytemuck::cast_slice(own))?;
            return Ok(AgentMetrics::fold(bytemuck::cast_slice(&all)));
        }
        // Whole groups are owned by one process each, in order.
        let groups: Vec<AgentMetrics> = own.chunks(FOLD).map(AgentMetrics::together).collect();
        let gathered = halo.gather(bytemuck::cast_slice(&groups))?;
        let numbers: Vec<f64> =
            gathered.iter().flat_map(|bytes| crate::distributed::numbers(bytes)).collect();
        Ok(AgentMetrics::together(bytemuck::cast_slice(&numbers)))
    }
}

/// Bytes that a process adds to [`AgentMetrics::fold_all`].
pub fn folded_bytes(own: usize, halo: &Halo) -> usize {
    let summed = if halo.partition.is_aligned() { own.div_ceil(FOLD) } else { own };
    summed * size_of::<AgentMetrics>()
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
    /// From every agent's g_ik. A NaN makes them NaN.
    pub fn from_slack(slack: &Ragged<f64>) -> Self {
        let agents: Vec<AgentMetrics> = slack.iter().map(AgentMetrics::for_slack).collect();
        let AgentMetrics { violation_total, violation_max, .. } = AgentMetrics::fold(&agents);
        let mean = if slack.data().is_empty() { 0.0 } else { violation_total / slack.data().len() as f64 };
        Violations { total: violation_total, max: violation_max, mean }
    }
}

/// The larger of two, or NaN if one is.
fn nan_max(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}
