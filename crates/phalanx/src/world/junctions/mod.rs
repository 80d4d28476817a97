//! Signals at the junctions of a road network, whose traffic is CityFlow's, bit for bit: the networked
//! control problem that most papers share, with the rules that its constrained benchmark means.

mod cells;
mod counters;
mod departures;
mod drive;
mod files;
mod lanes;
mod layout;
mod scripts;
mod settings;
mod shared;
mod shield;
mod view;

use std::sync::{Arc, OnceLock};

use phalanx_junctions::{Demand, Network, Settings, Simulation};

use super::{Channel, Episode, Event, Evolution, Joint, Script, View, World};
use crate::base::stream::{Place, Stream};
use crate::graph::Graph;
use crate::{Error, Result};
use counters::Timing;
use departures::Departures;
use drive::{Drive, REWARD_SCALE};
use layout::{Layout, Site};
use shared::Format;
use shield::Shield;

pub use files::{read_any_files, read_files};
pub use settings::{Cells, JunctionsSettings, Rules, Town};

/// What `world.kind` and commands call it.
pub const KIND: &str = "junctions";

/// Channels, all recorded while simulating. Those behind the second are events as well.
const CHANNELS: [&str; 7] =
    ["reward", "waiting", "green_time", "green_skip", "phase_skip", "starvation", "spillback"];

/// Measures of an episode.
const MEASURES: [&str; 5] =
    ["travel_time", "travel_time_tables", "finished", "waiting_outside", "longest_red"];

/// The junctions with signals of a road network, in the order of its file; neighbours are joined by a road.
///
/// An action a turns phase a + 1 on, and a step is a decision: so many seconds of traffic, of which the first
/// show phase 0 if the phase changes. A junction's state is its phase and 32 levels of trouble ([`Cells`]).
/// Episodes never end early.
///
/// Channels: `reward`, that of the constrained benchmark, −0.03333 times the mean over the decision's seconds
/// and the movements of the vehicles per lane before them; `waiting`, vehicles that wait before the junction
/// when the decision is over; `green_time`, `green_skip` and `phase_skip`, the shares of green lights,
/// movements and phases that break each rule then; `starvation`, 1 if somebody waits at a light that is red
/// for 120 s or more; `spillback`, 1 if a lane behind the junction cannot be entered or one before it is four
/// fifths full. The last five are events.
///
/// What is shared are counts of vehicles and of seconds per junction; a view picks the own ones and those of
/// neighbours.
#[derive(Debug)]
pub struct Junctions {
    graph: Graph,
    fixed: Arc<Fixed>,
    start: Simulation,
    departures: Option<Departures>,
    channels: Vec<Channel>,
}

/// What never changes.
#[derive(Debug)]
struct Fixed {
    layout: Arc<Layout>,
    format: Format,
    timing: Timing,
    cells: Cells,
    rules: Rules,
    network: Arc<Network>,
    /// What keeps the rules, found when somebody asks, or why a junction cannot keep them.
    shield: OnceLock<std::result::Result<Shield, String>>,
}

impl Fixed {
    fn shield(&self) -> std::result::Result<&Shield, &String> {
        let id = |junction| self.network.junction_id(junction).to_string();
        self.shield.get_or_init(|| Shield::new(&self.layout, self.timing, id)).as_ref()
    }

    /// What replaces phases that are not allowed, if rules are kept by force.
    fn mask(&self) -> Option<&Shield> {
        if self.rules == Rules::Mask { self.shield().ok() } else { None }
    }
}

impl Junctions {
    /// Traffic of `demand` on `network`.
    pub fn new(settings: &JunctionsSettings, network: Arc<Network>, demand: Arc<Demand>) -> Result<Self> {
        settings.check()?;
        let layout = Arc::new(Layout::new(&network, settings.phases)?);
        let timing = Timing { decision: settings.decision, yellow: settings.yellow };
        let channels = channels(&network, &demand, &layout);
        let graph = layout::graph(&network)?;
        let start = Simulation::new(network.clone(), demand, Settings::default())
            .map_err(|error| Error::config("world", error.to_string()))?;
        let fixed = Fixed {
            format: Format::new(&layout),
            layout,
            timing,
            cells: settings.cells,
            rules: settings.rules,
            network,
            shield: OnceLock::new(),
        };
        if fixed.rules == Rules::Mask {
            fixed.shield().map_err(|why| Error::config("world.rules", why))?;
        }
        let departures = Departures::new(settings, &start)?;
        Ok(Junctions { graph, departures, start, fixed: Arc::new(fixed), channels })
    }
}

/// All of them, with their ranges: a lane holds vehicles of the shortest kind, bumper to bumper, and one
/// more from every link that leads to it: links do not see each other's vehicles.
fn channels(network: &Network, demand: &Demand, layout: &Layout) -> Vec<Channel> {
    let lengths = demand.flows().iter().map(|flow| flow.vehicle.length);
    let shortest = lengths.fold(f64::INFINITY, f64::min);
    let mut links_to = vec![0.0; network.lane_count()];
    for link in network.lane_count()..network.drivable_count() {
        links_to[network.link_lanes(link).1] += 1.0;
    }
    let most_on = |lane: usize| (network.lengths()[lane] / shortest).floor() + 2.0 + links_to[lane];
    let most = |weigh: &dyn Fn(f64) -> f64| {
        let on_site = |site: &Site| {
            site.entry_lanes.iter().map(|&(lane, weight)| weigh(weight) * most_on(lane)).sum::<f64>()
        };
        layout.junctions.iter().map(on_site).fold(0.0, f64::max)
    };
    let range = |name| match name {
        "reward" => [-most(&|weight| REWARD_SCALE * weight), 0.0],
        "waiting" => [0.0, most(&|_| 1.0)],
        _ => [0.0, 1.0],
    };
    CHANNELS.iter().map(|&name| Channel::sampled(name, range(name))).collect()
}

impl World for Junctions {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn states(&self, agent: usize) -> usize {
        cells::CELLS_PER_PHASE * self.actions(agent)
    }

    fn actions(&self, agent: usize) -> usize {
        self.fixed.layout.junctions[agent].green.len()
    }

    fn evolution(&self) -> Evolution<'_> {
        Evolution::Joint(self)
    }

    fn scripted_names(&self) -> &'static [&'static str] {
        &scripts::NAMES
    }

    fn scripted(&self, name: &str, _horizon: usize) -> Option<Script> {
        let controller = scripts::Controller::new(&self.fixed, name).ok()??;
        Some(Script::Rule(Box::new(controller)))
    }

    fn why_not_scripted(&self, name: &str) -> Option<String> {
        scripts::Controller::new(&self.fixed, name).err()
    }

    fn view(&self, _agent: usize, group: &[u32]) -> Option<Box<dyn View>> {
        Some(Box::new(view::Rows::new(self.fixed.layout.clone(), group)))
    }

    /// In which direction it lies, and how far, in usual distances between neighbours.
    fn place(&self, agent: usize, member: usize, _kappa: usize) -> Option<Vec<f32>> {
        let [from, to] = [agent, member].map(|junction| self.fixed.layout.junctions[junction].point);
        Some(vec![f32::from(u8::from(agent == member)), to[0] - from[0], to[1] - from[1]])
    }

    fn channels(&self) -> &[Channel] {
        &self.channels
    }

    fn events(&self) -> &[Event] {
        const fn event(channel: usize) -> Event {
            Event { name: CHANNELS[channel], channel, is_shared: false }
        }
        const EVENTS: [Event; 5] = [event(2), event(3), event(4), event(5), event(6)];
        &EVENTS
    }

    fn measures(&self) -> &[&'static str] {
        &MEASURES
    }
}

impl Joint for Junctions {
    fn shared(&self) -> usize {
        self.fixed.format.stride() * self.fixed.layout.junctions.len()
    }

    fn begin(&self, stream: &Stream, place: Place) -> Box<dyn Episode> {
        let drawn = self.departures.as_ref().map(|departures| departures.draw(stream, place));
        // Departures of the demand's own flows at times that are some: they are never refused.
        let simulation = drawn.and_then(|drawn| self.start.restarted_with(&drawn).ok());
        Box::new(Drive::new(self.fixed.clone(), simulation.unwrap_or_else(|| self.start.clone())))
    }

    fn ends_early(&self) -> bool {
        false
    }
}
