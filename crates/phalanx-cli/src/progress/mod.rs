//! How far long work is, and how long the rest may take.

mod judging;
mod training;

use std::time::Duration;

use indicatif::HumanDuration;

pub use judging::while_judging;
pub use training::TrainingProgress;

/// Says once how long something will take, where no bar shows it.
struct Forecast {
    is_due: bool,
    /// What is counted.
    what: &'static str,
    total: usize,
    /// How many earlier processes have done; not known before the first of this one.
    begun_at: Option<usize>,
}

impl Forecast {
    /// So much is known by then.
    const AFTER: Duration = Duration::from_secs(3);
    /// Less needs no forecast.
    const WORTH_SAYING: Duration = Duration::from_secs(10);

    fn new(what: &'static str, total: usize, is_due: bool) -> Self {
        Forecast { is_due, what, total, begun_at: None }
    }

    /// So many are none of this process's. Returns whether that is news.
    fn begin_at(&mut self, done: usize) -> bool {
        let is_first = self.begun_at.is_none();
        self.begun_at.get_or_insert(done);
        is_first
    }

    /// What to say when so many are `done`, those of earlier processes with them.
    fn line(&mut self, elapsed: Duration, done: usize) -> Option<String> {
        let here = done.checked_sub(self.begun_at.unwrap_or(0)).filter(|&here| here > 0)?;
        if !self.is_due || elapsed < Forecast::AFTER {
            return None;
        }
        self.is_due = false;
        let Forecast { what, total, .. } = *self;
        let left = elapsed.mul_f64(total.saturating_sub(done) as f64 / here as f64);
        let line = || format!("{done} of {total} {what} done; about {} left", HumanDuration(left));
        (left >= Forecast::WORTH_SAYING).then(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forecast(total: usize, begun_at: usize) -> Forecast {
        let mut forecast = Forecast::new("iterations", total, true);
        assert!(forecast.begin_at(begun_at) && !forecast.begin_at(begun_at + 1));
        forecast
    }

    #[test]
    fn a_new_run_is_forecast_from_all_its_iterations() {
        let mut forecast = forecast(400, 0);
        assert_eq!(forecast.line(Duration::from_millis(50), 1), None, "too early to tell");
        let line = forecast.line(Duration::from_secs(4), 40).unwrap();
        assert_eq!(line, "40 of 400 iterations done; about 36 seconds left");
        assert_eq!(forecast.line(Duration::from_secs(8), 80), None, "once is enough");
    }

    #[test]
    fn a_resumed_run_is_forecast_from_its_own_iterations() {
        let mut forecast = forecast(1000, 800);
        assert_eq!(forecast.line(Duration::from_millis(100), 801), None);
        // 40 iterations took 4 s; 160 are left.
        let line = forecast.line(Duration::from_secs(4), 840).unwrap();
        assert_eq!(line, "840 of 1000 iterations done; about 16 seconds left");
    }

    #[test]
    fn short_runs_have_no_forecast() {
        let mut forecast = forecast(100, 0);
        assert_eq!(forecast.line(Duration::from_secs(5), 0), None, "nothing is known");
        assert_eq!(forecast.line(Duration::from_secs(3), 50), None);
        assert!(!forecast.is_due);
    }
}
