//! Rules that drive without learning, to compare with.

use super::motion::{CRASHED, GAINS, LEAST_HEADWAY, TARGET_HEADWAY, TARGET_SPEED, Vehicle};
use super::shared_vehicle;
use super::start::Scenario;
use crate::world::ScriptedPolicy;

/// Of the four possible accelerations, the one nearest to k_h (h − 20) + k_d (v₋ − v) + k_v (15 − v).
#[derive(Debug)]
pub struct LinearRule {
    gains: [f64; 3],
}

impl LinearRule {
    /// Gains that were found by search, one set for all vehicles.
    pub fn new(scenario: Scenario) -> Self {
        let gains = match scenario {
            Scenario::Catchup => [0.994, 3.298, 0.941],
            Scenario::Slowdown | Scenario::Braking => [1.51, 12.54, 0.306],
            Scenario::Both => [1.278, 6.047, 0.297],
        };
        LinearRule { gains }
    }
}

/// The action with the smallest number; the first of equals.
fn smallest(mut cost: impl FnMut(u8) -> f64) -> u8 {
    let costs: [f64; GAINS.len()] = std::array::from_fn(|action| cost(action as u8));
    (1..GAINS.len()).fold(0, |best, action| if costs[action] < costs[best] { action } else { best }) as u8
}

impl ScriptedPolicy for LinearRule {
    fn act(&self, agent: usize, _state: u8, shared: &[f32]) -> u8 {
        let (vehicle, ahead) = shared_vehicle(shared, agent);
        let [k_h, k_d, k_v] = self.gains;
        let wanted = k_h * (vehicle.headway - TARGET_HEADWAY)
            + k_d * (ahead - vehicle.speed)
            + k_v * (TARGET_SPEED - vehicle.speed);
        smallest(|action| (vehicle.moved(action, [ahead; 2]).acceleration - wanted).abs())
    }
}

/// Steps that are looked ahead: two seconds.
const AHEAD: usize = 20;

/// The action that would earn most over the next two seconds, if the vehicle ahead kept its speed.
#[derive(Debug)]
pub struct LookAhead;

impl ScriptedPolicy for LookAhead {
    fn act(&self, agent: usize, _state: u8, shared: &[f32]) -> u8 {
        let (vehicle, ahead) = shared_vehicle(shared, agent);
        smallest(|action| -earned(vehicle, action, ahead))
    }
}

/// What a vehicle earns in two seconds of one action.
fn earned(mut vehicle: Vehicle, action: u8, ahead: f64) -> f64 {
    let mut sum = 0.0;
    for _ in 0..AHEAD {
        vehicle = vehicle.moved(action, [ahead; 2]);
        sum += if vehicle.headway < LEAST_HEADWAY { CRASHED } else { vehicle.reward()[0] };
    }
    sum
}
