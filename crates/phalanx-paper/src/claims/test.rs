//! Tests that claims are made of: what is compared, by how much, and how it is decided.
//!
//! A test says itself in words, so that what the report says was tested is what was tested.

use std::fmt::{Display, Formatter};

use serde::Deserialize;

use super::evidence::{Evidence, Rows, Sample};
use super::verdict::{Decision, Estimate, Finding, MISS, Verdict, short};
use super::{CLAIMS, exact};
use phalanx_pictures::statistics::{Uncertainty, mean};

/// A test on columns of `results.csv`. Shares are of the mean of what is compared with.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "test", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Test {
    /// The mean over seeds is larger, by more than a share.
    Above {
        column: Column,
        more: Rows,
        less: Rows,
        #[serde(default)]
        by: f64,
    },
    /// Means differ by at most a share.
    Comparable { column: Column, one: Rows, other: Rows, share: f64 },
    /// The mean is not larger than another by more than a share.
    NotAbove {
        column: Column,
        which: Rows,
        than: Rows,
        #[serde(default)]
        by: f64,
    },
    /// The mean is at most a number.
    AtMost { column: Column, which: Rows, bound: f64 },
    /// The mean is more than a number.
    MoreThan { column: Column, which: Rows, bound: f64 },
    /// At least one seed ends below a share of a mean.
    SomeSeedBelow { column: Column, which: Rows, share: f64, of: Rows },
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
    /// From row to row, a number falls to a share of what it was, or less. For what has no seeds.
    Decays { which: Rows, column: Column, share: f64 },
    /// From row to row, a number falls as a power of another, or faster: over the last tenfold of `along`
    /// what is left, `column · along^exponent`, grows by a share at most. For what has no seeds.
    Order { which: Rows, column: Column, along: Column, exponent: f64, share: f64 },
    /// In every row of a comparison at equal violation (`equal.csv`), the first method's return is above the
    /// second's.
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

/// Without as many seeds as this, "never seen" is no evidence of "never".
const SEEDS_FOR_NEVER: usize = 5;

impl Test {
    /// What it looks at.
    pub fn rows(&self) -> Vec<&Rows> {
        match self {
            Test::Above { more: a, less: b, .. }
            | Test::Comparable { one: a, other: b, .. }
            | Test::NotAbove { which: a, than: b, .. }
            | Test::SomeSeedBelow { which: a, of: b, .. } => vec![a, b],
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
                format!("{column} of {more} is above that of {less}{}", by_more(*by))
            }
            Test::Comparable { column, one, other, share } => {
                format!("{column} of {one} is within {} of that of {other}", percent(*share))
            }
            Test::NotAbove { column, which, than, by } => {
                format!("{column} of {which} is not above that of {than}{}", by_more(*by))
            }
            Test::AtMost { column, which, bound } => format!("{column} of {which} is at most {bound}"),
            Test::MoreThan { column, which, bound } => format!("{column} of {which} is more than {bound}"),
            Test::SomeSeedBelow { column, which, share, of } => {
                format!("a seed of {which} has a {column} below {} of the mean of {of}", percent(*share))
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
                format!("return of {which}, at equal violation and under every bound")
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
                let decide = |estimate: &Estimate, scale: f64| estimate.above(by * scale);
                self.compare(sample(more, column)?, sample(less, column)?, decide)
            }
            Test::Comparable { column, one, other, share } => {
                let decide = |estimate: &Estimate, scale: f64| estimate.within(share * scale);
                self.compare(sample(one, column)?, sample(other, column)?, decide)
            }
            Test::NotAbove { column, which, than, by } => {
                let decide = |estimate: &Estimate, scale: f64| estimate.at_most(by * scale);
                self.compare(sample(which, column)?, sample(than, column)?, decide)
            }
            Test::Rises { which, from, to } => self.rises(sample(which, from)?, sample(which, to)?),
            Test::SomeSeedBelow { column, which, share, of } => {
                self.some_below(sample(which, column)?, *share, sample(of, column)?)
            }
            Test::AtMost { column, which, bound } => {
                self.single(sample(which, column)?, |estimate| estimate.at_most(*bound))
            }
            Test::MoreThan { column, which, bound } => {
                self.single(sample(which, column)?, |estimate| estimate.above(*bound))
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
                let verdict = one_of(&findings);
                let numbers: Vec<&str> = findings.iter().map(|finding| finding.numbers.as_str()).collect();
                let mut whole = Finding::plain(self.words(), verdict, numbers.join("; "));
                whole.absent = findings.into_iter().flat_map(|finding| finding.absent).collect();
                whole
            }
        })
    }

    /// By the difference of the means of different runs; `decide` is told what shares are of.
    fn compare(&self, a: Sample, b: Sample, decide: impl Fn(&Estimate, f64) -> Decision) -> Finding {
        let estimate = Estimate::of([&a.values, &b.values], |[a, b]| a - b);
        let (one, other) = (mean(&a.values), mean(&b.values));
        let numbers = format!("{} against {}, difference {}", short(one), short(other), estimate.text());
        let decision = decide(&estimate, other.abs());
        self.estimated(estimate, decision, numbers, [a.absent, b.absent].concat())
    }

    /// All bounds must hold; one that does not is one of as many (Bonferroni).
    fn at_equal_violation(&self, evidence: &Evidence, which: &Rows, method: &str) -> Result<Finding, String> {
        let (sheet, rows) = evidence.rows(which, method)?;
        let estimates = rows.iter().map(|row| {
            let [difference, error, freedom, seeds] =
                ["difference", "error", "freedom", "seeds"].map(|column| sheet.number(row, column));
            Estimate::known(difference, Uncertainty { error, freedom }, seeds as usize)
        });
        let estimates: Vec<Estimate> = estimates.collect();
        let decisions: Vec<Decision> = estimates.iter().map(|estimate| estimate.above(0.0)).collect();
        let verdict = Verdict::of_all(decisions.iter().map(|decision| decision.verdict));
        let largest = decisions.iter().map(|decision| decision.chance_for).fold(0.0, f64::max);
        let smallest = decisions.iter().map(|decision| decision.chance_against).fold(1.0, f64::min);
        let numbers = rows.iter().zip(&estimates).map(|(row, estimate)| {
            format!("at most {}: difference {}", sheet.text(row, "bound"), estimate.text())
        });
        let finding = self.finding(verdict, numbers.collect::<Vec<_>>().join("; "), Vec::new());
        let chances = Some([largest, (smallest * rows.len() as f64).min(1.0)]);
        Ok(Finding { chances, ..finding })
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

    /// One seed is enough; none proves nothing unless there were many.
    fn some_below(&self, sample: Sample, share: f64, reference: Sample) -> Finding {
        let bound = share * mean(&reference.values);
        let below = sample.values.iter().filter(|&&value| value < bound).count();
        let count = sample.values.len();
        let verdict = match below {
            0 if count < SEEDS_FOR_NEVER => Verdict::Undecided,
            0 => Verdict::Fails,
            _ => Verdict::Holds,
        };
        let lowest = sample.values.iter().copied().fold(f64::INFINITY, f64::min);
        let numbers = format!("{below} of {count} seeds below {}, lowest {}", short(bound), short(lowest));
        self.finding(verdict, numbers, [sample.absent, reference.absent].concat())
    }

    fn estimated(
        &self,
        estimate: Estimate,
        decision: Decision,
        numbers: String,
        absent: Vec<String>,
    ) -> Finding {
        let Decision { verdict, chance_for, chance_against } = decision;
        let finding = self.finding(verdict, numbers, absent);
        Finding { estimate: Some(estimate), chances: Some([chance_for, chance_against]), ..finding }
    }

    fn finding(&self, verdict: Verdict, numbers: String, mut absent: Vec<String>) -> Finding {
        absent.dedup();
        // Who diverges must not be judged by what is left.
        let verdict =
            if verdict == Verdict::Holds && !absent.is_empty() { Verdict::Undecided } else { verdict };
        Finding { absent, ..Finding::plain(self.words(), verdict, numbers) }
    }
}

/// Of several, one of which must hold: the more there are, the surer that one must be (Bonferroni).
fn one_of(findings: &[Finding]) -> Verdict {
    let miss = MISS / findings.len() as f64;
    Verdict::of_any(findings.iter().map(|finding| match (finding.verdict, finding.chances) {
        (Verdict::Holds, Some([chance_for, _])) if chance_for > miss => Verdict::Undecided,
        (verdict, _) => verdict,
    }))
}
