//! A factored world written out: its laws as tables, its start law over joint states.

use crate::base::elementary::{log10, pow};
use crate::graph::Graph;
use crate::graph::indexing::PairIndex;
use crate::world::{Evolution, StartLaw, World};
use crate::{Error, Ragged, Result};

/// Most joint states that exact computations take on.
pub const LARGEST_JOINT_SPACE: usize = 1 << 16;

/// The dynamics of a small factored world. Joint values are numbered with the smallest agent id most
/// significant.
#[derive(Debug, Clone)]
pub struct Dynamics {
    /// Who talks to whom.
    pub graph: Graph,
    /// |S_i| of every agent.
    pub states: Vec<usize>,
    /// |A_i| of every agent.
    pub actions: Vec<usize>,
    /// |S|.
    pub joint_states: usize,
    /// Row i: the agents, ascending, whose state and action enter ℙ_i.
    pub parents: Ragged<u32>,
    /// Row i is ℙ_i as `[∏ S_parents][∏ A_parents][S_i]`.
    pub laws: Ragged<f64>,
    /// ρ over joint states.
    pub start: Vec<f64>,
}

impl Dynamics {
    /// Writes `world` out. Fails if its joint state space is larger than [`LARGEST_JOINT_SPACE`], or if it
    /// does not tell its start law.
    pub fn new(world: &dyn World) -> Result<Self> {
        let refuse = |message: &str| Error::config("world", message);
        let Evolution::Factored(factored) = world.evolution() else {
            let message = "is simulated whole; exact computations need every agent's own law of transitions";
            return Err(refuse(message));
        };
        if !factored.knows_law() {
            return Err(refuse("does not tell its law of transitions, which exact computations need"));
        }
        let n = world.graph().agents();
        let joint_states = Dynamics::count_joint_states(world).ok_or_else(|| {
            let digits: f64 = (0..n).map(|i| log10(world.states(i) as f64)).sum();
            refuse(&format!(
                "the {n} agents have {} joint states; exact computations take at most {LARGEST_JOINT_SPACE}",
                in_words(digits)
            ))
        })?;
        let states: Vec<usize> = (0..n).map(|i| world.states(i)).collect();
        let actions: Vec<usize> = (0..n).map(|i| world.actions(i)).collect();
        let parents = Ragged::from_rows((0..n).map(|i| factored.parents(i)));
        let index = PairIndex::new(&parents, &states, &actions, "world")?;
        let mut laws = Ragged::zeros((0..n).map(|i| index.size(i) * states[i]));
        for i in 0..n {
            let sizes = |of: &[usize]| parents.row(i).iter().map(|&p| of[p as usize]).collect::<Vec<_>>();
            let (state_sizes, action_sizes) = (sizes(&states), sizes(&actions));
            let joint_actions: usize = action_sizes.iter().product();
            for (row, law) in laws.row_mut(i).chunks_exact_mut(states[i]).enumerate() {
                let s = digits(row / joint_actions, &state_sizes);
                let a = digits(row % joint_actions, &action_sizes);
                factored.transition(i, &s, &a, law);
            }
        }
        let start = factored.start_law().ok_or_else(|| {
            refuse("does not tell its start law (Factored::start_law), which exact computations need")
        })?;
        let start = match start {
            StartLaw::Product { local } => local.iter().fold(vec![1.0], |joint, law| {
                joint.iter().flat_map(|p| law.iter().map(move |q| p * q)).collect()
            }),
            StartLaw::Joint { p } => p,
        };
        Ok(Dynamics { graph: world.graph().clone(), states, actions, joint_states, parents, laws, start })
    }

    /// |S|, if the world is factored and small enough for exact computations.
    pub fn count_joint_states(world: &dyn World) -> Option<usize> {
        if matches!(world.evolution(), Evolution::Joint(_)) {
            return None;
        }
        let n = world.graph().agents();
        (0..n).try_fold(1usize, |size, i| {
            size.checked_mul(world.states(i)).filter(|&size| size <= LARGEST_JOINT_SPACE)
        })
    }

    /// Number of agents.
    pub fn agents(&self) -> usize {
        self.states.len()
    }

    /// The agents whose state and action enter ℙ_i, ascending.
    pub(super) fn parents_of(&self, agent: usize) -> impl Iterator<Item = usize> {
        self.parents.row(agent).iter().map(|&j| j as usize)
    }

    /// |S_i|·|A_i|.
    pub fn cells(&self, agent: usize) -> usize {
        self.states[agent] * self.actions[agent]
    }

    /// |A|, which may be too large to be written out.
    pub fn joint_actions(&self) -> u128 {
        self.actions.iter().fold(1u128, |size, &a| size.saturating_mul(a as u128))
    }
}

/// The local values behind a joint number, smallest agent most significant.
pub(super) fn digits(mut number: usize, sizes: &[usize]) -> Vec<u8> {
    let mut values = vec![0; sizes.len()];
    for (value, size) in values.iter_mut().zip(sizes).rev() {
        *value = (number % size) as u8;
        number /= size;
    }
    values
}

/// 10^`digits` for a message.
fn in_words(digits: f64) -> String {
    if digits < 15.0 { format!("{:.0}", pow(10f64, digits)) } else { format!("about 10^{digits:.0}") }
}
