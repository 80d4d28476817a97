//! A world's step as kernel text, for a GPU.

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
#[derive(Debug, Default)]
pub struct WorldKernel {
    /// The text.
    pub text: &'static str,
    /// Whether a step reads what other agents do, and not only their states.
    pub reads_actions: bool,
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
        WorldKernel { text, reads_actions, ..WorldKernel::default() }
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
