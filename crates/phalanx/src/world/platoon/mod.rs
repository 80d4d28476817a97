//! A platoon of vehicles behind a leader (cooperative adaptive cruise control), as Chu, Chinchali and Katti
//! (ICLR 2020) published it: the best-known networked benchmark in which agents can crash.

mod cells;
pub mod motion;
mod rules;
mod start;
mod view;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::line::offset;
use super::{
    Channel, Episode, Event, Evolution, Joint, MakeSized, Script, SizedWorld, Surroundings, Trajectory, View,
    World, WorldSettings,
};
use crate::base::key::WORLD_N;
use crate::base::stream::{Place, Stream};
use crate::graph::Graph;
use crate::{Error, Ragged, Result};
use motion::{CRASHED, Convoy, DT, GAINS, Vehicle};
use start::Leader;
pub use start::{NamedStart, Scenario, Start};

/// The keys of `[world]` beside `kind = "platoon"`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlatoonSpec {
    /// Number of vehicles behind the leader, from the front.
    pub n: usize,
    /// What they have to do.
    pub scenario: Scenario,
    /// Where episodes start.
    pub start: Start,
}

impl Default for PlatoonSpec {
    fn default() -> Self {
        PlatoonSpec { n: 8, scenario: Scenario::Slowdown, start: Start::Named(NamedStart::Law) }
    }
}

impl WorldSettings for PlatoonSpec {
    fn build(&self, around: &Surroundings<'_>) -> Result<Arc<dyn World>> {
        let mut platoon = Platoon::new(self)?;
        around.relink(&mut platoon.graph)?;
        Ok(Arc::new(platoon))
    }

    fn agent_name(&self) -> &'static str {
        "vehicle"
    }

    fn sized() -> Option<MakeSized> {
        Some(|agents| {
            let default = PlatoonSpec::default();
            let world = Platoon::new(&PlatoonSpec { n: agents.unwrap_or(default.n), ..default })?;
            Ok(SizedWorld { world: Arc::new(world), kappa: 0, shape: "behind a leader".into() })
        })
    }
}

/// Vehicles that a platoon can have.
const MOST_VEHICLES: usize = 100_000;

/// Vehicles 0 – 1 – … – n−1 from the front, in one lane behind a leader that is no agent.
///
/// A vehicle's state is one of 226 cells of headway and closing speed; its actions are the four pairs of
/// gains (0, 0), (½, 0), (0, ½), (½, ½). After a collision nobody moves any more, and the episode goes on:
/// all rewards are negative, so that an end would be a prize.
///
/// Channels, all recorded while simulating: `reward`, the published one; `training`, the same with the
/// penalty for closeness that learners of the publication got; `jerk`, the squared change of acceleration per
/// second from the third step on (the first can be a brake that no vehicle has: starts may be above the top
/// speed); `near`, 1 where the headway is below 10 metres; `spacing`, the squared distance to the right
/// headway; `hit` and `collision`, 1 in the step in which a vehicle hits the one ahead, or any vehicle does:
/// these two are events as well.
///
/// What is shared is the leader's speed, and every vehicle's headway, speed and acceleration.
#[derive(Debug, Clone)]
pub struct Platoon {
    graph: Graph,
    spec: PlatoonSpec,
    channels: [Channel; 7],
}

impl Platoon {
    /// A platoon of `spec.n` ≥ 1 vehicles.
    pub fn new(spec: &PlatoonSpec) -> Result<Self> {
        let n = spec.n;
        if !(1..=MOST_VEHICLES).contains(&n) {
            return Err(Error::config(WORLD_N, format!("{n} vehicles; allowed are 1 to {MOST_VEHICLES}")));
        }
        if let Start::At(xi) = spec.start
            && !(0.0..=1.0).contains(&xi)
        {
            return Err(Error::config("world.start", format!("{xi}; allowed are 0 to 1")));
        }
        Ok(Platoon {
            graph: Graph::line(n)?,
            spec: *spec,
            channels: [
                Channel::sampled("reward", [LEAST_REWARD, 0.0]),
                Channel::sampled("training", [LEAST_REWARD, 0.0]),
                Channel::sampled("jerk", [0.0, MOST_JERK]),
                Channel::sampled("near", [0.0, 1.0]),
                Channel::sampled("spacing", [0.0, -LEAST_REWARD]),
                Channel::sampled("hit", [0.0, 1.0]),
                Channel::sampled("collision", [0.0, 1.0]),
            ],
        })
    }
}

/// No vehicle earns less: one that stands still while the leader drives off at 37.5 m/s for a minute is 2,300
/// metres behind.
const LEAST_REWARD: f64 = -5.4e6;
/// From one end of the acceleration to the other in a step.
const MOST_JERK: f64 = 2500.0;
/// Steps before accelerations are all a vehicle's own.
const FIRST_JERK: usize = 2;
/// Below this, a vehicle is near the one ahead.
const NEAR: f64 = 10.0;

/// Place of the channel of jerks, and of those of the events.
const JERK: usize = 2;
const HIT: usize = 5;
const COLLISION: usize = 6;
/// Steps after which the published environment looked whether an episode goes on.
const PUBLISHED_BATCH: usize = 60;

/// Numbers per vehicle among what is shared, behind the leader's speed.
const PER_VEHICLE: usize = 3;

/// A vehicle and the speed of the one ahead of it, from what is shared.
#[inline]
fn shared_vehicle(shared: &[f32], vehicle: usize) -> (Vehicle, f64) {
    let at = 1 + PER_VEHICLE * vehicle;
    let ahead = if vehicle == 0 { shared[0] } else { shared[at + 1 - PER_VEHICLE] };
    let [headway, speed, acceleration] = [shared[at], shared[at + 1], shared[at + 2]].map(f64::from);
    (Vehicle { headway, speed, acceleration }, f64::from(ahead))
}

impl World for Platoon {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn states(&self, _agent: usize) -> usize {
        cells::CELLS
    }

    fn actions(&self, _agent: usize) -> usize {
        GAINS.len()
    }

    fn evolution(&self) -> Evolution<'_> {
        Evolution::Joint(self)
    }

    fn scripted_names(&self) -> &'static [&'static str] {
        &["constant0", "constant1", "constant2", "constant3", "look-ahead", "linear"]
    }

    fn scripted(&self, name: &str, _horizon: usize) -> Option<Script> {
        let rows = |law: [f64; GAINS.len()]| {
            Ragged::from_rows((0..self.graph.agents()).map(|_| law.repeat(cells::CELLS)))
        };
        match name {
            "look-ahead" => Some(Script::Rule(Box::new(rules::LookAhead))),
            "linear" => Some(Script::Rule(Box::new(rules::LinearRule::new(self.spec.scenario)))),
            _ => {
                let action: usize = name.strip_prefix("constant")?.parse().ok()?;
                let law = std::array::from_fn(|a| f64::from(a == action));
                (action < GAINS.len()).then(|| Script::Laws(rows(law)))
            }
        }
    }

    fn view(&self, _agent: usize, group: &[u32]) -> Option<Box<dyn View>> {
        Some(Box::new(view::Rows::new(group, self.spec.scenario.shows_ahead())))
    }

    /// How many vehicles ahead or behind, as indicators.
    fn place(&self, agent: usize, member: usize, kappa: usize) -> Option<Vec<f32>> {
        Some(offset(agent, member, kappa.min(self.graph.agents())))
    }

    fn channels(&self) -> &[Channel] {
        &self.channels
    }

    fn channel_start(&self, place: usize) -> usize {
        if place == JERK { FIRST_JERK } else { 0 }
    }

    fn events(&self) -> &[Event] {
        const EVENTS: [Event; 2] = [
            Event { name: "hit", channel: HIT, is_shared: false },
            Event { name: "collision", channel: COLLISION, is_shared: true },
        ];
        &EVENTS
    }

    /// The published environment ended an episode after a collision as soon as the number of steps was a
    /// multiple of 60.
    fn published_steps(&self, trajectory: &Trajectory, horizon: usize) -> usize {
        let steps = trajectory.steps().min(horizon);
        let collisions = trajectory.rewards(COLLISION, 0).iter().take(steps);
        let collided = collisions.map(|&x| x != 0.0).position(|is_collision| is_collision);
        collided.map_or(steps, |k| (k + 1).next_multiple_of(PUBLISHED_BATCH).min(steps))
    }
}

impl Joint for Platoon {
    fn shared(&self) -> usize {
        1 + PER_VEHICLE * self.graph.agents()
    }

    fn begin(&self, stream: &Stream, place: Place) -> Box<dyn Episode> {
        let PlatoonSpec { n, scenario, start } = self.spec;
        let (scenario, xi) = scenario.of_episode(start.xi(stream, place));
        Box::new(Drive { scenario, xi, steps: 0, leader: Leader::default(), convoy: scenario.begin(n, xi) })
    }

    fn ends_early(&self) -> bool {
        false
    }
}

/// An episode.
struct Drive {
    scenario: Scenario,
    xi: f64,
    steps: usize,
    leader: Leader,
    convoy: Convoy,
}

impl Episode for Drive {
    fn observe(&self, states: &mut [u8], shared: &mut [f32]) {
        let Convoy { vehicles, lead, is_crashed } = &self.convoy;
        let (first, rows) = shared.split_at_mut(1);
        first[0] = *lead as f32;
        let mut ahead = *lead;
        let (rows, _) = rows.as_chunks_mut::<PER_VEHICLE>();
        for ((vehicle, state), row) in vehicles.iter().zip(states).zip(rows) {
            // What is not seen is not in the cell either: there it is the own speed that counts.
            let seen = if self.scenario.shows_ahead() { ahead } else { motion::TARGET_SPEED };
            *state = cells::cell(vehicle, seen, *is_crashed);
            *row = [vehicle.headway, vehicle.speed, vehicle.acceleration].map(|number| number as f32);
            ahead = vehicle.speed;
        }
    }

    fn step(&mut self, actions: &[u8], draws: &[u32], rewards: &mut [f32]) -> bool {
        let n = actions.len();
        let (reward, rest) = rewards.split_at_mut(n);
        let (training, rest) = rest.split_at_mut(n);
        let (jerk, rest) = rest.split_at_mut(n);
        let (near, rest) = rest.split_at_mut(n);
        let (spacing, rest) = rest.split_at_mut(n);
        let (hit, collision) = rest.split_at_mut(n);
        // What was, until it is known what is.
        for (jerk, vehicle) in jerk.iter_mut().zip(&self.convoy.vehicles) {
            *jerk = vehicle.acceleration as f32;
        }
        let was_crashed = self.convoy.is_crashed;
        self.steps += 1;
        let lead = match self.scenario {
            Scenario::Braking => self.leader.next(self.convoy.lead, draws[0]),
            scenario => scenario.lead(self.xi, self.steps),
        };
        self.convoy.step(actions, lead);
        let is_crashed = self.convoy.is_crashed;
        let is_collision = is_crashed && !was_crashed;
        collision.fill(f32::from(u8::from(is_collision)));
        for (i, vehicle) in self.convoy.vehicles.iter().enumerate() {
            let [driven, close] = if is_crashed { [CRASHED, 0.0] } else { vehicle.reward() };
            (reward[i], training[i]) = (driven as f32, (driven + close) as f32);
            let change = (vehicle.acceleration as f32 - jerk[i]) / DT as f32;
            jerk[i] = if was_crashed || self.steps <= FIRST_JERK { 0.0 } else { change * change };
            near[i] = f32::from(u8::from(vehicle.headway < NEAR));
            let lack = (vehicle.headway - motion::TARGET_HEADWAY) as f32;
            spacing[i] = lack * lack;
            hit[i] = f32::from(u8::from(is_collision && vehicle.headway < motion::LEAST_HEADWAY));
        }
        false
    }
}
