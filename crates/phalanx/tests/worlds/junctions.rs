//! Do signals keep what their world promises? The contract, the rules by hand, the mask, chance, and input
//! that cannot be used.

use std::path::Path;
use std::sync::Arc;

use phalanx::base::stream::{Place, Purpose, Stream};
use phalanx::run::{Config, Evaluator};
use phalanx::world::junctions::{Cells, JunctionsSettings, Rules, Town};
use phalanx::world::{Episode, Evolution, World, WorldSettings, check};

fn town(grid: [usize; 2]) -> JunctionsSettings {
    JunctionsSettings { town: Some(Town { grid, ..Town::default() }), ..JunctionsSettings::default() }
}

fn build(settings: &JunctionsSettings) -> phalanx::Result<Arc<dyn World>> {
    settings.build(&phalanx::world::Surroundings { network: None, locate: &|file| file.into() })
}

fn begin(world: &dyn World, trajectory: u32) -> Box<dyn Episode> {
    let Evolution::Joint(joint) = world.evolution() else { panic!("traffic is joint") };
    joint.begin(&Stream::new(1), Place { purpose: Purpose::Batch, iteration: 0, trajectory })
}

/// The first junction's channels after each of the steps in which every junction does the same.
fn played(world: &dyn World, actions: impl IntoIterator<Item = u8>) -> Vec<Vec<f32>> {
    played_by(world, actions, |row| row[0])
}

/// Of every channel, what `pick` takes from its row of junctions.
fn played_by(
    world: &dyn World,
    actions: impl IntoIterator<Item = u8>,
    pick: impl Fn(&[f32]) -> f32,
) -> Vec<Vec<f32>> {
    let n = world.graph().agents();
    let mut episode = begin(world, 0);
    let step = |action| {
        let mut rewards = vec![0.0; world.channels().len() * n];
        episode.step(&vec![action; n], &[], &mut rewards);
        rewards.chunks(n).map(&pick).collect()
    };
    actions.into_iter().map(step).collect()
}

fn channel(world: &dyn World, name: &str) -> usize {
    world.channels().iter().position(|channel| channel.name == name).unwrap()
}

#[test]
fn junctions_keep_the_contract() {
    let irregular = Town { grid: [3, 2], missing: 0.2, shift: 0.2, ..Town::default() };
    for settings in [
        town([1, 1]),
        JunctionsSettings { phases: 4, jitter: 60.0, demand: 0.7, ..town([2, 3]) },
        JunctionsSettings { cells: Cells::Rules, rules: Rules::Mask, ..town([2, 2]) },
        JunctionsSettings { decision: 5, yellow: 0, town: Some(irregular), ..town([3, 2]) },
        JunctionsSettings { decision: 15, yellow: 15, phases: 1, ..town([2, 2]) },
    ] {
        check(&*build(&settings).unwrap()).unwrap_or_else(|broken| panic!("{settings:?}: {broken}"));
    }
}

#[test]
fn neighbours_are_joined_by_a_road() {
    let world = build(&town([3, 4])).unwrap();
    assert_eq!(world.graph().agents(), 12);
    assert_eq!(world.graph().edge_count(), 3 * 3 + 2 * 4);
}

/// A phase that stays breaks the rule on green times after 40 s; with a change every 10 s movements and
/// phases that are left out break theirs after 4 and 16 changes.
#[test]
fn rules_are_broken_when_their_counts_say() {
    let world = build(&town([1, 1])).unwrap();
    let [green_time, green_skip, phase_skip] =
        ["green_time", "green_skip", "phase_skip"].map(|name| channel(&*world, name));
    let constant = played(&*world, [0; 6]);
    let found: Vec<f32> = constant.iter().map(|step| step[green_time]).collect();
    assert_eq!(found, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    assert!(constant.iter().all(|step| step[green_skip] == 0.0 && step[phase_skip] == 0.0));
    // Straight on from west and east, then from south and north: left turns are left out.
    let two = played(&*world, (0..20).map(|step| step % 2));
    let first = |channel: usize| two.iter().position(|step| step[channel] > 0.0);
    assert_eq!([first(green_time), first(green_skip), first(phase_skip)], [None, Some(4), Some(16)]);
    assert_eq!([two[4][green_skip], two[16][phase_skip]], [0.5, 0.75]);
}

/// A light that no used phase turns green is red all the same.
#[test]
fn movements_that_no_phase_serves_starve() {
    let starving = |phases: usize| {
        let world = build(&JunctionsSettings { phases, ..town([2, 2]) }).unwrap();
        let starvation = channel(&*world, "starvation");
        played(&*world, [0; 60]).iter().map(|row| row[starvation]).sum::<f32>()
    };
    assert!(starving(8) > 30.0);
    assert_eq!(starving(1), starving(8));
}

/// A vehicle that has just driven in keeps nobody out.
#[test]
fn traffic_that_flows_does_not_spill_back() {
    let thin = Town { grid: [2, 2], vehicles_per_hour: 20.0, ..Town::default() };
    let world = build(&JunctionsSettings { town: Some(thin), ..JunctionsSettings::default() }).unwrap();
    let spillback = channel(&*world, "spillback");
    let cycle = (0..360).map(|step| (step / 2 % 8) as u8);
    assert_eq!(played(&*world, cycle).iter().map(|row| row[spillback]).sum::<f32>(), 0.0);
}

/// Departures far outside the hour are folded back into it instead of piling up at its ends.
#[test]
fn departures_stay_spread_out() {
    let settings = JunctionsSettings { seconds: 60, jitter: 3600.0, decision: 1, yellow: 0, ..town([2, 2]) };
    let outside = |settings: &JunctionsSettings| {
        let world = build(settings).unwrap();
        let mut episode = begin(&*world, 0);
        let mut rewards = vec![0.0; world.channels().len() * 4];
        episode.step(&[0; 4], &[], &mut rewards);
        let mut measures = vec![0.0; world.measures().len()];
        episode.measures(&mut measures);
        measures[world.measures().iter().position(|&name| name == "waiting_outside").unwrap()]
    };
    assert!(outside(&settings) <= 4.0, "{}", outside(&settings));
}

/// Whatever is asked for, no rule is ever broken behind the mask.
#[test]
fn the_mask_keeps_the_rules() {
    for (decision, yellow, phases) in [(10, 5, 8), (5, 2, 8), (15, 5, 4), (10, 0, 8), (40, 5, 8)] {
        let settings = JunctionsSettings { decision, yellow, phases, rules: Rules::Mask, ..town([2, 2]) };
        let world = build(&settings).unwrap();
        let rules = ["green_time", "green_skip", "phase_skip"].map(|name| channel(&*world, name));
        let mut numbers =
            Stream::new(7).sequence(Place { purpose: Purpose::Batch, iteration: 0, trajectory: 0 }, 0);
        let random: Vec<u8> = (0..400).map(|_| (numbers.next_u32() as usize % phases) as u8).collect();
        for asked in [vec![0; 200], vec![(phases - 1) as u8; 200], random] {
            for step in played(&*world, asked) {
                assert!(
                    rules.iter().all(|&rule| step[rule] == 0.0),
                    "{decision} {yellow} {phases}: {step:?}"
                );
            }
        }
    }
}

/// Settings of a network that comes with the engine, unpacked into a folder.
fn shipped(net: &str, folder: &Path) -> JunctionsSettings {
    let nets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../phalanx-junctions/tests/reference/nets");
    let file = |name: &str| {
        let packed = std::fs::File::open(nets.join(net).join(format!("{name}.gz"))).unwrap();
        let path = folder.join(name);
        let mut unpacked = std::fs::File::create(&path).unwrap();
        std::io::copy(&mut flate2::read::GzDecoder::new(packed), &mut unpacked).unwrap();
        Some(path)
    };
    JunctionsSettings {
        roadnet: file("roadnet.json"),
        flow: file("flow.json"),
        ..JunctionsSettings::default()
    }
}

/// A light that all used phases have green never turns red without yellow, so no order keeps the rules.
#[test]
fn a_mask_that_cannot_keep_the_rules_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let star = shipped("star", folder.path());
    let settings = JunctionsSettings { decision: 5, yellow: 0, phases: 2, rules: Rules::Mask, ..star };
    let message = build(&settings).err().unwrap().to_string();
    assert!(message.contains("junction a: no order of its phases, 2 in all, keeps the rules"), "{message}");
    assert!(build(&JunctionsSettings { yellow: 2, ..settings }).is_ok());
}

/// Irregular networks, shared lanes, lights green in yellow: a mask is refused, or it keeps the rules.
#[test]
fn the_mask_keeps_the_rules_of_any_network() {
    let folder = tempfile::tempdir().unwrap();
    let mut kept = 0;
    for net in ["one", "two", "three", "star", "ties"] {
        let plain = shipped(net, folder.path());
        for (decision, yellow) in [(3, 0), (5, 0), (5, 2), (10, 5), (15, 15), (20, 0), (45, 10)] {
            for phases in [2, 3, 5, 8] {
                let settings =
                    JunctionsSettings { decision, yellow, phases, rules: Rules::Mask, ..plain.clone() };
                let Ok(world) = build(&settings) else { continue };
                let rules = ["green_time", "green_skip", "phase_skip"].map(|name| channel(&*world, name));
                let mut numbers = Stream::new(u64::from(decision))
                    .sequence(Place { purpose: Purpose::Batch, iteration: 0, trajectory: 0 }, 0);
                let fewest = (0..world.graph().agents()).map(|agent| world.actions(agent)).min().unwrap();
                let asked: Vec<u8> =
                    (0..120).map(|_| (numbers.next_u32() as usize / 3 % fewest) as u8).collect();
                let worst = |row: &[f32]| row.iter().copied().fold(0.0, f32::max);
                for (k, step) in played_by(&*world, asked, worst).iter().enumerate() {
                    let broken = rules.map(|rule| step[rule]);
                    assert_eq!(broken, [0.0; 3], "{net} {decision}/{yellow}/{phases}: decision {k}");
                }
                kept += 1;
            }
        }
    }
    assert!(kept > 30, "{kept}");
}

/// Departures are the files' own without chance; with it, every episode has its own, and the same again.
#[test]
fn chance_is_in_departures_alone() {
    let seen = |settings: &JunctionsSettings, trajectory| {
        let world = build(settings).unwrap();
        let Evolution::Joint(joint) = world.evolution() else { panic!("traffic is joint") };
        let mut episode = begin(&*world, trajectory);
        (0..30).for_each(|k| {
            episode.step(&[k % 4; 4], &[], &mut vec![0.0; 4 * world.channels().len()]);
        });
        let mut shared = vec![0.0; joint.shared()];
        episode.observe(&mut [0; 4], &mut shared);
        shared
    };
    let plain = town([2, 2]);
    let jittered = JunctionsSettings { jitter: 60.0, ..plain.clone() };
    let thinned = JunctionsSettings { demand: 0.5, ..plain.clone() };
    assert_eq!(seen(&plain, 0), seen(&plain, 1));
    for settings in [jittered, thinned] {
        assert_eq!(seen(&settings, 0), seen(&settings, 0));
        assert_ne!(seen(&settings, 0), seen(&settings, 1));
        assert_ne!(seen(&settings, 0), seen(&plain, 0));
    }
}

const EVALUATED: &str = "gamma = 0.9\nhorizon = 180\nkappa = 0\n[world]\nkind = \"junctions\"\n\
                         town = { grid = [2, 3] }\n[objective]\nkind = \"return\"";

#[test]
fn controllers_are_measured() {
    let config = Config::from_toml(EVALUATED, Path::new(".")).unwrap();
    let time = |policy: &str| {
        let found = Evaluator::scripted(&config, policy).unwrap().assess(3, 1, 0.99).unwrap().measures;
        assert!(found["travel_time_tables"] < found["travel_time"], "{policy}: {found:?}");
        found["travel_time"]
    };
    let constant = time("constant1");
    let cycle = time("cycle:4@30");
    let pressure = time("efficient-max-pressure");
    assert!(pressure < cycle && cycle < constant, "{pressure} {cycle} {constant}");
    for policy in
        ["fixed-time@20", "safe-cycle@20", "max-pressure:4", "advanced-max-pressure", "longest-queue"]
    {
        assert!(time(policy) < constant, "{policy}");
    }
    let shielded = Evaluator::scripted(&config, "shielded-max-pressure").unwrap().assess(3, 1, 0.99).unwrap();
    for rule in ["green_time", "green_skip", "phase_skip"] {
        assert_eq!(shielded.channel_means[rule], 0.0, "{rule}");
    }
}

/// A name that is known is never called unknown: what is wrong with it is said.
#[test]
fn controllers_that_cannot_be_had_say_why() {
    let refused = |config: &Config, name: &str| {
        let message = Evaluator::scripted(config, name).err().map(|error| error.to_string());
        message.unwrap_or_else(|| panic!("{name} is there"))
    };
    let config = Config::from_toml(EVALUATED, Path::new(".")).unwrap();
    for (name, why) in [
        ("constant0", "there is no such phase; allowed are 1 to 8"),
        ("constant9", "there is no such phase; allowed are 1 to 8"),
        ("cycle:9", "9 phases; allowed are 1 to 8"),
        ("cycle:0", "0 phases; allowed are 1 to 8"),
        ("max-pressure@5", "takes no seconds behind `@`"),
        ("safe-cycle:4", "takes no number of phases behind `:`"),
        ("cycle@x", "`x` behind `@` is no whole number"),
    ] {
        let message = refused(&config, name);
        assert!(message.contains(&format!("`{name}`: {why}")), "{message}");
    }
    assert!(
        refused(&config, "magic@5").contains("`magic@5` is unknown for this world; allowed are uniform, ")
    );
    // With a phase alone its light is green for ever.
    let one = config.with("world.phases", "1").unwrap();
    for name in ["safe-cycle", "shielded-near-queue"] {
        let message = refused(&one, name);
        assert!(message.contains(": no order of its phases, 1 in all, keeps the rules"), "{message}");
    }
}

#[test]
fn bad_settings_are_refused_by_name() {
    let none = JunctionsSettings::default();
    for (settings, wanted) in [
        (JunctionsSettings { decision: 0, ..none.clone() }, "world.decision: 0;"),
        (JunctionsSettings { yellow: 11, ..none.clone() }, "world.yellow: 11;"),
        (
            JunctionsSettings { yellow: 10, rules: Rules::Mask, ..none.clone() },
            "world.yellow: 10; with world.rules = \"mask\" a phase must show green",
        ),
        (JunctionsSettings { phases: 9, ..none.clone() }, "world.phases: 9;"),
        (JunctionsSettings { jitter: -1.0, ..none.clone() }, "world.jitter: -1;"),
        (JunctionsSettings { jitter: f64::NAN, ..none.clone() }, "world.jitter: NaN;"),
        (JunctionsSettings { demand: 1.5, ..none.clone() }, "world.demand: 1.5 is not a probability"),
        (JunctionsSettings { seconds: 0, ..none.clone() }, "world.seconds: 0;"),
        (JunctionsSettings { flow: Some("f.json".into()), ..none.clone() }, "world.roadnet: is missing"),
        (JunctionsSettings { roadnet: Some("r.json".into()), ..none.clone() }, "world.flow: is missing"),
        (town([0, 3]), "world.town.grid: must be from 1"),
        (
            JunctionsSettings { roadnet: Some("r".into()), flow: Some("f".into()), ..town([2, 2]) },
            "world.town: does not go with world.roadnet",
        ),
        (JunctionsSettings { phases: 1, rules: Rules::Mask, ..none.clone() }, "world.rules: junction"),
        (
            JunctionsSettings { roadnet: Some("none.json".into()), flow: Some("f".into()), ..none },
            "none.json: cannot be read",
        ),
    ] {
        let message = build(&settings).unwrap_err().to_string();
        assert!(message.starts_with(wanted), "{message} is not {wanted}");
    }
}
