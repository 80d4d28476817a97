//! A network shared out over processes learns what it learns in one: the same bytes. Threads stand for the
//! processes here; MPI's own tests are those of the command line.

#[path = "support/ranks.rs"]
mod ranks;

use std::sync::Arc;

use phalanx::distributed::SingleProcess;
use phalanx::run::{Config, Session};
use ranks::{assert_same, crew, parts, resume, whole};

fn config(preset: &str, sets: &[(&str, &str)]) -> Config {
    let common = [("iterations", "4"), ("evaluation.episodes", "20")];
    Config::preset(preset).unwrap().with_all(common.iter().chain(sets).copied()).unwrap()
}

fn same_bytes(preset: &str, sets: &[(&str, &str)], counts: &[usize]) {
    let config = config(preset, sets);
    let folder = tempfile::tempdir().unwrap();
    let one = folder.path().join("one");
    whole(&config, &one);
    for &count in counts {
        let path = folder.path().join(format!("parts-{count}"));
        parts(&config, &path, count, usize::MAX);
        assert_same(&one, &path, &format!("{preset} {sets:?} on {count}"));
    }
}

#[test]
fn a_line_of_tables() {
    same_bytes("synthetic", &[("world.n", "23")], &[1, 2, 4]);
    same_bytes("synthetic", &[("world.n", "23"), ("kappa", "0"), ("kappa_q", "2"), ("kappa_g", "1")], &[3]);
    same_bytes("synthetic", &[("world.n", "12"), ("kappa", "2"), ("kappa_q", "0")], &[4]);
    same_bytes("synthetic", &[("world.n", "9"), ("policy.kind", "direct"), ("critic.kind", "lstd")], &[9]);
    same_bytes("synthetic", &[("world.n", "9"), ("scaling", "paper"), ("actor.baseline", "none")], &[2]);
    let mean = [("critic.kind", "montecarlo"), ("actor.baseline", "mean"), ("critic.steps", "30")];
    same_bytes("synthetic", &mean, &[2]);
}

/// Events of whole episodes, one budget for agents of several processes, and a shield.
#[test]
fn safety() {
    let ever = r#"[{ kind = "ever", states = [1], at_most = 0.9 }]"#;
    let group = r#"[{ kind = "state_entropy", group = [3, 4, 5, 6, 7, 8], at_least = 3.9 }]"#;
    for (constraint, kappa_g) in [(ever, "1"), (ever, "0"), (group, "1")] {
        let sets = [
            ("world.n", "12"),
            ("constraint", constraint),
            ("kappa_g", kappa_g),
            ("horizon", "12"),
            ("safety.shield", "revert"),
        ];
        same_bytes("synthetic", &sets, &[2, 4]);
    }
}

/// Agents of other processes have usual states too, and their messages are lost alike.
#[test]
fn faulty_links() {
    let sets = [("links.loss", "0.4"), ("links.delay", "1"), ("kappa", "2"), ("links.silent", "[3, 20]")];
    same_bytes("wireless", &sets, &[2, 4]);
    same_bytes("synthetic", &[("world.n", "23"), ("links.loss", "0.4")], &[3]);
}

/// Long enough for borders between whole groups of agents.
#[test]
fn a_long_line() {
    let sets = [("world.n", "20000"), ("iterations", "2"), ("critic.steps", "20"), ("horizon", "20")];
    same_bytes("synthetic", &sets, &[2]);
}

#[test]
fn a_line_whose_links_are_others() {
    let sets = [("world.n", "16"), ("network.kind", "ring")];
    same_bytes("synthetic", &sets, &[3]);
    let sets = [
        ("world.n", "40"),
        ("network.kind", "geometric"),
        ("network.radius", "0.2"),
        ("kappa", "0"),
        ("kappa_q", "0"),
    ];
    same_bytes("synthetic", &sets, &[4]);
}

#[test]
fn a_grid_of_linear_models() {
    same_bytes("wireless", &[], &[1, 2, 4]);
    same_bytes("wireless", &[("world.rows", "3"), ("world.columns", "9"), ("kappa_q", "2")], &[4]);
    let other_links = [("network.kind", "ring"), ("critic.rule", "td")];
    same_bytes("wireless", &other_links[..1], &[3]);
}

#[test]
fn a_grid_of_networks() {
    same_bytes("paper/wireless", &[("iterations", "2")], &[2, 4]);
    let counterfactual = [("iterations", "2"), ("actor.baseline", "counterfactual"), ("kappa_g", "0")];
    same_bytes("paper/wireless", &counterfactual, &[2]);
}

/// Gradients that all agents share are summed up over all processes.
#[test]
fn policies_that_agents_share() {
    let small = [("world.rows", "4"), ("world.columns", "6")];
    same_bytes("wireless-shared", &small, &[1, 2, 4]);
    let kinds = [("world.rows", "4"), ("world.columns", "6"), ("policy.kinds", "[0, 1, 1]")];
    same_bytes("wireless-shared", &kinds, &[3]);
    same_bytes("epidemic-shared", &[], &[2, 4]);
    let ever = r#"[{ kind = "ever", states = [1], at_most = 0.9 }]"#;
    let line = [("world.n", "12"), ("constraint", ever), ("horizon", "12"), ("policy.kind", "shared")];
    same_bytes("synthetic", &line, &[2, 4]);
}

/// So are those of values.
#[test]
fn critics_that_agents_share() {
    let shared = [
        ("critic.kind", "returns"),
        ("critic.sharing", "kind"),
        ("critic.minibatch", "32"),
        ("critic.passes", "2"),
        ("actor.baseline", "none"),
        ("actor.all_actions", "false"),
    ];
    let small = [("world.rows", "4"), ("world.columns", "6")];
    same_bytes("wireless-shared", &[&small[..], &shared].concat(), &[1, 2, 4]);
    let kinds = [("policy.kinds", "[0, 1, 1]"), ("kappa_q", "2"), ("critic.optimizer", "sgd")];
    same_bytes("wireless-shared", &[&small[..], &shared, &kinds].concat(), &[3]);
    same_bytes("epidemic-shared", &[&shared[..], &[("critic.clip", "0.1")]].concat(), &[2, 4]);
}

#[test]
fn an_epidemic() {
    same_bytes("epidemic", &[], &[2, 4]);
    let hubs = [("network.kind", "scale_free"), ("network.links", "2"), ("world.n", "60")];
    same_bytes("epidemic-grid", &hubs, &[3]);
    same_bytes("epidemic-grid", &[], &[4]);
}

/// A world without means of its own.
#[test]
fn a_model_from_a_file() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference");
    for file in ["grid2x3.json", "star4_joint_rho.json"] {
        let text = format!(
            "iterations = 3\nkappa = 1\nhorizon = 20\nbatch = 2\n[world]\nkind = \"table\"\nfile = \"{file}\"\nallow_infeasible = true\n\
             [critic]\nkind = \"td\"\nsteps = 30\n"
        );
        let config = Config::from_toml(&text, &folder).unwrap();
        let temporary = tempfile::tempdir().unwrap();
        let one = temporary.path().join("one");
        whole(&config, &one);
        for count in [2, 4] {
            let path = temporary.path().join(format!("parts-{count}"));
            parts(&config, &path, count, usize::MAX);
            assert_same(&one, &path, file);
        }
    }
}

#[test]
fn stopped_and_resumed_with_another_number_of_processes() {
    for (preset, sets) in [
        ("synthetic", &[("world.n", "23")][..]),
        ("wireless", &[("critic.average", "0.5")]),
        ("wireless", &[("links.loss", "0.4"), ("links.max_age", "3")]),
        ("paper/wireless", &[("iterations", "3")]),
        ("wireless-shared", &[("world.rows", "4"), ("world.columns", "5")]),
    ] {
        let config = config(preset, sets);
        let folder = tempfile::tempdir().unwrap();
        let one = folder.path().join("one");
        whole(&config, &one);
        let path = folder.path().join("parts");
        parts(&config, &path, 3, 2);
        assert_eq!(crew(2, |peers| resume(&path, peers, 2)), [true, true]);
        assert_same(&one, &path, preset);
        assert_eq!(crew(2, |peers| resume(&path, peers, 2)), [false, false]);

        // From several to one.
        let path = folder.path().join("again");
        parts(&config, &path, 2, 1);
        assert!(resume(&path, Arc::new(SingleProcess), 1));
        assert_same(&one, &path, preset);
    }
}

/// In the last iteration, so that the closing evaluation finds it: all processes leave it together.
#[test]
fn stopped_in_the_closing_evaluation() {
    let config = config("synthetic", &[("world.n", "23")]);
    let folder = tempfile::tempdir().unwrap();
    let (one, path) = (folder.path().join("one"), folder.path().join("parts"));
    whole(&config, &one);
    parts(&config, &path, 3, 4);
    assert!(path.join("policy.safetensors").exists() && !path.join("outcome.json").exists());
    assert_eq!(crew(2, |peers| resume(&path, peers, 4)), [true, true]);
    assert_same(&one, &path, "stopped in the closing evaluation");
}

#[test]
fn what_cannot_be_shared_out_is_refused_by_all() {
    let refusal = |configs: &[Config], count: usize| {
        let found = crew(count, |peers| {
            let config = &configs[peers.rank() % configs.len()];
            Session::distributed(config, peers).err().map(|error| (error.to_string(), error.is_bad_input()))
        });
        let first = found[0].clone().unwrap();
        assert!(found.iter().all(|error| error.as_ref() == Some(&first)), "{found:?}");
        assert!(first.1);
        first.0
    };
    let line = config("synthetic", &[("world.n", "3")]);
    assert!(refusal(&[line], 4).contains("mpi: 4 processes for 3 agents"));
    assert!(refusal(&[config("pistonball", &[])], 2).contains("mpi: this world is simulated whole"));
    assert!(refusal(&[config("exact", &[])], 2).contains("mpi: algorithm = \"exact\""));
    let different = [config("synthetic", &[]), config("synthetic", &[("seed", "2")])];
    assert!(refusal(&different, 2).contains("rank 1 has another configuration"));
}

/// A run that fails in one process fails in all, for the same reason as in one.
#[test]
fn a_failure_is_everybodys() {
    let sets = [
        ("world.n", "20"),
        ("dual.mu_max", "inf"),
        ("dual.eta_mu", "1e308"),
        ("constraint.0.scale", "1e10"),
        ("constraint.0.at_least", "6.9e9"),
    ];
    let config = config("synthetic", &sets);
    let mut session = Session::new(&config).unwrap();
    let alone = loop {
        match session.advance() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it should fail"),
            Err(error) => break error.to_string(),
        }
    };
    let found = crew(4, |peers| {
        let mut session = Session::distributed(&config, peers).unwrap();
        loop {
            match session.advance() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("it should fail"),
                Err(error) => break error.to_string(),
            }
        }
    });
    assert_eq!(found, vec![alone; 4]);
}
