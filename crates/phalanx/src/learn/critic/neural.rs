//! Truncated Q-functions from neural networks, one an agent and utility.

use std::cell::RefCell;
use std::ops::Range;

use rayon::prelude::*;

use super::alternatives::{self, Split};
use super::descent::{Descent, shuffle};
use super::linear::LearnsFrom;
use super::{Critic, CriticInput, QValues, SampleRequest, ValueReceiver, ValueRequest};
use crate::base::fields::{Field, Fields};
use crate::base::memory::check_memory;
use crate::base::stream::{Place, Purpose, Stream};
use crate::learn::optimizer::OptimizerKind;
use crate::learn::shadow::{Signals, reward_column, weigh};
use crate::neural::{Chain, Loss, Net, Tape, Target, polyak};
use crate::policy::observation::{Inputs, ObservationEncoder, Widths};
use crate::utility::problem::Problem;
use crate::world::Trajectory;
use crate::world::World;
use crate::{Ragged, Result};

/// How the networks learn.
#[derive(Debug, Clone)]
pub struct NeuralCriticSettings {
    /// Steps of a gradient.
    pub descent: Descent,
    /// Transitions of a gradient step, shuffled; 0: one at a time, in order, by plain gradient steps.
    pub minibatch: usize,
    /// Passes over the transitions.
    pub passes: usize,
    /// Of a prediction against r + γ·Q', in minibatches.
    pub loss: Loss,
    /// Share of itself that the target network keeps at a gradient step; 0: the network is its own target.
    pub polyak: f64,
    /// Two networks, of which the smaller value counts; without minibatches each learns from its own.
    pub twin: bool,
    /// One network for f + Σ μ·g.
    pub merged: bool,
}

/// Networks Q_u(s, a)_{N_j} of every agent j and utility u, trained by temporal differences with a target network.
///
/// The target values a pass's next states once, at its beginning; it follows the network after every gradient step.
pub struct NeuralCritic {
    sights: Vec<ObservationEncoder>,
    nets: Vec<Net>,
    /// Numbers in the whole network, and its size.
    ids: Vec<u32>,
    total: usize,
    /// Agents that learn here.
    blocks: Vec<Range<usize>>,
    rule: NeuralCriticSettings,
    from: LearnsFrom,
    stream: Stream,
    gamma: f64,
    actions: Vec<usize>,
    /// Row j is `[utility][twin][parameter]`.
    weights: Ragged<f32>,
    targets: Ragged<f32>,
    first: Ragged<f32>,
    second: Ragged<f32>,
    /// Gradient steps of every network so far.
    steps: u64,
    /// μ^{t+1}.
    mu: Ragged<f64>,
    /// Σ_u of weighted values along the batch, row j as `[trajectory][step]`; then those of f alone, if some agents
    /// want them.
    along: Ragged<f64>,
    /// First step of every trajectory in those rows.
    offsets: Vec<usize>,
    /// The networks in two parts, for values at alternatives.
    splits: Vec<Option<Split>>,
    /// Sums in the first hidden layers along the batch, row j as `[utility][twin][trajectory][step][unit]`; empty where
    /// that would be too much, or is not asked for.
    sums: Ragged<f32>,
}

impl NeuralCritic {
    /// Networks over κ_q-hop neighbourhoods with orthogonal weights.
    pub fn new(
        world: &dyn World,
        problem: &Problem,
        kappa_q: usize,
        widths: &Widths,
        rule: NeuralCriticSettings,
        from: LearnsFrom,
        stream: Stream,
    ) -> Result<Self> {
        let n = world.graph().agents();
        let groups = world.graph().neighbourhoods(kappa_q);
        let sights: Vec<ObservationEncoder> =
            (0..n).map(|j| ObservationEncoder::new(world, j, groups.row(j), true)).collect();
        let nets = sights.iter().map(|sight| Net::new(sight.architecture(widths, 1), "critic.hidden"));
        let nets: Vec<Net> = nets.collect::<Result<_>>()?;
        let utilities = |j: usize| if rule.merged { 1 } else { 1 + problem.agents[j].constraints.len() };
        let twins = if rule.twin { 2 } else { 1 };
        let length = |j: usize| utilities(j) * twins * nets[j].parameters();
        let parameters: u128 = (0..n).map(|j| length(j) as u128).sum();
        check_memory(16 * parameters, "critic.hidden", &format!("networks of {parameters} parameters"))?;
        let place = Place { purpose: Purpose::CriticInit, iteration: 0, trajectory: 0 };
        let weights = Ragged::from_rows((0..n).map(|j| {
            let mut sequence = stream.sequence(place, world.graph().global_id(j));
            let count = utilities(j) * twins;
            (0..count).flat_map(|_| nets[j].initialise::<f32>(1.0, &mut sequence)).collect::<Vec<_>>()
        }));
        let splits = nets.iter().map(Split::new).collect::<Result<_>>()?;
        let none = || Ragged::zeros(std::iter::repeat_n(0, n));
        let adam = rule.descent.optimizer == OptimizerKind::Adam;
        let targeted = rule.polyak > 0.0;
        Ok(NeuralCritic {
            targets: if targeted { weights.clone() } else { none() },
            first: if adam { Ragged::zeros_like(&weights) } else { none() },
            second: if adam { Ragged::zeros_like(&weights) } else { none() },
            weights,
            sights,
            nets,
            ids: (0..n).map(|j| world.graph().global_id(j)).collect(),
            total: world.graph().total(),
            blocks: world.graph().work_blocks(),
            rule,
            from,
            stream,
            gamma: problem.gamma,
            actions: problem.agents.iter().map(|agent| agent.space.actions).collect(),
            steps: 0,
            mu: Ragged::zeros(problem.agents.iter().map(|agent| agent.constraints.len())),
            along: Ragged::zeros(std::iter::repeat_n(0, n)),
            offsets: Vec::new(),
            splits,
            sums: Ragged::zeros(std::iter::repeat_n(0, n)),
        })
    }

    /// What a utility of agent j counts: 1 for f, μ^{t+1} for constraints, if those count at all.
    fn weight(&self, j: usize, utility: usize, constraints: bool) -> f64 {
        match utility.checked_sub(1) {
            None => 1.0,
            Some(k) if constraints => self.mu.row(j)[k],
            Some(_) => 0.0,
        }
    }

    /// Values of agent j's networks for samples, weighed by μ^{t+1} and summed over the utilities that count: written over
    /// `out`.
    fn weighed(&self, j: usize, constraints: bool, inputs: &Inputs, scratch: &mut Reading, out: &mut [f64]) {
        let (net, row) = (&self.nets[j], self.weights.row(j));
        let twins = if self.rule.twin { 2 } else { 1 };
        out.fill(0.0);
        for (utility, weights) in row.chunks_exact(twins * net.parameters()).enumerate() {
            let mu = self.weight(j, utility, constraints);
            if mu == 0.0 {
                continue;
            }
            least(net, weights, inputs, &mut scratch.tape, &mut scratch.values);
            out.iter_mut().zip(&scratch.values).for_each(|(out, &q)| *out += mu * f64::from(q));
        }
    }
}

/// Sums kept at most along a batch.
const MOST_SUMS: usize = 1 << 24;

impl NeuralCritic {
    /// Sums in the first hidden layers along the batch, if they can be used and are not too many.
    fn first_sums(&self, batch: &[Trajectory], steps: usize, total: usize) -> Ragged<f32> {
        let networks = |j: usize| self.weights.row(j).len() / self.nets[j].parameters();
        // An agent's share of the memory depends on nobody else, so that a process with a part of them does the same.
        let length = |j: usize| {
            let width = self.splits[j].as_ref().map_or(0, Split::width);
            let length = networks(j) * total * width;
            if length.saturating_mul(self.total) <= MOST_SUMS { length } else { 0 }
        };
        let mut lengths = vec![0; self.nets.len()];
        self.blocks.iter().cloned().flatten().for_each(|j| lengths[j] = length(j));
        let mut sums = Ragged::zeros(lengths);
        let blocks = &self.blocks;
        blocks.par_iter().zip(sums.split_rows_mut(blocks)).for_each_init(
            Reading::default,
            |Reading { inputs, tape, .. }, (block, mut rows)| {
                for j in block.clone() {
                    let Some(split) = self.splits[j].as_ref().filter(|_| !rows.row_mut(j).is_empty()) else {
                        continue;
                    };
                    inputs.clear();
                    for trajectory in batch {
                        self.sights[j].push_steps(trajectory, trajectory.steps().min(steps), inputs);
                    }
                    let networks = self.weights.row(j).chunks_exact(self.nets[j].parameters());
                    for (w, row) in networks.zip(rows.row_mut(j).chunks_exact_mut(total * split.width())) {
                        row.copy_from_slice(split.sums(w, inputs.batch(), tape));
                    }
                }
            },
        );
        sums
    }

    /// Sender j's values at the alternatives of the receiver, from its sums along the batch, written over zeros. False if
    /// they cannot be had that way.
    fn alternatives_from_sums(
        &self,
        j: usize,
        inbox: &ValueReceiver<'_>,
        actions: usize,
        reading: &mut Reading,
        out: &mut [f64],
    ) -> bool {
        let member = self.sights[j].group().iter().position(|&m| m as usize == inbox.to);
        let rows = self.sums.row(j);
        let (Some(split), Some(slot), false) = (&self.splits[j], member, rows.is_empty()) else {
            return false;
        };
        let parameters = self.nets[j].parameters();
        let twins = if self.rule.twin { 2 } else { 1 };
        let each = rows.len() * parameters / self.weights.row(j).len();
        let first = self.offsets[inbox.number] * split.width();
        let taken = &inbox.trajectory.actions(inbox.to)[..inbox.steps];
        let Reading { values, split: scratch, .. } = reading;
        let networks = self.weights.row(j).chunks_exact(parameters).zip(rows.chunks_exact(each));
        for (number, (w, sums)) in networks.enumerate() {
            let utility = number / twins;
            let mu = self.weight(j, utility, inbox.counts_constraints(j as u32));
            if mu == 0.0 {
                continue;
            }
            let sums = &sums[first..first + inbox.steps * split.width()];
            let outputs = split.outputs(w, sums, slot, taken, actions, scratch);
            if number % twins == 0 {
                values.clear();
                values.extend_from_slice(outputs);
            } else {
                values.iter_mut().zip(outputs).for_each(|(v, &o)| *v = if o < *v { o } else { *v });
            }
            if number % twins == twins - 1 {
                out.iter_mut().zip(values.iter()).for_each(|(out, &q)| *out += mu * f64::from(q));
            }
        }
        true
    }

    /// The same by a whole pass for every alternative.
    fn alternatives_whole(
        &self,
        j: usize,
        inbox: &ValueReceiver<'_>,
        actions: usize,
        reading: &mut Reading,
        out: &mut [f64],
    ) {
        let mut inputs = std::mem::take(&mut reading.inputs);
        inputs.clear();
        let trajectory = inbox.trajectory;
        for k in 0..inbox.steps {
            for b in 0..actions {
                let action = |m: usize| if m == inbox.to { b as u8 } else { trajectory.actions(m)[k] };
                self.sights[j].push(trajectory, k, action, &mut inputs);
            }
        }
        self.weighed(j, inbox.counts_constraints(j as u32), &inputs, reading, out);
        reading.inputs = inputs;
    }
}

/// The value of one network, or the smaller of two.
fn least(net: &Net, weights: &[f32], inputs: &Inputs, tape: &mut Tape<f32>, values: &mut Vec<f32>) {
    let mut twins = weights.chunks_exact(net.parameters());
    values.clear();
    if let Some(weights) = twins.next() {
        values.extend_from_slice(net.forward(weights, inputs.batch(), tape));
    }
    for weights in twins {
        let other = net.forward(weights, inputs.batch(), tape);
        values.iter_mut().zip(other).for_each(|(v, &o)| *v = if o < *v { o } else { *v });
    }
}

/// Buffers of one thread's look at values.
#[derive(Default)]
struct Reading {
    inputs: Inputs,
    tape: Tape<f32>,
    values: Vec<f32>,
    sums: Vec<f64>,
    split: alternatives::Scratch,
}

thread_local! {
    static READING: RefCell<Reading> = RefCell::default();
}

/// Buffers of one agent's learning.
#[derive(Default)]
struct Scratch {
    now: Inputs,
    next: Inputs,
    /// 0 where the episode ended with the transition, else 1.
    goes_on: Vec<f32>,
    part: Inputs,
    tape: Tape<f32>,
    /// Rewards of all transitions, then of those in a minibatch.
    rewards: Vec<f32>,
    column: Vec<f64>,
    next_values: Vec<f32>,
    wanted: Vec<f32>,
    slopes: Vec<f32>,
    gradient: Vec<f32>,
    order: Vec<u32>,
}

/// One agent's networks of one utility.
struct Learner<'a> {
    net: &'a Net,
    rule: &'a NeuralCriticSettings,
    gamma: f32,
    /// `[twin][parameter]`.
    weights: &'a mut [f32],
    targets: &'a mut [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
    /// Gradient steps before this evaluation.
    steps: u64,
}

impl Learner<'_> {
    /// Passes over all transitions in minibatches, in the order of `scratch.order`.
    fn learn(&mut self, scratch: &mut Scratch) {
        let Scratch { now, next, goes_on, part, tape, rewards, .. } = scratch;
        let Scratch { next_values, wanted, slopes, gradient, order, .. } = scratch;
        let parameters = self.net.parameters();
        gradient.resize(parameters, 0.0);
        let mut step = self.steps;
        for order in order.chunks_exact(now.size) {
            let valued_by = if self.targets.is_empty() { &*self.weights } else { &*self.targets };
            least(self.net, valued_by, next, tape, next_values);
            for members in order.chunks(self.rule.minibatch) {
                step += 1;
                part.clear();
                wanted.clear();
                for &k in members {
                    part.copy(now, k as usize);
                    wanted.push(
                        rewards[k as usize] + self.gamma * goes_on[k as usize] * next_values[k as usize],
                    );
                }
                slopes.resize(members.len(), 0.0);
                for twin in 0..self.weights.len() / parameters {
                    let range = twin * parameters..(twin + 1) * parameters;
                    let weights = &mut self.weights[range.clone()];
                    let values = self.net.forward(weights, part.batch(), tape);
                    self.rule.loss.evaluate(values, wanted, None, slopes);
                    self.net.backward(weights, part.batch(), tape, slopes, gradient);
                    // Without Adam there is nothing at that place.
                    let first = self.first.get_mut(range.clone()).unwrap_or_default();
                    let second = self.second.get_mut(range.clone()).unwrap_or_default();
                    self.rule.descent.step(step, weights, gradient, first, second);
                    if !self.targets.is_empty() {
                        polyak(self.rule.polyak as f32, weights, &mut self.targets[range]);
                    }
                }
            }
        }
    }

    /// eq:td_learning with a gradient, one transition at a time along a chain. There is one reward fewer than inputs,
    /// or as many if the episode ended with the last.
    fn learn_online(&mut self, inputs: &Inputs, rewards: &[f32], tape: &mut Tape<f32>) {
        let parameters = self.net.parameters();
        let (along, after) = rewards.split_at(rewards.len().min(inputs.size - 1));
        for twin in 0..self.weights.len() / parameters {
            let range = twin * parameters..(twin + 1) * parameters;
            let mut learn = |rows: &[f32], symbols: &[u8], rewards: &[f32], gamma: f32| {
                let eta = self.rule.descent.learning_rate as f32;
                // Without targets there is nothing at that place.
                let target = self.targets.get_mut(range.clone());
                let target = target.map(|w| Target { w, tau: self.rule.polyak as f32 });
                let chain = Chain { rows, symbols, rewards, gamma, eta };
                self.net.td(&mut self.weights[range.clone()], target, chain, tape);
            };
            learn(&inputs.rows, &inputs.symbols, along, self.gamma);
            if !after.is_empty() {
                // Nothing comes after the end, so whatever stands there counts for nothing.
                let rows = inputs.rows[inputs.rows.len() - self.net.row_inputs()..].repeat(2);
                let symbols = inputs.symbols[inputs.symbols.len() - self.net.symbol_inputs()..].repeat(2);
                learn(&rows, &symbols, after, 0.0);
            }
        }
    }
}

impl Critic for NeuralCritic {
    fn samples(&self) -> SampleRequest {
        self.from.samples()
    }

    fn evaluate(&mut self, evidence: CriticInput<'_>) -> Result<()> {
        let trajectories = self.from.pick(&evidence);
        let transitions: usize = trajectories.iter().map(Trajectory::transitions).sum();
        let (rule, nets, sights, actions) = (&self.rule, &self.nets, &self.sights, &self.actions);
        let (gamma, steps, stream) = (self.gamma as f32, self.steps, &self.stream);
        let iteration = evidence.iteration as u32;
        let (blocks, ids) = (&self.blocks, &self.ids);
        let weights =
            self.weights.split_rows_mut(blocks).into_iter().zip(self.targets.split_rows_mut(blocks));
        let moments = self.first.split_rows_mut(blocks).into_iter().zip(self.second.split_rows_mut(blocks));
        let parts: Vec<_> = blocks.iter().zip(weights.zip(moments)).collect();
        parts.into_par_iter().for_each_init(
            Scratch::default,
            |scratch, (block, ((mut w, mut target), (mut m, mut v)))| {
                for j in block.clone() {
                    let net = &nets[j];
                    let width = net.parameters() * if rule.twin { 2 } else { 1 };
                    let mut weights = w.row_mut(j).chunks_exact_mut(width);
                    let mut targets = target.row_mut(j).chunks_exact_mut(width);
                    let mut first = m.row_mut(j).chunks_exact_mut(width);
                    let mut second = v.row_mut(j).chunks_exact_mut(width);
                    let place = Place { purpose: Purpose::CriticOrder, iteration, trajectory: 0 };
                    prepare(
                        rule,
                        &sights[j],
                        trajectories,
                        transitions,
                        stream.sequence(place, ids[j]),
                        scratch,
                    );
                    let rewards = evidence.signals.rewards.row(j);
                    let mu = evidence.mu.row(j);
                    for utility in 0.. {
                        let Some(weights) = weights.next() else { break };
                        let mut learner = Learner {
                            net,
                            rule,
                            gamma,
                            weights,
                            targets: targets.next().unwrap_or_default(),
                            first: first.next().unwrap_or_default(),
                            second: second.next().unwrap_or_default(),
                            steps,
                        };
                        let row = rewards.len() / (1 + mu.len());
                        let mut reward = rewards[utility * row..(utility + 1) * row].to_vec();
                        if rule.merged {
                            weigh(rewards, mu, &mut reward);
                        }
                        scratch.rewards.clear();
                        for trajectory in trajectories {
                            let steps = trajectory.transitions();
                            reward_column(&reward, trajectory, j, actions[j], steps, &mut scratch.column);
                            scratch.rewards.extend(scratch.column.iter().map(|&r| r as f32));
                        }
                        if rule.minibatch > 0 {
                            learner.learn(scratch);
                            continue;
                        }
                        let mut first = 0;
                        for trajectory in trajectories {
                            let Scratch { now, rewards, tape, .. } = &mut *scratch;
                            now.clear();
                            sights[j].push_steps(trajectory, trajectory.steps(), now);
                            let end = first + trajectory.transitions();
                            learner.learn_online(now, &rewards[first..end], tape);
                            first = end;
                        }
                    }
                }
            },
        );
        if self.rule.minibatch > 0 {
            self.steps += (self.rule.passes * transitions.div_ceil(self.rule.minibatch)) as u64;
        }
        Ok(())
    }

    fn values(&self) -> &dyn QValues {
        self
    }

    fn values_mut(&mut self) -> &mut dyn QValues {
        self
    }

    fn fields(&mut self) -> Fields<'_> {
        vec![
            ("critic", Field::SingleRows(&mut self.weights)),
            ("critic.target", Field::SingleRows(&mut self.targets)),
            ("critic.first", Field::SingleRows(&mut self.first)),
            ("critic.second", Field::SingleRows(&mut self.second)),
            ("critic.steps", Field::Counter(&mut self.steps)),
        ]
    }
}

/// Inputs before and after every transition, and a fresh order of them for every pass.
fn prepare(
    rule: &NeuralCriticSettings,
    sight: &ObservationEncoder,
    trajectories: &[Trajectory],
    transitions: usize,
    mut sequence: crate::base::stream::Sequence,
    scratch: &mut Scratch,
) {
    if rule.minibatch == 0 {
        return;
    }
    let Scratch { now, next, goes_on, part, order, .. } = scratch;
    now.clear();
    next.clear();
    goes_on.clear();
    for trajectory in trajectories {
        part.clear();
        sight.push_steps(trajectory, trajectory.steps(), part);
        for k in 0..trajectory.transitions() {
            let ends = k + 1 == trajectory.steps();
            now.copy(part, k);
            // What stands for the state after the end is not looked at.
            next.copy(part, if ends { k } else { k + 1 });
            goes_on.push(if ends { 0.0 } else { 1.0 });
        }
    }
    shuffle(rule.passes, transitions, &mut sequence, order);
}

impl QValues for NeuralCritic {
    fn weigh(&mut self, _signals: &Signals, mu: &Ragged<f64>) -> Option<(usize, f64)> {
        self.mu.data_mut().copy_from_slice(mu.data());
        let bad = |row: &[f32]| row.iter().copied().find(|w| !w.is_finite());
        (0..self.nets.len()).find_map(|j| bad(self.weights.row(j)).map(|value| (j, f64::from(value))))
    }

    fn prepare(&mut self, batch: &[Trajectory], steps: usize, wanted: ValueRequest) {
        let n = self.nets.len();
        let length = |trajectory: &Trajectory| trajectory.steps().min(steps);
        let mut total = 0;
        self.offsets.clear();
        for trajectory in batch {
            self.offsets.push(total);
            total += length(trajectory);
        }
        if wanted.alternatives {
            self.sums = self.first_sums(batch, steps, total);
            return;
        }
        let kinds = if wanted.partial { 2 } else { 1 };
        let mut lengths = vec![0; n];
        self.blocks.iter().cloned().flatten().for_each(|j| lengths[j] = kinds * total);
        let mut along = Ragged::zeros(lengths);
        let critic = &*self;
        let blocks = &critic.blocks;
        blocks.par_iter().zip(along.split_rows_mut(blocks)).for_each_init(
            Reading::default,
            |reading, (block, mut rows)| {
                for j in block.clone() {
                    let mut inputs = std::mem::take(&mut reading.inputs);
                    inputs.clear();
                    for trajectory in batch {
                        critic.sights[j].push_steps(trajectory, length(trajectory), &mut inputs);
                    }
                    for (kind, row) in rows.row_mut(j).chunks_exact_mut(total).enumerate() {
                        critic.weighed(j, kind == 0, &inputs, reading, row);
                    }
                    reading.inputs = inputs;
                }
            },
        );
        self.along = along;
    }

    fn add_taken(&self, sender: u32, inbox: &ValueReceiver<'_>, _scratch: &mut Vec<u32>, out: &mut [f64]) {
        let row = self.along.row(sender as usize);
        // Without constraints: the second half.
        let first = if inbox.counts_constraints(sender) { 0 } else { row.len() / 2 };
        let values = &row[first + self.offsets[inbox.number]..][..inbox.steps];
        out.iter_mut().zip(values).for_each(|(out, q)| *out += q);
    }

    fn knows_alternatives(&self) -> bool {
        true
    }

    fn add_alternatives(
        &self,
        sender: u32,
        inbox: &ValueReceiver<'_>,
        actions: usize,
        _: &mut Vec<u32>,
        out: &mut [f64],
    ) {
        READING.with_borrow_mut(|reading| {
            let mut values = std::mem::take(&mut reading.sums);
            values.clear();
            values.resize(inbox.steps * actions, 0.0);
            if !self.alternatives_from_sums(sender as usize, inbox, actions, reading, &mut values) {
                self.alternatives_whole(sender as usize, inbox, actions, reading, &mut values);
            }
            out.iter_mut().zip(&values).for_each(|(out, q)| *out += q);
            reading.sums = values;
        });
    }

    fn table(&self, _agent: usize, _which: usize) -> Option<&[f64]> {
        None
    }
}
