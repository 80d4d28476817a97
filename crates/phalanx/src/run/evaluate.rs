//! Evaluation of a fixed policy on fresh episodes. Nothing here is trained.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use phalanx_agent::draw::evaluation_seed;

use super::assess::{Assessment, assessment_horizon};
use super::build;
use super::checksums;
use super::config::Config;
use super::folder;
use super::meta::{self, Meta};
use super::multipliers;
use super::usual_states;
use crate::algorithm::{CardEpisodes, EpisodePlan, EvaluationDevice, Task, undiscounted_returns};
use crate::base::error::ensure;
use crate::base::key::HORIZON;
use crate::base::limits::check_memory;
use crate::base::stream::{Place, Purpose, Stream};
use crate::learn::agent_metrics::{AgentMetrics, Violations};
use crate::policy::{self, GreedyPolicy, LINKS, Policy, RulePolicy, Tabular};
use crate::sample::occupancy::Visits;
use crate::sample::rollout::{self, Request, StartFrom};
use crate::sample::usual_states::UsualStates;
use crate::utility::problem::Problem;
use crate::world::{Registry, Script, Trajectory, World};
use crate::{Error, Ragged, Result};

/// Name of the section.
const EVALUATION: &str = "evaluation";

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
    /// The state that every agent was in most often.
    pub usual_states: Vec<u8>,
}

/// How far an assessment is, for those who wait for it.
#[derive(Debug, Default)]
pub struct AssessmentProgress {
    done: AtomicUsize,
    total: AtomicUsize,
}

impl AssessmentProgress {
    /// An assessment begins, which simulates so many episodes in all.
    pub(super) fn begin(&self, total: usize) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    fn advance(&self, episodes: usize) {
        self.done.fetch_add(episodes, Ordering::Relaxed);
    }

    /// Episodes that are simulated, and how many there will be; 0 of 0 before it begins. A device does not
    /// count them.
    pub fn episodes(&self) -> (usize, usize) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }
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
    /// Who simulates and counts them.
    pub device: EvaluationDevice,
    /// Told of every episode that is done, if somebody waits.
    pub progress: Option<&'a AssessmentProgress>,
}

/// The memory that an episode of so many steps takes, if there is so much.
pub(super) fn check_episode(task: &Task, steps: usize) -> Result<u128> {
    let Task { world, problem, halo } = task;
    let n = world.graph().total() / halo.peers().count();
    // An f64 for each weight of occupancies and gradients.
    let bytes = (problem.pair_bytes(n) + 16) * (steps as u128 + 1);
    check_memory(bytes, HORIZON, &format!("an episode of {steps} steps of {n} agents"))?;
    Ok(bytes)
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
    pub fn closing(
        config: &Config,
        task: &'a Task,
        policy: &'a dyn Policy,
        stop: &'a AtomicBool,
        device: EvaluationDevice,
    ) -> Self {
        let episode = task.world.graph().total() as u64 * config.horizon as u64;
        let affordable = (config.evaluation.max_agent_steps / episode).max(1);
        let episodes = config.evaluation.episodes.min(usize::try_from(affordable).unwrap_or(usize::MAX));
        let stream = Stream::new(config.seed);
        let (horizon, progress) = (config.horizon, None);
        Episodes { task, policy, stream, horizon, episodes, stop, device, progress }
    }

    /// Every utility at the occupancy pooled over them; valid on rank 0 only.
    pub fn evaluate(&self) -> Result<Evaluation> {
        let Task { world, halo, .. } = self.task;
        let (numbers, values, slack) = halo.all_ok(self.measure())?;
        let mut values = halo.gather_ragged(world.graph(), &values)?;
        let mut slack = halo.gather_ragged(world.graph(), &slack)?;
        for group in self.task.problem.groups.iter().filter(|_| halo.is_first()) {
            group.share(&mut values, &mut slack);
        }
        let numbers = halo.gather_rows(3, &numbers)?;
        let numbers = numbers.as_chunks::<3>().0;
        let (agents, episodes) = (numbers.len() as f64, self.episodes as f64);
        let tally = |&[objective, return_, _]: &[f64; 3]| AgentMetrics {
            objective,
            return_,
            ..AgentMetrics::default()
        };
        let all = AgentMetrics::fold(&numbers.iter().map(tally).collect::<Vec<_>>());
        let is_paid = world.channels().iter().any(|channel| channel.name == "reward");
        let returns = || numbers.iter().map(|[_, earned, _]| earned / episodes).collect();
        Ok(Evaluation {
            episodes: self.episodes,
            return_: is_paid.then(|| all.return_ / (episodes * agents)),
            objective: all.objective / agents,
            objectives: numbers.iter().map(|[objective, ..]| *objective).collect(),
            returns: is_paid.then(returns),
            violations: Violations::from_slack(&slack),
            usual_states: numbers.iter().map(|[.., usual]| *usual as u8).collect(),
            values,
            slack,
        })
    }

    /// The same on a card, if they are to be there; returns count so many of their steps.
    pub fn on_card(&self, counted: usize) -> Result<Option<CardEpisodes>> {
        let Episodes { task, policy, ref stream, horizon, episodes, .. } = *self;
        self.device.episodes(&EpisodePlan { task, policy, stream, horizon, counted, episodes })
    }

    /// Their visits, pooled.
    pub fn visits(&self, weights: &[f64]) -> Result<Visits> {
        self.visits_on(self.on_card(self.horizon)?.as_ref(), weights)
    }

    /// The same where a card may have them.
    pub fn visits_on(&self, card: Option<&CardEpisodes>, weights: &[f64]) -> Result<Visits> {
        if let Some(card) = card {
            return card.visits(weights, &|| self.go_on());
        }
        let actions = self.policy.action_counts();
        let Task { world, problem, .. } = self.task;
        let mut visits = Visits::for_problem(problem).restricted_to(world.graph().work_blocks());
        self.for_each_chunk(|batch| {
            visits.add(batch, weights, actions);
            visits.count_events(batch, problem, self.episodes);
        })?;
        visits.rescale(problem);
        Ok(visits)
    }

    /// Fails if nobody wants to know any more.
    pub fn go_on(&self) -> Result<()> {
        let stopping = || Ok(u8::from(self.stop.load(Ordering::Relaxed)));
        ensure(self.task.halo.broadcast_decision(stopping)? == 0, || Error::Stopped)
    }

    /// Hands them out in order, a few at a time.
    pub fn for_each_chunk(&self, mut work: impl FnMut(&[Trajectory])) -> Result<()> {
        // Enough at a time to occupy many threads, few enough to stay small in memory; results do not depend
        // on it.
        const AT_ONCE: usize = 16;
        const BYTES: u128 = 1 << 28;
        let Task { world, halo, .. } = self.task;
        // The same in all processes.
        let n = world.graph().total() / halo.peers().count();
        let fit = usize::try_from(BYTES / check_episode(self.task, self.horizon)?).unwrap_or(AT_ONCE).max(1);
        let at_once = if n < rollout::SPLIT_AGENTS { AT_ONCE.min(self.episodes).min(fit) } else { 1 };
        let mut trajectories = vec![Trajectory::for_world(&**world, self.horizon); at_once];
        for first in (0..self.episodes).step_by(at_once.max(1)) {
            self.go_on()?;
            let numbers = first..self.episodes.min(first + at_once);
            let requests: Vec<Request> = numbers.map(|k| episode_request(k as u32)).collect();
            let batch = &mut trajectories[..requests.len()];
            rollout::simulate(&**world, self.policy, &self.stream, &requests, batch, halo)?;
            work(batch);
            self.progress.inspect(|progress| progress.advance(requests.len()));
        }
        Ok(())
    }

    /// Every own agent's utilities at its pooled occupancy: f_i, what was earned in all episodes and the
    /// usual state, one after the other; values of the bounded utilities; their slacks.
    fn measure(&self) -> Result<(Vec<f64>, Ragged<f64>, Ragged<f64>)> {
        let Task { world, problem, .. } = self.task;
        let graph = world.graph();
        let visits = self.visits(&problem.occupancy_weights(self.horizon, self.episodes))?;
        let earned = undiscounted_returns(&**world, &visits.counts);
        let mut usual = UsualStates::new(problem);
        usual.add(&visits, problem);
        let usual = usual.states();
        let mut numbers = Vec::with_capacity(3 * problem.agents.len());
        let mut values = Ragged::zeros(problem.agents.iter().map(|agent| agent.constraints.len()));
        let mut slack = Ragged::zeros_like(&values);
        for i in graph.owned_agents() {
            let (agent, lambda, id) =
                (&problem.agents[i], visits.occupancy.row(i), graph.global_id(i) as usize);
            let value = agent.objective.value(lambda, agent.space);
            check(value, id, "f")?;
            let return_ = earned.as_ref().map_or(0.0, |earned| earned(i));
            check_sum(value, graph.total(), id, "f")?;
            check_sum(return_, graph.total(), id, "the return")?;
            numbers.extend([value, return_, f64::from(usual[i])]);
            for (k, constraint) in agent.constraints.iter().enumerate() {
                let value = constraint.utility.value(lambda, agent.space);
                check(value, id, "g")?;
                values.row_mut(i)[k] = value;
                slack.row_mut(i)[k] = constraint.bound.slack(value);
                check_sum(slack.row(i)[k], graph.total(), id, "g")?;
            }
        }
        Ok((numbers, values, slack))
    }
}

pub(super) fn check(value: f64, agent: usize, quantity: &'static str) -> Result<()> {
    ensure(value.is_finite(), || Error::NoValue { agent, quantity, value })
}

/// Whether a number can be summed up over so many agents.
fn check_sum(value: f64, agents: usize, agent: usize, quantity: &'static str) -> Result<()> {
    check(value * agents as f64, agent, quantity)
}

/// A fixed policy with its multipliers in its world: what can be evaluated.
pub struct Evaluator {
    config: Config,
    task: Task,
    policy: Box<dyn Policy>,
    mu: Ragged<f64>,
    /// Every agent's most frequent state, where the run says it.
    usual: Option<Vec<u8>>,
    warnings: Vec<String>,
    /// Ends evaluations when it is set.
    stop: Arc<AtomicBool>,
    /// Who simulates and counts episodes.
    device: EvaluationDevice,
    progress: Arc<AssessmentProgress>,
}

impl Evaluator {
    /// The policy that training with `config` begins with.
    pub fn new(config: &Config) -> Result<Self> {
        Evaluator::with_policy(config, |world| build::bare_policy(config, world))
    }

    /// The trained policy of the run in a folder.
    pub fn from_run(run: &Path, registry: &Registry) -> Result<Self> {
        Evaluator::from_run_in(run, registry, &[])
    }

    /// The same where some settings change what is around the policy, such as where episodes start or how
    /// many messages are lost, or how much may be evaluated; keys of `[world]`, `[network]`, `[links]` and
    /// `[evaluation]` only. A policy that agents share also acts on another graph.
    pub fn from_run_in(run: &Path, registry: &Registry, sets: &[(&str, &str)]) -> Result<Self> {
        let sections = ["world", "network", LINKS, EVALUATION];
        let can_change =
            |key: &str| key.split_once('.').is_some_and(|(section, _)| sections.contains(&section));
        if let Some((key, _)) = sets.iter().find(|(key, _)| !can_change(key)) {
            let message = "goes with a preset or a file, not with a run";
            let allowed = "is no key of its world, network, links or evaluation";
            return Err(Error::argument("set", format!("{message}; `{key}` {allowed}")));
        }
        let (trained, _) = meta::checked_config(run, &Meta::read(run)?, registry)?;
        let config =
            if sets.is_empty() { trained.clone() } else { trained.with_all(sets.iter().copied())? };
        // Links and evaluations do not change who there is: no world is built for them.
        let is_around =
            |(key, _): &(&str, &str)| ![LINKS, EVALUATION].iter().any(|part| key.starts_with(part));
        let is_elsewhere = sets.iter().any(is_around) && !has_same_graph(&trained, &config)?;
        ensure(!is_elsewhere || config.policy.is_shared(), || {
            let message = "changes the graph, and this run has a policy per agent, which belongs to its own; train with";
            Error::argument("set", format!("{message} {} = \"shared\" to act on others", policy::KIND))
        })?;
        let file = run.join(folder::POLICY);
        let unfinished = "has no policy yet: it is not finished; resume it";
        ensure(file.exists(), || Error::file(run, unfinished))?;
        let mut found = Evaluator::new(&config)?;
        if !is_elsewhere && let Some(mu) = multipliers::read(run, found.problem())? {
            found.mu = mu;
        }
        let theta = policy::load(&*found.policy, &file)?;
        checksums::check(run, folder::POLICY)?;
        found.set_theta(theta);
        found.usual = if is_elsewhere { None } else { usual_states::read(run, found.world())? };
        if found.policy.usual_states().is_some() {
            if found.usual.is_none() {
                let message = "the run does not say which states are usual here; fresh episodes tell";
                found.warnings.push(message.into());
            }
            let states = found.usual_states()?;
            found.set_usual_states(states);
        }
        Ok(found)
    }

    /// A scripted policy: `uniform`, or one that the configuration's world knows.
    pub fn scripted(config: &Config, name: &str) -> Result<Self> {
        Evaluator::with_policy(config, |world| {
            let script = match name {
                "uniform" => Some(Script::Laws(Ragged::from_rows((0..world.graph().agents()).map(|i| {
                    let actions = world.actions(i);
                    vec![1.0 / actions as f64; world.states(i) * actions]
                })))),
                name => world.scripted(name, config.horizon),
            };
            Ok(match script {
                Some(Script::Laws(laws)) => Box::new(Tabular::scripted(world, laws)?),
                Some(Script::Rule(_)) if !config.links.is_off() => return Err(policy::joint_error()),
                Some(Script::Rule(rule)) => Box::new(RulePolicy::new(world, rule)),
                None => {
                    let known = [&["uniform"], world.scripted_names()].concat().join(", ");
                    let unknown = || format!("`{name}` is unknown for this world; allowed are {known}");
                    let why = world.why_not_scripted(name).map(|why| format!("`{name}`: {why}"));
                    return Err(Error::argument("policy", why.unwrap_or_else(unknown)));
                }
            })
        })
    }

    /// Any policy, made for the world of `config`. Multipliers are as they are when training begins.
    pub fn with_policy(
        config: &Config,
        policy: impl FnOnce(&dyn World) -> Result<Box<dyn Policy>>,
    ) -> Result<Self> {
        let (task, warnings) = build::task(config)?;
        let mut mu = Ragged::zeros(task.problem.agents.iter().map(|agent| agent.constraints.len()));
        mu.data_mut().fill(*config.dual.mu_0);
        let policy = policy(&*task.world)?;
        Ok(Evaluator { warnings, ..Evaluator::with(config, task, policy, mu) })
    }

    /// Of what is there already.
    pub(super) fn with(config: &Config, task: Task, policy: Box<dyn Policy>, mu: Ragged<f64>) -> Self {
        let config = build::with_gamma(config, &task.problem);
        let (warnings, stop, device) = (Vec::new(), Arc::default(), EvaluationDevice::default());
        let progress = Arc::default();
        Evaluator { config, task, policy, mu, usual: None, warnings, stop, device, progress }
    }

    /// The same with the most likely action of every law in place of a draw.
    pub fn greedy(self) -> Self {
        Evaluator { policy: Box::new(GreedyPolicy::new(self.policy)), ..self }
    }

    /// The same where episodes are simulated and counted on a device. Fails if this policy cannot be
    /// evaluated there.
    pub fn on_device(self, device: EvaluationDevice) -> Result<Self> {
        device.check(&self.task, &*self.policy)?;
        Ok(Evaluator { device, ..self })
    }

    /// The text of the kernels that evaluate, where a device does.
    pub fn kernels(&self) -> Result<Option<String>> {
        let card = self.episodes(1, self.config.horizon, 1).on_card(self.config.horizon)?;
        Ok(card.map(|card| card.kernels().into()))
    }

    /// Another θ for the same policy.
    pub(super) fn set_theta(&mut self, theta: Ragged<f64>) {
        *self.policy.theta_mut() = theta;
        self.policy.refresh();
    }

    /// The state that every agent was in most often, as the run says; fresh episodes tell where it does not.
    pub fn usual_states(&self) -> Result<Vec<u8>> {
        self.usual.clone().map_or_else(|| usual_states::estimate(self), Ok)
    }

    /// Other usual states for the same policy, if it needs any.
    pub(super) fn set_usual_states(&mut self, states: Vec<u8>) {
        self.policy.set_usual_states(states);
    }

    /// Evaluates the policy on fresh episodes, as many as `[evaluation]` asks for and allows.
    pub fn evaluate(&self) -> Result<Evaluation> {
        let device = self.device.clone();
        Episodes::closing(&self.config, &self.task, self.policy(), &self.stop, device).evaluate()
    }

    /// Assesses the policy on fresh episodes with numbers of their own: `seed` is the evaluation's, not the
    /// run's. Fewer than `episodes` are run where `[evaluation] max_agent_steps` would be exceeded.
    pub fn assess(&self, episodes: usize, seed: u64, confidence: f64) -> Result<Assessment> {
        self.assess_on(&self.device, episodes, seed, confidence)
    }

    /// The same where another device simulates and counts; fails if it cannot.
    pub fn assess_on(
        &self,
        device: &EvaluationDevice,
        episodes: usize,
        seed: u64,
        confidence: f64,
    ) -> Result<Assessment> {
        device.check(&self.task, self.policy())?;
        let episodes = self.episodes(seed, self.config.horizon, self.affordable(episodes, 2)?);
        Episodes { device: device.clone(), ..episodes }.assess(confidence)
    }

    /// λ_i, pooled over fresh episodes as in [`Evaluator::assess`], of which at least one is needed.
    pub fn occupancy(&self, episodes: usize, seed: u64) -> Result<Ragged<f64>> {
        ensure(episodes > 0, || Error::argument("episodes", "0; at least 1 is needed"))?;
        let problem = self.problem();
        let horizon = assessment_horizon(problem, self.config.horizon)?;
        let episodes = self.episodes(seed, horizon, self.affordable(episodes, 1)?);
        let visits = episodes.visits(&problem.occupancy_weights(horizon, episodes.episodes))?;
        // Totals of sampled channels stand behind the cells.
        let cells = |i: usize| problem.agents[i].space.cells();
        let rows = visits.occupancy.iter().enumerate();
        Ok(Ragged::from_rows(rows.map(|(i, row)| row[..cells(i)].iter().copied())))
    }

    /// The k-th of the episodes of [`Evaluator::assess`] with the same seed, from 0 and below 2²⁴, over
    /// `steps` steps.
    pub fn episode(&self, k: u32, seed: u64, steps: usize) -> Result<Trajectory> {
        let mut found = [Trajectory::for_world(self.world(), steps)];
        let (stream, request) = (evaluation_stream(seed), episode_request(k));
        rollout::simulate(self.world(), self.policy(), &stream, &[request], &mut found, &self.task.halo)?;
        let [found] = found;
        Ok(found)
    }

    pub(super) fn episodes(&self, seed: u64, horizon: usize, episodes: usize) -> Episodes<'_> {
        Episodes {
            task: &self.task,
            policy: self.policy(),
            stream: evaluation_stream(seed),
            horizon,
            episodes,
            stop: &self.stop,
            device: self.device.clone(),
            progress: Some(&self.progress),
        }
    }

    /// As many of `episodes`, each run so many times, as `[evaluation] max_agent_steps` allows.
    fn affordable(&self, episodes: usize, times: u64) -> Result<usize> {
        let length = assessment_horizon(self.problem(), self.config.horizon)?;
        let steps = times * self.world().graph().agents() as u64 * length as u64;
        let affordable = (self.config.evaluation.max_agent_steps / steps).max(8);
        Ok(episodes.min(usize::try_from(affordable).unwrap_or(usize::MAX)))
    }

    /// What was asked for.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The environment.
    pub fn world(&self) -> &dyn World {
        &*self.task.world
    }

    /// Objectives and constraints.
    pub fn problem(&self) -> &Problem {
        &self.task.problem
    }

    /// The policy.
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// μ.
    pub fn mu(&self) -> &Ragged<f64> {
        &self.mu
    }

    /// Things that the user should know, such as bounds that no policy can meet.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Lets another device simulate and count, as far as it can.
    pub(super) fn set_device(&mut self, device: EvaluationDevice) {
        self.device = device;
    }

    /// Lets another flag end evaluations.
    pub(super) fn set_stop_flag(&mut self, stop: Arc<AtomicBool>) {
        self.stop = stop;
    }

    /// Ends evaluations, with [`Error::Stopped`], soon after it is set.
    pub fn stop_flag(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// How far an assessment is that another thread waits for.
    pub fn progress(&self) -> &Arc<AssessmentProgress> {
        &self.progress
    }
}

/// Whether the agents of two configurations talk to the same others.
fn has_same_graph(one: &Config, other: &Config) -> Result<bool> {
    Ok(build::world(one)?.graph() == build::world(other)?.graph())
}

/// Another key than training with the same seed has.
pub(super) fn evaluation_stream(seed: u64) -> Stream {
    Stream::new(evaluation_seed(seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_episodes_are_those_of_the_evaluation() {
        let config = Config::preset("synthetic").unwrap().with("policy.init_std", "1.0").unwrap();
        let evaluator = Evaluator::new(&config).unwrap();
        let steps = assessment_horizon(evaluator.problem(), evaluator.config().horizon).unwrap();
        let episodes: Vec<Trajectory> = (0..3).map(|k| evaluator.episode(k, 5, steps).unwrap()).collect();
        let mut visits = Visits::new([4; 10]);
        visits.add(&episodes, &evaluator.problem().occupancy_weights(steps, 3), &[2; 10]);
        assert_eq!(visits.occupancy, evaluator.occupancy(3, 5).unwrap());
        assert_ne!(visits.occupancy, evaluator.occupancy(3, 6).unwrap());
        // A shorter one is the beginning of a longer one.
        assert_eq!(evaluator.episode(1, 5, 20).unwrap().states(7), &episodes[1].states(7)[..20]);
    }
}
