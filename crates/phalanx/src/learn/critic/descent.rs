//! Gradient steps of critics' networks over their samples.

use crate::base::stream::Sequence;
use crate::learn::optimizer::OptimizerKind;
use crate::neural::{Adam, clip, sgd};

/// How a network follows a gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Descent {
    /// Which step.
    pub optimizer: OptimizerKind,
    /// Its size.
    pub learning_rate: f64,
    /// Largest norm of a minibatch's gradient.
    pub clip: f64,
}

impl Descent {
    /// Step number `number`, from 1. `first` and `second` are Adam's moments; other optimisers do not look at them.
    pub fn step(
        &self,
        number: u64,
        weights: &mut [f32],
        gradient: &mut [f32],
        first: &mut [f32],
        second: &mut [f32],
    ) {
        if self.clip < f64::INFINITY {
            clip(self.clip as f32, gradient);
        }
        match self.optimizer {
            OptimizerKind::Sgd => sgd(self.learning_rate as f32, weights, gradient),
            OptimizerKind::Adam => {
                Adam::new(self.learning_rate).descend(number, weights, gradient, first, second);
            }
        }
    }
}

/// The numbers 0, …, `count` − 1 in a fresh order for every pass.
pub fn shuffle(passes: usize, count: usize, sequence: &mut Sequence, order: &mut Vec<u32>) {
    order.clear();
    for _ in 0..passes {
        let first = order.len();
        order.extend(0..count as u32);
        // Fisher and Yates.
        for k in (1..count).rev() {
            let other = (u64::from(sequence.next_u32()) * (k as u64 + 1)) >> 32;
            order.swap(first + k, first + other as usize);
        }
    }
}
