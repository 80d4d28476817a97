//! A policy that somebody wrote in Python, to be evaluated.

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray2, PyReadonlyArray3, PyUntypedArrayMethods};
use phalanx::Ragged;
use phalanx::base::sampler::{outcome, write_thresholds};
use phalanx::policy::observation::{Inputs, ObservationEncoder};
use phalanx::policy::{ActTogether, Acting, GradientInput, GradientScratch, Policy};
use phalanx::world::{Evolution, LARGEST_LOCAL_SPACE, Trajectory, World};
use pyo3::prelude::*;

use crate::errors::bad;
use crate::watch::in_python;

/// `function(observations) -> actions int64[episode, agent], or probabilities float64[episode, agent,
/// action]`, as the package has wrapped it. It has no parameters.
#[derive(Debug)]
pub struct FunctionPolicy {
    function: Py<PyAny>,
    sight: Sight,
    groups: Ragged<u32>,
    actions: Vec<usize>,
    theta: Ragged<f64>,
}

/// What the function is shown.
#[derive(Debug)]
enum Sight {
    /// States of neighbourhoods, or views, as environments of this package show them: uint8 or
    /// float32 `[episode, agent, number]`, with zeros behind.
    Agents { encoders: Vec<ObservationEncoder>, widest: usize, are_views: bool },
    /// Everything that the world shows, float32 `[episode, number]`: the package knows whose it is.
    Whole,
}

/// What the function gives.
#[derive(FromPyObject)]
enum Decisions<'py> {
    Actions(PyReadonlyArray2<'py, i64>),
    Laws(PyReadonlyArray3<'py, f64>),
}

impl FunctionPolicy {
    /// `sees_all`: of an environment, of which the package cuts out what each agent observes.
    pub fn new(world: &dyn World, kappa: usize, function: Py<PyAny>, sees_all: bool) -> Self {
        let n = world.graph().agents();
        let groups = world.graph().neighbourhoods(kappa);
        let encoder = |(i, group): (usize, &[u32])| ObservationEncoder::new(world, i, group, false);
        let sight = if sees_all {
            Sight::Whole
        } else {
            let are_views = matches!(world.evolution(), Evolution::Joint(_));
            let encoders: Vec<_> = groups.iter().enumerate().map(encoder).collect();
            let size = |i: usize| match encoders[i].numbers() {
                Some(numbers) if are_views => numbers,
                _ => groups.row(i).len(),
            };
            let widest = (0..n).map(size).max().unwrap_or(0);
            Sight::Agents { encoders, widest, are_views }
        };
        FunctionPolicy {
            function,
            sight,
            groups,
            actions: (0..n).map(|i| world.actions(i)).collect(),
            theta: Ragged::zeros(std::iter::repeat_n(0, n)),
        }
    }

    /// What the function is shown of step k.
    fn observations<'py>(
        &self,
        py: Python<'py>,
        trajectories: &[&Trajectory],
        k: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (n, count) = (self.actions.len(), trajectories.len());
        match &self.sight {
            Sight::Whole => {
                let rows: Vec<f32> =
                    trajectories.iter().flat_map(|seen| seen.global_state(k)).copied().collect();
                let width = rows.len() / count.max(1);
                Ok(PyArray1::from_vec(py, rows).reshape([count, width])?.into_any())
            }
            Sight::Agents { encoders, widest, are_views: true } => {
                let mut rows = vec![0.0; count * n * widest];
                let mut inputs = Inputs::default();
                for (place, row) in rows.chunks_exact_mut(*widest).enumerate() {
                    inputs.clear();
                    encoders[place % n].encode_step(trajectories[place / n], k, |_| 0, &mut inputs);
                    row[..inputs.rows.len()].copy_from_slice(&inputs.rows);
                }
                Ok(PyArray1::from_vec(py, rows).reshape([count, n, *widest])?.into_any())
            }
            Sight::Agents { widest, are_views: false, .. } => {
                let mut rows = vec![0u8; count * n * widest];
                for (place, row) in rows.chunks_exact_mut(*widest).enumerate() {
                    let group = self.groups.row(place % n).iter();
                    let states = group.map(|&m| trajectories[place / n].states(m as usize)[k]);
                    row.iter_mut().zip(states).for_each(|(out, state)| *out = state);
                }
                Ok(PyArray1::from_vec(py, rows).reshape([count, n, *widest])?.into_any())
            }
        }
    }

    /// Calls the function and hands over what it says of every episode and agent.
    fn decide(&self, trajectories: &[&Trajectory], k: usize, mut take: impl FnMut(usize, Decision<'_>)) {
        let (n, count) = (self.actions.len(), trajectories.len());
        in_python(|py| {
            let found = self.function.bind(py).call1((self.observations(py, trajectories, k)?,))?;
            let wrong = |shape: &[usize]| {
                Err(bad("policy", format!("gives shape {shape:?} for {count} episodes of {n} agents")))
            };
            match found.extract()? {
                Decisions::Actions(actions) => {
                    if actions.shape() != [count, n] {
                        return wrong(actions.shape());
                    }
                    for (place, &action) in actions.as_array().iter().enumerate() {
                        let size = self.actions[place % n];
                        let Some(action) = usize::try_from(action).ok().filter(|&action| action < size)
                        else {
                            let message = format!(
                                "agent {}'s action {action}; allowed are 0 to {}",
                                place % n,
                                size - 1
                            );
                            return Err(bad("policy", message));
                        };
                        take(place, Decision::Action(action as u8));
                    }
                }
                Decisions::Laws(laws) => {
                    let most = self.actions.iter().copied().max().unwrap_or(0);
                    if laws.shape() != [count, n, most] {
                        return wrong(laws.shape());
                    }
                    for (place, law) in laws.as_slice()?.chunks_exact(most).enumerate() {
                        take(place, Decision::Law(&law[..self.actions[place % n]]));
                    }
                }
            }
            Ok(())
        });
    }
}

/// An action, or what to draw it from.
enum Decision<'a> {
    Action(u8),
    Law(&'a [f64]),
}

impl Policy for FunctionPolicy {
    fn action_counts(&self) -> &[usize] {
        &self.actions
    }

    fn groups(&self) -> Ragged<u32> {
        self.groups.clone()
    }

    fn theta(&self) -> &Ragged<f64> {
        &self.theta
    }

    fn theta_mut(&mut self) -> &mut Ragged<f64> {
        &mut self.theta
    }

    fn acting(&self) -> Acting<'_> {
        Acting::Together(self)
    }

    fn law(&self, agent: usize, trajectory: &Trajectory, k: usize, out: &mut [f64]) {
        out.fill(0.0);
        self.decide(&[trajectory], k, |place, decision| match decision {
            Decision::Action(action) if place == agent => out[usize::from(action)] = 1.0,
            Decision::Law(law) if place == agent => out.copy_from_slice(law),
            _ => {}
        });
    }

    fn rows_read(&self, agent: usize) -> Option<usize> {
        match &self.sight {
            Sight::Agents { encoders, are_views: true, .. } => encoders[agent].numbers(),
            _ => None,
        }
    }

    fn gradient(&self, _: GradientInput<'_>, _: &mut GradientScratch, out: &mut [f64]) {
        out.fill(0.0);
    }

    fn kind(&self) -> &'static str {
        "function"
    }

    fn tensors(&self, _agent: usize) -> Vec<(String, Vec<usize>)> {
        Vec::new()
    }
}

impl ActTogether for FunctionPolicy {
    fn act(&self, trajectories: &[&Trajectory], k: usize, draws: &[u32], actions: &mut [u8]) {
        let mut thresholds = [0; LARGEST_LOCAL_SPACE];
        self.decide(trajectories, k, |place, decision| {
            actions[place] = match decision {
                Decision::Action(action) => action,
                Decision::Law(law) => {
                    let thresholds = &mut thresholds[..law.len() - 1];
                    write_thresholds(law, thresholds);
                    outcome(thresholds, draws[place])
                }
            };
        });
    }
}
