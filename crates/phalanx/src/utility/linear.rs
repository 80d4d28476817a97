//! The discounted return of a reward.

use std::sync::Arc;

use super::bounds::{UtilityBounds, largest, length};
use super::conic::{Affine, Curvature, Program, weighted_sum};
use super::kinds::{BaseUtility, KernelParameters};
use super::range::{self, Extremes, Simplex};
use super::spec::{Reader, UtilitySpec};
use super::validate::finite_table;
use super::{Kind, LocalSpace, Utility, dot};
use crate::Result;

/// ⟨r, λ⟩, the discounted return of reward r; gradient r. Paper: eq:cmdp-LP.
#[derive(Debug, Clone, PartialEq)]
pub struct Linear {
    /// Reward per (state, action).
    pub r: Arc<[f64]>,
}

impl Utility for Linear {
    fn value(&self, occupancy: &[f64], _: LocalSpace) -> f64 {
        dot(&self.r, occupancy)
    }

    fn gradient(&self, _: &[f64], _: LocalSpace, out: &mut [f64]) {
        out.copy_from_slice(&self.r);
    }
}

impl BaseUtility for Linear {
    fn read(read: &mut Reader<'_>) -> Result<Self> {
        Ok(Linear { r: read.table("r", &read.spec.r)? })
    }

    fn validate(&self, space: LocalSpace, field: &str) -> Result<()> {
        finite_table(&self.r, space, field, "r")
    }

    fn extremes(&self, simplex: Simplex) -> Extremes {
        let [lowest, highest] = [range::smallest(&self.r), range::largest(&self.r)];
        Extremes { lowest: simplex.vertex(lowest), highest: simplex.vertex(highest) }
    }

    fn bounds(&self, _: LocalSpace, _: &[f64]) -> Option<UtilityBounds> {
        Some(UtilityBounds { reward_inf: largest(&self.r), reward_2: length(&self.r), l_lambda: 0.0 })
    }

    fn curvature(&self) -> Curvature {
        Curvature::Linear
    }

    fn parameters(&self) -> KernelParameters<'_> {
        KernelParameters::table(&self.r)
    }

    fn conic(&self, _: &mut Program, x: &[Affine], space: LocalSpace) -> Affine {
        weighted_sum(&self.r, x).scaled(1.0 / (1.0 - space.gamma))
    }
}

impl Kind {
    /// The discounted return of reward `r`.
    pub fn of_reward(r: Arc<[f64]>) -> Self {
        Kind::Linear(Linear { r })
    }
}

impl UtilitySpec {
    /// The reward, `scale` included, whose discounted return a `linear` utility is up to its offset; `None`
    /// for other kinds. Its length and entries are as written, not checked.
    pub fn reward_table(&self) -> Option<Vec<f64>> {
        let scale = self.scale.unwrap_or(1.0);
        let reward = self.r.as_ref().filter(|_| self.kind == "linear")?;
        Some(reward.numbers().iter().map(|r| scale * r).collect())
    }
}
/// The table `r` of a file's utility, as rewards by own state and action.
pub(crate) fn rewards(spec: &UtilitySpec, space: LocalSpace, field: &str) -> Result<Vec<f64>> {
    let utility = UtilitySpec { kind: "linear".into(), ..spec.clone() }.build(space, field)?;
    // The shadow reward of a sum of rewards is the rewards.
    let mut table = vec![0.0; space.cells()];
    utility.gradient(&vec![0.0; space.cells()], space, &mut table);
    Ok(table)
}
