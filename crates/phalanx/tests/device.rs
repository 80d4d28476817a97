//! Does a GPU do what the processor does? Here its kernels are compiled as C and run on the processor
//! (`device = "emulated"`); `cargo xtask gpu` runs the same on a card.

#[path = "device/over_ranks.rs"]
mod over_ranks;

use phalanx::algorithm::{DeviceChoice, EvaluationDevice, Summary};
use phalanx::base::fields::Field;
use phalanx::run::{Config, Evaluator, Session};

/// The device to compare with: `PHALANX_DEVICE`, or the emulation.
fn device() -> String {
    std::env::var("PHALANX_DEVICE").unwrap_or_else(|_| "emulated".into())
}

fn has_device() -> bool {
    let has = device() != "emulated" || std::process::Command::new("gcc").arg("--version").output().is_ok();
    if !has {
        eprintln!("skipped: no C compiler");
    }
    has
}

type State = Vec<(&'static str, Vec<u64>)>;

fn bits(field: &Field<'_>) -> Vec<u64> {
    match field {
        Field::Numbers(numbers) => numbers.iter().map(|x| x.to_bits()).collect(),
        Field::SingleNumbers(numbers) => numbers.iter().map(|x| u64::from(x.to_bits())).collect(),
        Field::Rows(rows) => rows.data().iter().map(|x| x.to_bits()).collect(),
        Field::SingleRows(rows) => rows.data().iter().map(|x| u64::from(x.to_bits())).collect(),
        Field::Counter(count) => vec![**count],
    }
}

/// Summaries of some iterations, and the state after them.
fn trained(config: &Config, iterations: usize) -> (Vec<Summary>, State) {
    let mut session = Session::new(config).unwrap();
    let summaries = (0..iterations).map(|_| session.advance().unwrap().unwrap()).collect();
    session.settle().unwrap();
    let state = session.fields().iter().map(|(name, field)| (*name, bits(field))).collect();
    (summaries, state)
}

fn small(settings: &[(&str, &str)]) -> Config {
    let short = [("horizon", "9"), ("batch", "3"), ("critic.steps", "40"), ("iterations", "10")];
    let short = short.into_iter().chain([("constraint.0.allow_infeasible", "true")]);
    let base = Config::preset("synthetic").unwrap().with_all(short).unwrap();
    base.with_all(settings.iter().copied()).unwrap()
}

fn assert_same(name: &str, config: &Config, iterations: usize) {
    let (cpu, before) = trained(config, iterations);
    let (card, after) = trained(&config.with("device", &device()).unwrap(), iterations);
    for (t, (cpu, card)) in cpu.iter().zip(&card).enumerate() {
        assert_eq!(cpu, card, "{name}, iteration {t}");
    }
    for ((field, cpu), (_, card)) in before.iter().zip(&after) {
        let differs = cpu.iter().zip(card).position(|(a, b)| a != b);
        assert_eq!((cpu.len(), differs), (card.len(), None), "{name}: {field}");
    }
}

#[test]
fn tables_give_the_same_bytes() {
    if !has_device() {
        return;
    }
    for (name, settings) in [
        ("as it is", &[][..]),
        ("a larger line", &[("world.n", "37"), ("world.mixing", "0.1"), ("policy.init_std", "0.5")]),
        ("no baseline", &[("actor.baseline", "none"), ("actor.optimizer", "sgd"), ("world.start", "zeros")]),
        ("mean", &[("actor.baseline", "mean"), ("actor.normalise", "true"), ("actor.entropy", "0.01")]),
        ("all actions", &[("actor.all_actions", "true"), ("actor.entropy", "0.02"), ("actor.clip", "0.01")]),
        ("far", &[("kappa", "2"), ("kappa_q", "1"), ("kappa_g", "0"), ("world.start", "ones")]),
        ("wide critics", &[("kappa", "0"), ("kappa_q", "2"), ("kappa_g", "1"), ("critic.start", "cold")]),
        (
            "the paper's scaling",
            &[("scaling", "paper"), ("dual.kind", "proximal"), ("actor.discount", "false")],
        ),
        ("the authors' scaling", &[("scaling", "authors"), ("dual.kind", "descent"), ("dual.margin", "0.1")]),
        ("averages", &[("occupancy_average", "0.5"), ("policy.box", "[-0.01, 0.01]")]),
    ] {
        assert_same(name, &small(settings), 3);
    }
}

#[test]
fn utilities_give_the_same_bytes() {
    if !has_device() {
        return;
    }
    for kind in
        ["state_entropy", "sa_entropy", "action_entropy", "action_l2sq", "action_l2", "active_l2", "l2sq"]
    {
        assert_same(kind, &small(&[("constraint.0.kind", kind), ("constraint.0.scale", "0.5")]), 2);
    }
    for preset in ["entropy", "feasibility", "apprenticeship"] {
        let short = [("horizon", "9"), ("batch", "3"), ("critic.steps", "40")];
        let config = Config::preset(preset).unwrap();
        let Ok(config) = config.with_all(short) else { panic!("{preset}") };
        assert_same(preset, &config, 2);
    }
}

#[test]
fn tiles_of_a_long_line_give_the_same_bytes() {
    if !has_device() {
        return;
    }
    let long = [("world.n", "530"), ("horizon", "40"), ("critic.steps", "70"), ("policy.init_std", "1")];
    assert_same("tiles", &small(&long), 2);
}

#[test]
fn agents_far_apart_give_the_same_bytes() {
    if !has_device() {
        return;
    }
    // The ends of a ring are neighbours: no tile of agents has all neighbours of its own.
    let ring = [("network.kind", "ring"), ("horizon", "5"), ("batch", "2"), ("critic.steps", "8")];
    for agents in ["300", "1100", "4200"] {
        let settings = [&ring[..], &[("world.n", agents), ("policy.init_std", "1")]].concat();
        assert_same(agents, &small(&settings), 1);
    }
}

/// The state of a session that trained for some iterations on one device, and went on to the end on another.
fn handed_over(config: &Config, [from, to]: [&str; 2]) -> State {
    let begin = |device: &str| Session::new(&config.with("device", device).unwrap()).unwrap();
    let (mut first, mut second) = (begin(from), begin(to));
    (0..2).for_each(|_| assert!(first.advance().unwrap().is_some()));
    first.settle().unwrap();
    let before: Vec<Vec<u64>> = first.fields().iter().map(|(_, field)| bits(field)).collect();
    let write = |fields: Vec<(&'static str, Field<'_>)>| {
        for ((_, field), bits) in fields.into_iter().zip(&before) {
            match field {
                Field::Numbers(numbers) => {
                    numbers.iter_mut().zip(bits).for_each(|(x, b)| *x = f64::from_bits(*b))
                }
                Field::Rows(rows) => {
                    rows.data_mut().iter_mut().zip(bits).for_each(|(x, b)| *x = f64::from_bits(*b))
                }
                Field::Counter(count) => *count = bits[0],
                Field::SingleNumbers(_) | Field::SingleRows(_) => unreachable!("tables have none"),
            }
        }
        Ok(())
    };
    second.restore(write).unwrap();
    while second.advance().unwrap().is_some() {}
    second.settle().unwrap();
    second.fields().iter().map(|(name, field)| (*name, bits(field))).collect()
}

#[test]
fn a_run_goes_on_elsewhere() {
    if !has_device() {
        return;
    }
    let config = small(&[("iterations", "4"), ("occupancy_average", "0.5")]);
    let whole = handed_over(&config, ["cpu", "cpu"]);
    assert_eq!(whole, trained(&config, 4).1);
    assert_eq!(whole, handed_over(&config, ["cpu", &device()]), "to the device");
    assert_eq!(whole, handed_over(&config, [&device(), "cpu"]), "from the device");
}

#[test]
fn kernels_compile_as_cuda() {
    if !phalanx_gpu::nvrtc_is_present() || !has_device() {
        return eprintln!("skipped: libnvrtc is not found");
    }
    let line = |settings: &[(&str, &str)]| small(settings);
    let wide = [("world.rows", "100"), ("world.columns", "100")];
    let configurations = [
        Config::preset("wireless").unwrap().with_all(wide).unwrap(),
        Config::preset("epidemic").unwrap(),
        linear(
            "wireless",
            &[("critic.solver", "td"), ("actor.baseline", "mean"), ("actor.all_actions", "false")],
        ),
        line(&[]),
        line(&[("world.n", "1100"), ("actor.baseline", "mean"), ("actor.entropy", "0.1")]),
        line(&[("kappa", "0"), ("kappa_q", "2"), ("kappa_g", "1")]),
    ];
    for config in configurations {
        let session = Session::new(&config.with("device", "emulated").unwrap()).unwrap();
        let kernels = session.algorithm().kernels().unwrap();
        for architecture in ["compute_80", "compute_90"] {
            phalanx_gpu::compile_ptx(kernels, architecture).unwrap();
        }
        let emulated = EvaluationDevice::new(DeviceChoice::Emulated);
        let evaluator = Evaluator::new(&config).unwrap().on_device(emulated).unwrap();
        phalanx_gpu::compile_ptx(&evaluator.kernels().unwrap().unwrap(), "compute_90").unwrap();
    }
}

/// A preset with linear policies and critics, made short.
fn linear(preset: &str, settings: &[(&str, &str)]) -> Config {
    let short = [("horizon", "7"), ("batch", "5"), ("policy.init_std", "0.3"), ("actor.entropy", "0.05")];
    let base = Config::preset(preset).unwrap().with_all(short).unwrap();
    base.with_all(settings.iter().copied()).unwrap()
}

type Settings = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Wireless networks and epidemics, in every form of features, samples, learning and baseline.
const LINEAR: &[Settings] = &[
    ("a grid", "wireless", &[("world.rows", "3"), ("world.columns", "4")]),
    (
        "queues",
        "wireless",
        &[("world.rows", "2"), ("world.columns", "3"), ("world.deadline", "[1, 2, 3, 1, 2, 3]")],
    ),
    ("far policies", "wireless", &[("world.rows", "4"), ("kappa", "2"), ("kappa_q", "1"), ("kappa_g", "0")]),
    (
        "additive",
        "wireless",
        &[("policy.features", "additive"), ("critic.features", "additive"), ("kappa_q", "2")],
    ),
    ("pairs", "wireless", &[("world.rows", "2"), ("world.columns", "2"), ("critic.features", "pair")]),
    (
        "generic features",
        "wireless",
        &[
            ("policy.world_features", "false"),
            ("critic.world_features", "false"),
            ("critic.features", "additive"),
        ],
    ),
    ("fresh equations", "wireless", &[("critic.average", "0"), ("actor.all_actions", "false")]),
    (
        "the mean",
        "wireless",
        &[("actor.baseline", "mean"), ("actor.all_actions", "false"), ("actor.normalise", "true")],
    ),
    (
        "chains",
        "wireless",
        &[("critic.on", "chain"), ("critic.steps", "70"), ("critic.episode", "30"), ("actor.clip", "0.01")],
    ),
    ("td", "wireless", &[("critic.solver", "td"), ("critic.h", "20"), ("actor.baseline", "counterfactual")]),
    ("a club", "epidemic", &[]),
    ("sirs", "epidemic", &[("world.model", "sirs"), ("kappa", "2"), ("policy.features", "additive")]),
    ("td in a club", "epidemic", &[("critic.solver", "td"), ("critic.on", "chain"), ("critic.steps", "50")]),
];

#[test]
fn linear_policies_and_critics_give_the_same_bytes() {
    if !has_device() {
        return;
    }
    for (name, preset, settings) in LINEAR {
        assert_same(name, &linear(preset, settings), 3);
    }
    // On the line there are no features of a world; tables can be the critics of linear policies.
    let policy = [("policy.kind", "linear"), ("policy.features", "pair"), ("critic.kind", "td")];
    assert_same("tables for critics", &small(&policy), 3);
}

/// Where values are not worked out ahead, the processor tells changes only.
#[test]
fn values_of_many_agents_give_the_same_bytes() {
    if !has_device() {
        return;
    }
    let wide = [("world.rows", "32"), ("world.columns", "33"), ("horizon", "6"), ("batch", "60")];
    assert_same("a large grid", &linear("wireless", &wide), 1);
}

/// Where a block cannot look at all samples at once, it goes on where it was.
#[test]
fn many_samples_give_the_same_bytes() {
    if !has_device() {
        return;
    }
    let grid = [("world.rows", "3"), ("world.columns", "4"), ("batch", "70"), ("horizon", "24")];
    assert_same("a grid", &linear("wireless", &grid), 2);
    assert_same("a club", &linear("epidemic", &[("batch", "40"), ("horizon", "80")]), 2);
}

/// Everything that an algorithm remembers, as numbers.
fn numbers(session: &mut Session) -> Vec<(&'static str, Vec<f64>)> {
    session.settle().unwrap();
    let of_field = |field: &Field<'_>| match field {
        Field::Numbers(numbers) => numbers.to_vec(),
        Field::SingleNumbers(numbers) => numbers.iter().map(|&x| f64::from(x)).collect(),
        Field::Rows(rows) => rows.data().to_vec(),
        Field::SingleRows(rows) => rows.data().iter().map(|&x| f64::from(x)).collect(),
        Field::Counter(count) => vec![**count as f64],
    };
    session.fields().iter().map(|(name, field)| (*name, of_field(field))).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// Whole iterations of networks agree, as far as rounding lets them; two runs on a device to the last bit.
fn assert_near(preset: &str, settings: &[(&str, &str)]) {
    if !has_device() {
        return;
    }
    let config = Config::preset(preset).unwrap().with_all(settings.iter().copied()).unwrap();
    let run = |device: &str| {
        let mut session = Session::new(&config.with("device", device).unwrap()).unwrap();
        let before = numbers(&mut session);
        (0..2).for_each(|_| assert!(session.advance().unwrap().is_some()));
        (before, numbers(&mut session))
    };
    let ((before, expected), (_, found)) = (run("cpu"), run(&device()));
    assert_eq!(found, run(&device()).1);
    for (((name, before), (_, expected)), (_, found)) in before.iter().zip(&expected).zip(&found) {
        // Adam turns a gradient of rounding errors into a whole step.
        let (moved, off) = (distance(before, expected), distance(expected, found));
        assert!(off <= 1e-2 * moved + 1e-12, "{preset}, {name}: moved by {moved}, off by {off}");
    }
}

#[test]
fn networks_of_symbols_agree() {
    let settings = [("horizon", "9"), ("batch", "3"), ("critic.steps", "70"), ("iterations", "10")];
    let settings = settings.into_iter().chain([("constraint.0.allow_infeasible", "true")]);
    assert_near("paper/synthetic", &settings.collect::<Vec<_>>());
}

#[test]
fn networks_and_tables_agree() {
    let short = [("horizon", "6"), ("batch", "2"), ("critic.steps", "40"), ("iterations", "10")];
    let short = short.into_iter().chain([("constraint.0.allow_infeasible", "true")]);
    let network_critic = [("critic.kind", "network"), ("critic.minibatch", "16"), ("world.n", "6")];
    assert_near("synthetic", &short.clone().chain(network_critic).collect::<Vec<_>>());
    let network_policy = [("policy.kind", "network"), ("world.n", "6")];
    assert_near("synthetic", &short.chain(network_policy).collect::<Vec<_>>());
}

#[test]
fn networks_of_rows_agree() {
    let settings = [("horizon", "5"), ("batch", "3"), ("critic.steps", "40"), ("critic.episode", "5")];
    let settings =
        settings.into_iter().chain([("world.rows", "3"), ("world.columns", "4"), ("iterations", "10")]);
    let settings = settings.chain([("constraint.0.allow_infeasible", "true"), ("critic.minibatch", "16")]);
    assert_near("paper/wireless", &settings.collect::<Vec<_>>());
}

/// Who evaluates, with so many episodes at a time.
fn evaluation_device(chunk: usize) -> EvaluationDevice {
    EvaluationDevice::new(DeviceChoice::from_name(&device()).unwrap()).in_chunks(chunk)
}

/// Everything that an assessment tells is the same, with so many episodes on the device at a time.
fn assert_same_assessment(name: &str, config: &Config, episodes: usize, chunk: usize) {
    let here = Evaluator::new(config).unwrap();
    let there = Evaluator::new(config).unwrap().on_device(evaluation_device(chunk)).unwrap();
    // Numbers are written with all digits that tell them apart.
    let told = |evaluator: &Evaluator| format!("{:?}", evaluator.assess(episodes, 7, 0.9).unwrap());
    assert_eq!(told(&there), told(&here), "{name}");
}

#[test]
fn assessments_of_tables_give_the_same_bytes() {
    if !has_device() {
        return;
    }
    let spread = ("policy.init_std", "1");
    for (name, settings) in [
        ("as it is", &[spread][..]),
        ("the paper's scaling", &[spread, ("scaling", "paper"), ("world.n", "37")]),
        ("the authors' scaling", &[spread, ("scaling", "authors"), ("kappa", "2")]),
    ] {
        assert_same_assessment(name, &small(settings), 11, 4);
    }
    for kind in ["sa_entropy", "action_entropy", "action_l2sq", "action_l2", "active_l2", "l2sq"] {
        let settings =
            [("constraint.0.kind", kind), ("constraint.0.scale", "0.5"), ("scaling", "paper"), spread];
        assert_same_assessment(kind, &small(&settings), 6, 6);
    }
    for preset in ["entropy", "feasibility", "apprenticeship"] {
        let short = [("horizon", "9"), spread];
        assert_same_assessment(preset, &Config::preset(preset).unwrap().with_all(short).unwrap(), 5, 4);
    }
}

/// Tiles, all agents of a block, and a kernel per step.
#[test]
fn assessments_of_many_agents_give_the_same_bytes() {
    if !has_device() {
        return;
    }
    let short = [("policy.init_std", "1"), ("horizon", "35"), ("scaling", "paper")];
    assert_same_assessment("tiles", &small(&[&short[..], &[("world.n", "530")]].concat()), 5, 3);
    for agents in ["300", "1100", "4200"] {
        let ring = [("network.kind", "ring"), ("horizon", "5"), ("world.n", agents)];
        assert_same_assessment(agents, &small(&[&short[..], &ring].concat()), 5, 3);
    }
}

#[test]
fn assessments_of_linear_policies_give_the_same_bytes() {
    if !has_device() {
        return;
    }
    for wanted in ["a grid", "queues", "additive", "a club", "sirs"] {
        for (name, preset, settings) in LINEAR.iter().filter(|(name, ..)| *name == wanted) {
            assert_same_assessment(name, &linear(preset, settings), 20, 12);
        }
    }
}

/// Two agents that live alone: one with so many states and four actions, one with two of each.
fn large_table(states: usize, folder: &std::path::Path) -> Config {
    let sizes = [(states, 4), (2, 2)];
    let transition = sizes.map(|(states, actions)| {
        let law = |row: usize| {
            let weights: Vec<f64> = (0..states).map(|s| ((row * 7 + s * 3) % 5) as f64 + 0.1).collect();
            let total: f64 = weights.iter().sum();
            weights.into_iter().map(move |w| w / total).collect::<Vec<_>>()
        };
        (0..states * actions).flat_map(law).collect::<Vec<f64>>()
    });
    let model = serde_json::json!({
        "n": 2, "gamma": 0.9, "state_sizes": sizes.map(|size| size.0), "action_sizes": sizes.map(|size| size.1),
        "parents": [[0], [1]], "transition": transition, "edges": [[0, 1]],
        "rho": {"kind": "product", "local": sizes.map(|(states, _)| vec![1.0 / states as f64; states])},
    });
    std::fs::write(folder.join("model.json"), model.to_string()).unwrap();
    let text = "kappa = 1\nhorizon = 20\n[world]\nkind = \"table\"\nfile = \"model.json\"\n[objective]\nkind = \"sa_entropy\"\n\
                [[constraint]]\nkind = \"action_entropy\"\nat_least = 0.1\n[policy]\ninit_std = 1.0\n";
    Config::from_toml(text, folder).unwrap()
}

/// Tables of more than 16 cells are added up step by step; rows of more than 128 have no room in a block.
#[test]
fn assessments_of_large_tables_give_the_same_bytes() {
    if !has_device() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for states in [5, 48] {
        assert_same_assessment("a large table", &large_table(states, folder.path()), 13, 8);
    }
}

#[test]
fn closing_evaluations_give_the_same_bytes() {
    if !has_device() {
        return;
    }
    for config in [small(&[]), linear("wireless", &[]), linear("epidemic", &[])] {
        let config = config.with("evaluation.episodes", "5").unwrap();
        let told = |device: &str| {
            let mut session = Session::new(&config.with("device", device).unwrap()).unwrap();
            assert!(session.advance().unwrap().is_some());
            session.settle_policy().unwrap();
            format!("{:?}", session.evaluate().unwrap())
        };
        assert_eq!(told(&device()), told("cpu"));
    }
}

/// Looks at doubled numbers of episodes; occupancies; and a flag that is set.
#[test]
fn other_evaluations_give_the_same_bytes() {
    if !has_device() {
        return;
    }
    let config = small(&[("policy.init_std", "1"), ("scaling", "paper")]);
    let evaluators = [0, 50].map(|chunk| {
        let evaluator = Evaluator::new(&config).unwrap();
        if chunk == 0 { evaluator } else { evaluator.on_device(evaluation_device(chunk)).unwrap() }
    });
    let [here, there] = evaluators.each_ref().map(|evaluator| {
        let decided = evaluator.assess_until_decided(100, 3, 0.9, |_, _| ()).unwrap();
        (format!("{decided:?}"), evaluator.occupancy(3, 2).unwrap(), evaluator.evaluate().unwrap().values)
    });
    assert_eq!(here, there);
    evaluators[1].stop_flag().store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(matches!(evaluators[1].assess(5, 1, 0.9), Err(phalanx::Error::Stopped)));
}

/// Laws of networks differ in their last digits, and draws with them once in a million times.
#[test]
fn assessments_of_networks_agree() {
    if !has_device() {
        return;
    }
    let grid = [("world.rows", "3"), ("world.columns", "4"), ("horizon", "6"), ("scaling", "paper")];
    let grid = grid.into_iter().chain([("constraint.0.allow_infeasible", "true")]);
    let config = Config::preset("paper/wireless").unwrap().with_all(grid).unwrap();
    let here = Evaluator::new(&config).unwrap();
    let there = Evaluator::new(&config).unwrap().on_device(evaluation_device(5)).unwrap();
    let [here, there] = [here, there].map(|evaluator| evaluator.assess(9, 7, 0.9).unwrap());
    let ends = |interval: phalanx::run::Interval| [interval.value, interval.lower, interval.upper];
    assert!(distance(&ends(here.objective), &ends(there.objective)) < 1e-6);
    assert!(distance(&here.returns.unwrap(), &there.returns.unwrap()) < 1e-6);
}

/// What a device cannot evaluate is refused, or left to the processor.
#[test]
fn some_evaluations_are_refused() {
    let cuda = || EvaluationDevice::new(DeviceChoice::Cuda);
    let refused = |evaluator: Evaluator| match evaluator.on_device(cuda()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("not refused"),
    };
    let config = small(&[]);
    let new = |settings: &[(&str, &str)]| Evaluator::new(&small(settings)).unwrap();
    assert!(refused(new(&[]).greedy()).contains("greedy"));
    assert!(refused(Evaluator::scripted(&config, "uniform").unwrap()).contains("scripted"));
    assert!(refused(new(&[("links.loss", "0.1")])).contains("faulty links"));
    let joint = Evaluator::new(&Config::preset("pistonball").unwrap()).unwrap();
    assert!(refused(joint).contains("joint worlds"));
    // A greedy policy is evaluated anyway where that is asked for.
    let lenient = EvaluationDevice::if_possible(DeviceChoice::Cuda);
    let evaluator = new(&[("scaling", "paper")]).greedy().on_device(lenient).unwrap();
    assert!(evaluator.assess(3, 1, 0.9).is_ok());
}
