//! A fixed policy with its multipliers in its world: what can be evaluated. Nothing here is trained.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::assess::{Assessment, assessment_horizon};
use super::build;
use super::config::Config;
use super::evaluate::{Episodes, Evaluation, episode_request};
use super::multipliers;
use crate::algorithm::Task;
use crate::base::error::ensure;
use crate::base::stream::Stream;
use crate::policy::{self, Policy, RulePolicy, Tabular};
use crate::sample::rollout;
use crate::utility::problem::Problem;
use crate::world::{Registry, Script, Trajectory, World};
use crate::{Error, Ragged, Result};

/// World, problem, policy and multipliers.
pub struct Evaluator {
    config: Config,
    task: Task,
    policy: Box<dyn Policy>,
    mu: Ragged<f64>,
    warnings: Vec<String>,
    /// Ends evaluations when it is set.
    stop: Arc<AtomicBool>,
}

impl Evaluator {
    /// The policy that training with `config` begins with.
    pub fn new(config: &Config) -> Result<Self> {
        Evaluator::build(config, |world| build::bare_policy(config, world))
    }

    /// The trained policy of the run in a folder.
    pub fn from_run(run: &Path, registry: &Registry) -> Result<Self> {
        let config = Config::of_run(run)?.with_registry(registry.clone());
        let file = run.join("policy.safetensors");
        let unfinished = "has no policy yet: it is not finished; `phalanx resume` goes on with it";
        ensure(file.exists(), || Error::file(run, unfinished))?;
        let mut found = Evaluator::new(&config)?;
        if let Some(mu) = multipliers::read(run, found.problem())? {
            found.mu = mu;
        }
        let theta = policy::load(&*found.policy, &file)?;
        found.set_theta(theta);
        Ok(found)
    }

    /// A scripted policy: `uniform`, or one that the configuration's world knows.
    pub fn scripted(config: &Config, name: &str) -> Result<Self> {
        Evaluator::build(config, |world| {
            let script = match name {
                "uniform" => Some(Script::Laws(Ragged::from_rows((0..world.graph().agents()).map(|i| {
                    let actions = world.actions(i);
                    vec![1.0 / actions as f64; world.states(i) * actions]
                })))),
                name => world.scripted(name, config.horizon),
            };
            Ok(match script {
                Some(Script::Laws(laws)) => Box::new(Tabular::scripted(world, laws)?),
                Some(Script::Rule(rule)) => Box::new(RulePolicy::new(world, rule)),
                None => {
                    let known = [&["uniform"], world.scripted_names()].concat().join(", ");
                    let message = format!("`{name}` is unknown for this world; allowed are {known}");
                    return Err(Error::argument("policy", message));
                }
            })
        })
    }

    /// Multipliers are as they are when training begins.
    fn build(config: &Config, policy: impl FnOnce(&dyn World) -> Result<Box<dyn Policy>>) -> Result<Self> {
        let (task, warnings) = build::task(config)?;
        let mut mu = Ragged::zeros(task.problem.agents.iter().map(|agent| agent.constraints.len()));
        mu.data_mut().fill(*config.dual.mu_0);
        let policy = policy(&*task.world)?;
        Ok(Evaluator { warnings, ..Evaluator::with(config, task, policy, mu) })
    }

    /// Of what is there already.
    pub(super) fn with(config: &Config, task: Task, policy: Box<dyn Policy>, mu: Ragged<f64>) -> Self {
        let config = build::with_gamma(config, &task.problem);
        Evaluator { config, task, policy, mu, warnings: Vec::new(), stop: Arc::default() }
    }

    /// Another θ for the same policy.
    pub(super) fn set_theta(&mut self, theta: Ragged<f64>) {
        *self.policy.theta_mut() = theta;
        self.policy.refresh();
    }

    /// Evaluates the policy on fresh episodes, as many as `[evaluation]` asks for and allows.
    pub fn evaluate(&self) -> Result<Evaluation> {
        Episodes::closing(&self.config, &self.task, self.policy(), &self.stop).evaluate()
    }

    /// Assesses the policy on fresh episodes with numbers of their own: `seed` is the evaluation's, not the run's. Fewer
    /// than `episodes` are run where `[evaluation] max_agent_steps` would be exceeded.
    pub fn assess(&self, episodes: usize, seed: u64, confidence: f64) -> Result<Assessment> {
        self.episodes(seed, self.config.horizon, self.affordable(episodes, 2)).assess(confidence)
    }

    /// λ_i, pooled over fresh episodes as in [`Evaluator::assess`], of which at least one is needed.
    pub fn occupancy(&self, episodes: usize, seed: u64) -> Result<Ragged<f64>> {
        ensure(episodes > 0, || Error::argument("episodes", "0; at least 1 is needed"))?;
        let problem = self.problem();
        let horizon = assessment_horizon(problem, self.config.horizon);
        let episodes = self.episodes(seed, horizon, self.affordable(episodes, 1));
        let visits = episodes.visits(&problem.occupancy_weights(horizon, episodes.episodes))?;
        // Totals of sampled channels stand behind the cells.
        let cells = |i: usize| problem.agents[i].space.cells();
        let rows = visits.occupancy.iter().enumerate();
        Ok(Ragged::from_rows(rows.map(|(i, row)| row[..cells(i)].iter().copied())))
    }

    /// The k-th of the episodes of [`Evaluator::assess`] with the same seed, from 0 and below 2²⁴, over `steps` steps.
    pub fn episode(&self, k: u32, seed: u64, steps: usize) -> Result<Trajectory> {
        let mut found = [Trajectory::for_world(self.world(), steps)];
        let (stream, request) = (evaluation_stream(seed), episode_request(k));
        rollout::simulate(self.world(), self.policy(), &stream, &[request], &mut found, &self.task.halo)?;
        let [found] = found;
        Ok(found)
    }

    fn episodes(&self, seed: u64, horizon: usize, episodes: usize) -> Episodes<'_> {
        let stream = evaluation_stream(seed);
        Episodes { task: &self.task, policy: self.policy(), stream, horizon, episodes, stop: &self.stop }
    }

    /// As many of `episodes`, each run so many times, as `[evaluation] max_agent_steps` allows.
    fn affordable(&self, episodes: usize, times: u64) -> usize {
        let length = assessment_horizon(self.problem(), self.config.horizon);
        let steps = times * self.world().graph().agents() as u64 * length as u64;
        let affordable = (self.config.evaluation.max_agent_steps / steps).max(8);
        episodes.min(usize::try_from(affordable).unwrap_or(usize::MAX))
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

    /// Ends evaluations, with [`Error::Stopped`], soon after it is set.
    pub fn stop_flag(&self) -> &Arc<AtomicBool> {
        &self.stop
    }
}

/// Another key than training with the same seed has.
fn evaluation_stream(seed: u64) -> Stream {
    Stream::new(seed ^ 0x6576_616c_7561_7465)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::occupancy::Visits;

    #[test]
    fn single_episodes_are_those_of_the_evaluation() {
        let config = Config::preset("synthetic").unwrap().with("policy.init_std", "1.0").unwrap();
        let evaluator = Evaluator::new(&config).unwrap();
        let steps = assessment_horizon(evaluator.problem(), evaluator.config().horizon);
        let episodes: Vec<Trajectory> = (0..3).map(|k| evaluator.episode(k, 5, steps).unwrap()).collect();
        let mut visits = Visits::new([4; 10]);
        visits.add(&episodes, &evaluator.problem().occupancy_weights(steps, 3), &[2; 10]);
        assert_eq!(visits.occupancy, evaluator.occupancy(3, 5).unwrap());
        assert_ne!(visits.occupancy, evaluator.occupancy(3, 6).unwrap());
        // A shorter one is the beginning of a longer one.
        assert_eq!(evaluator.episode(1, 5, 20).unwrap().states(7), &episodes[1].states(7)[..20]);
    }
}
