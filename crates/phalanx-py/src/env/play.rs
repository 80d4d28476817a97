//! One copy of a world, played step by step.

use phalanx::base::stream::{Place, Purpose, Stream};
use phalanx::world::pistonball::physics::{Ball, HIGHEST, LOWEST, Physics};
use phalanx::world::pistonball::{Library, PaperGame};
use phalanx::world::{ChannelValues, Episode, Evolution, Scene, World, sampled_number};

use super::layout::Layout;

/// What the agents of a copy do.
#[derive(Clone, Copy)]
pub enum Moves<'a> {
    /// Numbers of actions.
    Discrete(&'a [u8]),
    /// How far pistons go, −1 to 1.
    Continuous(&'a [f64]),
}

/// Where a copy stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    NotBegun,
    Playing,
    Over,
}

/// What brings the next state about.
enum Motion {
    None,
    /// Draws of a place, by agent and step.
    Factored(Stream, Place),
    /// An episode of a world that is simulated whole, with the same draws.
    Joint(Stream, Place, Box<dyn Episode>),
    Library(Library),
    Paper(PaperGame),
}

/// One copy.
pub struct Play {
    motion: Motion,
    pub standing: Standing,
    pub terminated: bool,
    /// Steps of this episode.
    pub steps: usize,
    pub states: Vec<u8>,
    /// What agents of a joint world share, as neural networks read it: of pistonball the ball.
    pub shared: Vec<f32>,
    /// What views have shown, present and past.
    pub seen: Vec<f32>,
    /// Of the last step, `[channel][agent]`.
    pub earned: Vec<f64>,
    /// Of the last step, if there was one.
    pub actions: Vec<u8>,
    next: Vec<u8>,
    draws: [Vec<u32>; 4],
    /// Of sampled channels, `[channel][agent]`.
    sampled: Vec<f32>,
    members: Vec<u8>,
}

/// A draw's row for the world, in an even step and in an odd one.
const DRAW_ROWS: [usize; 2] = [1, 3];
/// Bits of an episode's number that [`Place::trajectory`] has room for.
const TRAJECTORY_BITS: u32 = 24;

impl Play {
    pub fn new(world: &dyn World, layout: &Layout) -> Self {
        let agents = world.graph().agents();
        let sampled = world.channels().iter().filter(|channel| channel.tables().is_none()).count();
        let (of_factored, shared) = match world.evolution() {
            Evolution::Factored(_) => (agents, 0),
            Evolution::Joint(joint) => (0, joint.shared()),
        };
        Play {
            motion: Motion::None,
            standing: Standing::NotBegun,
            terminated: false,
            steps: 0,
            states: vec![0; agents],
            shared: vec![0.0; shared],
            seen: vec![0.0; layout.remembered()],
            earned: vec![0.0; agents * world.channels().len()],
            actions: Vec::with_capacity(agents),
            next: vec![0; of_factored],
            draws: std::array::from_fn(|_| vec![0; agents]),
            sampled: vec![0.0; agents * sampled],
            members: Vec::new(),
        }
    }

    /// Bytes that a copy takes, about.
    pub fn bytes(world: &dyn World, layout: &Layout) -> u128 {
        // Physics keeps boxes, trees and contacts of every piston.
        let of_agent = if layout.has_views() { 512 } else { 48 };
        let of_agents = world.graph().agents() as u128 * (of_agent + 16 * world.channels().len() as u128);
        let shared = match world.evolution() {
            Evolution::Factored(_) => 0,
            Evolution::Joint(joint) => joint.shared(),
        };
        size_of::<Play>() as u128 + of_agents + 4 * (layout.remembered() + shared) as u128
    }

    /// Begins episode number `episode` of a seed in any world but pistonball: the start and the chance of
    /// that episode in the evaluation that closes a run with the seed. Training draws other numbers.
    pub fn begin(&mut self, world: &dyn World, layout: &Layout, seed: u64, episode: u64) {
        let stream = Stream::new(seed);
        let place = Place {
            purpose: Purpose::Evaluation,
            iteration: (episode >> TRAJECTORY_BITS) as u32,
            trajectory: episode as u32 & ((1 << TRAJECTORY_BITS) - 1),
        };
        let start = Place { purpose: Purpose::EvaluationStart, ..place };
        self.motion = match world.evolution() {
            Evolution::Factored(factored) => {
                factored.start(&stream, start, 0..self.states.len(), &mut self.states);
                Motion::Factored(stream, place)
            }
            Evolution::Joint(joint) => Motion::Joint(stream, place, joint.begin(&stream, start)),
        };
        self.at_start(layout);
    }

    /// Begins an episode of pistonball.
    pub fn drop(&mut self, layout: &Layout, heights: &[f64], ball: Ball, is_paper: bool) {
        self.motion = if is_paper {
            Motion::Paper(PaperGame::new(heights, ball))
        } else {
            // Copies count their steps themselves.
            Motion::Library(Library::new(heights, ball, usize::MAX))
        };
        self.at_start(layout);
    }

    fn at_start(&mut self, layout: &Layout) {
        self.standing = Standing::Playing;
        self.terminated = false;
        self.steps = 0;
        self.actions.clear();
        self.earned.fill(0.0);
        self.observe(layout, true);
    }

    /// Ball and pistons, where there are some and a game has begun.
    pub fn physics(&self) -> Option<&Physics> {
        match &self.motion {
            Motion::Library(game) => Some(game.physics()),
            Motion::Paper(game) => Some(game.physics()),
            Motion::None | Motion::Factored(..) | Motion::Joint(..) => None,
        }
    }

    /// What the episode has to show beside states and what is shared.
    pub fn scene(&self) -> Option<&Scene> {
        match &self.motion {
            Motion::Joint(_, _, episode) => episode.scene(),
            _ => None,
        }
    }

    /// What the world measures of the episode so far; no number before it has begun.
    pub fn measures(&self, world: &dyn World) -> Vec<f64> {
        let mut found = vec![f64::NAN; world.measures().len()];
        if let Motion::Joint(_, _, episode) = &self.motion {
            episode.measures(&mut found);
        }
        found
    }

    /// The action in double precision that does to `piston` what `action` does.
    pub fn in_single_precision(&self, piston: usize, action: f32) -> f64 {
        match &self.motion {
            Motion::Library(game) => game.in_single_precision(piston, action),
            _ => f64::from(action),
        }
    }

    /// One step of a copy that is being played.
    pub fn step(&mut self, world: &dyn World, layout: &Layout, moves: Moves<'_>, max_cycles: usize) {
        self.terminated = self.advance(world, moves);
        self.steps += 1;
        if self.terminated || self.steps >= max_cycles {
            self.standing = Standing::Over;
        }
        self.observe(layout, false);
    }

    /// Whether the last step was the last one in time.
    pub fn truncated(&self, max_cycles: usize) -> bool {
        self.steps >= max_cycles
    }

    /// Moves on and earns. Returns whether the episode has ended.
    fn advance(&mut self, world: &dyn World, moves: Moves<'_>) -> bool {
        self.note(moves);
        match &mut self.motion {
            Motion::None => false,
            Motion::Factored(stream, place) => {
                let agents = self.states.len();
                let draws = drawn(&mut self.draws, stream, *place, self.steps);
                if let Evolution::Factored(factored) = world.evolution() {
                    let (states, actions) = (&self.states, &self.actions);
                    factored.step(0..agents, states, actions, draws, &mut self.next);
                    for (place, channel) in world.channels().iter().enumerate() {
                        if channel.tables().is_none() {
                            let number = sampled_number(world, place);
                            let rewards = &mut self.sampled[number * agents..(number + 1) * agents];
                            factored.sample_rewards(place, 0..agents, states, actions, draws, rewards);
                        }
                    }
                }
                self.earn(world);
                std::mem::swap(&mut self.states, &mut self.next);
                false
            }
            Motion::Joint(stream, place, episode) => {
                let draws = drawn(&mut self.draws, stream, *place, self.steps);
                let ended = episode.step(&self.actions, draws, &mut self.sampled);
                self.earn(world);
                ended
            }
            Motion::Paper(game) => {
                let ended = Episode::step(game, &self.actions, &[], &mut self.sampled);
                self.earn(world);
                ended
            }
            Motion::Library(game) => {
                // In double precision, other than the rewards of episodes that the library trains on.
                let (rewards, heights) = self.earned.split_at_mut(self.states.len());
                for (height, y) in heights.iter_mut().zip(game.physics().heights()) {
                    *height = (LOWEST - y) / (LOWEST - HIGHEST);
                }
                let outcome = match moves {
                    Moves::Discrete(actions) => Library::step(game, actions),
                    Moves::Continuous(actions) => game.step_continuous(actions),
                };
                rewards.fill(outcome.reward);
                outcome.terminated
            }
        }
    }

    /// Keeps what is done; of continuous actions the direction.
    fn note(&mut self, moves: Moves<'_>) {
        let direction = |up: f64| if up > 0.0 { 2 } else { u8::from(up == 0.0) };
        self.actions.clear();
        match moves {
            Moves::Discrete(actions) => self.actions.extend_from_slice(actions),
            Moves::Continuous(ups) => self.actions.extend(ups.iter().map(|&up| direction(up))),
        }
    }

    /// Rewards of a step from `states`, by tables or as sampled.
    fn earn(&mut self, world: &dyn World) {
        let agents = self.states.len();
        for (place, (channel, earned)) in
            world.channels().iter().zip(self.earned.chunks_exact_mut(agents)).enumerate()
        {
            match &channel.values {
                ChannelValues::Table(tables) => {
                    for (i, earned) in earned.iter_mut().enumerate() {
                        let [s, a] = [self.states[i], self.actions[i]].map(usize::from);
                        *earned = tables.row(i)[s * world.actions(i) + a];
                    }
                }
                ChannelValues::Sampled { .. } => {
                    let sampled = &self.sampled[sampled_number(world, place) * agents..];
                    earned.iter_mut().zip(sampled).for_each(|(earned, &r)| *earned = f64::from(r));
                }
            }
        }
    }

    fn observe(&mut self, layout: &Layout, first: bool) {
        match &self.motion {
            Motion::Library(game) => game.observe(&mut self.states, &mut self.shared),
            Motion::Paper(game) => game.observe(&mut self.states, &mut self.shared),
            Motion::Joint(_, _, episode) => episode.observe(&mut self.states, &mut self.shared),
            Motion::None | Motion::Factored(..) => {}
        }
        layout.look(&self.states, &self.shared, first, &mut self.members, &mut self.seen);
    }
}

/// Everybody's chance in a step. Two steps are drawn at once.
fn drawn<'d>(draws: &'d mut [Vec<u32>; 4], stream: &Stream, place: Place, step: usize) -> &'d [u32] {
    if step.is_multiple_of(2) {
        let [r0, r1, r2, r3] = &mut *draws;
        stream.step_pair(place, (step / 2) as u32, 0, [r0, r1, r2, r3]);
    }
    &draws[DRAW_ROWS[step % 2]]
}
