//! The constants of MAPPO-Lagrangian, as `[mappo]` has them.

use serde::{Deserialize, Serialize};

use crate::base::schedule::Schedule;
use crate::{Error, Result};

/// Whose rewards an agent learns from, and how far its critics see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The team's mean reward; critics see every state; agents are updated one after another, each told how the laws of
    /// those before it have changed.
    Global,
    /// The agent's own reward; critics see N_i^κ; agents are updated by themselves.
    Local,
    /// As `Local` with the sum of the rewards in N_i^κ. The cost stays the agent's own.
    Aggregate,
}

/// How far an actor sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActorSees {
    /// Itself.
    Local,
    /// N_i^κ.
    Khop,
    /// Everyone it is connected with.
    Global,
}

impl ActorSees {
    /// Its radius among `agents` agents.
    pub fn radius(self, kappa: usize, agents: usize) -> usize {
        match self {
            ActorSees::Local => 0,
            ActorSees::Khop => kappa,
            ActorSees::Global => agents,
        }
    }
}

/// Whether known defects of the published programs are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Behaviour {
    /// Values that are too large by more than `huber` go unpunished, reward and cost share one normaliser, and every
    /// multiplier is driven by the constraint's mean over the agents.
    Faithful,
    /// The Huber loss has both its sides, every critic its normaliser, and λ_i is driven by agent i's own constraint.
    Corrected,
}

/// `[mappo]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MappoRule {
    /// `global`, `local` or `aggregate`.
    pub scope: Scope,
    /// `local`, `khop` or `global`.
    pub actor_sees: ActorSees,
    /// `corrected` or `faithful`.
    pub behaviour: Behaviour,
    /// Adam's step for actors.
    pub learning_rate: f64,
    /// Adam's step for critics.
    pub critic_learning_rate: f64,
    /// Passes over the batch.
    pub epochs: usize,
    /// Parts of the batch, each a gradient step; from 2 on they are shuffled.
    pub minibatches: usize,
    /// Ratios count between 1 − `clip` and 1 + `clip`.
    pub clip: f64,
    /// λ of generalised advantage estimation.
    pub lambda_gae: f64,
    /// Weight of the policies' entropy.
    pub entropy: f64,
    /// Start of every multiplier.
    pub lambda_0: f64,
    /// Step of the multipliers.
    pub lambda_rate: f64,
    /// How far a normalised value may move in an iteration.
    pub value_clip: f64,
    /// Errors of normalised values beyond which the loss is linear.
    pub huber: f64,
    /// Largest norm of a gradient.
    pub max_gradient: f64,
    /// Added to the standard deviation that advantages are divided by.
    pub advantage_epsilon: f64,
    /// Dimension of the embedding of a state in critics.
    pub embedding: usize,
    /// Width of the layer that each row of a world's own view goes through in critics.
    pub row_hidden: usize,
    /// Widths of the critics' hidden layers.
    pub hidden: Vec<usize>,
    /// Change of both learning rates over the iterations.
    pub decay: Schedule,
}

impl Default for MappoRule {
    fn default() -> Self {
        MappoRule {
            scope: Scope::Global,
            actor_sees: ActorSees::Khop,
            behaviour: Behaviour::Corrected,
            learning_rate: 5e-4,
            critic_learning_rate: 5e-4,
            epochs: 5,
            minibatches: 1,
            clip: 0.2,
            lambda_gae: 0.95,
            entropy: 0.01,
            lambda_0: 0.78,
            lambda_rate: 1e-5,
            value_clip: 0.2,
            huber: 10.0,
            max_gradient: 10.0,
            advantage_epsilon: 1e-5,
            embedding: 4,
            row_hidden: 32,
            hidden: vec![64, 64],
            decay: Schedule::default(),
        }
    }
}

/// Passes and parts that counters have room for.
const MOST: usize = 1 << 24;

/// Units of a layer.
const WIDEST: usize = 1 << 16;

impl MappoRule {
    /// Whether every key is in its range; the schedule is checked with the others.
    pub fn check(&self) -> Result<()> {
        let not_negative = [
            ("learning_rate", self.learning_rate),
            ("critic_learning_rate", self.critic_learning_rate),
            ("entropy", self.entropy),
            ("lambda_0", self.lambda_0),
            ("lambda_rate", self.lambda_rate),
        ];
        let above_zero = [("huber", self.huber), ("advantage_epsilon", self.advantage_epsilon)];
        let limits =
            [("clip", self.clip), ("value_clip", self.value_clip), ("max_gradient", self.max_gradient)];
        let refuse = |key: &str, message: String| Err(Error::config(format!("mappo.{key}"), message));
        for (key, value) in not_negative {
            if !(value.is_finite() && value >= 0.0) {
                return refuse(key, format!("{value}; a finite number of at least 0 is needed"));
            }
        }
        for (key, value) in above_zero {
            if !(value.is_finite() && value > 0.0) {
                return refuse(key, format!("{value}; a finite number above 0 is needed"));
            }
        }
        for (key, value) in limits {
            if value.is_nan() || value <= 0.0 {
                return refuse(key, format!("{value}; a number above 0 is needed, `inf` for none"));
            }
        }
        if !(0.0..=1.0).contains(&self.lambda_gae) {
            return refuse("lambda_gae", format!("{}; allowed are 0 to 1", self.lambda_gae));
        }
        for (key, value) in [("epochs", self.epochs), ("minibatches", self.minibatches)] {
            if !(1..=MOST).contains(&value) {
                return refuse(key, format!("{value}; allowed are 1 to {MOST}"));
            }
        }
        let hidden = self.hidden.iter().enumerate().map(|(k, &width)| (format!("hidden.{k}"), width));
        let named = [("embedding".to_string(), self.embedding), ("row_hidden".to_string(), self.row_hidden)];
        for (key, width) in named.into_iter().chain(hidden) {
            if !(1..=WIDEST).contains(&width) {
                return refuse(&key, format!("{width}; a layer has 1 to {WIDEST} units"));
            }
        }
        Ok(())
    }
}
