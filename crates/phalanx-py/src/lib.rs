//! The Python package: everything that `import phalanx` needs of the library. The package itself is Python around this module,
//! in `python/phalanx`; what is public, and documented for people, is there.

mod config;
mod env;
mod errors;
mod factored;
mod own;
mod parallel;
mod session;
mod train;
mod utility;
mod values;
mod watch;

use pyo3::prelude::*;

#[pymodule]
mod _phalanx {
    #[pymodule_export]
    use crate::env::Games;
    #[pymodule_export]
    use crate::errors::{ConfigError, Interrupted, TrainingError};
    #[pymodule_export]
    use crate::factored::factored_world;
    #[pymodule_export]
    use crate::own::{Own, OwnWorld};
    #[pymodule_export]
    use crate::parallel::parallel_world;
    #[pymodule_export]
    use crate::session::{Fixed, command_line, exact, iterations, presets, resolve, utility_kinds};
    #[pymodule_export]
    use crate::train::{resume, train};
    #[pymodule_export]
    use crate::utility::PythonUtility;
    #[pymodule_export]
    use crate::watch::finish_work;
}
