//! Curves of computed experiments, from the tables that they write, drawn like the pictures of `phalanx
//! plot`.

use phalanx_pictures::plot::canvas::{self, Arrangement, Axis, Colour, Figure, Layer, Shape, mark_of_series};
use phalanx_pictures::plot::{self, Values};

use super::distinct;
use super::sheet::Sheet;

/// A pair of axes with curves.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Its x axis.
    pub x: Axis,
    /// Its y axis.
    pub y: Axis,
    /// What is drawn in it.
    pub curves: Vec<Curve>,
}

/// A curve. Curves of the same label, in several panels, have the same colour and stand in the legend once.
#[derive(Debug, Clone)]
pub struct Curve {
    /// Its entry in the legend.
    pub label: String,
    /// Its points; those that are not finite are left out.
    pub points: Vec<(f64, f64)>,
    /// How it is drawn.
    pub style: Style,
}

/// How a curve is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Single measurements: marks, joined by a line.
    Marked,
    /// A bound or a prediction: a broken line.
    Dashed,
}

/// A drawing of panels next to one another, from left to right, with one legend.
pub fn side_by_side(title: impl Into<String>, subtitle: impl Into<String>, panels: &[Panel]) -> Figure {
    let labels = distinct(panels.iter().flat_map(|panel| &panel.curves).map(|curve| &curve.label));
    let number = |curve: &Curve| labels.iter().position(|label| **label == curve.label).unwrap_or(0);
    let panel = |panel: &Panel| {
        let layers = panel.curves.iter().flat_map(|curve| layers(curve, number(curve))).collect();
        canvas::Panel::new(panel.x.clone(), panel.y.clone(), layers)
    };
    Figure {
        title: title.into(),
        subtitle: subtitle.into(),
        panels: panels.iter().map(panel).collect(),
        arrangement: Arrangement::SideBySide,
    }
}

/// Curve number `k` of a figure.
fn layers(curve: &Curve, k: usize) -> Vec<Layer> {
    let (x, y): (Vec<f64>, Vec<f64>) = curve.points.iter().copied().unzip();
    let points = plot::points(&x, &y);
    if points.is_empty() {
        return Vec::new();
    }
    let layer = |shape, label: &str| Layer { shape, colour: Colour::of_series(k), label: label.into() };
    match curve.style {
        Style::Dashed => vec![layer(Shape::Dashes(points), &curve.label)],
        Style::Marked => vec![
            layer(Shape::Marks { points: points.clone(), mark: mark_of_series(k) }, &curve.label),
            layer(Shape::Line { points, width: plot::THICK }, ""),
        ],
    }
}

impl Sheet {
    /// A curve of two columns over the rows that `keep` keeps.
    pub fn curve(
        &self,
        label: &str,
        (x, y): (&str, &str),
        style: Style,
        keep: impl Fn(&[String]) -> bool,
    ) -> Curve {
        Curve { label: label.into(), points: self.points(x, y, keep), style }
    }
}

/// A logarithmic axis.
pub fn log(label: &str) -> Axis {
    Axis::new(label, Values::Log)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(label: &str, style: Style) -> Curve {
        Curve {
            label: label.into(),
            points: vec![(1.0, 1e-12), (2.0, 0.0), (3.0, f64::NAN), (4.0, 10.0)],
            style,
        }
    }

    #[test]
    fn labels_have_one_colour_and_one_entry() {
        let axis = |values| Axis::new("x", values);
        let panel = |values, curves| Panel { x: axis(Values::Whole), y: axis(values), curves };
        let panels = [
            panel(Values::Log, vec![curve("a", Style::Marked), curve("b", Style::Dashed)]),
            panel(Values::Real, vec![curve("b", Style::Dashed), curve("c", Style::Marked)]),
        ];
        let figure = side_by_side("title", "", &panels);
        let colours =
            |panel: usize| figure.panels[panel].layers.iter().map(|layer| layer.colour).collect::<Vec<_>>();
        let of = Colour::of_series;
        assert_eq!((colours(0), colours(1)), (vec![of(0), of(0), of(1)], vec![of(1), of(2), of(2)]));
        let picture = canvas::draw(&[figure]).unwrap().remove(0);
        for part in [">10⁻¹²<", ">a<", ">b<", ">c<", "stroke-dasharray=\"8 6\""] {
            assert!(picture.svg.contains(part), "{part}: {}", picture.svg);
        }
        assert_eq!(picture.svg.matches(">b<").count(), 1);
        assert!(!picture.svg.contains("NaN") && !picture.svg.contains("inf"));
        assert!(picture.png.starts_with(b"\x89PNG"));
    }
}
