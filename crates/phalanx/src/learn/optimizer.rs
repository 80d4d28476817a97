//! Ascent steps on parameters. Paper: alg:pdac line 9, eq:policy_update.

use serde::{Deserialize, Serialize};

use crate::Ragged;
use crate::base::fields::{Field, Fields};

/// Which step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerKind {
    /// θ + η·∇, the paper's.
    Sgd,
    /// Adam (Kingma and Ba, 2015) with β = (0.9, 0.999), ε = 1e-8, ascending.
    Adam,
}

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
pub struct StepSize {
    kind: OptimizerKind,
    eta: f64,
    correction: [f64; 2],
}

const BETA: [f64; 2] = [0.9, 0.999];
const EPSILON: f64 = 1e-8;

impl Optimizer {
    /// An optimiser for parameters shaped like `theta`.
    pub fn new(kind: OptimizerKind, theta: &Ragged<f64>) -> Self {
        let moments = || match kind {
            OptimizerKind::Sgd => Ragged::zeros(std::iter::repeat_n(0, theta.rows())),
            OptimizerKind::Adam => {
                let mut zeros = Ragged::zeros_like(theta);
                // Has the operating system hand out the memory now, which takes longer than a step. That it holds zeros is
                // no reason to leave this out, as the compiler would.
                std::hint::black_box(zeros.data_mut()).fill(0.0);
                zeros
            }
        };
        Optimizer { kind, step: 0, first: moments(), second: moments() }
    }

    /// What it remembers.
    pub(crate) fn fields(&mut self) -> Fields<'_> {
        vec![
            ("optimizer.step", Field::Counter(&mut self.step)),
            ("optimizer.first", Field::Rows(&mut self.first)),
            ("optimizer.second", Field::Rows(&mut self.second)),
        ]
    }

    /// Begins a step of size `eta`: its constants, and the moments to pass to [`StepSize::ascend`] row by row.
    pub fn begin(&mut self, eta: f64) -> (StepSize, &mut Ragged<f64>, &mut Ragged<f64>) {
        self.step += 1;
        let correction = BETA.map(|beta| 1.0 / (1.0 - beta.powi(self.step.min(i32::MAX as u64) as i32)));
        (StepSize { kind: self.kind, eta, correction }, &mut self.first, &mut self.second)
    }
}

impl StepSize {
    /// Moves one agent's parameters up its gradient.
    pub fn ascend(&self, theta: &mut [f64], gradient: &[f64], first: &mut [f64], second: &mut [f64]) {
        match self.kind {
            OptimizerKind::Sgd => theta.iter_mut().zip(gradient).for_each(|(x, g)| *x += self.eta * g),
            OptimizerKind::Adam => {
                let moments = first.iter_mut().zip(second);
                for ((x, &g), (m, v)) in theta.iter_mut().zip(gradient).zip(moments) {
                    *m = BETA[0] * *m + (1.0 - BETA[0]) * g;
                    *v = BETA[1] * *v + (1.0 - BETA[1]) * g * g;
                    *x += self.eta * (*m * self.correction[0]) / ((*v * self.correction[1]).sqrt() + EPSILON);
                }
            }
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
