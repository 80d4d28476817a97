//! While a policy is judged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use phalanx::run::{AssessmentProgress, Evaluator};

use super::Forecast;
use crate::{progress_bar, say};

/// How often one looks how far it is.
const EVERY: Duration = Duration::from_millis(200);
/// What is done by then needs no bar.
const PATIENCE: Duration = Duration::from_millis(600);

/// Does `work`, in which the evaluator assesses its policy, and shows meanwhile how far that is: a bar on a
/// terminal, and elsewhere a line if it takes long.
pub fn while_judging<T>(evaluator: &Evaluator, is_quiet: bool, work: impl FnOnce() -> T) -> T {
    let (progress, is_over) = (evaluator.progress().clone(), AtomicBool::new(false));
    thread::scope(|scope| {
        let show = || show(&progress, &is_over);
        let shown =
            (!is_quiet).then(|| thread::Builder::new().name("progress".into()).spawn_scoped(scope, show));
        // Without a thread to show it, the work is done all the same.
        let _end =
            shown.and_then(Result::ok).map(|shown| End { is_over: &is_over, of: shown.thread().clone() });
        work()
    })
}

/// Ends the display, also where the work panics.
struct End<'a> {
    is_over: &'a AtomicBool,
    of: Thread,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.of.unpark();
    }
}

fn show(progress: &Arc<AssessmentProgress>, is_over: &AtomicBool) {
    let (begun, mut bar, mut forecast) = (Instant::now(), None, None);
    while !is_over.load(Ordering::Relaxed) {
        thread::park_timeout(EVERY);
        // Each of them is simulated twice.
        let (done, total) = progress.episodes();
        let (done, total) = (done / 2, total / 2);
        if total == 0 || begun.elapsed() < PATIENCE {
            continue;
        }
        let template = "judging: {bar:30} {pos}/{len} episodes, {eta} left";
        let bar =
            bar.get_or_insert_with(|| progress_bar(total, template, false).with_elapsed(begun.elapsed()));
        bar.set_position(done as u64);
        let forecast = forecast.get_or_insert_with(|| Forecast::new("episodes", total, bar.is_hidden()));
        if let Some(line) = forecast.line(begun.elapsed(), done) {
            say(&format!("judging: {line}"));
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}
