//! A policy that is there: evaluated, asked for actions.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use numpy::{
    PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArrayDyn,
    PyUntypedArrayMethods,
};
use phalanx::Ragged;
use phalanx::algorithm::{DeviceChoice, EvaluationDevice};
use phalanx::base::{durable, own_folder};
use phalanx::run::{Evaluator, WorldConfig};
use phalanx::world::Evolution;
use phalanx::world::Trajectory;
use pyo3::prelude::*;

use crate::config::Configuration;
use crate::errors::{bad, exception, without_lock};
use crate::function::FunctionPolicy;
use crate::own::Own;
use crate::watch::watch_all;

/// A world with its problem and a policy that is not trained any more.
#[pyclass(frozen, module = "phalanx._phalanx")]
pub struct Fixed {
    pub(crate) evaluator: Evaluator,
    /// N_i^κ.
    groups: Ragged<u32>,
}

impl From<Evaluator> for Fixed {
    fn from(evaluator: Evaluator) -> Self {
        let groups = evaluator.policy().groups();
        Fixed { evaluator, groups }
    }
}

#[pymethods]
impl Fixed {
    /// The run in a folder, with its trained policy; in a world or behind links that `sets` change.
    #[staticmethod]
    #[pyo3(signature = (path, own, sets = Vec::new()))]
    fn of_run(
        py: Python<'_>,
        path: PathBuf,
        own: &Bound<'_, Own>,
        sets: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let registry = own.borrow().registry.clone();
        let sets: Vec<(&str, &str)> =
            sets.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        // On threads of its own: others would not live on in a forked process.
        let evaluator =
            watch_all(py, None, &Arc::default(), || Evaluator::from_run_in(&path, &registry, &sets))?;
        Ok(evaluator.into())
    }

    /// A configuration with a scripted policy: `uniform`, or one that the world knows.
    #[staticmethod]
    fn scripted(py: Python<'_>, config: &Bound<'_, Configuration>, policy: &str) -> PyResult<Self> {
        let config = &config.get().0;
        let evaluator = watch_all(py, None, &Arc::default(), || Evaluator::scripted(config, policy))?;
        Ok(evaluator.into())
    }

    /// A configuration with a policy of somebody's own: see [`FunctionPolicy`].
    #[staticmethod]
    fn of_function(
        py: Python<'_>,
        config: &Bound<'_, Configuration>,
        function: Py<PyAny>,
        sees_all: bool,
    ) -> PyResult<Self> {
        let config = &config.get().0;
        let evaluator = watch_all(py, None, &Arc::default(), || {
            config.links.refuse("a function sees what its environment shows")?;
            Evaluator::with_policy(config, |world| {
                Ok(Box::new(FunctionPolicy::new(world, config.kappa, function, sees_all)))
            })
        })?;
        Ok(evaluator.into())
    }

    /// |A_i|.
    #[getter]
    fn action_counts(&self) -> Vec<usize> {
        self.evaluator.policy().action_counts().to_vec()
    }

    #[getter]
    fn agents(&self) -> usize {
        self.evaluator.world().graph().agents()
    }

    /// N_i^κ of every agent, ascending.
    #[getter]
    fn groups(&self) -> Vec<Vec<u32>> {
        self.groups.iter().map(<[u32]>::to_vec).collect()
    }

    /// Whether the world is simulated whole.
    #[getter]
    fn is_joint(&self) -> bool {
        matches!(self.evaluator.world().evolution(), Evolution::Joint(_))
    }

    /// What names of agents begin with in environments.
    #[getter]
    fn prefix(&self) -> &'static str {
        agent_prefix(&self.evaluator.config().world)
    }

    /// How many numbers each agent's neural network reads of a view; none where states are read.
    #[getter]
    fn widths(&self) -> Vec<Option<usize>> {
        (0..self.agents()).map(|i| self.evaluator.policy().rows_read(i)).collect()
    }

    /// The assessment that `phalanx eval --json` prints, as JSON, with exact values where they are quick to
    /// have.
    fn assess(
        &self,
        py: Python<'_>,
        episodes: usize,
        seed: u64,
        confidence: f64,
        threads: Option<usize>,
        device: &str,
    ) -> PyResult<String> {
        let evaluator = &self.evaluator;
        watch_all(py, threads, evaluator.stop_flag(), || {
            let device = EvaluationDevice::new(DeviceChoice::from_name(device)?);
            let assessment = evaluator.assess_on(&device, episodes, seed, confidence)?;
            let n = evaluator.world().graph().agents();
            let verdicts = serde_json::to_value(assessment.agents(n)).unwrap_or_default();
            let mut value = serde_json::to_value(assessment).unwrap_or_default();
            value["verdicts"] = verdicts;
            value["exact"] = serde_json::to_value(evaluator.exact().ok().flatten()).unwrap_or_default();
            Ok(value.to_string())
        })
    }

    /// λ_i of every agent, `[state, action]`, pooled over fresh episodes.
    fn occupancy<'py>(
        &self,
        py: Python<'py>,
        episodes: usize,
        seed: u64,
        threads: Option<usize>,
    ) -> PyResult<Vec<Bound<'py, PyArray2<f64>>>> {
        let (evaluator, world) = (&self.evaluator, self.evaluator.world());
        let found = watch_all(py, threads, evaluator.stop_flag(), || evaluator.occupancy(episodes, seed))?;
        let table = |(i, row)| PyArray1::from_slice(py, row).reshape([world.states(i), world.actions(i)]);
        found.iter().enumerate().map(table).collect()
    }

    /// μ of every agent.
    fn multipliers<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyArray1<f64>>> {
        arrays(py, self.evaluator.mu())
    }

    /// θ of every agent, flat.
    fn theta<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyArray1<f64>>> {
        arrays(py, self.evaluator.policy().theta())
    }

    /// Writes the policy into a folder, with the settings that it is read by: what [`Fixed::of_run`] needs.
    fn save(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        let evaluator = &self.evaluator;
        without_lock(py, || {
            // Saved once more it is replaced; anything else that is there is left alone.
            own_folder::claim(&folder, "policy", || false).map_err(|error| match error {
                phalanx::Error::Argument { message, .. } => phalanx::Error::argument("path", message),
                other => other,
            })?;
            let config = evaluator.config().to_toml();
            durable::replace_bytes(&folder.join("config.toml"), config.as_bytes())?;
            phalanx::policy::save(evaluator.policy(), &folder.join("policy.safetensors"))
        })
    }

    /// Probabilities of agent i's actions, `[copy, action]`, given what it observes in each copy, `[copy,
    /// number]`: the states of its neighbourhood, ascending; or in a world that is simulated whole the view
    /// that an environment of this package shows, or these states and what the world shows to all.
    fn laws<'py>(
        &self,
        py: Python<'py>,
        agent: usize,
        observations: Observations<'py>,
        shared: Option<PyReadonlyArray1<'py, f32>>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (mut moment, mut law) = (self.moment(), Vec::new());
        if let Some(shared) = &shared {
            let (out, shared) = (moment.global_state_mut(0), shared.as_slice()?);
            if out.len() != shared.len() {
                return Err(bad("observations", format!("{} numbers, not {}", shared.len(), out.len())));
            }
            out.copy_from_slice(shared);
        }
        let [copies, width] = *observations.shape() else {
            return Err(bad("observations", "a row per copy is needed"));
        };
        let actions = self.actions_of(agent)?;
        let mut laws = Vec::with_capacity(copies * actions);
        for k in 0..copies {
            self.law_of(agent, &observations, k * width..(k + 1) * width, &mut moment, &mut law)?;
            laws.extend_from_slice(&law);
        }
        PyArray1::from_vec(py, laws).reshape([copies, actions])
    }

    /// Actions of some agents in many copies: `observations[copy, agent, number]`, of which each agent reads
    /// as many as it needs, and a number from [0, 1) for each. Without these the likeliest ones.
    fn act<'py>(
        &self,
        py: Python<'py>,
        agents: Vec<usize>,
        observations: Observations<'py>,
        uniform: Option<PyReadonlyArray2<'py, f64>>,
    ) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let (count, shape) = (agents.len(), observations.shape());
        let (copies, width) = (shape[0], shape[2]);
        let uniform = uniform.as_ref().map(|uniform| uniform.as_slice()).transpose()?;
        let (mut moment, mut law) = (self.moment(), Vec::new());
        let mut actions = Vec::with_capacity(copies * count);
        for (k, &agent) in agents.iter().cycle().take(copies * count).enumerate() {
            let needed = match observations {
                Observations::States(_) => self.groups.row(agent).len(),
                Observations::Views(_) => self.evaluator.policy().rows_read(agent).unwrap_or(width),
            };
            let seen = k * width..k * width + needed.min(width);
            self.law_of(agent, &observations, seen, &mut moment, &mut law)?;
            actions.push(choice(&law, uniform.map(|uniform| uniform[k])) as i64);
        }
        PyArray1::from_vec(py, actions).reshape([copies, count])
    }
}

/// What agents see: `[copy, number]` of one, `[copy, agent, number]` of many.
#[derive(FromPyObject)]
pub enum Observations<'py> {
    States(PyReadonlyArrayDyn<'py, i64>),
    Views(PyReadonlyArrayDyn<'py, f32>),
}

impl Observations<'_> {
    fn shape(&self) -> &[usize] {
        match self {
            Observations::States(states) => states.shape(),
            Observations::Views(views) => views.shape(),
        }
    }
}

/// The action that a number from [0, 1) falls on, or the likeliest.
fn choice(law: &[f64], number: Option<f64>) -> usize {
    let Some(number) = number else {
        return (0..law.len()).fold(0, |best, b| if law[b] > law[best] { b } else { best });
    };
    let mut total = 0.0;
    let found = law.iter().position(|p| {
        total += p;
        total > number
    });
    found.unwrap_or(law.len() - 1)
}

impl Fixed {
    /// |A_i|.
    fn actions_of(&self, agent: usize) -> PyResult<usize> {
        if agent < self.agents() {
            return Ok(self.evaluator.world().actions(agent));
        }
        Err(bad("agent", format!("{agent}; agents are 0 to {}", self.agents() - 1)))
    }

    /// An episode of one step.
    fn moment(&self) -> Trajectory {
        Trajectory::for_world(self.evaluator.world(), 1)
    }

    /// Writes the law of an agent's action, given a part of the observations.
    fn law_of(
        &self,
        agent: usize,
        observations: &Observations<'_>,
        part: Range<usize>,
        moment: &mut Trajectory,
        law: &mut Vec<f64>,
    ) -> PyResult<()> {
        law.resize(self.actions_of(agent)?, 0.0);
        match observations {
            Observations::States(states) => self.law_of_states(agent, &states.as_slice()?[part], moment, law),
            Observations::Views(views) => self.law_of_view(agent, &views.as_slice()?[part], moment, law),
        }
    }

    fn law_of_states(
        &self,
        agent: usize,
        states: &[i64],
        moment: &mut Trajectory,
        law: &mut [f64],
    ) -> PyResult<()> {
        let group = self.groups.row(agent);
        if states.len() != group.len() {
            let message = format!("agent {agent} sees {} agents, not {}", group.len(), states.len());
            return Err(bad("observations", message));
        }
        for (&member, &state) in group.iter().zip(states) {
            let size = self.evaluator.world().states(member as usize);
            let state = usize::try_from(state).ok().filter(|&state| state < size).ok_or_else(|| {
                bad("observations", format!("agent {member} cannot be in state {state}; it has {size}"))
            })?;
            // Policies read their neighbourhoods only: what others have left there does not matter.
            *moment.pair_mut(member as usize, 0).0 = state as u8;
        }
        self.evaluator.policy().law(agent, moment, 0, law);
        Ok(())
    }

    fn law_of_view(
        &self,
        agent: usize,
        view: &[f32],
        moment: &mut Trajectory,
        law: &mut [f64],
    ) -> PyResult<()> {
        if view.iter().any(|number| !number.is_finite()) {
            return Err(bad("observations", format!("agent {agent}'s observation contains NaN or infinity")));
        }
        if self.evaluator.policy().law_of_rows(agent, view, law) {
            return Ok(());
        }
        // Tables read states, which some views show.
        let reads_states = self.evaluator.policy().rows_read(agent).is_none();
        let shown = self.evaluator.world().view(agent, self.groups.row(agent)).filter(|_| reads_states);
        let Some(states) = shown.and_then(|shown| shown.states(view)) else {
            let message = format!("{} numbers are not what agent {agent}'s policy reads", view.len());
            return Err(bad("observations", message));
        };
        self.law_of_states(agent, &states, moment, law)
    }
}

/// What names of agents begin with.
pub fn agent_prefix(world: &WorldConfig) -> &'static str {
    world.settings().map_or("agent", |settings| settings.agent_name())
}

/// A list with an array per agent.
fn arrays<'py>(py: Python<'py>, rows: &Ragged<f64>) -> Vec<Bound<'py, PyArray1<f64>>> {
    rows.iter().map(|row| PyArray1::from_slice(py, row)).collect()
}

/// Kinds of utilities that the library has.
#[pyfunction]
pub fn utility_kinds() -> Vec<&'static str> {
    phalanx::utility::KNOWN_KINDS.to_vec()
}

/// Kinds of worlds that the library has.
#[pyfunction]
pub fn world_kinds() -> Vec<String> {
    phalanx::run::Registry::default().worlds().map(|kind| kind.name().to_string()).collect()
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
    watch_all(py, None, &Arc::default(), || report(&case).map(|report| report.to_string()))
}
