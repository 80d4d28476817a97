//! Work split by agent. Blocks depend on the agents alone, never on the number of threads.

use std::ops::Range;

use rayon::prelude::*;

/// Consecutive runs of agents to hand to threads: small enough to share out evenly, large enough to be worth
/// it.
pub fn agent_blocks(agents: usize) -> Vec<Range<usize>> {
    blocks_of(std::slice::from_ref(&(0..agents)))
}

/// The same for some agents only.
pub fn blocks_of(runs: &[Range<usize>]) -> Vec<Range<usize>> {
    let agents: usize = runs.iter().map(Range::len).sum();
    let block = (agents / 64).clamp(4, 512);
    let cut = |run: &Range<usize>| {
        let end = run.end;
        run.clone().step_by(block).map(move |start| start..(start + block).min(end))
    };
    runs.iter().flat_map(cut).collect()
}

/// Runs `work(scratch, agent, part)` for every agent of `blocks`, in parallel: `parts` are what is written
/// to, one for each block, and every thread has a scratch.
pub fn for_each_agent<P: Send, S: Default>(
    blocks: &[Range<usize>],
    parts: impl IntoIterator<Item = P>,
    work: impl Fn(&mut S, usize, &mut P) + Sync + Send,
) {
    let parts: Vec<P> = parts.into_iter().collect();
    blocks.par_iter().zip(parts).for_each_init(S::default, |scratch, (block, mut part)| {
        for agent in block.clone() {
            work(scratch, agent, &mut part);
        }
    });
}

/// Ascending agents as runs of consecutive ones.
pub fn runs_of(agents: impl IntoIterator<Item = usize>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for i in agents {
        match runs.last_mut() {
            Some(run) if run.end == i => run.end = i + 1,
            _ => runs.push(i..i + 1),
        }
    }
    runs
}

/// Agents whose numbers are summed up first, in agent order; then the sums of these groups are. Large enough
/// that a process tells others little, small enough that processes can own whole groups.
pub const FOLD: usize = 256;
