//! The optimum under constraints on whole episodes, over policies that also see the clock and which events
//! have happened: a linear program. Policies that see states alone do at most as well.

use super::polytope::JointLaws;
use super::{check_problem, gave_up};
use crate::exact::Dynamics;
use crate::exact::ever::marked;
use crate::utility::conic::{Affine, Program};
use crate::utility::problem::Problem;
use crate::{Error, Ragged, Result};

/// Most variables that the program takes on.
const LARGEST: usize = 1 << 15;

/// Until the values behind the horizon change by less than this.
const SETTLED: f64 = 1e-13;

/// The best of all policies that see states, clock and flags.
#[derive(Debug, Clone)]
pub struct EverOptimum {
    /// F*, as [`super::Optimum::value`].
    pub value: f64,
    /// P of every agent's events there.
    pub probabilities: Ragged<f64>,
}

/// Maximises (1/n) Σ f_i, all of them linear, subject to constraints on the probability of events within the
/// horizon. The program's variables are the laws of (s, flags, a) at every step of the horizon; what is
/// earned behind it is that of the best policy, since no constraint looks there.
///
/// # Errors
/// Objectives that are not linear, other constraints, models that are too large, bounds that no policy keeps.
pub fn ever_optimum(dynamics: &Dynamics, problem: &Problem) -> Result<EverOptimum> {
    check_problem(dynamics, problem)?;
    let refuse = |message: String| Err(Error::config("problem", message));
    let events: Vec<(usize, &[bool])> = (problem.agents.iter().enumerate())
        .flat_map(|(i, agent)| agent.events.iter().map(move |event| marked(event).map(|marked| (i, marked))))
        .collect::<Result<_>>()?;
    let joint_actions: usize = dynamics.actions.iter().product();
    let (states, flags, horizon) = (dynamics.joint_states, 1usize << events.len(), problem.horizon);
    let size = [states, flags, joint_actions, horizon].iter().try_fold(1usize, |a, &b| a.checked_mul(b));
    if size.is_none_or(|size| size > LARGEST) {
        return refuse(format!(
            "{states} joint states, {flags} flags, {joint_actions} joint actions and {horizon} steps are too many for a \
             linear program of at most {LARGEST} variables"
        ));
    }
    let rewards = joint_rewards(dynamics, problem, joint_actions)?;
    let laws = JointLaws::new(dynamics);
    let successors: Vec<_> = (0..states * joint_actions).map(|pair| laws.successors(pair)).collect();
    let afterwards = best_values(&rewards, &successors, joint_actions, problem.gamma);
    let place = |i: usize| dynamics.states[i + 1..].iter().product::<usize>();
    // The flags after a joint state was seen.
    let raised = |flags: usize, s: usize| {
        events.iter().enumerate().fold(flags, |flags, (e, (i, marked))| {
            flags | usize::from(marked[s / place(*i) % dynamics.states[*i]]) << e
        })
    };
    let mut program = Program::default();
    let mut arriving = vec![Affine::default(); states * flags];
    for (s, p) in dynamics.start.iter().enumerate() {
        let at = s * flags + raised(0, s);
        arriving[at] = std::mem::take(&mut arriving[at]).shifted(*p);
    }
    let mut objective = Affine::default();
    let mut discount = 1.0;
    let mut happened = vec![Affine::default(); events.len()];
    for k in 0..horizon {
        let mut next = vec![Affine::default(); states * flags];
        for (at, mass) in arriving.iter().enumerate() {
            if mass.is_constant() && mass.constant == 0.0 {
                continue;
            }
            let (s, f) = (at / flags, at % flags);
            let mut leaving = Affine::default();
            for a in 0..joint_actions {
                let x = Affine::variable(program.variable(), 1.0);
                program.require_nonnegative(x.clone());
                leaving.add(1.0, &x);
                objective.add(discount * rewards[s * joint_actions + a], &x);
                for &(to, p) in &successors[s * joint_actions + a] {
                    if k + 1 < horizon {
                        next[to * flags + raised(f, to)].add(p, &x);
                    } else {
                        objective.add(discount * problem.gamma * p * afterwards[to], &x);
                    }
                }
                if k + 1 == horizon {
                    let of_flags = happened.iter_mut().enumerate().filter(|(e, _)| f >> e & 1 == 1);
                    of_flags.for_each(|(_, sum)| sum.add(1.0, &x));
                }
            }
            program.zero.push(mass.clone().plus(-1.0, &leaving));
        }
        arriving = next;
        discount *= problem.gamma;
    }
    let numbers: Vec<usize> = problem.agents.iter().map(|agent| agent.events.len()).collect();
    let first = |i: usize| numbers[..i].iter().sum::<usize>();
    for (i, agent) in problem.agents.iter().enumerate() {
        for constraint in &agent.constraints {
            let Some(event) = constraint.event() else {
                return refuse(format!("`{}` is no constraint on whole episodes", constraint.name));
            };
            let (sign, utility) = (constraint.bound.sign(), &constraint.utility);
            let mut slack = Affine::default();
            slack.add(sign * utility.scale, &happened[first(i) + event]);
            program
                .require_nonnegative(slack.shifted(sign * (utility.offset - constraint.bound.threshold())));
        }
    }
    let solution = program.maximise(&objective).map_err(|unsolved| gave_up(&unsolved))?;
    let at = |affine: &Affine| {
        let terms = affine.terms.iter().map(|&(variable, by)| by * solution.variables[variable]);
        affine.constant + terms.sum::<f64>()
    };
    let n = problem.agents.len();
    let offset: f64 = problem.agents.iter().map(|agent| agent.objective.offset).sum();
    Ok(EverOptimum {
        value: (at(&objective) + offset) / n as f64,
        probabilities: Ragged::from_rows(
            (0..n).map(|i| (0..numbers[i]).map(|e| at(&happened[first(i) + e])).collect::<Vec<_>>()),
        ),
    })
}

/// Σ_i f_i's rewards, as `[S][A]`.
fn joint_rewards(dynamics: &Dynamics, problem: &Problem, joint_actions: usize) -> Result<Vec<f64>> {
    let mut rewards = vec![0.0; dynamics.joint_states * joint_actions];
    for (i, agent) in problem.agents.iter().enumerate() {
        if !agent.objective.kind.is_linear() {
            return Err(Error::config(format!("f[{i}]"), "is not linear, as this optimum needs it to be"));
        }
        let mut table = vec![0.0; agent.space.cells()];
        agent.objective.gradient(&table.clone(), agent.space, &mut table);
        let digit =
            |number: usize, sizes: &[usize]| number / sizes[i + 1..].iter().product::<usize>() % sizes[i];
        for (pair, reward) in rewards.iter_mut().enumerate() {
            let state = digit(pair / joint_actions, &dynamics.states);
            let action = digit(pair % joint_actions, &dynamics.actions);
            *reward += table[state * agent.space.actions + action];
        }
    }
    Ok(rewards)
}

/// The best discounted rewards from every joint state on, by value iteration.
fn best_values(
    rewards: &[f64],
    successors: &[Vec<(usize, f64)>],
    joint_actions: usize,
    gamma: f64,
) -> Vec<f64> {
    let states = rewards.len() / joint_actions;
    let mut values = vec![0.0; states];
    loop {
        let best = |s: usize| {
            let worth = |pair: usize| {
                let ahead: f64 = successors[pair].iter().map(|&(to, p)| p * values[to]).sum();
                rewards[pair] + gamma * ahead
            };
            (s * joint_actions..(s + 1) * joint_actions).map(worth).fold(f64::NEG_INFINITY, f64::max)
        };
        let next: Vec<f64> = (0..states).map(best).collect();
        let change = next.iter().zip(&values).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let size = next.iter().map(|v| v.abs()).fold(1.0, f64::max);
        values = next;
        if change <= SETTLED * size {
            return values;
        }
    }
}
