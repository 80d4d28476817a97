//! Do agents behind faulty links act on what reached them, and learn from the same?

use phalanx::base::stream::{Place, Purpose, Stream};
use phalanx::distributed::Halo;
use phalanx::policy::observation::Widths;
use phalanx::policy::{
    Baseline, GradientInput, GradientScratch, GradientSettings, LinearPolicy, LinkSettings, LinkedPolicy,
    NeuralPolicy, Parameterisation, Policy, PolicyFeatures, Tabular,
};
use phalanx::run::{Config, Ending, Evaluator, Provenance, Registry, Run, Session};
use phalanx::sample::rollout::{Request, StartFrom, simulate};
use phalanx::world::{Line, Start, Trajectory};

const AGENTS: usize = 6;
const STEPS: usize = 12;

fn line() -> Line {
    Line::new(AGENTS, Start::Uniform, 0.1).unwrap()
}

fn links(toml: &str) -> LinkSettings {
    toml::from_str(toml).unwrap()
}

/// One policy of each kind, over two hops, far from uniform.
fn policies(world: &Line) -> Vec<Box<dyn Policy>> {
    let stream = Stream::new(3);
    vec![
        Box::new(Tabular::new(world, 2, Parameterisation::Softmax, 1.0, &stream).unwrap()),
        Box::new(LinearPolicy::new(world, 2, PolicyFeatures::Pair, true, 1.0, &stream).unwrap()),
        Box::new(NeuralPolicy::new(world, 2, &Widths::default(), 1.0, &stream).unwrap()),
    ]
}

fn behind(toml: &str, policy: Box<dyn Policy>, world: &Line) -> LinkedPolicy {
    LinkedPolicy::new(policy, &links(toml), world, 2)
}

fn place(trajectory: u32) -> Place {
    Place { purpose: Purpose::Batch, iteration: 5, trajectory }
}

fn trajectories(world: &Line, policy: &dyn Policy, count: u32) -> Vec<Trajectory> {
    let request =
        |k| Request { place: place(k), start_purpose: Purpose::BatchStart, start: StartFrom::World };
    let requests: Vec<Request> = (0..count).map(request).collect();
    let mut found = vec![Trajectory::new(AGENTS, STEPS); count as usize];
    simulate(world, policy, &Stream::new(9), &requests, &mut found, &Halo::single(AGENTS)).unwrap();
    found
}

fn rule() -> GradientSettings {
    GradientSettings {
        weights: (0..STEPS).map(|k| 0.9f64.powi(k as i32)).collect(),
        baseline: Baseline::None,
        neighbour_mean: false,
        own_share: 0.0,
        all_actions: false,
        normalise: false,
        entropy: 0.0,
    }
}

/// What an agent receives at a step: numbers that no critic has learnt.
fn value(number: usize, k: usize) -> f64 {
    ((number * 31 + k * 7) as f64 * 0.618).sin() + 0.3
}

fn gradient(policy: &dyn Policy, agent: usize, batch: &[Trajectory]) -> Vec<f64> {
    let receive = |number: usize, _: &mut Vec<u32>, out: &mut [f64]| {
        out.iter_mut().enumerate().for_each(|(k, out)| *out = value(number, k));
    };
    let rule = rule();
    let mut out = vec![0.0; policy.theta().row(agent).len()];
    let input = GradientInput { agent, batch, receive: &receive, rule: &rule };
    policy.gradient(input, &mut GradientScratch::default(), &mut out);
    out
}

fn law(policy: &dyn Policy, agent: usize, trajectory: &Trajectory, k: usize) -> Vec<f64> {
    let mut out = vec![0.0; policy.actions(agent)];
    policy.law(agent, trajectory, k, &mut out);
    out
}

/// One moment in which agents are in the given states.
fn moment(states: &[u8]) -> Trajectory {
    let mut moment = Trajectory::new(states.len(), 1);
    states.iter().enumerate().for_each(|(i, &s)| *moment.pair_mut(i, 0).0 = s);
    moment
}

#[test]
fn links_that_let_everything_through_change_nothing() {
    let world = line();
    for (policy, same) in policies(&world).into_iter().zip(policies(&world)) {
        let truth = trajectories(&world, &*policy, 5);
        let linked = behind("", same, &world);
        assert_eq!(truth, trajectories(&world, &linked, 5), "{}", policy.kind());
        for agent in 0..AGENTS {
            assert_eq!(gradient(&*policy, agent, &truth), gradient(&linked, agent, &truth));
        }
    }
}

/// Σ w·value·ln π(a | what was known), derived by central differences. Acting looks for the newest message
/// from the present backwards, learning walks forwards: they must agree for this to come out.
#[test]
fn gradients_are_those_of_the_laws_that_agents_acted_by() {
    let world = line();
    for settings in ["loss = 0.4", "loss = 0.3\ndelay = 2\nmax_age = 3\nsilent = [1]"] {
        // Networks compute in single precision, which is too coarse for differences.
        for policy in policies(&world).into_iter().take(2) {
            let mut linked = behind(settings, policy, &world);
            linked.set_usual_states(vec![1, 0, 1, 1, 0, 1]);
            let batch = trajectories(&world, &linked, 4);
            for agent in [0, 2] {
                let found = gradient(&linked, agent, &batch);
                let mut climbed = |at: usize, by: f64| {
                    linked.theta_mut().row_mut(agent)[at] += by;
                    linked.refresh();
                    let step = |n: usize, k: usize| {
                        let taken = usize::from(batch[n].actions(agent)[k]);
                        rule().weights[k] * value(n, k) * law(&linked, agent, &batch[n], k)[taken].ln()
                    };
                    let sum: f64 =
                        (0..batch.len()).map(|n| (0..STEPS).map(|k| step(n, k)).sum::<f64>()).sum();
                    linked.theta_mut().row_mut(agent)[at] -= by;
                    linked.refresh();
                    sum
                };
                for (at, found) in found.into_iter().enumerate() {
                    let slope = (climbed(at, 1e-5) - climbed(at, -1e-5)) / 2e-5;
                    assert!((slope - found).abs() < 1e-6, "{settings}: {at}: {found} should be {slope}");
                }
            }
        }
    }
}

#[test]
fn if_everything_is_lost_agents_see_their_own_state_and_usual_ones() {
    let (world, usual) = (line(), [1, 0, 1, 1, 0, 1]);
    for (policy, same) in policies(&world).into_iter().zip(policies(&world)) {
        let mut linked = behind("loss = 1", same, &world);
        linked.set_usual_states(usual.to_vec());
        for trajectory in trajectories(&world, &linked, 3) {
            for (agent, k) in (0..AGENTS).flat_map(|agent| (0..STEPS).map(move |k| (agent, k))) {
                let mut seen = usual;
                seen[agent] = trajectory.states(agent)[k];
                let wanted = law(&*policy, agent, &moment(&seen), 0);
                assert_eq!(law(&linked, agent, &trajectory, k), wanted);
            }
        }
    }
}

/// In a trajectory by hand nothing is lost by chance.
#[test]
fn late_messages_silent_agents_and_old_states_by_hand() {
    let world = line();
    let mut trajectory = Trajectory::new(AGENTS, 4);
    for (k, states) in [[1, 1, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0], [1, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0]]
        .into_iter()
        .enumerate()
    {
        states.into_iter().enumerate().for_each(|(i, s)| *trajectory.pair_mut(i, k).0 = s);
    }
    // What agent 0 knows of agents 0, 1 and 2 at steps 0 to 3; 2 is silent, and usually in state 1.
    for (settings, seen) in [
        ("silent = [2]", [[1, 1, 1], [0, 1, 1], [1, 0, 1], [0, 0, 1]]),
        ("delay = 1", [[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 1]]),
        ("delay = 3\nsilent = [1]", [[1, 0, 1], [0, 0, 1], [1, 0, 1], [0, 0, 0]]),
    ] {
        let (policy, same) = (policies(&world).swap_remove(0), policies(&world).swap_remove(0));
        let mut linked = behind(settings, same, &world);
        linked.set_usual_states(vec![0, 0, 1, 0, 0, 0]);
        for (k, [a, b, c]) in seen.into_iter().enumerate() {
            let wanted = law(&*policy, 0, &moment(&[a, b, c, 0, 0, 0]), 0);
            assert_eq!(law(&linked, 0, &trajectory, k), wanted, "{settings}: step {k}");
        }
    }
}

/// Without memory (`max_age` = 0) what is known of one agent is its state or the usual one.
#[test]
fn messages_arrive_as_often_as_the_links_on_their_way_let_them() {
    let world = line();
    let policy = policies(&world).swap_remove(0);
    let linked = behind("loss = 0.3\nmax_age = 0", policies(&world).swap_remove(0), &world);
    for (sender, expected) in [(3, 0.7), (4, 0.49)] {
        let mut states = [0; AGENTS];
        states[sender] = 1;
        let heard = law(&*policy, 2, &moment(&states), 0);
        let mut arrived = 0;
        for number in 0..2000 {
            let mut trajectory = Trajectory::new(AGENTS, 5);
            (0..5).for_each(|k| *trajectory.pair_mut(sender, k).0 = 1);
            trajectory.set_origin(Stream::new(1), place(number));
            arrived += (0..5).filter(|&k| law(&linked, 2, &trajectory, k) == heard).count();
        }
        let share = arrived as f64 / 10_000.0;
        assert!((share - expected).abs() < 0.015, "{sender}: {share} should be {expected}");
    }
}

fn config(sets: &[(&str, &str)]) -> Config {
    let small = [("iterations", "4"), ("evaluation.episodes", "20"), ("batch", "6"), ("links.loss", "0.3")];
    Config::preset("wireless").unwrap().with_all(small.iter().chain(sets).copied()).unwrap()
}

#[test]
fn threads_do_not_change_what_is_learnt() {
    for policy in ["linear", "network"] {
        let config = config(&[("policy.kind", policy), ("links.delay", "1"), ("links.silent", "[7]")]);
        let train = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut session = Session::new(&config).unwrap();
                while session.advance().unwrap().is_some() {}
                (session.policy().theta().clone(), session.evaluate().unwrap().return_)
            })
        };
        assert!(train(1) == train(4), "{policy}");
    }
}

/// The run's own links count, others if they are given; the usual states are those that it learnt with.
#[test]
fn a_run_is_evaluated_behind_its_own_links_or_others() {
    let folder = tempfile::tempdir().unwrap();
    let (path, registry) = (folder.path().join("run"), Registry::default());
    let session = Session::new(&config(&[])).unwrap();
    let mut run = Run::begin(session, &path, Provenance::default()).unwrap();
    assert!(matches!(run.train(&std::sync::Arc::default(), |_| ()), Ok(Ending::Finished(_))));
    let learnt = run.session().policy().usual_states().unwrap().to_vec();
    assert_eq!(Evaluator::from_run(&path, &registry).unwrap().usual_states().unwrap(), learnt);
    let open = |sets: &[(&str, &str)]| Evaluator::from_run_in(&path, &registry, sets).unwrap();
    let objective = |evaluator: &Evaluator| evaluator.assess(50, 1, 0.9).unwrap().objective.value;
    let own = open(&[]);
    assert_eq!(own.policy().usual_states(), Some(&learnt[..]));
    assert_eq!(objective(&own), objective(&open(&[("links.loss", "0.3")])));
    assert_ne!(objective(&own), objective(&open(&[("links.loss", "0.8")])));
    assert!(open(&[("links.loss", "0")]).policy().usual_states().is_none());
    // One that an earlier version finished.
    std::fs::remove_file(path.join("usual_states.json")).unwrap();
    let old = open(&[]);
    assert_eq!(old.warnings().len(), 1 + open(&[("links.loss", "0")]).warnings().len());
    assert_eq!(
        old.policy().usual_states().unwrap(),
        Evaluator::from_run(&path, &registry).unwrap().usual_states().unwrap()
    );
}

#[test]
fn what_cannot_be_behind_links_is_refused() {
    for (preset, sets, wanted) in [
        ("pistonball", &[("links.loss", "0.1")][..], "links.loss: agents of this world see more"),
        ("exact", &[("links.loss", "0.1")], "links.loss: is for training from samples"),
        ("synthetic", &[("links.silent", "[10]")], "links.silent: there is no agent 10"),
        ("synthetic", &[("links.delay", "3"), ("links.max_age", "2")], "links.max_age: 2 is below"),
    ] {
        let config = Config::preset(preset).unwrap().with_all(sets.iter().copied());
        let error = config.and_then(|config| Session::new(&config).map(|_| ())).unwrap_err();
        assert!(error.is_bad_input() && error.to_string().starts_with(wanted), "{error}");
    }
}
