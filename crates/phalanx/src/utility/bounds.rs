//! Uniform bounds on the gradients of utilities. Paper: assump:utility.

use super::{LocalSpace, ScaledUtility};

/// Bounds on a utility's gradient over all occupancies that an agent can have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UtilityBounds {
    /// sup ‖r‖_∞ of its shadow reward r.
    pub reward_inf: f64,
    /// sup ‖r‖₂.
    pub reward_2: f64,
    /// L_λ: ‖r(λ) − r(λ')‖_∞ ≤ L_λ ‖λ − λ'‖₂. Paper: assump:utility.
    pub l_lambda: f64,
}

impl UtilityBounds {
    /// Over the occupancies of an agent that starts with law `start`, for which d ≥ (1−γ) ρ. `None` where no
    /// bound is known: where the gradient grows without limit or jumps (errata 8), and for utilities of
    /// unknown form.
    pub fn new(utility: &ScaledUtility, space: LocalSpace, start: &[f64]) -> Option<Self> {
        let bounds = utility.kind.base()?.bounds(space, start)?;
        let scale = utility.scale.abs();
        Some(UtilityBounds {
            reward_inf: scale * bounds.reward_inf,
            reward_2: scale * bounds.reward_2,
            l_lambda: scale * bounds.l_lambda,
        })
    }

    /// The larger of each.
    pub(crate) fn larger(self, other: Self) -> Self {
        UtilityBounds {
            reward_inf: self.reward_inf.max(other.reward_inf),
            reward_2: self.reward_2.max(other.reward_2),
            l_lambda: self.l_lambda.max(other.l_lambda),
        }
    }
}

/// ‖x‖_∞.
pub(super) fn largest(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |largest, x| f64::max(largest, x.abs()))
}

/// ‖x‖₂.
pub(super) fn length(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::{largest, length};

    const SPACE: LocalSpace = LocalSpace { states: 2, actions: 2, gamma: 0.5 };
    const START: [f64; 2] = [0.25, 0.75];

    /// ‖r‖_∞, ‖r‖₂ and L_λ of a utility twice as large as `kind`, halved again: the scale must enter.
    fn bounds(kind: Kind) -> Option<[f64; 3]> {
        let bounds = UtilityBounds::new(&ScaledUtility { kind, scale: -2.0, offset: 7.0 }, SPACE, &START)?;
        Some([bounds.reward_inf, bounds.reward_2, bounds.l_lambda].map(|bound| bound / 2.0))
    }

    #[test]
    fn bounds_by_hand() {
        let table = |values: [f64; 4]| -> std::sync::Arc<[f64]> { values.into() };
        let (inf, power) = (f64::INFINITY, Power::Two);
        let expert = table([3.0, 0.0, 4.0, 0.0]);
        let boxed = Kind::NegDistBox(NegDistBox {
            lo: table([-inf, 3.0, -1.0, -9.0]),
            hi: table([inf, inf, 1.0, -4.0]),
            power,
        });
        let halfspace = |b| Kind::NegDistHalfspace(NegDistHalfspace { a: expert.clone(), b, power });
        let ball = Kind::NegDistBall(NegDistBall { center: expert.clone(), radius: 1.0, power });
        // State 0 has d ≥ 1/8.
        let slope = 0.5 * (8f64.ln() - 1.0);
        let root = 2f64.sqrt();
        for (kind, expected) in [
            (Kind::Linear(Linear { r: table([1.0, -2.0, 2.0, 4.0]) }), [4.0, 5.0, 0.0]),
            (Kind::StateEntropy(Entropy(States)), [slope, 2.0 * slope, 2.0 * root]),
            (Kind::ActionL2sq(SquaredNorm(Actions)), [4.0, 4.0 * root, 2.0 * root]),
            (Kind::ActionL2(ActionL2 {}), [0.5, 0.5 * root, 0.25 * root]),
            (Kind::L2sq(SquaredNorm(Pairs)), [4.0, 4.0, 2.0]),
            (Kind::NegL2sqExpert(NegL2sqExpert { expert: expert.clone() }), [12.0, 14.0, 2.0]),
            (boxed, [7.0, 7.0, 1.0]),
            (halfspace(2.0), [2.0, 2.0, 1.0]),
            (halfspace(-10.0), [4.0, 4.0, 1.0]),
            (ball, [7.0, 7.0, 1.0]),
        ] {
            let name = kind.name();
            for (x, y) in bounds(kind).unwrap().into_iter().zip(expected) {
                assert!((x - y).abs() <= 1e-14 * (1.0 + y.abs()), "{name}: {x} {y}");
            }
        }
        for kind in [
            Kind::SaEntropy(Entropy(Pairs)),
            Kind::NegL2Expert(NegL2Expert { expert: expert.clone() }),
            Kind::NegKlExpert(NegKlExpert { expert: expert.clone() }),
            Kind::NegDistBall(NegDistBall { center: expert, radius: 1.0, power: Power::One }),
        ] {
            assert_eq!(bounds(kind), None);
        }
        let entropy = ScaledUtility::from(Kind::StateEntropy(Entropy(States)));
        assert_eq!(UtilityBounds::new(&entropy, SPACE, &[0.0, 1.0]), None);
    }

    /// No occupancy with d ≥ (1−γ) ρ and mass 1/(1−γ) = 2 may exceed a bound.
    #[test]
    fn bounds_hold() {
        let table = |values: [f64; 4]| -> std::sync::Arc<[f64]> { values.into() };
        let power = Power::Two;
        let kinds = [
            Kind::StateEntropy(Entropy(States)),
            Kind::ActionL2sq(SquaredNorm(Actions)),
            Kind::L2sq(SquaredNorm(Pairs)),
            Kind::NegL2sqExpert(NegL2sqExpert { expert: table([0.5, 1.0, 0.25, 0.25]) }),
            Kind::NegDistBox(NegDistBox { lo: table([0.5; 4]), hi: table([1.0; 4]), power }),
            Kind::NegDistHalfspace(NegDistHalfspace { a: table([1.0, 2.0, 0.0, -1.0]), b: -1.0, power }),
            Kind::NegDistBall(NegDistBall { center: table([0.5; 4]), radius: 0.5, power }),
        ];
        let occupancies: Vec<[f64; 4]> = [0.125, 0.2, 0.5, 0.625]
            .iter()
            .flat_map(|d| {
                [0.0, 0.3, 1.0].map(|a| [d * a, d * (1.0 - a), (1.0 - d) * a, (1.0 - d) * (1.0 - a)])
            })
            .map(|p| p.map(|p| 2.0 * p))
            .collect();
        let gradient = |kind: &Kind, occupancy: &[f64; 4]| {
            let mut out = [0.0; 4];
            kind.gradient(occupancy, SPACE, &mut out);
            out
        };
        let minus = |x: [f64; 4], y: [f64; 4]| [0, 1, 2, 3].map(|k| x[k] - y[k]);
        for kind in kinds {
            let [reward_inf, reward_2, l_lambda] = bounds(kind.clone()).unwrap().map(|x| x * (1.0 + 1e-12));
            for x in &occupancies {
                let r = gradient(&kind, x);
                assert!(largest(&r) <= reward_inf && length(&r) <= reward_2, "{}", kind.name());
                for y in &occupancies {
                    let change = largest(&minus(r, gradient(&kind, y)));
                    assert!(change <= l_lambda * length(&minus(*x, *y)) + 1e-12, "{}", kind.name());
                }
            }
        }
    }
}
