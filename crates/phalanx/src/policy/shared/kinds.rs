//! Kinds of agents: those of one kind share their parameters.

use serde::{Deserialize, Serialize};

use crate::base::error::ensure;
use crate::graph::Graph;
use crate::{Error, Result};

/// Who is of which kind: `policy.kinds`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "`all`, `graph`, or a list of kinds such as [0, 1], which repeats")]
pub enum KindsKey {
    /// `all`: everybody is of one kind; `graph`: the graph's file says who is what.
    Named(Source),
    /// Agent i is of the kind in entry i of the list, which repeats.
    Listed(Vec<u16>),
}

/// Where kinds come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// There is one.
    All,
    /// Lines `agent NUMBER KIND` of the graph's file.
    Graph,
}

/// Kinds of the agents of a graph.
#[derive(Debug)]
pub(super) struct Kinds {
    /// By agent.
    pub of: Vec<usize>,
    /// Number in the whole graph of the first agent of each kind.
    pub first: Vec<u32>,
}

/// Name of the key that says so.
pub(crate) const KEY: &str = "policy.kinds";

impl KindsKey {
    /// The kinds of the agents of `graph`, which may be a part; their numbers are those of the whole.
    pub(super) fn of(&self, graph: &Graph) -> Result<Kinds> {
        let kind = self.by_id(graph)?;
        let total = graph.total() as u32;
        let kinds = (0..total).map(&kind).max().map_or(0, |last| last + 1);
        let mut first = vec![None; kinds];
        (0..total).for_each(|id| {
            first[kind(id)].get_or_insert(id);
        });
        let unused = first.iter().position(Option::is_none);
        ensure(unused.is_none(), || {
            let unused = unused.unwrap_or(0);
            Error::config(KEY, format!("no agent is of kind {unused}; number kinds from 0 without gaps"))
        })?;
        let of = (0..graph.agents()).map(|i| kind(graph.global_id(i))).collect();
        Ok(Kinds { of, first: first.into_iter().flatten().collect() })
    }

    fn by_id<'a>(&'a self, graph: &'a Graph) -> Result<Box<dyn Fn(u32) -> usize + 'a>> {
        match self {
            KindsKey::Named(Source::All) => Ok(Box::new(|_| 0)),
            KindsKey::Named(Source::Graph) => {
                let kinds = graph.kinds();
                ensure(!kinds.is_empty(), || {
                    let message =
                        "`graph` needs lines such as `agent 3 hub` in the file of the graph; it has none";
                    Error::config(KEY, message)
                })?;
                Ok(Box::new(|id| usize::from(kinds[id as usize])))
            }
            KindsKey::Listed(list) => {
                ensure(!list.is_empty(), || Error::config(KEY, "is empty; name at least one kind"))?;
                Ok(Box::new(|id| usize::from(list[id as usize % list.len()])))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_repeats_and_a_part_keeps_the_numbers_of_the_whole() {
        let ring = Graph::ring(6).unwrap();
        let kinds = KindsKey::Listed(vec![0, 1, 1]).of(&ring).unwrap();
        assert_eq!((kinds.of, kinds.first), (vec![0, 1, 1, 0, 1, 1], vec![0, 1]));
        let part = ring.part(vec![2, 3, 4], |id| id == 3);
        let kinds = KindsKey::Listed(vec![0, 1, 1]).of(&part).unwrap();
        assert_eq!((kinds.of, kinds.first), (vec![1, 0, 1], vec![0, 1]));
        let message = KindsKey::Listed(vec![0, 2]).of(&ring).unwrap_err().to_string();
        assert_eq!(message, "policy.kinds: no agent is of kind 1; number kinds from 0 without gaps");
        assert!(KindsKey::Named(Source::Graph).of(&ring).is_err());
    }
}
