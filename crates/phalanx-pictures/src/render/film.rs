//! Frames and sheets: what a world draws, with its title, its status and its legend around it.

use super::shape::{Pen, Picture, Point, Shape};
use crate::plot::canvas::Colour;
use crate::plot::text::{shortened, text_width};

/// An episode that can be drawn, one step at a time. This is all that a world has to provide.
pub trait Film: Sync {
    /// Steps of the episode.
    fn steps(&self) -> usize;

    /// Width and height of a step's drawing; the width is at most [`WIDEST`].
    fn size(&self) -> (f32, f32);

    /// The drawing of a step, from 0.
    fn draw(&self, step: usize) -> Vec<Shape>;

    /// What has been achieved up to and including a step, in a few words.
    fn status(&self, step: usize) -> String;

    /// Moments within a step that an animation shows, the last of which is the step's own.
    fn moments_per_step(&self) -> usize {
        1
    }

    /// Drawing and status of such a moment, from 0.
    fn moment(&self, step: usize, _moment: usize) -> (Vec<Shape>, String) {
        (self.draw(step), self.status(step))
    }

    /// What the drawing's signs mean.
    fn legend(&self) -> Vec<Entry>;

    /// What is not in the drawing, if anything.
    fn note(&self) -> Option<String>;

    /// Steps that are worth a picture of their own, by name.
    fn moments(&self) -> Vec<(&'static str, usize)> {
        Vec::new()
    }
}

/// One step of a world whose states and actions are seen; an entry per agent that is drawn.
#[derive(Debug, Clone, Default)]
pub struct Step {
    pub states: Vec<u8>,
    /// Taken in these states. Empty if nobody has acted.
    pub actions: Vec<u8>,
    /// Whether the agent's constraints hold for this episode so far; none if it has none. Or empty.
    pub kept: Vec<Option<bool>>,
    /// What has been achieved up to and including this step, in a few words.
    pub status: String,
}

/// A sign, drawn around (0, 0) within 22 × 16, and its meaning.
#[derive(Debug, Clone)]
pub struct Entry {
    pub sign: Vec<Shape>,
    pub label: &'static str,
}

/// The line around an agent; none if it has no constraints.
pub fn ring_pen(kept: Option<bool>) -> Option<Pen> {
    Some(match kept? {
        true => Pen::new(Colour::of_series(1).tint(0.7), 1.6),
        false => Pen::new(Colour::ALARM, 2.0),
    })
}

/// A ring of the given radius.
pub fn ring(centre: Point, radius: f32, kept: Option<bool>) -> Option<Shape> {
    ring_pen(kept).map(|pen| Shape::Disc { centre, radius, fill: None, outline: Some(pen) })
}

/// What rings mean, if there are any.
pub fn ring_legend(kept: &[Option<bool>]) -> Vec<Entry> {
    let entry = |kept, label| Entry { sign: ring((0.0, 0.0), 6.5, Some(kept)).into_iter().collect(), label };
    if kept.iter().all(Option::is_none) {
        return Vec::new();
    }
    vec![entry(true, "constraints kept so far"), entry(false, "constraint broken so far")]
}

/// Widest drawing of a step; with [`MARGIN`] on both sides a picture is at most 900 wide.
pub const WIDEST: f32 = 868.0;
/// Narrowest picture: titles and legends need their room.
const NARROWEST: f32 = 460.0;
const MARGIN: f32 = 16.0;
/// Room between the panels of a sheet.
const GAP: f32 = 20.0;
const TITLE: f32 = 15.0;
const TEXT: f32 = 12.0;
const LEGEND_ROW: f32 = 20.0;
/// A panel of a sheet is at least this part of its own size.
const SMALLEST_SCALE: f32 = 0.46;
const MOST_COLUMNS: usize = 4;

/// One step.
pub fn frame(film: &dyn Film, title: &str, step: usize) -> Picture {
    whole(film, title, &film.draw(step), &status(film, step))
}

/// One moment of an animation.
pub fn moment(film: &dyn Film, title: &str, step: usize, moment: usize) -> Picture {
    let (shapes, status) = film.moment(step, moment);
    whole(film, title, &shapes, &numbered(film, step, &status))
}

/// A film of one step that is no step of anything.
pub fn single(film: &dyn Film, title: &str) -> Picture {
    whole(film, title, &film.draw(0), &film.status(0))
}

fn whole(film: &dyn Film, title: &str, shapes: &[Shape], status: &str) -> Picture {
    let (width, height) = film.size();
    let mut page = Page::new(film, title, width);
    page.line(status, Colour::INK);
    page.y += 10.0;
    page.picture.place(shapes, (page.left(width), page.y), 1.0);
    page.y += height + 10.0;
    page.finish(film)
}

/// Several steps in one picture.
pub fn sheet(film: &dyn Film, title: &str, steps: &[usize]) -> Picture {
    let (width, height) = film.size();
    // A status needs its room, too: drawings may be narrower. A part of the gap will do for it.
    let text = |&step: &usize| text_width(&status(film, step), TEXT as u32) as f32 - 0.6 * GAP;
    let text = steps.iter().map(text).fold(0.0, f32::max).min(WIDEST);
    let fitting = (WIDEST + GAP) / ((SMALLEST_SCALE * width).max(text) + GAP);
    let columns = (fitting as usize).clamp(1, MOST_COLUMNS).min(steps.len()).max(1);
    let gaps = GAP * (columns - 1) as f32;
    let scale = ((WIDEST - gaps) / (columns as f32 * width)).min(1.0);
    let (panel_width, panel_height) = ((scale * width).max(text), scale * height);
    let mut page = Page::new(film, title, columns as f32 * panel_width + gaps);
    page.y += 6.0;
    let left = page.left(columns as f32 * panel_width + gaps);
    for row in steps.chunks(columns) {
        page.y += TEXT;
        for (column, &step) in row.iter().enumerate() {
            let x = left + column as f32 * (panel_width + GAP);
            page.picture.write((x, page.y), status(film, step), TEXT, false, Colour::INK);
            page.picture.place(&film.draw(step), (x, page.y + 8.0), scale);
        }
        page.y += 8.0 + panel_height + GAP;
    }
    page.y += 12.0 - GAP;
    page.finish(film)
}

fn status(film: &dyn Film, step: usize) -> String {
    numbered(film, step, &film.status(step))
}

fn numbered(film: &dyn Film, step: usize, status: &str) -> String {
    format!("step {} of {}:  {status}", step + 1, film.steps())
}

/// A picture that is filled from top to bottom.
struct Page {
    picture: Picture,
    y: f32,
}

impl Page {
    /// A page for drawings of the given width, with its title.
    fn new(film: &dyn Film, title: &str, width: f32) -> Page {
        let title = shortened(title, 70);
        let longest = 1.1 * text_width(&title, TITLE as u32) as f32;
        let width = width.max(longest.min(WIDEST)).max(NARROWEST) + 2.0 * MARGIN;
        let mut page =
            Page { picture: Picture { width, height: 0.0, shapes: Vec::new() }, y: MARGIN + TITLE - 3.0 };
        page.picture.write((MARGIN, page.y), title, TITLE, true, Colour::INK);
        if let Some(note) = film.note() {
            page.line(&note, Colour::QUIET);
        }
        page
    }

    /// Adds a line of text.
    fn line(&mut self, text: &str, colour: Colour) {
        self.y += TEXT + 8.0;
        self.picture.write((MARGIN, self.y), text, TEXT, false, colour);
    }

    /// Where a drawing of the given width begins to be in the middle.
    fn left(&self, width: f32) -> f32 {
        (0.5 * (self.picture.width - width)).round()
    }

    /// Adds the legend.
    fn finish(mut self, film: &dyn Film) -> Picture {
        let mut x = MARGIN;
        for Entry { sign, label } in film.legend() {
            let width = 30.0 + text_width(label, TEXT as u32) as f32 + 16.0;
            if x > MARGIN && x + width > self.picture.width - MARGIN {
                x = MARGIN;
                self.y += LEGEND_ROW;
            }
            let middle = self.y + 0.5 * LEGEND_ROW;
            self.picture.place(&sign, (x + 11.0, middle), 1.0);
            self.picture.write((x + 28.0, middle + 4.0), label, TEXT, false, Colour::QUIET);
            x += width;
        }
        self.picture.height = (self.y + LEGEND_ROW + MARGIN - 6.0).ceil();
        self.picture.width = self.picture.width.ceil();
        self.picture
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Blank {
        size: (f32, f32),
    }

    impl Film for Blank {
        fn steps(&self) -> usize {
            30
        }
        fn size(&self) -> (f32, f32) {
            self.size
        }
        fn draw(&self, _step: usize) -> Vec<Shape> {
            vec![Shape::square((0.5 * self.size.0, 0.5 * self.size.1), 1.0, Some(Colour::ALARM), None)]
        }
        fn status(&self, step: usize) -> String {
            format!("{step} done")
        }
        fn legend(&self) -> Vec<Entry> {
            vec![Entry { sign: Vec::new(), label: "a sign with a meaning of some length" }; 5]
        }
        fn note(&self) -> Option<String> {
            None
        }
    }

    fn panels(picture: &Picture) -> Vec<Shape> {
        picture.shapes.iter().filter(|shape| matches!(shape, Shape::Box { .. })).cloned().collect()
    }

    #[test]
    fn no_picture_is_wider_than_900() {
        for size in [(20.0, 20.0), (600.0, 600.0), (WIDEST, 50.0)] {
            let film = Blank { size };
            let title = "a name ".repeat(40);
            let steps: Vec<usize> = (0..30).collect();
            for picture in [frame(&film, &title, 3), sheet(&film, &title, &steps), sheet(&film, "t", &[7])] {
                assert!(picture.width <= 900.0 && picture.width >= NARROWEST, "{}", picture.width);
                assert!(picture.height > size.1.min(200.0));
                for shape in panels(&picture) {
                    let Shape::Box { corner: (x, y), .. } = shape else { unreachable!() };
                    assert!((0.0..picture.width).contains(&x) && (0.0..picture.height).contains(&y));
                }
            }
        }
    }

    #[test]
    fn a_status_does_not_run_into_the_next() {
        let picture = sheet(&Blank { size: (40.0, 40.0) }, "t", &[0, 9, 19, 29]);
        let statuses: Vec<(Point, f32)> = picture
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Text { at, content, .. } if content.starts_with("step") => {
                    Some((*at, text_width(content, TEXT as u32) as f32))
                }
                _ => None,
            })
            .collect();
        assert_eq!(statuses.len(), 4);
        for pair in statuses.windows(2) {
            let [((x, y), width), ((next, same), _)] = pair else { unreachable!() };
            assert!(y < same || x + width < *next, "{statuses:?}");
        }
    }

    #[test]
    fn a_sheet_has_every_step_once() {
        let film = Blank { size: (600.0, 400.0) };
        let picture = sheet(&film, "t", &[0, 4, 9, 29]);
        let texts: Vec<&str> = picture
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Text { content, .. } if content.starts_with("step") => Some(content.as_str()),
                _ => None,
            })
            .collect();
        let expected = ["step 1 of 30:  0 done", "step 5 of 30:  4 done", "step 10 of 30:  9 done"];
        assert_eq!((&texts[..3], texts[3]), (&expected[..], "step 30 of 30:  29 done"));
        assert_eq!(panels(&picture).len(), 4);
    }
}
