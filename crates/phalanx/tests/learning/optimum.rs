//! Training reaches the known optimum of the synthetic line; the exact values come from enumeration.

use crate::support::{line_objective_and_violation, line_state_one};
use phalanx::run::{Config, Session};

/// Normalised optimum of the line with n = 10, γ = 0.99, uniform start and entropy ≥ 0.5 (closed form).
const OPTIMUM: f64 = 0.15175482841729823;

fn train(settings: &[(&str, &str)]) -> Session {
    let config = Config::preset("synthetic").unwrap().with_all(settings.iter().copied()).unwrap();
    let mut session = Session::new(&config).unwrap();
    while session.advance().unwrap().is_some() {}
    session
}

fn exact(settings: &[(&str, &str)]) -> (f64, f64) {
    line_objective_and_violation(train(settings).algorithm().policy().tabular().unwrap(), 0.99, 0.5)
}

#[test]
fn the_enumeration_knows_the_uniform_policy() {
    // Fair coins: d(1) of the last agent is 1/2; upstream, d = (1−γ)/2 + γ/2·(d' + 0.8·(1−d')).
    let config = Config::preset("synthetic").unwrap().with("world.n", "4").unwrap();
    let session = Session::new(&config).unwrap();
    let found = line_state_one(session.algorithm().policy().tabular().unwrap(), 0.99);
    let upstream = |d: f64| 0.005 + 0.99 * 0.5 * (d + 0.8 * (1.0 - d));
    let expected = [0.005 + 0.99 * upstream(upstream(0.5)), upstream(upstream(0.5)), upstream(0.5), 0.5];
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() < 1e-6, "{found:?} is not {expected:?}");
    }
}

#[test]
fn synthetic_reaches_the_constrained_optimum_on_every_seed() {
    for seed in ["1", "2", "3", "4", "5"] {
        let (objective, violation) = exact(&[("seed", seed)]);
        assert!((0.148..0.154).contains(&objective), "seed {seed}: {objective}, optimum {OPTIMUM}");
        assert!(violation <= 0.05, "seed {seed}: violation {violation}");
    }
}

#[test]
fn proximal_violation_falls_with_the_dual_step() {
    let mean = |eta_mu: &str| {
        let run = |seed: &str| exact(&[("dual.kind", "proximal"), ("dual.eta_mu", eta_mu), ("seed", seed)]).1;
        ["1", "2", "3", "4", "5"].map(run).iter().sum::<f64>() / 5.0
    };
    let violations = ["0", "1", "3", "10"].map(mean);
    assert!(violations.is_sorted_by(|a, b| a > b), "{violations:?}");
    // The penalty method's stationary points violate by 4.61, 0.93, 0.38 and 0.13; 400 iterations end near
    // them.
    assert!(violations[0] > 4.0 && violations[3] < 0.15, "{violations:?}");
}

#[test]
fn every_critic_policy_and_dual_learns() {
    for settings in [
        &[("critic.kind", "lstd")][..],
        &[("critic.kind", "montecarlo"), ("critic.steps", "200"), ("batch", "20")],
        &[("critic.kind", "returns"), ("critic.lambda", "0.9"), ("batch", "20")],
        &[("policy.kind", "direct"), ("actor.optimizer", "sgd"), ("actor.eta_theta", "0.3")],
        &[("policy.kind", "direct"), ("actor.eta_theta", "0.01")],
        &[("dual.kind", "descent"), ("dual.eta_mu", "0.5")],
        &[("actor.baseline", "mean")],
        &[("actor.optimizer", "sgd"), ("actor.eta_theta", "3")],
        &[("kappa", "0")],
        &[("kappa", "0"), ("kappa_q", "1")],
    ] {
        let (objective, violation) = exact(settings);
        // From 0.082 at the start; without constraints 0.1883 with violation 4.6.
        assert!((0.145..0.155).contains(&objective), "{settings:?}: {objective}, {violation}");
        assert!(violation < 0.1, "{settings:?}: {objective}, {violation}");
    }
}

/// Policies and critics that are no tables; what they achieve is estimated on 400 episodes.
#[test]
fn linear_and_network_models_learn() {
    let linear = &[("policy.kind", "linear"), ("critic.kind", "linear")][..];
    let additive =
        [("policy.features", "additive"), ("critic.features", "additive"), ("critic.solver", "td")];
    let network = [("policy.kind", "network"), ("actor.eta_theta", "0.005")];
    let critic = [("critic.kind", "network"), ("critic.learning_rate", "3e-3")];
    for (settings, least) in [
        (linear.to_vec(), 0.145),
        ([linear, &additive].concat(), 0.145),
        ([linear, &network].concat(), 0.145),
        ([&network[..], &critic].concat(), 0.13),
    ] {
        let found = train(&settings).evaluate().unwrap();
        // From 0.082 at the start.
        assert!((least..0.155).contains(&found.objective), "{settings:?}: {}", found.objective);
        assert!(found.violations.total < 0.1, "{settings:?}: {:?}", found.violations);
    }
}

#[test]
fn the_papers_examples_meet_their_constraints() {
    for preset in ["apprenticeship", "feasibility", "entropy"] {
        let config = Config::preset(preset).unwrap();
        let mut session = Session::new(&config).unwrap();
        let first = session.advance().unwrap().unwrap();
        while session.advance().unwrap().is_some() {}
        let result = session.evaluate().unwrap();
        let improved =
            if preset == "entropy" { result.objective > 0.65 } else { result.objective > first.objective };
        assert!(improved, "{preset}: {} → {}", first.objective, result.objective);
        assert!(result.violations.max < 0.03, "{preset}: {:?}", result.violations);
    }
}

/// The baselines with constant multipliers: nothing moves them, and both learn.
#[test]
fn a_fixed_penalty_stays_and_is_learnt_with() {
    let config = |mu: &str, entropy: &str| {
        let keys = [
            ("algorithm", "penalty"),
            ("iterations", "150"),
            ("dual.mu_0", mu),
            ("actor.entropy", entropy),
            ("world.n", "4"),
        ];
        Config::preset("synthetic").unwrap().with_all(keys).unwrap()
    };
    let trained = |config: &Config| {
        let mut session = Session::new(config).unwrap();
        while session.advance().unwrap().is_some() {}
        let mu = session.mu().data().to_vec();
        (mu, session.evaluate().unwrap())
    };
    let (mu, without) = trained(&config("0.0", "0.0"));
    assert_eq!(mu, [0.0; 4]);
    assert!(without.violations.total > 1.0, "nothing holds it back: {}", without.violations.total);
    let (mu, penalised) = trained(&config("0.2", "0.0"));
    assert_eq!(mu, [0.2; 4]);
    let (_, entropic) = trained(&config("0.0", "0.01"));
    let random = 0.5 * 1.3 / 4.0;
    for evaluation in [&penalised, &entropic] {
        assert!(evaluation.violations.total < 0.5 * without.violations.total);
        assert!(evaluation.objective > 1.1 * random && evaluation.objective < without.objective);
    }
}
