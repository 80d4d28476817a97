//! Files of sweeps.

use std::sync::LazyLock;

use phalanx_cli::in_memory;

use crate::Verdict;
use crate::choices::Choices;
use crate::edit::{Seeds, splice};
use crate::node::Node;
use crate::print;

static SEEDS: LazyLock<Seeds> = LazyLock::new(|| {
    let files = [
        include_str!("../../seeds/sweep-grid.toml"),
        include_str!("../../seeds/sweep-random.toml"),
        include_str!("../../seeds/sweep-plain.toml"),
    ];
    Seeds::new(files.map(Node::toml)).with("base", &["feasibility", "paper/synthetic"])
});

/// Configurations that are made for one input at most.
const MOST: usize = 6;

/// A sweep, its settings, and the configurations of its runs if they are few.
pub fn sweep(choices: &mut Choices<'_>) -> Verdict {
    let mut document = SEEDS.document(choices);
    make_few(&mut document);
    let mut bytes = print::toml(&document).into_bytes();
    splice(&mut bytes, 16, choices);
    let text = String::from_utf8_lossy(&bytes);
    Verdict::of(&in_memory::sweep(&text, MOST))
}

/// Runs that are listed for one input at most: tens of thousands are allowed, and take a while to list.
const LISTED: i128 = 300;

/// Replaces numbers of samples and seeds that are allowed, but large.
fn make_few(node: &mut Node) {
    let Node::Map(entries) = node else { return };
    for (key, value) in entries {
        match value {
            Node::Whole(count @ LISTED..=100_000) if key == "samples" || key == "seeds" => *count %= LISTED,
            value => make_few(value),
        }
    }
}
