//! Gradients of constraints on whole episodes: P(the event happens within H steps) ≤ δ.
//!
//! Such a probability is linear on states with a flag (did it happen?) and a clock, and no function of an
//! agent's occupancy. The flag is counted as it is: it has no discount, is never rescaled to the mass of an
//! occupancy, never centred, and nothing comes after step H. Its value is P(it happens before H | now), its
//! gradient Σ_k ∇ log π(a^k | ·)·1[it happens], with weight 1 in every step until it is decided, whatever γ
//! and `actor.discount` are.
//!
//! A sampled flag takes the place of a learnt Q-function, less the share of flags that came after the same
//! own state in earlier iterations, which does not depend on the present actions and so adds no bias.

use std::borrow::Cow;
use std::sync::Arc;

use super::actor::Actor;
use super::critic::{QValues, ValueReceiver};
use super::shadow::Signals;
use crate::base::fields::{Field, Fields};
use crate::base::parallel::{agent_blocks, for_each_agent};
use crate::distributed::Halo;
use crate::graph::Graph;
use crate::policy::{Baseline, GradientSettings, Policy};
use crate::sample::episode_events::{Decision, decide};
use crate::utility::problem::{Problem, Scaling};
use crate::world::Trajectory;
use crate::{Ragged, Result};

/// Share of itself that the running mean of flags keeps at an iteration.
const KEEPS: f64 = 0.9;

/// What was seen of a state counts fully from about so many steps on; below, the mean over all states counts
/// too.
const FEW_STEPS: f64 = 10.0;

/// Flags of the events that agents have constraints on, along a batch, and the gradients that follow.
pub struct EpisodeValues {
    halo: Arc<Halo>,
    flags: Flags,
    actor: Actor,
    rule: GradientSettings,
    gradient: Ragged<f64>,
}

/// What became of every event, and what was to be expected.
struct Flags {
    problem: Arc<Problem>,
    /// Row j: dg/dP of its events times their multipliers.
    weights: Ragged<f64>,
    /// Row j: `[event][trajectory]`.
    decisions: Ragged<Decision>,
    trajectories: usize,
    /// Steps from which flags came, and flags, by own state: row j is `[event][S_j]`.
    steps: Ragged<f64>,
    hits: Ragged<f64>,
    /// The share of flags that is expected in each state.
    expected: Ragged<f64>,
}

impl EpisodeValues {
    /// For the events of `problem`, whose flags reach the agents in `groups`; none if there are no events.
    /// All processes must ask at the same time.
    pub fn new(
        problem: &Arc<Problem>,
        halo: &Arc<Halo>,
        graph: &Graph,
        groups: &Ragged<u32>,
        theta: &Ragged<f64>,
        [batch, horizon]: [usize; 2],
    ) -> Result<Option<Self>> {
        let mut any = [u64::from(problem.has_events())];
        halo.fold(&mut any, u64::max)?;
        if any[0] == 0 {
            return Ok(None);
        }
        // The literal scaling has 1/n in both updates.
        let agents = if problem.scaling == Scaling::Paper { graph.total() } else { 1 };
        let events = |j: usize| problem.agents[j].events.len();
        let states = |j: usize| problem.agents[j].space.states;
        let n = problem.agents.len();
        let by_state = || Ragged::zeros((0..n).map(|j| events(j) * states(j)));
        Ok(Some(EpisodeValues {
            halo: halo.clone(),
            flags: Flags {
                problem: problem.clone(),
                weights: Ragged::zeros((0..n).map(events)),
                decisions: Ragged::zeros((0..n).map(|j| events(j) * batch)),
                trajectories: batch,
                steps: by_state(),
                hits: by_state(),
                expected: by_state(),
            },
            actor: Actor::new(
                halo.clone(),
                graph,
                [groups.clone(), groups.clone()],
                vec![1; n],
                [batch, horizon],
            ),
            rule: GradientSettings {
                weights: vec![1.0 / (batch * agents) as f64; horizon],
                baseline: Baseline::None,
                neighbour_mean: false,
                own_share: 0.0,
                all_actions: false,
                normalise: false,
                entropy: 0.0,
            },
            gradient: Ragged::zeros_like(theta),
        }))
    }

    /// Adds ∇ of Σ_j Σ_e μ_je·g_je over the agents j whose constraints reach agent i, for every own agent i.
    pub fn add_gradients(
        &mut self,
        policy: &dyn Policy,
        batch: &[Trajectory],
        mu: &Ragged<f64>,
        out: &mut Ragged<f64>,
    ) -> Result<()> {
        self.flags.raise(batch, mu);
        // Where no multiplier asks for it, in any process, there is nothing to add.
        let mut is_wanted = [u64::from(self.flags.weights.data().iter().any(|weight| *weight != 0.0))];
        self.halo.fold(&mut is_wanted, u64::max)?;
        if is_wanted[0] != 0 {
            self.actor.gradients(policy, batch, &self.flags, &self.rule, &mut self.gradient)?;
            out.data_mut().iter_mut().zip(self.gradient.data()).for_each(|(sum, g)| *sum += g);
        }
        self.flags.remember(batch);
        Ok(())
    }

    /// What it remembers.
    pub(crate) fn fields(&mut self) -> Fields<'_> {
        vec![
            ("episode_values.steps", Field::Rows(&mut self.flags.steps)),
            ("episode_values.hits", Field::Rows(&mut self.flags.hits)),
        ]
    }
}

/// Multipliers of the constraints that shadow rewards speak of: those on whole episodes are 0.
pub fn without_events<'a>(problem: &Problem, mu: &'a Ragged<f64>) -> Cow<'a, Ragged<f64>> {
    if !problem.has_events() {
        return Cow::Borrowed(mu);
    }
    let mut rest = mu.clone();
    for (j, agent) in problem.agents.iter().enumerate() {
        let constraints = rest.row_mut(j).iter_mut().zip(&agent.constraints);
        constraints.filter(|(_, g)| g.event().is_some()).for_each(|(mu, _)| *mu = 0.0);
    }
    Cow::Owned(rest)
}

impl Flags {
    /// Looks at what happened.
    fn raise(&mut self, batch: &[Trajectory], mu: &Ragged<f64>) {
        let Flags { problem, weights, decisions, steps, hits, expected, .. } = self;
        let blocks = agent_blocks(problem.agents.len());
        let rows = weights.split_rows_mut(&blocks).into_iter().zip(decisions.split_rows_mut(&blocks));
        let rows = rows.zip(expected.split_rows_mut(&blocks));
        for_each_agent(&blocks, rows, |(): &mut (), j, ((weights, decisions), expected)| {
            let agent = &problem.agents[j];
            let weights = weights.row_mut(j);
            weights.fill(0.0);
            for (constraint, mu) in agent.constraints.iter().zip(mu.row(j)) {
                if let Some(event) = constraint.event() {
                    weights[event] += mu * constraint.bound.sign() * constraint.utility.scale;
                }
            }
            let mut decided = decisions.row_mut(j).iter_mut();
            for event in &agent.events {
                for (trajectory, decision) in batch.iter().zip(&mut decided) {
                    *decision = decide(event, trajectory, j, agent.space.actions, problem.horizon);
                }
            }
            let states = agent.space.states;
            let seen = steps.row(j).chunks_exact(states).zip(hits.row(j).chunks_exact(states));
            for (expected, (steps, hits)) in expected.row_mut(j).chunks_exact_mut(states).zip(seen) {
                let all = hits.iter().sum::<f64>() / steps.iter().sum::<f64>().max(1.0);
                for ((expected, steps), hits) in expected.iter_mut().zip(steps).zip(hits) {
                    *expected = (hits + FEW_STEPS * all) / (steps + FEW_STEPS);
                }
            }
        });
    }

    /// Adds what happened to what is expected from now on.
    fn remember(&mut self, batch: &[Trajectory]) {
        let Flags { problem, decisions, trajectories, steps, hits, .. } = self;
        let blocks = agent_blocks(problem.agents.len());
        let rows = steps.split_rows_mut(&blocks).into_iter().zip(hits.split_rows_mut(&blocks));
        for_each_agent(&blocks, rows, |(): &mut (), j, (steps, hits)| {
            let (steps, hits, states) = (steps.row_mut(j), hits.row_mut(j), problem.agents[j].space.states);
            steps.iter_mut().chain(hits.iter_mut()).for_each(|x| *x *= KEEPS);
            for (event, decisions) in decisions.row(j).chunks_exact(*trajectories).enumerate() {
                for (trajectory, decision) in batch.iter().zip(decisions) {
                    for &state in &trajectory.states(j)[..decision.steps] {
                        let at = event * states + usize::from(state);
                        steps[at] += 1.0;
                        hits[at] += f64::from(u8::from(decision.happened));
                    }
                }
            }
        });
    }
}

impl QValues for Flags {
    /// They have their multipliers already.
    fn set_multipliers(&mut self, _: &Signals, _: &Ragged<f64>) -> Option<(usize, f64)> {
        None
    }

    fn add_taken(&self, sender: u32, inbox: &ValueReceiver<'_>, _: &mut Vec<u32>, out: &mut [f64]) {
        let j = sender as usize;
        let states = self.problem.agents[j].space.states;
        let decisions = self.decisions.row(j).chunks_exact(self.trajectories);
        let expected = self.expected.row(j).chunks_exact(states);
        let mut sum = vec![0.0; out.len()];
        for ((weight, decisions), expected) in self.weights.row(j).iter().zip(decisions).zip(expected) {
            let Decision { happened, steps } = decisions[inbox.number];
            let flag = f64::from(u8::from(happened));
            for (sum, &state) in sum.iter_mut().zip(&inbox.trajectory.states(j)[..steps]) {
                *sum += weight * (flag - expected[usize::from(state)]);
            }
        }
        out.iter_mut().zip(sum).for_each(|(out, x)| *out += x);
    }
}
