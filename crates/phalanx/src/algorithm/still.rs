//! A policy that is not trained any more.

use std::time::Duration;

use super::{Algorithm, Stage, Summary};
use crate::base::fields::Fields;
use crate::policy::Policy;
use crate::{Error, Ragged, Result};

/// A policy with its multipliers, to be evaluated: nothing that only training needs.
pub struct Still {
    policy: Box<dyn Policy>,
    mu: Ragged<f64>,
}

impl Still {
    /// A policy and μ.
    pub fn new(policy: Box<dyn Policy>, mu: Ragged<f64>) -> Self {
        Still { policy, mu }
    }
}

impl Algorithm for Still {
    fn step(&mut self) -> Result<Summary> {
        Err(Error::config("algorithm", "this policy is here to be looked at, not to be trained"))
    }

    fn fields(&mut self) -> Fields<'_> {
        Vec::new()
    }

    fn restored(&mut self) {}

    fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    fn mu(&self) -> &Ragged<f64> {
        &self.mu
    }

    fn iteration(&self) -> usize {
        0
    }

    fn start_from(&mut self, theta: Ragged<f64>) {
        *self.policy.theta_mut() = theta;
        self.policy.refresh();
    }

    fn stage_times(&self) -> [Duration; Stage::COUNT] {
        [Duration::ZERO; Stage::COUNT]
    }
}
