//! The loop of a certification: train, judge on fresh episodes, aim higher, again.
//!
//! Attempt r = 1, 2, … is judged with an error of α_r = 6·(1 − confidence)/(π²·r²), which sum up to
//! 1 − confidence at most: whichever attempt succeeds, a certificate is wrong with no more than that
//! probability. A certificate says that *all* constraints hold, so that it is wrong only if a constraint that
//! does not hold passed its own test: each is tested with α_r, without further correction.

use crate::Result;
use crate::base::elementary::powi;

/// Times the half-width of a verdict that training aims at after the first attempt. After each further one it
/// is as much more: where a trained policy ends up differs from one training to the next.
const ROOM: f64 = 1.5;

/// The error of attempt `r`, from 1 on.
pub fn error_of_attempt(r: usize, confidence: f64) -> f64 {
    6.0 * (1.0 - confidence) / powi(std::f64::consts::PI * r as f64, 2)
}

/// What an attempt found of a constraint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// Its estimated slack.
    pub slack: f64,
    /// A lower bound on its slack, with the attempt's error: at least 0 if it passed.
    pub lower: f64,
    /// The largest margin that makes sense.
    pub largest_margin: f64,
}

/// Those who train and judge.
pub trait Candidates {
    /// Makes the next candidate; every constraint's multiplier aims at its slack in `margins`, which is empty
    /// at the first attempt.
    fn train(&mut self, attempt: usize, margins: &[f64]) -> Result<()>;

    /// Judges it on episodes that nothing has used before, each constraint with this error.
    fn judge(&mut self, attempt: usize, error: f64) -> Result<Vec<Judged>>;
}

/// The number of the attempt in which every constraint passed; none if `most` were not enough.
pub fn certify(candidates: &mut dyn Candidates, confidence: f64, most: usize) -> Result<Option<usize>> {
    let mut margins: Vec<f64> = Vec::new();
    for attempt in 1..=most {
        candidates.train(attempt, &margins)?;
        let judged = candidates.judge(attempt, error_of_attempt(attempt, confidence))?;
        if judged.iter().all(|judged| judged.lower >= 0.0) {
            return Ok(Some(attempt));
        }
        // What these episodes showed sets the next margins; from now on they are training data.
        margins.resize(judged.len(), 0.0);
        for (margin, judged) in margins.iter_mut().zip(&judged) {
            let wanted = ROOM * attempt as f64 * (judged.slack - judged.lower);
            *margin = (*margin + (wanted - judged.slack).max(0.0)).min(judged.largest_margin.max(0.0));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::binomial;
    use crate::base::stream::{Place, Purpose, Sequence, Stream};

    /// A stand-in for training and simulation: whatever it is asked for, its policies lie a hair beyond their
    /// bounds.
    struct StandIn {
        sequence: Sequence,
        /// Probabilities of events, all bounded by `BOUND`.
        events: Vec<f64>,
        episodes: u64,
    }

    const BOUND: f64 = 0.05;

    impl Candidates for StandIn {
        fn train(&mut self, _: usize, _: &[f64]) -> Result<()> {
            Ok(())
        }

        fn judge(&mut self, _: usize, error: f64) -> Result<Vec<Judged>> {
            let judge = |p: &f64| {
                let hits = (0..self.episodes).filter(|_| self.sequence.uniform() < *p).count() as u64;
                Judged {
                    slack: BOUND - hits as f64 / self.episodes as f64,
                    lower: BOUND - binomial::upper_bound(hits, self.episodes, error),
                    largest_margin: BOUND,
                }
            };
            Ok(self.events.iter().map(judge).collect())
        }
    }

    /// The share of 10,000 certifications, of up to ten attempts each, that are wrong.
    fn wrong(events: &[f64], episodes: u64) -> f64 {
        let wrong = (0..10_000).filter(|&repetition| {
            let place = Place { purpose: Purpose::Evaluation, iteration: repetition, trajectory: 0 };
            let sequence = Stream::new(21).sequence(place, 0);
            let mut stand_in = StandIn { sequence, events: events.to_vec(), episodes };
            certify(&mut stand_in, 0.99, 10).unwrap().is_some()
        });
        wrong.count() as f64 / 10_000.0
    }

    #[test]
    fn wrong_certificates_are_as_rare_as_stated() {
        let hair = BOUND * 1.0001;
        for (events, episodes) in [(&[hair][..], 200), (&[hair, 0.001], 200), (&[hair, hair], 120)] {
            let wrong = wrong(events, episodes);
            assert!(wrong <= 0.013, "{events:?}: {wrong}");
        }
    }

    #[test]
    fn errors_sum_up_to_what_is_allowed() {
        let sum: f64 = (1..100_000).map(|r| error_of_attempt(r, 0.99)).sum();
        assert!(sum <= 0.01 && sum > 0.00999, "{sum}");
    }

    /// A trainer that keeps what it is asked for: margins grow until the verdict fits in.
    #[test]
    fn margins_follow_the_half_width() {
        struct Obedient(f64, Vec<f64>);
        impl Candidates for Obedient {
            fn train(&mut self, _: usize, margins: &[f64]) -> Result<()> {
                self.0 = margins.first().copied().unwrap_or(0.0) - 0.001;
                self.1.push(self.0);
                Ok(())
            }
            fn judge(&mut self, _: usize, _: f64) -> Result<Vec<Judged>> {
                Ok(vec![Judged { slack: self.0, lower: self.0 - 0.01, largest_margin: 1.0 }])
            }
        }
        let mut obedient = Obedient(0.0, Vec::new());
        assert_eq!(certify(&mut obedient, 0.99, 5).unwrap(), Some(2));
        assert!((obedient.1[1] - 0.015).abs() < 1e-12, "{:?}", obedient.1);
    }
}
