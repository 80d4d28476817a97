//! Log-linear policies and linear critics on the card.

mod critic;
mod policy;

use phalanx_gpu::Layout;

use super::device::refused;
use super::shape::Shape;
use crate::Error;

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

/// A world without kernel text of its features, or none for the share of its agents that a rank has.
fn no_features(key: &str, shape: &Shape) -> Error {
    let of_share = if shape.part.is_some() { " for this rank's share of the agents" } else { "" };
    refused(key, format!("`linear` with features of this world{of_share} is not available"))
}

/// Whether all agents have as many actions.
fn has_same_actions(shape: &Shape) -> bool {
    shape.actions.iter().all(|&count| count == shape.max_actions())
}
