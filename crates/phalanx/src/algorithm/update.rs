//! What every algorithm here does: count its iterations and their time, look at numbers, step along a
//! gradient.

use std::time::{Duration, Instant};

use crate::base::parallel::{agent_blocks, for_each_agent};
use crate::learn::agent_metrics::AgentMetrics;
use crate::learn::optimizer::Optimizer;
use crate::policy::Policy;
use crate::utility::project_onto_simplex;
use crate::{Error, Ragged, Result};

/// The parts of an iteration, for timing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Line 3, and the trajectory of Algorithm 2.
    Sampling,
    /// Lines 4 and 5.
    Occupancy,
    /// Line 6.
    Critic,
    /// Line 7.
    Dual,
    /// Line 8.
    Gradient,
    /// Line 9.
    Update,
}

impl Stage {
    /// How many there are.
    pub const COUNT: usize = 6;
    /// All, in order, with their names in `timings.csv`.
    pub const NAMES: [&'static str; Stage::COUNT] =
        ["sampling", "occupancy", "critic", "dual", "gradient", "update"];
}

/// How far an algorithm has come.
#[derive(Debug)]
pub struct Progress {
    /// Iterations done.
    pub iteration: u64,
    /// Agent-steps simulated: n·(B·H + K) per iteration. Where episodes end early, the batch has fewer, and
    /// Q-evaluation some more than it keeps.
    pub agent_steps: u64,
    /// Time spent, by stage.
    pub stage_times: [Duration; Stage::COUNT],
    /// End of the last stage.
    since: Instant,
}

impl Progress {
    pub(super) fn new() -> Self {
        let (stage_times, since) = ([Duration::ZERO; Stage::COUNT], Instant::now());
        Progress { iteration: 0, agent_steps: 0, stage_times, since }
    }

    /// An iteration begins.
    pub(super) fn start(&mut self) {
        self.since = Instant::now();
    }

    /// What took the time since the start or the last stage.
    pub(super) fn stage(&mut self, stage: Stage) {
        let now = Instant::now();
        self.stage_times[stage as usize] += now - self.since;
        self.since = now;
    }
}

/// Line 9: θ_i ← P_Θ(θ_i + η·gradient).
pub(super) fn ascend(
    policy: &mut dyn Policy,
    optimizer: &mut Optimizer,
    gradient: &Ragged<f64>,
    eta: f64,
    theta_box: Option<[f64; 2]>,
) {
    let actions = policy.action_counts().to_vec();
    let direct = policy.is_direct();
    let (step, first, second) = optimizer.begin(eta);
    let blocks = agent_blocks(gradient.rows());
    let moments = first.split_rows_mut(&blocks).into_iter().zip(second.split_rows_mut(&blocks));
    let rows = policy.theta_mut().split_rows_mut(&blocks).into_iter().zip(moments);
    for_each_agent(&blocks, rows, |(): &mut (), i, (theta, (first, second))| {
        let theta = theta.row_mut(i);
        step.ascend(theta, gradient.row(i), first.row_mut(i), second.row_mut(i));
        if direct {
            theta.chunks_exact_mut(actions[i]).for_each(|law| project_onto_simplex(law, 1.0));
        } else if let Some([low, high]) = theta_box {
            theta.iter_mut().for_each(|x| *x = x.clamp(low, high));
        }
    });
    policy.refresh();
}

/// Stops a run at the first value that is not finite.
pub(super) fn finite(values: &Ragged<f64>, quantity: &'static str, iteration: usize) -> Result<()> {
    if values.data().iter().all(|x| x.is_finite()) {
        return Ok(());
    }
    let bad = |row: &[f64]| row.iter().copied().find(|x| !x.is_finite());
    match values.iter().enumerate().find_map(|(agent, row)| Some((agent, bad(row)?))) {
        Some((agent, value)) => Err(Error::Diverged { iteration, agent, quantity, value, advice: "" }),
        None => Ok(()),
    }
}

/// The same for g, which is also summed up over so many agents.
pub(super) fn finite_slack(slack: &Ragged<f64>, agents: usize, iteration: usize) -> Result<()> {
    finite(slack, FUNCTION, iteration)?;
    let most = f64::MAX / agents as f64;
    let large = |row: &[f64]| row.iter().copied().find(|x| x.abs() > most);
    match slack.iter().enumerate().find_map(|(agent, row)| Some((agent, large(row)?))) {
        Some((agent, x)) => {
            let value = x * agents as f64;
            Err(Error::Diverged { iteration, agent, quantity: FUNCTIONS, value, advice: "" })
        }
        None => Ok(()),
    }
}

/// An error with what may help: `remedy`, unless the numbers of a utility are too large in themselves.
pub(super) fn advised(error: Error, remedy: &'static str) -> Error {
    match error {
        Error::Diverged { iteration, agent, quantity, value, .. } => {
            let is_utility =
                [FUNCTION, FUNCTIONS, REWARD].contains(&quantity) || AgentMetrics::is_of_utility(quantity);
            let advice = if is_utility { SMALLER_UTILITY } else { remedy };
            Error::Diverged { iteration, agent, quantity, value, advice }
        }
        other => other,
    }
}

/// What may help against steps that are too large, with and without samples.
pub(super) const REMEDY: &str =
    "try a smaller actor.eta_theta, critic step or dual.mu_max, or smaller rewards and scales";
pub(super) const EXACT_REMEDY: &str =
    "try a smaller actor.eta_theta or dual.mu_max, or smaller rewards and scales";

/// Quantities that utilities alone decide on.
const FUNCTION: &str = "g";
const FUNCTIONS: &str = "g times the number of agents";
pub(super) const REWARD: &str = "the shadow reward";

const SMALLER_UTILITY: &str =
    "use smaller rewards, scales and bounds in its utilities, and utilities that are finite everywhere";
