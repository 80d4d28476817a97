//! All randomness: Philox4x32-10, a block cipher run on counters.
//!
//! A number depends on the seed and on *where* it is used (iteration, trajectory, agent, step, purpose),
//! never on the order in which work is done. Threads, ranks and restarts therefore cannot change a result.
//!
//! Literature: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

use multiversion::multiversion;
use phalanx_agent::draw::{self, philox_lanes, philox4x32_10};

use crate::base::elementary::{cos, ln};

/// What a number is for. Different purposes never share numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// Actions and transitions of the batch (Algorithm 1, line 3).
    Batch = 1,
    /// Start states of the batch.
    BatchStart = 2,
    /// Actions and transitions of Q-evaluation (Algorithm 2).
    Critic = 3,
    /// Start states of Q-evaluation.
    CriticStart = 4,
    /// Actions and transitions of evaluation episodes.
    Evaluation = draw::EVALUATION,
    /// Start states of evaluation episodes.
    EvaluationStart = 6,
    /// Initial policy parameters.
    PolicyInit = 7,
    /// Random graphs.
    Graph = 8,
    /// Random constants of a world.
    Constants = 9,
    /// Initial parameters of critics.
    CriticInit = 10,
    /// The order in which critics see their samples.
    CriticOrder = 11,
    /// Settings of a random search.
    Search = 12,
    /// The order in which actors are updated and see their samples.
    UpdateOrder = 13,
}

/// A trajectory's place in the keyed stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// What the numbers are for.
    pub purpose: Purpose,
    /// Iteration t of Algorithm 1.
    pub iteration: u32,
    /// Trajectory within the batch, below 2²⁴.
    pub trajectory: u32,
}

/// The numbers of one seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    key: [u32; 2],
}

pub use draw::DRAW_RANGE;

/// Agents handled together by the vectorised cipher.
pub const LANES: usize = 16;

impl Stream {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Stream { key: draw::key(seed) }
    }

    /// The cipher's key.
    pub(crate) fn key(&self) -> [u32; 2] {
        self.key
    }

    /// Numbers of the same seed that decide which messages between agents arrive.
    pub fn of_links(&self) -> Self {
        Stream { key: [self.key[0] ^ 0x6c69_6e6b, self.key[1] ^ 0x6c6f_7373] }
    }

    /// Four 32-bit words for block `block` of `agent` at `place`.
    pub fn words(&self, place: Place, agent: u32, block: u32) -> [u32; 4] {
        philox4x32_10([agent, block, place.iteration, place.last_counter()], self.key)
    }

    /// An endless sequence of numbers belonging to `agent` at `place`.
    pub fn sequence(&self, place: Place, agent: u32) -> Sequence {
        Sequence { stream: *self, place, agent, block: 0, words: [0; 4], used: 4 }
    }

    /// The draws of two consecutive steps `2·pair` and `2·pair + 1` for the agents from `first` on.
    ///
    /// `rows` are `[action, world]` of the even step, then of the odd step; entry `m` of each is for agent
    /// `first + m`. All have the same length. One cipher block serves both steps of an agent.
    pub fn step_pair(&self, place: Place, pair: u32, first: u32, rows: [&mut [u32]; 4]) {
        step_pair_draws(self.key, [pair, place.iteration, place.last_counter()], first, &[], rows);
    }

    /// As [`Stream::step_pair`] for agents of any numbers: entry `m` of every row is for agent `agents[m]`.
    pub fn step_pair_of(&self, place: Place, pair: u32, agents: &[u32], rows: [&mut [u32]; 4]) {
        step_pair_draws(self.key, [pair, place.iteration, place.last_counter()], 0, agents, rows);
    }
}

impl Place {
    fn last_counter(self) -> u32 {
        debug_assert!(self.trajectory < 1 << 24);
        (self.purpose as u32) << 24 | self.trajectory
    }
}

/// Numbers in sequence, for set-up work that wants many of them for one agent.
#[derive(Debug, Clone)]
pub struct Sequence {
    stream: Stream,
    place: Place,
    agent: u32,
    block: u32,
    words: [u32; 4],
    used: usize,
}

impl Sequence {
    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.used == 4 {
            self.words = self.stream.words(self.place, self.agent, self.block);
            self.block += 1;
            self.used = 0;
        }
        self.used += 1;
        self.words[self.used - 1]
    }

    /// Uniform on [0, 1) with 53 bits.
    pub fn uniform(&mut self) -> f64 {
        let bits = u64::from(self.next_u32()) << 32 | u64::from(self.next_u32());
        (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Standard normal (Box–Muller, one of the two).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * ln(1.0 - self.uniform())).sqrt();
        radius * cos(std::f64::consts::TAU * self.uniform())
    }
}

/// For the agents in `listed`, or those from `first_agent` on if there are none.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx2"))]
fn step_pair_draws(
    key: [u32; 2],
    place: [u32; 3],
    first_agent: u32,
    listed: &[u32],
    mut rows: [&mut [u32]; 4],
) {
    let [pair, iteration, last] = place.map(u64::from);
    let count = rows[0].len();
    for start in (0..count).step_by(LANES) {
        let lanes = LANES.min(count - start);
        // Plain loops here too: a closure would be compiled without the vector instructions of this version.
        let mut ids = [0; LANES];
        if listed.is_empty() {
            for l in 0..LANES {
                ids[l] = u64::from(first_agent.wrapping_add((start + l) as u32));
            }
        } else {
            for (id, &agent) in ids.iter_mut().zip(&listed[start..start + lanes]) {
                *id = u64::from(agent);
            }
        }
        let words = philox_lanes([ids, [pair; LANES], [iteration; LANES], [last; LANES]], key);
        for (row, word) in rows.iter_mut().zip(&words) {
            let row = &mut row[start..start + lanes];
            if let Ok(row) = <&mut [u32; LANES]>::try_from(&mut *row) {
                for l in 0..LANES {
                    row[l] = word[l] as u32 >> 1;
                }
            } else {
                for (out, word) in row.iter_mut().zip(word) {
                    *out = *word as u32 >> 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectorised_draws_are_the_single_blocks() {
        let stream = Stream::new(0x1234_5678_9abc_def0);
        let place = Place { purpose: Purpose::Batch, iteration: 3, trajectory: 7 };
        for (first, count) in [(0, 16), (7, 48), (3, 5), (9, 37)] {
            let agents: Vec<u32> = (0..count as u32).map(|m| first + m * m).collect();
            for listed in [false, true] {
                let mut rows: [Vec<u32>; 4] = std::array::from_fn(|_| vec![0; count]);
                let [r0, r1, r2, r3] = &mut rows;
                if listed {
                    stream.step_pair_of(place, 11, &agents, [r0, r1, r2, r3]);
                } else {
                    stream.step_pair(place, 11, first, [r0, r1, r2, r3]);
                }
                for m in 0..count {
                    let agent = if listed { agents[m] } else { first + m as u32 };
                    let words = stream.words(place, agent, 11);
                    assert_eq!(std::array::from_fn(|w| rows[w][m]), words.map(|w| w >> 1));
                }
            }
        }
    }

    #[test]
    fn purposes_iterations_and_trajectories_differ() {
        let stream = Stream::new(1);
        let base = Place { purpose: Purpose::Batch, iteration: 0, trajectory: 0 };
        let words = stream.words(base, 0, 0);
        for other in [
            Place { purpose: Purpose::Critic, ..base },
            Place { iteration: 1, ..base },
            Place { trajectory: 1, ..base },
        ] {
            assert_ne!(stream.words(other, 0, 0), words);
        }
        assert_ne!(Stream::new(2).words(base, 0, 0), words);
    }

    #[test]
    fn uniform_and_normal_have_their_moments() {
        let place = Place { purpose: Purpose::PolicyInit, iteration: 0, trajectory: 0 };
        let mut sequence = Stream::new(9).sequence(place, 4);
        let count = 200_000;
        let mean = (0..count).map(|_| sequence.uniform()).sum::<f64>() / count as f64;
        let square = (0..count).map(|_| sequence.normal().powi(2)).sum::<f64>() / count as f64;
        assert!((mean - 0.5).abs() < 0.003, "{mean}");
        assert!((square - 1.0).abs() < 0.015, "{square}");
    }
}
