//! What the theory says about a problem at a policy, beside the truth: which assumptions hold, how large the
//! bounds are, whether the constraints can be met, and what to change.
//!
//! Everything is computed by enumeration, so only small graphs can be checked.

mod advice;
mod decay;
mod feasibility;
mod td;
mod theorems;
mod truncation;

use serde::Serialize;

pub use decay::{ClosedLoop, DecayCheck, Influence};
pub use feasibility::{ConstraintCheck, Feasibility};
pub use td::{TdCheck, TdMeasured};
pub use theorems::Theorems;
pub use truncation::{Multipliers, TruncationCheck, TruncationRow};

use super::evaluate::{self, Evaluator};
use crate::base::range::OpenUnit;
use crate::exact::{Case, Chain, Decay, System, Values};
use crate::learn::critic::StepsKeys;
use crate::learn::dual::DualSettings;
use crate::learn::shadow::Signals;
use crate::policy::{Parameterisation, Tabular};
use crate::utility::problem::Problem;
use crate::world::{Evolution, World};
use crate::{Error, Ragged, Result};

/// What is checked.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The environment.
    pub world: &'a dyn World,
    /// Objectives and constraints.
    pub problem: &'a Problem,
    /// The policy at which errors are measured.
    pub policy: &'a Tabular,
    /// κ.
    pub kappa: usize,
    /// κ_q.
    pub kappa_q: usize,
    /// μ; all 0 if there is none yet.
    pub mu: &'a Ragged<f64>,
    /// Upper end of U, possibly infinite.
    pub mu_max: f64,
    /// How multipliers are updated, if that is known.
    pub dual: Option<&'a DualSettings>,
    /// T, if it is known.
    pub iterations: Option<usize>,
    /// K: updates of a TD critic.
    pub critic_steps: usize,
    /// α of a line.
    pub mixing: Option<f64>,
    /// Seed of the trajectories that TD is tried on.
    pub seed: u64,
}

impl<'a> TryFrom<&'a Evaluator> for Subject<'a> {
    type Error = Error;

    fn try_from(evaluator: &'a Evaluator) -> Result<Self> {
        let config = evaluator.config();
        if matches!(evaluator.world().evolution(), Evolution::Joint(_)) {
            let message =
                "is simulated whole; only worlds in which every agent has a law of its own can be checked";
            return Err(crate::world::kind_error(message));
        }
        config.links.refuse("the theory is of links that lose nothing; set it to 0")?;
        let policy = evaluator.policy().tabular().ok_or_else(|| {
            let message = "only tables (`softmax`, `direct`) can be checked: their laws are enumerated";
            crate::policy::kind_error(message)
        })?;
        Ok(Subject {
            world: evaluator.world(),
            problem: evaluator.problem(),
            policy,
            kappa: config.kappa,
            kappa_q: config.kappa_q,
            mu: evaluator.mu(),
            mu_max: *config.dual.mu_max,
            dual: Some(&config.dual),
            iterations: Some(config.iterations),
            critic_steps: *config.critic.keys::<StepsKeys>()?.steps,
            mixing: config.world.settings().and_then(|settings| settings.mixing()),
            seed: config.seed,
        })
    }
}

impl<'a> From<&'a Case> for Subject<'a> {
    fn from(case: &'a Case) -> Self {
        Subject {
            world: &case.world,
            problem: &case.problem,
            policy: &case.policy,
            kappa: case.kappa,
            kappa_q: case.kappa_q,
            mu: &case.mu,
            mu_max: case.mu_bar,
            dual: None,
            iterations: case.algorithm.map(|algorithm| algorithm.iterations),
            critic_steps: *StepsKeys::default().steps,
            mixing: None,
            seed: 1,
        }
    }
}

/// What the theorems are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Targets {
    /// ε: an O(ε)-FOSP.
    pub epsilon: f64,
    /// δ: probability with which it may be missed.
    pub delta: f64,
}

/// The result of a check.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// How large the graph is.
    pub sizes: Sizes,
    /// assump:decay_transition.
    pub decay: DecayCheck,
    /// The certificate that takes policies into account.
    pub closed_loop: ClosedLoop,
    /// Errors of truncated gradients by κ_q.
    pub truncation: TruncationCheck,
    /// Whether the constraints can be met, and at what price.
    pub feasibility: Feasibility,
    /// What the theorems ask for.
    pub theorems: Theorems,
    /// What TD learning is promised and what it reaches.
    pub td: TdCheck,
    /// What holds and what to change, in words.
    pub advice: Vec<String>,
}

/// How large a graph is.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Sizes {
    /// n.
    pub agents: usize,
    /// |S|.
    pub joint_states: usize,
    /// |A|.
    pub joint_actions: u128,
    /// γ.
    pub gamma: f64,
    /// κ.
    pub kappa: usize,
    /// κ_q.
    pub kappa_q: usize,
    /// The longest of the shortest paths.
    pub diameter: usize,
}

/// What all parts of a check look at.
struct Point<'a> {
    subject: &'a Subject<'a>,
    chain: &'a Chain<'a>,
    signals: &'a Signals,
    values: &'a Values,
    decay: &'a Decay,
    /// N_i^{κ_q}.
    groups: &'a Ragged<u32>,
    sizes: Sizes,
}

impl Point<'_> {
    /// M_r at this policy: the largest entry of a shadow reward.
    fn reward_bound(&self) -> f64 {
        self.signals.rewards.data().iter().fold(0.0, |largest, r| f64::max(largest, r.abs()))
    }

    /// Whether the score has a bound, which all of the paper's bounds need: soft-max policies do, direct ones
    /// do not (errata 9).
    fn has_bounded_score(&self) -> bool {
        self.subject.policy.parameterisation() == Parameterisation::Softmax
    }
}

impl Check {
    /// Checks `subject`.
    ///
    /// # Errors
    /// Targets outside (0, 1); a graph too large for exact computations, or without a start law; a policy
    /// at which a utility has no value. What is too large for a single part is said in that part.
    pub fn new(subject: &Subject<'_>, targets: Targets) -> Result<Self> {
        OpenUnit::check("epsilon", targets.epsilon)?;
        OpenUnit::check("delta", targets.delta)?;
        let system = System::new(subject.world, subject.problem, subject.policy)?;
        let chain = system.under(subject.policy)?;
        let signals = chain.signals(subject.problem);
        for (i, (f, g)) in signals.objective.iter().zip(signals.slack.iter()).enumerate() {
            evaluate::check(*f, i, "f")?;
            g.iter().try_for_each(|&g| evaluate::check(g, i, "g"))?;
        }
        let values = chain.values(&signals.rewards)?;
        let dynamics = &system.dynamics;
        let farthest = dynamics.graph.distances().flatten().flatten().max();
        let sizes = Sizes {
            agents: dynamics.agents(),
            joint_states: dynamics.joint_states,
            joint_actions: dynamics.joint_actions(),
            gamma: system.gamma,
            kappa: subject.kappa,
            kappa_q: subject.kappa_q,
            diameter: farthest.unwrap_or(0) as usize,
        };
        let point = Point {
            subject,
            chain: &chain,
            signals: &signals,
            values: &values,
            decay: &Decay::new(dynamics, system.gamma),
            groups: &dynamics.graph.neighbourhoods(subject.kappa_q),
            sizes,
        };
        let feasibility = Feasibility::new(&point);
        let (multipliers, mu) = truncation::multipliers(&point, &feasibility);
        let mut check = Check {
            sizes,
            decay: DecayCheck::new(&point),
            closed_loop: ClosedLoop::new(&point, &mu),
            truncation: TruncationCheck::new(&point, multipliers, &mu),
            theorems: Theorems::new(&point, targets)?,
            td: TdCheck::new(&point, targets.delta)?,
            feasibility,
            advice: Vec::new(),
        };
        check.advice = advice::advice(&check, subject);
        Ok(check)
    }
}

/// The result, or a note why there is none; each reason once.
fn found<T>(result: Result<T>, notes: &mut Vec<String>) -> Option<T> {
    let note = match result {
        Ok(found) => return Some(found),
        Err(error) => error.to_string(),
    };
    if !notes.contains(&note) {
        notes.push(note);
    }
    None
}
