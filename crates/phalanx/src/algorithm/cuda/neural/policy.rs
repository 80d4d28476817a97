//! Neural policies on the card.

use phalanx_gpu::{Gpu, Launch, Layout};

use super::super::part::{ActingForm, CardPolicy};
use super::super::rows::Mirror;
use super::critic::Samples;
use super::networks::{BlockSizes, Networks, Owner, Unfit};
use crate::policy::NeuralPolicy;
use crate::policy::Policy;

/// Policies that are neural networks.
#[derive(Debug)]
pub struct NetworkPolicy {
    networks: Networks,
    samples: Samples,
    /// Members of every agent's group, entry by entry.
    group: Vec<u32>,
    /// Where every agent's parameters begin, and where the last one's end.
    starts: Vec<u64>,
    /// Blocks that share an agent's gradient, and its actions.
    gradient_parts: usize,
    acting_parts: usize,
}

impl NetworkPolicy {
    /// `states[i]` is the number of agent i's states.
    pub fn new(policy: &NeuralPolicy, samples: Samples, states: &[usize], gpu: &Gpu) -> Result<Self, Unfit> {
        let (nets, encoders) = (policy.nets(), policy.encoders());
        let block = BlockSizes { threads: THREADS, tile: TILE, learns: true };
        let networks = Networks::new(Owner::Policy, nets, encoders, states, block)?;
        networks.check(gpu.shared_memory())?;
        let n = samples.agents;
        let slots = encoders.iter().map(|encoder| encoder.group.len()).max().unwrap_or(1);
        let mut group = vec![0; slots * n];
        for (i, encoder) in encoders.iter().enumerate() {
            for (m, &member) in encoder.group.iter().enumerate() {
                group[m * n + i] = member;
            }
        }
        // A block for every multiprocessor, but not for fewer samples than a warp or two takes.
        // Sums have the order of blocks, so these do not depend on how agents are partitioned over ranks.
        let blocks = gpu.multiprocessors() / samples.total;
        let parts = |count: usize| blocks.clamp(1, count.div_ceil(16).max(1));
        Ok(NetworkPolicy {
            networks,
            samples,
            group,
            starts: policy.theta().offsets().iter().map(|&at| at as u64).collect(),
            gradient_parts: parts(samples.batch * samples.horizon),
            acting_parts: parts(samples.batch + samples.chains),
        })
    }

    fn blocks(&self, kernel: &'static str, parts: usize) -> Launch {
        let (grid, block) = ([self.samples.agents as u32, parts as u32], self.networks.block().threads);
        Launch { kernel, grid, block: block as u32, shared: self.networks.shared(), x: 0, y: 0 }
    }
}

impl CardPolicy for NetworkPolicy {
    fn parameters(&self) -> usize {
        self.starts[self.starts.len() - 1] as usize
    }

    fn add_to(&self, layout: &mut Layout) {
        self.networks.add_to(layout);
        for (name, value) in
            [("POLICY_TABLES", 0), ("POLICY_ACTS_ALONE", 0), ("POLICY_PARTS", self.gradient_parts)]
        {
            layout.constant(name, value);
        }
        layout.array_from("p_group", &self.group);
        layout.array_from("policy_start", &self.starts);
        layout.array::<f64>("theta", self.parameters());
        layout.array::<f64>("gradient", self.parameters());
        layout.array::<f32>("policy_weights", self.parameters());
        layout.array::<f32>("policy_image", self.samples.agents * self.networks.image());
        layout.array::<f32>("policy_partial", self.gradient_parts * self.parameters());
        layout.text(include_str!("policy.cu"));
    }

    fn acting(&self) -> ActingForm {
        ActingForm::Together
    }

    fn act(&self, k: usize, _trajectories: usize) -> Vec<Launch> {
        vec![self.blocks("policy_act_step", self.acting_parts).with(k, 0)]
    }

    fn refresh(&self) -> Vec<Launch> {
        vec![Launch::blocks("policy_refresh", self.parameters(), 256), self.blocks("policy_prepare", 1)]
    }

    fn gradient(&self) -> Vec<Launch> {
        let sum = Launch::blocks("policy_sum", 256, 256).sharing(256 * size_of::<f64>());
        let agents = self.samples.agents as u32;
        vec![self.blocks("policy_gradients", self.gradient_parts), Launch { grid: [agents, 1], ..sum }]
    }

    fn mirrors(&self) -> Vec<Mirror> {
        let fields = [("theta", "theta"), ("optimizer.first", "first"), ("optimizer.second", "second")];
        fields.map(|(field, array)| Mirror::row_after_row(field, array)).to_vec()
    }
}

/// Threads of a block, and its samples at a time: few enough that two blocks fit on a multiprocessor, and one
/// computes while the other waits.
const THREADS: usize = 256;
const TILE: usize = 32;
