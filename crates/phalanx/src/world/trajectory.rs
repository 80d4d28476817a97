//! What was seen, done and earned in one trajectory.

use crate::base::stream::{Place, Stream};
use crate::world::{Evolution, World, sampled_channels};

/// States and actions of every agent over the steps of one trajectory, as bytes, `[agent][step]`: an agent's
/// learning reads the columns of its neighbours from front to back.
///
/// There is room for a number of steps; an episode that ended early has fewer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trajectory {
    room: usize,
    steps: usize,
    ended: bool,
    states: Vec<u8>,
    actions: Vec<u8>,
    /// Rewards of the sampled channels, `[channel][agent][step]`.
    rewards: Vec<f32>,
    /// What a joint world shows, `[step][number]`.
    global_state: Vec<f32>,
    /// What a joint world measures, `[step][number]`, after each step.
    measures: Vec<f64>,
    /// Where its random numbers come from, if it was simulated.
    origin: Option<(Stream, Place)>,
}

impl Trajectory {
    /// Room for `steps` state–action pairs of `agents` agents.
    pub fn new(agents: usize, steps: usize) -> Self {
        Trajectory::with_channels(agents, steps, 0)
    }

    /// The same with room for the rewards of `channels` sampled channels.
    pub fn with_channels(agents: usize, steps: usize, channels: usize) -> Self {
        let column = || vec![0; agents * steps];
        Trajectory {
            room: steps,
            steps,
            ended: false,
            states: column(),
            actions: column(),
            rewards: vec![0.0; channels * agents * steps],
            global_state: Vec::new(),
            measures: Vec::new(),
            origin: None,
        }
    }

    /// Room for `steps` steps of everything that `world` records.
    pub fn for_world(world: &dyn World, steps: usize) -> Self {
        let (agents, channels) = (world.graph().agents(), sampled_channels(world).len());
        let width = match world.evolution() {
            Evolution::Factored(_) => 0,
            Evolution::Joint(joint) => joint.shared(),
        };
        Trajectory {
            global_state: vec![0.0; steps * width],
            measures: vec![0.0; steps * world.measures().len()],
            ..Trajectory::with_channels(agents, steps, channels)
        }
    }

    /// Number of sampled channels.
    pub fn channels(&self) -> usize {
        self.rewards.len().checked_div(self.states.len()).unwrap_or(0)
    }

    /// Rewards of agent i from the sampled channel number `channel`, step by step.
    #[inline]
    pub fn rewards(&self, channel: usize, agent: usize) -> &[f32] {
        let first = channel * self.states.len() + agent * self.room;
        &self.rewards[first..first + self.steps]
    }

    /// Where its random numbers come from, if it was simulated.
    pub fn origin(&self) -> Option<(Stream, Place)> {
        self.origin
    }

    /// Says where its random numbers come from.
    pub fn set_origin(&mut self, stream: Stream, place: Place) {
        self.origin = Some((stream, place));
    }

    /// Number of state–action pairs per agent.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Whether the episode ended with the last step, so that nothing came after it. Otherwise it was cut off
    /// there.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Steps whose successor is known: the next pair, or the end.
    pub fn transitions(&self) -> usize {
        if self.ended { self.steps } else { self.steps.saturating_sub(1) }
    }

    /// Keeps the first `transitions` transitions, if there are more: the trajectory is cut off after them.
    pub fn keep_transitions(&mut self, transitions: usize) {
        if transitions < self.transitions() {
            (self.steps, self.ended) = (transitions + 1, false);
        }
    }

    /// s_i^0, s_i^1, …
    #[inline]
    pub fn states(&self, agent: usize) -> &[u8] {
        &self.states[agent * self.room..][..self.steps]
    }

    /// a_i^0, a_i^1, …
    #[inline]
    pub fn actions(&self, agent: usize) -> &[u8] {
        &self.actions[agent * self.room..][..self.steps]
    }

    /// What the world showed at a step, if it is joint.
    #[inline]
    pub fn global_state(&self, step: usize) -> &[f32] {
        let width = self.global_state.len().checked_div(self.room).unwrap_or(0);
        &self.global_state[step * width..(step + 1) * width]
    }

    /// What a joint world [measured](World::measures) from the beginning to the end of a step.
    #[inline]
    pub fn measures(&self, step: usize) -> &[f64] {
        let count = self.measures.len().checked_div(self.room).unwrap_or(0);
        &self.measures[step * count..(step + 1) * count]
    }

    /// The same, to be filled by a simulation.
    pub(crate) fn measures_mut(&mut self, step: usize) -> &mut [f64] {
        let count = self.measures.len().checked_div(self.room).unwrap_or(0);
        &mut self.measures[step * count..(step + 1) * count]
    }

    /// s_i^k and a_i^k, to be changed (tests of locality do).
    pub fn pair_mut(&mut self, agent: usize, step: usize) -> (&mut u8, &mut u8) {
        let at = agent * self.room + step;
        (&mut self.states[at], &mut self.actions[at])
    }

    /// What the world showed at a step, to be changed (tests of locality do).
    pub fn global_state_mut(&mut self, step: usize) -> &mut [f32] {
        let width = self.global_state.len().checked_div(self.room).unwrap_or(0);
        &mut self.global_state[step * width..(step + 1) * width]
    }

    /// Agent i's reward from the sampled channel number `channel` at step k, to be changed (tests of locality
    /// do).
    pub fn reward_mut(&mut self, channel: usize, agent: usize, step: usize) -> &mut f32 {
        let first = channel * self.states.len() + agent * self.room;
        &mut self.rewards[first..first + self.steps][step]
    }

    /// Ends the episode with step `steps` − 1, or cuts it off there; tests write episodes by hand with it.
    pub fn finish(&mut self, steps: usize, ended: bool) {
        (self.steps, self.ended) = (steps.min(self.room), ended);
    }

    /// Steps there is room for.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Agents there is room for.
    pub(crate) fn agents(&self) -> usize {
        self.states.len().checked_div(self.room).unwrap_or(0)
    }

    /// Columns of states and actions, and rewards as `[channel][agent][step]`, to be filled by a simulation.
    pub(crate) fn columns_mut(&mut self) -> (&mut [u8], &mut [u8], &mut [f32]) {
        (&mut self.states, &mut self.actions, &mut self.rewards)
    }
}
