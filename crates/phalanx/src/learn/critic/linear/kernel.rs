//! What a linear critic on a card must know of the one here.

use super::{AllFeatures, LinearCritic, LinearRule};

impl LinearCritic {
    /// How its weights are found.
    pub(crate) fn rule(&self) -> LinearRule {
        self.rule
    }

    /// All agents' features.
    pub(crate) fn features(&self) -> &AllFeatures {
        &self.features
    }

    /// Where the equations of every agent begin, one after the other.
    pub(crate) fn equation_starts(&self) -> &[usize] {
        self.equations.offsets()
    }

    /// Whether values of agent j at all alternatives are worked out ahead, along so many steps.
    pub(crate) fn is_ahead(&self, j: usize, steps: usize) -> bool {
        self.length_ahead(j, steps) > 0
    }

    /// Weight of all averaged iterations, with the coming one.
    pub(crate) fn advance_average(&mut self) -> f64 {
        if let LinearRule::Lstd { average, .. } = self.rule {
            self.averaged = average * self.averaged + (1.0 - average);
        }
        self.averaged
    }
}
