//! Curves of computed experiments, from the tables that they write.

use phalanx_pictures::plot::Values;
use phalanx_pictures::plot::canvas::Axis;
use phalanx_pictures::plot::figure::{Curve, Style};

use super::sheet::Sheet;

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
