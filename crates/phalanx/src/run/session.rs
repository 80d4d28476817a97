//! A run in memory: built from a configuration, advanced one iteration at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::build;
use super::config::Config;
use super::evaluate::{Episodes, Evaluation, closing_episodes, evaluate_part};
use super::evaluator::Evaluator;
use crate::algorithm::{Algorithm, Summary};
use crate::base::fields::{Field, Fields};
use crate::base::stream::Stream;
use crate::distributed::{Communicator, Halo, all_ok_among, same_among};
use crate::graph::Partition;
use crate::policy::{self, Policy};
use crate::utility::problem::Problem;
use crate::world::{Evolution, World, sub_world};
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
    /// Borders with other processes, if there are any.
    halo: Arc<Halo>,
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
                partition.part(world.graph(), peers.rank(), depth, |i| factored.parents(i))
            }
            Evolution::Joint(_) => partition.part(world.graph(), peers.rank(), depth, |_| Vec::new()),
        };
        let network = world.graph().part(share.ids.clone(), |id| partition.owner(id) == peers.rank());
        let halo = Arc::new(Halo::new(peers, partition, &share, &network)?);
        let Problem { ref agents, gamma, scaling, sampled_channels, episodic } = problem;
        let agents = share.ids.iter().map(|&id| agents[id as usize].clone()).collect();
        let own = Problem { agents, gamma, scaling, sampled_channels, episodic };
        drop(problem);
        let part = sub_world(world, network);
        let session = part.and_then(|world| Session::build(config, world, own, halo.clone()));
        let session = halo.all_ok(session)?;
        Ok(Session { warnings, ..session })
    }

    /// A copy of the policy and the multipliers of the whole network as they are now, on rank 0; none elsewhere.
    pub(super) fn whole(&self) -> Result<Option<Evaluator>> {
        let halo = &self.halo;
        if !halo.is_distributed() {
            let (theta, mu) = (self.policy().theta().clone(), self.mu().clone());
            return self.copy(self.world.clone(), self.problem.clone(), theta, mu).map(Some);
        }
        let own = |rows: &Ragged<f64>| {
            let rows: Vec<&[f64]> = self.world.graph().owned_agents().map(|i| rows.row(i)).collect();
            halo.gather_ragged(&rows)
        };
        let (theta, mu) = (own(self.policy().theta())?, own(self.mu())?);
        let whole = || -> Result<Option<Evaluator>> {
            if !halo.is_first() {
                return Ok(None);
            }
            let world = build::world(&self.config)?;
            let (problem, _) = build::problem(&self.config, &*world)?;
            self.copy(world, Arc::new(problem), theta, mu).map(Some)
        };
        halo.all_ok(whole())
    }

    fn copy(
        &self,
        world: Arc<dyn World>,
        problem: Arc<Problem>,
        theta: Ragged<f64>,
        mu: Ragged<f64>,
    ) -> Result<Evaluator> {
        let policy = build::bare_policy(&self.config, &*world)?;
        let mut evaluator = Evaluator::with(&self.config, world, problem, policy, mu);
        evaluator.set_theta(theta);
        Ok(evaluator)
    }

    /// A copy of the policy and the multipliers as they are now, to be evaluated. Where the network is shared out, all
    /// processes must ask for it at the same time, and only rank 0 gets it.
    pub fn evaluator(&self) -> Result<Evaluator> {
        let elsewhere = || Error::argument("mpi", "the whole network is known on rank 0 only");
        self.whole()?.ok_or_else(elsewhere)
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
        self.episodes(&Stream::new(self.config.seed)).evaluate()
    }

    /// Episodes of the current policy.
    fn episodes<'a>(&'a self, stream: &'a Stream) -> Episodes<'a> {
        Episodes {
            world: &*self.world,
            policy: self.policy(),
            problem: &self.problem,
            stream,
            horizon: self.config.horizon,
            episodes: closing_episodes(&self.config, &*self.world),
            halo: &self.halo,
            stop: Some(&self.stop),
        }
    }

    /// Makes evaluations end, with [`Error::Stopped`], soon after `stop` is set.
    pub fn set_stop_flag(&mut self, stop: Arc<AtomicBool>) {
        self.stop = stop;
    }

    /// What ends evaluations when it is set.
    pub fn stop_flag(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// The same for a run that may be shared out over processes: at the first of them, nothing elsewhere.
    pub(super) fn evaluate_all(&self) -> Result<Option<Evaluation>> {
        evaluate_part(&self.episodes(&Stream::new(self.config.seed)))
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
