//! The solvers that Phalanx takes from elsewhere, as functions without type parameters.
//!
//! Both libraries are generic: called from the main crate, their code would be compiled again with every
//! change of it, and with every variant of it (tests, MPI). Here it is compiled once.

#![forbid(unsafe_code)]

use faer::linalg::solvers::{PartialPivLu, Solve, SolveCore};
use faer::{Conj, MatRef};

pub use faer::{Mat, MatMut};

pub mod conic;

/// A square matrix, factored with partial pivoting.
#[derive(Debug)]
pub struct Lu(PartialPivLu<f64>);

impl Lu {
    /// Factors `matrix`.
    pub fn new(matrix: MatRef<'_, f64>) -> Self {
        Lu(matrix.partial_piv_lu())
    }

    /// A⁻¹·`rhs`.
    pub fn solve(&self, rhs: &Mat<f64>) -> Mat<f64> {
        self.0.solve(rhs)
    }

    /// Replaces x by A⁻¹·x.
    pub fn solve_in_place(&self, x: &mut Mat<f64>) {
        self.0.solve_in_place_with_conj(Conj::No, x.as_mut());
    }

    /// Replaces x by A⁻ᵀ·x.
    pub fn solve_transpose_in_place(&self, x: &mut Mat<f64>) {
        self.0.solve_transpose_in_place_with_conj(Conj::No, x.as_mut());
    }
}
