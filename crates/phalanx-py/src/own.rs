//! Worlds and utilities that somebody wrote in Python, by the names that configurations have for them.

use std::sync::Arc;

use phalanx::graph::Graph;
use phalanx::run::Registry;
use phalanx::world::{Channel, Evolution, View, World, check};
use pyo3::prelude::*;

use crate::errors::{bad, without_lock};
use crate::factored::PythonSteps;
use crate::parallel::PythonEnvironment;
use crate::utility::PythonUtility;

/// A world that the library can train in.
#[pyclass(frozen, module = "phalanx._phalanx")]
pub struct OwnWorld(pub Arc<dyn World>);

#[pymethods]
impl OwnWorld {
    /// Links, smaller agent first.
    #[getter]
    fn edges(&self) -> Vec<(u32, u32)> {
        links(self.0.graph())
    }
}

/// A world in Python.
#[derive(Debug)]
pub struct PythonWorld {
    pub graph: Graph,
    pub states: Arc<[usize]>,
    pub actions: Vec<usize>,
    pub channels: Vec<Channel>,
    pub dynamics: Dynamics,
}

/// How it moves on.
#[derive(Debug)]
pub enum Dynamics {
    Factored(PythonSteps),
    Joint(PythonEnvironment),
}

impl PythonWorld {
    /// The world; once it has shown that it keeps what worlds promise, if `is_checked`.
    pub fn checked(self, py: Python<'_>, is_checked: bool) -> PyResult<OwnWorld> {
        // Where it stays: steps are remembered by the address of their world.
        let world = Arc::new(self);
        if is_checked && let Some(promise) = without_lock(py, || Ok(check(&*world).err()))? {
            return Err(bad("world", promise));
        }
        Ok(OwnWorld(world))
    }
}

impl World for PythonWorld {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn states(&self, agent: usize) -> usize {
        self.states[agent]
    }

    fn actions(&self, agent: usize) -> usize {
        self.actions[agent]
    }

    fn evolution(&self) -> Evolution<'_> {
        match &self.dynamics {
            Dynamics::Factored(steps) => Evolution::Factored(steps),
            Dynamics::Joint(environment) => Evolution::Joint(environment),
        }
    }

    fn view(&self, _agent: usize, group: &[u32]) -> Option<Box<dyn View>> {
        match &self.dynamics {
            Dynamics::Factored(_) => None,
            Dynamics::Joint(environment) => Some(environment.view(group)),
        }
    }

    fn channels(&self) -> &[Channel] {
        &self.channels
    }

    fn is_serial(&self) -> bool {
        true
    }
}

/// Links of a graph, smaller agent first.
pub fn links(graph: &Graph) -> Vec<(u32, u32)> {
    let from = |i: u32| graph.neighbours(i as usize).iter().map(move |&j| (i, j));
    (0..graph.agents() as u32).flat_map(from).filter(|(i, j)| i < j).collect()
}

/// The user's own worlds and utilities, which configurations may name.
#[pyclass(module = "phalanx._phalanx")]
#[derive(Default)]
pub struct Own {
    pub registry: Registry,
}

#[pymethods]
impl Own {
    #[new]
    fn new() -> Self {
        Own::default()
    }

    /// `world.kind = name`.
    fn add_world(&mut self, name: &str, world: &Bound<'_, OwnWorld>) {
        let (world, name_of) = (world.get().0.clone(), name.to_string());
        self.registry.add(name, move |keys| match keys.keys().next() {
            None => Ok(world.clone()),
            Some(key) => {
                let message = format!("`{name_of}` was made in Python and takes no keys");
                Err(phalanx::Error::config(format!("world.{key}"), message))
            }
        });
    }

    /// `kind = name` of an objective or a constraint.
    fn add_utility(&mut self, name: &str, utility: &Bound<'_, PythonUtility>) {
        let utility = utility.get().clone();
        self.registry.add_utility(name, move |agent, space| utility.of(agent, space));
    }
}
