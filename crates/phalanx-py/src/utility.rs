//! Utilities that somebody wrote in Python.

use std::sync::{Arc, Mutex, Weak};

use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use phalanx::Error;
use phalanx::base::stream::{Place, Purpose, Stream};
use phalanx::utility::{LocalSpace, Utility};
use pyo3::prelude::*;

use crate::errors::bad;
use crate::watch::in_python;

/// A function of an agent's occupancy and its gradient, both called as `f(occupancy[S, A], gamma, agent)`.
#[pyclass(frozen, module = "phalanx._phalanx")]
#[derive(Clone)]
pub struct PythonUtility(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    value: Py<PyAny>,
    gradient: Py<PyAny>,
    /// Smallest and largest value, where they are known.
    range: Option<(f64, f64)>,
    /// Whether agents' utilities differ.
    by_agent: bool,
    /// Whether the gradient is compared with differences of the value.
    is_checked: bool,
    /// Where agents' utilities do not differ: those made so far.
    made: Mutex<Vec<(LocalSpace, Weak<Local>)>>,
}

#[pymethods]
impl PythonUtility {
    #[new]
    fn new(
        value: Py<PyAny>,
        gradient: Py<PyAny>,
        range: Option<(f64, f64)>,
        by_agent: bool,
        is_checked: bool,
    ) -> Self {
        let made = Mutex::default();
        PythonUtility(Arc::new(Shared { value, gradient, range, by_agent, is_checked, made }))
    }
}

impl PythonUtility {
    /// An agent's utility. Its gradient is checked first.
    pub fn of(&self, agent: usize, space: LocalSpace) -> phalanx::Result<Arc<dyn Utility>> {
        let found = || {
            let made = self.0.made.lock().ok()?;
            made.iter().filter(|(other, _)| *other == space).find_map(|(_, local)| local.upgrade())
        };
        if !self.0.by_agent
            && let Some(local) = found()
        {
            return Ok(local);
        }
        let local = Arc::new(Local { shared: self.0.clone(), agent });
        check(&local, space, self.0.is_checked)?;
        if let (false, Ok(mut made)) = (self.0.by_agent, self.0.made.lock()) {
            made.retain(|(_, other)| other.strong_count() > 0);
            made.push((space, Arc::downgrade(&local)));
        }
        Ok(local)
    }
}

/// Points at which a gradient is checked.
const POINTS: u32 = 2;
/// By how much a slope may be off, as a share of it; differences of smooth functions are far closer.
const TOLERANCE: f64 = 1e-3;
/// The same as a share of the largest slope: differences have errors of their own.
const SHARE_OF_LARGEST: f64 = 1e-6;

/// Whether the utility has a finite value, and its gradient is one, at occupancies that visit everything.
fn check(local: &Local, space: LocalSpace, is_checked: bool) -> phalanx::Result<()> {
    let stream = Stream::new(0x5eed);
    for point in 0..POINTS {
        let place = Place { purpose: Purpose::Search, iteration: 0, trajectory: point };
        let mut words = stream.sequence(place, 0);
        let weights: Vec<f64> = (0..space.cells()).map(|_| 0.2 + words.uniform()).collect();
        let mass = 1.0 / ((1.0 - space.gamma) * weights.iter().sum::<f64>());
        let mut occupancy: Vec<f64> = weights.iter().map(|weight| weight * mass).collect();
        let value = local.value(&occupancy, space);
        if !value.is_finite() {
            let message = format!("gives {value} at an occupancy that visits every state and action");
            return Err(Error::config("value", message));
        }
        if is_checked {
            check_gradient(local, space, &mut occupancy)?;
        }
    }
    Ok(())
}

/// Compares every slope with a central difference of the value.
fn check_gradient(local: &Local, space: LocalSpace, occupancy: &mut [f64]) -> phalanx::Result<()> {
    let mut slopes = vec![f64::NAN; occupancy.len()];
    local.gradient(occupancy, space, &mut slopes);
    let largest = slopes.iter().fold(0.0, |largest: f64, slope| largest.max(slope.abs()));
    for (cell, &slope) in slopes.iter().enumerate() {
        let center = occupancy[cell];
        let step = 1e-5 * center;
        let mut value_at = |x: f64| {
            occupancy[cell] = x;
            local.value(occupancy, space)
        };
        let (above, below) = (value_at(center + step), value_at(center - step));
        occupancy[cell] = center;
        let difference = (above - below) / (2.0 * step);
        // Values are rounded; sums in them more than once.
        let rounding = 64.0 * f64::EPSILON * above.abs().max(below.abs()) / step;
        let allowed = TOLERANCE * difference.abs() + SHARE_OF_LARGEST * largest + rounding;
        let agrees = (slope - difference).abs() <= allowed;
        // A NaN on either side does not agree.
        if !agrees {
            let (s, a) = (cell / space.actions, cell % space.actions);
            let message = format!(
                "is not the gradient of value: entry [{s}, {a}] is {slope}, but differences of value give {difference} \
                 (agent {}; pass check=False if the utility is not smooth)",
                local.agent
            );
            return Err(Error::config("gradient", message));
        }
    }
    Ok(())
}

/// One agent's.
#[derive(Debug)]
struct Local {
    shared: Arc<Shared>,
    agent: usize,
}

impl Local {
    /// Calls one of its functions and makes something of what comes back.
    fn call<T>(
        &self,
        function: &Py<PyAny>,
        occupancy: &[f64],
        space: LocalSpace,
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> T {
        in_python(|py| {
            let table = PyArray2::<f64>::zeros(py, [space.states, space.actions], false);
            table.try_readwrite()?.as_slice_mut()?.copy_from_slice(occupancy);
            read(function.bind(py).call1((table, space.gamma, self.agent))?.as_any())
        })
    }
}

impl Utility for Local {
    fn value(&self, occupancy: &[f64], space: LocalSpace) -> f64 {
        self.call(&self.shared.value, occupancy, space, |found| found.extract())
    }

    fn gradient(&self, occupancy: &[f64], space: LocalSpace, out: &mut [f64]) {
        self.call(&self.shared.gradient, occupancy, space, |found| {
            let table: PyReadonlyArray2<'_, f64> = found.extract()?;
            let (expected, shape) = ([space.states, space.actions], table.shape());
            if shape != expected {
                return Err(bad("gradient", format!("has shape {shape:?}, not {expected:?}")));
            }
            out.iter_mut().zip(table.as_array()).for_each(|(slope, &found)| *slope = found);
            Ok(())
        });
    }

    fn range(&self, _: LocalSpace, _: f64) -> Option<(f64, f64)> {
        self.shared.range
    }
}
