//! Log-linear policies and linear critics on the card.

mod critic;
mod policy;

pub use critic::CardLinearCritic;
pub use policy::CardLinearPolicy;

/// What a kernel shares is kept below this where it can be, so that three blocks find room on a
/// multiprocessor of 228 kB.
const THIRD: usize = 74 << 10;
