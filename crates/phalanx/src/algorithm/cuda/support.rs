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
use crate::learn::critic::{self, Critic, LinearCritic, NeuralCritic, Td};
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
    ensure(graph.agents() < u32::MAX as usize, || refused("world.n", "so many agents are not available"))?;
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
    Ok(())
}

fn tabular(host: &PrimalDual) -> Option<&Tabular> {
    host.policy.tabular()
}

fn td(host: &PrimalDual) -> Option<&Td> {
    let critic: &dyn Critic = &*host.critic;
    (critic as &dyn Any).downcast_ref()
}

fn linear_critic(host: &PrimalDual) -> Option<&LinearCritic> {
    let critic: &dyn Critic = &*host.critic;
    (critic as &dyn Any).downcast_ref()
}

/// Whether neighbours' values are looked up in tables while gradients are formed.
pub fn is_fused(host: &PrimalDual) -> bool {
    tabular(host).is_some() && td(host).is_some()
}

/// The policy and the critic on the card.
pub fn parts(
    host: &PrimalDual,
    shape: &Shape,
    gpu: &Gpu,
) -> Result<(Box<dyn CardPolicy>, Box<dyn CardCritic>)> {
    let tabular = tabular(host);
    let tables = td(host).map(|td| TableCritic::new(td, shape, tabular, gpu));
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
    let unknown = || refused(policy::KIND, format!("`{}` is not available", host.policy.kind()));
    let networks = host.policy.network().ok_or_else(unknown)?;
    let policy = NetworkPolicy::new(networks, Samples::of(shape), &shape.states, gpu);
    policy.map_err(|unfit| refused("policy.hidden", unfit))
}

fn network_critic(host: &PrimalDual, shape: &Shape, gpu: &Gpu) -> Result<NetworkCritic> {
    let critic: &dyn Any = &*host.critic;
    let unknown = || refused(critic::KIND, format!("`{}` is not available", host.plan.critic.kind));
    let networks: &NeuralCritic = critic.downcast_ref().ok_or_else(unknown)?;
    ensure(networks.rule().minibatch > 0, || {
        refused("critic.minibatch", "0 (one transition at a time) is not available")
    })?;
    let critic = NetworkCritic::new(networks, Samples::of(shape), &shape.states, gpu);
    critic.map_err(|unfit| refused(critic::HIDDEN, unfit))
}
