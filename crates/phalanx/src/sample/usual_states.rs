//! The state that an agent is in most often, which others assume when they know nothing of it.

use super::occupancy::Visits;
use crate::Ragged;
use crate::base::fields::{Field, Fields};
use crate::utility::problem::Problem;

/// How often every agent was in each of its states.
#[derive(Debug, Clone)]
pub struct UsualStates {
    /// Row i is `[S_i]`.
    visits: Ragged<f64>,
}

impl UsualStates {
    /// No visits yet.
    pub fn new(problem: &Problem) -> Self {
        UsualStates { visits: Ragged::zeros(problem.agents.iter().map(|agent| agent.space.states)) }
    }

    /// Adds all visits.
    pub fn add(&mut self, visits: &Visits, problem: &Problem) {
        for (i, agent) in problem.agents.iter().enumerate() {
            let counts = visits.counts.row(i).chunks_exact(agent.space.actions);
            let totals = self.visits.row_mut(i).iter_mut().zip(counts);
            totals.for_each(|(total, counts)| *total += counts.iter().sum::<f64>());
        }
    }

    /// The most frequent state of every agent; the first of equals.
    pub fn states(&self) -> Vec<u8> {
        let most = |row: &[f64]| (1..row.len()).fold(0, |best, s| if row[s] > row[best] { s } else { best });
        self.visits.iter().map(|row| most(row) as u8).collect()
    }

    /// What checkpoints hold.
    pub fn fields(&mut self) -> Fields<'_> {
        vec![("links.visits", Field::Rows(&mut self.visits))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_state_is_usual_and_the_first_of_equals() {
        let rows: [&[f64]; 4] = [&[0.0, 0.0], &[1.0, 2.0, 2.0], &[3.0, 1.0], &[0.0]];
        let usual = UsualStates { visits: Ragged::from_rows(rows.map(<[f64]>::to_vec)) };
        assert_eq!(usual.states(), [0, 1, 0, 0]);
    }
}
