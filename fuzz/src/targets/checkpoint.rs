//! Checkpoints: manifests and files of state.

use std::sync::LazyLock;

use phalanx::base::sealed::seal;
use phalanx::run::in_memory::{Checkpoint, restore};

use super::tensors::{RUNS, session, state, with_session};
use crate::Verdict;
use crate::choices::Choices;
use crate::edit::{Seeds, splice};
use crate::node::Node;
use crate::print;

/// The file of state of every run, whole.
static WHOLE: LazyLock<Vec<Seeds>> = LazyLock::new(|| {
    let whole = |run| {
        let mut session = session(run);
        let agents = 0..session.world().graph().agents();
        Seeds::new([state(&mut session, agents)])
    };
    (0..RUNS.len()).map(whole).collect()
});

/// The same of the first run in two pieces.
static PIECES: LazyLock<[Vec<u8>; 2]> =
    LazyLock::new(|| [0..1, 1..3].map(|agents| print::safetensors(&state(&mut session(0), agents), false)));

static MANIFESTS: LazyLock<Seeds> = LazyLock::new(|| {
    let manifest = |pieces: &[(usize, usize, &[u8])]| {
        let piece = |&(first, last, bytes): &(usize, usize, &[u8])| {
            let numbers = [("first", first), ("last", last), ("crc32c", crc32c::crc32c(bytes) as usize)];
            Node::Map(numbers.map(|(key, number)| (key.into(), Node::Whole(number as i128))).into())
        };
        let counts = ["metrics_bytes", "timings_bytes", "events_bytes", "config_crc32c"];
        let mut entries = vec![("iteration".into(), Node::Whole(2)), ("elapsed_s".into(), Node::Real(0.5))];
        entries.extend(counts.map(|key| (key.into(), Node::Whole(300))));
        entries.push(("pieces".into(), Node::List(pieces.iter().map(piece).collect())));
        Node::Map(entries)
    };
    let [first, second] = &*PIECES;
    Seeds::new([manifest(&[(0, 0, first), (1, 2, second)])])
});

/// A changed file of state in a manifest that fits, and sometimes an iteration from there.
pub fn state_file(choices: &mut Choices<'_>) -> Verdict {
    let run = choices.below(RUNS.len());
    let mut bytes = print::safetensors(&WHOLE[run].document(choices), !choices.one_in(4));
    splice(&mut bytes, 16, choices);
    let manifest = format!(
        "{{\"iteration\":2,\"elapsed_s\":0.5,\"metrics_bytes\":0,\"timings_bytes\":0,\"events_bytes\":0,\
         \"config_crc32c\":0,\"pieces\":[{{\"first\":0,\"last\":1,\"crc32c\":{}}}]}}",
        crc32c::crc32c(&bytes)
    );
    let checkpoint = Checkpoint { manifest: &manifest, iteration: 2, pieces: &[bytes], is_checked: true };
    if choices.lot(64) != 0 {
        return with_session(run, |session| Verdict::of(&restore(session, &checkpoint)));
    }
    let mut session = session(run);
    Verdict::of(&restore(&mut session, &checkpoint).and_then(|()| session.advance()))
}

/// A changed manifest of two pieces.
pub fn manifest(choices: &mut Choices<'_>) -> Verdict {
    // Most forged manifests are well-formed: it is their numbers that lie.
    let document = if choices.below(4) == 0 {
        MANIFESTS.document(choices)
    } else {
        let mut document = MANIFESTS.plain();
        for _ in 0..=choices.below(3) {
            MANIFESTS.edit_leaf(&mut document, choices);
        }
        document
    };
    let mut bytes = print::json(&document).into_bytes();
    splice(&mut bytes, 48, choices);
    let mut manifest = String::from_utf8_lossy(&bytes).into_owned();
    // With a checksum of its own, as whoever forges one would write it, or as earlier versions wrote it.
    if choices.one_in(2) {
        manifest = seal(&manifest);
    }
    if choices.one_in(48) {
        // A checksum that does not fit.
        manifest = manifest.replacen('3', "4", 1);
    }
    let is_checked = choices.one_in(2);
    let checkpoint = Checkpoint { manifest: &manifest, iteration: 2, pieces: &PIECES[..], is_checked };
    with_session(0, |session| Verdict::of(&restore(session, &checkpoint)))
}
