//! Evaluation of a fixed policy on fresh episodes.

use std::sync::atomic::{AtomicBool, Ordering};

use super::config::Config;
use crate::algorithm::{Task, undiscounted_returns};
use crate::base::error::ensure;
use crate::base::stream::{Place, Purpose, Stream};
use crate::learn::agent_metrics::{AgentMetrics, Violations};
use crate::policy::Policy;
use crate::sample::occupancy::Visits;
use crate::sample::rollout::{self, Request, StartFrom};
use crate::world::Trajectory;
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

/// Fresh episodes of a fixed policy. The same ones every time they are asked for.
pub(super) struct Episodes<'a> {
    pub task: &'a Task,
    pub policy: &'a dyn Policy,
    pub stream: Stream,
    pub horizon: usize,
    pub episodes: usize,
    /// Set when nobody wants to know any more; that of rank 0 counts.
    pub stop: &'a AtomicBool,
}

/// What single agents did.
struct AgentResults {
    /// f_i, and what was earned in all episodes.
    numbers: Vec<[f64; 2]>,
    values: Ragged<f64>,
    slack: Ragged<f64>,
}

/// Where an evaluation episode begins, and its numbers.
pub(super) fn episode_request(number: u32) -> Request {
    Request {
        place: Place { purpose: Purpose::Evaluation, iteration: 0, trajectory: number },
        start_purpose: Purpose::EvaluationStart,
        start: StartFrom::World,
    }
}

impl<'a> Episodes<'a> {
    /// Those of a closing evaluation: as many as `[evaluation]` asks for and allows.
    pub fn closing(config: &Config, task: &'a Task, policy: &'a dyn Policy, stop: &'a AtomicBool) -> Self {
        let episode = task.world.graph().total() as u64 * config.horizon as u64;
        let affordable = (config.evaluation.max_agent_steps / episode).max(1);
        let episodes = config.evaluation.episodes.min(usize::try_from(affordable).unwrap_or(usize::MAX));
        Episodes { task, policy, stream: Stream::new(config.seed), horizon: config.horizon, episodes, stop }
    }

    /// Every utility at the occupancy pooled over them; valid on rank 0 only.
    pub fn evaluate(&self) -> Result<Evaluation> {
        let Task { world, halo, .. } = self.task;
        let found = halo.all_ok(self.measure())?;
        let (values, slack) = (
            halo.gather_ragged(world.graph(), &found.values)?,
            halo.gather_ragged(world.graph(), &found.slack)?,
        );
        let numbers: Vec<f64> = world.graph().owned_agents().flat_map(|i| found.numbers[i]).collect();
        let numbers = halo.gather_rows(2, &numbers)?;
        let numbers = numbers.as_chunks::<2>().0;
        let (agents, episodes) = (numbers.len() as f64, self.episodes as f64);
        let tally =
            |&[objective, return_]: &[f64; 2]| AgentMetrics { objective, return_, ..AgentMetrics::default() };
        let all = AgentMetrics::fold(&numbers.iter().map(tally).collect::<Vec<_>>());
        let is_paid = world.channels().iter().any(|channel| channel.name == "reward");
        let returns = || numbers.iter().map(|[_, earned]| earned / episodes).collect();
        Ok(Evaluation {
            episodes: self.episodes,
            return_: is_paid.then(|| all.return_ / (episodes * agents)),
            objective: all.objective / agents,
            objectives: numbers.iter().map(|[objective, _]| *objective).collect(),
            returns: is_paid.then(returns),
            violations: Violations::from_slack(&slack),
            values,
            slack,
        })
    }

    /// Their visits, pooled.
    pub fn visits(&self, weights: &[f64]) -> Result<Visits> {
        let actions = self.policy.action_counts();
        let Task { world, problem, .. } = self.task;
        let visits = Visits::new((0..actions.len()).map(|i| problem.row_length(i)));
        let mut visits = visits.restricted_to(world.graph().work_blocks());
        self.for_each_chunk(|batch| visits.add(batch, weights, actions))?;
        visits.rescale(problem);
        Ok(visits)
    }

    /// Hands them out in order, a few at a time.
    pub fn for_each_chunk(&self, mut work: impl FnMut(&[Trajectory])) -> Result<()> {
        // Enough at a time to occupy many threads, few enough to stay small in memory; results do not depend on it.
        const AT_ONCE: usize = 16;
        let Task { world, halo, .. } = self.task;
        // The same in all processes.
        let n = world.graph().total() / halo.peers().count();
        let at_once = if n < rollout::SPLIT_AGENTS { AT_ONCE.min(self.episodes) } else { 1 };
        let mut trajectories = vec![Trajectory::for_world(&**world, self.horizon); at_once];
        for first in (0..self.episodes).step_by(at_once.max(1)) {
            let stopping = || Ok(u8::from(self.stop.load(Ordering::Relaxed)));
            ensure(halo.broadcast_decision(stopping)? == 0, || Error::Stopped)?;
            let numbers = first..self.episodes.min(first + at_once);
            let requests: Vec<Request> = numbers.map(|k| episode_request(k as u32)).collect();
            let batch = &mut trajectories[..requests.len()];
            rollout::simulate(&**world, self.policy, &self.stream, &requests, batch, halo)?;
            work(batch);
        }
        Ok(())
    }

    /// Every own agent's utilities at its pooled occupancy.
    fn measure(&self) -> Result<AgentResults> {
        let Task { world, problem, .. } = self.task;
        let network = world.graph();
        let visits = self.visits(&problem.occupancy_weights(self.horizon, self.episodes))?;
        let earned = undiscounted_returns(&**world, &visits.counts);
        let constraints = || problem.agents.iter().map(|agent| agent.constraints.len());
        let mut found = AgentResults {
            numbers: vec![[0.0; 2]; problem.agents.len()],
            values: Ragged::zeros(constraints()),
            slack: Ragged::zeros(constraints()),
        };
        for i in network.owned_agents() {
            let (agent, lambda, id) =
                (&problem.agents[i], visits.occupancy.row(i), network.global_id(i) as usize);
            let value = agent.objective.value(lambda, agent.space);
            check(value, id, "f")?;
            found.numbers[i] = [value, earned.as_ref().map_or(0.0, |earned| earned(i))];
            for (k, constraint) in agent.constraints.iter().enumerate() {
                let value = constraint.utility.value(lambda, agent.space);
                check(value, id, "g")?;
                found.values.row_mut(i)[k] = value;
                found.slack.row_mut(i)[k] = constraint.bound.slack(value);
            }
        }
        Ok(found)
    }
}

pub(super) fn check(value: f64, agent: usize, quantity: &'static str) -> Result<()> {
    ensure(value.is_finite(), || Error::NoValue { agent, quantity, value })
}
