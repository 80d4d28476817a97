use std::sync::Arc;

use phalanx::run::{Config, Evaluator, Verdict};
use phalanx_junctions::{Demand, Irregular, Network, Settings, TownSettings};

use super::*;
use crate::render::episode::film_of;
use crate::render::film::WIDEST;
use crate::render::verdicts::{Ground, VerdictMap};

fn simulation(town: &TownSettings) -> Simulation {
    let files = town.generate().unwrap();
    let network = Arc::new(Network::read(&files.roadnet).unwrap());
    let demand = Arc::new(Demand::read(&files.flow, &network).unwrap());
    Simulation::new(network, demand, Settings::default()).unwrap()
}

fn grid(rows: usize, columns: usize) -> TownSettings {
    TownSettings { rows, columns, seconds: 600, ..TownSettings::default() }
}

/// Phase 1 everywhere for so many seconds.
fn driven(town: &TownSettings, seconds: usize) -> Simulation {
    let mut traffic = simulation(town);
    (0..traffic.network().junctions().len()).for_each(|junction| traffic.set_phase(junction, 1).unwrap());
    (0..seconds).for_each(|_| traffic.step());
    traffic
}

#[test]
fn everything_stays_in_the_picture() {
    let irregular = Some(Irregular { missing: 0.2, shift: 0.25 });
    let long = TownSettings { lengths_east: vec![2000.0], lengths_north: vec![120.0], ..grid(16, 3) };
    for town in [grid(1, 1), grid(4, 4), long, TownSettings { irregular, ..grid(3, 5) }, grid(1, 12)] {
        let traffic = driven(&town, 200);
        let map = RoadMap::new(traffic.network());
        assert!(map.size.0 <= WIDEST && map.size.1 <= 900.0, "{:?}", map.size);
        let shapes = TrafficStep::of(&map, &traffic, None).draw(&map);
        assert!(shapes.len() > traffic.running());
        for shape in shapes {
            assert!(shape.is_within(map.size), "{shape:?}");
        }
    }
}

#[test]
fn junctions_do_not_overlap() {
    for town in [grid(4, 4), TownSettings { lengths_north: vec![100.0], ..grid(16, 3) }] {
        let map = RoadMap::new(simulation(&town).network());
        for (k, a) in map.junctions.iter().enumerate() {
            for b in &map.junctions[k + 1..] {
                let apart = (a.centre.0 - b.centre.0).hypot(a.centre.1 - b.centre.1);
                assert!(apart > a.radius + b.radius, "{apart} {} {}", a.radius, b.radius);
            }
        }
    }
}

/// A lane has the light of its movements; right turns are always green, so that those lanes are.
#[test]
fn lights_are_those_of_the_phase() {
    let mut traffic = driven(&grid(1, 1), 1);
    let map = RoadMap::new(traffic.network());
    let counted = |step: &TrafficStep| {
        [Light::Green, Light::Yellow, Light::Red]
            .map(|light| step.lights[0].iter().filter(|&&l| l == light).count())
    };
    // Four roads of three lanes: left, straight on, right. Phase 1 has two of them straight on.
    let first = TrafficStep::of(&map, &traffic, None);
    assert_eq!(counted(&first), [6, 0, 6]);
    // Phase 0 after it: those two are yellow, the others were red and are.
    traffic.set_phase(0, 0).unwrap();
    let second = TrafficStep::of(&map, &traffic, Some(&first));
    assert_eq!(counted(&second), [4, 2, 6]);
    assert_eq!(counted(&TrafficStep::of(&map, &traffic, Some(&second))), [4, 2, 6]);
    traffic.set_phase(0, 2).unwrap();
    assert_eq!(counted(&TrafficStep::of(&map, &traffic, Some(&second))), [6, 0, 6]);
}

/// Those who wait at a red light are black and stand in line before it; the number beside the junction counts
/// them.
#[test]
fn who_waits_is_seen_and_counted() {
    let traffic = driven(&grid(1, 1), 300);
    let map = RoadMap::new(traffic.network());
    let step = TrafficStep::of(&map, &traffic, None);
    let waiting: usize = (0..traffic.network().lane_count()).map(|lane| traffic.lane_waiting(lane)).sum();
    assert!(waiting > 10);
    assert_eq!(step.waiting, [waiting]);
    let shapes = step.draw(&map);
    let black = |shape: &&Shape| matches!(shape, Shape::Area { fill, .. } if *fill == Colour::INK);
    assert_eq!(shapes.iter().filter(black).count(), waiting);
    let written = |shape: &Shape| matches!(shape, Shape::Text { content, bold: true, .. } if *content == waiting.to_string());
    assert!(shapes.iter().any(written));
}

/// Vehicles on a lane are drawn on the lane that is drawn, in their order.
#[test]
fn vehicles_keep_to_their_lanes() {
    let traffic = driven(&grid(2, 2), 200);
    let map = RoadMap::new(traffic.network());
    let mut seen = 0;
    for lane in 0..traffic.network().lane_count() {
        let shares: Vec<f32> = traffic
            .vehicles_on(lane)
            .map(|vehicle| (vehicle.distance / traffic.network().lengths()[lane]) as f32)
            .collect();
        assert!(shares.windows(2).all(|pair| pair[0] > pair[1]));
        for share in &shares {
            let Some(Shape::Area { points, .. }) = map.vehicle(lane, *share, 5.0, Colour::INK) else {
                panic!()
            };
            let front = ((points[0].0 + points[1].0) / 2.0, (points[0].1 + points[1].1) / 2.0);
            // Lanes of a town are straight: the sum of the ways to both ends is the way between them.
            let ends = [0.0, 1.0].map(|share| map.vehicle(lane, share, 5.0, Colour::INK));
            let [a, b] = ends.map(|end| {
                let Some(Shape::Area { points, .. }) = end else { panic!() };
                ((points[0].0 + points[1].0) / 2.0, (points[0].1 + points[1].1) / 2.0)
            });
            let way = |p: Point, q: Point| (p.0 - q.0).hypot(p.1 - q.1);
            assert!((way(a, front) + way(front, b) - way(a, b)).abs() < 0.01);
            assert!((way(a, front) / way(a, b) - share).abs() < 1e-3);
            seen += 1;
        }
    }
    assert!(seen > 20);
}

fn evaluator(sets: &[(&str, &str)]) -> Evaluator {
    let small = [("world.town.grid", "[1, 2]"), ("horizon", "60"), ("world.decision", "7")];
    let config = Config::preset("junctions-grid4x4").unwrap();
    let config = config.with_all(small.into_iter().chain(sets.iter().copied())).unwrap();
    Evaluator::scripted(&config, "near-queue").unwrap()
}

/// The film's traffic is that of the episode: what the world measured is what is drawn, whatever departs.
#[test]
fn a_film_shows_the_episode_that_was_evaluated() {
    let evaluator = evaluator(&[("world.rules", "\"mask\"")]);
    let place = |name| evaluator.world().measures().iter().position(|&other| other == name).unwrap();
    let mut different = Vec::new();
    for k in 0..3 {
        let trajectory = evaluator.episode(k, 5, 60).unwrap();
        let (film, ended) = film_of(&evaluator, k, 5, 60).unwrap();
        assert!(!ended && film.steps() == 60);
        for step in [0, 30, 59] {
            let measures = trajectory.measures(step);
            let [outside, arrived] = ["waiting_outside", "finished"].map(|name| measures[place(name)]);
            let ending = format!(", {outside} outside, {arrived} arrived");
            let status = film.status(step);
            assert!(status.ends_with(&ending), "{status} {ending}");
            assert!(status.starts_with(&format!("{} s, ", 7 * (step + 1))), "{status}");
        }
        different.push(film.status(59));
    }
    different.dedup();
    assert!(different.len() > 1, "departures are drawn: {different:?}");
}

#[test]
fn short_films_show_every_second_and_long_ones_every_decision() {
    let evaluator = evaluator(&[]);
    for (steps, moments) in [(20, 7), (150, 4), (400, 1)] {
        let (film, _) = film_of(&evaluator, 0, 1, steps).unwrap();
        assert_eq!(film.moments_per_step(), moments, "{steps}");
        for step in [0, steps - 1] {
            let (shapes, status) = film.moment(step, moments - 1);
            assert_eq!((shapes, status), (film.draw(step), film.status(step)));
        }
    }
    let (film, _) = film_of(&evaluator, 0, 1, 20).unwrap();
    assert!(film.moment(3, 1).1.starts_with("23 s, "));
}

/// A rule that must hold in whole episodes is broken from the moment on in which it is.
#[test]
fn a_rule_once_broken_stays_broken() {
    let config = Config::preset("junctions-rules").unwrap();
    let small = [("world.town.grid", "[1, 1]"), ("world.rules", "\"free\""), ("horizon", "10")];
    let evaluator = Evaluator::scripted(&config.with_all(small).unwrap(), "constant1").unwrap();
    let (film, _) = film_of(&evaluator, 0, 1, 8).unwrap();
    let broken = |step: usize| {
        let is_broken = |shape: &Shape| matches!(shape, Shape::Disc { outline: Some(pen), .. } if pen.colour == Colour::ALARM);
        film.draw(step).iter().any(is_broken)
    };
    // A light may not be green for 40 s.
    assert_eq!([0, 2, 3, 7].map(broken), [false, false, true, true]);
}

/// Whom the map calls safe the evaluation does, and the other way round.
#[test]
fn the_map_says_what_the_evaluation_says() {
    let mut met = Vec::new();
    let starvation =
        |at_most| format!("[{{kind=\"return\",channel=\"starvation\",scale=0.01,at_most={at_most}}}]");
    // What the four phases that are never on could change is much after six episodes.
    let fairness = "[{kind=\"action_entropy\",at_least=1.95}]".to_string();
    let cases =
        [("cycle:4@30", starvation(0.5)), ("constant1", starvation(0.0001)), ("cycle:4@30", fairness)];
    for (policy, constraint) in &cases {
        let config = Config::preset("junctions-grid4x4").unwrap();
        let sets = [("world.town.grid", "[2, 2]"), ("horizon", "80"), ("constraint", constraint)];
        let evaluator = Evaluator::scripted(&config.with_all(sets).unwrap(), policy).unwrap();
        let assessment = evaluator.assess(6, 1, 0.99).unwrap();
        let map = VerdictMap::new(Ground::Roads(map_of(evaluator.world()).unwrap()), 4, &assessment).unwrap();
        let verdicts = assessment.agents(4);
        assert_eq!(map.verdicts, verdicts.iter().copied().map(Some).collect::<Vec<_>>());
        let shapes = map.draw(0);
        let filled = |wanted: Colour| {
            let is = |shape: &&Shape| matches!(shape, Shape::Disc { fill: Some(fill), outline: Some(_), .. } if *fill == wanted);
            shapes.iter().filter(is).count()
        };
        let count = |wanted| verdicts.iter().filter(|&&verdict| verdict == wanted).count();
        assert_eq!(filled(Colour::of_series(1)), count(Verdict::Safe), "{policy}");
        assert_eq!(filled(Colour::ALARM), count(Verdict::Unsafe), "{policy}");
        assert_eq!(filled(Colour::PAPER), count(Verdict::Undecided), "{policy}");
        assert!(shapes.iter().all(|shape| shape.is_within(map.size())));
        assert_eq!(map.note().unwrap(), "all verdicts together with 99 % confidence, over 6 episodes");
        met.extend(verdicts);
    }
    for verdict in [Verdict::Safe, Verdict::Unsafe, Verdict::Undecided] {
        assert!(met.contains(&verdict), "{verdict:?} is not met: the test says nothing of it");
    }
}

#[test]
fn without_constraints_there_is_nothing_to_judge() {
    let mut assessment = evaluator(&[]).assess(3, 1, 0.9).unwrap();
    assessment.constraints.retain(|constraint| constraint.agent == 1);
    let map = Ground::Roads(map_of(evaluator(&[]).world()).unwrap());
    let found = VerdictMap::new(map.clone(), 4, &assessment).unwrap();
    assert!(found.verdicts[0].is_none() && found.verdicts[1].is_some());
    assert!(found.legend().iter().any(|entry| entry.label == "no constraint"));
    assessment.constraints.clear();
    assert!(VerdictMap::new(map, 4, &assessment).is_none());
}
