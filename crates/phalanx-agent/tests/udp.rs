//! Agents and their world over loopback: do they act as the policy says, whatever strangers send, and whoever
//! is late?

use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use phalanx_agent::addresses::Addresses;
use phalanx_agent::conductor::Conductor;
use phalanx_agent::counts::Counts;
use phalanx_agent::message::{self, Clock, Header, Kind, WORLD};
use phalanx_agent::policy::{AgentPolicy, FORMAT, Policies, Rule, VERSION};
use phalanx_agent::program::bind;
use phalanx_agent::udp::{Pace, work};
use phalanx_agent::{Agent, draw};

const SEED: u64 = 4;
const SILENCE: Duration = Duration::from_secs(20);

/// Three agents in a line. Each does what its members' states, read as digits, say, modulo 5.
fn line() -> Policies {
    let neighbours = [vec![1], vec![0, 2], vec![1]];
    let members = [vec![0, 1], vec![0, 1, 2], vec![1, 2]];
    let agent = |i: usize| {
        let count = members[i].len();
        let law = |joint: usize| (0..5).map(|a| f64::from(u8::from(a == joint % 5))).collect();
        let probabilities = (0..3_usize.pow(count as u32)).map(law).collect();
        AgentPolicy {
            agent: i as u32,
            neighbours: neighbours[i].clone(),
            members: members[i].clone(),
            states: vec![3; count],
            usual: vec![2; count],
            actions: 5,
            rule: Rule::Table { probabilities },
        }
    };
    let agents = (0..3).map(agent).collect();
    Policies { format: FORMAT.into(), version: VERSION, kappa: 1, networks: Vec::new(), agents }
}

fn expected(states: [u8; 3]) -> [u8; 3] {
    let [a, b, c] = states;
    [3 * a + b, 9 * a + 3 * b + c, 3 * b + c].map(|joint| joint % 5)
}

fn states_at(step: u32) -> [u8; 3] {
    [step % 3, step / 3 % 3, step / 9 % 3].map(|state| state as u8)
}

fn loopback() -> (UdpSocket, SocketAddr) {
    let socket = bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// The world's socket, those of the three agents, and where they are.
fn sockets() -> (UdpSocket, Vec<UdpSocket>, Addresses) {
    let mut addresses = Addresses::default();
    let (world, address) = loopback();
    addresses.add(WORLD, address).unwrap();
    let agents = (0..3).map(|i| {
        let (socket, address) = loopback();
        addresses.add(i, address).unwrap();
        socket
    });
    let agents = agents.collect();
    (world, agents, addresses)
}

fn start(i: u32, socket: UdpSocket, addresses: &Addresses, pace: Pace) -> thread::JoinHandle<Counts> {
    let addresses = addresses.clone();
    thread::spawn(move || {
        let mut agent = Agent::new(&line(), i, SEED).unwrap();
        work(&mut agent, &socket, &addresses, pace, SILENCE).unwrap()
    })
}

#[test]
fn nothing_that_strangers_send_is_read() {
    let (world, agents, addresses) = sockets();
    let threads: Vec<_> =
        (0..).zip(agents).map(|(i, socket)| start(i, socket, &addresses, Pace::LockStep)).collect();
    let (stranger, _) = loopback();
    let mut conductor = Conductor::new(world, &line(), &addresses, Pace::LockStep, SILENCE).unwrap();
    let run = line().checksum();
    let (mut letter, mut actions) = (Vec::new(), [9; 3]);
    for step in 0..300 {
        // What the world and a neighbour might have said of this step and of the next, with other states.
        for (kind, sender, ahead, about) in [
            (Kind::Sensor, WORLD, 0, 1),
            (Kind::Sensor, WORLD, 1, 1),
            (Kind::States, 0, 0, 0),
            (Kind::States, 2, 1, 2),
        ] {
            let clock = Clock { episode: 0, step: step + ahead };
            let header = Header { kind, wants_answer: true, round: 1, run, sender, clock };
            message::encode(&header, std::iter::once((about, (states_at(step)[0] + 1) % 3)), &mut letter);
            stranger.send_to(&letter, addresses.of(1).unwrap()).unwrap();
        }
        // A forged action.
        let clock = Clock { episode: 0, step };
        let header = Header { kind: Kind::Action, wants_answer: false, round: 0, run, sender: 1, clock };
        message::encode(&header, std::iter::once((1, 4)), &mut letter);
        stranger.send_to(&letter, addresses.of(WORLD).unwrap()).unwrap();
        conductor.step(clock, &states_at(step), &mut actions).unwrap();
        assert_eq!(actions, expected(states_at(step)), "step {step}");
    }
    let told = conductor.farewell().unwrap();
    let counts: Vec<Counts> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(counts[1].foreign, 4 * 300);
    assert_eq!((counts[0].foreign, counts[2].foreign, conductor.counts.foreign), (0, 0, 300));
    assert!(told.iter().all(Option::is_some));
}

#[test]
fn lock_step_waits_for_who_is_late() {
    let (world, agents, addresses) = sockets();
    let mut sockets: Vec<Option<UdpSocket>> = agents.into_iter().map(Some).collect();
    // What is sent to it is lost until it is there.
    let place = addresses.of(1).unwrap();
    drop(sockets[1].take());
    let others: Vec<_> = [0, 2]
        .map(|i| start(i, sockets[i as usize].take().unwrap(), &addresses, Pace::LockStep))
        .into_iter()
        .collect();
    let late = {
        let addresses = addresses.clone();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(150));
            start(1, bind(place).unwrap(), &addresses, Pace::LockStep).join().unwrap()
        })
    };
    let mut conductor = Conductor::new(world, &line(), &addresses, Pace::LockStep, SILENCE).unwrap();
    let mut actions = [9; 3];
    for step in 0..50 {
        conductor.step(Clock { episode: 0, step }, &states_at(step), &mut actions).unwrap();
        assert_eq!(actions, expected(states_at(step)), "step {step}");
    }
    conductor.farewell().unwrap();
    let resent: u64 = others.into_iter().map(|thread| thread.join().unwrap().resent).sum();
    assert!(resent > 0 && conductor.counts.resent > 0);
    late.join().unwrap();
}

#[test]
fn real_time_does_without_who_is_silent() {
    let (world, agents, addresses) = sockets();
    let pace = Pace::RealTime { deadline: Duration::from_millis(15) };
    // Nobody listens at the last one's address.
    let mut threads = Vec::new();
    let mut silent = None;
    for (i, socket) in (0..).zip(agents) {
        if i < 2 {
            threads.push(start(i, socket, &addresses, pace));
        } else {
            silent = Some(socket);
        }
    }
    let mut conductor = Conductor::new(world, &line(), &addresses, pace, SILENCE).unwrap();
    let mut actions = [9; 3];
    for step in 0..20 {
        conductor.step(Clock { episode: 0, step }, &states_at(step), &mut actions).unwrap();
        let [a, b, _] = states_at(step);
        // Agent 1 takes the silent one to be in its usual state.
        let [_, with_usual, _] = expected([a, b, 2]);
        if conductor.missed == u64::from(step) + 1 {
            assert_eq!(actions, [expected([a, b, 0])[0], with_usual, 0], "step {step}");
        }
    }
    assert!(conductor.missed >= 20);
    conductor.farewell().unwrap();
    let counts: Vec<Counts> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(counts[1].incomplete > 10, "{counts:?}");
    drop(silent);
}

#[test]
fn draws_decide_between_actions() {
    let mut policies = line();
    for agent in &mut policies.agents {
        let Rule::Table { probabilities } = &mut agent.rule else { continue };
        probabilities.iter_mut().for_each(|row| row.fill(0.2));
    }
    let mut agent = Agent::new(&policies, 0, SEED).unwrap();
    let mut seen = [0; 5];
    for step in 0..500 {
        agent.observe(Clock { episode: 3, step }, 0);
        let action = agent.act_now().unwrap();
        let draw = f64::from(draw::action_draw(SEED, 3, 0, step)) / f64::from(draw::DRAW_RANGE);
        assert_eq!(action, (5.0 * draw) as u8);
        seen[usize::from(action)] += 1;
    }
    assert!(seen.iter().all(|&count| count > 60), "{seen:?}");
}
