//! Sampled λ-returns minus a learnt baseline.

use std::ops::Range;

use rayon::prelude::*;

use super::descent::{Descent, shuffle};
use super::{Critic, CriticInput, QValues, SampleRequest, ValueReceiver};
use crate::base::fields::{Field, Fields};
use crate::base::memory::check_memory;
use crate::base::stream::{Place, Purpose, Stream};
use crate::learn::optimizer::OptimizerKind;
use crate::learn::shadow::{Signals, reward_column, weigh};
use crate::neural::{Loss, Net, Tape};
use crate::policy::observation::{Inputs, ObservationEncoder, Widths};
use crate::utility::problem::Problem;
use crate::world::Trajectory;
use crate::world::World;
use crate::{Ragged, Result};

/// How values are learnt.
#[derive(Debug, Clone)]
pub struct ReturnsSettings {
    /// λ: 0 trusts the learnt values after one step, 1 the sampled rewards alone.
    pub lambda: f64,
    /// Steps of a gradient.
    pub descent: Descent,
    /// Samples of a gradient step, shuffled.
    pub minibatch: usize,
    /// Passes over the batch.
    pub passes: usize,
    /// Of a value against its λ-return.
    pub loss: Loss,
}

/// A_j^k = Σ_{l ≥ k} (γλ)^{l−k}·δ_j^l with δ_j^k = r_j^k + γ·V_j^{k+1} − V_j^k, along the batch itself, for every utility of
/// agent j. V_j is a network that sees what a policy of radius κ_q would; it learns A_j^k + V_j^k by regression.
///
/// Stands where Q_j stands: Σ_j A_j over the neighbours weighs the scores, which for λ = 1 is the unbiased Monte-Carlo
/// gradient with a baseline that depends on no action. A learnt Q used directly has to resolve how much a single action of
/// a single agent matters, which its error easily exceeds; here a wrong V costs variance, not direction.
///
/// V = 0 after an episode that ended; one that was cut is valued at the state it was cut at, for which the batch is
/// one step longer than the horizon. Networks learn values divided by their running size, so that utilities of
/// any scale are learnt alike. Literature: Schulman and others, "High-dimensional continuous control using generalized
/// advantage estimation", ICLR 2016.
pub struct Returns {
    sights: Vec<ObservationEncoder>,
    nets: Vec<Net>,
    /// Numbers in the whole network.
    ids: Vec<u32>,
    /// Agents that learn here.
    blocks: Vec<Range<usize>>,
    rule: ReturnsSettings,
    stream: Stream,
    gamma: f64,
    actions: Vec<usize>,
    /// Row j is `[parameter]`; one output a utility.
    weights: Ragged<f32>,
    first: Ragged<f32>,
    second: Ragged<f32>,
    /// Gradient steps so far; they differ between iterations with the number of samples.
    steps: u64,
    /// Running mean of squared returns, row j one a utility.
    squares: Ragged<f64>,
    /// Row j is `[utility][trajectory][step]`, as long as the batch.
    advantages: Ragged<f64>,
    /// Row j is `[trajectory][step]`: A_f + Σ_k μ_k·A_gk.
    weighted: Ragged<f64>,
    /// First step of every trajectory in those rows.
    offsets: Vec<usize>,
}

/// Share of itself that the running size of returns keeps at an iteration.
const KEEPS: f64 = 0.98;

impl Returns {
    /// Values over κ_q-hop neighbourhoods with orthogonal weights; the last layer starts small.
    pub fn new(
        world: &dyn World,
        problem: &Problem,
        kappa_q: usize,
        widths: &Widths,
        rule: ReturnsSettings,
        stream: Stream,
    ) -> Result<Self> {
        let n = world.graph().agents();
        let groups = world.graph().neighbourhoods(kappa_q);
        let utilities = |j: usize| 1 + problem.agents[j].constraints.len();
        let sights: Vec<ObservationEncoder> =
            (0..n).map(|j| ObservationEncoder::new(world, j, groups.row(j), false)).collect();
        let nets = sights.iter().enumerate();
        let nets: Vec<Net> = nets
            .map(|(j, sight)| Net::new(sight.architecture(widths, utilities(j)), "critic.hidden"))
            .collect::<Result<_>>()?;
        let parameters: u128 = nets.iter().map(|net| net.parameters() as u128).sum();
        check_memory(16 * parameters, "critic.hidden", &format!("networks of {parameters} parameters"))?;
        let place = Place { purpose: Purpose::CriticInit, iteration: 0, trajectory: 0 };
        let weights = Ragged::from_rows(nets.iter().enumerate().map(|(j, net)| {
            let mut sequence = stream.sequence(place, world.graph().global_id(j));
            net.initialise::<f32>(OUTPUT_GAIN, &mut sequence)
        }));
        let moments = || match rule.descent.optimizer {
            OptimizerKind::Adam => Ragged::zeros_like(&weights),
            OptimizerKind::Sgd => Ragged::zeros(std::iter::repeat_n(0, n)),
        };
        Ok(Returns {
            first: moments(),
            second: moments(),
            weights,
            sights,
            nets,
            ids: (0..n).map(|j| world.graph().global_id(j)).collect(),
            blocks: world.graph().work_blocks(),
            rule,
            stream,
            gamma: problem.gamma,
            actions: problem.agents.iter().map(|agent| agent.space.actions).collect(),
            steps: 0,
            squares: Ragged::zeros((0..n).map(utilities)),
            advantages: Ragged::default(),
            weighted: Ragged::default(),
            offsets: Vec::new(),
        })
    }
}

/// Size of the last layer's initial weights.
const OUTPUT_GAIN: f64 = 0.1;

/// Buffers of one agent's learning.
#[derive(Default)]
struct Scratch {
    inputs: Inputs,
    part: Inputs,
    tape: Tape<f32>,
    values: Vec<f32>,
    column: Vec<f64>,
    /// λ-returns in the network's units, `[sample][utility]`.
    targets: Vec<f32>,
    wanted: Vec<f32>,
    slopes: Vec<f32>,
    gradient: Vec<f32>,
    order: Vec<u32>,
}

/// One agent.
struct Learner<'a> {
    j: usize,
    net: &'a Net,
    sight: &'a ObservationEncoder,
    rule: &'a ReturnsSettings,
    gamma: f64,
    actions: usize,
    batch: &'a [Trajectory],
    weights: &'a mut [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
    squares: &'a mut [f64],
}

impl Learner<'_> {
    /// Advantages of every utility along the batch, and the targets of the values.
    fn look(&mut self, rewards: &[f64], begun: bool, advantages: &mut [f64], scratch: &mut Scratch) {
        let Scratch { inputs, tape, values, column, targets, .. } = scratch;
        inputs.clear();
        for trajectory in self.batch {
            self.sight.push_steps(trajectory, trajectory.steps(), inputs);
        }
        values.clear();
        values.extend_from_slice(self.net.forward(self.weights, inputs.batch(), tape));
        let utilities = self.squares.len();
        targets.clear();
        targets.resize(inputs.size * utilities, 0.0);
        let row = rewards.len() / utilities;
        let all = advantages.len() / utilities;
        for utility in 0..utilities {
            let size = scale(self.squares[utility]);
            let reward = &rewards[utility * row..(utility + 1) * row];
            let (mut sample, mut out, mut squares, mut count) = (0, utility * all, 0.0, 0.0);
            for trajectory in self.batch {
                let (steps, transitions) = (trajectory.steps(), trajectory.transitions());
                reward_column(reward, trajectory, self.j, self.actions, transitions, column);
                let value = |k: usize| size * f64::from(values[(sample + k) * utilities + utility]);
                let mut advantage = 0.0;
                for k in (0..transitions).rev() {
                    let next = if k + 1 < steps { value(k + 1) } else { 0.0 };
                    let difference = column[k] + self.gamma * next - value(k);
                    advantage = difference + self.gamma * self.rule.lambda * advantage;
                    let target = advantage + value(k);
                    advantages[out + k] = advantage;
                    targets[(sample + k) * utilities + utility] = target as f32;
                    squares += target * target;
                    count += 1.0;
                }
                sample += steps;
                out += transitions;
            }
            let kept = if begun { KEEPS } else { 0.0 };
            self.squares[utility] = kept * self.squares[utility] + (1.0 - kept) * squares / count;
            let size = scale(self.squares[utility]) as f32;
            targets.iter_mut().skip(utility).step_by(utilities).for_each(|target| *target /= size);
        }
    }

    /// Regression of the values on their targets, in minibatches of the samples in `scratch.order`.
    fn learn(&mut self, steps: u64, samples: &[u32], scratch: &mut Scratch) {
        let Scratch { inputs, part, tape, targets, wanted, slopes, gradient, order, .. } = scratch;
        let utilities = self.squares.len();
        gradient.resize(self.net.parameters(), 0.0);
        let mut step = steps;
        for order in order.chunks_exact(samples.len()) {
            for members in order.chunks(self.rule.minibatch) {
                step += 1;
                part.clear();
                wanted.clear();
                for &member in members {
                    let sample = samples[member as usize] as usize;
                    part.copy(inputs, sample);
                    wanted.extend_from_slice(&targets[sample * utilities..(sample + 1) * utilities]);
                }
                slopes.resize(wanted.len(), 0.0);
                let values = self.net.forward(self.weights, part.batch(), tape);
                self.rule.loss.evaluate(values, wanted, None, slopes);
                self.net.backward(self.weights, part.batch(), tape, slopes, gradient);
                self.rule.descent.step(step, self.weights, gradient, self.first, self.second);
            }
        }
    }
}

/// Rows of the given lengths, in the memory that is there if they are as before. What they hold is to be written over.
fn fit(rows: &mut Ragged<f64>, lengths: impl Iterator<Item = usize> + Clone) {
    if !rows.iter().map(<[f64]>::len).eq(lengths.clone()) {
        *rows = Ragged::zeros(lengths);
    }
}

/// What a network's outputs are multiplied by.
fn scale(squares: f64) -> f64 {
    squares.sqrt().max(1e-6)
}

impl Critic for Returns {
    fn samples(&self) -> SampleRequest {
        SampleRequest { batch_tail: 1, ..SampleRequest::default() }
    }

    fn evaluate(&mut self, evidence: CriticInput<'_>) -> Result<()> {
        let (batch, n) = (evidence.batch, self.nets.len());
        let transitions: usize = batch.iter().map(Trajectory::transitions).sum();
        self.offsets.clear();
        let (mut first, mut sample, mut samples) = (0, 0, Vec::with_capacity(transitions));
        for trajectory in batch {
            self.offsets.push(first);
            first += trajectory.transitions();
            samples.extend((0..trajectory.transitions()).map(|k| (sample + k) as u32));
            sample += trajectory.steps();
        }
        let squares = &self.squares;
        fit(&mut self.advantages, (0..n).map(|j| squares.row(j).len() * transitions));
        let (blocks, ids) = (&self.blocks, &self.ids);
        let (rule, nets, sights, actions) = (&self.rule, &self.nets, &self.sights, &self.actions);
        let (gamma, steps, stream) = (self.gamma, self.steps, &self.stream);
        let iteration = evidence.iteration as u32;
        let weights = self.weights.split_rows_mut(blocks).into_iter();
        let moments = self.first.split_rows_mut(blocks).into_iter().zip(self.second.split_rows_mut(blocks));
        let results = self.squares.split_rows_mut(blocks).into_iter();
        let results = results.zip(self.advantages.split_rows_mut(blocks));
        let parts: Vec<_> = blocks.iter().zip(weights.zip(moments).zip(results)).collect();
        parts.into_par_iter().for_each_init(Scratch::default, |scratch, (block, ((w, moments), results))| {
            let (mut weights, (mut first, mut second)) = (w, moments);
            let (mut squares, mut advantages) = results;
            for j in block.clone() {
                let mut learner = Learner {
                    j,
                    net: &nets[j],
                    sight: &sights[j],
                    rule,
                    gamma,
                    actions: actions[j],
                    batch,
                    weights: weights.row_mut(j),
                    first: first.row_mut(j),
                    second: second.row_mut(j),
                    squares: squares.row_mut(j),
                };
                let rewards = evidence.signals.rewards.row(j);
                learner.look(rewards, steps > 0, advantages.row_mut(j), scratch);
                let place = Place { purpose: Purpose::CriticOrder, iteration, trajectory: 0 };
                let mut sequence = stream.sequence(place, ids[j]);
                shuffle(rule.passes, samples.len(), &mut sequence, &mut scratch.order);
                learner.learn(steps, &samples, scratch);
            }
        });
        self.steps += (self.rule.passes * transitions.div_ceil(self.rule.minibatch)) as u64;
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
            ("critic.first", Field::SingleRows(&mut self.first)),
            ("critic.second", Field::SingleRows(&mut self.second)),
            ("critic.squares", Field::Rows(&mut self.squares)),
            ("critic.steps", Field::Counter(&mut self.steps)),
        ]
    }
}

impl QValues for Returns {
    fn weigh(&mut self, _signals: &Signals, mu: &Ragged<f64>) -> Option<(usize, f64)> {
        let n = self.nets.len();
        let length = |j: usize| self.advantages.row(j).len() / (1 + mu.row(j).len());
        fit(&mut self.weighted, (0..n).map(length));
        let (advantages, blocks) = (&self.advantages, &self.blocks);
        let rows = self.weighted.split_rows_mut(blocks);
        let found: Vec<_> = (blocks.par_iter().zip(rows))
            .map(|(block, mut rows)| {
                let mut bad = None;
                for j in block.clone() {
                    weigh(advantages.row(j), mu.row(j), rows.row_mut(j));
                    let value = rows.row_mut(j).iter().find(|x| !x.is_finite());
                    bad = bad.or(value.map(|&value| (j, value)));
                }
                bad
            })
            .collect();
        found.into_iter().flatten().next()
    }

    fn add_taken(&self, sender: u32, inbox: &ValueReceiver<'_>, _scratch: &mut Vec<u32>, out: &mut [f64]) {
        let first = self.offsets[inbox.number];
        // A row of advantages begins with those of the objective.
        let told = if inbox.counts_constraints(sender) { &self.weighted } else { &self.advantages };
        let advantages = &told.row(sender as usize)[first..first + inbox.steps];
        out.iter_mut().zip(advantages).for_each(|(out, a)| *out += a);
    }

    fn knows_alternatives(&self) -> bool {
        false
    }

    fn add_alternatives(&self, _: u32, _: &ValueReceiver<'_>, _: usize, _: &mut Vec<u32>, out: &mut [f64]) {
        out.fill(f64::NAN);
    }

    fn table(&self, _agent: usize, _which: usize) -> Option<&[f64]> {
        None
    }
}
