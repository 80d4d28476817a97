//! Evaluation on a card: fresh episodes of a fixed policy, a chunk at a time.
//!
//! Trajectories stay there. What crosses the bus is what is pooled over all episodes, and for the jackknife a
//! few numbers per agent and episode, which the processor adds up as it does with its own.

use std::sync::{Arc, OnceLock};

use phalanx_gpu::{Gpu, Launch, Layout, Program, Recording};

use super::device::{DeviceChoice, failure};
use super::rows::Mirror;
use super::shape::Shape;
use super::simulation::Simulation;
use super::{support, utilities};
use crate::algorithm::Task;
use crate::base::elementary;
use crate::base::fields::Field;
use crate::base::stream::{Purpose, Stream};
use crate::policy::{Baseline, GradientSettings, Policy};
use crate::sample::occupancy::Visits;
use crate::utility::problem::Problem;
use crate::world::{Evolution, sampled_channels, sampled_number};
use crate::{Error, Ragged, Result};

/// Where the episodes of an evaluation are simulated and counted.
#[derive(Debug, Clone, Default)]
pub struct EvaluationDevice {
    choice: DeviceChoice,
    /// The processor does what the device cannot do; else that is refused.
    is_lenient: bool,
    /// The processor does what the device would round otherwise.
    is_exact: bool,
    /// Episodes at a time, at most; none: as many as have room.
    chunk: Option<usize>,
    /// The device, once it is open: opening it takes longer than a short evaluation.
    gpu: Arc<OnceLock<Gpu>>,
}

impl EvaluationDevice {
    /// The chosen one; what it cannot do is refused.
    pub fn new(choice: DeviceChoice) -> Self {
        EvaluationDevice { choice, is_lenient: choice == DeviceChoice::Auto, ..EvaluationDevice::default() }
    }

    /// The chosen one as far as it can do what is asked for, else the processor.
    pub fn if_possible(choice: DeviceChoice) -> Self {
        EvaluationDevice { is_lenient: true, ..EvaluationDevice::new(choice) }
    }

    /// The same where results are those of the processor to the last bit, else the processor.
    pub fn if_exact(choice: DeviceChoice) -> Self {
        EvaluationDevice { is_exact: true, ..EvaluationDevice::if_possible(choice) }
    }

    /// With so many episodes at a time at most; results do not depend on it.
    pub fn in_chunks(self, chunk: usize) -> Self {
        EvaluationDevice { chunk: Some(chunk.max(1)), ..self }
    }

    /// Fails if this policy can never be evaluated there.
    pub fn check(&self, task: &Task, policy: &dyn Policy) -> Result<()> {
        match self.choice.is_cpu() || self.is_lenient {
            true => Ok(()),
            false => support::check_evaluation(task, policy),
        }
    }

    /// Episodes on the device; none if the processor is to have them.
    pub(crate) fn episodes(&self, plan: &EpisodePlan<'_>) -> Result<Option<CardEpisodes>> {
        if self.choice.is_cpu() || (self.is_exact && plan.policy.network().is_some()) {
            return Ok(None);
        }
        match self.built(plan) {
            Err(Error::Config { .. }) if self.is_lenient => Ok(None),
            found => found,
        }
    }

    fn built(&self, plan: &EpisodePlan<'_>) -> Result<Option<CardEpisodes>> {
        support::check_evaluation(plan.task, plan.policy)?;
        let gpu = match self.gpu.get() {
            Some(gpu) => gpu.clone(),
            None => {
                let Some(gpu) = self.choice.open(plan.agent_steps(), 0)? else { return Ok(None) };
                self.gpu.get_or_init(|| gpu).clone()
            }
        };
        CardEpisodes::new(plan, &gpu, self.chunk).map(Some)
    }
}

/// The episodes of an evaluation.
pub(crate) struct EpisodePlan<'a> {
    pub task: &'a Task,
    pub policy: &'a dyn Policy,
    pub stream: &'a Stream,
    /// Steps of an episode, and those of them that returns count.
    pub horizon: usize,
    pub counted: usize,
    /// How many there are.
    pub episodes: usize,
}

impl EpisodePlan<'_> {
    fn agent_steps(&self) -> u128 {
        (self.episodes as u128 * self.horizon as u128) * self.task.world.graph().total() as u128
    }

    /// Sizes of a chunk of so many episodes.
    fn shape(&self, chunk: usize) -> Shape {
        let (world, problem) = (&*self.task.world, &*self.task.problem);
        let n = world.graph().agents();
        Shape {
            agents: n,
            total: n,
            part: None,
            batch: chunk,
            horizon: self.horizon,
            batch_room: self.horizon,
            chains: 0,
            chain_room: 0,
            states: (0..n).map(|i| world.states(i)).collect(),
            actions: (0..n).map(|i| world.actions(i)).collect(),
            constraints: problem.agents.iter().map(|agent| agent.constraints.len()).collect(),
            channels: problem.sampled_channels,
            q_groups: Ragged::default(),
            g_groups: Ragged::default(),
            alternatives: false,
        }
    }
}

/// Numbers that the card writes per agent and episode; see `evaluate.cu`.
#[derive(Debug, Clone, Copy)]
struct NumberCounts {
    utilities: usize,
    has_return: bool,
    channels: usize,
    events: usize,
}

impl NumberCounts {
    fn total(self) -> usize {
        self.utilities + usize::from(self.has_return) + self.channels + self.events
    }
}

/// What some episodes say, by agent.
pub(crate) struct EpisodeNumbers {
    counts: NumberCounts,
    agents: usize,
    episodes: usize,
    /// `[number][episode][agent]`.
    numbers: Vec<f64>,
}

impl EpisodeNumbers {
    fn row(&self, number: usize, episode: usize) -> &[f64] {
        let first = (number * self.episodes + episode) * self.agents;
        &self.numbers[first..first + self.agents]
    }

    /// How many episodes.
    pub fn episodes(&self) -> usize {
        self.episodes
    }

    /// How a utility changes without an episode; 0 is the objective.
    pub fn changes(&self, utility: usize, episode: usize) -> &[f64] {
        self.row(utility, episode)
    }

    /// Undiscounted returns, if the world has the channel `reward`.
    pub fn returns(&self, episode: usize) -> Option<&[f64]> {
        self.counts.has_return.then(|| self.row(self.counts.utilities, episode))
    }

    /// Totals of a sampled channel.
    pub fn totals(&self, channel: usize, episode: usize) -> &[f64] {
        self.row(self.counts.utilities + usize::from(self.counts.has_return) + channel, episode)
    }

    /// Whether an event of the world happened: 1 or 0.
    pub fn happened(&self, event: usize, episode: usize) -> &[f64] {
        self.row(self.counts.total() - self.counts.events + event, episode)
    }
}

/// Fresh episodes of a fixed policy on a card. The same ones every time they are asked for.
pub(crate) struct CardEpisodes {
    program: Program,
    source: String,
    simulate: Recording,
    count: Recording,
    leave_out: Recording,
    counts: NumberCounts,
    /// A row of occupancies per agent, all 0.
    rows: Ragged<f64>,
    /// Entries of the longest row.
    stride: usize,
    utilities: usize,
    episodes: usize,
    chunk: usize,
}

/// A card's memory that a chunk of episodes may take: a share of what is free, and no more than keeps the
/// time between two looks at the stop flag short.
const SHARE: u64 = 4;
const MOST_BYTES: u64 = 2 << 30;

/// Trajectories that a launch can have: blocks in its second dimension.
const MOST_TRAJECTORIES: usize = 65_535;

/// Threads of a block that leaves out episodes, and the bytes that they may share.
const BLOCK: usize = 64;
const SHARED: usize = 64 << 10;

/// Warps of a block that adds up visits step by step, and numbers that a thread reads at a time.
const SCAN_WARPS: usize = 8;
const READ_AHEAD: usize = 32;

impl CardEpisodes {
    fn new(plan: &EpisodePlan<'_>, gpu: &Gpu, most: Option<usize>) -> Result<Self> {
        let EpisodePlan { task, policy, stream, episodes, .. } = *plan;
        let (world, problem) = (&*task.world, &*task.problem);
        let Evolution::Factored(factored) = world.evolution() else { return Err(support::joint()) };
        let kernel = factored.kernel().ok_or_else(support::no_kernel)?;

        let single = plan.shape(1);
        let stride = single.max_cells() + single.channels;
        let row_shared = stride * size_of::<f64>() * BLOCK <= SHARED.min(gpu.shared_memory());
        let scratch = if row_shared { utilities::small_cells(&single) } else { stride };
        let counts = NumberCounts {
            utilities: single.utilities(),
            has_return: world.channels().iter().any(|channel| channel.name == "reward"),
            channels: single.channels,
            events: world.events().len(),
        };
        let of_step = single.pair_bytes() + single.channels * size_of::<f32>();
        let of_lane = plan.horizon * of_step + (scratch + counts.total()) * size_of::<f64>() + 2;
        let room = (gpu.free_memory().map_err(failure)? / SHARE).min(MOST_BYTES);
        let fit = usize::try_from(room / (of_lane * single.agents).max(1) as u64).unwrap_or(usize::MAX);
        let fit = fit.min(most.unwrap_or(MOST_TRAJECTORIES)).clamp(1, MOST_TRAJECTORIES);
        // Chunks of one size, so that the last one is not mostly empty.
        let chunk = episodes.div_ceil(episodes.div_ceil(fit).max(1)).max(1);

        let shape = plan.shape(chunk);
        let (n, lanes) = (shape.agents, shape.agents * chunk);
        let rule = GradientSettings {
            weights: vec![0.0],
            baseline: Baseline::None,
            neighbour_mean: false,
            own_share: 0.0,
            all_actions: false,
            normalise: false,
            entropy: 0.0,
        };
        let acting = support::policy_on_card(policy, world, &shape, (&rule, false), None, gpu)?;
        let simulation = Simulation::new(&shape, &kernel, factored, &policy.groups(), &*acting, gpu);

        let mut layout = Layout::default();
        // The size of chunks is no part of the text: it is compiled once for all of them.
        layout.number("chunk", chunk as i64);
        layout.constant("BATCH", "((int)run->chunk)");
        layout.constant("ROWS", "(run->chunk * HORIZON)");
        layout.constant("FIRST_TRAJECTORY", "((u32)now->first)");
        shape.add_sizes(&mut layout, stream, problem.gamma, Purpose::Evaluation);
        for (name, value) in [
            ("COUNTED", plan.counted.min(plan.horizon)),
            ("EVENTS", counts.events),
            ("ROW_SHARED", usize::from(row_shared)),
            ("SCAN_WARPS", SCAN_WARPS),
            ("READ_AHEAD", READ_AHEAD),
        ] {
            layout.constant(name, value);
        }
        kernel.add_to(&mut layout);
        simulation.add_to(&mut layout, &shape, &kernel);
        layout.text(elementary::C_TEXT);
        layout.text(include_str!("kernels/common.cu"));
        layout.text(kernel.text.clone());
        add_gradient_names(&mut layout, &shape, &rule);
        layout.number("parameters", acting.parameters() as i64);
        acting.add_to(&mut layout);
        layout.text(include_str!("kernels/simulate.cu"));
        layout.text(include_str!("../../utility/utilities.cu"));
        utilities::add_utilities(&mut layout, &shape, world, problem, &vec![0.0; plan.horizon])?;
        let channel_first: Vec<u32> =
            sampled_channels(world).iter().map(|&place| world.channel_start(place) as u32).collect();
        let event_channel: Vec<u32> =
            world.events().iter().map(|event| sampled_number(world, event.channel) as u32).collect();
        layout.array_from("channel_first", &channel_first);
        layout.array_from("event_channel", &event_channel);
        for (name, count) in [
            ("counts", stride * n),
            ("visited", stride * n),
            ("scratch", scratch * lanes),
            ("numbers", counts.total() * lanes),
            ("pool_values", shape.utilities() * n),
        ] {
            layout.array::<f64>(name, count);
        }
        for (name, kind) in [
            ("iteration", "long long"),
            ("first", "long long"),
            ("count", "long long"),
            ("rescale", "double"),
        ] {
            layout.now(name, kind);
        }
        layout.text(include_str!("kernels/visits.cu"));
        layout.text(include_str!("kernels/evaluate.cu"));

        let source = layout.source();
        let program = layout.build(gpu).map_err(failure)?;
        let record = |launches: &[Launch]| program.record(launches).map_err(failure);
        let shared = if row_shared { stride * size_of::<f64>() * BLOCK } else { 0 };
        let found = CardEpisodes {
            simulate: record(&simulation.launches(&shape, &*acting))?,
            count: record(&counting(&shape))?,
            leave_out: record(&[Launch::blocks("leave_out", lanes, BLOCK).sharing(shared)])?,
            counts,
            rows: rows_of(problem),
            stride,
            utilities: shape.utilities(),
            episodes,
            chunk,
            source,
            program,
        };
        let mut theta = policy.theta().clone();
        for mirror in acting.mirrors().iter().filter(|mirror| mirror.field == "theta") {
            mirror.upload(&Field::Rows(&mut theta), found.program.array(mirror.array))?;
        }
        found.program.record(&acting.refresh()).and_then(|refresh| refresh.run()).map_err(failure)?;
        Ok(found)
    }

    /// The text of its kernels.
    pub fn kernels(&self) -> &str {
        &self.source
    }

    /// Simulates chunk after chunk and runs kernels on each; `work` is told how many episodes it has.
    /// `go_on` fails where nobody wants to know any more.
    fn for_each_chunk(
        &self,
        kernels: &Recording,
        simulates: bool,
        go_on: &dyn Fn() -> Result<()>,
        mut work: impl FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        let rescale = self.episodes as f64 / (self.episodes as f64 - 1.0);
        for first in (0..self.episodes).step_by(self.chunk) {
            go_on()?;
            let count = self.chunk.min(self.episodes - first);
            // No entropy, and iteration 0; then what changes.
            let now = [0, 0, first as u64, count as u64, rescale.to_bits()];
            self.program.set_now(&now).map_err(failure)?;
            if simulates {
                self.simulate.run().map_err(failure)?;
            }
            kernels.run().map_err(failure)?;
            self.program.gpu().synchronize().map_err(failure)?;
            work(count)?;
        }
        Ok(())
    }

    /// Their visits, pooled.
    pub fn visits(&self, weights: &[f64], go_on: &dyn Fn() -> Result<()>) -> Result<Visits> {
        self.program.array("visit_weights").write(0, weights).map_err(failure)?;
        for name in ["occupancy", "counts"] {
            self.program.array(name).clear().map_err(failure)?;
        }
        self.for_each_chunk(&self.count, true, go_on, |_| Ok(()))?;
        Ok(Visits::pooled(self.download("occupancy")?, self.download("counts")?))
    }

    /// Leaves out one after the other of the episodes that [`CardEpisodes::visits`] has pooled. `values` are
    /// the utilities there. `work` is told what the episodes of a chunk say, in order; the result is the
    /// number of episodes that visited each cell.
    pub fn leave_out(
        &self,
        values: &Ragged<f64>,
        go_on: &dyn Fn() -> Result<()>,
        mut work: impl FnMut(&EpisodeNumbers),
    ) -> Result<Ragged<u32>> {
        let (mut values, memory) = (values.clone(), self.program.array("pool_values"));
        let mirror = Mirror::by_entry("values", "pool_values", self.utilities);
        mirror.upload(&Field::Rows(&mut values), memory)?;
        self.program.array("visited").clear().map_err(failure)?;
        let (agents, counts) = (self.rows.rows(), self.counts);
        let mut numbers = EpisodeNumbers { counts, agents, episodes: 0, numbers: Vec::new() };
        // A single chunk is still there.
        let simulates = self.episodes > self.chunk;
        self.for_each_chunk(&self.leave_out, simulates, go_on, |count| {
            numbers.episodes = count;
            numbers.numbers.resize(counts.total() * count * agents, 0.0);
            for (number, part) in numbers.numbers.chunks_exact_mut(count * agents).enumerate() {
                let first = number * self.chunk * agents;
                self.program.array("numbers").read(first, part).map_err(failure)?;
            }
            work(&numbers);
            Ok(())
        })?;
        let visited = self.download("visited")?;
        Ok(Ragged::from_rows(visited.iter().map(|row| row.iter().map(|&count| count as u32))))
    }

    /// Rows of occupancies, or of something else of their form.
    fn download(&self, array: &'static str) -> Result<Ragged<f64>> {
        let mut rows = self.rows.clone();
        let mirror = Mirror::by_entry("rows", array, self.stride);
        mirror.download(&mut Field::Rows(&mut rows), self.program.array(array))?;
        Ok(rows)
    }
}

/// The kernels that pool visits: those of small tables by episodes, the others step by step.
fn counting(shape: &Shape) -> Vec<Launch> {
    let (small, entries) = (utilities::small_cells(shape), shape.max_cells() + shape.channels);
    let groups = shape.agents.div_ceil(32);
    let pool = Launch::over("pool_visits", shape.agents);
    let threads = 32 * SCAN_WARPS;
    let scan = Launch::blocks("scan_visits", groups * entries * threads, threads);
    let mut launches = vec![
        utilities::counting("visit_cells", shape, shape.agents * shape.batch),
        Launch { grid: [pool.grid[0], small as u32], ..pool },
    ];
    if shape.channels > 0 || shape.max_cells() > small {
        // Two pieces: one is read while the other is added up. The compiler reads some rounds ahead, also
        // beyond the last one: what it finds there is not used, but must be there.
        let rounds = 2 * (SCAN_WARPS - 1) * READ_AHEAD + 8;
        launches.push(scan.sharing(rounds * 32 * size_of::<f32>()));
    }
    launches
}

/// A row of occupancies per agent.
fn rows_of(problem: &Problem) -> Ragged<f64> {
    Ragged::zeros((0..problem.agents.len()).map(|i| problem.row_length(i)))
}

/// What the text of policies reads to form gradients: it is compiled with the rest, and not run.
fn add_gradient_names(layout: &mut Layout, shape: &Shape, rule: &GradientSettings) {
    shape.add_rule(layout, rule, f64::INFINITY);
    for name in ["weights", "received", "gradient_squares"] {
        layout.array::<f64>(name, 1);
    }
    layout.now("entropy", "double");
}
