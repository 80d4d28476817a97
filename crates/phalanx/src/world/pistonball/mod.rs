//! Pistonball: pistons in a row push a ball to the left, as in PettingZoo's game of that name. Paper: subsec:
//! pistonball.

mod library;
mod paper;
pub mod physics;
mod view;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    Channel, Episode, Evolution, Joint, MakeSized, Script, ScriptedPolicy, SizedWorld, Surroundings, View,
    World, WorldSettings,
};
use crate::base::key::WORLD_N;
use crate::base::stream::{Place, Stream};
use crate::graph::Graph;
use crate::{Error, Ragged, Result};
use physics::{Ball, COLUMN, HIGHEST, LEVELS, LOWEST, MOVE, Physics, WALL, width};

pub use library::{Library, MAX_CYCLES, Outcome, draw_start};
pub use paper::PaperGame;

/// The keys of `[world]` beside `kind = "pistonball"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PistonballSpec {
    /// Number of pistons, numbered from the left.
    pub n: usize,
    /// Whose rewards.
    pub game: Game,
}

impl Default for PistonballSpec {
    fn default() -> Self {
        PistonballSpec { n: 10, game: Game::Paper }
    }
}

impl WorldSettings for PistonballSpec {
    fn build(&self, around: &Surroundings<'_>) -> Result<Arc<dyn World>> {
        let mut pistonball = Pistonball::new(self)?;
        around.relink(&mut pistonball.graph)?;
        Ok(Arc::new(pistonball))
    }

    fn agent_name(&self) -> &'static str {
        "piston"
    }

    fn sized() -> Option<MakeSized> {
        Some(|agents| {
            let default = PistonballSpec::default();
            let world = Pistonball::new(&PistonballSpec { n: agents.unwrap_or(default.n), ..default })?;
            Ok(SizedWorld { world: Arc::new(world), kappa: 0, shape: "under a ball".into() })
        })
    }
}

/// Whose rewards. Physics, start and end are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Game {
    /// The paper's local ones.
    Paper,
    /// The library's, one for all.
    Pettingzoo,
}

/// Pistons that the game can have. Boxes are searched for by recursion, as deep as there are pistons in the
/// worst case.
pub const MOST_PISTONS: usize = 10_000;

/// Pistons 0 – 1 – … – n−1 from the left under a ball that starts on the right.
///
/// A piston's state is its height, one of 17 levels; its actions are 0 down, 1 still, 2 up. An episode ends
/// when the ball reaches the left wall. Channels, both recorded while simulating: `reward`, and `height`, the
/// level that a step begins at as a share of the highest.
///
/// What is shared is the ball: x, y, vx, vy, ω and its angle. A piston sees of it what its [`View`] shows:
/// position and speed while a part of the ball is above its neighbourhood, else only on which side it is.
#[derive(Debug, Clone)]
pub struct Pistonball {
    graph: Graph,
    game: Game,
    channels: [Channel; 2],
}

/// Numbers that describe the ball.
pub(crate) const SHARED: usize = 6;

impl Pistonball {
    /// A row of `spec.n` ≥ 2 pistons.
    pub fn new(spec: &PistonballSpec) -> Result<Self> {
        let PistonballSpec { n, game } = *spec;
        if !(2..=MOST_PISTONS).contains(&n) {
            return Err(Error::config(WORLD_N, format!("{n} pistons; allowed are 2 to {MOST_PISTONS}")));
        }
        let range = match game {
            Game::Paper => paper::range(n),
            Game::Pettingzoo => library::range(n),
        };
        Ok(Pistonball {
            graph: Graph::line(n)?,
            game,
            // Heights are recorded, though they follow from states: a bound on them is on a sum over the
            // steps lived.
            channels: [Channel::sampled("reward", range), Channel::sampled("height", [0.0, 1.0])],
        })
    }
}

/// Down, still, up.
const ACTIONS: usize = 3;
const STILL: u8 = 1;

impl World for Pistonball {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn states(&self, _agent: usize) -> usize {
        LEVELS
    }

    fn actions(&self, _agent: usize) -> usize {
        ACTIONS
    }

    fn evolution(&self) -> Evolution<'_> {
        Evolution::Joint(self)
    }

    fn scripted_names(&self) -> &'static [&'static str] {
        &["still", "random", "wave"]
    }

    fn scripted(&self, name: &str, _horizon: usize) -> Option<Script> {
        let laws = |law: [f64; ACTIONS]| {
            Script::Laws(Ragged::from_rows((0..self.graph.agents()).map(|_| law.repeat(LEVELS))))
        };
        match name {
            "still" => Some(laws([0.0, 1.0, 0.0])),
            "random" => Some(laws([1.0 / ACTIONS as f64; ACTIONS])),
            "wave" => Some(Script::Rule(Box::new(Wave))),
            _ => None,
        }
    }

    fn view(&self, agent: usize, group: &[u32]) -> Option<Box<dyn View>> {
        Some(Box::new(view::Frame::new(agent, group)))
    }

    fn channels(&self) -> &[Channel] {
        &self.channels
    }
}

impl Joint for Pistonball {
    fn shared(&self) -> usize {
        SHARED
    }

    fn begin(&self, stream: &Stream, place: Place) -> Box<dyn Episode> {
        // Every piston has numbers of its own; those of the ball stand behind.
        let n = self.graph.agents();
        let (mut drawn, mut of_ball) = (0, stream.sequence(place, n as u32));
        let (heights, ball) = draw_start(n, || {
            drawn += 1;
            let piston = (drawn <= n).then(|| stream.sequence(place, drawn as u32 - 1).uniform());
            piston.unwrap_or_else(|| of_ball.uniform())
        });
        match self.game {
            Game::Paper => Box::new(PaperGame::new(&heights, ball)),
            // The horizon cuts episodes, not the game.
            Game::Pettingzoo => Box::new(Library::new(&heights, ball, usize::MAX)),
        }
    }
}

impl Episode for Library {
    fn observe(&self, states: &mut [u8], shared: &mut [f32]) {
        observe(self.physics(), states, shared);
    }

    fn step(&mut self, actions: &[u8], _draws: &[u32], rewards: &mut [f32]) -> bool {
        let (rewards, heights) = rewards.split_at_mut(actions.len());
        write_heights(self.physics(), heights);
        let outcome = Library::step(self, actions);
        rewards.fill(outcome.reward as f32);
        outcome.terminated
    }
}

/// Levels and ball.
fn observe(physics: &Physics, states: &mut [u8], shared: &mut [f32]) {
    for (state, y) in states.iter_mut().zip(physics.heights()) {
        *state = ((LOWEST - y) / MOVE) as u8;
    }
    let Ball { x, y, vx, vy, angle, omega } = physics.ball();
    shared.copy_from_slice(&[x, y, vx, vy, omega, angle].map(|number| number as f32));
}

/// The channel `height`.
fn write_heights(physics: &Physics, heights: &mut [f32]) {
    for (height, y) in heights.iter_mut().zip(physics.heights()) {
        *height = ((LOWEST - y) / (LOWEST - HIGHEST)) as f32;
    }
}

/// Height of a level, −1 for the lowest and 1 for the highest.
fn scaled_height(y: f64) -> f64 {
    2.0 * (LOWEST - y) / (LOWEST - HIGHEST) - 1.0
}

/// x of the middle of a piston's column.
fn column_centre(piston: usize) -> f64 {
    WALL + COLUMN * (piston as f64 + 0.5)
}

/// Pistons of which a part of the ball is above, as first and last.
fn under(x: f64, pistons: usize) -> [usize; 2] {
    // Columns are open intervals: a ball that only touches the edge of one is not above it.
    let first = ((x - physics::BALL_RADIUS - WALL) / COLUMN).floor();
    let last = ((x + physics::BALL_RADIUS - WALL) / COLUMN).ceil() - 1.0;
    [first, last].map(|piston| piston.clamp(0.0, (pistons - 1) as f64) as usize)
}

/// Pistons right of the ball go up, those left of it down.
#[derive(Debug)]
struct Wave;

/// Pistons whose middle is this close to the ball's stay where they are.
const STAYS: f64 = 10.0;

impl ScriptedPolicy for Wave {
    fn act(&self, agent: usize, _state: u8, shared: &[f32]) -> u8 {
        let right = column_centre(agent) - f64::from(shared[0]);
        if right > STAYS {
            2
        } else if right < -STAYS {
            0
        } else {
            STILL
        }
    }
}

/// Widest way that the ball's left edge can go in a step, in pixels.
fn longest_way(pistons: usize) -> f64 {
    width(pistons) - 2.0 * WALL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pistons_under_the_ball() {
        // Columns of five pistons: 40 to 80, 80 to 120, …, 200 to 240.
        assert_eq!(under(120.0, 5), [1, 2]);
        assert_eq!(under(120.5, 5), [1, 3]);
        assert_eq!(under(80.0, 5), [0, 1]);
        assert_eq!(under(200.0, 5), [3, 4]);
    }

    #[test]
    fn waves_point_to_the_left() {
        let act = |agent, x: f32| Wave.act(agent, 0, &[x, 0.0, 0.0, 0.0, 0.0, 0.0]);
        // Middle of piston 3: 180.
        assert_eq!(
            [act(3, 169.0), act(3, 170.0), act(3, 180.0), act(3, 190.0), act(3, 191.0)],
            [2, 1, 1, 1, 0]
        );
    }
}
