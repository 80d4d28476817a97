//! Several ranks with a part of the graph each: what crosses their borders while they iterate on cards.
//!
//! Actions and states of every step cross as between processors, a byte each. Once per iteration critics and
//! multipliers of the agents at a border do: a rank has all members of its neighbours' neighbourhoods
//! ([`card_depth`]), so it works out their values as they would, with the kernels of a single rank.
//! Everything goes through the host.

use std::ops::Range;
use std::sync::Arc;

use phalanx_gpu::{Launch, Layout, Program};

use super::device::failure;
use super::shape::Shape;
use crate::Result;
use crate::distributed::{Halo, Link, Messages};
use crate::graph::Graph;
use crate::learn::agent_metrics::folded_bytes;

/// How far from its own agents a rank must know everybody, where policies see κ hops and critics κ_q: critics
/// of neighbours are evaluated here.
pub(crate) fn card_depth(kappa: usize, kappa_q: usize) -> usize {
    kappa.max(kappa_q.saturating_mul(2))
}

/// What critics tell other ranks: numbers of an array.
pub struct ToldNumbers<'a> {
    /// Its name.
    pub array: &'static str,
    /// Whether its numbers have single precision.
    pub is_single: bool,
    /// Where an agent's numbers are. Ranks that know its whole neighbourhood find as many, in one order.
    pub places: Box<dyn Fn(usize) -> Vec<u64> + 'a>,
}

/// What crosses borders at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crossing {
    /// States or actions of a step, in so many trajectories.
    Step {
        /// How many.
        trajectories: usize,
    },
    /// Critics and multipliers.
    Values,
}

/// A piece of a stage.
#[derive(Debug)]
pub enum Piece<K> {
    /// Kernels.
    Kernels(K),
    /// Something has to cross before the next ones.
    Exchange(Crossing),
}

/// What is told of a step, as `borders.cu` numbers it.
#[derive(Debug, Clone, Copy)]
enum Of {
    Actions = 0,
    States = 1,
}

/// Lists for all links, one after the other.
#[derive(Debug)]
struct Lists<T> {
    all: Vec<T>,
    of_link: Vec<Range<usize>>,
}

impl<T> FromIterator<Vec<T>> for Lists<T> {
    fn from_iter<I: IntoIterator<Item = Vec<T>>>(lists: I) -> Self {
        let (mut all, mut of_link) = (Vec::new(), Vec::new());
        for list in lists {
            of_link.push(all.len()..all.len() + list.len());
            all.extend(list);
        }
        Lists { all, of_link }
    }
}

/// Numbers that are sent, and those that come.
#[derive(Debug)]
struct BothWays<T> {
    sent: Lists<T>,
    received: Lists<T>,
}

/// The borders of a rank, for a card.
pub struct Borders {
    halo: Arc<Halo>,
    messages: Messages,
    /// Agents, by their numbers here.
    agents: BothWays<u32>,
    /// Places of critics' numbers in their array, and of multipliers.
    values: BothWays<u64>,
    mu: BothWays<u64>,
    array: &'static str,
    is_single: bool,
    trajectories: usize,
}

impl Borders {
    /// Of the part `graph` of the whole graph.
    pub fn new(halo: Arc<Halo>, graph: &Graph, shape: &Shape, told: &ToldNumbers<'_>) -> Self {
        let (n, rank) = (shape.agents, halo.peers().rank());
        let owner = |i: u32| halo.partition.owner(graph.global_id(i as usize));
        // Those whose values are heard on the other side. Neighbourhoods are mutual, and those of agents that
        // are heard are whole on both sides.
        let heard = |agents: &[u32], by: usize| -> Vec<usize> {
            let is_heard = |&&j: &&u32| shape.q_groups.row(j as usize).iter().any(|&i| owner(i) == by);
            agents.iter().filter(is_heard).map(|&j| j as usize).collect()
        };
        let sent = |link: &Link| heard(&link.sends, link.peer);
        let received = |link: &Link| heard(&link.receives, rank);
        let values = |agents: Vec<usize>| agents.into_iter().flat_map(|j| (told.places)(j)).collect();
        let mu = |agents: Vec<usize>| -> Vec<u64> {
            let places = |j: usize| (0..shape.constraints[j]).map(move |c| (c * n + j) as u64);
            agents.into_iter().flat_map(places).collect()
        };
        let links = || halo.links.iter();
        Borders {
            messages: halo.messages(),
            agents: BothWays {
                sent: links().map(|link| link.sends.clone()).collect(),
                received: links().map(|link| link.receives.clone()).collect(),
            },
            values: BothWays {
                sent: links().map(|link| values(sent(link))).collect(),
                received: links().map(|link| values(received(link))).collect(),
            },
            mu: BothWays {
                sent: links().map(|link| mu(sent(link))).collect(),
                received: links().map(|link| mu(received(link))).collect(),
            },
            array: told.array,
            is_single: told.is_single,
            trajectories: shape.batch + shape.chains,
            halo,
        }
    }

    /// Constants, arrays and text; behind that of the simulation.
    pub fn add_to(&self, layout: &mut Layout) {
        let Borders { agents, values, mu, trajectories, .. } = self;
        layout.constant("VALUES_ARRAY", self.array);
        for (count, list, agents) in
            [("step_sends", "step_sent", &agents.sent), ("step_receives", "step_received", &agents.received)]
        {
            layout.number(count, agents.all.len() as i64);
            layout.array_from(list, &agents.all);
        }
        for (count, list, places) in [
            ("value_sends", "value_sent", &values.sent),
            ("value_receives", "value_received", &values.received),
            ("mu_sends", "mu_sent", &mu.sent),
            ("mu_receives", "mu_received", &mu.received),
        ] {
            layout.number(count, places.all.len() as i64);
            layout.array_from(list, &places.all);
        }
        layout.array::<u8>("step_out", trajectories * agents.sent.all.len());
        layout.array::<u8>("step_in", trajectories * agents.received.all.len());
        for (room, places) in [("values_out", &values.sent), ("values_in", &values.received)] {
            match self.is_single {
                true => layout.array::<f32>(room, places.all.len()),
                false => layout.array::<f64>(room, places.all.len()),
            }
        }
        layout.array::<f64>("mu_out", mu.sent.all.len());
        layout.array::<f64>("mu_in", mu.received.all.len());
        layout.text(include_str!("kernels/borders.cu"));
    }

    /// Line 3: kernels that begin, and for every step those that act and those that move on. Others are told
    /// of the actions before agents move, and of the states before they act.
    pub fn simulation(
        &self,
        shape: &Shape,
        begin: Vec<Launch>,
        step: impl Fn(usize) -> [Vec<Launch>; 2],
    ) -> Vec<Piece<Vec<Launch>>> {
        let (mut pieces, mut kernels, longest) = (Vec::new(), begin, shape.longest());
        for k in 0..longest {
            let [act, move_on] = step(k);
            kernels.extend(act);
            self.tell_step(k, Of::Actions, shape, &mut kernels, &mut pieces);
            kernels.extend(move_on);
            if k + 1 < longest {
                self.tell_step(k + 1, Of::States, shape, &mut kernels, &mut pieces);
            }
        }
        pieces.push(Piece::Kernels(kernels));
        pieces
    }

    /// Ends a piece with an exchange, and begins the next one with what has come.
    fn tell_step(
        &self,
        k: usize,
        of: Of,
        shape: &Shape,
        kernels: &mut Vec<Launch>,
        pieces: &mut Vec<Piece<Vec<Launch>>>,
    ) {
        let trajectories = shape.trajectories_at(k);
        let over = |kernel, agents: &Lists<u32>| {
            let launch = Launch::over(kernel, agents.all.len()).with(k, of as usize);
            Launch { grid: [launch.grid[0], trajectories as u32], ..launch }
        };
        kernels.push(over("pack_step", &self.agents.sent));
        pieces.push(Piece::Kernels(std::mem::take(kernels)));
        pieces.push(Piece::Exchange(Crossing::Step { trajectories }));
        kernels.push(over("unpack_step", &self.agents.received));
    }

    /// Line 8: kernels that need critics and multipliers of neighbours.
    pub fn with_values(&self, kernels: Vec<Launch>) -> Vec<Piece<Vec<Launch>>> {
        let over = |kernel, values: &Lists<u64>, mu: &Lists<u64>| {
            Launch::over(kernel, values.all.len().max(mu.all.len()))
        };
        let pack = over("pack_values", &self.values.sent, &self.mu.sent);
        let unpack = over("unpack_values", &self.values.received, &self.mu.received);
        vec![
            Piece::Kernels(vec![pack]),
            Piece::Exchange(Crossing::Values),
            Piece::Kernels([vec![unpack], kernels].concat()),
        ]
    }

    /// Tells other ranks what was packed, and hands to the card what they told.
    pub fn exchange(&mut self, crossing: Crossing, program: &Program) -> Result<()> {
        match crossing {
            Crossing::Step { trajectories } => self.exchange_step(trajectories, program),
            Crossing::Values => self.exchange_values(program),
        }
    }

    fn exchange_step(&mut self, trajectories: usize, program: &Program) -> Result<()> {
        let BothWays { sent, received } = &self.agents;
        let Messages { outgoing, incoming } = &mut self.messages;
        let out = read(program, "step_out", trajectories * sent.all.len())?;
        for (message, agents) in outgoing.iter_mut().zip(&sent.of_link) {
            message.clear();
            let rows = out.chunks_exact(sent.all.len().max(1));
            rows.for_each(|row| message.extend_from_slice(&row[agents.clone()]));
        }
        for (message, agents) in incoming.iter_mut().zip(&received.of_link) {
            message.resize(trajectories * agents.len(), 0);
        }
        self.halo.exchange(&mut self.messages, &mut || ())?;
        let mut told = vec![0; trajectories * received.all.len()];
        for (message, agents) in self.messages.incoming.iter().zip(&received.of_link) {
            let rows = told.chunks_exact_mut(received.all.len().max(1));
            let messages = message.chunks_exact(agents.len().max(1));
            rows.zip(messages).for_each(|(row, bytes)| row[agents.clone()].copy_from_slice(bytes));
        }
        write(program, "step_in", &told)
    }

    fn exchange_values(&mut self, program: &Program) -> Result<()> {
        let bytes = self.number_bytes();
        let of = |places: &Range<usize>, bytes: usize| places.start * bytes..places.end * bytes;
        let values = read(program, "values_out", self.values.sent.all.len() * bytes)?;
        let mu = read(program, "mu_out", self.mu.sent.all.len() * size_of::<f64>())?;
        let places = self.values.sent.of_link.iter().zip(&self.mu.sent.of_link);
        for (message, (of_values, of_mu)) in self.messages.outgoing.iter_mut().zip(places) {
            message.clear();
            message.extend_from_slice(&values[of(of_values, bytes)]);
            message.extend_from_slice(&mu[of(of_mu, size_of::<f64>())]);
        }
        let places = || self.values.received.of_link.iter().zip(&self.mu.received.of_link);
        for (message, (of_values, of_mu)) in self.messages.incoming.iter_mut().zip(places()) {
            message.resize(of_values.len() * bytes + of_mu.len() * size_of::<f64>(), 0);
        }
        self.halo.exchange(&mut self.messages, &mut || ())?;
        let (mut values, mut mu) = (Vec::new(), Vec::new());
        for (message, (of_values, _)) in self.messages.incoming.iter().zip(places()) {
            let (of_values, of_mu) = message.split_at(of_values.len() * bytes);
            values.extend_from_slice(of_values);
            mu.extend_from_slice(of_mu);
        }
        write(program, "values_in", &values)?;
        write(program, "mu_in", &mu)
    }

    fn number_bytes(&self) -> usize {
        if self.is_single { size_of::<f32>() } else { size_of::<f64>() }
    }

    /// The most that this rank sends in an iteration.
    pub fn bound(&self, shape: &Shape) -> u64 {
        let steps = 2 * shape.rows() * self.agents.sent.all.len();
        let values = self.values.sent.all.len() * self.number_bytes();
        let mu = self.mu.sent.all.len() * size_of::<f64>();
        let folded = folded_bytes(shape.own().count(), &self.halo);
        // And what it takes to agree how to go on.
        (steps + values + mu + folded + 64 * (self.halo.peers().count() + 1)) as u64
    }
}

fn read(program: &Program, array: &str, bytes: usize) -> Result<Vec<u8>> {
    let mut out = vec![0; bytes];
    if bytes > 0 {
        program.array(array).read(0, &mut out).map_err(failure)?;
    }
    Ok(out)
}

fn write(program: &Program, array: &str, bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() { Ok(()) } else { program.array(array).write(0, bytes).map_err(failure) }
}
