//! What the page says of a run: everything that its template names.

use std::path::Path;

use phalanx::Error;
use phalanx::base::files;
use phalanx::run::{Evaluator, Registry, RunFolder};
use phalanx_pictures::page::data_uri;
use phalanx_pictures::plot::{self, Metrics};
use phalanx_pictures::render::{check_map, verdict_map};
use serde_json::{Value, json};

use super::problem::{ProblemPart, fact};
use super::repeat;
use super::verdict::{episode, verdict};
use crate::progress::while_judging;
use crate::shell;

/// How the policy of a finished run is judged.
#[derive(Debug, Clone, Copy)]
pub struct Judging {
    pub episodes: usize,
    pub seed: u64,
    pub confidence: f64,
}

impl Default for Judging {
    fn default() -> Self {
        Judging { episodes: 400, seed: 1, confidence: 0.99 }
    }
}

/// What the page says.
#[derive(Clone)]
pub struct Document {
    pub value: Value,
    /// Whether the run has come to its end, so that its policy can be judged.
    pub is_finished: bool,
}

impl Document {
    /// The run in a folder as its files are now, without a verdict.
    pub fn of(run: &Path, problem: &ProblemPart, judging: Judging) -> anyhow::Result<Self> {
        let text = files::read_text(&run.join("meta.json"))?;
        let meta: Value = serde_json::from_str(&text)
            .map_err(|error| Error::file(run.join("meta.json"), format!("cannot be read: {error}")))?;
        let outcome = RunFolder::outcome(run)?;
        let metrics = Metrics::read_if_any(run)?;
        let mut value = json!({
            "name": plot::name_of(run),
            "lead": problem.lead,
            "reached": metrics.as_ref().map(reached).unwrap_or_default(),
            "figures": if metrics.is_some() { figures(run)? } else { Vec::new() },
            "problem": problem.facts,
            "utilities": problem.utilities,
            "graph": problem.map,
            "began": repeat::beginning(run),
            "commands": repeat::commands(run, judging),
            "made": made(&meta),
            "config": problem.config,
            "warnings": problem.warnings,
        });
        match &outcome {
            Some(outcome) => value["reached"] = closing(&serde_json::to_value(outcome)?),
            None => {
                let done = metrics.as_ref().map_or(0, |metrics| metrics.iteration.len());
                let status = meta["status"].as_str().unwrap_or("unknown");
                let now = format!("Status: {status}. There is no verdict before the end of the run.");
                value["progress"] = json!({ "done": done, "total": problem.iterations, "now": now });
            }
        }
        Ok(Document { value, is_finished: outcome.is_some() })
    }

    /// Adds verdicts, their map and an episode of the policy.
    pub fn judge(&mut self, run: &Path, registry: &Registry, judging: Judging) -> anyhow::Result<()> {
        let evaluator = Evaluator::from_run(run, registry)?;
        evaluator.warnings().iter().for_each(|warning| self.warn(warning));
        if check_map(&evaluator).is_ok() {
            let Judging { episodes, seed, confidence } = judging;
            let assess = || evaluator.assess(episodes, seed, confidence);
            let assessment = while_judging(&evaluator, false, assess)?;
            let map = verdict_map(&evaluator, &assessment, &plot::name_of(run))?;
            self.value["verdict"] = verdict(&assessment, evaluator.world().graph().agents());
            self.value["map"] = json!(data_uri("png", &map));
            // The same graph, with verdicts.
            self.value["graph"] = Value::Null;
        }
        self.value["episode"] = episode(&evaluator, run, judging.seed)?;
        Ok(())
    }

    /// Adds a warning.
    pub fn warn(&mut self, warning: &str) {
        if let Some(warnings) = self.value["warnings"].as_array_mut() {
            warnings.push(json!(warning));
        }
    }
}

/// The last row of the metrics.
fn reached(metrics: &Metrics) -> Vec<Value> {
    let last = |column: &[f64]| column.last().copied().filter(|value| value.is_finite());
    let facts = [
        ("return, last training batch", last(&metrics.return_)),
        ("objective", last(&metrics.objective)),
        ("total violation", last(&metrics.violation_total)),
        ("largest multiplier", last(&metrics.mu_largest)),
    ];
    let facts = facts.into_iter().filter_map(|(name, value)| Some(fact(name, format!("{:.4}", value?))));
    facts.collect()
}

/// What `outcome.json` says.
fn closing(outcome: &Value) -> Value {
    let mut facts = Vec::new();
    for (key, name) in [
        ("return", "return per agent and episode"),
        ("objective", "objective"),
        ("violation_total", "total violation"),
        ("violation_max", "largest violation"),
        ("wall_s", "seconds of training"),
    ] {
        facts.extend(outcome[key].as_f64().map(|number| fact(name, format!("{number:.4}"))));
    }
    for (key, name) in
        [("evaluation_episodes", "episodes of the closing evaluation"), ("agent_steps", "agent-steps")]
    {
        facts.extend(outcome[key].as_u64().map(|number| fact(name, number.to_string())));
    }
    json!(facts)
}

fn figures(run: &Path) -> anyhow::Result<Vec<Value>> {
    let figures = plot::draw_run(run)?.into_iter().map(|(name, drawing)| {
        let caption = match name {
            "return" => "Return, by iteration.",
            "violation" => "Violation, by iteration: of training batches, whose noise counts as violation.",
            "duals" => "Multipliers, by iteration: the price of each constraint.",
            "stationarity" => "How far parameters and multipliers are from a stationary point.",
            _ => "Slack of every constraint in the closing evaluation: estimates, without intervals.",
        };
        json!({ "source": data_uri("svg+xml", drawing.svg.as_bytes()), "caption": caption })
    });
    Ok(figures.collect())
}

/// By what it was made.
fn made(meta: &Value) -> String {
    let words = meta["command_line"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let line: Vec<String> = words.map(shell::quoted_word).collect();
    let version = meta["version"].as_str().unwrap_or("?");
    let commit = meta["commit"].as_str().unwrap_or("?");
    format!("Made by phalanx {version}, commit {commit}: {}", line.join(" "))
}
