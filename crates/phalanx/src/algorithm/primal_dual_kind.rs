//! `primal-dual`, and `penalty`: the same with multipliers that stay where they start.

use std::sync::Arc;

use super::kind::{AlgorithmKind, Plan};
use super::{Algorithm, PrimalDual, Settings};
use crate::Result;
use crate::base::schedule::EntropyBonus;
use crate::distributed::Halo;
use crate::learn::critic::CriticContext;
use crate::policy::Baseline;
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
        plan: &Plan<'_>,
        world: &Arc<dyn World>,
        problem: &Arc<Problem>,
        halo: Arc<Halo>,
    ) -> Result<Box<dyn Algorithm>> {
        plan.check_memory(problem)?;
        let (stream, actor) = (plan.stream(), plan.actor);
        let dual = plan.dual_of(problem, world.graph().total());
        let dual = if self.is_held { dual.held() } else { dual };
        let settings = Settings {
            iterations: plan.iterations,
            horizon: plan.horizon,
            batch: plan.batch,
            kappa_q: plan.kappa_q,
            kappa_g: plan.kappa_g,
            occupancy_average: plan.occupancy_average,
            dual,
            mu_0: *dual.mu_0,
            dual_schedule: dual.schedule,
            baseline: actor.baseline.unwrap_or(Baseline::None),
            all_actions: actor.all_actions,
            entropy: EntropyBonus { weight: *actor.entropy, schedule: actor.entropy_schedule },
            optimizer: actor.optimizer,
            clip: *actor.clip,
            discount: actor.discount,
            normalise: actor.normalise,
            eta_theta: *actor.eta_theta,
            actor_schedule: actor.schedule,
            theta_box: plan.policy.theta_box(),
        };
        let policy = self.policy(plan, &**world)?;
        let critic = plan.critic.build(CriticContext {
            world: &**world,
            problem,
            policy: &*policy,
            kappa_q: plan.kappa_q,
            batch: plan.batch,
            horizon: plan.horizon,
            stream: &stream,
        })?;
        Ok(Box::new(PrimalDual::new(world.clone(), problem.clone(), policy, critic, settings, stream, halo)?))
    }
}
