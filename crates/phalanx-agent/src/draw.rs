//! Draws: Philox4x32-10 on counters, and sampling from finite laws by comparing one draw with thresholds.
//!
//! A number depends on the seed and on where it is used, never on the order of work. An agent of its own
//! therefore draws the same actions as the program that evaluates all agents at once.
//!
//! Literature: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

/// Draws have 31 bits, so that a threshold in `0..=2³¹` can say "never" and "always" exactly.
pub const DRAW_RANGE: u32 = 1 << 31;

/// The purpose of actions and transitions of evaluation episodes, in the last counter.
pub const EVALUATION: u8 = 5;

/// Episodes of a seed are numbered below this.
pub const EPISODES: u32 = 1 << 24;

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// One block of Philox4x32-10.
pub fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    philox_lanes(counter.map(|c| [u64::from(c)]), key).map(|[word]| word as u32)
}

/// `L` blocks at once under one key; plain loops that the compiler turns into vector instructions.
///
/// Words are the low halves of 64-bit lanes: a 32 × 32 → 64 multiplication then needs no shuffling. The high
/// halves hold leftovers, which no low half ever depends on.
#[inline(always)]
pub fn philox_lanes<const L: usize>(mut c: [[u64; L]; 4], mut key: [u32; 2]) -> [[u64; L]; 4] {
    const LOW: u64 = 0xffff_ffff;
    for _ in 0..10 {
        let mut next = [[0; L]; 4];
        for l in 0..L {
            let p0 = u64::from(MULTIPLIERS[0]) * (c[0][l] & LOW);
            let p1 = u64::from(MULTIPLIERS[1]) * (c[2][l] & LOW);
            next[0][l] = (p1 >> 32) ^ c[1][l] ^ u64::from(key[0]);
            next[1][l] = p1;
            next[2][l] = (p0 >> 32) ^ c[3][l] ^ u64::from(key[1]);
            next[3][l] = p0;
        }
        c = next;
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    c
}

/// The key of the cipher that a seed stands for.
#[inline]
pub fn key(seed: u64) -> [u32; 2] {
    [seed as u32, (seed >> 32) as u32]
}

/// The seed of evaluation episodes: another one than training with the same seed has.
#[inline]
pub fn evaluation_seed(seed: u64) -> u64 {
    seed ^ 0x6576_616c_7561_7465
}

/// The draw of an agent's action at a step of an evaluation episode (below [`EPISODES`]).
pub fn action_draw(seed: u64, episode: u32, agent: u32, step: u32) -> u32 {
    let last = u32::from(EVALUATION) << 24 | episode;
    let words = philox4x32_10([agent, step / 2, 0, last], key(evaluation_seed(seed)));
    words[(step % 2 * 2) as usize] >> 1
}

/// Writes the thresholds of `law` (k probabilities) into `out` (k − 1 entries).
///
/// An outcome of probability zero gets an empty interval, exactly: it is never sampled. A probability is
/// honoured to 2⁻³¹.
#[inline]
pub fn write_thresholds(law: &[f64], out: &mut [u32]) {
    let total: f64 = law.iter().sum();
    let last_possible = law.iter().rposition(|&p| p > 0.0).unwrap_or(0);
    let mut cumulative = 0.0;
    for (k, threshold) in out.iter_mut().enumerate() {
        cumulative += law[k];
        *threshold = if k >= last_possible {
            DRAW_RANGE
        } else {
            (cumulative / total * f64::from(DRAW_RANGE)).round() as u32
        };
    }
}

/// The outcome of a draw in `0..2³¹`: how many thresholds it has passed.
#[inline(always)]
pub fn outcome(thresholds: &[u32], draw: u32) -> u8 {
    if let [threshold] = thresholds {
        return u8::from(draw >= *threshold);
    }
    let mut passed = 0;
    for &threshold in thresholds {
        passed += u8::from(draw >= threshold);
    }
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that Random123 ships for `philox 4x32 10`.
    #[test]
    fn random123_known_answers() {
        for (counter, key, answer) in [
            ([0; 4], [0; 2], [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]),
            ([u32::MAX; 4], [u32::MAX; 2], [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]),
            (
                [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
                [0xa4093822, 0x299f31d0],
                [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
            ),
        ] {
            assert_eq!(philox4x32_10(counter, key), answer);
        }
    }

    fn interval_lengths(law: &[f64]) -> Vec<u32> {
        let mut thresholds = vec![0; law.len() - 1];
        write_thresholds(law, &mut thresholds);
        let mut edges = vec![0];
        edges.extend(&thresholds);
        edges.push(DRAW_RANGE);
        edges.windows(2).map(|w| w[1] - w[0]).collect()
    }

    #[test]
    fn never_and_always_are_exact() {
        assert_eq!(interval_lengths(&[1.0, 0.0]), [DRAW_RANGE, 0]);
        assert_eq!(interval_lengths(&[0.0, 1.0]), [0, DRAW_RANGE]);
        // A sum a little below one must not leak into an impossible last outcome.
        assert_eq!(interval_lengths(&[0.5, 0.5 - 1e-9, 0.0])[2], 0);
        assert_eq!(interval_lengths(&[0.0, 0.25, 0.0, 0.75]), [0, DRAW_RANGE / 4, 0, DRAW_RANGE / 4 * 3]);
    }

    #[test]
    fn outcome_counts_passed_thresholds() {
        let mut thresholds = [0; 2];
        write_thresholds(&[0.25, 0.25, 0.5], &mut thresholds);
        let at = |fraction: f64| outcome(&thresholds, (fraction * f64::from(DRAW_RANGE)) as u32);
        assert_eq!((at(0.0), at(0.2499), at(0.25), at(0.4999), at(0.5), at(0.99999)), (0, 0, 1, 1, 2, 2));
        assert_eq!(outcome(&[], 5), 0);
    }
}
