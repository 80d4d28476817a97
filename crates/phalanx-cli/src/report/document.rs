//! What the page says of a run: everything that its template names.

use std::path::Path;

use phalanx::Error;
use phalanx::base::key::{ALGORITHM, BATCH, GAMMA, HORIZON, KAPPA, SEED, WORLD_N};
use phalanx::base::{files, text};
use phalanx::run::{Assessment, Config, Evaluator, Registry, RunFolder, Verdict};
use phalanx_pictures::page::data_uri;
use phalanx_pictures::plot::{self, Metrics};
use phalanx_pictures::render::{Reel, check_map, verdict_map};
use serde_json::{Value, json};

/// How the policy of a finished run is judged.
#[derive(Debug, Clone, Copy)]
pub struct Judging {
    pub episodes: usize,
    pub seed: u64,
    pub confidence: f64,
}

/// What the page says.
pub struct Document(pub Value);

/// The resolved configuration in the folder of a run.
const CONFIG: &str = "config.toml";
/// Rows of the table of agents.
const ROWS: usize = 20;
/// Steps of the episode that is shown.
const STEPS: usize = 60;
const FPS: f64 = 4.0;
/// An animation that is larger than this is shown as a few steps side by side.
const MOST_BYTES: usize = 4 << 20;
/// Steps of that picture.
const SHEET: usize = 8;

impl Document {
    /// The run in a folder. Without `judging`, or while it is not finished, there is no verdict.
    pub fn of(run: &Path, registry: &Registry, judging: Option<Judging>) -> anyhow::Result<Self> {
        let config = read(run, CONFIG)?;
        let settings: toml::Table = config.parse().map_err(|error: toml::de::Error| {
            Error::file(run.join(CONFIG), format!("cannot be read: {}", error.message()))
        })?;
        let meta: Value = serde_json::from_str(&read(run, "meta.json")?)
            .map_err(|error| Error::file(run.join("meta.json"), format!("cannot be read: {error}")))?;
        let outcome = RunFolder::outcome(run)?;
        let metrics = run.join("metrics.csv").is_file().then(|| Metrics::read(run));
        // A run that has just begun has no rows.
        let metrics = metrics.and_then(Result::ok);
        let total = Config::read(&run.join(CONFIG))?.iterations;
        let done = metrics.as_ref().map_or(0, |metrics| metrics.iteration.len());
        let mut value = json!({
            "name": plot::name_of(run),
            "reached": metrics.as_ref().map(reached).unwrap_or_default(),
            "figures": if metrics.is_some() { figures(run)? } else { Vec::new() },
            "problem": problem(&settings),
            "utilities": utilities(&settings),
            "commands": commands(run, judging),
            "made": made(&meta),
            "config": config,
            "warnings": [],
        });
        match (outcome, judging) {
            (Some(outcome), Some(judging)) => {
                value["reached"] = closing(&serde_json::to_value(&outcome)?);
                judged(&mut value, run, registry, judging)?;
            }
            (Some(_), None) => {}
            (None, _) => {
                let status = meta["status"].as_str().unwrap_or("unknown");
                let now = format!("Status: {status}. There is no verdict before the end of the run.");
                value["progress"] = json!({ "done": done, "total": total, "now": now });
            }
        }
        value["lead"] = json!(lead(&settings, &value));
        Ok(Document(value))
    }
}

fn read(run: &Path, name: &str) -> phalanx::Result<String> {
    if !run.is_dir() {
        return Err(Error::file(run, "is not the folder of a run"));
    }
    let file = run.join(name);
    files::read_text(&file)
}

/// One line about the run, for a reader who knows nothing of it.
fn lead(settings: &toml::Table, value: &Value) -> String {
    let world = &settings["world"];
    let kind = world.get("kind").and_then(toml::Value::as_str).unwrap_or("unknown");
    let agents = value["problem"].as_array().into_iter().flatten().find(|fact| fact["name"] == "agents");
    let agents = agents.and_then(|fact| fact["value"].as_str()).unwrap_or_default();
    let who = if agents.is_empty() { "Agents".into() } else { format!("{agents} agents") };
    format!("{who} in the environment “{kind}”, trained together; constraints are per agent.")
}

/// Settings that say what was asked for, by name.
fn problem(settings: &toml::Table) -> Vec<Value> {
    let world = settings.get("world").and_then(toml::Value::as_table);
    let kind = world.and_then(|world| world.get("kind")).map(shown).unwrap_or_default();
    let mut facts = vec![fact("environment", kind)];
    for (key, value) in world.into_iter().flatten().filter(|(key, value)| *key != "kind" && !value.is_table())
    {
        facts.push(fact(&format!("world.{key}"), shown(value)));
    }
    for (key, name) in [
        (ALGORITHM, "learning method"),
        (KAPPA, "communication range κ"),
        (GAMMA, "discount γ"),
        (HORIZON, "steps per episode"),
        (BATCH, "episodes per iteration"),
        (SEED, "seed of training"),
    ] {
        facts.extend(settings.get(key).map(|value| fact(name, shown(value))));
    }
    facts
}

fn fact(name: &str, value: String) -> Value {
    json!({ "name": name, "value": value })
}

fn shown(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

/// The objective and the constraints, as the configuration has them.
fn utilities(settings: &toml::Table) -> Vec<Value> {
    let row = |role: &str, utility: &toml::Value| {
        let table = utility.as_table();
        let kind = table.and_then(|table| table.get("kind")).map(shown).unwrap_or_default();
        let others = table.into_iter().flatten().filter(|(key, _)| *key != "kind");
        let others: Vec<String> = others.map(|(key, value)| format!("{key} = {value}")).collect();
        json!({ "role": role, "kind": kind, "settings": others.join(", ") })
    };
    let objective = settings.get("objective").map(|utility| row("objective", utility));
    let constraints = settings.get("constraint").and_then(toml::Value::as_array);
    objective.into_iter().chain(constraints.into_iter().flatten().map(|it| row("constraint", it))).collect()
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

/// Verdicts, the map and an episode of the policy.
fn judged(value: &mut Value, run: &Path, registry: &Registry, judging: Judging) -> anyhow::Result<()> {
    let evaluator = Evaluator::from_run(run, registry)?;
    let agents = evaluator.world().graph().agents();
    value["warnings"] = json!(evaluator.warnings());
    if let Some(facts) = value["problem"].as_array_mut() {
        facts.retain(|fact| fact["name"] != WORLD_N);
        facts.insert(1, fact("agents", agents.to_string()));
        let graph = evaluator.world().graph();
        let ends: usize = (0..agents).map(|agent| graph.neighbours(agent).len()).sum();
        facts.insert(2, fact("links", (ends / 2).to_string()));
    }
    if check_map(&evaluator).is_ok() {
        let assessment = evaluator.assess(judging.episodes, judging.seed, judging.confidence)?;
        value["map"] = json!(data_uri("png", &verdict_map(&evaluator, &assessment, &plot::name_of(run))?));
        value["verdict"] = verdict(assessment, agents);
    }
    value["episode"] = episode(&evaluator, run, judging.seed)?;
    Ok(())
}

fn verdict(mut assessment: Assessment, agents: usize) -> Value {
    let verdicts = assessment.agents(agents);
    let count = |wanted: Verdict| {
        let count = verdicts.iter().filter(|&&verdict| verdict == wanted).count();
        json!({ "verdict": wanted, "count": count })
    };
    let counts = [Verdict::Safe, Verdict::Unsafe, Verdict::Undecided].map(count);
    let all = assessment.constraints.len();
    let percent = 100.0 * assessment.confidence;
    let method = format!(
        "{} fresh episodes of {} steps. All {all} intervals together hold with {percent} % confidence. An agent is \
         safe or unsafe only if whole intervals are on one side of their bounds; else it is undecided.",
        assessment.episodes, assessment.horizon
    );
    assessment.keep_worst(ROWS);
    let rows = assessment.constraints.iter().map(|c| {
        let sign = if c.bound == "at_least" { "≥" } else { "≤" };
        json!({
            "agent": c.agent,
            "constraint": text::name(&c.constraint),
            "value": format!("{:.4}", c.utility.value),
            "interval": format!("{:.4} to {:.4}", c.utility.lower, c.utility.upper),
            "bound": format!("{sign} {}", c.threshold),
            "verdict": c.verdict,
        })
    });
    let rows: Vec<Value> = rows.collect();
    let more = all.saturating_sub(rows.len());
    let more = if more > 0 { format!("{more} more are on the safer side.") } else { String::new() };
    json!({ "counts": counts, "method": method, "rows": rows, "more": more })
}

/// An animation, or a few steps side by side where that would be too large.
fn episode(evaluator: &Evaluator, run: &Path, seed: u64) -> anyhow::Result<Value> {
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

fn commands(run: &Path, judging: Option<Judging>) -> Vec<String> {
    let shown = text::shown(&run.display().to_string());
    let Judging { episodes, seed, confidence } =
        judging.unwrap_or(Judging { episodes: 400, seed: 1, confidence: 0.99 });
    vec![
        format!("phalanx train {shown}/config.toml"),
        format!("phalanx eval {shown} --episodes {episodes} --seed {seed} --confidence {confidence}"),
    ]
}

/// By what it was made.
fn made(meta: &Value) -> String {
    let words = meta["command_line"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let line: Vec<&str> = words.collect();
    let version = meta["version"].as_str().unwrap_or("?");
    let commit = meta["commit"].as_str().unwrap_or("?");
    format!("Made by phalanx {version}, commit {commit}: {}", line.join(" "))
}
