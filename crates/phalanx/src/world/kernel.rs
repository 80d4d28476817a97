//! A world's step as kernel text, for a GPU.

use std::borrow::Cow;

use phalanx_gpu::{Element, Layout};

/// What a factored world does in a step, as text that runs on a GPU. `tests/worlds/kernels.rs` holds it to
/// the Rust of the world: the same draws give the same states and rewards.
///
/// The text defines
///
/// ```c
/// DEVICE u32 world_start(const struct Run *run, long long agent, const u32 words[4]);
/// DEVICE u32 world_step(const struct Run *run, long long agent, READ_ARGS, u32 draw);
/// DEVICE float world_reward(const struct Run *run, long long agent, READ_ARGS, u32 draw, int channel);
/// ```
///
/// the last one only where the world has sampled channels (`channel` counts among these). `words` are the
/// first four numbers of the agent at the place where a trajectory starts, `draw` has 31 bits. States and
/// actions of a step are read with `STATE(agent)` and `ACTION(agent)`, those of parents only. The text keeps
/// to what C99 and CUDA C have in common; functions of `elementary.h` are there.
///
/// Features of a world are such text too, behind that of its step. Those of policies
/// ([`World::policy_features_kernel`](super::World::policy_features_kernel)) define
///
/// ```c
/// DEVICE int world_policy_features(const struct Run *run, long long agent, SEEN_ARGS, u32 *out);
/// ```
///
/// which writes the active ones, `WORLD_POLICY_FEATURES` at most, from states `SEEN(agent)`; those of critics
/// ([`World::features_kernel`](super::World::features_kernel))
///
/// ```c
/// DEVICE int world_features(const struct Run *run, long long agent, const pair_t *row, u32 *out);
/// struct WorldMoment { … };
/// DEVICE void world_moment(…, long long agent, const pair_t *row, struct WorldMoment *moment);
/// DEVICE void world_changes(…, moment, agent, int slot, row, const double *weights, double *out);
/// DEVICE void world_alternatives(…, moment, agent, int slot, row, weights, int is_left_out, double *out);
/// ```
///
/// the first as above (`WORLD_FEATURES` at most). The last two add values of the sender in a slot of the
/// agent's group, at each of the agent's actions, as `Features::add_changes` and
/// `Features::add_all_alternatives` (or `Features::add_alternatives`, if the agent is left out) do, operation
/// by operation; weight e is `weights[e * AGENTS]`.
#[derive(Debug, Default)]
pub struct WorldKernel {
    /// The text.
    pub text: Cow<'static, str>,
    /// Whether a step reads what other agents do, and not only their states.
    pub reads_actions: bool,
    /// Whether one feature can be active several times at once.
    pub repeats: bool,
    constants: Vec<(String, String)>,
    arrays: Vec<AddArray>,
}

type Add = dyn Fn(&mut Layout) + Send + Sync;

struct AddArray(Box<Add>);

impl std::fmt::Debug for AddArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("array")
    }
}

impl WorldKernel {
    /// A world's text, which reads `reads_actions`: what other agents do.
    pub fn new(text: &'static str, reads_actions: bool) -> Self {
        WorldKernel { text: Cow::Borrowed(text), reads_actions, ..WorldKernel::default() }
    }

    /// The same for the agents `ids` of so many. Arrays stay as they are, of the whole graph.
    pub(super) fn for_part(self, ids: Vec<u32>, total: usize) -> Self {
        let mut places = vec![0; total];
        for (place, &id) in ids.iter().enumerate() {
            places[id as usize] = place as u32;
        }
        let [begin, end] = [include_str!("sub_world_begin.cu"), include_str!("sub_world_end.cu")];
        let text = Cow::Owned([begin, &self.text, end].join("\n"));
        WorldKernel { text, ..self }
            .constant("WHOLE_AGENTS", total)
            .array("whole_ids", ids)
            .array("whole_places", places)
    }

    /// With features that can be active several times at once.
    pub fn repeating(self) -> Self {
        WorldKernel { repeats: true, ..self }
    }

    /// With a constant that the text knows as a macro.
    pub fn constant(mut self, name: &str, value: impl ToString) -> Self {
        self.constants.push((name.into(), value.to_string()));
        self
    }

    /// With an array that the text reads as `run->name`.
    pub fn array<T: Element + Send + Sync>(mut self, name: &'static str, numbers: Vec<T>) -> Self {
        self.arrays.push(AddArray(Box::new(move |layout| layout.array_from(name, &numbers))));
        self
    }

    /// Adds constants and arrays to a program. The text comes later, behind what it relies on.
    pub fn add_to(&self, layout: &mut Layout) {
        self.constants.iter().for_each(|(name, value)| layout.constant(name.clone(), value));
        self.arrays.iter().for_each(|AddArray(add)| add(layout));
    }
}

/// Rows of agents turned entry by entry, `width` of them: entry e of agent i at e·n + i. What a row lacks is
/// `missing`.
pub(crate) fn by_entry<T: Copy, R: AsRef<[T]>>(
    agents: usize,
    width: usize,
    row: impl Fn(usize) -> R,
    missing: T,
) -> Vec<T> {
    let mut turned = vec![missing; width * agents];
    for agent in 0..agents {
        for (e, &x) in row(agent).as_ref().iter().enumerate() {
            turned[e * agents + agent] = x;
        }
    }
    turned
}
