//! What a run leaves behind for people: outcome, tables and figures.

use std::sync::LazyLock;

use phalanx::base::sealed;
use phalanx::run::in_memory;
use phalanx_pictures::plot;

use crate::Verdict;
use crate::choices::Choices;
use crate::edit::{Seeds, splice};
use crate::node::Node;
use crate::print;

static OUTCOMES: LazyLock<Seeds> =
    LazyLock::new(|| Seeds::new([Node::json(include_str!("../../seeds/outcome.json"))]));
static METAS: LazyLock<Seeds> =
    LazyLock::new(|| Seeds::new([Node::json(include_str!("../../seeds/meta.json"))]));

/// A changed `outcome.json`, or `meta.json`.
pub fn outcome(choices: &mut Choices<'_>) -> Verdict {
    let is_meta = choices.one_in(4);
    let seeds = if is_meta { &METAS } else { &OUTCOMES };
    let mut bytes = print::json(&seeds.document(choices)).into_bytes();
    splice(&mut bytes, 16, choices);
    let text = String::from_utf8_lossy(&bytes);
    if is_meta {
        return Verdict::of(&in_memory::is_finished(&text));
    }
    Verdict::of(&in_memory::outcome(&text))
}

static USUAL: LazyLock<Seeds> =
    LazyLock::new(|| Seeds::new([Node::Map(vec![("states".into(), Node::wholes([0, 2, 1]))])]));

/// Changed usual states, with a checksum that fits.
pub fn usual_states(choices: &mut Choices<'_>) -> Verdict {
    let mut bytes = print::json(&USUAL.document(choices)).into_bytes();
    splice(&mut bytes, 16, choices);
    let text = String::from_utf8_lossy(&bytes);
    let text = if choices.one_in(8) { text.into_owned() } else { sealed::seal(text.trim_end()) };
    Verdict::of(&in_memory::usual_states(&text, &[1, 3, 2]))
}

static METRICS: LazyLock<Seeds> = LazyLock::new(|| {
    let files = [include_str!("../../seeds/metrics.csv"), include_str!("../../seeds/metrics-exact.csv")];
    Seeds::new(files.map(Node::csv))
});
static AGENTS: LazyLock<Seeds> =
    LazyLock::new(|| Seeds::new([Node::csv(include_str!("../../seeds/agents.csv"))]));
static SUMMARIES: LazyLock<Seeds> =
    LazyLock::new(|| Seeds::new([Node::csv(include_str!("../../seeds/agents-summary.csv"))]));

/// The tables of a run, one of them changed; now and then its figures are drawn.
pub fn figures(choices: &mut Choices<'_>) -> Verdict {
    let changed = choices.below(3);
    let seeds: [&Seeds; 3] = [&METRICS, &AGENTS, &SUMMARIES];
    let mut files = seeds.map(Seeds::plain);
    files[changed] = seeds[changed].document(choices);
    let [metrics, agents, summary] = files.map(|file| {
        let mut bytes = print::table(&file, ',').into_bytes();
        splice(&mut bytes, 32, choices);
        bytes
    });
    let figures = plot::in_memory::of_run(&metrics, &agents, &summary);
    if let Ok(figures) = &figures
        && choices.lot(512) == 0
    {
        let (_, figure) = &figures[choices.below(figures.len())];
        // Why something cannot be drawn is a message.
        let _ = plot::canvas::draw(std::slice::from_ref(figure));
    }
    Verdict::of(&figures)
}
