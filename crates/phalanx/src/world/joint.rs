//! Worlds that are simulated whole.

use std::fmt::Debug;

use crate::base::stream::{Place, Stream};

/// Dynamics of a world whose agents share something that none of them owns. Episodes may end before the
/// horizon.
///
/// Agents still have their own finite states, see their neighbours' alone, and of what is shared no more than
/// their [`View`](super::View) picks.
pub trait Joint: Send + Sync + Debug {
    /// How many numbers describe what is shared.
    fn shared(&self) -> usize;

    /// A new episode, as its place in the stream makes it.
    fn begin(&self, stream: &Stream, place: Place) -> Box<dyn Episode>;
}

/// One episode of a joint world.
pub trait Episode: Send {
    /// Writes every agent's state and what is shared.
    fn observe(&self, states: &mut [u8], shared: &mut [f32]);

    /// Moves on: `draws[i]` (31 bits) is agent i's chance, if the world has any. Writes the rewards of the
    /// sampled channels as `[channel][agent]`. Returns whether the episode has ended: nothing is earned after
    /// that.
    fn step(&mut self, actions: &[u8], draws: &[u32], rewards: &mut [f32]) -> bool;
}
