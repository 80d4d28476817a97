//! What pictures are made of. Lengths are in pixels of a picture at its own size; y points down.

use crate::plot::canvas::Colour;

/// A place, from the left and from the top.
pub type Point = (f32, f32);

/// A line around or between things.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pen {
    pub colour: Colour,
    pub width: f32,
    pub dashed: bool,
}

impl Pen {
    pub fn new(colour: Colour, width: f32) -> Pen {
        Pen { colour, width, dashed: false }
    }
}

/// Which part of a text is at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// One thing to draw.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    Disc {
        centre: Point,
        radius: f32,
        fill: Option<Colour>,
        outline: Option<Pen>,
    },
    /// `corner` is the upper left one.
    Box {
        corner: Point,
        size: Point,
        fill: Option<Colour>,
        outline: Option<Pen>,
    },
    Line {
        points: Vec<Point>,
        pen: Pen,
    },
    Area {
        points: Vec<Point>,
        fill: Colour,
    },
    /// `at` is on the baseline.
    Text {
        at: Point,
        content: String,
        size: f32,
        bold: bool,
        anchor: Anchor,
        colour: Colour,
    },
}

impl Shape {
    /// A square around `centre`.
    pub fn square(centre: Point, side: f32, fill: Option<Colour>, outline: Option<Pen>) -> Shape {
        Shape::Box {
            corner: (centre.0 - side / 2.0, centre.1 - side / 2.0),
            size: (side, side),
            fill,
            outline,
        }
    }

    /// A straight line.
    pub fn line(from: Point, to: Point, pen: Pen) -> Shape {
        Shape::Line { points: vec![from, to], pen }
    }

    /// A text in plain letters.
    pub fn text(at: Point, content: impl Into<String>, size: f32, anchor: Anchor, colour: Colour) -> Shape {
        Shape::Text { at, content: content.into(), size, bold: false, anchor, colour }
    }

    /// A filled box without a line around it; `corner` is the upper left one.
    pub fn filled(corner: Point, size: Point, fill: Colour) -> Shape {
        Shape::Box { corner, size, fill: Some(fill), outline: None }
    }

    /// A filled disc without a line around it.
    pub fn dot(centre: Point, radius: f32, fill: Colour) -> Shape {
        Shape::Disc { centre, radius, fill: Some(fill), outline: None }
    }

    /// An arrow whose tip is at `to`.
    pub fn arrow(from: Point, to: Point, pen: Pen) -> Vec<Shape> {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy).max(f32::EPSILON);
        let (ux, uy) = (dx / length, dy / length);
        let head = (4.0 * pen.width).min(0.6 * length);
        let neck = (to.0 - head * ux, to.1 - head * uy);
        let side = 0.5 * head;
        let wings = [(neck.0 - side * uy, neck.1 + side * ux), (neck.0 + side * uy, neck.1 - side * ux)];
        // The shaft goes a little into the head: two edges that only touch would shine through.
        let end = (to.0 - 0.9 * head * ux, to.1 - 0.9 * head * uy);
        vec![
            Shape::line(from, end, pen),
            Shape::Area { points: vec![to, wings[0], wings[1]], fill: pen.colour },
        ]
    }

    /// A sign of strokes within a square of the given side.
    pub fn sign(strokes: Strokes, (x, y): Point, side: f32, pen: Pen) -> Vec<Shape> {
        let points =
            |stroke: &&[Point]| stroke.iter().map(|(dx, dy)| (x + dx * side, y + dy * side)).collect();
        strokes.iter().map(|stroke| Shape::Line { points: points(stroke), pen }).collect()
    }

    /// The same, `scale` times as large and then moved by `by`.
    pub fn placed(&self, by: Point, scale: f32) -> Shape {
        let place = |point: &mut Point| *point = (point.0 * scale + by.0, point.1 * scale + by.1);
        let widen = |pen: &mut Pen| pen.width *= scale;
        let mut placed = self.clone();
        match &mut placed {
            Shape::Disc { centre, radius, outline, .. } => {
                place(centre);
                *radius *= scale;
                outline.iter_mut().for_each(widen);
            }
            Shape::Box { corner, size, outline, .. } => {
                place(corner);
                *size = (size.0 * scale, size.1 * scale);
                outline.iter_mut().for_each(widen);
            }
            Shape::Line { points, pen } => {
                points.iter_mut().for_each(place);
                widen(pen);
            }
            Shape::Area { points, .. } => points.iter_mut().for_each(place),
            Shape::Text { at, size, .. } => {
                place(at);
                *size *= scale;
            }
        }
        placed
    }
}

#[cfg(test)]
impl Shape {
    /// Whether a drawing of the given width and height holds it, but for the width of lines and letters.
    pub fn is_within(&self, (width, height): Point) -> bool {
        let inside =
            |(x, y): Point| (-0.01..=width + 0.01).contains(&x) && (-0.01..=height + 0.01).contains(&y);
        match self {
            Shape::Disc { centre: (x, y), radius: r, .. } => inside((x - r, y - r)) && inside((x + r, y + r)),
            Shape::Box { corner, size, .. } => {
                inside(*corner) && inside((corner.0 + size.0, corner.1 + size.1))
            }
            Shape::Line { points, .. } | Shape::Area { points, .. } => points.iter().copied().all(inside),
            Shape::Text { at, .. } => inside(*at),
        }
    }
}

/// A small sign, within a square of side 1 around (0, 0).
pub type Strokes = &'static [&'static [Point]];

pub const CROSS: Strokes = &[&[(-0.5, -0.5), (0.5, 0.5)], &[(-0.5, 0.5), (0.5, -0.5)]];
pub const TICK: Strokes = &[&[(-0.55, 0.05), (-0.15, 0.45), (0.55, -0.4)]];

/// Shapes on white paper, later ones on top.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    pub width: f32,
    pub height: f32,
    pub shapes: Vec<Shape>,
}

impl Picture {
    /// Adds a text.
    pub fn write(&mut self, at: Point, content: impl Into<String>, size: f32, bold: bool, colour: Colour) {
        let (content, anchor) = (content.into(), Anchor::Start);
        self.shapes.push(Shape::Text { at, content, size, bold, anchor, colour });
    }

    /// Adds shapes, `scale` times as large, with their origin at `by`.
    pub fn place(&mut self, shapes: &[Shape], by: Point, scale: f32) {
        self.shapes.extend(shapes.iter().map(|shape| shape.placed(by, scale)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_ends_where_it_should_and_its_head_is_symmetric() {
        let pen = Pen::new(Colour::INK, 2.0);
        let arrow = Shape::arrow((10.0, 10.0), (40.0, 50.0), pen);
        let [Shape::Line { points: shaft, .. }, Shape::Area { points: head, .. }] = &arrow[..] else {
            panic!("{arrow:?}")
        };
        assert_eq!((shaft[0], head[0]), ((10.0, 10.0), (40.0, 50.0)));
        let distance = |a: Point, b: Point| (a.0 - b.0).hypot(a.1 - b.1);
        assert!((distance(head[0], head[1]) - distance(head[0], head[2])).abs() < 1e-4);
        // 8 from the tip to the middle of its back, which is as wide.
        assert!((distance(head[1], head[2]) - 8.0).abs() < 1e-4);
        assert!((distance(shaft[1], head[0]) - 7.2).abs() < 1e-4);
    }

    #[test]
    fn placing_scales_about_the_origin_and_then_moves() {
        let disc = Shape::Disc {
            centre: (10.0, 20.0),
            radius: 4.0,
            fill: None,
            outline: Some(Pen::new(Colour::INK, 2.0)),
        };
        let expected = Shape::Disc {
            centre: (105.0, 10.0),
            radius: 2.0,
            fill: None,
            outline: Some(Pen::new(Colour::INK, 1.0)),
        };
        assert_eq!(disc.placed((100.0, 0.0), 0.5), expected);
    }
}
