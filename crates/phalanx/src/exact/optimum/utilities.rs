//! Concave utilities as pieces of a conic program.
//!
//! Each becomes an affine function that, under the rows added with it, is at most the utility and can reach it:
//! maximising the one maximises the other. With q = 1−γ and x = q λ:
//!
//! * entropies: t ≤ −p ln p ⇔ p exp(t / p) ≤ 1;
//! * distances: D ≥ ‖x − point‖;
//! * squares: y ≥ ‖v‖² ⇔ ‖(2v, y − 1)‖ ≤ y + 1.
//!
//! Logarithms are not floored at [`LOG_FLOOR`] here, which changes an entropy by less than 1e−10.

use super::program::{Affine, Program};
use crate::utility::{Kind, LOG_FLOOR, LocalSpace, Power};

/// How a base function bends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Curvature {
    Linear,
    Concave,
    Convex,
    /// Written in Rust by somebody else.
    Unknown,
}

impl Curvature {
    pub fn for_kind(kind: &Kind) -> Self {
        match kind {
            Kind::Linear { .. } => Curvature::Linear,
            Kind::StateEntropy
            | Kind::SaEntropy
            | Kind::ActionEntropy
            | Kind::NegL2Expert { .. }
            | Kind::NegL2sqExpert { .. }
            | Kind::NegKlExpert { .. }
            | Kind::NegDistBox { .. }
            | Kind::NegDistHalfspace { .. }
            | Kind::NegDistBall { .. } => Curvature::Concave,
            Kind::ActionL2sq | Kind::ActionL2 { .. } | Kind::L2sq => Curvature::Convex,
            Kind::Channel { .. } | Kind::Custom(_) => Curvature::Unknown,
        }
    }
}

/// factor · `kind` of an agent with (1−γ) λ_i = `x`; `None` if that is not concave.
pub(super) fn concave(
    program: &mut Program,
    kind: &Kind,
    factor: f64,
    x: &[Affine],
    space: LocalSpace,
) -> Option<Affine> {
    // Without rows, which nothing would pull tight.
    if factor == 0.0 {
        return Some(Affine::default());
    }
    let is_concave = match Curvature::for_kind(kind) {
        Curvature::Linear => true,
        Curvature::Concave => factor > 0.0,
        Curvature::Convex => factor < 0.0,
        Curvature::Unknown => false,
    };
    if !is_concave {
        return None;
    }
    let q = 1.0 - space.gamma;
    let base = match kind {
        Kind::Linear { r } => weighted_sum(r, x).scaled(1.0 / q),
        Kind::StateEntropy => entropy(program, x.chunks_exact(space.actions).map(sum)),
        Kind::SaEntropy => entropy(program, x.iter().cloned()),
        Kind::ActionEntropy => {
            let marginal = |action: usize| sum(x[action..].iter().step_by(space.actions));
            entropy(program, (0..space.actions).map(marginal))
        }
        Kind::ActionL2sq => {
            let marginal = |action: usize| sum(x[action..].iter().step_by(space.actions));
            square(program, (0..space.actions).map(marginal)).scaled(1.0 / (q * q))
        }
        Kind::ActionL2 { from } => {
            let marginal = |action: usize| sum(x[action..].iter().step_by(space.actions));
            square(program, (*from..space.actions).map(marginal)).scaled(0.5)
        }
        Kind::L2sq => square(program, x.iter().cloned()).scaled(1.0 / (q * q)),
        Kind::NegL2Expert { expert } => norm(program, difference(x, expert, q)).scaled(-1.0 / q),
        Kind::NegL2sqExpert { expert } => square(program, difference(x, expert, q)).scaled(-1.0 / (q * q)),
        Kind::NegKlExpert { expert } => {
            let log_expert: Vec<f64> = expert.iter().map(|e| (q * e).max(LOG_FLOOR).ln()).collect();
            entropy(program, x.iter().cloned()).plus(1.0, &weighted_sum(&log_expert, x))
        }
        Kind::NegDistBox { lo, hi, power } => {
            let beyond = box_excess(program, x, lo, hi, q);
            let distance = norm(program, beyond);
            from_distance(program, distance, *power, q)
        }
        Kind::NegDistHalfspace { a, b, power } => {
            let length = a.iter().map(|a| a * a).sum::<f64>().sqrt();
            let beyond = weighted_sum(a, x).shifted(-q * b).scaled(1.0 / length);
            let distance = positive_part(program, &beyond);
            from_distance(program, distance, *power, q)
        }
        Kind::NegDistBall { center, radius, power } => {
            let from_center = norm(program, difference(x, center, q));
            let distance = positive_part(program, &from_center.shifted(-q * radius));
            from_distance(program, distance, *power, q)
        }
        Kind::Channel { .. } | Kind::Custom(_) => return None,
    };
    Some(base.scaled(factor))
}

/// Σ of the parts.
fn sum<'a>(parts: impl IntoIterator<Item = &'a Affine>) -> Affine {
    parts.into_iter().fold(Affine::default(), |sum, part| sum.plus(1.0, part))
}

/// ⟨weights, x⟩.
fn weighted_sum(weights: &[f64], x: &[Affine]) -> Affine {
    weights.iter().zip(x).fold(Affine::default(), |sum, (weight, x)| sum.plus(*weight, x))
}

/// x − q · point.
fn difference(x: &[Affine], point: &[f64], q: f64) -> Vec<Affine> {
    x.iter().zip(point).map(|(x, point)| x.clone().shifted(-q * point)).collect()
}

/// At most −Σ p ln p.
fn entropy(program: &mut Program, p: impl IntoIterator<Item = Affine>) -> Affine {
    let mut total = Affine::default();
    // A cell that cannot be reached is 0, and so is its term.
    for p in p.into_iter().filter(|p| !p.is_constant()) {
        let term = Affine::variable(program.variable(), 1.0);
        total.add(1.0, &term);
        program.require_exponential(term, p, Affine::constant(1.0));
    }
    total
}

/// At least ‖v‖₂.
fn norm(program: &mut Program, v: impl IntoIterator<Item = Affine>) -> Affine {
    let length = Affine::variable(program.variable(), 1.0);
    program.require_norm(length.clone(), v);
    length
}

/// At least ‖v‖₂².
fn square(program: &mut Program, v: impl IntoIterator<Item = Affine>) -> Affine {
    let y = Affine::variable(program.variable(), 1.0);
    let twice = v.into_iter().map(|v| v.scaled(2.0));
    program.require_norm(y.clone().shifted(1.0), std::iter::once(y.clone().shifted(-1.0)).chain(twice));
    y
}

/// At least max(v, 0).
fn positive_part(program: &mut Program, v: &Affine) -> Affine {
    let part = Affine::variable(program.variable(), 1.0);
    program.require_nonnegative(part.clone());
    program.require_nonnegative(part.clone().plus(-1.0, v));
    part
}

/// Variables that are at least as large as what the cells lie beyond q · [lo, hi].
fn box_excess(program: &mut Program, x: &[Affine], lo: &[f64], hi: &[f64], q: f64) -> Vec<Affine> {
    let mut beyond = Vec::new();
    for ((x, &lo), &hi) in x.iter().zip(lo).zip(hi) {
        if lo.is_infinite() && hi.is_infinite() {
            continue;
        }
        let excess = Affine::variable(program.variable(), 1.0);
        if lo.is_finite() {
            program.require_nonnegative(excess.clone().plus(1.0, x).shifted(-q * lo));
        }
        if hi.is_finite() {
            program.require_nonnegative(excess.clone().plus(-1.0, x).shifted(q * hi));
        }
        beyond.push(excess);
    }
    beyond
}

/// −D or −D²/2 from `distance` = q D.
fn from_distance(program: &mut Program, distance: Affine, power: Power, q: f64) -> Affine {
    match power {
        Power::One => distance.scaled(-1.0 / q),
        Power::Two => square(program, [distance]).scaled(-0.5 / (q * q)),
    }
}
