//! Any factored world, for some of its agents only.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use super::registry::kind_error;
use super::{Channel, ChannelValues, Evolution, Factored, Features, View, World, WorldKernel};
use crate::base::stream::{Place, Stream};
use crate::graph::Graph;
use crate::{Ragged, Result};

/// `world` for the agents of `graph`, a part of the whole: by its own means ([`World::part`]), or else by
/// asking the whole world for one agent at a time. Fails if it is not factored.
pub fn sub_world(world: Arc<dyn World>, graph: Graph) -> Result<Arc<dyn World>> {
    if let Some(part) = world.part(&graph) {
        return Ok(part);
    }
    let Evolution::Factored(factored) = world.evolution() else {
        return Err(kind_error("joint worlds do not support several processes"));
    };
    let number = |id: u32| match graph.ids() {
        Some(ids) => ids.binary_search(&id).ok().map(|i| i as u32),
        None => Some(id),
    };
    let mut parents = Ragged::with_capacity(graph.agents());
    for i in 0..graph.agents() {
        let known: Option<Vec<[u32; 2]>> = factored
            .parents(graph.global_id(i) as usize)
            .into_iter()
            .map(|id| Some([number(id)?, id]))
            .collect();
        // Those of a ghost need not be known: it is never moved on here.
        parents.push_row(known.unwrap_or_default());
    }
    let ids: Vec<usize> = (0..graph.agents()).map(|i| graph.global_id(i) as usize).collect();
    let channel = |channel: &Channel| Channel {
        name: channel.name.clone(),
        values: match &channel.values {
            ChannelValues::Table(tables) => {
                ChannelValues::Table(Ragged::from_rows(ids.iter().map(|&id| tables.row(id).to_vec())))
            }
            sampled => sampled.clone(),
        },
    };
    let channels = world.channels().iter().map(channel).collect();
    Ok(Arc::new(SubWorld { whole: world, graph, parents, channels }))
}

/// A world that looks everything up in the whole one.
#[derive(Debug)]
struct SubWorld {
    whole: Arc<dyn World>,
    graph: Graph,
    /// Row i: number here and number in the whole of agent i's parents; none for ghosts whose parents are not
    /// all here.
    parents: Ragged<[u32; 2]>,
    channels: Vec<Channel>,
}

/// States and actions of the whole graph, of which only those of one agent's parents are filled in at a
/// time.
#[derive(Default)]
struct Rows {
    states: Vec<u8>,
    actions: Vec<u8>,
}

thread_local! {
    static ROWS: RefCell<Rows> = RefCell::default();
}

impl SubWorld {
    fn id(&self, agent: usize) -> usize {
        self.graph.global_id(agent) as usize
    }

    fn factored(&self) -> &dyn Factored {
        match self.whole.evolution() {
            Evolution::Factored(factored) => factored,
            // Made of factored worlds only.
            Evolution::Joint(_) => unreachable!("a joint world has no parts"),
        }
    }

    /// Calls `work` with the number in the whole of every agent whose parents are here, its place among
    /// `agents`, and rows in which its parents stand.
    fn each(
        &self,
        agents: Range<usize>,
        states: &[u8],
        actions: &[u8],
        mut work: impl FnMut(usize, usize, &Rows),
    ) {
        ROWS.with_borrow_mut(|rows| {
            // Pages that nobody writes to need no memory.
            if rows.states.len() != self.graph.total() {
                *rows = Rows { states: vec![0; self.graph.total()], actions: vec![0; self.graph.total()] };
            }
            for (m, agent) in agents.enumerate() {
                let parents = self.parents.row(agent);
                for &[here, id] in parents {
                    rows.states[id as usize] = states[here as usize];
                    rows.actions[id as usize] = actions[here as usize];
                }
                if !parents.is_empty() {
                    work(self.id(agent), m, rows);
                }
            }
        });
    }

    fn in_whole(&self, group: &[u32]) -> Vec<u32> {
        group.iter().map(|&m| self.graph.global_id(m as usize)).collect()
    }
}

impl World for SubWorld {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn states(&self, agent: usize) -> usize {
        self.whole.states(self.id(agent))
    }

    fn actions(&self, agent: usize) -> usize {
        self.whole.actions(self.id(agent))
    }

    fn is_serial(&self) -> bool {
        self.whole.is_serial()
    }

    fn evolution(&self) -> Evolution<'_> {
        Evolution::Factored(self)
    }

    fn view(&self, agent: usize, group: &[u32]) -> Option<Box<dyn View>> {
        self.whole.view(self.id(agent), &self.in_whole(group))
    }

    fn place(&self, agent: usize, member: usize, kappa: usize) -> Option<Vec<f32>> {
        self.whole.place(self.id(agent), self.id(member), kappa)
    }

    fn site(&self, agent: usize) -> Vec<f32> {
        self.whole.site(self.id(agent))
    }

    fn policy_features(&self, agent: usize, group: &[u32]) -> Option<Box<dyn Features>> {
        self.whole.policy_features(self.id(agent), &self.in_whole(group))
    }

    fn features(&self, agent: usize, group: &[u32]) -> Option<Box<dyn Features>> {
        self.whole.features(self.id(agent), &self.in_whole(group))
    }

    fn channels(&self) -> &[Channel] {
        &self.channels
    }
}

impl Factored for SubWorld {
    fn parents(&self, agent: usize) -> Vec<u32> {
        self.parents.row(agent).iter().map(|&[here, _]| here).collect()
    }

    fn transition(&self, agent: usize, states: &[u8], actions: &[u8], law: &mut [f64]) {
        self.factored().transition(self.id(agent), states, actions, law);
    }

    fn knows_law(&self) -> bool {
        self.factored().knows_law()
    }

    fn kernel(&self) -> Option<WorldKernel> {
        let ids = (0..self.graph.agents()).map(|i| self.graph.global_id(i)).collect();
        self.factored().kernel().map(|kernel| kernel.for_part(ids, self.graph.total()))
    }

    fn start(&self, stream: &Stream, place: Place, agents: Range<usize>, states: &mut [u8]) {
        for (agent, state) in agents.zip(states) {
            let id = self.id(agent);
            self.factored().start(stream, place, id..id + 1, std::slice::from_mut(state));
        }
    }

    fn step(&self, agents: Range<usize>, states: &[u8], actions: &[u8], draws: &[u32], next: &mut [u8]) {
        let factored = self.factored();
        self.each(agents, states, actions, |id, m, rows| {
            let (draw, next) = (&draws[m..=m], &mut next[m..=m]);
            factored.step(id..id + 1, &rows.states, &rows.actions, draw, next);
        });
    }

    fn sample_rewards(
        &self,
        channel: usize,
        agents: Range<usize>,
        states: &[u8],
        actions: &[u8],
        draws: &[u32],
        rewards: &mut [f32],
    ) {
        let factored = self.factored();
        self.each(agents, states, actions, |id, m, rows| {
            let (draw, reward) = (&draws[m..=m], &mut rewards[m..=m]);
            factored.sample_rewards(channel, id..id + 1, &rows.states, &rows.actions, draw, reward);
        });
    }
}
