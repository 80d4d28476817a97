//! The one error type of the library.

use std::path::Path;

use super::text;

/// What can go wrong, with enough in the message to act on it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting that cannot be used. `field` is its name as written in the config file.
    #[error("{field}: {message}")]
    Config {
        /// Dotted name, e.g. `dual.eta_mu`.
        field: String,
        /// What is wrong and what is allowed.
        message: String,
    },
    /// An argument of a call that cannot be used: a flag of the command line, a keyword in Python.
    #[error("{name}: {message}")]
    Argument {
        /// Its name, e.g. `out`.
        name: &'static str,
        /// What is wrong and what is allowed.
        message: String,
    },
    /// A file that cannot be read, parsed or used.
    #[error("{path}: {message}")]
    File {
        /// The file as the user named it.
        path: String,
        /// What is wrong and where in the file.
        message: String,
    },
    /// A run's folder that somebody else is working in.
    #[error("{path}: is in use: another process is training in this folder")]
    InUse {
        /// The folder.
        path: String,
    },
    /// A NaN or an infinity appeared while training.
    #[error("iteration {iteration}, agent {agent}: {quantity} is {value}{}{advice}", separator(advice))]
    Diverged {
        /// Iteration that produced it (from 0).
        iteration: usize,
        /// Agent concerned.
        agent: usize,
        /// What: `g`, `mu`, `Q`, `theta`, …
        quantity: &'static str,
        /// The offending value.
        value: f64,
        /// What may help, where that is known.
        advice: &'static str,
    },
    /// The policy cannot be evaluated: its utility has no value there, or one beyond all numbers.
    #[error("agent {agent}: {quantity} of the policy is {value}; its utility has no finite value there")]
    NoValue {
        /// Agent concerned.
        agent: usize,
        /// `f`, `g`, …
        quantity: &'static str,
        /// The offending value.
        value: f64,
    },
    /// Somebody has asked for an end.
    #[error("stopped before the end")]
    Stopped,
    /// The processes of a run cannot go on together.
    #[error("{message}")]
    Communicator {
        /// What happened.
        message: String,
        /// Whether the input is at fault.
        bad_input: bool,
    },
    /// A GPU failed.
    #[error("{message}")]
    Device {
        /// What happened.
        message: String,
    },
    /// Writing a result failed.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file concerned.
        path: String,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// Writing failed in the middle of a run.
    #[error("cannot write {path}: {source}; {checkpoint}")]
    RunWrite {
        /// The file concerned.
        path: String,
        /// The operating system's reason.
        source: std::io::Error,
        /// The checkpoint that the run can go on from, in words.
        checkpoint: String,
    },
}

impl Error {
    /// A setting named `field` is unusable.
    pub fn config(field: impl Into<String>, message: impl Into<String>) -> Self {
        Error::Config { field: text::shown(&field.into()), message: text::shown(&message.into()) }
    }

    /// The argument `name` is unusable.
    pub fn argument(name: &'static str, message: impl Into<String>) -> Self {
        Error::Argument { name, message: text::shown(&message.into()) }
    }

    /// The file at `path` is unusable.
    pub fn file(path: impl AsRef<Path>, message: impl Into<String>) -> Self {
        Error::File { path: path_shown(path), message: text::shown(&message.into()) }
    }

    /// Reading `path` failed.
    pub fn unreadable(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Error::file(path, format!("cannot be read: {source}"))
    }

    /// Writing `path` failed.
    pub fn write(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Error::Write { path: path_shown(path), source }
    }

    /// Whether the input is at fault (exit status 2) rather than the run (exit status 1).
    pub fn is_bad_input(&self) -> bool {
        match self {
            Error::Config { .. } | Error::Argument { .. } | Error::File { .. } | Error::InUse { .. } => true,
            Error::Communicator { bad_input, .. } => *bad_input,
            _ => false,
        }
    }
}

fn path_shown(path: impl AsRef<Path>) -> String {
    text::shown(&path.as_ref().to_string_lossy())
}

fn separator(advice: &str) -> &'static str {
    if advice.is_empty() { "" } else { "; " }
}

/// Result with the library's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Fails with `error` unless `holds`.
pub(crate) fn ensure<E>(holds: bool, error: impl FnOnce() -> E) -> std::result::Result<(), E> {
    if holds { Ok(()) } else { Err(error()) }
}
