//! How far every agent is on the safe side of its constraints, from the closing evaluation.

use std::collections::{HashMap, HashSet};

use super::canvas::{Arrangement, Axis, Colour, Figure, Layer, Panel, Shape, mark_of_series};
use super::read::{Margin, Spread};
use super::scale::Values;
use super::series::{self, Point};
use super::{THICK, line, stacked};

/// Up to this many agents are drawn one by one.
const MOST_AGENTS: usize = 200;
/// Provided that they have no more constraints than this: more could not be told apart, and would make a
/// large file.
const MOST_MARKS: usize = 2000;
/// Curves of constraints that are drawn: more could not be told apart.
const MOST_CURVES: usize = 30;
/// Up to this many marks stand on stems.
const MOST_STEMS: usize = 60;
/// In larger graphs, this many constraints with the least slack are named.
const NAMED: usize = 20;

/// Slack with its sign against the agent; in large graphs its distribution, and the worst agents by name.
/// Where the margins are those of the worst agents only, `spreads` tells of all.
pub fn figure(run: &str, margins: &[Margin], spreads: &[Spread]) -> Figure {
    let title = format!("Margins: {run}");
    let constraints = by_constraint(margins);
    let all: u64 = spreads.iter().map(|spread| spread.count).sum();
    let (subtitle, shares) = if all > margins.len() as u64 {
        let violated: u64 = spreads.iter().map(|spread| spread.violated).sum();
        let subtitle = format!("closing evaluation: {violated} of {all} constraints violated");
        (subtitle, share_panel(spreads.iter().map(spread_curve)))
    } else {
        let agents = margins.iter().map(|margin| margin.agent).collect::<HashSet<_>>().len();
        let violated = margins.iter().filter(|margin| margin.slack < 0.0).count();
        let of_all = format!("{} constraints of {agents} agents", margins.len());
        let subtitle = format!("closing evaluation: {violated} of {of_all} violated");
        if agents <= MOST_AGENTS && margins.len() <= MOST_MARKS {
            return stacked(title, &subtitle, vec![agents_panel(&constraints)]);
        }
        (subtitle, share_panel(constraints.iter().map(quantile_curve)))
    };
    let panels = vec![shares, worst_panel(&constraints)];
    Figure { title, subtitle, panels, arrangement: Arrangement::SideBySide }
}

/// The margins that can be drawn, of the constraints of one name.
type Named<'a> = (&'a str, Vec<&'a Margin>);

/// By the name of the constraint, in the order of the file.
fn by_constraint(margins: &[Margin]) -> Vec<Named<'_>> {
    let mut place = HashMap::new();
    let mut constraints: Vec<Named> = Vec::new();
    for margin in margins.iter().filter(|margin| series::is_drawable(margin.slack)) {
        let name = margin.constraint.as_str();
        let k = *place.entry(name).or_insert_with(|| {
            constraints.push((name, Vec::new()));
            constraints.len() - 1
        });
        constraints[k].1.push(margin);
    }
    constraints
}

const SLACK: &str = "slack: distance from the threshold, negative if violated";

/// The zero line, and what is unsafe below it.
fn background() -> Vec<Layer> {
    let unlabelled = |shape, colour| Layer { shape, colour, label: String::new() };
    vec![unlabelled(Shape::BelowZero, Colour::ALARM), unlabelled(Shape::ZeroLine, Colour::QUIET)]
}

/// A thin line from the zero line to a mark.
fn stem(from: Point, to: Point, colour: Colour) -> Layer {
    line(vec![from, to], 1.5, colour.tint(0.5), String::new())
}

/// Every agent's slack; a constraint has its own mark and colour, but what is violated is in the colour of
/// alarm.
fn agents_panel(constraints: &[Named<'_>]) -> Panel {
    let mut layers = background();
    let count = constraints.len() as f64;
    let with_stems = constraints.iter().map(|(_, margins)| margins.len()).sum::<usize>() <= MOST_STEMS;
    for (k, (name, margins)) in constraints.iter().enumerate() {
        // Constraints of one agent stand next to one another.
        let aside = (k as f64 - 0.5 * (count - 1.0)) * (0.6 / count).min(0.2);
        let mark = mark_of_series(k);
        // An estimate within the bound is not yet a verdict: `phalanx eval` says who is safe.
        for (what, colour) in [("kept", Colour::of_series(k)), ("violated", Colour::ALARM)] {
            let side = margins.iter().filter(|margin| (margin.slack < 0.0) == (what == "violated"));
            let points: Vec<Point> = side.map(|margin| (margin.agent as f64 + aside, margin.slack)).collect();
            if points.is_empty() {
                continue;
            }
            if with_stems {
                layers.extend(points.iter().map(|&(x, y)| stem((x, 0.0), (x, y), colour)));
            }
            let label = format!("{name}: {} {what}", points.len());
            layers.push(Layer { shape: Shape::Marks { points, mark }, colour, label });
        }
    }
    Panel::new(Axis::new("agent", Values::Whole), Axis::new(SLACK, Values::Real), layers)
}

/// The slack that a share of the agents stays below, in percent.
fn quantile_curve<'a>((name, margins): &Named<'a>) -> (&'a str, Vec<Point>) {
    let mut slacks: Vec<f64> = margins.iter().map(|margin| margin.slack).collect();
    slacks.sort_by(f64::total_cmp);
    let last = slacks.len().max(2) - 1;
    let points = slacks.into_iter().enumerate();
    (name, points.map(|(rank, slack)| (100.0 * rank as f64 / last as f64, slack)).collect())
}

/// The same from quantiles.
fn spread_curve(spread: &Spread) -> (&str, Vec<Point>) {
    let (shares, slacks): (Vec<f64>, Vec<f64>) = spread.quantiles.iter().copied().unzip();
    (&spread.constraint, series::points(&shares, &slacks))
}

/// A curve per constraint.
fn share_panel<'a>(curves: impl Iterator<Item = (&'a str, Vec<Point>)>) -> Panel {
    let curves = curves.take(MOST_CURVES).enumerate();
    let curves = curves.map(|(k, (name, points))| line(points, THICK, Colour::of_series(k), name.into()));
    let x = Axis::new("agents, from the least slack on (%)", Values::Whole);
    Panel::new(x, Axis::new(SLACK, Values::Real), background().into_iter().chain(curves).collect())
}

/// The agents with the least slack, by name.
fn worst_panel(constraints: &[Named<'_>]) -> Panel {
    let numbered =
        constraints.iter().enumerate().flat_map(|(k, (_, margins))| margins.iter().map(move |m| (k, m)));
    let mut worst: Vec<(usize, &&Margin)> = numbered.collect();
    worst.sort_by(|(_, a), (_, b)| a.slack.total_cmp(&b.slack).then(a.agent.cmp(&b.agent)));
    worst.truncate(NAMED);
    let mut names = Vec::new();
    let mut layers = background();
    for (row, &(k, margin)) in worst.iter().enumerate() {
        let constraint =
            if constraints.len() > 1 { format!(", {}", margin.constraint) } else { String::new() };
        names.push(format!("agent {}{constraint}", margin.agent));
        let y = row as f64 + 1.0;
        let colour = if margin.slack < 0.0 { Colour::ALARM } else { Colour::of_series(k) };
        layers.push(stem((0.0, y), (margin.slack, y), colour));
        let head = Shape::Marks { points: vec![(margin.slack, y)], mark: mark_of_series(k) };
        layers.push(Layer { shape: head, colour, label: String::new() });
    }
    Panel {
        x: Axis::new("slack", Values::Real),
        y: Axis::new(format!("the {} with the least slack", worst.len()), Values::Whole),
        names,
        layers,
    }
}
