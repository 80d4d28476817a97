//! The line below a figure's title: what all its curves have in common, and what is varied.

use std::collections::BTreeMap;

use super::Course;
use crate::distinct;
use crate::setting::key_and_value;
use phalanx::run::Config;

/// A setting: its name, and what comes between it and its value.
struct Fact {
    name: &'static str,
    joined: &'static str,
    value: fn(&Course<'_>, usize) -> String,
}

const fn fact(name: &'static str, joined: &'static str, value: fn(&Course<'_>, usize) -> String) -> Fact {
    Fact { name, joined, value }
}

/// Lines do not break there.
const EQUALS: &str = "\u{a0}=\u{a0}";

const FACTS: [Fact; 10] = [
    fact("preset", " ", |course, _| course.setting.preset.clone()),
    fact("n", EQUALS, |_, agents| agents.to_string()),
    fact("constraint", " ", |course, _| constraint(&course.config).0),
    fact("c", EQUALS, |course, _| constraint(&course.config).1),
    fact("κ", EQUALS, |course, _| course.config.kappa.to_string()),
    fact("η_μ", EQUALS, |course, _| multiplier_step(&course.config)),
    fact("γ", EQUALS, |course, _| {
        course.config.gamma.map_or("that of the model".into(), |it| it.to_string())
    }),
    fact("H", EQUALS, |course, _| course.config.horizon.to_string()),
    fact("B", EQUALS, |course, _| course.config.batch.to_string()),
    fact("T", EQUALS, |course, _| course.config.iterations.to_string()),
];

/// How the keys of these begin.
const SAID: [&str; 9] = [
    "constraint",
    "constraint.0.at_least",
    "constraint.0.at_most",
    "kappa",
    "dual.eta_mu",
    "gamma",
    "horizon",
    "batch",
    "iterations",
];

/// `agents`: of each course.
pub fn caption(courses: &[Course<'_>], agents: &[usize]) -> String {
    let (mut fixed, mut varied) = (Vec::new(), Vec::new());
    for Fact { name, joined, value } in &FACTS {
        let values = distinct(courses.iter().zip(agents).map(|(course, agents)| value(course, *agents)));
        let is_one = values.len() == 1;
        let words = format!("{name}{joined}{}", values.join(", "));
        if is_one { fixed.push(words) } else { varied.push(words) }
    }
    let [common, differing] = other_keys(courses);
    if !common.is_empty() {
        fixed.insert(fixed.len().min(1), format!("set on top of it: {}", common.join(", ")));
    }
    varied.extend(differing.into_iter().map(String::from));
    let mut words = format!("Held fixed: {}.", fixed.join("; "));
    if !varied.is_empty() {
        words += &format!(" Varied: {}.", varied.join("; "));
    }
    words
}

/// What is bounded, from which side, and by what.
fn constraint(config: &Config) -> (String, String) {
    let Some(first) = config.constraint.as_ref().and_then(|all| all.first()) else {
        return ("of the model".into(), "that of the model".into());
    };
    let (sign, bound) = match (first.at_least, first.at_most) {
        (Some(bound), _) => ("≥", bound.to_string()),
        (None, bound) => ("≤", bound.map_or(String::new(), |bound| bound.to_string())),
    };
    (format!("{} {sign} c", first.name), bound)
}

/// Of what moves the multipliers.
fn multiplier_step(config: &Config) -> String {
    match serde_json::to_value(config.algorithm).unwrap_or_default().as_str() {
        Some("mappo-l") => format!("{} (MAPPO-L)", *config.mappo.lambda_rate),
        Some("penalty") => "none (penalty)".into(),
        _ => config.dual.eta_mu.to_string(),
    }
}

/// Other keys that are set on top of presets: those with the same value everywhere, and the rest.
fn other_keys<'a>(courses: &[Course<'a>]) -> [Vec<&'a str>; 2] {
    let set = |course: &Course<'a>| -> BTreeMap<&'a str, &'a str> {
        let set = course.setting.set.iter().map(|set| key_and_value(set));
        set.filter(|(key, _)| !SAID.contains(key)).collect()
    };
    let sets: Vec<BTreeMap<&str, &str>> = courses.iter().map(set).collect();
    let mut keys = distinct(sets.iter().flat_map(|set| set.keys().copied()));
    keys.sort_unstable();
    let is_common = |key: &&str| sets.iter().all(|set| set.get(key) == sets[0].get(key));
    let (common, differing) = keys.into_iter().partition(is_common);
    [common, differing]
}
