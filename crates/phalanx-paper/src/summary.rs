//! `summary.csv` of trained experiments: a row per setting, from `results.csv` alone, so that a report made
//! later has the intervals of its day.

use super::claims::{Estimate, Iqm};
use super::distinct;
use super::sheet::Sheet;
use super::trained::number;
use phalanx_pictures::statistics::{deviation, mean};

const COLUMNS: &str = "method,setting,seeds,missing,return_mean,return_sd,return_iqm,return_low,return_high,\
    violation_mean,violation_sd,violation_iqm,violation_low,violation_high,violation_peak,iterations,\
    agent_steps,wall_s,published_return,published_violation,reaches,collapsed";

/// Whether `results` are those of training runs.
pub fn is_of(results: &Sheet) -> bool {
    ["method", "setting", "seed", "return", "violation_total"]
        .iter()
        .all(|name| results.column(name).is_some())
}

/// The whole table.
pub fn of(results: &Sheet) -> Sheet {
    let mut summary = Sheet::new(COLUMNS);
    let names = results.rows.iter().map(|row| ["method", "setting"].map(|column| results.text(row, column)));
    for [method, setting] in distinct(names) {
        let is_one = |row: &&Vec<String>| {
            results.text(row, "method") == method && results.text(row, "setting") == setting
        };
        let rows: Vec<&Vec<String>> = results.rows.iter().filter(is_one).collect();
        summary.push([vec![method.into(), setting.into()], row(results, &rows)].concat());
    }
    summary
}

/// What follows the names.
fn row(results: &Sheet, rows: &[&Vec<String>]) -> Vec<String> {
    let (done, missing): (Vec<&Vec<String>>, Vec<&Vec<String>>) =
        rows.iter().partition(|row| results.text(row, "status") == "finished");
    let numbers = |column: &str| -> Vec<f64> { done.iter().map(|row| results.number(row, column)).collect() };
    let (returns, violations) = (numbers("return"), numbers("violation_total"));
    let missing: Vec<&str> = missing.iter().map(|row| results.text(row, "seed")).collect();
    let mut cells = vec![done.len().to_string(), missing.join(" ")];
    for values in [&returns, &violations] {
        if values.is_empty() {
            cells.extend(std::iter::repeat_n(String::new(), 5));
            continue;
        }
        let Estimate { mean, low, high, iqm, .. } = Estimate::of_mean(values);
        let iqm = iqm.map_or(f64::NAN, |Iqm { value, .. }| value);
        cells.extend([mean, deviation(values), iqm, low, high].map(number));
    }
    cells.push(number(mean(&numbers("violation_peak"))));
    for column in ["iterations", "agent_steps"] {
        // The same for all seeds, but for runs that stopped early.
        cells.push(whole(mean(&numbers(column))));
    }
    cells.push(
        numbers("wall_s").first().map_or(String::new(), |_| format!("{:.2}", mean(&numbers("wall_s")))),
    );
    let first = |column: &str| rows.first().map_or("", |row| results.text(row, column));
    cells.extend(["published_return", "published_violation"].map(|column| first(column).into()));
    let goals = ["published_return", "published_violation"].map(|column| first(column).parse::<f64>());
    let reaches = match goals {
        [Ok(return_), Ok(violation)] if first("counts") == "true" && done.len() == rows.len() => {
            if mean(&returns) >= return_ && mean(&violations) <= violation { "yes" } else { "no" }
        }
        _ => "",
    };
    cells.push(reaches.into());
    cells.push(collapsed(&returns).to_string());
    cells
}

/// Seeds whose return is far below the others': by more than a quarter of the median's size.
fn collapsed(returns: &[f64]) -> usize {
    let median = median(returns);
    returns.iter().filter(|value| **value < median - COLLAPSED * median.abs()).count()
}

/// How far, as a share of the median's size.
pub const COLLAPSED: f64 = 0.25;

/// The value in the middle, the upper one of two; NaN of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn whole(value: f64) -> String {
    if value.is_finite() { format!("{value:.0}") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_per_setting_with_what_is_missing() {
        let mut results = Sheet::new(
            "method,setting,seed,status,return,violation_total,violation_peak,iterations,agent_steps,wall_s,\
             published_return,published_violation,counts",
        );
        for (setting, seed, status, numbers) in [
            ("a", "1", "finished", ["1", "0.1", "2", "400", "80000", "3"]),
            ("a", "2", "finished", ["3", "0.3", "4", "400", "80000", "5"]),
            ("b", "1", "failed: diverged", [""; 6]),
        ] {
            let names = ["ours", setting, seed, status].map(String::from);
            let goals = ["1.5", "0.2", "true"].map(String::from);
            results.push([&names[..], &numbers.map(String::from), &goals].concat());
        }
        assert!(is_of(&results));
        let summary = of(&results);
        let [a, b] = &summary.rows[..] else { panic!("{summary:?}") };
        let text = |row: &Vec<String>, column: &str| summary.text(row, column).to_string();
        assert_eq!(text(a, "return_mean"), "2.000000");
        // 2 ± 12.7062 · 1, which is Student's with one degree of freedom.
        assert_eq!([text(a, "return_low"), text(a, "return_high")], ["-10.706205", "14.706205"]);
        assert_eq!(text(a, "return_iqm"), "", "two seeds have no interquartile mean");
        assert_eq!(
            [text(a, "iterations"), text(a, "agent_steps"), text(a, "wall_s")],
            ["400", "80000", "4.00"]
        );
        assert_eq!([text(a, "reaches"), text(a, "collapsed")], ["yes", "1"]);
        assert_eq!([text(b, "seeds"), text(b, "missing"), text(b, "return_mean")], ["0", "1", ""]);
        assert_eq!(text(b, "reaches"), "");
    }
}
