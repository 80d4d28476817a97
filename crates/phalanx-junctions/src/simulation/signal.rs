//! Signals: phases set from outside, or the program of the file.

use super::Simulation;
use crate::error::{Error, Result};
use crate::network::Network;

/// The phases of a program must take this many seconds together, lest one step run through them for ever.
const SHORTEST_PROGRAM: f64 = 0.1;

/// Drivable numbers of the links that are green, per junction and phase.
pub(super) fn green_links(network: &Network) -> Vec<Vec<Vec<u32>>> {
    let junctions = network.junctions().iter();
    junctions
        .map(|junction| {
            let links = |&movement: &usize| junction.movements[movement].links.clone();
            let phases = junction.phases.iter();
            phases.map(|phase| phase.green.iter().flat_map(links).map(|link| link as u32).collect()).collect()
        })
        .collect()
}

pub(super) fn check_program(network: &Network) -> Result<()> {
    for (number, junction) in network.junctions().iter().enumerate() {
        let time: f64 = junction.phases.iter().map(|phase| phase.time).sum();
        if time < SHORTEST_PROGRAM {
            let id = network.junction_id(number);
            let what = format!(
                "phases of junction {id:?} take {time} s together, at least {SHORTEST_PROGRAM} are needed"
            );
            return Err(Error::setting("own_program", what));
        }
    }
    Ok(())
}

impl Simulation {
    /// Sets the phase of a junction from the next step on.
    ///
    /// # Errors
    /// The junction or the phase does not exist.
    pub fn set_phase(&mut self, junction: usize, phase: usize) -> Result<()> {
        self.fixed.network.check_phase(junction, phase)?;
        if self.state.phases[junction] != phase as u32 {
            self.light(junction, phase);
        }
        Ok(())
    }

    fn light(&mut self, junction: usize, phase: usize) {
        let phases = &self.fixed.green_links[junction];
        for &link in &phases[self.state.phases[junction] as usize] {
            self.state.green[link as usize] = false;
        }
        for &link in &phases[phase] {
            self.state.green[link as usize] = true;
        }
        self.state.phases[junction] = phase as u32;
    }

    /// Lights the present phases of all junctions.
    pub(super) fn light_all(&mut self) {
        self.state.green.fill(false);
        for junction in 0..self.state.phases.len() {
            self.light(junction, self.state.phases[junction] as usize);
        }
    }

    pub(super) fn pass_signal_time(&mut self) {
        for junction in 0..self.state.phases.len() {
            let left = self.state.left[junction] - self.fixed.settings.interval;
            self.state.left[junction] = left;
            if left <= 0.0 {
                self.next_phase(junction);
            }
        }
    }

    fn next_phase(&mut self, junction: usize) {
        let fixed = self.fixed.clone();
        let phases = &fixed.network.junctions()[junction].phases;
        let mut phase = self.state.phases[junction] as usize;
        while self.state.left[junction] <= 0.0 {
            phase = (phase + 1) % phases.len();
            self.state.left[junction] += phases[phase].time;
        }
        self.light(junction, phase);
    }
}
