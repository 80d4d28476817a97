//! What experiments of the paper leave behind, and the claims that are judged by it.

use std::sync::LazyLock;

use phalanx_paper::in_memory::{self, Depth};

use crate::Verdict;
use crate::choices::Choices;
use crate::edit::{Seeds, splice};
use crate::node::Node;
use crate::print;

const RECORD: &str = include_str!("../../seeds/experiment.json");

static RECORDS: LazyLock<Seeds> = LazyLock::new(|| Seeds::new([Node::json(RECORD)]));
static RESULTS: LazyLock<Seeds> =
    LazyLock::new(|| Seeds::new([Node::csv(include_str!("../../seeds/results.csv"))]));

/// Changed results, or a changed record of them; now and then the whole report.
pub fn report(choices: &mut Choices<'_>) -> Verdict {
    let is_record = choices.one_in(4);
    let mut record = RECORD.as_bytes().to_vec();
    if is_record {
        record = print::json(&RECORDS.document(choices)).into_bytes();
        splice(&mut record, 16, choices);
    }
    let mut results = print::table(&RESULTS.document(choices), ',').into_bytes();
    splice(&mut results, 16, choices);
    // Claims are judged by resampling, which takes milliseconds for a few rows, and longer for more.
    let depth = match choices.lot(512) {
        _ if results.len() > 6000 => Depth::Read,
        1 | 2 => Depth::Judge,
        3 => Depth::Write,
        _ => Depth::Read,
    };
    Verdict::of(&in_memory::report(&String::from_utf8_lossy(&record), &results, depth))
}
