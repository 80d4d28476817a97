//! Tests that claims are made of: what is compared, by how much, and how it is decided.
//!
//! A test says itself in words, so that what the report says was tested is what was tested.

use std::fmt::{Display, Formatter};

use serde::Deserialize;

use super::evidence::{Evidence, Rows, Sample};
use super::verdict::{Decision, Estimate, Finding, MISS, Verdict, short};
use super::{CLAIMS, exact};
use crate::frontier::{ALL_BOUNDS, NOTHING_IN_COMMON};
use crate::summary::{COLLAPSED, median};
use phalanx::base::beta::bisect;
use phalanx_pictures::statistics::{CONFIDENCE, mean};

/// A test on columns of `results.csv`. Shares are of the mean of what is compared with.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "test", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Test {
    /// The mean over seeds is larger, by more than a share. Without a share, an effect that is too small to
    /// be worth naming is none (`smallest` in `claims.toml`).
    Above {
        column: Column,
        more: Rows,
        less: Rows,
        #[serde(default)]
        by: f64,
    },
    /// Means differ by at most a share.
    Comparable { column: Column, one: Rows, other: Rows, share: f64 },
    /// The mean is not larger than another by more than a share, or by more than `margin`, in units of the
    /// column.
    NotAbove {
        column: Column,
        which: Rows,
        than: Rows,
        #[serde(default)]
        by: f64,
        #[serde(default)]
        margin: f64,
    },
    /// The mean is at most a number.
    AtMost { column: Column, which: Rows, bound: f64 },
    /// The mean is more than a number.
    MoreThan { column: Column, which: Rows, bound: f64 },
    /// At least one seed is trapped: it ends below the median of its own setting, or below the mean of
    /// another one, by more than a quarter of that number's size, as seeds that tables call collapsed. It is
    /// refuted by so many seeds without one that less than the share `rate` of all runs can be trapped.
    SomeSeedTrapped { column: Column, which: Rows, of: Rows, rate: f64 },
    /// What is lost against a mean, as a share of it, is larger in one place than in another.
    LargerLoss { column: Column, larger: [Rows; 2], smaller: [Rows; 2] },
    /// Two columns of the same runs: on average the second is larger than the first.
    Rises { which: Rows, from: Column, to: Column },
    /// In every row, a number is within a range. For what has no seeds. Rows without the number hold, too,
    /// where what they would be compared with was refused: a row with the same cell in the column `refused`.
    Within {
        which: Rows,
        column: Column,
        low: f64,
        high: f64,
        #[serde(default)]
        refused: Option<String>,
    },
    /// In every row, one column is at most another. For what has no seeds.
    Bounded { which: Rows, column: Column, bound: Column },
    /// One number is larger than another by more than a share. For what has no seeds: one row each.
    Larger { column: Column, larger: Rows, smaller: Rows, by: f64 },
    /// From row to row, a number falls to a share of what it was, or less. For what has no seeds.
    Decays { which: Rows, column: Column, share: f64 },
    /// From row to row, a number falls as a power of another, or faster: over the last tenfold of `along`
    /// what is left, `column · along^exponent`, grows by a share at most. For what has no seeds.
    Order { which: Rows, column: Column, along: Column, exponent: f64, share: f64 },
    /// In a comparison at equal violation (`equal.csv`), the first method's return is above the second's, on
    /// average over the bounds.
    AtEqualViolation { which: Rows },
    /// One of them holds.
    OneOf { tests: Vec<Test> },
}

/// A column of a table; shown in words.
#[derive(Debug, Clone, Deserialize)]
pub struct Column(pub String);

impl Display for Column {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(CLAIMS.columns.get(&self.0).unwrap_or(&self.0))
    }
}

impl Test {
    /// What it looks at.
    pub fn rows(&self) -> Vec<&Rows> {
        match self {
            Test::Above { more: a, less: b, .. }
            | Test::Comparable { one: a, other: b, .. }
            | Test::NotAbove { which: a, than: b, .. }
            | Test::Larger { larger: a, smaller: b, .. }
            | Test::SomeSeedTrapped { which: a, of: b, .. } => vec![a, b],
            Test::AtMost { which, .. }
            | Test::MoreThan { which, .. }
            | Test::Rises { which, .. }
            | Test::Within { which, .. }
            | Test::Bounded { which, .. }
            | Test::Decays { which, .. }
            | Test::AtEqualViolation { which }
            | Test::Order { which, .. } => vec![which],
            Test::LargerLoss { larger, smaller, .. } => larger.iter().chain(smaller).collect(),
            Test::OneOf { tests } => tests.iter().flat_map(Test::rows).collect(),
        }
    }

    /// In words.
    pub fn words(&self) -> String {
        let percent = |share: f64| format!("{} %", 100.0 * share);
        let by_more =
            |by: f64| if by == 0.0 { String::new() } else { format!(" by more than {}", percent(by)) };
        match self {
            Test::Above { column, more, less, by } => {
                let small = smallest_effect(column).filter(|_| *by == 0.0);
                let small = small.map(|share| format!(" (less than {} is no effect)", percent(share)));
                let small = small.unwrap_or_default();
                format!("{column} of {more} is above that of {less}{}{small}", by_more(*by))
            }
            Test::Comparable { column, one, other, share } => {
                format!("{column} of {one} is within {} of that of {other}", percent(*share))
            }
            Test::NotAbove { column, which, than, by, margin } => {
                let margin = if *margin == 0.0 { String::new() } else { format!(" by more than {margin}") };
                format!("{column} of {which} is not above that of {than}{}{margin}", by_more(*by))
            }
            Test::AtMost { column, which, bound } => format!("{column} of {which} is at most {bound}"),
            Test::MoreThan { column, which, bound } => format!("{column} of {which} is more than {bound}"),
            Test::SomeSeedTrapped { column, which, of, rate } => {
                let (by, rate) = (percent(COLLAPSED), percent(*rate));
                format!(
                    "a seed of {which} has a {column} more than {by} below its median or the mean of {of}; \
                     refuted if that happens in less than {rate} of the runs"
                )
            }
            Test::Larger { column, larger, smaller, by } => {
                format!("{column} of {larger} is above that of {smaller}{}", by_more(*by))
            }
            Test::LargerLoss { column, larger: [a, from_a], smaller: [b, from_b] } => {
                let is_named_alike = b.label == a.label && from_b.label == from_a.label;
                let (here, there) = (&a.experiment, if is_named_alike { &b.experiment } else { &b.label });
                let loses = format!("the share of {column} that {a} loses against {from_a}");
                format!("{loses} is larger in {here} than in {there}")
            }
            Test::Rises { which, from, to } => format!("{to} of {which} is above its {from}"),
            Test::Within { which, column, low, high, .. } => {
                format!("{column} of {which} is between {low} and {high}")
            }
            Test::Bounded { which, column, bound } => {
                format!("{column} is at most {bound} in every row of {which}")
            }
            Test::Decays { which, column, share } => {
                format!("{column} falls to {} or less from row to row of {which}", percent(*share))
            }
            Test::Order { which, column, along, exponent, share } => {
                let product = format!("{column}·{along}^{exponent:.2}");
                format!(
                    "{product} of {which} grows by at most {} over the last tenfold of {along}",
                    percent(*share)
                )
            }
            Test::AtEqualViolation { which } => {
                let small = smallest_effect(&Column(RETURN.into())).map(percent).unwrap_or_default();
                format!(
                    "return of {which}, at equal violation, on average over the bounds (less than {small} is \
                     no effect)"
                )
            }
            Test::OneOf { tests } => tests.iter().map(Test::words).collect::<Vec<_>>().join(", or "),
        }
    }

    /// Judges the rows of `method`.
    pub fn judge(&self, evidence: &Evidence, method: &str) -> Finding {
        self.judged(evidence, method)
            .unwrap_or_else(|reason| Finding::plain(self.words(), Verdict::Missing, reason))
    }

    /// The reason if there is nothing to judge.
    fn judged(&self, evidence: &Evidence, method: &str) -> Result<Finding, String> {
        let sample = |rows: &Rows, column: &Column| evidence.sample(rows, method, &column.0);
        Ok(match self {
            Test::Above { column, more, less, by } => {
                let pair = Pair { one: sample(more, column)?, other: sample(less, column)? };
                if *by == 0.0 {
                    self.above(&pair, smallest_effect(column))
                } else {
                    self.compared(&pair, &[*by], pair.beyond(*by).above(0.0))
                }
            }
            Test::Comparable { column, one, other, share } => {
                let pair = Pair { one: sample(one, column)?, other: sample(other, column)? };
                let [most, least] = [pair.beyond(*share).at_most(0.0), pair.beyond(-share).at_least(0.0)];
                self.compared(&pair, &[*share, -share], most.and(least))
            }
            Test::NotAbove { column, which, than, by, margin } => {
                let pair = Pair { one: sample(which, column)?, other: sample(than, column)? };
                self.compared(&pair, &[*by], pair.beyond(*by).at_most(*margin))
            }
            Test::Larger { column, larger, smaller, by } => {
                self.larger([sample(larger, column)?, sample(smaller, column)?], *by)
            }
            Test::Rises { which, from, to } => self.rises(sample(which, from)?, sample(which, to)?),
            Test::SomeSeedTrapped { column, which, of, rate } => {
                self.some_trapped(sample(which, column)?, sample(of, column)?, *rate)
            }
            Test::AtMost { column, which, bound } => {
                self.single(sample(which, column)?, |estimate| estimate.at_most(*bound))
            }
            Test::MoreThan { column, which, bound } => {
                self.single(sample(which, column)?, |estimate| estimate.above(*bound))
            }
            Test::LargerLoss { larger: rows, smaller: others, .. }
                if rows.iter().chain(others).any(|rows| has_nothing_in_common(evidence, rows, method)) =>
            {
                self.finding(Verdict::Undecided, NOTHING_IN_COMMON.into(), Vec::new())
            }
            Test::LargerLoss { column, larger, smaller } => {
                let [kept, whole] = smaller;
                let (a, of_a) = (sample(kept, column)?, sample(whole, column)?);
                let [kept, whole] = larger;
                self.shares([a, of_a, sample(kept, column)?, sample(whole, column)?])
            }
            Test::Within { which, column, low, high, refused } => {
                let (sample, refused) = match refused {
                    Some(by) => evidence.sample_beside_refused(which, method, &column.0, by)?,
                    None => (sample(which, column)?, 0),
                };
                let mut finding = self.computed(sample, |values| exact::is_within(values, *low, *high));
                if refused > 0 {
                    finding.numbers += &format!("; {refused} more where the comparison itself was refused");
                }
                finding
            }
            Test::Decays { which, column, share } => {
                self.computed(sample(which, column)?, |values| exact::decays(values, *share))
            }
            Test::Order { which, column, along, exponent, share } => {
                let (x, y) = (sample(which, along)?, sample(which, column)?);
                let product = |(x, y): (&f64, &f64)| (*x, y * x.powf(*exponent));
                let left: Vec<(f64, f64)> = x.values.iter().zip(&y.values).map(product).collect();
                let growth = exact::last_growth(&left);
                let numbers = growth.map_or("fewer than ten times the first".into(), |growth| {
                    format!("a factor of {}", short(growth))
                });
                let holds = growth.map(|growth| growth <= 1.0 + share);
                self.finding(exact::verdict(holds), numbers, [x.absent, y.absent].concat())
            }
            Test::Bounded { which, column, bound } => {
                let (sheet, rows) = evidence.rows(which, method)?;
                exact::bounded(self.words(), sheet, &rows, &column.0, &bound.0)
            }
            Test::AtEqualViolation { which } => self.at_equal_violation(evidence, which, method)?,
            Test::OneOf { tests } => {
                let findings: Vec<Finding> = tests.iter().map(|test| test.judge(evidence, method)).collect();
                let (verdict, chances) = one_of(&findings);
                let numbers: Vec<&str> = findings.iter().map(|finding| finding.numbers.as_str()).collect();
                let whole = Finding::plain(self.words(), verdict, numbers.join("; "));
                let absent = findings.iter().flat_map(|finding| finding.absent.clone()).collect();
                Finding { absent, chances, ..whole }
            }
        })
    }

    /// Whether the first of two means is larger; less than `smallest`, a share of the other, is no effect.
    fn above(&self, pair: &Pair, smallest: Option<f64>) -> Finding {
        let sign = pair.beyond(0.0).above(0.0);
        match smallest {
            None => self.compared(pair, &[], sign),
            Some(share) => {
                let decision = sign.unless(pair.beyond(share).above(0.0));
                // Where the sign is shown, nothing else is needed.
                let shown = if decision.verdict == Verdict::Holds { &[][..] } else { &[share] };
                self.compared(pair, shown, decision)
            }
        }
    }

    /// With the difference of the means, and what is left of it less these shares of the second.
    fn compared(&self, pair: &Pair, shares: &[f64], decision: Decision) -> Finding {
        let estimate = pair.beyond(0.0);
        let [one, other] = [&pair.one, &pair.other].map(|sample| short(mean(&sample.values)));
        let mut numbers = format!("{one} against {other}, difference {}", estimate.text());
        for share in shares.iter().filter(|share| **share != 0.0) {
            let sign = if *share > 0.0 { "less" } else { "plus" };
            let rest = pair.beyond(*share).without_iqm().text();
            numbers += &format!("; {sign} {} % of the second: {rest}", 100.0 * share.abs());
        }
        let absent = [&pair.one, &pair.other].map(|sample| sample.absent.clone()).concat();
        self.estimated(estimate, decision, numbers, absent)
    }

    /// One test, of the means over all bounds; how it is under each of them stands beside it.
    fn at_equal_violation(&self, evidence: &Evidence, which: &Rows, method: &str) -> Result<Finding, String> {
        let overall = which.clone().with("bound", ALL_BOUNDS);
        if has_nothing_in_common(evidence, &overall, method) {
            return Ok(self.finding(Verdict::Undecided, NOTHING_IN_COMMON.into(), Vec::new()));
        }
        let sample = |column: &str| evidence.sample(&overall, method, column);
        let pair = Pair { one: sample("returns")?, other: sample("returns_other")? };
        let mut finding = self.above(&pair, smallest_effect(&Column(RETURN.into())));
        let (sheet, rows) = evidence.rows(which, method)?;
        for row in rows.into_iter().filter(|row| sheet.text(row, "bound") != ALL_BOUNDS) {
            let [difference, low, high] =
                ["difference", "low", "high"].map(|column| short(sheet.number(row, column)));
            let bound = sheet.text(row, "bound");
            finding.numbers += &format!("; bound {bound}: {difference} [{low}, {high}]");
        }
        Ok(finding)
    }

    /// By the mean of the differences: both numbers are of the same run.
    fn rises(&self, from: Sample, to: Sample) -> Finding {
        let absent = [to.absent, from.absent].concat();
        if from.values.len() != to.values.len() {
            return Finding {
                absent,
                ..Finding::plain(self.words(), Verdict::Missing, "not in pairs".into())
            };
        }
        let differences: Vec<f64> = to.values.iter().zip(&from.values).map(|(to, from)| to - from).collect();
        let estimate = Estimate::of_mean(&differences);
        let [one, other] = [&to.values, &from.values].map(|values| short(mean(values)));
        let numbers = format!("{one} against {other}, difference {}, in pairs", estimate.text());
        self.estimated(estimate, estimate.above(0.0), numbers, absent)
    }

    fn single(&self, sample: Sample, decide: impl Fn(&Estimate) -> Decision) -> Finding {
        let estimate = Estimate::of_mean(&sample.values);
        self.estimated(estimate, decide(&estimate), estimate.text(), sample.absent)
    }

    /// What is lost is larger where a smaller share is kept.
    fn shares(&self, samples: [Sample; 4]) -> Finding {
        let values = samples.each_ref().map(|sample| &sample.values[..]);
        let estimate = Estimate::of(values, |[a, of_a, b, of_b]| a / of_a - b / of_b);
        let [a, of_a, b, of_b] = values.map(mean);
        let (one, other) = (short(a / of_a), short(b / of_b));
        let numbers = format!("{one} kept against {other}, difference {}", estimate.text());
        let absent = samples.map(|sample| sample.absent).concat();
        self.estimated(estimate, estimate.above(0.0), numbers, absent)
    }

    fn computed(&self, sample: Sample, holds: impl Fn(&[f64]) -> Option<bool>) -> Finding {
        let verdict = exact::verdict(holds(&sample.values));
        let numbers: Vec<String> = sample.values.iter().map(|&value| short(value)).collect();
        self.finding(verdict, numbers.join(", "), sample.absent)
    }

    /// One trapped seed is enough. None refutes only with so many seeds that one would have been seen.
    fn some_trapped(&self, sample: Sample, reference: Sample, rate: f64) -> Finding {
        let middles = [median(&sample.values), mean(&reference.values)];
        let bounds = middles.map(|value| value - COLLAPSED * value.abs());
        let bound = bounds[0].max(bounds[1]);
        let trapped = sample.values.iter().filter(|&&value| value < bound).count();
        let count = sample.values.len();
        // Exact: how often no seed of as many is trapped, if the share `rate` of all runs is.
        let chance = (0..count).fold(1.0, |chance, _| chance * (1.0 - rate));
        let absent = [sample.absent, reference.absent].concat();
        // With none trapped there is one side to be wrong on, so that it has the error of both.
        let against = chance * MISS / (1.0 - CONFIDENCE);
        let verdict = match trapped {
            // Who diverged may have been trapped.
            0 if against > MISS || !absent.is_empty() => Verdict::Undecided,
            0 => Verdict::Fails,
            _ => Verdict::Holds,
        };
        let lowest = sample.values.iter().copied().fold(f64::INFINITY, f64::min);
        let mut numbers =
            format!("{trapped} of {count} seeds below {}, lowest {}", short(bound), short(lowest));
        if trapped == 0 {
            let most = most_of_none(count);
            numbers += &format!("; at most {:.0} % of the runs (95 %)", 100.0 * most);
        }
        let chances = Some([0.0, if trapped == 0 { against } else { 1.0 }]);
        // One trapped seed shows it, whatever became of others.
        Finding { chances, verdict, ..self.finding(verdict, numbers, absent) }
    }

    /// As they are.
    fn larger(&self, samples: [Sample; 2], by: f64) -> Finding {
        let absent = [&samples[0], &samples[1]].map(|sample| sample.absent.clone()).concat();
        let (holds, numbers) = match samples.each_ref().map(|sample| &sample.values[..]) {
            [&[one], &[other]] => {
                (Some(one > other + by * other.abs()), format!("{} against {}", short(one), short(other)))
            }
            _ => (None, "not one row each".into()),
        };
        self.finding(exact::verdict(holds), numbers, absent)
    }

    fn estimated(
        &self,
        estimate: Estimate,
        decision: Decision,
        numbers: String,
        absent: Vec<String>,
    ) -> Finding {
        let Decision { verdict, chance_for, chance_against } = decision;
        // What is left when seeds fail may look better than they were, or worse.
        let verdict = if absent.is_empty() { verdict } else { Verdict::Undecided };
        let finding = self.finding(verdict, numbers, absent);
        Finding { estimate: Some(estimate), chances: Some([chance_for, chance_against]), ..finding }
    }

    fn finding(&self, verdict: Verdict, numbers: String, mut absent: Vec<String>) -> Finding {
        absent.dedup();
        // What is missing may be what does not hold.
        let verdict =
            if verdict == Verdict::Holds && !absent.is_empty() { Verdict::Undecided } else { verdict };
        Finding { absent, ..Finding::plain(self.words(), verdict, numbers) }
    }
}

/// Two means of different runs.
struct Pair {
    one: Sample,
    other: Sample,
}

impl Pair {
    /// How far the first is above the second and a share of its size. The error of both is in it.
    fn beyond(&self, share: f64) -> Estimate {
        let samples = [&self.one.values[..], &self.other.values[..]];
        Estimate::of(samples, |[one, other]| one - other - share * other.abs())
    }
}

/// Whether these are rows of methods that were never compared, since their violations do not meet.
fn has_nothing_in_common(evidence: &Evidence, rows: &Rows, method: &str) -> bool {
    let found = evidence.rows(rows, method);
    found.is_ok_and(|(sheet, rows)| rows.iter().any(|row| sheet.text(row, "status") == NOTHING_IN_COMMON))
}

/// Column of returns, also of those that are read at equal violation.
const RETURN: &str = "return";

/// The share of the other mean below which a difference is no effect; where one was stated.
fn smallest_effect(column: &Column) -> Option<f64> {
    CLAIMS.smallest.get(&column.0).copied()
}

/// The largest share of all runs that leaves none in `count` with a probability of 5 %.
fn most_of_none(count: usize) -> f64 {
    let none = |share: f64| (0..count).fold(1.0, |chance, _| chance * (1.0 - share));
    bisect(|share| none(share) > 1.0 - CONFIDENCE, 0.0, 1.0)
}

/// Of several, one of which must hold: the more there are, the surer that one must be (Bonferroni). It fails
/// if all do, so that the weakest failure is its own.
fn one_of(findings: &[Finding]) -> (Verdict, Option<[f64; 2]>) {
    let count = findings.len() as f64;
    let verdict = Verdict::of_any(findings.iter().map(|finding| match (finding.verdict, finding.chances) {
        (Verdict::Holds, Some([chance_for, _])) if chance_for > MISS / count => Verdict::Undecided,
        (verdict, _) => verdict,
    }));
    let chances: Option<Vec<[f64; 2]>> = findings.iter().map(|finding| finding.chances).collect();
    let chances = chances.map(|chances| {
        chances.into_iter().fold([1.0f64, 0.0f64], |[one, all], [chance_for, against]| {
            [one.min(count * chance_for), all.max(against)]
        })
    });
    (verdict, chances)
}
