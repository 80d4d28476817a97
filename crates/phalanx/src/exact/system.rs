//! A network written out with its radii, and what follows from a policy in it.

use phalanx_solvers::{Lu, Mat};
use rayon::prelude::*;

use super::contraction::{Laws, Layout, Plan, Prepared, Role, Workspace};
use super::dynamics::Dynamics;
use super::gmres::{self, Side};
use crate::learn::shadow::Signals;
use crate::policy::Tabular;
use crate::utility::problem::Problem;
use crate::world::World;
use crate::{Error, Ragged, Result};

/// Up to so many joint states a dense factorisation is quicker than iterating.
const DENSE: usize = 256;

/// Right-hand sides solved together.
const LANES: usize = 8;

/// Applications of P before iterating is given up: what plain iteration would need for γ = 0.999.
const MOST_APPLICATIONS: usize = 30_000;

/// Everything about a small network that does not depend on the policy: laws, numberings, plans.
#[derive(Debug, Clone)]
pub struct System {
    /// The world's tables.
    pub dynamics: Dynamics,
    pub(super) laws: Laws,
    /// γ.
    pub gamma: f64,
    /// Indices of all joint states.
    pub(super) joint: Layout,
    /// Number of agent i's observation in joint state s, `[agent][s]`.
    pub(super) observations: Vec<Vec<u32>>,
    /// Agent i's own state in joint state s, `[agent][s]`.
    pub(super) own_states: Vec<Vec<u32>>,
    /// E[v(s') | s].
    forward: Plan,
    /// E[v(s') | s, a_i], by agent.
    pub(super) own_action: Vec<Plan>,
}

impl System {
    /// Writes out `world` for policies shaped like `policy`, with the discount of `problem`.
    pub fn new(world: &dyn World, problem: &Problem, policy: &Tabular) -> Result<Self> {
        if problem.sampled_channels > 0 {
            let message = "pays rewards that depend on neighbours or chance (errata 24); exact computations need r_i(s_i, a_i)";
            return Err(Error::config("world", message));
        }
        let dynamics = Dynamics::new(world)?;
        let n = dynamics.agents();
        let laws = Laws::new(&dynamics);
        let everyone: Vec<usize> = (0..n).collect();
        let plan =
            |roles: &[Role]| Plan::new(&dynamics, &laws, policy.observations(), roles, &everyone, &everyone);
        let forward = plan(&vec![Role::Follows; n])?;
        let own_action = (0..n).map(|i| {
            let mut roles = vec![Role::Follows; n];
            roles[i] = Role::Free;
            plan(&roles)
        });
        let own_action = own_action.collect::<Result<Vec<_>>>()?;
        let joint = Layout::of_states(&dynamics, 0..n);
        let observed = |i| joint.positions_in(&Layout::of_states(&dynamics, policy.observations().agents(i)));
        Ok(System {
            observations: (0..n).map(observed).collect(),
            own_states: (0..n).map(|i| joint.positions_in(&Layout::of_states(&dynamics, [i]))).collect(),
            gamma: problem.gamma,
            forward,
            own_action,
            joint,
            laws,
            dynamics,
        })
    }

    /// Multiplications of one step of a chain: what everything here takes a few hundred times.
    pub fn work(&self) -> usize {
        self.forward.work()
    }

    /// The chain that `policy` makes of the network.
    pub fn under<'a>(&'a self, policy: &'a Tabular) -> Result<Chain<'a>> {
        self.chain(policy, self.dynamics.joint_states <= DENSE)
    }

    fn chain<'a>(&'a self, policy: &'a Tabular, dense: bool) -> Result<Chain<'a>> {
        let forward = self.forward.prepare(&self.laws, policy);
        let mut chain = Chain { system: self, policy, forward, dense: None, state_occupancy: Vec::new() };
        if dense {
            let (size, matrix) = (self.dynamics.joint_states, chain.transition_matrix());
            chain.dense = Some(identity_minus(size, |s, t| self.gamma * matrix[s * size + t]));
        }
        chain.state_occupancy = chain.discounted_visits(&self.dynamics.start)?;
        Ok(chain)
    }
}

/// I − A, factored.
pub(super) fn identity_minus(size: usize, a: impl Fn(usize, usize) -> f64) -> Lu {
    Lu::new(Mat::from_fn(size, size, |i, j| f64::from(u8::from(i == j)) - a(i, j)).as_ref())
}

/// A policy at work: the Markov chain of joint states, solved exactly.
pub struct Chain<'a> {
    /// The network.
    pub system: &'a System,
    /// The policy.
    pub policy: &'a Tabular,
    /// E[v(s') | s] of functions v of the joint state.
    pub(super) forward: Prepared<'a>,
    dense: Option<Lu>,
    /// Σ_k γ^k P(s^k = s), which sums to 1/(1−γ). Paper: eq:occupancy measure.
    pub state_occupancy: Vec<f64>,
}

impl Chain<'_> {
    /// P_π as `[s][s']`.
    pub fn transition_matrix(&self) -> Vec<f64> {
        let size = self.system.dynamics.joint_states;
        let mut matrix = vec![0.0; size * size];
        let mut workspace = Workspace::<LANES>::default();
        for first in (0..size).step_by(LANES) {
            let unit = |s: usize| std::array::from_fn(|l| f64::from(u8::from(s == first + l)));
            self.forward.apply(&(0..size).map(unit).collect::<Vec<[f64; LANES]>>(), &mut workspace);
            let width = LANES.min(size - first);
            for (row, values) in matrix.chunks_exact_mut(size).zip(&workspace.now) {
                row[first..first + width].copy_from_slice(&values[..width]);
            }
        }
        matrix
    }

    /// One step of the chain: the law of s' from the law of s.
    pub fn advance(&self, law: &[f64]) -> Vec<f64> {
        self.forward.apply_back(law)
    }

    /// λ_i(s_i, a_i) for the given weights of joint states. Paper: eq:local_occupancy_measure.
    pub fn local(&self, state_weights: &[f64]) -> Ragged<f64> {
        let dynamics = &self.system.dynamics;
        Ragged::from_rows((0..dynamics.agents()).map(|i| {
            let actions = dynamics.actions[i];
            let pi = self.policy.probabilities(i);
            let mut table = vec![0.0; dynamics.states[i] * actions];
            let places = self.system.own_states[i].iter().zip(&self.system.observations[i]);
            for ((&own, &seen), weight) in places.zip(state_weights) {
                let law = &pi[seen as usize * actions..][..actions];
                let row = &mut table[own as usize * actions..][..actions];
                row.iter_mut().zip(law).for_each(|(cell, p)| *cell += weight * p);
            }
            table
        }))
    }

    /// λ_i of every agent.
    pub fn occupancy(&self) -> Ragged<f64> {
        self.local(&self.state_occupancy)
    }

    /// f_i, g_ik and shadow rewards.
    pub fn signals(&self, problem: &Problem) -> Signals {
        let mut signals = Signals::new(problem);
        signals.evaluate(problem, &self.occupancy(), 1.0);
        signals
    }

    /// (I − γP_πᵀ)⁻¹·start.
    pub fn discounted_visits(&self, start: &[f64]) -> Result<Vec<f64>> {
        if let Some(lu) = &self.dense {
            let mut x = Mat::from_fn(start.len(), 1, |s, _| start[s]);
            lu.solve_transpose_in_place(&mut x);
            return Ok(x.col(0).iter().copied().collect());
        }
        let b: Vec<[f64; 1]> = start.iter().map(|&p| [p]).collect();
        let apply = |v: &[[f64; 1]], out: &mut [[f64; 1]]| {
            let pushed = self.forward.apply_back(v.as_flattened());
            out.iter_mut().zip(pushed).for_each(|(out, p)| *out = [p]);
        };
        let x = gmres::solve(Side::Visits, self.system.gamma, apply, &b, MOST_APPLICATIONS);
        Ok(x.ok_or_else(too_slow)?.into_iter().flatten().collect())
    }

    /// V_h(s) of every utility: for agent i's rewards `[1 + m_i][S_i][A_i]`, the discounted sum from each joint state
    /// under the policy. Returned as `[utility][s]`, agent by agent.
    pub fn values(&self, rewards: &Ragged<f64>) -> Result<Vec<Vec<f64>>> {
        let expected = self.expected_rewards(rewards);
        let size = self.system.dynamics.joint_states;
        if let Some(lu) = &self.dense {
            let mut x = Mat::from_fn(size, expected.len(), |s, h| expected[h][s]);
            lu.solve_in_place(&mut x);
            return Ok(x.col_iter().map(|values| values.iter().copied().collect()).collect());
        }
        // Groups depend on the number of utilities alone, so results do not depend on the threads.
        let groups: Vec<&[Vec<f64>]> = expected.chunks(LANES).collect();
        let solved = groups.par_iter().map(|group| self.solve_group(group)).collect::<Result<Vec<_>>>()?;
        Ok(solved.into_iter().flatten().collect())
    }

    /// Σ_a π(a|s)·r_h(s_i, a_i), by utility and joint state.
    pub(super) fn expected_rewards(&self, rewards: &Ragged<f64>) -> Vec<Vec<f64>> {
        let dynamics = &self.system.dynamics;
        let mut expected = Vec::new();
        for i in 0..dynamics.agents() {
            let actions = dynamics.actions[i];
            let pi = self.policy.probabilities(i);
            for table in rewards.row(i).chunks_exact(dynamics.states[i] * actions) {
                let places = self.system.own_states[i].iter().zip(&self.system.observations[i]);
                expected.push(
                    places
                        .map(|(&own, &seen)| {
                            let law = &pi[seen as usize * actions..][..actions];
                            let row = &table[own as usize * actions..][..actions];
                            law.iter().zip(row).map(|(p, r)| p * r).sum()
                        })
                        .collect(),
                );
            }
        }
        expected
    }

    fn solve_group(&self, group: &[Vec<f64>]) -> Result<Vec<Vec<f64>>> {
        let size = self.system.dynamics.joint_states;
        let b: Vec<[f64; LANES]> = (0..size)
            .map(|s| std::array::from_fn(|l| group.get(l).map_or(0.0, |reward| reward[s])))
            .collect();
        let mut workspace = Workspace::default();
        let apply = |v: &[[f64; LANES]], out: &mut [[f64; LANES]]| {
            self.forward.apply(v, &mut workspace);
            out.copy_from_slice(&workspace.now);
        };
        let x = gmres::solve(Side::Values, self.system.gamma, apply, &b, MOST_APPLICATIONS);
        let x = x.ok_or_else(too_slow)?;
        Ok((0..group.len()).map(|l| x.iter().map(|x| x[l]).collect()).collect())
    }
}

fn too_slow() -> Error {
    let message = format!(
        "the exact equations were not solved within {MOST_APPLICATIONS} applications of the chain, which mixes too \
         slowly for this discount"
    );
    Error::config(crate::base::key::GAMMA, message)
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::base::stream::Stream;
    use crate::policy::Parameterisation;
    use crate::utility::problem::{AgentProblem, Bound, Constraint, Scaling};
    use crate::utility::{Entropy, Kind, LocalSpace, ScaledUtility, States};
    use crate::world::{Line, Start};

    /// The paper's line as in the preset `exact`: returns, and an entropy of at least 0.5.
    pub fn line(n: usize, gamma: f64) -> (Line, Problem) {
        let world = Line::new(n, Start::Uniform, 0.0).unwrap();
        let agent = |r: &[f64]| {
            let objective =
                ScaledUtility { kind: Kind::of_reward(r.into()), scale: 1.0 - gamma, offset: 0.0 };
            let entropy = Constraint {
                name: "state_entropy".into(),
                utility: Kind::from(Entropy(States)).into(),
                bound: Bound::AtLeast(0.5),
                shadow_scale: 1.0,
            };
            let space = LocalSpace { states: 2, actions: 2, gamma };
            Arc::new(AgentProblem { space, objective, constraints: vec![entropy] })
        };
        let agents = world.channels()[0].tables().unwrap().iter().map(agent).collect();
        let scaling = Scaling::Normalised;
        let problem = Problem { agents, gamma, scaling, sampled_channels: 0, episodic: false };
        (world, problem)
    }

    /// The same chain solved by factorisation and by iteration.
    #[test]
    fn factorised_and_iterated_solutions_agree() {
        for (n, gamma, init_std) in [(5, 0.9, 1.0), (7, 0.99, 3.0), (8, 0.999, 0.5)] {
            let (world, problem) = line(n, gamma);
            let policy =
                Tabular::new(&world, 1, Parameterisation::Softmax, init_std, &Stream::new(7)).unwrap();
            let system = System::new(&world, &problem, &policy).unwrap();
            let [factorised, iterated] = [true, false].map(|dense| system.chain(&policy, dense).unwrap());
            let scale = 1.0 / (1.0 - problem.gamma);
            let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-12 * scale);
            assert!(close(&factorised.state_occupancy, &iterated.state_occupancy), "n = {n}");
            let rewards = factorised.signals(&problem).rewards;
            let values = [&factorised, &iterated].map(|chain| chain.values(&rewards).unwrap());
            for (a, b) in values[0].iter().zip(&values[1]) {
                assert!(close(a, b), "n = {n}, γ = {gamma}");
            }
        }
    }

    /// So many states that a solver which goes on past its own rounding errors would never end.
    #[test]
    fn large_chains_are_solved_to_rounding() {
        let (world, problem) = line(14, 0.99);
        let policy = Tabular::new(&world, 1, Parameterisation::Softmax, 0.0, &Stream::new(7)).unwrap();
        let system = System::new(&world, &problem, &policy).unwrap();
        let chain = system.under(&policy).unwrap();
        let rewards = chain.signals(&problem).rewards;
        let values = chain.values(&rewards).unwrap();
        // ⟨r, λ⟩ = ⟨ρ, V⟩, two ways to the same number.
        let lambda = chain.occupancy();
        let start = &system.dynamics.start;
        for i in 0..14 {
            let of_f = &rewards.row(i)[..4];
            let by_visits: f64 = of_f.iter().zip(lambda.row(i)).map(|(r, l)| r * l).sum();
            let by_values: f64 = start.iter().zip(&values[2 * i]).map(|(p, v)| p * v).sum();
            assert!((by_visits - by_values).abs() < 1e-13, "agent {i}: {by_visits}, {by_values}");
        }
    }

    #[test]
    fn the_chain_is_stochastic_and_advances_its_own_law() {
        let (world, problem) = line(4, 0.99);
        let policy = Tabular::new(&world, 1, Parameterisation::Softmax, 1.0, &Stream::new(3)).unwrap();
        let system = System::new(&world, &problem, &policy).unwrap();
        let chain = system.under(&policy).unwrap();
        let matrix = chain.transition_matrix();
        for row in matrix.chunks_exact(16) {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-14);
        }
        let law: Vec<f64> = (0..16).map(|s| f64::from(s) / 120.0).collect();
        let next = chain.advance(&law);
        for t in 0..16 {
            let expected: f64 = (0..16).map(|s| law[s] * matrix[s * 16 + t]).sum();
            assert!((next[t] - expected).abs() < 1e-15);
        }
    }
}
