//! Squared lengths: of the whole table, and of how often each action is taken.

use super::bounds::UtilityBounds;
use super::conic::{Affine, Curvature, Program, square, sum};
use super::kinds::BaseUtility;
use super::range::{Extremes, Simplex};
use super::spec::Reader;
use super::{LocalSpace, Utility, action_marginal, dot, write_by_action};
use crate::Result;

/// ‖λ‖² of the whole table, the other reading of the paper's ℓ₂-constraints (errata 23); gradient 2 λ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct L2sq;

/// ‖Σ_s λ(s, ·)‖², large for agents that keep to one action; gradient 2 Σ_s λ(s, a). Paper:
/// sec:numerical_exp, ℓ₂-constraints, whose normalised form is `scale` = q²/2, with values between
/// 1/(2|A|) and 1/2 (errata 10, 23). Convex, and stationary at a uniform action marginal: start from an
/// asymmetric policy (errata 10).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ActionL2sq;

/// (q²/2)·‖Σ_s λ(s, ·)‖²: the normalised form of [`ActionL2sq`], with values between 1/(2|A|) and 1/2 (errata
/// 23).
pub type ActionL2 = NormFrom<0>;

/// The same over all actions but action 0: the authors' code sets the occupancy of doing nothing to 0 before
/// it takes the norm.
pub type ActiveL2 = NormFrom<1>;

/// (q²/2)·‖Σ_s λ(s, ·)‖² over the actions from `FIRST` on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormFrom<const FIRST: usize>;

impl Utility for L2sq {
    fn value(&self, occupancy: &[f64], _: LocalSpace) -> f64 {
        dot(occupancy, occupancy)
    }

    fn gradient(&self, occupancy: &[f64], _: LocalSpace, out: &mut [f64]) {
        for (slope, x) in out.iter_mut().zip(occupancy) {
            *slope = 2.0 * x;
        }
    }
}

impl Utility for ActionL2sq {
    fn value(&self, occupancy: &[f64], space: LocalSpace) -> f64 {
        (0..space.actions).map(|action| action_marginal(occupancy, action, space.actions).powi(2)).sum()
    }

    fn gradient(&self, occupancy: &[f64], space: LocalSpace, out: &mut [f64]) {
        write_by_action(occupancy, space.actions, out, |_, marginal| 2.0 * marginal);
    }
}

impl<const FIRST: usize> Utility for NormFrom<FIRST> {
    fn value(&self, occupancy: &[f64], space: LocalSpace) -> f64 {
        let q = 1.0 - space.gamma;
        let marginal = |action: usize| q * action_marginal(occupancy, action, space.actions);
        (FIRST..space.actions).map(|action| 0.5 * marginal(action).powi(2)).sum()
    }

    fn gradient(&self, occupancy: &[f64], space: LocalSpace, out: &mut [f64]) {
        let q = 1.0 - space.gamma;
        write_by_action(
            occupancy,
            space.actions,
            out,
            |action, marginal| {
                if action < FIRST { 0.0 } else { q * q * marginal }
            },
        );
    }
}

impl BaseUtility for L2sq {
    fn read(_: &Reader<'_>) -> Result<Self> {
        Ok(L2sq)
    }

    fn extremes(&self, simplex: Simplex) -> Extremes {
        Extremes { lowest: simplex.uniform(), highest: simplex.vertex(0) }
    }

    fn bounds(&self, space: LocalSpace, _: &[f64]) -> Option<UtilityBounds> {
        let q = 1.0 - space.gamma;
        Some(UtilityBounds { reward_inf: 2.0 / q, reward_2: 2.0 / q, l_lambda: 2.0 })
    }

    fn curvature(&self) -> Curvature {
        Curvature::Convex
    }

    fn conic(&self, program: &mut Program, x: &[Affine], space: LocalSpace) -> Affine {
        let q = 1.0 - space.gamma;
        square(program, x.iter().cloned()).scaled(1.0 / (q * q))
    }
}

impl BaseUtility for ActionL2sq {
    fn read(_: &Reader<'_>) -> Result<Self> {
        Ok(ActionL2sq)
    }

    fn extremes(&self, simplex: Simplex) -> Extremes {
        Extremes { lowest: simplex.uniform(), highest: simplex.vertex(0) }
    }

    fn bounds(&self, space: LocalSpace, _: &[f64]) -> Option<UtilityBounds> {
        let (q, root) = (1.0 - space.gamma, (space.states as f64).sqrt());
        Some(UtilityBounds { reward_inf: 2.0 / q, reward_2: 2.0 * root / q, l_lambda: 2.0 * root })
    }

    fn curvature(&self) -> Curvature {
        Curvature::Convex
    }

    fn conic(&self, program: &mut Program, x: &[Affine], space: LocalSpace) -> Affine {
        let q = 1.0 - space.gamma;
        square(program, marginals(x, space, 0)).scaled(1.0 / (q * q))
    }
}

impl<const FIRST: usize> BaseUtility for NormFrom<FIRST> {
    fn read(_: &Reader<'_>) -> Result<Self> {
        Ok(NormFrom)
    }

    fn extremes(&self, simplex: Simplex) -> Extremes {
        // All on an action that does not count, or all on one that does.
        let lowest = if FIRST == 0 { simplex.uniform() } else { simplex.vertex(0) };
        Extremes { lowest, highest: simplex.vertex(FIRST.min(simplex.space.actions - 1)) }
    }

    fn bounds(&self, space: LocalSpace, _: &[f64]) -> Option<UtilityBounds> {
        let (q, root) = (1.0 - space.gamma, (space.states as f64).sqrt());
        Some(UtilityBounds { reward_inf: q, reward_2: q * root, l_lambda: q * q * root })
    }

    fn curvature(&self) -> Curvature {
        Curvature::Convex
    }

    fn conic(&self, program: &mut Program, x: &[Affine], space: LocalSpace) -> Affine {
        square(program, marginals(x, space, FIRST)).scaled(0.5)
    }
}

/// Σ_s x(s, a) of the actions from `first` on.
fn marginals(x: &[Affine], space: LocalSpace, first: usize) -> impl Iterator<Item = Affine> {
    (first..space.actions).map(move |action| sum(x[action..].iter().step_by(space.actions)))
}
