//! The enumeration that the exact setting is tested against: itself against reference data and finite
//! differences; and the reach of random inputs.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::compare::mismatches;
use crate::oracle::output;
use crate::random_input::random_input;

const FILES: [&str; 7] = [
    "line3_entropy",
    "line4_mixed_utilities",
    "star4_joint_rho",
    "ring5_weak",
    "paper_line5",
    "grid2x3",
    "lemma_counterexample",
];

#[test]
fn reproduces_the_reference_files() {
    for name in FILES {
        let path = format!("{}/tests/reference/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let found = mismatches(&output(&file["input"]), &file["output"]);
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

/// Central differences of L on random coordinates of random models.
#[test]
fn gradient_is_the_slope_of_the_lagrangian() {
    let step = 1e-5;
    for seed in 0..30 {
        let mut input = random_input(seed);
        // Neither changes L.
        input["kappa_q"] = json!(0);
        input["algorithm"]["T"] = json!(0);
        let gradient = output(&input)["grad_true"].clone();
        let n = input["model"]["n"].as_u64().unwrap() as usize;
        for i in 0..n {
            let size = input["theta"][i].as_array().unwrap().len();
            for k in [0, size / 2, size - 1] {
                let middle = input["theta"][i][k].as_f64().unwrap();
                let mut value = |theta: f64| {
                    input["theta"][i][k] = json!(theta);
                    output(&input)["L"].as_f64().unwrap()
                };
                let slope = (value(middle + step) - value(middle - step)) / (2.0 * step);
                input["theta"][i][k] = json!(middle);
                let exact = gradient[i][k].as_f64().unwrap();
                assert!(
                    (slope - exact).abs() <= 1e-7 * (1.0 + exact.abs()),
                    "seed {seed}, theta[{i}][{k}]: {slope}, not {exact}"
                );
            }
        }
    }
}

/// Every kind of model occurs among two hundred seeds, and the oracle gives finite numbers for them.
#[test]
fn random_inputs_cover_the_format() {
    let mut seen = BTreeMap::new();
    for seed in 0..200 {
        let input = random_input(seed);
        let output = output(&input);
        for (feature, present) in features(&input, &output) {
            *seen.entry(feature).or_insert(0) += usize::from(present);
        }
        for key in ["F", "L", "eps1"] {
            assert!(output[key].is_f64(), "seed {seed}: {key} is {}", output[key]);
        }
        for (key, value) in output["metrics"].as_object().unwrap() {
            assert!(value.is_f64(), "seed {seed}: {key} is {value}");
        }
    }
    let absent: Vec<_> = seen.iter().filter(|(_, times)| **times == 0).map(|(feature, _)| feature).collect();
    assert!(absent.is_empty(), "no seed has {absent:?}");
}

fn features(input: &Value, output: &Value) -> Vec<(String, bool)> {
    let model = &input["model"];
    let list = |value: &Value| value.as_array().unwrap().clone();
    let agents = 0..model["n"].as_u64().unwrap() as usize;
    let mut out: Vec<(String, bool)> = Vec::new();
    let mut add = |name: &str, present: bool| out.push((name.to_string(), present));

    add("one agent", agents.end == 1);
    add("five agents", agents.end == 5);
    add("one local state", list(&model["state_sizes"]).contains(&json!(1)));
    add("one local action", list(&model["action_sizes"]).contains(&json!(1)));
    add("disconnected", list(&output["dist"]).iter().any(|row| list(row).contains(&json!(-1))));
    let parents = |i: usize| list(&model["parents"][i]);
    add("no parents", agents.clone().any(|i| parents(i).is_empty()));
    add(
        "not its own parent",
        agents.clone().any(|i| !parents(i).is_empty() && !parents(i).contains(&json!(i))),
    );
    let far = |i: usize, j: &Value| output["dist"][i][j.as_u64().unwrap() as usize].as_i64().unwrap();
    add("parent two hops away", agents.clone().any(|i| parents(i).iter().any(|j| far(i, j) >= 2)));
    add("unreachable parent", agents.clone().any(|i| parents(i).iter().any(|j| far(i, j) < 0)));
    add("no constraints", agents.clone().all(|i| list(&model["g"][i]).is_empty()));
    add("several constraints", agents.clone().any(|i| list(&model["g"][i]).len() > 1));
    for k in 0..4 {
        add(&format!("kappa {k}"), input["kappa"] == json!(k));
        add(&format!("kappa_q {k}"), input["kappa_q"] == json!(k));
    }
    for t in 0..5 {
        add(&format!("T {t}"), input["algorithm"]["T"] == json!(t));
    }
    add("kappa above kappa_q", input["kappa"].as_u64() > input["kappa_q"].as_u64());
    add("kappa below kappa_q", input["kappa"].as_u64() < input["kappa_q"].as_u64());
    add("joint start", model["rho"]["kind"] == "joint");
    add("product start", model["rho"]["kind"] == "product");
    add(
        "zeros in the start",
        model["rho"].to_string().contains("0.0,") || model["rho"].to_string().contains("0.0]"),
    );
    add("impossible transitions", model["transition"].to_string().contains("0.0,"));
    let bounds = list(&input["box"]);
    add(
        "theta at a bound",
        agents.clone().any(|i| list(&input["theta"][i]).iter().any(|x| bounds.contains(x))),
    );
    add("mu at 0", agents.clone().any(|i| list(&input["mu"][i]).contains(&json!(0.0))));
    add("mu at mu_bar", agents.clone().any(|i| list(&input["mu"][i]).contains(&input["mu_bar"])));

    let mut utilities = list(&model["f"]);
    utilities.extend(agents.clone().flat_map(|i| list(&model["g"][i])));
    for kind in [
        "linear",
        "state_entropy",
        "sa_entropy",
        "action_l2sq",
        "l2sq",
        "neg_l2_expert",
        "neg_l2sq_expert",
        "neg_kl_expert",
    ] {
        add(kind, utilities.iter().any(|u| u["kind"] == kind));
        let negative = |u: &Value| u["scale"].as_f64().is_some_and(|scale| scale < 0.0);
        add(&format!("{kind} times a negative"), utilities.iter().any(|u| u["kind"] == kind && negative(u)));
    }
    for kind in ["neg_dist_box", "neg_dist_halfspace", "neg_dist_ball"] {
        let power = |u: &Value| u["power"].as_u64().unwrap_or(1);
        for wanted in [1, 2] {
            let found = utilities.iter().any(|u| u["kind"] == kind && power(u) == wanted);
            add(&format!("{kind} power {wanted}"), found);
        }
    }

    add("decay fails", output["decay"]["omega_sup"].is_null());
    add("decay holds", output["decay"]["omega_sup"].is_number());
    add("decay without limit", output["decay"]["omega_sup"] == "inf");
    add("best omega inside", output["decay"]["best_omega"].as_f64().is_some_and(|w| w > 0.0));
    add("certificate", output["closed_loop"]["q"].is_array());
    add("no certificate", output["closed_loop"]["q"].is_null());
    let useful = output["closed_loop"]["grad_certified"].as_f64().is_some_and(|x| x > 0.0);
    add("certificate above 0", useful);
    add("constants", output["constants"].is_object());
    add("no constants", output["constants"].is_null());
    add("estimators", output["estimators"].is_object());
    add("TD", output["Qf_hat_td_stationary"].is_array());
    add("no TD", output["Qf_hat_td_stationary"].is_null());
    add("head only", list(&output["Qf_hat_fixed"]).iter().any(|q| q["head"].is_array()));
    add("violated", output["metrics"]["violation_max"].as_f64() > Some(0.0));
    add(
        "box matters",
        output["metrics"]["X"].as_f64() > output["metrics"]["X_box"].as_f64().map(|x| x + 1e-9),
    );
    out
}
