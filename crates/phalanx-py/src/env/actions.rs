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
    Single(Vec<f32>),
    Double(Vec<f64>),
}

/// Actions that go from −1 to 1, or are numbers.
#[derive(Clone, Copy)]
pub enum Space<'a> {
    Continuous,
    /// As many an agent as the world says.
    Discrete(&'a dyn World),
}

impl Actions {
    /// What the agents of a copy do.
    pub fn of(&self, copy: usize, agents: usize) -> Moves<'_> {
        let range = copy * agents..(copy + 1) * agents;
        match self {
            Actions::Discrete(actions) => Moves::Discrete(&actions[range]),
            Actions::Single(actions) => Moves::Single(&actions[range]),
            Actions::Double(actions) => Moves::Double(&actions[range]),
        }
    }

    /// Reads an array `[copy][agent]`; of continuous actions `[copy][agent][1]`, too.
    pub fn read(
        array: &Bound<'_, PyUntypedArray>,
        [copies, agents]: [usize; 2],
        space: Space<'_>,
    ) -> PyResult<Self> {
        let shape = array.shape();
        let is_continuous = matches!(space, Space::Continuous);
        if shape != [copies, agents] && !(is_continuous && shape == [copies, agents, 1]) {
            return Err(bad("actions", format!("the shape is {shape:?}; [{copies}, {agents}] is needed")));
        }
        let place = |k: usize| format!("actions[{}, {}]", k / agents, k % agents);
        match space {
            Space::Continuous => {
                if let Some(actions) = values::<f32>(array)? {
                    actions
                        .iter()
                        .enumerate()
                        .try_for_each(|(k, &up)| check_share(up.into(), || place(k)))?;
                    Ok(Actions::Single(actions))
                } else if let Some(actions) = values::<f64>(array)? {
                    actions.iter().enumerate().try_for_each(|(k, &up)| check_share(up, || place(k)))?;
                    Ok(Actions::Double(actions))
                } else {
                    Err(wrong_type(array, "float32 or float64"))
                }
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
        let (mut discrete, mut double) = (Vec::new(), Vec::new());
        for (i, name) in names.iter().enumerate() {
            let Some(action) = dict.get_item(name)? else {
                return Err(bad("actions", format!("`{name}` is missing")));
            };
            let place = || format!("actions[\"{name}\"]");
            match space {
                Space::Continuous => {
                    let up = match share(&action).ok_or_else(|| wrong_share(&action, &place()))? {
                        Share::Single(up) => {
                            check_share(up.into(), place)?;
                            copy.in_single_precision(i, up)
                        }
                        Share::Double(up) => {
                            check_share(up, place)?;
                            up
                        }
                    };
                    double.push(up);
                }
                Space::Discrete(world) => {
                    let Ok(number) = action.extract::<i64>() else {
                        return Err(not_a_number(&action, world.actions(i), &place()));
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
            Space::Continuous => Actions::Double(double),
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

fn check_share(action: f64, place: impl Fn() -> String) -> PyResult<()> {
    if (-1.0..=1.0).contains(&action) {
        return Ok(());
    }
    Err(bad(&place(), format!("{action}; allowed are -1 to 1")))
}

fn shown(action: &Bound<'_, PyAny>) -> String {
    action.repr().map_or_else(|_| "something else".into(), |text| text.to_string())
}

fn wrong_share(action: &Bound<'_, PyAny>, place: &str) -> PyErr {
    let text = shown(action);
    PyTypeError::new_err(format!(
        "{place}: {text}; a float32 array of shape (1,) is needed, with a number from -1 to 1"
    ))
}

fn not_a_number(action: &Bound<'_, PyAny>, actions: usize, place: &str) -> PyErr {
    let text = shown(action);
    PyTypeError::new_err(format!("{place}: {text} is no integer; allowed are 0 to {}", actions - 1))
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
