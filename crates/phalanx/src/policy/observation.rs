//! What an agent's neural networks read of its neighbourhood: a world's own view of the states, or one symbol
//! per neighbour.

use serde::{Deserialize, Serialize};

pub use crate::neural::Inputs;
use crate::neural::{AgentNetworks, Architecture, Bank, BankSettings, Rows, Symbols};
use crate::world::Trajectory;
use crate::world::{View, ViewTable, World, view_table};
use crate::{Error, Ragged, Result};

/// The inputs of one agent's neural network over a group of neighbours.
#[derive(Debug)]
pub struct ObservationEncoder {
    /// N_i.
    pub(crate) group: Vec<u32>,
    view: Option<Box<dyn View>>,
    /// Largest number of states and actions in the group.
    states: usize,
    actions: usize,
    /// Whether the neighbours' actions are read too.
    with_actions: bool,
}

/// Widths of a neural network: keys of `[policy]` (network) and `[critic]` (network, returns).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct Widths {
    /// Dimension of the embedding of a neighbour's state or action.
    pub embedding: usize,
    /// Width of the layer that each row of a world's own view goes through, before rows are put together.
    pub row_hidden: usize,
    /// Widths of the hidden layers.
    pub hidden: Vec<usize>,
}

impl Default for Widths {
    fn default() -> Self {
        Widths { embedding: 4, row_hidden: 32, hidden: vec![32] }
    }
}

/// Units of the widest layer.
const WIDEST: usize = 1 << 16;

impl Widths {
    /// Whether layers can have these widths, which are keys of `section`.
    pub fn check(&self, section: &str) -> Result<()> {
        let hidden = self.hidden.iter().enumerate().map(|(k, &width)| (format!("hidden.{k}"), width));
        let named = [("embedding".to_string(), self.embedding), ("row_hidden".to_string(), self.row_hidden)];
        match named.into_iter().chain(hidden).find(|(_, width)| !(1..=WIDEST).contains(width)) {
            None => Ok(()),
            Some((key, width)) => {
                let message = format!("{width}; a layer has 1 to {WIDEST} units");
                Err(Error::config(format!("{section}.{key}"), message))
            }
        }
    }
}

impl ObservationEncoder {
    /// What `agent` sees of `group`, itself among it.
    pub fn new(world: &dyn World, agent: usize, group: &[u32], with_actions: bool) -> Self {
        let largest =
            |size: &dyn Fn(usize) -> usize| group.iter().map(|&m| size(m as usize)).max().unwrap_or(1);
        ObservationEncoder {
            group: group.to_vec(),
            view: world.view(agent, group),
            states: largest(&|m| world.states(m)),
            actions: largest(&|m| world.actions(m)),
            with_actions,
        }
    }

    /// What every agent sees of its group, row i of `groups`, and the neural networks that read it: agent i
    /// has as many as `sizes` says first, with as many outputs each as it says second.
    pub fn with_networks(
        world: &dyn World,
        groups: &Ragged<u32>,
        with_actions: bool,
        widths: &Widths,
        sizes: impl Fn(usize) -> [usize; 2],
        settings: &BankSettings<'_>,
    ) -> Result<(Vec<Self>, Bank)> {
        let encoder = |(agent, group): (usize, &[u32])| Self::new(world, agent, group, with_actions);
        let encoders: Vec<Self> = groups.iter().enumerate().map(encoder).collect();
        let bank = Bank::new(
            encoders.iter().enumerate().map(|(i, encoder)| {
                let ([count, outputs], id) = (sizes(i), world.graph().global_id(i));
                AgentNetworks { architecture: encoder.architecture(widths, outputs), count, id }
            }),
            settings,
        )?;
        Ok((encoders, bank))
    }

    /// How many numbers a sample is where it is a world's own view, all its moments together.
    pub fn numbers(&self) -> Option<usize> {
        let view = self.view.as_ref()?;
        let [count, width] = view.shape();
        Some(count * width * view.frames())
    }

    /// The view as tables of single members' states, of which there are so many each; none if it is no such
    /// thing, or there is none.
    pub(crate) fn view_table(&self, states: &[usize]) -> Option<ViewTable> {
        let view = self.view.as_ref().filter(|view| view.frames() == 1)?;
        let [count, width] = view.shape();
        view_table(states, count * width, |states, out| view.write(states, &[], out))
    }

    /// The neural network that reads it.
    pub fn architecture(&self, widths: &Widths, outputs: usize) -> Architecture {
        let slots = self.group.len();
        let dimension = widths.embedding;
        let mut symbols = Vec::new();
        if self.view.is_none() {
            symbols.push(Symbols { slots, vocabulary: self.states, dimension });
        }
        if self.with_actions {
            symbols.push(Symbols { slots, vocabulary: self.actions, dimension });
        }
        let rows = self.view.as_ref().map(|view| {
            let [count, width] = view.shape();
            Rows { count: count * view.frames(), width, hidden: widths.row_hidden }
        });
        Architecture { rows, symbols, hidden: widths.hidden.clone(), outputs }
    }

    /// Adds step k of a trajectory as a sample, with `action(m)` of every member m.
    pub fn encode_step(
        &self,
        trajectory: &Trajectory,
        k: usize,
        action: impl Fn(usize) -> u8,
        inputs: &mut Inputs,
    ) {
        let members = || self.group.iter().map(|&m| m as usize);
        match &self.view {
            Some(view) => {
                let [count, width] = view.shape();
                for frame in 0..view.frames() {
                    let step = k.saturating_sub(frame);
                    inputs.states.clear();
                    inputs.states.extend(members().map(|m| trajectory.states(m)[step]));
                    let first = inputs.rows.len();
                    inputs.rows.resize(first + count * width, 0.0);
                    view.write(&inputs.states, trajectory.global_state(step), &mut inputs.rows[first..]);
                }
            }
            None => inputs.symbols.extend(members().map(|m| trajectory.states(m)[k])),
        }
        if self.with_actions {
            inputs.symbols.extend(members().map(action));
        }
        inputs.size += 1;
    }

    /// Makes the first steps of trajectories, so many of each, the only samples.
    pub fn encode<'t>(
        &self,
        trajectories: impl IntoIterator<Item = (&'t Trajectory, usize)>,
        inputs: &mut Inputs,
    ) {
        inputs.clear();
        for (trajectory, steps) in trajectories {
            for k in 0..steps {
                self.encode_step(trajectory, k, |m| trajectory.actions(m)[k], inputs);
            }
        }
    }
}
