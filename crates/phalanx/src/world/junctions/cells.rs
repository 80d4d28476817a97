//! The finite state of a junction: its phase, and how bad things are.

use super::counters::{Broken, Counters, ones};
use super::lanes::Lane;
use super::layout::Site;

/// Cells per phase, of both kinds.
pub const CELLS_PER_PHASE: usize = 32;

/// Cuts between levels of the longest red with somebody waiting, in seconds.
const REDS: [u32; 3] = [40, 80, 120];
/// Cuts between levels of the fullest lane.
const FILLS: [f64; 3] = [0.25, 0.5, 0.8];

/// What is bad at a junction.
#[derive(Debug, Clone, Copy)]
pub struct Trouble {
    /// Level of the longest red of a movement that somebody waits for, 0 to 3.
    pub red: usize,
    /// Level of the fullest lane before the junction, 0 to 3.
    pub fill: usize,
    /// Whether a lane behind it cannot be entered.
    pub is_blocked: bool,
}

impl Trouble {
    pub fn new(site: &Site, counters: &Counters, lanes: &[Lane], fullest: f64) -> Self {
        let waited_for = ones(site.controlled)
            .filter(|&movement| site.movements[movement].entry.iter().any(|&lane| lanes[lane].waiting > 0));
        let red = waited_for.map(|movement| counters.red[movement]).max().unwrap_or(0);
        Trouble {
            red: REDS.iter().filter(|&&cut| red >= cut).count(),
            fill: FILLS.iter().filter(|&&cut| fullest >= cut).count(),
            is_blocked: site.exit_lanes.iter().any(|&lane| lanes[lane].is_blocked),
        }
    }

    /// Whether somebody waits for a light that is red for two minutes or more.
    pub fn is_starving(&self) -> bool {
        self.red == REDS.len()
    }

    /// Whether a queue reaches back to the junction before, or fills four fifths of a lane here.
    pub fn spills_back(&self) -> bool {
        self.is_blocked || self.fill == FILLS.len()
    }

    /// Phase × red × fill × blocked.
    pub fn traffic_cell(&self, phase: u8) -> u8 {
        let Trouble { red, fill, is_blocked } = *self;
        phase * CELLS_PER_PHASE as u8 + (red * 8 + fill * 2 + usize::from(is_blocked)) as u8
    }

    /// Phase × red × the three rules.
    pub fn rules_cell(&self, phase: u8, broken: &Broken) -> u8 {
        let Broken { green_time, green_skip, phase_skip } = *broken;
        let flags = [green_time, green_skip, phase_skip].map(|share| usize::from(share > 0.0));
        phase * CELLS_PER_PHASE as u8 + (self.red * 8 + flags[0] * 4 + flags[1] * 2 + flags[2]) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_by_hand() {
        let calm = Trouble { red: 0, fill: 0, is_blocked: false };
        let bad = Trouble { red: 3, fill: 3, is_blocked: true };
        let kept = Broken { green_time: 0.0, green_skip: 0.0, phase_skip: 0.0 };
        let broken = Broken { green_time: 1.0, green_skip: 0.125, phase_skip: 0.5 };
        assert_eq!([calm.traffic_cell(0), calm.traffic_cell(7), bad.traffic_cell(0)], [0, 224, 31]);
        assert_eq!(
            [bad.traffic_cell(7), calm.rules_cell(0, &broken), bad.rules_cell(7, &kept)],
            [255, 7, 248]
        );
        assert!(bad.is_starving() && bad.spills_back() && !calm.is_starving() && !calm.spills_back());
    }
}
