//! What a fuzz run counts, and the file that it leaves behind.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::{Target, Verdict};

/// Counts of one target.
#[derive(Debug, Default, Clone)]
pub struct Statistics {
    /// Inputs tried.
    pub executions: u64,
    /// Those that got past the first check.
    pub past_first_check: u64,
    /// Those that were accepted.
    pub accepted: u64,
    /// The longest that one took.
    pub slowest: Duration,
}

impl Statistics {
    /// Tries an input.
    pub fn run(&mut self, target: &Target, input: &[u8]) -> Verdict {
        let begin = Instant::now();
        let verdict = target.run(input);
        self.slowest = self.slowest.max(begin.elapsed());
        self.executions += 1;
        self.past_first_check += u64::from(verdict != Verdict::Malformed);
        self.accepted += u64::from(verdict == Verdict::Accepted);
        verdict
    }
}

impl Display for Statistics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Statistics { executions, past_first_check, accepted, slowest } = self;
        write!(f, "{executions} {past_first_check} {accepted} {}", slowest.as_micros())
    }
}

/// Statistics that are written down now and then: libFuzzer ends a process without telling it.
#[derive(Default)]
pub struct Kept {
    statistics: Statistics,
    file: Option<PathBuf>,
}

/// Inputs between two times that statistics are written.
const EVERY: u64 = 10_000;

impl Kept {
    /// Statistics in a file, or in none.
    pub fn new(file: Option<PathBuf>) -> Self {
        Kept { statistics: Statistics::default(), file }
    }

    /// Tries an input.
    pub fn run(&mut self, target: &Target, input: &[u8]) {
        self.statistics.run(target, input);
        let executions = self.statistics.executions;
        if (executions.is_power_of_two() || executions.is_multiple_of(EVERY))
            && let Some(file) = &self.file
        {
            // Counts that cannot be written are missed where they are read.
            let _ = std::fs::write(file, self.statistics.to_string());
        }
    }
}
