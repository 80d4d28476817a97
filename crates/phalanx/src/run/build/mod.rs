//! From a configuration to the objects of a run: world, problem, policy, critic, algorithm.

mod problem;
mod utilities;

use std::sync::Arc;

pub use problem::problem;

use super::config::{
    self, Config, CriticKind, CriticStart, CriticStep, NetworkConfig, StepRuleKind, WorldConfig,
};
use crate::algorithm::{Algorithm, ExactPrimalDual, ExactSettings, PrimalDual, Settings, StepSizes};
use crate::critic::{Critic, ExactCritic, Lstd, MonteCarlo, QTables, StepRule, Td};
use crate::dual::DualRule;
use crate::memory::room_for;
use crate::network::Network;
use crate::policy::Tabular;
use crate::problem::{Problem, Scaling};
use crate::stream::Stream;
use crate::utility::LocalSpace;
use crate::world::{LARGEST_LOCAL_SPACE, Line, Table, Wireless, World};
use crate::{Error, Result};

/// `config` with what only the world's file can tell: builds world and problem, and so finds their mistakes too.
pub fn resolve(config: &Config) -> Result<Config> {
    let world = world(config)?;
    let (problem, _) = problem(config, &*world)?;
    Ok(with_gamma(config, &problem))
}

/// `config` with the problem's discount factor.
pub(super) fn with_gamma(config: &Config, problem: &Problem) -> Config {
    let mut resolved = config.clone();
    resolved.gamma = Some(problem.gamma);
    resolved
}

/// Builds the world with its links.
pub fn world(config: &Config) -> Result<Arc<dyn World>> {
    match &config.world {
        WorldConfig::Line { n, start, mixing } => {
            let line = Line::new(*n, *start, *mixing)?;
            Ok(match network(config, *n)? {
                Some(network) => Arc::new(line.with_network(network)),
                None => Arc::new(line),
            })
        }
        WorldConfig::Wireless(spec) => {
            let wireless = Wireless::new(spec)?;
            Ok(match network(config, wireless.network().agents())? {
                Some(network) => Arc::new(wireless.with_network(network)),
                None => Arc::new(wireless),
            })
        }
        WorldConfig::Table { file, .. } => {
            let table = Table::read(&config.locate(file))?;
            Ok(match network(config, table.network().agents())? {
                Some(network) => Arc::new(table.with_network(network)),
                None => Arc::new(table),
            })
        }
        WorldConfig::Own { kind, keys } => {
            let world = config.registry.build(kind, keys)?;
            if config.network.is_some() {
                return Err(Error::config("network", format!("`{kind}` brings its own links")));
            }
            Ok(world)
        }
    }
}

fn network(config: &Config, n: usize) -> Result<Option<Network>> {
    let Some(NetworkConfig { kind, rows, columns, radius, probability, seed, file }) = &config.network else {
        return Ok(None);
    };
    let missing =
        |key: &str| Error::config(format!("network.{key}"), format!("is missing; `{kind}` needs it"));
    let given = [
        ("rows", rows.is_some(), &["grid"][..]),
        ("columns", columns.is_some(), &["grid"]),
        ("radius", radius.is_some(), &["geometric"]),
        ("probability", probability.is_some(), &["erdos_renyi"]),
        ("seed", seed.is_some(), &["geometric", "erdos_renyi"]),
        ("file", file.is_some(), &["edges"]),
    ];
    if let Some((key, _, users)) =
        given.iter().find(|(_, given, users)| *given && !users.contains(&kind.as_str()))
    {
        return Err(Error::config(format!("network.{key}"), format!("is for kind {}", users.join(" and "))));
    }
    let seed = seed.unwrap_or(0);
    let network = match kind.as_str() {
        "line" => Network::line(n),
        "ring" => Network::ring(n),
        "star" => Network::star(n),
        "complete" => Network::complete(n),
        "grid" => {
            let (rows, columns) =
                (rows.ok_or_else(|| missing("rows"))?, columns.ok_or_else(|| missing("columns"))?);
            let agents = rows as u128 * columns as u128;
            if agents != n as u128 {
                let message =
                    format!("{rows} × {columns} columns make {agents} agents, but the world has {n}");
                return Err(Error::config("network.rows", message));
            }
            Network::grid(rows, columns)
        }
        "geometric" => Network::random_geometric(n, radius.ok_or_else(|| missing("radius"))?, seed),
        "erdos_renyi" => Network::erdos_renyi(n, probability.ok_or_else(|| missing("probability"))?, seed),
        "edges" => {
            let file = file.as_ref().ok_or_else(|| missing("file"))?;
            Network::read_edge_list(&config.locate(file), Some(n))
        }
        other => Err(Error::config(
            "network.kind",
            format!(
                "`{other}` is unknown; allowed are line, ring, grid, star, complete, geometric, erdos_renyi, edges"
            ),
        )),
    }?;
    if network.agents() != n {
        return Err(Error::config(
            "network",
            format!("links {} agents, but the world has {n}", network.agents()),
        ));
    }
    Ok(Some(network))
}

/// Builds the algorithm.
pub fn algorithm(
    config: &Config,
    world: &Arc<dyn World>,
    problem: &Arc<Problem>,
) -> Result<Box<dyn Algorithm>> {
    check_fit(config, &**world, problem)?;
    let n = world.network().agents();
    let stream = Stream::new(config.seed);
    let policy = Tabular::new(&**world, config.kappa, config.policy.kind, config.policy.init_std, &stream)?;
    let dual = DualRule {
        kind: config.dual.kind,
        eta_mu: config.dual.eta_mu,
        eta_integral: config.dual.eta_integral,
        mu_max: config.dual.mu_max,
        centre: config.dual.centre,
        slack_factor: if config.scaling == Scaling::Paper { 1.0 / n as f64 } else { 1.0 },
    };
    if config.algorithm == config::Algorithm::Exact {
        let settings = ExactSettings {
            iterations: config.iterations,
            kappa_q: config.kappa_q,
            truncation: config.critic.truncation,
            dual,
            mu_0: config.dual.mu_0,
            dual_schedule: config.dual.schedule,
            optimizer: config.actor.optimizer,
            step_sizes: match config.actor.rule {
                StepRuleKind::Constant => StepSizes::Constant(config.actor.eta_theta),
                StepRuleKind::Theorem => StepSizes::Theorem,
                StepRuleKind::Local => StepSizes::Local,
            },
            actor_schedule: config.actor.schedule,
            theta_box: config.policy.theta_box,
        };
        return Ok(Box::new(ExactPrimalDual::new(&**world, problem.clone(), policy, settings)?));
    }
    check_room(config, n)?;
    let settings = Settings {
        iterations: config.iterations,
        horizon: config.horizon,
        batch: config.batch,
        kappa_q: config.kappa_q,
        dual,
        mu_0: config.dual.mu_0,
        dual_schedule: config.dual.schedule,
        baseline: config.actor.baseline.unwrap_or(crate::actor::Baseline::None),
        optimizer: config.actor.optimizer,
        eta_theta: config.actor.eta_theta,
        actor_schedule: config.actor.schedule,
        theta_box: config.policy.theta_box,
    };
    let critic = critic(config, &**world, problem, &policy)?;
    Ok(Box::new(PrimalDual::new(world.clone(), problem.clone(), policy, critic, settings, stream)?))
}

/// Whether world, problem and configuration speak of the same thing; they may have been put together in Rust.
fn check_fit(config: &Config, world: &dyn World, problem: &Problem) -> Result<()> {
    let n = world.network().agents();
    if problem.agents.len() != n {
        let message = format!("has {} agents, but the world has {n}", problem.agents.len());
        return Err(Error::config("problem", message));
    }
    if problem.scaling != config.scaling {
        let message =
            format!("is {:?} in the configuration, but {:?} in the problem", config.scaling, problem.scaling);
        return Err(Error::config("scaling", message));
    }
    for (i, agent) in problem.agents.iter().enumerate() {
        let expected =
            LocalSpace { states: world.states(i), actions: world.actions(i), gamma: problem.gamma };
        if agent.space != expected {
            let message = format!("agent {i} has {:?}, but its world {expected:?}", agent.space);
            return Err(Error::config("problem", message));
        }
        let sizes = [expected.states, expected.actions];
        if sizes.iter().any(|size| !(1..=LARGEST_LOCAL_SPACE).contains(size)) {
            let message =
                format!("agent {i} has {sizes:?} states and actions; 1 to {LARGEST_LOCAL_SPACE} are allowed");
            return Err(Error::config("world", message));
        }
        agent.objective.validate(agent.space, "objective")?;
        agent.constraints.iter().try_for_each(|c| c.utility.validate(agent.space, &c.name))?;
    }
    Ok(())
}

/// Whether weights and trajectories fit into memory; the larger part is blamed.
fn check_room(config: &Config, n: usize) -> Result<()> {
    let [n, batch, horizon, steps] =
        [n, config.batch, config.horizon, config.critic.steps].map(|x| x as u128);
    let tail = if config.critic.kind == CriticKind::Montecarlo { steps } else { 0 };
    // A byte of state and one of action; an f64 for each weight and step size.
    let evaluation = (2 * n + 8) * (steps + 1);
    let of_batch = 2 * n * batch * (horizon + tail) + 16 * horizon;
    room_for(evaluation, "critic.steps", &format!("{steps} steps of {n} agents"))?;
    let field = if batch > horizon { "batch" } else { "horizon" };
    let what = format!("{batch} trajectories of {} steps of {n} agents", horizon + tail);
    room_for(evaluation + of_batch, field, &what)
}

fn critic(
    config: &Config,
    world: &dyn World,
    problem: &Problem,
    policy: &Tabular,
) -> Result<Box<dyn Critic>> {
    let critic = &config.critic;
    let tables = || QTables::new(world, config.kappa_q, problem);
    Ok(match critic.kind {
        CriticKind::Td => {
            let rule = match critic.step {
                CriticStep::Harmonic => StepRule::Harmonic { h: critic.h, k1: critic.k1 },
                CriticStep::Constant => StepRule::Constant(critic.eta_q),
            };
            Box::new(Td::new(tables()?, problem, critic.steps, rule, critic.start == CriticStart::Warm))
        }
        CriticKind::Lstd => {
            let tables = tables()?;
            let largest = (0..problem.agents.len()).map(|j| tables.index().size(j)).max().unwrap_or(0);
            // Every thread solves a dense system over the pairs that can have been visited.
            let unknowns = largest.min(critic.steps + 1) as u128;
            let bytes = 8 * unknowns * unknowns * rayon::current_num_threads() as u128;
            room_for(bytes, "critic.steps", &format!("LSTD over {unknowns} pairs"))?;
            Box::new(Lstd::new(tables, problem, critic.steps, critic.ridge))
        }
        CriticKind::Montecarlo => Box::new(MonteCarlo::new(problem, critic.steps)),
        CriticKind::Exact => {
            Box::new(ExactCritic::new(world, problem, policy, config.kappa_q, critic.truncation)?)
        }
    })
}
