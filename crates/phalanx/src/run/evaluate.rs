//! Evaluation of a fixed policy on fresh episodes.

use std::sync::atomic::{AtomicBool, Ordering};

use super::config::Config;
use crate::algorithm::undiscounted_returns;
use crate::base::stream::{Place, Purpose, Stream};
use crate::distributed::Halo;
use crate::learn::agent_metrics::{AgentMetrics, Violations};
use crate::policy::Policy;
use crate::sample::occupancy::Visits;
use crate::sample::rollout::{self, Request, StartFrom};
use crate::utility::problem::Problem;
use crate::world::Trajectory;
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
    let halo = &Halo::single(world.graph().agents());
    let episodes = Episodes { world, policy, problem, stream, horizon, episodes, halo, stop: None };
    episodes.evaluate()
}

/// Episodes of a closing evaluation: as many as `[evaluation]` asks for and allows.
pub(super) fn closing_episodes(config: &Config, world: &dyn World) -> usize {
    let episode = world.graph().total() as u64 * config.horizon as u64;
    let affordable = (config.evaluation.max_agent_steps / episode).max(1);
    config.evaluation.episodes.min(usize::try_from(affordable).unwrap_or(usize::MAX))
}

/// Fresh episodes of a fixed policy. The same ones every time they are asked for.
pub(super) struct Episodes<'a> {
    pub world: &'a dyn World,
    pub policy: &'a dyn Policy,
    pub problem: &'a Problem,
    pub stream: &'a Stream,
    pub horizon: usize,
    pub episodes: usize,
    /// Borders with other processes.
    pub halo: &'a Halo,
    /// Set when nobody wants to know any more; that of rank 0 counts.
    pub stop: Option<&'a AtomicBool>,
}

/// What single agents did.
struct AgentResults {
    /// f_i, and what was earned in all episodes.
    numbers: Vec<[f64; 2]>,
    values: Ragged<f64>,
    slack: Ragged<f64>,
}

impl Episodes<'_> {
    /// Every utility at the occupancy pooled over them; valid on rank 0 only.
    pub fn evaluate(&self) -> Result<Evaluation> {
        let found = self.halo.all_ok(self.measure())?;
        let own = || self.world.graph().owned_agents();
        let rows =
            |all: &Ragged<f64>| self.halo.gather_ragged(&own().map(|i| all.row(i)).collect::<Vec<_>>());
        let (values, slack) = (rows(&found.values)?, rows(&found.slack)?);
        let numbers: Vec<f64> = own().flat_map(|i| found.numbers[i]).collect();
        let numbers = self.halo.gather_rows(2, &numbers)?;
        Ok(self.evaluation(numbers.as_chunks::<2>().0, values, slack))
    }

    /// Their visits, pooled.
    pub fn visits(&self, weights: &[f64]) -> Result<Visits> {
        let actions = self.policy.action_counts();
        let visits = Visits::new((0..actions.len()).map(|i| self.problem.row_length(i)));
        let mut visits = visits.restricted_to(self.world.graph().work_blocks());
        self.for_each_chunk(|batch| visits.add(batch, weights, actions))?;
        visits.rescale(self.problem);
        Ok(visits)
    }

    /// Hands them out in order, a few at a time.
    pub fn for_each_chunk(&self, mut work: impl FnMut(&[Trajectory])) -> Result<()> {
        // Enough at a time to occupy many threads, few enough to stay small in memory; results do not depend on it.
        const AT_ONCE: usize = 16;
        // The same in all processes.
        let n = self.world.graph().total() / self.halo.peers().count();
        let at_once = if n < rollout::SPLIT_AGENTS { AT_ONCE.min(self.episodes) } else { 1 };
        let mut trajectories = vec![Trajectory::for_world(self.world, self.horizon); at_once];
        for first in (0..self.episodes).step_by(at_once.max(1)) {
            let stopping = || Ok(u8::from(self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))));
            if self.halo.broadcast_decision(stopping)? > 0 {
                return Err(Error::Stopped);
            }
            let requests: Vec<Request> = (first..self.episodes.min(first + at_once))
                .map(|k| Request {
                    place: Place { purpose: Purpose::Evaluation, iteration: 0, trajectory: k as u32 },
                    start_purpose: Purpose::EvaluationStart,
                    start: StartFrom::World,
                })
                .collect();
            let batch = &mut trajectories[..requests.len()];
            rollout::simulate(self.world, self.policy, self.stream, &requests, batch, self.halo)?;
            work(batch);
        }
        Ok(())
    }

    /// Every own agent's utilities at its pooled occupancy.
    fn measure(&self) -> Result<AgentResults> {
        let (problem, network) = (self.problem, self.world.graph());
        let visits = self.visits(&problem.occupancy_weights(self.horizon, self.episodes))?;
        let earned = undiscounted_returns(self.world, &visits.counts);
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

    /// From all agents' f_i and earnings, values and slacks.
    fn evaluation(&self, numbers: &[[f64; 2]], values: Ragged<f64>, slack: Ragged<f64>) -> Evaluation {
        let (agents, episodes) = (numbers.len() as f64, self.episodes as f64);
        let tally =
            |&[objective, return_]: &[f64; 2]| AgentMetrics { objective, return_, ..AgentMetrics::default() };
        let all = AgentMetrics::fold(&numbers.iter().map(tally).collect::<Vec<_>>());
        let is_paid = self.world.channels().iter().any(|channel| channel.name == "reward");
        let returns = || numbers.iter().map(|[_, earned]| earned / episodes).collect();
        Evaluation {
            episodes: self.episodes,
            return_: is_paid.then(|| all.return_ / (episodes * agents)),
            objective: all.objective / agents,
            objectives: numbers.iter().map(|[objective, _]| *objective).collect(),
            returns: is_paid.then(returns),
            violations: Violations::from_slack(&slack),
            values,
            slack,
        }
    }
}

pub(super) fn check(value: f64, agent: usize, quantity: &'static str) -> Result<()> {
    if value.is_finite() { Ok(()) } else { Err(Error::NoValue { agent, quantity, value }) }
}
