//! Drawing: figures of panels of layers, to SVG and PNG. All that is known of the plotting crate (kuva) is in
//! this file and in `render/text_mask.rs`, so that it can be exchanged.
//!
//! Its axes, grid, curves, marks and both back ends are used. Titles, captions and the legend are laid out
//! here, as are ranges and ticks (`scale`): its own put the legend beside the data, turn captions on their
//! side and draw nothing if a range is small.

use std::sync::Arc;

use kuva::backend::raster::RasterBackend;
use kuva::backend::svg::SvgBackend;
use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::plot::line::LineStyle;
/// The shape of a mark.
pub use kuva::plot::scatter::MarkerShape as Mark;
use kuva::plot::scatter::ScatterPlot;
use kuva::plot::{BandPlot, LinePlot};
use kuva::render::annotations::ShadedRegion;
use kuva::render::layout::{Layout, TickFormat};
use kuva::render::plots::Plot;
use kuva::render::render::{Primitive, Scene, TextAnchor, TextSpan, render_legend_at, render_multiple};
use kuva::render::theme::Theme;
use rayon::prelude::*;

pub use super::colour::Colour;
use super::scale::{Scale, Values};
use super::series::{Point, Span};
use super::text::{LONGEST_LABEL, plain, text_width, wrapped};

/// The k-th shape of a series' marks, from 0.
pub fn mark_of_series(k: usize) -> Mark {
    [Mark::Circle, Mark::Square, Mark::Triangle, Mark::Diamond, Mark::TriangleDown][k % 5]
}

/// One thing drawn in a panel. All coordinates are finite.
#[derive(Debug, Clone)]
pub enum Shape {
    /// A curve; a single point is drawn as a mark.
    Line {
        /// From left to right.
        points: Vec<Point>,
        /// In pixels.
        width: f64,
    },
    /// A broken curve.
    Dashes(Vec<Point>),
    /// The area between two curves.
    Band(Vec<Span>),
    /// Upright lines, as for intervals.
    Bars(Vec<Span>),
    /// Marks, without a line through them.
    Marks {
        /// Where they are.
        points: Vec<Point>,
        /// What they look like.
        mark: Mark,
    },
    /// Nothing, but the x axis reaches as far: so that panels below one another have the same one.
    Reach(f64),
    /// A line along y = 0, or along x = 0 in a panel of names.
    ZeroLine,
    /// All that is below zero.
    BelowZero,
}

impl Shape {
    /// What hides more is drawn earlier.
    fn depth(&self) -> u8 {
        match self {
            Shape::BelowZero | Shape::ZeroLine | Shape::Reach(_) => 0,
            Shape::Band(_) => 1,
            Shape::Line { width, .. } if *width < 2.0 => 2,
            Shape::Line { .. } | Shape::Marks { .. } | Shape::Bars(_) => 3,
            // A prediction is seen on top of what it predicts.
            Shape::Dashes(_) => 4,
        }
    }
}

/// A shape with its colour and its entry in the legend.
#[derive(Debug, Clone)]
pub struct Layer {
    /// What is drawn.
    pub shape: Shape,
    /// Its colour.
    pub colour: Colour,
    /// Empty: none.
    pub label: String,
}

/// An axis of a panel.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What it shows.
    pub label: String,
    /// How numbers are placed on it.
    pub values: Values,
}

impl Axis {
    /// With this label.
    pub fn new(label: impl Into<String>, values: Values) -> Axis {
        Axis { label: label.into(), values }
    }
}

/// A pair of axes and what is drawn in it: areas at the back, then thin lines, then thick ones and marks,
/// else as given.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Its x axis.
    pub x: Axis,
    /// Its y axis.
    pub y: Axis,
    /// Names along the y axis, from top to bottom, instead of numbers: at y = 1, 2, …
    pub names: Vec<String>,
    /// What is drawn in it.
    pub layers: Vec<Layer>,
}

impl Panel {
    /// With numbers along both axes.
    pub fn new(x: Axis, y: Axis, layers: Vec<Layer>) -> Panel {
        Panel { x, y, names: Vec::new(), layers }
    }
}

/// How panels are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrangement {
    /// Below one another; they share their x axis.
    Stacked,
    /// Next to one another.
    SideBySide,
}

/// A whole drawing. Layers with the same label stand in the legend once.
#[derive(Debug, Clone)]
pub struct Figure {
    /// The heading.
    pub title: String,
    /// Below it: a line for each of its own, and as many more as it takes.
    pub subtitle: String,
    /// In reading order.
    pub panels: Vec<Panel>,
    /// Where they stand.
    pub arrangement: Arrangement,
}

/// A drawing in both formats.
pub struct Drawing {
    /// As text.
    pub svg: String,
    /// As bytes.
    pub png: Vec<u8>,
}

const WIDTH: f64 = 900.0;
/// Height of a plotting area, alone and among others below it.
const TALL: f64 = 350.0;
const LOW: f64 = 200.0;
const TITLE_SIZE: u32 = 18;
const TEXT_SIZE: u32 = 13;
const TICK_SIZE: u32 = 12;
/// Space around everything and between the panels.
const GAP: f64 = 20.0;
const LEGEND_ROW: f64 = 22.0;
const TITLE_ROW: f64 = 24.0;
const SUBTITLE_ROW: f64 = 18.0;
/// Above a plotting area: the caption of its y axis.
const ABOVE: f64 = 32.0;
/// Below a plotting area: its tick labels, and the caption of its x axis.
const TICK_LABELS: f64 = 26.0;
const CAPTION: f64 = 36.0;
/// Pixels of the PNG per unit of the drawing.
const PNG_SCALE: f32 = 2.0;
/// Entries of a legend, the last of which counts the rest.
const LONGEST_LEGEND: usize = 16;
/// Characters of titles and captions, and of what stands below a title: names of runs may be of any length.
const LONGEST_TITLE: usize = 240;
const LONGEST_SUBTITLE: usize = 1000;

/// Draws figures, on all threads.
pub fn draw(figures: &[Figure]) -> Result<Vec<Drawing>, String> {
    // These one after another: the crate numbers clipping areas as they come, and the same figures shall give
    // the same bytes.
    let scenes: Vec<Scene> = figures.iter().map(scene).collect();
    scenes
        .par_iter()
        .map(|scene| {
            let png = RasterBackend::new().with_scale(PNG_SCALE).render_scene(scene)?;
            let svg = SvgBackend::new().render_scene(scene);
            // Without a view box a browser cuts the drawing off instead of scaling it.
            let view = format!("<svg viewBox=\"0 0 {} {}\" ", scene.width, scene.height);
            Ok(Drawing { svg: svg.replacen("<svg ", &view, 1), png })
        })
        .collect()
}

/// Lays out a figure.
fn scene(figure: &Figure) -> Scene {
    let legend = legend_rows(&legend_entries(figure));
    let (titles, subtitles) = heading(figure);
    let below_titles = GAP + TITLE_ROW * titles.len() as f64;
    let below_heading = below_titles + 10.0 + SUBTITLE_ROW * subtitles.len() as f64;
    let header = below_heading - 4.0 + LEGEND_ROW * legend.len() as f64;
    let stacked = figure.arrangement == Arrangement::Stacked;
    let count = figure.panels.len().max(1);
    let plot_height = if stacked && count > 1 { LOW } else { TALL };
    let panel_width = if stacked { WIDTH } else { WIDTH / count as f64 };
    let row_height = ABOVE + plot_height + TICK_LABELS;
    let captioned = captioned(figure);
    let captions = captioned.iter().filter(|is_captioned| **is_captioned).count();
    let rows = if stacked { count as f64 } else { 1.0 };
    let height = header + row_height * rows + CAPTION * if stacked { captions.max(1) as f64 } else { 1.0 };

    let mut scene = Scene::new(WIDTH, height);
    let theme = theme();
    scene.background_color = Some(theme.background.clone());
    scene.text_color = Some(theme.text_color.clone());
    scene.font_family = theme.font_family.clone();
    for (row, line) in titles.into_iter().enumerate() {
        title(&mut scene, line, GAP + 14.0 + TITLE_ROW * row as f64);
    }
    for (row, line) in subtitles.iter().enumerate() {
        let y = below_titles + 12.0 + SUBTITLE_ROW * row as f64;
        text(&mut scene, line, (GAP, y), TextAnchor::Start, Colour::QUIET);
    }
    for (row, entries) in legend.into_iter().enumerate() {
        let y = below_heading + LEGEND_ROW * row as f64;
        for (x, entry) in entries {
            render_legend_at(&[entry], None, None, false, &mut scene, x, y, 0.0, TEXT_SIZE, &theme);
        }
    }

    let most_ticks = (if stacked { 11 } else { 6 }, if plot_height == LOW { 7 } else { 10 });
    let panels: Vec<ScaledPanel> =
        figure.panels.iter().map(|panel| ScaledPanel::new(panel, most_ticks)).collect();
    // Stacked panels share their left edge, so that iterations are below one another.
    let widest = panels.iter().map(ScaledPanel::left_margin).fold(0.0, f64::max);
    let mut top = header;
    for (k, panel) in panels.iter().enumerate() {
        let left = if stacked { widest } else { panel.left_margin() };
        let drawn = render_multiple(panel.plots(), panel.layout(panel_width, row_height, left, &theme));
        let x = if stacked { 0.0 } else { k as f64 * panel_width };
        scene.defs.extend(drawn.defs);
        scene.add(Primitive::GroupStart {
            transform: Some(format!("translate({x},{top})")),
            title: None,
            extra_attrs: None,
        });
        scene.elements.extend(drawn.elements);
        // The captions are drawn here since the crate would turn that of the y axis on its side, which is
        // hard to read.
        let mut caption = |axis: &Axis, scale: &Scale, at: Point, anchor: TextAnchor| {
            text(&mut scene, &(axis.label.clone() + &scale.unit()), at, anchor, Colour::INK);
        };
        caption(&panel.panel.y, &panel.y, (GAP, ABOVE - 10.0), TextAnchor::Start);
        if captioned[k] {
            let below = (0.5 * (left + panel_width - GAP), row_height + 16.0);
            caption(&panel.panel.x, &panel.x, below, TextAnchor::Middle);
        }
        scene.add(Primitive::GroupEnd);
        if stacked {
            top += row_height + if captioned[k] { CAPTION } else { 0.0 };
        }
    }
    scene
}

/// The lines of the title, and of what stands below it. There is one of each at least.
fn heading(figure: &Figure) -> (Vec<String>, Vec<String>) {
    // Bold letters are wider.
    const BOLD: f64 = 1.1;
    let room = WIDTH - 2.0 * GAP;
    let titles = wrapped(&figure.title, LONGEST_TITLE, TITLE_SIZE, room / BOLD);
    let lines = figure.subtitle.split('\n');
    (titles, lines.flat_map(|line| wrapped(line, LONGEST_SUBTITLE, TEXT_SIZE, room)).collect())
}

/// Which panels have a caption below their x axis: of stacked ones with the same x axis the lowest.
fn captioned(figure: &Figure) -> Vec<bool> {
    let is_captioned = |k: usize| {
        let next = figure.panels.get(k + 1).filter(|_| figure.arrangement == Arrangement::Stacked);
        next.is_none_or(|next| next.x.label != figure.panels[k].x.label)
    };
    (0..figure.panels.len()).map(is_captioned).collect()
}

fn theme() -> Theme {
    Theme {
        axis_color: "#333333".into(),
        tick_color: "#333333".into(),
        text_color: "#222222".into(),
        grid_color: "#e6e6e6".into(),
        font_family: Some("DejaVu Sans, Verdana, Arial, sans-serif".into()),
        ..Theme::light()
    }
}

fn title(scene: &mut Scene, content: String, y: f64) {
    // In a PNG the crate draws bold in spans only.
    let span = TextSpan { bold: true, ..TextSpan::plain(content) };
    let (x, size, anchor) = (GAP, TITLE_SIZE, TextAnchor::Start);
    scene.add(Primitive::RichText { x, y, spans: vec![span], size, anchor, color: None });
}

fn text(scene: &mut Scene, content: &str, (x, y): Point, anchor: TextAnchor, colour: Colour) {
    scene.add(Primitive::Text {
        x,
        y,
        content: plain(content, LONGEST_TITLE),
        size: TEXT_SIZE,
        anchor,
        rotate: None,
        bold: false,
        color: Some(colour.css().as_str().into()),
    });
}

fn legend_entries(figure: &Figure) -> Vec<LegendEntry> {
    let mut entries: Vec<LegendEntry> = Vec::new();
    for layer in figure.panels.iter().flat_map(|panel| &panel.layers) {
        let label = plain(&layer.label, LONGEST_LABEL);
        if label.is_empty() || entries.iter().any(|entry| entry.label == label) {
            continue;
        }
        let (shape, colour) = match &layer.shape {
            Shape::Line { .. } | Shape::Dashes(_) | Shape::Bars(_) | Shape::Reach(_) | Shape::ZeroLine => {
                (LegendShape::Line, layer.colour)
            }
            Shape::Band(_) => (LegendShape::Rect, layer.colour.tint(BAND_OPACITY)),
            Shape::BelowZero => (LegendShape::Rect, layer.colour.tint(SHADE_OPACITY)),
            Shape::Marks { mark, .. } => (LegendShape::Marker(*mark), layer.colour),
        };
        let dasharray = matches!(layer.shape, Shape::Dashes(_)).then(|| DASHES.into());
        entries.push(LegendEntry { label, color: colour.css(), shape, dasharray });
    }
    if entries.len() > LONGEST_LEGEND {
        let label = format!("and {} more", entries.len() - LONGEST_LEGEND + 1);
        entries.truncate(LONGEST_LEGEND - 1);
        entries.push(LegendEntry { label, color: "none".into(), shape: LegendShape::Rect, dasharray: None });
    }
    entries
}

/// The entries in rows, each with its place from the left.
fn legend_rows(entries: &[LegendEntry]) -> Vec<Vec<(f64, LegendEntry)>> {
    let mut rows: Vec<Vec<(f64, LegendEntry)>> = Vec::new();
    let mut x = f64::INFINITY;
    for entry in entries {
        let width = 44.0 + text_width(&entry.label, TEXT_SIZE);
        if x + width > WIDTH {
            rows.push(Vec::new());
            x = GAP - 5.0;
        }
        if let Some(row) = rows.last_mut() {
            row.push((x, entry.clone()));
        }
        x += width;
    }
    rows
}

const BAND_OPACITY: f64 = 0.25;
const SHADE_OPACITY: f64 = 0.1;
const MARK_SIZE: f64 = 4.0;
/// Lengths of the strokes of a broken curve and of the gaps between them, and its width.
const DASHES: &str = "8 6";
const DASH_WIDTH: f64 = 1.8;
const BAR_WIDTH: f64 = 1.5;

/// A panel with its axes found.
struct ScaledPanel<'a> {
    panel: &'a Panel,
    x: Scale,
    y: Scale,
}

impl<'a> ScaledPanel<'a> {
    fn new(panel: &'a Panel, most_ticks: (usize, usize)) -> Self {
        let (mut xs, mut ys) = (Vec::new(), Vec::new());
        for layer in &panel.layers {
            match &layer.shape {
                Shape::Line { points, .. } | Shape::Marks { points, .. } | Shape::Dashes(points) => {
                    xs.extend(points.iter().map(|point| point.0));
                    ys.extend(points.iter().map(|point| point.1));
                }
                Shape::Band(spans) | Shape::Bars(spans) => {
                    xs.extend(spans.iter().map(|span| span.x));
                    ys.extend(spans.iter().flat_map(|span| [span.low, span.high]));
                }
                Shape::ZeroLine if panel.names.is_empty() => ys.push(0.0),
                Shape::ZeroLine => xs.push(0.0),
                Shape::Reach(x) => xs.push(*x),
                Shape::BelowZero => {}
            }
        }
        let x = Scale::fit(xs.into_iter(), panel.x.values, most_ticks.0);
        let mut y = Scale::fit(ys.into_iter(), panel.y.values, most_ticks.1);
        if !panel.names.is_empty() {
            (y.low, y.high, y.step, y.exponent) = (0.4, panel.names.len() as f64 + 0.6, 1.0, 0);
        }
        ScaledPanel { panel, x, y }
    }

    fn left_margin(&self) -> f64 {
        let labels = if self.panel.names.is_empty() { self.y.labels() } else { self.names() };
        GAP + 12.0 + labels.iter().map(|label| text_width(label, TICK_SIZE)).fold(0.0, f64::max)
    }

    /// The names as they are drawn.
    fn names(&self) -> Vec<String> {
        self.panel.names.iter().map(|name| plain(name, 28)).collect()
    }

    /// A point as the plotting crate gets it: in the units of the axes, since it draws no range below 2e-16.
    fn place(&self, (x, y): Point) -> Point {
        let y = if self.panel.names.is_empty() { y } else { self.panel.names.len() as f64 + 1.0 - y };
        (self.x.in_units(self.x.place(x)), self.y.in_units(self.y.place(y)))
    }

    fn layout(&self, width: f64, height: f64, left: f64, theme: &Theme) -> Layout {
        let (x, y) = (&self.x, &self.y);
        let (x_range, y_range) = (x.range(), y.range());
        let format = |scale: &Scale| {
            let scale = scale.clone();
            TickFormat::Custom(Arc::new(move |value| scale.label(value)))
        };
        let mut layout = Layout::new(x_range, y_range)
            .with_width(width)
            .with_height(height)
            .with_force_margins(left, GAP)
            .with_force_margins_y(ABOVE, TICK_LABELS)
            .with_x_axis_min(x_range.0)
            .with_x_axis_max(x_range.1)
            .with_y_axis_min(y_range.0)
            .with_y_axis_max(y_range.1)
            .with_x_tick_step(x.in_units(x.step))
            .with_y_tick_step(y.in_units(y.step))
            .with_x_tick_format(format(x))
            .with_y_tick_format(format(y))
            .with_tick_size(TICK_SIZE)
            .with_theme(theme.clone());
        if !self.panel.names.is_empty() {
            layout = layout.with_y_categories(self.names().into_iter().rev().collect());
        }
        for layer in self.panel.layers.iter().filter(|layer| matches!(layer.shape, Shape::BelowZero)) {
            let region = if self.panel.names.is_empty() {
                ShadedRegion::horizontal(y_range.0, y_range.0.max(0.0))
            } else {
                ShadedRegion::vertical(x_range.0, x_range.0.max(0.0))
            };
            let region = region.with_color(layer.colour.css()).with_opacity(SHADE_OPACITY);
            layout = layout.with_shaded_region(region);
        }
        layout
    }

    fn plots(&self) -> Vec<Plot> {
        let placed = |points: &[Point]| points.iter().map(|&point| self.place(point)).collect::<Vec<_>>();
        // Through places in the units of the axes.
        let curve = |places: Vec<Point>, colour: Colour, width: f64| {
            LinePlot::new().with_data(places).with_color(colour.css()).with_stroke_width(width)
        };
        let marks = |points: &[Point], colour: Colour, mark: Mark| {
            let plot = ScatterPlot::new().with_data(placed(points)).with_color(colour.css());
            Plot::Scatter(plot.with_marker(mark).with_size(MARK_SIZE))
        };
        let one = |plot: Plot| vec![plot];
        let draw = |layer: &Layer| match &layer.shape {
            Shape::Line { points, .. } if points.len() == 1 => one(marks(points, layer.colour, Mark::Circle)),
            Shape::Line { points, width } => one(Plot::Line(curve(placed(points), layer.colour, *width))),
            Shape::Dashes(points) => {
                let style = LineStyle::Custom(DASHES.into());
                one(Plot::Line(curve(placed(points), layer.colour, DASH_WIDTH).with_line_style(style)))
            }
            Shape::Marks { points, mark } => one(marks(points, layer.colour, *mark)),
            Shape::Bars(spans) => {
                let bar = |span: &Span| {
                    let ends = placed(&[(span.x, span.low), (span.x, span.high)]);
                    Plot::Line(curve(ends, layer.colour, BAR_WIDTH))
                };
                spans.iter().map(bar).collect()
            }
            Shape::Band(spans) => {
                let low = spans.iter().map(|span| self.place((span.x, span.low)));
                let high = spans.iter().map(|span| self.place((span.x, span.high)).1);
                let band = BandPlot::new(low.clone().map(|low| low.0), low.map(|low| low.1), high);
                one(Plot::Band(band.with_color(layer.colour.css()).with_opacity(BAND_OPACITY)))
            }
            Shape::ZeroLine => {
                let (x, y) = self.place((0.0, 0.0));
                let ((left, right), (bottom, top)) = (self.x.range(), self.y.range());
                let is_flat = self.panel.names.is_empty();
                let ends = if is_flat { [(left, y), (right, y)] } else { [(x, bottom), (x, top)] };
                one(Plot::Line(curve(ends.into(), layer.colour, 1.2)))
            }
            Shape::BelowZero | Shape::Reach(_) => Vec::new(),
        };
        let mut layers: Vec<&Layer> = self.panel.layers.iter().collect();
        layers.sort_by_key(|layer| layer.shape.depth());
        let mut plots: Vec<Plot> = layers.into_iter().flat_map(draw).collect();
        if plots.is_empty() {
            plots.push(Plot::Line(curve(Vec::new(), Colour::QUIET, 0.0)));
        }
        plots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_can_be_drawn() {
        assert_eq!(plain("a$b\u{7}\n<&>", 60), "a\\$b  <&>");
        let figure = Figure {
            title: "<&>\"'$x$ \u{0}\u{1F600}".into(),
            subtitle: "\u{FFFF}".repeat(500),
            panels: Vec::new(),
            arrangement: Arrangement::Stacked,
        };
        let drawing = draw(&[figure]).unwrap().remove(0);
        assert!(drawing.svg.contains("&lt;&amp;&gt;"));
        assert!(!drawing.svg.contains(['\u{0}', '\u{FFFF}']));
    }

    fn empty(title: &str, subtitle: &str) -> Figure {
        let (title, subtitle) = (title.into(), subtitle.into());
        Figure { title, subtitle, panels: Vec::new(), arrangement: Arrangement::Stacked }
    }

    #[test]
    fn headings_break_into_lines_that_are_seen_whole() {
        let subtitle = "first\nheld fixed: preset synthetic with n = 10, H = 125, B = 5, T = 400 ".repeat(3);
        let figure = empty(&"Pistonball: cumulative constraints ".repeat(4), subtitle.trim_end());
        let (titles, subtitles) = heading(&figure);
        assert!(titles.len() > 1 && subtitles.len() > 3);
        for (lines, size) in [(&titles, TITLE_SIZE), (&subtitles, TEXT_SIZE)] {
            assert!(
                lines.iter().all(|line| text_width(line, size) <= WIDTH - 2.0 * GAP && !line.contains('…'))
            );
        }
        let svg = &draw(&[figure]).unwrap()[0].svg;
        assert!(subtitles.iter().all(|line| svg.contains(line.trim())), "{svg}");
    }

    #[test]
    fn stacked_panels_with_other_x_axes_have_captions_of_their_own() {
        let panel = |label: &str| {
            let bars = Shape::Bars(vec![Span { x: 1.0, low: 2.0, high: 4.0 }]);
            let layer = |shape, label: &str| Layer { shape, colour: Colour::INK, label: label.into() };
            let layers = vec![layer(bars, "interval"), layer(Shape::Reach(80.0), "")];
            Panel::new(Axis::new(label, Values::Real), Axis::new("y", Values::Real), layers)
        };
        let panels = vec![panel("iteration"), panel("iteration"), panel("share of training")];
        let figure = Figure { panels, ..empty("title", "") };
        assert_eq!(captioned(&figure), [false, true, true]);
        let svg = &draw(&[figure]).unwrap()[0].svg;
        assert_eq!((svg.matches(">iteration<").count(), svg.matches(">interval<").count()), (1, 1));
        assert_eq!(svg.matches(">80<").count(), 3, "every axis reaches as far");
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn long_legends_are_cut() {
        let layer = |k: usize| Layer {
            shape: Shape::ZeroLine,
            colour: Colour::of_series(k),
            label: format!("constraint number {k}"),
        };
        let axis = Axis::new("x", Values::Real);
        let panel =
            Panel { x: axis.clone(), y: axis, names: Vec::new(), layers: (0..100).map(layer).collect() };
        let figure = Figure {
            title: String::new(),
            subtitle: String::new(),
            panels: vec![panel],
            arrangement: Arrangement::Stacked,
        };
        let entries = legend_entries(&figure);
        assert_eq!((entries.len(), entries[15].label.as_str()), (16, "and 85 more"));
        for row in legend_rows(&entries) {
            assert!(row.iter().all(|(x, entry)| x + text_width(&entry.label, TEXT_SIZE) < WIDTH));
        }
    }

    #[test]
    fn the_same_figure_gives_the_same_picture() {
        let line = Layer {
            shape: Shape::Line { points: vec![(0.0, 1.0), (1.0, 3.0)], width: 2.0 },
            colour: Colour::ALARM,
            label: "line".into(),
        };
        let axis = Axis::new("x", Values::Real);
        let panel = Panel { x: axis.clone(), y: axis, names: Vec::new(), layers: vec![line] };
        let figure = Figure {
            title: "t".into(),
            subtitle: "s".into(),
            panels: vec![panel.clone(), panel],
            arrangement: Arrangement::SideBySide,
        };
        let drawings = draw(&[figure.clone(), figure]).unwrap();
        assert_eq!(drawings[0].png, drawings[1].png);
    }
}
