//! Pictures of a copy.

use numpy::PyArray3;
use phalanx::run::Config;
use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;

use super::play::Play;

/// Draws moments of a world.
pub struct Board;

/// The board of a configuration's world.
pub fn board(_config: &Config) -> phalanx::Result<Board> {
    Ok(Board)
}

/// The present moment of a copy, with what its agents did and earned to get there.
pub fn picture<'py>(
    _py: Python<'py>,
    _board: &Board,
    _copy: &Play,
    _reward: Option<usize>,
) -> PyResult<Bound<'py, PyArray3<u8>>> {
    Err(PyNotImplementedError::new_err("pictures are not connected"))
}
