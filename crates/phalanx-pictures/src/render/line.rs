//! Pictures of the synthetic line: agents in a row, or in several below one another.

use super::film::{Entry, Film, Step, WIDEST, ring, ring_legend};
use super::shape::{Anchor, Pen, Point, Shape};
use crate::plot::canvas::Colour;

/// An episode of the line, or of the first part of a long one.
#[derive(Debug, Clone)]
pub struct LineFilm {
    /// Agents of the whole line.
    pub agents: usize,
    /// One entry per step; those of one film are equally long and not empty. States and actions are 0 or 1.
    pub steps: Vec<Step>,
}

/// More agents than this are not drawn.
pub const MOST_AGENTS: usize = 400;
/// Agents side by side.
const A_ROW: usize = 40;
/// Left of the rows, if there are several: the number of the first agent.
const ROW_LABEL: f32 = 36.0;

/// In state 1.
const ON: Colour = Colour::of_series(0);

fn agent(centre: Point, radius: f32, state: u8) -> Shape {
    let fill = if state == 0 { Colour::PAPER } else { ON };
    let outline = if state == 0 { Colour::QUIET.tint(0.7) } else { ON };
    Shape::Disc { centre, radius, fill: Some(fill), outline: Some(Pen::new(outline, 1.4)) }
}

/// The sign of an action: a triangle that points up for 1, a short stroke for 0.
fn action_mark((x, y): Point, action: u8) -> Shape {
    if action == 0 {
        return Shape::line((x - 2.5, y), (x + 2.5, y), Pen::new(Colour::QUIET.tint(0.5), 1.4));
    }
    let points = vec![(x - 4.2, y + 3.2), (x + 4.2, y + 3.2), (x, y - 4.2)];
    Shape::Area { points, fill: Colour::of_series(4) }
}

impl LineFilm {
    fn drawn(&self) -> usize {
        self.steps.first().map_or(0, |step| step.states.len())
    }

    fn wraps(&self) -> bool {
        self.drawn() > A_ROW
    }

    /// Distance between neighbours.
    fn pitch(&self) -> f32 {
        let room = if self.wraps() { WIDEST - ROW_LABEL } else { WIDEST };
        (room / self.drawn().clamp(1, A_ROW) as f32).min(60.0)
    }

    fn radius(&self) -> f32 {
        (0.5 * self.pitch() - 4.5).min(17.0)
    }

    /// Each agent has its number below it if there is room.
    fn is_numbered(&self) -> bool {
        !self.wraps() && self.pitch() >= 24.0
    }

    fn row_height(&self) -> f32 {
        2.0 * self.radius() + if self.is_numbered() { 42.0 } else { 30.0 }
    }

    /// The centre of an agent.
    pub fn centre(&self, agent: usize) -> Point {
        let left = if self.wraps() { ROW_LABEL } else { 0.0 };
        let (row, column) = (agent / A_ROW, agent % A_ROW);
        let y = row as f32 * self.row_height() + self.radius() + 5.0;
        (left + (column as f32 + 0.5) * self.pitch(), y)
    }
}

impl Film for LineFilm {
    fn steps(&self) -> usize {
        self.steps.len()
    }

    fn size(&self) -> (f32, f32) {
        let rows = self.drawn().div_ceil(A_ROW).max(1);
        let left = if self.wraps() { ROW_LABEL } else { 0.0 };
        (left + self.drawn().min(A_ROW) as f32 * self.pitch(), rows as f32 * self.row_height())
    }

    fn draw(&self, step: usize) -> Vec<Shape> {
        let Step { states, actions, kept, .. } = &self.steps[step];
        let radius = self.radius();
        let mut shapes = Vec::new();
        for i in 1..states.len() {
            if i % A_ROW != 0 {
                let pen = Pen::new(Colour::QUIET.tint(0.3), 1.4);
                // From ring to ring.
                let ((left, y), (right, _)) = (self.centre(i - 1), self.centre(i));
                shapes.push(Shape::line((left + radius + 3.5, y), (right - radius - 3.5, y), pen));
            }
        }
        for (i, &state) in states.iter().enumerate() {
            let (x, y) = self.centre(i);
            let label = |at, anchor| Shape::text(at, i.to_string(), 11.0, anchor, Colour::QUIET);
            shapes.push(agent((x, y), radius, state));
            shapes.extend(ring((x, y), radius + 3.0, kept.get(i).copied().flatten()));
            shapes.extend(actions.get(i).map(|&action| action_mark((x, y + radius + 11.0), action)));
            if self.is_numbered() {
                shapes.push(label((x, y + radius + 29.0), Anchor::Middle));
            } else if self.wraps() && i % A_ROW == 0 {
                shapes.push(label((ROW_LABEL - 6.0, y + 4.0), Anchor::End));
            }
        }
        shapes
    }

    fn status(&self, step: usize) -> String {
        self.steps[step].status.clone()
    }

    fn legend(&self) -> Vec<Entry> {
        let mut entries = vec![
            Entry { sign: vec![agent((0.0, 0.0), 6.0, 1)], label: "state 1" },
            Entry { sign: vec![agent((0.0, 0.0), 6.0, 0)], label: "state 0" },
            Entry { sign: vec![action_mark((0.0, 0.0), 1)], label: "acts (1)" },
            Entry { sign: vec![action_mark((0.0, 0.0), 0)], label: "does not (0)" },
        ];
        entries.extend(self.steps.first().into_iter().flat_map(|step| ring_legend(&step.kept)));
        entries
    }

    fn note(&self) -> Option<String> {
        let drawn = self.drawn();
        (drawn < self.agents).then(|| format!("the first {drawn} of {} agents", self.agents))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn film(drawn: usize) -> LineFilm {
        let step = Step {
            states: vec![1; drawn],
            actions: vec![1; drawn],
            kept: vec![None; drawn],
            status: String::new(),
        };
        LineFilm { agents: drawn, steps: vec![step] }
    }

    #[test]
    fn agents_do_not_overlap_and_stay_in_the_picture() {
        for drawn in [2, 10, 31, 40, 41, 399, MOST_AGENTS] {
            let film = film(drawn);
            let (width, height) = film.size();
            assert!(width <= WIDEST + 0.01, "{drawn}: {width}");
            let edge = film.radius() + 4.0;
            for i in 0..drawn {
                let (x, y) = film.centre(i);
                assert!(x - edge >= -0.01 && x + edge <= width + 0.01, "{drawn}: {x} of {width}");
                assert!(y - edge >= 0.0 && y + edge <= height, "{drawn}: {y} of {height}");
                if i > 0 {
                    let (left, above) = film.centre(i - 1);
                    assert!((x - left).hypot(y - above) >= 2.0 * edge - 0.01, "{drawn}, {i}");
                }
            }
        }
    }

    #[test]
    fn rows_have_at_least_forty_agents() {
        let film = film(100);
        let row = |i| film.centre(i).1;
        assert_eq!(row(0), row(39));
        assert!(row(40) > row(39) && row(80) > row(79));
    }

    #[test]
    fn rings_are_explained_only_where_there_are_some() {
        assert_eq!(film(3).legend().len(), 4);
        let mut constrained = film(3);
        constrained.steps[0].kept[1] = Some(false);
        assert_eq!(constrained.legend().len(), 6);
    }

    #[test]
    fn what_is_left_out_is_said() {
        let mut film = film(MOST_AGENTS);
        assert_eq!(film.note(), None);
        film.agents = 5000;
        assert_eq!(film.note().unwrap(), "the first 400 of 5000 agents");
    }
}
