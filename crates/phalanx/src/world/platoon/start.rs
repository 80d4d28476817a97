//! How an episode starts, and what the leader does.

use serde::{Deserialize, Serialize};

use super::motion::{Convoy, DT, TARGET_HEADWAY, TARGET_SPEED, Vehicle};
use crate::base::stream::{DRAW_RANGE, Place, Stream};

/// Who has to catch up with whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scenario {
    /// The first vehicle is far behind a leader of constant speed.
    Catchup,
    /// Everybody is too fast, and the leader slows down over half a minute.
    Slowdown,
    /// A variant of our own, where it helps to talk: the leader brakes hard at random moments, and a vehicle
    /// does not see the speed of the one ahead unless that tells it (κ ≥ 1).
    Braking,
    /// Every other episode a catch-up, the others slow-downs: for one policy that can do both.
    Both,
}

/// Where episodes start: one number ξ from 0 to 1 decides, which stands for how far behind, or how fast,
/// vehicles are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "\"law\", \"published\" or a number from 0 to 1 is needed")]
pub enum Start {
    /// By a name.
    Named(NamedStart),
    /// This ξ in every episode.
    At(f64),
}

/// ξ by a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NamedStart {
    /// Drawn anew for every episode, all equally likely.
    Law,
    /// The 50 of the published evaluation, in order, again and again.
    Published,
}

impl Start {
    /// ξ of an episode.
    pub fn xi(self, stream: &Stream, place: Place) -> f64 {
        match self {
            Start::Named(NamedStart::Law) => stream.sequence(place, 0).uniform(),
            Start::Named(NamedStart::Published) => PUBLISHED[place.trajectory as usize % PUBLISHED.len()],
            Start::At(xi) => xi,
        }
    }
}

/// Steps after which a leader that slows down is there.
const SLOWED: usize = 299;

impl Scenario {
    /// What an episode is that starts with ξ, and its own ξ: of [`Scenario::Both`], one of the two.
    pub fn of_episode(self, xi: f64) -> (Scenario, f64) {
        match self {
            Scenario::Both if xi < 0.5 => (Scenario::Catchup, 2.0 * xi),
            Scenario::Both => (Scenario::Slowdown, 2.0 * xi - 1.0),
            one => (one, xi),
        }
    }

    /// n vehicles at the start.
    pub fn begin(self, n: usize, xi: f64) -> Convoy {
        let far = 1.5 + xi;
        let speed = match self {
            Scenario::Catchup | Scenario::Braking | Scenario::Both => TARGET_SPEED,
            Scenario::Slowdown => TARGET_SPEED * far,
        };
        let mut vehicles = vec![Vehicle { headway: TARGET_HEADWAY, speed, acceleration: 0.0 }; n];
        if self == Scenario::Catchup {
            vehicles[0].headway = TARGET_HEADWAY * far;
        }
        Convoy { vehicles, lead: self.lead(xi, 0), is_crashed: false }
    }

    /// Whether a vehicle sees the speed of the one ahead without being told.
    pub fn shows_ahead(self) -> bool {
        self != Scenario::Braking
    }

    /// The leader's speed at a step, where nothing is left to chance.
    pub fn lead(self, xi: f64, step: usize) -> f64 {
        match self {
            Scenario::Slowdown if step < SLOWED => {
                let first = TARGET_SPEED * (1.5 + xi);
                first + step as f64 * ((TARGET_SPEED - first) / SLOWED as f64)
            }
            _ => TARGET_SPEED,
        }
    }
}

/// A leader that brakes at random.
#[derive(Debug, Clone, Copy, Default)]
pub struct Leader {
    is_braking: bool,
}

/// Probability that a leader at its usual speed brakes, in a step: once in twenty seconds.
const BRAKES: f64 = 0.005;
/// How hard it brakes, and how it recovers, in metres per second squared.
const BRAKING: f64 = 2.5;
const RECOVERY: f64 = 1.5;
/// The speed that it brakes to.
const SLOW: f64 = 5.0;

impl Leader {
    /// The speed after `speed`, by one draw (31 bits).
    pub fn next(&mut self, speed: f64, draw: u32) -> f64 {
        let brakes = f64::from(draw) < BRAKES * f64::from(DRAW_RANGE);
        self.is_braking = speed > SLOW && (self.is_braking || (speed >= TARGET_SPEED && brakes));
        if self.is_braking {
            (speed - BRAKING * DT).max(SLOW)
        } else {
            (speed + RECOVERY * DT).min(TARGET_SPEED)
        }
    }
}

/// The first number of NumPy's `RandomState(2000 + 10 k)`, k = 0 to 49: seeds of the published evaluation.
#[rustfmt::skip]
const PUBLISHED: [f64; 50] = [
    0.570517285378466, 0.04245197816040103, 0.9862768288615988, 0.36073029335910045,
    0.9855537618503831, 0.3173140035840657, 0.18021584164377547, 0.3577356878948065,
    0.28211377963482587, 0.9219580712431636, 0.84723279599862, 0.556517229823091,
    0.6510405014123016, 0.3707548662735882, 0.7710542464038358, 0.3964925451898641,
    0.5420347258651211, 0.8483138568351342, 0.30817493853164013, 0.9463918922454899,
    0.7635691780853405, 0.20246048264482308, 0.6092979433291587, 0.9620364642642548,
    0.4120985419037958, 0.6002654615099727, 0.012726041099696661, 0.5163573657447653,
    0.25947915014998213, 0.43800654775552494, 0.03361160001083885, 0.3769605243144116,
    0.06115466365419664, 0.9206599336936785, 0.8435278743017816, 0.2840431006506343,
    0.2084259232030029, 0.4081554784784873, 0.7984606103832597, 0.6494302131859021,
    0.5495037049928564, 0.16249830938967835, 0.8457516307715007, 0.41161676156432103,
    0.7578533099760896, 0.026021120372547668, 0.011770385372356529, 0.020232497783594483,
    0.23222755165776165, 0.3807818130046735,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_brakes_and_recovers() {
        let mut leader = Leader::default();
        assert_eq!(leader.next(15.0, DRAW_RANGE - 1), 15.0);
        let mut speed = leader.next(15.0, 0);
        assert_eq!(speed, 14.75);
        let mut slowest = speed;
        for _ in 0..200 {
            speed = leader.next(speed, DRAW_RANGE - 1);
            slowest = speed.min(slowest);
        }
        assert_eq!((slowest, speed), (5.0, 15.0));
    }
}
