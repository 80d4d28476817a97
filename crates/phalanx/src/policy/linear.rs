//! Log-linear soft-max policies: logits are sums of one entry for every neighbour.

use std::ops::Range;

use phalanx_agent::policy::{self as data, Digit, Network, Rule};
use serde::{Deserialize, Serialize};

use super::{ActAlone, Acting, Policy, PolicySettings, kind_error, logit_gradients, softmax};
use super::{GradientInput, GradientScratch, ThetaKeys, draw_theta};
use crate::base::limits::check_memory;
use crate::base::sampler::{outcome, write_thresholds};
use crate::base::section::Keys;
use crate::base::stream::Stream;
use crate::world::Trajectory;
use crate::world::{Features, LARGEST_LOCAL_SPACE, World};
use crate::{Ragged, Result};

/// What the logits of a log-linear policy are sums of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyFeatures {
    /// An entry for the own state alone: what is seen of neighbours is left to the world's features, whose
    /// number need not grow with theirs.
    Own,
    /// An entry for each neighbour's state.
    Additive,
    /// An entry for the own state, and one for each pair of own and neighbour's state.
    Pair,
}

/// Keys of `[policy]` on features (linear).
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(default)]
struct FeatureKeys {
    /// `pair`, `additive` or `own`.
    features: PolicyFeatures,
    /// Add the features that the world knows, if it does.
    world_features: bool,
}

impl Default for FeatureKeys {
    fn default() -> Self {
        FeatureKeys { features: PolicyFeatures::Pair, world_features: true }
    }
}

/// The settings of `linear`.
#[derive(Debug)]
pub struct LinearPolicySettings {
    theta: ThetaKeys,
    features: FeatureKeys,
}

impl LinearPolicySettings {
    pub(super) fn read(keys: &mut Keys) -> Result<Self> {
        Ok(LinearPolicySettings { theta: keys.read()?, features: keys.read()? })
    }
}

impl PolicySettings for LinearPolicySettings {
    fn build(&self, world: &dyn World, kappa: usize, stream: &Stream) -> Result<Box<dyn Policy>> {
        let FeatureKeys { features, world_features } = self.features;
        let init_std = *self.theta.init_std;
        Ok(Box::new(LinearPolicy::new(world, kappa, features, world_features, init_std, stream)?))
    }

    fn theta_box(&self) -> Option<[f64; 2]> {
        self.theta.theta_box()
    }
}

/// ln π_i(b | x) = Σ_{m ∈ N_i^κ} θ_m(x_i, x_m, b) + const: parameters grow with |N_i^κ|, not exponentially as
/// a table.
///
/// Row i of θ is `[feature][A_i]`. Features are indicators: the blocks of the members of N_i^κ follow each
/// other, the own block as `[S_i]`, another's as `[S_i][S_m]` (`pair`), `[S_m]` (`additive`) or nothing
/// (`own`); then what the world adds.
#[derive(Debug)]
pub struct LinearPolicy {
    features: PolicyFeatures,
    terms: Ragged<Term>,
    /// What the world adds, behind the generic features.
    world: Vec<Option<WorldTerm>>,
    actions: Vec<usize>,
    theta: Ragged<f64>,
}

/// One member's block of features: the active one is `first + own_stride·x_i + x_m`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Term {
    pub(crate) agent: u32,
    pub(crate) own_stride: u32,
    pub(crate) first: u64,
}

/// The features that the world adds for an agent: theirs are the numbers from `first` on.
#[derive(Debug)]
struct WorldTerm {
    features: Box<dyn Features>,
    first: u64,
}

impl LinearPolicy {
    /// Uniform policies, perturbed by normal noise of size `init_std` on θ (errata 10).
    pub fn new(
        world: &dyn World,
        kappa: usize,
        features: PolicyFeatures,
        with_world: bool,
        init_std: f64,
        stream: &Stream,
    ) -> Result<Self> {
        let n = world.graph().agents();
        let actions: Vec<usize> = (0..n).map(|i| world.actions(i)).collect();
        let groups = world.graph().neighbourhoods(kappa);
        let (mut counts, mut world_terms) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let terms = Ragged::from_rows(groups.iter().enumerate().map(|(i, group)| {
            let mut count = 0;
            let row: Vec<Term> = (group.iter())
                .map(|&agent| {
                    let (own, states) = (world.states(i) as u64, world.states(agent as usize) as u64);
                    let first = count;
                    let (own_stride, own_count) = match features {
                        PolicyFeatures::Own if agent as usize != i => (0, 0),
                        PolicyFeatures::Pair if agent as usize != i => (states as u32, own * states),
                        _ => (0, states),
                    };
                    count += own_count;
                    Term { agent, own_stride, first }
                })
                .collect();
            let features = if with_world { world.policy_features(i, group) } else { None };
            world_terms.push(features.map(|features| {
                let first = count;
                count += features.count() as u64;
                WorldTerm { features, first }
            }));
            counts.push(count);
            row
        }));
        // θ, the gradient and an optimiser's two moments.
        let entries: u128 =
            counts.iter().zip(&actions).map(|(&count, &a)| u128::from(count) * a as u128).sum();
        check_memory(4 * 8 * entries, crate::base::key::KAPPA, &format!("policies of {entries} parameters"))?;
        let mut theta: Ragged<f64> =
            Ragged::zeros(counts.iter().zip(&actions).map(|(&c, &a)| c as usize * a));
        draw_theta(&mut theta, init_std, world, stream);
        Ok(LinearPolicy { features, terms, world: world_terms, actions, theta })
    }

    /// The blocks of agent i's members.
    pub(crate) fn terms(&self, agent: usize) -> &[Term] {
        self.terms.row(agent)
    }

    /// The generic features.
    pub(crate) fn features(&self) -> PolicyFeatures {
        self.features
    }

    /// Number of the first feature that the world adds for agent i, if it does.
    pub(crate) fn world_first(&self, agent: usize) -> Option<u64> {
        self.world[agent].as_ref().map(|world| world.first)
    }

    /// Adds the numbers of the active features, given everybody's state; `seen` is a buffer.
    fn active(&self, agent: usize, state: impl Fn(usize) -> u8, seen: &mut Vec<u8>, out: &mut Vec<u32>) {
        let own = u64::from(state(agent));
        seen.clear();
        for term in self.terms.row(agent) {
            let state = state(term.agent as usize);
            seen.push(state);
            if self.features == PolicyFeatures::Own && term.agent as usize != agent {
                continue;
            }
            // What fits into memory fits into 32 bits.
            out.push((term.first + u64::from(term.own_stride) * own + u64::from(state)) as u32);
        }
        if let Some(world) = &self.world[agent] {
            let generic = out.len();
            world.features.active(seen, &[], out);
            out[generic..].iter_mut().for_each(|feature| *feature += world.first as u32);
        }
    }

    fn law(&self, agent: usize, active: &[u32], law: &mut [f64]) {
        add_up(self.theta.row(agent), active, law);
        softmax(law);
    }
}

/// The sum of the active rows of `[feature][action]`, in their order.
fn add_up(rows: &[f64], active: &[u32], sums: &mut [f64]) {
    /// With a known number of actions, sums stay in registers.
    fn add_up_fixed<const N: usize>(rows: &[f64], active: &[u32], sums: &mut [f64]) {
        let (rows, mut total) = (rows.as_chunks::<N>().0, [0.0; N]);
        for &feature in active {
            total.iter_mut().zip(&rows[feature as usize]).for_each(|(sum, x)| *sum += x);
        }
        sums.copy_from_slice(&total);
    }
    match sums.len() {
        2 => add_up_fixed::<2>(rows, active, sums),
        3 => add_up_fixed::<3>(rows, active, sums),
        4 => add_up_fixed::<4>(rows, active, sums),
        5 => add_up_fixed::<5>(rows, active, sums),
        count => {
            sums.fill(0.0);
            for &feature in active {
                let row = &rows[feature as usize * count..][..count];
                sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
        }
    }
}

/// Agents that act together: their parameters are fetched one after the other without waiting, which is most
/// of the time in graphs that do not fit into a cache.
const TILE: usize = 32;

impl ActAlone for LinearPolicy {
    fn act(&self, agents: Range<usize>, states: &[u8], draws: &[u32], actions: &mut [u8]) {
        let mut thresholds = [0; LARGEST_LOCAL_SPACE];
        let (mut seen, mut active, mut laws) = (Vec::new(), Vec::new(), Vec::new());
        let tiles = actions.chunks_mut(TILE).zip(draws.chunks(TILE));
        for (first, (actions, draws)) in agents.step_by(TILE).zip(tiles) {
            let members = first..first + actions.len();
            active.clear();
            let ends: [usize; TILE] = std::array::from_fn(|m| {
                if m < members.len() {
                    self.active(first + m, |other| states[other], &mut seen, &mut active);
                }
                active.len()
            });
            laws.clear();
            let mut start = 0;
            for (agent, &end) in members.clone().zip(&ends) {
                let place = laws.len();
                laws.resize(place + self.actions[agent], 0.0);
                add_up(self.theta.row(agent), &active[start..end], &mut laws[place..]);
                start = end;
            }
            let mut rest = &mut laws[..];
            for ((agent, action), &draw) in members.zip(actions).zip(draws) {
                let (law, tail) = rest.split_at_mut(self.actions[agent]);
                rest = tail;
                softmax(law);
                let thresholds = &mut thresholds[..law.len() - 1];
                write_thresholds(law, thresholds);
                *action = outcome(thresholds, draw);
            }
        }
    }
}

impl Policy for LinearPolicy {
    fn action_counts(&self) -> &[usize] {
        &self.actions
    }

    fn groups(&self) -> Ragged<u32> {
        Ragged::from_rows(self.terms.iter().map(|row| row.iter().map(|term| term.agent).collect::<Vec<_>>()))
    }

    fn theta(&self) -> &Ragged<f64> {
        &self.theta
    }

    fn theta_mut(&mut self) -> &mut Ragged<f64> {
        &mut self.theta
    }

    fn linear(&self) -> Option<&LinearPolicy> {
        Some(self)
    }

    fn acting(&self) -> Acting<'_> {
        Acting::Alone(self)
    }

    fn law(&self, agent: usize, trajectory: &Trajectory, k: usize, out: &mut [f64]) {
        let (mut seen, mut active) = (Vec::new(), Vec::new());
        self.active(agent, |m| trajectory.states(m)[k], &mut seen, &mut active);
        LinearPolicy::law(self, agent, &active, out);
    }

    fn gradient(&self, input: GradientInput<'_>, scratch: &mut GradientScratch, out: &mut [f64]) {
        let GradientInput { agent, batch, rule, .. } = input;
        let actions = self.actions[agent];
        let GradientScratch { values, pairs, laws, active, ends, seen, .. } = scratch;
        let steps = |trajectory: &Trajectory| rule.steps(trajectory);
        laws.resize(batch.iter().map(steps).sum::<usize>() * actions, 0.0);
        active.clear();
        ends.clear();
        let each_step =
            batch.iter().flat_map(|trajectory| (0..steps(trajectory)).map(move |k| (trajectory, k)));
        for ((trajectory, k), law) in each_step.zip(laws.chunks_exact_mut(actions)) {
            let first = active.len();
            self.active(agent, |m| trajectory.states(m)[k], seen, active);
            self.law(agent, &active[first..], law);
            ends.push(active.len());
        }
        logit_gradients(input, laws, values, pairs);
        out.fill(0.0);
        let mut first = 0;
        for (slopes, &end) in laws.chunks_exact(actions).zip(ends.iter()) {
            for &feature in &active[first..end] {
                let entries = &mut out[feature as usize * actions..][..actions];
                entries.iter_mut().zip(slopes).for_each(|(g, slope)| *g += slope);
            }
            first = end;
        }
    }

    fn kind(&self) -> &'static str {
        match self.features {
            PolicyFeatures::Own => "linear-own",
            PolicyFeatures::Additive => "linear-additive",
            PolicyFeatures::Pair => "linear-pair",
        }
    }

    fn portable(&self, agent: usize, states: &[usize], _: &mut Vec<Network>) -> Result<Rule> {
        let own = self.terms.row(agent).iter().position(|term| term.agent as usize == agent).unwrap_or(0);
        let state = |member: usize, stride: usize| Digit {
            stride,
            cap: states[member] - 1,
            members: vec![member],
            values: (0..states[member]).collect(),
        };
        let mut terms = Vec::new();
        for (member, term) in self.terms.row(agent).iter().enumerate() {
            if self.features == PolicyFeatures::Own && member != own {
                continue;
            }
            let pair = (term.own_stride > 0).then(|| state(own, term.own_stride as usize));
            let digits = pair.into_iter().chain([state(member, 1)]).collect();
            terms.push(data::Term { first: term.first as usize, digits });
        }
        if let Some(world) = &self.world[agent] {
            let refused = || kind_error("the world's features are code, not data, and cannot be exported");
            let added = world.features.terms().ok_or_else(refused)?;
            terms.extend(
                added.into_iter().map(|term| data::Term { first: term.first + world.first as usize, ..term }),
            );
        }
        let rows = self.theta.row(agent).chunks_exact(self.actions[agent]);
        Ok(Rule::Linear { terms, weights: rows.map(<[f64]>::to_vec).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::stream::{Place, Purpose};
    use crate::graph::Graph;
    use crate::world::{Epidemic, EpidemicSpec, Wireless, WirelessSpec};

    /// The row that a term names.
    fn row(term: &data::Term, states: &[u8]) -> u32 {
        let digit = |digit: &Digit| {
            let sum: usize = digit.members.iter().map(|&m| digit.values[usize::from(states[m])]).sum();
            digit.stride * sum.min(digit.cap)
        };
        (term.first + term.digits.iter().map(digit).sum::<usize>()) as u32
    }

    /// What is exported names the features that the program uses, in their order.
    #[test]
    fn terms_name_the_active_features() {
        let wireless = WirelessSpec { rows: 4, columns: 3, ..WirelessSpec::default() };
        let contacts = Graph::scale_free(12, 2, 3).unwrap();
        let worlds: [Box<dyn World>; 2] = [
            Box::new(Wireless::new(&wireless).unwrap()),
            Box::new(Epidemic::new(&EpidemicSpec::default(), contacts).unwrap()),
        ];
        let place = Place { purpose: Purpose::Evaluation, iteration: 0, trajectory: 0 };
        let mut words = Stream::new(4).sequence(place, 0);
        let kinds = [PolicyFeatures::Own, PolicyFeatures::Additive, PolicyFeatures::Pair];
        for (world, kappa) in worlds.iter().flat_map(|world| [0, 1, 2].map(|kappa| (world, kappa))) {
            for features in kinds {
                let policy =
                    LinearPolicy::new(&**world, kappa, features, true, 0.0, &Stream::new(1)).unwrap();
                for (agent, group) in policy.groups().iter().enumerate() {
                    let sizes: Vec<usize> = group.iter().map(|&m| world.states(m as usize)).collect();
                    let rule = policy.portable(agent, &sizes, &mut Vec::new()).unwrap();
                    let Rule::Linear { terms, weights } = rule else { panic!("{rule:?}") };
                    assert_eq!(weights.len() * world.actions(agent), policy.theta().row(agent).len());
                    for _ in 0..20 {
                        let states: Vec<u8> =
                            sizes.iter().map(|&size| (words.next_u32() as usize % size) as u8).collect();
                        let place = |m: usize| group.iter().position(|&member| member as usize == m).unwrap();
                        let (mut seen, mut active) = (Vec::new(), Vec::new());
                        policy.active(agent, |m| states[place(m)], &mut seen, &mut active);
                        let named: Vec<u32> = terms.iter().map(|term| row(term, &states)).collect();
                        assert_eq!(named, active, "{features:?}, agent {agent}");
                    }
                }
            }
        }
    }
}
