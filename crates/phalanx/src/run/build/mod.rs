//! From a configuration to the objects of a run: world, problem, policy, critic, algorithm.

mod problem;
mod utilities;

use std::path::Path;
use std::sync::Arc;

pub use problem::problem;

use super::config::{
    self, Config, CriticConfig, CriticKind, CriticLoss, CriticOn, CriticSolver, CriticStart, CriticStep,
    PolicyConfig, PolicyKind, StepRuleKind,
};
use crate::algorithm::{
    Algorithm, ExactPrimalDual, ExactSettings, Mappo, MappoSettings, PrimalDual, Settings, StepSizes,
};
use crate::base::memory::check_memory;
use crate::base::schedule::EntropyBonus;
use crate::base::stream::Stream;
use crate::distributed::Halo;
use crate::exact::ExactCritic;
use crate::learn::critic::{
    AllFeatures, Critic, Descent, LearnsFrom, LinearCritic, LinearRule, Lstd, MonteCarlo, NeuralCritic,
    NeuralCriticSettings, QTables, Returns, ReturnsSettings, StepSettings, Td,
};
use crate::learn::dual::{DualKind, DualSettings};
use crate::neural::Loss;
use crate::policy::observation::Widths;
use crate::policy::{LinearPolicy, NeuralPolicy, Parameterisation, Policy, Tabular};
use crate::utility::LocalSpace;
use crate::utility::problem::{Problem, Scaling};
use crate::world::{Evolution, LARGEST_LOCAL_SPACE, Surroundings, World};
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
    let locate = |file: &Path| config.locate(file);
    let around = Surroundings { network: config.network.as_ref(), locate: &locate };
    config.world.build(&config.registry, &around)
}

/// Builds the algorithm.
///
/// `world` is this process's part of the network, `halo` its borders.
pub fn algorithm(
    config: &Config,
    world: &Arc<dyn World>,
    problem: &Arc<Problem>,
    halo: Arc<Halo>,
) -> Result<Box<dyn Algorithm>> {
    check_fit(config, &**world, problem)?;
    let n = world.graph().total();
    let stream = Stream::new(config.seed);
    // A step of length 0 around a centre stays there.
    let is_fixed = config.algorithm == config::Algorithm::Penalty;
    let dual = DualSettings {
        kind: if is_fixed { DualKind::Proximal } else { config.dual.kind },
        eta_mu: if is_fixed { 0.0 } else { config.dual.eta_mu },
        eta_integral: config.dual.eta_integral,
        mu_max: config.dual.mu_max,
        centre: if is_fixed { config.dual.mu_0 } else { config.dual.centre },
        margin: config.dual.margin,
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
        let policy = tables(config, &**world, &stream)?;
        return Ok(Box::new(ExactPrimalDual::new(&**world, problem.clone(), policy, settings)?));
    }
    check_room(config, problem)?;
    if config.algorithm == config::Algorithm::MappoL {
        return Ok(Box::new(mappo(config, world, problem, stream)?));
    }
    let settings = Settings {
        iterations: config.iterations,
        horizon: config.horizon,
        batch: config.batch,
        kappa_q: config.kappa_q,
        kappa_g: config.kappa_g,
        occupancy_average: config.occupancy_average,
        dual,
        mu_0: config.dual.mu_0,
        dual_schedule: config.dual.schedule,
        baseline: config.actor.baseline.unwrap_or(crate::policy::Baseline::None),
        all_actions: config.actor.all_actions,
        entropy: EntropyBonus { weight: config.actor.entropy, schedule: config.actor.entropy_schedule },
        optimizer: config.actor.optimizer,
        clip: config.actor.clip,
        discount: config.actor.discount,
        normalise: config.actor.normalise,
        eta_theta: config.actor.eta_theta,
        actor_schedule: config.actor.schedule,
        theta_box: config.policy.theta_box,
    };
    let policy = policy(config, &**world, &stream)?;
    let critic = critic(config, &**world, problem, &*policy, &stream)?;
    Ok(Box::new(PrimalDual::new(world.clone(), problem.clone(), policy, critic, settings, stream, halo)?))
}

/// Whether a run can be shared out over processes.
pub fn check_parts(config: &Config, world: &dyn World) -> Result<()> {
    let refused = |what: String| Err(Error::argument("mpi", what));
    if matches!(world.evolution(), Evolution::Joint(_)) {
        let why =
            "this world is simulated whole: its agents share what none of them owns; train it without --mpi";
        return refused(why.into());
    }
    match config.algorithm {
        config::Algorithm::PrimalDual | config::Algorithm::Penalty => {}
        other => {
            let name = serde_json::to_string(&other).unwrap_or_default();
            return refused(format!(
                "algorithm = {name} looks at the whole network; \"primal-dual\" and \"penalty\" can be shared out"
            ));
        }
    }
    if config.critic.kind == CriticKind::Exact {
        return refused("critic.kind = \"exact\" looks at the whole network; use another critic".into());
    }
    Ok(())
}

/// The policy that `config` trains, as it is at the start.
pub fn bare_policy(config: &Config, world: &dyn World) -> Result<Box<dyn Policy>> {
    let stream = Stream::new(config.seed);
    Ok(match config.algorithm {
        config::Algorithm::MappoL => {
            let radius = config.mappo.actor_sees.radius(config.kappa, world.graph().agents());
            Box::new(networks(config, radius, world, &stream)?)
        }
        config::Algorithm::Exact => Box::new(tables(config, world, &stream)?),
        config::Algorithm::PrimalDual | config::Algorithm::Penalty => policy(config, world, &stream)?,
    })
}

/// The tables of a tabular policy.
fn tables(config: &Config, world: &dyn World, stream: &Stream) -> Result<Tabular> {
    let parameterisation = config.policy.kind.parameterisation().unwrap_or(Parameterisation::Softmax);
    Tabular::new(world, config.kappa, parameterisation, config.policy.init_std, stream)
}

fn policy(config: &Config, world: &dyn World, stream: &Stream) -> Result<Box<dyn Policy>> {
    let PolicyConfig { kind, init_std, features, world_features, .. } = config.policy;
    Ok(match kind {
        PolicyKind::Softmax | PolicyKind::Direct => Box::new(tables(config, world, stream)?),
        PolicyKind::Linear => {
            Box::new(LinearPolicy::new(world, config.kappa, features, world_features, init_std, stream)?)
        }
        PolicyKind::Network => Box::new(networks(config, config.kappa, world, stream)?),
    })
}

/// The networks of a network policy.
fn networks(config: &Config, radius: usize, world: &dyn World, stream: &Stream) -> Result<NeuralPolicy> {
    let PolicyConfig { embedding, row_hidden, ref hidden, output_gain, .. } = config.policy;
    let widths = Widths { embedding, row_hidden, hidden: hidden.clone() };
    NeuralPolicy::new(world, radius, &widths, output_gain, stream)
}

fn mappo(config: &Config, world: &Arc<dyn World>, problem: &Arc<Problem>, stream: Stream) -> Result<Mappo> {
    let rule = &config.mappo;
    let samples = config.batch as u128 * config.horizon as u128;
    // Advantages and rewards along the batch, and the order of an agent's samples on every thread.
    let numbers: u128 = problem.agents.iter().map(|agent| 3 + agent.constraints.len() as u128).sum();
    check_memory(8 * numbers * samples, "batch", &format!("advantages along {samples} steps"))?;
    let orders = if rule.minibatches > 1 { rule.epochs as u128 } else { 0 };
    let bytes = 4 * orders * samples * rayon::current_num_threads() as u128;
    check_memory(bytes, "mappo.epochs", &format!("{} passes over {samples} steps", rule.epochs))?;
    let radius = rule.actor_sees.radius(config.kappa, world.graph().agents());
    let policy = networks(config, radius, &**world, &stream)?;
    let settings = MappoSettings {
        iterations: config.iterations,
        horizon: config.horizon,
        batch: config.batch,
        kappa: config.kappa,
        rule: rule.clone(),
    };
    Mappo::new(world.clone(), problem.clone(), policy, settings, stream)
}

/// Whether world, problem and configuration speak of the same thing; they may have been put together in Rust.
fn check_fit(config: &Config, world: &dyn World, problem: &Problem) -> Result<()> {
    let n = world.graph().agents();
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
fn check_room(config: &Config, problem: &Problem) -> Result<()> {
    let sizes = [problem.agents.len(), config.batch, config.horizon, config.critic.steps];
    let [n, batch, horizon, steps] = sizes.map(|x| x as u128);
    // A byte of state, one of action, and an f32 for each recorded reward.
    let pair = n * (2 + 4 * problem.sampled_channels as u128);
    let tail = if config.critic.kind == CriticKind::Montecarlo { steps } else { 0 };
    // An f64 for each weight and step size.
    let evaluation = (pair + 8) * (steps + 1);
    let of_batch = pair * batch * (horizon + tail) + 16 * horizon;
    check_memory(evaluation, "critic.steps", &format!("{steps} steps of {n} agents"))?;
    let field = if batch > horizon { "batch" } else { "horizon" };
    let what = format!("{batch} trajectories of {} steps of {n} agents", horizon + tail);
    check_memory(evaluation + of_batch, field, &what)
}

fn critic(
    config: &Config,
    world: &dyn World,
    problem: &Problem,
    policy: &dyn Policy,
    stream: &Stream,
) -> Result<Box<dyn Critic>> {
    let critic = &config.critic;
    let step_rule = match critic.step {
        CriticStep::Harmonic => StepSettings::Harmonic { h: critic.h, k1: critic.k1 },
        CriticStep::Constant => StepSettings::Constant(critic.eta_q),
    };
    let tables = || QTables::new(world, config.kappa_q, problem);
    Ok(match critic.kind {
        CriticKind::Td => {
            Box::new(Td::new(tables()?, problem, critic.steps, step_rule, critic.start == CriticStart::Warm))
        }
        CriticKind::Lstd => {
            let tables = tables()?;
            let largest = (0..problem.agents.len()).map(|j| tables.index().size(j)).max().unwrap_or(0);
            // Every thread solves a dense system over the pairs that can have been visited.
            let unknowns = largest.min(critic.steps + 1) as u128;
            let bytes = 8 * unknowns * unknowns * rayon::current_num_threads() as u128;
            check_memory(bytes, "critic.steps", &format!("LSTD over {unknowns} pairs"))?;
            Box::new(Lstd::new(tables, problem, critic.steps, critic.ridge))
        }
        CriticKind::Montecarlo => Box::new(MonteCarlo::new(problem, critic.steps)),
        CriticKind::Linear => Box::new(linear_critic(config, world, problem, step_rule)?),
        CriticKind::Network => Box::new(network_critic(config, world, problem, stream)?),
        CriticKind::Returns => Box::new(returns_critic(config, world, problem, stream)?),
        CriticKind::Exact => {
            let policy = policy.tabular().ok_or_else(|| {
                Error::config("policy.kind", "the critic `exact` needs tables (`softmax` or `direct`)")
            })?;
            Box::new(ExactCritic::new(world, problem, policy, config.kappa_q, critic.truncation)?)
        }
    })
}

/// Which samples a linear or network critic learns from.
fn learns_from(config: &Config) -> LearnsFrom {
    let (steps, count) = config.chains();
    match config.critic.on {
        CriticOn::Batch => LearnsFrom::Batch,
        CriticOn::Chain => LearnsFrom::Chains { count, steps },
    }
}

fn linear_critic(
    config: &Config,
    world: &dyn World,
    problem: &Problem,
    step_rule: StepSettings,
) -> Result<LinearCritic> {
    let critic = &config.critic;
    let features = AllFeatures::new(world, config.kappa_q, critic.features, critic.world_features)?;
    // Weights of every utility, and their weighted sum.
    let rows = features.sets.iter().zip(&problem.agents);
    let weights: usize = rows.map(|(set, agent)| set.count() * (2 + agent.constraints.len())).sum();
    check_memory(8 * weights as u128, "critic.features", &format!("linear critics of {weights} weights"))?;
    let rule = match critic.solver {
        CriticSolver::Lstd => LinearRule::Lstd { ridge: critic.ridge, average: critic.average },
        CriticSolver::Td => LinearRule::Td(step_rule),
    };
    if let LinearRule::Lstd { average, .. } = rule {
        // Equations are kept for every agent, or made anew on every thread.
        let square = |set: &crate::learn::critic::FeatureSet| (set.count() as u128).pow(2);
        let largest = features.sets.iter().map(square).max().unwrap_or(0);
        let kept: u128 = if average > 0.0 { features.sets.iter().map(square).sum() } else { 0 };
        let bytes = 8 * (kept + 3 * largest * rayon::current_num_threads() as u128);
        let most = features.sets.iter().map(|set| set.count()).max().unwrap_or(0);
        let what = format!("LSTD over up to {most} features of {} agents", features.sets.len());
        check_memory(bytes, "critic.features", &what)?;
    }
    Ok(LinearCritic::new(features, problem, rule, learns_from(config)))
}

fn descent(critic: &CriticConfig) -> Descent {
    Descent { optimizer: critic.optimizer, learning_rate: critic.learning_rate, clip: critic.clip }
}

fn loss(critic: &CriticConfig) -> Loss {
    match critic.loss {
        CriticLoss::Mse => Loss::Squared,
        CriticLoss::Huber => Loss::Huber { width: 1.0 },
    }
}

fn widths(critic: &CriticConfig) -> Widths {
    Widths { embedding: critic.embedding, row_hidden: critic.row_hidden, hidden: critic.hidden.clone() }
}

/// Every thread holds the order of an agent's samples in all passes.
fn room_for_order(passes: usize, samples: u128) -> Result<()> {
    let bytes = 4 * passes as u128 * samples * rayon::current_num_threads() as u128;
    check_memory(bytes, "critic.passes", &format!("{passes} passes over {samples} transitions"))
}

fn returns_critic(config: &Config, world: &dyn World, problem: &Problem, stream: &Stream) -> Result<Returns> {
    let critic = &config.critic;
    let rule = ReturnsSettings {
        lambda: critic.lambda,
        descent: descent(critic),
        minibatch: critic.minibatch,
        passes: critic.passes,
        loss: loss(critic),
    };
    let steps = config.batch as u128 * (config.horizon as u128 + 1);
    room_for_order(rule.passes, steps)?;
    // Advantages of every utility along the batch, and their sum.
    let numbers: u128 = problem.agents.iter().map(|agent| 2 + agent.constraints.len() as u128).sum();
    check_memory(8 * numbers * steps, "batch", &format!("advantages along {steps} steps"))?;
    Returns::new(world, problem, config.kappa_q, &widths(critic), rule, *stream)
}

fn network_critic(
    config: &Config,
    world: &dyn World,
    problem: &Problem,
    stream: &Stream,
) -> Result<NeuralCritic> {
    let critic = &config.critic;
    let rule = NeuralCriticSettings {
        descent: descent(critic),
        minibatch: critic.minibatch,
        passes: critic.passes,
        loss: loss(critic),
        polyak: critic.polyak,
        twin: critic.twin,
        merged: critic.merged,
    };
    let from = learns_from(config);
    let transitions = match from {
        LearnsFrom::Batch => config.batch as u128 * config.horizon as u128,
        LearnsFrom::Chains { count, steps } => count as u128 * steps as u128,
    };
    room_for_order(rule.passes, transitions)?;
    NeuralCritic::new(world, problem, config.kappa_q, &widths(critic), rule, from, *stream)
}
