//! Largest resident memory of processes that run.

use std::time::Duration;

use super::machine;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Looks at process `pid`, or at its `ranks` children if it is `mpirun`, until `done`; the peak of each in
/// bytes. The kernel keeps the peak, so only what comes after the last look can be missed.
pub fn watch(pid: u32, ranks: Option<usize>, done: impl Fn() -> bool) -> Vec<u64> {
    let mut peaks: Vec<(u32, u64)> = if ranks.is_none() { vec![(pid, 0)] } else { Vec::new() };
    while !done() {
        if ranks.is_some_and(|ranks| peaks.len() < ranks) {
            for child in children(pid) {
                if !peaks.iter().any(|&(known, _)| known == child) {
                    peaks.push((child, 0));
                }
            }
        }
        for (pid, peak) in &mut peaks {
            // Not the largest: before a child becomes `phalanx` it is a copy of `mpirun`.
            *peak = peak_of(*pid).unwrap_or(*peak);
        }
        std::thread::sleep(PAUSE);
    }
    // Ranks are started in order.
    peaks.into_iter().map(|(_, peak)| peak).collect()
}

fn children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

/// None once it has ended.
fn peak_of(pid: u32) -> Option<u64> {
    machine::bytes(&format!("/proc/{pid}/status"), "VmHWM:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_peak() {
        assert!(peak_of(std::process::id()).unwrap() > 100_000);
        assert_eq!(peak_of(u32::MAX), None);
    }
}
