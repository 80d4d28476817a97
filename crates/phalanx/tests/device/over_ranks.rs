//! Does a network that several ranks share learn on cards what it learns on one? Ranks are threads here, each
//! with a program of its own on the device.

#[path = "../support/ranks.rs"]
mod ranks;

use std::sync::Arc;

use phalanx::distributed::SingleProcess;
use phalanx::run::{Config, Session};
use ranks::{assert_same, crew, parts, resume, whole};

use super::{device, has_device, linear, small};

/// With some iterations and a closing evaluation, on the device.
fn on_device(config: &Config) -> Config {
    let short = [("iterations", "3"), ("evaluation.episodes", "5")];
    config.with_all(short).unwrap().with("device", &device()).unwrap()
}

/// One rank on the device, then several there. One on the processor too, if results should be its own.
fn assert_same_bytes(name: &str, config: &Config, counts: &[usize], is_exact: bool) {
    let config = on_device(config);
    let folder = tempfile::tempdir().unwrap();
    let one = folder.path().join("one");
    whole(&config, &one);
    if is_exact {
        let cpu = folder.path().join("cpu");
        whole(&config.with("device", "cpu").unwrap(), &cpu);
        assert_same(&cpu, &one, name);
    }
    for &count in counts {
        let path = folder.path().join(format!("parts-{count}"));
        parts(&config, &path, count, usize::MAX);
        assert_same(&one, &path, &format!("{name} on {count}"));
    }
}

#[test]
fn ranks_with_tables_give_the_bytes_of_one() {
    if !has_device() {
        return;
    }
    let n = ("world.n", "23");
    for (name, settings, counts) in [
        ("a line", &[n, ("policy.init_std", "0.5")][..], &[2, 3][..]),
        ("the paper's scaling", &[n, ("scaling", "paper"), ("actor.discount", "false")], &[2]),
        ("far", &[n, ("kappa", "2"), ("kappa_q", "1"), ("kappa_g", "0")], &[3]),
        (
            "wide critics",
            &[n, ("kappa", "0"), ("kappa_q", "2"), ("kappa_g", "1"), ("critic.start", "cold")],
            &[3],
        ),
        ("nobody near", &[("world.n", "12"), ("kappa", "0"), ("kappa_q", "0")], &[4]),
        (
            "mean",
            &[n, ("actor.baseline", "mean"), ("actor.normalise", "true"), ("actor.entropy", "0.01")],
            &[2],
        ),
        (
            "averages",
            &[n, ("occupancy_average", "0.5"), ("actor.optimizer", "sgd"), ("policy.box", "[-1, 1]")],
            &[2],
        ),
    ] {
        assert_same_bytes(name, &small(settings), counts, true);
    }
}

/// Ranks whose agents do not follow each other, and metrics that are added up in groups.
#[test]
fn ranks_on_a_ring_give_the_bytes_of_one() {
    if !has_device() {
        return;
    }
    let ring = [("network.kind", "ring"), ("horizon", "5"), ("batch", "2"), ("critic.steps", "8")];
    for agents in ["16", "600"] {
        let settings = [&ring[..], &[("world.n", agents), ("policy.init_std", "1")]].concat();
        assert_same_bytes(agents, &small(&settings), &[2, 3], true);
    }
    // Shares are blocks of another order than that of numbers.
    let near = [
        ("network.kind", "geometric"),
        ("network.radius", "0.2"),
        ("world.n", "40"),
        ("kappa", "0"),
        ("kappa_q", "0"),
    ];
    assert_same_bytes("a geometric network", &small(&near), &[4], true);
}

/// Shares of whole groups of agents.
#[test]
fn ranks_on_a_long_line_give_the_bytes_of_one() {
    if !has_device() {
        return;
    }
    let long = [("world.n", "17000"), ("horizon", "3"), ("batch", "2"), ("critic.steps", "5")];
    assert_same_bytes("a long line", &small(&long), &[2], true);
}

#[test]
fn ranks_with_a_model_from_a_file_give_the_bytes_of_one() {
    if !has_device() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model.json"), include_str!("../reference/grid2x3.json")).unwrap();
    let text = "kappa = 1\nhorizon = 9\nbatch = 3\n[world]\nkind = \"table\"\nfile = \"model.json\"\n\
                allow_infeasible = true\n[critic]\nkind = \"td\"\nsteps = 30\n";
    let config = Config::from_toml(text, folder.path()).unwrap();
    assert_same_bytes("a model from a file", &config, &[2, 3], true);
}

#[test]
fn ranks_with_linear_models_give_the_bytes_of_one() {
    if !has_device() {
        return;
    }
    let grid = [("world.rows", "4"), ("world.columns", "6")];
    let with = |settings: &[(&str, &str)]| linear("wireless", &[&grid[..], settings].concat());
    let chains = [("critic.on", "chain"), ("critic.steps", "70"), ("critic.episode", "30"), ("kappa_g", "0")];
    let td = [("critic.solver", "td"), ("critic.h", "20"), ("actor.baseline", "counterfactual")];
    let far = [("kappa", "2"), ("kappa_q", "2"), ("critic.average", "0"), ("actor.all_actions", "false")];
    assert_same_bytes("a grid", &with(&[]), &[2, 3], true);
    assert_same_bytes("chains", &with(&chains), &[2], true);
    assert_same_bytes("td", &with(&td), &[3], true);
    assert_same_bytes("far", &with(&far), &[2], true);
    assert_same_bytes("an epidemic", &linear("epidemic", &[]), &[2, 3], true);
    assert_same_bytes("an epidemic on a grid", &linear("epidemic-grid", &[("world.n", "60")]), &[3], true);
    let policy =
        [("policy.kind", "linear"), ("policy.features", "pair"), ("critic.kind", "td"), ("world.n", "12")];
    assert_same_bytes("tables for critics", &small(&policy), &[3], true);
}

/// Networks of few units: the emulation takes its time.
const NARROW: [(&str, &str); 4] = [
    ("policy.row_hidden", "8"),
    ("policy.hidden", "[24, 8]"),
    ("critic.row_hidden", "8"),
    ("critic.hidden", "[24, 8]"),
];

#[test]
fn ranks_with_networks_give_the_bytes_of_one() {
    if !has_device() {
        return;
    }
    let short =
        [("horizon", "5"), ("batch", "3"), ("critic.steps", "40"), ("constraint.0.allow_infeasible", "true")];
    let grid =
        [("world.rows", "3"), ("world.columns", "4"), ("critic.minibatch", "16"), ("critic.episode", "5")];
    let wireless = Config::preset("paper/wireless").unwrap();
    let wireless = wireless.with_all(short.into_iter().chain(grid).chain(NARROW)).unwrap();
    assert_same_bytes("rows", &wireless, &[2, 3], false);
    let alternatives = [("actor.baseline", "counterfactual"), ("kappa_g", "0")];
    assert_same_bytes("alternatives", &wireless.with_all(alternatives).unwrap(), &[2], false);
    let line = Config::preset("paper/synthetic").unwrap().with_all(short).unwrap();
    assert_same_bytes("symbols", &line, &[3], false);
}

#[test]
fn ranks_stop_and_others_go_on() {
    if !has_device() {
        return;
    }
    let networks =
        [("horizon", "5"), ("batch", "2"), ("critic.steps", "20"), ("constraint.0.allow_infeasible", "true")];
    let networks = Config::preset("paper/synthetic").unwrap().with_all(networks).unwrap();
    for (name, config) in [
        ("tables", small(&[("world.n", "23"), ("occupancy_average", "0.5")])),
        ("linear", linear("wireless", &[])),
        ("networks", networks),
    ] {
        let config = on_device(&config);
        let folder = tempfile::tempdir().unwrap();
        let [one, path, again] = ["one", "parts", "again"].map(|name| folder.path().join(name));
        whole(&config, &one);
        parts(&config, &path, 3, 2);
        assert_eq!(crew(2, |peers| resume(&path, peers, 2)), [true, true]);
        assert_same(&one, &path, name);
        parts(&config, &again, 2, 1);
        assert!(resume(&again, Arc::new(SingleProcess), 1));
        assert_same(&one, &again, name);
    }
}

/// Every rank has a program on the device, sends no more than it says, and compiles as CUDA.
#[test]
fn ranks_are_on_the_device() {
    if !has_device() {
        return;
    }
    let grid = [("world.rows", "4"), ("world.columns", "6")];
    let networks = Config::preset("paper/wireless").unwrap().with_all(grid).unwrap();
    let short = [("horizon", "5"), ("batch", "2"), ("critic.steps", "20"), ("critic.episode", "5")];
    let networks = networks.with_all(short).unwrap().with("constraint.0.allow_infeasible", "true").unwrap();
    let ring = [("network.kind", "ring"), ("world.n", "600"), ("critic.steps", "8")];
    for config in [small(&[]), small(&ring), linear("wireless", &grid), linear("epidemic", &[]), networks] {
        let config = on_device(&config);
        let told = crew(2, |peers| {
            let mut session = Session::distributed(&config, peers).unwrap();
            assert!(session.device().is_some() && session.advance().unwrap().is_some());
            let kernels = session.algorithm().kernels().unwrap();
            if phalanx_gpu::nvrtc_is_present() {
                phalanx_gpu::compile_ptx(kernels, "compute_90").unwrap();
            }
            session.algorithm().process_traffic().to_vec()
        });
        assert_eq!(told[0].len(), 2);
        assert!(told[0].iter().all(|rank| 0 < rank.bytes && rank.bytes <= rank.bound), "{:?}", told[0]);
    }
}

/// Features of the wireless network are numbered along its rows; the ends of a ring are on one rank.
#[test]
fn features_of_agents_far_apart_are_refused() {
    if !has_device() {
        return;
    }
    let ring = [("network.kind", "ring"), ("world.rows", "20"), ("world.columns", "20")];
    let config = on_device(&linear("wireless", &ring));
    let refused = crew(2, |peers| Session::distributed(&config, peers).err().map(|error| error.to_string()));
    let is_clear =
        |message: &String| message.contains("policy.kind") && message.contains("this rank's share");
    assert!(refused.iter().all(|message| message.as_ref().is_some_and(is_clear)), "{refused:?}");
}

/// Queues of the users at one end have room for more packets, so their networks see more rows.
#[test]
fn networks_of_unequal_sizes_are_refused() {
    let deadline = "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3]";
    let sets = [("world.rows", "8"), ("world.columns", "2"), ("world.deadline", deadline)];
    let config = Config::preset("paper/wireless").unwrap().with_all(sets).unwrap();
    let config = on_device(&config.with("constraint.0.allow_infeasible", "true").unwrap());
    let refused = crew(2, |peers| Session::distributed(&config, peers).err().map(|error| error.to_string()));
    let is_clear = |message: &String| message.contains("policy.kind: networks of unequal sizes");
    assert!(refused.iter().all(|message| message.as_ref().is_some_and(is_clear)), "{refused:?}");
}

/// What fails on one rank fails on all, with the words of one.
#[test]
fn a_failure_on_a_card_is_everybodys() {
    if !has_device() {
        return;
    }
    let sets = [
        ("world.n", "20"),
        ("dual.mu_max", "inf"),
        ("dual.eta_mu", "1e308"),
        ("constraint.0.scale", "1e10"),
        ("constraint.0.at_least", "6.9e9"),
    ];
    let config = on_device(&small(&sets));
    let failure = |mut session: Session| loop {
        match session.advance() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it should fail"),
            Err(error) => break error.to_string(),
        }
    };
    let alone = failure(Session::new(&config).unwrap());
    let found = crew(3, |peers| failure(Session::distributed(&config, peers).unwrap()));
    assert_eq!(found, vec![alone; 3]);
}

/// Where `auto` leaves the work to the processors, they do what they do without it.
#[test]
fn ranks_that_leave_it_to_the_processor() {
    let config =
        small(&[("world.n", "23"), ("kappa_q", "2"), ("iterations", "3"), ("evaluation.episodes", "5")]);
    let folder = tempfile::tempdir().unwrap();
    let [one, path] = ["one", "parts"].map(|name| folder.path().join(name));
    whole(&config, &one);
    parts(&config.with("device", "auto").unwrap(), &path, 3, usize::MAX);
    assert_same(&one, &path, "auto");
}
