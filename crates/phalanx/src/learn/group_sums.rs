//! Constraints of several agents together: their members' values are summed up along a spanning tree, and all
//! of them learn the same slack, so that all have the same multiplier.

use std::borrow::Cow;

use super::shadow::Signals;
use crate::distributed::{Halo, numbers};
use crate::graph::Graph;
use crate::utility::group::Group;
use crate::utility::problem::Problem;
use crate::{Ragged, Result};

impl Signals {
    /// Replaces the members' own values, which [`Signals::evaluate`] left in place of slacks, by the slack of
    /// their group. All processes must do it at the same time; the sum is that of one process, bit for bit.
    pub fn share_groups(&mut self, problem: &Problem, graph: &Graph, halo: &Halo) -> Result<()> {
        if problem.groups.is_empty() {
            return Ok(());
        }
        let lengths = problem.groups.iter().map(|group| group.members.len());
        let mut all: Ragged<f64> = Ragged::zeros(lengths);
        let mut own: Vec<[f64; 2]> = Vec::new();
        for (g, group) in problem.groups.iter().enumerate() {
            for (m, (id, place)) in group.entries().enumerate() {
                let Some(agent) = local(graph, id).filter(|&agent| is_owned(graph, agent)) else { continue };
                own.push([(all.offsets()[g] + m) as f64, self.slack.row(agent)[place]]);
            }
        }
        for bytes in halo.gather(bytemuck::cast_slice(own.as_flattened()))? {
            let found: Vec<f64> = numbers(&bytes);
            for &[at, value] in found.as_chunks::<2>().0 {
                all.data_mut()[at as usize] = value;
            }
        }
        let slacks = problem.groups.iter().zip(all.iter());
        let slacks: Vec<f64> = slacks.map(|(group, values)| group.bound.slack(group.total(values))).collect();
        self.group_slack = numbers(&halo.broadcast(bytemuck::cast_slice(&slacks).to_vec())?);
        for (group, &of_group) in problem.groups.iter().zip(&self.group_slack) {
            for (m, (id, place)) in group.entries().enumerate() {
                if let Some(agent) = local(graph, id) {
                    self.slack.row_mut(agent)[place] = Group::shown_slack(m, of_group);
                }
            }
        }
        Ok(())
    }

    /// The slacks that multipliers follow: every member's is that of its group.
    pub fn dual_slack(&self, problem: &Problem, graph: &Graph) -> Cow<'_, Ragged<f64>> {
        if problem.groups.is_empty() {
            return Cow::Borrowed(&self.slack);
        }
        let mut slack = self.slack.clone();
        for (group, &of_group) in problem.groups.iter().zip(&self.group_slack) {
            for (id, place) in group.entries() {
                local(graph, id).into_iter().for_each(|agent| slack.row_mut(agent)[place] = of_group);
            }
        }
        Cow::Owned(slack)
    }
}

/// Number here of an agent of the whole graph.
fn local(graph: &Graph, id: usize) -> Option<usize> {
    match graph.ids() {
        None => Some(id),
        Some(ids) => ids.binary_search(&(id as u32)).ok(),
    }
}

fn is_owned(graph: &Graph, agent: usize) -> bool {
    graph.owned().iter().any(|run| run.contains(&agent))
}
