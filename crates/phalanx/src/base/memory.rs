//! Refusing sizes that the machine cannot hold, before anything is allocated for them.

use crate::{Error, Result};

/// Fails if `bytes` cannot be had, blaming the setting `field`.
///
/// Asks the allocator for the whole amount and gives it back at once: only a size that is out of the question
/// is refused, which is what a mistyped number is.
pub fn check_memory(bytes: u128, field: &str, what: &str) -> Result<()> {
    let mut probe: Vec<u8> = Vec::new();
    let had = usize::try_from(bytes).is_ok_and(|bytes| probe.try_reserve_exact(bytes).is_ok());
    if had {
        return Ok(());
    }
    let size = bytes as f64 / (1u64 << 30) as f64;
    Err(Error::config(field, format!("{what} would need {size:.1} GiB of memory, more than there is")))
}

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
