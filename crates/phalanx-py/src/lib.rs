//! The Python package: everything that `import phalanx` needs of the library. The package itself is Python
//! around this module, in `python/phalanx`; what is public, and documented for people, is there.

mod certify;
mod config;
mod env;
mod errors;
mod export;
mod factored;
mod function;
mod hook;
mod own;
mod parallel;
mod session;
mod train;
mod utility;
mod values;
mod watch;

use pyo3::pymodule;

#[pymodule]
mod _phalanx {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        certify::{certify, check_certificate},
        config::Configuration,
        env::Games,
        errors::{ConfigError, Interrupted, TrainingError},
        export::export,
        factored::factored_world,
        hook::Iteration,
        own::{Own, OwnWorld},
        parallel::parallel_world,
        session::{Fixed, command_line, exact, presets, utility_kinds, world_kinds},
        train::{resume, train},
        utility::PythonUtility,
        watch::finish_work,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("version", env!("CARGO_PKG_VERSION"))
    }
}
