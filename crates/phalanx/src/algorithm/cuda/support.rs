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
use crate::base::error::ensure;
use crate::base::key::WORLD_N;
use crate::learn::critic::{self, Critic, LinearCritic, NeuralCritic};
use crate::learn::shield::SHIELD;
use crate::policy::{self, LOSS, Tabular};
use crate::world::Evolution;
use crate::{Error, Result};

/// A world whose agents share something.
pub fn joint() -> Error {
    refused("world.kind", "joint worlds are not available")
}

/// A world without kernel text.
pub fn no_kernel() -> Error {
    refused("world.kind", "this world has no kernel text (Factored::kernel) and is not available")
}

/// Fails with the setting that cannot run on a card.
pub fn check(host: &PrimalDual) -> Result<()> {
    let graph = host.world.graph();
    ensure(host.halo.peers().count() == 1, || {
        Error::config(DEVICE, "\"cuda\" is for a run in one process; leave --mpi out, or use \"cpu\"")
    })?;
    let Evolution::Factored(factored) = host.world.evolution() else { return Err(joint()) };
    ensure(factored.kernel().is_some(), no_kernel)?;
    ensure(graph.agents() < u32::MAX as usize, || refused(WORLD_N, "so many agents are not available"))?;
    ensure(host.problem.groups.is_empty(), || {
        refused("constraint", "constraints of groups are not available")
    })?;
    ensure(!host.problem.has_events(), || {
        refused("constraint", "constraints on whole episodes (`ever`, `chance`) are not available")
    })?;
    ensure(host.shield.is_none(), || refused(SHIELD, "is not available"))?;
    ensure(host.usual.is_none(), || refused(LOSS, "faulty links are not available"))?;
    ensure(!host.policy.is_shared(), || refused(policy::KIND, "`shared` is not available"))?;
    ensure(!host.policy.is_direct(), || refused(policy::KIND, "`direct` is not available"))?;
    let is_known =
        tabular(host).is_some() || host.policy.linear().is_some() || host.policy.network().is_some();
    ensure(is_known, || unknown_policy(host))?;
    let is_known = host.critic.table_learning().is_some()
        || linear_critic(host).is_some()
        || neural_critic(host).is_some_and(|networks| networks.rule().minibatch > 0);
    ensure(is_known, || unknown_critic(host))
}

fn unknown_policy(host: &PrimalDual) -> Error {
    refused(policy::KIND, format!("`{}` is not available", host.policy.kind()))
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
    let policy: Box<dyn CardPolicy> = match (tabular, host.policy.linear()) {
        (Some(policy), _) => {
            let may_have_entropy = *host.plan.actor.entropy != 0.0;
            Box::new(TablePolicy::new(policy, shape, rule, may_have_entropy, tables.as_ref(), gpu))
        }
        (None, Some(linear)) => Box::new(CardLinearPolicy::new(linear, world, shape, rule, gpu)?),
        (None, None) => Box::new(network_policy(host, shape, gpu)?),
    };
    let critic: Box<dyn CardCritic> = match (tables, linear_critic(host)) {
        (Some(tables), _) => Box::new(tables),
        (None, Some(linear)) => Box::new(CardLinearCritic::new(linear, world, shape, gpu)?),
        (None, None) => Box::new(network_critic(host, shape, gpu)?),
    };
    Ok((policy, critic))
}

fn network_policy(host: &PrimalDual, shape: &Shape, gpu: &Gpu) -> Result<NetworkPolicy> {
    let networks = host.policy.network().ok_or_else(|| unknown_policy(host))?;
    let policy = NetworkPolicy::new(networks, Samples::of(shape), &shape.states, gpu);
    policy.map_err(|unfit| refused(policy::HIDDEN, unfit))
}

fn network_critic(host: &PrimalDual, shape: &Shape, gpu: &Gpu) -> Result<NetworkCritic> {
    let networks = neural_critic(host).ok_or_else(|| unknown_critic(host))?;
    let critic = NetworkCritic::new(networks, Samples::of(shape), &shape.states, gpu);
    critic.map_err(|unfit| refused(critic::HIDDEN, unfit))
}
