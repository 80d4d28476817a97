//! Pictures of worlds that have none of their own: every agent's state by colour and its action by number, on
//! the graph.

use super::film::{Entry, Film, Step, ring, ring_legend};
use super::graph_map::GraphMap;
use super::shape::{Anchor, Pen, Point, Shape};
use crate::plot::canvas::Colour;

/// An episode, or the part of a large graph that is drawn.
#[derive(Debug, Clone)]
pub struct StatesFilm {
    pub map: GraphMap,
    /// The largest number of states that any agent has.
    pub states: usize,
    /// One entry per step, of the map's agents.
    pub steps: Vec<Step>,
}

/// Names in the legend: so many states at the most have an entry each.
const NAMES: [&str; 6] = ["state 0", "state 1", "state 2", "state 3", "state 4", "state 5"];
/// An action as an example for the legend.
const EXAMPLE: u8 = 1;

/// White for state 0, dark for the last one.
fn fill(state: u8, states: usize) -> Colour {
    let share = f64::from(state) / states.saturating_sub(1).max(1) as f64;
    Colour::of_series(0).tint(share.min(1.0))
}

fn disc(centre: Point, radius: f32, fill: Colour) -> Shape {
    Shape::Disc { centre, radius, fill: Some(fill), outline: Some(Pen::new(Colour::QUIET.tint(0.7), 1.2)) }
}

/// The number of an action, in the middle of an agent.
fn number((x, y): Point, radius: f32, action: u8, is_dark: bool) -> Shape {
    let colour = if is_dark { Colour::PAPER } else { Colour::INK };
    let size = (1.15 * radius).min(12.0);
    Shape::Text {
        at: (x, y + 0.36 * size),
        content: action.to_string(),
        size,
        bold: true,
        anchor: Anchor::Middle,
        colour,
    }
}

impl StatesFilm {
    fn agent(&self, centre: Point, radius: f32, state: u8, action: Option<u8>) -> Vec<Shape> {
        let is_dark = 2 * usize::from(state) > self.states;
        let text = action.map(|action| number(centre, radius, action, is_dark));
        std::iter::once(disc(centre, radius, fill(state, self.states))).chain(text).collect()
    }
}

impl Film for StatesFilm {
    fn steps(&self) -> usize {
        self.steps.len()
    }

    fn size(&self) -> (f32, f32) {
        self.map.size
    }

    fn draw(&self, step: usize) -> Vec<Shape> {
        let Step { states, actions, kept, .. } = &self.steps[step];
        let mut shapes: Vec<Shape> = self.map.lines().collect();
        for (k, (&centre, &state)) in self.map.places.iter().zip(states).enumerate() {
            shapes.extend(self.agent(centre, self.map.radius, state, actions.get(k).copied()));
            shapes.extend(ring(centre, self.map.radius + 2.6, kept.get(k).copied().flatten()));
        }
        shapes.extend(self.map.numbers());
        shapes
    }

    fn status(&self, step: usize) -> String {
        self.steps[step].status.clone()
    }

    fn legend(&self) -> Vec<Entry> {
        let radius = 7.0;
        let state =
            |state: usize, label| Entry { sign: self.agent((0.0, 0.0), radius, state as u8, None), label };
        let mut entries: Vec<Entry> = if self.states <= NAMES.len() {
            NAMES.iter().take(self.states).enumerate().map(|(k, name)| state(k, name)).collect()
        } else {
            vec![state(0, NAMES[0]), state(self.states - 1, "the last state")]
        };
        entries
            .push(Entry { sign: self.agent((0.0, 0.0), radius, 0, Some(EXAMPLE)), label: "takes action 1" });
        entries.extend(self.steps.first().into_iter().flat_map(|step| ring_legend(&step.kept)));
        entries
    }

    fn note(&self) -> Option<String> {
        self.map.note()
    }
}

#[cfg(test)]
mod tests {
    use phalanx::graph::Graph;

    use super::*;
    use crate::render::graph_map::tests::graphs;

    fn film(graph: &Graph, states: usize) -> StatesFilm {
        let map = GraphMap::of(graph);
        let drawn = map.agents.len();
        let step = Step {
            states: (0..drawn).map(|k| (k % states) as u8).collect(),
            actions: (0..drawn).map(|k| (k % 3) as u8).collect(),
            kept: vec![Some(true); drawn],
            status: String::new(),
        };
        StatesFilm { map, states, steps: vec![step] }
    }

    #[test]
    fn every_agent_is_drawn_within_the_picture() {
        for graph in graphs() {
            let film = film(&graph, 4);
            let shapes = film.draw(0);
            for shape in &shapes {
                assert!(shape.is_within(film.size()), "{} agents: {shape:?}", graph.agents());
            }
            let discs = shapes.iter().filter(|shape| matches!(shape, Shape::Disc { fill: Some(_), .. }));
            assert_eq!(discs.count(), film.map.agents.len());
        }
    }

    #[test]
    fn no_two_states_have_one_colour() {
        for states in [2, 3, 6, 40] {
            let colours: Vec<Colour> = (0..states).map(|state| fill(state as u8, states)).collect();
            let is_new = |k: &usize| !colours[..*k].contains(&colours[*k]);
            assert_eq!((0..states).filter(is_new).count(), states);
        }
        assert_eq!(film(&Graph::line(3).unwrap(), 3).legend().len(), 3 + 1 + 2);
        assert_eq!(film(&Graph::line(3).unwrap(), 40).legend().len(), 2 + 1 + 2);
    }
}
