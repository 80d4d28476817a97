//! Sizes of a run on the card, and the arrays that everything reads.

use phalanx_gpu::Layout;

use super::super::primal_dual::PrimalDual;
use super::rows::by_entry;
use crate::Ragged;
use crate::algorithm::Plan;
use crate::base::stream::{Purpose, Stream};
use crate::graph::Graph;
use crate::policy::{Baseline, GradientSettings};
use crate::utility::problem::Scaling;

/// Sizes, and who hears whom.
#[derive(Debug)]
pub struct Shape {
    /// Agents of this rank, with the ghosts among them.
    pub agents: usize,
    /// Agents of the whole graph.
    pub total: usize,
    /// Where this rank has a part of the graph: whose the agents here are.
    pub part: Option<NetworkPart>,
    pub batch: usize,
    pub horizon: usize,
    /// Steps of a trajectory of the batch.
    pub batch_room: usize,
    pub chains: usize,
    /// Pairs of a chain of Q-evaluation.
    pub chain_room: usize,
    pub states: Vec<usize>,
    pub actions: Vec<usize>,
    pub constraints: Vec<usize>,
    /// Channels that are recorded while simulating.
    pub channels: usize,
    /// Row i is N_i^{κ_q}, and N_i^{κ_g} in it.
    pub q_groups: Ragged<u32>,
    pub g_groups: Ragged<u32>,
    /// Whether values at alternative actions are needed.
    pub alternatives: bool,
}

/// The agents of a part of the graph.
#[derive(Debug)]
pub struct NetworkPart {
    /// Their numbers in the whole graph.
    ids: Vec<u32>,
    /// 1 for those that this rank owns, 0 for ghosts.
    is_own: Vec<u8>,
}

impl NetworkPart {
    /// None of the whole.
    fn of(graph: &Graph) -> Option<Self> {
        let mut is_own = vec![0; graph.agents()];
        graph.owned_agents().for_each(|i| is_own[i] = 1);
        let ids = (0..graph.agents()).map(|i| graph.global_id(i)).collect();
        (graph.owned_agents().count() < graph.total()).then_some(NetworkPart { ids, is_own })
    }
}

/// The largest of some numbers, at least 1.
pub fn largest(numbers: impl IntoIterator<Item = usize>) -> usize {
    numbers.into_iter().max().unwrap_or(1).max(1)
}

/// Bits that hold 0 to `count` − 1.
fn bits(count: usize) -> u32 {
    usize::BITS - (count - 1).leading_zeros()
}

impl Shape {
    /// Of a run that the host has built.
    pub fn new(host: &PrimalDual) -> Self {
        let (world, plan) = (&*host.world, &host.plan);
        let n = world.graph().agents();
        let wanted = host.critic.samples();
        Shape {
            agents: n,
            total: world.graph().total(),
            part: NetworkPart::of(world.graph()),
            batch: plan.batch,
            horizon: plan.horizon,
            batch_room: plan.horizon + wanted.batch_tail,
            chains: wanted.chains,
            chain_room: wanted.evaluation_pairs,
            states: (0..n).map(|i| world.states(i)).collect(),
            actions: (0..n).map(|i| world.actions(i)).collect(),
            constraints: host.problem.agents.iter().map(|agent| agent.constraints.len()).collect(),
            channels: host.problem.sampled_channels,
            q_groups: world.graph().neighbourhoods(plan.kappa_q),
            g_groups: world.graph().neighbourhoods(plan.kappa_g),
            alternatives: host.wanted.alternatives,
        }
    }

    /// Agents that this rank owns, ascending.
    pub fn own(&self) -> impl Iterator<Item = usize> {
        let is_own = |i: &usize| self.part.as_ref().is_none_or(|part| part.is_own[*i] == 1);
        (0..self.agents).filter(is_own)
    }

    /// Rows of pairs.
    pub fn rows(&self) -> usize {
        self.batch * self.batch_room + self.chains * self.chain_room
    }

    /// Trajectories of at least `step` + 1 steps.
    pub fn trajectories_at(&self, step: usize) -> usize {
        let at = |room: usize, count: usize| if room > step { count } else { 0 };
        at(self.batch_room, self.batch) + at(self.chain_room, self.chains)
    }

    /// Steps of the longest trajectory.
    pub fn longest(&self) -> usize {
        if self.chains > 0 { self.batch_room.max(self.chain_room) } else { self.batch_room }
    }

    pub fn max_actions(&self) -> usize {
        largest(self.actions.iter().copied())
    }

    pub fn max_cells(&self) -> usize {
        largest(self.states.iter().zip(&self.actions).map(|(s, a)| s * a))
    }

    /// The objective and the constraints of the agent that has most.
    pub fn utilities(&self) -> usize {
        1 + self.constraints.iter().copied().max().unwrap_or(0)
    }

    /// Values that an agent receives per step.
    pub fn per_step(&self) -> usize {
        if self.alternatives { self.max_actions() } else { 1 }
    }

    /// Bytes of a pair on the card.
    pub fn pair_bytes(&self) -> usize {
        let [states, actions] =
            [&self.states, &self.actions].map(|sizes| bits(largest(sizes.iter().copied())));
        if states.max(1) + actions <= 8 { 1 } else { 2 }
    }

    /// Whether some senders' constraints do not count.
    pub fn is_partial(&self) -> bool {
        self.g_groups.data().len() < self.q_groups.data().len()
    }

    /// Constants and arrays of everybody who trains.
    pub fn add_to(&self, layout: &mut Layout, host: &PrimalDual) {
        let (n, plan) = (self.agents, &host.plan);
        layout.constant("BATCH", self.batch);
        layout.constant("ROWS", format!("{}LL", self.rows()));
        self.add_sizes(layout, &host.stream, host.problem.gamma, Purpose::Batch);
        let rule = &host.gradient_settings;
        let q_slots = largest(self.q_groups.iter().map(<[u32]>::len));
        for (name, value) in [
            ("Q_SLOTS", q_slots),
            ("NEIGHBOUR_MEAN", usize::from(rule.neighbour_mean)),
            ("IS_PARTIAL", usize::from(self.is_partial())),
        ] {
            layout.constant(name, value);
        }
        self.add_rule(layout, rule, *plan.actor.clip);
        layout.array_from("q_count", &self.q_groups.iter().map(|row| row.len() as u32).collect::<Vec<_>>());
        layout.array_from("q_group", &by_entry(n, q_slots, |i| self.q_groups.row(i), |i| i as u32));
        if self.is_partial() {
            let member = |i: usize| -> Vec<u8> {
                let counted = |j: &u32| u8::from(self.g_groups.row(i).binary_search(j).is_ok());
                self.q_groups.row(i).iter().map(counted).collect()
            };
            layout.array_from("g_member", &by_entry(n, q_slots, member, |_| 0));
        } else {
            layout.array::<u8>("g_member", 1);
        }
        layout.array_from("weights", &self.gradient_weights(host));
    }

    /// How gradients weigh samples.
    pub fn add_rule(&self, layout: &mut Layout, rule: &GradientSettings, clip: f64) {
        let baseline = match rule.baseline {
            Baseline::None => 0,
            Baseline::Mean => 1,
            Baseline::Counterfactual => 2,
        };
        for (name, value) in [
            ("PER_STEP", self.per_step()),
            ("BASELINE", baseline),
            ("ALL_ACTIONS", usize::from(rule.all_actions)),
            ("NORMALISE", usize::from(rule.normalise)),
            ("HAS_CLIP", usize::from(clip.is_finite())),
        ] {
            layout.constant(name, value);
        }
        layout.real("clip", clip);
    }

    /// Sizes, and what is sampled: all of it but `BATCH` and `ROWS`, the numbers of trajectories and rows.
    /// `purpose` is that of the trajectories' numbers; that of their starts follows it.
    pub fn add_sizes(&self, layout: &mut Layout, stream: &Stream, gamma: f64, purpose: Purpose) {
        let n = self.agents;
        let state_bits = bits(largest(self.states.iter().copied())).max(1);
        layout.constant("PAIR_TYPE", if self.pair_bytes() == 1 { "u8" } else { "u16" });
        for (name, value) in [
            ("STATE_BITS", state_bits as usize),
            ("HORIZON", self.horizon),
            ("BATCH_ROOM", self.batch_room),
            ("CHAINS", self.chains),
            ("CHAIN_ROOM", self.chain_room),
            ("MAX_STATES", largest(self.states.iter().copied())),
            ("MAX_ACTIONS", self.max_actions()),
            ("MAX_CELLS", self.max_cells()),
            ("MAX_CONSTRAINTS", self.utilities() - 1),
            ("UTILITIES", self.utilities()),
            ("CHANNELS", self.channels),
            ("REWARD_ROW", self.max_cells() + self.channels),
            ("OCCUPANCY_ROW", self.max_cells() + self.channels),
            ("BATCH_PURPOSE", purpose as usize),
            ("CRITIC_PURPOSE", Purpose::Critic as usize),
        ] {
            layout.constant(name, value);
        }
        for (what, name) in COMPLAINTS.iter().enumerate() {
            layout.constant(format!("COMPLAINT_{name}"), what);
        }
        let [key0, key1] = stream.key();
        layout.constant("HAS_GHOSTS", usize::from(self.part.is_some()));
        if let Some(part) = &self.part {
            layout.array_from("agent_ids", &part.ids);
            layout.array_from("is_own", &part.is_own);
        }
        layout.number("agents", n as i64);
        layout.number("key0", i64::from(key0));
        layout.number("key1", i64::from(key1));
        layout.real("gamma", gamma);
        let counts = |numbers: &[usize]| numbers.iter().map(|&x| x as u32).collect::<Vec<u32>>();
        layout.array_from("state_count", &counts(&self.states));
        layout.array_from("action_count", &counts(&self.actions));
        layout.array_from("constraint_count", &counts(&self.constraints));
        match self.pair_bytes() {
            1 => layout.array::<u8>("pairs", self.rows() * n),
            _ => layout.array::<u16>("pairs", self.rows() * n),
        }
        layout.array::<f32>("sampled", (self.channels * self.rows() * n).max(1));
        layout.array::<u32>("complaints", COMPLAINTS.len() + METRICS);
    }

    /// Weights of the steps in the gradient; where the discount is left out, all steps count alike, since no
    /// episode of a factored world ends early.
    fn gradient_weights(&self, host: &PrimalDual) -> Vec<f64> {
        let Plan { actor, .. } = &host.plan;
        let mut weights = host.gradient_settings.weights.clone();
        if !actor.discount {
            let agents = if host.problem.scaling == Scaling::Paper { self.total } else { 1 };
            weights.fill(1.0 / (self.batch * self.horizon * agents) as f64);
        }
        weights
    }
}

/// What can be wrong, in the order in which an iteration looks; then the numbers of the summary.
pub const COMPLAINTS: [&str; 7] = ["SLACK", "REWARD", "MU", "Q", "GRADIENT", "THETA", "METRICS"];

/// Numbers of a summary.
pub const METRICS: usize = 7;
