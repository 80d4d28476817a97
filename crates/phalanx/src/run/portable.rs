//! A run's policies as data.

use phalanx_agent::policy::{AgentPolicy, FORMAT, Policies, VERSION};

use super::evaluate::Evaluator;
use crate::Result;

/// The policies of all agents as data: all that is needed to act on them without this program.
pub fn portable(evaluator: &Evaluator) -> Result<Policies> {
    let (world, policy) = (evaluator.world(), evaluator.policy());
    let mut networks = Vec::new();
    let mut agents = Vec::with_capacity(policy.agents());
    for (agent, members) in policy.groups().iter().enumerate() {
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
