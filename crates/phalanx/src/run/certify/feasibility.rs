//! Bounds that no policy can keep, found before anything is trained.

use serde::Serialize;

use crate::exact::{Dynamics, largest_slacks, least_probability, slater_point};
use crate::run::evaluate::Evaluator;
use crate::utility::problem::{Bound, Problem};

/// With more joint states or pairs, exact optima take longer than many a training.
const MOST_STATES: usize = 1 << 12;
const MOST_PAIRS: u128 = 1 << 14;

/// With more transitions between joint states, so do recursions over an episode.
const MOST_TRANSITIONS: u128 = 1 << 22;

/// A slack below minus this is no rounding.
const ROUNDING: f64 = 1e-7;

/// A bound that no policy can keep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Infeasible {
    /// Whose.
    pub agent: usize,
    /// Of which constraint.
    pub constraint: String,
    /// `at_least` or `at_most`.
    pub bound: &'static str,
    /// The bound.
    pub threshold: f64,
    /// The nearest one that a policy can keep.
    pub nearest: f64,
    /// Whether it can be kept alone, but not together with the others.
    pub together: bool,
    /// Over what: all policies of the model, or all occupancies of the right mass.
    pub over: &'static str,
}

/// The first bound that cannot be kept, if that can be known.
pub(super) fn infeasible(evaluator: &Evaluator) -> Option<Infeasible> {
    let problem = evaluator.problem();
    let mass = problem.mass(evaluator.config().horizon);
    let found = |i: usize, k: usize, slack: f64, together: bool, over: &'static str| {
        let constraint = &problem.agents[i].constraints[k];
        let nearest = constraint.bound.threshold() + constraint.bound.sign() * slack;
        Infeasible {
            agent: i,
            constraint: constraint.name.to_string(),
            bound: constraint.bound.key(),
            threshold: constraint.bound.threshold(),
            nearest,
            together,
            over,
        }
    };
    let of_range = |i: usize, k: usize| {
        let (agent, constraint) = (&problem.agents[i], &problem.agents[i].constraints[k]);
        let range = constraint.utility.range(agent.space, mass)?;
        Some(constraint.bound.slack(constraint.bound.easiest(range)))
    };
    let places = || {
        let agents = problem.agents.iter().enumerate();
        agents.flat_map(|(i, agent)| (0..agent.constraints.len()).map(move |k| (i, k)))
    };
    let beyond_range = places().find_map(|(i, k)| Some((i, k, of_range(i, k).filter(|s| *s < -ROUNDING)?)));
    let world = evaluator.world();
    let is_small = Dynamics::count_joint_states(world).is_some_and(|states| states <= MOST_STATES);
    let pairs = |dynamics: &Dynamics| dynamics.joint_actions().saturating_mul(dynamics.joint_states as u128);
    let dynamics = is_small.then(|| Dynamics::new(world).ok()).flatten().filter(|dynamics| {
        let transitions = pairs(dynamics).saturating_mul(dynamics.joint_states as u128);
        transitions <= MOST_TRANSITIONS && problem.sampled_channels == 0
    });
    let Some(dynamics) = dynamics else {
        return beyond_range.map(|(i, k, slack)| found(i, k, slack, false, "occupancies"));
    };
    let mut worst: Option<(usize, usize, f64)> = None;
    let mut consider = |i: usize, k: usize, slack: f64| {
        // The first of those that are equal but for rounding.
        if slack < -ROUNDING && worst.is_none_or(|(_, _, least)| slack < least - ROUNDING) {
            worst = Some((i, k, slack));
        }
    };
    for (i, agent) in problem.agents.iter().enumerate() {
        for (k, constraint) in agent.constraints.iter().enumerate() {
            let Some(event) = constraint.event() else { continue };
            let least = least_probability(&dynamics, i, &agent.events[event], problem.horizon);
            if let (Ok(least), Bound::AtMost(most)) = (least, constraint.bound) {
                consider(i, k, most - least);
            }
        }
    }
    // Constraints on occupancies are concave programs, where those on whole episodes have no place.
    let (rest, kept) = without_events(problem);
    let is_quick = pairs(&dynamics) <= MOST_PAIRS;
    if let Some(slacks) = is_quick.then(|| largest_slacks(&dynamics, &rest).ok()).flatten() {
        for (i, kept) in kept.iter().enumerate() {
            kept.iter().zip(slacks.row(i)).for_each(|(&k, &slack)| consider(i, k, slack));
        }
    }
    if let Some((i, k, slack)) = worst {
        return Some(found(i, k, slack, false, "policies"));
    }
    if !is_quick {
        return beyond_range.map(|(i, k, slack)| found(i, k, slack, false, "occupancies"));
    }
    let slater =
        slater_point(&dynamics, &rest).ok().filter(|slater| slater.margin + slater.gap < -ROUNDING)?;
    let weights = kept.iter().enumerate().flat_map(|(i, kept)| {
        let weights = slater.weights.row(i).to_vec();
        kept.iter().zip(weights).map(move |(&k, weight)| (i, k, weight)).collect::<Vec<_>>()
    });
    let (i, k, _) = weights.max_by(|a, b| a.2.total_cmp(&b.2))?;
    Some(found(i, k, slater.margin, true, "policies"))
}

/// The problem without constraints on whole episodes, and the numbers of those that are left, by agent.
fn without_events(problem: &Problem) -> (Problem, Vec<Vec<usize>>) {
    let mut rest = problem.clone();
    let mut kept = Vec::new();
    for i in 0..problem.agents.len() {
        let constraints = &problem.agents[i].constraints;
        kept.push((0..constraints.len()).filter(|&k| constraints[k].event().is_none()).collect());
        if !problem.agents[i].events.is_empty() {
            let agent = rest.agent_mut(i);
            agent.constraints.retain(|constraint| constraint.event().is_none());
            agent.events.clear();
        }
    }
    (rest, kept)
}
