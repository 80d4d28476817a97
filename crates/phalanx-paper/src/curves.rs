//! Return and violation while training, as the paper draws them: means over seeds with confidence bands.

use super::setting::Setting;
use phalanx::base::beta::student_quantile;
use phalanx_pictures::plot::canvas::{Colour, Figure, Layer, Mark, Shape};
use phalanx_pictures::plot::{self, Metrics, Point, RETURN, Span, TOTAL_VIOLATION, Values};
use phalanx_pictures::statistics::{CONFIDENCE, deviation, mean};

/// A setting with the metrics of its runs.
pub struct Course<'a> {
    /// What was trained.
    pub setting: &'a Setting,
    /// Its entry in the legend.
    pub label: String,
    /// One per seed.
    pub runs: Vec<Metrics>,
}

/// Return above, total violation below.
pub fn figure(title: &str, courses: &[Course<'_>]) -> Figure {
    let seeds = courses.iter().map(|course| course.runs.len()).max().unwrap_or(0);
    let mut subtitle =
        format!("from training batches; mean over {seeds} seed{}", if seeds == 1 { "" } else { "s" });
    if seeds > 1 {
        subtitle += &format!(" with {:.0} % band", 100.0 * CONFIDENCE);
    }
    if courses.iter().any(|course| course.setting.published().is_some()) {
        subtitle += "; diamonds: where the paper's curves end";
    }
    let panel = |label: &str, values: Values, column: Column| {
        let layers = courses.iter().enumerate().flat_map(|(k, course)| layers(k, course, &column));
        plot::iteration_panel(label, values, layers.collect())
    };
    let returns = Column { values: |run| &run.return_, published: 0, floor: f64::NEG_INFINITY };
    let violations = Column { values: |run| &run.violation_total, published: 1, floor: 0.0 };
    let panels =
        vec![panel(RETURN, Values::Real, returns), panel(TOTAL_VIOLATION, Values::FromZero, violations)];
    plot::stacked(title.into(), &subtitle, panels)
}

/// What is drawn of runs.
struct Column {
    values: fn(&Metrics) -> &[f64],
    /// Its place in what the paper reports.
    published: usize,
    /// No band goes below it.
    floor: f64,
}

fn layers(k: usize, course: &Course<'_>, column: &Column) -> Vec<Layer> {
    let colour = Colour::of_series(k);
    // Smoothed run by run, so that the band is that of what is drawn.
    let smooth = |run: &Metrics| -> Vec<Point> {
        let points = plot::points(&run.iteration, (column.values)(run));
        let reach = plot::mean_reach(points.len());
        if points.len() > 4 * reach { plot::moving_mean(&points, reach) } else { points }
    };
    let runs: Vec<Vec<Point>> = course.runs.iter().map(smooth).collect();
    let rows = runs.iter().map(Vec::len).min().unwrap_or(0);
    let factor = half_width(runs.len());
    let (mut middle, mut band) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    for row in 0..rows {
        let at: Vec<f64> = runs.iter().map(|run| run[row].1).collect();
        let (x, mean, reach) = (runs[0][row].0, mean(&at), factor * deviation(&at));
        middle.push((x, mean));
        band.push(Span { x, low: (mean - reach).max(column.floor), high: mean + reach });
    }
    let mut layers = Vec::new();
    if runs.len() > 1 {
        layers.push(Layer { shape: Shape::Band(plot::thin_spans(band)), colour, label: String::new() });
    }
    let end = course.runs.iter().filter_map(|run| run.iteration.last()).fold(0.0f64, |a, &b| a.max(b));
    layers.push(plot::line(middle, plot::THICK, colour, course.label.clone()));
    if let Some(published) = course.setting.published() {
        let shape = Shape::Marks { points: vec![(end, published[column.published])], mark: Mark::Diamond };
        layers.push(Layer { shape, colour, label: String::new() });
    }
    layers
}

/// By Student's t: how many standard deviations over seeds an interval of the mean reaches.
fn half_width(seeds: usize) -> f64 {
    if seeds < 2 {
        return 0.0;
    }
    student_quantile((seeds - 1) as f64, (1.0 - CONFIDENCE) / 2.0) / (seeds as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_students() {
        assert_eq!(half_width(1), 0.0);
        assert!((half_width(3) - 4.302_652_73 / 3f64.sqrt()).abs() < 1e-6);
        assert!((half_width(5) - 2.776_445_11 / 5f64.sqrt()).abs() < 1e-6);
    }
}
