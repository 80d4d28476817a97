//! Properties that hold for every kind, and the random utilities to test them with.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;

/// Small spaces of all shapes.
pub(super) fn any_space() -> impl Strategy<Value = LocalSpace> {
    (1..5usize, 1..4usize, prop_oneof![Just(0.0), 0.1..0.95f64])
        .prop_map(|(states, actions, gamma)| LocalSpace { states, actions, gamma })
}

/// Every kind, with sets that occupancies of about the right mass may meet or miss.
pub(super) fn any_kind(space: LocalSpace) -> impl Strategy<Value = Kind> {
    let typical = 1.0 / (1.0 - space.gamma) / space.cells() as f64;
    let table = move |low: f64, high: f64| {
        prop::collection::vec(low..high, space.cells())
            .prop_map(move |values| values.iter().map(|x| typical * x).collect::<Arc<[f64]>>())
    };
    let power = || prop_oneof![Just(Power::One), Just(Power::Two)];
    let interval = prop_oneof![
        (-0.5..2.0f64, 0.0..1.0f64).prop_map(|(lo, width)| (lo, lo + width)),
        (-0.5..1.5f64).prop_map(|lo| (lo, f64::INFINITY)),
        (-0.5..1.5f64).prop_map(|hi| (f64::NEG_INFINITY, hi)),
    ];
    let intervals = prop::collection::vec(interval, space.cells());
    prop_oneof![
        table(-2.0, 2.0).prop_map(|r| Kind::Linear(Linear { r })),
        Just(Kind::StateEntropy(Entropy(States))),
        Just(Kind::SaEntropy(Entropy(Pairs))),
        Just(Kind::ActionEntropy(Entropy(Actions))),
        Just(Kind::ActionL2sq(SquaredNorm(Actions))),
        prop_oneof![Just(Kind::ActionL2(ActionL2 {})), Just(Kind::ActiveL2(ActiveL2 {}))],
        Just(Kind::L2sq(SquaredNorm(Pairs))),
        table(0.0, 3.0).prop_map(|expert| Kind::NegL2Expert(NegL2Expert { expert })),
        table(0.0, 3.0).prop_map(|expert| Kind::NegL2sqExpert(NegL2sqExpert { expert })),
        table(0.01, 3.0).prop_map(|expert| Kind::NegKlExpert(NegKlExpert { expert })),
        (intervals, power()).prop_map(move |(ends, power)| {
            let (lo, hi): (Vec<f64>, Vec<f64>) =
                ends.iter().map(|(lo, hi)| (typical * lo, typical * hi)).unzip();
            Kind::NegDistBox(NegDistBox { lo: lo.into(), hi: hi.into(), power })
        }),
        (table(-1.0, 1.5), -3.0..5.0f64, power())
            .prop_map(|(a, b, power)| Kind::NegDistHalfspace(NegDistHalfspace { a, b, power })),
        (table(-0.5, 3.0), 0.0..2.0f64, power()).prop_map(move |(center, radius, power)| {
            Kind::NegDistBall(NegDistBall { center, radius: radius * typical, power })
        }),
    ]
}

/// Scales nonnegative weights to a total of `mass`, if they have any.
pub(super) fn to_mass(weights: &[f64], mass: f64) -> Option<Vec<f64>> {
    let total: f64 = weights.iter().sum();
    (total > 0.0).then(|| weights.iter().map(|weight| weight / total * mass).collect())
}

proptest! {
    #[test]
    fn gradients_are_slopes(
        (space, kind, weights) in any_space().prop_flat_map(|space| {
            (Just(space), any_kind(space), prop::collection::vec(0.1..1.0f64, space.cells()))
        }),
        scale in -3.0..3.0f64,
        offset in -3.0..3.0f64,
    ) {
        let occupancy = to_mass(&weights, 1.0 / (1.0 - space.gamma)).unwrap();
        let utility = ScaledUtility { kind, scale, offset };
        prop_assert!(utility.validate(space, "f").is_ok());
        // At the edge of a set the distance has a kink, and its square one in the slope.
        let base = utility.kind.value(&occupancy, space);
        let near_kink = utility.kind.name().starts_with("neg_dist") && base.abs() < 1e-3;
        prop_assume!(!near_kink || base == 0.0);
        if let Err(mismatch) = check_gradient(&utility, space, &occupancy, 1e-4) {
            prop_assert!(false, "{mismatch}");
        }
    }
}

/// A utility of a user, with a range of its own.
#[derive(Debug)]
struct Constant(f64);

impl Utility for Constant {
    fn value(&self, _: &[f64], _: LocalSpace) -> f64 {
        self.0
    }

    fn gradient(&self, _: &[f64], _: LocalSpace, out: &mut [f64]) {
        out.fill(0.0);
    }

    fn range(&self, _: LocalSpace, _: f64) -> Option<(f64, f64)> {
        Some((self.0, self.0))
    }
}

#[test]
fn custom_utilities_pass_through_scale_and_offset() {
    let space = LocalSpace { states: 1, actions: 2, gamma: 0.5 };
    let utility = ScaledUtility { kind: Kind::Custom(Arc::new(Constant(3.0))), scale: -2.0, offset: 1.0 };
    assert_eq!(utility.value(&[1.0, 1.0], space), -5.0);
    assert_eq!(utility.range(space, 2.0), Some((-5.0, -5.0)));
    assert_eq!(check_gradient(&utility, space, &[1.0, 1.0], 1e-9), Ok(()));
    assert!(utility.validate(space, "f").is_ok());
}
