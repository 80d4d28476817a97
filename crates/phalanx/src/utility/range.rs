//! The values a utility can take: what is attainable at all, before any training.
//!
//! Both ends are values at explicit tables. Concave kinds are smallest at a vertex of {x ≥ 0, Σ x = mass} and
//! convex ones largest there; which vertex follows from the separable form of the formulas in one pass. The
//! other end is an optimisation over the simplex that has a closed form, or a projection, for every kind.
//!
//! The ranges are over *all* tables of the given mass. An agent's policy, dynamics and initial law may allow
//! less. Ends are exact up to rounding: compare thresholds with a tolerance.

use super::{LocalSpace, project_onto_simplex};

/// All nonnegative tables of total mass `mass`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Simplex {
    pub space: LocalSpace,
    pub mass: f64,
}

impl Simplex {
    /// None when there is no such table.
    pub fn new(space: LocalSpace, mass: f64) -> Option<Self> {
        (space.cells() > 0 && mass >= 0.0 && mass.is_finite()).then_some(Simplex { space, mass })
    }

    /// All on one cell.
    pub fn vertex(&self, cell: usize) -> Vec<f64> {
        let mut table = vec![0.0; self.space.cells()];
        table[cell] = self.mass;
        table
    }

    /// The same on every cell.
    pub fn uniform(&self) -> Vec<f64> {
        vec![self.mass / self.space.cells() as f64; self.space.cells()]
    }

    /// The tables farthest from `point` and nearest to it.
    /// ‖mass·e_k − x‖² = ‖x‖² + mass² − 2 mass x_k: the farthest vertex has the smallest x_k.
    pub fn around(&self, point: &[f64]) -> Extremes {
        let mut nearest = point.to_vec();
        project_onto_simplex(&mut nearest, self.mass);
        Extremes { lowest: self.vertex(smallest(point)), highest: nearest }
    }
}

/// Tables at which a utility is smallest and largest.
pub(crate) struct Extremes {
    pub lowest: Vec<f64>,
    pub highest: Vec<f64>,
}

/// Where the smallest entry is.
pub(super) fn smallest(values: &[f64]) -> usize {
    values.iter().enumerate().min_by(|x, y| x.1.total_cmp(y.1)).map_or(0, |(cell, _)| cell)
}

/// Where the largest entry is.
pub(super) fn largest(values: &[f64]) -> usize {
    values.iter().enumerate().max_by(|x, y| x.1.total_cmp(y.1)).map_or(0, |(cell, _)| cell)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::conic::Curvature;
    use super::super::tests::{any_kind, any_space, to_mass};
    use super::super::*;

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
        assert_range(Kind::Linear(Linear { r: r.clone() }), space, 2.0, -2.0, 6.0);
        assert_range(
            ScaledUtility { kind: Kind::Linear(Linear { r }), scale: -0.5, offset: 1.0 },
            space,
            2.0,
            -2.0,
            2.0,
        );
        let ln2 = std::f64::consts::LN_2;
        assert_range(Kind::StateEntropy(Entropy(States)), space, 2.0, 0.0, ln2);
        assert_range(Kind::ActionEntropy(Entropy(Actions)), space, 2.0, 0.0, (space.actions as f64).ln());
        assert_range(Kind::SaEntropy(Entropy(Pairs)), space, 2.0, 0.0, 2.0 * ln2);
        assert_range(Kind::SaEntropy(Entropy(Pairs)), space, 1.0, 0.5 * ln2, 0.5 * 8f64.ln());
        assert_range(Kind::ActionL2sq(SquaredNorm(Actions)), space, 2.0, 2.0, 4.0);
        assert_range(Kind::L2sq(SquaredNorm(Pairs)), space, 2.0, 1.0, 4.0);
        // The expert has mass 3: its projection onto mass 2 is [1.5, 0.5, 0, 0], at distance √½.
        let expert = table([2.0, 1.0, 0.0, 0.0]);
        assert_range(Kind::NegL2sqExpert(NegL2sqExpert { expert: expert.clone() }), space, 2.0, -9.0, -0.5);
        assert_range(Kind::NegL2Expert(NegL2Expert { expert }), space, 2.0, -3.0, -0.5f64.sqrt());
        // e = [1/2, 1/4, 1/8, 1/8]; m = 1 and m = 1/2.
        let expert = table([1.0, 0.5, 0.25, 0.25]);
        assert_range(Kind::NegKlExpert(NegKlExpert { expert: expert.clone() }), space, 2.0, -3.0 * ln2, 0.0);
        assert_range(Kind::NegKlExpert(NegKlExpert { expert }), space, 1.0, -ln2, 0.5 * ln2);
        let expert = table([2.0, 0.0, 0.0, 0.0]);
        let (low, high) = Kind::NegKlExpert(NegKlExpert { expert }).range(space, 2.0).unwrap();
        assert!((low - LOG_FLOOR.ln()).abs() < 1e-12 && high.abs() < 1e-11);
        // ‖a‖ = 5; ⟨a, λ⟩ between −6 and 8.
        let halfspace = |b| {
            Kind::NegDistHalfspace(NegDistHalfspace { a: table([4.0, -3.0, 0.0, 0.0]), b, power: Power::One })
        };
        assert_range(halfspace(3.0), space, 2.0, -1.0, 0.0);
        assert_range(halfspace(-11.0), space, 2.0, -3.8, -1.0);
        // The centre is at distance 1 from the nearest table [½, ½, ½, ½].
        let ball =
            |radius| Kind::NegDistBall(NegDistBall { center: table([1.0; 4]), radius, power: Power::Two });
        assert_range(ball(0.0), space, 2.0, -2.0, -0.5);
        assert_range(ball(1.5), space, 2.0, -0.125, 0.0);
    }

    #[test]
    fn boxes_that_meet_the_simplex_or_miss_it_either_way() {
        let space = LocalSpace { states: 1, actions: 3, gamma: 0.5 };
        let boxed = |lo: [f64; 3], hi: [f64; 3]| {
            Kind::NegDistBox(NegDistBox { lo: lo.into(), hi: hi.into(), power: Power::Two })
        };
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
        let (low, high) = Kind::StateEntropy(Entropy(States)).range(space, mass).unwrap();
        assert!((low - 0.2397).abs() < 1e-4 && (high - 0.7355).abs() < 1e-4);
    }

    #[test]
    fn normalised_action_norm_has_the_range_of_errata_10() {
        let space = LocalSpace { states: 3, actions: 4, gamma: 0.9 };
        let scale = 0.5 * (1.0 - space.gamma).powi(2);
        assert_range(
            ScaledUtility { kind: Kind::ActionL2sq(SquaredNorm(Actions)), scale, offset: 0.0 },
            space,
            10.0,
            0.125,
            0.5,
        );
    }

    #[test]
    fn no_table_no_range() {
        let empty = LocalSpace { states: 0, actions: 2, gamma: 0.5 };
        assert_eq!(Kind::StateEntropy(Entropy(States)).range(empty, 2.0), None);
        let space = LocalSpace { states: 2, ..empty };
        assert_eq!(Kind::StateEntropy(Entropy(States)).range(space, -1.0), None);
        assert_eq!(Kind::StateEntropy(Entropy(States)).range(space, f64::NAN), None);
        assert_eq!(Kind::StateEntropy(Entropy(States)).range(space, 0.0), Some((0.0, 0.0)));
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
            let extremes = kind.extremes(space, mass).unwrap();
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
            let convex = kind.curvature() == Curvature::Convex;
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
