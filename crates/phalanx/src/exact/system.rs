//! A graph written out with its radii, and what follows from a policy in it.

use rayon::prelude::*;

use super::contraction::{Law, Plan, Prepared, Role, Workspace};
use super::dynamics::Dynamics;
use super::ever::check_events;
use super::gmres::{self, Failure, Side};
use super::layout::Layout;
use crate::base::elimination::{Dense, Lu};
use crate::distributed::Halo;
use crate::learn::shadow::Signals;
use crate::policy::{Policy, Tabular};
use crate::utility::problem::Problem;
use crate::world::World;
use crate::{Error, Ragged, Result};

/// Up to so many joint states a dense factorisation is quicker than iterating.
const DENSE: usize = 256;

/// Right-hand sides solved together.
const LANES: usize = 8;

/// Applications of P before iterating is given up: what plain iteration would need for γ = 0.999.
const MOST_APPLICATIONS: usize = 30_000;

/// Everything about a small graph that does not depend on the policy: laws, numberings, plans.
#[derive(Debug, Clone)]
pub struct System {
    /// The world's tables.
    pub dynamics: Dynamics,
    pub(super) laws: Vec<Law>,
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
        check_events(problem)?;
        let dynamics = Dynamics::new(world)?;
        let n = dynamics.agents();
        let laws: Vec<Law> = (0..n).map(|i| Law::new(&dynamics, i)).collect();
        let everyone: Vec<usize> = (0..n).collect();
        let plan = |free: &[usize]| {
            let observations = policy.observations();
            Plan::new(&dynamics, &laws, observations, free, Role::Follows, &everyone, &everyone)
        };
        let forward = plan(&[])?;
        let own_action = (0..n).map(|i| plan(&[i])).collect::<Result<Vec<_>>>()?;
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

    /// The chain that `policy` makes of the graph.
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
    Lu::new(Dense::from_fn(size, size, |i, j| f64::from(u8::from(i == j)) - a(i, j)))
}

/// Discounted sums of shadow rewards.
#[derive(Debug, Clone)]
pub struct Values {
    /// Row i is agent i's rewards, `[1 + m_i][S_i][A_i]`.
    pub rewards: Ragged<f64>,
    /// V_h of every utility, agent by agent: the sum from each joint state on, as `[utility][s]`.
    pub from_states: Vec<Vec<f64>>,
}

impl Values {
    /// Agent i's tables of rewards, and V_h of each.
    pub(super) fn of_agent(&self, agent: usize, dynamics: &Dynamics) -> (Vec<&[f64]>, &[Vec<f64>]) {
        let tables = |i: usize| self.rewards.row(i).chunks_exact(dynamics.cells(i));
        let first: usize = (0..agent).map(|i| tables(i).len()).sum();
        (tables(agent).collect(), &self.from_states[first..][..tables(agent).len()])
    }
}

/// A policy at work: the Markov chain of joint states, solved exactly.
pub struct Chain<'a> {
    /// The graph.
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

    /// π_i(· | s).
    pub(super) fn law(&self, agent: usize, s: usize) -> &[f64] {
        let actions = self.policy.actions(agent);
        &self.policy.probabilities(agent)[self.system.observations[agent][s] as usize * actions..][..actions]
    }

    /// λ_i(s_i, a_i) for the given weights of joint states. Paper: eq:local_occupancy_measure.
    pub fn local(&self, state_weights: &[f64]) -> Ragged<f64> {
        let dynamics = &self.system.dynamics;
        Ragged::from_rows((0..dynamics.agents()).map(|i| {
            let mut table = vec![0.0; dynamics.cells(i)];
            for (s, weight) in state_weights.iter().enumerate() {
                let row = &mut table[self.system.own_states[i][s] as usize * dynamics.actions[i]..];
                row.iter_mut().zip(self.law(i, s)).for_each(|(cell, p)| *cell += weight * p);
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
        let mut occupancy = self.occupancy();
        if problem.has_events() {
            let shares = self.event_probabilities(problem);
            let rows = occupancy.iter().zip(shares.iter()).map(|(cells, shares)| [cells, shares].concat());
            occupancy = Ragged::from_rows(rows.collect::<Vec<_>>());
        }
        signals.evaluate(problem, &occupancy, 1.0);
        let graph = &self.system.dynamics.graph;
        // One process has nothing that could fail.
        let _ = signals.share_groups(problem, graph, &Halo::single(graph.agents()));
        signals
    }

    /// (I − γP_πᵀ)⁻¹·start.
    pub fn discounted_visits(&self, start: &[f64]) -> Result<Vec<f64>> {
        if let Some(lu) = &self.dense {
            let mut x = start.to_vec();
            lu.solve_transpose(&mut x);
            return Ok(x);
        }
        let b: Vec<[f64; 1]> = start.iter().map(|&p| [p]).collect();
        let apply = |v: &[[f64; 1]], out: &mut [[f64; 1]]| {
            let pushed = self.forward.apply_back(v.as_flattened());
            out.iter_mut().zip(pushed).for_each(|(out, p)| *out = [p]);
        };
        let x = gmres::solve(Side::Visits, self.system.gamma, apply, &b, MOST_APPLICATIONS);
        Ok(x.map_err(unsolved)?.into_iter().flatten().collect())
    }

    /// The values of shadow `rewards` under the policy.
    pub fn values(&self, rewards: &Ragged<f64>) -> Result<Values> {
        let expected = self.expected_rewards(rewards);
        let from_states = if let Some(lu) = &self.dense {
            let states = self.system.dynamics.joint_states;
            let x = lu.solve(Dense::from_fn(states, expected.len(), |s, h| expected[h][s]));
            (0..expected.len()).map(|h| (0..states).map(|s| x[(s, h)]).collect()).collect()
        } else {
            // Groups depend on the number of utilities alone, so results do not depend on the threads.
            let groups = expected.par_chunks(LANES).map(|group| self.solve_group(group));
            groups.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect()
        };
        Ok(Values { rewards: rewards.clone(), from_states })
    }

    /// Σ_a π(a|s)·r_h(s_i, a_i), by utility and joint state.
    pub(super) fn expected_rewards(&self, rewards: &Ragged<f64>) -> Vec<Vec<f64>> {
        let dynamics = &self.system.dynamics;
        let mut expected = Vec::new();
        for (i, own_states) in self.system.own_states.iter().enumerate() {
            for table in rewards.row(i).chunks_exact(dynamics.cells(i)) {
                let expectation = |(s, &own): (usize, &u32)| {
                    let row = &table[own as usize * dynamics.actions[i]..];
                    self.law(i, s).iter().zip(row).map(|(p, r)| p * r).sum()
                };
                expected.push(own_states.iter().enumerate().map(expectation).collect());
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
        let x = x.map_err(unsolved)?;
        Ok((0..group.len()).map(|l| x.iter().map(|x| x[l]).collect()).collect())
    }
}

fn unsolved(failure: Failure) -> Error {
    let (field, message) = match failure {
        Failure::TooSlow => (
            crate::base::key::GAMMA,
            format!(
                "the exact equations were not solved within {MOST_APPLICATIONS} applications of the chain, which \
                 mixes too slowly for this discount"
            ),
        ),
        Failure::Overflow => {
            ("utilities", "the exact equations overflow; use smaller rewards and scales".to_string())
        }
    };
    Error::config(field, message)
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::base::stream::Stream;
    use crate::policy::Parameterisation;
    use crate::utility::problem::{AgentProblem, Bound, Constraint, Scaling, ShadowReward};
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
                utility: Kind::StateEntropy(Entropy(States)).into(),
                bound: Bound::AtLeast(0.5),
                shadow: ShadowReward::default(),
                margin: 0.0,
                group: None,
            };
            let space = LocalSpace { states: 2, actions: 2, gamma };
            Arc::new(AgentProblem {
                space,
                objective,
                shadow: ShadowReward::default(),
                constraints: vec![entropy],
                events: Vec::new(),
                tails: Vec::new(),
            })
        };
        let agents = world.channels()[0].tables().unwrap().iter().map(agent).collect();
        let scaling = Scaling::Normalised;
        let problem = Problem {
            agents,
            gamma,
            scaling,
            sampled_channels: 0,
            episodic: false,
            raw_lives: false,
            horizon: 125,
            groups: vec![],
        };
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
            let values = [&factorised, &iterated].map(|chain| chain.values(&rewards).unwrap().from_states);
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
        let values = chain.values(&rewards).unwrap().from_states;
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
