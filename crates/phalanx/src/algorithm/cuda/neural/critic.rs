//! Neural critics on the card.

use std::any::Any;

use phalanx_gpu::{Gpu, Launch, Layout};

use super::super::borders::ToldNumbers;
use super::super::part::CardCritic;
use super::super::rows::Mirror;
use super::super::shape::Shape;
use super::networks::{BlockSizes, Networks, Owner, Unfit};
use crate::base::stream::Purpose;
use crate::learn::critic::{Critic, NeuralCritic, NeuralCriticSettings};
use crate::neural::{Loss, OptimizerKind};

/// What is sampled for the critics, and what comes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Samples {
    /// Agents here.
    pub agents: usize,
    /// Agents of the whole graph.
    pub total: usize,
    /// B and H.
    pub batch: usize,
    /// H.
    pub horizon: usize,
    /// Steps of a trajectory of the batch.
    pub batch_room: usize,
    /// Chains of Q-evaluation; the critics learn from the batch if there are none.
    pub chains: usize,
    /// Pairs of each.
    pub chain_room: usize,
    /// Values that an agent receives per step: one, or one for each of its alternatives.
    pub per_step: usize,
}

impl Samples {
    /// Of a run.
    pub fn of(shape: &Shape) -> Self {
        let Shape { agents, total, batch, horizon, batch_room, chains, chain_room, .. } = *shape;
        Samples { agents, total, batch, horizon, batch_room, chains, chain_room, per_step: shape.per_step() }
    }
}

/// Critics that are neural networks.
#[derive(Debug)]
pub struct NetworkCritic {
    networks: Networks,
    /// The same, for values alone.
    reader: Networks,
    rule: NeuralCriticSettings,
    samples: Samples,
    /// Of every neural network: its agent, its place among the agent's, where its parameters begin. Those of
    /// own agents come first, and those are as many as learn here.
    agents: Vec<u32>,
    slots: Vec<u32>,
    starts: Vec<u64>,
    learners: usize,
    /// Where the parameters of every agent's neural networks begin, and where the last one's end.
    agent_starts: Vec<u64>,
    most_slots: usize,
    /// Of every agent and neighbour: the agent's place in the neighbour's group, entry by entry.
    own_places: Vec<u32>,
    most_members: usize,
    /// Blocks that share the values of one neural network.
    parts: usize,
}

impl NetworkCritic {
    /// `states[i]` is the number of agent i's states; the neural networks of agents in `own` learn.
    pub fn new(
        critic: &NeuralCritic,
        samples: Samples,
        states: &[usize],
        own: &[usize],
        gpu: &Gpu,
    ) -> Result<Self, Unfit> {
        let (bank, rule) = (critic.bank(), critic.rule().clone());
        let mut agent_starts = vec![0];
        for agent in 0..bank.nets.len() {
            let length: usize = bank.networks(agent).map(|weights| weights.len()).sum();
            agent_starts.push(agent_starts[agent] + length as u64);
        }
        let (mut agents, mut slots, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        let ghosts = (0..bank.nets.len()).filter(|agent| own.binary_search(agent).is_err());
        for agent in own.iter().copied().chain(ghosts) {
            let mut start = agent_starts[agent];
            for (slot, weights) in bank.networks(agent).enumerate() {
                agents.push(agent as u32);
                slots.push(slot as u32);
                starts.push(start);
                start += weights.len() as u64;
            }
        }
        let learners = agents.iter().filter(|&&agent| own.binary_search(&(agent as usize)).is_ok()).count();
        let of = |owner: Owner, [threads, tile]: [usize; 2]| {
            let block = BlockSizes { threads, tile, learns: owner == Owner::Critic };
            let networks = Networks::new(owner, &bank.nets, critic.encoders(), states, block)?;
            networks.check(gpu.shared_memory()).map(|()| networks)
        };
        let networks = of(Owner::Critic, LEARN).or_else(|_| of(Owner::Critic, LEARN_LARGE))?;
        let is_spread = agents.len() <= gpu.multiprocessors();
        let reader = |sizes| of(Owner::Reader, sizes);
        let reader =
            if is_spread { reader(FEW_READ) } else { reader(MANY_READ).or_else(|_| reader(FEW_READ)) }?;
        let (n, groups) = (samples.agents, critic.encoders().iter().map(|encoder| &encoder.group[..]));
        let groups: Vec<&[u32]> = groups.collect();
        let most_members = groups.iter().map(|group| group.len()).max().unwrap_or(1);
        let mut own_places = vec![0; most_members * n];
        for (i, group) in groups.iter().enumerate() {
            for (m, &j) in group.iter().enumerate() {
                let place = groups[j as usize].iter().position(|&member| member as usize == i);
                own_places[m * n + i] = place.unwrap_or(0) as u32;
            }
        }
        let most_slots = slots.iter().map(|&slot| slot as usize + 1).max().unwrap_or(1);
        // Enough blocks for all multiprocessors.
        let parts = (2 * gpu.multiprocessors() / agents.len().max(1)).clamp(1, 8);
        Ok(NetworkCritic {
            networks,
            reader,
            rule,
            samples,
            agents,
            slots,
            starts,
            learners,
            agent_starts,
            most_slots,
            own_places,
            most_members,
            parts,
        })
    }

    /// Transitions of each trajectory that is learnt from, and of all of them.
    fn transitions(&self) -> [usize; 2] {
        let Samples { batch, batch_room, chains, chain_room, .. } = self.samples;
        let (count, room) = if chains > 0 { (chains, chain_room) } else { (batch, batch_room) };
        [room - 1, count * (room - 1)]
    }

    /// Gradient steps of an iteration.
    pub fn steps(&self) -> u64 {
        let [_, transitions] = self.transitions();
        (self.rule.passes * transitions.div_ceil(self.rule.minibatch)) as u64
    }

    /// Parameters of all neural networks.
    fn parameters(&self) -> usize {
        self.agent_starts[self.agent_starts.len() - 1] as usize
    }

    /// Values of so many neural networks.
    fn values_of(&self, which: usize, networks: usize) -> Launch {
        Launch {
            kernel: "critic_values",
            grid: [networks as u32, self.parts as u32],
            block: self.reader.block().threads as u32,
            shared: self.reader.shared(),
            x: which as i32,
            y: 0,
        }
    }
}

impl CardCritic for NetworkCritic {
    fn add_to(&self, layout: &mut Layout) {
        let (rule, [each, transitions]) = (&self.rule, self.transitions());
        let (has_target, adam) = (rule.polyak > 0.0, rule.descent.optimizer == OptimizerKind::Adam);
        self.networks.add_to(layout);
        self.reader.add_to(layout);
        for (name, value) in [
            ("CRITIC_TABLES", 0),
            ("CRITIC_EACH", each),
            ("CRITIC_TRANSITIONS", transitions),
            ("CRITIC_PASSES", rule.passes),
            ("CRITIC_MINIBATCH", rule.minibatch),
            ("CRITIC_STEPS_OF_PASS", transitions.div_ceil(rule.minibatch)),
            ("CRITIC_STEPS", self.steps() as usize),
            ("CRITIC_SLOTS", self.most_slots),
            ("CRITIC_TWINS", if rule.twin { 2 } else { 1 }),
            ("CRITIC_MERGED", usize::from(rule.merged)),
            ("CRITIC_HUBER", usize::from(rule.loss != Loss::Squared)),
            ("CRITIC_ADAM", usize::from(adam)),
            ("CRITIC_HAS_TARGET", usize::from(has_target)),
            ("CRITIC_CLIPS", usize::from(rule.descent.clip < f64::INFINITY)),
            ("CRITIC_ORDER_SHARED", usize::from(transitions <= MOST_ORDERED)),
            ("CRITIC_ORDER_PURPOSE", Purpose::CriticOrder as usize),
        ] {
            layout.constant(name, value);
        }
        let [beta0, beta1] = [0.9, 0.999];
        for (name, value) in [
            ("CRITIC_POLYAK", rule.polyak),
            ("CRITIC_CLIP", if rule.descent.clip.is_finite() { rule.descent.clip } else { 0.0 }),
            ("CRITIC_REST_FIRST", 1.0 - beta0),
            ("CRITIC_REST_SECOND", 1.0 - beta1),
        ] {
            layout.constant(name, format!("{:?}f", value as f32));
        }
        layout.constant("CRITIC_LEARNING_RATE", format!("{:?}", rule.descent.learning_rate));
        layout.constant("CRITIC_EPSILON", format!("{:?}", rule.descent.epsilon));
        layout.now("critic_steps", "long long");
        layout.array_from("critic_agent", &self.agents);
        layout.array_from("critic_slot", &self.slots);
        layout.array_from("critic_start", &self.starts);
        layout.array::<f32>("critic_weights", self.parameters());
        layout.array::<f32>("critic_target", if has_target { self.parameters() } else { 1 });
        for name in ["critic_first", "critic_second"] {
            layout.array::<f32>(name, if adam { self.parameters() } else { 1 });
        }
        layout.array::<f32>("critic_next", self.agents.len() * transitions);
        layout.array::<f32>("critic_wanted", self.agents.len() * transitions);
        layout.array::<u32>("critic_order", self.samples.agents * rule.passes * transitions);
        layout.array::<f32>("critic_rates", 2 * self.steps() as usize);
        let Samples { agents, batch, horizon, per_step, .. } = self.samples;
        let along = if per_step > 1 { self.most_members * per_step } else { 1 };
        layout.array::<f32>("critic_along", batch * horizon * along * self.most_slots * agents);
        layout.array_from("critic_own_place", &self.own_places);
        layout.text(include_str!("critic.cu"));
    }

    fn learn(&self) -> Vec<Launch> {
        let [_, transitions] = self.transitions();
        let order = if transitions <= MOST_ORDERED { 8 * transitions } else { 0 };
        let agents = self.samples.agents as u32;
        let mut launches = vec![Launch {
            grid: [agents, 1],
            ..Launch::blocks("critic_order", ORDER_THREADS, ORDER_THREADS).sharing(order)
        }];
        for pass in 0..self.rule.passes {
            let next = self.values_of(0, self.learners);
            let learn = Launch {
                kernel: "critic_learn",
                grid: [next.grid[0], 1],
                block: self.networks.block().threads as u32,
                shared: self.networks.shared(),
                x: pass as i32,
                y: 0,
            };
            launches.extend([next, learn]);
        }
        launches
    }

    fn values(&self) -> Vec<Launch> {
        let Samples { agents, batch, horizon, per_step, .. } = self.samples;
        let mut values = self.values_of(1, self.agents.len());
        if per_step > 1 {
            values.kernel = "critic_alternatives";
        }
        vec![values, Launch::blocks("critic_receive", batch * horizon * agents, 256)]
    }

    fn told(&self) -> ToldNumbers<'_> {
        let places = |j: usize| (self.agent_starts[j]..self.agent_starts[j + 1]).collect();
        ToldNumbers { array: "critic_weights", is_single: true, places: Box::new(places) }
    }

    fn mirrors(&self) -> Vec<Mirror> {
        let mut arrays = vec![("critic", "critic_weights")];
        if self.rule.polyak > 0.0 {
            arrays.push(("critic.target", "critic_target"));
        }
        if self.rule.descent.optimizer == OptimizerKind::Adam {
            arrays.extend([("critic.first", "critic_first"), ("critic.second", "critic_second")]);
        }
        arrays.into_iter().map(|(field, array)| Mirror::row_after_row(field, array)).collect()
    }

    fn begin_iteration(&self, critic: &mut dyn Critic) -> Vec<u64> {
        let critic: &mut dyn Any = critic;
        let before =
            critic.downcast_mut::<NeuralCritic>().map_or(0, |critic| critic.count_steps(self.steps()));
        vec![before]
    }
}

/// Threads of a block that learns, and its samples at a time; fewer where neural networks are large.
const LEARN: [usize; 2] = [256, 64];
const LEARN_LARGE: [usize; 2] = [256, 16];

/// The same where values are asked for: the more warps read one copy of the weights, the better. Where
/// neural networks are few, samples are spread over all multiprocessors.
const MANY_READ: [usize; 2] = [512, 64];
const FEW_READ: [usize; 2] = [256, 16];

/// Threads of a block that puts transitions in order.
const ORDER_THREADS: usize = 128;

/// Transitions that are put in order in shared memory.
const MOST_ORDERED: usize = 16 << 10;
