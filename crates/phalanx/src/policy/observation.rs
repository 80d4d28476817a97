//! What an agent's networks read of its neighbourhood: a world's own view of the states, or one symbol a neighbour.

use crate::neural::{Architecture, Rows, Symbols};
use crate::world::Trajectory;
use crate::world::{View, World};

/// The inputs of one agent's network over a group of neighbours.
#[derive(Debug)]
pub struct ObservationEncoder {
    group: Vec<u32>,
    view: Option<Box<dyn View>>,
    /// Largest number of states and actions in the group.
    states: usize,
    actions: usize,
    /// Whether the neighbours' actions are read too.
    with_actions: bool,
}

/// Widths of a network.
#[derive(Debug, Clone)]
pub struct Widths {
    /// Dimension of embeddings.
    pub embedding: usize,
    /// Units that a row of a view is turned into.
    pub row_hidden: usize,
    /// Hidden layers.
    pub hidden: Vec<usize>,
}

/// Inputs of many samples, ready for a network.
#[derive(Debug, Default)]
pub struct Inputs {
    /// Number of samples.
    pub size: usize,
    /// `[sample][row][column]`.
    pub rows: Vec<f32>,
    /// `[sample][slot]`.
    pub symbols: Vec<u8>,
    states: Vec<u8>,
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

    /// N_i.
    pub fn group(&self) -> &[u32] {
        &self.group
    }

    /// How many numbers a sample is where it is a world's own view, all its moments together.
    pub fn numbers(&self) -> Option<usize> {
        let view = self.view.as_ref()?;
        let [count, width] = view.shape();
        Some(count * width * view.frames())
    }

    /// The network that reads it.
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
    pub fn push(&self, trajectory: &Trajectory, k: usize, action: impl Fn(usize) -> u8, inputs: &mut Inputs) {
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
                    view.write(&inputs.states, trajectory.shared(step), &mut inputs.rows[first..]);
                }
            }
            None => inputs.symbols.extend(members().map(|m| trajectory.states(m)[k])),
        }
        if self.with_actions {
            inputs.symbols.extend(members().map(action));
        }
        inputs.size += 1;
    }

    /// Adds the first `steps` steps of a trajectory.
    pub fn push_steps(&self, trajectory: &Trajectory, steps: usize, inputs: &mut Inputs) {
        for k in 0..steps {
            self.push(trajectory, k, |m| trajectory.actions(m)[k], inputs);
        }
    }
}

impl Inputs {
    /// Forgets all samples.
    pub fn clear(&mut self) {
        self.size = 0;
        self.rows.clear();
        self.symbols.clear();
    }

    /// All samples as a batch.
    pub fn batch(&self) -> crate::neural::Batch<'_, f32> {
        crate::neural::Batch { size: self.size, rows: &self.rows, symbols: &self.symbols }
    }

    /// Adds sample `k` of `other`.
    pub fn copy(&mut self, other: &Inputs, k: usize) {
        let (rows, symbols) = (other.rows.len() / other.size, other.symbols.len() / other.size);
        self.rows.extend_from_slice(&other.rows[k * rows..(k + 1) * rows]);
        self.symbols.extend_from_slice(&other.symbols[k * symbols..(k + 1) * symbols]);
        self.size += 1;
    }
}
