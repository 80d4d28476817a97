//! What the theorems ask for: step sizes, iterations, samples. Paper: thm:convergence, thm:sample_complexity.

use serde::Serialize;

use super::{Point, Targets};
use crate::Result;
use crate::base::elementary::pow;
use crate::exact::{Constants, SamplePlan, Steps};
use crate::learn::dual::MU_MAX;

/// Settings that the theorems prove, with the constants that can be proved.
#[derive(Debug, Clone, Serialize)]
pub struct Theorems {
    /// What was asked for.
    #[serde(flatten)]
    pub targets: Targets,
    /// Why there are no constants, and hence nothing else here.
    pub note: Option<String>,
    /// Lipschitz constants. Paper: lemma:properties.
    pub constants: Option<Constants>,
    /// T of the configuration; ε^−1.5, which makes T^−2/3 = ε, if there is none.
    pub iterations: usize,
    /// Step sizes for T iterations in the exact setting. Paper: thm:convergence.
    pub exact: Option<Steps>,
    /// The orders of the sampled setting with every factor taken as 1. Paper: thm:sample_complexity.
    pub orders: Option<SamplePlan>,
    /// Sizes that reach the errors which the proof needs. Paper: thm:sample_complexity, prop:estimators.
    pub explicit: Option<SamplePlan>,
}

impl Theorems {
    pub(super) fn new(point: &Point<'_>, targets: Targets) -> Result<Self> {
        let Targets { epsilon, delta } = targets;
        let subject = point.subject;
        let dynamics = &point.chain.system.dynamics;
        let found = Constants::new(subject.problem, dynamics, subject.mu_max);
        let constants = found.filter(|_| point.has_bounded_score());
        let note = if constants.is_some() {
            None
        } else if !point.has_bounded_score() {
            Some("direct policies have no bound on their score".into())
        } else if subject.mu_max.is_infinite() {
            Some(format!("multipliers have no upper bound: {MU_MAX} is infinite"))
        } else {
            Some("the gradient of some utility has no bound over all occupancies".into())
        };
        let iterations = subject.iterations.unwrap_or(pow(epsilon, -1.5).ceil() as usize);
        let orders = constants.map(|constants| SamplePlan::orders(&constants, epsilon, delta));
        let explicit =
            constants.map(|constants| SamplePlan::explicit(&constants, point.groups, epsilon, delta));
        Ok(Theorems {
            targets,
            note,
            constants,
            iterations,
            exact: constants.map(|constants| Steps::constant(&constants, iterations)),
            orders: orders.transpose()?,
            explicit: explicit.transpose()?,
        })
    }
}
