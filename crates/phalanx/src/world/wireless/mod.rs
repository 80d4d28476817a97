//! The paper's wireless access network: users on a grid share access points. Paper: subsec: wireless.

mod assignment;
mod constants;
mod features;
mod grid;
mod kernel;
mod matching;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use super::registry::squarest;
use super::{
    Channel, Evolution, Factored, Features, MakeSized, Script, SizedWorld, StartLaw, Surroundings, View,
    World, WorldKernel, WorldSettings,
};
use crate::base::sampler::uniform;
use crate::base::stream::{DRAW_RANGE, Place, Stream};
use crate::graph::Graph;
use crate::{Ragged, Result};

pub use constants::{Constants, Deadlines, Probabilities, WirelessSpec};
use grid::ACTIONS;
pub use grid::Grid;

/// The channel `reward`, by its place in [`World::channels`].
const REWARD: usize = 0;

impl WorldSettings for WirelessSpec {
    fn build(&self, around: &Surroundings<'_>) -> Result<Arc<dyn World>> {
        let mut wireless = Wireless::new(self)?;
        around.relink(&mut wireless.graph)?;
        Ok(Arc::new(wireless))
    }

    fn agent_name(&self) -> &'static str {
        "user"
    }

    fn sized() -> Option<MakeSized> {
        Some(|agents| {
            let [rows, columns] = squarest(agents.unwrap_or(1000), 2)?;
            let world = Wireless::new(&WirelessSpec { rows, columns, ..WirelessSpec::default() })?;
            // Tables over the nine users of a neighbourhood would not fit.
            let shape = format!("on a grid of {rows} × {columns}");
            Ok(SizedWorld { world: Arc::new(world), kappa: 0, shape })
        })
    }
}

/// Users on a grid, row by row, and an access point in the middle of every four of them.
///
/// * State of user i: its queue, d_i bits. Bit k is a packet that must be sent within k + 1 steps. At the
///   start every bit is a fair coin.
/// * Actions: 0 nothing; 1, 2, 3, 4 the access point up-left, up-right, down-left, down-right. At the edge of
///   the grid some of these do not exist: then nothing is sent and nobody is disturbed.
/// * A step: a user that addresses an access point y sends its earliest packet, if it has one. It gets
///   through with probability q_y if nobody else addresses y; one who addresses y with an empty queue is in
///   the way all the same. Then every deadline comes a step nearer, packets that are due are lost, and with
///   probability p_i a packet arrives that has d_i steps left.
/// * Links: users who share an access point, so that N_i^κ is the window of (2κ + 1)² users around i.
///
/// Channel `reward`: 1 for a packet that gets through. It depends on what neighbours do and on chance (errata
/// 24). Channel `send`: 1 for addressing an access point that exists, whatever the queue holds: what the
/// paper's comparison with MAPPO-L limits. Scripted policy `matching`: the best fixed plan of who uses which
/// access point.
#[derive(Debug, Clone)]
pub struct Wireless {
    graph: Graph,
    /// Of the whole grid, by the numbers of its users.
    constants: Arc<Constants>,
    /// Number in the whole grid of the first agent here.
    first: usize,
    /// By the numbers of agents here.
    users: Vec<User>,
    /// See [`Grid::steps_back`].
    steps_back: [usize; ACTIONS],
    channels: [Channel; 2],
}

/// What sampling needs to know of a user.
#[derive(Debug, Clone, Copy)]
struct User {
    /// The queue with a new packet alone.
    newest: u8,
    /// A packet arrives iff the draw has passed this.
    arrival: u32,
    /// By action: a packet that is sent alone gets through iff the draw is below the first number, or between
    /// `arrival` and the second.
    through: [[u32; 2]; ACTIONS],
}

/// The law of (gets through, arrives) for a packet sent alone, as cumulative probabilities of: through and no
/// arrival, not through and no arrival, through and arrival. The fourth takes the rest.
///
/// A queue without its earliest packet is a smaller number than with it, and an arrival sets the highest bit:
/// in this order the four outcomes are in the order of the next states, whatever the state, or share one. So
/// a single draw decides next state and success together.
///
/// The numbers are multiples of 2⁻⁵⁰. Sums of them are exact in any order, which makes `step` and
/// `transition` agree on every draw.
fn cumulative(arrival: f64, success: f64) -> [f64; 3] {
    const GRAINS: f64 = (1u64 << 50) as f64;
    let grain = |p: f64| (p * GRAINS).round() / GRAINS;
    let none = grain(1.0 - arrival);
    [grain(success * none), none, none + grain(success * (1.0 - none))]
}

/// The smallest draw beyond a cumulative probability.
fn threshold(cumulative: f64) -> u32 {
    (cumulative * f64::from(DRAW_RANGE)).round() as u32
}

/// One step's end: packets that are due are lost, a new one may arrive.
#[inline(always)]
fn shifted(queue: u8, arrives: bool, newest: u8) -> u8 {
    queue >> 1 | if arrives { newest } else { 0 }
}

/// The queue after its earliest packet has got through.
#[inline(always)]
fn without_earliest(queue: u8) -> u8 {
    queue & queue.wrapping_sub(1)
}

impl Wireless {
    /// Of the whole grid, by the numbers of its users.
    pub fn constants(&self) -> &Constants {
        &self.constants
    }

    /// The wireless network that `spec` describes.
    pub fn new(spec: &WirelessSpec) -> Result<Self> {
        let constants = Constants::new(spec)?;
        let grid = constants.grid;
        let users = (0..grid.users()).map(|i| User::new(&constants, i)).collect();
        let send = |i: usize| {
            let exists = move |a: usize| if grid.access_point(i, a as u8).is_some() { 1.0 } else { 0.0 };
            (0..1usize << constants.deadline[i]).flat_map(move |_| (0..ACTIONS).map(exists))
        };
        let send = Ragged::from_rows((0..grid.users()).map(send));
        Ok(Wireless {
            graph: links(grid)?,
            users,
            steps_back: grid.steps_back(),
            channels: [Channel::sampled("reward", [0.0, 1.0]), Channel::table("send", send)],
            constants: Arc::new(constants),
            first: 0,
        })
    }

    /// Numbers in the whole grid.
    fn in_whole(&self, agent: usize, group: &[u32]) -> (usize, Vec<u32>) {
        (self.first + agent, group.iter().map(|&m| m + self.first as u32).collect())
    }

    /// Whether a packet of agent i gets through. Without branches, which would be guessed wrongly half of the
    /// time.
    #[inline(always)]
    fn delivers(&self, i: usize, queue: u8, actions: &[u8], draw: u32) -> bool {
        let user = &self.users[i];
        let action = usize::from(actions[i]);
        let [first, second] = user.through[action];
        let is_lucky = (draw < first) | ((draw >= user.arrival) & (draw < second));
        is_lucky & (queue != 0) & self.is_alone(i, action, actions)
    }

    /// Whether agent i is the only one who addresses the access point that it addresses.
    ///
    /// Beyond the edge of the grid this tells of four other users, which does not matter: nobody has luck
    /// there.
    #[inline(always)]
    fn is_alone(&self, i: usize, action: usize, actions: &[u8]) -> bool {
        let columns = self.constants.grid.columns;
        let first = i.wrapping_sub(self.steps_back[action]).min(self.users.len() - columns - 2);
        let (above, below) = (&actions[first..first + 2], &actions[first + columns..first + columns + 2]);
        let count = u8::from(above[0] == 4) + u8::from(above[1] == 3);
        count + u8::from(below[0] == 2) + u8::from(below[1] == 1) == 1
    }
}

impl User {
    fn new(constants: &Constants, i: usize) -> Self {
        let arrival = constants.arrival[i];
        let none = cumulative(arrival, 0.0)[1];
        User {
            newest: 1 << (constants.deadline[i] - 1),
            arrival: threshold(none),
            through: std::array::from_fn(|action| match constants.grid.access_point(i, action as u8) {
                Some(y) => {
                    let [first, _, second] = cumulative(arrival, constants.success[y]);
                    [threshold(first), threshold(second)]
                }
                // Never.
                None => [0, threshold(none)],
            }),
        }
    }
}

/// Everybody with whom a user shares an access point.
fn links(grid: Grid) -> Result<Graph> {
    let later = (0..grid.users()).flat_map(|user| {
        grid.window(user).users().filter(move |&other| other > user).map(move |other| (user, other))
    });
    Graph::from_edges(grid.users(), later)
}

impl World for Wireless {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn states(&self, agent: usize) -> usize {
        1 << self.constants.deadline[self.first + agent]
    }

    fn actions(&self, _agent: usize) -> usize {
        ACTIONS
    }

    fn evolution(&self) -> Evolution<'_> {
        Evolution::Factored(self)
    }

    fn channels(&self) -> &[Channel] {
        &self.channels
    }

    fn view(&self, agent: usize, group: &[u32]) -> Option<Box<dyn View>> {
        let (user, group) = self.in_whole(agent, group);
        Some(Box::new(features::Window::new(&self.constants, user, &group)))
    }

    /// The place in the window of (2κ + 1)² users around the agent.
    fn place(&self, agent: usize, member: usize, kappa: usize) -> Option<Vec<f32>> {
        Some(self.constants.grid.place_in_window(self.first + agent, self.first + member, kappa))
    }

    /// Whether row and column are odd: as if access points had two colours each way, by which users who
    /// stand alike can take turns.
    fn site(&self, agent: usize) -> Vec<f32> {
        let (user, columns) = (self.first + agent, self.constants.grid.columns);
        [user / columns, user % columns].map(|place| (place % 2) as f32).to_vec()
    }

    fn policy_features(&self, agent: usize, group: &[u32]) -> Option<Box<dyn Features>> {
        let (user, group) = self.in_whole(agent, group);
        Some(Box::new(features::Rivals::new(&self.constants, user, &group)))
    }

    fn features(&self, agent: usize, group: &[u32]) -> Option<Box<dyn Features>> {
        let (user, group) = self.in_whole(agent, group);
        features::Sends::new(&self.constants, user, &group).map(|sends| Box::new(sends) as Box<dyn Features>)
    }

    fn policy_features_kernel(&self, groups: &Ragged<u32>) -> Option<WorldKernel> {
        Some(kernel::rivals(&self.constants, self.first, groups))
    }

    fn features_kernel(&self, groups: &Ragged<u32>) -> Option<WorldKernel> {
        kernel::sends(&self.constants, self.first, groups)
    }

    fn part(&self, graph: &Graph) -> Option<Arc<dyn World>> {
        let window = graph.contiguous_ids();
        let send = self.channels[1].tables().filter(|_| !window.is_empty() && self.first == 0)?;
        let send = Ragged::from_rows(window.clone().map(|id| send.row(id).to_vec()));
        Some(Arc::new(Wireless {
            graph: graph.clone(),
            constants: self.constants.clone(),
            first: window.start,
            users: self.users[window].to_vec(),
            steps_back: self.steps_back,
            channels: [self.channels[0].clone(), Channel::table("send", send)],
        }))
    }

    fn scripted_names(&self) -> &'static [&'static str] {
        &["matching"]
    }

    fn scripted(&self, name: &str, horizon: usize) -> Option<Script> {
        (name == "matching").then(|| Script::Laws(matching::policy(self, horizon)))
    }
}

impl Factored for Wireless {
    fn parents(&self, agent: usize) -> Vec<u32> {
        let users = self.constants.grid.window(self.first + agent).users();
        users.filter_map(|user| user.checked_sub(self.first)).map(|agent| agent as u32).collect()
    }

    fn transition(&self, agent: usize, states: &[u8], actions: &[u8], law: &mut [f64]) {
        let (user, Constants { grid, arrival, success, .. }) = (self.first + agent, &*self.constants);
        let window = grid.window(user);
        let own = window.place(user);
        let (queue, newest) = (states[own], self.users[agent].newest);
        let point = grid.access_point(user, actions[own]).filter(|&y| {
            let addresses = |&(user, action): &(usize, u8)| actions[window.place(user)] == action;
            queue != 0 && grid.around(y).iter().filter(|around| addresses(around)).count() == 1
        });
        let success = point.map_or(0.0, |y| success[y]);
        let [first, second, third] = cumulative(arrival[user], success);
        law.fill(0.0);
        for (queue, arrives, p) in [
            (without_earliest(queue), false, first),
            (queue, false, second - first),
            (without_earliest(queue), true, third - second),
            (queue, true, 1.0 - third),
        ] {
            law[usize::from(shifted(queue, arrives, newest))] += p;
        }
    }

    fn start(&self, stream: &Stream, place: Place, agents: Range<usize>, states: &mut [u8]) {
        for (agent, state) in agents.zip(states) {
            *state = uniform(self.states(agent), stream.words(place, (self.first + agent) as u32, 0)[0] >> 1);
        }
    }

    fn step(&self, agents: Range<usize>, states: &[u8], actions: &[u8], draws: &[u32], next: &mut [u8]) {
        for ((i, next), &draw) in agents.zip(next).zip(draws) {
            let (queue, user) = (states[i], &self.users[i]);
            let left = if self.delivers(i, queue, actions, draw) { without_earliest(queue) } else { queue };
            *next = shifted(left, draw >= user.arrival, user.newest);
        }
    }

    fn kernel(&self) -> Option<WorldKernel> {
        // Of actions 1 to 4, by entry; with 0 nothing is sent.
        let through = (1..ACTIONS).flat_map(|action| [0, 1].map(|end| (action, end)));
        let through = through
            .flat_map(|(action, end)| self.users.iter().map(move |user| user.through[action][end]))
            .collect();
        let kernel = WorldKernel::new(include_str!("step.cu"), true)
            .constant("WIRELESS_ROWS", self.constants.grid.rows)
            .constant("WIRELESS_COLUMNS", self.constants.grid.columns)
            .constant("WIRELESS_FIRST", self.first)
            .array("wireless_newest", self.users.iter().map(|user| user.newest).collect::<Vec<u8>>())
            .array("wireless_arrival", self.users.iter().map(|user| user.arrival).collect::<Vec<u32>>())
            .array::<u32>("wireless_through", through);
        Some(kernel)
    }

    fn start_law(&self) -> Option<StartLaw> {
        let coins = |&deadline: &u8| vec![1.0 / f64::from(1u32 << deadline); 1 << deadline];
        Some(StartLaw::Product { local: self.constants.deadline.iter().map(coins).collect() })
    }

    fn sample_rewards(
        &self,
        channel: usize,
        agents: Range<usize>,
        states: &[u8],
        actions: &[u8],
        draws: &[u32],
        rewards: &mut [f32],
    ) {
        if channel != REWARD {
            return;
        }
        for ((i, reward), &draw) in agents.zip(rewards).zip(draws) {
            *reward = f32::from(u8::from(self.delivers(i, states[i], actions, draw)));
        }
    }
}
