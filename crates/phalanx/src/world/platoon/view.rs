//! What a vehicle sees of itself and of its neighbours.

use super::motion::{DT, MOST_ACCELERATION, TARGET_HEADWAY, TARGET_SPEED, TOP_SPEED, Vehicle, optimal_speed};
use super::shared_vehicle;
use crate::base::elementary::tanh_f32;
use crate::world::View;

/// Numbers per vehicle: the five of the published environment, and two that are fine near the target.
const NUMBERS: usize = 7;
/// Differences of speed are divided by this and cut at [`MOST`].
const SPEEDS: f32 = 5.0;
const MOST: f32 = 2.0;
/// Widths of the two fine numbers: headway in metres, speed in metres per second.
const FINE_HEADWAY: f32 = 3.0;
const FINE_SPEED: f32 = 0.7;

/// A row per vehicle of the neighbourhood.
#[derive(Debug)]
pub struct Rows {
    group: Vec<u32>,
    /// Whether a vehicle sees the speed of the one ahead.
    shows_ahead: bool,
}

impl Rows {
    pub fn new(group: &[u32], shows_ahead: bool) -> Self {
        Rows { group: group.to_vec(), shows_ahead }
    }
}

impl View for Rows {
    fn shape(&self) -> [usize; 2] {
        [self.group.len(), NUMBERS]
    }

    fn is_by_member(&self) -> bool {
        true
    }

    fn write(&self, _states: &[u8], shared: &[f32], out: &mut [f32]) {
        for (row, &member) in out.chunks_exact_mut(NUMBERS).zip(&self.group) {
            let (vehicle, ahead) = shared_vehicle(shared, member as usize);
            // Without sight of it, as if it had the own speed.
            let ahead = if self.shows_ahead { ahead } else { vehicle.speed };
            row.copy_from_slice(&numbers(&vehicle, ahead));
        }
    }
}

/// (v − 15)/15; (v₋ − v)/5 and (V(h) − v)/5, each within ±2; the headway that is expected after a step, as a
/// share of the target; acceleration; and the two fine ones.
fn numbers(vehicle: &Vehicle, ahead: f64) -> [f32; NUMBERS] {
    let closing = (ahead - vehicle.speed) as f32;
    let wanted = (optimal_speed(vehicle.headway.min(2.0 * TOP_SPEED)) - vehicle.speed) as f32;
    let lack = (vehicle.headway - TARGET_HEADWAY) as f32;
    [
        ((vehicle.speed - TARGET_SPEED) / TARGET_SPEED) as f32,
        (closing / SPEEDS).clamp(-MOST, MOST),
        (wanted / SPEEDS).clamp(-MOST, MOST),
        (lack + DT as f32 * closing) / TARGET_HEADWAY as f32,
        (vehicle.acceleration / MOST_ACCELERATION) as f32,
        tanh_f32(lack / FINE_HEADWAY),
        tanh_f32(closing / FINE_SPEED),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_by_hand() {
        let vehicle = Vehicle { headway: 23.0, speed: 18.0, acceleration: -1.25 };
        let found = numbers(&vehicle, 17.3);
        let wanted = [0.2, -0.14, 0.32705, 0.1465, -0.5, 0.76159, -0.76159];
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-4, "{found} {wanted}");
        }
    }
}
