//! Tests that claims are made of: what is compared, by how much, and how it is decided.
//!
//! A test says itself in words, so that what the report says was tested is what was tested.

use serde::Deserialize;

use super::evidence::{Evidence, Rows, Sample};
use super::exact;
use super::verdict::{Estimate, Finding, Verdict, short};
use phalanx_pictures::statistics::mean;

/// A test on columns of `results.csv`. Shares are of the mean of what is compared with.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "test", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Test {
    /// The mean over seeds is larger, by more than a share.
    Above {
        column: String,
        more: Rows,
        less: Rows,
        #[serde(default)]
        by: f64,
    },
    /// Means differ by at most a share.
    Comparable { column: String, one: Rows, other: Rows, share: f64 },
    /// The mean is not larger than another by more than a share.
    NotAbove {
        column: String,
        which: Rows,
        than: Rows,
        #[serde(default)]
        by: f64,
    },
    /// The mean is at most a number.
    AtMost { column: String, which: Rows, bound: f64 },
    /// The mean is more than a number.
    MoreThan { column: String, which: Rows, bound: f64 },
    /// At least one seed ends below a share of a mean.
    SomeSeedBelow { column: String, which: Rows, share: f64, of: Rows },
    /// What is lost against a mean, as a share of it, is larger in one place than in another.
    LargerLoss { column: String, larger: [Rows; 2], smaller: [Rows; 2] },
    /// Two columns of one sheet: the mean of the first is larger.
    Rises { which: Rows, from: String, to: String },
    /// In every row, a number is within a range. For what has no seeds.
    Within { which: Rows, column: String, low: f64, high: f64 },
    /// In every row, one column is at most another. For what has no seeds.
    Bounded { which: Rows, column: String, bound: String },
    /// From row to row, a number falls to a share of what it was, or less. For what has no seeds.
    Decays { which: Rows, column: String, share: f64 },
    /// In the last row, what a number is above another column is at most a share of that in the first. For what has no seeds.
    Falls { which: Rows, column: String, above: String, share: f64 },
    /// One of them holds.
    OneOf { tests: Vec<Test> },
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
            | Test::Falls { which, .. } => vec![which],
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
                format!("{} of {} is above that of {}{}", name(column), more.label, less.label, by_more(*by))
            }
            Test::Comparable { column, one, other, share } => {
                let share = percent(*share);
                format!("{} of {} is within {share} of that of {}", name(column), one.label, other.label)
            }
            Test::NotAbove { column, which, than, by } => {
                let by = by_more(*by);
                format!("{} of {} is not above that of {}{by}", name(column), which.label, than.label)
            }
            Test::AtMost { column, which, bound } => {
                format!("{} of {} is at most {bound}", name(column), which.label)
            }
            Test::MoreThan { column, which, bound } => {
                format!("{} of {} is more than {bound}", name(column), which.label)
            }
            Test::SomeSeedBelow { column, which, share, of } => {
                let share = percent(*share);
                let column = name(column);
                format!("a seed of {} has a {column} below {share} of the mean of {}", which.label, of.label)
            }
            Test::LargerLoss { column, larger: [a, from_a], smaller: [b, from_b] } => format!(
                "the share of {} that {} loses against {} is larger in {} than in {}",
                name(column),
                a.label,
                from_a.label,
                a.experiment,
                if b.label == a.label && from_b.label == from_a.label { &b.experiment } else { &b.label }
            ),
            Test::Rises { which, from, to } => {
                format!("{} of {} is above its {}", name(to), which.label, name(from))
            }
            Test::Within { which, column, low, high } => {
                format!("{} of {} is between {low} and {high}", name(column), which.label)
            }
            Test::Bounded { which, column, bound } => {
                format!("{} is at most {} in every row of {}", name(column), name(bound), which.label)
            }
            Test::Decays { which, column, share } => {
                let share = percent(*share);
                format!("{} falls to {share} or less from row to row of {}", name(column), which.label)
            }
            Test::Falls { which, column, above, share } => format!(
                "what {} of {} is above {} is in the last row at most {} of that in the first",
                name(column),
                which.label,
                name(above),
                percent(*share)
            ),
            Test::OneOf { tests } => tests.iter().map(Test::words).collect::<Vec<_>>().join(", or "),
        }
    }

    /// Judges the rows of `method`.
    pub fn judge(&self, evidence: &Evidence, method: &str) -> Finding {
        self.judged(evidence, method).unwrap_or_else(|reason| Finding::missing(self.words(), reason))
    }

    /// The reason if there is nothing to judge.
    fn judged(&self, evidence: &Evidence, method: &str) -> Result<Finding, String> {
        let sample = |rows: &Rows, column: &str| evidence.sample(rows, method, column);
        Ok(match self {
            Test::Above { column, more: a, less: b, .. }
            | Test::Comparable { column, one: a, other: b, .. }
            | Test::NotAbove { column, which: a, than: b, .. }
            | Test::SomeSeedBelow { column, which: a, of: b, .. } => {
                self.compare(&sample(a, column)?, &sample(b, column)?)
            }
            Test::Rises { which, from, to } => self.compare(&sample(which, to)?, &sample(which, from)?),
            Test::AtMost { column, which, .. } | Test::MoreThan { column, which, .. } => {
                self.single(&sample(which, column)?)
            }
            Test::LargerLoss { column, larger, smaller } => {
                let both = |[which, from]: &[Rows; 2]| {
                    Ok::<_, String>([sample(which, column)?, sample(from, column)?])
                };
                self.shares(&both(smaller)?, &both(larger)?)
            }
            Test::Within { which, column, .. } | Test::Decays { which, column, .. } => {
                let sample = sample(which, column)?;
                self.computed(&sample.values, sample.absent)
            }
            Test::Falls { which, column, above, .. } => {
                let (value, floor) = (sample(which, column)?, sample(which, above)?);
                let pairs = value.values.iter().zip(&floor.values);
                let excess: Vec<f64> = pairs.map(|(value, floor)| value - floor).collect();
                self.computed(&excess, [value.absent, floor.absent].concat())
            }
            Test::Bounded { which, column, bound } => {
                let (sheet, rows) = evidence.rows(which, method)?;
                exact::bounded(self.words(), sheet, &rows, column, bound)
            }
            Test::OneOf { tests } => {
                let findings: Vec<Finding> = tests.iter().map(|test| test.judge(evidence, method)).collect();
                let verdict = Verdict::of_any(findings.iter().map(|finding| finding.verdict));
                let numbers: Vec<&str> = findings.iter().map(|finding| finding.numbers.as_str()).collect();
                let mut whole = Finding::plain(self.words(), verdict, numbers.join("; "));
                whole.absent = findings.into_iter().flat_map(|finding| finding.absent).collect();
                whole
            }
        })
    }

    fn compare(&self, a: &Sample, b: &Sample) -> Finding {
        let scale = mean(&b.values).abs();
        let estimate = Estimate::of_difference(&a.values, &b.values);
        let verdict = match self {
            Test::Above { by, .. } => estimate.above(by * scale),
            Test::Comparable { share, .. } => estimate.within(share * scale),
            Test::NotAbove { by, .. } => estimate.at_most(by * scale),
            Test::SomeSeedBelow { share, .. } => {
                return self.some_below(a, share * mean(&b.values), b);
            }
            _ => estimate.above(0.0),
        };
        let (one, other) = (short(mean(&a.values)), short(mean(&b.values)));
        let numbers = format!("{one} against {other}, difference {}", estimate.text());
        self.finding(verdict, numbers, Some(estimate), [a.absent.clone(), b.absent.clone()].concat())
    }

    fn single(&self, sample: &Sample) -> Finding {
        let estimate = Estimate::of(&sample.values);
        let verdict = match self {
            Test::MoreThan { bound, .. } => estimate.above(*bound),
            Test::AtMost { bound, .. } => estimate.at_most(*bound),
            _ => Verdict::Missing,
        };
        self.finding(verdict, estimate.text(), Some(estimate), sample.absent.clone())
    }

    /// What is lost is larger where a smaller share is kept.
    fn shares(&self, smaller: &[Sample; 2], larger: &[Sample; 2]) -> Finding {
        let values = |[part, whole]: &[Sample; 2]| [part.values.clone(), whole.values.clone()];
        let (smaller_values, larger_values) = (values(smaller), values(larger));
        let estimate = Estimate::of_shares(&smaller_values, &larger_values);
        let kept = |[part, whole]: &[Vec<f64>; 2]| short(mean(part) / mean(whole));
        let (one, other) = (kept(&smaller_values), kept(&larger_values));
        let numbers = format!("{one} kept against {other}, difference {}", estimate.text());
        let absent = smaller.iter().chain(larger).flat_map(|sample| sample.absent.clone()).collect();
        self.finding(estimate.above(0.0), numbers, Some(estimate), absent)
    }

    fn computed(&self, values: &[f64], absent: Vec<String>) -> Finding {
        let holds = match self {
            Test::Within { low, high, .. } => exact::is_within(values, *low, *high),
            Test::Decays { share, .. } => exact::decays(values, *share),
            Test::Falls { share, .. } => exact::falls(values, *share),
            _ => None,
        };
        let numbers: Vec<String> = values.iter().map(|&value| short(value)).collect();
        self.finding(exact::verdict(holds), numbers.join(", "), None, absent)
    }

    /// One seed is enough; none proves nothing unless there were many.
    fn some_below(&self, sample: &Sample, bound: f64, reference: &Sample) -> Finding {
        let below = sample.values.iter().filter(|&&value| value < bound).count();
        let verdict = match below {
            0 if sample.values.len() < SEEDS_FOR_NEVER => Verdict::Undecided,
            0 => Verdict::Fails,
            _ => Verdict::Holds,
        };
        let lowest = sample.values.iter().copied().fold(f64::INFINITY, f64::min);
        let count = sample.values.len();
        let numbers = format!("{below} of {count} seeds below {}, lowest {}", short(bound), short(lowest));
        self.finding(verdict, numbers, None, [sample.absent.clone(), reference.absent.clone()].concat())
    }

    fn finding(
        &self,
        verdict: Verdict,
        numbers: String,
        estimate: Option<Estimate>,
        mut absent: Vec<String>,
    ) -> Finding {
        absent.dedup();
        // Who diverges must not be judged by what is left.
        let verdict =
            if verdict == Verdict::Holds && !absent.is_empty() { Verdict::Undecided } else { verdict };
        Finding { test: self.words(), verdict, numbers, estimate, absent }
    }
}

/// A column in words.
fn name(column: &str) -> &str {
    match column {
        "violation_total" => "violation",
        "violation_peak" => "largest violation while training",
        "violation_start" => "violation at the start",
        "return_start" => "return at the start",
        "early_return" => "return over the first fifth of training",
        "settled" => "number of iterations to nine tenths of the way",
        "wall_s" => "time",
        "seconds_relative" => "share of the time at full range",
        "bytes_relative" => "share of the bytes at full range",
        "E" => "ℰ",
        "E_exact" => "ℰ with exact gradients",
        "E_final" => "slope of the last ℰ",
        "E_min" => "slope of the least ℰ",
        "fixed" | "error" => "error of the truncated gradient",
        "lemma" => "the lemma's bound",
        "solved" => "whether the ball arrives",
        "comm_bytes" => "number of bytes sent",
        other => other,
    }
}
