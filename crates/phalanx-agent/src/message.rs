//! What agents and the world send each other: one message per datagram, all numbers in little-endian order.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | `PHLX` |
//! | 1 | version, 1 |
//! | 1 | kind: 1 states, 2 sensor, 3 action, 4 farewell, 5 counts |
//! | 1 | 1 if an answer is wanted, else 0 |
//! | 1 | round, from 1; 0 where there is none |
//! | 4 | checksum of the policies: another one means another graph |
//! | 4 | sender; 4294967295 is the world |
//! | 4 | episode |
//! | 4 | step |
//! | 2 | how many entries follow |
//! | 2 | 0 |
//! | 5 or 8 each | an agent's number and its state or action; of counts, a number of 8 bytes |
//! | 4 | CRC-32C of everything before |

use crate::counts::{Counts, FIELDS};

const MAGIC: [u8; 4] = *b"PHLX";
const VERSION: u8 = 1;
const HEADER: usize = 28;
const CHECKSUM: usize = 4;
const PAIR: usize = 5;

/// The most pairs of a message: what one datagram holds.
pub const MOST_PAIRS: usize = (65_507 - HEADER - CHECKSUM) / PAIR;

/// The number of the world as a sender.
pub const WORLD: u32 = u32::MAX;

/// Bytes of a message of so many pairs.
pub const fn length(pairs: usize) -> usize {
    HEADER + PAIR * pairs + CHECKSUM
}

/// Bytes of the longest message that the world gets.
pub const LONGEST_TO_WORLD: usize = HEADER + 8 * FIELDS + CHECKSUM;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// From a neighbour: the states that it knows before a round.
    States = 1,
    /// From the world: the receiver's own state.
    Sensor = 2,
    /// To the world: the sender's action.
    Action = 3,
    /// From the world: this is the end.
    Farewell = 4,
    /// To the world, after a farewell: what became of the sender's messages.
    Counts = 5,
}

/// A moment: step of an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Clock {
    /// Number of the episode.
    pub episode: u32,
    /// Step within it.
    pub step: u32,
}

impl Clock {
    /// Whether `later` can be the next moment: the next step, or the start of the next episode.
    pub fn is_followed_by(self, later: Clock) -> bool {
        let Clock { episode, step } = self;
        let next_step = step.checked_add(1).map(|step| Clock { episode, step });
        let next_episode = episode.checked_add(1).map(|episode| Clock { episode, step: 0 });
        Some(later) == next_step || Some(later) == next_episode
    }
}

/// What every message says before its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// Whether the sender has waited and wants to be sent the receiver's own message again.
    pub wants_answer: bool,
    /// Which round of messages within a step, from 1.
    pub round: u8,
    /// Checksum of the policies.
    pub run: u32,
    /// Who sent it.
    pub sender: u32,
    /// When.
    pub clock: Clock,
}

/// A message in a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// What it says of itself.
    pub header: Header,
    entries: &'a [u8],
}

impl<'a> Message<'a> {
    /// The message in a datagram; none if it is malformed in any way.
    pub fn decode(datagram: &'a [u8]) -> Option<Message<'a>> {
        let (content, checksum) = datagram.split_last_chunk::<CHECKSUM>()?;
        let (head, entries) = content.split_at_checked(HEADER)?;
        let u32_at = |at: usize| Some(u32::from_le_bytes(*head.get(at..)?.first_chunk()?));
        let u16_at = |at: usize| Some(u16::from_le_bytes(*head.get(at..)?.first_chunk()?));
        let (&[kind, wants_answer, round], true) = (head.get(5..)?.first_chunk()?, head[..5] == START) else {
            return None;
        };
        let kind = match kind {
            1 => Kind::States,
            2 => Kind::Sensor,
            3 => Kind::Action,
            4 => Kind::Farewell,
            5 => Kind::Counts,
            _ => return None,
        };
        let size = if kind == Kind::Counts { 8 } else { PAIR };
        let is_whole = entries.len() == usize::from(u16_at(24)?) * size && u16_at(26)? == 0;
        if wants_answer > 1 || !is_whole || crc32c::crc32c(content) != u32::from_le_bytes(*checksum) {
            return None;
        }
        let clock = Clock { episode: u32_at(16)?, step: u32_at(20)? };
        let wants_answer = wants_answer == 1;
        let header = Header { kind, wants_answer, round, run: u32_at(8)?, sender: u32_at(12)?, clock };
        Some(Message { header, entries })
    }

    /// Agents' numbers with their states or actions.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = (u32, u8)> + 'a {
        let pairs = if self.header.kind == Kind::Counts { &[] } else { self.entries.as_chunks::<PAIR>().0 };
        pairs.iter().map(|&[a, b, c, d, value]| (u32::from_le_bytes([a, b, c, d]), value))
    }

    /// The only pair, if it is one.
    pub fn pair(&self) -> Option<(u32, u8)> {
        let mut pairs = self.pairs();
        if pairs.len() == 1 { pairs.next() } else { None }
    }

    /// The counts of a message of that kind.
    pub fn counts(&self) -> Option<Counts> {
        let numbers = self.entries.as_chunks::<8>().0;
        let is_whole = self.header.kind == Kind::Counts && numbers.len() == FIELDS;
        is_whole.then(|| Counts::from_numbers(std::array::from_fn(|k| u64::from_le_bytes(numbers[k]))))
    }
}

const START: [u8; 5] = [MAGIC[0], MAGIC[1], MAGIC[2], MAGIC[3], VERSION];

/// Writes a message of pairs over `out`.
pub fn encode(header: &Header, pairs: impl Iterator<Item = (u32, u8)>, out: &mut Vec<u8>) {
    begin(header, out);
    for (agent, value) in pairs.take(MOST_PAIRS) {
        out.extend_from_slice(&agent.to_le_bytes());
        out.push(value);
    }
    finish(PAIR, out);
}

/// Writes a message of counts over `out`.
pub fn encode_counts(header: &Header, counts: &Counts, out: &mut Vec<u8>) {
    begin(header, out);
    counts.numbers().iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    finish(8, out);
}

fn begin(header: &Header, out: &mut Vec<u8>) {
    let Header { kind, wants_answer, round, run, sender, clock } = *header;
    out.clear();
    out.extend_from_slice(&START);
    out.extend_from_slice(&[kind as u8, u8::from(wants_answer), round]);
    for number in [run, sender, clock.episode, clock.step, 0] {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn finish(size: usize, out: &mut Vec<u8>) {
    let count = ((out.len() - HEADER) / size) as u16;
    out[24..26].copy_from_slice(&count.to_le_bytes());
    let checksum = crc32c::crc32c(out);
    out.extend_from_slice(&checksum.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: Kind) -> Header {
        let clock = Clock { episode: 3, step: 9 };
        Header { kind, wants_answer: true, round: 2, run: 0xdead_beef, sender: 7, clock }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let pairs = [(3, 1), (70_000, 255)];
        let mut datagram = Vec::new();
        encode(&header(Kind::States), pairs.into_iter(), &mut datagram);
        assert_eq!(datagram.len(), length(2));
        let message = Message::decode(&datagram).unwrap();
        assert_eq!(message.header, header(Kind::States));
        assert_eq!((message.pairs().collect::<Vec<_>>(), message.pair()), (pairs.to_vec(), None));
        let counts = Counts { sent: 3, malformed: u64::MAX, ..Counts::default() };
        encode_counts(&header(Kind::Counts), &counts, &mut datagram);
        assert_eq!(datagram.len(), LONGEST_TO_WORLD);
        assert_eq!(Message::decode(&datagram).unwrap().counts(), Some(counts));
    }

    #[test]
    fn any_flipped_bit_and_any_other_length_is_malformed() {
        let mut datagram = Vec::new();
        encode(&header(Kind::Sensor), [(7, 2)].into_iter(), &mut datagram);
        for bit in 0..8 * datagram.len() {
            datagram[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Message::decode(&datagram), None, "bit {bit}");
            datagram[bit / 8] ^= 1 << (bit % 8);
        }
        for length in 0..datagram.len() {
            assert_eq!(Message::decode(&datagram[..length]), None);
        }
        datagram.push(0);
        assert_eq!(Message::decode(&datagram), None);
    }

    #[test]
    fn the_next_moment_is_a_step_or_an_episode_ahead() {
        let at = |episode, step| Clock { episode, step };
        assert!(at(1, 5).is_followed_by(at(1, 6)) && at(1, 5).is_followed_by(at(2, 0)));
        for other in [at(1, 5), at(1, 7), at(2, 1), at(0, 6), at(3, 0)] {
            assert!(!at(1, 5).is_followed_by(other), "{other:?}");
        }
        assert!(!at(u32::MAX, u32::MAX).is_followed_by(at(0, 0)));
    }
}
