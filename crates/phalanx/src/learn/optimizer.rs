//! Ascent steps on parameters. Paper: alg:pdac line 9, eq:policy_update.

use crate::Ragged;
use crate::base::fields::{Field, Fields};
pub use crate::neural::OptimizerKind;
use crate::neural::{Adam, AdamStep, adam};

/// An optimiser with its memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimizer {
    kind: OptimizerKind,
    step: u64,
    /// First and second moments, in the shape of θ; empty for `sgd`.
    first: Ragged<f64>,
    second: Ragged<f64>,
}

/// One step's constants, the same for every parameter.
#[derive(Debug, Clone, Copy)]
pub enum StepSize {
    /// η.
    Sgd(f64),
    /// Those of Adam.
    Adam(AdamStep<f64>),
}

impl Optimizer {
    /// An optimiser for parameters shaped like `theta`.
    pub fn new(kind: OptimizerKind, theta: &Ragged<f64>) -> Self {
        let moments = || match kind {
            OptimizerKind::Sgd => Ragged::zeros(std::iter::repeat_n(0, theta.rows())),
            OptimizerKind::Adam => {
                let mut zeros = Ragged::zeros_like(theta);
                // Has the operating system hand out the memory now, which takes longer than a step. That it
                // holds zeros is no reason to leave this out, as the compiler would.
                std::hint::black_box(zeros.data_mut()).fill(0.0);
                zeros
            }
        };
        Optimizer { kind, step: 0, first: moments(), second: moments() }
    }

    /// Which it is.
    pub fn kind(&self) -> OptimizerKind {
        self.kind
    }

    /// What it remembers, of parameters that agents share or not.
    pub(crate) fn fields(&mut self, is_shared: bool) -> Fields<'_> {
        vec![
            ("optimizer.step", Field::Counter(&mut self.step)),
            ("optimizer.first", Field::of_theta(&mut self.first, is_shared)),
            ("optimizer.second", Field::of_theta(&mut self.second, is_shared)),
        ]
    }

    /// Begins a step of size `eta`: its constants, and the moments to pass to [`StepSize::ascend`] row by
    /// row.
    pub fn begin(&mut self, eta: f64) -> (StepSize, &mut Ragged<f64>, &mut Ragged<f64>) {
        self.step += 1;
        let step = match self.kind {
            OptimizerKind::Sgd => StepSize::Sgd(eta),
            OptimizerKind::Adam => StepSize::Adam(Adam::new(eta).ascent(self.step)),
        };
        (step, &mut self.first, &mut self.second)
    }
}

impl StepSize {
    /// Moves one agent's parameters up its gradient.
    pub fn ascend(&self, theta: &mut [f64], gradient: &[f64], first: &mut [f64], second: &mut [f64]) {
        match self {
            StepSize::Sgd(eta) => theta.iter_mut().zip(gradient).for_each(|(x, g)| *x += eta * g),
            StepSize::Adam(step) => adam(*step, theta, gradient, first, second),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(kind: OptimizerKind, gradients: &[f64]) -> f64 {
        let mut theta = Ragged::from_rows([[1.0]]);
        let mut optimizer = Optimizer::new(kind, &theta);
        for &g in gradients {
            let (step, first, second) = optimizer.begin(0.1);
            step.ascend(theta.row_mut(0), &[g], first.row_mut(0), second.row_mut(0));
        }
        theta.row(0)[0]
    }

    #[test]
    fn sgd_adds_the_gradient() {
        assert!((steps(OptimizerKind::Sgd, &[2.0, -0.5]) - 1.15).abs() < 1e-15);
    }

    #[test]
    fn adam_by_hand() {
        // First step: m̂ = g, v̂ = g², so the move is η·sign(g).
        assert!((steps(OptimizerKind::Adam, &[2.0]) - 1.1).abs() < 1e-8);
        // Second: m̂ = (0.09·2 + 0.1·(−1))/0.19, v̂ = (0.000999·4 + 0.001)/0.001999.
        let (m, v): (f64, f64) = ((0.18 - 0.1) / 0.19, (0.003996 + 0.001) / 0.001999);
        assert!((steps(OptimizerKind::Adam, &[2.0, -1.0]) - (1.1 + 0.1 * m / v.sqrt())).abs() < 1e-8);
    }
}
