//! `table`: the paper's comparison with MAPPO-Lagrangian, its figures beside ours. Paper: tab:baseline.

use std::path::Path;

use phalanx::Result;

use super::catalogue;
use super::context::{ExperimentContext, Record};
use super::curves;
use super::setting::Setting;
use super::sheet::Sheet;
use super::summary;
use super::terminal_tables::{plus_minus, seeds};
use phalanx_pictures::plot::canvas::{Axis, Colour, Figure, Layer, Mark, Panel, Shape};
use phalanx_pictures::plot::{self, Values};

/// The experiment.
pub const ID: &str = "table";

/// An environment and the experiment that it comes from.
const WORLDS: [(&str, &str); 2] =
    [("Pistonball", "baselines-pistonball"), ("Wireless", "baselines-wireless")];

/// The methods of the paper's table.
fn published(experiment: &str) -> impl Iterator<Item = &'static Setting> + use<> {
    let settings = catalogue::find(experiment).into_iter().flat_map(|experiment| &experiment.settings);
    settings.filter(|setting| setting.published().is_some())
}

/// Columns of `results.csv`: one row per environment and method.
const COLUMNS: &str = "environment,method,seeds,missing,return_mean,return_sd,return_low,return_high,\
    violation_mean,violation_sd,violation_low,violation_high,iterations,agent_steps,wall_s,published_return,\
    published_return_sd,published_violation";

/// Those of them that are taken over from a summary.
const TAKEN: std::ops::Range<usize> = 2..15;

/// Makes what it is made of, where that is not there; writes `results.csv`, the table as it is
/// shown, and a figure for each environment.
pub fn make(context: &ExperimentContext<'_>) -> anyhow::Result<()> {
    let mut summaries = Vec::new();
    for (_, id) in WORLDS {
        let reproduction = context.reproduction;
        let folder = reproduction.folder(id);
        let record = Record::read(&folder)?;
        let is_there = record.is_some_and(|record| {
            record.complete
                && record.seeds == reproduction.seeds
                && record.length == reproduction.length.words()
        });
        if let (false, Some(experiment)) = (is_there, catalogue::find(id)) {
            reproduction.make(experiment)?;
        }
        summaries.push(Sheet::read(&folder.join("summary.csv"))?);
    }
    let results = assemble(&summaries);
    context.sheet("results.csv", &results)?;
    let table = shown(&results);
    context.sheet("table.csv", &table)?;
    context.write("table.md", markdown(&table).as_bytes())?;
    (context.reproduction.print)(&markdown(&table));
    let mut figures = Vec::new();
    for (world, name) in WORLDS.iter().zip(["pistonball", "wireless"]) {
        let settings: Vec<&Setting> = published(world.1).collect();
        let caption = curves::caption_of(&settings, context.reproduction)?;
        figures.push((name, figure(*world, &results, &caption)));
    }
    context.figures(figures)
}

/// Whether the table in `root` is what the runs there come to.
pub fn is_of_these_runs(root: &Path) -> Result<bool> {
    let results = |id: &str| Sheet::read(&root.join(id).join("results.csv"));
    let summary = |(_, id): &(&str, &str)| Ok(results(id)?.map(|results| summary::of(&results)));
    let summaries = WORLDS.iter().map(summary).collect::<Result<Vec<_>>>()?;
    Ok(results(ID)? == Some(assemble(&summaries)))
}

/// Cells are empty where there is no result.
fn assemble(summaries: &[Option<Sheet>]) -> Sheet {
    let mut results = Sheet::new(COLUMNS);
    let taken: Vec<String> = results.columns[TAKEN].to_vec();
    for ((world, id), summary) in WORLDS.iter().zip(summaries) {
        for setting in published(id) {
            let found = summary.as_ref().and_then(|summary| {
                let row = summary.rows.iter().find(|row| summary.text(row, "method") == setting.method)?;
                Some(taken.iter().map(|column| summary.text(row, column).to_string()).collect())
            });
            let mut row = vec![world.to_string(), setting.method.clone()];
            row.extend(found.unwrap_or_else(|| vec![String::new(); taken.len()]));
            let [return_, violation] = setting.published().unwrap_or_default();
            row.extend([return_, setting.return_sd.unwrap_or_default(), violation].map(|n| n.to_string()));
            results.push(row);
        }
    }
    results
}

/// The paper's table, ours on the left of each figure, and what it took.
fn shown(results: &Sheet) -> Sheet {
    let columns = "environment,method,return ± sd,published return ± sd,violation ± sd,published violation,seeds,\
         iterations,agent-steps,seconds";
    let mut table = Sheet::new(columns);
    for row in &results.rows {
        let number = |column: &str| results.number(row, column);
        let text = |column: &str| results.text(row, column).to_string();
        let mean = |mean: &str, deviation: &str| {
            plus_minus(number(mean), number(deviation), 3).unwrap_or("missing".into())
        };
        table.push(vec![
            text("environment"),
            text("method"),
            mean("return_mean", "return_sd"),
            mean("published_return", "published_return_sd"),
            mean("violation_mean", "violation_sd"),
            text("published_violation"),
            seeds(results, row),
            text("iterations"),
            text("agent_steps"),
            if text("wall_s").is_empty() { String::new() } else { format!("{:.0}", number("wall_s")) },
        ]);
    }
    table
}

fn markdown(table: &Sheet) -> String {
    let line = |cells: &Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(table.columns.len()));
    line(&table.columns) + &rule + &table.rows.iter().map(line).collect::<String>()
}

/// Return against violation: the better, the higher and the further to the left.
fn figure((world, _): (&str, &str), results: &Sheet, caption: &str) -> Figure {
    let rows = results.rows.iter().filter(|row| results.text(row, "environment") == world);
    let layers = rows.enumerate().flat_map(|(k, row)| layers(results, row, Colour::of_series(k)));
    let x = Axis::new("total violation, final policy", Values::FromZero);
    let panel = Panel::new(
        x,
        Axis::new("return per agent and episode, final policy", Values::Real),
        layers.collect(),
    );
    let subtitle = "circles: here, with 95 % intervals; diamonds: the paper, with its ±";
    let title = format!("{world}: comparison with MAPPO-Lagrangian");
    plot::stacked(title, &format!("{subtitle}\n{caption}"), vec![panel])
}

/// A method's result and the published one, each with its spread.
fn layers(results: &Sheet, row: &[String], colour: Colour) -> Vec<Layer> {
    let at = |column: &str| results.number(row, column);
    let method = results.text(row, "method");
    let mut layers = Vec::new();
    let bar = |from: plot::Point, to: plot::Point, colour: Colour| {
        plot::line(vec![from, to], BAR, colour, String::new())
    };
    let (x, y) = (at("violation_mean"), at("return_mean"));
    if x.is_finite() && y.is_finite() {
        layers.push(bar((x, at("return_low")), (x, at("return_high")), colour));
        layers.push(bar((at("violation_low").max(0.0), y), (at("violation_high"), y), colour));
        layers.push(marks((x, y), Mark::Circle, colour, method));
    }
    let (x, y, spread) = (at("published_violation"), at("published_return"), at("published_return_sd"));
    layers.push(bar((x, y - spread), (x, y + spread), colour.tint(0.5)));
    layers.push(marks((x, y), Mark::Diamond, colour, method));
    layers
}

/// Width of the lines that show spreads.
const BAR: f64 = 1.5;

fn marks(point: plot::Point, mark: Mark, colour: Colour, label: &str) -> Layer {
    Layer { shape: Shape::Marks { points: vec![point], mark }, colour, label: label.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phalanx_pictures::plot::canvas;

    fn summary() -> Sheet {
        let mut sheet = Sheet::new(COLUMNS);
        sheet.columns.truncate(TAKEN.end);
        sheet.columns.splice(..2, ["method".to_string(), "setting".to_string()]);
        let numbers =
            ["3", "", "56.2", "0.3", "55.9", "56.5", "0.01", "0.01", "0", "0.02", "1500", "90000", "12.34"];
        sheet.push([&["ours", ""], &numbers[..]].concat().into_iter().map(String::from).collect());
        let numbers = ["2", "3", "50.1", "1.5", "49", "51.2", "0.2", "0.1", "0.1", "0.3", "800", "8000", "9"];
        sheet.push([&["MAPPO-L", "κ = 3"], &numbers[..]].concat().into_iter().map(String::from).collect());
        sheet
    }

    #[test]
    fn what_is_missing_stays_empty_beside_what_is_published() {
        let results = assemble(&[Some(summary()), None]);
        assert_eq!(results.rows.len(), 8);
        assert_eq!(results.number(&results.rows[0], "return_mean"), 56.2);
        assert_eq!(results.number(&results.rows[1], "published_return"), 50.612);
        assert!(results.number(&results.rows[2], "return_mean").is_nan());
        let table = markdown(&shown(&results));
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 10);
        assert_eq!(
            lines[2],
            "| Pistonball | ours | 56.200 ± 0.300 | 51.788 ± 1.346 | 0.010 ± 0.010 | 0.04919 | 3 | 1500 | 90000 | 12 |"
        );
        assert!(lines[3].ends_with("| 2 (missing: 3) | 800 | 8000 | 9 |"), "{}", lines[3]);
        assert!(lines[9].contains("decentralised MAPPO-L | missing | 3.148 ± 0.614 | missing | 1.576"));
    }

    #[test]
    fn the_figure_is_drawn_whatever_is_missing() {
        let results = assemble(&[Some(summary()), None]);
        let figures: Vec<Figure> = WORLDS.iter().map(|world| figure(*world, &results, "T = 5")).collect();
        let drawings = canvas::draw(&figures).unwrap();
        for drawing in drawings {
            assert!(drawing.svg.contains(">decentralised aggregate MAPPO-L<"), "names are never cut");
            assert!(drawing.svg.contains(">T = 5<"));
        }
    }
}
