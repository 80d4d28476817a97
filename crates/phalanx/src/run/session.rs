//! Training in memory: built from a configuration, advanced one iteration at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::build;
use super::checksums;
use super::config::Config;
use super::evaluate::{Episodes, Evaluation, Evaluator, check_episode};
use crate::algorithm::{Algorithm, DeviceChoice, EvaluationDevice, Summary, Task, card_depth};
use crate::base::fields::Fields;
use crate::distributed::{Communicator, Halo, SingleProcess};
use crate::graph::Partition;
use crate::policy::{self, Policy};
use crate::utility::problem::Problem;
use crate::world::{Evolution, World, sub_world};
use crate::{Error, Ragged, Result};

/// An algorithm with the world and the problem that it is trained on; where several processes share the
/// graph, one process's part of them.
pub struct Session {
    config: Config,
    pub(super) task: Task,
    algorithm: Box<dyn Algorithm>,
    warnings: Vec<String>,
    /// The file of the policy that it began with, if it was not the configuration's.
    pub(super) warm_from: Option<PathBuf>,
    /// Makes evaluations end, with [`Error::Stopped`], soon after it is set on rank 0.
    pub(super) stop: Arc<AtomicBool>,
}

impl Session {
    /// Builds everything that `config` asks for; nothing is written.
    pub fn new(config: &Config) -> Result<Self> {
        Session::distributed(config, Arc::new(SingleProcess))
    }

    /// The same over the processes of a communicator, which all build it at the same time: they must have the
    /// same configuration. Every process looks at the whole graph once, and then keeps its agents and those
    /// near them.
    pub fn distributed(config: &Config, peers: Arc<dyn Communicator>) -> Result<Self> {
        let all = Halo::without_borders(peers.clone(), 0);
        all.all_same(&config.to_toml(), "configuration")?;
        let built = build::world(config).and_then(|world| {
            let partition = build::partition(config, &*world, peers.count())?;
            let (problem, warnings) = build::problem(config, &*world)?;
            Ok((world, partition, problem, warnings))
        });
        let (world, partition, problem, warnings) = all.all_ok(built)?;
        let task = match partition {
            Some(partition) => Session::part(config, world, problem, peers, partition)?,
            None => {
                let halo = Arc::new(Halo::without_borders(peers, world.graph().agents()));
                Task { world, problem: Arc::new(problem), halo }
            }
        };
        Ok(Session { warnings, ..all.all_ok(Session::build(config, task))? })
    }

    /// This process's part of the graph.
    fn part(
        config: &Config,
        world: Arc<dyn World>,
        problem: Problem,
        peers: Arc<dyn Communicator>,
        partition: Partition,
    ) -> Result<Task> {
        let depth = match config.device.is_cpu() {
            true => config.kappa.max(config.kappa_q),
            false => card_depth(config.kappa, config.kappa_q),
        };
        let part = partition.part(world.graph(), peers.rank(), depth, |i| match world.evolution() {
            Evolution::Factored(factored) => factored.parents(i),
            Evolution::Joint(_) => Vec::new(),
        });
        let graph = world.graph().part(part.ids.clone(), |id| partition.owner(id) == peers.rank());
        let halo = Arc::new(Halo::new(peers, partition, &part, &graph)?);
        let agents = part.ids.iter().map(|&id| problem.agents[id as usize].clone()).collect();
        let problem = Arc::new(Problem { agents, ..problem });
        Ok(Task { world: halo.all_ok(sub_world(world, graph))?, problem, halo })
    }

    /// As [`Session::new`] with your own world or problem; `[world]`, `[objective]` and
    /// `[[constraint]]` of `config` are not looked at.
    pub fn with(config: &Config, world: Arc<dyn World>, problem: Problem) -> Result<Self> {
        Session::build(config, Task::single(world, Arc::new(problem)))
    }

    fn build(config: &Config, task: Task) -> Result<Self> {
        check_episode(&task, config.horizon)?;
        Ok(Session {
            algorithm: build::algorithm(config, task.clone())?,
            config: build::with_gamma(config, &task.problem),
            task,
            warnings: Vec::new(),
            warm_from: None,
            stop: Arc::default(),
        })
    }

    /// Starts from the policy in a file, which is of the whole graph, instead of the configuration's
    /// initial one.
    pub fn warm_start(&mut self, file: &Path) -> Result<()> {
        let checked = || checksums::check_path(file);
        let loaded = self.load_policy(file).and_then(|theta| checked().map(|()| theta));
        let theta = self.task.halo.all_ok(loaded)?;
        self.set_theta(theta);
        self.warm_from = Some(file.to_path_buf());
        Ok(())
    }

    /// Starts from θ, of which nothing has been learnt.
    pub(super) fn set_theta(&mut self, theta: Ragged<f64>) {
        self.algorithm.start_from(theta);
    }

    fn load_policy(&self, file: &Path) -> Result<Ragged<f64>> {
        let before = self.policy().theta();
        let Some(ids) = self.world().graph().ids().filter(|_| !self.policy().is_shared()) else {
            return policy::load(self.policy(), file);
        };
        let world = build::world(&self.config)?;
        let whole = policy::load(&*build::bare_policy(&self.config, &*world)?, file)?;
        // A ghost's policy may look different here; nobody asks for it.
        let row = |i: usize| Some(whole.row(ids[i] as usize)).filter(|row| row.len() == before.row(i).len());
        Ok(Ragged::from_rows((0..ids.len()).map(|i| row(i).unwrap_or(before.row(i)).to_vec())))
    }

    /// Everything that the next iteration depends on.
    pub fn fields(&mut self) -> Fields<'_> {
        self.algorithm.fields()
    }

    /// Size of a checkpoint.
    pub fn state_bytes(&mut self) -> usize {
        let shapes = self.fields().into_iter().map(|(_, field)| field.shape());
        shapes.map(|(dtype, count)| count * dtype.bitsize() / 8).sum()
    }

    /// Replaces the state by what `read` writes into its fields.
    pub fn restore(&mut self, read: impl FnOnce(Fields<'_>) -> Result<()>) -> Result<()> {
        read(self.algorithm.fields())?;
        self.algorithm.restored();
        Ok(())
    }

    /// Tells neighbouring processes what they must know of a restored state; all do it at the same time.
    pub(super) fn share_restored(&mut self) -> Result<()> {
        self.algorithm.share_restored()
    }

    /// Brings the device that trains in step with what was built or restored; the first iteration would.
    pub(super) fn prepare(&mut self) -> Result<()> {
        self.algorithm.prepare()
    }

    /// Brings everything that can be looked at in step with the device that trains: to be called before
    /// fields, policy or multipliers are looked at in the middle of training.
    pub fn settle(&mut self) -> Result<()> {
        self.algorithm.settle_fields()
    }

    /// The same for policy and multipliers alone.
    pub fn settle_policy(&mut self) -> Result<()> {
        self.algorithm.settle()
    }

    /// To be called after the last iteration, before the policy is looked at; [`Session::advance`] does.
    pub(super) fn conclude(&mut self) -> Result<()> {
        self.algorithm.settle()?;
        self.algorithm.forget_samples();
        Ok(())
    }

    /// The device that trains and the memory that it takes there, in words; none for the processor.
    pub fn device(&self) -> Option<String> {
        self.algorithm.device()
    }

    /// Whether all iterations are done.
    pub fn is_done(&self) -> bool {
        self.algorithm.iteration() >= self.config.iterations
    }

    /// One iteration; none once all are done.
    pub fn advance(&mut self) -> Result<Option<Summary>> {
        if self.is_done() {
            self.conclude()?;
            return Ok(None);
        }
        self.algorithm.step().map(Some)
    }

    /// Evaluates the current policy on fresh episodes, as many as `[evaluation]` asks for and allows. All
    /// processes must do it at the same time; the result is valid on rank 0 only.
    pub fn evaluate(&self) -> Result<Evaluation> {
        // Where the device that trains cannot evaluate, the processor does.
        let device = match (self.device(), self.config.device) {
            (None, _) => DeviceChoice::Cpu,
            (Some(_), DeviceChoice::Auto) => DeviceChoice::Cuda,
            (Some(_), chosen) => chosen,
        };
        let device = EvaluationDevice::if_possible(device);
        Episodes::closing(&self.config, &self.task, self.policy(), &self.stop, device).evaluate()
    }

    /// A copy of the policy and the multipliers as they are now, to be evaluated. All processes must ask for
    /// it at the same time; only rank 0 can have it.
    pub fn evaluator(&self) -> Result<Evaluator> {
        let elsewhere = || Error::argument("mpi", "the whole graph is known on rank 0 only");
        self.whole()?.ok_or_else(elsewhere)
    }

    /// The same, none on other ranks.
    pub(super) fn whole(&self) -> Result<Option<Evaluator>> {
        let Task { world, problem, halo } = &self.task;
        let theta = match self.policy().is_shared() {
            true => self.policy().theta().clone(),
            false => halo.gather_ragged(world.graph(), self.policy().theta())?,
        };
        let mu = halo.gather_ragged(world.graph(), self.mu())?;
        let usual = self.policy().usual_states().map(|states| {
            let own: Vec<f64> = world.graph().owned_agents().map(|i| f64::from(states[i])).collect();
            halo.gather_rows(1, &own)
        });
        let usual = usual.transpose()?;
        let whole = || {
            let task = match world.graph().ids() {
                None => Task::single(world.clone(), problem.clone()),
                Some(_) => build::task(&self.config)?.0,
            };
            let policy = build::bare_policy(&self.config, &*task.world)?;
            let mut evaluator = Evaluator::with(&self.config, task, policy, mu);
            evaluator.set_theta(theta);
            if let Some(usual) = usual {
                evaluator.set_usual_states(usual.iter().map(|&state| state as u8).collect());
            }
            Ok(evaluator)
        };
        halo.all_ok(halo.is_first().then(whole).transpose())
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
