//! Tests on numbers that are computed, not sampled: there are no seeds, and every row counts.

use super::verdict::{Finding, Verdict, short};
use crate::sheet::Sheet;

/// What follows; nothing if there is nothing to decide by.
pub fn verdict(holds: Option<bool>) -> Verdict {
    match holds {
        Some(true) => Verdict::Holds,
        Some(false) => Verdict::Fails,
        None => Verdict::Undecided,
    }
}

/// Whether all are in the range.
pub fn is_within(values: &[f64], low: f64, high: f64) -> Option<bool> {
    Some(values.iter().all(|value| (low..=high).contains(value)))
}

/// What is left of a number that is 0.
const ROUNDING: f64 = 1e-9;

/// Whether each is at most `share` of the one before, down to rounding.
pub fn decays(values: &[f64], share: f64) -> Option<bool> {
    let falls = |pair: &[f64]| pair[1] <= share * pair[0] || pair[1].abs() <= ROUNDING;
    (values.len() > 1).then(|| values.windows(2).all(falls))
}

/// By what factor numbers grow over the last tenfold of what they depend on, between the two ends.
pub fn last_growth(points: &[(f64, f64)]) -> Option<f64> {
    let &(end, last) = points.last()?;
    let &(_, before) = points.iter().rfind(|(x, _)| x * 10.0 <= end * (1.0 + ROUNDING))?;
    Some(last / before)
}

/// Whether `column` is at most the column `bound` in every row that has both.
pub fn bounded(test: String, sheet: &Sheet, rows: &[&[String]], column: &str, bound: &str) -> Finding {
    let pairs = rows.iter().map(|row| (sheet.number(row, column), sheet.number(row, bound)));
    let pairs: Vec<(f64, f64)> = pairs.filter(|(a, b)| a.is_finite() && b.is_finite()).collect();
    if pairs.is_empty() {
        return Finding::plain(test, Verdict::Missing, format!("no row has {column} and {bound}"));
    }
    let beyond = pairs.iter().filter(|(a, b)| *a > b + ROUNDING * (1.0 + b.abs()));
    let worst = beyond.clone().max_by(|x, y| (x.0 / x.1).total_cmp(&(y.0 / y.1)));
    match worst {
        None => Finding::plain(test, Verdict::Holds, format!("in all {} rows", pairs.len())),
        Some((value, bound)) => {
            let (count, rows, value, bound) = (beyond.count(), pairs.len(), short(*value), short(*bound));
            let numbers = format!("not in {count} of {rows} rows; the worst has {value} against {bound}");
            Finding::plain(test, Verdict::Fails, numbers)
        }
    }
}
