//! An agent on a UDP socket.
//!
//! In lock step it waits for its neighbours, and sends again to those that it has not heard. In real time it
//! acts at its deadline, whatever it knows. It looks at the address of every datagram first: of one from
//! anybody but a neighbour or the world, nothing is read.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::addresses::Addresses;
use crate::agent::{Agent, Received};
use crate::counts::Counts;
use crate::error::{Error, Result};
use crate::message::{Clock, WORLD};

/// Whether to wait for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Always.
    LockStep,
    /// Until a deadline.
    RealTime {
        /// From the sensor to the action, at most.
        deadline: Duration,
    },
}

/// When something is sent again: soon at first, then twice as late every time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    due: Instant,
    interval: Duration,
}

/// The first time; datagrams on one machine take far less.
pub(crate) const SOON: Duration = Duration::from_millis(20);
const LATEST: Duration = Duration::from_millis(640);

impl Patience {
    pub(crate) fn new(now: Instant) -> Self {
        Patience { due: now + SOON, interval: SOON }
    }

    /// Whether it is time; if so, the next time is later.
    pub(crate) fn is_over(&mut self, now: Instant) -> bool {
        if now < self.due {
            return false;
        }
        self.interval = (2 * self.interval).min(LATEST);
        self.due = now + self.interval;
        true
    }
}

/// Who is behind an address.
#[derive(Debug, Clone)]
pub(crate) struct Book(Vec<(SocketAddr, u32)>);

impl Book {
    pub(crate) fn new(addresses: &Addresses, ids: impl Iterator<Item = u32>) -> Result<Self> {
        let mut book = ids.map(|id| Ok((addresses.of(id)?, id))).collect::<Result<Vec<_>>>()?;
        book.sort_unstable();
        Ok(Book(book))
    }

    pub(crate) fn who(&self, address: SocketAddr) -> Option<u32> {
        let place = self.0.binary_search_by(|(known, _)| known.cmp(&address)).ok()?;
        Some(self.0[place].1)
    }
}

/// The next datagram and its sender's address; none when the socket's time is over.
pub(crate) fn next_datagram(socket: &UdpSocket, buffer: &mut [u8]) -> Result<Option<(usize, SocketAddr)>> {
    match socket.recv_from(buffer) {
        Ok(found) => Ok(Some(found)),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(None),
            // Somebody that was written to is not there: it may come back.
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Ok(None),
            _ => Err(Error::new(format!("cannot receive: {error}"))),
        },
    }
}

/// Lets the socket wait no longer than this, and at least a millisecond: zero would be forever.
pub(crate) fn wait_at_most(socket: &UdpSocket, time: Duration) -> Result<()> {
    let time = time.max(Duration::from_millis(1));
    socket.set_read_timeout(Some(time)).map_err(|error| Error::new(format!("cannot set a time-out: {error}")))
}

/// An agent, its socket, and where everybody is.
struct Post<'a> {
    agent: &'a mut Agent,
    socket: &'a UdpSocket,
    world: SocketAddr,
    /// By their places.
    neighbours: Vec<SocketAddr>,
    out: Vec<u8>,
    /// The last moment at which it acted.
    acted: Option<Clock>,
}

/// Lets an agent work until the world says farewell. Fails where nothing comes from the world for `silence`.
pub fn work(
    agent: &mut Agent,
    socket: &UdpSocket,
    addresses: &Addresses,
    pace: Pace,
    silence: Duration,
) -> Result<Counts> {
    let known = agent.neighbours().iter().copied().chain([WORLD]);
    let book = Book::new(addresses, known)?;
    let neighbours = agent.neighbours().iter().map(|&j| addresses.of(j)).collect::<Result<_>>()?;
    // A longer datagram than there can be is cut, and malformed.
    let mut buffer = vec![0; agent.longest_message() + 1];
    let world = addresses.of(WORLD)?;
    let mut post = Post { agent, socket, world, neighbours, out: Vec::new(), acted: None };
    let start = Instant::now();
    let (mut again, mut heard, mut due, mut leaving) = (Patience::new(start), start, None, None);
    wait_at_most(socket, SOON)?;
    loop {
        let found = next_datagram(socket, &mut buffer)?;
        let now = Instant::now();
        if let Some((length, address)) = found {
            let (from, before) = (book.who(address), post.agent.clock());
            let received = post.agent.receive(from, &buffer[..length]);
            if !matches!(received, Received::Dropped(_)) {
                again = Patience::new(now);
                heard = if from == Some(WORLD) { now } else { heard };
            }
            post.answer(received);
            if received == Received::Farewell {
                leaving = Some(now);
            }
            post.go_on();
            if let (Pace::RealTime { deadline }, true) = (pace, post.agent.clock() != before) {
                due = Some(now + deadline);
            }
        }
        // Others may not have heard its farewell.
        if leaving.is_some_and(|since| now - since > 5 * SOON) {
            return Ok(post.agent.counts);
        }
        if now - heard > silence {
            return Err(Error::new(format!("nothing has come from the world for {} s", silence.as_secs())));
        }
        match due {
            Some(at) if post.has_acted() => {
                due = None;
                if at > now {
                    wait_at_most(socket, SOON)?;
                }
            }
            Some(at) if at <= now => {
                post.act_now();
                due = None;
                wait_at_most(socket, SOON)?;
            }
            Some(at) => wait_at_most(socket, (at - now).min(SOON))?,
            None => (),
        }
        if pace == Pace::LockStep && again.is_over(now) {
            post.ask_again();
        }
    }
}

impl Post<'_> {
    /// Sends what was written; a datagram that cannot be sent is lost, as others are.
    fn send(&mut self, to: SocketAddr, is_again: bool) {
        let _ = self.socket.send_to(&self.out, to);
        self.agent.counts.sent += 1;
        self.agent.counts.resent += u64::from(is_again);
    }

    fn answer(&mut self, received: Received) {
        match received {
            Received::Answer { neighbour, round } => {
                if self.agent.write_again(round, false, &mut self.out) {
                    self.send(self.neighbours[neighbour], true);
                }
            }
            Received::ActionAgain => {
                if self.agent.write_action(&mut self.out) {
                    self.send(self.world, true);
                }
            }
            Received::Farewell => {
                self.agent.write_counts(&mut self.out);
                self.send(self.world, false);
            }
            Received::Taken | Received::Dropped(_) => (),
        }
    }

    /// Sends the messages that are due, and the action once it is known.
    fn go_on(&mut self) {
        while self.agent.outbox(&mut self.out) {
            for place in 0..self.neighbours.len() {
                self.send(self.neighbours[place], false);
            }
        }
        if !self.has_acted() && self.agent.act().is_some() {
            self.tell_action();
        }
    }

    fn has_acted(&self) -> bool {
        self.acted == self.agent.clock()
    }

    fn act_now(&mut self) {
        if !self.has_acted() && self.agent.act_now().is_some() {
            self.tell_action();
        }
    }

    fn tell_action(&mut self) {
        self.acted = self.agent.clock();
        if self.agent.write_action(&mut self.out) {
            self.send(self.world, false);
        }
    }

    /// Asks those that have not been heard in this round.
    fn ask_again(&mut self) {
        let Some((round, places)) = self.agent.missing() else { return };
        let places: Vec<usize> = places.collect();
        if self.agent.write_again(round, true, &mut self.out) {
            places.into_iter().for_each(|place| self.send(self.neighbours[place], true));
        }
    }
}
