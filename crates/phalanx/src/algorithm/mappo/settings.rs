//! The constants of MAPPO-Lagrangian, as `[mappo]` has them.

use serde::{Deserialize, Serialize};

use super::Mappo;
use crate::algorithm::Algorithm;
use crate::algorithm::kind::{AlgorithmKind, Plan, Task};
use crate::base::key;
use crate::base::limits::check_memory;
use crate::base::range::{Fraction, Limit, NonNegative, Positive, Rounds};
use crate::base::schedule::Schedule;
use crate::policy::observation::Widths;
use crate::policy::{self, NeuralPolicy, Policy};
use crate::world::World;
use crate::{Error, Result};

/// Whose rewards an agent learns from, and how far its critics see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The team's mean reward; critics see every state; agents are updated one after another, each told how
    /// the laws of those before it have changed.
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
    /// Values that are too large by more than `huber` go unpunished, reward and cost share one normaliser,
    /// and every multiplier is driven by the constraint's mean over the agents.
    Faithful,
    /// The Huber loss has both its sides, every critic its normaliser, and λ_i is driven by agent i's own
    /// constraint.
    Corrected,
}

/// `[mappo]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MappoSettings {
    /// `global`, `local` or `aggregate`.
    pub scope: Scope,
    /// `local`, `khop` or `global`.
    pub actor_sees: ActorSees,
    /// `corrected` or `faithful`.
    pub behaviour: Behaviour,
    /// Adam's step for actors.
    pub learning_rate: NonNegative,
    /// Adam's step for critics.
    pub critic_learning_rate: NonNegative,
    /// Passes over the batch.
    pub epochs: Rounds,
    /// Parts of the batch, each a gradient step; from 2 on they are shuffled.
    pub minibatches: Rounds,
    /// Ratios count between 1 − `clip` and 1 + `clip`.
    pub clip: Limit,
    /// λ of generalised advantage estimation.
    pub lambda_gae: Fraction,
    /// Weight of the policies' entropy.
    pub entropy: NonNegative,
    /// Start of every multiplier.
    pub lambda_0: NonNegative,
    /// Step of the multipliers.
    pub lambda_rate: NonNegative,
    /// How far a normalised value may move in an iteration.
    pub value_clip: Limit,
    /// Errors of normalised values beyond which the loss is linear.
    pub huber: Positive,
    /// Largest norm of a gradient.
    pub max_gradient: Limit,
    /// Added to the standard deviation that advantages are divided by.
    pub advantage_epsilon: Positive,
    /// Dimension of the embedding of a state in critics.
    pub embedding: usize,
    /// Width of the layer that each row of a world's own view goes through in critics.
    pub row_hidden: usize,
    /// Widths of the critics' hidden layers.
    pub hidden: Vec<usize>,
    /// Change of both learning rates over the iterations.
    pub decay: Schedule,
}

impl Default for MappoSettings {
    fn default() -> Self {
        MappoSettings {
            scope: Scope::Global,
            actor_sees: ActorSees::Khop,
            behaviour: Behaviour::Corrected,
            learning_rate: NonNegative(5e-4),
            critic_learning_rate: NonNegative(5e-4),
            epochs: Rounds(5),
            minibatches: Rounds(1),
            clip: Limit(0.2),
            lambda_gae: Fraction(0.95),
            entropy: NonNegative(0.01),
            lambda_0: NonNegative(0.78),
            lambda_rate: NonNegative(1e-5),
            value_clip: Limit(0.2),
            huber: Positive(10.0),
            max_gradient: Limit(10.0),
            advantage_epsilon: Positive(1e-5),
            embedding: 4,
            row_hidden: 32,
            hidden: vec![64, 64],
            decay: Schedule::default(),
        }
    }
}

impl MappoSettings {
    /// Widths of the critics' neural networks.
    pub fn widths(&self) -> Widths {
        Widths { embedding: self.embedding, row_hidden: self.row_hidden, hidden: self.hidden.clone() }
    }
}

/// `mappo-l`: MAPPO-Lagrangian, to compare with.
#[derive(Debug)]
pub(in crate::algorithm) struct MappoKind;

impl MappoKind {
    fn networks(plan: &Plan, world: &dyn World) -> Result<NeuralPolicy> {
        let networks = plan.policy.neural().ok_or_else(needs_networks)?;
        let radius = plan.mappo.actor_sees.radius(plan.kappa, world.graph().agents());
        networks.build(world, radius, &plan.stream())
    }
}

fn needs_networks() -> Error {
    policy::kind_error(format!("{} = \"mappo-l\" needs `network`", key::ALGORITHM))
}

impl AlgorithmKind for MappoKind {
    fn check(&self, plan: &Plan) -> Result<()> {
        plan.policy.neural().map(|_| ()).ok_or_else(needs_networks)
    }

    fn policy(&self, plan: &Plan, world: &dyn World) -> Result<Box<dyn Policy>> {
        Ok(Box::new(MappoKind::networks(plan, world)?))
    }

    fn build(&self, plan: Plan, task: Task) -> Result<Box<dyn Algorithm>> {
        let Task { world, problem, .. } = task;
        plan.check_memory(&problem)?;
        let rule = &plan.mappo;
        let samples = plan.batch as u128 * plan.horizon as u128;
        // Advantages and rewards along the batch, and the order of an agent's samples on every thread.
        let numbers: u128 = problem.agents.iter().map(|agent| 3 + agent.constraints.len() as u128).sum();
        check_memory(8 * numbers * samples, key::BATCH, &format!("advantages along {samples} steps"))?;
        let orders = if *rule.minibatches > 1 { *rule.epochs as u128 } else { 0 };
        let bytes = 4 * orders * samples * rayon::current_num_threads() as u128;
        check_memory(bytes, "mappo.epochs", &format!("{} passes over {samples} steps", *rule.epochs))?;
        let networks = MappoKind::networks(&plan, &*world)?;
        Ok(Box::new(Mappo::new(world, problem, networks, plan)?))
    }
}
