//! Numbers of single agents, put together in agent order: first those of [`FOLD`] consecutive agents, then those of these
//! groups. The result does not depend on who did which part of it.

use bytemuck::{Pod, Zeroable};

use crate::exchange::Halo;
use crate::parallel::FOLD;
use crate::projection::clip;
use crate::{Ragged, Result};

/// What agents contribute to the summary of an iteration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Tally {
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

/// Numbers of a [`Tally`].
const WIDTH: usize = size_of::<Tally>() / size_of::<f64>();

impl Tally {
    /// That of one agent. A NaN among its slacks makes the violations NaN.
    pub fn of(return_: f64, objective: f64, slack: &[f64], mu: &[f64], gradient: &[f64]) -> Self {
        let mut tally = Tally { return_, objective, ..Tally::default() };
        for &g in slack {
            // Plus 0, or a slack of 0 would count as −0.
            let violation = clip(-g, 0.0, f64::INFINITY) + 0.0;
            tally.violation_total += violation;
            tally.violation_max = larger(tally.violation_max, violation);
        }
        tally.mu_total = mu.iter().sum();
        tally.mu_largest = mu.iter().copied().fold(0.0, f64::max);
        tally.gradient_squares = gradient.iter().map(|g| g * g).sum();
        tally
    }

    fn and(self, other: &Tally) -> Tally {
        Tally {
            return_: self.return_ + other.return_,
            objective: self.objective + other.objective,
            violation_total: self.violation_total + other.violation_total,
            violation_max: larger(self.violation_max, other.violation_max),
            mu_total: self.mu_total + other.mu_total,
            mu_largest: self.mu_largest.max(other.mu_largest),
            gradient_squares: self.gradient_squares + other.gradient_squares,
        }
    }

    fn together(tallies: &[Tally]) -> Tally {
        tallies.iter().fold(Tally::default(), Tally::and)
    }

    /// All agents' together, in their order.
    pub fn fold(agents: &[Tally]) -> Tally {
        Tally::together(&agents.chunks(FOLD).map(Tally::together).collect::<Vec<_>>())
    }

    /// The same over the agents of all processes, of which these are `own`: at the first process, something else elsewhere.
    pub fn fold_all(own: &[Tally], halo: &Halo) -> Result<Tally> {
        if !halo.partition().is_aligned() {
            let all = halo.gather_rows(WIDTH, bytemuck::cast_slice(own))?;
            return Ok(Tally::fold(bytemuck::cast_slice(&all)));
        }
        // Whole groups are owned by one process each, in order.
        let groups: Vec<Tally> = own.chunks(FOLD).map(Tally::together).collect();
        let gathered = halo.gather(bytemuck::cast_slice(&groups))?;
        let numbers: Vec<f64> = gathered.iter().flat_map(|bytes| crate::exchange::numbers(bytes)).collect();
        Ok(Tally::together(bytemuck::cast_slice(&numbers)))
    }
}

/// The larger of two, or NaN if one is.
fn larger(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}

/// Rows of several tables, agent by agent.
pub fn tallies<'a>(
    agents: impl Iterator<Item = usize> + 'a,
    returns: impl Fn(usize) -> f64 + 'a,
    objective: &'a [f64],
    slack: &'a Ragged<f64>,
    mu: &'a Ragged<f64>,
    gradient: &'a Ragged<f64>,
) -> Vec<Tally> {
    let of = |i: usize| Tally::of(returns(i), objective[i], slack.row(i), mu.row(i), gradient.row(i));
    agents.map(of).collect()
}
