//! Recorded games.

use std::sync::LazyLock;

use phalanx_cli::in_memory;

use crate::Verdict;
use crate::choices::Choices;
use crate::edit::{Seeds, splice};
use crate::node::Node;
use crate::print;

/// Worlds and their games.
static SEEDS: LazyLock<[(&str, Seeds); 2]> = LazyLock::new(|| {
    let games = [
        include_str!("../../seeds/game-wave.csv"),
        include_str!("../../seeds/game-random.csv"),
        include_str!("../../seeds/game-bare.csv"),
    ];
    let drives = [include_str!("../../seeds/drive-crash.csv"), include_str!("../../seeds/drive-bare.csv")];
    [("pistonball", Seeds::new(games.map(Node::csv))), ("platoon", Seeds::new(drives.map(Node::csv)))]
});

/// A changed game; what is played again is a game that comes out as it went in.
pub fn replay(choices: &mut Choices<'_>) -> Verdict {
    let (world, seeds) = &SEEDS[choices.below(2)];
    let document = seeds.document(choices);
    let mut bytes = print::table(&document, ',').into_bytes();
    splice(&mut bytes, 16, choices);
    let text = String::from_utf8_lossy(&bytes);
    let played = in_memory::replay(world, &text);
    if let Ok(played) = &played
        && choices.lot(16) == 0
    {
        let again = in_memory::replay(world, played).unwrap_or_else(|error| panic!("{error}:\n{played}"));
        assert_eq!(&again, played);
    }
    Verdict::of(&played)
}
