//! A function of Python that is called after every iteration, and may stop the run.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use phalanx::algorithm::Summary;
use phalanx::run::{Evaluator, Session};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{bad, without_lock};
use crate::session::Fixed;
use crate::watch::{Caller, numbers};

/// `function(Iteration) -> whether to stop`.
pub struct Hook {
    function: Arc<Py<PyAny>>,
    path: PathBuf,
}

/// What the thread that calls Python asks of the one that trains, which waits for it.
enum Question {
    /// The policy as it is now.
    Policy(Sender<phalanx::Result<Evaluator>>),
    /// Nothing more: what the function has said.
    Over(PyResult<bool>),
}

/// An iteration that has just ended, for as long as the function is being called.
#[pyclass(frozen, module = "phalanx._phalanx")]
pub struct Iteration {
    summary: Summary,
    agent_steps: u64,
    comm_bytes: u64,
    /// The run's folder.
    #[pyo3(get)]
    path: PathBuf,
    ask: Mutex<Option<Sender<Question>>>,
}

#[pymethods]
impl Iteration {
    /// Its row of `metrics.csv`, but for traffic by kind.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = numbers(py, &self.summary)?;
        dict.set_item("agent_steps", self.agent_steps)?;
        dict.set_item("comm_bytes", self.comm_bytes)?;
        Ok(dict)
    }

    /// The policy as it is now, with its multipliers.
    fn fixed(&self, py: Python<'_>) -> PyResult<Fixed> {
        let (answer, found) = channel();
        let ask = self.ask.lock().ok().and_then(|ask| ask.clone());
        if ask.is_none_or(|ask| ask.send(Question::Policy(answer)).is_err()) {
            return Err(bad("policy", "its iteration is over; ask for it while callback is being called"));
        }
        // Whoever trains may need the lock to answer.
        without_lock(py, move || found.recv().unwrap_or(Err(phalanx::Error::Stopped))).map(Fixed::from)
    }
}

impl Hook {
    pub fn new(function: Py<PyAny>, path: &Path) -> Self {
        Hook { function: Arc::new(function), path: path.to_path_buf() }
    }

    /// Calls the function on the thread that has called, and answers what it asks. Returns whether to stop.
    pub fn call(&self, caller: &Caller<'_>, summary: &Summary, session: &mut Session) -> PyResult<bool> {
        let (ask, questions) = channel();
        let iteration = Iteration {
            summary: summary.clone(),
            agent_steps: session.algorithm().progress().agent_steps,
            comm_bytes: session.algorithm().traffic().bytes(),
            path: self.path.clone(),
            ask: Mutex::new(Some(ask.clone())),
        };
        let function = self.function.clone();
        caller.send(Box::new(move |py| {
            let said = Py::new(py, iteration).and_then(|iteration| {
                let said = function.call1(py, (iteration.clone_ref(py),));
                if let Ok(mut ask) = iteration.get().ask.lock() {
                    *ask = None;
                }
                said?.extract(py)
            });
            drop(ask.send(Question::Over(said)));
        }));
        loop {
            match questions.recv() {
                Ok(Question::Policy(answer)) => {
                    let policy = session.settle_policy().and_then(|()| session.evaluator());
                    drop(answer.send(policy));
                }
                Ok(Question::Over(said)) => return said,
                Err(_) => return Err(PyRuntimeError::new_err("callback: nobody was there to call it")),
            }
        }
    }
}
