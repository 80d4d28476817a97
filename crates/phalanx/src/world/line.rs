//! The paper's synthetic environment: binary agents in a line. Paper: subsec: synthetic.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    Channel, Evolution, Factored, MakeSized, SizedWorld, StartLaw, Surroundings, World, WorldKernel,
    WorldSettings,
};
use crate::base::key::WORLD_N;
use crate::base::limits::check_memory;
use crate::base::sampler::{uniform, write_thresholds};
use crate::base::stream::{Place, Stream};
use crate::graph::Graph;
use crate::{Error, Ragged, Result};

/// Law of the start states; the paper gives none (errata 25).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// Every agent in state 1 (the authors' code).
    Ones,
    /// Fair coins.
    #[default]
    Uniform,
    /// Every agent in state 0.
    Zeros,
}

/// Which state is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Paid {
    /// That in which an agent acts: the paper's r_i(s_i, a_i).
    #[default]
    Present,
    /// That which it reaches (the authors' code).
    Next,
}

/// In kernel text: no agent's number.
const NOWHERE: i32 = -1;

/// Name of the key with α.
pub const MIXING: &str = "world.mixing";

/// The keys of `[world]` beside `kind = "line"`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineSettings {
    /// Number of agents.
    pub n: usize,
    /// Law of the start states.
    #[serde(default)]
    pub start: Start,
    /// Weight toward uniform transitions.
    #[serde(default)]
    pub mixing: f64,
    /// Which state is paid for.
    #[serde(default)]
    pub reward: Paid,
}

impl WorldSettings for LineSettings {
    fn build(&self, around: &Surroundings<'_>) -> Result<Arc<dyn World>> {
        let mut line = Line::new(self.n, self.start, self.mixing)?.paying_for(self.reward);
        around.relink(&mut line.graph)?;
        Ok(Arc::new(line))
    }

    fn mixing(&self) -> Option<f64> {
        Some(self.mixing)
    }

    fn sized() -> Option<MakeSized> {
        Some(|agents| {
            let world = Line::new(agents.unwrap_or(1000), Start::Uniform, 0.0)?;
            Ok(SizedWorld { world: Arc::new(world), kappa: 1, shape: "on a line".into() })
        })
    }
}

/// Agents 0 – 1 – … – n−1, each with states {0, 1} and actions {0, 1}.
///
/// * agent 0 copies the state of agent 1;
/// * the last agent's next state is its action;
/// * any other agent reaches 1 with probability 1 if it acts and its right neighbour is in 1, with
///   probability 0.8 if it acts and its right neighbour is in 0, and never otherwise.
///
/// Channel `reward`: 1 for agent 0 in state 1, 0.1 for any other agent in state 1. With `mixing` = α every
/// transition law becomes (1 − α)·law + α·uniform, which makes assump:decay_transition hold for large enough
/// α (errata 2).
#[derive(Debug, Clone)]
pub struct Line {
    graph: Graph,
    /// Number of the first agent here in the whole line, and that line's length.
    first: usize,
    total: usize,
    start: Start,
    /// P(next = 1) of a middle agent by (own action, right neighbour's state), and as thresholds on the draw.
    middle: [[Odds; 2]; 2],
    /// P(next = 1) of the two ends by the value that they copy.
    copy: [Odds; 2],
    channels: [Channel; 1],
}

/// A probability of state 1 with the threshold that samples it: 1 iff the draw has passed it.
#[derive(Debug, Clone, Copy)]
struct Odds {
    of_one: f64,
    threshold: u32,
}

impl Odds {
    fn new(of_one: f64) -> Self {
        let mut threshold = [0];
        write_thresholds(&[1.0 - of_one, of_one], &mut threshold);
        Odds { of_one, threshold: threshold[0] }
    }

    #[inline(always)]
    fn sample(self, draw: u32) -> u8 {
        u8::from(draw >= self.threshold)
    }
}

impl Line {
    /// A line of `n` ≥ 2 agents.
    pub fn new(n: usize, start: Start, mixing: f64) -> Result<Self> {
        if n < 2 || n > u32::MAX as usize {
            return Err(Error::config(WORLD_N, format!("{n} agents; allowed are 2 to {}", u32::MAX)));
        }
        // Links, rewards and what every run keeps for an agent at the least.
        check_memory(n as u128 * 256, WORLD_N, &format!("{n} agents"))?;
        if !(0.0..=1.0).contains(&mixing) {
            return Err(Error::config(MIXING, format!("{mixing} is not a weight; allowed are 0 to 1")));
        }
        let mixed = |p: f64| Odds::new((1.0 - mixing) * p + mixing * 0.5);
        let mut line = Line {
            graph: Graph::line(n)?,
            first: 0,
            total: n,
            start,
            middle: [[mixed(0.0), mixed(0.0)], [mixed(0.8), mixed(1.0)]],
            copy: [mixed(0.0), mixed(1.0)],
            channels: [Channel::sampled("reward", [0.0, 1.0])],
        };
        let wages = (0..n).map(|i| line.wage(i));
        line.channels =
            [Channel::table("reward", Ragged::from_rows(wages.map(|wage| [0.0, 0.0, wage, wage])))];
        Ok(line)
    }

    /// The same dynamics with other communication links: who talks to whom need not be who influences whom.
    pub fn with_graph(mut self, graph: Graph) -> Self {
        self.graph = graph;
        self
    }

    /// The same with rewards for this state.
    pub fn paying_for(mut self, reward: Paid) -> Self {
        if reward == Paid::Next {
            self.channels = [Channel::sampled("reward", [0.0, 1.0])];
        }
        self
    }

    /// What agent `agent` earns in state 1.
    fn wage(&self, agent: usize) -> f64 {
        if self.first + agent == 0 { 1.0 } else { 0.1 }
    }

    fn odds(&self, agent: usize, action: u8, right: impl FnOnce() -> u8) -> Odds {
        if self.first + agent == self.total - 1 {
            self.copy[usize::from(action)]
        } else if self.first + agent == 0 {
            self.copy[usize::from(right())]
        } else {
            self.middle[usize::from(action)][usize::from(right())]
        }
    }
}

/// How far `member` is to the left or to the right of `agent`, -`radius` to `radius`, as indicators.
pub(super) fn offset(agent: usize, member: usize, radius: usize) -> Vec<f32> {
    let mut place = vec![0.0; 2 * radius + 1];
    if let Some(place) = (member + radius).checked_sub(agent).and_then(|k| place.get_mut(k)) {
        *place = 1.0;
    }
    place
}

impl World for Line {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn place(&self, agent: usize, member: usize, kappa: usize) -> Option<Vec<f32>> {
        Some(offset(agent, member, kappa.min(self.graph.total())))
    }

    fn states(&self, _agent: usize) -> usize {
        2
    }

    fn actions(&self, _agent: usize) -> usize {
        2
    }

    fn evolution(&self) -> Evolution<'_> {
        Evolution::Factored(self)
    }

    fn channels(&self) -> &[Channel] {
        &self.channels
    }

    fn part(&self, graph: &Graph) -> Option<Arc<dyn World>> {
        let window = graph.contiguous_ids();
        if window.is_empty() || self.first > 0 {
            return None;
        }
        let rewards = |tables: &Ragged<f64>| {
            Channel::table("reward", Ragged::from_rows(window.clone().map(|id| tables.row(id).to_vec())))
        };
        let [channel] = &self.channels;
        let channels = [channel.tables().map_or_else(|| channel.clone(), rewards)];
        Some(Arc::new(Line { graph: graph.clone(), first: window.start, channels, ..*self }))
    }
}

impl Factored for Line {
    fn parents(&self, agent: usize) -> Vec<u32> {
        let right = (self.first + agent + 1).min(self.total - 1) - self.first;
        (agent as u32..=right as u32).collect()
    }

    fn transition(&self, agent: usize, states: &[u8], actions: &[u8], law: &mut [f64]) {
        let one = self.odds(agent, actions[0], || states[1]).of_one;
        law.copy_from_slice(&[1.0 - one, one]);
    }

    fn start(&self, stream: &Stream, place: Place, agents: Range<usize>, states: &mut [u8]) {
        match self.start {
            Start::Ones => states.fill(1),
            Start::Zeros => states.fill(0),
            Start::Uniform => {
                for (agent, state) in agents.zip(states) {
                    *state = uniform(2, stream.words(place, (self.first + agent) as u32, 0)[0] >> 1);
                }
            }
        }
    }

    fn step(&self, agents: Range<usize>, states: &[u8], actions: &[u8], draws: &[u32], next: &mut [u8]) {
        let last = self.total - 1 - self.first;
        let middle = agents.start.max(usize::from(self.first == 0))..agents.end.min(last);
        let thresholds = self.middle.map(|row| row.map(|odds| odds.threshold));
        if middle.start < middle.end {
            let here = middle.start - agents.start..middle.end - agents.start;
            let right = &states[middle.start + 1..middle.end + 1];
            let inner = next[here.clone()].iter_mut().zip(&draws[here]).zip(&actions[middle]).zip(right);
            for (((next, &draw), &action), &right) in inner {
                *next = u8::from(draw >= thresholds[usize::from(action & 1)][usize::from(right & 1)]);
            }
        }
        for end in [0, last] {
            if agents.contains(&end) && (self.first == 0 || end == last) {
                let m = end - agents.start;
                next[m] = self.odds(end, actions[end], || states[end + 1]).sample(draws[m]);
            }
        }
    }

    fn sample_rewards(
        &self,
        _channel: usize,
        agents: Range<usize>,
        states: &[u8],
        actions: &[u8],
        draws: &[u32],
        rewards: &mut [f32],
    ) {
        for ((agent, &draw), reward) in agents.zip(draws).zip(rewards) {
            let next = self.odds(agent, actions[agent], || states[agent + 1]).sample(draw);
            *reward = f32::from(next) * self.wage(agent) as f32;
        }
    }

    fn kernel(&self) -> Option<WorldKernel> {
        // Rewards for the next state are simulated on processors only.
        self.channels[0].tables()?;
        let [[m00, m01], [m10, m11]] = self.middle.map(|row| row.map(|odds| odds.threshold));
        let [c0, c1] = self.copy.map(|odds| odds.threshold);
        let start = match self.start {
            Start::Ones => 0,
            Start::Uniform => 1,
            Start::Zeros => 2,
        };
        let thresholds = [("MIDDLE_00", m00), ("MIDDLE_01", m01), ("MIDDLE_10", m10), ("MIDDLE_11", m11)];
        let thresholds = thresholds.into_iter().chain([("COPY_0", c0), ("COPY_1", c1)]);
        // Where the ends are, if they are here: the text is the same for lines of any length.
        let is_last = self.first + self.graph.agents() == self.total;
        let kernel = WorldKernel::new(include_str!("line.cu"), false)
            .constant("LINE_START", start)
            .constant("LINE_FIRST", if self.first == 0 { 0 } else { NOWHERE })
            .constant("LINE_LAST", if is_last { "(AGENTS - 1)".into() } else { NOWHERE.to_string() });
        let add = |kernel: WorldKernel, (name, threshold): (&str, u32)| {
            kernel.constant(&format!("LINE_{name}"), format!("{threshold}u"))
        };
        Some(thresholds.fold(kernel, add))
    }

    fn start_law(&self) -> Option<StartLaw> {
        let one = match self.start {
            Start::Ones => 1.0,
            Start::Uniform => 0.5,
            Start::Zeros => 0.0,
        };
        Some(StartLaw::Product { local: vec![vec![1.0 - one, one]; self.graph.agents()] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transition_laws_are_the_papers() {
        let line = Line::new(4, Start::Uniform, 0.0).unwrap();
        let one = |agent, states: &[u8], actions: &[u8]| {
            let mut law = [0.0; 2];
            line.transition(agent, states, actions, &mut law);
            law[1]
        };
        assert_eq!([one(0, &[0, 1], &[0, 0]), one(0, &[1, 0], &[1, 1])], [1.0, 0.0]);
        assert_eq!([one(3, &[0], &[1]), one(3, &[1], &[0])], [1.0, 0.0]);
        assert_eq!([one(1, &[0, 1], &[1, 0]), one(2, &[0, 0], &[1, 0])], [1.0, 0.8]);
        assert_eq!([one(1, &[1, 1], &[0, 1]), one(2, &[1, 0], &[0, 1])], [0.0, 0.0]);
    }

    #[test]
    fn mixing_moves_every_law_toward_uniform() {
        let line = Line::new(3, Start::Ones, 0.2).unwrap();
        let mut law = [0.0; 2];
        line.transition(1, &[0, 0], &[1, 0], &mut law);
        assert!((law[1] - (0.8 * 0.8 + 0.1)).abs() < 1e-15);
    }

    #[test]
    fn the_authors_pay_for_the_next_state() {
        let line = Line::new(3, Start::Ones, 0.0).unwrap().paying_for(Paid::Next);
        let (states, actions, draws) = ([0, 1, 1], [0, 0, 1], [1 << 30; 3]);
        let (mut next, mut rewards) = ([9; 3], [9.0; 3]);
        line.step(0..3, &states, &actions, &draws, &mut next);
        line.sample_rewards(0, 0..3, &states, &actions, &draws, &mut rewards);
        assert_eq!((next, rewards), ([1, 0, 1], [1.0, 0.0, 0.1]));
    }

    #[test]
    fn bad_sizes_are_named() {
        assert!(Line::new(1, Start::Ones, 0.0).unwrap_err().to_string().contains(WORLD_N));
        assert!(Line::new(3, Start::Ones, f64::NAN).unwrap_err().to_string().contains("world.mixing"));
    }
}
