//! Policies as data, for agents outside this program.

use phalanx_agent::policy::{AgentPolicy, Digit, FORMAT, Policies, Rule, Term, VERSION};

use super::evaluate::Evaluator;
use crate::base::error::ensure;
use crate::policy::{Policy, kind_error};
use crate::world::{Features, World};
use crate::{Ragged, Result};

/// The policy of an evaluator as data. Refused where it is neither a table nor a linear one.
pub fn portable(evaluator: &Evaluator) -> Result<Policies> {
    let (world, policy) = (evaluator.world(), evaluator.policy());
    let groups = policy.groups();
    let agents = (0..policy.agents()).map(|i| agent(world, policy, i, &groups)).collect::<Result<_>>()?;
    let kappa = evaluator.config().kappa;
    Ok(Policies { format: FORMAT.into(), version: VERSION, kappa, networks: Vec::new(), agents })
}

fn agent(world: &dyn World, policy: &dyn Policy, i: usize, groups: &Ragged<u32>) -> Result<AgentPolicy> {
    let members = groups.row(i).to_vec();
    let states: Vec<usize> = members.iter().map(|&m| world.states(m as usize)).collect();
    let actions = policy.actions(i);
    let rows = |numbers: &[f64]| numbers.chunks_exact(actions).map(<[f64]>::to_vec).collect();
    // Linear policies are named with their features.
    let rule = match (policy.tabular(), policy.kind().split_once('-')) {
        (Some(tables), _) => Rule::Table { probabilities: rows(tables.probabilities(i)) },
        (None, Some((_, features))) => {
            let weights: Vec<Vec<f64>> = rows(policy.theta().row(i));
            let terms = terms(world, features, i, &members, &states, weights.len())?;
            Rule::Linear { terms, weights }
        }
        (None, None) => {
            let kind = policy.kind();
            return Err(kind_error(format!("a policy of kind `{kind}` cannot leave the program yet")));
        }
    };
    let neighbours = world.graph().neighbours(i).iter().copied().filter(|&j| j as usize != i).collect();
    let usual = vec![0; members.len()];
    Ok(AgentPolicy { agent: i as u32, neighbours, members, states, usual, actions, rule })
}

/// The terms of a linear policy: one for each member, then those of the world.
fn terms(
    world: &dyn World,
    kind: &str,
    i: usize,
    members: &[u32],
    states: &[usize],
    features: usize,
) -> Result<Vec<Term>> {
    let own = members.iter().position(|&m| m as usize == i).unwrap_or(0);
    let digit = |place: usize, stride: usize| Digit {
        stride,
        cap: states[place] - 1,
        members: vec![place],
        values: (0..states[place]).collect(),
    };
    let (mut terms, mut first) = (Vec::new(), 0);
    for place in 0..members.len() {
        let (digits, size) = match kind {
            _ if place == own => (vec![digit(place, 1)], states[place]),
            "pair" => (vec![digit(own, states[place]), digit(place, 1)], states[own] * states[place]),
            "additive" => (vec![digit(place, 1)], states[place]),
            _ => continue,
        };
        terms.push(Term { first, digits });
        first += size;
    }
    // Without the world's features, the members' are all there are.
    if first < features {
        let features = world.policy_features(i, members);
        let found = features.and_then(|features| sums(&*features, states));
        let unknown = || kind_error("the features of this world are code, which cannot leave the program");
        for term in found.ok_or_else(unknown)? {
            terms.push(Term { first: first + term.first, ..term });
        }
    }
    Ok(terms)
}

/// Features as terms, where each number is a sum of one value per member: asked one member at a time, and
/// compared with what they say of many joint states.
fn sums(features: &dyn Features, states: &[usize]) -> Option<Vec<Term>> {
    let ask = |joint: &[u8]| {
        let mut active = Vec::new();
        features.active(joint, &[], &mut active);
        active
    };
    let mut joint = vec![0; states.len()];
    let origin = ask(&joint);
    let mut terms: Vec<Term> =
        origin.iter().map(|&first| Term { first: first as usize, digits: Vec::new() }).collect();
    for (place, &count) in states.iter().enumerate() {
        let mut values = vec![Vec::with_capacity(count); terms.len()];
        for state in 0..count {
            joint[place] = state as u8;
            let active = ask(&joint);
            for (k, values) in values.iter_mut().enumerate() {
                values.push(active.get(k)?.checked_sub(origin[k])? as usize);
            }
        }
        joint[place] = 0;
        for (term, values) in terms.iter_mut().zip(values) {
            let cap = values.iter().copied().max().unwrap_or(0);
            if cap > 0 {
                term.digits.push(Digit { stride: 1, cap, members: vec![place], values });
            }
        }
    }
    // A walk through joint states that repeats late.
    let agrees = |k: usize| {
        let state = |(place, &count): (usize, &usize)| ((k * (2 * place + 1) + k / 7 * place) % count) as u8;
        let joint: Vec<u8> = states.iter().enumerate().map(state).collect();
        ask(&joint).into_iter().map(|row| row as usize).eq(terms.iter().map(|term| term.row(&joint)))
    };
    ensure((0..200).all(agrees), || ()).ok()?;
    Some(terms)
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
