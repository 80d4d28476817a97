//! A joint world that can be worked out by hand, and episodes written by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use phalanx::base::stream::{Place, Stream};
use phalanx::graph::Graph;
use phalanx::run::{Config, Registry, Session};
use phalanx::world::Trajectory;
use phalanx::world::{Channel, Episode, Evolution, Joint, World};

/// Two agents on the same square of a corridor. They move on by one if both act 1, and stay otherwise; beyond
/// square 2 is the goal, where the episode ends and each earns its prize. They begin at square 0 or 1.
#[derive(Debug)]
pub struct Corridor {
    network: Graph,
    channels: [Channel; 1],
    flaw: Flaw,
    /// Episodes begun so far.
    begun: AtomicU32,
}

/// A promise that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    None,
    /// Episodes depend on how many there were before.
    Memory,
    /// A state that there is not.
    State,
    /// A reward out of its range.
    Reward,
    /// What is shown is no number.
    Shown,
}

pub const SQUARES: u8 = 3;
/// What the agents earn at the goal.
pub const PRIZES: [f32; 2] = [1.0, 0.5];

impl Corridor {
    pub fn new(flaw: Flaw) -> Self {
        let channels = [Channel::sampled("reward", [0.0, 1.0])];
        Corridor { network: Graph::line(2).unwrap(), channels, flaw, begun: AtomicU32::new(0) }
    }
}

impl World for Corridor {
    fn graph(&self) -> &Graph {
        &self.network
    }
    fn states(&self, _agent: usize) -> usize {
        usize::from(SQUARES)
    }
    fn actions(&self, _agent: usize) -> usize {
        2
    }
    fn evolution(&self) -> Evolution<'_> {
        Evolution::Joint(self)
    }
    fn channels(&self) -> &[Channel] {
        &self.channels
    }
}

impl Joint for Corridor {
    fn shared(&self) -> usize {
        2
    }
    fn begin(&self, stream: &Stream, place: Place) -> Box<dyn Episode> {
        let before = self.begun.fetch_add(1, Ordering::Relaxed);
        let chance = if self.flaw == Flaw::Memory { before } else { stream.words(place, 0, 0)[0] };
        Box::new(Walk { square: (chance % 2) as u8, steps: 0, flaw: self.flaw })
    }
}

struct Walk {
    square: u8,
    steps: u32,
    flaw: Flaw,
}

impl Episode for Walk {
    fn observe(&self, states: &mut [u8], shared: &mut [f32]) {
        states.fill(self.square + if self.flaw == Flaw::State { 2 } else { 0 });
        let shown = if self.flaw == Flaw::Shown { f32::NAN } else { f32::from(self.square) };
        shared.copy_from_slice(&[shown, self.steps as f32]);
    }
    fn step(&mut self, actions: &[u8], _draws: &[u32], rewards: &mut [f32]) -> bool {
        self.square += u8::from(actions == [1, 1]);
        self.steps += 1;
        let ended = self.square == SQUARES;
        rewards.fill(0.0);
        if ended {
            let factor = if self.flaw == Flaw::Reward { 2.0 } else { 1.0 };
            rewards.iter_mut().zip(PRIZES).for_each(|(r, prize)| *r = factor * prize);
        }
        ended
    }
}

/// A configuration in the corridor: top-level keys, then whole sections.
pub fn configured(keys: &str, sections: &str) -> Config {
    let text = format!("{keys}\n[world]\nkind = \"corridor\"\n[objective]\nkind = \"return\"\n{sections}");
    let mut registry = Registry::default();
    registry.add("corridor", |_| Ok(Arc::new(Corridor::new(Flaw::None))));
    Config::from_toml(&text, std::path::Path::new(".")).unwrap().with_registry(registry)
}

/// γ = ½, H = 3, B = 2, and one constraint on the entropy of squares.
pub fn small(scaling: &str) -> Session {
    let keys = format!("gamma = 0.5\nhorizon = 3\nbatch = 2\nkappa = 1\nscaling = \"{scaling}\"");
    Session::new(&configured(&keys, "[[constraint]]\nkind = \"state_entropy\"\nat_least = 0.1")).unwrap()
}

/// (state, action) and reward of both agents in one step.
pub type Step = [(u8, u8, f32); 2];

/// An episode written by hand. Behind it lies what a longer one left there.
pub fn episode(steps: &[Step], ended: bool) -> Trajectory {
    let mut trajectory = Trajectory::with_channels(2, steps.len() + 3, 1);
    let left = [(2, 0, 77.0), (1, 1, -99.0)];
    for (k, step) in steps.iter().chain([&left; 3]).enumerate() {
        for (agent, &(state, action, reward)) in step.iter().enumerate() {
            let (s, a) = trajectory.pair_mut(agent, k);
            (*s, *a) = (state, action);
            *trajectory.reward_mut(0, agent, k) = reward;
        }
    }
    trajectory.finish(steps.len(), ended);
    trajectory
}

/// Ends after two steps.
pub fn short() -> Trajectory {
    episode(&[[(0, 1, 0.0), (0, 1, 0.0)], [(1, 1, 1.0), (2, 0, 3.0)]], true)
}

/// Cut off after three steps.
pub fn cut() -> Trajectory {
    let steps = [[(0, 0, 0.5), (0, 1, 1.0)], [(0, 1, 0.0), (1, 0, 1.0)], [(2, 1, 0.25), (1, 0, 1.0)]];
    episode(&steps, false)
}
