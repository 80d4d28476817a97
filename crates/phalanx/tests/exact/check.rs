//! `run::check` against reference files, closed forms and its own parts.

use std::path::Path;

use phalanx::exact::Case;
use phalanx::run::check::{Check, Multipliers, Subject, Targets, TruncationRow};
use phalanx::run::{Config, Evaluator};
use serde_json::Value;

use crate::support::{REFERENCES, numbers};

const TARGETS: Targets = Targets { epsilon: 0.1, delta: 0.05 };

fn read(name: &str) -> (Case, Value) {
    let path = format!("{}/tests/reference/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let file: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    (Case::read(Path::new(&path)).unwrap(), file["output"].clone())
}

fn checked(case: &Case) -> Check {
    Check::new(&Subject::from(case), TARGETS).unwrap()
}

fn evaluator(settings: &[(&str, &str)]) -> Evaluator {
    let config = Config::preset("synthetic").unwrap().with_all(settings.iter().copied()).unwrap();
    Evaluator::new(&config).unwrap()
}

fn row(check: &Check, kappa_q: usize) -> TruncationRow {
    *check.truncation.rows.iter().find(|row| row.kappa_q == kappa_q).unwrap()
}

fn assert_close(what: &str, x: f64, y: f64, tolerance: f64) {
    assert!((x - y).abs() <= tolerance * (1.0 + y.abs()), "{what}: {x} is not {y}");
}

/// max_i ‖a_i − b_i‖₂ of two lists of gradients in a file.
fn largest_distance(a: &Value, b: &Value) -> f64 {
    let pairs = a.as_array().unwrap().iter().zip(b.as_array().unwrap());
    let square = |(a, b): (&Value, &Value)| {
        numbers(a).iter().zip(numbers(b)).map(|(a, b)| (a - b).powi(2)).sum::<f64>()
    };
    pairs.map(square).fold(0.0, f64::max).sqrt()
}

#[test]
fn agrees_with_the_reference() {
    for name in REFERENCES.into_iter().chain(["lemma_counterexample"]) {
        let (case, output) = read(name);
        let check = checked(&case);
        let decay = &output["decay"];
        assert_eq!(check.decay.holds, !decay["omega_sup"].is_null(), "{name}");
        assert_close(name, check.decay.chi_at_0, decay["chi_at_0"].as_f64().unwrap(), 1e-9);
        assert_eq!(check.decay.omega_sup.is_some(), check.decay.holds, "{name}");
        let row = row(&check, case.kappa_q);
        assert_close(
            name,
            row.fixed.unwrap(),
            largest_distance(&output["grad_true"], &output["grad_trunc_fixed"]),
            1e-9,
        );
        assert_close(
            name,
            row.averaged.unwrap(),
            largest_distance(&output["grad_true"], &output["grad_trunc_avg"]),
            1e-9,
        );
        let closed = &output["closed_loop"];
        assert_close(
            name,
            check.closed_loop.spectral_radius,
            closed["spectral_radius_gamma_C"].as_f64().unwrap(),
            1e-9,
        );
        assert_eq!(check.closed_loop.holds, !closed["grad_certified"].is_null(), "{name}");
        assert_eq!(check.closed_loop.gradient_error, row.certified, "{name}");
        if let Some(certified) = row.certified {
            assert_close(name, certified, closed["grad_certified"].as_f64().unwrap(), 1e-9);
            assert!(row.fixed.unwrap() <= certified && row.averaged.unwrap() <= certified, "{name}");
        }
        // At the diameter nothing is cut off.
        let last = check.truncation.rows.last().unwrap();
        assert_eq!(last.kappa_q, check.sizes.diameter, "{name}");
        assert!(last.fixed.unwrap() < 1e-12 * (1.0 + check.truncation.gradient), "{name}");
        assert_eq!(check.theorems.exact.is_none(), output["constants"].is_null(), "{name}");
    }
}

/// Errata 1: the assumption holds, the lemma's bound does not, the certificate's does.
#[test]
fn the_counterexample_is_recognised() {
    let (case, output) = read("lemma_counterexample");
    let check = checked(&case);
    let row = row(&check, 4);
    assert!(check.decay.holds && check.closed_loop.holds);
    assert_close("measured", row.fixed.unwrap(), 9.368712185053741e-3, 1e-12);
    let best = output["decay"]["best_c0phi"].as_f64().unwrap();
    assert_close("predicted", row.predicted.unwrap(), 2f64.sqrt() * best / (1.0 - 0.9), 1e-12);
    assert!(row.fixed > row.predicted && row.fixed < row.certified);
    assert!(check.advice[0].contains("exceeds the lemma's bound 1.10e-3"), "{}", check.advice[0]);
}

#[test]
fn weak_influence_is_within_all_bounds() {
    let (case, output) = read("ring5_weak");
    let check = checked(&case);
    let omega_sup = output["decay"]["omega_sup"].as_f64().unwrap();
    assert_close("omega_sup", check.decay.omega_sup.unwrap(), omega_sup, 1e-9);
    assert_eq!((check.decay.gamma_below, check.decay.mixing_above), (None, None));
    // At the diameter the error is rounding, and the certificate exactly 0.
    for row in check.truncation.rows.iter().filter(|row| row.kappa_q < check.sizes.diameter) {
        assert!(row.fixed <= row.predicted && row.fixed <= row.certified, "{row:?}");
    }
}

/// Errata 2 and 5: rows (2, 0.4), γ < 5/6, and multipliers (γ + 0.1) and 0.1 over (1 − γ) logit p.
#[test]
fn the_papers_line_by_hand() {
    let (case, _) = read("paper_line5");
    let check = checked(&case);
    assert!(!check.decay.holds && !check.closed_loop.holds);
    let binding = check.decay.binding_agent;
    let influences: Vec<(usize, f64)> = check.decay.binding_row.iter().map(|i| (i.agent, i.size)).collect();
    assert_eq!(influences.len(), 2);
    assert_eq!((influences[0].0, influences[1].0), (binding, binding + 1));
    assert_close("itself", influences[0].1, 2.0, 1e-12);
    assert_close("neighbour", influences[1].1, 0.4, 1e-12);
    assert_close("gamma", check.decay.gamma_below.unwrap(), 5.0 / 6.0, 1e-12);
    assert!(check.truncation.rows.iter().all(|row| row.predicted.is_none() && row.certified.is_none()));
    assert_eq!(check.truncation.multipliers, Multipliers::Given);

    let feasibility = &check.feasibility;
    assert!(feasibility.notes.is_empty() && feasibility.slacks_over_policies);
    let mu: Vec<f64> = feasibility.constraints.iter().map(|c| c.multiplier.unwrap()).collect();
    for (i, expected) in [78.524, 7.204, 7.204].into_iter().enumerate() {
        assert_close("mu", mu[i + 1], expected, 1e-3);
    }
    assert!(mu[0] < 1e-2);
    for constraint in &feasibility.constraints {
        assert_close("entropy", constraint.largest_slack.unwrap(), 2f64.ln() - 0.5, 1e-6);
    }
    assert_close("margin", feasibility.slater_margin.unwrap(), 2f64.ln() - 0.5, 1e-6);
    assert!(mu.iter().sum::<f64>() <= feasibility.dual_bound.unwrap());
    assert_close(
        "gap",
        feasibility.gap.unwrap(),
        feasibility.optimum.unwrap() - feasibility.objective,
        1e-15,
    );

    let tight = Check::new(&Subject { mu_max: 50.0, ..Subject::from(&case) }, TARGETS).unwrap();
    assert_eq!((feasibility.mu_max_too_small, tight.feasibility.mu_max_too_small), (Some(false), Some(true)));
    let warning = "mu_max = 50 is below agent 1's multiplier 78.524";
    let advice = tight.advice.iter().find(|advice| advice.starts_with(warning)).unwrap();
    assert!(advice.contains("Set dual.mu_max to at least 160; 220 is always enough"), "{advice}");
}

/// Errata 3: TD comes closer to its own limit with every step, and that is 0.26 away from the fixed tables.
#[test]
fn td_converges_to_its_own_limit() {
    let (case, _) = read("paper_line5");
    let subject = Subject::from(&case);
    let after = |critic_steps| Check::new(&Subject { critic_steps, ..subject }, TARGETS).unwrap().td;
    let (few, many) = (after(500), after(300_000));
    assert_eq!(few.setting.unwrap().sigma, many.setting.unwrap().sigma);
    assert!(many.bound.unwrap().error < few.bound.unwrap().error);
    let (few, many) = (few.measured.unwrap(), many.measured.unwrap());
    assert_close("limit", few.limit_to_fixed.unwrap(), 0.2583, 1e-3);
    assert!(many.to_limit.unwrap() < 0.5 * few.to_limit.unwrap(), "{few:?} {many:?}");
}

#[test]
fn mixing_that_is_advised_is_enough() {
    let with = |mixing: f64| {
        let mixing = mixing.to_string();
        let evaluator = evaluator(&[("world.n", "4"), ("world.mixing", &mixing)]);
        Check::new(&Subject::try_from(&evaluator).unwrap(), TARGETS).unwrap()
    };
    let unmixed = with(0.0);
    let above = unmixed.decay.mixing_above.unwrap();
    assert_close("mixing", above, 1.0 - 5.0 / (6.0 * 0.99), 1e-12);
    // The advice does not depend on where one stands.
    assert_close("mixing", with(0.1).decay.mixing_above.unwrap(), above, 1e-12);
    assert!(!with(above - 1e-6).decay.holds && with(above + 1e-6).decay.holds);
    assert_eq!(unmixed.truncation.multipliers, Multipliers::Optimal);
    let mu: Vec<f64> = unmixed.feasibility.constraints.iter().map(|c| c.multiplier.unwrap()).collect();
    assert_close("normalised", mu[1], 0.78524, 1e-3);
}

#[test]
fn what_cannot_be_said_is_named() {
    // Too many pairs for the conic program.
    let large = evaluator(&[("world.n", "9"), ("dual.mu_max", "inf")]);
    let check = Check::new(&Subject::try_from(&large).unwrap(), TARGETS).unwrap();
    assert!(check.feasibility.notes[0].contains("512 joint states x 512 joint actions"));
    assert_eq!((check.feasibility.notes.len(), check.feasibility.slacks_over_policies), (1, false));
    assert_eq!(check.truncation.multipliers, Multipliers::Ones);
    assert_eq!(
        check.theorems.note.as_deref(),
        Some("multipliers have no upper bound: dual.mu_max is infinite")
    );
    // Too many pairs for a fixed point of TD.
    let check = checked(&read("lemma_counterexample").0);
    assert!(check.td.notes[0].contains("4096 pairs") && check.td.measured.unwrap().to_limit.is_none());
    // Convex constraints, and one that no occupancy meets.
    let check = checked(&read("line4_mixed_utilities").0);
    assert!(check.feasibility.notes[0].contains("action_l2sq is convex"));
    assert!(
        check.advice.iter().any(|advice| advice.starts_with("No policy meets `neg_dist_box` of agent 1"))
    );
    // Direct policies have no bounded score.
    let direct = evaluator(&[("world.n", "4"), ("policy.kind", "direct"), ("world.mixing", "0.5")]);
    let check = Check::new(&Subject::try_from(&direct).unwrap(), TARGETS).unwrap();
    assert!(check.decay.holds && check.closed_loop.holds && check.theorems.constants.is_none());
    assert!(check.truncation.rows.iter().all(|row| row.predicted.is_none() && row.certified.is_none()));
    for (epsilon, delta) in [(0.0, 0.1), (1.0, 0.1), (f64::NAN, 0.1), (0.1, 0.0), (0.1, 1.0)] {
        assert!(
            Check::new(&Subject::try_from(&direct).unwrap(), Targets { epsilon, delta })
                .unwrap_err()
                .is_bad_input()
        );
    }
}
