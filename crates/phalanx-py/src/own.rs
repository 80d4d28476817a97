//! Worlds and utilities that somebody wrote in Python, by the names that configurations have for them.

use std::sync::Arc;

use phalanx::graph::Graph;
use phalanx::run::Registry;
use phalanx::world::World;
use pyo3::prelude::*;

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

/// Links of a graph, smaller agent first.
pub fn links(graph: &Graph) -> Vec<(u32, u32)> {
    let from = |i: u32| graph.neighbours(i as usize).iter().map(move |&j| (i, j));
    (0..graph.agents() as u32).flat_map(from).filter(|(i, j)| i < j).collect()
}

/// Everything of one's own that configurations may name.
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
