//! Environments in the manner of PettingZoo's `ParallelEnv` as worlds: simulated whole, each agent seeing
//! what its neighbourhood observes.

use std::sync::Arc;

use numpy::PyReadonlyArray1;
use phalanx::base::stream::{Place, Stream};
use phalanx::graph::Graph;
use phalanx::world::{Channel, Episode, Joint, View};
use pyo3::prelude::*;

use crate::errors::{bad, exception};
use crate::factored::wide;
use crate::own::{Dynamics, OwnWorld, PythonWorld};
use crate::watch::in_python;

/// `begin(seed)` makes an episode with `observe() -> (cells int64[n], numbers float32[all])` and
/// `step(actions int64[n]) -> (rewards float64[channels · n], whether it has ended)`. The package has wrapped
/// the environment so.
#[derive(Debug)]
pub struct PythonEnvironment {
    /// Where agents' observations begin among all numbers; one entry more than agents.
    offsets: Arc<[usize]>,
    /// Names and ranges of the channels.
    ranges: Arc<[(String, [f64; 2])]>,
    begin: Py<PyAny>,
}

/// A world of an environment, checked to be one if `is_checked`. The package has checked that the arguments
/// fit each other.
#[pyfunction]
#[pyo3(signature = (*, n, edges, cells, actions, widths, channels, begin, is_checked))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn parallel_world(
    py: Python<'_>,
    n: usize,
    edges: Vec<(usize, usize)>,
    cells: Vec<usize>,
    actions: Vec<usize>,
    widths: Vec<usize>,
    channels: Vec<(String, [f64; 2])>,
    begin: Py<PyAny>,
    is_checked: bool,
) -> PyResult<OwnWorld> {
    let graph = Graph::from_edges(n, edges).map_err(|error| exception(&error))?;
    let ends = widths.iter().scan(0, |end, width| {
        *end += width;
        Some(*end)
    });
    let offsets = std::iter::once(0).chain(ends).collect();
    let ranges: Arc<[_]> = channels.into();
    let channels = ranges.iter().map(|(name, range)| Channel::sampled(name, *range)).collect();
    let dynamics = Dynamics::Joint(PythonEnvironment { offsets, ranges, begin });
    PythonWorld { graph, states: cells.into(), actions, channels, dynamics }.checked(py, is_checked)
}

impl PythonEnvironment {
    /// What agents with the neighbours `group` see.
    pub fn view(&self, group: &[u32]) -> Box<dyn View> {
        let width = |&m: &u32| self.offsets[m as usize + 1] - self.offsets[m as usize];
        let widest = group.iter().map(width).max().unwrap_or(0).max(1);
        Box::new(Observations { group: group.to_vec(), offsets: self.offsets.clone(), widest })
    }
}

/// A row for each neighbour: what it observes, with zeros behind.
#[derive(Debug)]
struct Observations {
    group: Vec<u32>,
    offsets: Arc<[usize]>,
    widest: usize,
}

impl View for Observations {
    fn shape(&self) -> [usize; 2] {
        [self.group.len(), self.widest]
    }

    fn write(&self, _states: &[u8], shared: &[f32], out: &mut [f32]) {
        for (row, &member) in out.chunks_exact_mut(self.widest).zip(&self.group) {
            let seen = &shared[self.offsets[member as usize]..self.offsets[member as usize + 1]];
            row[..seen.len()].copy_from_slice(seen);
            row[seen.len()..].fill(0.0);
        }
    }
}

impl Joint for PythonEnvironment {
    fn shared(&self) -> usize {
        self.offsets.last().copied().unwrap_or(0)
    }

    fn begin(&self, stream: &Stream, place: Place) -> Box<dyn Episode> {
        // Environments take seeds of 31 bits.
        let seed = stream.sequence(place, 0).next_u32() >> 1;
        Box::new(in_python(|py| {
            let episode = self.begin.bind(py).call1((seed,))?;
            let seen = seen(&episode)?;
            Ok(Played { episode: episode.unbind(), seen, ranges: self.ranges.clone() })
        }))
    }
}

/// An episode in Python.
struct Played {
    episode: Py<PyAny>,
    /// Cells and numbers of the present moment.
    seen: (Vec<u8>, Vec<f32>),
    ranges: Arc<[(String, [f64; 2])]>,
}

/// Cells and numbers, which the package has checked.
fn seen(episode: &Bound<'_, PyAny>) -> PyResult<(Vec<u8>, Vec<f32>)> {
    let seen = episode.call_method0("observe")?;
    let (cells, numbers): (PyReadonlyArray1<'_, i64>, PyReadonlyArray1<'_, f32>) = seen.extract()?;
    Ok((cells.as_array().iter().map(|&cell| cell as u8).collect(), numbers.as_array().to_vec()))
}

impl Episode for Played {
    fn observe(&self, states: &mut [u8], shared: &mut [f32]) {
        states.copy_from_slice(&self.seen.0);
        shared.copy_from_slice(&self.seen.1);
    }

    fn step(&mut self, actions: &[u8], _draws: &[u32], rewards: &mut [f32]) -> bool {
        let (seen, ended) = in_python(|py| {
            let moved = self.episode.bind(py).call_method1("step", (wide(py, actions),))?;
            let (earned, ended): (PyReadonlyArray1<'_, f64>, bool) = moved.extract()?;
            rewards.iter_mut().zip(earned.as_array()).for_each(|(out, &reward)| *out = reward as f32);
            for ((name, [low, high]), rewards) in self.ranges.iter().zip(rewards.chunks_exact(actions.len()))
            {
                // In single precision, as rewards are kept: a range may have ends that are not.
                let is_within = |reward: &f32| (*low as f32..=*high as f32).contains(reward);
                if let Some(i) = rewards.iter().position(|reward| !is_within(reward)) {
                    let message = format!("agent {i} earns {}, not {low} to {high}", rewards[i]);
                    return Err(bad(&format!("ranges[{name:?}]"), message));
                }
            }
            Ok((seen(self.episode.bind(py))?, ended))
        });
        self.seen = seen;
        ended
    }
}
