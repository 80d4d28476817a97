//! Entropies of states, of actions, and of both.

use super::bounds::UtilityBounds;
use super::conic::{Affine, Curvature, Program, entropy, sum};
use super::kinds::BaseUtility;
use super::range::{Extremes, Simplex};
use super::spec::Reader;
use super::{LocalSpace, Utility, action_marginal, floored, write_by_action};
use crate::Result;

/// −Σ_s d_s ln d_s with d_s = q Σ_a λ(s, a); gradient −q (ln d_s + 1). Paper: exp:entropy. The "entropy
/// of λ_i" of the paper's experiments is this one, of states only (errata 23).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StateEntropy;

/// −Σ p ln p with p = q λ, the entropy of (state, action) pairs; gradient −q (ln p + 1). What the
/// notation Entropy(λ_i) of the paper's experiments suggests, but not what it means there (errata 23).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SaEntropy;

/// −Σ_a d_a ln d_a with d_a = q Σ_s λ(s, a), the entropy of actions; gradient −q (ln d_a + 1). Paper:
/// subsec: benefits_general, the requirement that is set against the entropy penalty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ActionEntropy;

/// −x ln x.
fn term(x: f64) -> f64 {
    -x * floored(x).ln()
}

/// Its slope in λ where x = q λ.
fn slope(q: f64, x: f64) -> f64 {
    -q * (floored(x).ln() + 1.0)
}

impl Utility for StateEntropy {
    fn value(&self, occupancy: &[f64], space: LocalSpace) -> f64 {
        let q = 1.0 - space.gamma;
        occupancy.chunks_exact(space.actions).map(|row| term(q * row.iter().sum::<f64>())).sum()
    }

    fn gradient(&self, occupancy: &[f64], space: LocalSpace, out: &mut [f64]) {
        let q = 1.0 - space.gamma;
        let rows = occupancy.chunks_exact(space.actions).zip(out.chunks_exact_mut(space.actions));
        for (row, slopes) in rows {
            slopes.fill(slope(q, q * row.iter().sum::<f64>()));
        }
    }
}

impl Utility for SaEntropy {
    fn value(&self, occupancy: &[f64], space: LocalSpace) -> f64 {
        let q = 1.0 - space.gamma;
        occupancy.iter().map(|x| term(q * x)).sum()
    }

    fn gradient(&self, occupancy: &[f64], space: LocalSpace, out: &mut [f64]) {
        let q = 1.0 - space.gamma;
        for (out, x) in out.iter_mut().zip(occupancy) {
            *out = slope(q, q * x);
        }
    }
}

impl Utility for ActionEntropy {
    fn value(&self, occupancy: &[f64], space: LocalSpace) -> f64 {
        let q = 1.0 - space.gamma;
        (0..space.actions).map(|action| term(q * action_marginal(occupancy, action, space.actions))).sum()
    }

    fn gradient(&self, occupancy: &[f64], space: LocalSpace, out: &mut [f64]) {
        let q = 1.0 - space.gamma;
        write_by_action(occupancy, space.actions, out, |_, marginal| slope(q, q * marginal));
    }
}

/// Concave and symmetric: largest at the uniform table, smallest at any vertex.
fn extremes(simplex: Simplex) -> Extremes {
    Extremes { lowest: simplex.vertex(0), highest: simplex.uniform() }
}

impl BaseUtility for StateEntropy {
    fn read(_: &Reader<'_>) -> Result<Self> {
        Ok(StateEntropy)
    }

    fn extremes(&self, simplex: Simplex) -> Extremes {
        extremes(simplex)
    }

    fn bounds(&self, space: LocalSpace, start: &[f64]) -> Option<UtilityBounds> {
        let q = 1.0 - space.gamma;
        let least = q * start.iter().copied().fold(f64::INFINITY, f64::min);
        let u = q * (least.ln() + 1.0).abs().max(1.0);
        (least > 0.0).then(|| UtilityBounds {
            reward_inf: u,
            reward_2: u * (space.cells() as f64).sqrt(),
            l_lambda: q * q * (space.actions as f64).sqrt() / least,
        })
    }

    fn curvature(&self) -> Curvature {
        Curvature::Concave
    }

    fn conic(&self, program: &mut Program, x: &[Affine], space: LocalSpace) -> Affine {
        entropy(program, x.chunks_exact(space.actions).map(sum))
    }
}

impl BaseUtility for SaEntropy {
    fn read(_: &Reader<'_>) -> Result<Self> {
        Ok(SaEntropy)
    }

    fn extremes(&self, simplex: Simplex) -> Extremes {
        extremes(simplex)
    }

    fn curvature(&self) -> Curvature {
        Curvature::Concave
    }

    fn conic(&self, program: &mut Program, x: &[Affine], _: LocalSpace) -> Affine {
        entropy(program, x.iter().cloned())
    }
}

impl BaseUtility for ActionEntropy {
    fn read(_: &Reader<'_>) -> Result<Self> {
        Ok(ActionEntropy)
    }

    fn extremes(&self, simplex: Simplex) -> Extremes {
        extremes(simplex)
    }

    fn curvature(&self) -> Curvature {
        Curvature::Concave
    }

    fn conic(&self, program: &mut Program, x: &[Affine], space: LocalSpace) -> Affine {
        let marginal = |action: usize| sum(x[action..].iter().step_by(space.actions));
        entropy(program, (0..space.actions).map(marginal))
    }
}
