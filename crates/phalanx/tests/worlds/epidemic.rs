//! Epidemics from the configuration: sampled against exact, networks of every kind, and what the preset
//! learns.

use std::path::Path;

use phalanx::run::{Config, Evaluator, Session};

/// A short-sighted problem with the given `[world]` and `[network]`.
fn config(rest: &str) -> Config {
    let text = format!(
        "gamma = 0.8\nhorizon = 20\nkappa = 1\n{rest}\n[objective]\nkind = \"return\"\n[[constraint]]\nkind = \"return\"\n\
         channel = \"infected\"\nscale = 0.2\nat_most = 0.3\n"
    );
    Config::from_toml(&text, Path::new(".")).unwrap()
}

const SIRS: &str = "[world]\nkind = \"epidemic\"\nmodel = \"sirs\"\nn = 4\ninfection = 0.4\nimport = 0.05\nwaning = 0.3\nstart = 0.3\n";

/// One agent alone is a chain of two states: x = ((1 − γ)·start + γ·ε)/(1 − γ·(1 − δ − ε)) is its share of
/// time in illness.
#[test]
fn one_agent_in_closed_form() {
    let text = "[world]\nkind = \"epidemic\"\nn = 1\nimport = 0.1\nrecovery = 0.2\ntreated_recovery = 0.6\nprotection = 0.75\nstart = 0.3";
    for (script, import, recovery) in
        [("none", 0.1, 0.2), ("treat", 0.1, 0.6), ("protect", 0.025, 0.2), ("both", 0.025, 0.6)]
    {
        let truth = Evaluator::scripted(&config(text), script).unwrap().exact().unwrap().unwrap();
        let infected: f64 = 0.2 * truth.occupancy.row(0)[3..6].iter().sum::<f64>();
        let expected = (0.2 * 0.3 + 0.8 * import) / (1.0 - 0.8 * (1.0 - recovery - import));
        assert!((infected - expected).abs() < 1e-12, "{script}: {infected}, not {expected}");
    }
}

/// Simulated occupancies are those of enumeration, for both models, under every script.
#[test]
fn sampled_and_exact_occupancies_agree() {
    let sis = SIRS.replace("\"sirs\"", "\"sis\"").replace("waning = 0.3\n", "");
    let networks =
        ["", "[network]\nkind = \"star\"", "[network]\nkind = \"small_world\"\nneighbours = 2\nrewire = 0.5"];
    for (world, network) in
        [SIRS, &sis].into_iter().flat_map(|world| networks.map(|network| (world, network)))
    {
        for script in ["uniform", "none", "protect", "treat", "both"] {
            let session = Evaluator::scripted(&config(&format!("{world}{network}")), script).unwrap();
            let truth = session.exact().unwrap().unwrap();
            let sampled = session.occupancy(20_000, 3).unwrap();
            for (found, exact) in sampled.data().iter().zip(truth.occupancy.data()) {
                assert!((found - exact).abs() < 0.03, "{script}: {found} is not {exact}");
            }
        }
    }
}

/// Training without samples and with them ends at the same place.
#[test]
fn sampled_training_ends_where_exact_training_does() {
    let config = config(
        "[world]\nkind = \"epidemic\"\nn = 3\ninfection = 0.5\nimport = 0.1\nstart = 0.5\nprotect_cost = 0.3",
    )
    .with_all([("constraint.0.at_most", "0.25"), ("iterations", "250"), ("batch", "20")])
    .unwrap();
    let [exact, sampled] = ["exact", "primal-dual"].map(|algorithm| {
        let mut session = Session::new(&config.with("algorithm", algorithm).unwrap()).unwrap();
        while session.advance().unwrap().is_some() {}
        session.evaluator().unwrap().exact().unwrap().unwrap()
    });
    assert!(
        (exact.objective - sampled.objective).abs() < 0.02,
        "{} and {}",
        exact.objective,
        sampled.objective
    );
    assert!(exact.violation_total < 0.01 && sampled.violation_total < 0.05);
    let uniform = Evaluator::scripted(&config, "uniform").unwrap().exact().unwrap().unwrap();
    assert!(sampled.objective > uniform.objective + 0.05);
}

/// A grid and a file know how many agents there are; other networks are told.
#[test]
fn the_network_may_say_how_many_agents_there_are() {
    let links = |text: &str| {
        let session = Evaluator::scripted(&config(text), "none").unwrap();
        let network = session.world().graph();
        (network.agents(), network.edge_count())
    };
    let world = "[world]\nkind = \"epidemic\"\n";
    assert_eq!(links(&format!("{world}n = 12")), (12, 17));
    assert_eq!(links(&format!("{world}[network]\nkind = \"grid\"\nrows = 2\ncolumns = 5")), (10, 13));
    assert_eq!(
        links(&format!("{world}n = 9\n[network]\nkind = \"scale_free\"\nlinks = 2\nseed = 3")),
        (9, 15)
    );
    let club = "[network]\nkind = \"edges\"\nfile = \"preset:karate-club.txt\"";
    assert_eq!(links(&format!("{world}{club}")), (34, 78));
    assert_eq!(links(&format!("{world}n = 40\n{club}")), (40, 78));
}

/// The recorded friendships: degrees as published, everybody connected.
#[test]
fn the_karate_club() {
    let session = Evaluator::scripted(&Config::preset("epidemic").unwrap(), "none").unwrap();
    let network = session.world().graph();
    let degrees: Vec<usize> = (0..34).map(|i| network.neighbours(i).len()).collect();
    let published = [
        16, 9, 10, 6, 3, 4, 4, 4, 5, 2, 3, 1, 2, 5, 2, 2, 2, 2, 2, 3, 2, 2, 2, 5, 3, 3, 2, 4, 3, 4, 4, 6, 12,
        17,
    ];
    assert_eq!(degrees, published);
    assert!(network.distances_from(0).iter().all(Option::is_some));
}

/// A quarter of the preset's iterations: better than any script, and nearly safe, where no script is.
#[test]
fn the_preset_learns() {
    let config = Config::preset("epidemic").unwrap();
    let config = config.with_all([("iterations", "150"), ("evaluation.episodes", "1000")]).unwrap();
    let mut session = Session::new(&config).unwrap();
    while session.advance().unwrap().is_some() {}
    let trained = session.evaluate().unwrap();
    assert!(trained.violations.total < 0.6 && trained.violations.max < 0.08, "{:?}", trained.violations);
    for script in ["uniform", "none", "protect", "treat", "both"] {
        let scripted = Evaluator::scripted(&config, script).unwrap().evaluate().unwrap();
        assert!(trained.objective > scripted.objective + 0.02, "{script}: {}", scripted.objective);
        assert!(scripted.violations.total > 1.0, "{script}: {:?}", scripted.violations);
    }
}
