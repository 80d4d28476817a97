//! How surely every pair of a neighbourhood is met. Paper: eq:exploration_condition.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::contraction::Workspace;
use super::layout::{Layout, members};
use super::system::Chain;
use super::truncation::joint_law;
use crate::policy::Policy;
use crate::{Error, Ragged, Result};

/// Longest k₀ that is tried.
const LONGEST: usize = 64;

/// Most numbers that a search holds: joint states times pairs of all neighbourhoods.
pub const LARGEST_SEARCH: usize = 1 << 24;

/// Pairs whose probabilities are carried along together.
const LANES: usize = 8;

/// From any (s, a), every pair of every neighbourhood is met k₀ steps later with probability σ or more.
/// Paper: eq:exploration_condition, at one policy instead of all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exploration {
    /// σ: proven, though for this k₀ a larger one may exist.
    pub sigma: f64,
    /// k₀.
    pub k0: usize,
}

impl Exploration {
    /// σ/√k₀: the bounds of prop:subroutine_complexity shrink as it grows.
    fn worth(&self) -> f64 {
        self.sigma / (self.k0 as f64).sqrt()
    }
}

/// P(z^k = z | s⁰ = s) of [`LANES`] pairs z, by joint state.
type Block = Vec<[f64; LANES]>;

impl Chain<'_> {
    /// The σ and k₀ ≤ 64 that serve the bounds of prop:subroutine_complexity best; row i of `groups` is
    /// N_i^{κ_q}. `None` if there is a pair that may always be missed.
    ///
    /// After the first step only s¹ counts, so σ = min over joint states s and pairs z of P(z^{k₀−1} = z | s⁰
    /// = s) is valid for every (s, a). Cost: an expectation an eighth of the pairs and step; few steps,
    /// mostly.
    pub fn exploration(&self, groups: &Ragged<u32>) -> Result<Option<Exploration>> {
        let mut blocks = Vec::new();
        for group in self.distinct(groups)? {
            blocks.extend(self.meeting_now(&group));
        }
        let mut best: Option<Exploration> = None;
        for k0 in 1..=LONGEST {
            let (sigma, ceiling) = blocks
                .par_iter()
                .map(extremes)
                .reduce(|| (f64::INFINITY, f64::INFINITY), |a, b| (a.0.min(b.0), a.1.min(b.1)));
            let found = Exploration { sigma, k0 };
            if found.worth() > best.map_or(0.0, |best| best.worth()) {
                best = Some(found);
            }
            // The least likely pair gets no likelier than it is now from the state that favours it most.
            let hoped_for = Exploration { sigma: ceiling, k0: k0 + 1 };
            if best.is_some_and(|best| hoped_for.worth() <= best.worth()) {
                break;
            }
            blocks.par_iter_mut().for_each_init(Workspace::default, |workspace, block| {
                self.forward.apply(block, workspace);
                block.copy_from_slice(&workspace.now);
            });
        }
        Ok(best)
    }

    /// The groups without repetitions, if their pairs are not too many.
    fn distinct(&self, groups: &Ragged<u32>) -> Result<BTreeSet<Vec<usize>>> {
        let dynamics = &self.system.dynamics;
        let distinct: BTreeSet<Vec<usize>> = members(groups).into_iter().collect();
        let pairs = |group: &Vec<usize>| group.iter().map(|&k| dynamics.cells(k) as f64).product::<f64>();
        let numbers = dynamics.joint_states as f64 * distinct.iter().map(pairs).sum::<f64>();
        if numbers > LARGEST_SEARCH as f64 {
            let message = format!(
                "following every pair of every neighbourhood takes {numbers:.1e} numbers; at most {LARGEST_SEARCH} are held"
            );
            return Err(Error::config(crate::base::key::KAPPA_Q, message));
        }
        Ok(distinct)
    }

    /// P(z⁰ = z | s⁰ = s) for all pairs of `group`.
    fn meeting_now(&self, group: &[usize]) -> Vec<Block> {
        let (system, policy) = (self.system, self.policy);
        let states = Layout::of_states(&system.dynamics, group.iter().copied());
        let joint_actions: usize = group.iter().map(|&k| policy.actions(k)).product();
        let pairs = states.size() as usize * joint_actions;
        // Lanes that no pair needs hold the certain event, which is never the least likely.
        let nowhere = |block: usize| std::array::from_fn(|l| f64::from(u8::from(block * LANES + l >= pairs)));
        let mut blocks: Vec<Block> = (0..pairs.div_ceil(LANES))
            .map(|block| vec![nowhere(block); system.dynamics.joint_states])
            .collect();
        let mut law = Vec::new();
        for (s, &cell) in system.joint.positions_in(&states).iter().enumerate() {
            joint_law(policy, group, |k| system.observations[group[k]][s], &mut law);
            for (a, &p) in law.iter().enumerate() {
                let z = cell as usize * joint_actions + a;
                blocks[z / LANES][s][z % LANES] = p;
            }
        }
        blocks
    }
}

/// The smallest entry; and the smallest over pairs of the largest over states.
fn extremes(block: &Block) -> (f64, f64) {
    let (mut smallest, mut largest) = ([f64::INFINITY; LANES], [0f64; LANES]);
    for row in block {
        for l in 0..LANES {
            smallest[l] = smallest[l].min(row[l]);
            largest[l] = largest[l].max(row[l]);
        }
    }
    let least = |values: [f64; LANES]| values.into_iter().fold(f64::INFINITY, f64::min);
    (least(smallest), least(largest))
}

#[cfg(test)]
mod tests {
    use super::super::decay::tests::{REFERENCES, assert_close, reference};
    use super::*;
    use crate::exact::System;

    /// σ as the definition has it, min over (s, a) and z, from powers of P_π.
    #[test]
    fn is_proven_and_the_best_of_its_kind() {
        for name in REFERENCES {
            let case = reference(name).case;
            let system = System::new(&case.world, &case.problem, &case.policy).unwrap();
            let chain = system.under(&case.policy).unwrap();
            let size = system.dynamics.joint_states;
            let matrix = chain.transition_matrix();
            // P(z^k = z | s⁰ = s): from every state, a law over states that is carried on.
            let mut laws: Vec<Vec<f64>> =
                (0..size).map(|s| (0..size).map(|t| f64::from(u8::from(s == t))).collect()).collect();
            let least = |laws: &[Vec<f64>]| {
                let groups = members(&case.groups);
                let mut least = f64::INFINITY;
                for (group, law) in groups.iter().flat_map(|group| laws.iter().map(move |law| (group, law))) {
                    let cells = system
                        .joint
                        .positions_in(&Layout::of_states(&system.dynamics, group.iter().copied()));
                    let actions: usize = group.iter().map(|&k| case.policy.actions(k)).product();
                    let states: usize = group.iter().map(|&k| system.dynamics.states[k]).product();
                    let mut met = vec![0.0; states * actions];
                    let mut joint = Vec::new();
                    for (s, p) in law.iter().enumerate() {
                        joint_law(&case.policy, group, |k| system.observations[group[k]][s], &mut joint);
                        for (a, q) in joint.iter().enumerate() {
                            met[cells[s] as usize * actions + a] += p * q;
                        }
                    }
                    least = met.into_iter().fold(least, f64::min);
                }
                least
            };
            let mut expected = (0.0, 0.0, 0);
            for k0 in 1..=12usize {
                let sigma = least(&laws);
                if sigma / (k0 as f64).sqrt() > expected.0 {
                    expected = (sigma / (k0 as f64).sqrt(), sigma, k0);
                }
                laws = laws
                    .iter()
                    .map(|law| {
                        (0..size).map(|t| (0..size).map(|s| law[s] * matrix[s * size + t]).sum()).collect()
                    })
                    .collect();
            }
            let found = chain.exploration(&case.groups).unwrap();
            assert_eq!(found.map_or(0, |found| found.k0), expected.2, "{name}");
            assert_close(name, found.map_or(0.0, |found| found.sigma), expected.1, 1e-12);
        }
    }
}
