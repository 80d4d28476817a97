//! What neighbours send each other, counted as messages between agents.
//!
//! In one process nothing is copied: an agent reads its neighbours' columns and Q values where they lie. What is
//! counted is what agents on a real network would have to send (Paper: fig:alg_flow, ▲ and ★), so that runs with
//! different radii can be compared. A message to oneself is none.

use serde::Serialize;

use crate::Ragged;
use crate::state::{Field, Fields};

/// Messages and bytes sent so far, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// States (and, within the Q radius, actions) while sampling: one message a link and step.
    pub states: Count,
    /// Q values along the batch: one message a link and trajectory.
    pub q_values: Count,
    /// Multipliers: one message a link and iteration.
    pub duals: Count,
}

/// A number of messages and their payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// How many.
    pub messages: u64,
    /// Their payload in bytes.
    pub bytes: u64,
}

impl Traffic {
    /// Payload of all kinds.
    pub fn bytes(&self) -> u64 {
        self.states.bytes + self.q_values.bytes + self.duals.bytes
    }
}

/// Counts the traffic of agents that share one process.
#[derive(Debug, Clone)]
pub struct InProcess {
    /// Directed links i → j, i ≠ j, with j within the policy radius, and within the larger of both radii.
    policy_links: u64,
    all_links: u64,
    /// Directed links within the Q radius.
    q_links: u64,
    /// Σ over those links j → i of (1 + m_j)·(alternatives of i) values a step, and of m_j.
    q_values_per_step: u64,
    duals: u64,
    /// Those links on which there are multipliers to send.
    dual_links: u64,
    traffic: Traffic,
}

impl InProcess {
    /// `policy` and `q` are the neighbourhoods of both radii, `constrained` those within which constraints count,
    /// `constraints[j]` = m_j, and `alternatives[i]` how many
    /// values agent i wants for a step: |A_i| with the counterfactual baseline, else 1.
    pub fn new(
        policy: &Ragged<u32>,
        q: &Ragged<u32>,
        constrained: &Ragged<u32>,
        constraints: &[usize],
        alternatives: &[usize],
    ) -> Self {
        let links = |groups: &Ragged<u32>| (groups.data().len() - groups.rows()) as u64;
        let (mut q_values_per_step, mut duals, mut dual_links) = (0, 0, 0);
        for (i, group) in q.iter().enumerate() {
            for &j in group.iter().filter(|&&j| j as usize != i) {
                let counts = constrained.row(i).binary_search(&j).is_ok();
                let constraints = if counts { constraints[j as usize] } else { 0 };
                q_values_per_step += ((1 + constraints) * alternatives[i]) as u64;
                duals += constraints as u64;
                dual_links += u64::from(constraints > 0);
            }
        }
        InProcess {
            policy_links: links(policy),
            all_links: links(policy).max(links(q)),
            q_links: links(q),
            q_values_per_step,
            duals,
            dual_links,
            traffic: Traffic::default(),
        }
    }

    /// Sampling of `steps` steps: states within the policy radius before acting; states and actions within the Q
    /// radius for the critic.
    pub fn sampled(&mut self, steps: usize) {
        let steps = steps as u64;
        self.traffic.states.messages += steps * self.all_links;
        // A state sent for the policy serves the critic too; actions go within the Q radius.
        self.traffic.states.bytes += steps * (self.policy_links.max(self.q_links) + self.q_links);
    }

    /// Sampling of `steps` steps by agents whose critics read states alone, within the policy radius.
    pub fn observed(&mut self, steps: usize) {
        self.traffic.states.messages += steps as u64 * self.policy_links;
        self.traffic.states.bytes += steps as u64 * self.policy_links;
    }

    /// Algorithm 1, line 8: Q values along `trajectories` of `steps` steps altogether, and the multipliers.
    pub fn shared(&mut self, trajectories: usize, steps: usize) {
        let values = steps as u64 * self.q_values_per_step;
        self.traffic.q_values.messages += trajectories as u64 * self.q_links;
        self.traffic.q_values.bytes += values * size_of::<f64>() as u64;
        self.traffic.duals.messages += self.dual_links;
        self.traffic.duals.bytes += self.duals * size_of::<f64>() as u64;
    }

    /// What it remembers.
    pub(crate) fn fields(&mut self) -> Fields<'_> {
        let Traffic { states, q_values, duals } = &mut self.traffic;
        vec![
            ("exchange.states.messages", Field::Counter(&mut states.messages)),
            ("exchange.states.bytes", Field::Counter(&mut states.bytes)),
            ("exchange.q_values.messages", Field::Counter(&mut q_values.messages)),
            ("exchange.q_values.bytes", Field::Counter(&mut q_values.bytes)),
            ("exchange.duals.messages", Field::Counter(&mut duals.messages)),
            ("exchange.duals.bytes", Field::Counter(&mut duals.bytes)),
        ]
    }

    /// Everything counted so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Network;

    #[test]
    fn a_line_of_three_counted_by_hand() {
        let network = Network::line(3).unwrap();
        let (policy, q) = (network.neighbourhoods(1), network.neighbourhoods(1));
        let mut exchange = InProcess::new(&policy, &q, &q, &[1, 1, 1], &[2, 2, 2]);
        exchange.sampled(10);
        exchange.shared(2, 10);
        let traffic = exchange.traffic();
        // Four directed links; a byte of state and a byte of action on each, every step.
        assert_eq!(traffic.states, Count { messages: 40, bytes: 80 });
        // Two utilities × two alternatives × 8 bytes × 10 steps on each link.
        assert_eq!(traffic.q_values, Count { messages: 8, bytes: 4 * 10 * 2 * 2 * 8 });
        assert_eq!(traffic.duals, Count { messages: 4, bytes: 32 });
        assert_eq!(traffic.bytes(), 80 + 1280 + 32);
    }

    #[test]
    fn constraints_that_do_not_count_are_not_sent() {
        let network = Network::line(3).unwrap();
        let (q, own) = (network.neighbourhoods(1), network.neighbourhoods(0));
        let mut exchange = InProcess::new(&q, &q, &own, &[1, 1, 1], &[1, 1, 1]);
        exchange.shared(2, 10);
        let traffic = exchange.traffic();
        assert_eq!(traffic.q_values, Count { messages: 8, bytes: 4 * 10 * 8 });
        assert_eq!(traffic.duals, Count::default());
        // Radius 1 of 2 on a line of three: the ends do not hear of each other's constraints.
        let mut exchange = InProcess::new(&q, &network.neighbourhoods(2), &q, &[1, 1, 1], &[1, 1, 1]);
        exchange.shared(1, 1);
        assert_eq!(exchange.traffic().duals, Count { messages: 4, bytes: 32 });
        assert_eq!(exchange.traffic().q_values.bytes, (4 * 2 + 2) * 8);
    }

    #[test]
    fn without_neighbours_nothing_is_sent() {
        let alone = Network::line(3).unwrap().neighbourhoods(0);
        let mut exchange = InProcess::new(&alone, &alone, &alone, &[1; 3], &[2; 3]);
        exchange.sampled(10);
        exchange.shared(2, 10);
        assert_eq!(exchange.traffic(), Traffic::default());
    }
}
