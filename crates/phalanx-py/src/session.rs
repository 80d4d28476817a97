//! A policy that is there: evaluated, asked for actions.

use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use phalanx::Ragged;
use phalanx::rollout::Trajectory;
use phalanx::run::{Session, WorldConfig};
use phalanx::world::Evolution;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::config::config;
use crate::errors::{bad, exception, without_lock};
use crate::own::Own;
use crate::watch::{pool, watch};

/// A world with its problem and a policy that is not trained any more.
#[pyclass(frozen, module = "phalanx._phalanx")]
pub struct Fixed {
    session: Session,
}

#[pymethods]
impl Fixed {
    /// The run in a folder, with its trained policy.
    #[staticmethod]
    fn of_run(py: Python<'_>, path: PathBuf, own: &Bound<'_, Own>) -> PyResult<Self> {
        let registry = own.borrow().registry();
        let session = without_lock(py, || Session::of_run(&path, &registry))?;
        Ok(Fixed { session })
    }

    /// A configuration with a scripted policy: `uniform`, or one that the world knows.
    #[staticmethod]
    fn scripted(
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        settings: &Bound<'_, PyDict>,
        own: &Bound<'_, Own>,
        policy: &str,
    ) -> PyResult<Self> {
        let config = config(source, settings, own.borrow().registry())?;
        let session = without_lock(py, || Session::scripted(&config, policy))?;
        Ok(Fixed { session })
    }

    #[getter]
    fn agents(&self) -> usize {
        self.session.world().network().agents()
    }

    /// |S_i| of every agent.
    #[getter]
    fn states(&self) -> Vec<usize> {
        (0..self.agents()).map(|i| self.session.world().states(i)).collect()
    }

    /// |A_i| of every agent.
    #[getter]
    fn actions(&self) -> Vec<usize> {
        (0..self.agents()).map(|i| self.session.world().actions(i)).collect()
    }

    /// N_i^κ of every agent, ascending.
    #[getter]
    fn groups(&self) -> Vec<Vec<u32>> {
        self.session.policy().groups().iter().map(<[u32]>::to_vec).collect()
    }

    /// Whether the world is simulated whole.
    #[getter]
    fn is_joint(&self) -> bool {
        matches!(self.session.world().evolution(), Evolution::Joint(_))
    }

    /// The resolved configuration as TOML.
    fn config(&self) -> String {
        self.session.config().to_toml()
    }

    /// The assessment that `phalanx eval --json` prints, as JSON, with exact values where they are quick to have.
    fn assess(
        &self,
        py: Python<'_>,
        episodes: usize,
        seed: u64,
        confidence: f64,
        threads: Option<usize>,
    ) -> PyResult<String> {
        let session = &self.session;
        let watched = watch(py, &pool(threads)?, None, |_| {
            let assessment = session.assess(episodes, seed, confidence)?;
            let n = session.world().network().agents();
            let verdicts = serde_json::to_value(assessment.agents(n)).unwrap_or_default();
            let mut value = serde_json::to_value(assessment).unwrap_or_default();
            value["verdicts"] = verdicts;
            value["exact"] = serde_json::to_value(session.truth()).unwrap_or_default();
            Ok(value.to_string())
        });
        watched.result
    }

    /// λ_i of every agent, flat, pooled over fresh episodes.
    fn occupancy<'py>(
        &self,
        py: Python<'py>,
        episodes: usize,
        seed: u64,
        threads: Option<usize>,
    ) -> PyResult<Vec<Bound<'py, PyArray1<f64>>>> {
        let session = &self.session;
        let found = watch(py, &pool(threads)?, None, |_| session.occupancy(episodes, seed)).result?;
        Ok(arrays(py, &found))
    }

    /// μ of every agent.
    fn multipliers<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyArray1<f64>>> {
        arrays(py, self.session.mu())
    }

    /// θ of every agent, flat.
    fn theta<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyArray1<f64>>> {
        arrays(py, self.session.policy().theta())
    }

    /// Probabilities of agent i's actions, given the states of its neighbourhood, ascending. Worlds that are simulated whole
    /// are refused: states are not all that their agents see.
    fn law_of_states<'py>(
        &self,
        py: Python<'py>,
        agent: usize,
        states: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut trajectory = self.moment(agent)?;
        self.set_states(&mut trajectory, agent, states.as_slice()?)?;
        self.law(py, agent, &trajectory)
    }

    /// The same in a world that is simulated whole and shows `shared`.
    fn law_of_moment<'py>(
        &self,
        py: Python<'py>,
        agent: usize,
        states: PyReadonlyArray1<'py, i64>,
        shared: PyReadonlyArray1<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut trajectory = self.moment(agent)?;
        self.set_states(&mut trajectory, agent, states.as_slice()?)?;
        let (out, shared) = (trajectory.shared_mut(0), shared.as_slice()?);
        if out.len() != shared.len() {
            return Err(bad("observations", format!("{} numbers, not {}", shared.len(), out.len())));
        }
        out.copy_from_slice(shared);
        self.law(py, agent, &trajectory)
    }

    /// The same from the view that an environment of this package shows agent i.
    fn law_of_view<'py>(
        &self,
        py: Python<'py>,
        agent: usize,
        view: PyReadonlyArray1<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.check_agent(agent)?;
        let view = view.as_slice()?;
        let mut law = vec![0.0; self.session.world().actions(agent)];
        if self.session.policy().law_of_rows(agent, view, &mut law) {
            return Ok(law.into_pyarray(py));
        }
        // Tables read heights, which stand first in what a piston sees.
        let group = self.session.policy().groups().row(agent).len();
        if !matches!(self.session.config().world, WorldConfig::Pistonball(_)) || view.len() < group {
            let message = format!("{} numbers are not what agent {agent}'s policy reads", view.len());
            return Err(bad("observations", message));
        }
        let levels: Vec<i64> =
            view[..group].iter().map(|height| ((height + 1.0) * 8.0).round() as i64).collect();
        let mut trajectory = self.moment(agent)?;
        self.set_states(&mut trajectory, agent, &levels)?;
        self.law(py, agent, &trajectory)
    }
}

impl Fixed {
    fn check_agent(&self, agent: usize) -> PyResult<()> {
        if agent < self.agents() {
            return Ok(());
        }
        Err(bad("agent", format!("{agent}; agents are 0 to {}", self.agents() - 1)))
    }

    /// An episode of one step.
    fn moment(&self, agent: usize) -> PyResult<Trajectory> {
        self.check_agent(agent)?;
        Ok(Trajectory::of(self.session.world(), 1))
    }

    fn set_states(&self, trajectory: &mut Trajectory, agent: usize, states: &[i64]) -> PyResult<()> {
        let groups = self.session.policy().groups();
        let group = groups.row(agent);
        if states.len() != group.len() {
            let message = format!("agent {agent} sees {} agents, not {}", group.len(), states.len());
            return Err(bad("observations", message));
        }
        for (&member, &state) in group.iter().zip(states) {
            let size = self.session.world().states(member as usize);
            let state = usize::try_from(state).ok().filter(|&state| state < size).ok_or_else(|| {
                bad("observations", format!("agent {member} cannot be in state {state}; it has {size}"))
            })?;
            *trajectory.pair_mut(member as usize, 0).0 = state as u8;
        }
        Ok(())
    }

    fn law<'py>(
        &self,
        py: Python<'py>,
        agent: usize,
        trajectory: &Trajectory,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut law = vec![0.0; self.session.world().actions(agent)];
        self.session.policy().law(agent, trajectory, 0, &mut law);
        Ok(law.into_pyarray(py))
    }
}

/// A list of an array an agent.
fn arrays<'py>(py: Python<'py>, rows: &Ragged<f64>) -> Vec<Bound<'py, PyArray1<f64>>> {
    rows.iter().map(|row| PyArray1::from_slice(py, row)).collect()
}

/// A configuration with every setting resolved, as TOML.
#[pyfunction]
pub fn resolve(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    settings: &Bound<'_, PyDict>,
    own: &Bound<'_, Own>,
) -> PyResult<String> {
    let config = config(source, settings, own.borrow().registry())?;
    let resolved = without_lock(py, || phalanx::run::resolve(&config))?;
    Ok(resolved.to_toml())
}

/// Kinds of utilities that the library has.
#[pyfunction]
pub fn utility_kinds() -> Vec<&'static str> {
    phalanx::utility::KNOWN_KINDS.to_vec()
}

/// Names and descriptions of the presets.
#[pyfunction]
pub fn presets() -> Vec<(&'static str, &'static str)> {
    use phalanx::run::preset;
    preset::names().map(|name| (name, preset::description(name).unwrap_or_default())).collect()
}

/// The command line with these arguments, the program's name first; returns the exit status.
#[pyfunction]
pub fn command_line(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| phalanx_cli::main_of(arguments, &phalanx::run::Registry::default()))
}

/// The `output` object of a case, both as JSON.
#[pyfunction]
pub fn exact(py: Python<'_>, case: &str) -> PyResult<String> {
    use phalanx::exact::{Case, Input, report};
    let input: Input = serde_json::from_str(case).map_err(|error| bad("model", error))?;
    let case = Case::new(input).map_err(|error| exception(&error))?;
    without_lock(py, || report(&case).map(|report| report.to_string()))
}
