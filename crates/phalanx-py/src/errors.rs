//! Errors of the library as Python exceptions, and exceptions of Python on their way through the library.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use phalanx::Error;
use phalanx::base::text::shown;
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    phalanx,
    ConfigError,
    PyValueError,
    "A setting, an argument or a file that cannot be used; the message begins with its name."
);
create_exception!(
    phalanx,
    TrainingError,
    PyRuntimeError,
    "A run that could not go on: NaN or infinity where a number is needed, a file that cannot be written."
);
create_exception!(
    phalanx,
    Interrupted,
    PyKeyboardInterrupt,
    "Ctrl-C while training. A checkpoint holds what was done; the message says how to go on."
);

/// The exception for an error of the library.
pub fn exception(error: &Error) -> PyErr {
    let message = error.to_string();
    if error.is_bad_input() { ConfigError::new_err(message) } else { TrainingError::new_err(message) }
}

/// An argument that cannot be used.
pub fn bad(argument: &str, message: impl std::fmt::Display) -> PyErr {
    ConfigError::new_err(line(argument, message))
}

/// An argument of a type that cannot be used.
pub fn wrong_type(argument: &str, message: impl std::fmt::Display) -> PyErr {
    PyTypeError::new_err(line(argument, message))
}

/// One line, however long the value that it repeats is.
fn line(argument: &str, message: impl std::fmt::Display) -> String {
    format!("{}: {}", shown(argument), shown(&message.to_string()))
}

/// Carries an exception of somebody's Python code through the library, which does not know of any.
///
/// It unwinds: whatever was going on is left where it is, as if the process had been killed, and nothing is
/// written down that came from a failed call. [`without_lock`] catches it.
pub fn throw(exception: PyErr) -> ! {
    resume_unwind(Box::new(exception))
}

/// The exception that unwinding carried, or one that says that this is a bug.
pub fn caught(payload: Box<dyn Any + Send>) -> PyErr {
    match payload.downcast::<PyErr>() {
        Ok(exception) => *exception,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
            TrainingError::new_err(format!("internal error, please report it: {text}"))
        }
    }
}

/// Runs `work` of the library with the interpreter's lock released. Threads of the library that ask for the
/// lock, to call somebody's Python code, would else wait for a thread that waits for them.
pub fn without_lock<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> phalanx::Result<T> + Send,
) -> PyResult<T> {
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(exception(&error)),
        Err(payload) => Err(caught(payload)),
    }
}
