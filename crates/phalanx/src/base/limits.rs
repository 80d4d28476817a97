//! How large things may be: numbers are refused before anything is allocated, written or begun for them.

use std::sync::LazyLock;

use crate::{Error, Result};

/// Iterations of a run, and K: they are counted with 32 bits.
pub const MOST_ITERATIONS: usize = u32::MAX as usize;

/// Steps of an episode, given or made necessary by γ. With [`MOST_TRAJECTORIES`] of them and as many agents
/// as there are numbers for, 128 bits hold every product.
pub const MOST_STEPS: usize = 1 << 24;

/// Trajectories for one purpose: as many as random streams have numbers for.
pub const MOST_TRAJECTORIES: usize = (1 << 24) - 2;

/// Radius that the exact report goes through one by one.
pub const MOST_HOPS: usize = 1 << 16;

/// More threads than this are a mistake.
pub const MOST_THREADS: usize = 1024;

/// The largest file that is read as a whole for what a user wrote into it: configurations, models, graphs,
/// sweeps and recordings.
pub const LARGEST_INPUT: u64 = 1 << 30;

/// Fails if `bytes` cannot be had, blaming the setting `field`.
///
/// Only a size that is out of the question is refused, which is what a mistyped number is: more than the
/// machine has, or than the allocator gives when it is asked for the whole amount.
pub fn check_memory(bytes: u128, field: &str, what: &str) -> Result<()> {
    let mut probe: Vec<u8> = Vec::new();
    let had = usize::try_from(bytes).is_ok_and(|bytes| probe.try_reserve_exact(bytes).is_ok());
    if had && bytes <= *MEMORY {
        return Ok(());
    }
    let size = bytes as f64 / (1u64 << 30) as f64;
    Err(Error::config(field, format!("{what} would need {size:.1} GiB of memory, more than there is")))
}

/// Memory and swap space of this machine; no limit where it is not known.
static MEMORY: LazyLock<u128> = LazyLock::new(|| {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes = |name: &str| -> Option<u128> {
        text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
    };
    let total = kilobytes("MemTotal:").map(|memory| memory + kilobytes("SwapTotal:").unwrap_or(0));
    total.map_or(u128::MAX, |total| 1024 * total)
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_out_of_the_question_are_refused() {
        assert!(check_memory(1 << 20, "horizon", "trajectories").is_ok());
        for bytes in [1 << 62, u128::MAX] {
            let message = check_memory(bytes, "horizon", "the trajectories").unwrap_err().to_string();
            assert!(message.starts_with("horizon: the trajectories would need"), "{message}");
        }
    }
}
