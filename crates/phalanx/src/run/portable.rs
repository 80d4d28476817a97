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
    let usual = evaluator.usual_states()?;
    let mut networks = Vec::new();
    let mut agents = Vec::with_capacity(policy.agents());
    for (agent, members) in groups.iter().enumerate() {
        let states: Vec<usize> = members.iter().map(|&member| world.states(member as usize)).collect();
        agents.push(AgentPolicy {
            agent: agent as u32,
            neighbours: world.graph().neighbours(agent).to_vec(),
            members: members.to_vec(),
            usual: members.iter().map(|&member| usual[member as usize]).collect(),
            actions: policy.actions(agent),
            rule: policy.portable(agent, &states, &mut networks)?,
            states,
        });
    }
    let kappa = evaluator.config().kappa;
    Ok(Policies { format: FORMAT.into(), version: VERSION, kappa, networks, agents })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::stream::{Place, Purpose, Stream};
    use crate::run::Config;
    use crate::world::Trajectory;
    use phalanx_agent::law::Scratch;

    /// The data's laws are the policy's own, to the last bit, also after they were written and read.
    #[test]
    fn laws_of_the_data_are_those_of_the_policy() {
        let place = Place { purpose: Purpose::Evaluation, iteration: 0, trajectory: 0 };
        for (name, features) in [
            ("synthetic", None),
            ("epidemic", Some("own")),
            ("wireless", Some("pair")),
            ("wireless", Some("additive")),
            ("wireless", Some("own")),
        ] {
            let config = Config::preset(name).unwrap().with("policy.init_std", "1.0").unwrap();
            let config =
                features.map_or_else(|| config.clone(), |f| config.with("policy.features", f).unwrap());
            let evaluator = Evaluator::new(&config).unwrap();
            let text = serde_json::to_string(&portable(&evaluator).unwrap()).unwrap();
            let policies = Policies::read(&text).unwrap();
            let (world, policy) = (evaluator.world(), evaluator.policy());
            let n = world.graph().agents();
            let mut words = Stream::new(3).sequence(place, 0);
            for _ in 0..100 {
                let mut trajectory = Trajectory::new(n, 1);
                trajectory.finish(1, false);
                for i in 0..n {
                    *trajectory.pair_mut(i, 0).0 = (words.next_u32() as usize % world.states(i)) as u8;
                }
                for (i, agent) in policies.agents.iter().enumerate() {
                    let states: Vec<u8> =
                        agent.members.iter().map(|&m| trajectory.states(m as usize)[0]).collect();
                    let (mut ours, mut theirs) = (vec![0.0; agent.actions], vec![0.0; agent.actions]);
                    policy.law(i, &trajectory, 0, &mut ours);
                    agent.law(&policies.networks, &states, &mut Scratch::default(), &mut theirs);
                    assert_eq!(ours, theirs, "{name}, agent {i}");
                }
            }
        }
    }
}
