//! Conic programs, solved by Clarabel.

use clarabel::solver::{DefaultSolver, IPSolver, SolverError};

pub use clarabel::algebra::CscMatrix;
pub use clarabel::solver::{DefaultSettings, DefaultSolution, SolverStatus, SupportedConeT};

/// Minimises `costs`·x where `constants` − `coefficients`·x lies in the product of `cones`.
pub fn minimise(
    costs: &[f64],
    coefficients: &CscMatrix<f64>,
    constants: &[f64],
    cones: &[SupportedConeT<f64>],
    settings: DefaultSettings<f64>,
) -> Result<DefaultSolution<f64>, SolverError> {
    let no_squares = CscMatrix::zeros((costs.len(), costs.len()));
    let mut solver = DefaultSolver::new(&no_squares, costs, coefficients, constants, cones, settings)?;
    solver.solve();
    Ok(solver.solution)
}
