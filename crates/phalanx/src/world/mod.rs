//! Environments: what a graph of agents lives in.
//!
//! Most worlds are [factored](Factored): agent i's next state depends on the states and actions of its
//! parents and on one keyed draw, nothing else (Paper: sec:problem formulation, "Transition decomposition").
//! That is what makes the same simulation run on any number of threads. Where agents share something that
//! none of them owns, as Pistonball's ball, the world is [joint](Joint): simulated whole, and its episodes
//! may end early.

mod contract;
mod epidemic;
pub mod junctions;
mod kernel;
mod line;
pub mod pistonball;
pub mod platoon;
mod registry;
mod sub_world;
mod table;
mod trajectory;
mod view_table;
mod wireless;

use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::Ragged;
use crate::graph::Graph;
use crate::utility::UtilitySpec;

#[doc(inline)]
pub use crate::base::sampler;
#[doc(inline)]
pub use crate::base::stream::{DRAW_RANGE, Place, Purpose, Sequence, Stream};
pub use contract::check;
pub use epidemic::{Epidemic, EpidemicModel, EpidemicSpec};
pub use junctions::{Junctions, JunctionsSettings};
pub use kernel::WorldKernel;
pub use line::{Line, LineSettings, MIXING, Start};
/// Features as data.
pub use phalanx_agent::policy::{Digit, Term};
pub use pistonball::{Pistonball, PistonballSpec};
pub use platoon::{Platoon, PlatoonSpec};
pub(crate) use registry::kind_error;
pub use registry::{MakeSized, Registry, SizedWorld, Surroundings, WorldConfig, WorldKind, WorldSettings};
pub use sub_world::sub_world;
pub use table::{Model, StartLaw, Table, TableSettings};
pub use trajectory::Trajectory;
pub(crate) use view_table::{ViewTable, view_table};
pub use wireless::{Constants as WirelessConstants, Grid as WirelessGrid};
pub use wireless::{Deadlines, Probabilities, Wireless, WirelessSpec};

/// The worlds that come with the library, a line each: the name that `world.kind` has for it, and its
/// settings.
fn kinds() -> [WorldKind; 7] {
    [
        WorldKind::of::<LineSettings>("line"),
        WorldKind::of::<WirelessSpec>("wireless"),
        WorldKind::of::<PistonballSpec>("pistonball"),
        WorldKind::of::<PlatoonSpec>("platoon"),
        WorldKind::of::<EpidemicSpec>("epidemic"),
        WorldKind::of::<JunctionsSettings>(junctions::KIND),
        WorldKind::of::<TableSettings>("table"),
    ]
}

/// Local states and actions are stored as bytes.
pub const LARGEST_LOCAL_SPACE: usize = 256;

/// A world of agents with finite local states and actions.
///
/// ```
/// use std::ops::Range;
/// use phalanx::graph::Graph;
/// use phalanx::world::{DRAW_RANGE, Evolution, Factored, Place, Stream, World};
///
/// /// Lamps in a ring: a lamp burns on when it, or its left neighbour, was switched on; one switch in ten
/// /// fails.
/// #[derive(Debug)]
/// struct Lamps { ring: Graph }
///
/// impl World for Lamps {
///     fn graph(&self) -> &Graph { &self.ring }
///     fn states(&self, _agent: usize) -> usize { 2 }
///     fn actions(&self, _agent: usize) -> usize { 2 }
///     fn evolution(&self) -> Evolution<'_> { Evolution::Factored(self) }
/// }
///
/// impl Factored for Lamps {
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
/// phalanx::world::check(&Lamps { ring: Graph::ring(5).unwrap() }).unwrap();
/// ```
#[expect(unused_variables, reason = "of defaults")]
pub trait World: Send + Sync + Debug {
    /// Who talks to whom.
    fn graph(&self) -> &Graph;

    /// |S_i|, at most [`LARGEST_LOCAL_SPACE`].
    fn states(&self, agent: usize) -> usize;

    /// |A_i|, at most [`LARGEST_LOCAL_SPACE`].
    fn actions(&self, agent: usize) -> usize;

    /// How it moves on.
    fn evolution(&self) -> Evolution<'_>;

    /// Whether it moves on in one thread at a time, all agents at once, as where an interpreter does it: then
    /// neither agents nor trajectories are split among threads.
    fn is_serial(&self) -> bool {
        false
    }

    /// The same world for the agents of `graph` only, a part of its own: what they do must be what they do
    /// here, draw by draw, for all agents that the part [owns](Graph::owned) and those between them. None: it
    /// is asked for one agent at a time then, which is slower.
    fn part(&self, graph: &Graph) -> Option<Arc<dyn World>> {
        None
    }

    /// Names of the scripted policies beside `uniform`.
    fn scripted_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// A scripted policy for episodes of `horizon` steps. None if there is none of that name.
    fn scripted(&self, name: &str, horizon: usize) -> Option<Script> {
        None
    }

    /// Why there is no such policy here, of a name that is known otherwise.
    fn why_not_scripted(&self, name: &str) -> Option<String> {
        None
    }

    /// What neural networks see of agent i's neighbours' states, in place of one symbol per neighbour.
    fn view(&self, agent: usize, group: &[u32]) -> Option<Box<dyn View>> {
        None
    }

    /// Where `member` stands as seen from agent i, at most `kappa` hops away, for policies that agents share:
    /// numbers that do not depend on how agents are numbered, as many for every pair. None: its distance in
    /// hops is used.
    fn place(&self, agent: usize, member: usize, kappa: usize) -> Option<Vec<f32>> {
        None
    }

    /// What agent i's own place is like, for policies that agents share, in as many numbers for every agent.
    /// Asked where [`World::place`] answers.
    fn site(&self, agent: usize) -> Vec<f32> {
        Vec::new()
    }

    /// Features of the states of agent i's neighbours in `group` (i among them), beside the generic ones of
    /// linear policies. They are asked with no actions.
    fn policy_features(&self, agent: usize, group: &[u32]) -> Option<Box<dyn Features>> {
        None
    }

    /// Features of what agent i's neighbours in `group` (i among them) see and do, beside the generic ones of
    /// linear critics.
    fn features(&self, agent: usize, group: &[u32]) -> Option<Box<dyn Features>> {
        None
    }

    /// [`World::policy_features`] of all agents as kernel text, where agent i's group is row i of `groups`;
    /// none if they are available on a processor only. See [`WorldKernel`].
    fn policy_features_kernel(&self, groups: &Ragged<u32>) -> Option<WorldKernel> {
        None
    }

    /// [`World::features`] of all agents as kernel text, likewise.
    fn features_kernel(&self, groups: &Ragged<u32>) -> Option<WorldKernel> {
        None
    }

    /// Named rewards. The one named `reward` is what `return` reports.
    fn channels(&self) -> &[Channel] {
        &[]
    }

    /// The first step that counts in means of the channel at `place` in [`World::channels`].
    fn channel_start(&self, place: usize) -> usize {
        0
    }

    /// Named events, for constraints on whether they ever happen.
    fn events(&self) -> &[Event] {
        &[]
    }

    /// Steps of an episode, `horizon` at most, that the world's published mean reward counts. Where a GPU
    /// simulates, it counts all of them.
    fn published_steps(&self, trajectory: &Trajectory, horizon: usize) -> usize {
        trajectory.steps().min(horizon)
    }

    /// Names of what an episode of a joint world is measured by beside its rewards, such as a travel time.
    fn measures(&self) -> &[&'static str] {
        &[]
    }

    /// Objective and constraints that come with the world, for configs that do not state their own.
    fn own_problem(&self) -> Option<&OwnProblem> {
        None
    }
}

/// How a world moves on.
#[derive(Debug, Clone, Copy)]
pub enum Evolution<'a> {
    /// Every agent by its parents.
    Factored(&'a dyn Factored),
    /// All at once.
    Joint(&'a dyn Joint),
}

/// Local dynamics.
///
/// States and actions of all agents are passed as byte slices, one entry per agent. `step` may read those of
/// the parents of the agents it advances, and no others; `tests/worlds/contract.rs` holds every world to it.
pub trait Factored: Send + Sync + Debug {
    /// The agents, ascending, whose state and action enter agent i's transition.
    fn parents(&self, agent: usize) -> Vec<u32>;

    /// ℙ_i(· | states and actions of the parents, in their order), written into `law` (|S_i| entries).
    fn transition(&self, agent: usize, states: &[u8], actions: &[u8], law: &mut [f64]);

    /// Draws the start states of the agents in `agents` into `states` (that many entries).
    fn start(&self, stream: &Stream, place: Place, agents: Range<usize>, states: &mut [u8]);

    /// Advances the agents in `agents`: `next[m]` and `draws[m]` (31 bits) belong to agent `agents.start +
    /// m`.
    ///
    /// The outcome must be the inverse cumulative law: state x iff the draw lies in x's interval of
    /// [`Factored::transition`], laid out in the order of the states.
    fn step(&self, agents: Range<usize>, states: &[u8], actions: &[u8], draws: &[u32], next: &mut [u8]);

    /// Rewards of the sampled channel number `channel` (its place in [`World::channels`]) that agents earned
    /// in the step which [`Factored::step`] makes from the same arguments: `rewards[m]` and `draws[m]` belong
    /// to agent `agents.start + m`. The same draw decides both, so rewards may depend on what came out.
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

    /// Start, step and rewards as kernel text; none if it is available on a processor only. Of a
    /// [part](World::part) too, for the agents that it owns: the others are started here, but not moved.
    fn kernel(&self) -> Option<WorldKernel> {
        None
    }

    /// Whether [`Factored::transition`] can be asked. Exact computations need it, training does not: where it
    /// cannot, [`Factored::start_law`] is none and nobody asks.
    fn knows_law(&self) -> bool {
        true
    }

    /// ρ, the law that [`Factored::start`] samples from; exact computations need it. None if it is not known.
    fn start_law(&self) -> Option<StartLaw> {
        None
    }
}

/// Dynamics of a world whose agents share something that none of them owns. Episodes may end before the
/// horizon.
///
/// Agents still have their own finite states, see their neighbours' alone, and of what is shared no more than
/// their [`View`] picks.
pub trait Joint: Send + Sync + Debug {
    /// How many numbers describe what is shared.
    fn shared(&self) -> usize;

    /// A new episode, as its place in the stream makes it.
    fn begin(&self, stream: &Stream, place: Place) -> Box<dyn Episode>;

    /// Whether episodes can end before the horizon: where none does, nobody asks how many did.
    fn ends_early(&self) -> bool {
        true
    }
}

/// One episode of a joint world.
pub trait Episode: Send + Sync {
    /// Writes every agent's state and what is shared.
    fn observe(&self, states: &mut [u8], shared: &mut [f32]);

    /// Moves on: `draws[i]` (31 bits) is agent i's chance, if the world has any. Writes the rewards of the
    /// sampled channels as `[channel][agent]`. Returns whether the episode has ended: nothing is earned after
    /// that.
    fn step(&mut self, actions: &[u8], draws: &[u32], rewards: &mut [f32]) -> bool;

    /// Writes the [measures](World::measures) of the episode so far.
    fn measures(&self, out: &mut [f64]) {
        debug_assert!(out.is_empty(), "a world with measures writes them");
    }

    /// Moves on likewise, and shows `watch` the scene at moments within the step, the last of which is its
    /// end: a step may be long.
    fn step_watched(
        &mut self,
        actions: &[u8],
        draws: &[u32],
        rewards: &mut [f32],
        watch: &mut dyn FnMut(&Scene),
    ) -> bool {
        let ended = self.step(actions, draws, rewards);
        if let Some(scene) = self.scene() {
            watch(scene);
        }
        ended
    }

    /// What pictures show that is neither a state nor shared, such as traffic; none if there is nothing.
    fn scene(&self) -> Option<&Scene> {
        None
    }
}

/// What an episode has to show beside states and what is shared. Whoever draws it knows its type.
pub type Scene = dyn Any + Send + Sync;

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
    /// r_i(s_i, a_i): row i is `[S_i][A_i]`. A utility of the occupancy: where episodes end early, a rate
    /// over the time lived, not a total.
    Table(Ragged<f64>),
    /// Depends on neighbours or on chance too (errata 24): recorded while simulating, from
    /// [`Factored::sample_rewards`] or [`Episode::step`].
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

/// Something that can happen to an agent in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Name in the config, e.g. `collision`.
    pub name: &'static str,
    /// Place in [`World::channels`] of the sampled channel that is not 0 in the steps in which it happens.
    pub channel: usize,
    /// Whether it happens to all agents at once.
    pub is_shared: bool,
}

/// Places in [`World::channels`] of the channels that are recorded while simulating, in order.
pub fn sampled_channels(world: &dyn World) -> Vec<usize> {
    let channels = world.channels().iter().enumerate();
    channels.filter(|(_, channel)| channel.tables().is_none()).map(|(place, _)| place).collect()
}

/// Number, among the channels that are recorded while simulating, of the one at `place` in
/// [`World::channels`].
pub fn sampled_number(world: &dyn World, place: usize) -> usize {
    sampled_channels(world).iter().take_while(|&&sampled| sampled < place).count()
}

/// Rows of numbers that a neural network reads: what agent i's neighbourhood looks like from i.
pub trait View: Send + Sync + Debug {
    /// Number of rows and their width.
    fn shape(&self) -> [usize; 2];

    /// Writes the view of the neighbours' `states`, in the order of their group, row by row. `shared` is what
    /// a joint world [shows](Episode::observe); the view picks what agent i may see of it.
    fn write(&self, states: &[u8], shared: &[f32], out: &mut [f32]);

    /// Whether row m tells of member m of the group, and of it alone.
    fn is_by_member(&self) -> bool {
        false
    }

    /// The neighbours' states, where the view shows them.
    fn states(&self, rows: &[f32]) -> Option<Vec<i64>> {
        let _ = rows;
        None
    }

    /// How many moments a neural network sees at a time, the present one first, each as the rows of one view.
    /// Before the first step an episode looked as it did then.
    fn frames(&self) -> usize {
        1
    }
}

/// Indicator features of what a neighbourhood sees and does.
pub trait Features: Send + Sync + Debug {
    /// How many there are.
    fn count(&self) -> usize;

    /// Adds the numbers of those that are active, given the neighbours' states and actions in the order of
    /// their group. One that is added several times counts so often, as where neighbours share it.
    fn active(&self, states: &[u8], actions: &[u8], out: &mut Vec<u32>);

    /// The same as data, for features of states alone: one term for every feature that is active, in the
    /// order of [`Features::active`]. None if they are code only: then policies that use them cannot be
    /// exported.
    fn terms(&self) -> Option<Vec<Term>> {
        None
    }

    /// Adds ⟨weights, features⟩ with the action of `member` (its place in the group) replaced by each of its
    /// alternatives. Worth writing where few features change.
    fn add_alternatives(&self, weights: &[f64], moment: Moment<'_>, member: usize, out: &mut [f64]) {
        let (mut actions, mut active) = (moment.actions.to_vec(), Vec::new());
        for (b, out) in out.iter_mut().enumerate() {
            actions[member] = b as u8;
            active.clear();
            self.active(moment.states, &actions, &mut active);
            *out += active.iter().map(|&x| weights[x as usize]).sum::<f64>();
        }
    }

    /// As [`Features::add_alternatives`] for every member in turn: `out` holds the alternatives of the first
    /// member, then of the second, and so on, each as many as `counts` says.
    fn add_all_alternatives(&self, weights: &[f64], moment: Moment<'_>, counts: &[usize], out: &mut [f64]) {
        let mut rest = out;
        for (member, &count) in counts.iter().enumerate() {
            let (own, tail) = rest.split_at_mut(count);
            self.add_alternatives(weights, moment, member, own);
            rest = tail;
        }
    }

    /// As [`Features::add_alternatives`] along a trajectory, up to a number that all alternatives of a step
    /// share: `columns` gives a member's states and actions, one per step; `out` is `[step][alternative]`.
    /// Returns whether it is written; worth it where few members matter to each other.
    fn add_changes<'a>(
        &self,
        weights: &[f64],
        columns: &dyn Fn(usize) -> Columns<'a>,
        member: usize,
        alternatives: usize,
        out: &mut [f64],
    ) -> bool {
        let _ = (weights, columns, member, alternatives, out);
        false
    }
}

/// What the members of a group see and do at one step, in its order.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// Their states.
    pub states: &'a [u8],
    /// Their actions.
    pub actions: &'a [u8],
}

/// What one agent saw and did along a trajectory.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    /// Its states, one per step.
    pub states: &'a [u8],
    /// Its actions.
    pub actions: &'a [u8],
}

/// A policy that a world knows.
#[derive(Debug)]
pub enum Script {
    /// Agent i's law over actions by its own state, row i as `[S_i][A_i]`.
    Laws(Ragged<f64>),
    /// Something that looks at more.
    Rule(Box<dyn ScriptedPolicy>),
}

/// A scripted policy that may look at everything: a reference, not something that agents could do.
pub trait ScriptedPolicy: Send + Sync + Debug {
    /// Agent i's action, given its state and what a joint world [shows](Episode::observe).
    fn act(&self, agent: usize, state: u8, shared: &[f32]) -> u8;
}

/// Utilities that a model file carries.
#[derive(Debug, Clone, Default)]
pub struct OwnProblem {
    /// f_i, one per agent, or none.
    pub objectives: Vec<UtilitySpec>,
    /// g_ik ≥ 0, any number per agent, or none.
    pub constraints: Vec<Vec<UtilitySpec>>,
    /// The discount factor of the file.
    pub gamma: Option<f64>,
}
