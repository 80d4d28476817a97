//! Verdicts and what they rest on.

use serde::Serialize;

use phalanx_pictures::statistics::{CONFIDENCE, Uncertainty, bootstrap, interquartile_mean, mean};

/// What became of a claim; the first is nearest to holding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The interval is on the claim's side.
    Holds,
    /// True, and without content: it would hold whatever happened.
    Vacuous,
    /// The interval has both sides in it, or there are fewer than two seeds.
    Undecided,
    /// What the paper did is not known well enough to be repeated.
    NotComparable,
    /// There are no results.
    Missing,
    /// The interval is on the other side.
    Fails,
}

impl Verdict {
    /// All, in the order in which they are counted.
    pub const ALL: [Verdict; 6] = [
        Verdict::Holds,
        Verdict::Fails,
        Verdict::Undecided,
        Verdict::Vacuous,
        Verdict::NotComparable,
        Verdict::Missing,
    ];

    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Vacuous => "vacuous",
            Verdict::Fails => "fails",
            Verdict::Undecided => "undecided",
            Verdict::NotComparable => "not-comparable",
            Verdict::Missing => "missing",
        }
    }

    /// In a word, of several: "3 hold, 1 vacuous".
    pub fn word_of_many(self) -> &'static str {
        match self {
            Verdict::Holds => "hold",
            Verdict::Fails => "fail",
            Verdict::NotComparable => "not comparable",
            other => other.word(),
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

/// Errors that are allowed on each side of an interval.
pub const MISS: f64 = (1.0 - CONFIDENCE) / 2.0;

/// With fewer seeds an interquartile mean is no more robust than a mean.
pub const SEEDS_FOR_IQM: usize = 10;

/// A mean over seeds, or what several come to, with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Of the means.
    pub mean: f64,
    /// Lower end of Welch's interval of `mean`.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The smaller number of seeds in it.
    pub seeds: usize,
    /// The same of interquartile means, with its bootstrap interval, from ten seeds on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iqm: Option<Iqm>,
    #[serde(skip)]
    uncertainty: Uncertainty,
}

/// What interquartile means come to, with a bootstrap interval; for information.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Iqm {
    /// Of the interquartile means.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Iqm {
    /// Where there are seeds enough.
    pub fn of<const N: usize>(samples: [&[f64]; N], combine: impl Fn([f64; N]) -> f64) -> Option<Iqm> {
        samples.iter().all(|sample| sample.len() >= SEEDS_FOR_IQM).then(|| {
            let (low, high) = bootstrap(samples, interquartile_mean, &combine);
            Iqm { value: combine(samples.map(interquartile_mean)), low, high }
        })
    }
}

/// What an estimate says of a claim.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// By the interval.
    pub verdict: Verdict,
    /// Probability of an estimate that speaks as much for the claim, or more, if it just failed.
    pub chance_for: f64,
    /// The same of one that speaks against it, if it just held.
    pub chance_against: f64,
}

impl Decision {
    /// Of a test that consists of two, which cannot both fail: an estimate is not too large and too small.
    pub fn and(self, other: Decision) -> Decision {
        Decision {
            verdict: Verdict::of_all([self.verdict, other.verdict]),
            chance_for: self.chance_for.max(other.chance_for),
            chance_against: self.chance_against.min(other.chance_against),
        }
    }

    /// Holds where this does, and fails where an effect that is worth naming is ruled out: where `effect`
    /// fails.
    pub fn unless(self, effect: Decision) -> Decision {
        let verdict = match (self.verdict, effect.verdict) {
            (Verdict::Holds, _) => Verdict::Holds,
            (_, Verdict::Fails) => Verdict::Fails,
            _ => Verdict::Undecided,
        };
        Decision { verdict, chance_against: effect.chance_against, ..self }
    }
}

impl Estimate {
    /// Of the mean.
    pub fn of_mean(values: &[f64]) -> Estimate {
        Estimate::of([values], |[mean]| mean)
    }

    /// Of what `combine` makes of the means of samples from different runs.
    pub fn of<const N: usize>(samples: [&[f64]; N], combine: impl Fn([f64; N]) -> f64) -> Estimate {
        let uncertainty = Uncertainty::welch(samples, &combine);
        let seeds = samples.iter().map(|values| values.len()).min().unwrap_or(0);
        let known = Estimate::known(combine(samples.map(mean)), uncertainty, seeds);
        Estimate { iqm: Iqm::of(samples, combine), ..known }
    }

    /// Of what was estimated before.
    pub fn known(mean: f64, uncertainty: Uncertainty, seeds: usize) -> Estimate {
        let reach = uncertainty.half_width();
        Estimate { mean, low: mean - reach, high: mean + reach, seeds, iqm: None, uncertainty }
    }

    /// The same without what is for information only.
    pub fn without_iqm(self) -> Estimate {
        Estimate { iqm: None, ..self }
    }

    /// Holds where the whole interval is above `bound`, fails where it is below.
    pub fn above(&self, bound: f64) -> Decision {
        let excess = self.mean - bound;
        self.decided([self.low > bound, self.high < bound], [excess, -excess])
    }

    /// Holds where no part of the interval is above `bound`, fails where all of it is.
    pub fn at_most(&self, bound: f64) -> Decision {
        let excess = self.mean - bound;
        self.decided([self.high <= bound, self.low > bound], [-excess, excess])
    }

    /// Holds where no part of the interval is below `bound`, fails where all of it is.
    pub fn at_least(&self, bound: f64) -> Decision {
        let excess = self.mean - bound;
        self.decided([self.low >= bound, self.high < bound], [excess, -excess])
    }

    /// One seed decides nothing. Distances: how far the estimate is on the claim's side, and on the other.
    fn decided(&self, [holds, fails]: [bool; 2], distances: [f64; 2]) -> Decision {
        let verdict = match (holds, fails) {
            _ if self.seeds < 2 => Verdict::Undecided,
            (true, _) => Verdict::Holds,
            (_, true) => Verdict::Fails,
            _ => Verdict::Undecided,
        };
        let [chance_for, chance_against] = distances.map(|distance| self.uncertainty.beyond(distance));
        Decision { verdict, chance_for, chance_against }
    }

    /// With interval and seeds, and the interquartile mean where there are enough.
    pub fn text(&self) -> String {
        let Estimate { mean, low, high, seeds, .. } = *self;
        if seeds < 2 {
            return format!("{}, {seeds} seed", short(mean));
        }
        let percent = 100.0 * CONFIDENCE;
        let [mean, low, high] = [mean, low, high].map(short);
        let iqm = self.iqm.map(|Iqm { value, low, high }| {
            let [value, low, high] = [value, low, high].map(short);
            format!(", IQM {value} [{low}, {high}]")
        });
        format!("{mean} [{low}, {high}] ({percent:.0} %){}, {seeds} seeds", iqm.unwrap_or_default())
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
    /// Probabilities of such an estimate by chance alone, for and against the claim.
    #[serde(skip)]
    pub chances: Option<[f64; 2]>,
}

impl Finding {
    /// Decided without an estimate; where there is nothing to judge by, `numbers` is the reason.
    pub fn plain(test: String, verdict: Verdict, numbers: String) -> Finding {
        Finding { test, verdict, numbers, estimate: None, absent: Vec::new(), chances: None }
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
        let uncertainty = Uncertainty { error: 0.1, freedom: 4.0 };
        let estimate = Estimate { mean: 0.3, low: 0.1, high: 0.5, seeds: 3, iqm: None, uncertainty };
        let verdicts = |estimate: &Estimate, bound: f64| {
            let is_inside = estimate.at_most(bound).and(estimate.at_least(-bound));
            [estimate.above(bound), estimate.at_most(bound), is_inside].map(|it| it.verdict)
        };
        assert_eq!(verdicts(&estimate, 0.05), [Verdict::Holds, Verdict::Fails, Verdict::Fails]);
        assert_eq!(verdicts(&estimate, 0.3), [Verdict::Undecided; 3]);
        assert_eq!(verdicts(&estimate, 0.6), [Verdict::Fails, Verdict::Holds, Verdict::Holds]);
        let at_least = |bound: f64| estimate.at_least(bound).verdict;
        assert_eq!([0.05, 0.3, 0.6].map(at_least), [Verdict::Holds, Verdict::Undecided, Verdict::Fails]);
        let alone = Estimate { seeds: 1, ..estimate };
        assert_eq!(verdicts(&alone, 0.0), [Verdict::Undecided; 3]);
    }

    /// A verdict by the interval is one by the chance of the estimate.
    #[test]
    fn chances_agree_with_intervals() {
        let estimate = Estimate::of_mean(&[1.0, 1.5, 2.5, 2.0]);
        for bound in [estimate.low, estimate.high] {
            for (aside, side) in [(-1e-6, 0), (1e-6, 1)] {
                let Decision { verdict, chance_for, chance_against } = estimate.above(bound + aside);
                assert_eq!(verdict == Verdict::Holds, chance_for < MISS, "{bound} {side}");
                assert_eq!(verdict == Verdict::Fails, chance_against < MISS, "{bound} {side}");
            }
        }
        assert!(estimate.iqm.is_none());
        let ten: Vec<f64> = (0..10).map(f64::from).collect();
        assert_eq!(Estimate::of_mean(&ten).iqm.unwrap().value, 4.5);
        assert_eq!(Estimate::of_mean(&[3.0]).text(), "3.000, 1 seed");
    }

    /// A sign is shown by the interval's own side; that there is none worth naming, by its other end.
    #[test]
    fn effects_that_are_too_small_fail() {
        let uncertainty = Uncertainty { error: 0.1, freedom: 4.0 };
        let at = |mean: f64| Estimate::known(mean, uncertainty, 5);
        let judged = |mean: f64, least: f64| at(mean).above(0.0).unless(at(mean - least).above(0.0));
        let verdict = |mean: f64, least: f64| judged(mean, least).verdict;
        assert_eq!(verdict(0.3, 0.5), Verdict::Holds, "small, but there");
        assert_eq!(verdict(0.2, 0.5), Verdict::Fails);
        assert_eq!(verdict(0.2, 0.4), Verdict::Undecided);
        assert_eq!(verdict(-0.3, 0.0), Verdict::Fails);
        assert!(judged(0.2, 0.5).chance_against < MISS && judged(0.2, 0.4).chance_against > MISS);
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
