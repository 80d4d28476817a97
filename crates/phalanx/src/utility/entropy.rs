//! Entropies of states, of actions, and of both.

use super::bounds::UtilityBounds;
use super::conic::{Affine, Program, entropy, marginals};
use super::kinds::BaseUtility;
use super::marginal::{Actions, Marginal, Pairs, States};
use super::range::{Extremes, Simplex};
use super::spec::Reader;
use super::{LocalSpace, Utility, floored};
use crate::Result;
use crate::base::elementary::ln;

/// −Σ d ln d with d = q Σ λ over groups of cells; gradient −q (ln d + 1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entropy<M>(pub M);

/// −Σ_s d_s ln d_s with d_s = q Σ_a λ(s, a); gradient −q (ln d_s + 1). Paper: exp:entropy. The "entropy
/// of λ_i" of the paper's experiments is this one, of states only (errata 23).
pub type StateEntropy = Entropy<States>;

/// −Σ p ln p with p = q λ, the entropy of (state, action) pairs; gradient −q (ln p + 1). What the
/// notation Entropy(λ_i) of the paper's experiments suggests, but not what it means there (errata 23).
pub type SaEntropy = Entropy<Pairs>;

/// −Σ_a d_a ln d_a with d_a = q Σ_s λ(s, a), the entropy of actions; gradient −q (ln d_a + 1). Paper:
/// subsec: benefits_general, the requirement that is set against the entropy penalty.
pub type ActionEntropy = Entropy<Actions>;

impl<M: Marginal> Utility for Entropy<M> {
    fn value(&self, occupancy: &[f64], space: LocalSpace) -> f64 {
        let q = 1.0 - space.gamma;
        let term = |d: f64| -d * ln(floored(d));
        M::sums(occupancy, space).map(|sum| term(q * sum)).sum()
    }

    fn gradient(&self, occupancy: &[f64], space: LocalSpace, out: &mut [f64]) {
        let q = 1.0 - space.gamma;
        M::write(occupancy, space, out, |_, sum| -q * (ln(floored(q * sum)) + 1.0));
    }
}

impl<M: Marginal> BaseUtility for Entropy<M> {
    fn read(_: &mut Reader<'_>) -> Result<Self> {
        Ok(Entropy(M::default()))
    }

    /// Concave and symmetric: largest at the uniform table, smallest at any vertex.
    fn extremes(&self, simplex: Simplex) -> Extremes {
        Extremes { lowest: simplex.vertex(0), highest: simplex.uniform() }
    }

    fn bounds(&self, space: LocalSpace, start: &[f64]) -> Option<UtilityBounds> {
        let q = 1.0 - space.gamma;
        let least = q * M::least(start)?;
        let u = q * (ln(least) + 1.0).abs().max(1.0);
        (least > 0.0).then(|| UtilityBounds {
            reward_inf: u,
            reward_2: u * (space.cells() as f64).sqrt(),
            l_lambda: q * q * (space.actions as f64).sqrt() / least,
        })
    }

    fn conic(&self, program: &mut Program, x: &[Affine], space: LocalSpace) -> Affine {
        entropy(program, marginals::<M>(x, space))
    }
}
