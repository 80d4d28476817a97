//! Which messages arrive.

use crate::base::stream::{DRAW_RANGE, Place, Stream};

/// Which of one sender's messages reach one receiver in a trajectory: one number of a keyed stream decides on
/// each, so that acting and learning, on whatever thread, agree about it.
pub(super) struct Arrivals {
    /// None in a trajectory that was not simulated: nothing is lost there by chance.
    origin: Option<(Stream, Place)>,
    receiver: u32,
    /// The sender's place among the receiver's, and how many there are.
    pair: [u32; 2],
    lost_below: u32,
    /// The block of numbers that is at hand.
    block: Option<u32>,
    words: [u32; 4],
}

impl Arrivals {
    /// Of a sender whose messages are lost where the draw is below `lost_below`.
    pub fn new(origin: Option<(Stream, Place)>, receiver: u32, pair: [u32; 2], lost_below: u32) -> Self {
        let origin = origin.map(|(stream, place)| (stream.of_links(), place));
        Arrivals { origin, receiver, pair, lost_below, block: None, words: [0; 4] }
    }

    /// Whether any message can arrive.
    pub fn are_possible(&self) -> bool {
        self.lost_below < DRAW_RANGE
    }

    /// Whether the message of a step arrives.
    pub fn arrives(&mut self, step: usize) -> bool {
        let Some((stream, place)) = self.origin.filter(|_| self.lost_below > 0) else {
            return self.are_possible();
        };
        // Steps and places among senders have a block number each as long as there are at most 2¹⁰ senders.
        let [slot, slots] = self.pair;
        let block = ((step / 4) as u32).wrapping_mul(slots).wrapping_add(slot);
        if self.block != Some(block) {
            (self.words, self.block) = (stream.words(place, self.receiver, block), Some(block));
        }
        self.words[step % 4] >> 1 >= self.lost_below
    }
}
