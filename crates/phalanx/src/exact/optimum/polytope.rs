//! The set of all joint occupancies, as variables and rows of a program. Paper: eq:Lambda.

use super::super::dynamics::Dynamics;
use super::super::layout::Layout;
use crate::Ragged;
use crate::utility::conic::{Affine, Program};

/// Variables x(s, a) = (1−γ) λ(s, a) of every joint state that can be reached, and their local marginals.
///
/// The paper's Λ mixes the two scalings (errata 14); x has mass 1. Its variables count in units of the mean
/// of x, so that they are of the same size as everything else in the program: the solver's success depends on
/// it.
#[derive(Debug, Clone)]
pub(super) struct Occupancies {
    /// (1−γ) λ_i, a cell `[S_i][A_i]` each; constant 0 where the agent's state cannot be reached.
    pub marginals: Vec<Vec<Affine>>,
    /// The joint states behind the variables, |A| variables each, in their order.
    reached: Vec<usize>,
    joint_actions: usize,
    /// One unit of a variable.
    share: f64,
    gamma: f64,
}

impl Occupancies {
    /// Declares x and requires Σ_a x(s′, a) = (1−γ) ρ(s′) + γ Σ_{s,a} P(s′|s, a) x(s, a), x ≥ 0.
    ///
    /// States that no policy reaches are left out: they would have to be 0, and an interior-point method
    /// needs an interior. The uniform policy is inside what is left.
    pub fn declare(program: &mut Program, dynamics: &Dynamics, gamma: f64) -> Self {
        let laws = JointLaws::new(dynamics);
        let pairs = Layout::of_pairs(dynamics, 0..dynamics.agents());
        let own_cell = |i| pairs.positions_in(&Layout::of_pairs(dynamics, [i]));
        let cells: Vec<Vec<u32>> = (0..dynamics.agents()).map(own_cell).collect();
        let joint_actions: usize = dynamics.actions.iter().product();
        let mut balance = vec![Affine::default(); dynamics.joint_states];
        let mut marginals: Vec<Vec<Affine>> =
            (0..dynamics.agents()).map(|i| vec![Affine::default(); dynamics.cells(i)]).collect();
        let mut reached: Vec<usize> =
            (0..dynamics.joint_states).filter(|&s| dynamics.start[s] > 0.0).collect();
        let mut is_reached: Vec<bool> = dynamics.start.iter().map(|p| *p > 0.0).collect();
        let share = 1.0 / (dynamics.joint_states * joint_actions) as f64;
        let mut place = 0;
        while let Some(&state) = reached.get(place) {
            place += 1;
            for pair in state * joint_actions..(state + 1) * joint_actions {
                let x = Affine::variable(program.variable(), share);
                program.require_nonnegative(x.clone());
                balance[state].add(1.0, &x);
                for (marginal, cells) in marginals.iter_mut().zip(&cells) {
                    marginal[cells[pair] as usize].add(1.0, &x);
                }
                if gamma == 0.0 {
                    continue;
                }
                for (to, p) in laws.successors(pair) {
                    balance[to].add(-gamma * p, &x);
                    if !std::mem::replace(&mut is_reached[to], true) {
                        reached.push(to);
                    }
                }
            }
        }
        for &state in &reached {
            let inflow = (1.0 - gamma) * dynamics.start[state];
            program.zero.push(std::mem::take(&mut balance[state]).shifted(-inflow));
        }
        for cell in marginals.iter_mut().flatten().filter(|cell| !cell.is_constant()) {
            // A variable of its own: utilities that use the cell many times stay sparse.
            let marginal = Affine::variable(program.variable(), 1.0);
            program.zero.push(std::mem::replace(cell, marginal.clone()).plus(-1.0, &marginal));
        }
        Occupancies { marginals, reached, joint_actions, share, gamma }
    }

    /// λ as `[S][A]` from the values of the variables; what rounding made negative is 0.
    pub fn joint(&self, variables: &[f64], dynamics: &Dynamics) -> Vec<f64> {
        let mut joint = vec![0.0; dynamics.joint_states * self.joint_actions];
        for (&state, x) in self.reached.iter().zip(variables.chunks_exact(self.joint_actions)) {
            let row = &mut joint[state * self.joint_actions..][..self.joint_actions];
            row.iter_mut().zip(x).for_each(|(to, x)| *to = x.max(0.0) * self.share / (1.0 - self.gamma));
        }
        joint
    }
}

/// Row i: Σ of `joint` (`[S][A]`) over all (s, a) with the given (s_i, a_i). Paper:
/// eq:local_occupancy_measure.
pub(super) fn local_marginals(joint: &[f64], dynamics: &Dynamics) -> Ragged<f64> {
    let pairs = Layout::of_pairs(dynamics, 0..dynamics.agents());
    let marginal = |i| pairs.marginal(joint, &Layout::of_pairs(dynamics, [i]));
    Ragged::from_rows((0..dynamics.agents()).map(marginal))
}

/// P(s′ | s, a) = ∏_i ℙ_i, without the next states of probability 0.
pub(in crate::exact) struct JointLaws<'a> {
    dynamics: &'a Dynamics,
    /// Number of the law ℙ_i that holds at each joint pair, by agent.
    rows: Vec<Vec<u32>>,
}

impl<'a> JointLaws<'a> {
    pub fn new(dynamics: &'a Dynamics) -> Self {
        let pairs = Layout::of_pairs(dynamics, 0..dynamics.agents());
        let row = |i| pairs.positions_in(&Layout::of_pairs(dynamics, dynamics.parents_of(i)));
        JointLaws { dynamics, rows: (0..dynamics.agents()).map(row).collect() }
    }

    /// (s′, P(s′ | s, a)) of the joint pair with this number, ascending in s′.
    pub fn successors(&self, pair: usize) -> Vec<(usize, f64)> {
        let mut next = vec![(0, 1.0)];
        for (i, rows) in self.rows.iter().enumerate() {
            let size = self.dynamics.states[i];
            let law = &self.dynamics.laws.row(i)[rows[pair] as usize * size..][..size];
            let possible = || law.iter().enumerate().filter(|(_, q)| **q > 0.0);
            let extend =
                |(prefix, p): (usize, f64)| possible().map(move |(to, q)| (prefix * size + to, p * q));
            next = next.into_iter().flat_map(extend).collect();
        }
        next
    }
}
