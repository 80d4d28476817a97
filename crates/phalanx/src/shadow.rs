//! Constraint values and shadow rewards. Paper: alg:pdac line 5, def:shadow.

use rayon::prelude::*;

use crate::Ragged;
use crate::parallel::agent_blocks;
use crate::problem::{Problem, Scaling};

/// What each agent computes from its own λ̃_i.
#[derive(Debug, Clone)]
pub struct Signals {
    /// f̃_i.
    pub objective: Vec<f64>,
    /// g̃_ik, a row an agent.
    pub slack: Ragged<f64>,
    /// Shadow rewards, row i as `[1 + m_i][S_i][A_i]`: of f_i first, then of every g_ik.
    pub rewards: Ragged<f64>,
}

impl Signals {
    /// Room for the signals of `problem`.
    pub fn new(problem: &Problem) -> Self {
        Signals {
            objective: vec![0.0; problem.agents.len()],
            slack: Ragged::zeros(problem.agents.iter().map(|agent| agent.constraints.len())),
            rewards: Ragged::zeros(
                problem.agents.iter().map(|agent| (1 + agent.constraints.len()) * agent.space.cells()),
            ),
        }
    }

    /// g̃_ik = g_ik(λ̃_i), r̃ = ∇_λ of f_i and g_ik at λ̃_i.
    ///
    /// Normalised scaling centres each shadow reward by its mean under λ̃_i: a constant changes no gradient
    /// (errata 17), and it is the derivative of the rescaling of λ̃ to a fixed mass.
    pub fn evaluate(&mut self, problem: &Problem, occupancy: &Ragged<f64>) {
        let blocks = agent_blocks(problem.agents.len());
        let slack = self.slack.split_rows_mut(&blocks);
        let rewards = self.rewards.split_rows_mut(&blocks);
        let mut objective_rest = &mut self.objective[..];
        let objective: Vec<&mut [f64]> = blocks
            .iter()
            .map(|block| {
                let (head, tail) = std::mem::take(&mut objective_rest).split_at_mut(block.len());
                objective_rest = tail;
                head
            })
            .collect();
        blocks.par_iter().zip(objective).zip(slack).zip(rewards).for_each(
            |(((block, objective), mut slack), mut rewards)| {
                for i in block.clone() {
                    let agent = &problem.agents[i];
                    let lambda = occupancy.row(i);
                    let mut tables = rewards.row_mut(i).chunks_exact_mut(agent.space.cells());
                    let slack = slack.row_mut(i);
                    objective[i - block.start] = agent.objective.value(lambda, agent.space);
                    if let Some(table) = tables.next() {
                        agent.objective.gradient(lambda, agent.space, table);
                        finish(table, lambda, 1.0, problem.scaling);
                    }
                    for ((constraint, slack), table) in agent.constraints.iter().zip(slack).zip(tables) {
                        *slack = constraint.slack(lambda, agent.space);
                        constraint.utility.gradient(lambda, agent.space, table);
                        let factor = constraint.bound.sign() * constraint.shadow_scale;
                        finish(table, lambda, factor, problem.scaling);
                    }
                }
            },
        );
    }
}

fn finish(table: &mut [f64], lambda: &[f64], factor: f64, scaling: Scaling) {
    let mean = match scaling {
        Scaling::Normalised => {
            let (mut weighted, mut mass) = (0.0, 0.0);
            for (r, l) in table.iter().zip(lambda) {
                weighted += r * l;
                mass += l;
            }
            weighted / mass
        }
        Scaling::Paper | Scaling::Authors => 0.0,
    };
    table.iter_mut().for_each(|r| *r = factor * (*r - mean));
}
