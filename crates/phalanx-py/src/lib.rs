//! The Python package: everything that `import phalanx` needs of the library. The package itself is Python around this module,
//! in `python/phalanx`; what is public, and documented for people, is there.

mod config;
mod env;
mod errors;
mod values;

use pyo3::prelude::*;

#[pymodule]
mod _phalanx {
    #[pymodule_export]
    use crate::env::Games;
    #[pymodule_export]
    use crate::errors::{ConfigError, Interrupted, TrainingError};
}
