//! A run in memory: built from a configuration, advanced one iteration at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::assess::{Assessment, assessment_horizon};
use super::build;
use super::config::Config;
use super::evaluate::{Episodes, Evaluation, evaluate_part};
use super::exact_evaluation::{ExactEvaluation, PointEvaluation};
use super::registry::Registry;
use crate::algorithm::{Algorithm, Still, Summary};
use crate::base::fields::{Field, Fields};
use crate::base::stream::{Place, Purpose, Stream};
use crate::distributed::{Communicator, Halo, all_ok_among, same_among};
use crate::graph::Partition;
use crate::policy::{self, Policy, RulePolicy, Tabular};
use crate::sample::rollout::{self, Request, StartFrom};
use crate::utility::problem::Problem;
use crate::world::Trajectory;
use crate::world::{Evolution, Script, World, sub_world};
use crate::{Error, Ragged, Result};

/// A training run.
pub struct Session {
    config: Config,
    world: Arc<dyn World>,
    problem: Arc<Problem>,
    algorithm: Box<dyn Algorithm>,
    warnings: Vec<String>,
    /// The policy that it began with, if it was not the configuration's.
    warm_from: Option<PathBuf>,
    scripted: Option<Box<dyn Policy>>,
    /// Where the network is shared out over processes, of which this is one.
    halo: Option<Arc<Halo>>,
    /// Ends evaluations.
    stop: Arc<AtomicBool>,
}

impl Session {
    /// Builds everything that `config` asks for; nothing is written.
    pub fn new(config: &Config) -> Result<Self> {
        let world = build::world(config)?;
        let (problem, warnings) = build::problem(config, &*world)?;
        Ok(Session { warnings, ..Session::with(config, world, problem)? })
    }

    /// A run's configuration with its policy, for evaluation.
    pub fn of_run(run: &Path, registry: &Registry) -> Result<Self> {
        let config = Config::of_run(run)?;
        let policy = run.join("policy.safetensors");
        if !policy.exists() {
            return Err(Error::file(
                run,
                "has no policy yet: it is not finished; `phalanx resume` goes on with it",
            ));
        }
        let config = config.with_registry(registry.clone());
        let world = build::world(&config)?;
        let (problem, warnings) = build::problem(&config, &*world)?;
        let mu = super::multipliers::read(run, &problem)?;
        let mu = mu.unwrap_or_else(|| no_multipliers(&problem, config.dual.mu_0));
        let mut session = Session::still(&config, world, problem, mu)?;
        session.warm_start(&policy)?;
        Ok(Session { warnings, ..session })
    }

    /// The configuration's initial policy with some multipliers, not to be trained.
    fn still(config: &Config, world: Arc<dyn World>, problem: Problem, mu: Ragged<f64>) -> Result<Self> {
        let policy = build::bare_policy(config, &*world)?;
        let algorithm = Box::new(Still::new(policy, mu));
        Ok(Session {
            config: build::with_gamma(config, &problem),
            world,
            problem: Arc::new(problem),
            algorithm,
            warnings: Vec::new(),
            warm_from: None,
            scripted: None,
            halo: None,
            stop: Arc::default(),
        })
    }

    /// One process's part of a run, which all `peers` build at the same time: they must have the same configuration.
    ///
    /// Every process looks at the whole network once, and then keeps its agents and those near them.
    pub fn shared_out(config: &Config, peers: Arc<dyn Communicator>) -> Result<Self> {
        same_among(&peers, &config.to_toml(), "configuration")?;
        let built = build::world(config).and_then(|world| {
            build::check_parts(config, &*world)?;
            let (problem, warnings) = build::problem(config, &*world)?;
            let partition = Partition::new(world.graph(), peers.count())?;
            Ok((world, problem, warnings, partition))
        });
        let (world, problem, warnings, partition) = all_ok_among(&peers, built)?;
        let depth = config.kappa.max(config.kappa_q);
        let share = match world.evolution() {
            Evolution::Factored(factored) => {
                partition.share(world.graph(), peers.rank(), depth, |i| factored.parents(i))
            }
            Evolution::Joint(_) => partition.share(world.graph(), peers.rank(), depth, |_| Vec::new()),
        };
        let network = world.graph().part(share.ids.clone(), |id| partition.owner(id) == peers.rank());
        let halo = Arc::new(Halo::new(peers, partition, &share, &network)?);
        let Problem { ref agents, gamma, scaling, sampled_channels, episodic } = problem;
        let agents = share.ids.iter().map(|&id| agents[id as usize].clone()).collect();
        let own = Problem { agents, gamma, scaling, sampled_channels, episodic };
        drop(problem);
        let part = sub_world(world, network);
        let session = part.and_then(|world| Session::build(config, world, own, Some(halo.clone())));
        let session = halo.agree(session)?;
        Ok(Session { warnings, ..session })
    }

    /// What a shared-out run has come to: the whole network with its policy and multipliers, at the first process.
    pub(super) fn whole(&self) -> Result<Option<Session>> {
        let Some(halo) = &self.halo else { return Ok(None) };
        let own = |rows: &Ragged<f64>| {
            let rows: Vec<&[f64]> = self.world.graph().own_agents().map(|i| rows.row(i)).collect();
            halo.gather_ragged(&rows)
        };
        let (theta, mu) = (own(self.algorithm.policy().theta())?, own(self.algorithm.mu())?);
        let whole = || -> Result<Option<Session>> {
            if !halo.is_first() {
                return Ok(None);
            }
            let world = build::world(&self.config)?;
            let (problem, _) = build::problem(&self.config, &*world)?;
            let mut session = Session::still(&self.config, world, problem, mu)?;
            session.algorithm.start_from(theta);
            Ok(Some(session))
        };
        halo.agree(whole())
    }

    /// The configuration with a scripted policy, for evaluation: `uniform`, or one that the world knows.
    pub fn scripted(config: &Config, name: &str) -> Result<Self> {
        // Nothing is trained, so the models of the configuration, which may be large, are not built.
        let small = config.with_all([
            ("algorithm", "primal-dual"),
            ("kappa", "0"),
            ("kappa_q", "0"),
            ("kappa_g", "0"),
            ("policy.kind", "softmax"),
            ("critic.kind", "montecarlo"),
            ("actor.baseline", "mean"),
            ("actor.rule", "constant"),
            ("actor.all_actions", "false"),
        ])?;
        let mut session = Session::new(&small)?;
        session.config = build::with_gamma(config, &session.problem);
        let world = &*session.world;
        let n = world.graph().agents();
        let script = match name {
            "uniform" => Some(Script::Laws(Ragged::from_rows((0..n).map(|i| {
                let actions = world.actions(i);
                vec![1.0 / actions as f64; world.states(i) * actions]
            })))),
            name => world.scripted(name, config.horizon),
        };
        let script = script.ok_or_else(|| {
            let known = ["uniform"].iter().chain(world.scripted_names()).copied().collect::<Vec<_>>();
            let message = format!("`{name}` is unknown for this world; allowed are {}", known.join(", "));
            Error::config("--policy", message)
        })?;
        session.scripted = Some(match script {
            Script::Laws(laws) => Box::new(Tabular::scripted(world, laws)?),
            Script::Rule(rule) => Box::new(RulePolicy::new(world, rule)),
        });
        Ok(session)
    }

    /// As [`Session::new`] with a world or a problem of one's own; `[world]`, `[objective]` and `[[constraint]]` of
    /// `config` are not looked at.
    pub fn with(config: &Config, world: Arc<dyn World>, problem: Problem) -> Result<Self> {
        Session::build(config, world, problem, None)
    }

    fn build(
        config: &Config,
        world: Arc<dyn World>,
        problem: Problem,
        halo: Option<Arc<Halo>>,
    ) -> Result<Self> {
        let problem = Arc::new(problem);
        let algorithm = build::algorithm(config, &world, &problem, halo.clone())?;
        Ok(Session {
            config: build::with_gamma(config, &problem),
            world,
            problem,
            algorithm,
            warnings: Vec::new(),
            warm_from: None,
            scripted: None,
            halo,
            stop: Arc::default(),
        })
    }

    /// Starts from the policy in a file instead of the configuration's initial one.
    pub fn warm_start(&mut self, file: &Path) -> Result<()> {
        let theta = match self.world.graph().ids() {
            None => policy::load(self.algorithm.policy(), file)?,
            Some(ids) => {
                // Files are of whole networks.
                let whole =
                    policy::load(&*build::bare_policy(&self.config, &*build::world(&self.config)?)?, file)?;
                // A ghost's policy may look different here; nobody asks for it.
                let before = self.algorithm.policy().theta();
                let row = |i: usize| {
                    if before.row(i).len() == whole.row(ids[i] as usize).len() {
                        whole.row(ids[i] as usize).to_vec()
                    } else {
                        before.row(i).to_vec()
                    }
                };
                Ragged::from_rows((0..ids.len()).map(row))
            }
        };
        self.algorithm.start_from(theta);
        self.warm_from = Some(file.to_path_buf());
        Ok(())
    }

    /// The file that [`Session::warm_start`] was used with.
    pub fn warm_from(&self) -> Option<&Path> {
        self.warm_from.as_deref()
    }

    /// Everything that the next iteration depends on.
    pub fn fields(&mut self) -> Fields<'_> {
        self.algorithm.fields()
    }

    /// Size of a checkpoint.
    pub fn state_bytes(&mut self) -> usize {
        let size = |field: &Field<'_>| match field {
            Field::Numbers(numbers) => size_of_val(*numbers),
            Field::Rows(rows) => size_of_val(rows.data()),
            Field::SingleRows(rows) => size_of_val(rows.data()),
            Field::Counter(_) => size_of::<u64>(),
        };
        self.fields().iter().map(|(_, field)| size(field)).sum()
    }

    /// Replaces the state by what `read` writes into its fields.
    pub fn restore(&mut self, read: impl FnOnce(Fields<'_>) -> Result<()>) -> Result<()> {
        read(self.algorithm.fields())?;
        self.algorithm.restored();
        Ok(())
    }

    /// Whether all iterations are done.
    pub fn is_done(&self) -> bool {
        self.algorithm.iteration() >= self.config.iterations
    }

    /// One iteration; none once all are done.
    pub fn advance(&mut self) -> Result<Option<Summary>> {
        if self.is_done() {
            self.algorithm.forget_samples();
            return Ok(None);
        }
        self.algorithm.step().map(Some)
    }

    /// Evaluates the current policy on fresh episodes, as many as `[evaluation]` asks for and allows.
    pub fn evaluate(&self) -> Result<Evaluation> {
        let stream = Stream::new(self.config.seed);
        self.episodes(&stream, self.config.horizon, self.evaluation_episodes()).evaluate()
    }

    /// Episodes of the current policy.
    fn episodes<'a>(&'a self, stream: &'a Stream, horizon: usize, episodes: usize) -> Episodes<'a> {
        Episodes {
            world: &*self.world,
            policy: self.policy(),
            problem: &self.problem,
            stream,
            horizon,
            episodes,
            halo: self.halo.as_deref(),
            stop: Some(&self.stop),
        }
    }

    /// Makes evaluations end, with [`Error::Stopped`], soon after `stop` is set.
    pub fn heed(&mut self, stop: Arc<AtomicBool>) {
        self.stop = stop;
    }

    /// What ends evaluations when it is set.
    pub fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// The same for a run that may be shared out over processes: at the first of them, nothing elsewhere.
    pub(super) fn evaluate_all(&self) -> Result<Option<Evaluation>> {
        let Some(halo) = &self.halo else { return self.evaluate().map(Some) };
        let stream = Stream::new(self.config.seed);
        evaluate_part(&self.episodes(&stream, self.config.horizon, self.evaluation_episodes()), halo)
    }

    /// As many as `[evaluation]` asks for and allows.
    fn evaluation_episodes(&self) -> usize {
        let evaluation = &self.config.evaluation;
        let episode = self.world.graph().total() as u64 * self.config.horizon as u64;
        let affordable = (evaluation.max_agent_steps / episode).max(1);
        evaluation.episodes.min(usize::try_from(affordable).unwrap_or(usize::MAX))
    }

    /// Where the network is shared out over processes, of which this is one.
    pub fn halo(&self) -> Option<&Arc<Halo>> {
        self.halo.as_ref()
    }

    /// Assesses the current policy on fresh episodes with numbers of their own: `seed` is the evaluation's, not the
    /// run's. Fewer than `episodes` are run where `[evaluation] max_agent_steps` would be exceeded.
    pub fn assess(&self, episodes: usize, seed: u64, confidence: f64) -> Result<Assessment> {
        let stream = evaluation_stream(seed);
        self.episodes(&stream, self.config.horizon, self.affordable(episodes, 2)).assess(confidence)
    }

    /// As many of `episodes`, each run so many times, as `[evaluation] max_agent_steps` allows.
    fn affordable(&self, episodes: usize, times: u64) -> usize {
        let length = assessment_horizon(&self.problem, self.config.horizon);
        let steps = times * self.world.graph().agents() as u64 * length as u64;
        let affordable = (self.config.evaluation.max_agent_steps / steps).max(8);
        episodes.min(usize::try_from(affordable).unwrap_or(usize::MAX))
    }

    /// The current policy evaluated exactly; none if the network is too large for that to be quick.
    pub fn truth(&self) -> Option<ExactEvaluation> {
        let evaluated = PointEvaluation {
            policy: self.policy().tabular()?,
            mu: self.mu(),
            mu_max: self.config.dual.mu_max,
            theta_box: self.config.policy.theta_box,
            horizon: self.config.horizon,
        };
        ExactEvaluation::if_quick(&*self.world, &self.problem, &evaluated)
    }

    /// λ_i of the current policy, pooled over fresh episodes as in [`Session::assess`], of which at least one is needed.
    pub fn occupancy(&self, episodes: usize, seed: u64) -> Result<Ragged<f64>> {
        if episodes == 0 {
            return Err(Error::config("--episodes", "0; at least 1 is needed"));
        }
        let horizon = assessment_horizon(&self.problem, self.config.horizon);
        let stream = evaluation_stream(seed);
        let episodes = self.episodes(&stream, horizon, self.affordable(episodes, 1));
        let visits = episodes.visits(&self.problem.occupancy_weights(horizon, episodes.episodes))?;
        // Totals of sampled channels stand behind the cells.
        let cells = |i: usize| self.problem.agents[i].space.cells();
        let rows = visits.occupancy.iter().enumerate();
        Ok(Ragged::from_rows(rows.map(|(i, row)| row[..cells(i)].iter().copied())))
    }

    /// The k-th of the episodes of [`Session::assess`] with the same seed, from 0 and below 2²⁴, over `steps` steps.
    pub fn episode(&self, k: u32, seed: u64, steps: usize) -> Trajectory {
        let request = Request {
            place: Place { purpose: Purpose::Evaluation, iteration: 0, trajectory: k },
            start_purpose: Purpose::EvaluationStart,
            start: StartFrom::World,
        };
        let mut found = [Trajectory::of(&*self.world, steps)];
        rollout::simulate(&*self.world, self.policy(), &evaluation_stream(seed), &[request], &mut found);
        let [found] = found;
        found
    }

    /// What was asked for.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The environment.
    pub fn world(&self) -> &dyn World {
        &*self.world
    }

    /// Objectives and constraints.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// μ.
    pub fn mu(&self) -> &Ragged<f64> {
        self.algorithm.mu()
    }

    /// The policy that is evaluated: a scripted one, or the algorithm's.
    pub fn policy(&self) -> &dyn Policy {
        match &self.scripted {
            Some(scripted) => &**scripted,
            None => self.algorithm.policy(),
        }
    }

    /// Policy, multipliers and diagnostics.
    pub fn algorithm(&self) -> &dyn Algorithm {
        &*self.algorithm
    }

    /// Things that the user should know, such as bounds that no policy can meet.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Every multiplier as it is at the start.
fn no_multipliers(problem: &Problem, mu_0: f64) -> Ragged<f64> {
    let mut mu = Ragged::zeros(problem.agents.iter().map(|agent| agent.constraints.len()));
    mu.data_mut().fill(mu_0);
    mu
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
        let session = Session::new(&config).unwrap();
        let steps = assessment_horizon(session.problem(), session.config().horizon);
        let episodes: Vec<Trajectory> = (0..3).map(|k| session.episode(k, 5, steps)).collect();
        let mut visits = Visits::new([4; 10]);
        visits.add(&episodes, &session.problem().occupancy_weights(steps, 3), &[2; 10]);
        assert_eq!(visits.occupancy, session.occupancy(3, 5).unwrap());
        assert_ne!(visits.occupancy, session.occupancy(3, 6).unwrap());
        // A shorter one is the beginning of a longer one.
        assert_eq!(session.episode(1, 5, 20).states(7), &episodes[1].states(7)[..20]);
    }
}
