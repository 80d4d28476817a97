//! Events of a whole episode, for constraints on their probability. They are no functions of an agent's
//! occupancy: whether something *ever* happens depends on the order of the steps.

use std::sync::Arc;

/// Something that happens to an agent in an episode or not, which its first H steps decide; H is the training
/// horizon, wherever the event is looked at.
#[derive(Debug, Clone, PartialEq)]
pub enum EpisodeEvent {
    /// The agent's state is one of those marked (an entry per state) at one of the steps.
    States(Arc<[bool]>),
    /// The sampled channel of this number is not 0 in one of the steps.
    Channel(usize),
    /// What a cost adds up to over the steps, undiscounted, is above a budget.
    Cost {
        /// What is added up.
        cost: Cost,
        /// What it may add up to.
        budget: f64,
    },
}

/// What a step costs.
#[derive(Debug, Clone, PartialEq)]
pub enum Cost {
    /// By own state and action.
    Table(Arc<[f64]>),
    /// As recorded in the sampled channel of this number.
    Channel {
        /// The number.
        number: usize,
        /// Whether no step pays anything back: then the event is decided as soon as the budget is used up.
        never_negative: bool,
    },
}

/// A bound on the mean cost of the worst episodes, which evaluations judge and training does not see.
#[derive(Debug, Clone, PartialEq)]
pub struct Tail {
    /// The constraint's name.
    pub name: Arc<str>,
    /// What adds up over an episode.
    pub cost: Cost,
    /// The least and the most that a step can cost.
    pub range: [f64; 2],
    /// α: the mean is over the worst 1 − α of the episodes.
    pub level: f64,
    /// The most that it may be.
    pub at_most: f64,
}

impl Cost {
    /// Whether no step pays anything back.
    pub fn never_negative(&self) -> bool {
        match self {
            Cost::Table(table) => table.iter().all(|cost| *cost >= 0.0),
            Cost::Channel { never_negative, .. } => *never_negative,
        }
    }
}
