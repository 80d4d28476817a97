//! Lamps in a ring: a lamp burns on when it or its left neighbour was switched on; one switch in ten fails.

#![forbid(unsafe_code)]

use std::{ops::Range, process::ExitCode, sync::Arc};

use phalanx::graph::Graph;
use phalanx::run::Registry;
use phalanx::world::{Channel, DRAW_RANGE, Evolution, Factored, Place, StartLaw, Stream, World};

#[derive(Debug)]
struct Lamps {
    ring: Graph,
    reward: [Channel; 1],
}

#[rustfmt::skip]
impl World for Lamps {
    fn graph(&self) -> &Graph { &self.ring }
    fn states(&self, _agent: usize) -> usize { 2 }
    fn actions(&self, _agent: usize) -> usize { 2 }
    fn channels(&self) -> &[Channel] { &self.reward }
    fn evolution(&self) -> Evolution<'_> { Evolution::Factored(self) }
}

#[rustfmt::skip]
impl Factored for Lamps {
    fn parents(&self, agent: usize) -> Vec<u32> {
        let left = (agent + self.ring.agents() - 1) % self.ring.agents();
        let mut parents = vec![left as u32, agent as u32];
        parents.sort();
        parents
    }

    fn transition(&self, _agent: usize, _states: &[u8], actions: &[u8], law: &mut [f64]) {
        law[1] = if actions.contains(&1) { 0.9 } else { 0.0 };
        law[0] = 1.0 - law[1];
    }

    fn start(&self, _: &Stream, _: Place, _: Range<usize>, states: &mut [u8]) { states.fill(0) }

    fn start_law(&self) -> Option<StartLaw> {
        Some(StartLaw::Product { local: vec![vec![1.0, 0.0]; self.ring.agents()] })
    }

    fn step(&self, agents: Range<usize>, _: &[u8], actions: &[u8], draws: &[u32], next: &mut [u8]) {
        let (n, fails) = (self.ring.agents(), (0.1 * f64::from(DRAW_RANGE)).round() as u32);
        for ((i, next), &draw) in agents.zip(next).zip(draws) {
            *next = u8::from(actions[i] | actions[(i + n - 1) % n] == 1 && draw >= fails);
        }
    }
}

fn lamps(keys: &toml::Table) -> phalanx::Result<Arc<dyn World>> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Keys {
        n: usize,
    }
    let Keys { n } =
        keys.clone().try_into().map_err(|e: toml::de::Error| phalanx::Error::config("world", e.message()))?;
    if n < 3 {
        return Err(phalanx::Error::config("world.n", format!("{n}; a ring needs at least 3 lamps")));
    }
    // Light is worth 1, switching costs 0.3: rewards by (state, action).
    let tables = phalanx::Ragged::from_rows(vec![[0.0, -0.3, 1.0, 0.7]; n]);
    Ok(Arc::new(Lamps { ring: Graph::ring(n)?, reward: [Channel::table("reward", tables)] }))
}

fn main() -> ExitCode {
    let mut registry = Registry::default();
    registry.add("lamps", lamps);
    phalanx_cli::main_with(registry)
}

#[cfg(test)]
mod tests {
    #[test]
    fn lamps_keep_the_contract() {
        phalanx::world::check(&*super::lamps(&toml::toml! { n = 5 }).unwrap()).unwrap();
    }
}
