//! Assessments that go on until every constraint is decided.
//!
//! Constraints on whole episodes are judged by confidence sequences, which hold at every number of episodes
//! at once. For the others there are looks at doubled numbers of episodes, with the error split evenly over
//! them; their intervals are asymptotic at each look.

use super::{Assessment, ConstraintAssessment, Levels, Verdict};
use crate::base::binomial;
use crate::base::elementary::powi;
use crate::base::error::ensure;
use crate::run::evaluate::Evaluator;
use crate::{Error, Result};

/// Episodes of the first look.
const FIRST_LOOK: usize = 64;

/// An assessment, and what was known of its length beforehand.
#[derive(Debug, Clone)]
pub struct UntilDecided {
    /// At the last look.
    pub assessment: Assessment,
    /// Looks.
    pub looks: usize,
    /// Episodes that the first look said would do; none if all were decided there or more than a million
    /// million would be needed.
    pub predicted: Option<usize>,
}

/// The numbers of episodes at which one looks: doubled up to `most`.
fn looks(most: usize) -> Vec<usize> {
    let mut looks = Vec::new();
    let mut next = FIRST_LOOK;
    while next < most {
        looks.push(next);
        next = next.saturating_mul(2);
    }
    looks.push(most);
    looks
}

impl Evaluator {
    /// Assesses the policy on more and more episodes of `seed`, `most` at most, until every constraint is
    /// safe or unsafe; `[evaluation] max_agent_steps` does not end it. `report` is told of every look.
    pub fn assess_until_decided(
        &self,
        most: usize,
        seed: u64,
        confidence: f64,
        mut report: impl FnMut(&Assessment, Option<usize>),
    ) -> Result<UntilDecided> {
        ensure(most >= 3, || Error::argument("max-episodes", format!("{most}; at least 3 are needed")))?;
        let (miss, looks) = (1.0 - confidence, looks(most));
        let each = miss / self.problem().judged_count() as f64;
        let levels =
            Levels { alone: miss, each: each / looks.len() as f64, each_event: each, at_any_time: true };
        let mut predicted = None;
        for (look, &episodes) in looks.iter().enumerate() {
            let source = self.episodes(seed, self.config().horizon, episodes);
            let assessment = source.assess_with(confidence, levels)?;
            let is_decided = |c: &ConstraintAssessment| c.verdict != Verdict::Undecided;
            let all_decided = assessment.constraints.iter().all(is_decided);
            if look == 0 && !all_decided {
                predicted = self.predict(&assessment, levels);
            }
            report(&assessment, predicted);
            if all_decided || look + 1 == looks.len() {
                return Ok(UntilDecided { assessment, looks: look + 1, predicted });
            }
        }
        // There is always a last look.
        Err(Error::Stopped)
    }

    /// Episodes at which every interval would be on one side of its bound, if estimates stayed as they are
    /// and widths shrank as usual.
    fn predict(&self, assessment: &Assessment, levels: Levels) -> Option<usize> {
        const MOST: f64 = 1e12;
        let counts = self.problem().agents.iter().flat_map(|agent| &agent.constraints);
        let needed = assessment.constraints.iter().zip(counts).map(|(found, constraint)| {
            if found.verdict != Verdict::Undecided {
                return assessment.episodes as f64;
            }
            if constraint.event().is_some() {
                let rate = (found.utility.value - constraint.utility.offset) / constraint.utility.scale;
                let bound = (found.threshold - constraint.utility.offset) / constraint.utility.scale;
                return episodes_to_decide(rate, bound, levels.each_event / 2.0);
            }
            let half = (found.utility.upper - found.utility.lower) / 2.0;
            assessment.episodes as f64 * powi(half / found.slack.abs(), 2)
        });
        let needed = needed.fold(0.0, f64::max);
        (needed <= MOST).then_some(needed.ceil() as usize)
    }
}

/// Episodes after which a confidence sequence decides on which side of `bound` events of this `rate` are.
fn episodes_to_decide(rate: f64, bound: f64, miss: f64) -> f64 {
    let mut n = 16u64;
    while n < 1 << 40 {
        let k = (rate * n as f64).round() as u64;
        let is_decided = binomial::sequential_upper_bound(k, n, miss) <= bound
            || binomial::sequential_lower_bound(k, n, miss) > bound;
        if is_decided {
            return n as f64;
        }
        n += n.div_ceil(16);
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::stream::{Place, Purpose, Stream};
    use statrs::distribution::{ContinuousCDF, StudentsT};

    #[test]
    fn looks_are_doubled() {
        assert_eq!(looks(1000), [64, 128, 256, 512, 1000]);
        assert_eq!(looks(64), [64]);
        assert_eq!(looks(10), [10]);
    }

    #[test]
    fn predictions_are_those_of_the_bounds() {
        let needed = episodes_to_decide(0.0, 0.01, 0.005) as u64;
        assert!(binomial::sequential_upper_bound(0, needed, 0.005) <= 0.01);
        assert!((500..800).contains(&needed), "{needed}");
        assert_eq!(episodes_to_decide(0.1, 0.1, 0.005), f64::INFINITY);
        assert!(episodes_to_decide(0.5, 0.1, 0.005) < 100.0);
    }

    /// At the bound itself, 10,000 times: how often looks at doubled numbers call a mean that is exactly its
    /// bound something else.
    #[test]
    fn looks_keep_the_stated_error() {
        let (looks, miss) = (looks(1024), 0.05);
        let quantiles: Vec<f64> = looks
            .iter()
            .map(|&n| {
                let student = StudentsT::new(0.0, 1.0, (n - 1) as f64).unwrap();
                student.inverse_cdf(1.0 - miss / looks.len() as f64 / 2.0)
            })
            .collect();
        let mut wrong = 0;
        for repetition in 0..10_000 {
            let place = Place { purpose: Purpose::Evaluation, iteration: repetition, trajectory: 1 };
            let mut sequence = Stream::new(11).sequence(place, 0);
            let (mut n, mut sum, mut squares) = (0, 0.0, 0.0);
            let mut is_wrong = false;
            for (&look, quantile) in looks.iter().zip(&quantiles) {
                while n < look {
                    let x = sequence.uniform() - 0.5;
                    (n, sum, squares) = (n + 1, sum + x, squares + x * x);
                }
                let (count, mean) = (n as f64, sum / n as f64);
                let deviation = ((squares - count * mean * mean) / (count - 1.0) / count).sqrt();
                is_wrong |= mean.abs() > quantile * deviation;
            }
            wrong += usize::from(is_wrong);
        }
        assert!(wrong as f64 <= 1.1 * miss * 10_000.0, "{wrong}");
    }

    /// The same for events at the bound itself, which hold it: never more `unsafe` than stated, nor `safe`.
    #[test]
    fn confidence_sequences_keep_the_stated_error() {
        let (looks, miss, p) = (looks(2048), 0.05, 0.02);
        let mut wrong = [0; 2];
        for repetition in 0..10_000 {
            let place = Place { purpose: Purpose::Evaluation, iteration: repetition, trajectory: 2 };
            let mut sequence = Stream::new(12).sequence(place, 0);
            let (mut n, mut k, mut excluded) = (0, 0, [false; 2]);
            for &look in &looks {
                while n < look {
                    (n, k) = (n + 1, k + u64::from(sequence.uniform() < p));
                }
                let [low, high] = binomial::sequential_interval(k, n as u64, miss);
                excluded = [excluded[0] || low > p, excluded[1] || high < p];
            }
            wrong = [wrong[0] + usize::from(excluded[0]), wrong[1] + usize::from(excluded[1])];
        }
        assert!(wrong.iter().all(|&wrong| wrong as f64 <= miss / 2.0 * 10_000.0), "{wrong:?}");
    }
}
