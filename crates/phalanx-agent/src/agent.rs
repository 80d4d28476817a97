//! One agent: from its own state and its neighbours' messages to its actions. No input or output here.
//!
//! Every step has κ rounds. In round r an agent tells its neighbours the states of all agents within r − 1
//! hops; once it has heard all of them, it knows everybody within r hops. A neighbour may be a step ahead:
//! what it says is kept until the agent's own sensor gets there.

use std::cmp::Ordering;
use std::path::Path;

use crate::counts::{Counts, Why};
use crate::draw;
use crate::error::{Error, Result, ensure};
use crate::hops;
use crate::law::Scratch;
use crate::message::{self, Clock, Header, Kind, MOST_PAIRS, Message, WORLD};
use crate::policy::{AgentPolicy, Network, Policies, Rule};

/// An agent at work.
#[derive(Debug, Clone)]
pub struct Agent {
    policy: AgentPolicy,
    networks: Vec<Network>,
    kappa: u8,
    run: u32,
    seed: u64,
    /// Its own place among its members.
    own: usize,
    /// How far each member is from each neighbour, `[neighbour][member]`; [`FAR`] beyond κ hops.
    reach: Vec<Vec<u8>>,
    /// What is known of the present step; none before the first.
    now: Option<Known>,
    /// What neighbours have said of the next step.
    next: Known,
    has_next: bool,
    scratch: Scratch,
    law: Vec<f64>,
    thresholds: Vec<u32>,
    /// What became of messages.
    pub counts: Counts,
}

/// Beyond all hops.
const FAR: u8 = u8::MAX;

/// What is known of one step.
#[derive(Debug, Clone)]
struct Known {
    clock: Clock,
    /// By member.
    states: Vec<u8>,
    /// In which round each member was first heard of; 0 is the own sensor, [`FAR`] not yet.
    heard: Vec<u8>,
    /// By neighbour: bit r is set once its message of round r is there.
    rounds: Vec<u64>,
    /// Rounds whose messages are there from all neighbours.
    complete: u8,
    /// Rounds whose own message has been handed out.
    handed_out: u8,
    action: Option<u8>,
}

impl Known {
    fn new(members: usize, neighbours: usize) -> Self {
        Known {
            clock: Clock::default(),
            states: vec![0; members],
            heard: vec![FAR; members],
            rounds: vec![0; neighbours],
            complete: 0,
            handed_out: 0,
            action: None,
        }
    }

    fn reset(&mut self, clock: Clock) {
        self.clock = clock;
        self.heard.fill(FAR);
        self.rounds.fill(0);
        (self.complete, self.handed_out, self.action) = (0, 0, None);
    }

    /// Counts the rounds that are complete, up to κ.
    fn advance(&mut self, kappa: u8) {
        while self.complete < kappa {
            let bit = 1 << (self.complete + 1);
            if self.rounds.iter().any(|rounds| rounds & bit == 0) {
                return;
            }
            self.complete += 1;
        }
    }
}

/// What a datagram asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// Nothing: it was used.
    Taken,
    /// The own message of a round, to a neighbour (by its place) that has missed it.
    Answer {
        /// The neighbour's place.
        neighbour: usize,
        /// The round.
        round: u8,
    },
    /// The own action once more, to the world.
    ActionAgain,
    /// An end.
    Farewell,
    /// Nothing: it was not used.
    Dropped(Why),
}

impl Agent {
    /// The agent `number` of the policies in a file, which draws its actions with the numbers of `seed`.
    pub fn load(path: &Path, number: u32, seed: u64) -> Result<Agent> {
        Agent::new(&Policies::load(path)?, number, seed)
    }

    /// The same of policies at hand.
    pub fn new(policies: &Policies, number: u32, seed: u64) -> Result<Agent> {
        policies.check()?;
        let count = policies.agents.len();
        let policy = policies.agents.get(number as usize).cloned();
        let policy = policy.ok_or_else(|| Error::new(format!("there is no agent {number} among {count}")))?;
        ensure(!matches!(policy.rule, Rule::Numbers { .. }), || {
            "its policy reads numbers that a world works out; agents of their own know states only".into()
        })?;
        let members = policy.members.len();
        ensure(members <= MOST_PAIRS, || {
            format!("it reads {members} states, and a message holds {MOST_PAIRS}; use a smaller kappa")
        })?;
        let kappa = policies.kappa as u8;
        let reach = (policy.neighbours.iter())
            .map(|&j| {
                let mut row = vec![FAR; members];
                for (m, hops) in hops::within(policies, j, policies.kappa) {
                    if let Ok(place) = policy.members.binary_search(&m) {
                        row[place] = hops;
                    }
                }
                row
            })
            .collect();
        let own = policy.members.binary_search(&number).unwrap_or(0);
        let next = Known::new(members, policy.neighbours.len());
        Ok(Agent {
            run: policies.checksum(),
            networks: policies.networks.clone(),
            law: vec![0.0; policy.actions],
            thresholds: vec![0; policy.actions - 1],
            scratch: Scratch::default(),
            now: None,
            has_next: false,
            counts: Counts::default(),
            policy,
            kappa,
            seed,
            own,
            reach,
            next,
        })
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.policy.agent
    }

    /// Whom it talks to, ascending.
    pub fn neighbours(&self) -> &[u32] {
        &self.policy.neighbours
    }

    /// Whose states it reads, ascending.
    pub fn members(&self) -> &[u32] {
        &self.policy.members
    }

    /// Members with their states as far as they have been heard of in this step.
    pub fn known(&self) -> impl Iterator<Item = (u32, u8)> + '_ {
        let known = self.now.iter().flat_map(|now| now.states.iter().zip(&now.heard));
        let known = self.policy.members.iter().zip(known);
        known.filter(|(_, (_, heard))| **heard != FAR).map(|(&m, (&state, _))| (m, state))
    }

    /// The present moment, if there is one.
    pub fn clock(&self) -> Option<Clock> {
        self.now.as_ref().map(|now| now.clock)
    }

    /// Bytes of the longest message that it sends or gets.
    pub fn longest_message(&self) -> usize {
        message::length(self.policy.members.len().max(1))
    }

    /// Its own state at a moment, which must be later than the last one. False if it is not, or if there is
    /// no such state.
    pub fn observe(&mut self, clock: Clock, state: u8) -> bool {
        let is_new = self.now.as_ref().is_none_or(|now| clock > now.clock);
        let in_range = usize::from(state) < self.policy.states[self.own] && clock.episode < draw::EPISODES;
        if !is_new || !in_range {
            return false;
        }
        if !self.has_next || self.next.clock != clock {
            self.next.reset(clock);
        }
        self.has_next = false;
        let spare = || Known::new(self.policy.members.len(), self.policy.neighbours.len());
        let mut now = self.now.take().unwrap_or_else(spare);
        std::mem::swap(&mut now, &mut self.next);
        now.states[self.own] = state;
        now.heard[self.own] = 0;
        now.advance(self.kappa);
        self.now = Some(now);
        true
    }

    /// Writes the next message to all neighbours over `out`, if one is due: ask again until there is none.
    pub fn outbox(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(now) = &mut self.now else { return false };
        let is_due = now.handed_out < self.kappa && now.handed_out <= now.complete;
        if !is_due || self.policy.neighbours.is_empty() {
            return false;
        }
        now.handed_out += 1;
        let round = now.handed_out;
        self.write_states(round, false, out)
    }

    /// Writes the message of a round over `out`, if it has been handed out before.
    pub fn write_again(&self, round: u8, wants_answer: bool, out: &mut Vec<u8>) -> bool {
        let handed_out = self.now.as_ref().map_or(0, |now| now.handed_out);
        (1..=handed_out).contains(&round) && self.write_states(round, wants_answer, out)
    }

    fn write_states(&self, round: u8, wants_answer: bool, out: &mut Vec<u8>) -> bool {
        let Some(now) = &self.now else { return false };
        let header = self.header(Kind::States, round, wants_answer, now.clock);
        let known = self.policy.members.iter().zip(&now.states).zip(&now.heard);
        let told = known.filter(|(_, heard)| **heard < round).map(|((&m, &state), _)| (m, state));
        message::encode(&header, told, out);
        true
    }

    fn header(&self, kind: Kind, round: u8, wants_answer: bool, clock: Clock) -> Header {
        Header { kind, wants_answer, round, run: self.run, sender: self.policy.agent, clock }
    }

    /// The round that it is in and the neighbours, by place, that it has not heard in it; none if it waits
    /// for nobody.
    pub fn missing(&self) -> Option<(u8, impl Iterator<Item = usize> + '_)> {
        let now = self.now.as_ref().filter(|now| now.complete < self.kappa)?;
        let round = now.complete + 1;
        let missing = move |rounds: &u64| rounds & 1 << round == 0;
        let places = now.rounds.iter().enumerate().filter(move |(_, rounds)| missing(rounds));
        Some((round, places.map(|(place, _)| place)))
    }

    /// Takes in a datagram. `from` is whose address it came from, [`WORLD`] or a neighbour's number; nothing
    /// is read of one that came from nobody's.
    pub fn receive(&mut self, from: Option<u32>, datagram: &[u8]) -> Received {
        let received = match from {
            None => Received::Dropped(Why::Foreign),
            Some(from) => match Message::decode(datagram) {
                None => Received::Dropped(Why::Malformed),
                Some(message) => self.take(from, &message),
            },
        };
        match received {
            Received::Dropped(why) => self.counts.drop(why),
            Received::Taken | Received::Farewell => self.counts.received += 1,
            // Counted where it was seen whether they had come before.
            Received::Answer { .. } | Received::ActionAgain => (),
        }
        received
    }

    fn take(&mut self, from: u32, message: &Message<'_>) -> Received {
        let Header { kind, run, sender, .. } = message.header;
        if run != self.run || sender != from {
            return Received::Dropped(Why::Foreign);
        }
        match (kind, self.policy.neighbours.binary_search(&from)) {
            (Kind::States, Ok(neighbour)) => self.take_states(neighbour, message),
            (Kind::Sensor, _) if from == WORLD => self.take_sensor(message),
            (Kind::Farewell, _) if from == WORLD => Received::Farewell,
            _ => Received::Dropped(Why::Foreign),
        }
    }

    fn take_sensor(&mut self, message: &Message<'_>) -> Received {
        let Header { wants_answer, clock, .. } = message.header;
        let Some((agent, state)) = message.pair() else { return Received::Dropped(Why::Malformed) };
        if agent != self.policy.agent {
            return Received::Dropped(Why::Foreign);
        }
        let (present, action) = self.now.as_ref().map_or((None, None), |now| (Some(now.clock), now.action));
        match present.map(|present| clock.cmp(&present)) {
            Some(Ordering::Less) => Received::Dropped(Why::Late),
            Some(Ordering::Equal) if wants_answer && action.is_some() => {
                self.counts.drop(Why::Repeated);
                Received::ActionAgain
            }
            Some(Ordering::Equal) => Received::Dropped(Why::Repeated),
            Some(Ordering::Greater) | None if self.observe(clock, state) => Received::Taken,
            Some(Ordering::Greater) | None => Received::Dropped(Why::Malformed),
        }
    }

    fn take_states(&mut self, neighbour: usize, message: &Message<'_>) -> Received {
        let Header { wants_answer, round, clock, .. } = message.header;
        if !(1..=self.kappa).contains(&round) || !self.is_possible(neighbour, message) {
            return Received::Dropped(Why::Malformed);
        }
        let known = match &mut self.now {
            Some(now) if clock == now.clock => now,
            Some(now) if clock < now.clock => return Received::Dropped(Why::Late),
            Some(now) if !now.clock.is_followed_by(clock) => return Received::Dropped(Why::Early),
            // Before its first sensor it cannot tell what is next: the last one said counts.
            _ => {
                if !self.has_next || self.next.clock != clock {
                    self.next.reset(clock);
                    self.has_next = true;
                }
                &mut self.next
            }
        };
        // Who wants an answer has missed the own message; before it is handed out, it is on its way anyhow.
        let is_answered = wants_answer && known.handed_out >= round;
        if known.rounds[neighbour] & 1 << round != 0 {
            if !is_answered {
                return Received::Dropped(Why::Repeated);
            }
            self.counts.drop(Why::Repeated);
            return Received::Answer { neighbour, round };
        }
        // Who was heard of before must be in the same state still.
        let told = || self.reach[neighbour].iter().enumerate().filter(|(_, hops)| **hops < round);
        let contradicts = |((place, _), (_, state)): ((usize, &u8), (u32, u8))| {
            known.heard[place] != FAR && known.states[place] != state
        };
        if told().zip(message.pairs()).any(contradicts) {
            return Received::Dropped(Why::Malformed);
        }
        for ((place, _), (_, state)) in told().zip(message.pairs()) {
            known.states[place] = state;
            known.heard[place] = known.heard[place].min(round);
        }
        known.rounds[neighbour] |= 1 << round;
        known.advance(self.kappa);
        if !is_answered {
            return Received::Taken;
        }
        self.counts.received += 1;
        Received::Answer { neighbour, round }
    }

    /// Whether a message tells exactly what its sender knows before its round, in states that there are.
    fn is_possible(&self, neighbour: usize, message: &Message<'_>) -> bool {
        let reach = self.reach[neighbour].iter().zip(&self.policy.members).zip(&self.policy.states);
        let mut expected = reach.filter(|((hops, _), _)| **hops < message.header.round);
        let mut pairs = message.pairs();
        let as_expected = |((_, &m), &states): ((&u8, &u32), &usize)| {
            pairs.next().is_some_and(|(agent, state)| agent == m && usize::from(state) < states)
        };
        expected.all(as_expected) && pairs.next().is_none()
    }

    /// Its action at the present step, once it knows its whole neighbourhood; the same every time.
    pub fn act(&mut self) -> Option<u8> {
        let now = self.now.as_ref()?;
        if now.action.is_none() && now.complete < self.kappa {
            return None;
        }
        self.act_now()
    }

    /// Its action at the present step whatever it knows: members that it has not heard of count as in their
    /// usual states. None before its first sensor.
    pub fn act_now(&mut self) -> Option<u8> {
        let now = self.now.as_mut()?;
        if now.action.is_some() {
            return now.action;
        }
        if now.heard.contains(&FAR) {
            self.counts.incomplete += 1;
            let unheard = now.states.iter_mut().zip(&now.heard).zip(&self.policy.usual);
            unheard.filter(|((_, heard), _)| **heard == FAR).for_each(|((state, _), &usual)| *state = usual);
        }
        self.policy.law(&self.networks, &now.states, &mut self.scratch, &mut self.law);
        draw::write_thresholds(&self.law, &mut self.thresholds);
        let Clock { episode, step } = now.clock;
        let draw = draw::action_draw(self.seed, episode, self.policy.agent, step);
        now.action = Some(draw::outcome(&self.thresholds, draw));
        now.action
    }

    /// Writes the message of its action over `out`, once it has acted.
    pub fn write_action(&self, out: &mut Vec<u8>) -> bool {
        let Some((clock, action)) = self.now.as_ref().and_then(|now| Some((now.clock, now.action?))) else {
            return false;
        };
        let header = self.header(Kind::Action, 0, false, clock);
        message::encode(&header, std::iter::once((self.policy.agent, action)), out);
        true
    }

    /// Writes the message of its counts over `out`.
    pub fn write_counts(&self, out: &mut Vec<u8>) {
        let header = self.header(Kind::Counts, 0, false, self.clock().unwrap_or_default());
        message::encode_counts(&header, &self.counts, out);
    }
}
