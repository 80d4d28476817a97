//! Truncated Q-functions without error: isolates what a run owes to its critic.

use super::{System, Truncated, Truncation};
use crate::learn::critic::{Critic, CriticInput, QTables, QValues, SampleRequest};
use crate::policy::Tabular;
use crate::utility::problem::Problem;
use crate::world::World;
use crate::{Error, Result};

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
            return Err(Error::config(
                "critic.kind",
                "`exact` needs a policy of tables (`softmax` or `direct`)",
            ));
        };
        let chain = self.system.under(policy)?;
        let rewards = &evidence.signals.rewards;
        let values = chain.values(rewards)?;
        let tables = self.truncated.tables(&chain, rewards, &values, chain.state_occupancy())?;
        self.tables.tables_mut().data_mut().copy_from_slice(tables.data());
        Ok(())
    }

    fn values(&self) -> &dyn QValues {
        &self.tables
    }

    fn values_mut(&mut self) -> &mut dyn QValues {
        &mut self.tables
    }
}
