//! Sampling from finite laws by comparing one draw with cumulative thresholds.

pub use phalanx_agent::draw::{outcome, write_thresholds};

/// Uniform on `0..count`.
#[inline]
pub fn uniform(count: usize, draw: u32) -> u8 {
    ((u64::from(draw) * count as u64) >> 31) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::stream::DRAW_RANGE;

    #[test]
    fn uniform_draws_reach_both_ends() {
        assert_eq!((uniform(3, 0), uniform(3, DRAW_RANGE - 1)), (0, 2));
    }
}
