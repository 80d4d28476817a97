//! Log-linear policies on the card.

use phalanx_gpu::{Gpu, Launch, Layout};

use super::{THIRD, add_shared_text, has_same_actions, no_features};
use crate::Ragged;
use crate::Result;
use crate::algorithm::cuda::device::refused;
use crate::algorithm::cuda::part::{ActingForm, CardPolicy};
use crate::algorithm::cuda::rows::{Mirror, by_entry};
use crate::algorithm::cuda::shape::{Shape, largest};
use crate::policy::{self, Baseline, GradientSettings, LinearPolicy, Policy, PolicyFeatures};
use crate::world::{World, WorldKernel};

/// Threads of a block that forms an agent's gradient: three blocks find registers on a multiprocessor.
const THREADS: usize = 192;

/// A [`LinearPolicy`] on the card.
#[derive(Debug)]
pub struct CardLinearPolicy {
    agents: usize,
    same_actions: bool,
    is_own: bool,
    groups: Ragged<u32>,
    /// By slots of the group.
    firsts: Vec<u32>,
    strides: Vec<u32>,
    slots: usize,
    starts: Vec<u64>,
    features: Vec<u32>,
    world: Option<(WorldKernel, Vec<u32>)>,
    has_spread: bool,
    /// Samples that a block looks at before it adds them up, and bytes that its threads share.
    chunk: usize,
    shared: usize,
}

impl CardLinearPolicy {
    /// Fails if a world's features have no kernel text, or an agent has too many.
    pub fn new(
        policy: &LinearPolicy,
        world: &dyn World,
        shape: &Shape,
        rule: &GradientSettings,
        gpu: &Gpu,
    ) -> Result<Self> {
        let (n, groups) = (shape.agents, policy.groups());
        let firsts_of_world: Option<Vec<u32>> =
            (0..n).map(|i| policy.world_first(i).map(|first| first as u32)).collect();
        let has_world = (0..n).any(|i| policy.world_first(i).is_some());
        let kernel =
            if has_world { world.policy_features_kernel(&groups).zip(firsts_of_world) } else { None };
        if has_world && kernel.is_none() {
            return Err(no_features(policy::KIND, shape));
        }
        let slots = largest(groups.iter().map(<[u32]>::len));
        let row = |of: fn(&crate::policy::LinearTerm) -> u32| {
            by_entry(n, slots, |i| policy.terms(i).iter().map(of).collect::<Vec<u32>>(), |_| 0)
        };
        let features = |i: usize| policy.theta().row(i).len() / shape.actions[i];
        let most = largest((0..n).map(features));
        let samples = (shape.batch * shape.horizon).next_multiple_of(32);
        // Slopes of 32 samples per word, and the masks of features, an odd number of words apart so that
        // threads read them in different banks.
        let bytes = |words: usize| {
            let masks = (words | 1) * most * size_of::<u32>();
            words * 32 * shape.max_actions() * size_of::<f64>() + masks.next_multiple_of(8)
        };
        let room = if bytes(1) <= THIRD { THIRD } else { gpu.shared_memory() };
        let words = (1..=samples / 32).take_while(|&words| bytes(words) <= room).last().unwrap_or(0);
        if words == 0 {
            return Err(refused(
                policy::KIND,
                format!("`linear` with {most} features of an agent is not available"),
            ));
        }
        let is_mean = rule.baseline == Baseline::Mean && !rule.all_actions;
        Ok(CardLinearPolicy {
            agents: n,
            same_actions: has_same_actions(shape),
            is_own: policy.features() == PolicyFeatures::Own,
            firsts: row(|term| term.first as u32),
            strides: row(|term| term.own_stride),
            slots,
            starts: policy.theta().offsets().iter().map(|&start| start as u64).collect(),
            features: (0..n).map(|i| features(i) as u32).collect(),
            world: kernel,
            has_spread: !shape.alternatives && (is_mean || rule.normalise),
            chunk: 32 * words,
            shared: bytes(words),
            groups,
        })
    }
}

impl CardPolicy for CardLinearPolicy {
    fn add_to(&self, layout: &mut Layout) {
        let n = self.agents;
        let generic = if self.is_own { 1 } else { self.slots };
        // What the world adds is a constant of its text.
        let active = if self.world.is_some() { "+ WORLD_POLICY_FEATURES" } else { "" };
        layout.constant("POLICY_ACTIVE", format!("({generic} {active})"));
        for (name, value) in [
            ("P_SLOTS", self.slots),
            ("POLICY_OWN", usize::from(self.is_own)),
            ("POLICY_WORLD", usize::from(self.world.is_some())),
            ("POLICY_ACTS_ALONE", 1),
            ("HAS_SPREAD", usize::from(self.has_spread)),
            ("GRADIENT_CHUNK", self.chunk),
            ("GRADIENT_WORDS", self.chunk / 32),
            ("GRADIENT_STRIDE", (self.chunk / 32) | 1),
            ("GRADIENT_ROOM", self.shared / size_of::<f64>()),
        ] {
            layout.constant(name, value);
        }
        layout.array_from("p_group", &by_entry(n, self.slots, |i| self.groups.row(i), |i| i as u32));
        layout.array_from("p_count", &self.groups.iter().map(|row| row.len() as u32).collect::<Vec<_>>());
        layout.array_from("p_first", &self.firsts);
        layout.array_from("p_stride", &self.strides);
        layout.array_from("p_features", &self.features);
        layout.array_from("row_start", &self.starts);
        for name in ["theta", "gradient"] {
            layout.array::<f64>(name, self.parameters());
        }
        let spread = if self.has_spread { n } else { 1 };
        layout.array::<f64>("p_mean", spread);
        layout.array::<f64>("p_scale", spread);
        add_shared_text(layout, self.same_actions);
        layout.text(include_str!("seen.cu"));
        if let Some((kernel, firsts)) = &self.world {
            layout.array_from("p_world_first", firsts);
            kernel.add_to(layout);
            layout.text(kernel.text.clone());
        }
        layout.text(include_str!("policy.cu"));
    }

    fn acting(&self) -> ActingForm {
        ActingForm::Alone { shared: 0 }
    }

    fn parameters(&self) -> usize {
        self.starts.last().map_or(0, |&end| end as usize)
    }

    fn refresh(&self) -> Vec<Launch> {
        Vec::new()
    }

    fn gradient(&self) -> Vec<Launch> {
        let blocks = Launch::blocks("linear_gradient", self.agents * THREADS, THREADS).sharing(self.shared);
        let spread = self.has_spread.then(|| Launch::over("linear_spread", self.agents));
        spread.into_iter().chain([blocks]).collect()
    }

    fn mirrors(&self) -> Vec<Mirror> {
        let fields = [("theta", "theta"), ("optimizer.first", "first"), ("optimizer.second", "second")];
        fields.map(|(field, array)| Mirror::row_after_row(field, array)).to_vec()
    }
}
