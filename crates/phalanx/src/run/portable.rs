//! A run's policies as data.

use phalanx_agent::policy::{AgentPolicy, FORMAT, Policies, VERSION};

use super::evaluate::Evaluator;
use crate::Result;
use crate::base::limits::check_memory;

/// The policies of all agents as data: all that is needed to act on them without this program.
pub fn portable(evaluator: &Evaluator) -> Result<Policies> {
    let (world, policy) = (evaluator.world(), evaluator.policy());
    let groups = policy.groups();
    // Numbers twice, the second time as text; and for each member the digits that read it.
    let (entries, members) = (policy.theta().data().len(), groups.data().len());
    let bytes = 40 * entries as u128 + 1_000 * members as u128;
    check_memory(bytes, "policy", &format!("{entries} parameters as data"))?;
    let mut networks = Vec::new();
    let mut agents = Vec::with_capacity(policy.agents());
    for (agent, members) in groups.iter().enumerate() {
        let states: Vec<usize> = members.iter().map(|&member| world.states(member as usize)).collect();
        agents.push(AgentPolicy {
            agent: agent as u32,
            neighbours: world.graph().neighbours(agent).to_vec(),
            members: members.to_vec(),
            usual: usual_states(members),
            actions: policy.actions(agent),
            rule: policy.portable(agent, &states, &mut networks)?,
            states,
        });
    }
    let kappa = evaluator.config().kappa;
    Ok(Policies { format: FORMAT.into(), version: VERSION, kappa, networks, agents })
}

/// Every member's most frequent state in training. Not counted yet: 0.
fn usual_states(members: &[u32]) -> Vec<u8> {
    vec![0; members.len()]
}
