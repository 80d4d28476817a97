//! Data files that are part of the program.

use std::path::Path;

/// Data files that presets refer to as `preset:<name>`.
const FILES: [(&str, &str); 2] = [
    ("preset:line-expert.json", include_str!("../../presets/line-expert.json")),
    ("preset:karate-club.txt", include_str!("../../presets/karate-club.txt")),
];

/// The text of a built-in data file.
pub fn builtin(file: &Path) -> Option<&'static str> {
    FILES.iter().find(|(name, _)| Path::new(name) == file).map(|(_, text)| *text)
}
