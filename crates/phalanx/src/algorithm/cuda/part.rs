//! What kinds of policies and critics add to the program on the card.

use phalanx_gpu::{Launch, Layout};

use super::borders::ToldNumbers;
use super::rows::Mirror;
use crate::learn::critic::Critic;

/// How agents act on the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActingForm {
    /// By the functions `actor_load` and `policy_act`, from the present states, with so many bytes of shared
    /// memory per agent if they can be had.
    Alone {
        /// Bytes.
        shared: usize,
    },
    /// By a kernel of its own at every step: [`CardPolicy::act`].
    Together,
}

/// A policy on the card.
pub trait CardPolicy: Send + Sync {
    /// Adds constants, arrays and text: `theta`, `gradient`, and what it needs beside them.
    fn add_to(&self, layout: &mut Layout);

    /// How its agents act.
    fn acting(&self) -> ActingForm;

    /// The kernel that chooses the actions of step `k` in the first so many trajectories.
    fn act(&self, k: usize, trajectories: usize) -> Vec<Launch> {
        let _ = (k, trajectories);
        Vec::new()
    }

    /// Numbers in θ on the card.
    fn parameters(&self) -> usize;

    /// Kernels that bring what follows from θ in step with it.
    fn refresh(&self) -> Vec<Launch>;

    /// Line 8: kernels that write `gradient` and `gradient_squares`.
    fn gradient(&self) -> Vec<Launch>;

    /// Where θ and the moments of its optimiser are.
    fn mirrors(&self) -> Vec<Mirror>;
}

/// A critic on the card.
pub trait CardCritic: Send + Sync {
    /// Adds constants, arrays and text.
    fn add_to(&self, layout: &mut Layout);

    /// Line 6: kernels that learn.
    fn learn(&self) -> Vec<Launch>;

    /// Line 8 begins: kernels that make values with the multipliers of line 7; `received` is what comes of
    /// it, unless policy and critic are both tables.
    fn values(&self) -> Vec<Launch>;

    /// What ranks tell each other of their agents' critics after line 6: with it, and the multipliers of line
    /// 7, [`CardCritic::values`] of neighbours elsewhere are made here.
    fn told(&self) -> ToldNumbers<'_>;

    /// Where its state is.
    fn mirrors(&self) -> Vec<Mirror>;

    /// The numbers of the coming iteration, as many as [`CardCritic::add_to`] announced with [`Layout::now`],
    /// and in that order. Counters of the host's critic move on with it.
    fn begin_iteration(&self, critic: &mut dyn Critic) -> Vec<u64> {
        let _ = critic;
        Vec::new()
    }
}
