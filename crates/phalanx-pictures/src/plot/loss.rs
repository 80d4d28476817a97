//! What policies achieve against the share of messages that are lost.

use std::path::{Path, PathBuf};

use phalanx::base::own_folder;

use super::canvas::{Axis, Colour, Layer, Panel, Shape, mark_of_series};
use super::runs::{COMMAND, is_earlier, listed, without_seed};
use super::scale::Values;
use super::series::{self, Span};
use super::{THICK, TOTAL_VIOLATION, line, maximised, name_of, stacked, write};
use crate::statistics;

/// What one run's policy achieves at one loss.
#[derive(Debug, Clone, Copy)]
pub struct AtLoss {
    /// Probability that a message is lost on a link.
    pub loss: f64,
    /// Return, or the objective where there is none.
    pub achieved: f64,
    /// Total violation.
    pub violation: f64,
}

/// Draws what runs achieve against the loss, as `loss.svg` and `loss.png`, and gives the files: one run into
/// its own folder, several into `out`. Runs whose folders differ in the seed only make up one curve, the mean
/// over them, with a band from the lowest to the highest.
pub fn plot_loss(
    runs: &[(PathBuf, Vec<AtLoss>)],
    has_return: bool,
    out: &Path,
) -> anyhow::Result<Vec<PathBuf>> {
    let figure = vec![("loss", figure(runs, has_return))];
    if let [(run, _)] = runs {
        return write(&run.join("plots"), figure);
    }
    own_folder::claim(out, COMMAND, || is_earlier(out))?;
    write(out, figure)
}

fn figure(runs: &[(PathBuf, Vec<AtLoss>)], has_return: bool) -> super::Figure {
    let mut groups: Vec<(String, Vec<&[AtLoss]>)> = Vec::new();
    for (run, values) in runs {
        let folder = name_of(run);
        let name = without_seed(&folder);
        match groups.iter_mut().find(|(other, _)| other == name) {
            Some((_, group)) => group.push(values),
            None => groups.push((name.to_string(), vec![values])),
        }
    }
    let panel = |label: &str, values: Values, of: fn(&AtLoss) -> f64| {
        let layers = groups.iter().enumerate().flat_map(|(k, (name, group))| curve(k, name, group, of));
        let loss = Axis::new("probability that a message is lost on a link", Values::FromZero);
        Panel::new(loss, Axis::new(label, values), layers.collect())
    };
    let (what, label, _) = maximised(has_return);
    let panels = vec![
        panel(label, Values::Real, |at| at.achieved),
        panel(TOTAL_VIOLATION, Values::FromZero, |at| at.violation),
    ];
    let names = listed(groups.iter().map(|(name, _)| name.as_str()));
    let subtitle = if runs.len() > groups.len() {
        "on fresh episodes; mean over runs, and the band from the lowest to the highest"
    } else {
        "on fresh episodes"
    };
    stacked(format!("{what} and violation against loss: {names}"), subtitle, panels)
}

/// Mean and band of one number over a group's runs, in the k-th colour.
fn curve(k: usize, name: &str, group: &[&[AtLoss]], of: fn(&AtLoss) -> f64) -> Vec<Layer> {
    let (mut mean, mut band) = (Vec::new(), Vec::new());
    for (at, AtLoss { loss, .. }) in group.first().into_iter().flat_map(|run| run.iter().enumerate()) {
        let values = group.iter().filter_map(|run| run.get(at)).map(of);
        let values: Vec<f64> = values.filter(|&value| series::is_drawable(value)).collect();
        let Some(low) = values.iter().copied().reduce(f64::min) else { continue };
        let high = values.iter().copied().fold(low, f64::max);
        mean.push((*loss, statistics::mean(&values)));
        band.push(Span { x: *loss, low, high });
    }
    let colour = Colour::of_series(k);
    let marks = Shape::Marks { points: mean.clone(), mark: mark_of_series(k) };
    let mut layers = vec![
        line(mean, THICK, colour, name.to_string()),
        Layer { shape: marks, colour, label: String::new() },
    ];
    if group.len() > 1 {
        layers.push(Layer { shape: Shape::Band(band), colour, label: String::new() });
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_differ_in_the_seed_make_up_one_curve() {
        let run = |name: &str, achieved: f64| {
            let at = |loss: f64| AtLoss { loss, achieved: achieved - loss, violation: loss };
            (PathBuf::from(name), [0.0, 0.25].map(at).to_vec())
        };
        let runs = [run("a-seed1", 1.0), run("a-seed2", 3.0), run("b", 7.0)];
        let drawn = figure(&runs, true);
        let layers = &drawn.panels[0].layers;
        assert_eq!(layers.len(), 3 + 2);
        assert!(
            matches!(&layers[0].shape, Shape::Line { points, .. } if *points == [(0.0, 2.0), (0.25, 1.75)])
        );
        assert!(
            matches!(&layers[2].shape, Shape::Band(spans) if spans[0] == Span { x: 0.0, low: 1.0, high: 3.0 })
        );
        let root = tempfile::tempdir().unwrap();
        let files = plot_loss(&runs, true, &root.path().join("out")).unwrap();
        assert!(files.iter().all(|file| file.is_file()) && files.len() == 2);
    }
}
