//! What a run says of its agents one by one: all of them, or in a large graph the worst and how the others
//! are spread.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::evaluate::{Evaluation, Evaluator};
use crate::base::durable;
use crate::utility::problem::Problem;
use crate::{Ragged, Result};

/// Networks up to this size are listed agent by agent, unless the configuration says otherwise.
pub const MOST_LISTED: usize = 10_000;

/// Rows of a list that is cut down to the worst.
pub const WORST_LISTED: usize = 1_000;

/// Which agents a run lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentsOutput {
    /// All of them up to [`MOST_LISTED`], else the worst.
    #[default]
    Auto,
    /// All of them, however many they are.
    All,
    /// The worst [`WORST_LISTED`].
    Summary,
}

impl AgentsOutput {
    /// Whether a graph of so many agents is listed as a whole.
    pub fn lists_all(self, agents: usize) -> bool {
        match self {
            AgentsOutput::Auto => agents <= MOST_LISTED,
            AgentsOutput::All => true,
            AgentsOutput::Summary => false,
        }
    }
}

/// The constraints with the least slack, least first, as (agent, number of its constraint): `count` of them,
/// or all there are.
pub fn least_slack(slack: &Ragged<f64>, count: usize) -> Vec<(usize, usize)> {
    let all =
        slack.iter().enumerate().flat_map(|(i, row)| row.iter().enumerate().map(move |(k, &g)| (g, i, k)));
    least(all.collect(), count).into_iter().map(|(_, i, k)| (i, k)).collect()
}

/// The `count` smallest, ascending; ties in order of agents.
fn least(mut rows: Vec<(f64, usize, usize)>, count: usize) -> Vec<(f64, usize, usize)> {
    keep_least(&mut rows, count, |a, b| a.0.total_cmp(&b.0).then_with(|| (a.1, a.2).cmp(&(b.1, b.2))));
    rows
}

/// Keeps the first `count` of the given order, sorted.
pub(super) fn keep_least<T>(rows: &mut Vec<T>, count: usize, order: impl Fn(&T, &T) -> Ordering) {
    if rows.len() > count {
        rows.select_nth_unstable_by(count, &order);
        rows.truncate(count);
    }
    rows.sort_by(order);
}

/// Writes `agents.csv`, `returns.csv` and `agents-summary.csv` into `folder`.
pub(super) fn write(folder: &Path, whole: &Evaluator, evaluation: &Evaluation) -> Result<()> {
    let all = whole.config().output.agents.lists_all(whole.problem().agents.len());
    write_lines(&folder.join(CONSTRAINTS), |out| constraints(out, whole, evaluation, all))?;
    write_lines(&folder.join(RETURNS), |out| returns(out, evaluation, all))?;
    write_lines(&folder.join(SUMMARY), |out| summary(out, whole, evaluation))
}

/// Names of the files: constraints one by one, returns agent by agent, and quantiles of both.
pub(super) const CONSTRAINTS: &str = "agents.csv";
pub(super) const RETURNS: &str = "returns.csv";
pub(super) const SUMMARY: &str = "agents-summary.csv";

fn write_lines(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<()> {
    durable::replace(path, |temporary| {
        let mut out = BufWriter::new(File::create(temporary)?);
        write(&mut out)?;
        out.flush()
    })
}

/// One row per constraint: in order of agents, or those with the least slack, least first.
fn constraints(
    out: &mut impl Write,
    whole: &Evaluator,
    evaluation: &Evaluation,
    all: bool,
) -> io::Result<()> {
    writeln!(out, "agent,constraint,value,bound,threshold,dual,violation")?;
    let agents = &whole.problem().agents;
    let mut row = |i: usize, k: usize| {
        let constraint = &agents[i].constraints[k];
        writeln!(
            out,
            "{i},{},{:?},{},{:?},{:?},{:?}",
            csv_field(&constraint.name),
            evaluation.values.row(i)[k],
            constraint.bound.key(),
            constraint.bound.threshold(),
            whole.mu().row(i)[k],
            (-evaluation.slack.row(i)[k]).max(0.0),
        )
    };
    if all {
        let mut each = agents.iter().enumerate();
        return each.try_for_each(|(i, agent)| (0..agent.constraints.len()).try_for_each(|k| row(i, k)));
    }
    least_slack(&evaluation.slack, WORST_LISTED).into_iter().try_for_each(|(i, k)| row(i, k))
}

/// One row per agent: in order, or those with the least return (objective, if there is none), least first.
fn returns(out: &mut impl Write, evaluation: &Evaluation, all: bool) -> io::Result<()> {
    writeln!(out, "agent,return,objective")?;
    let (objectives, returns) = (&evaluation.objectives, evaluation.returns.as_ref());
    let mut row = |i: usize| {
        let return_ = returns.map(|returns| format!("{:?}", returns[i])).unwrap_or_default();
        writeln!(out, "{i},{return_},{:?}", objectives[i])
    };
    if all {
        return (0..objectives.len()).try_for_each(row);
    }
    let ranked = returns.unwrap_or(objectives).iter().enumerate().map(|(i, &x)| (x, i, 0)).collect();
    least(ranked, WORST_LISTED).into_iter().try_for_each(|(_, i, _)| row(i))
}

/// Columns of `agents-summary.csv`; those from `min` on are the quantiles of [`SHARES`].
const SUMMARY_COLUMNS: &str =
    "quantity,constraint,count,negative,mean,min,p0.1,p1,p5,p10,p25,p50,p75,p90,p95,p99,p99.9,max";

const SHARES: [f64; 13] = [0.0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0];

/// Mean and quantiles over agents of everything that is listed, and how many are below 0.
fn summary(out: &mut impl Write, whole: &Evaluator, evaluation: &Evaluation) -> io::Result<()> {
    writeln!(out, "{SUMMARY_COLUMNS}")?;
    if let Some(returns) = &evaluation.returns {
        spread(out, "return", "", returns.clone())?;
    }
    spread(out, "objective", "", evaluation.objectives.clone())?;
    for (name, members) in by_constraint(whole.problem()) {
        let of = |values: &Ragged<f64>| -> Vec<f64> {
            members.iter().map(|&(i, k)| values.row(i as usize)[k as usize]).collect()
        };
        let (name, slack) = (csv_field(name), of(&evaluation.slack));
        spread(out, "value", &name, of(&evaluation.values))?;
        spread(out, "violation", &name, slack.iter().map(|g| (-g).max(0.0)).collect())?;
        spread(out, "slack", &name, slack)?;
        spread(out, "dual", &name, of(whole.mu()))?;
    }
    Ok(())
}

/// The constraints of one name each, in order of their first appearance.
fn by_constraint(problem: &Problem) -> Vec<(&str, Vec<(u32, u32)>)> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut groups: Vec<(&str, Vec<(u32, u32)>)> = Vec::new();
    for (i, agent) in problem.agents.iter().enumerate() {
        for (k, constraint) in agent.constraints.iter().enumerate() {
            let place = *places.entry(&constraint.name).or_insert_with(|| {
                groups.push((&constraint.name, Vec::new()));
                groups.len() - 1
            });
            groups[place].1.push((i as u32, k as u32));
        }
    }
    groups
}

fn spread(out: &mut impl Write, quantity: &str, constraint: &str, mut numbers: Vec<f64>) -> io::Result<()> {
    let count = numbers.len();
    let negative = numbers.iter().filter(|x| **x < 0.0).count();
    // Summed in order of agents.
    let mean = numbers.iter().sum::<f64>() / count as f64;
    numbers.sort_unstable_by(f64::total_cmp);
    write!(out, "{quantity},{constraint},{count},{negative},{mean:?}")?;
    SHARES.iter().try_for_each(|&share| write!(out, ",{:?}", quantile(&numbers, share)))?;
    writeln!(out)
}

/// Between order statistics, linearly.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    let between = above - below;
    // The distance of two numbers may be none.
    let share = place.fract();
    if between.is_finite() { below + between * share } else { below * (1.0 - share) + above * share }
}

/// Quotes a field if it needs it.
fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_slack_comes_first_and_ties_go_by_agent() {
        let slack = Ragged::from_rows([vec![0.5, -1.0], vec![], vec![-1.0], vec![-2.0, 3.0]]);
        assert_eq!(least_slack(&slack, 3), [(3, 0), (0, 1), (2, 0)]);
        assert_eq!(least_slack(&slack, 9), [(3, 0), (0, 1), (2, 0), (0, 0), (3, 1)]);
        assert!(least_slack(&slack, 0).is_empty());
    }

    #[test]
    fn quantiles_by_hand() {
        let mut text = Vec::new();
        spread(&mut text, "slack", "x", vec![3.0, -1.0, 1.0]).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("slack,x,3,1,1.0,-1.0,"), "{text}");
        let median = text.split(',').nth(11).unwrap();
        assert_eq!((median, text.trim_end().rsplit(',').next().unwrap()), ("1.0", "3.0"));
        assert_eq!(quantile(&[0.0, 10.0], 0.25), 2.5);
    }

    #[test]
    fn size_and_configuration_decide() {
        assert!(AgentsOutput::Auto.lists_all(MOST_LISTED) && !AgentsOutput::Auto.lists_all(MOST_LISTED + 1));
        assert!(AgentsOutput::All.lists_all(usize::MAX) && !AgentsOutput::Summary.lists_all(1));
    }
}
