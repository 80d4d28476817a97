//! What agents see, in the order in which policies of the library read it.

use phalanx::Ragged;
use phalanx::base::key::KAPPA;
use phalanx::base::limits::check_memory;
use phalanx::world::{Evolution, View, World};

/// Everybody's κ-hop neighbourhood and how it is seen.
pub struct Layout {
    /// N_i^κ, ascending, i among it.
    pub groups: Ragged<u32>,
    /// A view per agent in joint worlds; in factored ones local states are seen as they are.
    views: Vec<Box<dyn View>>,
    /// Where an agent's numbers begin among everybody's, and where the last one's end.
    offsets: Vec<usize>,
    /// Most numbers that an agent sees.
    pub widest: usize,
}

impl Layout {
    pub fn new(world: &dyn World, kappa: usize) -> phalanx::Result<Self> {
        let groups = world.graph().neighbourhoods(kappa);
        let mut views = Vec::new();
        if let Evolution::Joint(_) = world.evolution() {
            views.extend(groups.iter().enumerate().filter_map(|(i, group)| world.view(i, group)));
        }
        let mut offsets = vec![0];
        for i in 0..groups.rows() {
            let size = views.get(i).map_or(groups.row(i).len(), |view| size_of(&**view));
            offsets.push(offsets[i] + size);
        }
        let widest = offsets.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
        // What a step of one copy gives.
        let bytes = 4 * widest as u128 * groups.rows() as u128;
        check_memory(bytes, KAPPA, &format!("{} observations of {widest} numbers", groups.rows()))?;
        Ok(Layout { groups, views, offsets, widest })
    }

    /// Whether numbers of views are seen, not states.
    pub fn has_views(&self) -> bool {
        !self.views.is_empty()
    }

    /// How many numbers an agent sees.
    pub fn size(&self, agent: usize) -> usize {
        self.offsets[agent + 1] - self.offsets[agent]
    }

    /// How many all of them see through views.
    pub fn remembered(&self) -> usize {
        if self.has_views() { self.offsets[self.views.len()] } else { 0 }
    }

    /// What an agent sees through its view.
    pub fn of<'s>(&self, seen: &'s [f32], agent: usize) -> &'s [f32] {
        &seen[self.offsets[agent]..self.offsets[agent + 1]]
    }

    /// Adds the present moment to what has been seen, in front; `first`: the past looked the same.
    pub fn look(&self, states: &[u8], shared: &[f32], first: bool, members: &mut Vec<u8>, seen: &mut [f32]) {
        for (i, view) in self.views.iter().enumerate() {
            let seen = &mut seen[self.offsets[i]..self.offsets[i + 1]];
            let frame = seen.len() / view.frames();
            seen.copy_within(..seen.len() - frame, frame);
            members.clear();
            members.extend(self.groups.row(i).iter().map(|&m| states[m as usize]));
            view.write(members, shared, &mut seen[..frame]);
            if first {
                (1..view.frames()).for_each(|k| seen.copy_within(..frame, k * frame));
            }
        }
    }
}

/// Numbers of all moments that a view shows.
fn size_of(view: &dyn View) -> usize {
    let [rows, width] = view.shape();
    rows * width * view.frames()
}

/// Entries of observations.
pub trait Observed: numpy::Element + Default + Copy {
    /// Writes what everybody sees, `widest` entries each; the rest of them stays as it is.
    fn write(layout: &Layout, states: &[u8], seen: &[f32], out: &mut [Self]);
}

impl Observed for u8 {
    fn write(layout: &Layout, states: &[u8], _seen: &[f32], out: &mut [u8]) {
        for (group, out) in layout.groups.iter().zip(out.chunks_exact_mut(layout.widest)) {
            out.iter_mut().zip(group).for_each(|(out, &m)| *out = states[m as usize]);
        }
    }
}

impl Observed for f32 {
    fn write(layout: &Layout, _states: &[u8], seen: &[f32], out: &mut [f32]) {
        for (i, out) in out.chunks_exact_mut(layout.widest).enumerate() {
            let seen = layout.of(seen, i);
            out[..seen.len()].copy_from_slice(seen);
        }
    }
}
