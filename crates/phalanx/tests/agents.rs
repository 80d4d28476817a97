//! Do agents of their own, which hear their neighbours and nobody else, act as the evaluation does? And does
//! nothing else change what they do: messages in any order, lost, repeated, late, forged or malformed?

use std::sync::{Mutex, MutexGuard, PoisonError};

use phalanx::graph::Graph;
use phalanx::run::{Config, Evaluator, portable};
use phalanx_agent::Agent;
use phalanx_agent::agent::Received;
use phalanx_agent::counts::{Counts, Why};
use phalanx_agent::message::{self, Clock, Header, Kind, Message, WORLD};
use phalanx_agent::policy::{AgentPolicy, FORMAT, Policies, Rule, VERSION};

/// Numbers in no order.
struct Lots(u64);

impl Lots {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % count
    }
}

/// Agents that read the states of everybody within κ hops, two of them each, and do not care.
fn onlookers(graph: &Graph, kappa: usize) -> Policies {
    let groups = graph.neighbourhoods(kappa);
    let agent = |i: usize| {
        let members = groups.row(i).to_vec();
        let (states, usual) = (vec![2; members.len()], vec![0; members.len()]);
        let rule = Rule::Linear { terms: Vec::new(), weights: Vec::new() };
        let neighbours = graph.neighbours(i).to_vec();
        AgentPolicy { agent: i as u32, neighbours, members, states, usual, actions: 2, rule }
    };
    let agents = (0..graph.agents()).map(agent).collect();
    Policies { format: FORMAT.into(), version: VERSION, kappa, networks: Vec::new(), agents }
}

/// A datagram on its way.
type Letter = (usize, u32, Vec<u8>);

/// Everything that an agent has to say now, to each of its neighbours.
fn collect(agents: &mut [Agent], i: usize, letters: &mut Vec<Letter>) {
    let mut out = Vec::new();
    while agents[i].outbox(&mut out) {
        let to = agents[i].neighbours().to_vec();
        letters.extend(to.into_iter().map(|j| (j as usize, i as u32, out.clone())));
    }
}

/// One step of all agents: sensors and messages in a random order, some twice, some lost and asked for again.
fn step(agents: &mut [Agent], clock: Clock, states: &[u8], loss: usize, lots: &mut Lots) -> Vec<u8> {
    let mut letters = Vec::new();
    let mut blind: Vec<usize> = (0..agents.len()).collect();
    while let Some(last) = blind.len().checked_sub(1) {
        let i = blind.swap_remove(lots.below(last + 1));
        assert!(agents[i].observe(clock, states[i]));
        collect(agents, i, &mut letters);
        deliver(agents, &mut letters, lots.below(4), loss, lots);
    }
    loop {
        let count = letters.len();
        deliver(agents, &mut letters, count, loss, lots);
        if letters.is_empty() {
            let mut is_done = true;
            for i in 0..agents.len() {
                let Some((round, places)) = agents[i].missing() else { continue };
                let to: Vec<u32> = places.map(|place| agents[i].neighbours()[place]).collect();
                let mut out = Vec::new();
                assert!(agents[i].write_again(round, true, &mut out));
                letters.extend(to.into_iter().map(|j| (j as usize, i as u32, out.clone())));
                is_done = false;
            }
            if is_done {
                return agents.iter_mut().map(|agent| agent.act().unwrap()).collect();
            }
        }
    }
}

fn deliver(agents: &mut [Agent], letters: &mut Vec<Letter>, count: usize, loss: usize, lots: &mut Lots) {
    for _ in 0..count {
        if letters.is_empty() {
            return;
        }
        let place = lots.below(letters.len());
        let (to, from, datagram) = letters.swap_remove(place);
        if loss > 0 && lots.below(100) < loss {
            continue;
        }
        if loss > 0 && lots.below(4) == 0 {
            letters.push((to, from, datagram.clone()));
        }
        let received = agents[to].receive(Some(from), &datagram);
        if let Received::Answer { neighbour, round } = received {
            let mut out = Vec::new();
            assert!(agents[to].write_again(round, false, &mut out));
            letters.push((agents[to].neighbours()[neighbour] as usize, to as u32, out));
        }
        collect(agents, to, letters);
    }
}

#[test]
fn rounds_of_messages_give_exactly_the_neighbourhood() {
    let _alone = one_at_a_time();
    let star = Graph::from_edges(7, (1..7).map(|leaf| (0, leaf))).unwrap();
    let grid = Graph::from_edges(
        12,
        (0..12).flat_map(|i| [(i, i + 1), (i, i + 4)]).filter(|&(i, j)| j < 12 && (j == i + 4 || j % 4 != 0)),
    )
    .unwrap();
    let apart = Graph::from_edges(6, [(0, 1), (1, 2), (4, 5)]).unwrap();
    let mut lots = Lots(3);
    for graph in [Graph::ring(9).unwrap(), star, grid, apart] {
        for kappa in 0..=4 {
            for loss in [0, 30] {
                let policies = onlookers(&graph, kappa);
                let mut agents: Vec<Agent> =
                    (0..graph.agents()).map(|i| Agent::new(&policies, i as u32, 1).unwrap()).collect();
                for number in 0..3 {
                    let states: Vec<u8> = agents.iter().map(|_| lots.below(2) as u8).collect();
                    let clock = Clock { episode: 0, step: number };
                    step(&mut agents, clock, &states, loss, &mut lots);
                    for (i, agent) in agents.iter().enumerate() {
                        let within = graph.neighbourhoods(kappa);
                        let expected = within.row(i).iter().map(|&m| (m, states[m as usize]));
                        assert!(agent.known().eq(expected), "κ = {kappa}, agent {i}");
                    }
                }
                let counts = agents.iter().fold(Counts::default(), |all, agent| all.with(&agent.counts));
                assert_eq!((counts.malformed, counts.foreign), (0, 0));
                assert!(loss > 0 || counts.dropped() == 0, "{counts:?}");
            }
        }
    }
}

/// Agents that are handed nothing but their own states and their neighbours' messages.
#[test]
fn actions_are_those_of_the_evaluation_to_the_last_bit() {
    let _alone = one_at_a_time();
    for (name, kappa, loss) in [("synthetic", "1", 0), ("synthetic", "2", 20), ("wireless", "1", 20)] {
        let config = Config::preset(name).unwrap().with("policy.init_std", "1.0").unwrap();
        let evaluator = Evaluator::new(&config.with("kappa", kappa).unwrap()).unwrap();
        let policies = portable(&evaluator).unwrap();
        let text = serde_json::to_string(&policies).unwrap();
        let policies = Policies::read(&text).unwrap();
        let n = policies.agents.len();
        let mut agents: Vec<Agent> = (0..n).map(|i| Agent::new(&policies, i as u32, 9).unwrap()).collect();
        let mut lots = Lots(5);
        for k in 0..20 {
            let whole = evaluator.episode(k, 9, 9).unwrap();
            let mut episode = evaluator.stepped(k, 9).unwrap();
            for t in 0..9 {
                let clock = Clock { episode: k, step: t as u32 };
                let actions = step(&mut agents, clock, episode.states(), loss, &mut lots);
                let expected: Vec<u8> = (0..n).map(|i| whole.actions(i)[t]).collect();
                assert_eq!(actions, expected, "{name}, episode {k}, step {t}");
                episode.step(&actions);
            }
        }
    }
}

/// Tests wait for each other: one of them measures the memory of the whole process.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An agent in the middle of a step, what it would do if its neighbours' messages came, and these.
fn waiting() -> (Agent, Policies, Vec<(u32, Vec<u8>)>) {
    let config = Config::preset("wireless").unwrap().with("policy.init_std", "1.0").unwrap();
    let policies = portable(&Evaluator::new(&config).unwrap()).unwrap();
    let clock = Clock { episode: 2, step: 5 };
    let mut agent = Agent::new(&policies, 12, 1).unwrap();
    agent.observe(clock, 3);
    let messages = agent.neighbours().to_vec().into_iter().map(|j| {
        let mut neighbour = Agent::new(&policies, j, 1).unwrap();
        neighbour.observe(clock, (j % 4) as u8);
        let mut out = Vec::new();
        assert!(neighbour.outbox(&mut out));
        (j, out)
    });
    let messages = messages.collect();
    (agent, policies, messages)
}

#[test]
fn what_does_not_belong_is_dropped_counted_and_changes_nothing() {
    let _alone = one_at_a_time();
    let (mut agent, policies, messages) = waiting();
    let mut alone = agent.clone();
    messages.iter().for_each(|(j, message)| assert_eq!(alone.receive(Some(*j), message), Received::Taken));
    let action = alone.act().unwrap();
    let run = policies.checksum();
    let now = Clock { episode: 2, step: 5 };
    let letter = |kind, sender, run, clock, round, pairs: &[(u32, u8)]| {
        let mut out = Vec::new();
        let header = Header { kind, wants_answer: false, round, run, sender, clock };
        message::encode(&header, pairs.iter().copied(), &mut out);
        out
    };
    let states = |sender, run, clock, round, pairs: &[(u32, u8)]| {
        letter(Kind::States, sender, run, clock, round, pairs)
    };
    let sensor = |sender, clock, pairs: &[(u32, u8)]| letter(Kind::Sensor, sender, run, clock, 0, pairs);
    let far = Clock { episode: 2, step: 7 };
    let before = Clock { episode: 2, step: 4 };
    let cases = [
        // From a stranger's address nothing is read, not even a true message.
        (None, messages[0].1.clone(), Why::Foreign),
        (None, sensor(WORLD, Clock { episode: 2, step: 6 }, &[(12, 0)]), Why::Foreign),
        // In another's name, of another run, from a neighbour that plays the world, from no neighbour.
        (Some(6), messages[1].1.clone(), Why::Foreign),
        (Some(6), states(6, run ^ 1, now, 1, &[(6, 1)]), Why::Foreign),
        (Some(6), sensor(6, far, &[(12, 0)]), Why::Foreign),
        (Some(6), letter(Kind::Farewell, 6, run, now, 0, &[]), Why::Foreign),
        (Some(0), states(0, run, now, 1, &[(0, 1)]), Why::Foreign),
        (Some(WORLD), sensor(WORLD, far, &[(13, 0)]), Why::Foreign),
        // Too old, too new.
        (Some(6), states(6, run, before, 1, &[(6, 1)]), Why::Late),
        (Some(6), states(6, run, far, 1, &[(6, 1)]), Why::Early),
        (Some(WORLD), sensor(WORLD, before, &[(12, 0)]), Why::Late),
        (Some(WORLD), sensor(WORLD, now, &[(12, 0)]), Why::Repeated),
        // No round, no such state, not what the sender knows, too much, nothing.
        (Some(6), states(6, run, now, 0, &[(6, 1)]), Why::Malformed),
        (Some(6), states(6, run, now, 2, &[(6, 1)]), Why::Malformed),
        (Some(6), states(6, run, now, 1, &[(6, 4)]), Why::Malformed),
        (Some(6), states(6, run, now, 1, &[(7, 1)]), Why::Malformed),
        (Some(6), states(6, run, now, 1, &[(6, 1), (7, 1)]), Why::Malformed),
        (Some(6), states(6, run, now, 1, &[]), Why::Malformed),
        (Some(WORLD), sensor(WORLD, far, &[(12, 4)]), Why::Malformed),
        (Some(WORLD), sensor(WORLD, far, &[]), Why::Malformed),
        (Some(6), b"PHLX".to_vec(), Why::Malformed),
    ];
    for (place, (from, datagram, why)) in cases.iter().enumerate() {
        let before = agent.counts.dropped();
        assert_eq!(agent.receive(*from, datagram), Received::Dropped(*why), "case {place}");
        assert_eq!((agent.counts.dropped(), agent.act()), (before + 1, None));
        assert!(agent.known().eq([(12, 3)]), "case {place}");
    }
    for (j, message) in &messages {
        assert_eq!(agent.receive(Some(*j), message), Received::Taken);
        assert_eq!(agent.receive(Some(*j), message), Received::Dropped(Why::Repeated));
    }
    assert_eq!(agent.act(), Some(action));
}

/// Resident memory of this process, in bytes, where the system tells.
fn memory() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

#[test]
fn ten_million_wrong_datagrams_change_nothing() {
    let _alone = one_at_a_time();
    let count = 10_000_000;
    let (mut agent, policies, messages) = waiting();
    let mut alone = agent.clone();
    messages.iter().for_each(|(j, message)| _ = alone.receive(Some(*j), message));
    let action = alone.act();
    let (mut lots, mut datagram, before) = (Lots(11), Vec::new(), memory());
    let (mut kinds, run) = (Counts::default(), policies.checksum());
    for k in 0..count {
        // A true message with something wrong, or noise; from a neighbour, the world or a stranger.
        let (j, message) = &messages[lots.below(messages.len())];
        datagram.clear();
        datagram.extend_from_slice(message);
        let mut from = Some(*j);
        match lots.below(6) {
            0 => from = None,
            1 => from = Some(messages[(j + 1) as usize % messages.len()].0).filter(|other| other != j),
            2 => datagram[lots.below(message.len())] ^= 1 << lots.below(8),
            3 => datagram.truncate(lots.below(message.len())),
            4 => {
                let clock = Clock { episode: lots.below(2) as u32, step: lots.below(1000) as u32 };
                let kind = [Kind::States, Kind::Sensor, Kind::Action, Kind::Counts][lots.below(4)];
                from = [from, Some(WORLD)][lots.below(2)];
                let sender = from.unwrap_or(WORLD);
                let header =
                    Header { kind, wants_answer: k % 2 == 0, round: lots.below(3) as u8, run, sender, clock };
                let pairs = (0..lots.below(20)).map(|_| (lots.below(30) as u32, lots.below(256) as u8));
                let pairs: Vec<(u32, u8)> = if k % 2 == 0 { vec![(sender, 1)] } else { pairs.collect() };
                message::encode(&header, pairs.into_iter(), &mut datagram);
            }
            _ => {
                datagram.clear();
                datagram.resize_with(lots.below(200), || lots.below(256) as u8);
                from = [from, Some(WORLD)][lots.below(2)];
            }
        }
        assert!(matches!(agent.receive(from, &datagram), Received::Dropped(_)), "{from:?}: {datagram:?}");
        kinds = agent.counts;
    }
    assert_eq!((kinds.dropped(), kinds.received), (count as u64, 0));
    assert!(kinds.malformed.min(kinds.foreign).min(kinds.late) > count as u64 / 500, "{kinds:?}");
    let grown = memory().saturating_sub(before);
    assert!(grown < 1 << 20, "{grown} bytes more");
    messages.iter().for_each(|(j, message)| assert_eq!(agent.receive(Some(*j), message), Received::Taken));
    assert_eq!(agent.act(), action);
}

#[test]
fn who_is_not_heard_by_the_deadline_counts_as_usual() {
    let _alone = one_at_a_time();
    let (mut agent, policies, messages) = waiting();
    let AgentPolicy { members, usual: states, .. } = &policies.agents[12];
    let usual_state = |j: u32| states[members.binary_search(&j).unwrap()];
    let mut usual = agent.clone();
    for (j, message) in &messages {
        let Message { header, .. } = Message::decode(message).unwrap();
        let mut out = Vec::new();
        message::encode(&header, std::iter::once((*j, usual_state(*j))), &mut out);
        assert_eq!(usual.receive(Some(*j), &out), Received::Taken);
    }
    assert_eq!((agent.act(), agent.act_now()), (None, usual.act()));
    assert_eq!((agent.counts.incomplete, usual.counts.incomplete), (1, 0));
}
