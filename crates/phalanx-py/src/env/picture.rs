//! Pictures of a copy.

use numpy::{PyArray1, PyArray3, PyArrayMethods};
use phalanx_pictures::render::{Board, Moment};
use pyo3::prelude::*;

use super::play::Play;
use crate::errors::without_lock;

/// The present moment of a copy, with what its agents did and earned to get there, as `[row][column][colour]`.
pub fn picture<'py>(
    py: Python<'py>,
    board: &Board,
    copy: &Play,
    reward: Option<usize>,
) -> PyResult<Bound<'py, PyArray3<u8>>> {
    let agents = copy.states.len();
    let rewards = reward.map(|k| copy.earned[k * agents..(k + 1) * agents].iter().map(|&r| r as f32));
    let rewards: Vec<f32> = rewards.into_iter().flatten().collect();
    let moment = Moment {
        states: &copy.states,
        actions: (copy.steps > 0).then_some(&copy.actions),
        rewards: &rewards,
        shared: &copy.shared,
    };
    let pixels = without_lock(py, || board.draw(&moment))?;
    let (width, height) = board.size();
    PyArray1::from_vec(py, pixels).reshape([height, width, 3])
}
