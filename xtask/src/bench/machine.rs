//! What measurements are made on, and how much memory they take.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

/// Processors that may be used.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

/// Processes that wanted a processor in the last minute, on average.
pub fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(f64::NAN)
}

/// Bytes that are free.
pub fn free_memory() -> u64 {
    bytes(MEMORY, "MemAvailable:").unwrap_or(u64::MAX)
}

const MEMORY: &str = "/proc/meminfo";

/// What a file of the kernel's says after `name`, in kilobytes there.
pub fn bytes(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(1024 * line.trim().trim_end_matches(" kB").parse::<u64>().ok()?)
}

fn cpu_model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

/// What a command prints, without the line's end.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|o| o.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// Today by UTC, as YYYY-MM-DD.
pub fn today() -> Option<String> {
    said("date", &["-u", "+%F"])
}

/// The machine and the state of the sources.
pub fn describe() -> Value {
    json!({
        "cores": cores(),
        "cpu": cpu_model(),
        "memory_bytes": bytes(MEMORY, "MemTotal:"),
        "load": load(),
        "commit": said("git", &["rev-parse", "HEAD"]),
        "has_changes": said("git", &["status", "--porcelain", "--untracked-files=no"]).map(|list| !list.is_empty()),
        "mpirun": said("mpirun", &["--version"]).and_then(|text| text.lines().next().map(str::to_string)),
    })
}

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Looks at process `pid`, or at its `ranks` children if it is `mpirun`, until `done`; the peak of each in
/// bytes. The kernel keeps the peak, so only what comes after the last look can be missed.
pub fn watch_memory(pid: u32, ranks: Option<usize>, done: impl Fn() -> bool) -> Vec<u64> {
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
    bytes(&format!("/proc/{pid}/status"), "VmHWM:")
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
