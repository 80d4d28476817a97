//! What a process tells the others, if there are any: states and actions of agents at its border, values that
//! cross it, and numbers of its agents for sums over all.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::{Communicator, SingleProcess};
use crate::base::error::ensure;
use crate::base::exact_sum::ExactSums;
use crate::base::parallel::runs_of;
use crate::graph::{Graph, Partition, PartitionPart};
use crate::{Error, Ragged, Result};

/// A process's borders with its neighbours.
pub struct Halo {
    peers: Arc<dyn Communicator>,
    /// Who owns whom.
    pub(crate) partition: Partition,
    /// Neighbouring processes, ascending.
    pub(crate) links: Vec<Link>,
    /// Own agents that others must know of, as ascending runs.
    pub(crate) border: Vec<Range<usize>>,
    /// Agents of the whole graph.
    total: usize,
    /// The agents of every process, once they are asked for.
    members: OnceLock<Vec<Vec<u32>>>,
}

/// The border with one neighbour. Agents are numbered as in this process, in ascending order.
pub(crate) struct Link {
    pub peer: usize,
    /// Own agents that it must know of.
    pub sends: Vec<u32>,
    /// Its agents that are ghosts here.
    pub receives: Vec<u32>,
}

/// Room for the messages of all borders, used over and over.
#[derive(Debug, Default)]
pub struct Messages {
    pub(crate) outgoing: Vec<Vec<u8>>,
    pub(crate) incoming: Vec<Vec<u8>>,
}

impl Halo {
    /// Tells the owners of the ghosts in `share` who must know of them. `graph` is the part that this
    /// process holds.
    pub fn new(
        peers: Arc<dyn Communicator>,
        partition: Partition,
        share: &PartitionPart,
        graph: &Graph,
    ) -> Result<Self> {
        let count = peers.count();
        let mut wanted = vec![Vec::new(); count];
        share.ghosts.iter().for_each(|(owner, agents)| wanted[*owner] = agents.clone());
        let asked = all_to_all(&*peers, &wanted)?;
        let local = |ids: &[u32]| -> Vec<u32> {
            let known = graph.ids().unwrap_or_default();
            ids.iter().filter_map(|id| known.binary_search(id).ok().map(|i| i as u32)).collect()
        };
        let links: Vec<Link> = (0..count)
            .filter(|&peer| !wanted[peer].is_empty() || !asked[peer].is_empty())
            .map(|peer| Link { peer, sends: local(&asked[peer]), receives: local(&wanted[peer]) })
            .collect();
        let mut sent: Vec<u32> = links.iter().flat_map(|link| link.sends.iter().copied()).collect();
        sent.sort_unstable();
        sent.dedup();
        let border = runs_of(sent.into_iter().map(|i| i as usize));
        Ok(Halo { peers, partition, links, border, total: graph.total(), members: OnceLock::new() })
    }

    /// That of a process that has all agents of the graph to itself: a communicator of size 1, without
    /// neighbours.
    pub fn single(agents: usize) -> Self {
        Halo::without_borders(Arc::new(SingleProcess), agents)
    }

    /// Processes that can talk, before it is known who has which agents.
    pub fn without_borders(peers: Arc<dyn Communicator>, total: usize) -> Self {
        let partition = Partition::single(total);
        Halo { peers, partition, links: Vec::new(), border: Vec::new(), total, members: OnceLock::new() }
    }

    /// What the first process decides, everywhere; elsewhere `decide` is not called.
    pub fn broadcast_decision(&self, decide: impl FnOnce() -> Result<u8>) -> Result<u8> {
        if !self.is_first() {
            let heard = self.broadcast(Vec::new())?;
            return match heard.split_first() {
                Some((&FAILED, report)) => Err(reported(report)),
                first => Ok(first.map_or(0, |(&decision, _)| decision)),
            };
        }
        let decided = decide();
        let message = match &decided {
            Ok(decision) => vec![*decision],
            Err(error) => [&[FAILED][..], &report(error)].concat(),
        };
        self.broadcast(message)?;
        decided
    }

    /// The processes.
    pub fn peers(&self) -> &dyn Communicator {
        &*self.peers
    }

    /// Whether this process reports.
    pub fn is_first(&self) -> bool {
        self.peers.rank() == 0
    }

    /// Room for messages.
    pub fn messages(&self) -> Messages {
        let none = || vec![Vec::new(); self.links.len()];
        Messages { outgoing: none(), incoming: none() }
    }

    /// Writes what neighbours must know of `rows`, one byte per agent each.
    pub fn pack(&self, rows: &[&[u8]], messages: &mut Messages) {
        for (link, message) in self.links.iter().zip(&mut messages.outgoing) {
            message.clear();
            for row in rows {
                message.extend(link.sends.iter().map(|&i| row[i as usize]));
            }
        }
        for (link, message) in self.links.iter().zip(&mut messages.incoming) {
            message.resize(rows.len() * link.receives.len(), 0);
        }
    }

    /// Exchanges messages with all neighbours, `meanwhile` working.
    pub fn exchange(&self, messages: &mut Messages, meanwhile: &mut dyn FnMut()) -> Result<()> {
        let peers = || self.links.iter().map(|link| link.peer);
        let outgoing: Vec<(usize, &[u8])> =
            peers().zip(messages.outgoing.iter().map(|message| &message[..])).collect();
        let mut incoming: Vec<(usize, &mut [u8])> =
            peers().zip(messages.incoming.iter_mut().map(|message| &mut message[..])).collect();
        self.peers.exchange(&outgoing, &mut incoming, meanwhile)
    }

    /// Writes what neighbours told into the ghosts' entries of row number `k`.
    pub fn unpack(&self, messages: &Messages, k: usize, row: &mut [u8]) {
        for (link, message) in self.links.iter().zip(&messages.incoming) {
            let told = message.chunks_exact(link.receives.len().max(1)).nth(k).unwrap_or_default();
            link.receives.iter().zip(told).for_each(|(&i, &byte)| row[i as usize] = byte);
        }
    }

    /// Everybody's bytes by process; valid on rank 0 only.
    pub fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        if !self.is_first() {
            return exchange_messages(&*self.peers, &[(0, bytes)], &[]);
        }
        let others: Vec<usize> = (1..self.peers.count()).collect();
        let mut all = exchange_messages(&*self.peers, &[], &others)?;
        all.insert(0, bytes.to_vec());
        Ok(all)
    }

    /// What the first process says, everywhere.
    pub fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        if !self.is_first() {
            return Ok(exchange_messages(&*self.peers, &[], &[0])?.concat());
        }
        let to_all: Vec<(usize, &[u8])> = (1..self.peers.count()).map(|peer| (peer, &bytes[..])).collect();
        exchange_messages(&*self.peers, &to_all, &[])?;
        Ok(bytes)
    }

    /// The same numbers everywhere: those of all processes, put together one by one, beginning with 0.
    pub fn fold(&self, mine: &mut [u64], together: impl Fn(u64, u64) -> u64) -> Result<()> {
        let mut totals = vec![0; mine.len()];
        for bytes in self.gather(bytemuck::cast_slice(mine))? {
            totals.iter_mut().zip(numbers(&bytes)).for_each(|(total, x)| *total = together(*total, x));
        }
        let told = self.broadcast(bytemuck::cast_slice(&totals).to_vec())?;
        mine.copy_from_slice(&numbers(&told));
        Ok(())
    }

    /// The same sums everywhere: those of all processes together.
    pub fn sum_exactly(&self, mine: &mut ExactSums) -> Result<()> {
        let mut total = ExactSums::zeros(mine.sums().len());
        for bytes in self.gather(bytemuck::cast_slice(mine.sums()))? {
            total.merge(&numbers(&bytes));
        }
        let told = numbers(&self.broadcast(bytemuck::cast_slice(total.sums()).to_vec())?);
        ensure(told.len() == mine.sums().len(), || {
            Error::argument("mpi", "every rank needs agents of every kind; use fewer ranks")
        })?;
        *mine = ExactSums::zeros(told.len());
        mine.merge(&told);
        Ok(())
    }

    /// Fails everywhere if it failed somewhere, for the reason of the first process that did.
    pub fn all_ok<T>(&self, result: Result<T>) -> Result<T> {
        let mine = match &result {
            Ok(_) => Vec::new(),
            Err(error) => report(error),
        };
        let first = self.gather(&mine)?.into_iter().find(|report| !report.is_empty()).unwrap_or_default();
        let heard = self.broadcast(first)?;
        match result {
            result if heard.is_empty() => result,
            // Its own failure is said in its own words.
            Err(error) if mine == heard => Err(error),
            _ => Err(reported(&heard)),
        }
    }

    /// Fails everywhere if `what` is not the same text everywhere.
    pub fn all_same(&self, text: &str, what: &str) -> Result<()> {
        let texts = self.gather(text.as_bytes())?;
        let other = texts.iter().position(|other| other != text.as_bytes());
        self.all_ok(other.map_or(Ok(()), |rank| {
            let message =
                format!("rank {rank} has another {what} than rank 0; start all ranks with the same");
            Err(Error::argument("mpi", message))
        }))
    }

    /// Rows of `width` numbers of every process's own agents, in agent order, at the first process; nothing
    /// elsewhere.
    pub fn gather_rows(&self, width: usize, own: &[f64]) -> Result<Vec<f64>> {
        let gathered = self.gather(bytemuck::cast_slice(own))?;
        let mut all = vec![0.0; if self.is_first() { self.total * width } else { 0 }];
        for (bytes, agents) in gathered.iter().zip(self.members()) {
            for (&agent, row) in agents.iter().zip(numbers(bytes).chunks_exact(width)) {
                all[agent as usize * width..][..width].copy_from_slice(row);
            }
        }
        Ok(all)
    }

    /// The same for rows of unequal length, of the agents that `graph` owns.
    pub fn gather_ragged(&self, graph: &Graph, rows: &Ragged<f64>) -> Result<Ragged<f64>> {
        let own: Vec<&[f64]> = graph.owned_agents().map(|i| rows.row(i)).collect();
        let lengths: Vec<f64> = own.iter().map(|row| row.len() as f64).collect();
        let lengths = self.gather_rows(1, &lengths)?;
        let mut all = Ragged::zeros(lengths.iter().map(|&length| length as usize));
        for (bytes, agents) in self.gather(bytemuck::cast_slice(&own.concat()))?.iter().zip(self.members()) {
            let data = numbers(bytes);
            let mut rest = &data[..];
            for &agent in agents {
                let row = all.row_mut(agent as usize);
                let (sent, others) = rest.split_at(row.len());
                row.copy_from_slice(sent);
                rest = others;
            }
        }
        Ok(all)
    }

    /// The agents of every process, ascending.
    fn members(&self) -> &[Vec<u32>] {
        let agents = || (0..self.partition.processes()).map(|r| self.partition.agents(r)).collect();
        self.members.get_or_init(agents)
    }
}

/// A decision that could not be made.
const FAILED: u8 = u8::MAX;

/// Numbers that were sent as bytes, whose place in memory may be any.
pub(crate) fn numbers<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

/// An error as other processes are told of it; never empty.
fn report(error: &Error) -> Vec<u8> {
    [&[u8::from(error.is_bad_input())][..], error.to_string().as_bytes()].concat()
}

/// An error that was [reported](report).
fn reported(report: &[u8]) -> Error {
    let (bad_input, message) = report.split_first().unwrap_or((&0, &[]));
    Error::Communicator { message: String::from_utf8_lossy(message).into_owned(), bad_input: *bad_input != 0 }
}

/// Lists from everybody to everybody: what each wrote to this process.
fn all_to_all(peers: &dyn Communicator, lists: &[Vec<u32>]) -> Result<Vec<Vec<u32>>> {
    let others: Vec<usize> = (0..peers.count()).filter(|&peer| peer != peers.rank()).collect();
    let outgoing: Vec<(usize, &[u8])> =
        others.iter().map(|&peer| (peer, bytemuck::cast_slice(&lists[peer]))).collect();
    let heard = exchange_messages(peers, &outgoing, &others)?;
    let mut found = vec![Vec::new(); peers.count()];
    for (&peer, bytes) in others.iter().zip(heard) {
        found[peer] = numbers(&bytes);
    }
    Ok(found)
}

/// Sends messages to their peers, their lengths first, and receives one from each peer in `from`.
fn exchange_messages(
    peers: &dyn Communicator,
    outgoing: &[(usize, &[u8])],
    from: &[usize],
) -> Result<Vec<Vec<u8>>> {
    let lengths: Vec<[u8; 8]> =
        outgoing.iter().map(|(_, message)| (message.len() as u64).to_le_bytes()).collect();
    let announced = outgoing.iter().zip(&lengths).map(|(&(peer, _), length)| (peer, &length[..]));
    let mut expected = vec![[0; 8]; from.len()];
    let mut incoming: Vec<(usize, &mut [u8])> =
        from.iter().copied().zip(expected.iter_mut().map(|length| &mut length[..])).collect();
    peers.exchange(&announced.collect::<Vec<_>>(), &mut incoming, &mut || {})?;
    let mut messages: Vec<Vec<u8>> =
        expected.iter().map(|length| vec![0; u64::from_le_bytes(*length) as usize]).collect();
    let mut incoming: Vec<(usize, &mut [u8])> =
        from.iter().copied().zip(messages.iter_mut().map(|message| &mut message[..])).collect();
    peers.exchange(outgoing, &mut incoming, &mut || {})?;
    Ok(messages)
}
