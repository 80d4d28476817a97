//! What agents of their own read: policies, messages and addresses.

use std::sync::LazyLock;

use phalanx_agent::Agent;
use phalanx_agent::addresses::Addresses;
use phalanx_agent::agent::Received;
use phalanx_agent::law::Scratch;
use phalanx_agent::message::{self, Clock, Header, Kind, Message, WORLD};
use phalanx_agent::policy::{Policies, Rule};

use crate::Verdict;
use crate::choices::Choices;
use crate::edit::{Seeds, splice};
use crate::node::Node;
use crate::print;

const LINE: &str = include_str!("../../seeds/policies.json");

static POLICIES: LazyLock<Seeds> =
    LazyLock::new(|| Seeds::new([LINE, include_str!("../../seeds/policies-places.json")].map(Node::json)));

static ADDRESSES: LazyLock<Seeds> =
    LazyLock::new(|| Seeds::new([Node::csv("0,127.0.0.1:5000\n1,127.0.0.1:5001\nworld,[::1]:5002\n")]));

/// How far something got whose first check is called so.
fn verdict<T>(result: phalanx_agent::Result<T>, first: &str) -> Verdict {
    match result {
        Ok(_) => Verdict::Accepted,
        Err(error) if error.to_string().contains(first) => Verdict::Malformed,
        Err(_) => Verdict::Refused,
    }
}

/// Policies; of those that can be used, a law of every agent, and an action.
pub fn policies(choices: &mut Choices<'_>) -> Verdict {
    let mut bytes = print::json(&POLICIES.document(choices)).into_bytes();
    splice(&mut bytes, 16, choices);
    choices.show(&bytes);
    let policies = Policies::read(&String::from_utf8_lossy(&bytes));
    if let Ok(policies) = &policies {
        for agent in &policies.agents {
            let states: Vec<u8> = agent.states.iter().map(|&count| choices.below(count) as u8).collect();
            let mut law = vec![0.0; agent.actions];
            agent.law(&policies.networks, &states, &mut Scratch::default(), &mut law);
            if let Rule::Numbers { network, .. } = agent.rule {
                let numbers = vec![0.5; policies.networks[network].numbers()];
                agent.law_of_numbers(&policies.networks, &numbers, &mut Scratch::default(), &mut law);
            }
            if let Ok(mut worker) = Agent::new(policies, agent.agent, 1) {
                worker.observe(Clock::default(), 0);
                assert!(worker.act_now().is_some_and(|action| usize::from(action) < agent.actions));
            }
        }
    }
    verdict(policies, "no policies")
}

/// Datagrams to the agent in the middle of three, at any moments and from anybody; true messages of one
/// moment among them. What it knows at the end is true, whatever else came.
pub fn datagrams(choices: &mut Choices<'_>) -> Verdict {
    let Ok(policies) = Policies::read(LINE) else { return Verdict::Malformed };
    let Ok(mut agent) = Agent::new(&policies, 1, 1) else { return Verdict::Malformed };
    let run = policies.checksum();
    let now = Clock { episode: 3, step: 7 };
    assert!(agent.observe(now, 1));
    let (mut datagram, mut is_decoded, mut is_taken) = (Vec::new(), false, false);
    for _ in 0..8 {
        let kinds = [Kind::States, Kind::Sensor, Kind::Action, Kind::Farewell, Kind::Counts];
        let kind = kinds[choices.below(kinds.len())];
        let senders = [0, 2, 1, WORLD, 77];
        let sender = senders[choices.below(senders.len())];
        // Of steps before and after this one: nothing that is said of others is read as said of this.
        let step = [6, 8, 5, 9, 0, u32::MAX][choices.below(6)];
        let clock = Clock { episode: [3, 3, 4, 2, u32::MAX][choices.below(5)], step };
        let header = Header {
            kind: if kind == Kind::Sensor { Kind::States } else { kind },
            wants_answer: choices.one_in(2),
            round: choices.below(4) as u8,
            run: if choices.one_in(8) { run ^ 1 } else { run },
            sender,
            clock,
        };
        let count = choices.below(4);
        let pairs: Vec<(u32, u8)> =
            (0..count).map(|_| (choices.below(4) as u32, choices.below(4) as u8)).collect();
        message::encode(&header, pairs.into_iter(), &mut datagram);
        splice(&mut datagram, 4, choices);
        is_decoded |= Message::decode(&datagram).is_some();
        let from = [Some(sender), Some(0), Some(2), Some(WORLD), None][choices.below(5)];
        is_taken |= !matches!(agent.receive(from, &datagram), Received::Dropped(_));
        assert!(agent.known().eq([(1, 1)]) && agent.clock() == Some(now) && agent.act().is_none());
    }
    for (j, state) in [(0, 1), (2, 0)] {
        let header = Header { kind: Kind::States, wants_answer: false, round: 1, run, sender: j, clock: now };
        message::encode(&header, std::iter::once((j, state)), &mut datagram);
        assert_eq!(agent.receive(Some(j), &datagram), Received::Taken);
    }
    assert!(agent.known().eq([(0, 1), (1, 1), (2, 0)]) && agent.act().is_some());
    match (is_decoded, is_taken) {
        (false, _) => Verdict::Malformed,
        (true, false) => Verdict::Refused,
        (true, true) => Verdict::Accepted,
    }
}

/// A file of addresses, without looking up hosts.
pub fn addresses(choices: &mut Choices<'_>) -> Verdict {
    let mut bytes = print::table(&ADDRESSES.document(choices), ' ').into_bytes();
    splice(&mut bytes, 8, choices);
    choices.show(&bytes);
    let parse = |place: &str| place.parse().map_err(std::io::Error::other);
    let read = Addresses::read_with(&String::from_utf8_lossy(&bytes), parse);
    if let Ok(read) = &read {
        assert_eq!(Addresses::read_with(&read.text(), parse).as_ref(), Ok(read));
    }
    verdict(read, "is not `AGENT")
}
