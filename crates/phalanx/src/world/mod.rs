//! Environments: what a network of agents lives in.
//!
//! A world is *factored*: agent i's next state depends on the states and actions of its parents and on one keyed
//! draw, nothing else (Paper: sec:problem formulation, "Transition decomposition"). That is what makes the same
//! simulation run on any number of threads.

mod line;
pub mod pistonball;
mod table;
mod wireless;

use std::fmt::Debug;
use std::ops::Range;

use crate::Ragged;
use crate::network::Network;
use crate::stream::{Place, Stream};
use crate::utility::UtilitySpec;

pub use line::{Line, Start};
pub use table::{Model, StartLaw, Table};
pub use wireless::{Deadlines, Probabilities, Wireless, WirelessSpec};

/// Local states and actions are stored as bytes.
pub const LARGEST_LOCAL_SPACE: usize = 256;

/// A factored finite world.
///
/// States and actions of all agents are passed as byte slices, one entry an agent. `step` may read those of the
/// parents of the agents it advances, and no others; `tests/world_contract.rs` holds every world to it.
///
/// ```
/// use std::ops::Range;
/// use phalanx::network::Network;
/// use phalanx::stream::{DRAW_RANGE, Place, Stream};
/// use phalanx::world::World;
///
/// /// Lamps in a ring: a lamp burns on when it, or its left neighbour, was switched on; one switch in ten fails.
/// #[derive(Debug)]
/// struct Lamps { ring: Network }
///
/// impl World for Lamps {
///     fn network(&self) -> &Network { &self.ring }
///     fn states(&self, _agent: usize) -> usize { 2 }
///     fn actions(&self, _agent: usize) -> usize { 2 }
///     fn parents(&self, agent: usize) -> Vec<u32> {
///         let n = self.ring.agents();
///         let mut parents = vec![agent as u32, ((agent + n - 1) % n) as u32];
///         parents.sort();
///         parents.dedup();
///         parents
///     }
///     fn transition(&self, _agent: usize, _states: &[u8], actions: &[u8], law: &mut [f64]) {
///         law[1] = if actions.contains(&1) { 0.9 } else { 0.0 };
///         law[0] = 1.0 - law[1];
///     }
///     fn start(&self, _: &Stream, _: Place, _: Range<usize>, states: &mut [u8]) { states.fill(0) }
///     fn step(&self, agents: Range<usize>, _: &[u8], actions: &[u8], draws: &[u32], next: &mut [u8]) {
///         let n = self.ring.agents();
///         let works = (0.1 * f64::from(DRAW_RANGE)).round() as u32;
///         for ((i, next), &draw) in agents.zip(next).zip(draws) {
///             *next = u8::from((actions[i] | actions[(i + n - 1) % n]) == 1 && draw >= works);
///         }
///     }
/// }
///
/// phalanx::world::check(&Lamps { ring: Network::ring(5).unwrap() }).unwrap();
/// ```
pub trait World: Send + Sync + Debug {
    /// Who talks to whom.
    fn network(&self) -> &Network;

    /// |S_i|, at most [`LARGEST_LOCAL_SPACE`].
    fn states(&self, agent: usize) -> usize;

    /// |A_i|, at most [`LARGEST_LOCAL_SPACE`].
    fn actions(&self, agent: usize) -> usize;

    /// The agents, ascending, whose state and action enter agent i's transition.
    fn parents(&self, agent: usize) -> Vec<u32>;

    /// ℙ_i(· | states and actions of the parents, in their order), written into `law` (|S_i| entries).
    fn transition(&self, agent: usize, states: &[u8], actions: &[u8], law: &mut [f64]);

    /// Draws the start states of the agents in `agents` into `states` (that many entries).
    fn start(&self, stream: &Stream, place: Place, agents: Range<usize>, states: &mut [u8]);

    /// Advances the agents in `agents`: `next[m]` and `draws[m]` (31 bits) belong to agent `agents.start + m`.
    ///
    /// The outcome must be the inverse cumulative law: state x iff the draw lies in x's interval of
    /// [`World::transition`], laid out in the order of the states.
    fn step(&self, agents: Range<usize>, states: &[u8], actions: &[u8], draws: &[u32], next: &mut [u8]);

    /// Rewards of the sampled channel number `channel` (its place in [`World::channels`]) that agents earned in the
    /// step which [`World::step`] makes from the same arguments: `rewards[m]` and `draws[m]` belong to agent
    /// `agents.start + m`. The same draw decides both, so rewards may depend on what came out.
    fn sample_rewards(
        &self,
        channel: usize,
        agents: Range<usize>,
        states: &[u8],
        actions: &[u8],
        draws: &[u32],
        rewards: &mut [f32],
    ) {
        let _ = (channel, agents, states, actions, draws);
        rewards.fill(0.0);
    }

    /// Names of the scripted policies beside `uniform`.
    fn scripted_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// A scripted policy for episodes of `horizon` steps: agent i's law over actions by its own state, row i as
    /// `[S_i][A_i]`. None if there is none of that name.
    fn scripted(&self, name: &str, horizon: usize) -> Option<Ragged<f64>> {
        let _ = (name, horizon);
        None
    }

    /// What networks see of agent i's neighbours' states, in place of one symbol a neighbour.
    fn view(&self, agent: usize, group: &[u32]) -> Option<Box<dyn View>> {
        let _ = (agent, group);
        None
    }

    /// Features of the states of agent i's neighbours in `group` (i among them), beside the generic ones of linear
    /// policies. They are asked with no actions.
    fn policy_features(&self, agent: usize, group: &[u32]) -> Option<Box<dyn Features>> {
        let _ = (agent, group);
        None
    }

    /// Features of what agent i's neighbours in `group` (i among them) see and do, beside the generic ones of linear
    /// critics.
    fn features(&self, agent: usize, group: &[u32]) -> Option<Box<dyn Features>> {
        let _ = (agent, group);
        None
    }

    /// ρ, the law that [`World::start`] samples from; exact computations need it. None if it is not known.
    fn start_law(&self) -> Option<StartLaw> {
        None
    }

    /// Named rewards. The one named `reward` is what `return` reports.
    fn channels(&self) -> &[Channel] {
        &[]
    }

    /// Objective and constraints that come with the world, for configs that do not state their own.
    fn own_problem(&self) -> Option<&OwnProblem> {
        None
    }
}

/// A named reward of every agent.
#[derive(Debug, Clone)]
pub struct Channel {
    /// Name in the config, e.g. `reward`.
    pub name: String,
    /// Where it comes from.
    pub values: ChannelValues,
}

/// Where a channel's rewards come from.
#[derive(Debug, Clone)]
pub enum ChannelValues {
    /// r_i(s_i, a_i): row i is `[S_i][A_i]`.
    Table(Ragged<f64>),
    /// Depends on neighbours or on chance too (errata 24): recorded while simulating, from
    /// [`World::sample_rewards`].
    Sampled {
        /// Smallest and largest possible reward.
        range: [f64; 2],
    },
}

impl Channel {
    /// A reward over each agent's own state and action.
    pub fn table(name: &str, tables: Ragged<f64>) -> Self {
        Channel { name: name.into(), values: ChannelValues::Table(tables) }
    }

    /// A reward that is recorded while simulating, between the ends of `range`.
    pub fn sampled(name: &str, range: [f64; 2]) -> Self {
        Channel { name: name.into(), values: ChannelValues::Sampled { range } }
    }

    /// Its tables, if it has any.
    pub fn tables(&self) -> Option<&Ragged<f64>> {
        match &self.values {
            ChannelValues::Table(tables) => Some(tables),
            ChannelValues::Sampled { .. } => None,
        }
    }
}

/// Places in [`World::channels`] of the channels that are recorded while simulating, in order.
pub fn sampled_channels(world: &dyn World) -> Vec<usize> {
    let channels = world.channels().iter().enumerate();
    channels.filter(|(_, channel)| channel.tables().is_none()).map(|(place, _)| place).collect()
}

/// Rows of numbers that a network reads: what agent i's neighbourhood looks like from i.
pub trait View: Send + Sync + Debug {
    /// Number of rows and their width.
    fn shape(&self) -> [usize; 2];

    /// Writes the view of the neighbours' `states`, in the order of their group, row by row.
    fn write(&self, states: &[u8], out: &mut [f32]);
}

/// Indicator features of what a neighbourhood sees and does.
pub trait Features: Send + Sync + Debug {
    /// How many there are.
    fn count(&self) -> usize;

    /// Adds the numbers of those that are active, given the neighbours' states and actions in the order of their
    /// group.
    fn active(&self, states: &[u8], actions: &[u8], out: &mut Vec<u32>);

    /// Adds ⟨weights, features⟩ with the action of `member` (its place in the group) replaced by each of its
    /// alternatives; `actions` are as before afterwards. Worth writing where few features change.
    fn add_alternatives(
        &self,
        weights: &[f64],
        states: &[u8],
        actions: &mut [u8],
        member: usize,
        out: &mut [f64],
    ) {
        let (taken, mut active) = (actions[member], Vec::new());
        for (b, out) in out.iter_mut().enumerate() {
            actions[member] = b as u8;
            active.clear();
            self.active(states, actions, &mut active);
            *out += active.iter().map(|&x| weights[x as usize]).sum::<f64>();
        }
        actions[member] = taken;
    }

    /// As [`Features::add_alternatives`] for every member in turn: `out` holds the alternatives of the first member,
    /// then of the second, and so on, each as many as `counts` says.
    fn add_all_alternatives(
        &self,
        weights: &[f64],
        states: &[u8],
        actions: &mut [u8],
        counts: &[usize],
        out: &mut [f64],
    ) {
        let mut rest = out;
        for (member, &count) in counts.iter().enumerate() {
            let (own, tail) = rest.split_at_mut(count);
            self.add_alternatives(weights, states, actions, member, own);
            rest = tail;
        }
    }
}

/// Utilities that a model file carries.
#[derive(Debug, Clone, Default)]
pub struct OwnProblem {
    /// f_i, one an agent, or none.
    pub objectives: Vec<UtilitySpec>,
    /// g_ik ≥ 0, any number an agent, or none.
    pub constraints: Vec<Vec<UtilitySpec>>,
    /// The discount factor of the file.
    pub gamma: Option<f64>,
}

/// Whether the start law is one, and allows the start state that was drawn.
fn check_start_law(world: &dyn World, drawn: &[u8]) -> Result<(), String> {
    let n = drawn.len();
    let is_law = |law: &[f64]| {
        law.iter().all(|p| (0.0..=1.0 + 1e-9).contains(p)) && (law.iter().sum::<f64>() - 1.0).abs() <= 1e-8
    };
    match world.start_law() {
        None => Ok(()),
        Some(StartLaw::Product { local }) => {
            if local.len() != n {
                return Err(format!("start_law has {} laws for {n} agents", local.len()));
            }
            for (i, law) in local.iter().enumerate() {
                if law.len() != world.states(i) || !is_law(law) {
                    return Err(format!("start_law of agent {i} is no law over {} states", world.states(i)));
                }
                if law[usize::from(drawn[i])] == 0.0 {
                    return Err(format!("agent {i} starts in state {}, which start_law excludes", drawn[i]));
                }
            }
            Ok(())
        }
        Some(StartLaw::Joint { p }) => {
            let joint = drawn.iter().enumerate();
            let number = joint.fold(0, |number, (i, &s)| number * world.states(i) + usize::from(s));
            let size = (0..n).try_fold(1usize, |size, i| size.checked_mul(world.states(i)));
            if size != Some(p.len()) || !is_law(&p) {
                return Err("start_law is no law over the joint states".into());
            }
            if p[number] == 0.0 {
                return Err(format!("joint state {number} was drawn, which start_law excludes"));
            }
            Ok(())
        }
    }
}

/// Whether rewards that are recorded while simulating keep their range and do not depend on how the agents are split.
fn check_sampled_rewards(world: &dyn World, words: &mut crate::stream::Sequence) -> Result<(), String> {
    let n = world.network().agents();
    for (place, channel) in world.channels().iter().enumerate() {
        let ChannelValues::Sampled { range: [low, high] } = channel.values else { continue };
        let name = &channel.name;
        if !(low.is_finite() && high.is_finite() && low <= high) {
            return Err(format!("channel {name}: [{low}, {high}] is no range"));
        }
        for _ in 0..32 {
            let mut random = |size: usize| (words.next_u32() as usize % size) as u8;
            let s: Vec<u8> = (0..n).map(|i| random(world.states(i))).collect();
            let a: Vec<u8> = (0..n).map(|i| random(world.actions(i))).collect();
            let draws: Vec<u32> = (0..n).map(|_| words.next_u32() >> 1).collect();
            let mut together = vec![f32::NAN; n];
            world.sample_rewards(place, 0..n, &s, &a, &draws, &mut together);
            if let Some(i) = (0..n).find(|&i| !(low..=high).contains(&f64::from(together[i]))) {
                return Err(format!("channel {name}: agent {i} earns {}, not {low} to {high}", together[i]));
            }
            for agent in (0..n).step_by(n.div_ceil(64)) {
                let mut alone = [f32::NAN];
                world.sample_rewards(place, agent..agent + 1, &s, &a, &draws[agent..=agent], &mut alone);
                if alone[0] != together[agent] {
                    return Err(format!("channel {name}: rewards depend on how the agents are split"));
                }
            }
        }
    }
    Ok(())
}

/// Checks that `step` samples from `transition`, reads the parents only, that rewards keep their range, and that sizes and
/// start law fit: what every world must satisfy. Meant for tests of a new world; looks at no more than 64 agents.
///
/// # Errors
/// The first broken promise, in words.
pub fn check(world: &dyn World) -> Result<(), String> {
    use crate::sampler::{outcome, write_thresholds};
    use crate::stream::Purpose;

    let n = world.network().agents();
    let stream = Stream::new(0x5eed);
    let place = |trajectory| Place { purpose: Purpose::EvaluationStart, iteration: 0, trajectory };
    let mut words = stream.sequence(place(1), u32::MAX);
    for i in 0..n {
        for (what, size) in [("states", world.states(i)), ("actions", world.actions(i))] {
            if size == 0 || size > LARGEST_LOCAL_SPACE {
                return Err(format!("agent {i} has {size} {what}; 1 to {LARGEST_LOCAL_SPACE} are allowed"));
            }
        }
    }
    let mut states = vec![0; n];
    world.start(&stream, place(0), 0..n, &mut states);
    let mut halves = vec![0; n];
    world.start(&stream, place(0), 0..n / 2, &mut halves[..n / 2]);
    world.start(&stream, place(0), n / 2..n, &mut halves[n / 2..]);
    if halves != states {
        return Err("start depends on how the agents are split".into());
    }
    check_start_law(world, &states)?;
    let all_draws: Vec<u32> = (0..n).map(|_| words.next_u32() >> 1).collect();
    let random_joint = |words: &mut crate::stream::Sequence, sizes: &dyn Fn(usize) -> usize| -> Vec<u8> {
        (0..n).map(|i| (words.next_u32() as usize % sizes(i)) as u8).collect()
    };
    for agent in (0..n).step_by(n.div_ceil(64)) {
        let parents = world.parents(agent);
        if !parents.is_sorted_by(|a, b| a < b) || parents.iter().any(|&p| p as usize >= n) {
            return Err(format!("agent {agent}: parents {parents:?} are not ascending agents below {n}"));
        }
        if usize::from(states[agent]) >= world.states(agent) {
            return Err(format!(
                "agent {agent} starts in state {} of {}",
                states[agent],
                world.states(agent)
            ));
        }
        for trial in 0..32 {
            let mut s = random_joint(&mut words, &|i| world.states(i));
            let mut a = random_joint(&mut words, &|i| world.actions(i));
            let pick = |joint: &[u8]| parents.iter().map(|&p| joint[p as usize]).collect::<Vec<_>>();
            let mut law = vec![f64::NAN; world.states(agent)];
            world.transition(agent, &pick(&s), &pick(&a), &mut law);
            let total: f64 = law.iter().sum();
            if law.iter().any(|p| !(0.0..=1.0).contains(p)) || (total - 1.0).abs() > 1e-9 {
                return Err(format!("agent {agent}: transition law {law:?} sums to {total}"));
            }
            let draw = words.next_u32() >> 1;
            let mut next = [255];
            world.step(agent..agent + 1, &s, &a, &[draw], &mut next);
            let mut thresholds = vec![0; law.len() - 1];
            write_thresholds(&law, &mut thresholds);
            if next[0] != outcome(&thresholds, draw) {
                return Err(format!(
                    "agent {agent}, trial {trial}: step gives {}, the law {law:?} gives {} for draw {draw}",
                    next[0],
                    outcome(&thresholds, draw)
                ));
            }
            let together = {
                let mut next = vec![255; n];
                world.step(0..n, &s, &a, &all_draws, &mut next);
                next[agent]
            };
            let mut alone = [255];
            world.step(agent..agent + 1, &s, &a, &all_draws[agent..=agent], &mut alone);
            if alone[0] != together {
                return Err(format!("agent {agent}: step depends on how the agents are split"));
            }
            let (fresh_s, fresh_a) = (
                random_joint(&mut words, &|i| world.states(i)),
                random_joint(&mut words, &|i| world.actions(i)),
            );
            for j in (0..n).filter(|&j| !parents.contains(&(j as u32))) {
                (s[j], a[j]) = (fresh_s[j], fresh_a[j]);
            }
            let mut elsewhere = [255];
            world.step(agent..agent + 1, &s, &a, &[draw], &mut elsewhere);
            if elsewhere != next {
                return Err(format!(
                    "agent {agent}: its next state changes with agents that are not its parents"
                ));
            }
        }
    }
    check_sampled_rewards(world, &mut words)?;
    for channel in world.channels() {
        let Some(tables) = channel.tables() else { continue };
        for i in 0..n {
            let (found, expected) = (tables.row(i).len(), world.states(i) * world.actions(i));
            if found != expected {
                return Err(format!(
                    "channel {}: agent {i} has {found} entries, not {expected}",
                    channel.name
                ));
            }
        }
    }
    Ok(())
}
