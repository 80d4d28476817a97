//! What the theorems promise, measured: thm:convergence, lemma:truncated_grad, thm:sample_complexity.

use super::{Claim, Rows, Test};

/// A slope counts as −2/3 up to here.
const RATE: f64 = -0.6;

/// Its claims.
pub fn claims() -> Vec<Claim> {
    [rate(), truncation(), samples()].into_iter().flatten().collect()
}

fn rate() -> Vec<Claim> {
    let slope = |theorem: &str, column| Test::Within {
        which: Rows::all("rate/slopes")
            .with("eta_mu", "10")
            .with("theorem", theorem)
            .called("runs of T iterations, η_μ = 10·T^⅓,"),
        column,
        low: f64::NEG_INFINITY,
        high: RATE,
    };
    let claim = |id: &str, sentence: &str, test: Test| {
        Claim::new(&format!("theory.{id}"), "thm:convergence", sentence, vec![test])
    };
    vec![
        claim("rate", "ℰ = O(T^(−2/3)) with exact gradients: the last iterate.", slope("0", "E_final")),
        claim("rate-least", "ℰ = O(T^(−2/3)) with exact gradients: the best iterate.", slope("0", "E_min"))
            .why(
                "An early random iterate can have a smaller ℰ than the solution (errata 12), so that the least ℰ hardly falls \
                 any more. That contradicts no upper bound.",
            ),
        claim(
            "rate-own-steps",
            "… with the step sizes of the theorem.",
            slope("1", "E_final"),
        )
        .why("The theorem's step sizes are too small to move the policy (errata 7)."),
    ]
}

fn truncation() -> Vec<Claim> {
    let place = "lemma:truncated_grad";
    let line = |mixing: &str, label: &str| Rows::all("truncation").with("mixing", mixing).called(label);
    let holding = || line("0.3", "the mixed line, where the assumption holds");
    let decays = |which| Test::Decays { which, column: "fixed", share: 0.5 };
    vec![
        Claim::new(
            "theory.truncation-decays",
            place,
            "The approximation error decays at a linear rate with respect to the radius of communications.",
            vec![decays(holding()), decays(line("0", "the paper's line, where the assumption fails"))],
        ),
        Claim::new(
            "theory.truncation-bound",
            place,
            "The error of the truncated gradient is at most the lemma's bound: policies of the own state.",
            vec![Test::Bounded { which: holding(), column: "fixed", bound: "lemma" }],
        ),
        Claim::new(
            "theory.truncation-bound-any-policy",
            place,
            "The error of the truncated gradient is at most the lemma's bound: every κ-hop policy.",
            vec![Test::Bounded {
                which: Rows::all("truncation/counterexample").called("the constructed family"),
                column: "error",
                bound: "lemma",
            }],
        )
        .why("A κ-hop policy can itself carry influence over κ hops a step, which the lemma leaves out (errata 1)."),
    ]
}

fn samples() -> Vec<Claim> {
    let slope = |quantity: &str, label: &str| Test::Within {
        which: Rows::all("samples/slopes").with("quantity", quantity).called(label),
        column: "slope",
        low: -0.6,
        high: -0.4,
    };
    let falls = |what: &str, label: &str| Test::Falls {
        which: Rows::all("samples").with("what", what).called(label),
        column: "E",
        above: "E_exact",
        share: 0.5,
    };
    vec![
        Claim::new(
            "theory.estimates",
            "prop:estimators",
            "Errors of sampled occupancies and gradients fall as 1/√B.",
            vec![
                slope("occupancy_error", "the error of occupancies against B"),
                slope("gradient_error", "the error of gradients against B"),
            ],
        ),
        Claim::new(
            "theory.samples",
            "thm:sample_complexity",
            "With more samples, Algorithm 1 comes nearer to a stationary point.",
            vec![falls("batch", "runs by the batch B"), falls("transitions", "runs by the transitions K")],
        ),
    ]
}
