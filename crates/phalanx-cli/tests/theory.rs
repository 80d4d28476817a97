//! The numbers of `docs/theory.md`: what its tables (`docs/theory/*.csv`) claim, and that runs still give it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn file(name: &str) -> String {
    docs().join("theory").join(name).display().to_string()
}

fn phalanx(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_phalanx")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What the exact evaluation of a run with `docs/theory/<config>.toml` says.
fn trained(config: &str, settings: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let (source, out) = (file(config), folder.path().join("run").display().to_string());
    let mut arguments = vec!["train", &source, "--json", "--out", &out];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    phalanx(&arguments)["exact"].clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// The rows of a table, by the names of their columns.
fn table(name: &str) -> Vec<Value> {
    let mut reader = csv::Reader::from_path(file(name)).unwrap();
    let rows = reader.deserialize::<BTreeMap<String, Option<f64>>>();
    rows.map(|row| json!(row.unwrap())).collect()
}

fn assert_close(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((found - expected).abs() <= tolerance * expected.abs(), "{what}: {found} instead of {expected}");
}

fn largest(list: &Value) -> f64 {
    list.as_array().unwrap().iter().map(number).fold(0.0, f64::max)
}

#[test]
fn truncation() {
    for row in table("truncation.csv") {
        let holds = number(&row["mixing"]) > 0.158;
        assert_eq!(row["lemma"].is_null(), !holds, "{row}");
        if number(&row["kappa_q"]) == 6.0 {
            let errors = ["fixed", "averaged", "certificate"].map(|column| number(&row[column]));
            assert_eq!(errors, [0.0; 3], "nothing is cut off: {row}");
            continue;
        }
        let bound = number(&row[if holds { "lemma" } else { "certificate" }]);
        for error in ["fixed", "averaged"].map(|kind| number(&row[kind])) {
            assert!(error < 1e-3 * bound && error <= number(&row["certificate"]), "{row}");
        }
        assert!(number(&row["averaged"]) <= number(&row["fixed"]), "{row}");
        if number(&row["kappa_q"]) == 0.0 {
            let model = if holds { "line7-mixed.json" } else { "line7.json" };
            let report = phalanx(&["exact", &file(model)]);
            assert_close(largest(&report["grad_error_fixed"]), number(&row["fixed"]), 1e-4, model);
        }
    }
}

#[test]
fn the_lemma_fails_and_the_certificate_holds() {
    for row in table("counterexample.csv") {
        let kappa = number(&row["kappa"]);
        let report = phalanx(&["exact", &file(&format!("lemma-kappa{kappa}.json"))]);
        let error = largest(&report["grad_error_fixed"]);
        let bound = 2_f64.sqrt() * number(&report["decay"]["best_c0phi"]) / 0.1;
        let certificate = number(&report["closed_loop"]["grad_certified"]);
        assert!(number(&report["decay"]["chi_at_0"]) < number(&report["decay"]["two_over_gamma"]));
        assert_eq!(error > bound, kappa >= 4.0, "κ = {kappa}: {error} and {bound}");
        assert!(error <= certificate, "κ = {kappa}: {error} and {certificate}");
        for (found, column) in [(error, "error"), (bound, "lemma"), (certificate, "certificate")] {
            assert_close(found, number(&row[column]), 1e-4, column);
        }
        if kappa == 4.0 {
            assert_close(error, 9.369e-3, 1e-4, "error");
            assert_close(bound, 1.0997e-3, 1e-4, "bound");
        }
    }
}

#[test]
fn a_penalty_is_left_of_proximal_multipliers() {
    let rows = table("limit.csv");
    for row in &rows {
        assert_close(number(&row["proximal"]), number(&row["predicted"]), 1e-4, "proximal");
        assert!(number(&row["descent"]) < 1e-5 && number(&row["pi"]) < 1e-12, "{row}");
    }
    let violation = |settings: &[&str]| number(&trained("limit.toml", settings)["violation_max"]);
    let row = rows.iter().find(|row| row["eta_mu"] == 30.0).unwrap();
    let found = violation(&["dual.eta_mu=30", "actor.eta_theta=1.0", "iterations=2000"]);
    assert_close(found, number(&row["predicted"]), 0.02, "proximal");
    assert!(violation(&["dual.kind=pi", "iterations=2000"]) < 1e-6);
}

#[test]
fn the_rate_is_two_thirds_and_the_step_of_the_theorem_is_none() {
    let rows = table("rate.csv");
    let at = |eta_mu: f64, theorem: f64, t: f64, column: &str| {
        let wanted = |row: &&Value| row["eta_mu"] == eta_mu && row["theorem"] == theorem && row["T"] == t;
        number(&rows.iter().find(wanted).unwrap()[column])
    };
    let slope = |eta_mu, column| 0.5 * (at(eta_mu, 0.0, 1e5, column) / at(eta_mu, 0.0, 1e3, column)).log10();
    for (eta_mu, last, least) in [(1.0, -0.23, -0.09), (10.0, -0.58, -0.52), (100.0, -0.65, -0.65)] {
        let found = [slope(eta_mu, "E_final"), slope(eta_mu, "E_min")];
        assert!((found[0] - last).abs() < 0.01 && (found[1] - least).abs() < 0.01, "{eta_mu}: {found:?}");
    }
    assert!(at(10.0, 1.0, 1e5, "E_final") > 0.999 * at(10.0, 1.0, 1e2, "E_final"));
    let run = |rule: &str| {
        let rule = format!("actor.rule={rule}");
        number(&trained("rate.toml", &["dual.eta_mu=10", &rule, "iterations=1000"])["E"])
    };
    assert_close(run("local"), at(10.0, 0.0, 1e3, "E_final"), 0.01, "local");
    assert_close(run("theorem"), at(10.0, 1.0, 1e3, "E_final"), 1e-4, "theorem");
}

/// When exactly the drift sets in depends on rounding errors.
#[test]
fn averaged_tables_drift_and_fixed_ones_do_not() {
    for row in table("drift.csv") {
        let share = number(&row["d_2"]);
        match number(&row["T"]) {
            _ if row["averaged"] == 0.0 || row["kappa_q"] == 2.0 => assert!(share > 0.76, "{row}"),
            1000.0..=4000.0 => assert!((share - 0.8).abs() < 0.005, "{row}"),
            8000.0.. => assert!(share < 0.6, "{row}"),
            _ => {}
        }
    }
    let objective = |kind: &str| number(&trained("drift.toml", &[kind])["objective"]);
    assert!(objective("critic.truncation=averaged") < 0.2205);
    assert!((objective("critic.truncation=fixed") - 0.22348).abs() < 1e-4);
}

#[test]
fn no_e_is_left_but_a_violation() {
    for row in table("multipliers.csv") {
        let is_enough = number(&row["mu_max"]) > 0.7204;
        assert!(number(&row["E"]) < 1e-8 && (number(&row["violation_max"]) < 1e-12) == is_enough, "{row}");
    }
    let settings = ["dual.kind=pi", "dual.eta_mu=30", "dual.eta_integral=3", "actor.eta_theta=1.0"];
    let run = |mu_max: &str| trained("limit.toml", &[&settings[..], &[mu_max]].concat());
    let (low, high) = (run("dual.mu_max=0.6"), run("dual.mu_max=1.0"));
    assert!(number(&low["E"]) < 1e-12 && number(&high["E"]) < 1e-12);
    assert_close(number(&low["violation_max"]), 0.04996, 1e-3, "violation");
    assert!(number(&high["violation_max"]) < 1e-9);
}

#[test]
fn figures_are_shown_and_small() {
    let page = std::fs::read_to_string(docs().join("theory.md")).unwrap();
    let mut figures = 0;
    for entry in docs().join("theory").read_dir().unwrap() {
        let name = entry.as_ref().unwrap().file_name().into_string().unwrap();
        let shown = name.split(['.', '-']).next().unwrap();
        assert!(page.contains(&format!("theory/{shown}")), "{name} is not on the page");
        if name.ends_with(".svg") {
            figures += 1;
            assert!(entry.unwrap().metadata().unwrap().len() < 100_000, "{name}");
        }
    }
    assert_eq!(page.matches("](theory/").count(), figures);
}
