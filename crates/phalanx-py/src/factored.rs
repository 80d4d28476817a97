//! Factored worlds that somebody wrote in Python: one call moves all agents on.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use numpy::{PyArray1, PyReadonlyArray1};
use phalanx::Ragged;
use phalanx::base::sampler::{outcome, write_thresholds};
use phalanx::base::stream::{DRAW_RANGE, Place, Stream};
use phalanx::graph::Graph;
use phalanx::world::{Channel, Factored, LARGEST_LOCAL_SPACE, StartLaw};
use pyo3::prelude::*;

use crate::errors::{bad, exception};
use crate::own::{Dynamics, OwnWorld, PythonWorld};
use crate::watch::in_python;

/// The functions of a world, as the package has wrapped them: `step(states, actions, uniform) -> (next,
/// rewards of each sampled channel)`, `start(uniform) -> states`, `transition(agent, states of parents,
/// actions of parents) -> law`. States and actions are int64, the rest float64.
#[derive(Debug)]
pub struct PythonSteps {
    /// How many each agent has.
    states: Arc<[usize]>,
    parents: Ragged<u32>,
    /// Channels with tables, which come first.
    tables: usize,
    /// The others, with their ranges.
    sampled: Vec<(String, [f64; 2])>,
    start: Start,
    step: Py<PyAny>,
    transition: Option<Py<PyAny>>,
}

/// Laws of all agents' first states, or what draws these.
#[derive(Debug, FromPyObject)]
pub enum Start {
    Laws(Vec<Vec<f64>>),
    Function(Py<PyAny>),
}

/// A factored world, checked to be one if `is_checked`. The package has checked that the arguments fit each
/// other.
#[pyfunction]
#[pyo3(signature = (*, n, edges, states, actions, parents, tables, sampled, start, step, transition, is_checked))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn factored_world(
    py: Python<'_>,
    n: usize,
    edges: Vec<(usize, usize)>,
    states: Vec<usize>,
    actions: Vec<usize>,
    parents: Option<Vec<Vec<u32>>>,
    tables: Vec<(String, Vec<Vec<f64>>)>,
    sampled: Vec<(String, [f64; 2])>,
    start: Start,
    step: Py<PyAny>,
    transition: Option<Py<PyAny>>,
    is_checked: bool,
) -> PyResult<OwnWorld> {
    let graph = Graph::from_edges(n, edges).map_err(|error| exception(&error))?;
    let parents = parents.map_or_else(|| graph.neighbourhoods(1), Ragged::from_rows);
    let tables = tables.into_iter().map(|(name, rows)| Channel::table(&name, Ragged::from_rows(rows)));
    let mut channels: Vec<Channel> = tables.collect();
    let (tables, states) = (channels.len(), states.into());
    channels.extend(sampled.iter().map(|(name, range)| Channel::sampled(name, *range)));
    let steps =
        PythonSteps { states: Arc::clone(&states), parents, tables, sampled, start, step, transition };
    PythonWorld { graph, states, actions, channels, dynamics: Dynamics::Factored(steps) }
        .checked(py, is_checked)
}

/// What is asked of a step: states and actions of everybody, and draws of `agents` alone.
#[derive(Clone, Copy, PartialEq)]
struct Asked<'a> {
    agents: &'a Range<usize>,
    states: &'a [u8],
    actions: &'a [u8],
    draws: &'a [u32],
}

/// The step that a thread has made last: rewards are asked for after it.
struct Moved {
    /// Which world, by its address.
    world: usize,
    agents: Range<usize>,
    states: Vec<u8>,
    actions: Vec<u8>,
    draws: Vec<u32>,
    next: Vec<u8>,
    /// `[channel][agent]`.
    rewards: Vec<Vec<f32>>,
}

thread_local! {
    static LAST: RefCell<Option<Moved>> = const { RefCell::new(None) };
}

impl Moved {
    fn asked(&self) -> Asked<'_> {
        Asked { agents: &self.agents, states: &self.states, actions: &self.actions, draws: &self.draws }
    }
}

/// Agents' draws as numbers in [0, 1).
fn uniform(draw: u32) -> f64 {
    f64::from(draw) / f64::from(DRAW_RANGE)
}

/// States or actions as NumPy counts.
pub fn wide<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyArray1<i64>> {
    PyArray1::from_vec(py, bytes.iter().map(|&b| i64::from(b)).collect())
}

impl PythonSteps {
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Checks states that Python has given, and writes those of `agents`.
    fn read_states(
        &self,
        found: &Bound<'_, PyAny>,
        whose: &str,
        agents: Range<usize>,
        out: &mut [u8],
    ) -> PyResult<()> {
        let found: PyReadonlyArray1<'_, i64> = found.extract()?;
        let found = found.as_slice()?;
        if found.len() != self.states.len() {
            return Err(bad(whose, format!("gives {} states for {} agents", found.len(), self.states.len())));
        }
        let is_state = |(&state, &size): (&i64, &usize)| (0..size as i64).contains(&state);
        if let Some(i) = found.iter().zip(&*self.states).position(|pair| !is_state(pair)) {
            let message =
                format!("gives agent {i} the state {}; it has {}, from 0", found[i], self.states[i]);
            return Err(bad(whose, message));
        }
        out.iter_mut().zip(&found[agents]).for_each(|(out, &state)| *out = state as u8);
        Ok(())
    }

    /// Calls `step` for all agents. Those that are not in `agents` have no draw, and what becomes of them is
    /// not looked at. Writes the states of `agents`, and returns the rewards.
    fn call<'py>(&self, py: Python<'py>, asked: Asked<'_>, next: &mut [u8]) -> PyResult<Bound<'py, PyAny>> {
        let Asked { agents, states, actions, draws } = asked;
        let mut numbers = vec![0.0; states.len()];
        numbers[agents.clone()].iter_mut().zip(draws).for_each(|(u, &draw)| *u = uniform(draw));
        let numbers = PyArray1::from_vec(py, numbers);
        let moved = self.step.bind(py).call1((wide(py, states), wide(py, actions), numbers))?;
        let (moved, rewards): (Bound<'_, PyAny>, Bound<'_, PyAny>) = moved.extract()?;
        self.read_states(&moved, "step", agents.clone(), next)?;
        Ok(rewards)
    }

    /// Moves on, and keeps what was earned.
    fn earn(&self, py: Python<'_>, asked: Asked<'_>) -> PyResult<Moved> {
        let Asked { agents, states, actions, draws } = asked;
        let mut next = vec![0; agents.len()];
        let rewards: Vec<PyReadonlyArray1<'_, f64>> = self.call(py, asked, &mut next)?.extract()?;
        if rewards.len() != self.sampled.len() {
            let message = format!("gives {} rewards, not {}", rewards.len(), self.sampled.len());
            return Err(bad("step", message));
        }
        let mut earned = Vec::with_capacity(rewards.len());
        for (rewards, (name, [low, high])) in rewards.iter().zip(&self.sampled) {
            let rewards = rewards.as_slice()?;
            if rewards.len() != states.len() {
                let message = format!("gives {} of `{name}` for {} agents", rewards.len(), states.len());
                return Err(bad("step", message));
            }
            if let Some(i) = agents.clone().find(|&i| !(*low..=*high).contains(&rewards[i])) {
                let message =
                    format!("gives agent {i} {} of `{name}`, whose range is {low} to {high}", rewards[i]);
                return Err(bad("step", message));
            }
            earned.push(rewards[agents.clone()].iter().map(|&reward| reward as f32).collect());
        }
        Ok(Moved {
            world: self.address(),
            agents: agents.clone(),
            states: states.to_vec(),
            actions: actions.to_vec(),
            draws: draws.to_vec(),
            next,
            rewards: earned,
        })
    }

    /// The same step as the last one is not made again.
    fn with_step(&self, asked: Asked<'_>, read: impl FnOnce(&Moved)) {
        let known = LAST.with_borrow_mut(|last| last.take());
        let known = known.filter(|last| last.world == self.address() && last.asked() == asked);
        // Nothing is borrowed while Python runs: it may come back here.
        let moved = known.unwrap_or_else(|| in_python(|py| self.earn(py, asked)));
        read(&moved);
        LAST.set(Some(moved));
    }
}

impl Factored for PythonSteps {
    fn parents(&self, agent: usize) -> Vec<u32> {
        self.parents.row(agent).to_vec()
    }

    fn transition(&self, agent: usize, states: &[u8], actions: &[u8], law: &mut [f64]) {
        let Some(transition) = &self.transition else {
            // Nobody asks a world that does not know.
            return law.fill(f64::NAN);
        };
        in_python(|py| {
            let found = transition.bind(py).call1((agent, wide(py, states), wide(py, actions)))?;
            let found: PyReadonlyArray1<'_, f64> = found.extract()?;
            let found = found.as_array();
            if found.len() != law.len() {
                let message = format!("gives agent {agent} {} probabilities, not {}", found.len(), law.len());
                return Err(bad("transition", message));
            }
            law.iter_mut().zip(found).for_each(|(p, &found)| *p = found);
            Ok(())
        });
    }

    fn start(&self, stream: &Stream, place: Place, agents: Range<usize>, states: &mut [u8]) {
        let draw = |agent: usize| stream.words(place, agent as u32, 0)[0] >> 1;
        match &self.start {
            Start::Laws(laws) => {
                let mut thresholds = [0; LARGEST_LOCAL_SPACE];
                for (agent, state) in agents.zip(states) {
                    let thresholds = &mut thresholds[..laws[agent].len() - 1];
                    write_thresholds(&laws[agent], thresholds);
                    *state = outcome(thresholds, draw(agent));
                }
            }
            Start::Function(function) => in_python(|py| {
                let numbers = PyArray1::from_iter(py, (0..self.states.len()).map(|i| uniform(draw(i))));
                self.read_states(&function.bind(py).call1((numbers,))?, "start", agents, states)
            }),
        }
    }

    fn step(&self, agents: Range<usize>, states: &[u8], actions: &[u8], draws: &[u32], next: &mut [u8]) {
        let (draws, next) = (&draws[..agents.len()], &mut next[..agents.len()]);
        let asked = Asked { agents: &agents, states, actions, draws };
        if self.sampled.is_empty() {
            // There are no rewards to remember.
            in_python(|py| self.call(py, asked, next).map(drop));
        } else {
            self.with_step(asked, |moved| next.copy_from_slice(&moved.next));
        }
    }

    fn sample_rewards(
        &self,
        channel: usize,
        agents: Range<usize>,
        states: &[u8],
        actions: &[u8],
        draws: &[u32],
        rewards: &mut [f32],
    ) {
        let draws = &draws[..agents.len()];
        self.with_step(Asked { agents: &agents, states, actions, draws }, |moved| {
            rewards[..agents.len()].copy_from_slice(&moved.rewards[channel - self.tables]);
        });
    }

    fn knows_law(&self) -> bool {
        self.transition.is_some()
    }

    fn start_law(&self) -> Option<StartLaw> {
        match &self.start {
            Start::Laws(laws) => Some(StartLaw::Product { local: laws.clone() }),
            Start::Function(_) => None,
        }
    }
}
