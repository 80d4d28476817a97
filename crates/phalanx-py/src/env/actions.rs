//! Actions as Python gives them, checked.

use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use phalanx::world::World;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::play::{Moves, Play};
use crate::errors::bad;

/// Actions of one step, `[copy][agent]`.
pub enum Actions {
    Discrete(Vec<u8>),
    Continuous(Vec<f64>),
}

/// Actions that go from −1 to 1, or are numbers.
#[derive(Clone, Copy)]
pub enum Space<'a> {
    Continuous,
    /// As many per agent as the world says.
    Discrete(&'a dyn World),
}

impl Actions {
    /// What the agents of a copy do.
    pub fn of(&self, copy: usize, agents: usize) -> Moves<'_> {
        let range = copy * agents..(copy + 1) * agents;
        match self {
            Actions::Discrete(actions) => Moves::Discrete(&actions[range]),
            Actions::Continuous(actions) => Moves::Continuous(&actions[range]),
        }
    }

    /// Reads an array `[copy][agent]`; of continuous actions `[copy][agent][1]`, too.
    pub fn read(
        array: &Bound<'_, PyUntypedArray>,
        plays: &[Play],
        agents: usize,
        space: Space<'_>,
    ) -> PyResult<Self> {
        let (shape, copies) = (array.shape(), plays.len());
        let is_continuous = matches!(space, Space::Continuous);
        if shape != [copies, agents] && !(is_continuous && shape == [copies, agents, 1]) {
            return Err(bad("actions", format!("the shape is {shape:?}; [{copies}, {agents}] is needed")));
        }
        let place = |k: usize| format!("actions[{}, {}]", k / agents, k % agents);
        match space {
            Space::Continuous => {
                let shares: Vec<Share> = match (values::<f32>(array)?, values::<f64>(array)?) {
                    (Some(ups), _) => ups.into_iter().map(Share::Single).collect(),
                    (None, Some(ups)) => ups.into_iter().map(Share::Double).collect(),
                    (None, None) => return Err(wrong_type(array, "float32 or float64")),
                };
                let ups = shares.into_iter().enumerate();
                let ups = ups.map(|(k, up)| up.checked(&plays[k / agents], k % agents, || place(k)));
                Ok(Actions::Continuous(ups.collect::<PyResult<_>>()?))
            }
            Space::Discrete(world) => {
                let mut actions = Vec::with_capacity(copies * agents);
                let mut take = |(k, action): (usize, i64)| -> PyResult<()> {
                    actions.push(checked(world, k % agents, action, || place(k))?);
                    Ok(())
                };
                if let Some(values) = values::<u8>(array)? {
                    values.into_iter().map(i64::from).enumerate().try_for_each(&mut take)?;
                } else if let Some(values) = values::<i64>(array)? {
                    values.into_iter().enumerate().try_for_each(&mut take)?;
                } else {
                    return Err(wrong_type(array, "integers"));
                }
                Ok(Actions::Discrete(actions))
            }
        }
    }

    /// Reads a dict of one copy: an action for every agent, nothing else.
    pub fn read_dict(
        dict: &Bound<'_, PyAny>,
        names: &[Py<PyString>],
        space: Space<'_>,
        copy: &Play,
    ) -> PyResult<Self> {
        let py = dict.py();
        let Ok(dict) = dict.cast::<PyDict>() else {
            let kind = dict.get_type().name()?.to_string();
            return Err(PyTypeError::new_err(format!(
                "actions: `{kind}`; a dict with an action for every agent"
            )));
        };
        let (mut discrete, mut continuous) = (Vec::new(), Vec::new());
        for (i, name) in names.iter().enumerate() {
            let Some(action) = dict.get_item(name)? else {
                return Err(bad("actions", format!("`{name}` is missing")));
            };
            let place = || format!("actions[\"{name}\"]");
            match space {
                Space::Continuous => {
                    let up = share(&action).ok_or_else(|| {
                        let needed = "a float32 array of shape (1,) is needed, with a number from -1 to 1";
                        PyTypeError::new_err(format!("{}: {}; {needed}", place(), shown(&action)))
                    })?;
                    continuous.push(up.checked(copy, i, place)?);
                }
                Space::Discrete(world) => {
                    let Some(number) = whole(&action) else {
                        let allowed = format!("allowed are 0 to {}", world.actions(i) - 1);
                        let message = format!("{}: {} is no integer; {allowed}", place(), shown(&action));
                        return Err(PyTypeError::new_err(message));
                    };
                    discrete.push(checked(world, i, number, place)?);
                }
            }
        }
        if dict.len() != names.len() {
            // All agents are there: one is too many.
            let known =
                |key: &Bound<'_, PyAny>| names.iter().any(|name| key.eq(name.bind(py)).unwrap_or(false));
            let extra = dict.keys().iter().find(|key| !known(key));
            let extra = extra.map(|key| key.repr().map(|key| key.to_string())).transpose()?;
            return Err(bad("actions", format!("{} is no agent", extra.unwrap_or_default())));
        }
        Ok(match space {
            Space::Continuous => Actions::Continuous(continuous),
            Space::Discrete(_) => Actions::Discrete(discrete),
        })
    }
}

/// The values of a C-contiguous array, if it has this type.
fn values<T: numpy::Element + Copy>(array: &Bound<'_, PyUntypedArray>) -> PyResult<Option<Vec<T>>> {
    let Ok(array) = array.cast::<PyArrayDyn<T>>() else { return Ok(None) };
    Ok(Some(array.try_readonly()?.as_slice()?.to_vec()))
}

/// A continuous action, in its precision.
enum Share {
    Single(f32),
    Double(f64),
}

impl Share {
    /// What moves a copy's piston as far in double precision, if it is from −1 to 1.
    fn checked(self, copy: &Play, piston: usize, place: impl Fn() -> String) -> PyResult<f64> {
        let (given, up) = match self {
            Share::Single(up) => (up.into(), copy.in_single_precision(piston, up)),
            Share::Double(up) => (up, up),
        };
        if (-1.0..=1.0).contains(&given) {
            return Ok(up);
        }
        Err(bad(&place(), format!("{given}; allowed are -1 to 1")))
    }
}

/// An integer, or the entry of an array of one, as many wrappers hand actions over.
fn whole(action: &Bound<'_, PyAny>) -> Option<i64> {
    action.extract().ok().or_else(|| {
        let array = action.cast::<PyUntypedArray>().ok()?;
        (array.shape() == [1]).then(|| action.get_item(0).ok()?.extract().ok())?
    })
}

/// The entry of an array or a list of one float.
fn share(action: &Bound<'_, PyAny>) -> Option<Share> {
    if let Ok(action) = action.cast::<PyArrayDyn<f32>>() {
        return only_entry(action).map(Share::Single);
    }
    if let Ok(action) = action.cast::<PyArrayDyn<f64>>() {
        return only_entry(action).map(Share::Double);
    }
    let is_list = action.is_instance_of::<PyList>() || action.is_instance_of::<PyTuple>();
    let [up] = action.extract::<Vec<f64>>().ok().filter(|_| is_list)?[..] else { return None };
    Some(Share::Double(up))
}

fn only_entry<T: numpy::Element>(array: &Bound<'_, PyArrayDyn<T>>) -> Option<T> {
    if array.shape() == [1] { array.get_owned(&[0][..]) } else { None }
}

fn shown(action: &Bound<'_, PyAny>) -> String {
    action.repr().map_or_else(|_| "something else".into(), |text| text.to_string())
}

fn wrong_type(array: &Bound<'_, PyUntypedArray>, needed: &str) -> PyErr {
    PyTypeError::new_err(format!("actions: an array of {}; {needed} are needed", array.dtype()))
}

/// An action that agent `agent` has.
fn checked(world: &dyn World, agent: usize, action: i64, place: impl Fn() -> String) -> PyResult<u8> {
    let actions = world.actions(agent);
    match u8::try_from(action) {
        Ok(byte) if usize::from(byte) < actions => Ok(byte),
        _ => Err(bad(&place(), format!("{action}; allowed are 0 to {}", actions - 1))),
    }
}
