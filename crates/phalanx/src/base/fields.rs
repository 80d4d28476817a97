//! What an algorithm must remember to go on as if it had never stopped.

use safetensors::Dtype;

use crate::Ragged;

/// One named piece of state, readable and writable in place.
///
/// An algorithm lists its pieces once; saving and restoring walk the same list, so neither can forget one.
#[derive(Debug)]
pub enum Field<'a> {
    /// Numbers that do not belong to single agents; how many follows from the configuration.
    Numbers(&'a mut [f64]),
    /// The same in single precision.
    SingleNumbers(&'a mut [f32]),
    /// A row per agent.
    Rows(&'a mut Ragged<f64>),
    /// The same in single precision.
    SingleRows(&'a mut Ragged<f32>),
    /// A count.
    Counter(&'a mut u64),
}

impl<'a> Field<'a> {
    /// Numbers in the shape of θ, whose rows belong to agents unless these share them.
    pub fn of_theta(rows: &'a mut Ragged<f64>, is_shared: bool) -> Self {
        if is_shared { Field::Numbers(rows.data_mut()) } else { Field::Rows(rows) }
    }

    /// Kind and count of its numbers.
    pub fn shape(&self) -> (Dtype, usize) {
        match self {
            Field::Numbers(numbers) => (Dtype::F64, numbers.len()),
            Field::SingleNumbers(numbers) => (Dtype::F32, numbers.len()),
            Field::Rows(rows) => (Dtype::F64, rows.data().len()),
            Field::SingleRows(rows) => (Dtype::F32, rows.data().len()),
            Field::Counter(_) => (Dtype::U64, 1),
        }
    }
}

/// The pieces of a state, with their names in checkpoints.
pub type Fields<'a> = Vec<(&'static str, Field<'a>)>;
