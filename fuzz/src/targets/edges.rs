//! Edge lists.

use std::path::Path;
use std::sync::LazyLock;

use phalanx::graph::Graph;
use phalanx::run::preset;

use crate::Verdict;
use crate::choices::Choices;
use crate::edit::{Seeds, splice};
use crate::node::Node;
use crate::print;

static SEEDS: LazyLock<Seeds> = LazyLock::new(|| {
    let club = preset::builtin(Path::new("preset:karate-club.txt")).unwrap_or_default();
    let files = [include_str!("../../seeds/ring.txt"), include_str!("../../seeds/star.txt"), club];
    let plain = |text: &str| text.replace([' ', '\t'], ",");
    Seeds::new(files.map(|text| Node::csv(&plain(text))))
});

/// An edge list with or without a number of agents; of small graphs the neighbourhoods.
pub fn edges(choices: &mut Choices<'_>) -> Verdict {
    let document = SEEDS.document(choices);
    let separator = [' ', ',', '\t'][choices.below(3)];
    let mut bytes = print::table(&document, separator).into_bytes();
    splice(&mut bytes, 16, choices);
    let text = String::from_utf8_lossy(&bytes);
    let agents = [None, None, Some(6), Some(40), Some(choices.number() as u32 as usize)][choices.below(5)];
    // A graph of many agents is refused or made, and takes as long as there are agents.
    let largest =
        text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse::<u64>().ok()).max();
    if agents.unwrap_or(0) > 100_000 || agents.is_none() && (100_000..1 << 32).contains(&largest.unwrap_or(0))
    {
        return Verdict::Refused;
    }
    let graph = Graph::parse_edge_list(&text, Path::new("edges.txt"), agents);
    if let Ok(graph) = &graph
        && graph.agents() <= 64
    {
        graph.neighbourhoods(choices.below(4));
    }
    Verdict::of(&graph)
}
