//! How often the report's intervals hold the truth, on simulated seeds whose truth is known.

use phalanx::base::elementary::exp;
use phalanx::base::stream::{Place, Purpose, Sequence, Stream};
use phalanx_pictures::statistics::{Uncertainty, mean};

use super::tables::Table;
use crate::claims::MISS;

/// Experiments per law and number of seeds.
const EXPERIMENTS: u32 = 10_000;

/// Seeds per setting that reports have.
const SEEDS: [usize; 2] = [5, 10];

/// Where seeds come from, and what is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
    /// A difference of two settings, each normal with the same spread.
    EqualSpreads,
    /// The same, one spread three times the other.
    UnequalSpreads,
    /// The mean of one setting, log-normal: a few seeds far above the others.
    Skewed,
    /// The mean of one setting of which one seed in ten collapses.
    Collapsing,
}

/// Of a log-normal law of logarithms with mean 0 and deviation 1: √e.
const LOG_NORMAL_MEAN: f64 = 1.648_721_270_700_128_1;
const COLLAPSE: f64 = 0.1;

impl Law {
    const ALL: [Law; 4] = [Law::EqualSpreads, Law::UnequalSpreads, Law::Skewed, Law::Collapsing];

    fn words(self) -> &'static str {
        match self {
            Law::EqualSpreads => "difference of two settings, normal, equal spreads",
            Law::UnequalSpreads => "difference of two settings, normal, one spread three times the other",
            Law::Skewed => "mean of one setting, skewed (log-normal)",
            Law::Collapsing => "mean of one setting, one seed in ten collapses",
        }
    }

    /// Whether the interval of one experiment holds the truth.
    fn is_covered(self, seeds: usize, draws: &mut Sequence) -> bool {
        let mut sample = |draw: &mut dyn FnMut(&mut Sequence) -> f64| -> Vec<f64> {
            (0..seeds).map(|_| draw(draws)).collect()
        };
        let (estimate, truth, uncertainty) = match self {
            Law::EqualSpreads | Law::UnequalSpreads => {
                let spread = if self == Law::EqualSpreads { 1.0 } else { 3.0 };
                let (a, b) =
                    (sample(&mut |draws| spread * draws.normal()), sample(&mut |draws| draws.normal()));
                (mean(&a) - mean(&b), 0.0, Uncertainty::welch([&a, &b], |[a, b]| a - b))
            }
            Law::Skewed => {
                let a = sample(&mut |draws| exp(draws.normal()));
                (mean(&a), LOG_NORMAL_MEAN, Uncertainty::welch([&a], |[a]| a))
            }
            Law::Collapsing => {
                let a = sample(&mut |draws| {
                    let kept = if draws.uniform() < COLLAPSE { 0.0 } else { 1.0 };
                    kept + 0.02 * draws.normal()
                });
                (mean(&a), 1.0 - COLLAPSE, Uncertainty::welch([&a], |[a]| a))
            }
        };
        uncertainty.beyond((estimate - truth).abs()) >= MISS
    }

    /// Share of the experiments whose interval holds the truth.
    pub fn coverage(self, seeds: usize) -> f64 {
        let stream = Stream::new(0x636f_7665);
        let is_covered = |trajectory: u32| {
            let place = Place { purpose: Purpose::Evaluation, iteration: self as u32, trajectory };
            self.is_covered(seeds, &mut stream.sequence(place, seeds as u32))
        };
        (0..EXPERIMENTS).filter(|&k| is_covered(k)).count() as f64 / f64::from(EXPERIMENTS)
    }
}

/// A row per law.
pub fn table() -> Table {
    let seeds = SEEDS.map(|seeds| format!("{seeds} seeds"));
    let row = |law: Law| {
        let shares = SEEDS.map(|seeds| format!("{:.1} %", 100.0 * law.coverage(seeds)));
        [vec![law.words().to_string()], shares.to_vec()].concat()
    };
    Table {
        heading: [vec!["95 % intervals that hold the truth".to_string()], seeds.to_vec()].concat(),
        rows: Law::ALL.into_iter().map(row).collect(),
        left_out: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_seeds_are_covered_as_promised() {
        for law in [Law::EqualSpreads, Law::UnequalSpreads] {
            for seeds in SEEDS {
                let coverage = law.coverage(seeds);
                assert!((0.93..=0.97).contains(&coverage), "{law:?}, {seeds} seeds: {coverage}");
            }
        }
    }

    /// What no interval of means does better is said in the report.
    #[test]
    fn skew_and_collapses_are_covered_less_often() {
        let [skewed, collapsing] = [Law::Skewed, Law::Collapsing].map(|law| law.coverage(10));
        assert!((0.8..0.92).contains(&skewed) && (0.5..0.7).contains(&collapsing), "{skewed} {collapsing}");
        assert!(Law::Collapsing.coverage(5) < collapsing);
    }
}
