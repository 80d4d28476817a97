//! Tables of utilities, one per agent: what `file` names in an objective or a constraint.

use std::sync::LazyLock;

use phalanx::run::in_memory;
use phalanx::utility::{LocalSpace, UtilitySpec};

use crate::Verdict;
use crate::choices::Choices;
use crate::edit::{Seeds, splice};
use crate::node::Node;
use crate::print;

static SEEDS: LazyLock<Seeds> = LazyLock::new(|| {
    Seeds::new(
        [include_str!("../../seeds/tables.json"), include_str!("../../seeds/expert.json")].map(Node::json),
    )
});

/// Kinds of utilities that tables are for.
const KINDS: [&str; 7] = [
    "linear",
    "neg_l2_expert",
    "neg_l2sq_expert",
    "neg_kl_expert",
    "neg_dist_box",
    "neg_dist_halfspace",
    "neg_dist_ball",
];

/// Utilities from tables, their values, slopes and ranges.
pub fn utilities(choices: &mut Choices<'_>) -> Verdict {
    let kind = KINDS[choices.below(KINDS.len())].to_string();
    let mut document = SEEDS.document(choices);
    // A kind refuses tables that it does not use.
    if !choices.one_in(8)
        && let Node::Map(entries) = &mut document
    {
        entries.retain(|(key, _)| is_for(&kind, key));
    }
    let mut bytes = print::json(&document).into_bytes();
    splice(&mut bytes, 16, choices);
    let text = String::from_utf8_lossy(&bytes);
    let space = LocalSpace { states: 2, actions: 2, gamma: 0.9 };
    let spec = UtilitySpec { kind, ..UtilitySpec::default() };
    let utilities = in_memory::utilities(&text, &spec, &[space; 2]);
    for utility in utilities.iter().flatten() {
        let mut slope = [0.0; 4];
        let occupancy = [5.0, 0.0, f64::from(choices.byte()) / 32.0, 2.0];
        utility.value(&occupancy, space);
        utility.gradient(&occupancy, space, &mut slope);
        utility.range(space, 10.0);
    }
    Verdict::of(&utilities)
}

fn is_for(kind: &str, key: &str) -> bool {
    match key {
        "r" => kind == "linear",
        "lambda" | "expert" => kind.ends_with("_expert"),
        "lo" | "hi" => kind == "neg_dist_box",
        "a" | "b" => kind == "neg_dist_halfspace",
        "center" | "radius" => kind == "neg_dist_ball",
        _ => true,
    }
}
