//! What temporal differences are promised and what they reach. Paper: prop:subroutine_complexity.

use serde::Serialize;

use super::{Point, found};
use crate::base::elementary::ln;
use crate::base::stream::{Place, Purpose, Stream};
use crate::distributed::Halo;
use crate::exact::{TdBound, TdSetting, Truncation};
use crate::learn::critic::{Critic, CriticInput, QTables, StepSettings, Td};
use crate::sample::rollout::{self, Request, StartFrom};
use crate::world::Trajectory;
use crate::{Ragged, Result};

/// Trajectories that TD is tried on.
const TRIALS: u32 = 5;

/// The bound on K steps of TD with its step sizes, and K such steps.
#[derive(Debug, Clone, Serialize)]
pub struct TdCheck {
    /// K.
    pub steps: usize,
    /// Why something below is missing.
    pub notes: Vec<String>,
    /// σ, k₀ and what else the bound depends on, for the agent with the largest neighbourhood.
    pub setting: Option<TdSetting>,
    /// Step sizes and bound.
    pub bound: Option<TdBound>,
    /// What K steps with these step sizes reach.
    pub measured: Option<TdMeasured>,
}

/// Distances between tables: largest entry over agents and utilities, median over five trajectories.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TdMeasured {
    /// The largest |Q̂|, to compare distances with.
    pub largest_q: f64,
    /// From what TD learnt to the tables with everybody else held at 0, which the paper means.
    pub to_fixed: f64,
    /// From what TD learnt to its own fixed point under the stationary law (errata 3).
    pub to_limit: Option<f64>,
    /// Between those two: what no number of steps removes.
    pub limit_to_fixed: Option<f64>,
}

impl TdCheck {
    pub(super) fn new(point: &Point<'_>, delta: f64) -> Result<Self> {
        let mut notes = Vec::new();
        let setting = setting(point, delta, &mut notes);
        let bound = setting.as_ref().map(TdBound::new).transpose()?;
        let measured = bound.as_ref().map(|bound| measure(point, bound, &mut notes)).transpose()?;
        Ok(TdCheck { steps: point.subject.critic_steps, notes, setting, bound, measured })
    }
}

fn measure(point: &Point<'_>, bound: &TdBound, notes: &mut Vec<String>) -> Result<TdMeasured> {
    let fixed = point.tables(point.groups, Truncation::Fixed, &point.chain.state_occupancy)?;
    let stationary = point.chain.stationary();
    let limit = stationary.and_then(|weights| point.tables(point.groups, Truncation::Td, &weights));
    let limit = found(limit, notes);
    let learnt = (0..TRIALS).map(|trial| learn(point, bound, trial)).collect::<Result<Vec<_>>>()?;
    let median_to = |tables: &Ragged<f64>| {
        let mut gaps: Vec<f64> = learnt.iter().map(|learnt| largest_gap(learnt, tables.data())).collect();
        gaps.sort_by(f64::total_cmp);
        gaps[gaps.len() / 2]
    };
    Ok(TdMeasured {
        largest_q: fixed.data().iter().fold(0.0, |largest, q| f64::max(largest, q.abs())),
        to_fixed: median_to(&fixed),
        to_limit: limit.as_ref().map(median_to),
        limit_to_fixed: limit.as_ref().map(|limit| largest_gap(limit.data(), fixed.data())),
    })
}

/// The proposition's setting; a note if there is no σ.
fn setting(point: &Point<'_>, delta: f64, notes: &mut Vec<String>) -> Option<TdSetting> {
    let Some(exploration) = found(point.chain.exploration(point.groups), notes)? else {
        notes.push("some pair of a neighbourhood may never be met: there is no bound".into());
        return None;
    };
    let dynamics = &point.chain.system.dynamics;
    let shapes = point.groups.iter().map(|group| {
        let pairs = group.iter().map(|&k| dynamics.cells(k as usize)).max().unwrap_or(1);
        (group.len(), pairs)
    });
    // C_i grows with |N_i| log(|S_i||A_i|).
    let weight = |&(neighbours, pairs): &(usize, usize)| neighbours as f64 * ln(pairs as f64);
    let (neighbours, pairs) = shapes.max_by(|a, b| weight(a).total_cmp(&weight(b))).unwrap_or((1, 1));
    Some(TdSetting {
        // It must be below 1; where all is certain, any smaller one is true as well.
        sigma: exploration.sigma.min(1.0 - f64::EPSILON),
        k0: exploration.k0,
        gamma: point.sizes.gamma,
        reward_bound: point.reward_bound(),
        neighbours,
        pairs,
        delta,
        steps: point.subject.critic_steps,
    })
}

/// The tables after K steps from zero along one trajectory. Paper: alg:subroutine.
fn learn(point: &Point<'_>, bound: &TdBound, trial: u32) -> Result<Vec<f64>> {
    let subject = point.subject;
    let tables = QTables::new(subject.world, subject.kappa_q, subject.problem)?;
    let rule = StepSettings::harmonic(bound.h, bound.k1);
    let mut td = Td::new(tables, subject.critic_steps, rule, false);
    let mut trajectory = [Trajectory::new(point.sizes.agents, td.samples().evaluation_pairs)];
    let request = Request {
        place: Place { purpose: Purpose::Critic, iteration: 0, trajectory: trial },
        start_purpose: Purpose::CriticStart,
        start: StartFrom::Uniform,
    };
    let stream = Stream::new(subject.seed);
    let halo = Halo::single(point.sizes.agents);
    rollout::simulate(subject.world, subject.policy, &stream, &[request], &mut trajectory, &halo)?;
    td.evaluate(CriticInput {
        iteration: 0,
        policy: subject.policy,
        mu: subject.mu,
        signals: point.signals,
        batch: &[],
        evaluation: &trajectory,
    })?;
    let of_agent = |j: usize| (0..=subject.problem.agents[j].constraints.len()).map(move |which| (j, which));
    let tables = (0..point.sizes.agents).flat_map(of_agent).map(|(j, which)| td.values().table(j, which));
    Ok(tables.flatten().flatten().copied().collect())
}

/// ‖a − b‖_∞.
fn largest_gap(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |largest, (a, b)| f64::max(largest, (a - b).abs()))
}
