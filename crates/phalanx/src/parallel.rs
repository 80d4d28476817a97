//! Work split by agent. Blocks depend on the number of agents alone, never on the number of threads.

use std::ops::Range;

/// Consecutive runs of agents to hand to threads: small enough to share out evenly, large enough to be worth it.
pub fn agent_blocks(agents: usize) -> Vec<Range<usize>> {
    let block = (agents / 64).clamp(4, 512);
    (0..agents).step_by(block).map(|start| start..(start + block).min(agents)).collect()
}
