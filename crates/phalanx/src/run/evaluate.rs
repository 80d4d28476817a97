//! Evaluation of a fixed policy on fresh episodes.

use crate::algorithm::{Violations, mean_return, returns};
use crate::occupancy::Visits;
use crate::policy::Policy;
use crate::problem::Problem;
use crate::rollout::{self, Request, StartFrom, Trajectory};
use crate::stream::{Place, Purpose, Stream};
use crate::world::World;
use crate::{Error, Ragged, Result};

/// What a policy achieves, estimated on episodes of its own.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// Episodes run.
    pub episodes: usize,
    /// Undiscounted episode return, mean over agents, if the world has the channel `reward`.
    pub return_: Option<f64>,
    /// F = mean of f_i.
    pub objective: f64,
    /// f_i, by agent.
    pub objectives: Vec<f64>,
    /// Undiscounted episode return, by agent, if the world has the channel `reward`.
    pub returns: Option<Vec<f64>>,
    /// Value of the bounded utility, by agent and constraint.
    pub values: Ragged<f64>,
    /// g_ik, by agent and constraint.
    pub slack: Ragged<f64>,
    /// Violations, summed up.
    pub violations: Violations,
}

/// Runs `episodes` episodes of `horizon` steps and evaluates every utility at the occupancy pooled over them.
pub fn evaluate(
    world: &dyn World,
    problem: &Problem,
    policy: &dyn Policy,
    stream: &Stream,
    horizon: usize,
    episodes: usize,
) -> Result<Evaluation> {
    let visits = Episodes { world, policy, problem, stream, horizon, episodes }
        .visits(&problem.occupancy_weights(horizon, episodes));
    summarise(world, problem, &visits, episodes)
}

/// Fresh episodes of a fixed policy. The same ones every time they are asked for.
pub(super) struct Episodes<'a> {
    pub world: &'a dyn World,
    pub policy: &'a dyn Policy,
    pub problem: &'a Problem,
    pub stream: &'a Stream,
    pub horizon: usize,
    pub episodes: usize,
}

impl Episodes<'_> {
    /// Their visits, pooled.
    pub fn visits(&self, weights: &[f64]) -> Visits {
        let actions = self.policy.action_counts();
        let mut visits = Visits::new((0..actions.len()).map(|i| self.problem.row_length(i)));
        self.for_each_chunk(|batch| visits.add(batch, weights, actions));
        visits.rescale(self.problem);
        visits
    }

    /// Hands them out in order, a few at a time.
    pub fn for_each_chunk(&self, mut work: impl FnMut(&[Trajectory])) {
        // Enough at a time to occupy many threads, few enough to stay small in memory; results do not depend on it.
        const AT_ONCE: usize = 16;
        let n = self.policy.agents();
        let at_once = if n < rollout::SPLIT_AGENTS { AT_ONCE.min(self.episodes) } else { 1 };
        let mut trajectories = vec![Trajectory::of(self.world, self.horizon); at_once];
        for first in (0..self.episodes).step_by(at_once) {
            let requests: Vec<Request> = (first..self.episodes.min(first + at_once))
                .map(|k| Request {
                    place: Place { purpose: Purpose::Evaluation, iteration: 0, trajectory: k as u32 },
                    start_purpose: Purpose::EvaluationStart,
                    start: StartFrom::World,
                })
                .collect();
            let batch = &mut trajectories[..requests.len()];
            rollout::simulate(self.world, self.policy, self.stream, &requests, batch);
            work(batch);
        }
    }
}

fn summarise(world: &dyn World, problem: &Problem, visits: &Visits, episodes: usize) -> Result<Evaluation> {
    let constraints = || problem.agents.iter().map(|agent| agent.constraints.len());
    let (mut values, mut slack) = (Ragged::zeros(constraints()), Ragged::zeros(constraints()));
    let mut objectives = Vec::with_capacity(problem.agents.len());
    for (i, agent) in problem.agents.iter().enumerate() {
        let lambda = visits.occupancy.row(i);
        let value = agent.objective.value(lambda, agent.space);
        check(value, i, "f")?;
        objectives.push(value);
        for (k, constraint) in agent.constraints.iter().enumerate() {
            let value = constraint.utility.value(lambda, agent.space);
            check(value, i, "g")?;
            values.row_mut(i)[k] = value;
            slack.row_mut(i)[k] = constraint.bound.slack(value);
        }
    }
    Ok(Evaluation {
        episodes,
        return_: mean_return(world, &visits.counts, episodes as f64),
        objective: objectives.iter().sum::<f64>() / problem.agents.len() as f64,
        returns: returns(world, &visits.counts).map(|all| all.map(|x| x / episodes as f64).collect()),
        objectives,
        violations: Violations::of(slack.data()),
        values,
        slack,
    })
}

pub(super) fn check(value: f64, agent: usize, quantity: &'static str) -> Result<()> {
    if value.is_finite() { Ok(()) } else { Err(Error::NoValue { agent, quantity, value }) }
}
