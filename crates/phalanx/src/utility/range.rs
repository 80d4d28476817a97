//! The values a utility can take: what is attainable at all, before any training.
//!
//! Both ends are values at explicit tables. Concave kinds are smallest at a vertex of {x ≥ 0, Σ x = mass} and
//! convex ones largest there; which vertex follows from the separable form of the formulas in one pass. The
//! other end is an optimisation over the simplex that has a closed form, or a projection, for every kind.
//!
//! The ranges are over *all* tables of the given mass. An agent's policy, dynamics and initial law may allow
//! less. Ends are exact up to rounding: compare thresholds with a tolerance.

use super::kinds::box_residual;
use super::{Kind, LOG_FLOOR, LocalSpace, Utility, project_onto_simplex};

/// Smallest and largest value of `kind` over nonnegative tables of total mass `mass`.
pub(super) fn range(kind: &Kind, space: LocalSpace, mass: f64) -> Option<(f64, f64)> {
    match kind {
        Kind::Custom(utility) => return utility.range(space, mass),
        Kind::Channel { range: [low, high], .. } => return Some((low * mass, high * mass)),
        _ => {}
    }
    let extremes = Extremes::of(kind, space, mass)?;
    Some((kind.value(&extremes.lowest, space), kind.value(&extremes.highest, space)))
}

/// Tables at which a utility is smallest and largest.
struct Extremes {
    lowest: Vec<f64>,
    highest: Vec<f64>,
}

impl Extremes {
    /// `None` for custom utilities and when there is no table of that mass.
    fn of(kind: &Kind, space: LocalSpace, mass: f64) -> Option<Self> {
        let cells = space.cells();
        if cells == 0 || !(mass >= 0.0 && mass.is_finite()) {
            return None;
        }
        let vertex = |cell: usize| {
            let mut table = vec![0.0; cells];
            table[cell] = mass;
            table
        };
        let uniform = || vec![mass / cells as f64; cells];
        let nearest_to = |point: &[f64]| {
            let mut table = point.to_vec();
            project_onto_simplex(&mut table, mass);
            table
        };
        Some(match kind {
            Kind::Linear { r } => Extremes { lowest: vertex(smallest(r)), highest: vertex(largest(r)) },
            // Concave and symmetric: largest at the uniform table, smallest at any vertex.
            Kind::StateEntropy | Kind::SaEntropy | Kind::ActionEntropy => {
                Extremes { lowest: vertex(0), highest: uniform() }
            }
            // Convex and symmetric.
            Kind::ActionL2sq | Kind::L2sq => Extremes { lowest: uniform(), highest: vertex(0) },
            Kind::ActionL2 { from: 0 } => Extremes { lowest: uniform(), highest: vertex(0) },
            // All on an action that does not count, or all on one that does.
            Kind::ActionL2 { from } => {
                Extremes { lowest: vertex(0), highest: vertex((*from).min(space.actions - 1)) }
            }
            // ‖mass·e_k − x‖² = ‖x‖² + mass² − 2 mass x_k: the farthest vertex has the smallest x_k.
            Kind::NegL2Expert { expert: point }
            | Kind::NegL2sqExpert { expert: point }
            | Kind::NegDistBall { center: point, .. } => {
                Extremes { lowest: vertex(smallest(point)), highest: nearest_to(point) }
            }
            // With m = q·mass, vertex k has −m ln(m/e_k). The Gibbs inequality gives
            // −Σ p ln(p/e) ≤ m ln(Σe/m), with equality at p = m e/Σe.
            Kind::NegKlExpert { expert } => {
                let q = 1.0 - space.gamma;
                let mut highest: Vec<f64> = expert.iter().map(|e| (q * e).max(LOG_FLOOR)).collect();
                let total: f64 = highest.iter().sum();
                highest.iter_mut().for_each(|entry| *entry *= mass / total);
                Extremes { lowest: vertex(smallest(expert)), highest }
            }
            // Vertex k is at squared distance Σ_j D_j(0)² − D_k(0)² + D_k(mass)².
            Kind::NegDistBox { lo, hi, .. } => {
                let gain = |cell: usize| {
                    box_residual(mass, lo[cell], hi[cell]).powi(2)
                        - box_residual(0.0, lo[cell], hi[cell]).powi(2)
                };
                let gains: Vec<f64> = (0..cells).map(gain).collect();
                Extremes { lowest: vertex(largest(&gains)), highest: nearest_to_box(lo, hi, mass) }
            }
            // Nonincreasing in ⟨a, λ⟩.
            Kind::NegDistHalfspace { a, .. } => {
                Extremes { lowest: vertex(largest(a)), highest: vertex(smallest(a)) }
            }
            Kind::Channel { .. } | Kind::Custom(_) => return None,
        })
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

/// Where the smallest entry is.
fn smallest(values: &[f64]) -> usize {
    values.iter().enumerate().min_by(|x, y| x.1.total_cmp(y.1)).map_or(0, |(cell, _)| cell)
}

/// Where the largest entry is.
fn largest(values: &[f64]) -> usize {
    values.iter().enumerate().max_by(|x, y| x.1.total_cmp(y.1)).map_or(0, |(cell, _)| cell)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::tests::{any_kind, any_space, to_mass};
    use super::super::{Power, ScaledUtility};
    use super::*;

    fn assert_range(utility: impl Into<ScaledUtility>, space: LocalSpace, mass: f64, low: f64, high: f64) {
        let utility = utility.into();
        let (got_low, got_high) = utility.range(space, mass).unwrap();
        assert!(
            (got_low - low).abs() < 1e-12 && (got_high - high).abs() < 1e-12,
            "{}: [{got_low}, {got_high}] is not [{low}, {high}]",
            utility.kind.name()
        );
    }

    #[test]
    fn literals() {
        let space = LocalSpace { states: 2, actions: 2, gamma: 0.5 };
        let table = |values: [f64; 4]| -> Arc<[f64]> { values.into() };
        let r = table([3.0, -1.0, 0.0, 2.0]);
        assert_range(Kind::Linear { r: r.clone() }, space, 2.0, -2.0, 6.0);
        assert_range(
            ScaledUtility { kind: Kind::Linear { r }, scale: -0.5, offset: 1.0 },
            space,
            2.0,
            -2.0,
            2.0,
        );
        let ln2 = std::f64::consts::LN_2;
        assert_range(Kind::StateEntropy, space, 2.0, 0.0, ln2);
        assert_range(Kind::ActionEntropy, space, 2.0, 0.0, (space.actions as f64).ln());
        assert_range(Kind::SaEntropy, space, 2.0, 0.0, 2.0 * ln2);
        assert_range(Kind::SaEntropy, space, 1.0, 0.5 * ln2, 0.5 * 8f64.ln());
        assert_range(Kind::ActionL2sq, space, 2.0, 2.0, 4.0);
        assert_range(Kind::L2sq, space, 2.0, 1.0, 4.0);
        // The expert has mass 3: its projection onto mass 2 is [1.5, 0.5, 0, 0], at distance √½.
        let expert = table([2.0, 1.0, 0.0, 0.0]);
        assert_range(Kind::NegL2sqExpert { expert: expert.clone() }, space, 2.0, -9.0, -0.5);
        assert_range(Kind::NegL2Expert { expert }, space, 2.0, -3.0, -0.5f64.sqrt());
        // e = [1/2, 1/4, 1/8, 1/8]; m = 1 and m = 1/2.
        let expert = table([1.0, 0.5, 0.25, 0.25]);
        assert_range(Kind::NegKlExpert { expert: expert.clone() }, space, 2.0, -3.0 * ln2, 0.0);
        assert_range(Kind::NegKlExpert { expert }, space, 1.0, -ln2, 0.5 * ln2);
        let expert = table([2.0, 0.0, 0.0, 0.0]);
        let (low, high) = Kind::NegKlExpert { expert }.range(space, 2.0).unwrap();
        assert!((low - LOG_FLOOR.ln()).abs() < 1e-12 && high.abs() < 1e-11);
        // ‖a‖ = 5; ⟨a, λ⟩ between −6 and 8.
        let halfspace = |b| Kind::NegDistHalfspace { a: table([4.0, -3.0, 0.0, 0.0]), b, power: Power::One };
        assert_range(halfspace(3.0), space, 2.0, -1.0, 0.0);
        assert_range(halfspace(-11.0), space, 2.0, -3.8, -1.0);
        // The centre is at distance 1 from the nearest table [½, ½, ½, ½].
        let ball = |radius| Kind::NegDistBall { center: table([1.0; 4]), radius, power: Power::Two };
        assert_range(ball(0.0), space, 2.0, -2.0, -0.5);
        assert_range(ball(1.5), space, 2.0, -0.125, 0.0);
    }

    #[test]
    fn boxes_that_meet_the_simplex_or_miss_it_either_way() {
        let space = LocalSpace { states: 1, actions: 3, gamma: 0.5 };
        let boxed =
            |lo: [f64; 3], hi: [f64; 3]| Kind::NegDistBox { lo: lo.into(), hi: hi.into(), power: Power::Two };
        let inf = f64::INFINITY;
        // Meets it; the farthest vertex is [2, 0, 0], 1 beyond.
        assert_range(boxed([0.0; 3], [1.0, 2.0, inf]), space, 2.0, -0.5, 0.0);
        // Touches it in one point.
        assert_range(boxed([0.5, 0.5, 1.0], [inf; 3]), space, 2.0, -0.5 * 1.25, 0.0);
        // Upper ends leave 0.3 too little: 0.1 more in every cell.
        assert_range(boxed([-inf; 3], [0.5, 0.5, 0.7]), space, 2.0, -0.5 * 1.5f64.powi(2), -0.5 * 0.03);
        // Lower ends ask for 0.6 too much, which the two positive ones share; vertex 2 is farthest.
        let asks_too_much = boxed([1.6, 1.0, -inf], [inf, inf, 0.0]);
        assert_range(
            asks_too_much,
            space,
            2.0,
            -0.5 * (1.6f64.powi(2) + 1.0 + 4.0),
            -0.5 * 2.0 * 0.3f64.powi(2),
        );
        // Room enough, but one cell would have to be below 0: it stays at 0, at distance 0.5.
        let below_zero = boxed([-inf, -inf, -inf], [inf, 1.0, -0.5]);
        assert_range(below_zero, space, 2.0, -0.5 * 2.5f64.powi(2), -0.5 * 0.25);
    }

    #[test]
    fn truncated_occupancies_have_less_mass() {
        // 125 steps at γ = 0.99: m = 0.7153.
        let space = LocalSpace { states: 2, actions: 2, gamma: 0.99 };
        let mass = (1.0 - space.gamma.powi(125)) / (1.0 - space.gamma);
        let (low, high) = Kind::StateEntropy.range(space, mass).unwrap();
        assert!((low - 0.2397).abs() < 1e-4 && (high - 0.7355).abs() < 1e-4);
    }

    #[test]
    fn normalised_action_norm_has_the_range_of_errata_10() {
        let space = LocalSpace { states: 3, actions: 4, gamma: 0.9 };
        let scale = 0.5 * (1.0 - space.gamma).powi(2);
        assert_range(ScaledUtility { kind: Kind::ActionL2sq, scale, offset: 0.0 }, space, 10.0, 0.125, 0.5);
    }

    #[test]
    fn no_table_no_range() {
        let empty = LocalSpace { states: 0, actions: 2, gamma: 0.5 };
        assert_eq!(Kind::StateEntropy.range(empty, 2.0), None);
        let space = LocalSpace { states: 2, ..empty };
        assert_eq!(Kind::StateEntropy.range(space, -1.0), None);
        assert_eq!(Kind::StateEntropy.range(space, f64::NAN), None);
        assert_eq!(Kind::StateEntropy.range(space, 0.0), Some((0.0, 0.0)));
    }

    proptest! {
        /// The extreme tables are tables, no other one goes beyond them, and the end that is not at a vertex
        /// satisfies the first-order condition, which is sufficient: every kind is concave or convex.
        #[test]
        fn ends_are_attained_and_never_passed(
            (space, kind, weights) in any_space().prop_flat_map(|space| {
                let weights = prop::collection::vec(prop_oneof![Just(0.0), 1e-3..1.0f64], space.cells());
                (Just(space), any_kind(space), prop::collection::vec(weights, 20))
            }),
            share in prop_oneof![Just(1.0), 0.3..1.0f64],
        ) {
            let mass = share / (1.0 - space.gamma);
            let (low, high) = kind.range(space, mass).unwrap();
            let extremes = Extremes::of(&kind, space, mass).unwrap();
            for table in [&extremes.lowest, &extremes.highest] {
                prop_assert!(table.iter().all(|x| *x >= 0.0));
                prop_assert!((table.iter().sum::<f64>() - mass).abs() <= 1e-12 * mass);
            }
            let slack = 1e-10 * (1.0 + low.abs().max(high.abs()));
            for table in weights.iter().filter_map(|weights| to_mass(weights, mass)) {
                let value = kind.value(&table, space);
                let inside = low - slack <= value && value <= high + slack;
                prop_assert!(inside, "{value} is not in [{low}, {high}]");
            }
            let at_vertices: Vec<f64> = (0..space.cells())
                .map(|cell| {
                    let mut vertex = vec![0.0; space.cells()];
                    vertex[cell] = mass;
                    kind.value(&vertex, space)
                })
                .collect();
            let convex = matches!(kind, Kind::ActionL2sq | Kind::ActionL2 { .. } | Kind::L2sq);
            let (vertex_end, optimum, sign) = if convex {
                (at_vertices.iter().copied().fold(f64::MIN, f64::max) - high, &extremes.lowest, -1.0)
            } else {
                (at_vertices.iter().copied().fold(f64::MAX, f64::min) - low, &extremes.highest, 1.0)
            };
            prop_assert!(vertex_end.abs() <= slack);
            let mut slopes = vec![0.0; space.cells()];
            kind.gradient(optimum, space, &mut slopes);
            let here: f64 = slopes.iter().zip(optimum).map(|(slope, x)| sign * slope * x).sum();
            for slope in &slopes {
                prop_assert!(sign * slope * mass <= here + 1e-8 * (1.0 + here.abs() + mass), "{slopes:?}");
            }
        }
    }
}
