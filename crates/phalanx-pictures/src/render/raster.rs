//! Shapes to pixels.

use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, StrokeDash, Transform,
};

use super::shape::{Anchor, Pen, Picture, Point, Shape};
use super::text_mask::{LetterCase, TextMask};
use crate::plot::canvas::Colour;

/// Pixels, row by row, as red, green and blue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub width: usize,
    pub height: usize,
    pub pixels: Vec<[u8; 3]>,
}

/// Turns pictures into images; keeps the texts that it has drawn.
#[derive(Debug, Default)]
pub struct Raster {
    letters: LetterCase,
}

impl Raster {
    /// Draws a picture with `scale` pixels per unit of length.
    pub fn draw(&self, picture: &Picture, scale: f32) -> anyhow::Result<Image> {
        let pixels = |length: f32| (length * scale).ceil().max(1.0) as u32;
        let (width, height) = (pixels(picture.width), pixels(picture.height));
        let mut canvas = Pixmap::new(width, height)
            .ok_or_else(|| anyhow::anyhow!("no room for a picture of {width} × {height} pixels"))?;
        canvas.fill(Color::WHITE);
        for shape in &picture.shapes {
            self.add(&mut canvas, &shape.placed((0.0, 0.0), scale))?;
        }
        // The paper is opaque, and so is everything on it.
        let pixels = canvas.pixels().iter().map(|p| [p.red(), p.green(), p.blue()]).collect();
        Ok(Image { width: width as usize, height: height as usize, pixels })
    }

    fn add(&self, canvas: &mut Pixmap, shape: &Shape) -> anyhow::Result<()> {
        match shape {
            Shape::Disc { centre: (x, y), radius, fill, outline } => {
                paint(canvas, PathBuilder::from_circle(*x, *y, *radius), *fill, *outline);
            }
            Shape::Box { corner: (x, y), size, fill, outline } => {
                let path = Rect::from_xywh(*x, *y, size.0, size.1).map(PathBuilder::from_rect);
                paint(canvas, path, *fill, *outline);
            }
            Shape::Line { points, pen } => paint(canvas, path(points, false), None, Some(*pen)),
            Shape::Area { points, fill } => paint(canvas, path(points, true), Some(*fill), None),
            Shape::Text { at: (x, y), content, size, bold, anchor, colour } => {
                let letters = self.letters.get(content, *bold, *size)?;
                let before = match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => 0.5 * letters.width as f32,
                    Anchor::End => letters.width as f32,
                };
                // They are drawn for whole pixels.
                let left = (x - before).round() as i64;
                stamp(canvas, &letters, (left, y.round() as i64 - i64::from(letters.baseline)), *colour);
            }
        }
        Ok(())
    }
}

/// Letters whose upper left corner is at a pixel.
fn stamp(canvas: &mut Pixmap, letters: &TextMask, (left, top): (i64, i64), colour: Colour) {
    let (width, height) = (i64::from(canvas.width()), i64::from(canvas.height()));
    let pixels = canvas.data_mut();
    for (k, &coverage) in letters.coverage.iter().enumerate() {
        let (x, y) = (left + (k % letters.width) as i64, top + (k / letters.width) as i64);
        if coverage == 0 || !(0..width).contains(&x) || !(0..height).contains(&y) {
            continue;
        }
        let at = 4 * (y * width + x) as usize;
        for (old, new) in pixels[at..at + 3].iter_mut().zip(colour.rgb()) {
            let mixed = u32::from(*old) * u32::from(255 - coverage) + u32::from(new) * u32::from(coverage);
            *old = ((mixed + 127) / 255) as u8;
        }
    }
}

fn path(points: &[Point], closed: bool) -> Option<Path> {
    let (first, rest) = points.split_first()?;
    let mut path = PathBuilder::new();
    path.move_to(first.0, first.1);
    rest.iter().for_each(|point| path.line_to(point.0, point.1));
    if closed {
        path.close();
    }
    path.finish()
}

/// Fills a path and draws along it; none is a shape without extent, of which nothing is seen.
fn paint(canvas: &mut Pixmap, path: Option<Path>, fill: Option<Colour>, outline: Option<Pen>) {
    let Some(path) = path else { return };
    let ink = |colour: Colour| {
        let [red, green, blue] = colour.rgb();
        let mut paint = Paint::default();
        paint.set_color_rgba8(red, green, blue, 255);
        paint
    };
    if let Some(colour) = fill {
        canvas.fill_path(&path, &ink(colour), FillRule::Winding, Transform::identity(), None);
    }
    // A line without width is none here; the crate would draw a hairline.
    if let Some(pen) = outline.filter(|pen| pen.width > 0.0) {
        let dash = pen.dashed.then(|| StrokeDash::new(vec![2.2 * pen.width, 1.8 * pen.width], 0.0)).flatten();
        let line_cap = if pen.dashed { LineCap::Butt } else { LineCap::Round };
        let stroke =
            Stroke { width: pen.width, line_cap, line_join: LineJoin::Round, dash, ..Stroke::default() };
        canvas.stroke_path(&path, &ink(pen.colour), &stroke, Transform::identity(), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(shapes: Vec<Shape>, scale: f32) -> Image {
        Raster::default().draw(&Picture { width: 40.0, height: 30.0, shapes }, scale).unwrap()
    }

    #[test]
    fn a_disc_has_its_area_and_its_colour() {
        let fill = Some(Colour::ALARM);
        let disc = Shape::Disc { centre: (20.0, 15.0), radius: 10.0, fill, outline: None };
        for scale in [1.0, 2.0] {
            let image = draw(vec![disc.clone()], scale);
            assert_eq!((image.width as f32, image.height as f32), (40.0 * scale, 30.0 * scale));
            let [centre, corner] =
                [(20.0, 15.0), (1.0, 1.0)].map(|(x, y): (f32, f32)| (x * scale, y * scale));
            let pixel = |(x, y): (f32, f32)| image.pixels[y as usize * image.width + x as usize];
            assert_eq!((pixel(centre), pixel(corner)), (Colour::ALARM.rgb(), [255; 3]));
            // Blue goes from 255 to 0: how much is missing is the area, with its soft edge.
            let area: f32 = image.pixels.iter().map(|p| f32::from(255 - p[2]) / 255.0).sum();
            let expected = std::f32::consts::PI * (10.0 * scale).powi(2);
            assert!((area / expected - 1.0).abs() < 0.03, "{area} {expected}");
        }
    }

    #[test]
    fn texts_are_placed_by_their_anchor_and_cut_at_the_edge() {
        let text = |anchor, x| Shape::Text {
            at: (x, 20.0),
            content: "HH".into(),
            size: 12.0,
            bold: false,
            anchor,
            colour: Colour::INK,
        };
        let columns = |shape: Shape| {
            let image = draw(vec![shape], 1.0);
            let dark = |x: &usize| (0..image.height).any(|y| image.pixels[y * image.width + x][0] < 128);
            let columns: Vec<usize> = (0..image.width).filter(dark).collect();
            (*columns.first().unwrap_or(&99), *columns.last().unwrap_or(&99))
        };
        let (left, right) = columns(text(Anchor::Start, 5.0));
        assert_eq!(left, 5);
        assert_eq!(columns(text(Anchor::End, 1.0 + right as f32)), (left, right));
        assert_eq!(columns(text(Anchor::Middle, 0.5 * (6.0 + right as f32))), (left, right));
        assert_eq!(columns(text(Anchor::Start, 500.0)), (99, 99));
        assert_eq!(columns(text(Anchor::End, 6.0)).0, 0);
    }

    #[test]
    fn shapes_without_extent_are_no_error() {
        let pen = Pen::new(Colour::INK, 0.0);
        let (fill, outline) = (Some(Colour::INK), Some(pen));
        let shapes = vec![
            Shape::Disc { centre: (5.0, 5.0), radius: 0.0, fill, outline },
            Shape::Box { corner: (5.0, 5.0), size: (0.0, -1.0), fill, outline },
            Shape::Line { points: Vec::new(), pen },
            Shape::Area { points: vec![(f32::NAN, 1.0)], fill: Colour::INK },
        ];
        assert!(draw(shapes, 1.0).pixels.iter().all(|&pixel| pixel == [255; 3]));
    }
}
