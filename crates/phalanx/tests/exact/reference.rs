//! The exact setting against reference data, and against an independent enumeration on random models.

use crate::compare::mismatches;
use crate::oracle::output;
use crate::random_input::random_input;
use phalanx::exact::{Case, Input, report};
use serde_json::Value;

const FILES: [&str; 7] = [
    "grid2x3",
    "lemma_counterexample",
    "line3_entropy",
    "line4_mixed_utilities",
    "paper_line5",
    "ring5_weak",
    "star4_joint_rho",
];

fn read(name: &str) -> Value {
    let path = format!("{}/tests/reference/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn reported(input: &Value) -> Value {
    let input: Input = serde_json::from_value(input.clone()).unwrap();
    report(&Case::new(input).unwrap()).unwrap()
}

#[test]
fn every_number_of_the_reference_files() {
    for name in FILES {
        let file = read(name);
        let found = mismatches(&reported(&file["input"]), &file["output"]);
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

/// Uneven sizes, disconnected graphs, directed and long-range parents, several constraints, κ_q ≠ κ, sets,
/// experts.
#[test]
fn random_models_agree_with_plain_enumeration() {
    for seed in 0..150 {
        let input = random_input(seed);
        let found = mismatches(&reported(&input), &output(&input));
        assert!(found.is_empty(), "seed {seed}: {found:#?}\n{input}");
    }
}
