use std::path::Path;

use phalanx::run::Registry;
use phalanx_pictures::plot::canvas;

use super::*;
use crate::archive::{Archive, checksum};
use crate::catalogue::{ALL, Experiment};
use crate::context::Length;
use crate::distinct;

#[test]
fn bands_are_students() {
    assert_eq!(half_width(1), 0.0);
    assert!((half_width(3) - 4.302_652_73 / 3f64.sqrt()).abs() < 1e-6);
    assert!((half_width(5) - 2.776_445_11 / 5f64.sqrt()).abs() < 1e-6);
}

#[test]
fn no_two_series_of_a_figure_look_alike() {
    let styles = distinct((0..MOST_SERIES).map(style));
    assert_eq!(styles.len(), MOST_SERIES);
    for experiment in ALL.iter() {
        let figures = by_figure(experiment);
        let names = distinct(figures.iter().map(|(name, _)| name));
        assert_eq!(names.len(), figures.len(), "{}", experiment.id);
        for (name, settings) in &figures {
            assert!(settings.len() <= MOST_SERIES, "{} {name}: {} series", experiment.id, settings.len());
        }
        let drawn = |setting: &Setting| figures.iter().any(|(_, settings)| settings.contains(&setting));
        assert!(experiment.settings.iter().filter(|_| experiment.bounds.is_empty()).all(drawn));
    }
}

fn series(number: usize, values: &[f64], end: f64) -> Series {
    let share = |k: usize| (k as f64 + 0.5) / values.len() as f64;
    let middle: Vec<Point> = values.iter().enumerate().map(|(k, &y)| (share(k), y)).collect();
    let band = middle.iter().map(|&(x, y)| Span { x, low: y - 0.1, high: y + 0.1 }).collect();
    let closing = values.last().copied();
    Series { number, label: format!("series {number}"), middle, band, end, closing, published: None }
}

#[test]
fn ends_that_are_near_are_looked_at_closely() {
    let of = |values: &[f64]| series(0, values, 1.0);
    let (one, near, far) = (|| of(&[0.0, 10.0]), || of(&[1.0, 9.8]), || of(&[0.0, 5.0]));
    assert!(coincide(&[one(), near(), far()]));
    assert!(!coincide(&[one(), far()]));
    assert!(!coincide(&[one()]));
}

#[test]
fn what_is_no_closer_look_is_left_out() {
    let all = [series(0, &[0.0, 9.0, 10.0], 1.0), series(1, &[0.0, 0.5, 0.5], 1.0)];
    assert!(last_third(&all, &QUANTITIES[0]).is_none());
}

fn curve(panel: &Panel, label: &str) -> Vec<Point> {
    let found = panel.layers.iter().find(|layer| layer.label == label).unwrap();
    let Shape::Line { points, .. } = &found.shape else { panic!("{found:?}") };
    points.clone()
}

fn marks_of(panel: &Panel, wanted: Mark) -> Vec<Point> {
    let of = |layer: &Layer| match &layer.shape {
        Shape::Marks { points, mark } if *mark == wanted => points.clone(),
        _ => Vec::new(),
    };
    panel.layers.iter().flat_map(of).collect()
}

/// However long each of them trains.
#[test]
fn the_last_third_keeps_every_series() {
    let values: Vec<f64> = (0..60).map(|k| f64::from(k).min(50.0)).collect();
    let all = [series(0, &values, 10.0), series(1, &values, 1e6), series(2, &values, 400.0)];
    let panel = last_third(&all, &QUANTITIES[0]).unwrap();
    for number in 0..3 {
        let points = curve(&panel, &format!("series {number}"));
        assert_eq!(points.len(), 20);
        assert!(points.iter().all(|point| (66.0..100.0).contains(&point.0)), "{points:?}");
    }
}

#[test]
fn published_values_and_early_bands_do_not_squash_the_last_third() {
    let mut one = series(0, &[50.0, 55.0, 55.0, 55.0, 55.0, 55.2], 100.0);
    one.band[4] = Span { x: one.band[4].x, low: 10.0, high: 90.0 };
    one.published = Some(30.0);
    let panel = last_third(&[one], &QUANTITIES[0]).unwrap();
    assert!(marks_of(&panel, Mark::Diamond).is_empty());
    assert!(panel.y.label.ends_with("last third; bands are cut; published values are outside"));
    let heights = panel.layers.iter().flat_map(|layer| match &layer.shape {
        Shape::Band(spans) => spans.iter().flat_map(|span| [span.low, span.high]).collect(),
        _ => Vec::new(),
    });
    assert!(heights.into_iter().all(|height| (54.9..=55.31).contains(&height)));
    let mut near = series(0, &[50.0, 55.0, 55.0, 55.0, 55.0, 55.2], 100.0);
    near.published = Some(55.4);
    let panel = last_third(&[near], &QUANTITIES[0]).unwrap();
    assert_eq!(marks_of(&panel, Mark::Diamond), [(100.0, 55.4)]);
    assert_eq!(panel.y.label, "return per agent and episode: last third");
}

#[test]
fn marks_at_one_place_stand_side_by_side_at_the_papers_end() {
    let all: Vec<Series> =
        (0..3).map(|k| Series { published: Some(21.0), ..series(k, &[10.0, 24.0], 400.0) }).collect();
    let panel = whole_panel(&all, &QUANTITIES[0], XAxis::Iterations.axis(), Some(600.0));
    let diamonds = marks_of(&panel, Mark::Diamond);
    assert_eq!(diamonds[0], (600.0, 21.0));
    let apart = |pair: &[Point]| pair[1].0 - pair[0].0;
    assert!(diamonds.windows(2).all(|pair| apart(pair) > 6.0 && apart(pair) < 12.0), "{diamonds:?}");
    assert_eq!(marks_of(&panel, Mark::Circle)[0], (400.0, 24.0));
}

/// An experiment's figures with the runs that the archive has, which may be none.
fn figures(experiment: &'static Experiment) -> Vec<(&'static str, Figure)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/paper/archive");
    let mut archive = Archive::open(&folder).unwrap();
    let mut course = |setting: &'static Setting| {
        let config = |seed| setting.config(seed, Length::Whole, &Registry::default()).unwrap();
        let wanted: Vec<String> = (1..=10).map(|seed| checksum(&config(seed))).collect();
        let runs = archive.runs(&setting.preset).unwrap().iter().filter(|run| wanted.contains(&run.config));
        Course { setting, config: config(1), label: setting.title(), runs: runs.cloned().collect() }
    };
    let mut drawn = Vec::new();
    for (name, settings) in by_figure(experiment) {
        let courses: Vec<Course<'_>> = settings.into_iter().map(&mut course).collect();
        let figure = figure(&experiment.title, &courses, experiment.published_iterations);
        drawn.push((name, figure.unwrap()));
    }
    drawn
}

/// Set to a folder, `PHALANX_FIGURES` gets the pictures.
#[test]
fn every_figure_says_its_settings_and_cuts_no_label() {
    let out = std::env::var_os("PHALANX_FIGURES");
    for experiment in ALL.iter() {
        let figures = figures(experiment);
        for (name, figure) in &figures {
            let of = format!("{} {name}", experiment.id);
            for part in
                ["Held fixed: ", "preset ", " H = ", " B = ", " T = ", "n = ", "κ = ", "c = ", "η_μ = "]
            {
                assert!(
                    figure.subtitle.replace('\u{a0}', " ").contains(part),
                    "{of}: {part}: {}",
                    figure.subtitle
                );
            }
            let svg = &canvas::draw(std::slice::from_ref(figure)).unwrap()[0].svg;
            assert!(!svg.contains('…') && !svg.contains("NaN"), "{of}");
            let labels = figure.panels.iter().flat_map(|panel| &panel.layers).map(|layer| &layer.label);
            for label in labels.chain(figure.panels.iter().map(|panel| &panel.y.label)) {
                assert!(svg.contains(&format!(">{label}")), "{of}: {label}");
                assert!(label.chars().count() <= 110, "{of}: {label}");
            }
        }
        if let Some(out) = &out {
            plot::write(&Path::new(out).join(&experiment.id), figures).unwrap();
        }
    }
}

#[test]
fn budgets_are_those_that_were_asked_for() {
    let setting = |id: &str, name: &str| crate::catalogue::setting(id, "ours", name).unwrap();
    let settings = [setting("pistonball-kappa", "κ = 1"), setting("pistonball-kappa", "κ = 3")];
    let of = |setting, iterations: &str| {
        let config = Setting::config(setting, 1, Length::Whole, &Registry::default()).unwrap();
        let config = config.with("iterations", iterations).unwrap();
        Course { setting, config, label: String::new(), runs: Vec::new() }
    };
    let axis = |lengths: [&str; 2]| {
        let courses: Vec<Course<'_>> =
            settings.iter().zip(lengths).map(|(it, length)| of(it, length)).collect();
        XAxis::of(&courses, &[10, 10])
    };
    assert_eq!(axis(["1500", "1500"]), XAxis::Iterations);
    assert_eq!(axis(["1500", "800"]), XAxis::AgentSteps);
    let config = &of(&settings[0], "1500").config;
    assert_eq!(XAxis::AgentSteps.per_iteration(config, 10), 8.0 * 200.0 * 10.0);
}

/// The line's best policy is paid 1 for its first agent and 0.1 for the others in every step.
#[test]
fn no_band_is_above_what_a_step_can_pay() {
    let setting = crate::catalogue::setting("synthetic-threshold", "ours", "c = 0").unwrap();
    let config = setting.config(1, Length::Whole, &Registry::default()).unwrap();
    let world = phalanx::run::world(&config).unwrap();
    let [least, most] = possible::returns(&*world, &config);
    assert_eq!(least, 0.0);
    assert!((most - 125.0 * 0.19).abs() < 1e-9, "{most}");
}
