//! One table of parameters per agent, over the joint state of its κ-hop neighbourhood.

use std::ops::Range;

use phalanx_agent::policy::{Network, Rule};

use super::columns::state_column;
use super::softmax::Spread;
use super::{ActAlone, Acting, Baseline, Parameterisation, Policy, PolicySettings};
use super::{GradientInput, GradientScratch, ThetaKeys, draw_theta, entropy_slopes, softmax};
use crate::base::limits::check_memory;
use crate::base::parallel::{agent_blocks, for_each_agent};
use crate::base::sampler::{outcome, write_thresholds};
use crate::base::section::Keys;
use crate::base::stream::Stream;
use crate::graph::indexing::StateIndex;
use crate::world::Trajectory;
use crate::world::World;
use crate::{Ragged, Result};

/// The settings of `softmax` and `direct`.
#[derive(Debug)]
pub struct TabularSettings {
    /// How θ makes π.
    pub parameterisation: Parameterisation,
    theta: ThetaKeys,
}

impl TabularSettings {
    pub(super) fn read(parameterisation: Parameterisation, keys: &mut Keys) -> Result<Self> {
        Ok(TabularSettings { parameterisation, theta: keys.read()? })
    }

    /// The tables.
    pub fn build(&self, world: &dyn World, kappa: usize, stream: &Stream) -> Result<Tabular> {
        Tabular::new(world, kappa, self.parameterisation, *self.theta.init_std, stream)
    }
}

impl PolicySettings for TabularSettings {
    fn check(&self) -> Result<()> {
        match self.parameterisation {
            Parameterisation::Softmax => Ok(()),
            Parameterisation::Direct => {
                self.theta.without_box("`softmax`; `direct` is projected onto the simplex")
            }
        }
    }

    fn build(&self, world: &dyn World, kappa: usize, stream: &Stream) -> Result<Box<dyn Policy>> {
        Ok(Box::new(self.build(world, kappa, stream)?))
    }

    fn theta_box(&self) -> Option<[f64; 2]> {
        self.theta.theta_box()
    }

    fn tables(&self) -> Option<&TabularSettings> {
        Some(self)
    }
}

/// Tabular policies of all agents: `theta` row i is `[∏ S_{N_i^κ}][A_i]`, row-major.
#[derive(Debug, Clone)]
pub struct Tabular {
    parameterisation: Parameterisation,
    observations: StateIndex,
    actions: Vec<usize>,
    theta: Ragged<f64>,
    /// π in the shape of θ, kept in step with it by [`Policy::refresh`].
    probabilities: Ragged<f64>,
    /// π as sampling thresholds, A_i − 1 an observation.
    thresholds: Ragged<u32>,
}

impl Tabular {
    /// Uniform policies over κ-hop neighbourhoods, perturbed by normal noise of size `init_std` on θ
    /// (soft-max) or on the logarithm of π (direct): utilities such as ‖·‖² have a stationary point at
    /// uniform (errata 10).
    pub fn new(
        world: &dyn World,
        kappa: usize,
        parameterisation: Parameterisation,
        init_std: f64,
        stream: &Stream,
    ) -> Result<Self> {
        let n = world.graph().agents();
        let states: Vec<usize> = (0..n).map(|i| world.states(i)).collect();
        let actions: Vec<usize> = (0..n).map(|i| world.actions(i)).collect();
        let observations =
            StateIndex::new(&world.graph().neighbourhoods(kappa), &states, crate::base::key::KAPPA)?;
        // θ, π, the gradient and an optimiser's two moments.
        let entries: u128 = (0..n).map(|i| observations.size(i) as u128 * actions[i] as u128).sum();
        check_memory(5 * 8 * entries, crate::base::key::KAPPA, &format!("policies of {entries} parameters"))?;
        let mut theta: Ragged<f64> = Ragged::zeros((0..n).map(|i| observations.size(i) * actions[i]));
        draw_theta(&mut theta, init_std, world, stream);
        if parameterisation == Parameterisation::Direct {
            for i in 0..n {
                theta.row_mut(i).chunks_mut(actions[i]).for_each(softmax);
            }
        }
        let mut policy = Tabular {
            parameterisation,
            thresholds: Ragged::zeros((0..n).map(|i| observations.size(i) * (actions[i] - 1))),
            probabilities: Ragged::zeros_like(&theta),
            observations,
            actions,
            theta,
        };
        policy.refresh();
        Ok(policy)
    }

    /// A fixed policy: agent i's law over actions by its own state, row i of `laws` as `[S_i][A_i]`.
    pub fn scripted(world: &dyn World, laws: Ragged<f64>) -> Result<Self> {
        let mut policy = Tabular::new(world, 0, Parameterisation::Direct, 0.0, &Stream::new(0))?;
        policy.update(|theta| *theta = laws);
        Ok(policy)
    }

    /// How θ makes π.
    pub fn parameterisation(&self) -> Parameterisation {
        self.parameterisation
    }

    /// Which states each agent's policy reads, and how they number its table.
    pub fn observations(&self) -> &StateIndex {
        &self.observations
    }

    /// π, in the shape of θ.
    pub fn laws(&self) -> &Ragged<f64> {
        &self.probabilities
    }

    /// π_i as `[∏ S_{N_i^κ}][A_i]`.
    pub fn probabilities(&self, agent: usize) -> &[f64] {
        self.probabilities.row(agent)
    }

    /// Changes θ through `update` and brings π in step.
    pub fn update(&mut self, update: impl FnOnce(&mut Ragged<f64>)) {
        update(&mut self.theta);
        self.refresh();
    }
}

impl ActAlone for Tabular {
    fn act(&self, agents: Range<usize>, states: &[u8], draws: &[u32], actions: &mut [u8]) {
        let mut observations = [0; TILE];
        for first in (0..agents.len()).step_by(TILE) {
            let tile = first..(first + TILE).min(agents.len());
            let observations = &mut observations[..tile.len()];
            let members = agents.start + tile.start..agents.start + tile.end;
            self.observations.fill(members.clone(), states, observations);
            let choices = actions[tile.clone()].iter_mut().zip(&draws[tile]).zip(observations);
            let places = self.thresholds.offsets()[members.clone()].iter().zip(&self.actions[members]);
            let data = self.thresholds.data();
            for ((&place, &count), ((action, &draw), &mut observation)) in places.zip(choices) {
                // Two actions, the most common case, need one comparison.
                *action = if count == 2 {
                    u8::from(draw >= data[place + observation as usize])
                } else {
                    let width = count - 1;
                    outcome(&data[place + observation as usize * width..][..width], draw)
                };
            }
        }
    }
}

impl Policy for Tabular {
    fn action_counts(&self) -> &[usize] {
        &self.actions
    }

    fn groups(&self) -> Ragged<u32> {
        let members = |i| self.observations.terms(i).iter().map(|term| term.agent).collect::<Vec<_>>();
        Ragged::from_rows((0..self.agents()).map(members))
    }

    fn theta(&self) -> &Ragged<f64> {
        &self.theta
    }

    fn theta_mut(&mut self) -> &mut Ragged<f64> {
        &mut self.theta
    }

    /// Brings π in step with θ.
    fn refresh(&mut self) {
        let blocks = agent_blocks(self.actions.len());
        let (theta, actions, direct) =
            (&self.theta, &self.actions, self.parameterisation == Parameterisation::Direct);
        let probabilities = self.probabilities.split_rows_mut(&blocks).into_iter();
        let rows = probabilities.zip(self.thresholds.split_rows_mut(&blocks));
        for_each_agent(&blocks, rows, |(): &mut (), i, (pi, thresholds)| {
            let pi = pi.row_mut(i);
            pi.copy_from_slice(theta.row(i));
            let laws = pi.chunks_exact_mut(actions[i]);
            // A single action leaves nothing to draw and no thresholds.
            if actions[i] == 1 {
                return laws.for_each(|law| law[0] = 1.0);
            }
            for (law, thresholds) in laws.zip(thresholds.row_mut(i).chunks_exact_mut(actions[i] - 1)) {
                if !direct {
                    softmax(law);
                }
                write_thresholds(law, thresholds);
            }
        });
    }

    fn acting(&self) -> Acting<'_> {
        Acting::Alone(self)
    }

    fn law(&self, agent: usize, trajectory: &Trajectory, k: usize, out: &mut [f64]) {
        let terms = self.observations().terms(agent).iter();
        let seen: usize = terms
            .map(|term| term.stride as usize * usize::from(trajectory.states(term.agent as usize)[k]))
            .sum();
        out.copy_from_slice(&self.probabilities(agent)[seen * out.len()..][..out.len()]);
    }

    /// Reads the columns of N_i^κ only.
    fn gradient(&self, input: GradientInput<'_>, scratch: &mut GradientScratch, out: &mut [f64]) {
        let GradientInput { agent, batch, receive, rule } = input;
        let actions = self.actions[agent];
        let pi = self.probabilities(agent);
        let direct = self.is_direct();
        let per_step = if rule.needs_alternatives(direct) { actions } else { 1 };
        let by_mean = rule.baseline == Baseline::Mean && !rule.all_actions && !direct;
        let GradientScratch { values, pairs, laws, observations, visits, .. } = scratch;
        out.fill(0.0);
        visits.clear();
        visits.resize(if by_mean || rule.entropy != 0.0 { out.len() } else { 0 }, 0.0);
        let mut spread = Spread::default();
        for (number, trajectory) in batch.iter().enumerate() {
            let steps = rule.steps(trajectory);
            values.resize(steps * per_step, 0.0);
            receive(number, pairs, values);
            if rule.normalise {
                spread.add(values, &rule.weights);
            }
            let terms = self.observations.terms(agent);
            state_column(terms, trajectory, steps, observations);
            let steps = observations.iter().zip(trajectory.actions(agent)).zip(&rule.weights);
            let steps = steps.zip(values.chunks_exact(per_step));
            if direct {
                // Less the expectation: projection onto the simplex would undo a common shift of a row, but
                // Adam, which rescales each entry by itself, would follow it.
                for (((&x, _), &w), values) in steps {
                    let row = x as usize * actions;
                    let expected: f64 = pi[row..row + actions].iter().zip(values).map(|(p, v)| p * v).sum();
                    out[row..row + actions]
                        .iter_mut()
                        .zip(values)
                        .for_each(|(g, v)| *g += w * (v - expected));
                }
                continue;
            }
            if rule.entropy != 0.0 && !by_mean {
                for ((&x, &a), &w) in observations.iter().zip(trajectory.actions(agent)).zip(&rule.weights) {
                    visits[x as usize * actions + usize::from(a)] += w;
                }
            }
            if rule.all_actions {
                for (((&x, _), &w), values) in steps {
                    let row = x as usize * actions;
                    let law = &pi[row..row + actions];
                    let expected: f64 = law.iter().zip(values).map(|(p, v)| p * v).sum();
                    for ((g, p), v) in out[row..row + actions].iter_mut().zip(law).zip(values) {
                        *g += w * p * (v - expected);
                    }
                }
                continue;
            }
            match rule.baseline {
                Baseline::Counterfactual => {
                    for (((&x, &a), &w), values) in steps {
                        let row = x as usize * actions;
                        let mut expected = 0.0;
                        for (p, v) in pi[row..row + actions].iter().zip(values) {
                            expected += p * v;
                        }
                        out[row + usize::from(a)] += w * (values[usize::from(a)] - expected);
                    }
                }
                Baseline::Mean => {
                    for (((&x, &a), &w), values) in steps {
                        let cell = x as usize * actions + usize::from(a);
                        out[cell] += w * values[0];
                        visits[cell] += w;
                    }
                }
                Baseline::None => {
                    for (((&x, &a), &w), values) in steps {
                        out[x as usize * actions + usize::from(a)] += w * values[0];
                    }
                }
            }
        }
        if direct {
            return;
        }
        if by_mean {
            let mean = out.iter().sum::<f64>() / visits.iter().sum::<f64>();
            out.iter_mut().zip(visits.iter()).for_each(|(c, v)| *c -= mean * v);
        }
        if rule.normalise {
            out.iter_mut().for_each(|c| *c /= spread.deviation());
        }
        // ∂ log π(a|x)/∂θ(x, b) = 1[a = b] − π(b|x), summed over the samples of x.
        for (row, law) in out.chunks_exact_mut(actions).zip(pi.chunks_exact(actions)) {
            let total: f64 = row.iter().sum();
            row.iter_mut().zip(law).for_each(|(g, p)| *g -= p * total);
        }
        if rule.entropy == 0.0 {
            return;
        }
        // The slopes of the entropy, once for every visit of x.
        let laws_and_visits = pi.chunks_exact(actions).zip(visits.chunks_exact(actions));
        for (row, (law, visits)) in out.chunks_exact_mut(actions).zip(laws_and_visits) {
            entropy_slopes(law, rule.entropy * visits.iter().sum::<f64>(), laws);
            row.iter_mut().zip(laws.iter()).for_each(|(g, slope)| *g += slope);
        }
    }

    fn kind(&self) -> &'static str {
        match self.parameterisation {
            Parameterisation::Softmax => "softmax",
            Parameterisation::Direct => "direct",
        }
    }

    fn portable(&self, agent: usize, _: &[usize], _: &mut Vec<Network>) -> Result<Rule> {
        let laws = self.probabilities(agent).chunks_exact(self.actions[agent]);
        Ok(Rule::Table { probabilities: laws.map(<[f64]>::to_vec).collect() })
    }

    fn tabular(&self) -> Option<&Tabular> {
        Some(self)
    }

    fn is_direct(&self) -> bool {
        self.parameterisation == Parameterisation::Direct
    }
}

/// Agents whose observations are numbered together.
const TILE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Line, Start};

    #[test]
    fn starts_uniform_and_follows_theta() {
        let world = Line::new(3, Start::Uniform, 0.0).unwrap();
        for parameterisation in [Parameterisation::Softmax, Parameterisation::Direct] {
            let policy = Tabular::new(&world, 1, parameterisation, 0.0, &Stream::new(1)).unwrap();
            assert_eq!([0, 1, 2].map(|i| policy.probabilities(i).len()), [8, 16, 8]);
            assert!(policy.probabilities(1).iter().all(|&p| p == 0.5));
        }
        let mut policy = Tabular::new(&world, 0, Parameterisation::Softmax, 0.0, &Stream::new(1)).unwrap();
        policy.update(|theta| theta.row_mut(2)[3] = 3f64.ln());
        assert!((policy.probabilities(2)[3] - 0.75).abs() < 1e-15);
    }

    #[test]
    fn actions_follow_the_observation() {
        let world = Line::new(3, Start::Uniform, 0.0).unwrap();
        let mut policy = Tabular::new(&world, 1, Parameterisation::Direct, 0.0, &Stream::new(1)).unwrap();
        // Agent 1 acts iff its left neighbour is in 1 and its right one in 0: observation (1, ·, 0).
        policy.update(|theta| {
            for observation in 0..8 {
                let acts = f64::from(u8::from(observation & 0b101 == 0b100));
                theta.row_mut(1)[2 * observation..2 * observation + 2].copy_from_slice(&[1.0 - acts, acts]);
            }
        });
        for joint in 0..8u8 {
            let states = [joint >> 2, joint >> 1 & 1, joint & 1];
            let mut action = [9];
            policy.act(1..2, &states, &[1 << 30], &mut action);
            assert_eq!(action[0], u8::from(states[0] == 1 && states[2] == 0));
        }
    }
}
