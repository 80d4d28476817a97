//! The world's end of the wires: tells every agent its state, and hears what it does.

use std::cmp::Ordering;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::addresses::Addresses;
use crate::counts::{Counts, Why};
use crate::error::{Error, Result};
use crate::message::{self, Clock, Header, Kind, LONGEST_TO_WORLD, Message, WORLD};
use crate::policy::Policies;
use crate::udp::{Book, Pace, Patience, SOON, next_datagram, wait_at_most};

/// The world on a UDP socket.
#[derive(Debug)]
pub struct Conductor {
    socket: UdpSocket,
    run: u32,
    agents: Vec<SocketAddr>,
    book: Book,
    /// How many actions each agent has.
    actions: Vec<usize>,
    pace: Pace,
    silence: Duration,
    buffer: Vec<u8>,
    out: Vec<u8>,
    /// What became of its own messages.
    pub counts: Counts,
    /// Actions that did not come in time.
    pub missed: u64,
    /// The last action of every agent, which stands in for one that does not come in time.
    last: Vec<u8>,
}

/// How long agents may take to say what became of their messages.
const LAST_WORDS: Duration = Duration::from_secs(2);

impl Conductor {
    /// The world of these agents. Fails later on where nobody answers for `silence`.
    pub fn new(
        socket: UdpSocket,
        policies: &Policies,
        addresses: &Addresses,
        pace: Pace,
        silence: Duration,
    ) -> Result<Self> {
        let ids = 0..policies.agents.len() as u32;
        Ok(Conductor {
            run: policies.checksum(),
            agents: ids.clone().map(|id| addresses.of(id)).collect::<Result<_>>()?,
            book: Book::new(addresses, ids)?,
            actions: policies.agents.iter().map(|agent| agent.actions).collect(),
            buffer: vec![0; LONGEST_TO_WORLD + 1],
            out: Vec::new(),
            counts: Counts::default(),
            missed: 0,
            last: vec![0; policies.agents.len()],
            socket,
            pace,
            silence,
        })
    }

    /// Tells every agent its state at a moment, and writes their actions. In real time, who does not answer
    /// within twice the deadline does what it did before.
    pub fn step(&mut self, clock: Clock, states: &[u8], actions: &mut [u8]) -> Result<()> {
        let mut waiting = vec![true; self.agents.len()];
        let mut left = waiting.len();
        let start = Instant::now();
        let (mut again, mut heard) = (Patience::new(start), start);
        let end = match self.pace {
            Pace::LockStep => None,
            Pace::RealTime { deadline } => Some(start + 2 * deadline),
        };
        for (agent, &state) in states.iter().enumerate() {
            self.tell(Kind::Sensor, agent, clock, state, false);
        }
        wait_at_most(&self.socket, SOON)?;
        while left > 0 {
            let found = next_datagram(&self.socket, &mut self.buffer)?;
            let now = Instant::now();
            if let Some((length, address)) = found {
                match self.take_action(length, address, clock, &waiting) {
                    Ok((agent, action)) => {
                        (actions[agent], self.last[agent], waiting[agent]) = (action, action, false);
                        left -= 1;
                        (again, heard) = (Patience::new(now), now);
                        self.counts.received += 1;
                    }
                    Err(why) => self.counts.drop(why),
                }
            }
            if let Some(end) = end {
                if now >= end {
                    self.missed += left as u64;
                    let missing = (0..waiting.len()).filter(|&agent| waiting[agent]);
                    missing.for_each(|agent| actions[agent] = self.last[agent]);
                    return Ok(());
                }
                wait_at_most(&self.socket, (end - now).min(SOON))?;
            } else if again.is_over(now) {
                self.check_silence(now - heard, &waiting)?;
                for agent in (0..waiting.len()).filter(|&agent| waiting[agent]) {
                    self.tell(Kind::Sensor, agent, clock, states[agent], true);
                }
            }
        }
        Ok(())
    }

    fn check_silence(&self, time: Duration, waiting: &[bool]) -> Result<()> {
        if time <= self.silence {
            return Ok(());
        }
        let missing: Vec<String> = (0..waiting.len())
            .filter(|&agent| waiting[agent])
            .take(5)
            .map(|agent| agent.to_string())
            .collect();
        let missing = missing.join(", ");
        Err(Error::new(format!("no answer for {} s from agents {missing}", self.silence.as_secs())))
    }

    /// The action in the datagram at hand.
    fn take_action(
        &self,
        length: usize,
        address: SocketAddr,
        clock: Clock,
        waiting: &[bool],
    ) -> std::result::Result<(usize, u8), Why> {
        let from = self.book.who(address).ok_or(Why::Foreign)?;
        let message = Message::decode(&self.buffer[..length]).ok_or(Why::Malformed)?;
        let Header { kind, run, sender, clock: sent, .. } = message.header;
        if run != self.run || sender != from || kind != Kind::Action {
            return Err(Why::Foreign);
        }
        let (agent, action) = message.pair().ok_or(Why::Malformed)?;
        if agent != from || usize::from(action) >= self.actions[from as usize] {
            return Err(Why::Malformed);
        }
        match sent.cmp(&clock) {
            Ordering::Less => Err(Why::Late),
            Ordering::Greater => Err(Why::Early),
            Ordering::Equal if waiting[from as usize] => Ok((from as usize, action)),
            Ordering::Equal => Err(Why::Repeated),
        }
    }

    /// Tells all agents that this is the end, and hears what became of their messages; none of those that
    /// do not answer.
    pub fn farewell(&mut self) -> Result<Vec<Option<Counts>>> {
        let mut found: Vec<Option<Counts>> = vec![None; self.agents.len()];
        let start = Instant::now();
        let mut again = Patience::new(start);
        (0..found.len()).for_each(|agent| self.tell(Kind::Farewell, agent, Clock::default(), 0, false));
        wait_at_most(&self.socket, SOON)?;
        while found.contains(&None) && start.elapsed() < LAST_WORDS {
            if let Some((length, address)) = next_datagram(&self.socket, &mut self.buffer)?
                && let Some(from) = self.book.who(address)
                && let Some(message) = Message::decode(&self.buffer[..length])
                && message.header.run == self.run
                && message.header.sender == from
                && let Some(counts) = message.counts()
            {
                found[from as usize] = Some(counts);
            }
            if again.is_over(Instant::now()) {
                for agent in (0..found.len()).filter(|&agent| found[agent].is_none()) {
                    self.tell(Kind::Farewell, agent, Clock::default(), 0, true);
                }
            }
        }
        Ok(found)
    }

    fn tell(&mut self, kind: Kind, agent: usize, clock: Clock, state: u8, wants_answer: bool) {
        let header = Header { kind, wants_answer, round: 0, run: self.run, sender: WORLD, clock };
        message::encode(&header, std::iter::once((agent as u32, state)), &mut self.out);
        // One that cannot be sent is lost, as others are.
        let _ = self.socket.send_to(&self.out, self.agents[agent]);
        self.counts.sent += 1;
        self.counts.resent += u64::from(wants_answer);
    }
}
