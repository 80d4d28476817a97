//! `primal-dual`, and `penalty`: the same with multipliers that stay where they start.

use super::kind::{AlgorithmKind, Plan, Task};
use super::{Algorithm, PrimalDual};
use crate::Result;
use crate::learn::critic::CriticContext;

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

    fn build(&self, mut plan: Plan, task: Task) -> Result<Box<dyn Algorithm>> {
        let (world, problem) = (&*task.world, &*task.problem);
        plan.check_memory(problem)?;
        plan.scale_dual(problem, world.graph().total());
        if self.is_held {
            plan.dual = plan.dual.held();
        }
        let policy = self.policy(&plan, world)?;
        let critic = plan.critic.build(CriticContext {
            world,
            problem,
            policy: &*policy,
            kappa_q: plan.kappa_q,
            batch: plan.batch,
            horizon: plan.horizon,
            stream: &plan.stream(),
        })?;
        Ok(Box::new(PrimalDual::new(task, policy, critic, plan)?))
    }
}
