//! Steps over the samples of a batch.

use crate::base::stream::Sequence;
use crate::learn::critic::shuffle;
use crate::neural::{Adam, clip};
use crate::policy::observation::{Inputs, ObservationEncoder};
use crate::world::Trajectory;

/// Added to the root of Adam's second moment, as in the published programs.
const EPSILON: f64 = 1e-5;

/// How a network follows its gradient.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    /// Adam's step.
    pub rate: f64,
    /// Largest norm of a gradient.
    pub largest: f64,
    /// Gradient steps before.
    pub before: u64,
    /// Passes over the batch.
    pub epochs: usize,
    /// Gradient steps of a pass.
    pub minibatches: usize,
}

/// A network's parameters with Adam's moments.
pub struct Parameters<'a> {
    pub weights: &'a mut [f32],
    pub first: &'a mut [f32],
    pub second: &'a mut [f32],
}

impl Steps {
    /// One step down a gradient; `number` counts those of this iteration from 1. Returns the gradient's norm.
    pub fn descend(&self, number: u64, parameters: &mut Parameters<'_>, gradient: &mut [f32]) -> f32 {
        let norm = clip(self.largest as f32, gradient);
        let adam = Adam { epsilon: EPSILON, ..Adam::new(self.rate) };
        let Parameters { weights, first, second } = parameters;
        adam.descend(self.before + number, weights, gradient, first, second);
        norm
    }

    /// Samples of a gradient step.
    pub fn size(&self, samples: usize) -> usize {
        samples.div_ceil(self.minibatches).max(1)
    }

    /// Gradient steps of an iteration: fewer than asked for where there are fewer samples.
    pub fn count(&self, samples: usize) -> u64 {
        (self.epochs * samples.div_ceil(self.size(samples))) as u64
    }

    /// The samples of every gradient step, one pass after the other. A batch that is used whole keeps its order.
    pub fn order(&self, samples: usize, sequence: &mut Sequence, order: &mut Vec<u32>) {
        if self.minibatches > 1 {
            shuffle(self.epochs, samples, sequence, order);
        }
    }

    /// Calls `each` with the number of every gradient step (from 1) and its samples; `None` stands for all.
    pub fn each(&self, samples: usize, order: &[u32], mut each: impl FnMut(u64, Option<&[u32]>)) {
        if self.minibatches == 1 {
            (1..=self.epochs as u64).for_each(|number| each(number, None));
            return;
        }
        let passes = order.chunks_exact(samples).flat_map(|pass| pass.chunks(self.size(samples)));
        passes.zip(1..).for_each(|(members, number)| each(number, Some(members)));
    }
}

/// What an agent sees at the first steps of every trajectory.
pub fn look(sight: &ObservationEncoder, batch: &[Trajectory], steps: &[usize], inputs: &mut Inputs) {
    inputs.clear();
    for (trajectory, &steps) in batch.iter().zip(steps) {
        sight.push_steps(trajectory, steps, inputs);
    }
}

/// Some of the samples, copied into `part`; all of them as they are.
pub fn select<'a>(all: &'a Inputs, members: Option<&[u32]>, part: &'a mut Inputs) -> &'a Inputs {
    let Some(members) = members else { return all };
    part.clear();
    members.iter().for_each(|&sample| part.copy(all, sample as usize));
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::stream::{Place, Purpose, Stream};

    #[test]
    fn every_pass_sees_every_sample_once() {
        let steps = Steps { rate: 1.0, largest: 1.0, before: 0, epochs: 2, minibatches: 3 };
        let place = Place { purpose: Purpose::UpdateOrder, iteration: 0, trajectory: 0 };
        let mut order = Vec::new();
        steps.order(7, &mut Stream::new(1).sequence(place, 0), &mut order);
        let mut seen = Vec::new();
        steps.each(7, &order, |number, members| seen.push((number, members.unwrap_or_default().to_vec())));
        assert_eq!(
            seen.iter().map(|(number, part)| (*number, part.len())).collect::<Vec<_>>(),
            [(1, 3), (2, 3), (3, 1), (4, 3), (5, 3), (6, 1)]
        );
        assert_eq!(steps.count(7), 6);
        for pass in seen.chunks(3) {
            let mut all: Vec<u32> = pass.iter().flat_map(|(_, part)| part.clone()).collect();
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3, 4, 5, 6]);
        }
        // Five samples in four parts are three of two, two and one.
        assert_eq!(Steps { minibatches: 4, ..steps }.count(5), 6);
    }
}
