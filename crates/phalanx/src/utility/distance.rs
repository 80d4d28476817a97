//! Minus the distance to a set: a box, a halfspace, a ball. Paper: exp:feasibility.

use std::sync::Arc;

use super::bounds::{UtilityBounds, length};
use super::conic::{Affine, Program, difference, norm, positive_part, square, weighted_sum};
use super::kinds::{BaseUtility, KernelParameters};
use super::range::{Extremes, Simplex, largest, smallest};
use super::spec::Reader;
use super::validate::{at, check_number, check_table, finite_table};
use super::{
    LocalSpace, Power, Utility, dot, project_onto_simplex, residual_to_slope, squared_distance,
    write_difference,
};
use crate::base::elementary::powi;
use crate::base::error::ensure;
use crate::{Error, Result};

/// Minus the Euclidean distance D (see [`Power`]) to the box lo ≤ λ ≤ hi; gradient −(λ − Πλ)/D, 0 inside
/// (power 1), or −(λ − Πλ) (power 2), Π the projection onto the box.
#[derive(Debug, Clone, PartialEq)]
pub struct NegDistBox {
    /// Lower ends, −∞ allowed.
    pub lo: Arc<[f64]>,
    /// Upper ends, +∞ allowed.
    pub hi: Arc<[f64]>,
    /// −D or −D²/2.
    pub power: Power,
}

/// The same for the halfspace ⟨a, λ⟩ ≤ b.
#[derive(Debug, Clone, PartialEq)]
pub struct NegDistHalfspace {
    /// Normal vector, not 0.
    pub a: Arc<[f64]>,
    /// Right-hand side.
    pub b: f64,
    /// −D or −D²/2.
    pub power: Power,
}

/// The same for the ball ‖λ − center‖₂ ≤ radius.
#[derive(Debug, Clone, PartialEq)]
pub struct NegDistBall {
    /// Centre, e.g. the occupancy measure of a known safe policy.
    pub center: Arc<[f64]>,
    /// Radius ≥ 0.
    pub radius: f64,
    /// −D or −D²/2.
    pub power: Power,
}

/// How far `x` is beyond `bound`; NaN stays NaN.
fn excess(x: f64, bound: f64) -> f64 {
    if x <= bound { 0.0 } else { x - bound }
}

/// `x` minus its projection onto [lo, hi]; NaN stays NaN.
fn box_residual(x: f64, lo: f64, hi: f64) -> f64 {
    if x < lo { x - lo } else { excess(x, hi) }
}

fn of_distance(distance: f64, power: Power) -> f64 {
    match power {
        Power::One => -distance,
        Power::Two => -0.5 * distance * distance,
    }
}

/// −D²/2 of a set that has a point of length `point`: its gradient λ − Πλ is no longer than ‖λ‖ + ‖point‖,
/// with ‖λ‖ ≤ 1/(1−γ), and it is nonexpansive. −D has a kink.
fn bounds(power: Power, space: LocalSpace, point: f64) -> Option<UtilityBounds> {
    let longest = 1.0 / (1.0 - space.gamma) + point;
    (power == Power::Two).then_some(UtilityBounds { reward_inf: longest, reward_2: longest, l_lambda: 1.0 })
}

/// −D or −D²/2 from `distance` = q D.
fn conic(program: &mut Program, distance: Affine, power: Power, q: f64) -> Affine {
    match power {
        Power::One => distance.scaled(-1.0 / q),
        Power::Two => square(program, [distance]).scaled(-0.5 / (q * q)),
    }
}

impl Utility for NegDistBox {
    fn value(&self, occupancy: &[f64], _: LocalSpace) -> f64 {
        let residual = |cell: usize| box_residual(occupancy[cell], self.lo[cell], self.hi[cell]);
        let squared: f64 = (0..occupancy.len()).map(|cell| powi(residual(cell), 2)).sum();
        of_distance(squared.sqrt(), self.power)
    }

    fn gradient(&self, occupancy: &[f64], _: LocalSpace, out: &mut [f64]) {
        for (cell, slope) in out.iter_mut().enumerate() {
            *slope = box_residual(occupancy[cell], self.lo[cell], self.hi[cell]);
        }
        residual_to_slope(out, self.power);
    }
}

impl Utility for NegDistHalfspace {
    fn value(&self, occupancy: &[f64], _: LocalSpace) -> f64 {
        let NegDistHalfspace { a, b, power } = self;
        of_distance(excess(dot(a, occupancy), *b) / dot(a, a).sqrt(), *power)
    }

    fn gradient(&self, occupancy: &[f64], _: LocalSpace, out: &mut [f64]) {
        let NegDistHalfspace { a, b, power } = self;
        let along_normal = excess(dot(a, occupancy), *b) / dot(a, a);
        for (slope, normal) in out.iter_mut().zip(&**a) {
            *slope = along_normal * normal;
        }
        residual_to_slope(out, *power);
    }
}

impl Utility for NegDistBall {
    fn value(&self, occupancy: &[f64], _: LocalSpace) -> f64 {
        of_distance(excess(squared_distance(occupancy, &self.center).sqrt(), self.radius), self.power)
    }

    fn gradient(&self, occupancy: &[f64], _: LocalSpace, out: &mut [f64]) {
        write_difference(occupancy, &self.center, out);
        let from_center = dot(out, out).sqrt();
        let outside = excess(from_center, self.radius);
        let share = if outside == 0.0 { 0.0 } else { outside / from_center };
        out.iter_mut().for_each(|slope| *slope *= share);
        residual_to_slope(out, self.power);
    }
}

impl BaseUtility for NegDistBox {
    fn read(read: &mut Reader<'_>) -> Result<Self> {
        let (lo, hi) = (read.table("lo", &read.spec.lo)?, read.table("hi", &read.spec.hi)?);
        Ok(NegDistBox { lo, hi, power: read.power()? })
    }

    /// Ends may be infinite as long as every interval contains a number.
    fn validate(&self, space: LocalSpace, field: &str) -> Result<()> {
        let (lo, hi) = (&self.lo, &self.hi);
        check_table(lo, space, &format!("{field}.lo"), "a number below infinity", |x| x < f64::INFINITY)?;
        check_table(hi, space, &format!("{field}.hi"), "a number above -infinity", |x| {
            x > f64::NEG_INFINITY
        })?;
        (0..lo.len()).try_for_each(|cell| {
            ensure(lo[cell] <= hi[cell], || {
                let message = format!("{} is {}, above {field}.hi = {}", at(cell, space), lo[cell], hi[cell]);
                Error::config(format!("{field}.lo"), message)
            })
        })
    }

    /// Vertex k is at squared distance Σ_j D_j(0)² − D_k(0)² + D_k(mass)².
    fn extremes(&self, simplex: Simplex) -> Extremes {
        let NegDistBox { lo, hi, .. } = self;
        let gain = |cell: usize| {
            powi(box_residual(simplex.mass, lo[cell], hi[cell]), 2)
                - powi(box_residual(0.0, lo[cell], hi[cell]), 2)
        };
        let gains: Vec<f64> = (0..lo.len()).map(gain).collect();
        Extremes { lowest: simplex.vertex(largest(&gains)), highest: nearest_to_box(lo, hi, simplex.mass) }
    }

    fn bounds(&self, space: LocalSpace, _: &[f64]) -> Option<UtilityBounds> {
        let ends = self.lo.iter().zip(&*self.hi);
        let nearest: Vec<f64> = ends.map(|(&lo, &hi)| 0f64.max(lo).min(hi)).collect();
        bounds(self.power, space, length(&nearest))
    }

    fn parameters(&self) -> KernelParameters<'_> {
        KernelParameters { power: Some(self.power), number: 0.0, tables: [Some(&self.lo), Some(&self.hi)] }
    }

    fn conic(&self, program: &mut Program, x: &[Affine], space: LocalSpace) -> Affine {
        let q = 1.0 - space.gamma;
        let beyond = box_excess(program, x, &self.lo, &self.hi, q);
        let distance = norm(program, beyond);
        conic(program, distance, self.power, q)
    }
}

impl BaseUtility for NegDistHalfspace {
    fn read(read: &mut Reader<'_>) -> Result<Self> {
        let a = read.table("a", &read.spec.a)?;
        Ok(NegDistHalfspace { a, b: read.number("b", read.spec.b)?, power: read.power()? })
    }

    fn validate(&self, space: LocalSpace, field: &str) -> Result<()> {
        finite_table(&self.a, space, field, "a")?;
        let squared = dot(&self.a, &self.a);
        ensure(squared.is_normal(), || {
            let message = format!("has squared length {squared}, but a normal vector must not vanish");
            Error::config(format!("{field}.a"), message)
        })?;
        check_number(self.b, &format!("{field}.b"), "finite", f64::is_finite)
    }

    /// Nonincreasing in ⟨a, λ⟩.
    fn extremes(&self, simplex: Simplex) -> Extremes {
        Extremes { lowest: simplex.vertex(largest(&self.a)), highest: simplex.vertex(smallest(&self.a)) }
    }

    fn bounds(&self, space: LocalSpace, _: &[f64]) -> Option<UtilityBounds> {
        bounds(self.power, space, (-self.b).max(0.0) / length(&self.a))
    }

    fn parameters(&self) -> KernelParameters<'_> {
        KernelParameters { power: Some(self.power), number: self.b, ..KernelParameters::table(&self.a) }
    }

    fn conic(&self, program: &mut Program, x: &[Affine], space: LocalSpace) -> Affine {
        let q = 1.0 - space.gamma;
        let beyond = weighted_sum(&self.a, x).shifted(-q * self.b).scaled(1.0 / length(&self.a));
        let distance = positive_part(program, &beyond);
        conic(program, distance, self.power, q)
    }
}

impl BaseUtility for NegDistBall {
    fn read(read: &mut Reader<'_>) -> Result<Self> {
        let center = read.table("center", &read.spec.center)?;
        let radius = read.number("radius", read.spec.radius)?;
        Ok(NegDistBall { center, radius, power: read.power()? })
    }

    fn validate(&self, space: LocalSpace, field: &str) -> Result<()> {
        finite_table(&self.center, space, field, "center")?;
        let is_radius = |x: f64| x.is_finite() && x >= 0.0;
        check_number(self.radius, &format!("{field}.radius"), "finite and at least 0", is_radius)
    }

    fn extremes(&self, simplex: Simplex) -> Extremes {
        simplex.around(&self.center)
    }

    fn bounds(&self, space: LocalSpace, _: &[f64]) -> Option<UtilityBounds> {
        bounds(self.power, space, length(&self.center))
    }

    fn parameters(&self) -> KernelParameters<'_> {
        KernelParameters {
            power: Some(self.power),
            number: self.radius,
            ..KernelParameters::table(&self.center)
        }
    }

    fn conic(&self, program: &mut Program, x: &[Affine], space: LocalSpace) -> Affine {
        let q = 1.0 - space.gamma;
        let from_center = norm(program, difference(x, &self.center, q));
        let distance = positive_part(program, &from_center.shifted(-q * self.radius));
        conic(program, distance, self.power, q)
    }
}

/// The table of mass `mass` nearest to the box; inside it when they meet.
///
/// Minimises Σ_j D_j(x_j)² over x ≥ 0, Σ x = mass. With a multiplier τ for the mass, every entry beyond its
/// box is beyond it by −τ unless it is 0, which leaves three cases.
fn nearest_to_box(lo: &[f64], hi: &[f64], mass: f64) -> Vec<f64> {
    let mut least: Vec<f64> = lo.iter().map(|x| x.max(0.0)).collect();
    if least.iter().sum::<f64>() > mass {
        // The lower ends ask for too much: x = max(lo − τ, 0), τ > 0, where negative ends act like 0.
        project_onto_simplex(&mut least, mass);
        return least;
    }
    let most: Vec<f64> = hi.iter().map(|x| x.clamp(0.0, mass)).collect();
    let (needed, room) = (least.iter().sum::<f64>(), most.iter().sum::<f64>());
    // `most` is capped at the mass, so too little room in it is too little room in the box.
    if room < mass {
        // x = max(hi − τ, 0), τ < 0: a cell whose upper end is negative gets mass last, if at all.
        let mut table = hi.to_vec();
        project_onto_simplex(&mut table, mass);
        return table;
    }
    // Between the ends; cells with a negative upper end stay at 0, as near as they can be.
    let share = if room > needed { (mass - needed) / (room - needed) } else { 0.0 };
    let between = |(from, to): (&f64, &f64)| (from + share * (to - from)).min(*to);
    least.iter().zip(&most).map(between).collect()
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
