//! `phalanx eval` and `phalanx occupancy`.

use std::path::{Path, PathBuf};

use phalanx::algorithm::{DeviceChoice, EvaluationDevice};
use phalanx::base::durable;
use phalanx::policy::LINKS;
use phalanx::run::{
    Assessment, Config, Evaluator, ExactEvaluation, Registry, RunFolder, Verdict, WORST_LISTED,
};
use phalanx_pictures::plot;
use phalanx_pictures::render::{check_map, verdict_map};
use serde_json::json;

use crate::links::LinkArgs;
use crate::progress::while_judging;
use crate::{Source, on_threads, open_run, print, say, table};

/// A run with its own policy, or a preset or file with the policy that is named.
#[derive(clap::Args)]
pub struct PolicyArgs {
    /// Run folder, preset or TOML file.
    #[arg(value_name = "RUN|PRESET|FILE.toml")]
    pub source: String,
    /// Change a setting of a preset or file; of a run's configuration, a key of its world, links or
    /// evaluation.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Policy of a preset or file: uniform, or one that its world knows (wireless: matching; pistonball:
    /// still, random, wave; platoon: constant0 to constant3, look-ahead, linear; epidemic: none, protect,
    /// treat, both; junctions: fixed-time, cycle, safe-cycle, max-pressure and others, with `:K` for the
    /// first K phases and `@S` for seconds).
    #[arg(long)]
    pub policy: Option<String>,
}

/// What stands below the flags in `phalanx help eval`.
const WHAT_SAFE_MEANS: &str = "\
What a verdict means:\n\
\n\
A constraint is kept in expectation: on average over episodes from the start, with step k weighed\n\
by gamma^k. Single episodes may be worse, and late steps count less. `ever` and `chance` bound the\n\
share of episodes instead, and `cvar` the mean of the worst ones.\n\
\n\
An agent is safe if all its intervals lie on the right side of their bounds, unsafe if one lies on\n\
the wrong side, and else undecided. All intervals together hold with the stated confidence.\n\
\n\
A verdict is about the policy as it was judged, in the simulated environment: with these links,\n\
starts and agents. It says nothing about training, nor about a real system that differs from its\n\
model. With --greedy it is another policy. If you judge several runs and keep the best, judge that\n\
one again with another --seed.";

#[derive(clap::Args)]
#[command(after_long_help = WHAT_SAFE_MEANS)]
pub struct EvalArgs {
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    links: LinkArgs,
    /// How many episodes to run.
    #[arg(long, default_value_t = 400)]
    episodes: usize,
    /// Go on until every agent is judged safe or unsafe; --episodes is not used then.
    #[arg(long)]
    until_decided: bool,
    /// Most episodes of --until-decided.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, requires = "until_decided")]
    max_episodes: usize,
    /// Seed of these episodes; they share no numbers with training.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Confidence of all constraints' intervals together.
    #[arg(long, default_value_t = 0.99)]
    confidence: f64,
    /// Take the most likely action instead of drawing one.
    #[arg(long)]
    greedy: bool,
    /// Threads to use [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Where to simulate and count: cpu, cuda, or auto (a GPU if there is one and the work is large enough).
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
    /// Draw every agent's verdict on the graph; in junctions on the map of roads.
    #[arg(long, value_name = "FILE.png")]
    map: Option<PathBuf>,
}

#[derive(clap::Args)]
pub struct OccupancyArgs {
    /// Folder of the run.
    run: PathBuf,
    /// JSON file to write.
    #[arg(long, value_name = "FILE.json")]
    out: PathBuf,
    /// How many episodes to run.
    #[arg(long, default_value_t = 400)]
    episodes: usize,
    /// Seed of these episodes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads to use [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// `phalanx eval`.
pub fn eval(args: &EvalArgs, registry: &Registry) -> anyhow::Result<()> {
    let device = EvaluationDevice::new(DeviceChoice::from_name(&args.device)?);
    args.map.as_deref().map_or(Ok(()), RunFolder::check_output)?;
    on_threads(args.threads, || {
        let sets = args.links.sets();
        let opened = args.policy.open_with(&sets, registry);
        let evaluator = if sets.is_empty() { opened } else { opened.map_err(LinkArgs::name_flag) }?;
        // Among them that an old run does not say which states are usual.
        let has_links = !evaluator.config().links.is_off();
        let warnings = evaluator.warnings().iter().filter(|_| has_links);
        warnings.for_each(|warning| say(&format!("warning: {warning}")));
        let evaluator = if args.greedy { evaluator.greedy() } else { evaluator }.on_device(device)?;
        args.map.as_ref().map_or(Ok(()), |_| check_map(&evaluator))?;
        let (assessment, looks) = assess(args, &evaluator)?;
        if let Some(file) = &args.map {
            durable::replace_bytes(file, &verdict_map(&evaluator, &assessment, &args.policy.title())?)?;
        }
        let exact = evaluator.exact().unwrap_or_else(|error| {
            say(&format!("warning: there is no exact evaluation: {error}"));
            None
        });
        if args.json {
            print(&format!("{}\n", in_json(args, &evaluator, (assessment, looks), exact.as_ref())?));
        } else {
            print(&table::assessment(&evaluator, assessment, exact.as_ref()));
        }
        Ok(())
    })?
}

/// The assessment; where it went on until all was decided, also its looks and the episodes that were
/// predicted.
fn assess(args: &EvalArgs, evaluator: &Evaluator) -> phalanx::Result<(Assessment, Option<Looks>)> {
    if !args.until_decided {
        let assess = || evaluator.assess(args.episodes, args.seed, args.confidence);
        return Ok((while_judging(evaluator, args.json, assess)?, None));
    }
    let mut told = false;
    let report = |assessment: &Assessment, predicted: Option<usize>| {
        let open = assessment.constraints.iter().filter(|c| c.verdict == Verdict::Undecided).count();
        say(&format!("{} episodes: {open} constraints undecided", assessment.episodes));
        if let Some(predicted) = predicted.filter(|_| !std::mem::replace(&mut told, true)) {
            say(&format!(
                "about {predicted} episodes will decide all of them, if estimates stay as they are"
            ));
        }
    };
    let found = evaluator.assess_until_decided(args.max_episodes, args.seed, args.confidence, report)?;
    Ok((found.assessment, Some((found.looks, found.predicted))))
}

/// Looks, and the number of episodes that the first one predicted.
type Looks = (usize, Option<usize>);

impl PolicyArgs {
    /// What pictures of it are called.
    pub fn title(&self) -> String {
        let path = Path::new(&self.source);
        let name = if path.is_dir() { plot::name_of(path) } else { self.source.clone() };
        let policy = self.policy.as_ref().map(|policy| format!(", policy {policy}")).unwrap_or_default();
        format!("{name}{policy}")
    }

    /// The policy in its world.
    pub fn open(&self, registry: &Registry) -> phalanx::Result<Evaluator> {
        self.open_with(&[], registry)
    }

    /// The same with more settings than those given by `--set`.
    pub fn open_with(&self, more: &[String], registry: &Registry) -> phalanx::Result<Evaluator> {
        let sets = [&self.sets, more].concat();
        let refused = |message: String| Err(phalanx::Error::argument("policy", message));
        if let Some(evaluator) = open_run(&self.source, &sets, registry)? {
            return match &self.policy {
                Some(policy) => refused(format!(
                    "`{policy}` was given with a run, whose own policy is used; leave it out"
                )),
                None => Ok(evaluator),
            };
        }
        let source = Source { source: self.source.clone(), sets };
        let config: Config = source.load(None, registry)?;
        match self.policy.as_deref() {
            // The initial table is the uniform one, unless the configuration perturbs it.
            Some("uniform") if config.policy.tables().is_some() => {
                Evaluator::new(&config.with("policy.init_std", "0.0")?)
            }
            Some(name) => Evaluator::scripted(&config, name),
            None => refused(
                "is missing: a preset or file has no trained policy; use --policy uniform, or name a run"
                    .into(),
            ),
        }
    }
}

fn in_json(
    args: &EvalArgs,
    evaluator: &Evaluator,
    (mut assessment, looks): (Assessment, Option<Looks>),
    exact: Option<&ExactEvaluation>,
) -> serde_json::Result<String> {
    let n = evaluator.world().graph().agents();
    let verdicts = assessment.agents(n);
    let constraints = assessment.constraints.len();
    if !evaluator.config().output.agents.lists_all(n) {
        assessment.keep_worst(WORST_LISTED);
    }
    let count = |wanted: Verdict| verdicts.iter().filter(|&&verdict| verdict == wanted).count();
    let mut value = serde_json::to_value(assessment)?;
    value["exact"] = serde_json::to_value(exact)?;
    value["constraint_count"] = json!(constraints);
    value["source"] = json!(args.policy.source);
    value["seed"] = json!(args.seed);
    value["greedy"] = json!(args.greedy);
    if !evaluator.config().links.is_off() {
        value[LINKS] = serde_json::to_value(&evaluator.config().links)?;
    }
    if let Some((looks, predicted)) = looks {
        value["looks"] = json!(looks);
        value["predicted_episodes"] = json!(predicted);
    }
    value["safe"] = json!(count(Verdict::Safe));
    value["unsafe"] = json!(count(Verdict::Unsafe));
    value["undecided"] = json!(count(Verdict::Undecided));
    serde_json::to_string(&value)
}

/// `phalanx occupancy`.
pub fn occupancy(args: &OccupancyArgs, registry: &Registry) -> anyhow::Result<()> {
    on_threads(args.threads, || {
        RunFolder::check_output(&args.out)?;
        let evaluator = Evaluator::from_run(&args.run, registry)?;
        let lambda = evaluator.occupancy(args.episodes, args.seed)?;
        let rows: Vec<&[f64]> = lambda.iter().collect();
        let text = json!({ "gamma": evaluator.problem().gamma, "lambda": rows }).to_string();
        durable::replace_bytes(&args.out, (text + "\n").as_bytes())?;
        say(&format!(
            "λ of {} agents over {} episodes is in {}",
            rows.len(),
            args.episodes,
            args.out.display()
        ));
        Ok(())
    })?
}
