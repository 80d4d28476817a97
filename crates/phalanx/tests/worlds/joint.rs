//! Worlds that are simulated whole, on one that can be worked out by hand: the corridor of
//! `support::corridor`.

use crate::support::corridor::{Corridor, Flaw, PRIZES, SQUARES, configured};
use phalanx::Ragged;
use phalanx::base::stream::{Place, Purpose, Stream};
use phalanx::distributed::Halo;
use phalanx::policy::observation::{Inputs, ObservationEncoder, Widths};
use phalanx::policy::{NeuralPolicy, Policy, RulePolicy, Tabular};
use phalanx::run::{Config, Evaluator, Session};
use phalanx::sample::rollout::{Request, StartFrom, simulate};
use phalanx::world::Trajectory;
use phalanx::world::{Joint, Pistonball, PistonballSpec, ScriptedPolicy, World, check};

fn requests(count: u32) -> Vec<Request> {
    let request = |trajectory| Request {
        place: Place { purpose: Purpose::Batch, iteration: 3, trajectory },
        start_purpose: Purpose::BatchStart,
        start: StartFrom::World,
    };
    (0..count).map(request).collect()
}

/// Both agents act 1 with a probability that is the same everywhere.
fn coin(world: &Corridor, p: f64) -> Tabular {
    let law = [1.0 - p, p].repeat(usize::from(SQUARES));
    Tabular::scripted(world, Ragged::from_rows([law.clone(), law])).unwrap()
}

/// Goes on at every second step.
#[derive(Debug)]
struct EverySecond;

impl ScriptedPolicy for EverySecond {
    fn act(&self, _agent: usize, _state: u8, shared: &[f32]) -> u8 {
        u8::from(shared[1] % 2.0 == 1.0)
    }
}

/// Plays the recorded actions again and compares everything that was recorded.
fn assert_played(world: &Corridor, stream: &Stream, request: &Request, room: usize, found: &Trajectory) {
    let start = Place { purpose: request.start_purpose, ..request.place };
    let mut episode = world.begin(stream, start);
    let (mut states, mut shared, mut rewards) = ([255; 2], [f32::NAN; 2], [f32::NAN; 2]);
    for k in 0..found.steps() {
        episode.observe(&mut states, &mut shared);
        let actions = [0, 1].map(|i| found.actions(i)[k]);
        let ended = episode.step(&actions, &[0; 2], &mut rewards);
        assert_eq!(states, [0, 1].map(|i| found.states(i)[k]));
        assert_eq!(shared, found.global_state(k));
        assert_eq!(rewards, [0, 1].map(|i| found.rewards(0, i)[k]));
        assert_eq!(ended, found.ended() && k + 1 == found.steps());
    }
    assert!(found.ended() || found.steps() == room);
    assert_eq!(found.transitions(), if found.ended() { found.steps() } else { room - 1 });
    for i in 0..2 {
        let lengths = [found.states(i).len(), found.actions(i).len(), found.rewards(0, i).len()];
        assert_eq!(lengths, [found.steps(); 3]);
    }
}

/// The trajectories are used again and again, so that longer episodes lie behind shorter ones.
#[test]
fn every_policy_is_simulated_to_the_end_or_to_the_last_step() {
    let world = Corridor::new(Flaw::None);
    let widths = Widths { embedding: 3, row_hidden: 3, hidden: vec![5] };
    let stream = Stream::new(8);
    let policies: [(&str, Box<dyn Policy>); 5] = [
        ("stays", Box::new(coin(&world, 0.0))),
        ("goes", Box::new(coin(&world, 1.0))),
        ("fair", Box::new(coin(&world, 0.5))),
        ("every second", Box::new(RulePolicy::new(&world, Box::new(EverySecond)))),
        ("network", Box::new(NeuralPolicy::new(&world, 1, &widths, 1.0, &stream).unwrap())),
    ];
    let rooms = [9, 1, 2, 3, 4, 5, 6, 7, 8, 30];
    let mut trajectories: Vec<Trajectory> =
        rooms.iter().map(|&room| Trajectory::for_world(&world, room)).collect();
    let (requests, halo) = (requests(10), Halo::single(world.graph().agents()));
    for (name, policy) in &policies {
        simulate(&world, &**policy, &stream, &requests, &mut trajectories, &halo).unwrap();
        for ((request, &room), found) in requests.iter().zip(&rooms).zip(&trajectories) {
            assert_played(&world, &stream, request, room, found);
            let way = usize::from(SQUARES - found.states(0)[0]);
            let length = match *name {
                "stays" => usize::MAX,
                "goes" => way,
                // Nothing happens at steps 0, 2, …
                "every second" => 2 * way,
                _ => continue,
            };
            assert_eq!((found.steps(), found.ended()), (length.min(room), length <= room), "{name}, {room}");
            if found.ended() {
                assert_eq!([0, 1].map(|i| found.rewards(0, i)[length - 1]), PRIZES);
            }
        }
        assert!(*name == "stays" || trajectories.iter().any(Trajectory::ended), "{name}");
    }
    let starts: Vec<u8> = trajectories.iter().map(|t| t.states(0)[0]).collect();
    assert!(starts.contains(&0) && starts.contains(&1), "{starts:?}");
}

/// A fair coin each moves on with probability p = ¼: with d = 1/(1 − (1−p)γ) and a = pγd, a square is left
/// after being worth d, and the next one reached a times.
#[test]
fn evaluation_finds_the_values_of_a_fair_coin() {
    let gamma: f64 = 0.9;
    let sections = "[[constraint]]\nkind = \"state_entropy\"\nat_least = 0.1\n[evaluation]\nepisodes = 20000";
    let config = configured(&format!("gamma = {gamma}\nhorizon = 150"), sections);
    let found = Evaluator::scripted(&config, "uniform").unwrap().evaluate().unwrap();
    // Everybody arrives.
    assert!((found.return_.unwrap() - 0.75).abs() < 1e-9, "{found:?}");
    let d = 1.0 / (1.0 - 0.75 * gamma);
    let a = 0.25 * gamma * d;
    let value = 0.75 * (a.powi(3) + a.powi(2)) / 2.0 / gamma;
    assert!((found.objective - (1.0 - gamma) * value).abs() < 0.01 * (1.0 - gamma) * value, "{found:?}");
    let squares = [0.5, (1.0 + a) / 2.0, (a + a * a) / 2.0];
    let total: f64 = squares.iter().sum();
    let entropy: f64 = squares.iter().map(|x| -x / total * (x / total).ln()).sum();
    for i in 0..2 {
        assert!((found.values.row(i)[0] - entropy).abs() < 0.01, "{:?} is not {entropy}", found.values);
    }
}

fn training(critic: &str, seed: u64) -> Config {
    let keys = format!("seed = {seed}\niterations = 4\ngamma = 0.9\nhorizon = 6\nbatch = 3\nkappa = 1");
    configured(&keys, &format!("[policy]\nkind = \"softmax\"\n[critic]\n{critic}"))
}

/// Where episodes end early, others make up for what is missing, until there are K transitions.
#[test]
fn critics_learn_from_k_transitions_however_long_episodes_are() {
    for (critic, episode) in [
        ("kind = \"td\"", 0),
        ("kind = \"lstd\"", 0),
        ("kind = \"linear\"\non = \"chain\"", 0),
        ("kind = \"linear\"\non = \"chain\"\nepisode = 4", 4),
        ("kind = \"network\"\non = \"chain\"\nminibatch = 8\nhidden = [4]", 0),
        ("kind = \"network\"\non = \"chain\"\nminibatch = 8\nhidden = [4]\nepisode = 2", 2),
    ] {
        let by = if critic.contains("\"td\"") { 1 } else { 7 };
        for steps in (1usize..30).step_by(by).chain([200]) {
            let length = if episode == 0 { steps } else { episode.min(steps) };
            // The last chain is as long as the others.
            let wanted = steps.div_ceil(length) * length;
            for seed in 0..4 {
                let name = format!("{critic}, {steps} steps, seed {seed}");
                let mut session =
                    Session::new(&training(&format!("{critic}\nsteps = {steps}"), seed)).unwrap();
                let mut before = 0;
                while session.advance().unwrap().is_some() {
                    let last = session.algorithm().last().unwrap();
                    let (batch, evaluation) = last.trajectories.split_at(3);
                    let transitions: Vec<usize> = evaluation.iter().map(Trajectory::transitions).collect();
                    assert_eq!(transitions.iter().sum::<usize>(), wanted, "{name}: {transitions:?}");
                    let whole = |t: &Trajectory| t.ended() || t.transitions() == length;
                    let (_, others) = evaluation.split_last().unwrap();
                    assert!(others.iter().all(whole) && !transitions.contains(&0), "{name}: {transitions:?}");
                    // No more is simulated than twice what is kept.
                    let lived: usize = batch.iter().map(Trajectory::steps).sum();
                    let counted = session.algorithm().progress().agent_steps - before;
                    let least = 2 * (lived + wanted) as u64;
                    assert!(
                        (least..=least + 2 * wanted as u64).contains(&counted),
                        "{name}: {counted}, {least}"
                    );
                    before += counted;
                }
            }
        }
    }
}

#[test]
fn agent_steps_are_those_that_were_lived() {
    // What is beyond the horizon counts: it was simulated.
    for (critic, tail) in [("kind = \"montecarlo\"\nsteps = 5", 5), ("kind = \"returns\"\nhidden = [4]", 1)] {
        let mut session = Session::new(&training(critic, 1)).unwrap();
        let mut expected = 0;
        while session.advance().unwrap().is_some() {
            let trajectories = session.algorithm().last().unwrap().trajectories;
            assert_eq!(trajectories.len(), 3);
            assert!(trajectories.iter().all(|t| t.ended() || t.steps() == 6 + tail));
            expected += trajectories.iter().map(|t| 2 * t.steps() as u64).sum::<u64>();
            assert_eq!(session.algorithm().progress().agent_steps, expected);
        }
        assert!(expected < 4 * 3 * 2 * (6 + tail as u64), "no episode ended");
    }
}

#[test]
fn the_contract_is_kept_or_its_breach_is_named() {
    check(&Corridor::new(Flaw::None)).unwrap();
    for (flaw, words) in [
        (Flaw::Memory, "two episodes from one place differ at step 0"),
        (Flaw::State, "is in state 3 of 3"),
        (Flaw::Reward, "channel reward: agent 0 earns 2, not 0 to 1"),
        (Flaw::Shown, "step 0 shows [NaN"),
    ] {
        let message = check(&Corridor::new(flaw)).unwrap_err();
        assert!(message.contains(words), "{flaw:?}: {message}");
    }
}

#[test]
fn exact_computations_are_refused() {
    for (key, value) in [("algorithm", "exact"), ("critic.kind", "exact")] {
        let config = configured("kappa = 1", "").with(key, value).unwrap();
        let message = Session::new(&config).err().unwrap().to_string();
        assert!(message.starts_with("world") && message.contains("exact"), "{message}");
    }
    // Nor are they tried behind the scenes.
    assert!(Evaluator::new(&configured("kappa = 1", "")).unwrap().exact().unwrap().is_none());
}

/// Always going on earns ¾ on average, after 2 or 3 steps.
#[test]
fn every_critic_learns_to_go() {
    let gamma: f64 = 0.9;
    let horizon = 10;
    let mass: f64 = (0..horizon).map(|k| gamma.powi(k)).sum();
    let best = 0.75 * (gamma + gamma * gamma) / 2.0 / mass;
    for critic in [
        "kind = \"returns\"\nhidden = [8]\nlearning_rate = 0.01\nminibatch = 64\npasses = 4",
        "kind = \"montecarlo\"\nsteps = 5",
        "kind = \"network\"\nhidden = [16]\nlearning_rate = 0.01\nminibatch = 32\npasses = 30\nsteps = 200\noptimizer = \"adam\"",
        "kind = \"td\"\nsteps = 200\nstep = \"constant\"\neta_q = 0.3\nstart = \"warm\"",
        "kind = \"lstd\"\nsteps = 200",
    ] {
        let keys = format!("iterations = 60\ngamma = {gamma}\nhorizon = {horizon}\nbatch = 8\nkappa = 1");
        let sections = format!("[policy]\nkind = \"softmax\"\n[actor]\neta_theta = 0.1\n[critic]\n{critic}");
        let mut session = Session::new(&configured(&keys, &sections)).unwrap();
        let before = session.evaluate().unwrap().objective;
        while session.advance().unwrap().is_some() {}
        let after = session.evaluate().unwrap();
        assert!(before < 0.5 * best, "{before}, best {best}");
        assert!(after.objective > 0.95 * best, "{critic}: {before} → {}, best {best}", after.objective);
        assert!(after.return_.unwrap() > 0.745, "{critic}: {:?}", after.return_);
    }
}

/// A policy that is shown what a network reads, without the episode around it, acts the same.
#[test]
fn rows_are_enough_to_act_on() {
    let world = Pistonball::new(&PistonballSpec::default()).unwrap();
    let stream = Stream::new(3);
    let widths = Widths { embedding: 4, row_hidden: 8, hidden: vec![16] };
    let policy = NeuralPolicy::new(&world, 2, &widths, 1.0, &stream).unwrap();
    let mut episodes = [Trajectory::for_world(&world, 12)];
    let halo = Halo::single(world.graph().agents());
    simulate(&world, &policy, &stream, &requests(1), &mut episodes, &halo).unwrap();
    for (agent, k) in [(0, 0), (4, 1), (9, 11)] {
        let groups = policy.groups();
        let mut inputs = Inputs::default();
        ObservationEncoder::new(&world, agent, groups.row(agent), false).encode_step(
            &episodes[0],
            k,
            |_| 0,
            &mut inputs,
        );
        let (mut law, mut found) = ([0.0; 3], [0.0; 3]);
        policy.law(agent, &episodes[0], k, &mut law);
        assert_eq!(policy.rows_read(agent), Some(inputs.rows.len()));
        assert!(policy.law_of_rows(agent, &inputs.rows, &mut found));
        assert_eq!(law, found);
        assert!(!policy.law_of_rows(agent, &inputs.rows[1..], &mut found));
    }
    let table = coin(&Corridor::new(Flaw::None), 0.5);
    assert!(table.rows_read(0).is_none() && !table.law_of_rows(0, &[0.0], &mut [0.0; 2]));
    assert!(!world.is_serial());
}
