//! Policies and critics that are tables, on the card.

use phalanx_gpu::{Gpu, Launch, Layout};

use super::borders::ToldNumbers;
use super::part::{ActingForm, CardCritic, CardPolicy};
use super::rows::{Mirror, RowsForm, by_entry};
use super::shape::{Shape, largest};
use super::simulation::band;
use crate::graph::indexing::{PairIndex, StateIndex};
use crate::learn::critic::TableLearning;
use crate::policy::{Baseline, GradientSettings, Tabular};

/// Threads per block, and the bytes that they share, for threads that need so many bytes each and so many
/// more per block: as many threads on a multiprocessor as possible. None if not even a warp fits.
fn block_for(gpu: &Gpu, agents: usize, each: usize, more: usize) -> Option<(usize, usize)> {
    const RESERVED: usize = 1 << 10;
    let most = gpu.shared_memory();
    let resident = |block: usize| (most + RESERVED) / (each * block + more + RESERVED) * block;
    let spread = gpu.multiprocessors() * 64;
    let blocks: &[usize] = if agents <= spread { &[32] } else { &[128, 64, 32] };
    let fitting = blocks.iter().copied().filter(|&block| each * block + more <= most);
    // The largest of those with most threads.
    let best = fitting.max_by_key(|&block| (resident(block), block))?;
    Some((best, each * best + more))
}

/// Tabular soft-max policies.
#[derive(Debug)]
pub struct TablePolicy {
    agents: usize,
    groups: Vec<u32>,
    strides: Vec<u32>,
    slots: usize,
    sizes: Vec<u32>,
    /// Entries of the largest table, and thresholds of it.
    entries: usize,
    thresholds: usize,
    has_visits: bool,
    /// Threads per block of the gradient, and bytes that they share; none: sums are made in global memory.
    gradient: Option<(usize, usize)>,
    values_shared: bool,
}

impl TablePolicy {
    /// `tables` are what critics know, if they are tables too.
    pub fn new(
        policy: &Tabular,
        shape: &Shape,
        rule: &GradientSettings,
        may_have_entropy: bool,
        tables: Option<&TableCritic>,
        gpu: &Gpu,
    ) -> Self {
        let (observations, n) = (policy.observations(), shape.agents);
        let slots = largest((0..n).map(|i| observations.terms(i).len()));
        let terms = |i: usize, of: &dyn Fn(&StateIndex, usize, usize) -> u32| -> Vec<u32> {
            (0..observations.terms(i).len()).map(|m| of(observations, i, m)).collect()
        };
        let agent = |index: &StateIndex, i: usize, m: usize| index.terms(i)[m].agent;
        let stride = |index: &StateIndex, i: usize, m: usize| index.terms(i)[m].stride;
        let entries = largest((0..n).map(|i| observations.size(i) * shape.actions[i]));
        let has_visits = may_have_entropy || (rule.baseline == Baseline::Mean && !rule.all_actions);
        let arrays = if has_visits { 3 } else { 2 };
        let each = arrays * entries * size_of::<f64>();
        let (mut gradient, mut values_shared) = (None, false);
        if let Some(critic) = tables {
            gradient = block_for(gpu, n, each, 0);
            let (band, table) = (critic.band, critic.entries * size_of::<f64>());
            if band <= WIDEST && !shape.is_partial() {
                let with_values = block_for(gpu, n, each + table, 2 * band * table);
                values_shared = with_values.is_some();
                gradient = with_values.or(gradient);
            }
        }
        TablePolicy {
            agents: n,
            groups: by_entry(n, slots, |i| terms(i, &agent), |i| i as u32),
            strides: by_entry(n, slots, |i| terms(i, &stride), |_| 0),
            slots,
            sizes: (0..n).map(|i| observations.size(i) as u32).collect(),
            entries,
            thresholds: largest((0..n).map(|i| observations.size(i) * (shape.actions[i] - 1))),
            has_visits,
            gradient,
            values_shared,
        }
    }
}

/// Largest distance of senders whose tables a block shares.
const WIDEST: usize = 16;

impl CardPolicy for TablePolicy {
    fn add_to(&self, layout: &mut Layout) {
        let n = self.agents;
        for (name, value) in [
            ("P_SLOTS", self.slots),
            ("THRESHOLDS", self.thresholds),
            ("PI_ENTRIES", self.entries),
            ("HAS_VISITS", usize::from(self.has_visits)),
            ("GRADIENT_SHARED", usize::from(self.gradient.is_some())),
            ("VALUES_SHARED", usize::from(self.values_shared)),
            ("POLICY_ACTS_ALONE", 1),
            ("POLICY_TABLES", 1),
        ] {
            layout.constant(name, value);
        }
        layout.array_from("p_group", &self.groups);
        layout.array_from("p_stride", &self.strides);
        layout.array_from("p_size", &self.sizes);
        for name in ["theta", "gradient", "pi"] {
            layout.array::<f64>(name, self.entries * n);
        }
        let visits = if self.has_visits && self.gradient.is_none() { self.entries * n } else { 1 };
        layout.array::<f64>("visits", visits);
        layout.array::<u32>("thresholds", self.thresholds * n);
        layout.text(include_str!("kernels/tables_policy.cu"));
    }

    fn acting(&self) -> ActingForm {
        ActingForm::Alone { shared: self.thresholds * size_of::<u32>() }
    }

    fn parameters(&self) -> usize {
        self.entries * self.agents
    }

    fn refresh(&self) -> Vec<Launch> {
        vec![Launch::over("tables_refresh", self.agents)]
    }

    fn gradient(&self) -> Vec<Launch> {
        let (block, shared) = self.gradient.unwrap_or((128, 0));
        vec![Launch::blocks("tables_gradient", self.agents, block).sharing(shared)]
    }

    fn mirrors(&self) -> Vec<Mirror> {
        let fields = [("theta", "theta"), ("optimizer.first", "first"), ("optimizer.second", "second")];
        fields.map(|(field, array)| Mirror::by_entry(field, array, self.entries)).to_vec()
    }
}

/// Tables learnt by temporal differences.
#[derive(Debug)]
pub struct TableCritic {
    agents: usize,
    utilities: usize,
    /// Entries of the largest table.
    entries: usize,
    index_bytes: usize,
    is_warm: bool,
    steps: Vec<f64>,
    sizes: Vec<u32>,
    blocks: Vec<u32>,
    state_strides: Vec<u32>,
    action_strides: Vec<u32>,
    own_strides: Vec<u32>,
    joint_actions: Vec<u32>,
    same_groups: bool,
    /// Whether the numbers of joint actions are powers of 2, of which the exponents are kept then.
    powers: bool,
    /// How far apart senders are.
    band: usize,
    rows: usize,
    /// Steps of the batch.
    batch_steps: usize,
    policy_is_table: bool,
    learn: Option<(usize, usize)>,
}

impl TableCritic {
    /// `policy` is what acts, if it is a table too.
    pub fn new(learning: TableLearning<'_>, shape: &Shape, policy: Option<&Tabular>, gpu: &Gpu) -> Self {
        let (n, tables) = (shape.agents, learning.tables);
        let index: &PairIndex = &tables.index;
        let slots = largest(shape.q_groups.iter().map(<[u32]>::len));
        let own_strides = |i: usize| -> Vec<u32> {
            let of_sender = |&j: &u32| {
                let own = index.terms(j as usize).iter().find(|term| term.agent as usize == i);
                own.map_or(0, |term| term.action_stride)
            };
            shape.q_groups.row(i).iter().map(of_sender).collect()
        };
        let strides = |i: usize, of: fn(&crate::graph::indexing::PairTerm) -> u32| -> Vec<u32> {
            index.terms(i).iter().map(of).collect()
        };
        let entries = largest((0..n).map(|j| index.size(j)));
        let same_groups = policy.is_some_and(|policy| {
            (0..n)
                .all(|i| policy.observations().agents(i).eq(index.terms(i).iter().map(|t| t.agent as usize)))
        });
        let joint = |i: usize| policy.map_or(1, |policy| index.size(i) / policy.observations().size(i));
        let powers = same_groups && (0..n).all(|i| joint(i).is_power_of_two());
        let joint = |i: usize| if powers { joint(i).ilog2() } else { joint(i) as u32 };
        let row = shape.max_cells() + shape.channels;
        let each = shape.utilities() * (entries + row) * size_of::<f64>();
        TableCritic {
            agents: n,
            utilities: shape.utilities(),
            entries,
            index_bytes: if entries <= 1 << 8 {
                1
            } else if entries <= 1 << 16 {
                2
            } else {
                4
            },
            is_warm: learning.is_warm,
            steps: learning.steps.to_vec(),
            sizes: (0..n).map(|j| index.size(j) as u32).collect(),
            blocks: shape.constraints.iter().map(|&m| 1 + m as u32).collect(),
            state_strides: by_entry(n, slots, |i| strides(i, |term| term.state_stride), |_| 0),
            action_strides: by_entry(n, slots, |i| strides(i, |term| term.action_stride), |_| 0),
            own_strides: by_entry(n, slots, own_strides, |_| 0),
            joint_actions: if same_groups { (0..n).map(joint).collect() } else { vec![1] },
            same_groups,
            powers,
            band: band(&shape.q_groups),
            rows: shape.rows(),
            batch_steps: shape.batch * shape.horizon,
            policy_is_table: policy.is_some(),
            learn: block_for(gpu, n, each, 0),
        }
    }
}

/// Rows that a thread numbers one after the other.
const INDEX_ROWS: usize = 25;

impl CardCritic for TableCritic {
    fn add_to(&self, layout: &mut Layout) {
        let n = self.agents;
        for (name, value) in [
            ("CRITIC_TABLES", usize::from(true)),
            ("TABLE_ENTRIES", self.entries),
            ("IS_WARM", usize::from(self.is_warm)),
            ("TD_SHARED", usize::from(self.learn.is_some())),
            ("SAME_GROUPS", usize::from(self.same_groups)),
            ("JOINT_ACTIONS_ARE_POWERS", usize::from(self.powers)),
            ("Q_BAND", self.band),
            ("INDEX_ROWS", INDEX_ROWS),
        ] {
            layout.constant(name, value);
        }
        match self.index_bytes {
            1 => layout.array::<u8>("index", self.rows * n),
            2 => layout.array::<u16>("index", self.rows * n),
            _ => layout.array::<u32>("index", self.rows * n),
        }
        layout.constant("index_t", format!("u{}", 8 * self.index_bytes));
        layout.array_from("td_steps", &self.steps);
        layout.array_from("q_size", &self.sizes);
        layout.array_from("q_state_stride", &self.state_strides);
        layout.array_from("q_action_stride", &self.action_strides);
        layout.array_from("own_stride", &self.own_strides);
        layout.array_from("joint_actions", &self.joint_actions);
        layout.array::<f64>("q", self.utilities * self.entries * n);
        layout.array::<f64>("weighted", self.entries * n);
        layout.text(include_str!("kernels/tables_critic.cu"));
    }

    fn learn(&self) -> Vec<Launch> {
        let index = Launch::over("index_pairs", self.agents);
        let rows = self.rows.div_ceil(INDEX_ROWS) as u32;
        let (block, shared) = self.learn.unwrap_or((128, 0));
        vec![
            Launch { grid: [index.grid[0], rows], ..index },
            Launch::blocks("td_learn", self.agents, block).sharing(shared),
        ]
    }

    fn values(&self) -> Vec<Launch> {
        let mut launches = vec![Launch::over("weigh_tables", self.agents)];
        if !self.policy_is_table {
            let send = Launch::over("send_tables", self.agents);
            launches.push(Launch { grid: [send.grid[0], self.batch_steps as u32], ..send });
        }
        launches
    }

    fn told(&self) -> ToldNumbers<'_> {
        let of_utility = move |u: u32, j: usize| {
            let entries = 0..self.sizes[j] as usize;
            entries.map(move |e| ((u as usize * self.entries + e) * self.agents + j) as u64)
        };
        let places = move |j: usize| (0..self.blocks[j]).flat_map(|u| of_utility(u, j)).collect();
        ToldNumbers { array: "q", is_single: false, places: Box::new(places) }
    }

    fn mirrors(&self) -> Vec<Mirror> {
        let form = RowsForm::ByEntry { stride: self.entries, blocks: Some(self.blocks.clone()) };
        if self.is_warm { vec![Mirror { field: "critic", array: "q", form }] } else { Vec::new() }
    }
}
