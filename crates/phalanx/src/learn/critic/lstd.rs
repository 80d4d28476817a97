//! Least-squares temporal differences on tables: the fixed point of TD on the samples, solved at once.

use multiversion::multiversion;

use serde::{Deserialize, Serialize};

use super::{
    Critic, CriticContext, CriticInput, CriticSettings, QTables, QValues, STEPS, SampleRequest, StepsKeys,
};
use crate::Result;
use crate::base::limits::check_memory;
use crate::base::range::Positive;
use crate::base::section::Keys;
use crate::learn::shadow::reward_column;
use crate::policy::columns::pair_column;
use crate::world::Trajectory;

/// Keys of `[critic]` on LSTD (lstd, linear).
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct RidgeKeys {
    /// Added to the diagonal.
    pub(super) ridge: Positive,
}

impl Default for RidgeKeys {
    fn default() -> Self {
        RidgeKeys { ridge: Positive(1e-6) }
    }
}

/// The settings of `lstd`.
#[derive(Debug)]
pub struct LstdSettings {
    samples: StepsKeys,
    equations: RidgeKeys,
}

impl LstdSettings {
    pub(crate) fn read(keys: &mut Keys) -> Result<Self> {
        Ok(LstdSettings { samples: keys.read()?, equations: keys.read()? })
    }
}

impl CriticSettings for LstdSettings {
    fn build(&self, context: CriticContext<'_>) -> Result<Box<dyn Critic>> {
        let CriticContext { world, problem, kappa_q, .. } = context;
        let steps = *self.samples.steps;
        let tables = QTables::new(world, kappa_q, problem)?;
        let largest = (0..problem.agents.len()).map(|j| tables.index.size(j)).max().unwrap_or(0);
        // Every thread solves a dense system over the pairs that can have been visited.
        let unknowns = largest.min(steps + 1) as u128;
        let bytes = 8 * unknowns * unknowns * rayon::current_num_threads() as u128;
        check_memory(bytes, STEPS, &format!("LSTD over {unknowns} pairs"))?;
        Ok(Box::new(Lstd::new(tables, steps, *self.equations.ridge)))
    }
}

/// Solves (D + ridge·I − γ·C)·Q = D·r̄ over the pairs visited along the trajectory of alg:subroutine, where D
/// counts departures and C transitions, both divided by K. Pairs never left have Q = 0.
#[derive(Debug)]
pub struct Lstd {
    tables: QTables,
    steps: usize,
    ridge: f64,
}

impl Lstd {
    /// LSTD on the given tables from K = `steps` transitions.
    pub fn new(tables: QTables, steps: usize, ridge: f64) -> Self {
        Lstd { tables, steps, ridge }
    }
}

/// Buffers of one agent's solve.
#[derive(Debug, Default)]
struct LstdWorkspace {
    /// Pairs along every trajectory.
    columns: Vec<Vec<u32>>,
    /// Number of a visited pair in the system, by pair.
    unknown_of: Vec<u32>,
    visited: Vec<u32>,
    rewards: Vec<f64>,
    /// Rows of the system followed by its right-hand sides: `[unknown][unknowns + utilities]`.
    system: Vec<f64>,
}

const NOT_VISITED: u32 = u32::MAX;

impl Critic for Lstd {
    fn samples(&self) -> SampleRequest {
        SampleRequest::chains(1, self.steps)
    }

    fn learn(&mut self, evidence: CriticInput<'_>) -> Result<()> {
        let transitions: usize = evidence.evaluation.iter().map(Trajectory::transitions).sum();
        let (ridge, signals) = (self.ridge, evidence.signals);
        self.tables.for_each_agent(|j, index, tables, scratch: &mut LstdWorkspace| {
            scratch.columns.resize(evidence.evaluation.len(), Vec::new());
            for (trajectory, pairs) in evidence.evaluation.iter().zip(&mut scratch.columns) {
                pair_column(index.terms(j), None, trajectory, trajectory.steps(), pairs);
            }
            number_visited(scratch, index.size(j));
            let utilities = tables.len() / index.size(j);
            let unknowns = scratch.visited.len();
            let width = unknowns + utilities;
            scratch.system.clear();
            scratch.system.resize(unknowns * width, 0.0);
            let (rewards, actions) = (signals.rewards.row(j), signals.actions[j]);
            let cells = rewards.len() / utilities;
            let weight = 1.0 / transitions as f64;
            for row in 0..unknowns {
                scratch.system[row * width + row] = ridge;
            }
            for (trajectory, pairs) in evidence.evaluation.iter().zip(&scratch.columns) {
                let number = |z: u32| scratch.unknown_of[z as usize] as usize;
                for (k, &z) in pairs[..trajectory.transitions()].iter().enumerate() {
                    let row = &mut scratch.system[number(z) * width..][..width];
                    row[number(z)] += weight;
                    // After the end of an episode comes nothing.
                    if let Some(&next) = pairs.get(k + 1) {
                        row[number(next)] -= weight * signals.gamma;
                    }
                }
                for (utility, reward) in rewards.chunks_exact(cells).enumerate() {
                    let steps = trajectory.transitions();
                    reward_column(reward, trajectory, j, actions, steps, &mut scratch.rewards);
                    for (&z, reward) in pairs.iter().zip(&scratch.rewards) {
                        scratch.system[number(z) * width + unknowns + utility] += weight * reward;
                    }
                }
            }
            solve_dominant(&mut scratch.system, unknowns, width);
            tables.fill(0.0);
            for (unknown, &z) in scratch.visited.iter().enumerate() {
                let solution = &scratch.system[unknown * width + unknowns..(unknown + 1) * width];
                for (which, &value) in solution.iter().enumerate() {
                    tables[which * index.size(j) + z as usize] = value;
                }
            }
        });
        Ok(())
    }

    fn values(&self) -> &dyn QValues {
        &self.tables
    }

    fn values_mut(&mut self) -> &mut dyn QValues {
        &mut self.tables
    }
}

/// Numbers the visited pairs in order of their first visit.
fn number_visited(scratch: &mut LstdWorkspace, size: usize) {
    scratch.visited.clear();
    scratch.unknown_of.clear();
    scratch.unknown_of.resize(size, NOT_VISITED);
    for &z in scratch.columns.iter().flatten() {
        let number = &mut scratch.unknown_of[z as usize];
        if *number == NOT_VISITED {
            *number = scratch.visited.len() as u32;
            scratch.visited.push(z);
        }
    }
}

/// Gauss–Jordan elimination in place; the solutions replace the right-hand sides.
///
/// No pivoting: with γ < 1 and ridge > 0 every row's diagonal exceeds the sum of its other entries, which
/// elimination preserves.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
fn solve_dominant(system: &mut [f64], unknowns: usize, width: usize) {
    for pivot in 0..unknowns {
        let (above, rest) = system.split_at_mut(pivot * width);
        let (row, below) = rest.split_at_mut(width);
        let scale = 1.0 / row[pivot];
        row[pivot..].iter_mut().for_each(|x| *x *= scale);
        for other in above.chunks_exact_mut(width).chain(below.chunks_exact_mut(width)) {
            let factor = other[pivot];
            // Most entries are zero: a pair has few successors.
            if factor != 0.0 {
                for (x, p) in other[pivot..].iter_mut().zip(&row[pivot..]) {
                    *x -= factor * p;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dominant_systems_are_solved() {
        // [4 -1; -2 3]·x = [1 5; 2 0] has x = [0.5 1.5; 1 1].
        let mut system = vec![4.0, -1.0, 1.0, 5.0, -2.0, 3.0, 2.0, 0.0];
        solve_dominant(&mut system, 2, 4);
        for (found, expected) in [(system[2], 0.5), (system[3], 1.5), (system[6], 1.0), (system[7], 1.0)] {
            assert!((found - expected).abs() < 1e-14);
        }
    }
}
