//! What an agent earns and pays at every step.

use super::Scope;
use crate::base::key::{ALGORITHM, SCALING};
use crate::learn::shadow::reward_column;
use crate::utility::problem::Problem;
use crate::utility::{Kind, ScaledUtility};
use crate::world::Trajectory;
use crate::{Error, Ragged, Result};

/// Rewards and costs by state, action and recorded channel; the same at every iteration, since everything is
/// cumulative.
#[derive(Debug)]
pub struct Rewards {
    /// Row i is `[1 + m_i][row]`: r_i, then c_ik.
    rows: Ragged<f64>,
    /// 1 + m_i.
    utilities: Vec<usize>,
    actions: Vec<usize>,
}

impl Rewards {
    /// Refuses utilities that are no sums over the steps of an episode.
    pub fn new(problem: &Problem) -> Result<Self> {
        let mut rows = Ragged::with_capacity(problem.agents.len());
        for (i, agent) in problem.agents.iter().enumerate() {
            let nowhere = vec![0.0; problem.row_length(i)];
            let mut row = Vec::new();
            let mut add = |utility: &ScaledUtility, sign: f64, field: &str, what: &str| -> Result<()> {
                check(utility, problem, field, what)?;
                let first = row.len();
                row.resize(first + nowhere.len(), 0.0);
                utility.gradient(&nowhere, agent.space, &mut row[first..]);
                row[first..].iter_mut().for_each(|r| *r *= sign);
                Ok(())
            };
            add(&agent.objective, 1.0, "objective", "")?;
            for constraint in &agent.constraints {
                // A cost is what must not become too large.
                let sign = -constraint.bound.sign();
                add(&constraint.utility, sign, "constraint", &format!("`{}` ", constraint.name))?;
            }
            rows.push_row(row);
        }
        let utilities = problem.agents.iter().map(|agent| 1 + agent.constraints.len()).collect();
        let actions = problem.agents.iter().map(|agent| agent.space.actions).collect();
        Ok(Rewards { rows, utilities, actions })
    }

    /// What agent i's `utility` pays (0: r_i, then every c_ik) at the first `steps` steps of every
    /// trajectory, one after the other, written over `out`. `column` is a buffer.
    pub fn reward_along(
        &self,
        agent: usize,
        utility: usize,
        batch: &[Trajectory],
        steps: &[usize],
        column: &mut Vec<f64>,
        out: &mut Vec<f64>,
    ) {
        let row = self.rows.row(agent);
        let length = row.len() / self.utilities[agent];
        let row = &row[utility * length..(utility + 1) * length];
        out.clear();
        for (trajectory, &steps) in batch.iter().zip(steps) {
            reward_column(row, trajectory, agent, self.actions[agent], steps, column);
            out.extend_from_slice(column);
        }
    }
}

/// The rewards that every agent learns from, by those that each earns (row i of `own`, one per sample).
pub fn received(scope: Scope, own: Ragged<f64>, groups: &Ragged<u32>) -> Ragged<f64> {
    let sum = |members: &mut dyn Iterator<Item = usize>| {
        let mut total = vec![0.0; own.row(0).len()];
        for j in members {
            total.iter_mut().zip(own.row(j)).for_each(|(total, r)| *total += r);
        }
        total
    };
    match scope {
        Scope::Local => own,
        Scope::Aggregate => {
            Ragged::from_rows((0..own.rows()).map(|i| sum(&mut groups.row(i).iter().map(|&j| j as usize))))
        }
        Scope::Global => {
            let mut team = sum(&mut (0..own.rows()));
            team.iter_mut().for_each(|r| *r /= own.rows() as f64);
            Ragged::from_rows((0..own.rows()).map(|_| team.iter().copied()))
        }
    }
}

fn check(utility: &ScaledUtility, problem: &Problem, field: &str, what: &str) -> Result<()> {
    let reason = match &utility.kind {
        Kind::Channel { .. } => return Ok(()),
        kind if kind.is_linear() && !problem.rescales_lives() => return Ok(()),
        kind if kind.is_linear() => {
            format!(
                "is a mean over the time lived, because episodes may end early, and mappo-l needs a sum over steps: \
             a channel that is recorded while simulating, or {SCALING} = \"paper\""
            )
        }
        kind => format!(
            "is `{}`; mappo-l knows sums of rewards only, kind `return` or `linear`: use {ALGORITHM} = \"primal-dual\"",
            kind.name()
        ),
    };
    Err(Error::config(field, format!("{what}{reason}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_learns_from_whom() {
        let own = || Ragged::from_rows([[1.0, 2.0], [3.0, 5.0], [8.0, -1.0]]);
        let groups = Ragged::from_rows([vec![0, 1], vec![0, 1, 2], vec![1, 2]]);
        assert_eq!(received(Scope::Local, own(), &groups), own());
        let sums = Ragged::from_rows([[4.0, 7.0], [12.0, 6.0], [11.0, 4.0]]);
        assert_eq!(received(Scope::Aggregate, own(), &groups), sums);
        assert_eq!(received(Scope::Global, own(), &groups), Ragged::from_rows([[4.0, 2.0]; 3]));
    }
}
