//! The neural networks of all agents: one place for their parameters, their moments, and what is done with
//! them.
//!
//! Critics, value functions and policies each have a [`Bank`]. It is the door for another back end: whatever
//! computes with parameters goes through [`Bank::forward`], [`Net::gradient`] and [`NetworkMut::descend`].

use std::ops::Range;

use rayon::prelude::*;

use super::architecture::{Architecture, Net};
use super::optimizer::{Adam, Descent, OptimizerKind, clip, sgd};
use super::pass::{Batch, Tape};
use crate::base::fields::{Field, Fields};
use crate::base::limits::check_memory;
use crate::base::ragged::RowsMut;
use crate::base::stream::{Place, Purpose, Stream};
use crate::{Ragged, Result};

/// Networks of all agents. An agent may have several, all of one architecture.
#[derive(Debug)]
pub struct Bank {
    /// The sizes of every agent's neural networks.
    pub(crate) nets: Vec<Net>,
    /// Row i is `[network][parameter]`.
    pub(crate) weights: Ragged<f32>,
    /// Adam's moments, shaped like the weights; empty rows where there are none.
    first: Ragged<f32>,
    second: Ragged<f32>,
}

/// How many neural networks one agent has, and of which architecture.
#[derive(Debug)]
pub struct AgentNetworks {
    /// What each looks like.
    pub architecture: Architecture,
    /// How many.
    pub count: usize,
    /// The agent's number in the whole graph, which keys its random draws.
    pub id: u32,
}

/// How neural networks begin.
#[derive(Debug)]
pub struct BankSettings<'a> {
    /// The setting that errors name.
    pub field: &'a str,
    /// Memory per parameter that is needed in the end, moments and copies elsewhere included.
    pub bytes: u128,
    /// Whose initial draws.
    pub purpose: Purpose,
    /// Random numbers of the run.
    pub stream: &'a Stream,
    /// Size of the last layer's weights, which are orthogonal like all others.
    pub output_gain: f64,
    /// Whether Adam's moments are kept.
    pub moments: bool,
}

/// One neural network, to be trained.
#[derive(Debug)]
pub struct NetworkMut<'a> {
    /// Its sizes.
    pub net: &'a Net,
    /// Its parameters.
    pub weights: &'a mut [f32],
    /// Adam's moments; empty without them.
    first: &'a mut [f32],
    second: &'a mut [f32],
}

/// The neural networks of a run of consecutive agents, to be trained.
#[derive(Debug)]
pub struct BankPart<'a> {
    nets: &'a [Net],
    weights: RowsMut<'a, f32>,
    first: RowsMut<'a, f32>,
    second: RowsMut<'a, f32>,
}

/// Buffers of one thread's training, for neural networks of any size one after the other.
#[derive(Debug, Default)]
pub struct Training {
    /// Of the forward pass.
    pub tape: Tape<f32>,
    slopes: Vec<f32>,
    /// The last gradient.
    pub gradient: Vec<f32>,
}

impl Bank {
    /// Networks with orthogonal weights, those of every agent drawn one after the other.
    pub fn new(agents: impl IntoIterator<Item = AgentNetworks>, settings: &BankSettings<'_>) -> Result<Self> {
        let (mut nets, mut counts) = (Vec::new(), Vec::new());
        for AgentNetworks { architecture, count, id } in agents {
            nets.push(Net::new(architecture, settings.field)?);
            counts.push((count, id));
        }
        let lengths = nets.iter().zip(&counts).map(|(net, &(count, _))| (net.parameters() * count) as u128);
        let parameters: u128 = lengths.sum();
        let what = format!("neural networks of {parameters} parameters");
        check_memory(settings.bytes * parameters, settings.field, &what)?;
        let place = Place { purpose: settings.purpose, iteration: 0, trajectory: 0 };
        let rows = nets.par_iter().zip(&counts).map(|(net, &(count, id))| {
            let mut sequence = settings.stream.sequence(place, id);
            let drawn = |_| net.initialise::<f32>(settings.output_gain, &mut sequence);
            (0..count).flat_map(drawn).collect()
        });
        let weights = Ragged::from_rows(rows.collect::<Vec<Vec<f32>>>());
        let none = || Ragged::zeros(std::iter::repeat_n(0, nets.len()));
        let mut bank = Bank { first: none(), second: none(), weights, nets };
        if settings.moments {
            bank.add_moments();
        }
        Ok(bank)
    }

    /// Begins to keep Adam's moments, at 0.
    pub fn add_moments(&mut self) {
        (self.first, self.second) = (Ragged::zeros_like(&self.weights), Ragged::zeros_like(&self.weights));
    }

    /// The parameters of each of agent i's neural networks.
    pub fn networks(&self, agent: usize) -> std::slice::ChunksExact<'_, f32> {
        self.weights.row(agent).chunks_exact(self.nets[agent].parameters())
    }

    /// The outputs of agent i's first neural network, `[sample][output]`.
    pub fn forward<'t>(&self, agent: usize, batch: Batch<'_, f32>, tape: &'t mut Tape<f32>) -> &'t [f32] {
        let net = &self.nets[agent];
        net.forward(&self.weights.row(agent)[..net.parameters()], batch, tape)
    }

    /// The neural networks of blocks of agents, to be trained side by side.
    pub fn split_mut(&mut self, blocks: &[Range<usize>]) -> Vec<BankPart<'_>> {
        let nets = &self.nets[..];
        let moments = self.first.split_rows_mut(blocks).into_iter().zip(self.second.split_rows_mut(blocks));
        let parts = self.weights.split_rows_mut(blocks).into_iter().zip(moments);
        parts.map(|(weights, (first, second))| BankPart { nets, weights, first, second }).collect()
    }

    /// What checkpoints hold, under the names of the parameters and of the two moments.
    pub fn fields(&mut self, names: [&'static str; 3]) -> Fields<'_> {
        let rows = [&mut self.weights, &mut self.first, &mut self.second];
        names.into_iter().zip(rows.map(Field::SingleRows)).collect()
    }

    /// The same of neural networks that belong to no single agents.
    pub fn shared_fields(&mut self, names: [&'static str; 3]) -> Fields<'_> {
        let rows = [&mut self.weights, &mut self.first, &mut self.second];
        names.into_iter().zip(rows.map(|rows| Field::SingleNumbers(rows.data_mut()))).collect()
    }
}

impl BankPart<'_> {
    /// Agent i's neural networks, to be trained; i counts among all agents.
    pub fn networks_mut(&mut self, agent: usize) -> impl Iterator<Item = NetworkMut<'_>> {
        let net = &self.nets[agent];
        let [weights, mut first, mut second] = [&mut self.weights, &mut self.first, &mut self.second]
            .map(|rows| rows.row_mut(agent).chunks_exact_mut(net.parameters()));
        weights.map(move |weights| {
            let (first, second) = (first.next().unwrap_or_default(), second.next().unwrap_or_default());
            NetworkMut { net, weights, first, second }
        })
    }
}

impl NetworkMut<'_> {
    /// The outputs, `[sample][output]`.
    pub fn forward<'t>(&self, batch: Batch<'_, f32>, tape: &'t mut Tape<f32>) -> &'t [f32] {
        self.net.forward(self.weights, batch, tape)
    }

    /// The gradient of a loss, left in the buffers: see [`Net::gradient`].
    pub fn gradient(
        &self,
        batch: Batch<'_, f32>,
        buffers: &mut Training,
        loss: impl FnOnce(&[f32], &mut [f32]),
    ) {
        self.net.gradient(self.weights, batch, buffers, loss);
    }

    /// Gradient step number `number` (from 1) down the gradient in the buffers, which is clipped.
    pub fn descend(&mut self, number: u64, descent: &Descent, buffers: &mut Training) {
        let gradient = &mut buffers.gradient;
        if descent.clip < f64::INFINITY {
            clip(descent.clip as f32, gradient);
        }
        match descent.optimizer {
            OptimizerKind::Sgd => sgd(descent.learning_rate as f32, self.weights, gradient),
            OptimizerKind::Adam => Adam { epsilon: descent.epsilon, ..Adam::new(descent.learning_rate) }
                .descend(number, self.weights, gradient, self.first, self.second),
        }
    }
}

impl Net {
    /// The gradient of a loss in the parameters `w`, left in the buffers. `loss` is given the outputs for the
    /// batch and writes its slopes in them.
    pub fn gradient(
        &self,
        w: &[f32],
        batch: Batch<'_, f32>,
        buffers: &mut Training,
        loss: impl FnOnce(&[f32], &mut [f32]),
    ) {
        let Training { tape, slopes, gradient } = buffers;
        let outputs = self.forward(w, batch, tape);
        slopes.resize(outputs.len(), 0.0);
        loss(outputs, slopes);
        gradient.resize(self.parameters(), 0.0);
        self.backward(w, batch, tape, slopes, gradient);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Inputs, Loss, Rows};
    use super::*;

    fn bank(moments: bool) -> Bank {
        let stream = Stream::new(3);
        let architecture = || Architecture {
            rows: Some(Rows { count: 1, width: 2, hidden: 3 }),
            symbols: vec![],
            hidden: vec![4],
            outputs: 1,
        };
        let agents = [2, 1].into_iter().zip(0..);
        let agents = agents.map(|(count, id)| AgentNetworks { architecture: architecture(), count, id });
        let settings = BankSettings {
            field: "critic.hidden",
            bytes: 16,
            purpose: Purpose::CriticInit,
            stream: &stream,
            output_gain: 1.0,
            moments,
        };
        Bank::new(agents, &settings).unwrap()
    }

    #[test]
    fn networks_are_drawn_and_named_one_by_one() {
        let mut bank = bank(true);
        let parameters = bank.nets[0].parameters();
        assert_eq!((bank.nets.len(), bank.networks(0).len(), bank.networks(1).len()), (2, 2, 1));
        let [a, b] = [0, 1].map(|k| bank.networks(0).nth(k).unwrap().to_vec());
        assert_ne!(a, b);
        assert_ne!(a, bank.networks(1).next().unwrap());
        let names: Vec<_> = bank.fields(["w", "m", "v"]).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["w", "m", "v"]);
        assert_eq!(bank.first.row(0).len(), 2 * parameters);
    }

    #[test]
    fn a_network_learns_and_its_neighbours_stay() {
        for (optimizer, rate) in [(OptimizerKind::Sgd, 0.1), (OptimizerKind::Adam, 0.05)] {
            let mut bank = bank(optimizer == OptimizerKind::Adam);
            let before = bank.weights.clone();
            let inputs = Inputs { size: 2, rows: vec![1.0, 0.0, 0.0, 1.0], ..Inputs::default() };
            let (mut buffers, mut loss) = (Training::default(), 1.0);
            for number in 1..=300 {
                let mut parts = bank.split_mut(&[0..1, 1..2]);
                let mut network = parts[0].networks_mut(0).nth(1).unwrap();
                network.gradient(inputs.batch(), &mut buffers, |outputs, slopes| {
                    loss = Loss::Squared.evaluate(outputs, &[1.0, -1.0], slopes);
                });
                network.descend(number, &Descent::new(optimizer, rate, 1.0), &mut buffers);
            }
            assert!(loss < 1e-3, "{optimizer:?}: {loss}");
            assert_eq!(bank.networks(0).next().unwrap(), &before.row(0)[..bank.nets[0].parameters()]);
            assert_eq!(bank.weights.row(1), before.row(1));
        }
    }
}
