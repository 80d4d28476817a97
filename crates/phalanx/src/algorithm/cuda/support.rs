//! What can run on a card, and the parts that it takes.

use std::any::Any;

use phalanx_gpu::Gpu;

use super::super::primal_dual::PrimalDual;
use super::device::{DEVICE, refused};
use super::linear::{CardLinearCritic, CardLinearPolicy};
use super::neural::{NetworkCritic, NetworkPolicy, Samples};
use super::part::{CardCritic, CardPolicy};
use super::shape::Shape;
use super::tables::{TableCritic, TablePolicy};
use super::utilities::check_kind;
use crate::algorithm::Task;
use crate::base::error::ensure;
use crate::base::key::WORLD_N;
use crate::learn::critic::{self, Critic, LinearCritic, NeuralCritic};
use crate::learn::shield::SHIELD;
use crate::neural::Net;
use crate::policy::{self, GradientSettings, LOSS, Policy, Tabular};
use crate::utility::problem::Problem;
use crate::world::{Evolution, World};
use crate::{Error, Result};

/// A world whose agents share something.
pub fn joint() -> Error {
    refused("world.kind", "joint worlds are not available")
}

/// A world without kernel text.
pub fn no_kernel() -> Error {
    refused("world.kind", "this world has no kernel text (Factored::kernel) and is not available")
}

/// Fails with the setting that cannot be trained with on a card.
pub fn check(host: &PrimalDual) -> Result<()> {
    check_task(&*host.world, &host.problem)?;
    ensure(host.shield.is_none(), || refused(SHIELD, "is not available"))?;
    ensure(host.usual.is_none(), || refused(LOSS, "faulty links are not available"))?;
    ensure(!host.policy.is_shared(), || refused(policy::KIND, "`shared` is not available"))?;
    ensure(!host.policy.is_direct(), || refused(policy::KIND, "`direct` is not available"))?;
    ensure(*host.plan.actor.mixing == 0.0, || refused("actor.mixing", "is not available"))?;
    ensure(is_known(&*host.policy), || unknown_policy(&*host.policy))?;
    let is_known = host.critic.table_learning().is_some()
        || linear_critic(host).is_some()
        || neural_critic(host).is_some_and(|networks| networks.rule().minibatch > 0);
    ensure(is_known, || unknown_critic(host))
}

/// Fails on all ranks if the largest neural networks of some are smaller than those of others. Kernels of
/// neural networks divide their work by the largest one, and sums of squares with it: their last digits would
/// depend on how agents are partitioned.
pub fn check_sizes_over_ranks(host: &PrimalDual) -> Result<()> {
    if host.halo.peers().count() == 1 {
        return Ok(());
    }
    let of_policies = host.policy.network().map(|networks| (policy::KIND, networks.nets()));
    let of_critics = neural_critic(host).map(|networks| (critic::KIND, &networks.bank().nets[..]));
    for (key, nets) in of_policies.into_iter().chain(of_critics) {
        let here = largest_sizes(nets);
        let mut everywhere = here;
        host.halo.fold(&mut everywhere, u64::max)?;
        let unequal = "networks of unequal sizes are not available on several ranks";
        host.halo.all_ok(ensure(here == everywhere, || refused(key, unequal)))?;
    }
    Ok(())
}

/// Rows and their width, symbols and outputs of the largest neural networks.
fn largest_sizes(nets: &[Net]) -> [u64; 5] {
    nets.iter().fold([0; 5], |most, net| {
        let architecture = net.architecture();
        let [rows, width] = architecture.rows.map_or([0; 2], |rows| [rows.count, rows.width]);
        let symbols = |group: usize| architecture.symbols.get(group).map_or(0, |group| group.vocabulary);
        let sizes = [rows, width, symbols(0), symbols(1), net.outputs()];
        std::array::from_fn(|k| most[k].max(sizes[k] as u64))
    })
}

/// Fails with the setting that cannot be evaluated on a card.
pub fn check_evaluation(task: &Task, policy: &dyn Policy) -> Result<()> {
    let Task { world, problem, halo } = task;
    ensure(halo.peers().count() == 1, || {
        Error::config(DEVICE, "\"cuda\" evaluates in one process; leave --mpi out, or use \"cpu\"")
    })?;
    check_task(&**world, problem)?;
    ensure(problem.agents.iter().all(|agent| agent.tails.is_empty()), || {
        refused("constraint", "constraints of kind `cvar` are not available")
    })?;
    problem.agents.iter().flat_map(|agent| agent.utilities()).try_for_each(|u| check_kind(&u.kind))?;
    ensure(policy.usual_states().is_none(), || refused(LOSS, "faulty links are not available"))?;
    ensure(!policy.is_shared(), || refused(policy::KIND, "`shared` is not available"))?;
    ensure(is_known(policy) && !policy.is_direct(), || {
        refused(policy::KIND, "`direct`, greedy and scripted policies are not available")
    })
}

fn check_task(world: &dyn World, problem: &Problem) -> Result<()> {
    let Evolution::Factored(factored) = world.evolution() else { return Err(joint()) };
    ensure(factored.kernel().is_some(), no_kernel)?;
    ensure(world.graph().agents() < u32::MAX as usize, || {
        refused(WORLD_N, "so many agents are not available")
    })?;
    ensure(problem.groups.is_empty(), || refused("constraint", "constraints of groups are not available"))?;
    ensure(!problem.has_events(), || {
        refused("constraint", "constraints on whole episodes (`ever`, `chance`) are not available")
    })
}

fn is_known(policy: &dyn Policy) -> bool {
    policy.tabular().is_some() || policy.linear().is_some() || policy.network().is_some()
}

fn unknown_policy(policy: &dyn Policy) -> Error {
    refused(policy::KIND, format!("`{}` is not available", policy.kind()))
}

fn unknown_critic(host: &PrimalDual) -> Error {
    match neural_critic(host) {
        Some(_) => refused("critic.minibatch", "0 (one transition at a time) is not available"),
        None => refused(critic::KIND, format!("`{}` is not available", host.plan.critic.kind)),
    }
}

fn tabular(host: &PrimalDual) -> Option<&Tabular> {
    host.policy.tabular()
}

fn linear_critic(host: &PrimalDual) -> Option<&LinearCritic> {
    let critic: &dyn Critic = &*host.critic;
    (critic as &dyn Any).downcast_ref()
}

fn neural_critic(host: &PrimalDual) -> Option<&NeuralCritic> {
    let critic: &dyn Critic = &*host.critic;
    (critic as &dyn Any).downcast_ref()
}

/// Whether neighbours' values are looked up in tables while gradients are formed.
pub fn is_fused(host: &PrimalDual) -> bool {
    tabular(host).is_some() && host.critic.table_learning().is_some()
}

/// The policy and the critic on the card.
pub fn parts(
    host: &PrimalDual,
    shape: &Shape,
    gpu: &Gpu,
) -> Result<(Box<dyn CardPolicy>, Box<dyn CardCritic>)> {
    let tabular = tabular(host);
    let tables = host.critic.table_learning().map(|learning| TableCritic::new(learning, shape, tabular, gpu));
    let (world, rule) = (&*host.world, &host.gradient_settings);
    let may_have_entropy = *host.plan.actor.entropy != 0.0;
    let policy = policy_on_card(&*host.policy, world, shape, (rule, may_have_entropy), tables.as_ref(), gpu)?;
    let critic: Box<dyn CardCritic> = match (tables, linear_critic(host)) {
        (Some(tables), _) => Box::new(tables),
        (None, Some(linear)) => Box::new(CardLinearCritic::new(linear, world, shape, gpu)?),
        (None, None) => Box::new(network_critic(host, shape, gpu)?),
    };
    Ok((policy, critic))
}

/// The policy on the card. Gradients follow `rule`, and may have an entropy; `tables` are what critics know,
/// if they are tables.
pub fn policy_on_card(
    policy: &dyn Policy,
    world: &dyn World,
    shape: &Shape,
    (rule, may_have_entropy): (&GradientSettings, bool),
    tables: Option<&TableCritic>,
    gpu: &Gpu,
) -> Result<Box<dyn CardPolicy>> {
    Ok(match (policy.tabular(), policy.linear()) {
        (Some(policy), _) => Box::new(TablePolicy::new(policy, shape, rule, may_have_entropy, tables, gpu)),
        (None, Some(linear)) => Box::new(CardLinearPolicy::new(linear, world, shape, rule, gpu)?),
        (None, None) => {
            let networks = policy.network().ok_or_else(|| unknown_policy(policy))?;
            let policy = NetworkPolicy::new(networks, Samples::of(shape), &shape.states, gpu);
            Box::new(policy.map_err(|unfit| refused(policy::HIDDEN, unfit))?)
        }
    })
}

fn network_critic(host: &PrimalDual, shape: &Shape, gpu: &Gpu) -> Result<NetworkCritic> {
    let networks = neural_critic(host).ok_or_else(|| unknown_critic(host))?;
    let own: Vec<usize> = shape.own().collect();
    let critic = NetworkCritic::new(networks, Samples::of(shape), &shape.states, &own, gpu);
    critic.map_err(|unfit| refused(critic::HIDDEN, unfit))
}
