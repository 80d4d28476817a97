//! Concave utilities as pieces of a conic program, which is put together piece by piece.
//!
//! Each becomes an affine function that, under the rows added with it, is at most the utility and can reach
//! it: maximising the one maximises the other. With q = 1−γ and x = q λ:
//!
//! * entropies: t ≤ −p ln p ⇔ p exp(t / p) ≤ 1;
//! * distances: D ≥ ‖x − point‖;
//! * squares: y ≥ ‖v‖² ⇔ ‖(2v, y − 1)‖ ≤ y + 1.
//!
//! Logarithms are not floored at [`LOG_FLOOR`](super::LOG_FLOOR) here, which changes an entropy by less than
//! 1e−10.

use super::LocalSpace;
use super::marginal::Marginal;

/// How a base function bends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Curvature {
    Linear,
    Concave,
    Convex,
    /// Written in Rust by somebody else.
    Unknown,
}

/// constant + Σ coefficient · variable.
#[derive(Debug, Clone, Default)]
pub(crate) struct Affine {
    pub(crate) constant: f64,
    pub(crate) terms: Vec<(usize, f64)>,
}

impl Affine {
    pub fn constant(constant: f64) -> Self {
        Affine { constant, terms: Vec::new() }
    }

    /// factor · `variable`.
    pub fn variable(variable: usize, factor: f64) -> Self {
        Affine { constant: 0.0, terms: vec![(variable, factor)] }
    }

    /// This plus `shift`.
    pub fn shifted(mut self, shift: f64) -> Self {
        self.constant += shift;
        self
    }

    /// This plus factor · `other`.
    pub fn plus(mut self, factor: f64, other: &Affine) -> Self {
        self.add(factor, other);
        self
    }

    /// Adds factor · `other`.
    pub fn add(&mut self, factor: f64, other: &Affine) {
        if factor != 0.0 {
            self.constant += factor * other.constant;
            self.terms.extend(other.terms.iter().map(|(variable, by)| (*variable, factor * by)));
        }
    }

    /// factor · this.
    pub fn scaled(&self, factor: f64) -> Self {
        Affine::default().plus(factor, self)
    }

    /// Whether no variable enters.
    pub fn is_constant(&self) -> bool {
        self.terms.is_empty()
    }

    /// Its largest coefficient, which is 1 in the solver's units: absolute tolerances are relative to it.
    pub fn unit(&self) -> f64 {
        let largest = self.terms.iter().map(|(_, by)| by.abs()).fold(0.0, f64::max);
        if largest > 0.0 { largest } else { 1.0 }
    }
}

/// Maximise an affine function over variables whose affine functions lie in cones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    pub(crate) variables: usize,
    /// `row` = 0.
    pub(crate) zero: Vec<Affine>,
    /// `row` ≥ 0, see [`Program::require_nonnegative`].
    pub(crate) nonnegative: Vec<Affine>,
    /// `length` ≥ ‖`vector`‖₂, as `[length, vector …]`.
    pub(crate) second_order: Vec<Vec<Affine>>,
    /// y exp(x / y) ≤ z, y > 0, as `[x, y, z]`.
    pub(crate) exponential: Vec<[Affine; 3]>,
}

/// Names a row of [`Program::require_nonnegative`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row(pub(crate) usize);

impl Program {
    /// A new variable.
    pub fn variable(&mut self) -> usize {
        self.variables += 1;
        self.variables - 1
    }

    /// `row` ≥ 0.
    pub fn require_nonnegative(&mut self, row: Affine) -> Row {
        self.nonnegative.push(row);
        Row(self.nonnegative.len() - 1)
    }

    /// ‖`vector`‖₂ ≤ `length`.
    pub fn require_norm(&mut self, length: Affine, vector: impl IntoIterator<Item = Affine>) {
        self.second_order.push(std::iter::once(length).chain(vector).collect());
    }
}

/// Σ of the parts.
fn sum<'a>(parts: impl IntoIterator<Item = &'a Affine>) -> Affine {
    parts.into_iter().fold(Affine::default(), |sum, part| sum.plus(1.0, part))
}

/// The sums of `x` over the groups of a marginal.
pub(super) fn marginals<M: Marginal>(x: &[Affine], space: LocalSpace) -> impl Iterator<Item = Affine> {
    (0..M::groups(space)).map(move |group| sum(M::cells(group, space).map(|cell| &x[cell])))
}

/// ⟨weights, x⟩.
pub(super) fn weighted_sum(weights: &[f64], x: &[Affine]) -> Affine {
    weights.iter().zip(x).fold(Affine::default(), |sum, (weight, x)| sum.plus(*weight, x))
}

/// x − q · point.
pub(super) fn difference(x: &[Affine], point: &[f64], q: f64) -> Vec<Affine> {
    x.iter().zip(point).map(|(x, point)| x.clone().shifted(-q * point)).collect()
}

/// At most −Σ p ln p.
pub(super) fn entropy(program: &mut Program, p: impl IntoIterator<Item = Affine>) -> Affine {
    let mut total = Affine::default();
    // A cell that cannot be reached is 0, and so is its term.
    for p in p.into_iter().filter(|p| !p.is_constant()) {
        let term = Affine::variable(program.variable(), 1.0);
        total.add(1.0, &term);
        program.exponential.push([term, p, Affine::constant(1.0)]);
    }
    total
}

/// At least ‖v‖₂.
pub(super) fn norm(program: &mut Program, v: impl IntoIterator<Item = Affine>) -> Affine {
    let length = Affine::variable(program.variable(), 1.0);
    program.require_norm(length.clone(), v);
    length
}

/// At least ‖v‖₂².
pub(super) fn square(program: &mut Program, v: impl IntoIterator<Item = Affine>) -> Affine {
    let y = Affine::variable(program.variable(), 1.0);
    let twice = v.into_iter().map(|v| v.scaled(2.0));
    program.require_norm(y.clone().shifted(1.0), std::iter::once(y.clone().shifted(-1.0)).chain(twice));
    y
}

/// At least max(v, 0).
pub(super) fn positive_part(program: &mut Program, v: &Affine) -> Affine {
    let part = Affine::variable(program.variable(), 1.0);
    program.require_nonnegative(part.clone());
    program.require_nonnegative(part.clone().plus(-1.0, v));
    part
}
