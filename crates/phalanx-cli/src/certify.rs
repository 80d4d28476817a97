//! `phalanx certify`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use phalanx::Error;
use phalanx::algorithm::{DeviceChoice, Summary};
use phalanx::run::certify::{
    AttemptReport, Certificate, Certification, CertifySettings, CertifySource, Infeasible, Unmet, certify,
};
use phalanx::run::{Config, Registry, RunFolder};

use crate::progress::TrainingProgress;
use crate::stop::Stop;
use crate::train::provenance;
use crate::{Source, on_threads, print, say};

#[derive(clap::Args)]
pub struct CertifyArgs {
    /// Run folder, preset or TOML file.
    #[arg(value_name = "RUN|PRESET|FILE.toml", required_unless_present = "check")]
    source: Option<String>,
    /// Change a setting of a preset or file.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Confidence of the certificate.
    #[arg(long, default_value_t = 0.99)]
    confidence: f64,
    /// Folder for certificate, policy and attempts: new, empty, or that of the same certification, which
    /// then goes on [default: runs/<name>-certified].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Attempts before it is given up.
    #[arg(long, value_name = "R", default_value_t = 5)]
    max_attempts: usize,
    /// Episodes that the first attempt is judged on [default: what agents and constraints ask for].
    #[arg(long, value_name = "N")]
    episodes: Option<usize>,
    /// Seed of training (overrides the configuration's) and of the episodes that judge.
    #[arg(long)]
    seed: Option<u64>,
    /// Check a certificate instead: repeat its episodes and compare every number.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["source", "sets", "out", "episodes"])]
    check: Option<PathBuf>,
    /// With --check: judge on new episodes of this seed.
    #[arg(long, value_name = "SEED", requires = "check")]
    fresh: Option<u64>,
    /// Where to train and judge: cpu, cuda, or auto [default: the configuration's, which is cpu].
    #[arg(long, value_name = "DEVICE", conflicts_with = "check")]
    device: Option<String>,
    /// Threads to use [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one line of JSON at the end and nothing else.
    #[arg(long)]
    json: bool,
}

/// `phalanx certify`.
pub fn run(args: &CertifyArgs, registry: &Registry) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    on_threads(args.threads, || match (&args.check, &args.source) {
        (Some(file), _) => check(args, file, registry, &stop),
        (None, Some(source)) => make(args, source, registry, &stop),
        (None, None) => Err(Error::argument("check", "a source or --check FILE is needed").into()),
    })?
}

fn make(args: &CertifyArgs, source: &str, registry: &Registry, stop: &Stop) -> anyhow::Result<()> {
    let out = args.out.clone().unwrap_or_else(|| unused(source));
    let settings = CertifySettings {
        confidence: args.confidence,
        max_attempts: args.max_attempts,
        episodes: args.episodes,
        seed: args.seed.unwrap_or(1).min(1 << 40),
        device: args.device.as_deref().map(DeviceChoice::from_name).transpose()?,
        out: out.clone(),
        provenance: provenance(),
    };
    let run = Path::new(source);
    let config = if run.is_dir() {
        if !args.sets.is_empty() {
            return Err(Error::argument("set", "goes with a preset or a file, not with a run").into());
        }
        None
    } else {
        Some(Source { source: source.into(), sets: args.sets.clone() }.load(args.seed, registry)?)
    };
    let from = config.as_ref().map_or(CertifySource::Run(run), CertifySource::Config);
    if config.is_none() && !args.json {
        say("attempt 1: judging the policy of the run");
    }
    let iterations = match &config {
        Some(config) => config.iterations,
        None => Config::of_run(run)?.iterations,
    };
    let mut attempts = Attempts { iterations, is_quiet: args.json, now: None };
    let mut progress = |attempt: usize, summary: &Summary| attempts.show(attempt, summary);
    let mut report = |report: &AttemptReport| {
        if !args.json {
            say(&attempt_line(report));
        }
    };
    let found = certify(&from, registry, &settings, &stop.flag, &mut progress, &mut report);
    attempts.clear();
    let found = found?;
    if args.json {
        let mut value = serde_json::to_value(&found)?;
        value["out"] = out.display().to_string().into();
        print(&format!("{value}\n"));
    }
    match found {
        Certification::Certified { certificate } => {
            if !args.json {
                print(&certified(&certificate, &out));
            }
            Ok(())
        }
        Certification::Infeasible { infeasible } => anyhow::bail!("{}", infeasible_line(&infeasible)),
        Certification::NotMet { unmet, attempts } => anyhow::bail!("{}", not_met_line(&unmet, &attempts)),
    }
}

/// What the user sees of training.
struct Attempts {
    /// Of the first one; the others go on from a trained policy and need half as many.
    iterations: usize,
    is_quiet: bool,
    now: Option<(usize, TrainingProgress)>,
}

impl Attempts {
    /// An iteration of an attempt is done.
    fn show(&mut self, attempt: usize, summary: &Summary) {
        if self.is_quiet {
            return;
        }
        let iterations = if attempt > 1 { (self.iterations / 2).max(1) } else { self.iterations };
        if self.now.as_ref().is_none_or(|(now, _)| *now != attempt) {
            self.clear();
            say(&format!("attempt {attempt}: training"));
        }
        let begin = || (attempt, TrainingProgress::named(&format!("attempt {attempt}"), iterations, false));
        self.now.get_or_insert_with(begin).1.show(summary);
        if summary.iteration + 1 >= iterations {
            // It stays known as told.
            self.now.iter().for_each(|(_, progress)| progress.clear());
            say(&format!("attempt {attempt}: judging"));
        }
    }

    fn clear(&mut self) {
        self.now.take().iter().for_each(|(_, progress)| progress.clear());
    }
}

fn unused(source: &str) -> PathBuf {
    // Where a run of that name would go, under another name.
    let path = RunFolder::unused(source, 0);
    let name = path.file_name().unwrap_or_default().to_string_lossy().replace("-seed0", "-certified");
    let first = path.with_file_name(&name);
    let numbered = (2..).map(|k| path.with_file_name(format!("{name}-{k}")));
    std::iter::once(first).chain(numbered).find(|path| !path.exists()).unwrap_or(path)
}

fn attempt_line(report: &AttemptReport) -> String {
    format!(
        "attempt {}: {} of {} constraints hold on {} fresh episodes (error {:.2e}), objective {:.5}",
        report.attempt, report.passed, report.constraints, report.episodes, report.error, report.objective
    )
}

fn certified(certificate: &Certificate, out: &Path) -> String {
    let mut text = String::new();
    let percent = 100.0 * certificate.confidence;
    let count = certificate.constraints.len();
    let _ = writeln!(
        text,
        "certified: all {count} constraints hold, with {percent} % confidence\n  episodes   {} of {} steps, seed {}\n  objective  \
         {:.5} ({:.5} to {:.5})\n  files      {}: certificate.json, certificate.html, policy.safetensors",
        certificate.episodes,
        certificate.horizon,
        certificate.seed,
        certificate.objective,
        certificate.objective_lower,
        certificate.objective_upper,
        out.display()
    );
    let _ = writeln!(text, "It is no signature: its checksums show damage, not who made it.");
    text
}

fn infeasible_line(found: &Infeasible) -> String {
    let Infeasible { agent, constraint, bound, threshold, nearest, together, over } = found;
    if *together {
        return format!(
            "infeasible: no policy keeps all bounds together; the hardest one is {bound} = {threshold} of `{constraint}` of agent \
             {agent}; with every bound looser by {:.6}, a policy could keep them",
            (nearest - threshold).abs()
        );
    }
    // What occupancies allow, a policy may still not reach.
    let that_can = if *over == "policies" { "that can" } else { "within reach, at best," };
    format!(
        "infeasible: {bound} = {threshold} of `{constraint}` of agent {agent} cannot be kept by any policy; the nearest bound \
         {that_can} is {nearest:.9}"
    )
}

fn not_met_line(unmet: &[Unmet], attempts: &[AttemptReport]) -> String {
    const LISTED: usize = 3;
    let one = |found: &Unmet| {
        let Unmet { agent, constraint, bound, threshold, value, best } = found;
        format!(
            "`{constraint}` of agent {agent} ({bound} = {threshold}) is {value:.6}, and {best:.6} is the best bound that could \
             be certified"
        )
    };
    let mut list: Vec<String> = unmet.iter().take(LISTED).map(one).collect();
    if unmet.len() > LISTED {
        list.push(format!("and {} more", unmet.len() - LISTED));
    }
    let margin = attempts.iter().map(|attempt| attempt.largest_margin).fold(0.0, f64::max);
    format!(
        "not certified after {} attempts with margins up to {margin:.4}: {}",
        attempts.len(),
        list.join("; ")
    )
}

fn check(args: &CertifyArgs, file: &Path, registry: &Registry, stop: &Stop) -> anyhow::Result<()> {
    let checked = Certificate::check(file, args.fresh, registry, &stop.flag)?;
    if args.json {
        print(&format!("{}\n", serde_json::to_string(&checked)?));
    }
    if !checked.holds {
        let first = &checked.failed[0];
        anyhow::bail!(
            "{} constraints do not pass on {} new episodes, `{}` of agent {} first: {:.6}",
            checked.failed.len(),
            checked.episodes,
            first.constraint,
            first.agent,
            first.value
        );
    }
    if !args.json {
        let what = if checked.repeated {
            format!("its {} episodes give the same numbers, bit for bit", checked.episodes)
        } else {
            format!("all constraints pass on {} new episodes of seed {}", checked.episodes, checked.seed)
        };
        print(&format!("{}: {what}\n", file.display()));
    }
    Ok(())
}
