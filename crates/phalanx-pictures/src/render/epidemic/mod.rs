//! Pictures of an epidemic: people, whom they meet, how they are and what they do about it.

#[cfg(test)]
mod tests;

use super::film::{Entry, Film, Step, ring, ring_legend};
use super::graph_map::GraphMap;
use super::shape::{Pen, Point, Shape};
use crate::plot::canvas::Colour;

/// An episode of an epidemic, or of a part of a large graph.
#[derive(Debug, Clone)]
pub struct EpidemicFilm {
    pub map: GraphMap,
    /// Whether people can be immune.
    pub has_recovered: bool,
    /// One entry per step, of the map's agents. States: 0 susceptible, 1 infected, 2 recovered. Actions: 0
    /// nothing, 1 protect oneself, 2 be treated.
    pub steps: Vec<Step>,
}

/// Of a step: the share of the whole graph that is infected, and the reward up to and including it, mean
/// over steps and over the whole graph.
pub fn status(infected: f64, reward: f64) -> String {
    format!("{:.0} % infected, mean reward so far {reward:.2}", 100.0 * infected).replace('-', "−")
}

const SUSCEPTIBLE: u8 = 0;
pub const INFECTED: u8 = 1;
const PROTECT: u8 = 1;
const TREAT: u8 = 2;

/// The colour of a state; rings have the others.
fn colour(state: u8) -> Colour {
    match state {
        SUSCEPTIBLE => Colour::PAPER,
        INFECTED => Colour::of_series(2),
        _ => Colour::of_series(3).tint(0.7),
    }
}

fn person(centre: Point, radius: f32, state: u8) -> Shape {
    let edge = if state == INFECTED { colour(state) } else { Colour::QUIET.tint(0.7) };
    Shape::Disc { centre, radius, fill: Some(colour(state)), outline: Some(Pen::new(edge, 1.2)) }
}

/// The sign of an action, on a disc of the given radius: a shield, a cross as on ambulances, or nothing.
fn action_mark((x, y): Point, radius: f32, action: u8, state: u8) -> Vec<Shape> {
    let ink = if state == INFECTED { Colour::PAPER } else { Colour::INK };
    let at = |right: f32, down: f32| (x + radius * right, y + radius * down);
    match action {
        PROTECT => {
            let right = [-0.46, 0.46, 0.46, 0.28, 0.0, -0.28, -0.46];
            let down = [-0.48, -0.48, 0.06, 0.36, 0.58, 0.36, 0.06];
            let points = right.into_iter().zip(down).map(|(right, down)| at(right, down)).collect();
            vec![Shape::Area { points, fill: ink }]
        }
        TREAT => {
            let bar = |width: f32, height: f32| {
                Shape::filled(at(-0.5 * width, -0.5 * height), (radius * width, radius * height), ink)
            };
            vec![bar(1.16, 0.4), bar(0.4, 1.16)]
        }
        _ => Vec::new(),
    }
}

/// A contact; one through which somebody may be infected stands out.
fn contact(from: Point, to: Point, states: (u8, u8)) -> Shape {
    let infects = matches!(states, (SUSCEPTIBLE, INFECTED) | (INFECTED, SUSCEPTIBLE));
    let quiet = Pen::new(Colour::QUIET.tint(0.28), 1.0);
    Shape::line(from, to, if infects { Pen::new(colour(INFECTED).tint(0.75), 1.5) } else { quiet })
}

/// The people of a step and their contacts.
pub fn draw(map: &GraphMap, Step { states, actions, kept, .. }: &Step) -> Vec<Shape> {
    let links = map.links.iter();
    let mut shapes: Vec<Shape> =
        links.map(|&(a, b)| contact(map.places[a], map.places[b], (states[a], states[b]))).collect();
    for (k, (&(x, y), &state)) in map.places.iter().zip(states).enumerate() {
        shapes.push(person((x, y), map.radius, state));
        shapes.extend(ring((x, y), map.radius + 2.6, kept.get(k).copied().flatten()));
        let action = actions.get(k).copied().unwrap_or(0);
        shapes.extend(action_mark((x, y), map.radius, action, state));
    }
    shapes.extend(map.numbers());
    shapes
}

impl Film for EpidemicFilm {
    fn steps(&self) -> usize {
        self.steps.len()
    }

    fn size(&self) -> (f32, f32) {
        self.map.size
    }

    fn draw(&self, step: usize) -> Vec<Shape> {
        draw(&self.map, &self.steps[step])
    }

    fn status(&self, step: usize) -> String {
        self.steps[step].status.clone()
    }

    fn legend(&self) -> Vec<Entry> {
        let radius = 7.0;
        let state = |state, label| Entry { sign: vec![person((0.0, 0.0), radius, state)], label };
        let action = |state, action, label| {
            let mut sign = vec![person((0.0, 0.0), radius, state)];
            sign.extend(action_mark((0.0, 0.0), radius, action, state));
            Entry { sign, label }
        };
        let mut entries = vec![state(SUSCEPTIBLE, "susceptible"), state(INFECTED, "infected")];
        entries.extend(self.has_recovered.then(|| state(2, "recovered")));
        entries.push(action(SUSCEPTIBLE, PROTECT, "protects itself"));
        entries.push(action(INFECTED, TREAT, "is treated"));
        if !self.map.links.is_empty() {
            let line = contact((-11.0, 0.0), (11.0, 0.0), (SUSCEPTIBLE, INFECTED));
            entries.push(Entry { sign: vec![line], label: "contact that may infect" });
        }
        entries.extend(self.steps.first().into_iter().flat_map(|step| ring_legend(&step.kept)));
        entries
    }

    fn note(&self) -> Option<String> {
        self.map.note()
    }
}
