//! The equations of motion, double for double those of the published environment: Chu, Chinchali, Katti,
//! "Multi-agent reinforcement learning for networked system control" (ICLR 2020), as the authors' code has
//! them.

use std::f64::consts::PI;

use crate::base::elementary::cos;

/// Seconds of a step.
pub const DT: f64 = 0.1;
/// Headway that every vehicle should have, in metres.
pub const TARGET_HEADWAY: f64 = 20.0;
/// Speed that every vehicle should have, in metres per second.
pub const TARGET_SPEED: f64 = 15.0;
/// Vehicles cannot be faster.
pub const TOP_SPEED: f64 = 30.0;
/// Nor accelerate or brake more, in metres per second squared.
pub const MOST_ACCELERATION: f64 = 2.5;
/// A headway below this is a collision.
pub const LEAST_HEADWAY: f64 = 1.0;
/// What every vehicle gets in every step from a collision on.
pub const CRASHED: f64 = -1000.0;
/// Gains (α, β) of the actions: on the optimal speed, and on the speed of the vehicle ahead.
pub const GAINS: [[f64; 2]; 4] = [[0.0, 0.0], [0.5, 0.0], [0.0, 0.5], [0.5, 0.5]];

/// Headways between which the optimal speed rises from 0 to the top.
const STANDS: f64 = 5.0;
const FREE: f64 = 35.0;
/// Weight of the squared acceleration in the reward.
const OF_ACCELERATION: f64 = 0.1;
/// Below this headway learners get an extra penalty in training, of this weight on the squared lack.
const CLOSE: f64 = 10.0;
const OF_CLOSENESS: f64 = 5.0;

/// V(h), the speed that fits a headway.
pub fn optimal_speed(headway: f64) -> f64 {
    if headway <= STANDS {
        0.0
    } else if headway >= FREE {
        TOP_SPEED
    } else {
        TOP_SPEED / 2.0 * (1.0 - cos(PI * (headway - STANDS) / (FREE - STANDS)))
    }
}

/// One vehicle.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Vehicle {
    /// Gap to the vehicle ahead, in metres.
    pub headway: f64,
    /// In metres per second.
    pub speed: f64,
    /// Of the last step, in metres per second squared; 0 at the start.
    pub acceleration: f64,
}

impl Vehicle {
    /// Its speed after a step with an action, behind a vehicle of speed `ahead`.
    #[inline]
    pub fn next_speed(&self, action: u8, ahead: f64) -> f64 {
        let [alpha, beta] = GAINS[usize::from(action) % GAINS.len()];
        // Where α is 0 the optimal speed does not matter, and its cosine takes most of the time.
        let towards = if alpha == 0.0 { 0.0 } else { alpha * (optimal_speed(self.headway) - self.speed) };
        let wanted = towards + beta * (ahead - self.speed);
        (self.speed + wanted.clamp(-MOST_ACCELERATION, MOST_ACCELERATION) * DT).clamp(0.0, TOP_SPEED)
    }

    /// The same vehicle one step on, behind a vehicle whose speed was and is `ahead`.
    #[inline]
    pub fn moved(&self, action: u8, ahead: [f64; 2]) -> Self {
        let speed = self.next_speed(action, ahead[0]);
        // The trapezoid rule, grouped as in the published code.
        let headway = self.headway + 0.5 * DT * (((ahead[0] + ahead[1]) - self.speed) - speed);
        Vehicle { headway, speed, acceleration: (speed - self.speed) / DT }
    }

    /// What it is paid for a step that ended so, and the penalty for closeness that training adds.
    #[inline]
    pub fn reward(&self) -> [f64; 2] {
        let square = |x: f64| x * x;
        let driven = -square(self.headway - TARGET_HEADWAY)
            - square(self.speed - TARGET_SPEED)
            - OF_ACCELERATION * square(self.acceleration);
        [driven, -OF_CLOSENESS * square((self.headway - CLOSE).min(0.0))]
    }
}

/// Vehicles behind a leader, from the front.
#[derive(Debug, Clone, PartialEq)]
pub struct Convoy {
    /// All but the leader.
    pub vehicles: Vec<Vehicle>,
    /// Speed of the leader.
    pub lead: f64,
    /// Whether there was a collision: nobody moves any more.
    pub is_crashed: bool,
}

impl Convoy {
    /// One step, after which the leader has the speed `lead`. All vehicles move at once.
    pub fn step(&mut self, actions: &[u8], lead: f64) {
        if !self.is_crashed {
            let mut ahead = [self.lead, lead];
            for (vehicle, &action) in self.vehicles.iter_mut().zip(actions) {
                let moved = vehicle.moved(action, ahead);
                ahead = [vehicle.speed, moved.speed];
                self.is_crashed |= moved.headway < LEAST_HEADWAY;
                *vehicle = moved;
            }
        }
        self.lead = lead;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimal_speeds() {
        for (headway, speed) in [(5.0, 0.0), (10.0, 2.0096), (20.0, 15.0), (27.5, 25.6066), (35.0, 30.0)] {
            assert!((optimal_speed(headway) - speed).abs() < 1e-4, "{headway}");
        }
    }

    #[test]
    fn all_move_at_once_and_a_collision_stops_everybody() {
        let at = |headway, speed| Vehicle { headway, speed, acceleration: 0.0 };
        let mut convoy =
            Convoy { vehicles: vec![at(20.0, 15.0), at(1.02, 20.0)], lead: 15.0, is_crashed: false };
        convoy.step(&[2, 0], 15.0);
        assert!(convoy.is_crashed && convoy.vehicles[1].headway < 1.0);
        let frozen = convoy.vehicles.clone();
        convoy.step(&[1, 1], 14.0);
        assert_eq!((&convoy.vehicles, convoy.lead), (&frozen, 14.0));
    }

    #[test]
    fn no_authority_at_rest() {
        let rests = Vehicle { headway: TARGET_HEADWAY, speed: TARGET_SPEED, acceleration: 0.0 };
        for action in 0..4 {
            assert!((rests.next_speed(action, TARGET_SPEED) - TARGET_SPEED).abs() < 1e-14);
        }
    }
}
