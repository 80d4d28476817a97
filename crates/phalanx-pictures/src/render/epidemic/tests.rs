use phalanx::graph::Graph;

use super::*;
use crate::render::film::WIDEST;
use crate::render::graph_map::tests::graphs;

/// A film of one step in which states and actions take turns.
fn film(graph: &Graph) -> EpidemicFilm {
    let map = GraphMap::of(graph);
    let drawn = map.agents.len();
    let step = Step {
        states: (0..drawn).map(|k| (k % 3) as u8).collect(),
        actions: (0..drawn).map(|k| (k / 3 % 3) as u8).collect(),
        kept: vec![Some(true); drawn],
        status: status(1.0 / 3.0, -0.125),
    };
    EpidemicFilm { map, has_recovered: true, steps: vec![step] }
}

#[test]
fn people_do_not_overlap_and_everything_stays_in_the_picture() {
    for graph in graphs() {
        let film = film(&graph);
        let (width, height) = film.size();
        assert!(width <= WIDEST + 0.01 && height <= WIDEST + 0.01, "{width} × {height}");
        for shape in film.draw(0) {
            assert!(shape.is_within((width, height)), "{} people: {shape:?}", graph.agents());
        }
        let GraphMap { places, radius, .. } = &film.map;
        for i in 0..places.len() {
            for j in 0..i {
                let apart = (places[i].0 - places[j].0).hypot(places[i].1 - places[j].1);
                assert!(apart > 2.0 * radius, "{} people: {i} and {j}: {apart}", graph.agents());
            }
        }
    }
}

#[test]
fn those_nearest_to_person_0_are_drawn_of_a_large_network() {
    // Agents 0 to 599 are a ring: 200 on either side of person 0, but for the last.
    let film = film(&Graph::ring(600).unwrap());
    let expected: Vec<usize> = (0..=200).chain(401..600).collect();
    assert_eq!(film.map.agents, expected);
    assert_eq!(film.note().unwrap(), "400 of 600 agents: those nearest to agent 0");
    assert_eq!(film.map.links.len(), 399);
}

#[test]
fn too_many_links_are_left_out() {
    let film = film(&Graph::complete(100).unwrap());
    assert_eq!(film.note().unwrap(), "their 4950 links are left out");
    assert!(film.map.links.is_empty());
    assert!(film.legend().iter().all(|entry| !entry.label.starts_with("contact")));
}

#[test]
fn contacts_stand_out_where_somebody_may_be_infected() {
    let mut film = film(&Graph::line(4).unwrap());
    film.steps[0].states = vec![0, 1, 1, 2];
    let widths = |film: &EpidemicFilm| -> Vec<f32> {
        let width = |shape: &Shape| match shape {
            Shape::Line { pen, .. } => Some(pen.width),
            _ => None,
        };
        film.draw(0).iter().filter_map(width).collect()
    };
    assert_eq!(widths(&film), [1.5, 1.0, 1.0]);
}

#[test]
fn signs_are_explained_only_where_there_are_some() {
    let mut film = film(&Graph::line(3).unwrap());
    assert_eq!(film.legend().len(), 8);
    film.steps[0].kept = vec![None; 3];
    film.has_recovered = false;
    assert_eq!(film.legend().len(), 5);
    assert_eq!(film.status(0), "33 % infected, mean reward so far −0.12");
    // A moment in which nobody has acted has no signs of actions.
    let before = film.draw(0).len();
    film.steps[0].actions.fill(2);
    let treated = film.draw(0).len();
    film.steps[0].actions.clear();
    assert!(film.draw(0).len() == before && treated == before + 6, "{before} {treated}");
}
