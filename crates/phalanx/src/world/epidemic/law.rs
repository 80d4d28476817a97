//! How the disease moves on: the law of an agent's next state, and the same as a table to sample from.

use super::spec::{EpidemicModel, EpidemicSpec};
use crate::base::elementary::powi;
use crate::base::sampler::write_thresholds;

/// Actions: nothing, protect oneself, be treated.
pub const ACTIONS: usize = 3;
/// Can be infected.
pub const SUSCEPTIBLE: u8 = 0;
/// Infects others.
pub const INFECTED: u8 = 1;
/// Immune, in `sirs` only.
pub const RECOVERED: u8 = 2;
/// Lowers the chance of being infected.
pub const PROTECT: u8 = 1;
/// Raises the chance of recovering.
pub const TREAT: u8 = 2;

/// The probabilities of one step.
#[derive(Debug, Clone, Copy)]
pub struct Chances {
    model: EpidemicModel,
    /// Of not being infected by one infected contact, unprotected and protected.
    escape: [f64; 2],
    /// Of not being infected from elsewhere, unprotected and protected.
    no_import: [f64; 2],
    /// Of recovering, untreated and treated.
    recovery: [f64; 2],
    waning: f64,
}

impl Chances {
    /// Those of a checked specification.
    pub fn new(spec: &EpidemicSpec) -> Self {
        let exposed = 1.0 - spec.protection;
        Chances {
            model: spec.model,
            escape: [1.0 - spec.infection, 1.0 - exposed * spec.infection],
            no_import: [1.0 - spec.import, 1.0 - exposed * spec.import],
            recovery: [spec.recovery, spec.treated_recovery],
            waning: spec.waning(),
        }
    }

    /// Number of states.
    pub fn states(&self) -> usize {
        match self.model {
            EpidemicModel::Sis => 2,
            EpidemicModel::Sirs => 3,
        }
    }

    /// The two states that can follow `state`, the lower first, and the probability of the other one.
    fn next(&self, state: u8, action: u8, infected_contacts: usize) -> (u8, u8, f64) {
        match state {
            SUSCEPTIBLE => {
                let protected = usize::from(action == PROTECT);
                let contacts = i32::try_from(infected_contacts).unwrap_or(i32::MAX);
                let escapes = self.no_import[protected] * powi(self.escape[protected], contacts);
                (SUSCEPTIBLE, INFECTED, 1.0 - escapes)
            }
            INFECTED => {
                let recovers = self.recovery[usize::from(action == TREAT)];
                match self.model {
                    EpidemicModel::Sis => (SUSCEPTIBLE, INFECTED, 1.0 - recovers),
                    EpidemicModel::Sirs => (INFECTED, RECOVERED, recovers),
                }
            }
            _ => (SUSCEPTIBLE, RECOVERED, 1.0 - self.waning),
        }
    }

    /// The law of the next state, given the own state and action and how many contacts are infected.
    pub fn write_law(&self, state: u8, action: u8, infected_contacts: usize, law: &mut [f64]) {
        let (low, high, of_high) = self.next(state, action, infected_contacts);
        law.fill(0.0);
        law[usize::from(low)] = 1.0 - of_high;
        law[usize::from(high)] = of_high;
    }
}

/// A law as sampling needs it: `high` iff the draw has passed the threshold.
#[derive(Debug, Clone, Copy)]
pub struct Move {
    threshold: u32,
    low: u8,
    high: u8,
}

impl Move {
    #[inline(always)]
    pub fn sample(self, draw: u32) -> u8 {
        if draw >= self.threshold { self.high } else { self.low }
    }
}

/// The moves by own state, own action and number of infected contacts.
#[derive(Debug, Clone)]
pub struct Moves {
    table: Vec<Move>,
    /// One more than the largest number of contacts.
    width: usize,
}

impl Moves {
    /// Of agents with at most `contacts` contacts.
    pub fn new(chances: &Chances, contacts: usize) -> Self {
        let (states, width) = (chances.states(), contacts + 1);
        let mut table = Vec::with_capacity(states * ACTIONS * width);
        let (mut law, mut thresholds) = ([0.0; 3], [0; 2]);
        for state in 0..states as u8 {
            for action in 0..ACTIONS as u8 {
                for infected in 0..width {
                    let (low, high, _) = chances.next(state, action, infected);
                    chances.write_law(state, action, infected, &mut law[..states]);
                    write_thresholds(&law[..states], &mut thresholds[..states - 1]);
                    table.push(Move { threshold: thresholds[usize::from(low)], low, high });
                }
            }
        }
        Moves { table, width }
    }

    #[inline(always)]
    pub fn get(&self, state: u8, action: u8, infected_contacts: usize) -> Move {
        self.table[(usize::from(state) * ACTIONS + usize::from(action)) * self.width + infected_contacts]
    }
}
