//! Recorded games.

use std::sync::LazyLock;

use phalanx_cli::in_memory;

use crate::Verdict;
use crate::choices::Choices;
use crate::edit::{Seeds, splice};
use crate::node::Node;
use crate::print;

static SEEDS: LazyLock<Seeds> = LazyLock::new(|| {
    let files = [
        include_str!("../../seeds/game-wave.csv"),
        include_str!("../../seeds/game-random.csv"),
        include_str!("../../seeds/game-bare.csv"),
    ];
    Seeds::new(files.map(Node::csv))
});

/// A changed game; what is played again is a game that comes out as it went in.
pub fn replay(choices: &mut Choices<'_>) -> Verdict {
    let document = SEEDS.document(choices);
    let mut bytes = print::table(&document, ',').into_bytes();
    splice(&mut bytes, 16, choices);
    let text = String::from_utf8_lossy(&bytes);
    let played = in_memory::replay(&text);
    if let Ok(played) = &played
        && choices.lot(16) == 0
    {
        let again = in_memory::replay(played).unwrap_or_else(|error| panic!("{error}:\n{played}"));
        assert_eq!(&again, played);
    }
    Verdict::of(&played)
}
