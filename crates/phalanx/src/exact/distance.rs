//! Hop distances between all agents of a small network.

use crate::graph::Graph;

/// d(i, j) as `[i][j]`; `None` where there is no path. O(agents · (agents + links)) time, O(agents²) memory.
pub fn distances(network: &Graph) -> Vec<Vec<Option<u32>>> {
    (0..network.agents()).map(|i| network.distances_from(i)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::decay::tests::{REFERENCES, reference};
    use super::*;

    #[test]
    fn pieces_of_a_network_do_not_reach_each_other() {
        let network = Graph::from_edges(4, [(0, 1), (1, 2)]).unwrap();
        let expected = [
            [Some(0), Some(1), Some(2), None],
            [Some(1), Some(0), Some(1), None],
            [Some(2), Some(1), Some(0), None],
            [None, None, None, Some(0)],
        ];
        assert_eq!(distances(&network), expected);
    }

    #[test]
    fn agrees_with_the_reference() {
        for name in REFERENCES {
            let reference = reference(name);
            let expected: Vec<Vec<i64>> = serde_json::from_value(reference.output["dist"].clone()).unwrap();
            let found: Vec<Vec<i64>> = distances(&reference.dynamics.graph)
                .iter()
                .map(|row| row.iter().map(|d| d.map_or(-1, i64::from)).collect())
                .collect();
            assert_eq!(found, expected, "{name}");
        }
    }
}
