//! One line for all runs: how many are finished, which are under way, and how long it may take.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use phalanx::algorithm::Summary;

use super::{Job, JobOutcome, unpoisoned};
use crate::progress_bar;

/// What the user sees of a batch.
pub struct Progress {
    /// Counts iterations; hidden where there is no terminal.
    bar: ProgressBar,
    quiet: bool,
    total: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    finished: usize,
    /// By name.
    under_way: BTreeMap<String, UnderWay>,
    /// Notes so far: the same one for every run would bury the others.
    notes: BTreeSet<String>,
}

/// A run that is being trained.
struct UnderWay {
    /// Iterations that the bar knows of, and since when.
    shown: usize,
    when: Instant,
    /// Iterations in all.
    of: usize,
}

/// Time between two changes of a run's share: showing every iteration would cost more than many an iteration.
const REFRESH: Duration = Duration::from_millis(100);

/// Runs named at a time.
const NAMED: usize = 3;

impl Progress {
    /// Before anything has begun: of so many runs in all, some are finished, and the others have `iterations`
    /// to do.
    pub fn new(total: usize, finished: usize, iterations: usize, quiet: bool) -> Self {
        let bar = progress_bar(iterations, "{bar:20} {eta} left, {wide_msg}", quiet);
        let state = Mutex::new(State { finished, ..State::default() });
        let progress = Progress { bar, quiet, total, state };
        if finished > 0 {
            progress.say(&format!("{finished} of {total} runs are finished already"));
        }
        progress.show(&unpoisoned(&progress.state));
        progress
    }

    /// A run is trained from now on, from `iteration`.
    pub fn begin(&self, job: &Job, iteration: usize) {
        let mut state = unpoisoned(&self.state);
        let run = UnderWay { shown: iteration, when: Instant::now(), of: job.config.iterations };
        state.under_way.insert(job.name.clone(), run);
        self.bar.set_length(self.bar.length().unwrap_or(0).saturating_sub(iteration as u64));
        self.show(&state);
    }

    /// A run has done an iteration.
    pub fn advance(&self, job: &Job, summary: &Summary) {
        if self.bar.is_hidden() {
            return;
        }
        let mut state = unpoisoned(&self.state);
        let Some(run) = state.under_way.get_mut(&job.name).filter(|run| run.when.elapsed() >= REFRESH) else {
            return;
        };
        let done = summary.iteration + 1;
        self.bar.inc(done.saturating_sub(run.shown) as u64);
        (run.shown, run.when) = (done, Instant::now());
        self.show(&state);
    }

    /// A run has ended.
    pub fn end(&self, job: &Job, finish: &JobOutcome) {
        let mut state = unpoisoned(&self.state);
        let shown = state.under_way.remove(&job.name).map_or(0, |run| run.shown);
        // What will not be done any more is no work either.
        let missing = job.config.iterations.saturating_sub(shown) as u64;
        let line = match finish {
            JobOutcome::Done(outcome) => {
                state.finished += 1;
                let (objective, violation) = (outcome.objective, outcome.violation_total);
                let reached =
                    format!("objective {objective:.5}, violation {violation:.5}, {:.2} s", outcome.wall_s);
                // With a terminal the bar counts them.
                let is_hidden = self.bar.is_hidden();
                is_hidden.then(|| format!("{}/{} {}: {reached}", state.finished, self.total, job.name))
            }
            JobOutcome::Failed(reason) => Some(format!("failed: {}: {reason}", job.name)),
            JobOutcome::Busy => Some(format!("left alone: {}: another process is training it", job.name)),
            JobOutcome::Stopped => None,
        };
        if matches!(finish, JobOutcome::Done(_)) {
            self.bar.inc(missing);
        } else {
            self.bar.set_length(self.bar.length().unwrap_or(0).saturating_sub(missing));
        }
        if let Some(line) = line {
            self.say(&line);
        }
        self.show(&state);
    }

    /// Says something once, however many runs have it to say.
    pub fn note(&self, text: &str) {
        if unpoisoned(&self.state).notes.insert(text.to_string()) {
            self.say(text);
        }
    }

    /// Takes the line off the screen.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// A line above the bar, or alone.
    fn say(&self, line: &str) {
        if self.quiet {
            return;
        }
        if self.bar.is_hidden() {
            crate::say(line);
        } else {
            self.bar.println(line);
        }
    }

    fn show(&self, state: &State) {
        if self.bar.is_hidden() {
            return;
        }
        let mut message = format!("{}/{} runs", state.finished, self.total);
        for (name, run) in state.under_way.iter().take(NAMED) {
            message += &format!(", {name} {} %", 100 * run.shown / run.of.max(1));
        }
        if state.under_way.len() > NAMED {
            message += &format!(" and {} more", state.under_way.len() - NAMED);
        }
        self.bar.set_message(message);
    }
}
