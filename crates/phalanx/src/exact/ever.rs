//! Whether something ever happens within H steps, exactly: recursions over (joint state, flag) and the clock.

use rayon::prelude::*;

use super::Dynamics;
use super::contraction::Workspace;
use super::optimum::JointLaws;
use super::system::{Chain, System};
use crate::policy::Policy;
use crate::utility::episode::EpisodeEvent;
use crate::utility::problem::Problem;
use crate::{Error, Ragged, Result};

/// Steps whose expectations are formed together.
const LANES: usize = 8;

/// The states that are an event; fails for events that a flag does not describe.
pub(super) fn marked(event: &EpisodeEvent) -> Result<&[bool]> {
    match event {
        EpisodeEvent::States(marked) => Ok(marked),
        EpisodeEvent::Channel(_) | EpisodeEvent::Cost { .. } => {
            let message =
                "exact computations know events of states (`ever` with `states`), not costs over an episode";
            Err(Error::config("constraint", message))
        }
    }
}

/// Whether exact computations can deal with every event of `problem`.
pub(super) fn check_events(problem: &Problem) -> Result<()> {
    problem.agents.iter().flat_map(|agent| &agent.events).try_for_each(|event| marked(event).map(|_| ()))
}

impl System {
    /// Whether each joint state belongs to an event of agent i.
    fn in_event(&self, agent: usize, event: &EpisodeEvent) -> Vec<bool> {
        let marked = marked(event).unwrap_or_default();
        let of = |&own: &u32| marked.get(own as usize).copied().unwrap_or_default();
        self.own_states[agent].iter().map(of).collect()
    }
}

impl Chain<'_> {
    /// P(event within `horizon` steps) of every event of every agent: the mass that a law loses to the event
    /// on its way.
    pub fn event_probabilities(&self, problem: &Problem) -> Ragged<f64> {
        let rows = problem.agents.par_iter().enumerate().map(|(i, agent)| {
            let of = |event| {
                let laws = self.laws_before(&self.system.in_event(i, event), problem.horizon);
                1.0 - laws.last().map_or(0.0, |law| law.iter().sum::<f64>())
            };
            agent.events.iter().map(of).collect::<Vec<f64>>()
        });
        Ragged::from_rows(rows.collect::<Vec<_>>())
    }

    /// The law of s^k together with "it has not happened up to step k", for k < `horizon`.
    fn laws_before(&self, in_event: &[bool], horizon: usize) -> Vec<Vec<f64>> {
        let without = |mut law: Vec<f64>| {
            law.iter_mut().zip(in_event).filter(|(_, hit)| **hit).for_each(|(p, _)| *p = 0.0);
            law
        };
        let mut laws = vec![without(self.system.dynamics.start.clone())];
        for k in 1..horizon {
            laws.push(without(self.advance(&laws[k - 1])));
        }
        laws
    }

    /// P(it happens before `horizon` | s^k = s), for k < `horizon`.
    fn values_before(&self, in_event: &[bool], horizon: usize) -> Vec<Vec<f64>> {
        let now = |ahead: &[[f64; 1]]| -> Vec<f64> {
            in_event.iter().zip(ahead).map(|(hit, ahead)| if *hit { 1.0 } else { ahead[0] }).collect()
        };
        let mut values = vec![now(&vec![[0.0]; in_event.len()])];
        let mut workspace = Workspace::<1>::default();
        for k in 1..horizon {
            let ahead: Vec<[f64; 1]> = values[k - 1].iter().map(|&v| [v]).collect();
            self.forward.apply(&ahead, &mut workspace);
            values.push(now(&workspace.now));
        }
        values.reverse();
        values
    }

    /// Adds what constraints on whole episodes add to [`Chain::action_values`]: Σ_j Σ_e w_je·Σ_k Σ_s
    /// P(s^k = s, not yet)·P(it happens | s^k = s, a_i = b), over the agents j in `groups` of i (all of them
    /// without), where w_je = μ_je·dg/dP.
    pub fn add_event_values(
        &self,
        problem: &Problem,
        mu: &Ragged<f64>,
        groups: Option<&Ragged<u32>>,
        out: &mut Ragged<f64>,
    ) {
        for (j, agent) in problem.agents.iter().enumerate() {
            for (constraint, mu) in agent.constraints.iter().zip(mu.row(j)) {
                let weight = mu * constraint.bound.sign() * constraint.utility.scale;
                let Some(event) = constraint.event().filter(|_| weight != 0.0) else { continue };
                let in_event = self.system.in_event(j, &agent.events[event]);
                let laws = self.laws_before(&in_event, problem.horizon);
                let values = self.values_before(&in_event, problem.horizon);
                let hears = |i: usize| groups.is_none_or(|groups| groups.row(i).contains(&(j as u32)));
                let listeners: Vec<usize> = (0..problem.agents.len()).filter(|&i| hears(i)).collect();
                let rows: Vec<(usize, Vec<f64>)> =
                    listeners.into_par_iter().map(|i| (i, self.event_slopes(i, &laws, &values))).collect();
                for (i, row) in rows {
                    out.row_mut(i).iter_mut().zip(row).for_each(|(sum, x)| *sum += weight * x);
                }
            }
        }
    }

    /// Σ_k Σ_s `laws`_k(s)·E[`values`_{k+1} | s, a_i = b], by observation and action of agent i.
    fn event_slopes(&self, i: usize, laws: &[Vec<f64>], values: &[Vec<f64>]) -> Vec<f64> {
        let (system, actions) = (self.system, self.system.dynamics.actions[i]);
        let plan = system.own_action[i].prepare(&system.laws, self.policy);
        let mut sums = vec![0.0; self.policy.theta().row(i).len()];
        let mut workspace = Workspace::<LANES>::default();
        // The action of the last step shows in no state that is looked at.
        for (laws, ahead) in laws.chunks(LANES).zip(values[1..].chunks(LANES)) {
            let lanes = |s: usize| std::array::from_fn(|l| ahead.get(l).map_or(0.0, |values| values[s]));
            plan.apply(&(0..laws[0].len()).map(lanes).collect::<Vec<[f64; LANES]>>(), &mut workspace);
            for (s, &seen) in system.observations[i].iter().enumerate() {
                for b in 0..actions {
                    let expected = &workspace.now[s * actions + b];
                    let value: f64 = laws.iter().zip(expected).map(|(law, x)| law[s] * x).sum();
                    sums[seen as usize * actions + b] += value;
                }
            }
        }
        sums
    }
}

/// The smallest probability of agent i's event within `horizon` steps that any policy can reach, also one
/// that sees all states and the clock: by recursion from the last step on.
pub fn least_probability(
    dynamics: &Dynamics,
    agent: usize,
    event: &EpisodeEvent,
    horizon: usize,
) -> Result<f64> {
    let (marked, laws) = (marked(event)?, JointLaws::new(dynamics));
    let joint_actions: usize = dynamics.actions.iter().product();
    let behind: usize = dynamics.states[agent + 1..].iter().product();
    let own = |s: usize| s / behind % dynamics.states[agent];
    let successors: Vec<Vec<(usize, f64)>> = (0..dynamics.joint_states * joint_actions)
        .into_par_iter()
        .map(|pair| laws.successors(pair))
        .collect();
    let mut values = vec![0.0; dynamics.joint_states];
    for k in (0..horizon).rev() {
        values = (0..dynamics.joint_states)
            .into_par_iter()
            .map(|s| {
                if marked[own(s)] {
                    return 1.0;
                }
                if k + 1 == horizon {
                    return 0.0;
                }
                let ahead = |row: &Vec<(usize, f64)>| row.iter().map(|&(to, p)| p * values[to]).sum::<f64>();
                let choices = &successors[s * joint_actions..(s + 1) * joint_actions];
                choices.iter().map(ahead).fold(f64::INFINITY, f64::min)
            })
            .collect();
    }
    Ok(dynamics.start.iter().zip(&values).map(|(p, v)| p * v).sum())
}
