//! What neighbours send each other, counted as messages between agents.
//!
//! In one process nothing is copied: an agent reads its neighbours' columns and Q values where they lie. What
//! is counted is what agents on a real network would have to send (Paper: fig:alg_flow, ▲ and ★), so that
//! runs with different radii can be compared. A message to oneself is none.

use bytemuck::{Pod, Zeroable, bytes_of, cast_slice_mut};
use serde::{Deserialize, Serialize};

use super::{Halo, numbers};
use crate::base::fields::{Field, Fields};
use crate::{Ragged, Result};

/// Messages and bytes sent so far, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// States (and, within the Q radius, actions) while sampling: one message per link and step.
    pub states: Count,
    /// Q values along the batch: one message per link and trajectory.
    pub q_values: Count,
    /// Multipliers: one message per link and iteration; and sums over groups, two per link of their trees.
    pub duals: Count,
    /// Gradients of parameters that agents share, summed up over all agents: the one thing in training that
    /// is not local. Two messages per agent, up a tree and down again. None without such parameters.
    #[serde(default, skip_serializing_if = "Count::is_none")]
    pub gradients: Count,
}

/// A number of messages and their payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// How many.
    pub messages: u64,
    /// Their payload in bytes.
    pub bytes: u64,
}

impl Count {
    fn is_none(&self) -> bool {
        *self == Count::default()
    }
}

impl Traffic {
    /// Payload of all kinds.
    pub fn bytes(&self) -> u64 {
        self.states.bytes + self.q_values.bytes + self.duals.bytes + self.gradients.bytes
    }

    /// Every local kind with its name.
    pub fn kinds(&self) -> [(&'static str, Count); 3] {
        [("states", self.states), ("q_values", self.q_values), ("duals", self.duals)]
    }

    /// What came on top of `before`.
    pub fn since(&self, before: &Traffic) -> Traffic {
        let since = |now: Count, then: Count| Count {
            messages: now.messages - then.messages,
            bytes: now.bytes - then.bytes,
        };
        Traffic {
            states: since(self.states, before.states),
            q_values: since(self.q_values, before.q_values),
            duals: since(self.duals, before.duals),
            gradients: since(self.gradients, before.gradients),
        }
    }
}

/// Links between different agents, j → i with j in the neighbourhood of i, and what goes over them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Links {
    /// Within the policy radius.
    policy: u64,
    /// Within the Q radius.
    q: u64,
    /// Values over those in a step: Σ (1 + m_j)·(alternatives of i); of a constraint on whole episodes, one.
    q_values_per_step: u64,
    /// Multipliers over those, and links on which there are any.
    duals: u64,
    dual_links: u64,
}

/// The most that one agent can send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct TrafficLimits {
    /// Largest neighbourhood of the policy, and of Q, without oneself.
    policy: u64,
    q: u64,
    /// Most values of one agent for another in a step, and most multipliers.
    values: u64,
    duals: u64,
}

/// Bytes that an agent sends in an iteration at most, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficBound {
    /// 2·(steps)·(|N| − 1), N the larger of both neighbourhoods: a byte of state and one of action each.
    pub states: u64,
    /// 8·(1 + m)·(values per step)·(steps of the batch)·(|N^{κ_q}| − 1).
    pub q_values: u64,
    /// 8·m·(|N^{κ_q}| − 1).
    pub duals: u64,
}

/// What one of several processes really sent in an iteration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct ProcessTraffic {
    /// Bytes at the calls that send.
    pub bytes: u64,
    /// The most that it can be: for each agent that a neighbour must know of, 2 bytes per step and 8·(values
    /// per step)·(steps of the batch)·(|N^{κ_q}| − 1) of values; for sums over all agents, what each group of
    /// agents, or each agent, adds to them; and 64 bytes per process to agree how to go on.
    pub bound: u64,
}

impl ProcessTraffic {
    /// What every process has sent since it had sent `before`, by rank, and its `bound`; valid on rank 0
    /// only. None where there is nothing to send over.
    pub fn gather(halo: &Halo, before: Option<u64>, bound: u64) -> Result<Vec<ProcessTraffic>> {
        let (Some(before), Some(now)) = (before, halo.peers().sent()) else { return Ok(Vec::new()) };
        let all = halo.gather(bytes_of(&ProcessTraffic { bytes: now - before, bound }))?;
        Ok(all.iter().flat_map(|bytes| numbers(bytes)).collect())
    }
}

impl Links {
    /// Links to the agents in `own`. `policy` and `q` are the neighbourhoods of both radii, `constrained`
    /// those within which constraints count, `constraints[j]` = m_j, `events[j]` how many of them are on
    /// whole episodes, and `alternatives[i]` how many values agent i wants for a step: |A_i| with the
    /// counterfactual baseline, else 1. Also the most that goes over them.
    pub fn to(
        own: impl Iterator<Item = usize>,
        policy: &Ragged<u32>,
        q: &Ragged<u32>,
        constrained: &Ragged<u32>,
        [constraints, events]: [&[usize]; 2],
        alternatives: &[usize],
    ) -> (Self, TrafficLimits) {
        let (mut links, mut largest) = (Links::default(), TrafficLimits::default());
        for i in own {
            let others = [policy, q].map(|groups| (groups.row(i).len() as u64).saturating_sub(1));
            (links.policy, links.q) = (links.policy + others[0], links.q + others[1]);
            (largest.policy, largest.q) = (largest.policy.max(others[0]), largest.q.max(others[1]));
            for &j in q.row(i).iter().filter(|&&j| j as usize != i) {
                let counts = constrained.row(i).binary_search(&j).is_ok();
                let of = |numbers: &[usize]| if counts { numbers[j as usize] } else { 0 };
                let (constraints, events) = (of(constraints), of(events));
                let values = ((1 + constraints - events) * alternatives[i] + events) as u64;
                links.q_values_per_step += values;
                links.duals += constraints as u64;
                links.dual_links += u64::from(constraints > 0);
                largest.values = largest.values.max(values);
                largest.duals = largest.duals.max(constraints as u64);
            }
        }
        (links, largest)
    }

    /// The links of all processes.
    pub fn sum_over(mut self, halo: &Halo) -> Result<Self> {
        halo.fold(cast_slice_mut(std::slice::from_mut(&mut self)), |a, b| a + b)?;
        Ok(self)
    }
}

impl TrafficLimits {
    /// The most of all processes.
    pub fn max_over(mut self, halo: &Halo) -> Result<Self> {
        halo.fold(cast_slice_mut(std::slice::from_mut(&mut self)), u64::max)?;
        Ok(self)
    }

    /// Bytes of values, sent as weighted sums, that go from one agent to all others in an iteration at most.
    fn weighted_values(&self, batch: usize, alternatives: usize) -> u64 {
        8 * (batch * alternatives) as u64 * self.q
    }

    /// The most that this process can send in an iteration of so many steps, of which so many are the
    /// batch's, with so many values per step and so many bytes added to sums over all agents.
    pub fn process_bound(
        &self,
        halo: &Halo,
        [steps, batch]: [usize; 2],
        alternatives: usize,
        summed: usize,
    ) -> u64 {
        let per_agent = 2 * steps as u64 + self.weighted_values(batch, alternatives);
        // An agent that two neighbours must know of counts twice.
        let sent: usize = halo.links.iter().map(|link| link.sends.len()).sum();
        sent as u64 * per_agent + summed as u64 + 64 * (halo.peers().count() as u64 + 1)
    }

    /// In an iteration that samples so many steps, of which so many are the batch's. Links are mutual: who
    /// sends to at most so many hears from at most so many.
    pub fn bound(&self, sampled: usize, batch: usize) -> TrafficBound {
        TrafficBound {
            states: 2 * sampled as u64 * self.policy.max(self.q),
            q_values: 8 * batch as u64 * self.values * self.q,
            duals: 8 * self.duals * self.q,
        }
    }
}

/// Counts the traffic of a run.
#[derive(Debug, Clone, Default)]
pub struct TrafficCounter {
    links: Links,
    traffic: Traffic,
    /// Whether agents share parameters.
    is_shared: bool,
}

impl TrafficCounter {
    /// Nothing sent yet over `links`, by agents that share parameters or not.
    pub fn new(links: Links, is_shared: bool) -> Self {
        TrafficCounter { links, traffic: Traffic::default(), is_shared }
    }

    /// Sampling of `steps` steps: states within the policy radius before acting; states and actions within
    /// the Q radius for the critic.
    pub fn sampled(&mut self, steps: usize) {
        let steps = steps as u64;
        self.traffic.states.messages += steps * self.links.policy.max(self.links.q);
        // A state sent for the policy serves the critic too; actions go within the Q radius.
        self.traffic.states.bytes += steps * (self.links.policy.max(self.links.q) + self.links.q);
    }

    /// Sampling of `steps` steps by agents whose critics read states alone, within the policy radius.
    pub fn observed(&mut self, steps: usize) {
        self.traffic.states.messages += steps as u64 * self.links.policy;
        self.traffic.states.bytes += steps as u64 * self.links.policy;
    }

    /// Algorithm 1, line 8: Q values along `trajectories` of `steps` steps altogether, and the multipliers.
    pub fn record_q_messages(&mut self, trajectories: usize, steps: usize) {
        let values = steps as u64 * self.links.q_values_per_step;
        self.traffic.q_values.messages += trajectories as u64 * self.links.q;
        self.traffic.q_values.bytes += values * size_of::<f64>() as u64;
        self.traffic.duals.messages += self.links.dual_links;
        self.traffic.duals.bytes += self.links.duals * size_of::<f64>() as u64;
    }

    /// Sums over a group, up and down its tree, which decide on a multiplier.
    pub fn record_group_messages(&mut self, messages: u64) {
        self.traffic.duals.messages += messages;
        self.traffic.duals.bytes += messages * size_of::<f64>() as u64;
    }

    /// Sums of gradients over `agents` agents, from everybody to everybody, by way of a tree: so many numbers
    /// in so many rounds.
    pub fn record_gradient_sums(&mut self, agents: usize, numbers: usize, rounds: usize) {
        let messages = 2 * (agents as u64).saturating_sub(1);
        // A kind's sum goes to its agents alone; how they lie in the tree is left open: all carry all.
        self.traffic.gradients.messages += messages * rounds as u64;
        self.traffic.gradients.bytes += messages * (numbers * size_of::<i128>()) as u64;
    }

    /// What it remembers.
    pub(crate) fn fields(&mut self) -> Fields<'_> {
        let Traffic { states, q_values, duals, gradients } = &mut self.traffic;
        let mut fields = vec![
            ("exchange.states.messages", Field::Counter(&mut states.messages)),
            ("exchange.states.bytes", Field::Counter(&mut states.bytes)),
            ("exchange.q_values.messages", Field::Counter(&mut q_values.messages)),
            ("exchange.q_values.bytes", Field::Counter(&mut q_values.bytes)),
            ("exchange.duals.messages", Field::Counter(&mut duals.messages)),
            ("exchange.duals.bytes", Field::Counter(&mut duals.bytes)),
        ];
        if self.is_shared {
            fields.push(("exchange.gradients.messages", Field::Counter(&mut gradients.messages)));
            fields.push(("exchange.gradients.bytes", Field::Counter(&mut gradients.bytes)));
        }
        fields
    }

    /// Everything counted so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Graph;

    fn ledger(
        policy: &Ragged<u32>,
        q: &Ragged<u32>,
        constrained: &Ragged<u32>,
        constraints: &[usize],
        alternatives: &[usize],
    ) -> (TrafficCounter, TrafficLimits) {
        let (links, largest) =
            Links::to(0..q.rows(), policy, q, constrained, [constraints, &[0; 3]], alternatives);
        (TrafficCounter::new(links, false), largest)
    }

    #[test]
    fn a_line_of_three_counted_by_hand() {
        let graph = Graph::line(3).unwrap();
        let (policy, q) = (graph.neighbourhoods(1), graph.neighbourhoods(1));
        let (mut exchange, _) = ledger(&policy, &q, &q, &[1, 1, 1], &[2, 2, 2]);
        exchange.sampled(10);
        exchange.record_q_messages(2, 10);
        let traffic = exchange.traffic();
        // Four directed links; a byte of state and a byte of action on each, every step.
        assert_eq!(traffic.states, Count { messages: 40, bytes: 80 });
        // Two utilities × two alternatives × 8 bytes × 10 steps on each link.
        assert_eq!(traffic.q_values, Count { messages: 8, bytes: 4 * 10 * 2 * 2 * 8 });
        assert_eq!(traffic.duals, Count { messages: 4, bytes: 32 });
        assert_eq!(traffic.bytes(), 80 + 1280 + 32);
        // The agent in the middle sends to two others, which is the most that any of them does.
        let (_, largest) = ledger(&policy, &q, &q, &[1, 1, 1], &[2, 2, 2]);
        assert_eq!(
            largest.bound(10, 10),
            TrafficBound { states: 40, q_values: 2 * 10 * 2 * 2 * 8, duals: 16 }
        );
    }

    #[test]
    fn constraints_that_do_not_count_are_not_sent() {
        let graph = Graph::line(3).unwrap();
        let (q, own) = (graph.neighbourhoods(1), graph.neighbourhoods(0));
        let (mut exchange, _) = ledger(&q, &q, &own, &[1, 1, 1], &[1, 1, 1]);
        exchange.record_q_messages(2, 10);
        let traffic = exchange.traffic();
        assert_eq!(traffic.q_values, Count { messages: 8, bytes: 4 * 10 * 8 });
        assert_eq!(traffic.duals, Count::default());
        // Radius 1 of 2 on a line of three: the ends do not hear of each other's constraints.
        let (mut exchange, _) = ledger(&q, &graph.neighbourhoods(2), &q, &[1, 1, 1], &[1, 1, 1]);
        exchange.record_q_messages(1, 1);
        assert_eq!(exchange.traffic().duals, Count { messages: 4, bytes: 32 });
        assert_eq!(exchange.traffic().q_values.bytes, (4 * 2 + 2) * 8);
    }

    #[test]
    fn without_neighbours_nothing_is_sent() {
        let alone = Graph::line(3).unwrap().neighbourhoods(0);
        let (mut exchange, _) = ledger(&alone, &alone, &alone, &[1; 3], &[2; 3]);
        exchange.sampled(10);
        exchange.record_q_messages(2, 10);
        assert_eq!(exchange.traffic(), Traffic::default());
    }
}
