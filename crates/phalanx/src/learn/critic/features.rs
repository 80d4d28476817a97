//! Indicator features of what a neighbourhood sees and does, for linear critics.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::world::Trajectory;
use crate::world::{Columns, Features, Moment, World};
use crate::{Error, Ragged, Result};

/// The generic features of a linear critic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CriticFeatures {
    /// The own state and action, together.
    Own,
    /// Each neighbour's state and action, together: an advantage that does not depend on what others do.
    Additive,
    /// The own pair, and each combination of own and neighbour's pair.
    Pair,
}

/// Name of the key that chooses them.
pub(super) const FEATURES: &str = "critic.features";

/// The features of agent j's critic over its group N_j^{κ_q}.
#[derive(Debug)]
pub struct FeatureSet {
    /// The generic blocks.
    blocks: Box<[Block]>,
    /// Place of j in its group.
    own: usize,
    own_actions: u32,
    /// |A_m| of every member.
    pub(super) actions: Box<[usize]>,
    /// What the world adds, from `world_first` on.
    world: Option<Box<dyn Features>>,
    world_first: u32,
    /// How many there are.
    pub(crate) count: usize,
}

/// One member's indicators: the active one is `first + own_stride·(own pair) + (member's pair)`.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// Place in the group.
    member: u32,
    first: u32,
    own_stride: u32,
    actions: u32,
}

impl Block {
    /// The active indicator, given the agent's own pair and the group's states and actions.
    fn feature(&self, own_pair: u32, states: &[u8], actions: &[u8]) -> u32 {
        let pair =
            u32::from(states[self.member as usize]) * self.actions + u32::from(actions[self.member as usize]);
        self.first + self.own_stride * own_pair + pair
    }
}

impl FeatureSet {
    /// The features of `agent` over `group`. Fails if they are too many to be numbered.
    pub fn new(
        world: &dyn World,
        agent: usize,
        group: &[u32],
        kind: CriticFeatures,
        with_world: bool,
    ) -> Result<Self> {
        let own = group.iter().position(|&m| m as usize == agent).unwrap_or(0);
        let pairs = |m: usize| (world.states(m) * world.actions(m)) as u32;
        let too_many = || {
            let message = format!("agent {agent} has too many features over its {} neighbours", group.len());
            Error::config(FEATURES, format!("{message}; at most {} can be numbered", u32::MAX))
        };
        let mut first = 0u32;
        let mut blocks = Vec::new();
        for (member, &m) in group.iter().enumerate() {
            let is_own = member == own;
            let m = m as usize;
            let (own_stride, size) = match kind {
                CriticFeatures::Own if !is_own => continue,
                CriticFeatures::Pair if !is_own => (pairs(m), pairs(agent) * pairs(m)),
                _ => (0, pairs(m)),
            };
            blocks.push(Block { member: member as u32, first, own_stride, actions: world.actions(m) as u32 });
            first = first.checked_add(size).ok_or_else(too_many)?;
        }
        let world_features = if with_world { world.features(agent, group) } else { None };
        let count = first as usize + world_features.as_ref().map_or(0, |features| features.count());
        let own_actions = world.actions(agent) as u32;
        let actions = group.iter().map(|&m| world.actions(m as usize)).collect();
        if u32::try_from(count).is_err() {
            return Err(too_many());
        }
        let blocks = blocks.into();
        Ok(FeatureSet { blocks, own, own_actions, actions, world: world_features, world_first: first, count })
    }

    /// Whether the active indicator of a block depends on what `member` does.
    fn depends(&self, block: &Block, member: usize) -> bool {
        block.member as usize == member || block.own_stride != 0 && member == self.own
    }

    /// Of a member's block of indicators, by its place in the group: the first one, and what a unit of the
    /// own pair adds; none if it has no block.
    pub(crate) fn block_of(&self, member: usize) -> Option<[u32; 2]> {
        let block = self.blocks.iter().find(|block| block.member as usize == member)?;
        Some([block.first, block.own_stride])
    }

    /// Place of the agent in its group.
    pub(crate) fn own(&self) -> usize {
        self.own
    }

    /// The first indicator that the world adds, if it does.
    pub(crate) fn world_first(&self) -> Option<u32> {
        self.world.as_ref().map(|_| self.world_first)
    }

    fn own_pair(&self, states: &[u8], actions: &[u8]) -> u32 {
        u32::from(states[self.own]) * self.own_actions + u32::from(actions[self.own])
    }

    /// Adds the numbers of the active ones, given the group's states and actions.
    pub fn active(&self, states: &[u8], actions: &[u8], out: &mut Vec<u32>) {
        let own = self.own_pair(states, actions);
        out.extend(self.blocks.iter().map(|block| block.feature(own, states, actions)));
        if let Some(world) = &self.world {
            let generic = out.len();
            world.active(states, actions, out);
            out[generic..].iter_mut().for_each(|x| *x += self.world_first);
        }
    }

    /// Adds ⟨weights, φ⟩ with the action of `member` replaced by each of its alternatives.
    pub fn add_alternatives(
        &self,
        weights: &[f64],
        states: &[u8],
        actions: &mut [u8],
        member: usize,
        out: &mut [f64],
    ) {
        self.add_generic_alternatives(weights, states, actions, member, out);
        if let Some(world) = &self.world {
            let weights = &weights[self.world_first as usize..];
            world.add_alternatives(weights, Moment { states, actions }, member, out);
        }
    }

    /// The same for every member in turn, one after the other.
    pub fn add_all_alternatives(&self, weights: &[f64], states: &[u8], actions: &mut [u8], out: &mut [f64]) {
        let mut first = 0;
        for (member, &count) in self.actions.iter().enumerate() {
            self.add_generic_alternatives(weights, states, actions, member, &mut out[first..first + count]);
            first += count;
        }
        if let Some(world) = &self.world {
            let weights = &weights[self.world_first as usize..];
            world.add_all_alternatives(weights, Moment { states, actions }, &self.actions, out);
        }
    }

    /// As [`FeatureSet::add_alternatives`] along a trajectory, up to a number that all alternatives of a step
    /// share: `out` is `[step][alternative]`. Returns whether it is written, which the world decides.
    pub fn add_changes<'a>(
        &self,
        weights: &[f64],
        columns: &dyn Fn(usize) -> Columns<'a>,
        member: usize,
        alternatives: usize,
        out: &mut [f64],
    ) -> bool {
        if let Some(world) = &self.world
            && !world.add_changes(&weights[self.world_first as usize..], columns, member, alternatives, out)
        {
            return false;
        }
        let own = columns(self.own);
        for block in self.blocks.iter().filter(|block| self.depends(block, member)) {
            let other = columns(block.member as usize);
            for (k, out) in out.chunks_exact_mut(alternatives).enumerate() {
                for (b, out) in out.iter_mut().enumerate() {
                    let pair = |m: usize, column: Columns<'_>, actions: u32| {
                        let action = if m == member { b as u32 } else { u32::from(column.actions[k]) };
                        u32::from(column.states[k]) * actions + action
                    };
                    let own = pair(self.own, own, self.own_actions);
                    let other = pair(block.member as usize, other, block.actions);
                    *out += weights[(block.first + block.own_stride * own + other) as usize];
                }
            }
        }
        true
    }

    fn add_generic_alternatives(
        &self,
        weights: &[f64],
        states: &[u8],
        actions: &mut [u8],
        member: usize,
        out: &mut [f64],
    ) {
        let taken = actions[member];
        let mut common = 0.0;
        for block in &self.blocks {
            let weight = |actions: &[u8]| {
                weights[block.feature(self.own_pair(states, actions), states, actions) as usize]
            };
            if !self.depends(block, member) {
                common += weight(actions);
                continue;
            }
            for (b, out) in out.iter_mut().enumerate() {
                actions[member] = b as u8;
                *out += weight(actions);
            }
            actions[member] = taken;
        }
        out.iter_mut().for_each(|out| *out += common);
    }
}

/// Reads the states and actions of a group at one step.
pub fn read_group(
    group: &[u32],
    trajectory: &Trajectory,
    step: usize,
    states: &mut Vec<u8>,
    actions: &mut Vec<u8>,
) {
    states.clear();
    actions.clear();
    for &m in group {
        states.push(trajectory.states(m as usize)[step]);
        actions.push(trajectory.actions(m as usize)[step]);
    }
}

/// Active features step by step.
#[derive(Debug, Default)]
pub struct FeatureRows {
    active: Vec<u32>,
    ends: Vec<usize>,
    states: Vec<u8>,
    actions: Vec<u8>,
}

impl FeatureRows {
    /// Those along a trajectory, of what a group sees and does.
    pub fn read(&mut self, set: &FeatureSet, group: &[u32], trajectory: &Trajectory) {
        let FeatureRows { active, ends, states, actions } = self;
        active.clear();
        ends.clear();
        for k in 0..trajectory.steps() {
            read_group(group, trajectory, k, states, actions);
            set.active(states, actions, active);
            ends.push(active.len());
        }
    }

    /// Those of step k; after the last step there are none, and so no value.
    pub fn row(&self, step: usize) -> &[u32] {
        if step >= self.ends.len() {
            return &[];
        }
        let first = if step == 0 { 0 } else { self.ends[step - 1] };
        &self.active[first..self.ends[step]]
    }
}

/// All agents' features with their groups.
#[derive(Debug)]
pub struct AllFeatures {
    /// N_j^{κ_q}.
    pub groups: Ragged<u32>,
    /// Agent j's features over it.
    pub sets: Vec<FeatureSet>,
    /// Agents that learn here.
    pub blocks: Vec<Range<usize>>,
    /// Agents of the whole graph.
    pub total: usize,
    /// Which generic ones.
    pub(crate) kind: CriticFeatures,
}

impl AllFeatures {
    /// Features of every agent over its κ_q-hop neighbourhood.
    pub fn new(world: &dyn World, kappa_q: usize, kind: CriticFeatures, with_world: bool) -> Result<Self> {
        let groups = world.graph().neighbourhoods(kappa_q);
        let set = |j| FeatureSet::new(world, j, groups.row(j), kind, with_world);
        let sets = (0..groups.rows()).map(set).collect::<Result<_>>()?;
        let (blocks, total) = (world.graph().work_blocks(), world.graph().total());
        Ok(AllFeatures { groups, sets, blocks, total, kind })
    }
}
