//! What the page says of safety: verdicts, the map of them, and an episode.

use std::path::Path;

use phalanx::base::text;
use phalanx::run::{Assessment, Evaluator, Verdict};
use phalanx_pictures::page::data_uri;
use phalanx_pictures::plot;
use phalanx_pictures::render::Reel;
use serde_json::{Value, json};

/// Rows of the table of constraints.
const ROWS: usize = 20;
/// Steps of the episode that is shown.
const STEPS: usize = 60;
const FPS: f64 = 4.0;
/// An animation that is larger than this is shown as a few steps side by side.
const MOST_BYTES: usize = 4 << 20;
/// Steps of that picture.
const SHEET: usize = 8;

/// Counts, and the constraints in most danger.
pub fn verdict(assessment: &Assessment, agents: usize) -> Value {
    let verdicts = assessment.agents(agents);
    let count = |wanted: Verdict| {
        let count = verdicts.iter().filter(|&&verdict| verdict == wanted).count();
        json!({ "verdict": wanted, "count": count })
    };
    let counts = [Verdict::Safe, Verdict::Unsafe, Verdict::Undecided].map(count);
    let all = assessment.constraints.len() + assessment.tails.len();
    let percent = 100.0 * assessment.confidence;
    let method = format!(
        "{} fresh episodes of {} steps. All {all} intervals together hold with {percent} % confidence. An agent is \
         safe or unsafe only if whole intervals are on one side of their bounds; else it is undecided.",
        assessment.episodes, assessment.horizon
    );
    let mut rows = rows(assessment);
    rows.truncate(ROWS);
    let more = all - rows.len();
    let more = if more > 0 { format!("{more} more are further on the safe side.") } else { String::new() };
    let rows: Vec<Value> = rows.into_iter().map(|row| row.shown).collect();
    json!({ "counts": counts, "method": method, "rows": rows, "more": more })
}

/// A row of the table, and what it is sorted by.
struct Row {
    slack: f64,
    agent: usize,
    shown: Value,
}

/// A row per constraint and per bound on the worst episodes, the least slack first.
fn rows(assessment: &Assessment) -> Vec<Row> {
    let constraints = assessment.constraints.iter().map(|c| {
        let sign = if c.bound == "at_least" { "≥" } else { "≤" };
        let shown = json!({
            "agent": c.agent,
            "constraint": text::name(&c.constraint),
            "value": format!("{:.4}", c.utility.value),
            "interval": format!("{:.4} to {:.4}", c.utility.lower, c.utility.upper),
            "bound": format!("{sign} {}", c.threshold),
            "verdict": c.verdict,
        });
        Row { slack: c.slack, agent: c.agent, shown }
    });
    let tails = assessment.tails.iter().map(|tail| {
        let shown = json!({
            "agent": tail.agent,
            "constraint": format!("{} (worst episodes)", text::name(&tail.constraint)),
            "value": format!("{:.4}", tail.cvar.value),
            "interval": format!("{:.4} to {:.4}", tail.cvar.lower, tail.cvar.upper),
            "bound": format!("≤ {}", tail.threshold),
            "verdict": tail.verdict,
        });
        Row { slack: tail.threshold - tail.cvar.value, agent: tail.agent, shown }
    });
    let mut rows: Vec<Row> = constraints.chain(tails).collect();
    rows.sort_by(|a, b| a.slack.total_cmp(&b.slack).then(a.agent.cmp(&b.agent)));
    rows
}

/// An animation, or a few steps side by side where that would be too large.
pub fn episode(evaluator: &Evaluator, run: &Path, seed: u64) -> anyhow::Result<Value> {
    let steps = evaluator.config().horizon.min(STEPS);
    let title = format!("{}: episode 0 of seed {seed}", plot::name_of(run));
    let reel = Reel::of_policy(evaluator, 0, seed, steps, title)?;
    let all: Vec<usize> = (0..reel.steps()).collect();
    let caption = format!("The first {} steps of an episode of the final policy.", all.len());
    let film = reel.animation(&all, FPS)?;
    if film.len() <= MOST_BYTES {
        return Ok(json!({ "source": data_uri("gif", &film), "caption": caption }));
    }
    let some: Vec<usize> = (0..SHEET).map(|k| k * (all.len() - 1) / (SHEET - 1)).collect();
    Ok(json!({ "source": data_uri("png", &reel.sheet(&some)?), "caption": caption }))
}
