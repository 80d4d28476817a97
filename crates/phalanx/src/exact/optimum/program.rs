//! A conic program, handed to Clarabel.

use phalanx_solvers::conic::{
    CscMatrix, DefaultSettings, DefaultSolution, SolverStatus,
    SupportedConeT::{self, ExponentialConeT, NonnegativeConeT, SecondOrderConeT, ZeroConeT},
    minimise,
};

use crate::utility::conic::{Affine, Program, Row};

/// The gap that the solver aims at, relative to the size of the program's numbers. Prices of curved rows are
/// only as good as its square root.
const TARGET_GAP: f64 = 1e-13;

/// The residuals that it aims at.
const TARGET_RESIDUAL: f64 = 1e-10;

/// What is still taken when rounding keeps the solver from its targets.
const ACCEPTED: f64 = 1e-7;

/// How far it goes to the boundary of the cones, one attempt each. A step that ends too close to the boundary
/// of an exponential cone can leave the next one no room; shorter steps avoid that and take longer.
const STEP_FRACTIONS: [f64; 3] = [0.99, 0.9, 0.7];

/// A solved program.
#[derive(Debug)]
pub(super) struct Solution {
    /// The value of every variable.
    pub variables: Vec<f64>,
    /// An upper bound on the maximum, from the dual program.
    pub bound: f64,
    prices: Vec<f64>,
}

impl Solution {
    /// What the maximum gains per unit by which the row may be negative: its multiplier, ≥ 0.
    pub fn price(&self, row: Row) -> f64 {
        self.prices[row.0]
    }
}

/// Why there is no [`Solution`].
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum Unsolved {
    /// No variables satisfy all rows.
    #[error("infeasible")]
    Infeasible,
    /// The solver gave up, in its words.
    #[error("{0}")]
    GaveUp(String),
}

impl Program {
    /// Maximises `objective`.
    pub(super) fn maximise(&self, objective: &Affine) -> Result<Solution, Unsolved> {
        let mut costs = vec![0.0; self.variables];
        objective.terms.iter().for_each(|(variable, by)| costs[*variable] -= by / objective.unit());

        let alone = self.zero.iter().chain(&self.nonnegative).map(|row| (row, row.unit()));
        // The rows of the other cones belong together and cannot be rescaled one by one.
        let together = self.second_order.iter().flatten().chain(self.exponential.iter().flatten());
        // The solver's form: `constants` − coefficients · variables. Repeated entries are added up.
        let (mut constants, mut at_row, mut at_column, mut coefficients) = (vec![], vec![], vec![], vec![]);
        for (row, unit) in alone.chain(together.map(|row| (row, 1.0))) {
            for (variable, by) in &row.terms {
                at_row.push(constants.len());
                at_column.push(*variable);
                coefficients.push(-by / unit);
            }
            constants.push(row.constant / unit);
        }
        let (height, width) = (constants.len(), self.variables);
        let coefficients = CscMatrix::new_from_triplets(height, width, at_row, at_column, coefficients);

        let mut cones: Vec<SupportedConeT<f64>> =
            vec![ZeroConeT(self.zero.len()), NonnegativeConeT(self.nonnegative.len())];
        cones.extend(self.second_order.iter().map(|cone| SecondOrderConeT(cone.len())));
        cones.extend(self.exponential.iter().map(|_| ExponentialConeT()));

        let mut failure = String::new();
        for max_step_fraction in STEP_FRACTIONS {
            let solution = minimise(&costs, &coefficients, &constants, &cones, settings(max_step_fraction))
                .map_err(|error| Unsolved::GaveUp(error.to_string()))?;
            match solution.status {
                SolverStatus::Solved | SolverStatus::AlmostSolved => {
                    return Ok(self.in_own_units(solution, objective));
                }
                SolverStatus::PrimalInfeasible => return Err(Unsolved::Infeasible),
                status => failure = status.to_string(),
            }
        }
        Err(Unsolved::GaveUp(failure))
    }

    fn in_own_units(&self, solution: DefaultSolution<f64>, objective: &Affine) -> Solution {
        let prices = solution.z[self.zero.len()..].iter().zip(&self.nonnegative);
        Solution {
            prices: prices.map(|(price, row)| price.max(0.0) * objective.unit() / row.unit()).collect(),
            bound: objective.constant - objective.unit() * solution.obj_val_dual,
            variables: solution.x,
        }
    }
}

fn settings(max_step_fraction: f64) -> DefaultSettings<f64> {
    DefaultSettings {
        verbose: false,
        max_step_fraction,
        // Below this the solver changes to a method for exponential cones that asks for more centrality than
        // thousands of other rows leave: it would stop there and then.
        min_switch_step_length: 1e-3,
        tol_gap_abs: TARGET_GAP,
        tol_gap_rel: TARGET_GAP,
        tol_feas: TARGET_RESIDUAL,
        reduced_tol_gap_abs: ACCEPTED,
        reduced_tol_gap_rel: ACCEPTED,
        reduced_tol_feas: ACCEPTED,
        ..DefaultSettings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// max 100 x s.t. 3 − 2x ≥ 0: x = 3/2, and another unit of the row is worth 50.
    #[test]
    fn prices_are_in_the_units_of_the_program() {
        let mut program = Program::default();
        let x = program.variable();
        let row = program.require_nonnegative(Affine::variable(x, -2.0).shifted(3.0));
        let solution = program.maximise(&Affine::variable(x, 100.0).shifted(7.0)).unwrap();
        assert!((solution.variables[x] - 1.5).abs() < 1e-8);
        assert!((solution.bound - 157.0).abs() < 1e-6);
        assert!((solution.price(row) - 50.0).abs() < 1e-6);
    }

    #[test]
    fn no_solution_is_told_apart_from_no_success() {
        let mut program = Program::default();
        let x = program.variable();
        program.require_nonnegative(Affine::variable(x, 1.0).shifted(-1.0));
        let unbounded = program.maximise(&Affine::variable(x, 1.0)).unwrap_err();
        assert!(matches!(unbounded, Unsolved::GaveUp(_)), "{unbounded:?}");
        program.require_nonnegative(Affine::variable(x, -1.0));
        assert_eq!(program.maximise(&Affine::variable(x, 1.0)).unwrap_err(), Unsolved::Infeasible);
    }
}
