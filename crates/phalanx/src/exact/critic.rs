//! Truncated Q-functions without error: isolates what a run owes to its critic.

use serde::{Deserialize, Serialize};

use super::{System, Truncated, Truncation};
use crate::base::key::{ALGORITHM, KAPPA_Q};
use crate::learn::critic::{
    Critic, CriticContext, CriticInput, CriticSettings, QTables, QValues, SampleRequest, kind_error,
};
use crate::policy::{self, Tabular};
use crate::utility::problem::Problem;
use crate::world::World;
use crate::{Error, Result};

/// Keys of `[critic]` on truncation: all settings of the critic `exact`, used by the exact algorithm too.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TruncationKeys {
    /// `fixed`, `averaged`, `td` or `none`: which truncated Q.
    pub truncation: Truncation,
}

impl CriticSettings for TruncationKeys {
    fn check(&self, _batch: usize, is_exact: bool) -> Result<()> {
        if is_exact || self.truncation != Truncation::None {
            return Ok(());
        }
        let message = format!(
            "`none` is for {ALGORITHM} = \"exact\"; a critic has tables over neighbourhoods: use fixed, averaged or td, \
             with a larger {KAPPA_Q} if less is to be cut off"
        );
        Err(Error::config("critic.truncation", message))
    }

    fn build(&self, context: CriticContext<'_>) -> Result<Box<dyn Critic>> {
        let CriticContext { world, problem, kappa_q, .. } = context;
        let policy = context
            .policy
            .tabular()
            .ok_or_else(|| policy::kind_error("the critic `exact` needs tables (`softmax` or `direct`)"))?;
        Ok(Box::new(ExactCritic::new(world, problem, policy, kappa_q, self.truncation)?))
    }

    fn enumerates(&self) -> bool {
        true
    }
}

/// Solves for the tables of `critic.truncation` by enumeration; samples nothing.
#[derive(Debug)]
pub struct ExactCritic {
    system: System,
    truncated: Truncated,
    tables: QTables,
}

impl ExactCritic {
    /// For policies shaped like `policy`; fails if the joint space is too large.
    pub fn new(
        world: &dyn World,
        problem: &Problem,
        policy: &Tabular,
        kappa_q: usize,
        kind: Truncation,
    ) -> Result<Self> {
        let system = System::new(world, problem, policy)?;
        let groups = world.graph().neighbourhoods(kappa_q);
        Ok(ExactCritic {
            truncated: Truncated::new(&system, policy, &groups, kind)?,
            tables: QTables::new(world, kappa_q, problem)?,
            system,
        })
    }
}

impl Critic for ExactCritic {
    fn samples(&self) -> SampleRequest {
        SampleRequest::default()
    }

    fn learn(&mut self, evidence: CriticInput<'_>) -> Result<()> {
        let Some(policy) = evidence.policy.tabular() else {
            return Err(kind_error("`exact` needs a policy of tables (`softmax` or `direct`)"));
        };
        let chain = self.system.under(policy)?;
        let values = chain.values(&evidence.signals.rewards)?;
        let tables = self.truncated.tables(&chain, &values, &chain.state_occupancy);
        self.tables.tables.all.data_mut().copy_from_slice(tables.data());
        Ok(())
    }

    fn values(&self) -> &dyn QValues {
        &self.tables
    }

    fn values_mut(&mut self) -> &mut dyn QValues {
        &mut self.tables
    }
}
