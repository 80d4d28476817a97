//! Road networks, flows on them, and phases of their signals.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use phalanx::base::stream::{Place, Purpose, Stream};
use phalanx::world::junctions::{Junctions, JunctionsSettings, Rules};
use phalanx::world::{Joint, World};
use phalanx::{Error, Result};
use phalanx_cli::in_memory;
use phalanx_junctions::{Demand, Network, Settings, Simulation};

use crate::Verdict;
use crate::choices::Choices;
use crate::edit::{Seeds, splice};
use crate::node::Node;
use crate::print;

const ROADNET: &str = include_str!("../../seeds/roadnet.json");
const FLOW: &str = include_str!("../../seeds/flow.json");

static ROADNETS: LazyLock<Seeds> = LazyLock::new(|| Seeds::new([Node::json(ROADNET)]));
static FLOWS: LazyLock<Seeds> = LazyLock::new(|| Seeds::new([Node::json(FLOW)]));
static PHASES: LazyLock<Seeds> =
    LazyLock::new(|| Seeds::new([Node::csv(include_str!("../../seeds/phases.csv"))]));

/// Seconds of traffic on what can be read, and decisions of the world on it.
const SECONDS: usize = 20;
const DECISIONS: usize = 12;
/// Channels that stay 0 behind a mask.
const RULES: [&str; 3] = ["green_time", "green_skip", "phase_skip"];

/// A changed network with the flows as they are, or the other way round; what is read is driven on, by the
/// engine and as a world.
pub fn roads(choices: &mut Choices<'_>) -> Verdict {
    let is_network = choices.one_in(2);
    let seeds = if is_network { &ROADNETS } else { &FLOWS };
    let document = seeds.document(choices);
    let mut bytes = print::json(&document).into_bytes();
    splice(&mut bytes, 16, choices);
    let changed = String::from_utf8_lossy(&bytes);
    let (roadnet, flow) = if is_network { (&*changed, FLOW) } else { (ROADNET, &*changed) };
    Verdict::of(&drive(roadnet, flow, choices))
}

fn drive(roadnet: &str, flow: &str, choices: &mut Choices<'_>) -> Result<()> {
    let named = |file: &str, error: phalanx_junctions::Error| Error::file(Path::new(file), error.to_string());
    let network = Arc::new(Network::read(roadnet).map_err(|error| named("roadnet.json", error))?);
    let demand = Arc::new(Demand::read(flow, &network).map_err(|error| named("flow.json", error))?);
    let settings = Settings { own_program: choices.one_in(4), ..Settings::default() };
    // A program of phases that take no time is refused; it is no matter of the file.
    if let Ok(mut simulation) = Simulation::new(network.clone(), demand.clone(), settings) {
        for second in 0..SECONDS {
            for (k, junction) in network.junctions().iter().enumerate() {
                let phase = second / 5 % junction.phases.len();
                simulation.set_phase(k, phase).unwrap_or_else(|error| panic!("{error}"));
            }
            simulation.step();
        }
        assert!(simulation.average_travel_time().is_finite());
        simulation.hash();
    }
    let decision = 1 + choices.below(15) as u32;
    let settings = JunctionsSettings {
        decision,
        yellow: choices.below(decision as usize) as u32,
        phases: 1 + choices.below(8),
        jitter: if choices.one_in(2) { 5.0 } else { 0.0 },
        rules: if choices.one_in(2) { Rules::Mask } else { Rules::Free },
        ..JunctionsSettings::default()
    };
    let world = Junctions::new(&settings, network, demand)?;
    let n = world.graph().agents();
    let mut episode =
        world.begin(&Stream::new(1), Place { purpose: Purpose::Batch, iteration: 0, trajectory: 0 });
    let mut rewards = vec![0.0; n * world.channels().len()];
    for _ in 0..DECISIONS {
        let actions: Vec<u8> = (0..n).map(|agent| choices.below(world.actions(agent)) as u8).collect();
        episode.step(&actions, &[], &mut rewards);
        let broken = world
            .channels()
            .iter()
            .zip(rewards.chunks(n))
            .filter(|(channel, _)| RULES.contains(&&*channel.name));
        let is_broken = broken.flat_map(|(_, row)| row).any(|&share| share > 0.0);
        assert!(settings.rules == Rules::Free || !is_broken, "a mask broke a rule with {settings:?}");
    }
    Ok(())
}

/// Changed phases of a network, a row per step.
pub fn phases(choices: &mut Choices<'_>) -> Verdict {
    let document = PHASES.document(choices);
    let mut bytes = print::table(&document, ';').into_bytes();
    splice(&mut bytes, 16, choices);
    let text = String::from_utf8_lossy(&bytes);
    Verdict::of(&in_memory::phases(ROADNET, &text, choices.below(6) as u32))
}
