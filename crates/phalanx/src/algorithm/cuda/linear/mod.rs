//! Log-linear policies and linear critics on the card.

mod critic;
mod policy;

use phalanx_gpu::Layout;

use super::shape::Shape;

pub use critic::CardLinearCritic;
pub use policy::CardLinearPolicy;

/// What a kernel shares is kept below this where it can be, so that three blocks find room on a
/// multiprocessor of 228 kB.
const THIRD: usize = 74 << 10;

/// What both rely on: words of bits, and loops over actions.
fn add_shared_text(layout: &mut Layout, same_actions: bool) {
    layout.constant("SAME_ACTIONS", usize::from(same_actions));
    layout.text(include_str!("bits.cu"));
}

/// Whether all agents have as many actions.
fn has_same_actions(shape: &Shape) -> bool {
    shape.actions.iter().all(|&count| count == shape.max_actions())
}
