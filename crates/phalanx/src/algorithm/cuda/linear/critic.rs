//! Linear critics on the card.

use std::any::Any;

use phalanx_gpu::{Gpu, Launch, Layout};

use super::{THIRD, add_shared_text, has_same_actions, no_features};
use crate::Result;
use crate::algorithm::cuda::borders::ToldNumbers;
use crate::algorithm::cuda::device::refused;
use crate::algorithm::cuda::part::CardCritic;
use crate::algorithm::cuda::rows::{Mirror, RowsForm, by_entry};
use crate::algorithm::cuda::shape::{Shape, largest};
use crate::learn::critic::{self, AllFeatures, Critic, CriticFeatures, LinearCritic, LinearRule};
use crate::world::{World, WorldKernel};

/// Threads of a block that solves an agent's equations.
const THREADS: usize = 256;

/// Blocks of an agent's samples that values are worked out in.
const VALUE_PARTS: usize = 4;

/// A [`LinearCritic`] on the card.
#[derive(Debug)]
pub struct CardLinearCritic {
    agents: usize,
    same_actions: bool,
    rule: LinearRule,
    kind: CriticFeatures,
    on_chains: bool,
    /// Step sizes of TD.
    steps: Vec<f64>,
    /// Features of every agent, and of the one that has most.
    counts: Vec<u32>,
    most: usize,
    slots: usize,
    utilities: usize,
    utilities_of: Vec<u32>,
    blocks: Blocks,
    world: Option<(WorldKernel, Vec<u32>)>,
    starts: Vec<u64>,
    /// Whose values are worked out with what all alternatives share, as the host does.
    ahead: Vec<u8>,
    form: LstdForm,
    scratch: usize,
}

/// Generic blocks of indicators, by slots of groups.
#[derive(Debug)]
struct Blocks {
    /// Of every member: the first one, and what a unit of the own pair adds.
    first: Vec<u32>,
    stride: Vec<u32>,
    /// The same of the agent, as every sender in its group has it.
    told_first: Vec<u32>,
    told_stride: Vec<u32>,
    own_first: Vec<u32>,
}

impl Blocks {
    fn new(features: &AllFeatures, slots: usize) -> Self {
        let (n, groups) = (features.groups.rows(), &features.groups);
        let block = |j: usize, place: usize| features.sets[j].block_of(place).unwrap_or([0, 0]);
        let own = |part: usize| {
            let row = |j: usize| (0..groups.row(j).len()).map(|m| block(j, m)[part]).collect::<Vec<u32>>();
            by_entry(n, slots, row, |_| 0)
        };
        let told = |part: usize| {
            let row = |i: usize| -> Vec<u32> {
                let of_sender = |&j: &u32| {
                    let place = groups.row(j as usize).binary_search(&(i as u32));
                    place.map_or(0, |place| block(j as usize, place)[part])
                };
                groups.row(i).iter().map(of_sender).collect()
            };
            by_entry(n, slots, row, |_| 0)
        };
        Blocks {
            first: own(0),
            stride: own(1),
            told_first: told(0),
            told_stride: told(1),
            own_first: (0..n).map(|j| block(j, features.sets[j].own())[0]).collect(),
        }
    }
}

/// How LSTD uses shared memory.
#[derive(Debug, Clone, Copy, Default)]
struct LstdForm {
    /// Whether the equations fit.
    in_shared: bool,
    /// Numbers of the largest system.
    system: usize,
    /// Rows of samples that are looked at at a time.
    chunk: usize,
    shared: usize,
    blocks: usize,
}

impl LstdForm {
    /// The equations in shared memory if they fit, and as many rows of samples as find room beside them.
    fn new(shape: &Shape, rows: usize, most: usize, repeats: bool, gpu: &Gpu) -> Option<Self> {
        let system = most * ((most + shape.utilities()) | 1);
        // Of 32 rows: a word per feature, a word of marks, rewards, and repetitions.
        let repeated = if repeats { 32 * most } else { 0 };
        let word = 4 * (most + 1) + 4 * 32 * shape.channels + repeated;
        // Factors, the order of rows, and two words more than a chunk has.
        let fixed = 2 * 8 * most + 4 * most + 2 * 4 * most + if repeats { most } else { 0 };
        let words = |room: usize, system: usize| {
            room.checked_sub(fixed + 8 * system + 16).map_or(0, |left| left / word)
        };
        let (all, wanted) = (gpu.shared_memory(), rows.div_ceil(32));
        // Three blocks beside each other are worth more than all rows at once, down to some.
        let few = wanted.min(4);
        let choices = [(THIRD, system), (all / 2 - 1024, system), (all, system), (THIRD, 0), (all, 0)];
        let fits = |&(room, system): &(usize, usize)| words(room, system) >= few;
        let (room, inside) = *choices.iter().find(|choice| fits(choice))?;
        // Chunks of equal size.
        let chunks = wanted.div_ceil(words(room, inside));
        let words = wanted.div_ceil(chunks);
        let shared = (fixed + 8 * inside + words * word).next_multiple_of(16);
        let blocks = shape.agents.min(gpu.multiprocessors() * 8);
        Some(LstdForm { in_shared: inside > 0, system, chunk: 32 * words, shared, blocks })
    }
}

impl CardLinearCritic {
    /// Fails if a world's features have no kernel text, or an agent has too many.
    pub fn new(critic: &LinearCritic, world: &dyn World, shape: &Shape, gpu: &Gpu) -> Result<Self> {
        let (features, n) = (critic.features(), shape.agents);
        let firsts: Option<Vec<u32>> = features.sets.iter().map(|set| set.world_first()).collect();
        let has_world = features.sets.iter().any(|set| set.world_first().is_some());
        let kernel = if has_world { world.features_kernel(&features.groups).zip(firsts) } else { None };
        if has_world && kernel.is_none() {
            return Err(no_features(critic::KIND, shape));
        }
        let slots = largest(features.groups.iter().map(<[u32]>::len));
        let most = largest(features.sets.iter().map(|set| set.count));
        let samples = critic.samples();
        let [count, room] = if samples.chains > 0 {
            [shape.chains, shape.chain_room]
        } else {
            [shape.batch, shape.batch_room]
        };
        let repeats = kernel.as_ref().is_some_and(|(kernel, _)| kernel.repeats);
        let too_many =
            || refused(critic::KIND, format!("`linear` with {most} features of an agent is not available"));
        let (form, steps) = match critic.rule() {
            LinearRule::Lstd { .. } => {
                (LstdForm::new(shape, count * room, most, repeats, gpu).ok_or_else(too_many)?, vec![0.0])
            }
            LinearRule::Td(steps) => {
                (LstdForm::default(), (0..count * (room - 1)).map(|k| steps.step(k)).collect())
            }
        };
        let row = shape.max_cells() + shape.channels;
        let batch_steps = shape.batch * shape.horizon;
        let ahead = |j: usize| u8::from(shape.alternatives && critic.is_ahead(j, batch_steps));
        Ok(CardLinearCritic {
            agents: n,
            same_actions: has_same_actions(shape),
            rule: critic.rule(),
            kind: features.kind,
            on_chains: samples.chains > 0,
            steps,
            counts: features.sets.iter().map(|set| set.count as u32).collect(),
            most,
            slots,
            utilities: shape.utilities(),
            utilities_of: shape.constraints.iter().map(|&m| 1 + m as u32).collect(),
            blocks: Blocks::new(features, slots),
            world: kernel,
            starts: critic.equation_starts().iter().map(|&start| start as u64).collect(),
            ahead: (0..n).map(ahead).collect(),
            form,
            scratch: form.blocks * most * row,
        })
    }

    fn is_lstd(&self) -> bool {
        matches!(self.rule, LinearRule::Lstd { .. })
    }

    fn is_averaged(&self) -> bool {
        matches!(self.rule, LinearRule::Lstd { average, .. } if average > 0.0)
    }
}

impl CardCritic for CardLinearCritic {
    fn add_to(&self, layout: &mut Layout) {
        let n = self.agents;
        let generic = if self.kind == CriticFeatures::Own { 1 } else { self.slots };
        // What the world adds is a constant of its text.
        let active = if self.world.is_some() { "+ WORLD_FEATURES" } else { "" };
        let repeats = self.world.as_ref().is_some_and(|(kernel, _)| kernel.repeats);
        layout.constant("CRITIC_ACTIVE", format!("({generic} {active})"));
        for (name, value) in [
            ("CRITIC_OWN", usize::from(self.kind == CriticFeatures::Own)),
            ("CRITIC_PAIR", usize::from(self.kind == CriticFeatures::Pair)),
            ("CRITIC_WORLD", usize::from(self.world.is_some())),
            ("HAS_REPEATS", usize::from(repeats)),
            ("FEATURES", self.most),
            ("ON_CHAINS", usize::from(self.on_chains)),
            ("IS_LSTD", usize::from(self.is_lstd())),
            ("IS_AVERAGED", usize::from(self.is_averaged())),
            ("HAS_AHEAD", usize::from(self.ahead.contains(&1))),
            ("SYSTEM_SHARED", usize::from(self.form.in_shared)),
            ("SYSTEM_ROOM", self.form.system),
            ("LEARN_CHUNK", self.form.chunk),
            ("LEARN_ROWS_AT_ONCE", self.form.chunk + 1),
            ("LEARN_WORDS", self.form.chunk / 32),
            // One word for the row after the chunk; an odd number.
            ("LEARN_STRIDE", (self.form.chunk / 32 + 1) | 1),
        ] {
            layout.constant(name, value);
        }
        layout.array_from("c_first", &self.blocks.first);
        layout.array_from("c_stride", &self.blocks.stride);
        layout.array_from("c_told_first", &self.blocks.told_first);
        layout.array_from("c_told_stride", &self.blocks.told_stride);
        layout.array_from("c_own_first", &self.blocks.own_first);
        layout.array_from("c_count", &self.counts);
        layout.array_from("c_ahead", &self.ahead);
        layout.array_from("c_steps", &self.steps);
        layout.array::<f64>("c_weights", self.utilities * self.most * n);
        layout.array::<f64>("c_weighted", self.most * n);
        if let LinearRule::Lstd { ridge, average } = self.rule {
            let global = if self.form.in_shared { 1 } else { self.form.blocks * self.form.system };
            layout.array::<f64>("c_system", global);
            layout.array::<f64>("c_visits", self.scratch);
            let kept = self.starts.last().map_or(0, |&end| end as usize);
            layout.array::<f64>("c_equations", kept.max(1));
            layout.array_from("c_equation_start", &self.starts);
            layout.real("c_ridge", ridge);
            layout.real("c_average", average);
            layout.now("critic_mass", "double");
        }
        add_shared_text(layout, self.same_actions);
        if let Some((kernel, firsts)) = &self.world {
            layout.array_from("c_world_first", firsts);
            kernel.add_to(layout);
            layout.text(kernel.text.clone());
        }
        layout.text(include_str!("critic.cu"));
    }

    fn learn(&self) -> Vec<Launch> {
        if self.is_lstd() {
            let blocks = Launch::blocks("linear_lstd", self.form.blocks * THREADS, THREADS);
            return vec![blocks.sharing(self.form.shared)];
        }
        let over = Launch::blocks("linear_td", self.agents, 32);
        vec![Launch { grid: [over.grid[0], self.utilities as u32], ..over }]
    }

    fn values(&self) -> Vec<Launch> {
        let weigh = Launch::over("linear_weigh", self.agents);
        let tiles = self.agents.div_ceil(32) as u32;
        vec![
            Launch { grid: [weigh.grid[0], self.most as u32], ..weigh },
            Launch { grid: [tiles, VALUE_PARTS as u32], ..Launch::blocks("linear_values", THREADS, THREADS) },
        ]
    }

    fn told(&self) -> ToldNumbers<'_> {
        let of_utility = move |u: u32, j: usize| {
            let weights = 0..self.counts[j] as usize;
            weights.map(move |x| ((u as usize * self.most + x) * self.agents + j) as u64)
        };
        let places = move |j: usize| (0..self.utilities_of[j]).flat_map(|u| of_utility(u, j)).collect();
        ToldNumbers { array: "c_weights", is_single: false, places: Box::new(places) }
    }

    fn mirrors(&self) -> Vec<Mirror> {
        if !self.is_lstd() {
            let form = RowsForm::ByEntry { stride: self.most, blocks: Some(self.utilities_of.clone()) };
            return vec![Mirror { field: "critic", array: "c_weights", form }];
        }
        let kept = self.is_averaged().then(|| Mirror::row_after_row("critic", "c_equations"));
        kept.into_iter().collect()
    }

    fn begin_iteration(&self, critic: &mut dyn Critic) -> Vec<u64> {
        let critic: Option<&mut LinearCritic> = (critic as &mut dyn Any).downcast_mut();
        match critic.filter(|_| self.is_lstd()) {
            Some(critic) => vec![critic.advance_average().to_bits()],
            None => Vec::new(),
        }
    }
}
