//! How near an occupancy measure is to that of an expert.

use std::sync::Arc;

use super::bounds::{UtilityBounds, largest, length};
use super::conic::{Affine, Program, difference, entropy, norm, square, weighted_sum};
use super::kinds::{BaseUtility, KernelParameters};
use super::range::{Extremes, Simplex, smallest};
use super::spec::Reader;
use super::validate::check_table;
use super::{
    LOG_FLOOR, LocalSpace, Power, Utility, floored, residual_to_slope, squared_distance, write_difference,
};
use crate::Result;
use crate::base::elementary::ln;

/// −‖λ − expert‖₂; gradient −(λ − expert)/‖λ − expert‖₂, and 0 at the expert. Paper: sec:example,
/// safety-aware apprenticeship learning. Not smooth at the expert (errata 8).
pub type NegL2Expert = NegNormExpert<1>;

/// −‖λ − expert‖₂²; gradient −2 (λ − expert). The smooth variant of [`NegL2Expert`] (errata 8).
pub type NegL2sqExpert = NegNormExpert<2>;

/// −‖λ − expert‖₂ to the power `POWER`, 1 or 2.
#[derive(Debug, Clone, PartialEq)]
pub struct NegNormExpert<const POWER: u8> {
    /// Occupancy measure to imitate.
    pub expert: Arc<[f64]>,
}

/// −Σ p ln(p/e) with p = q λ and e = q expert; gradient −q (ln(p/e) + 1). Paper: sec:example,
/// safety-aware apprenticeship learning. Both p and e are floored inside the logarithm ([`LOG_FLOOR`]),
/// so that a cell the expert never visits is very costly instead of infinitely so.
#[derive(Debug, Clone, PartialEq)]
pub struct NegKlExpert {
    /// Occupancy measure to imitate, nonnegative.
    pub expert: Arc<[f64]>,
}

fn read_expert(read: &mut Reader<'_>) -> Result<Arc<[f64]>> {
    read.table("expert", &read.spec.expert)
}

fn check_expert(expert: &[f64], space: LocalSpace, field: &str) -> Result<()> {
    let occupancy = |x: f64| x.is_finite() && x >= 0.0;
    check_table(expert, space, &format!("{field}.expert"), "finite and at least 0", occupancy)
}

/// ln(p/e).
fn log_ratio(p: f64, e: f64) -> f64 {
    ln(floored(p) / floored(e))
}

impl<const POWER: u8> Utility for NegNormExpert<POWER> {
    fn value(&self, occupancy: &[f64], _: LocalSpace) -> f64 {
        let squared = squared_distance(occupancy, &self.expert);
        if POWER == 1 { -squared.sqrt() } else { -squared }
    }

    fn gradient(&self, occupancy: &[f64], _: LocalSpace, out: &mut [f64]) {
        write_difference(occupancy, &self.expert, out);
        if POWER == 1 {
            residual_to_slope(out, Power::One);
        } else {
            out.iter_mut().for_each(|slope| *slope *= -2.0);
        }
    }
}

impl Utility for NegKlExpert {
    fn value(&self, occupancy: &[f64], space: LocalSpace) -> f64 {
        let q = 1.0 - space.gamma;
        -occupancy.iter().zip(&*self.expert).map(|(x, e)| q * x * log_ratio(q * x, q * e)).sum::<f64>()
    }

    fn gradient(&self, occupancy: &[f64], space: LocalSpace, out: &mut [f64]) {
        let q = 1.0 - space.gamma;
        for ((slope, x), e) in out.iter_mut().zip(occupancy).zip(&*self.expert) {
            *slope = -q * (log_ratio(q * x, q * e) + 1.0);
        }
    }
}

impl<const POWER: u8> BaseUtility for NegNormExpert<POWER> {
    fn read(read: &mut Reader<'_>) -> Result<Self> {
        Ok(NegNormExpert { expert: read_expert(read)? })
    }

    fn validate(&self, space: LocalSpace, field: &str) -> Result<()> {
        check_expert(&self.expert, space, field)
    }

    fn extremes(&self, simplex: Simplex) -> Extremes {
        simplex.around(&self.expert)
    }

    fn bounds(&self, space: LocalSpace, _: &[f64]) -> Option<UtilityBounds> {
        let (q, expert) = (1.0 - space.gamma, &self.expert);
        let [reward_inf, reward_2] = [largest(expert), length(expert)].map(|size| 2.0 * (1.0 / q + size));
        (POWER == 2).then_some(UtilityBounds { reward_inf, reward_2, l_lambda: 2.0 })
    }

    fn parameters(&self) -> KernelParameters<'_> {
        KernelParameters::table(&self.expert)
    }

    fn conic(&self, program: &mut Program, x: &[Affine], space: LocalSpace) -> Affine {
        let q = 1.0 - space.gamma;
        let residual = difference(x, &self.expert, q);
        if POWER == 1 {
            norm(program, residual).scaled(-1.0 / q)
        } else {
            square(program, residual).scaled(-1.0 / (q * q))
        }
    }
}

impl BaseUtility for NegKlExpert {
    fn read(read: &mut Reader<'_>) -> Result<Self> {
        Ok(NegKlExpert { expert: read_expert(read)? })
    }

    fn validate(&self, space: LocalSpace, field: &str) -> Result<()> {
        check_expert(&self.expert, space, field)
    }

    /// With m = q·mass, vertex k has −m ln(m/e_k). The Gibbs inequality gives −Σ p ln(p/e) ≤ m ln(Σe/m), with
    /// equality at p = m e/Σe.
    fn extremes(&self, simplex: Simplex) -> Extremes {
        let q = 1.0 - simplex.space.gamma;
        let mut highest: Vec<f64> = self.expert.iter().map(|e| (q * e).max(LOG_FLOOR)).collect();
        let total: f64 = highest.iter().sum();
        highest.iter_mut().for_each(|entry| *entry *= simplex.mass / total);
        Extremes { lowest: simplex.vertex(smallest(&self.expert)), highest }
    }

    fn parameters(&self) -> KernelParameters<'_> {
        KernelParameters::table(&self.expert)
    }

    fn conic(&self, program: &mut Program, x: &[Affine], space: LocalSpace) -> Affine {
        let q = 1.0 - space.gamma;
        let log_expert: Vec<f64> = self.expert.iter().map(|e| ln((q * e).max(LOG_FLOOR))).collect();
        entropy(program, x.iter().cloned()).plus(1.0, &weighted_sum(&log_expert, x))
    }
}
