//! Model files: as worlds, and with a policy and multipliers for exact results.

use std::path::Path;
use std::sync::LazyLock;

use phalanx::exact::{Case, Dynamics, optimum, report};
use phalanx::world::{Table, World, check};

use crate::Verdict;
use crate::choices::Choices;
use crate::edit::{Seeds, splice};
use crate::node::Node;
use crate::print;

static SEEDS: LazyLock<Seeds> = LazyLock::new(|| {
    let files = [
        include_str!("../../seeds/one-agent.json"),
        include_str!("../../seeds/two-agents.json"),
        include_str!("../../seeds/line3-entropy.json"),
        include_str!("../../seeds/paper-line5.json"),
    ];
    Seeds::new(files.map(Node::json)).with("kind", &KINDS)
});

/// Names of utilities that no file has.
const KINDS: [&str; 4] = ["active_l2", "action_l2sq", "neg_l2_expert", "neg_kl_expert"];

/// A changed model, as JSON or TOML.
fn text(choices: &mut Choices<'_>) -> (String, &'static Path) {
    let document = SEEDS.document(choices);
    let is_toml = choices.one_in(4);
    let mut bytes = if is_toml { print::toml(&document) } else { print::json(&document) }.into_bytes();
    splice(&mut bytes, 16, choices);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (text, Path::new(if is_toml { "model.toml" } else { "model.json" }))
}

/// A model as a world.
pub fn world(choices: &mut Choices<'_>) -> Verdict {
    let (text, path) = text(choices);
    let table = Table::parse(&text, path);
    if let Ok(table) = &table
        && (0..table.graph().agents()).map(|i| table.states(i) * table.actions(i)).sum::<usize>() <= 64
        && choices.lot(16) == 0
    {
        // It is stricter than the reader, which knows how many digits files have: a word from it is no fault.
        let _ = check(table);
    }
    Verdict::of(&table)
}

/// A model with a policy and multipliers; of small ones everything that can be said exactly.
pub fn exact(choices: &mut Choices<'_>) -> Verdict {
    let (text, path) = text(choices);
    let case = Case::parse(&text, path);
    let Ok(case) = case else { return Verdict::of(&case) };
    let pairs = (0..case.world.graph().agents()).map(|i| case.world.states(i) * case.world.actions(i));
    let pairs = pairs.fold(1usize, usize::saturating_mul);
    let is_short = case.algorithm.is_none_or(|algorithm| algorithm.iterations <= 3);
    if pairs > 64 || !is_short {
        return Verdict::Accepted;
    }
    match choices.lot(64) {
        1..=3 => Verdict::of(&report(&case)),
        4 => Verdict::of(&Dynamics::new(&case.world).and_then(|dynamics| optimum(&dynamics, &case.problem))),
        _ => Verdict::Accepted,
    }
}
