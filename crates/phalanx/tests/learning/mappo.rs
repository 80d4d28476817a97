//! MAPPO-Lagrangian learns, keeps cumulative constraints, and refuses what it cannot do.

use phalanx::run::{Config, Session};

const LINE: &str = r#"
algorithm = "mappo-l"
iterations = 120
gamma = 0.9
horizon = 20
batch = 20
world = { kind = "line", n = 3 }
objective = { kind = "return" }
policy = { kind = "network" }
mappo = { learning_rate = 3e-3, critic_learning_rate = 3e-3 }
"#;

/// Agents 1 and 2 would act always, at a cost of 10.
const ACT: &str = r#"[{ name = "act", kind = "linear", r = [0, 1, 0, 1], at_most = 6.0 }]"#;

fn config(settings: &[(&str, &str)]) -> Config {
    Config::from_toml(LINE, std::path::Path::new(".")).unwrap().with_all(settings.iter().copied()).unwrap()
}

fn train(settings: &[(&str, &str)]) -> Session {
    let mut session = Session::new(&config(settings)).unwrap();
    while session.advance().unwrap().is_some() {}
    session
}

#[test]
fn every_scope_learns_the_line() {
    for scope in ["global", "local", "aggregate"] {
        for behaviour in ["corrected", "faithful"] {
            let settings = [("mappo.scope", scope), ("mappo.behaviour", behaviour)];
            let found = train(&settings).evaluate().unwrap().return_.unwrap();
            // From 3.8; always acting earns 7.58.
            assert!(found > 7.4, "{settings:?}: {found}");
        }
    }
}

#[test]
fn minibatches_and_every_sight_learn() {
    for settings in [
        &[("mappo.minibatches", "4"), ("mappo.epochs", "3")][..],
        &[("mappo.actor_sees", "local")],
        &[("mappo.actor_sees", "global"), ("mappo.scope", "local")],
    ] {
        let found = train(settings).evaluate().unwrap().return_.unwrap();
        assert!(found > 7.3, "{settings:?}: {found}");
    }
}

#[test]
fn multipliers_make_agents_keep_their_bounds() {
    let slow = r#"{ kind = "linear", hold = 0.5, end = 0.05 }"#;
    for (scope, bound) in [
        ("global", ACT),
        ("local", ACT),
        ("aggregate", ACT),
        // The same from the other side: at most 6 of 10 steps acting is at least 4 idle.
        ("local", r#"[{ name = "idle", kind = "linear", r = [1, 0, 1, 0], at_least = 4.0 }]"#),
    ] {
        let settings = [
            ("mappo.scope", scope),
            ("constraint", bound),
            ("iterations", "400"),
            ("mappo.entropy", "0.2"),
            ("mappo.lambda_rate", "0.03"),
            ("mappo.decay", slow),
        ];
        let found = train(&settings).evaluate().unwrap();
        // Without multipliers the violation is 8 and the return 7.58.
        assert!(found.violations.total < 0.4, "{scope}: {:?}", found.violations);
        let earned = found.return_.unwrap();
        assert!(earned > 4.0, "{scope}: {earned}");
    }
}

#[test]
fn agents_may_have_several_constraints_or_none() {
    let list = r#"[{ kind = "return", at_most = 100.0, agents = [1] },
                   { name = "act", kind = "linear", r = [0, 1, 0, 1], at_most = 6.0, agents = [1, 2] }]"#;
    for behaviour in ["corrected", "faithful"] {
        let session = train(&[("constraint", list), ("mappo.behaviour", behaviour), ("iterations", "10")]);
        let mu = session.algorithm().mu();
        assert_eq!((0..3).map(|i| mu.row(i).len()).collect::<Vec<_>>(), [0, 2, 1], "{behaviour}");
        // A bound that is far away lets its multiplier fall.
        assert!(mu.row(1)[0] < 0.78, "{behaviour}: {mu:?}");
    }
}

#[test]
fn faithful_multipliers_share_the_mean() {
    // Fair coins act at a cost of 5.
    let settings = [
        ("constraint", ACT),
        ("constraint.0.at_most", "3"),
        ("iterations", "2"),
        ("mappo.learning_rate", "0"),
        ("mappo.lambda_rate", "1"),
    ];
    let after = |behaviour: &str| {
        let all = [&settings[..], &[("mappo.behaviour", behaviour)]].concat();
        train(&all).algorithm().mu().data().to_vec()
    };
    // Actors that stand still have ratios of 1 and advantages of mean 0: what is left is the constraint.
    let (own, mean) = (after("corrected"), after("faithful"));
    assert!((mean[0] - mean[1]).abs() < 1e-3 && (mean[1] - mean[2]).abs() < 1e-3, "{mean:?}");
    let average = own.iter().sum::<f64>() / 3.0;
    assert!((average - mean[0]).abs() < 1e-3 && (own[0] - own[2]).abs() > 1e-2, "{own:?} {mean:?}");
}

#[test]
fn only_sums_are_accepted() {
    let message = |settings: &[(&str, &str)]| Session::new(&config(settings)).err().unwrap().to_string();
    let entropy =
        message(&[("constraint", r#"[{ name = "spread", kind = "state_entropy", at_least = 0.5 }]"#)]);
    assert!(entropy.starts_with("constraint: `spread` is `state_entropy`"), "{entropy}");
    let objective = message(&[("objective", r#"{ kind = "sa_entropy" }"#)]);
    assert!(objective.starts_with("objective: is `sa_entropy`"), "{objective}");
    // A table over states is a mean where episodes may end early.
    let table = message(&[
        ("world", r#"{ kind = "pistonball", n = 3 }"#),
        ("objective", &format!("{{ kind = \"linear\", r = {:?} }}", [1; 51])),
    ]);
    assert!(table.contains("mean over the time lived"), "{table}");
}
