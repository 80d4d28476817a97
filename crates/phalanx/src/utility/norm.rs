//! Squared lengths: of the whole table, and of how often each action is taken.

use super::bounds::UtilityBounds;
use super::conic::{Affine, Curvature, Program, marginals, square};
use super::kinds::BaseUtility;
use super::marginal::{Actions, Marginal, Pairs};
use super::range::{Extremes, Simplex};
use super::spec::Reader;
use super::{LocalSpace, Utility};
use crate::Result;
use crate::base::elementary::powi;

/// Σ d² with d = Σ λ over groups of cells; gradient 2 d.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SquaredNorm<M>(pub M);

/// ‖λ‖² of the whole table, the other reading of the paper's ℓ₂-constraints (errata 23); gradient 2 λ.
pub type L2sq = SquaredNorm<Pairs>;

/// ‖Σ_s λ(s, ·)‖², large for agents that keep to one action; gradient 2 Σ_s λ(s, a). Paper:
/// sec:numerical_exp, ℓ₂-constraints, whose normalised form is `scale` = q²/2, with values between
/// 1/(2|A|) and 1/2 (errata 10, 23). Convex, and stationary at a uniform action marginal: start from an
/// asymmetric policy (errata 10).
pub type ActionL2sq = SquaredNorm<Actions>;

/// (q²/2)·‖Σ_s λ(s, ·)‖²: the normalised form of [`ActionL2sq`], with values between 1/(2|A|) and 1/2 (errata
/// 23).
pub type ActionL2 = NormFrom<0>;

/// The same over all actions but action 0: the authors' code sets the occupancy of doing nothing to 0 before
/// it takes the norm.
pub type ActiveL2 = NormFrom<1>;

/// (q²/2)·‖Σ_s λ(s, ·)‖² over the actions from `FIRST` on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormFrom<const FIRST: usize>;

impl<M: Marginal> Utility for SquaredNorm<M> {
    fn value(&self, occupancy: &[f64], space: LocalSpace) -> f64 {
        M::sums(occupancy, space).map(|sum| powi(sum, 2)).sum()
    }

    fn gradient(&self, occupancy: &[f64], space: LocalSpace, out: &mut [f64]) {
        M::write(occupancy, space, out, |_, sum| 2.0 * sum);
    }
}

impl<const FIRST: usize> Utility for NormFrom<FIRST> {
    fn value(&self, occupancy: &[f64], space: LocalSpace) -> f64 {
        let q = 1.0 - space.gamma;
        Actions::sums(occupancy, space).skip(FIRST).map(|sum| 0.5 * powi(q * sum, 2)).sum()
    }

    fn gradient(&self, occupancy: &[f64], space: LocalSpace, out: &mut [f64]) {
        let q = 1.0 - space.gamma;
        let slope = |action: usize, sum: f64| if action < FIRST { 0.0 } else { q * q * sum };
        Actions::write(occupancy, space, out, slope);
    }
}

impl<M: Marginal> BaseUtility for SquaredNorm<M> {
    fn read(_: &mut Reader<'_>) -> Result<Self> {
        Ok(SquaredNorm(M::default()))
    }

    fn extremes(&self, simplex: Simplex) -> Extremes {
        Extremes { lowest: simplex.uniform(), highest: simplex.vertex(0) }
    }

    fn bounds(&self, space: LocalSpace, _: &[f64]) -> Option<UtilityBounds> {
        let (q, root) = (1.0 - space.gamma, ((space.cells() / M::groups(space)) as f64).sqrt());
        Some(UtilityBounds { reward_inf: 2.0 / q, reward_2: 2.0 * root / q, l_lambda: 2.0 * root })
    }

    fn curvature(&self) -> Curvature {
        Curvature::Convex
    }

    fn conic(&self, program: &mut Program, x: &[Affine], space: LocalSpace) -> Affine {
        let q = 1.0 - space.gamma;
        square(program, marginals::<M>(x, space)).scaled(1.0 / (q * q))
    }
}

impl<const FIRST: usize> BaseUtility for NormFrom<FIRST> {
    fn read(_: &mut Reader<'_>) -> Result<Self> {
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
        square(program, marginals::<Actions>(x, space).skip(FIRST)).scaled(0.5)
    }
}
