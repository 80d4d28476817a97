//! What can be wrong with input. Every message is one line.

use std::fmt;

/// Which input an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The road network, `roadnet.json`.
    Roadnet,
    /// The flows, `flow.json`.
    Flow,
    /// The configuration that names the two.
    Configuration,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Roadnet => "roadnet",
            Source::Flow => "flow",
            Source::Configuration => "configuration",
        })
    }
}

/// What is wrong with input, and where.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file is no JSON.
    #[error("{source_file}: line {line}: {what}")]
    Syntax {
        /// Which file.
        source_file: Source,
        /// Line, from 1.
        line: usize,
        /// What was expected.
        what: String,
    },
    /// A file is JSON but makes no sense.
    #[error("{source_file}: line {line}: {place}: {what}")]
    Content {
        /// Which file.
        source_file: Source,
        /// Line, from 1.
        line: usize,
        /// The thing that is wrong: its kind and id.
        place: String,
        /// What is wrong, and what is allowed.
        what: String,
    },
    /// Settings of a simulation or of a generator that are out of range.
    #[error("{key}: {what}")]
    Setting {
        /// Name of the setting.
        key: &'static str,
        /// Its value and what is allowed.
        what: String,
    },
    /// A junction has no such phase.
    #[error("junction {id}: phase {phase} does not exist, it has phases 0 to {last}")]
    Phase {
        /// Id of the junction's intersection.
        id: String,
        /// The phase that was asked for.
        phase: usize,
        /// The junction's last phase.
        last: usize,
    },
    /// There is no junction with this number.
    #[error("junction {junction} does not exist, there are {count}")]
    Junction {
        /// The number that was asked for.
        junction: usize,
        /// How many there are.
        count: usize,
    },
    /// Bytes that are no saved state of this simulation.
    #[error("saved state: {what}")]
    State {
        /// What is wrong with them.
        what: String,
    },
}

impl Error {
    pub(crate) fn setting(key: &'static str, what: impl Into<String>) -> Self {
        Error::Setting { key, what: what.into() }
    }

    pub(crate) fn state(what: impl Into<String>) -> Self {
        Error::State { what: what.into() }
    }
}

/// A result whose error is an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// That a number is out of its range. Very large and very small ones are written with an exponent.
pub(crate) fn out_of_range(value: f64, least: f64, most: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-6..1e16).contains(&size) || !size.is_finite() {
        format!("must be from {least} to {most}, is {value}")
    } else {
        format!("must be from {least} to {most}, is {value:e}")
    }
}
