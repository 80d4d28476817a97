//! Verdicts and what they rest on.

use serde::Serialize;

use phalanx_pictures::statistics::{CONFIDENCE, interquartile_mean, interval, mean};

/// What became of a claim; the first is nearest to holding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The interval is on the claim's side.
    Holds,
    /// The interval has both sides in it, or there are fewer than two seeds.
    Undecided,
    /// There are no results.
    Missing,
    /// The interval is on the other side.
    Fails,
}

impl Verdict {
    /// All, in the order in which they are counted.
    pub const ALL: [Verdict; 4] = [Verdict::Holds, Verdict::Fails, Verdict::Undecided, Verdict::Missing];

    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::Undecided => "undecided",
            Verdict::Missing => "missing",
        }
    }

    /// Of a claim with several parts, all of which must hold: one that fails decides.
    pub fn of_all(parts: impl IntoIterator<Item = Verdict>) -> Verdict {
        parts.into_iter().max().unwrap_or(Verdict::Missing)
    }

    /// Of a claim with several parts, one of which must hold.
    pub fn of_any(parts: impl IntoIterator<Item = Verdict>) -> Verdict {
        parts.into_iter().min().unwrap_or(Verdict::Missing)
    }
}

/// A mean over seeds, or what several come to, with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Of the means.
    pub mean: f64,
    /// The same of interquartile means.
    pub iqm: f64,
    /// Lower end of the bootstrap interval of `mean`.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The smaller number of seeds in it.
    pub seeds: usize,
}

impl Estimate {
    /// Of the mean.
    pub fn of_mean(values: &[f64]) -> Estimate {
        Estimate::of([values], |[mean]| mean)
    }

    /// Of what `combine` makes of the samples' means.
    pub fn of<const N: usize>(samples: [&[f64]; N], combine: impl Fn([f64; N]) -> f64) -> Estimate {
        let (low, high) = interval(samples, &combine);
        let (mean, iqm) = (combine(samples.map(mean)), combine(samples.map(interquartile_mean)));
        let seeds = samples.iter().map(|values| values.len()).min().unwrap_or(0);
        Estimate { mean, iqm, low, high, seeds }
    }

    /// Holds where the whole interval is above `bound`, fails where it is below.
    pub fn above(&self, bound: f64) -> Verdict {
        self.decided(self.low > bound, self.high < bound)
    }

    /// Holds where no part of the interval is above `bound`, fails where all of it is.
    pub fn at_most(&self, bound: f64) -> Verdict {
        self.decided(self.high <= bound, self.low > bound)
    }

    /// Holds where the interval is inside ±`margin`, fails where it is outside.
    pub fn within(&self, margin: f64) -> Verdict {
        let is_inside = -margin <= self.low && self.high <= margin;
        self.decided(is_inside, self.low > margin || self.high < -margin)
    }

    /// One seed decides nothing.
    fn decided(&self, holds: bool, fails: bool) -> Verdict {
        match (holds, fails) {
            _ if self.seeds < 2 => Verdict::Undecided,
            (true, _) => Verdict::Holds,
            (_, true) => Verdict::Fails,
            _ => Verdict::Undecided,
        }
    }

    /// With interval, interquartile mean and seeds.
    pub fn text(&self) -> String {
        let [mean, low, high, iqm] = [self.mean, self.low, self.high, self.iqm].map(short);
        let percent = 100.0 * CONFIDENCE;
        format!("{mean} [{low}, {high}] ({percent:.0} %), IQM {iqm}, {} seeds", self.seeds)
    }
}

/// A part of a judgement: a test in words, its numbers, and what follows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What was tested.
    pub test: String,
    /// What follows.
    pub verdict: Verdict,
    /// The numbers in words, or why there are none.
    pub numbers: String,
    /// The estimate that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Seeds that are not in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
}

impl Finding {
    /// Decided without an estimate; where there is nothing to judge by, `numbers` is the reason.
    pub fn plain(test: String, verdict: Verdict, numbers: String) -> Finding {
        Finding { test, verdict, numbers, estimate: None, absent: Vec::new() }
    }
}

/// A number with three or four digits.
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size != 0.0 && !(1e-3..1e5).contains(&size) => format!("{value:.2e}"),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_decide() {
        let estimate = Estimate { mean: 0.3, iqm: 0.3, low: 0.1, high: 0.5, seeds: 3 };
        let verdicts = |bound: f64| (estimate.above(bound), estimate.at_most(bound), estimate.within(bound));
        assert_eq!(verdicts(0.05), (Verdict::Holds, Verdict::Fails, Verdict::Fails));
        assert_eq!(verdicts(0.3), (Verdict::Undecided, Verdict::Undecided, Verdict::Undecided));
        assert_eq!(verdicts(0.6), (Verdict::Fails, Verdict::Holds, Verdict::Holds));
        let alone = Estimate { seeds: 1, ..estimate };
        assert_eq!((alone.above(0.0), alone.at_most(1.0), alone.within(1.0)), {
            let undecided = Verdict::Undecided;
            (undecided, undecided, undecided)
        });
    }

    #[test]
    fn one_part_that_fails_decides() {
        use Verdict::{Fails, Holds, Missing, Undecided};
        assert_eq!(Verdict::of_all([Holds, Missing, Fails]), Fails);
        assert_eq!(Verdict::of_all([Holds, Undecided, Missing]), Missing);
        assert_eq!(Verdict::of_all([Holds, Undecided]), Undecided);
        assert_eq!(Verdict::of_all([Holds, Holds]), Holds);
        assert_eq!(Verdict::of_any([Missing, Fails, Holds]), Holds);
        assert_eq!(Verdict::of_any([Fails, Undecided]), Undecided);
        assert_eq!(Verdict::of_any([Fails, Fails]), Fails);
        assert_eq!(Verdict::of_all([]), Missing);
    }

    #[test]
    fn numbers_have_few_digits() {
        assert_eq!([0.0, 0.04919, 51.788, 1234.5].map(short), ["0.000", "0.049", "51.79", "1234"]);
        assert_eq!([2.5e-7, -3e6].map(short), ["2.50e-7", "-3.00e6"]);
    }
}
