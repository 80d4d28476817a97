//! How far training is, and how long the rest may take.

use std::time::Duration;

use indicatif::ProgressBar;
use phalanx::algorithm::Summary;

use super::Forecast;
use crate::{progress_bar, say};

/// What the user sees while iterations go by: a bar on a terminal, one line elsewhere.
pub struct TrainingProgress {
    bar: ProgressBar,
    forecast: Forecast,
    /// Stands before the line, if anything does.
    what: String,
}

impl TrainingProgress {
    /// Of training that ends after so many iterations.
    pub fn new(iterations: usize, is_quiet: bool) -> Self {
        TrainingProgress::named("", iterations, is_quiet)
    }

    /// The same of one of several, which has a name.
    pub fn named(what: &str, iterations: usize, is_quiet: bool) -> Self {
        let what = if what.is_empty() { String::new() } else { format!("{what}: ") };
        let template = format!("{what}{{bar:30}} {{pos}}/{{len}} {{msg}} {{per_sec}}, {{eta}} left");
        let bar = progress_bar(iterations, &template, is_quiet);
        let forecast = Forecast::new("iterations", iterations, bar.is_hidden() && !is_quiet);
        TrainingProgress { bar, forecast, what }
    }

    /// An iteration is done.
    pub fn show(&mut self, summary: &Summary) {
        let done = summary.iteration + 1;
        if self.forecast.begin_at(summary.iteration) {
            // What an earlier process has done says nothing about this one's speed.
            self.bar.set_position(summary.iteration as u64);
            self.bar.reset_eta();
        }
        self.update_bar(done as u64, summary);
        if let Some(line) = self.forecast.line(self.bar.elapsed(), done) {
            say(&format!("{}{line}", self.what));
        }
    }

    /// Takes the bar off the screen.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Not so often that it would cost time.
    fn update_bar(&self, done: u64, summary: &Summary) {
        let bar = &self.bar;
        if bar.is_hidden() || (bar.elapsed() < Duration::from_millis(100) && done > 1) {
            return;
        }
        bar.set_position(done);
        if done.is_multiple_of(bar.length().unwrap_or(1).div_ceil(200)) {
            let return_ = summary.return_.map(|r| format!("return {r:.3}, ")).unwrap_or_default();
            bar.set_message(format!("{return_}violation {:.3},", summary.violation_total));
        }
    }
}
