//! The finite state of a vehicle: headway × closing speed, fine where it matters.

use super::motion::{LEAST_HEADWAY, Vehicle};

/// Cuts between bins of the headway, in metres.
const HEADWAYS: [f32; 15] =
    [5.0, 10.0, 15.0, 17.0, 18.5, 19.5, 20.0, 20.5, 21.5, 23.0, 25.0, 28.0, 32.0, 36.0, 42.0];
/// Cuts between bins of the speed of the vehicle ahead minus the own one, in metres per second.
const CLOSING: [f32; 13] = [-4.0, -2.5, -1.5, -1.0, -0.6, -0.3, 0.0, 0.3, 0.6, 1.0, 1.5, 2.5, 4.0];

/// Cells of vehicles that drive.
const DRIVING: usize = (HEADWAYS.len() + 1) * (CLOSING.len() + 1);
/// A vehicle that hit the one ahead, for the rest of the episode.
pub const HIT: usize = DRIVING;
/// One that did not, after a collision of others.
pub const STOPPED: usize = DRIVING + 1;
/// All of them.
pub const CELLS: usize = DRIVING + 2;

/// The cell of a vehicle behind one of speed `ahead`.
#[inline]
pub fn cell(vehicle: &Vehicle, ahead: f64, is_crashed: bool) -> u8 {
    if is_crashed {
        return if vehicle.headway < LEAST_HEADWAY { HIT as u8 } else { STOPPED as u8 };
    }
    let bin = |cuts: &[f32], number: f64| {
        // No branch: most numbers are near the middle.
        cuts.iter().map(|&cut| u8::from(number as f32 >= cut)).sum::<u8>()
    };
    bin(&HEADWAYS, vehicle.headway) * (CLOSING.len() as u8 + 1) + bin(&CLOSING, ahead - vehicle.speed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_by_hand() {
        let at = |headway, speed| Vehicle { headway, speed, acceleration: 0.0 };
        assert_eq!(CELLS, 226);
        assert_eq!(cell(&at(2.0, 20.0), 15.0, false), 0);
        assert_eq!(cell(&at(20.0, 15.0), 15.0, false), 7 * 14 + 7);
        assert_eq!(cell(&at(50.0, 15.0), 20.0, false), 223);
        assert_eq!(cell(&at(0.5, 15.0), 20.0, true), 224);
        assert_eq!(cell(&at(20.0, 15.0), 20.0, true), 225);
    }
}
