//! Runs in the exact setting, against closed forms and against the optimum over all policies.

use std::sync::Arc;

use crate::support::numbers;
use phalanx::base::stream::Stream;
use phalanx::exact::{Dynamics, System, optimum};
use phalanx::policy::{Parameterisation, Tabular};
use phalanx::run::{Config, Evaluator, Session};
use phalanx::world::{Line, Start, World};
use serde_json::Value;

fn reference() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/line10_reference.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn trained(settings: &[(&str, &str)]) -> Session {
    let config = Config::preset("exact").unwrap().with_all(settings.iter().copied()).unwrap();
    let mut session = Session::new(&config).unwrap();
    while session.advance().unwrap().is_some() {}
    session
}

/// Occupancies and entropies of the optimal policies that closed forms give, for every start law and
/// threshold.
#[test]
fn closed_forms_of_the_line() {
    for case in reference()["cases"].as_array().unwrap() {
        let start = match case["rho"].as_str().unwrap() {
            "uniform" => Start::Uniform,
            "all_zero" => Start::Zeros,
            "all_one" => Start::Ones,
            other => panic!("{other}"),
        };
        let world = Arc::new(Line::new(10, start, 0.0).unwrap());
        let config = Config::preset("exact").unwrap();
        let (problem, _) = phalanx::run::problem(&config, &*world).unwrap();
        let mut policy = Tabular::new(&*world, 1, Parameterisation::Direct, 0.0, &Stream::new(0)).unwrap();
        let q = numbers(&case["q"]);
        policy.update(|theta| {
            for (i, q) in q.iter().enumerate() {
                theta.row_mut(i).chunks_exact_mut(2).for_each(|law| law.copy_from_slice(&[1.0 - q, *q]));
            }
        });
        let system = System::new(&*world, &problem, &policy).unwrap();
        let chain = system.under(&policy).unwrap();
        let lambda = chain.occupancy();
        let signals = chain.signals(&problem);
        let (d1, entropy) = (numbers(&case["d1"]), numbers(&case["entropy"]));
        for i in 0..10 {
            let in_one = 0.01 * (lambda.row(i)[2] + lambda.row(i)[3]);
            assert!((in_one - d1[i]).abs() < 1e-12, "{in_one} is not {}", d1[i]);
            assert!((lambda.row(i)[2] + lambda.row(i)[3] - 100.0 * d1[i]).abs() < 1e-12 * 100.0);
            let found = signals.slack.row(i)[0] + 0.5;
            assert!((found - entropy[i]).abs() < 1e-12, "{found} is not {}", entropy[i]);
        }
    }
}

/// The exact run with an integral term ends at the closed-form optimum, whichever truncated Q-functions it
/// uses, as long as they do not drift (errata 25).
#[test]
fn pi_reaches_the_optimum_of_the_line() {
    let reference = reference();
    let wanted = |case: &&Value| case["c"] == 0.5 && case["rho"] == "uniform";
    let case = reference["cases"].as_array().unwrap().iter().find(wanted).unwrap();
    let best = 0.01 * case["per_agent"].as_f64().unwrap();
    for (truncation, kappa_q) in [("fixed", "1"), ("averaged", "2")] {
        let session = trained(&[("critic.truncation", truncation), ("kappa_q", kappa_q)]);
        let truth = session.evaluator().unwrap().exact().unwrap().unwrap();
        assert!((truth.objective - best).abs() < 1e-4, "{truncation}: {} is not {best}", truth.objective);
        assert!(truth.violation_total < 1e-4, "{truncation}: violation {}", truth.violation_total);
    }
}

/// No run does better than the optimum over all policies, and one whose policies can reach it does.
#[test]
fn the_optimum_is_reached_and_never_exceeded() {
    let small = [("world.n", "4"), ("gamma", "0.9"), ("iterations", "1500"), ("critic.truncation", "none")];
    let world = Line::new(4, Start::Uniform, 0.0).unwrap();
    let config = Config::preset("exact").unwrap().with_all(small).unwrap();
    let (problem, _) = phalanx::run::problem(&config, &world).unwrap();
    let best = optimum(&Dynamics::new(&world).unwrap(), &problem).unwrap();
    let truth = trained(&small).evaluator().unwrap().exact().unwrap().unwrap();
    assert!((truth.objective - best.value).abs() < 1e-5, "{} is not {}", truth.objective, best.value);
    // What a violation buys is paid for at the multipliers' price.
    let price = best.multipliers.data().iter().copied().fold(0.0, f64::max);
    for (kind, eta_mu) in [("pi", "30.0"), ("descent", "5.0"), ("proximal", "100.0")] {
        let settings =
            [small[0], small[1], ("iterations", "300"), ("dual.kind", kind), ("dual.eta_mu", eta_mu)];
        let truth = trained(&settings).evaluator().unwrap().exact().unwrap().unwrap();
        let bought = price * truth.violation_total / world.graph().agents() as f64;
        assert!(
            truth.objective <= best.value + bought + 1e-9,
            "{kind}: {} > {}",
            truth.objective,
            best.value
        );
    }
}

/// A table world with a joint start law goes through the same path as the line.
#[test]
fn stationarity_is_reported_and_falls() {
    let exact = |iterations: &str| {
        let settings = [("world.n", "4"), ("gamma", "0.9"), ("critic.truncation", "none")];
        let session = trained(&[&settings[..], &[("iterations", iterations)]].concat());
        session.evaluator().unwrap().exact().unwrap().unwrap()
    };
    let (early, late) = (exact("5"), exact("1500"));
    assert!(late.e < 1e-3 * early.e, "{} is not well below {}", late.e, early.e);
}

/// Twelve agents that all see each other: few states, but nothing is independent. A run must not wait for its
/// truth.
#[test]
fn what_would_take_long_is_left_out() {
    let config = Config::preset("synthetic").unwrap();
    let settings = [("world.n", "12"), ("network.kind", "complete"), ("kappa_q", "0"), ("iterations", "1")];
    let mut session = Session::new(&config.with_all(settings).unwrap()).unwrap();
    while session.advance().unwrap().is_some() {}
    assert!(session.evaluator().unwrap().exact().unwrap().is_none());
    let line = Evaluator::new(&config.with("world.n", "12").unwrap()).unwrap();
    assert!(line.exact().unwrap().is_some());
}
