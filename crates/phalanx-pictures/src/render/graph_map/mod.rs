//! Which agents of a graph are drawn, and where.

mod layout;
#[cfg(test)]
pub mod tests;

use layout::Place;
use phalanx::graph::Graph;

use super::film::WIDEST;
use super::shape::{Anchor, Pen, Point, Shape};
use crate::plot::canvas::Colour;

/// More agents than this are not drawn.
pub const MOST_AGENTS: usize = 400;
/// Agents side by side in a grid, and in a line that takes several rows.
const MOST_A_SIDE: usize = 20;
/// More links than this would be a blot.
const MOST_LINKS: usize = 4000;
/// Room that an agent has, at the most, as the side of a square; and for a link.
const LARGEST_PITCH: f32 = 84.0;
const LONGEST_LINK: f32 = 150.0;
const TALLEST: f32 = 640.0;
/// Between the centre of an agent and the edge of the drawing, beside the radius.
const EDGE: f32 = 6.0;

/// Agents of at least this radius have numbers.
const NUMBERED: f32 = 11.0;

/// Agents and links that are drawn.
#[derive(Debug, Clone)]
pub struct GraphMap {
    /// Their numbers in the graph.
    pub agents: Vec<usize>,
    /// Their places, in the same order.
    pub places: Vec<Point>,
    /// Pairs of them, by where they stand in `agents`; the smaller first.
    pub links: Vec<(usize, usize)>,
    pub radius: f32,
    pub size: Point,
    /// What is not drawn, if anything.
    pub left_out: Vec<String>,
}

impl GraphMap {
    /// A map of the graph. O(agents + links) for a grid or a line, and else for so many as are drawn.
    pub fn of(graph: &Graph) -> GraphMap {
        match grid_shape(graph) {
            Some((1, _)) => GraphMap::line(graph),
            Some(shape) => GraphMap::grid(graph, shape),
            None => GraphMap::web(graph),
        }
    }

    /// A line, to and fro in rows, so that all its links are short.
    fn line(graph: &Graph) -> GraphMap {
        let (n, drawn) = (graph.agents(), graph.agents().min(MOST_AGENTS));
        let columns = drawn.min(MOST_A_SIDE);
        let place = |k: usize| {
            let (row, column) = (k / columns, k % columns);
            (row, if row % 2 == 0 { column } else { columns - 1 - column })
        };
        let mut map =
            GraphMap::on_squares(graph, (0..drawn).collect(), (drawn.div_ceil(columns), columns), place);
        map.left_out.extend((drawn < n).then(|| format!("the first {drawn} of {n} agents")));
        map
    }

    /// A grid, or its upper left part.
    fn grid(graph: &Graph, (rows, columns): (usize, usize)) -> GraphMap {
        let shape @ (down, across) = (rows.min(MOST_A_SIDE), columns.min(MOST_A_SIDE));
        let agents =
            (0..down).flat_map(|row| (0..across).map(move |column| row * columns + column)).collect();
        let mut map = GraphMap::on_squares(graph, agents, shape, |k| (k / across, k % across));
        if shape != (rows, columns) {
            map.left_out.push(format!("the first {down} × {across} of {rows} × {columns} agents"));
        }
        map
    }

    /// Agents in rows and columns.
    fn on_squares(
        graph: &Graph,
        agents: Vec<usize>,
        (rows, columns): (usize, usize),
        place: impl Fn(usize) -> (usize, usize),
    ) -> GraphMap {
        let pitch = (WIDEST / columns.max(rows) as f32).min(LARGEST_PITCH);
        let centre = |k: usize| {
            let (row, column) = place(k);
            ((column as f32 + 0.5) * pitch, (row as f32 + 0.5) * pitch)
        };
        let places = (0..agents.len()).map(centre).collect();
        let size = (columns as f32 * pitch, rows as f32 * pitch);
        let (links, _) = links(graph, &agents);
        GraphMap { agents, places, links, radius: radius(pitch), size, left_out: Vec::new() }
    }

    /// Any other graph: whoever is near on paper is near in it.
    fn web(graph: &Graph) -> GraphMap {
        let n = graph.agents();
        let agents = nearest(graph, MOST_AGENTS);
        let (mut links, part) = links(graph, &agents);
        let (places, radius, size) = on_paper(layout::places(&part));
        let mut left_out = Vec::new();
        if agents.len() < n {
            left_out.push(format!("{} of {n} agents: those nearest to agent 0", agents.len()));
        }
        if links.len() > MOST_LINKS {
            left_out.push(format!("their {} links are left out", links.len()));
            links.clear();
        }
        GraphMap { agents, places, links, radius, size, left_out }
    }

    /// What is not drawn, in a sentence.
    pub fn note(&self) -> Option<String> {
        (!self.left_out.is_empty()).then(|| self.left_out.join("; "))
    }

    /// The links, as quiet lines.
    pub fn lines(&self) -> impl Iterator<Item = Shape> + '_ {
        let pen = Pen::new(Colour::QUIET.tint(0.28), 1.0);
        self.links.iter().map(move |&(a, b)| Shape::line(self.places[a], self.places[b], pen))
    }

    /// Each agent's number beside it, if there is room.
    pub fn numbers(&self) -> impl Iterator<Item = Shape> + '_ {
        let has_room = self.radius >= NUMBERED;
        self.places.iter().zip(&self.agents).filter(move |_| has_room).map(|(&(x, y), number)| {
            let at = (x + 0.8 * self.radius + 2.0, y + self.radius + 6.0);
            Shape::text(at, number.to_string(), 9.0, Anchor::Start, Colour::QUIET)
        })
    }
}

fn radius(pitch: f32) -> f32 {
    (0.23 * pitch).clamp(4.5, 12.0)
}

/// Rows and columns, if the graph is a grid whose members are numbered row by row; a line has one row.
fn grid_shape(graph: &Graph) -> Option<(usize, usize)> {
    let n = graph.agents();
    let columns = match graph.neighbours(0) {
        [] | [1] => n,
        [1, below] => *below as usize,
        _ => return None,
    };
    let is_grid = |grid: Graph| grid == *graph;
    (n.is_multiple_of(columns) && Graph::grid(n / columns, columns).is_ok_and(is_grid))
        .then_some((n / columns, columns))
}

/// At most so many agents: those fewest links away from agent 0, and then from the first who has not been
/// reached.
fn nearest(graph: &Graph, most: usize) -> Vec<usize> {
    let n = graph.agents();
    let mut found = Vec::new();
    let mut is_found = vec![false; n];
    let mut next = 0;
    for start in 0..n {
        if !std::mem::replace(&mut is_found[start], true) {
            found.push(start);
        }
        while next < found.len() && found.len() < most {
            for &j in graph.neighbours(found[next]) {
                if !std::mem::replace(&mut is_found[j as usize], true) {
                    found.push(j as usize);
                }
            }
            next += 1;
        }
        if found.len() >= most {
            break;
        }
    }
    found.truncate(most);
    found.sort_unstable();
    found
}

/// Links among some agents, as pairs and as a graph, by where these stand in `agents`, which ascends.
fn links(graph: &Graph, agents: &[usize]) -> (Vec<(usize, usize)>, Graph) {
    let part = graph.part(agents.iter().map(|&i| i as u32).collect(), |_| true);
    let of_one = |a: usize| part.neighbours(a).iter().map(move |&b| (a, b as usize));
    let pairs = (0..agents.len()).flat_map(of_one).filter(|(a, b)| a < b).collect();
    (pairs, part)
}

/// Places in links to places in pixels that fit into a drawing; with the radius of an agent, and the
/// drawing's size.
fn on_paper(mut places: Vec<Place>) -> (Vec<Point>, f32, Point) {
    let n = places.len() as f64;
    let [width, height] = extent(&places).map(|(low, high)| (high - low).max(1.0));
    let room = [WIDEST, TALLEST].map(|room| f64::from(room - 2.0 * (12.0 + EDGE)));
    let scale = (f64::from(LARGEST_PITCH) * (n / (width * height)).sqrt())
        .min(f64::from(LONGEST_LINK))
        .min(room[0] / width)
        .min(room[1] / height);
    places.iter_mut().flatten().for_each(|x| *x *= scale);
    let radius = radius((scale * (width * height / n).sqrt()) as f32);
    let between = if radius < NUMBERED { 9.0 } else { 22.0 };
    layout::spread_out(&mut places, f64::from(2.0 * radius + between));
    // Those who were pushed apart may need more room than there is.
    let spread = extent(&places);
    let fit = |(low, high): (f64, f64), room: f64| (room / (high - low).max(1e-9)).min(1.0);
    let scale = fit(spread[0], room[0]).min(fit(spread[1], room[1]));
    let edge = radius + EDGE;
    let at = |place: &Place, k: usize| ((place[k] - spread[k].0) * scale) as f32 + edge;
    let size = spread.map(|(low, high)| ((high - low) * scale) as f32 + 2.0 * edge);
    (places.iter().map(|place| (at(place, 0), at(place, 1))).collect(), radius, (size[0], size[1]))
}

/// Smallest and largest of both coordinates.
fn extent(places: &[Place]) -> [(f64, f64); 2] {
    [0, 1].map(|k| {
        let ends = |(low, high): (f64, f64), place: &Place| (low.min(place[k]), high.max(place[k]));
        places.iter().fold((f64::INFINITY, f64::NEG_INFINITY), ends)
    })
}
