//! Every world keeps the contract of `World`: laws, locality, sizes.

use std::ops::Range;

use crate::support::{REFERENCES, Reference};
use phalanx::base::stream::{Place, Purpose, Stream};
use phalanx::distributed::Halo;
use phalanx::graph::Graph;
use phalanx::policy::{Parameterisation, Tabular};
use phalanx::sample::rollout::{Request, StartFrom, simulate};
use phalanx::world::Trajectory;
use phalanx::world::{
    Channel, Epidemic, EpidemicSpec, Evolution, Factored, Line, Start, Table, Wireless, WirelessSpec, World,
    check,
};

pub fn worlds() -> Vec<(String, Box<dyn World>)> {
    let mut worlds: Vec<(String, Box<dyn World>)> = Vec::new();
    for (n, start, mixing) in
        [(2, Start::Ones, 0.0), (3, Start::Zeros, 0.3), (10, Start::Uniform, 0.0), (100, Start::Uniform, 0.1)]
    {
        worlds.push((format!("line {n} {start:?} {mixing}"), Box::new(Line::new(n, start, mixing).unwrap())));
    }
    let rewired = Line::new(9, Start::Uniform, 0.0).unwrap().with_graph(Graph::grid(3, 3).unwrap());
    worlds.push(("line on a grid of links".into(), Box::new(rewired)));
    for text in ["", "rows = 3\ncolumns = 2\ndeadline = [1, 2, 3, 4, 5, 8]\narrival = { low = 0, high = 1 }"]
    {
        let spec: WirelessSpec = toml::from_str(text).unwrap();
        worlds.push((format!("wireless {text}"), Box::new(Wireless::new(&spec).unwrap())));
    }
    let networks = [
        ("one", Graph::line(1)),
        ("grid", Graph::grid(4, 5)),
        ("small world", Graph::small_world(60, 6, 0.2, 1)),
        ("scale-free", Graph::scale_free(300, 3, 1)),
        ("isolated", Graph::erdos_renyi(40, 0.01, 1)),
    ];
    for (name, network) in networks {
        for text in
            ["", "model = 'sirs'\nimport = 0\nwaning = 1", "model = 'sirs'\nprotection = 1\ninfection = 1"]
        {
            let spec: EpidemicSpec = toml::from_str(text).unwrap();
            let world = Epidemic::new(&spec, network.as_ref().unwrap().clone()).unwrap();
            worlds.push((format!("epidemic {name} {text}"), Box::new(world)));
        }
    }
    worlds.push(("unequal table".into(), Box::new(unequal_table())));
    for name in REFERENCES {
        worlds.push((name.into(), Box::new(Reference::read(name).table)));
    }
    worlds
}

/// 150 agents of unequal sizes, the largest allowed among them; some without parents, some with distant ones.
fn unequal_table() -> Table {
    let n = 150;
    let states: Vec<usize> = (0..n).map(|i| if i == 7 { 256 } else { 1 + i % 4 }).collect();
    let actions: Vec<usize> = (0..n).map(|i| if i == 9 { 256 } else { 1 + i % 3 }).collect();
    let parents: Vec<Vec<usize>> = (0..n)
        .map(|i| match i {
            7 | 9 => vec![i],
            _ if i % 5 == 4 => vec![],
            _ if i % 5 == 3 => vec![i / 2, i],
            _ => vec![i],
        })
        .collect();
    let transition = (0..n)
        .map(|i| {
            let rows: usize = parents[i].iter().map(|&p| states[p] * actions[p]).product();
            let law = |row: usize| {
                let weights: Vec<f64> =
                    (0..states[i]).map(|s| ((row * 7 + s * 3) % 5) as f64 + 0.1).collect();
                let total: f64 = weights.iter().sum();
                weights.into_iter().map(move |w| w / total).collect::<Vec<_>>()
            };
            (0..rows).flat_map(law).collect::<Vec<f64>>()
        })
        .collect::<Vec<_>>();
    let local: Vec<Vec<f64>> = states.iter().map(|&s| vec![1.0 / s as f64; s]).collect();
    let model = serde_json::json!({
        "n": n, "state_sizes": states, "action_sizes": actions, "parents": parents, "transition": transition,
        "edges": (1..n).map(|i| (i - 1, i)).collect::<Vec<_>>(), "rho": {"kind": "product", "local": local},
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.json");
    std::fs::write(&path, model.to_string()).unwrap();
    Table::read(&path).unwrap()
}

#[test]
fn all_worlds_keep_the_contract() {
    for (name, world) in worlds() {
        check(&*world).unwrap_or_else(|broken| panic!("{name}: {broken}"));
    }
}

/// `check` itself must notice broken promises.
#[test]
fn a_world_that_looks_beyond_its_parents_is_caught() {
    #[derive(Debug)]
    struct Nosy(Line);
    impl World for Nosy {
        fn graph(&self) -> &Graph {
            self.0.graph()
        }
        fn states(&self, agent: usize) -> usize {
            self.0.states(agent)
        }
        fn actions(&self, agent: usize) -> usize {
            self.0.actions(agent)
        }
        fn evolution(&self) -> Evolution<'_> {
            Evolution::Factored(self)
        }
    }
    impl Factored for Nosy {
        fn parents(&self, agent: usize) -> Vec<u32> {
            self.0.parents(agent)
        }
        fn transition(&self, agent: usize, states: &[u8], actions: &[u8], law: &mut [f64]) {
            self.0.transition(agent, states, actions, law);
        }
        fn start(&self, stream: &Stream, place: Place, agents: std::ops::Range<usize>, states: &mut [u8]) {
            self.0.start(stream, place, agents, states);
        }
        fn step(
            &self,
            agents: std::ops::Range<usize>,
            states: &[u8],
            actions: &[u8],
            draws: &[u32],
            next: &mut [u8],
        ) {
            self.0.step(agents.clone(), states, actions, draws, next);
            if agents.contains(&3) && states[0] == 1 {
                next[3 - agents.start] ^= 1;
            }
        }
    }
    let broken = check(&Nosy(Line::new(6, Start::Uniform, 0.0).unwrap())).unwrap_err();
    assert!(broken.contains("agent 3"), "{broken}");
}

#[test]
fn rewards_out_of_range_or_order_are_caught() {
    #[derive(Debug)]
    struct Generous(Wireless, [Channel; 1], f32);
    impl World for Generous {
        fn graph(&self) -> &Graph {
            self.0.graph()
        }
        fn states(&self, agent: usize) -> usize {
            self.0.states(agent)
        }
        fn actions(&self, agent: usize) -> usize {
            self.0.actions(agent)
        }
        fn channels(&self) -> &[Channel] {
            &self.1
        }
        fn evolution(&self) -> Evolution<'_> {
            Evolution::Factored(self)
        }
    }
    impl Factored for Generous {
        fn parents(&self, agent: usize) -> Vec<u32> {
            self.0.parents(agent)
        }
        fn transition(&self, agent: usize, states: &[u8], actions: &[u8], law: &mut [f64]) {
            self.0.transition(agent, states, actions, law);
        }
        fn start(&self, stream: &Stream, place: Place, agents: Range<usize>, states: &mut [u8]) {
            self.0.start(stream, place, agents, states);
        }
        fn step(&self, agents: Range<usize>, states: &[u8], actions: &[u8], draws: &[u32], next: &mut [u8]) {
            self.0.step(agents, states, actions, draws, next);
        }
        fn sample_rewards(
            &self,
            channel: usize,
            agents: Range<usize>,
            states: &[u8],
            actions: &[u8],
            draws: &[u32],
            rewards: &mut [f32],
        ) {
            let first = agents.start;
            self.0.sample_rewards(channel, agents, states, actions, draws, rewards);
            rewards[0] = if first == 0 { self.2 } else { 0.5 };
        }
    }
    let broken = |range, pays| {
        let wireless = Wireless::new(&WirelessSpec::default()).unwrap();
        check(&Generous(wireless, [Channel::sampled("reward", range)], pays)).unwrap_err()
    };
    assert!(broken([0.0, 1.0], 1.5).contains("agent 0 earns 1.5, not 0 to 1"));
    assert!(broken([0.0, 1.0], 0.5).contains("split"));
    assert!(broken([1.0, 0.0], 0.5).contains("[1, 0] is no range"));
}

/// The line written out as a table makes the same trajectories, draw for draw.
#[test]
fn line_and_its_table_are_one_world() {
    let table = Reference::read("paper_line5").table;
    let line = Line::new(5, Start::Uniform, 0.0).unwrap();
    let stream = Stream::new(12);
    let run = |world: &dyn World| {
        let policy = Tabular::new(world, 1, Parameterisation::Softmax, 1.0, &stream).unwrap();
        let mut trajectories = [Trajectory::new(5, 300)];
        let request = Request {
            place: Place { purpose: Purpose::Batch, iteration: 0, trajectory: 0 },
            start_purpose: Purpose::BatchStart,
            start: StartFrom::World,
        };
        let halo = Halo::single(world.graph().agents());
        simulate(world, &policy, &stream, &[request], &mut trajectories, &halo).unwrap();
        trajectories
    };
    assert_eq!(run(&line), run(&table));
}

/// The same model as TOML.
#[test]
fn json_and_toml_models_are_the_same() {
    let reference = Reference::read("line4_mixed_utilities");
    let model: serde_json::Value = reference.input("model").clone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.toml");
    std::fs::write(&path, toml::to_string(&model).unwrap()).unwrap();
    let table = Table::read(&path).unwrap();
    let mut laws = [vec![0.0; 3], vec![0.0; 3]];
    for (world, law) in [&reference.table, &table].into_iter().zip(&mut laws) {
        world.transition(1, &[1, 2, 0], &[1, 0, 2], law);
    }
    assert_eq!(laws[0], laws[1]);
    check(&table).unwrap();
}
