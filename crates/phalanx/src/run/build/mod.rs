//! From a configuration to the objects of a run: world, problem, policy, critic, algorithm.

mod episode;
mod problem;
mod utilities;

use std::path::Path;
use std::sync::Arc;

pub use problem::problem;
pub(super) use utilities::from_text;

use super::config::Config;
use crate::algorithm::{Algorithm, AlgorithmChoice, Task};
use crate::base::error::ensure;
use crate::base::key::{ALGORITHM, SCALING};
use crate::graph::Partition;
use crate::learn::critic;
use crate::policy::{LOSS, Policy};
use crate::utility::LocalSpace;
use crate::utility::problem::Problem;
use crate::world::{Evolution, LARGEST_LOCAL_SPACE, Surroundings, World};
use crate::{Error, Result};

/// `config` with what only the world's file can tell: builds world and problem, and so finds their mistakes
/// too.
pub fn resolve(config: &Config) -> Result<Config> {
    Ok(with_gamma(config, &task(config)?.0.problem))
}

/// Builds world and problem, whole. Also returns warnings, as [`problem`] does.
pub(super) fn task(config: &Config) -> Result<(Task, Vec<String>)> {
    let world = world(config)?;
    let (problem, warnings) = problem(config, &*world)?;
    Ok((Task::single(world, Arc::new(problem)), warnings))
}

/// `config` with the problem's discount factor.
pub(super) fn with_gamma(config: &Config, problem: &Problem) -> Config {
    let mut resolved = config.clone();
    resolved.gamma = Some(problem.gamma);
    resolved
}

/// Builds the world with its links.
pub fn world(config: &Config) -> Result<Arc<dyn World>> {
    let locate = |file: &Path| config.locate(file);
    let around = Surroundings { network: config.network.as_ref(), locate: &locate };
    config.world.build(&config.registry, &around)
}

/// Builds the algorithm.
pub fn algorithm(config: &Config, task: Task) -> Result<Box<dyn Algorithm>> {
    check_fit(config, &*task.world, &task.problem)?;
    // Only here: the policies of all algorithms can be evaluated behind faulty links.
    let learns_behind_links = config.algorithm.is_local() && !config.critic.enumerates();
    ensure(config.links.is_off() || learns_behind_links, || {
        Error::config(
            LOSS,
            "is for training from samples by `primal-dual` or `penalty`; evaluate with it instead",
        )
    })?;
    config.algorithm.build(config.plan(), task)
}

/// How the agents are distributed over processes; none if there is one, which has all of them.
pub fn partition(config: &Config, world: &dyn World, processes: usize) -> Result<Option<Partition>> {
    if processes == 1 {
        return Ok(None);
    }
    let refused = |what: String| Error::argument("mpi", what);
    let whole = "this world is simulated whole: joint worlds do not support several processes";
    ensure(matches!(world.evolution(), Evolution::Factored(_)), || refused(whole.into()))?;
    ensure(config.algorithm.is_local(), || {
        let local: Vec<String> = AlgorithmChoice::local_names().map(|name| format!("\"{name}\"")).collect();
        let (name, local) = (config.algorithm.name, local.join(" and "));
        refused(format!("{ALGORITHM} = \"{name}\" looks at the whole graph; {local} can be distributed"))
    })?;
    ensure(!config.critic.enumerates(), || {
        let (key, kind) = (critic::KIND, config.critic.kind);
        refused(format!("{key} = \"{kind}\" looks at the whole graph; use another critic"))
    })?;
    Partition::new(world.graph(), processes).map(Some)
}

/// The policy that `config` trains, as it is at the start.
pub fn bare_policy(config: &Config, world: &dyn World) -> Result<Box<dyn Policy>> {
    config.algorithm.policy(&config.plan(), world)
}

/// Whether world, problem and configuration speak of the same thing; they may have been put together in Rust.
fn check_fit(config: &Config, world: &dyn World, problem: &Problem) -> Result<()> {
    let n = world.graph().agents();
    let agents = problem.agents.len();
    ensure(agents == n, || Error::config("problem", format!("has {agents} agents, but the world has {n}")))?;
    let (here, there) = (config.scaling, problem.scaling);
    ensure(here == there, || {
        Error::config(SCALING, format!("is {here:?} in the configuration, but {there:?} in the problem"))
    })?;
    for (i, agent) in problem.agents.iter().enumerate() {
        let expected =
            LocalSpace { states: world.states(i), actions: world.actions(i), gamma: problem.gamma };
        ensure(agent.space == expected, || {
            Error::config("problem", format!("agent {i} has {:?}, but its world {expected:?}", agent.space))
        })?;
        let sizes = [expected.states, expected.actions];
        ensure(sizes.iter().all(|size| (1..=LARGEST_LOCAL_SPACE).contains(size)), || {
            let allowed = format!("1 to {LARGEST_LOCAL_SPACE} are allowed");
            Error::config("world", format!("agent {i} has {sizes:?} states and actions; {allowed}"))
        })?;
        agent.objective.validate(agent.space, "objective")?;
        agent.constraints.iter().try_for_each(|c| c.utility.validate(agent.space, &c.name))?;
    }
    Ok(())
}
