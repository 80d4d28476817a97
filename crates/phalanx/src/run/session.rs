//! Training in memory: built from a configuration, advanced one iteration at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::build;
use super::config::Config;
use super::evaluate::{Episodes, Evaluation, closing_episodes};
use super::evaluator::Evaluator;
use crate::algorithm::{Algorithm, Summary};
use crate::base::fields::{Field, Fields};
use crate::base::stream::Stream;
use crate::distributed::{Communicator, Halo, SingleProcess, all_ok_among, same_among};
use crate::graph::Partition;
use crate::policy::{self, Policy};
use crate::utility::problem::Problem;
use crate::world::{Evolution, World, sub_world};
use crate::{Error, Ragged, Result};

/// An algorithm with the world and the problem that it is trained on; where several processes share the network, one
/// process's part of them.
pub struct Session {
    config: Config,
    world: Arc<dyn World>,
    problem: Arc<Problem>,
    algorithm: Box<dyn Algorithm>,
    warnings: Vec<String>,
    /// The policy that it began with, if it was not the configuration's.
    warm_from: Option<PathBuf>,
    /// Borders with other processes, if there are any.
    halo: Arc<Halo>,
    /// Ends evaluations.
    stop: Arc<AtomicBool>,
}

impl Session {
    /// Builds everything that `config` asks for; nothing is written.
    pub fn new(config: &Config) -> Result<Self> {
        Session::distributed(config, Arc::new(SingleProcess))
    }

    /// The same over the processes of a communicator, which all build it at the same time: they must have the same
    /// configuration. Every process looks at the whole network once, and then keeps its agents and those near them.
    pub fn distributed(config: &Config, peers: Arc<dyn Communicator>) -> Result<Self> {
        same_among(&peers, &config.to_toml(), "configuration")?;
        let built = build::world(config).and_then(|world| {
            if peers.count() > 1 {
                build::check_parts(config, &*world)?;
            }
            let (problem, warnings) = build::problem(config, &*world)?;
            Ok((world, problem, warnings))
        });
        let (world, problem, warnings) = all_ok_among(&peers, built)?;
        let session = if peers.count() > 1 {
            Session::part(config, world, problem, peers)
        } else {
            let halo = Arc::new(Halo::without_borders(peers, world.graph().agents()));
            Session::build(config, world, problem, halo)
        };
        Ok(Session { warnings, ..session? })
    }

    /// This process's part of the network.
    fn part(
        config: &Config,
        world: Arc<dyn World>,
        problem: Problem,
        peers: Arc<dyn Communicator>,
    ) -> Result<Self> {
        let partition = all_ok_among(&peers, Partition::new(world.graph(), peers.count()))?;
        let depth = config.kappa.max(config.kappa_q);
        let part = partition.part(world.graph(), peers.rank(), depth, |i| match world.evolution() {
            Evolution::Factored(factored) => factored.parents(i),
            Evolution::Joint(_) => Vec::new(),
        });
        let graph = world.graph().part(part.ids.clone(), |id| partition.owner(id) == peers.rank());
        let halo = Arc::new(Halo::new(peers, partition, &part, &graph)?);
        let agents = part.ids.iter().map(|&id| problem.agents[id as usize].clone()).collect();
        let own = Problem { agents, ..problem };
        let world = sub_world(world, graph);
        halo.all_ok(world.and_then(|world| Session::build(config, world, own, halo.clone())))
    }

    /// As [`Session::new`] with a world or a problem of one's own; `[world]`, `[objective]` and `[[constraint]]` of
    /// `config` are not looked at.
    pub fn with(config: &Config, world: Arc<dyn World>, problem: Problem) -> Result<Self> {
        let halo = Arc::new(Halo::single(world.graph().agents()));
        Session::build(config, world, problem, halo)
    }

    fn build(config: &Config, world: Arc<dyn World>, problem: Problem, halo: Arc<Halo>) -> Result<Self> {
        let problem = Arc::new(problem);
        let algorithm = build::algorithm(config, &world, &problem, halo.clone())?;
        Ok(Session {
            config: build::with_gamma(config, &problem),
            world,
            problem,
            algorithm,
            warnings: Vec::new(),
            warm_from: None,
            halo,
            stop: Arc::default(),
        })
    }

    /// Starts from the policy in a file, which is of the whole network, instead of the configuration's initial one.
    pub fn warm_start(&mut self, file: &Path) -> Result<()> {
        let theta = self.halo.all_ok(self.load_policy(file))?;
        self.algorithm.start_from(theta);
        self.warm_from = Some(file.to_path_buf());
        Ok(())
    }

    fn load_policy(&self, file: &Path) -> Result<Ragged<f64>> {
        let before = self.policy().theta();
        let Some(ids) = self.world.graph().ids() else { return policy::load(self.policy(), file) };
        let world = build::world(&self.config)?;
        let whole = policy::load(&*build::bare_policy(&self.config, &*world)?, file)?;
        // A ghost's policy may look different here; nobody asks for it.
        let row = |i: usize| Some(whole.row(ids[i] as usize)).filter(|row| row.len() == before.row(i).len());
        Ok(Ragged::from_rows((0..ids.len()).map(|i| row(i).unwrap_or(before.row(i)).to_vec())))
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

    /// Evaluates the current policy on fresh episodes, as many as `[evaluation]` asks for and allows. All processes
    /// must do it at the same time; the result is valid on rank 0 only.
    pub fn evaluate(&self) -> Result<Evaluation> {
        let episodes = Episodes {
            world: &*self.world,
            policy: self.policy(),
            problem: &self.problem,
            stream: &Stream::new(self.config.seed),
            horizon: self.config.horizon,
            episodes: closing_episodes(&self.config, &*self.world),
            halo: &self.halo,
            stop: Some(&self.stop),
        };
        episodes.evaluate()
    }

    /// A copy of the policy and the multipliers as they are now, to be evaluated. All processes must ask for it at the
    /// same time; only rank 0 can have it.
    pub fn evaluator(&self) -> Result<Evaluator> {
        let elsewhere = || Error::argument("mpi", "the whole network is known on rank 0 only");
        self.whole()?.ok_or_else(elsewhere)
    }

    /// The same, none on other ranks.
    pub(super) fn whole(&self) -> Result<Option<Evaluator>> {
        let own = |rows: &Ragged<f64>| {
            let rows: Vec<&[f64]> = self.world.graph().owned_agents().map(|i| rows.row(i)).collect();
            self.halo.gather_ragged(&rows)
        };
        let (theta, mu) = (own(self.policy().theta())?, own(self.mu())?);
        let whole = || {
            let (world, problem) = match self.world.graph().ids() {
                None => (self.world.clone(), self.problem.clone()),
                Some(_) => {
                    let world = build::world(&self.config)?;
                    let (problem, _) = build::problem(&self.config, &*world)?;
                    (world, Arc::new(problem))
                }
            };
            let policy = build::bare_policy(&self.config, &*world)?;
            let mut evaluator = Evaluator::with(&self.config, world, problem, policy, mu);
            evaluator.set_theta(theta);
            Ok(evaluator)
        };
        self.halo.all_ok(self.halo.is_first().then(whole).transpose())
    }

    /// Makes evaluations end, with [`Error::Stopped`], soon after `stop` is set on rank 0.
    pub fn set_stop_flag(&mut self, stop: Arc<AtomicBool>) {
        self.stop = stop;
    }

    /// Borders with other processes, if there are any.
    pub fn halo(&self) -> &Arc<Halo> {
        &self.halo
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

    /// The policy after the last iteration.
    pub fn policy(&self) -> &dyn Policy {
        self.algorithm.policy()
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
