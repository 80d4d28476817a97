//! Several runs in one picture.

use std::path::{Path, PathBuf};

use phalanx::Error;
use phalanx::base::own_folder;

use super::canvas::{Colour, Layer, Shape};
use super::read::Metrics;
use super::scale::Values;
use super::series::{self, Span};
use super::{
    Column, ROWS_FOR_MEAN, THICK, THIN, VIOLATIONS, iteration_panel, line, maximised, mean_reach, name_of,
    stacked, write,
};
use crate::statistics;

/// From this many runs on a band leaves out the outermost tenths.
const RUNS_FOR_QUANTILES: usize = 5;

/// Draws several runs together into `out`: `return` and `violation`, each as SVG and PNG, and gives the
/// files.
///
/// A curve is the mean over runs, its band reaches from the lowest to the highest run, or from 5 runs on over
/// the middle 80 % of them. Runs whose folders differ in the seed only (`name-seed1`, `name-seed2`) make up
/// one curve; without such folders all runs make up one. All runs are cut to the length of the shortest.
pub fn plot_runs(runs: &[PathBuf], out: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if runs.is_empty() {
        return Err(Error::config("RUN", "none given; name the folders of one or more runs").into());
    }
    own_folder::check(out, COMMAND, || is_earlier(out))?;
    let mut read = Vec::new();
    for run in runs {
        read.push((name_of(run), Metrics::read(run)?));
    }
    let lengths = || read.iter().map(|(_, metrics)| metrics.iteration.len());
    let rows = lengths().min().unwrap_or(0);
    let groups = groups(&read);
    let subtitle = format!(
        "from training batches; {}{rows} iterations of {} run{}{}",
        if lengths().all(|length| length == rows) { "" } else { "first " },
        runs.len(),
        if runs.len() == 1 { "" } else { "s" },
        match 2 * mean_reach(rows) + 1 {
            window if rows >= ROWS_FOR_MEAN => format!("; thick lines: average of {window} iterations"),
            _ => String::new(),
        }
    );
    let panel = |label: &str, values: Values, column: Column| {
        let label_of =
            |group: &Group| if groups.len() > 1 { format!("{}: ", group.name) } else { String::new() };
        let layers =
            groups.iter().enumerate().map(|(k, group)| group.layers(k, &label_of(group), rows, column));
        iteration_panel(label, values, layers.flatten().collect())
    };
    let names = listed(groups.iter().map(|group| group.name.as_str()));
    let figure = |what: &str, panels| stacked(format!("{what}: {names}"), &subtitle, panels);
    let (what, label, column) = maximised(read.iter().all(|(_, metrics)| metrics.has_return()));
    let violations = VIOLATIONS.map(|(label, column)| panel(label, Values::FromZero, column));
    let figures = vec![
        ("return", figure(what, vec![panel(label, Values::Real, column)])),
        ("violation", figure("Violation", violations.into())),
    ];
    own_folder::claim(out, COMMAND, || is_earlier(out))?;
    write(out, figures)
}

/// Which command the folder belongs to.
pub(super) const COMMAND: &str = "plot";

/// Whether an earlier version drew runs into `out`, and nothing else is there.
pub fn is_earlier(out: &Path) -> bool {
    const DRAWN: [&str; 4] = ["return.svg", "return.png", "violation.svg", "violation.png"];
    let mut names = out.read_dir().into_iter().flatten().flatten().map(|entry| entry.file_name());
    DRAWN.iter().all(|name| out.join(name).is_file())
        && names.all(|name| DRAWN.iter().any(|drawn| name.to_str() == Some(*drawn)))
}

/// Runs that make up one curve.
struct Group<'a> {
    name: String,
    runs: Vec<&'a Metrics>,
}

/// Runs that differ in the seed only go together; if none do, all of them.
fn groups(runs: &[(String, Metrics)]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    for (folder, metrics) in runs {
        let name = without_seed(folder);
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.runs.push(metrics),
            None => groups.push(Group { name: name.to_string(), runs: vec![metrics] }),
        }
    }
    if groups.len() == runs.len() {
        let name = listed(runs.iter().map(|(folder, _)| folder.as_str()));
        return vec![Group { name, runs: runs.iter().map(|(_, metrics)| metrics).collect() }];
    }
    groups
}

/// `name` of `name-seed7` and `name-seed7-2`, as `phalanx train` names its folders.
pub(super) fn without_seed(folder: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match folder.rsplit_once("-seed") {
        Some((name, rest)) if rest.split('-').all(is_number) && !name.is_empty() => name,
        _ => folder,
    }
}

/// A few names, with commas.
pub(super) fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 3;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.take(SHOWN).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

impl Group<'_> {
    /// Mean and band of a column over the first `rows` iterations, in the k-th colour.
    fn layers(&self, k: usize, label: &str, rows: usize, column: Column) -> Vec<Layer> {
        let count = self.runs.len();
        let (outermost, reach) = if count < RUNS_FOR_QUANTILES {
            (0.0, "lowest to highest run")
        } else {
            (0.1, "10–90 % of runs")
        };
        let (mut band, mut mean) = (Vec::new(), Vec::new());
        for row in 0..rows {
            let x = self.runs[0].iteration[row];
            let at_row = self.runs.iter().map(|metrics| column(metrics)[row]);
            let mut values: Vec<f64> = at_row.filter(|&value| series::is_drawable(value)).collect();
            if values.is_empty() || !series::is_drawable(x) {
                continue;
            }
            values.sort_by(f64::total_cmp);
            let [low, high] = [outermost, 1.0 - outermost].map(|share| series::quantile(&values, share));
            band.push(Span { x, low, high });
            mean.push((x, statistics::mean(&values)));
        }
        let colour = Colour::of_series(k);
        let mut layers = Vec::new();
        if mean.len() >= ROWS_FOR_MEAN {
            layers.push(line(mean.clone(), THIN, colour.tint(0.6), String::new()));
            mean = series::moving_mean(&mean, mean_reach(mean.len()));
        }
        let of_runs = match count {
            1 => label.trim_end_matches(": ").to_string(),
            _ => format!("{label}mean of {count} runs"),
        };
        layers.push(line(mean, THICK, colour, of_runs));
        if count > 1 {
            let shape = Shape::Band(series::thin_spans(band));
            layers.push(Layer { shape, colour, label: format!("{label}{reach}") });
        }
        layers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_unrelated_names_make_up_one_curve() {
        let groups_of = |names: &[&str]| {
            let runs: Vec<_> = names.iter().map(|name| (name.to_string(), Metrics::default())).collect();
            groups(&runs).iter().map(|group| (group.name.clone(), group.runs.len())).collect::<Vec<_>>()
        };
        assert_eq!(groups_of(&["a", "b"]), [("a, b".to_string(), 2)]);
        assert_eq!(groups_of(&["a", "b", "c", "d", "e"]), [("a, b, c and 2 more".to_string(), 5)]);
        let two = [("a".to_string(), 2), ("b-seeds".to_string(), 1)];
        assert_eq!(groups_of(&["a-seed1", "a-seed22", "b-seeds"]), two);
        assert_eq!(without_seed("-seed1"), "-seed1");
    }

    #[test]
    fn band_and_mean_are_those_of_the_runs() {
        let with_return = |value: f64| Metrics {
            iteration: vec![0.0, 1.0],
            return_: vec![value, f64::NAN],
            ..Metrics::default()
        };
        let runs: Vec<Metrics> = (0..11).map(|k| with_return(f64::from(k))).collect();
        let layers_of = |count: usize| {
            let group = Group { name: "g".into(), runs: runs[..count].iter().collect() };
            group.layers(0, "", 2, |metrics| &metrics.return_)
        };
        let spans = |layers: &[Layer]| match &layers[1].shape {
            Shape::Band(spans) => spans.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(spans(&layers_of(4)), [Span { x: 0.0, low: 0.0, high: 3.0 }]);
        assert_eq!(spans(&layers_of(11)), [Span { x: 0.0, low: 1.0, high: 9.0 }]);
        assert!(matches!(&layers_of(4)[0].shape, Shape::Line { points, .. } if *points == [(0.0, 1.5)]));
        assert_eq!(layers_of(1).len(), 1);
    }
}
