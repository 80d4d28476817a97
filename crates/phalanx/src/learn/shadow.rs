//! Constraint values and shadow rewards. Paper: alg:pdac line 5, def:shadow.

use std::iter::once;
use std::ops::Range;

use crate::Ragged;
use crate::base::parallel::{agent_blocks, for_each_agent};
use crate::utility::problem::{Problem, Scaling};
use crate::world::Trajectory;

/// What each agent computes from its own λ̃_i.
#[derive(Debug, Clone)]
pub struct Signals {
    /// f̃_i.
    pub objective: Vec<f64>,
    /// g̃_ik, a row per agent. Of a group's constraint the first member has it; the others have what of it is
    /// above 0.
    pub slack: Ragged<f64>,
    /// Slacks of groups, see [`Signals::share_groups`].
    pub group_slack: Vec<f64>,
    /// Shadow rewards, row i as `[1 + m_i][row]`: of f_i first, then of every g_ik. A row is the table
    /// `[S_i][A_i]`, then one weight for each sampled channel.
    pub rewards: Ragged<f64>,
    /// γ and |A_i|, for what these rewards are worth along trajectories.
    pub(crate) gamma: f64,
    pub(crate) actions: Vec<usize>,
    /// Agents that are looked at.
    blocks: Vec<Range<usize>>,
}

impl Signals {
    /// Room for the signals of `problem`.
    pub fn new(problem: &Problem) -> Self {
        Signals {
            objective: vec![0.0; problem.agents.len()],
            group_slack: vec![0.0; problem.groups.len()],
            slack: Ragged::zeros(problem.agents.iter().map(|agent| agent.constraints.len())),
            rewards: Ragged::zeros(
                (0..problem.agents.len())
                    .map(|i| (1 + problem.agents[i].constraints.len()) * problem.row_length(i)),
            ),
            gamma: problem.gamma,
            actions: problem.agents.iter().map(|agent| agent.space.actions).collect(),
            blocks: agent_blocks(problem.agents.len()),
        }
    }

    /// Looks at the agents in `blocks` only.
    pub fn restricted_to(self, blocks: Vec<Range<usize>>) -> Self {
        Signals { blocks, ..self }
    }

    /// g̃_ik = g_ik(λ̃_i), r̃ = ∇_λ of f_i and g_ik at λ̃_i.
    ///
    /// Normalised scaling centres each shadow reward by its mean under λ̃_i: a constant changes no gradient
    /// (errata 17), and it is the derivative of the rescaling of λ̃ to a fixed mass.
    ///
    /// Where episodes end early, the cells of λ̃ were divided by the share of the mass that was lived,
    /// `lived_fraction` (see [`Visits`](crate::sample::occupancy::Visits)), in every scaling but the literal
    /// one. Their shadow rewards are then centred and divided by it (quotient rule); those of sampled
    /// channels, which are totals, are neither.
    pub fn evaluate(&mut self, problem: &Problem, occupancy: &Ragged<f64>, lived_fraction: f64) {
        let blocks = &self.blocks;
        let slack = self.slack.split_rows_mut(blocks);
        let rewards = self.rewards.split_rows_mut(blocks);
        let (mut rest, mut done) = (&mut self.objective[..], 0);
        let objective = blocks.iter().map(|block| {
            let (_, tail) = std::mem::take(&mut rest).split_at_mut(block.start - done);
            let (head, tail) = tail.split_at_mut(block.len());
            (rest, done) = (tail, block.end);
            (block.start, head)
        });
        let parts = objective.zip(slack).zip(rewards);
        for_each_agent(blocks, parts, |(): &mut (), i, (((first, objective), slack), rewards)| {
            let (agent, lambda) = (&problem.agents[i], occupancy.row(i));
            let (space, cells) = (agent.space, agent.space.cells());
            objective[i - *first] = agent.objective.value(lambda, space);
            for (slack, constraint) in slack.row_mut(i).iter_mut().zip(&agent.constraints) {
                *slack = match constraint.group {
                    None => constraint.slack(lambda, space),
                    // The sum over the group is yet to come.
                    Some(_) => constraint.utility.value(lambda, space),
                };
            }
            let constraints = agent.constraints.iter().map(|g| (&g.utility, g.bound.sign(), g.shadow));
            let tables = rewards.row_mut(i).chunks_exact_mut(problem.row_length(i));
            let utilities = once((&agent.objective, 1.0, agent.shadow)).chain(constraints);
            for (table, (utility, sign, shadow)) in tables.zip(utilities) {
                utility.gradient(lambda, space, table);
                finish(table, lambda, cells, sign * shadow.scale, problem, lived_fraction);
                if shadow.shift != 0.0 {
                    table[..cells].iter_mut().for_each(|r| *r += shadow.shift);
                }
            }
        });
    }
}

/// f + Σ_k μ_k·g_k of rows that follow each other, f first. All have the length of `out`.
pub fn weigh(rows: &[f64], mu: &[f64], out: &mut [f64]) {
    let (f, gs) = rows.split_at(out.len());
    out.copy_from_slice(f);
    for (g, &mu) in gs.chunks_exact(out.len()).zip(mu) {
        out.iter_mut().zip(g).for_each(|(sum, g)| *sum += mu * g);
    }
}

/// The same, returned.
pub fn weighed(rows: &[f64], mu: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; rows.len() / (1 + mu.len())];
    weigh(rows, mu, &mut sum);
    sum
}

/// What a shadow reward pays agent `agent` at each of the first `steps` steps of a trajectory.
pub fn reward_column(
    row: &[f64],
    trajectory: &Trajectory,
    agent: usize,
    actions: usize,
    steps: usize,
    out: &mut Vec<f64>,
) {
    let (table, weights) = row.split_at(row.len() - trajectory.channels());
    let pairs = trajectory.states(agent).iter().zip(trajectory.actions(agent)).take(steps);
    out.clear();
    out.extend(pairs.map(|(&s, &a)| table[usize::from(s) * actions + usize::from(a)]));
    for (channel, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
        let rewards = trajectory.rewards(channel, agent);
        out.iter_mut().zip(rewards).for_each(|(out, &r)| *out += weight * f64::from(r));
    }
}

fn finish(
    row: &mut [f64],
    lambda: &[f64],
    cells: usize,
    factor: f64,
    problem: &Problem,
    lived_fraction: f64,
) {
    // The mean that belongs to a rescaling by all steps, or by those that were lived.
    let mean = if problem.scaling == Scaling::Normalised || problem.rescales_lives() {
        let (mut weighted, mut mass) = (0.0, 0.0);
        for (r, l) in row.iter().zip(&lambda[..cells]) {
            weighted += r * l;
            mass += l;
        }
        if !problem.episodic {
            weighted += row[cells..].iter().zip(&lambda[cells..]).map(|(r, l)| r * l).sum::<f64>();
        }
        weighted / mass
    } else {
        0.0
    };
    let of_cells = if problem.rescales_lives() { factor / lived_fraction } else { factor };
    row[..cells].iter_mut().for_each(|r| *r = of_cells * (*r - mean));
    row[cells..].iter_mut().for_each(|r| *r *= factor);
}
