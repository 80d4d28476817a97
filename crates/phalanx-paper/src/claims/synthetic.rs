//! The synthetic line: subsec: synthetic.

use super::{COMPARABLE, Claim, Rows, Test};

const PLACE: &str = "subsec: synthetic";
const KAPPA: &str = "synthetic-kappa";
const THRESHOLD: &str = "synthetic-threshold";
const ETA: &str = "synthetic-eta";

fn kappa(kappa: usize) -> Rows {
    Rows::setting(KAPPA, &format!("κ = {kappa}"))
}

fn threshold(c: f64) -> Rows {
    Rows::setting(THRESHOLD, &format!("c = {c}"))
}

fn eta(eta: usize) -> Rows {
    Rows::setting(ETA, &format!("η_μ = {eta}"))
}

/// Every setting of the three panels that has a constraint which can be kept.
fn feasible() -> Vec<Rows> {
    let kappas = [0, 1, 2, 5].map(kappa);
    let thresholds = [0.3, 0.5].map(threshold);
    kappas.into_iter().chain(thresholds).chain([2, 3, 10].map(eta)).collect()
}

const INFEASIBLE: &str = "c = 0.8 is infeasible: with H = 125 the measure has 71.5 % of its mass, so that its entropy is \
                          at most 0.7355, and 0.645 of violation is left whatever the policy.";

/// About 2.5 % of the sum of the thresholds.
const BALANCED: f64 = 0.15;

/// Its claims.
pub fn claims() -> Vec<Claim> {
    vec![
        Claim::new(
            "synthetic.strict-start",
            PLACE,
            "The constraints are always being strictly satisfied at the beginning.",
            feasible()
                .into_iter()
                .chain([threshold(0.8)])
                .map(|which| Test::AtMost { column: "violation_start", which, bound: 0.0 })
                .collect(),
        )
        .why(INFEASIBLE),
        Claim::new(
            "synthetic.entropy-falls",
            PLACE,
            "As the agents strive to increase their cumulative reward, they spend more time in state 1, which results in \
             a decrease in entropy.",
            feasible()
                .into_iter()
                .flat_map(|which| {
                    [
                        Test::Rises { which: which.clone(), from: "return_start", to: "return" },
                        // From a random policy, which keeps them, to the edge of the constraints.
                        Test::Rises { which, from: "violation_start", to: "violation_total" },
                    ]
                })
                .collect(),
        ),
        Claim::new(
            "synthetic.balance",
            PLACE,
            "Eventually, the agents find a balance between maximising the cumulative reward and satisfying the constraint.",
            feasible()
                .into_iter()
                .flat_map(|which| {
                    [
                        Test::Rises { which: which.clone(), from: "return_start", to: "return" },
                        Test::AtMost { column: "violation_total", which, bound: BALANCED },
                    ]
                })
                .collect(),
        ),
        Claim::new(
            "synthetic.kappa-comparable",
            "fig:exp, left",
            "κ = 1, 2, 5 exhibit comparable performances.",
            [(1, 2), (1, 5), (2, 5)]
                .map(|(a, b)| Test::Comparable {
                    column: "return",
                    one: kappa(a),
                    other: kappa(b),
                    share: COMPARABLE,
                })
                .into(),
        ),
        Claim::new(
            "synthetic.no-compromise",
            "fig:exp, left",
            "A stricter restriction on the communication range does not compromise the optimality.",
            [1, 2]
                .map(|k| Test::NotAbove {
                    column: "return",
                    which: kappa(5),
                    than: kappa(k),
                    by: COMPARABLE,
                })
                .into(),
        ),
        Claim::new(
            "synthetic.no-communication-worse",
            "fig:exp, left",
            "The case with no communication (κ = 0) is slightly worse than others.",
            [1, 2, 5]
                .into_iter()
                .flat_map(|k| {
                    [
                        Test::Above { column: "return", more: kappa(k), less: kappa(0), by: 0.0 },
                        Test::Comparable {
                            column: "return",
                            one: kappa(0),
                            other: kappa(k),
                            share: COMPARABLE,
                        },
                    ]
                })
                .collect(),
        )
        .why(
            "The constrained optimum of the line is the same for every κ ≥ 0 (errata 25), so that κ can matter through \
             optimisation and truncation alone.",
        ),
        Claim::new(
            "synthetic.no-communication-violates",
            "fig:exp, left",
            "κ = 0 suffers from a higher constraint violation during training.",
            [1, 2, 5]
                .map(|k| Test::Above { column: "violation_peak", more: kappa(0), less: kappa(k), by: 0.0 })
                .into(),
        )
        .why("The constrained optimum of the line is the same for every κ ≥ 0 (errata 25)."),
        Claim::new(
            "synthetic.threshold-costs",
            "fig:exp, middle",
            "A larger threshold results in a lower cumulative reward.",
            [(0.0, 0.3), (0.3, 0.5), (0.5, 0.8)]
                .map(|(less, more)| Test::Above {
                    column: "return",
                    more: threshold(less),
                    less: threshold(more),
                    by: 0.0,
                })
                .into(),
        )
        .why(
            "The published returns of c = 0, 0.3 and 0.5 are the same, 21.0: only c = 0.8 is lower, and that is \
             infeasible.",
        ),
        Claim::new(
            "synthetic.constraint-binds",
            PLACE,
            "The optimality of all agents taking action 1 is compromised in the presence of the entropy constraint.",
            vec![
                Test::Above { column: "return", more: eta(0), less: eta(10), by: 0.0 },
                Test::MoreThan { column: "violation_total", which: eta(0), bound: 0.5 },
            ],
        ),
        Claim::new(
            "synthetic.eta-same",
            "fig:exp, right",
            "η_μ ∈ {2, 3, 10}: the performances of the algorithm are roughly the same.",
            [(2, 3), (2, 10), (3, 10)]
                .map(|(a, b)| Test::Comparable {
                    column: "return",
                    one: eta(a),
                    other: eta(b),
                    share: COMPARABLE,
                })
                .into(),
        ),
        Claim::new(
            "synthetic.large-eta-low-violation",
            "fig:exp, right",
            "A large η_μ ensures a low constraint violation for the learned policy.",
            vec![
                Test::Above { column: "violation_total", more: eta(1), less: eta(10), by: 0.0 },
                // 2.5 % of the sum of all thresholds.
                Test::AtMost { column: "violation_total", which: eta(10), bound: 0.125 },
            ],
        ),
        Claim::new(
            "synthetic.large-eta-low-violation-training",
            "fig:exp, right",
            "A large η_μ guarantees a low violation also during the training stage.",
            vec![Test::Above { column: "violation_peak", more: eta(1), less: eta(10), by: 0.0 }],
        ),
        Claim::new(
            "synthetic.small-eta-not-enough",
            "fig:exp, right",
            "A small η_μ, e.g. η_μ ∈ {0, 1}, may not provide enough incentive to offset the violated constraints.",
            [0, 1]
                .map(|k| Test::Above { column: "violation_total", more: eta(k), less: eta(2), by: 0.0 })
                .into(),
        ),
    ]
}
