//! A policy whose agents know of each other what faulty links let through.

use std::cell::RefCell;
use std::ops::Range;

use phalanx_agent::policy::{Network, Rule};
use rayon::prelude::*;

use super::arrivals::Arrivals;
use super::{ActTogether, Acting, GradientInput, GradientScratch, LinkSettings, Policy};
use crate::base::elementary::powi;
use crate::base::sampler::{outcome, write_thresholds};
use crate::base::stream::DRAW_RANGE;
use crate::world::{LARGEST_LOCAL_SPACE, Trajectory, World};
use crate::{Ragged, Result};

/// Another policy, told what an agent knows in place of what is true.
///
/// At step k agent i knows of m the state s_m^j, where j is the newest step ≤ k − `delay` whose message
/// arrived, if k − j ≤ `max_age`; else the usual state of m. A message over d links arrives with probability
/// (1 − `loss`)^d. Which ones arrive depends on the seed, the trajectory, sender, receiver and step alone.
#[derive(Debug)]
pub struct LinkedPolicy {
    policy: Box<dyn Policy>,
    delay: usize,
    max_age: usize,
    /// Row i: the members of N_i^κ, ascending, with what becomes of their messages to i.
    senders: Ragged<Sender>,
    /// Numbers of the agents in the whole graph.
    ids: Vec<u32>,
    /// Agents that act here.
    acting: Range<usize>,
    /// The state that is assumed of an agent when nothing is known.
    usual: Vec<u8>,
}

/// One member of a neighbourhood.
#[derive(Debug, Clone, Copy, Default)]
struct Sender {
    agent: u32,
    /// Draws below it lose a message: 0 for never, 2³¹ for always.
    lost_below: u32,
}

/// Agents that a thread takes at a time.
const TILE: usize = 256;

thread_local! {
    /// What an agent knows at one moment: one state per agent of the world.
    static MOMENT: RefCell<Trajectory> = RefCell::default();
}

impl LinkedPolicy {
    /// `policy` over κ-hop neighbourhoods, behind `links`. Usual states are 0 until they are set.
    pub fn new(policy: Box<dyn Policy>, links: &LinkSettings, world: &dyn World, kappa: usize) -> Self {
        let graph = world.graph();
        let groups = policy.groups();
        let mut senders = Ragged::from_rows(groups.iter().map(|group| {
            let lost_below = DRAW_RANGE;
            group.iter().map(|&agent| Sender { agent, lost_below }).collect::<Vec<_>>()
        }));
        // From far to near, so that the shortest way counts.
        for hops in (0..=kappa).rev() {
            let lost = 1.0 - powi(1.0 - *links.loss, i32::try_from(hops).unwrap_or(i32::MAX));
            let lost_below = (lost * f64::from(DRAW_RANGE)).round() as u32;
            for (i, near) in graph.neighbourhoods(hops).iter().enumerate() {
                for sender in senders.row_mut(i) {
                    if near.binary_search(&sender.agent).is_ok() {
                        sender.lost_below = lost_below;
                    }
                }
            }
        }
        let ids: Vec<u32> = (0..graph.agents()).map(|i| graph.global_id(i)).collect();
        let is_silent = |agent: u32| links.silent.contains(&(ids[agent as usize] as usize));
        for sender in senders.data_mut().iter_mut().filter(|sender| is_silent(sender.agent)) {
            sender.lost_below = DRAW_RANGE;
        }
        LinkedPolicy {
            delay: links.delay,
            max_age: links.max_age.unwrap_or(usize::MAX),
            usual: vec![0; ids.len()],
            acting: graph.owned_span(),
            policy,
            senders,
            ids,
        }
    }

    /// Which of the messages of agent i's sender number `slot` reach it.
    fn arrivals(&self, agent: usize, slot: usize, trajectory: &Trajectory) -> Arrivals {
        let senders = self.senders.row(agent);
        let pair = [slot as u32, senders.len() as u32];
        Arrivals::new(trajectory.origin(), self.ids[agent], pair, senders[slot].lost_below)
    }

    /// What agent i knows of its sender number `slot` at step k.
    fn known(&self, agent: usize, slot: usize, trajectory: &Trajectory, k: usize) -> u8 {
        let sender = self.senders.row(agent)[slot].agent as usize;
        if sender == agent {
            return trajectory.states(agent)[k];
        }
        let newest = k.checked_sub(self.delay);
        let mut arrivals = self.arrivals(agent, slot, trajectory);
        let mut steps = newest.into_iter().flat_map(|newest| (k.saturating_sub(self.max_age)..=newest).rev());
        let heard = if arrivals.are_possible() { steps.find(|&j| arrivals.arrives(j)) } else { None };
        heard.map_or(self.usual[sender], |j| trajectory.states(sender)[j])
    }

    /// Writes what agent i knows at step k over the only step of `moment`.
    fn write_moment(&self, agent: usize, trajectory: &Trajectory, k: usize, moment: &mut Trajectory) {
        let (states, _, _) = moment.columns_mut();
        for (slot, sender) in self.senders.row(agent).iter().enumerate() {
            states[sender.agent as usize] = self.known(agent, slot, trajectory, k);
        }
    }

    /// Writes what agent i knew at the first `steps` steps, and what it did, over `known`.
    fn write_known(&self, agent: usize, trajectory: &Trajectory, steps: usize, known: &mut Trajectory) {
        if known.agents() != self.ids.len() || known.room() != steps {
            *known = Trajectory::new(self.ids.len(), steps);
        }
        let (states, actions, _) = known.columns_mut();
        let column = |agent: usize| agent * steps..(agent + 1) * steps;
        actions[column(agent)].copy_from_slice(&trajectory.actions(agent)[..steps]);
        for (slot, sender) in self.senders.row(agent).iter().enumerate() {
            let sender = sender.agent as usize;
            let (told, out) = (trajectory.states(sender), &mut states[column(sender)]);
            if sender == agent {
                out.copy_from_slice(&told[..steps]);
                continue;
            }
            let mut arrivals = self.arrivals(agent, slot, trajectory);
            let mut newest = None;
            for (k, out) in out.iter_mut().enumerate() {
                newest = k.checked_sub(self.delay).filter(|&j| arrivals.arrives(j)).or(newest);
                let heard = newest.filter(|j| k - j <= self.max_age);
                *out = heard.map_or(self.usual[sender], |j| told[j]);
            }
        }
    }

    /// Hands out room for what an agent knows at one moment.
    fn with_moment<T>(&self, work: impl FnOnce(&mut Trajectory) -> T) -> T {
        // Taken out meanwhile: what is called may ask for it too.
        let mut moment = MOMENT.take();
        if moment.agents() != self.ids.len() || moment.room() != 1 {
            moment = Trajectory::new(self.ids.len(), 1);
        }
        let done = work(&mut moment);
        MOMENT.set(moment);
        done
    }

    /// The action of agent i at step k.
    fn act_one(
        &self,
        agent: usize,
        trajectory: &Trajectory,
        k: usize,
        draw: u32,
        moment: &mut Trajectory,
    ) -> u8 {
        self.write_moment(agent, trajectory, k, moment);
        if let Acting::Alone(policy) = self.policy.acting() {
            let mut action = [0];
            policy.act(agent..agent + 1, moment.columns_mut().0, &[draw], &mut action);
            return action[0];
        }
        let (mut law, mut thresholds) = ([0.0; LARGEST_LOCAL_SPACE], [0; LARGEST_LOCAL_SPACE]);
        let law = &mut law[..self.actions(agent)];
        let thresholds = &mut thresholds[..law.len() - 1];
        self.policy.law(agent, moment, 0, law);
        write_thresholds(law, thresholds);
        outcome(thresholds, draw)
    }
}

impl ActTogether for LinkedPolicy {
    fn act(&self, trajectories: &[&Trajectory], k: usize, draws: &[u32], actions: &mut [u8]) {
        let (n, own) = (self.agents(), self.acting.clone());
        let rows = actions.par_chunks_exact_mut(n).zip(draws.par_chunks_exact(n)).zip(trajectories);
        rows.for_each(|((actions, draws), trajectory)| {
            let tiles = actions[own.clone()].par_chunks_mut(TILE).zip(draws[own.clone()].par_chunks(TILE));
            tiles.enumerate().for_each(|(tile, (actions, draws))| {
                let first = own.start + tile * TILE;
                self.with_moment(|moment| {
                    for (m, (action, &draw)) in actions.iter_mut().zip(draws).enumerate() {
                        *action = self.act_one(first + m, trajectory, k, draw, moment);
                    }
                });
            });
        });
    }
}

impl Policy for LinkedPolicy {
    fn action_counts(&self) -> &[usize] {
        self.policy.action_counts()
    }

    fn groups(&self) -> Ragged<u32> {
        self.policy.groups()
    }

    fn theta(&self) -> &Ragged<f64> {
        self.policy.theta()
    }

    fn theta_mut(&mut self) -> &mut Ragged<f64> {
        self.policy.theta_mut()
    }

    fn row_of(&self, agent: usize) -> usize {
        self.policy.row_of(agent)
    }

    fn is_shared(&self) -> bool {
        self.policy.is_shared()
    }

    fn stands_for_row(&self, agent: usize) -> bool {
        self.policy.stands_for_row(agent)
    }

    fn refresh(&mut self) {
        self.policy.refresh();
    }

    fn acting(&self) -> Acting<'_> {
        Acting::Together(self)
    }

    fn law(&self, agent: usize, trajectory: &Trajectory, k: usize, out: &mut [f64]) {
        self.with_moment(|moment| {
            self.write_moment(agent, trajectory, k, moment);
            self.policy.law(agent, moment, 0, out);
        });
    }

    fn law_of_rows(&self, agent: usize, rows: &[f32], out: &mut [f64]) -> bool {
        self.policy.law_of_rows(agent, rows, out)
    }

    fn rows_read(&self, agent: usize) -> Option<usize> {
        self.policy.rows_read(agent)
    }

    fn gradient(&self, input: GradientInput<'_>, scratch: &mut GradientScratch, out: &mut [f64]) {
        let mut known = std::mem::take(&mut scratch.known);
        known.resize_with(input.batch.len(), Trajectory::default);
        for (trajectory, known) in input.batch.iter().zip(&mut known) {
            self.write_known(input.agent, trajectory, input.rule.steps(trajectory), known);
        }
        self.policy.gradient(GradientInput { batch: &known, ..input }, scratch, out);
        scratch.known = known;
    }

    fn kind(&self) -> &'static str {
        self.policy.kind()
    }

    fn tensors(&self, row: usize) -> Vec<(String, Vec<usize>)> {
        self.policy.tensors(row)
    }

    fn is_single(&self) -> bool {
        self.policy.is_single()
    }

    fn is_direct(&self) -> bool {
        self.policy.is_direct()
    }

    fn portable(&self, agent: usize, states: &[usize], networks: &mut Vec<Network>) -> Result<Rule> {
        self.policy.portable(agent, states, networks)
    }

    fn usual_states(&self) -> Option<&[u8]> {
        Some(&self.usual)
    }

    fn set_usual_states(&mut self, states: Vec<u8>) {
        self.usual = states;
    }
}
