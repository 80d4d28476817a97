//! Configurations and data that are part of the program.

use std::collections::BTreeMap;
use std::sync::LazyLock;

pub use crate::base::builtin::builtin;

/// Name and text of every preset.
const PRESETS: [(&str, &str); 31] = [
    ("synthetic", include_str!("../../presets/synthetic.toml")),
    ("wireless", include_str!("../../presets/wireless.toml")),
    ("wireless-grid", include_str!("../../presets/wireless-grid.toml")),
    ("wireless-shared", include_str!("../../presets/wireless-shared.toml")),
    ("pistonball", include_str!("../../presets/pistonball.toml")),
    ("pistonball20", include_str!("../../presets/pistonball20.toml")),
    ("platoon-slowdown", include_str!("../../presets/platoon-slowdown.toml")),
    ("platoon-catchup", include_str!("../../presets/platoon-catchup.toml")),
    ("platoon-smooth", include_str!("../../presets/platoon-smooth.toml")),
    ("platoon-shared", include_str!("../../presets/platoon-shared.toml")),
    ("epidemic", include_str!("../../presets/epidemic.toml")),
    ("epidemic-grid", include_str!("../../presets/epidemic-grid.toml")),
    ("epidemic-shared", include_str!("../../presets/epidemic-shared.toml")),
    ("junctions-grid4x4", include_str!("../../presets/junctions-grid4x4.toml")),
    ("junctions-rules", include_str!("../../presets/junctions-rules.toml")),
    ("junctions-fair", include_str!("../../presets/junctions-fair.toml")),
    ("apprenticeship", include_str!("../../presets/apprenticeship.toml")),
    ("feasibility", include_str!("../../presets/feasibility.toml")),
    ("entropy", include_str!("../../presets/entropy.toml")),
    ("exact", include_str!("../../presets/exact.toml")),
    ("paper/synthetic", include_str!("../../presets/paper/synthetic.toml")),
    ("paper/wireless", include_str!("../../presets/paper/wireless.toml")),
    ("paper/wireless-random", include_str!("../../presets/paper/wireless-random.toml")),
    ("paper/pistonball", include_str!("../../presets/paper/pistonball.toml")),
    ("paper/pistonball20", include_str!("../../presets/paper/pistonball20.toml")),
    ("authors/synthetic", include_str!("../../presets/authors/synthetic.toml")),
    ("authors/wireless", include_str!("../../presets/authors/wireless.toml")),
    ("authors/pistonball", include_str!("../../presets/authors/pistonball.toml")),
    ("authors/pistonball20", include_str!("../../presets/authors/pistonball20.toml")),
    ("baselines/mappo-l-pistonball", include_str!("../../presets/baselines/mappo-l-pistonball.toml")),
    ("baselines/mappo-l-wireless", include_str!("../../presets/baselines/mappo-l-wireless.toml")),
];

/// Names of the presets, recommended one first.
pub fn names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _)| *name)
}

/// A preset's TOML.
pub fn text(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(preset, _)| *preset == name).map(|(_, text)| *text)
}

/// What a preset is about: the first lines of its comment, up to the end of a sentence.
pub fn description(name: &str) -> Option<&'static str> {
    static DESCRIPTIONS: LazyLock<BTreeMap<&str, String>> =
        LazyLock::new(|| PRESETS.iter().map(|(name, text)| (*name, heading(text))).collect());
    DESCRIPTIONS.get(name).map(String::as_str)
}

fn heading(text: &str) -> String {
    let mut heading = String::new();
    for line in text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim) {
        if line.is_empty() || heading.ends_with('.') {
            break;
        }
        heading += if heading.is_empty() { "" } else { " " };
        heading += line;
    }
    heading
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_whole_sentences() {
        for name in names() {
            let description = description(name).unwrap();
            assert!(
                description.ends_with('.') && !description.contains(['#', '\n']),
                "{name}: {description}"
            );
        }
        assert!(description("junctions-fair").unwrap().contains("four phases in equal shares"));
        assert!(description("wireless-grid").unwrap().ends_with("small batches."));
        assert_eq!(description("nothing"), None);
    }
}
