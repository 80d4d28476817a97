//! General utilities against an entropy penalty with a fixed coefficient: subsec: benefits_general.

use super::{Claim, Rows, Test};
use crate::setting::OURS;

const PLACE: &str = "subsec: benefits_general";
const EXPERIMENT: &str = "penalty";
const COEFFICIENTS: [&str; 6] = ["0.012", "0.024", "0.0245", "0.025", "0.026", "0.05"];

/// The paper's limit on the total violation.
const LIMIT: f64 = 1.0;

fn ours() -> Rows {
    Rows::method(EXPERIMENT, OURS)
}

fn penalty(coefficient: &str) -> Rows {
    Rows::of_any_method(EXPERIMENT, &format!("λ = {coefficient}"))
}

fn above(more: Rows, less: Rows) -> Test {
    Test::Above { column: "return", more, less, by: 0.0 }
}

fn breaks_limit(which: Rows) -> Test {
    Test::MoreThan { column: "violation_total", which, bound: LIMIT }
}

/// Its claims.
pub fn claims() -> Vec<Claim> {
    let claim = |id: &str, sentence: &str, tests: Vec<Test>| {
        Claim::new(&format!("penalty.{id}"), PLACE, sentence, tests)
    };
    vec![
        claim(
            "conflict",
            "The constraint conflicts with the objective: more entropy is paid for with return.",
            vec![
                above(penalty("0.024"), penalty("0.026")),
                Test::Above {
                    column: "violation_total",
                    more: penalty("0.024"),
                    less: penalty("0.026"),
                    by: 0.0,
                },
            ],
        ),
        claim(
            "small-fails-to-enforce",
            "A small coefficient fails to enforce the constraint.",
            vec![breaks_limit(penalty("0.024"))],
        ),
        claim(
            "large-impedes",
            "An excessively large coefficient can impede the objective.",
            vec![above(ours(), penalty("0.026"))],
        ),
        claim(
            "no-single-coefficient",
            "It is challenging to identify a single λ that achieves high return (that of our method) while keeping the total \
             violation under one.",
            COEFFICIENTS
                .map(|c| Test::OneOf(vec![above(ours(), penalty(c)), breaks_limit(penalty(c))]))
                .into(),
        ),
        claim(
            "ours-meets",
            "Our method can readily obtain a satisfactory performance while meeting the safety constraint with η_μ = 200.",
            vec![Test::AtMost { column: "violation_total", which: ours(), bound: LIMIT }],
        ),
        claim(
            "middle-coefficient-worse",
            "When λ = 0.025, the gradient penalty is unable to match the return of our method and exceeds the violation \
             requirement.",
            vec![above(ours(), penalty("0.025")), breaks_limit(penalty("0.025"))],
        )
        .why("The published violation at λ = 0.025 is 1.00, on the limit and not above it."),
        claim(
            "small-coefficient-better-return",
            "The baseline only begins to exceed our method at λ = 0.024, where the violation significantly exceeds one.",
            vec![
                above(penalty("0.024"), ours()),
                above(ours(), penalty("0.0245")),
                breaks_limit(penalty("0.024")),
            ],
        ),
    ]
}
