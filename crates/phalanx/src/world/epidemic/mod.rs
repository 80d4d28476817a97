//! An epidemic on a graph of contacts, which agents can slow down by protecting and by treating themselves.

mod features;
mod kernel;
mod law;
mod spec;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use super::registry::squarest;
use super::{
    Channel, Evolution, Factored, Features, MakeSized, Script, SizedWorld, StartLaw, Surroundings, View,
    World, WorldKernel, WorldSettings,
};
use crate::base::key::WORLD_N;
use crate::base::limits::check_memory;
use crate::base::sampler::write_thresholds;
use crate::base::stream::{Place, Stream};
use crate::graph::Graph;
use crate::{Error, Ragged, Result};

use features::{Contacts, Exposure, Outlook, Risk};
use law::{ACTIONS, Chances, INFECTED, Moves, PROTECT, SUSCEPTIBLE, TREAT};
pub use spec::{EpidemicModel, EpidemicSpec};

impl WorldSettings for EpidemicSpec {
    fn completed(mut self) -> Self {
        if self.model == EpidemicModel::Sirs {
            self.waning = Some(self.waning());
        }
        self
    }

    /// The contacts are what `[network]` says, or the squarest grid.
    fn build(&self, around: &Surroundings<'_>) -> Result<Arc<dyn World>> {
        if let Some(n) = self.n {
            // Links while they are collected, rewards and what every run keeps for an agent at the least.
            check_memory(512 * n as u128, WORLD_N, &format!("{n} agents"))?;
        }
        let contacts = match (around.links(self.n)?, self.n) {
            (Some(links), _) => links,
            (None, Some(n)) => Graph::squarest_grid(n).map_err(|error| match error {
                Error::Config { message, .. } => Error::config(WORLD_N, message),
                other => other,
            })?,
            (None, None) => {
                let message = "is missing; give the number of agents, or a [network] that knows it: a grid or a file of links";
                return Err(Error::config(WORLD_N, message));
            }
        };
        Ok(Arc::new(Epidemic::new(self, contacts)?))
    }

    fn agent_name(&self) -> &'static str {
        "person"
    }

    fn sized() -> Option<MakeSized> {
        Some(|agents| {
            let [rows, columns] = squarest(agents.unwrap_or(1000), 1)?;
            let world = Epidemic::new(&EpidemicSpec::default(), Graph::grid(rows, columns)?)?;
            let shape = format!("on a grid of {rows} × {columns}");
            Ok(SizedWorld { world: Arc::new(world), kappa: 0, shape })
        })
    }
}

/// Agents who meet their neighbours in the graph.
///
/// * State: 0 susceptible, 1 infected, and in the model `sirs` 2 recovered.
/// * Actions: 0 nothing, 1 protect oneself, 2 be treated.
/// * A step: a susceptible agent of whose contacts k are infected becomes infected with probability 1 − (1 −
///   ε)·(1 − β)^k; if it protects itself, ε and β are multiplied by 1 − ψ. An infected agent recovers with
///   probability δ, under treatment δ⁺. In `sis` it is then susceptible again; in `sirs` it is immune, which
///   it loses with probability ω.
/// * Links: the contacts, so that N_i^1 is what agent i's next state depends on.
///
/// Channels, all of the own state and action: `reward`, 1 unless infected, minus what the action costs;
/// `infected`; `treatment`. Scripted policies: `none`, `protect` (while susceptible), `treat` (while
/// infected) and `both`.
///
/// An agent's step reads its own row of the graph only, and nothing else is kept by agent but the channels'
/// tables.
#[derive(Debug, Clone)]
pub struct Epidemic {
    spec: EpidemicSpec,
    graph: Graph,
    chances: Chances,
    moves: Moves,
    /// Law of the first state of every agent, and infected from this draw on.
    start: Vec<f64>,
    infected_from: u32,
    channels: [Channel; 3],
}

impl Epidemic {
    /// The epidemic that `spec` describes among the agents of `graph`. O(agents + links).
    pub fn new(spec: &EpidemicSpec, graph: Graph) -> Result<Self> {
        spec.check()?;
        let n = graph.agents();
        let chances = Chances::new(spec);
        let states = chances.states();
        let contacts = (0..n).map(|i| graph.neighbours(i).len()).max().unwrap_or(0);
        let mut start = vec![0.0; states];
        start[usize::from(SUSCEPTIBLE)] = 1.0 - spec.start;
        start[usize::from(INFECTED)] = spec.start;
        let mut thresholds = vec![0; states - 1];
        write_thresholds(&start, &mut thresholds);
        let costs = [0.0, spec.protect_cost, spec.treat_cost];
        let channel = |name: &str, value: &dyn Fn(u8, u8) -> f64| {
            let pairs = (0..states as u8).flat_map(|s| (0..ACTIONS as u8).map(move |a| (s, a)));
            let row: Vec<f64> = pairs.map(|(s, a)| value(s, a)).collect();
            Channel::table(name, Ragged::from_rows((0..n).map(|_| row.iter().copied())))
        };
        let is = |yes: bool| if yes { 1.0 } else { 0.0 };
        Ok(Epidemic {
            spec: spec.clone(),
            moves: Moves::new(&chances, contacts),
            chances,
            start,
            infected_from: thresholds[usize::from(SUSCEPTIBLE)],
            channels: [
                channel("reward", &|s, a| is(s != INFECTED) - costs[usize::from(a)]),
                channel("infected", &|s, _| is(s == INFECTED)),
                channel("treatment", &|_, a| is(a == TREAT)),
            ],
            graph,
        })
    }
}

impl World for Epidemic {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn states(&self, _agent: usize) -> usize {
        self.chances.states()
    }

    fn actions(&self, _agent: usize) -> usize {
        ACTIONS
    }

    fn evolution(&self) -> Evolution<'_> {
        Evolution::Factored(self)
    }

    fn channels(&self) -> &[Channel] {
        &self.channels
    }

    fn view(&self, agent: usize, group: &[u32]) -> Option<Box<dyn View>> {
        Some(Box::new(Outlook(Contacts::new(self, agent, group))))
    }

    fn policy_features(&self, agent: usize, group: &[u32]) -> Option<Box<dyn Features>> {
        Some(Box::new(Risk(Contacts::new(self, agent, group))))
    }

    fn features(&self, agent: usize, group: &[u32]) -> Option<Box<dyn Features>> {
        Some(Box::new(Exposure(Contacts::new(self, agent, group))))
    }

    fn policy_features_kernel(&self, groups: &Ragged<u32>) -> Option<WorldKernel> {
        Some(kernel::risk(self, groups))
    }

    fn features_kernel(&self, groups: &Ragged<u32>) -> Option<WorldKernel> {
        Some(kernel::exposure(self, groups))
    }

    fn part(&self, graph: &Graph) -> Option<Arc<dyn World>> {
        Some(Arc::new(Epidemic::new(&self.spec, graph.clone()).ok()?))
    }

    fn scripted_names(&self) -> &'static [&'static str] {
        &["none", "protect", "treat", "both"]
    }

    fn scripted(&self, name: &str, _horizon: usize) -> Option<Script> {
        let [protects, treats] = match name {
            "none" => [false, false],
            "protect" => [true, false],
            "treat" => [false, true],
            "both" => [true, true],
            _ => return None,
        };
        let action = |state: u8| match state {
            SUSCEPTIBLE if protects => PROTECT,
            INFECTED if treats => TREAT,
            _ => 0,
        };
        let mut row = vec![0.0; self.chances.states() * ACTIONS];
        for (state, law) in row.chunks_exact_mut(ACTIONS).enumerate() {
            law[usize::from(action(state as u8))] = 1.0;
        }
        let rows = (0..self.graph.agents()).map(|_| row.iter().copied());
        Some(Script::Laws(Ragged::from_rows(rows)))
    }
}

impl Factored for Epidemic {
    fn parents(&self, agent: usize) -> Vec<u32> {
        let contacts = self.graph.neighbours(agent);
        let (before, after) = contacts.split_at(own_place(contacts, agent));
        [before, &[agent as u32], after].concat()
    }

    fn transition(&self, agent: usize, states: &[u8], actions: &[u8], law: &mut [f64]) {
        let own = own_place(self.graph.neighbours(agent), agent);
        let others = states[..own].iter().chain(&states[own + 1..]);
        let infected = others.filter(|&&state| state == INFECTED).count();
        self.chances.write_law(states[own], actions[own], infected, law);
    }

    fn start(&self, stream: &Stream, place: Place, agents: Range<usize>, states: &mut [u8]) {
        for (agent, state) in agents.zip(states) {
            let draw = stream.words(place, self.graph.global_id(agent), 0)[0] >> 1;
            *state = if draw >= self.infected_from { INFECTED } else { SUSCEPTIBLE };
        }
    }

    fn step(&self, agents: Range<usize>, states: &[u8], actions: &[u8], draws: &[u32], next: &mut [u8]) {
        for ((i, next), &draw) in agents.zip(next).zip(draws) {
            let contacts = self.graph.neighbours(i).iter();
            let infected = contacts.map(|&j| usize::from(states[j as usize] == INFECTED)).sum();
            *next = self.moves.get(states[i], actions[i], infected).sample(draw);
        }
    }

    fn kernel(&self) -> Option<WorldKernel> {
        let n = self.graph.agents();
        let contacts: Vec<u32> = (0..n).flat_map(|i| self.graph.neighbours(i)).copied().collect();
        let mut ends = vec![0u64];
        ends.extend((0..n).scan(0, |end, i| {
            *end += self.graph.neighbours(i).len() as u64;
            Some(*end)
        }));
        let kernel = self
            .moves
            .add_to(WorldKernel::new(include_str!("step.cu"), false))
            .constant("EPIDEMIC_STATES", self.chances.states())
            .constant("EPIDEMIC_INFECTED_FROM", format!("{}u", self.infected_from))
            .array("epidemic_ends", ends)
            .array("epidemic_contacts", contacts);
        Some(kernel)
    }

    fn start_law(&self) -> Option<StartLaw> {
        Some(StartLaw::Product { local: vec![self.start.clone(); self.graph.agents()] })
    }
}

/// Where `agent` stands among its contacts.
fn own_place(contacts: &[u32], agent: usize) -> usize {
    contacts.partition_point(|&j| (j as usize) < agent)
}
