//! How trajectories are simulated on the card.

use phalanx_gpu::{Gpu, Launch, Layout};

use super::part::{ActingForm, CardPolicy};
use super::shape::Shape;
use crate::Ragged;
use crate::world::{Factored, WorldKernel};

/// What a block advances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulationForm {
    /// All agents, a thread each, for all steps.
    Whole,
    /// All agents, several per thread, for all steps.
    Looped,
    /// A tile of agents for some steps, with those around it computed again.
    Tiles {
        /// Agents around a tile on each side.
        halo: usize,
    },
    /// An agent for one step.
    Steps,
}

/// Threads of a block at most.
const MOST_THREADS: usize = 1024;

/// Threads of a block that has a tile: few where there are few agents, so that all multiprocessors have one.
fn tile(agents: usize) -> usize {
    match agents {
        0..8_192 => 128,
        8_192..65_536 => 256,
        _ => 512,
    }
}

/// Agents up to which a block has all of them even where tiles are possible.
const FEW: usize = 128;

/// Agents up to which one block can have all of them: beyond, all multiprocessors are worth a start of
/// kernels per step.
const SOME: usize = 4096;

/// Steps that a tile is advanced at once.
const AT_ONCE: usize = 32;

/// The simulation of a world under a policy.
#[derive(Debug)]
pub struct Simulation {
    form: SimulationForm,
    /// Bytes of shared memory that the policy gets per agent.
    kept: usize,
    pair_bytes: usize,
    agents: usize,
}

/// How far apart the numbers of agents and of those in their groups are, at most.
pub fn band(groups: &Ragged<u32>) -> usize {
    let distance = |i: usize| groups.row(i).iter().map(|&j| (j as usize).abs_diff(i)).max().unwrap_or(0);
    (0..groups.rows()).map(distance).max().unwrap_or(0)
}

impl Simulation {
    /// Chooses the form. `observed` are the agents that each policy reads.
    pub fn new(
        shape: &Shape,
        kernel: &WorldKernel,
        factored: &dyn Factored,
        observed: &Ragged<u32>,
        policy: &dyn CardPolicy,
        gpu: &Gpu,
    ) -> Self {
        let (agents, pair_bytes) = (shape.agents, shape.pair_bytes());
        let steps = Simulation { form: SimulationForm::Steps, kept: 0, pair_bytes, agents };
        // Where others have some of the agents, they must be asked after every step.
        let (ActingForm::Alone { shared }, None) = (policy.acting(), &shape.part) else { return steps };
        let parents = Ragged::from_rows((0..agents).map(|i| factored.parents(i)));
        let (of_world, of_policy) = (band(&parents), band(observed));
        // A state depends on the parents' states and the own action; on the parents' actions where those
        // count.
        let radius = if kernel.reads_actions { of_world + of_policy } else { of_world.max(of_policy) };
        let most = gpu.shared_memory();
        let form = match agents {
            _ if agents <= FEW => SimulationForm::Whole,
            _ if radius * AT_ONCE * 4 <= tile(agents) => SimulationForm::Tiles { halo: radius * AT_ONCE },
            0..=MOST_THREADS => SimulationForm::Whole,
            _ if agents <= SOME && 2 * (agents * pair_bytes + 16) <= most => SimulationForm::Looped,
            _ => SimulationForm::Steps,
        };
        let simulation = Simulation { form, kept: 0, pair_bytes, agents };
        // Two blocks at least should find room on a multiprocessor.
        let room = most / 2 - 2 * simulation.row_bytes();
        let fits = !matches!(form, SimulationForm::Looped | SimulationForm::Steps)
            && shared > 0
            && shared * simulation.span() <= room;
        Simulation { kept: if fits { shared } else { 0 }, ..simulation }
    }

    /// Whether the policy gets the shared memory that it asked for.
    pub fn shares_policy(&self) -> bool {
        self.kept > 0
    }

    fn row_bytes(&self) -> usize {
        (self.span() * self.pair_bytes).next_multiple_of(16)
    }

    /// Agents of a block, with those around its tile.
    fn span(&self) -> usize {
        match self.form {
            SimulationForm::Whole => self.agents.next_multiple_of(32),
            SimulationForm::Looped => self.agents,
            SimulationForm::Tiles { .. } => tile(self.agents),
            SimulationForm::Steps => 0,
        }
    }

    /// Constants and arrays.
    pub fn add_to(&self, layout: &mut Layout, shape: &Shape, kernel: &WorldKernel) {
        let (halo, own, at_once) = match self.form {
            SimulationForm::Tiles { halo } => (halo, tile(self.agents) - 2 * halo, AT_ONCE),
            _ => (0, self.agents, 1 << 30),
        };
        for (name, value) in [
            ("SPAN", self.span()),
            ("HALO", halo),
            ("OWN", own),
            ("STEPS_AT_ONCE", at_once),
            ("IS_LOOPED", usize::from(self.form == SimulationForm::Looped)),
            ("WORLD_READS_ACTIONS", usize::from(kernel.reads_actions)),
            ("THRESHOLDS_SHARED", usize::from(self.shares_policy())),
        ] {
            layout.constant(name, value);
        }
        let carried = if halo > 0 { 2 * (shape.batch + shape.chains) * self.agents } else { 1 };
        layout.array::<u8>("carried", carried);
    }

    /// The kernels of line 3.
    pub fn launches(&self, shape: &Shape, policy: &dyn CardPolicy) -> Vec<Launch> {
        let longest = shape.longest();
        let shared = 2 * self.row_bytes() + self.kept * self.span();
        let simulate = |tiles: usize, threads: usize, first: usize| Launch {
            kernel: "simulate",
            grid: [tiles as u32, shape.trajectories_at(first) as u32],
            block: threads as u32,
            shared,
            x: first as i32,
            y: 0,
        };
        match self.form {
            SimulationForm::Whole => vec![simulate(1, self.span(), 0)],
            SimulationForm::Looped => vec![simulate(1, MOST_THREADS, 0)],
            SimulationForm::Tiles { halo } => {
                let threads = tile(self.agents);
                let tiles = self.agents.div_ceil(threads - 2 * halo);
                (0..longest).step_by(AT_ONCE).map(|first| simulate(tiles, threads, first)).collect()
            }
            SimulationForm::Steps => {
                let steps = (0..longest).flat_map(|k| self.step(k, shape, policy)).flatten();
                self.begin(shape).into_iter().chain(steps).collect()
            }
        }
    }

    /// The kernel that begins, where agents go step by step.
    pub fn begin(&self, shape: &Shape) -> Vec<Launch> {
        vec![self.over("begin_steps", 0, shape)]
    }

    /// The kernels by which agents act at step `k`, and those by which they move on.
    pub fn step(&self, k: usize, shape: &Shape, policy: &dyn CardPolicy) -> [Vec<Launch>; 2] {
        let act = match policy.acting() {
            ActingForm::Alone { .. } => vec![self.over("act_step", k, shape)],
            ActingForm::Together => policy.act(k, shape.trajectories_at(k)),
        };
        [act, vec![self.over("move_step", k, shape)]]
    }

    /// A thread per agent and trajectory that has a step `k`.
    fn over(&self, kernel: &'static str, k: usize, shape: &Shape) -> Launch {
        let launch = Launch::over(kernel, self.agents).with(k, 0);
        Launch { grid: [launch.grid[0], shape.trajectories_at(k) as u32], ..launch }
    }
}
