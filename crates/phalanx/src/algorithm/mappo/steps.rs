//! Gradient steps of one iteration.

use crate::base::stream::Sequence;
use crate::neural::{Descent, Minibatches, NetworkMut, Training, shuffle};

/// How a neural network follows its gradient.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    /// Steps of Adam.
    pub descent: Descent,
    /// Gradient steps before.
    pub before: u64,
    /// Passes over the batch.
    pub epochs: usize,
    /// Gradient steps per pass.
    pub minibatches: usize,
}

impl Steps {
    /// One step down the gradient in the buffers; `number` counts those of this iteration from 1.
    pub fn descend(&self, number: u64, network: &mut NetworkMut<'_>, buffers: &mut Training) {
        network.descend(self.before + number, &self.descent, buffers);
    }

    /// The parts of so many samples: fewer than asked for where there are fewer samples.
    pub fn minibatches(&self, samples: usize) -> Minibatches {
        Minibatches { passes: self.epochs, size: samples.div_ceil(self.minibatches).max(1) }
    }

    /// The samples of every gradient step, one pass after the other. A batch that is used whole keeps its
    /// order.
    pub fn order(&self, samples: usize, sequence: &mut Sequence, order: &mut Vec<u32>) {
        if self.minibatches > 1 {
            shuffle(self.epochs, samples, sequence, order);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neural::OptimizerKind;

    #[test]
    fn few_samples_make_few_steps() {
        let descent = Descent::new(OptimizerKind::Adam, 1.0, 1.0);
        let steps = Steps { descent, before: 0, epochs: 2, minibatches: 3 };
        assert_eq!(steps.minibatches(7), Minibatches { passes: 2, size: 3 });
        assert_eq!(steps.minibatches(7).steps(7), 6);
        // Five samples in four parts are three of two, two and one.
        assert_eq!(Steps { minibatches: 4, ..steps }.minibatches(5).steps(5), 6);
    }
}
