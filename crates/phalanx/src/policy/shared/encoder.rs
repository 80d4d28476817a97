//! What a neural network that agents share reads of one agent's neighbourhood: sums over the neighbours, each
//! put where its place says, so that neither their number nor their order matters.

use rayon::prelude::*;

use crate::base::elementary::ln_1p_f32;
use crate::base::error::ensure;
use crate::graph::Graph;
use crate::neural::{AgentNetworks, Architecture, Rows};
use crate::policy::kind_error;
use crate::policy::observation::Widths;
use crate::world::{Trajectory, View, World};
use crate::{Ragged, Result};

/// Which of what the world shows is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reads {
    /// The states of the neighbours.
    States,
    /// The world's own view of them.
    View,
}

/// One agent's inputs.
#[derive(Debug)]
pub struct PlaceEncoder {
    /// N_i^κ, ascending.
    pub(super) group: Vec<u32>,
    /// The numbers of every member's place that are not 0: which, and what.
    places: Ragged<(u32, f32)>,
    /// Numbers of a place.
    dimensions: usize,
    /// What is known of a member.
    content: Content,
    /// What the own place is like.
    site: Vec<f32>,
}

/// What is known of a neighbourhood.
#[derive(Debug)]
enum Content {
    /// Each member's state, one of so many.
    States(usize),
    /// Rows of a view: one per member, or of all together.
    View { view: Box<dyn View>, is_by_member: bool },
}

impl PlaceEncoder {
    /// What every agent sees of those within `kappa` hops; without a word on it, the world's view if there is
    /// one.
    pub fn for_agents(world: &dyn World, kappa: usize, reads: Option<Reads>) -> Result<Vec<Self>> {
        let (n, groups) = (world.graph().agents(), world.graph().neighbourhoods(kappa));
        let has_view = || world.view(0, groups.row(0)).is_some();
        let reads = reads.unwrap_or_else(|| if has_view() { Reads::View } else { Reads::States });
        let states = (0..n).map(|i| world.states(i)).max().unwrap_or(1);
        let encoder = |i: usize| PlaceEncoder::new(world, i, groups.row(i), kappa, reads, states);
        (0..n).into_par_iter().map(encoder).collect()
    }

    /// A neural network over so many numbers as an encoder writes, for a kind of agents.
    pub fn network(kind: u32, width: usize, widths: &Widths, outputs: usize) -> AgentNetworks {
        let rows = Some(Rows { count: 1, width, hidden: widths.row_hidden });
        let architecture = Architecture { rows, symbols: Vec::new(), hidden: widths.hidden.clone(), outputs };
        AgentNetworks { architecture, count: 1, id: kind }
    }

    /// What `agent` sees of `group`, the agents within `kappa` hops; nobody has more than `states` states.
    pub fn new(
        world: &dyn World,
        agent: usize,
        group: &[u32],
        kappa: usize,
        reads: Reads,
        states: usize,
    ) -> Result<Self> {
        let own_places: Option<Vec<Vec<f32>>> =
            group.iter().map(|&member| world.place(agent, member as usize, kappa)).collect();
        let (places, site) = match own_places {
            Some(places) => (places, world.site(agent)),
            None => hops(world.graph(), agent, group, kappa),
        };
        let dimensions = places.first().map_or(0, Vec::len);
        let content = match reads {
            Reads::States => Content::States(states),
            Reads::View => match world.view(agent, group) {
                Some(view) => Content::View { is_by_member: view.is_by_member(), view },
                None => {
                    return Err(kind_error(
                        "`shared` cannot read a view, which this world does not have; use policy.reads = \"states\"",
                    ));
                }
            },
        };
        let nonzero = |place: &Vec<f32>| {
            let numbers = (0..).zip(place.iter().copied());
            numbers.filter(|(_, x)| *x != 0.0).collect::<Vec<(u32, f32)>>()
        };
        ensure(places.iter().all(|place| place.len() == dimensions), || {
            kind_error("`shared` needs places of one length, which this world does not give")
        })?;
        let places = Ragged::from_rows(places.iter().map(nonzero));
        Ok(PlaceEncoder { group: group.to_vec(), places, dimensions, content, site })
    }

    /// Numbers that the neural network reads.
    pub fn width(&self) -> usize {
        self.summed() + self.site.len()
    }

    /// Numbers before those of the site.
    fn summed(&self) -> usize {
        match &self.content {
            Content::States(states) => states * self.dimensions,
            Content::View { view, is_by_member: true } => {
                view.frames() * (1 + view.shape()[1]) * self.dimensions
            }
            Content::View { view, .. } => self.rows(&**view) * view.frames(),
        }
    }

    /// Numbers of one moment of a view.
    fn rows(&self, view: &dyn View) -> usize {
        view.shape().iter().product()
    }

    /// Whether the present states are all that it reads.
    pub fn reads_states(&self) -> bool {
        matches!(self.content, Content::States(_))
    }

    /// How many numbers of a view it reads, all its moments together; none if it reads states.
    pub fn view_numbers(&self) -> Option<usize> {
        match &self.content {
            Content::States(_) => None,
            Content::View { view, .. } => Some(self.rows(&**view) * view.frames()),
        }
    }

    /// Where every member is, if it is their states that are read.
    pub fn places(&self) -> Option<Vec<Vec<f32>>> {
        let dense = |row: &[(u32, f32)]| {
            let mut place = vec![0.0; self.dimensions];
            row.iter().for_each(|&(d, x)| place[d as usize] = x);
            place
        };
        self.reads_states().then(|| self.places.iter().map(dense).collect())
    }

    /// What the own place is like.
    pub fn site(&self) -> &[f32] {
        &self.site
    }

    /// Whether it sums up rows of members.
    pub fn sums_rows(&self) -> bool {
        matches!(self.content, Content::View { is_by_member: true, .. })
    }

    /// Whether it reads the row of one member alone, at the one place that there is: 1, and the row.
    pub fn reads_one_row(&self) -> bool {
        let is_one = self.places.rows() == 1 && self.places.row(0) == [(0, 1.0)] && self.dimensions == 1;
        let is_one_moment = matches!(&self.content, Content::View { view, .. } if view.frames() == 1);
        self.sums_rows() && is_one && is_one_moment
    }

    /// Σ over the members of onehot(state) ⊗ place, then the site; `out` has [`PlaceEncoder::width`] numbers.
    pub fn write_states(&self, state: impl Fn(usize) -> u8, out: &mut [f32]) {
        let (sums, site) = out.split_at_mut(self.summed());
        sums.fill(0.0);
        for (&member, place) in self.group.iter().zip(self.places.iter()) {
            let first = usize::from(state(member as usize)) * self.dimensions;
            place.iter().for_each(|&(d, x)| sums[first + d as usize] += x);
        }
        site.copy_from_slice(&self.site);
    }

    /// The same from the rows of a view, its moments one after the other: Σ over the members of (1, row) ⊗
    /// place where there is a row per member, else the rows as they are.
    pub fn write_rows(&self, rows: &[f32], out: &mut [f32]) {
        let (sums, site) = out.split_at_mut(self.summed());
        site.copy_from_slice(&self.site);
        let Content::View { view, is_by_member: true } = &self.content else {
            sums.copy_from_slice(rows);
            return;
        };
        let width = view.shape()[1];
        sums.fill(0.0);
        let moments = rows.chunks_exact(self.rows(&**view));
        for (rows, sums) in moments.zip(sums.chunks_exact_mut((1 + width) * self.dimensions)) {
            for (row, place) in rows.chunks_exact(width).zip(self.places.iter()) {
                let numbers = std::iter::once(&1.0).chain(row);
                for (number, sums) in numbers.zip(sums.chunks_exact_mut(self.dimensions)) {
                    place.iter().for_each(|&(d, x)| sums[d as usize] += number * x);
                }
            }
        }
    }

    /// Adds step k of a trajectory as a sample; `rows` is a buffer.
    pub fn encode_step(&self, trajectory: &Trajectory, k: usize, rows: &mut Vec<f32>, out: &mut Vec<f32>) {
        let first = out.len();
        out.resize(first + self.width(), 0.0);
        let out = &mut out[first..];
        let Content::View { view, .. } = &self.content else {
            return self.write_states(|m| trajectory.states(m)[k], out);
        };
        let numbers = self.rows(&**view);
        rows.clear();
        rows.resize(numbers * view.frames(), 0.0);
        for (frame, rows) in rows.chunks_exact_mut(numbers.max(1)).enumerate() {
            let step = k.saturating_sub(frame);
            let states: Vec<u8> = self.group.iter().map(|&m| trajectory.states(m as usize)[step]).collect();
            view.write(&states, trajectory.global_state(step), rows);
        }
        self.write_rows(rows, out);
    }
}

/// Places for worlds that give none: the distance in hops, as the share of one among all at that distance.
/// The site tells how many there are.
fn hops(graph: &Graph, agent: usize, group: &[u32], kappa: usize) -> (Vec<Vec<f32>>, Vec<f32>) {
    let mut distance = vec![usize::MAX; group.len()];
    let place = |agent: u32| group.binary_search(&agent).ok();
    let mut reached = vec![agent as u32];
    let mut far = 0;
    while !reached.is_empty() && far <= kappa {
        let mut next = Vec::new();
        for &m in &reached {
            let Some(k) = place(m).filter(|&k| distance[k] == usize::MAX) else { continue };
            distance[k] = far;
            next.extend(graph.neighbours(m as usize));
        }
        (reached, far) = (next, far + 1);
    }
    let radius = if kappa == 0 { 0 } else { kappa.min(graph.total()) };
    let mut counts = vec![0u32; radius + 1];
    distance.iter().filter(|d| **d <= radius).for_each(|&d| counts[d] += 1);
    let places = distance.iter().map(|&d| {
        let mut place = vec![0.0; radius + 1];
        if d <= radius {
            place[d] = 1.0 / counts[d] as f32;
        }
        place
    });
    let site = counts[1..].iter().map(|&count| ln_1p_f32(count as f32)).collect();
    (places.collect(), site)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Epidemic, EpidemicSpec, Wireless, WirelessSpec};

    #[test]
    fn hops_are_told_apart_and_counted() {
        let star = Graph::from_edges(5, [(0, 1), (0, 2), (0, 3), (3, 4)]).unwrap();
        let (places, site) = hops(&star, 1, &[0, 1, 2, 3], 2);
        assert_eq!(
            places,
            [vec![0.0, 1.0, 0.0], vec![1.0, 0.0, 0.0], vec![0.0, 0.0, 0.5], vec![0.0, 0.0, 0.5]]
        );
        assert_eq!(site, [2f32.ln(), 3f32.ln()]);
        assert_eq!(hops(&star, 1, &[1], 0), (vec![vec![1.0]], vec![]));
    }

    /// Two agents that stand alike read the same, whatever their numbers.
    #[test]
    fn what_is_read_depends_on_places_alone() {
        let world = Wireless::new(&WirelessSpec { rows: 6, columns: 5, ..WirelessSpec::default() }).unwrap();
        let groups = world.graph().neighbourhoods(1);
        let read = |agent: usize, queues: [u8; 9]| {
            let encoder = PlaceEncoder::new(&world, agent, groups.row(agent), 1, Reads::States, 4).unwrap();
            let mut out = vec![f32::NAN; encoder.width()];
            let queue = |m: usize| queues[(m / 5 + 1 - agent / 5) * 3 + m % 5 + 1 - agent % 5];
            encoder.write_states(queue, &mut out);
            out
        };
        let queues = [0, 1, 2, 3, 0, 1, 2, 3, 1];
        // Two rows and two columns apart: of the same colours too.
        assert_eq!(read(6, queues), read(18, queues));
        assert_ne!(read(6, queues), read(6, [1; 9]));
        // Beyond the edge there is nobody, in whatever state.
        assert_ne!(read(5, queues), read(6, queues));
    }

    #[test]
    fn hubs_read_as_many_numbers_as_others() {
        let world = Epidemic::new(&EpidemicSpec::default(), Graph::star(30).unwrap()).unwrap();
        for (kappa, reads) in [(1, Reads::States), (2, Reads::States), (1, Reads::View)] {
            let groups = world.graph().neighbourhoods(kappa);
            let width = |agent: usize| {
                PlaceEncoder::new(&world, agent, groups.row(agent), kappa, reads, 2).unwrap().width()
            };
            assert_eq!(width(0), width(7), "{kappa} {reads:?}");
        }
    }
}
