//! Constraints of several agents together: a bound on the sum of a local utility of theirs.

use std::collections::VecDeque;
use std::sync::Arc;

use super::problem::Bound;
use crate::Ragged;
use crate::graph::Graph;

/// Agents with one budget. Each of them has the constraint among its own, with its own utility and one
/// multiplier that is the same for all; what is bounded is the sum.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Name of the constraint.
    pub name: Arc<str>,
    /// Its agents in the whole graph, ascending. Violations are counted with the first.
    pub members: Vec<u32>,
    /// Number of the constraint among each member's.
    pub places: Vec<usize>,
    /// On the sum.
    pub bound: Bound,
    /// The spanning tree along which members sum up: the place of each one's parent in `members`.
    parents: Vec<u32>,
    /// Places of members, children before parents; the first member is last.
    order: Vec<u32>,
}

impl Group {
    /// The group of `members`, if they are connected in `graph` by links among themselves; else one that
    /// cannot be reached from the first.
    pub fn new(name: Arc<str>, mut members: Vec<u32>, bound: Bound, graph: &Graph) -> Result<Self, u32> {
        members.sort_unstable();
        let mut parents = vec![u32::MAX; members.len()];
        let (mut queue, mut order) = (VecDeque::from([0u32]), Vec::new());
        parents[0] = 0;
        while let Some(place) = queue.pop_front() {
            order.push(place);
            for other in graph.neighbours(members[place as usize] as usize) {
                if let Ok(child) = members.binary_search(other)
                    && parents[child] == u32::MAX
                {
                    parents[child] = place;
                    queue.push_back(child as u32);
                }
            }
        }
        if let Some(far) = parents.iter().position(|parent| *parent == u32::MAX) {
            return Err(members[far]);
        }
        order.reverse();
        Ok(Group { name, places: vec![0; members.len()], members, bound, parents, order })
    }

    /// Σ of the members' values, summed up along the tree.
    pub fn total(&self, values: &[f64]) -> f64 {
        let mut sums = values.to_vec();
        for &place in &self.order[..self.order.len() - 1] {
            let (place, parent) = (place as usize, self.parents[place as usize] as usize);
            sums[parent] += sums[place];
        }
        sums[0]
    }

    /// Messages of an iteration: a sum up every link of the tree, and the total down again.
    pub fn messages(&self) -> u64 {
        2 * (self.members.len() as u64 - 1)
    }

    /// Member after member: agent, and number of the constraint.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize)> {
        self.members.iter().zip(&self.places).map(|(&agent, &place)| (agent as usize, place))
    }

    /// Writes what a report says of the group, from each member's own value: every member has the sum as its
    /// value, the first has the slack, and the others none of it that is below 0, so that a violation counts
    /// once. Returns the slack.
    pub fn share(&self, values: &mut Ragged<f64>, slack: &mut Ragged<f64>) -> f64 {
        let own: Vec<f64> = self.entries().map(|(agent, place)| values.row(agent)[place]).collect();
        let total = self.total(&own);
        for (agent, place) in self.entries() {
            values.row_mut(agent)[place] = total;
        }
        let of_group = self.bound.slack(total);
        for (member, (agent, place)) in self.entries().enumerate() {
            slack.row_mut(agent)[place] = Group::shown_slack(member, of_group);
        }
        of_group
    }

    /// What a report shows as the slack of the member with this number.
    pub fn shown_slack(member: usize, of_group: f64) -> f64 {
        if member == 0 { of_group } else { of_group.max(0.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_go_along_links_of_the_group() {
        let graph = Graph::line(6).unwrap();
        let group = |members: &[u32]| Group::new("g".into(), members.to_vec(), Bound::AtMost(1.0), &graph);
        let three = group(&[4, 2, 3]).unwrap();
        assert_eq!((&three.members[..], three.messages()), (&[2, 3, 4][..], 4));
        assert_eq!(three.total(&[1.0, 10.0, 100.0]), 111.0);
        assert_eq!(group(&[0, 1, 3]).unwrap_err(), 3);
        assert_eq!(group(&[5]).unwrap().total(&[7.0]), 7.0);
    }

    #[test]
    fn a_violation_counts_once() {
        let graph = Graph::line(3).unwrap();
        let group = Group::new("g".into(), vec![0, 1, 2], Bound::AtMost(1.0), &graph).unwrap();
        let mut values = Ragged::from_rows([[0.5], [0.5], [0.5]]);
        let mut slack = Ragged::zeros_like(&values);
        assert_eq!(group.share(&mut values, &mut slack), -0.5);
        assert_eq!((values.data(), slack.data()), (&[1.5; 3][..], &[-0.5, 0.0, 0.0][..]));
    }
}
