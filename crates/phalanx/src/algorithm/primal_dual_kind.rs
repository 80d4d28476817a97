//! `primal-dual`, and `penalty`: the same with multipliers that stay where they start.

use std::sync::Arc;

use super::kind::{AlgorithmKind, Plan};
use super::{Algorithm, PrimalDual};
use crate::Result;
use crate::distributed::Halo;
use crate::learn::critic::CriticContext;
use crate::utility::problem::Problem;
use crate::world::World;

/// Algorithm 1 of the paper.
#[derive(Debug)]
pub(super) struct PrimalDualKind {
    /// Multipliers stay at `dual.mu_0`: a fixed penalty on violated constraints, or with 0 and `actor.entropy` a fixed
    /// entropy penalty.
    pub(super) is_held: bool,
}

impl AlgorithmKind for PrimalDualKind {
    fn is_local(&self) -> bool {
        true
    }

    fn build(
        &self,
        mut plan: Plan,
        world: &Arc<dyn World>,
        problem: &Arc<Problem>,
        halo: Arc<Halo>,
    ) -> Result<Box<dyn Algorithm>> {
        plan.check_memory(problem)?;
        plan.scale_dual(problem, world.graph().total());
        if self.is_held {
            plan.dual = plan.dual.held();
        }
        let policy = self.policy(&plan, &**world)?;
        let critic = plan.critic.build(CriticContext {
            world: &**world,
            problem,
            policy: &*policy,
            kappa_q: plan.kappa_q,
            batch: plan.batch,
            horizon: plan.horizon,
            stream: &plan.stream(),
        })?;
        Ok(Box::new(PrimalDual::new(world.clone(), problem.clone(), policy, critic, plan, halo)?))
    }
}
