//! Policies as data: what `phalanx export --to json` writes, and how to act on it.
//!
//! Everything that decides is in the file: no code of a world is needed. A policy that reads the states of
//! its neighbourhood is a table, a sum of weights, or a neural network over them; one that reads numbers,
//! which a world or a sensor works out, is a neural network.

use serde::{Deserialize, Serialize};

/// Name of the format, in every file.
pub const FORMAT: &str = "phalanx-policy";
/// Its version.
pub const VERSION: u32 = 1;

/// The policies of all agents of a graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policies {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// κ: how many hops an agent sees.
    pub kappa: usize,
    /// Networks, which agents name by their place here; several may name the same one.
    pub networks: Vec<Network>,
    /// One per agent, by number.
    pub agents: Vec<AgentPolicy>,
}

/// The policy of one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentPolicy {
    /// Its number in the graph.
    pub agent: u32,
    /// Whom it talks to: the agents one hop away, ascending.
    pub neighbours: Vec<u32>,
    /// Whose states it reads: the agents within κ hops, itself among them, ascending.
    pub members: Vec<u32>,
    /// How many states each member has.
    pub states: Vec<usize>,
    /// Each member's most frequent state in training, for when it is not heard of.
    pub usual: Vec<u8>,
    /// How many actions it has.
    pub actions: usize,
    /// From what it reads to probabilities of its actions.
    pub rule: Rule,
}

/// From what an agent reads to probabilities of its actions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Rule {
    /// A row of probabilities for every joint state of the members, the last member's state running fastest.
    Table {
        /// `[joint state][action]`.
        probabilities: Vec<Vec<f64>>,
    },
    /// Soft-max of the sum of the rows of `weights` that the terms name, in their order.
    Linear {
        /// Each names one row.
        terms: Vec<Term>,
        /// `[feature][action]`.
        weights: Vec<Vec<f64>>,
    },
    /// Soft-max of a neural network over the members' states, one symbol each.
    Symbols {
        /// Its place among the neural networks.
        network: usize,
    },
    /// Soft-max of a neural network over numbers that a world or a sensor works out, followed by those of the
    /// site.
    Numbers {
        /// Its place among the neural networks.
        network: usize,
        /// Numbers that tell what the own place is like, the last ones that the neural network reads.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        site: Vec<f32>,
    },
    /// Soft-max of a neural network over sums: for every state s and number d of a place, Σ over the members
    /// in state s of number d of their place, `[s][d]`; then the numbers of the own site.
    Places {
        /// Its place among the neural networks.
        network: usize,
        /// Numbers that tell where each member is, `[member][d]`.
        places: Vec<Vec<f32>>,
        /// Numbers that tell what the own place is like.
        site: Vec<f32>,
    },
}

/// Names the row `first` + Σ stride · digit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Term {
    /// The row where all digits are 0.
    pub first: usize,
    /// What is added to it.
    pub digits: Vec<Digit>,
}

/// The smaller of `cap` and Σ over some members of a number that their state stands for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Digit {
    /// How many rows one more is.
    pub stride: usize,
    /// The most that it can be.
    pub cap: usize,
    /// Places among the agent's members.
    pub members: Vec<usize>,
    /// By state.
    pub values: Vec<usize>,
}

/// A feed-forward neural network in single precision. Rows go through one layer each, all through the same;
/// what comes out stands before the embeddings of the symbols. `x · weights + biases` follow, with max(0, ·)
/// after every layer but the last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// How many rows of numbers it reads, one after the other.
    pub rows: usize,
    /// The layer of the rows; none if there are no rows.
    pub row_layer: Option<Layer>,
    /// The vector that stands for each symbol, `[symbol][dimension]`; empty if there are none.
    pub embedding: Vec<Vec<f32>>,
    /// The other layers.
    pub layers: Vec<Layer>,
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    /// `[input][output]`.
    pub weights: Vec<Vec<f32>>,
    /// `[output]`.
    pub biases: Vec<f32>,
}
