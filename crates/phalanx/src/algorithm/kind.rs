//! The algorithms that a run can choose from, and what they are made from.

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Algorithm;
use super::cuda::DeviceChoice;
use super::exact::ExactKind;
use super::mappo::{MappoKind, MappoSettings};
use super::primal_dual::PrimalDualKind;
use crate::Result;
use crate::base::key;
use crate::base::limits::check_memory;
use crate::base::stream::Stream;
use crate::distributed::Halo;
use crate::learn::actor::ActorSettings;
use crate::learn::critic::{CriticSection, STEPS, StepsKeys};
use crate::learn::dual::DualSettings;
use crate::learn::shield::SafetySettings;
use crate::policy::{Baseline, GradientSettings, LinkSettings, Policy, PolicySection};
use crate::utility::problem::{Problem, Scaling};
use crate::world::World;

/// What an algorithm is made from: the configuration without its world and problem.
#[derive(Debug, Clone)]
pub struct Plan {
    /// T.
    pub iterations: usize,
    /// Seed of all randomness.
    pub seed: u64,
    /// Where it runs.
    pub device: DeviceChoice,
    /// H.
    pub horizon: usize,
    /// B.
    pub batch: usize,
    /// κ: radius of policies.
    pub kappa: usize,
    /// κ_q: radius of truncated Q-functions.
    pub kappa_q: usize,
    /// κ_g ≤ κ_q: radius within which neighbours' constraints count.
    pub kappa_g: usize,
    /// Share of the running occupancy that is kept at an iteration.
    pub occupancy_average: f64,
    /// `[policy]`.
    pub policy: PolicySection,
    /// `[critic]`.
    pub critic: CriticSection,
    /// `[dual]`.
    pub dual: DualSettings,
    /// `[actor]`.
    pub actor: ActorSettings,
    /// `[safety]`.
    pub safety: SafetySettings,
    /// `[links]`.
    pub links: LinkSettings,
    /// `[mappo]`.
    pub mappo: MappoSettings,
}

impl Plan {
    /// Randomness of the run.
    pub fn stream(&self) -> Stream {
        Stream::new(self.seed)
    }

    /// Brings `[dual]` into the scaling of a problem of `agents` agents.
    pub(super) fn scale_dual(&mut self, problem: &Problem, agents: usize) {
        self.dual.slack_factor = if problem.scaling == Scaling::Paper { 1.0 / agents as f64 } else { 1.0 };
    }

    /// How line 8 weighs samples, for a graph of `agents` agents.
    pub(super) fn gradient_settings(&self, problem: &Problem, agents: usize) -> GradientSettings {
        let mut weights = problem.occupancy_weights(self.horizon, self.batch);
        match problem.scaling {
            Scaling::Normalised => {}
            Scaling::Paper => weights.iter_mut().for_each(|w| *w /= agents as f64),
            Scaling::Authors => weights.fill(1.0 / self.batch as f64),
        }
        GradientSettings {
            weights,
            baseline: self.actor.baseline.unwrap_or(Baseline::None),
            neighbour_mean: problem.scaling == Scaling::Authors,
            own_share: 0.0,
            all_actions: self.actor.all_actions,
            normalise: self.actor.normalise,
            entropy: 0.0,
        }
    }

    /// Whether weights and trajectories fit into memory; the larger part is blamed.
    pub(super) fn check_memory(&self, problem: &Problem) -> Result<()> {
        let steps = *self.critic.keys::<StepsKeys>()?.steps;
        let [n, batch, horizon, steps, tail] =
            [problem.agents.len(), self.batch, self.horizon, steps, self.critic.batch_tail()]
                .map(|x| x as u128);
        let pair = problem.pair_bytes(problem.agents.len());
        // An f64 for each weight and step size.
        let evaluation = (pair + 8) * (steps + 1);
        let of_batch = pair * batch * (horizon + tail) + 16 * horizon;
        check_memory(evaluation, STEPS, &format!("{steps} steps of {n} agents"))?;
        let field = if batch > horizon { key::BATCH } else { key::HORIZON };
        let what = format!("{batch} trajectories of {} steps of {n} agents", horizon + tail);
        check_memory(evaluation + of_batch, field, &what)
    }
}

/// What an algorithm works on: this process's part of the graph.
#[derive(Clone)]
pub struct Task {
    /// Where its agents live.
    pub world: Arc<dyn World>,
    /// What is wanted of them.
    pub problem: Arc<Problem>,
    /// Borders with other processes.
    pub halo: Arc<Halo>,
}

impl Task {
    /// The whole graph in one process.
    pub fn single(world: Arc<dyn World>, problem: Arc<Problem>) -> Self {
        let halo = Arc::new(Halo::single(world.graph().agents()));
        Task { world, problem, halo }
    }
}

/// A kind of algorithm, and what is made from it.
pub trait AlgorithmKind: Debug + Sync {
    /// Whether it samples nothing.
    fn is_exact(&self) -> bool {
        false
    }

    /// Whether the graph can be partitioned over processes: nobody looks beyond neighbours.
    fn is_local(&self) -> bool {
        false
    }

    /// Whether the configuration has what it needs.
    fn check(&self, plan: &Plan) -> Result<()> {
        let _ = plan;
        Ok(())
    }

    /// The policy that it trains, as it is at the start.
    fn policy(&self, plan: &Plan, world: &dyn World) -> Result<Box<dyn Policy>> {
        plan.links.over(plan.policy.build(world, plan.kappa, &plan.stream())?, world, plan.kappa)
    }

    /// The algorithm.
    fn build(&self, plan: Plan, task: Task) -> Result<Box<dyn Algorithm>>;
}

/// One line per kind; the first is the default.
static KINDS: &[(&str, &dyn AlgorithmKind)] = &[
    ("primal-dual", &PrimalDualKind { is_held: false }),
    ("exact", &ExactKind),
    ("penalty", &PrimalDualKind { is_held: true }),
    ("mappo-l", &MappoKind),
];

/// The chosen kind.
#[derive(Debug, Clone, Copy)]
pub struct AlgorithmChoice {
    /// Its name in the configuration.
    pub name: &'static str,
    kind: &'static dyn AlgorithmKind,
}

impl Default for AlgorithmChoice {
    fn default() -> Self {
        let (name, kind) = KINDS[0];
        AlgorithmChoice { name, kind }
    }
}

impl AlgorithmChoice {
    /// Names of the kinds that can run on a graph partitioned over processes.
    pub fn local_names() -> impl Iterator<Item = &'static str> {
        KINDS.iter().filter(|(_, kind)| kind.is_local()).map(|(name, _)| *name)
    }
}

impl Deref for AlgorithmChoice {
    type Target = dyn AlgorithmKind;

    fn deref(&self) -> &Self::Target {
        self.kind
    }
}

impl Serialize for AlgorithmChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for AlgorithmChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let wanted = String::deserialize(deserializer)?;
        match KINDS.iter().find(|(name, _)| *name == wanted) {
            Some(&(name, kind)) => Ok(AlgorithmChoice { name, kind }),
            None => {
                let names: Vec<String> = KINDS.iter().map(|(name, _)| format!("`{name}`")).collect();
                let names = names.join(", ");
                Err(D::Error::custom(format!("unknown variant `{wanted}`, expected one of {names}")))
            }
        }
    }
}
