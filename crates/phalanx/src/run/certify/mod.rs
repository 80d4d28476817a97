//! Certification: a policy of which every constraint is known to hold, with a stated confidence.

mod attempts;
mod certificate;
mod feasibility;
mod page;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use super::assess::{Assessment, ConstraintAssessment};
use super::build::resolve;
use super::config::Config;
use super::evaluate::Evaluator;
use super::folder;
use super::meta::{CONFIG, Provenance};
use super::session::Session;
use super::train::{Ending, ResumeOutcome, Run};
use crate::algorithm::{DEVICE, DeviceChoice, EvaluationDevice, Summary};
use crate::base::binomial;
use crate::base::error::ensure;
use crate::base::own_folder;
use crate::distributed::SingleProcess;
use crate::utility::problem::Bound;
use crate::world::Registry;
use crate::{Error, Result};
use attempts::{Candidates, Judged, error_of_attempt};
pub use certificate::{Certificate, CertifiedConstraint, CheckedCertificate};
pub use feasibility::Infeasible;

/// Agent-steps that an attempt is judged on, if a number of episodes is not given; and the fewest and most
/// episodes for it.
const AGENT_STEPS: u64 = 200_000_000;
const EPISODES: [usize; 2] = [500, 10_000];

/// Times the first number of episodes that a later attempt has at most.
const MOST_GROWTH: usize = 4;

/// Events that a verdict on a rare one allows for.
const ALLOWED_EVENTS: u64 = 3;

/// The command that its folder belongs to.
const COMMAND: &str = "certify";

/// What a certification is to be.
#[derive(Debug, Clone)]
pub struct CertifySettings {
    /// Probability with which a certificate may not be wrong.
    pub confidence: f64,
    /// Attempts before it is given up.
    pub max_attempts: usize,
    /// Episodes of the first judgement; by default as many as its agents and constraints ask for.
    pub episodes: Option<usize>,
    /// Seed of the episodes that judge.
    pub seed: u64,
    /// Where attempts are trained and judged; by default where the configuration says.
    pub device: Option<DeviceChoice>,
    /// Folder of its own, new, empty, or of a certification with the same configuration that was interrupted.
    pub out: PathBuf,
    /// For the runs' record.
    pub provenance: Provenance,
}

/// An attempt, as it is told.
#[derive(Debug, Clone, Serialize)]
pub struct AttemptReport {
    /// r.
    pub attempt: usize,
    /// α_r.
    pub error: f64,
    /// Episodes that it was judged on.
    pub episodes: usize,
    /// Their seed.
    pub seed: u64,
    /// F(θ).
    pub objective: f64,
    /// Constraints that passed, of so many.
    pub passed: usize,
    /// All of them.
    pub constraints: usize,
    /// The largest margin that training aimed at.
    pub largest_margin: f64,
}

/// A constraint that was not met.
#[derive(Debug, Clone, Serialize)]
pub struct Unmet {
    /// Whose.
    pub agent: usize,
    /// Which.
    pub constraint: String,
    /// `at_least` or `at_most`.
    pub bound: &'static str,
    /// The bound.
    pub threshold: f64,
    /// The utility at the last attempt.
    pub value: f64,
    /// The best bound that an attempt could have been certified for.
    pub best: f64,
}

/// How a certification ended.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Certification {
    /// Every constraint holds.
    Certified {
        /// The certificate.
        certificate: Box<Certificate>,
    },
    /// A bound that no policy can keep; nothing was trained.
    Infeasible {
        /// Which.
        infeasible: Infeasible,
    },
    /// The attempts were not enough.
    NotMet {
        /// Constraints that did not pass in the last one.
        unmet: Vec<Unmet>,
        /// What was tried.
        attempts: Vec<AttemptReport>,
    },
}

/// Where the first candidate comes from.
pub enum CertifySource<'a> {
    /// It is trained.
    Config(&'a Config),
    /// It is the policy of a run, which is trained on if it does not pass.
    Run(&'a Path),
}

/// Trains, or takes a trained run, until every constraint is judged safe. `progress` is told of every
/// training iteration, `report` of every attempt.
pub fn certify(
    source: &CertifySource<'_>,
    registry: &Registry,
    settings: &CertifySettings,
    stop: &Arc<AtomicBool>,
    progress: &mut dyn FnMut(usize, &Summary),
    report: &mut dyn FnMut(&AttemptReport),
) -> Result<Certification> {
    let CertifySettings { confidence, max_attempts, out, .. } = settings;
    ensure(*confidence > 0.0 && *confidence < 1.0, || {
        Error::argument("confidence", format!("{confidence}; a number between 0 and 1 is needed"))
    })?;
    ensure(*max_attempts > 0, || Error::argument("max-attempts", "0; at least 1 is needed"))?;
    ensure(settings.episodes.is_none_or(|episodes| episodes >= 3), || {
        Error::argument("episodes", "at least 3 are needed")
    })?;
    own_folder::check(out, COMMAND, || false)?;
    let device = settings.device.map(|device| (DEVICE, device.name()));
    let (config, first) = match source {
        CertifySource::Config(config) => (allowing_infeasible(config)?.with_all(device)?, None),
        CertifySource::Run(run) => {
            let mut evaluator = Evaluator::from_run(run, registry)?;
            let config = match device {
                None => evaluator.config().clone(),
                Some((key, name)) => evaluator.config().with(key, name)?,
            };
            evaluator.set_stop_flag(stop.clone());
            evaluator.set_device(EvaluationDevice::if_exact(config.device));
            (config, Some(evaluator))
        }
    };
    let evaluator = Evaluator::new(&config)?;
    ensure(evaluator.problem().constraint_count() > 0, || {
        Error::config("constraint", "there is none, so that there is nothing to certify")
    })?;
    ensure(evaluator.problem().agents.iter().all(|agent| agent.tails.is_empty()), || {
        Error::config(
            "constraint",
            "a `cvar` is judged by `eval`, not trained, and cannot be certified; leave it out",
        )
    })?;
    if let Some(infeasible) = feasibility::infeasible(&evaluator) {
        return Ok(Certification::Infeasible { infeasible });
    }
    own_folder::claim(out, COMMAND, || false)?;
    let episodes = settings.episodes.unwrap_or_else(|| episodes_needed(&evaluator, *confidence));
    let mut trainer = Trainer {
        config,
        settings,
        stop,
        progress,
        report,
        episodes,
        candidate: first,
        is_given: matches!(source, CertifySource::Run(_)),
        policy: match source {
            CertifySource::Run(run) => Some(run.join(folder::POLICY)),
            CertifySource::Config(_) => None,
        },
        last: None,
        largest_margin: 0.0,
        attempts: Vec::new(),
        best: Vec::new(),
        last_lower: Vec::new(),
    };
    match attempts::certify(&mut trainer, *confidence, *max_attempts)? {
        Some(_) => trainer.certified(),
        None => Ok(Certification::NotMet { unmet: trainer.unmet(), attempts: trainer.attempts }),
    }
}

/// The same configuration, where a bound that cannot be kept is told as such, not refused.
fn allowing_infeasible(config: &Config) -> Result<Config> {
    let count = config.constraint.as_ref().map_or(0, Vec::len);
    let keys: Vec<String> = (0..count).map(|k| format!("constraint.{k}.allow_infeasible")).collect();
    config.with_all(keys.iter().map(|key| (key.as_str(), "true")))
}

/// Episodes that the first attempt should be judged on.
fn episodes_needed(evaluator: &Evaluator, confidence: f64) -> usize {
    let n = evaluator.world().graph().agents() as u64;
    let affordable = AGENT_STEPS / (2 * n * evaluator.config().horizon as u64).max(1);
    let [fewest, most] = EPISODES;
    let affordable = usize::try_from(affordable).unwrap_or(most).clamp(fewest, most);
    // A rare event needs many episodes, however long they take.
    let error = error_of_attempt(1, confidence);
    let constraints = evaluator.problem().agents.iter().flat_map(|agent| &agent.constraints);
    let rare = constraints.filter(|constraint| constraint.event().is_some()).map(|constraint| {
        let p = match constraint.bound {
            Bound::AtMost(p) => p,
            Bound::AtLeast(p) => 1.0 - p,
        };
        (1..).map(|doubled| 16usize << doubled).find(|&episodes| {
            binomial::upper_bound(ALLOWED_EVENTS, episodes as u64, error) <= p || episodes > 1 << 30
        })
    });
    rare.flatten().fold(affordable, usize::max)
}

/// Trains and judges real policies.
struct Trainer<'a> {
    config: Config,
    settings: &'a CertifySettings,
    stop: &'a Arc<AtomicBool>,
    progress: &'a mut dyn FnMut(usize, &Summary),
    report: &'a mut dyn FnMut(&AttemptReport),
    episodes: usize,
    candidate: Option<Evaluator>,
    /// Whether the first candidate is a run's.
    is_given: bool,
    /// The file of the last candidate's policy.
    policy: Option<PathBuf>,
    last: Option<(Assessment, Certificate)>,
    largest_margin: f64,
    attempts: Vec<AttemptReport>,
    /// The best slack that each constraint was certain of in an attempt.
    best: Vec<f64>,
    /// That of the last attempt.
    last_lower: Vec<f64>,
}

impl Candidates for Trainer<'_> {
    fn train(&mut self, attempt: usize, margins: &[f64]) -> Result<()> {
        if attempt == 1 && self.is_given {
            return Ok(());
        }
        self.largest_margin = margins.iter().copied().fold(0.0, f64::max);
        let mut config = with_margins(&self.config, margins)?;
        if attempt > 1 {
            // It goes on from a trained policy.
            config = config.with_iterations((config.iterations / 2).max(1))?;
        }
        let path = self.settings.out.join(format!("attempt-{attempt}"));
        if let Some(mut run) = self.open(&config, &path)? {
            let progress = &mut *self.progress;
            if let Ending::Stopped { .. } = run.train(self.stop, |summary| progress(attempt, summary))? {
                return Err(Error::Stopped);
            }
        }
        // What was written, not what is in memory: a later call must find the same numbers.
        let mut candidate = Evaluator::from_run(&path, self.config.registry())?;
        candidate.set_stop_flag(self.stop.clone());
        // A certificate can be repeated on any machine: a device must give the processor's bytes.
        candidate.set_device(EvaluationDevice::if_exact(self.config.device));
        self.candidate = Some(candidate);
        self.policy = Some(path.join(folder::POLICY));
        Ok(())
    }

    fn judge(&mut self, attempt: usize, error: f64) -> Result<Vec<Judged>> {
        let Some(candidate) = &self.candidate else { return Err(Error::Stopped) };
        let episodes = self.episodes * (1 << (attempt - 1).min(8)).min(MOST_GROWTH);
        // Numbers that no other command draws from by default.
        let seed = 3_000_000_000 + 1_000 * self.settings.seed + attempt as u64;
        let (assessment, tests) =
            candidate.episodes(seed, self.config.horizon, episodes).judge(self.settings.confidence, error)?;
        let judged: Vec<Judged> = tests
            .iter()
            .zip(&assessment.constraints)
            .map(|(&lower, found)| Judged {
                slack: found.slack,
                lower,
                largest_margin: largest_margin(candidate, found),
            })
            .collect();
        self.last_lower = tests.clone();
        self.best.resize(judged.len(), f64::NEG_INFINITY);
        self.best.iter_mut().zip(&judged).for_each(|(best, judged)| *best = best.max(judged.lower));
        let report = AttemptReport {
            attempt,
            error,
            episodes,
            seed,
            objective: assessment.objective.value,
            passed: judged.iter().filter(|judged| judged.lower >= 0.0).count(),
            constraints: judged.len(),
            largest_margin: self.largest_margin,
        };
        (self.report)(&report);
        self.attempts.push(report.clone());
        let certificate = Certificate::new(candidate, &assessment, &tests, &report, self.settings.confidence);
        self.last = Some((assessment, certificate));
        Ok(judged)
    }
}

impl Trainer<'_> {
    /// The run of an attempt, begun or gone on with; none if it is finished.
    fn open(&self, config: &Config, path: &Path) -> Result<Option<Run>> {
        if !path.join(CONFIG).is_file() {
            let mut session = Session::new(config)?;
            if let Some(policy) = &self.policy {
                session.warm_start(policy)?;
            }
            return Run::begin(session, path, self.settings.provenance.clone()).map(Some);
        }
        let mut there = Config::of_run(path)?;
        // It may go on elsewhere.
        there.device = config.device;
        ensure(there.to_toml() == resolve(config)?.to_toml(), || {
            let out = self.settings.out.display();
            Error::argument("out", format!("{out} holds attempts with other settings; name a new folder"))
        })?;
        match Run::resume_on(path, config.registry(), Arc::new(SingleProcess), Some(config.device))? {
            ResumeOutcome::Finished => Ok(None),
            ResumeOutcome::Ready { run, .. } => Ok(Some(*run)),
        }
    }

    /// Writes the certificate, its page and the policy.
    fn certified(self) -> Result<Certification> {
        let (Some((_, mut certificate)), Some(policy)) = (self.last, self.policy) else {
            return Err(Error::Stopped);
        };
        certificate.attempts = self.attempts;
        certificate.write(&self.settings.out, &policy)?;
        Ok(Certification::Certified { certificate: Box::new(certificate) })
    }

    fn unmet(&self) -> Vec<Unmet> {
        let Some((assessment, _)) = &self.last else { return Vec::new() };
        let found = assessment.constraints.iter().zip(&self.best).zip(&self.last_lower);
        found
            .filter(|(_, lower)| **lower < 0.0)
            .map(|((found, best), _)| Unmet {
                agent: found.agent,
                constraint: found.constraint.to_string(),
                bound: found.bound,
                threshold: found.threshold,
                value: found.utility.value,
                best: found.threshold + if found.bound == "at_least" { *best } else { -best },
            })
            .collect()
    }
}

/// Most of the way to the end of what is possible.
fn largest_margin(candidate: &Evaluator, found: &ConstraintAssessment) -> f64 {
    const SHARE: f64 = 0.9;
    let agent = &candidate.problem().agents[found.agent];
    let mass = candidate.problem().mass(candidate.config().horizon);
    let constraint = agent.constraints.iter().find(|constraint| constraint.name == found.constraint);
    let range = constraint.and_then(|constraint| {
        let range = constraint.utility.range(agent.space, mass)?;
        Some(constraint.bound.slack(constraint.bound.easiest(range)))
    });
    SHARE * range.unwrap_or(f64::INFINITY)
}

/// `config` where every constraint aims at its slack in `margins`, which are in order of agents.
fn with_margins(config: &Config, margins: &[f64]) -> Result<Config> {
    let largest = margins.iter().copied().fold(0.0, f64::max);
    if largest == 0.0 {
        return Ok(config.clone());
    }
    let Some(list) = &config.constraint else {
        // A model's own constraints have no keys: all of them aim at the largest.
        return config.with("dual.margin", &format!("{:?}", *config.dual.margin + largest));
    };
    let evaluator = Evaluator::new(config)?;
    let agents = &evaluator.problem().agents;
    let mut first = vec![0; agents.len() + 1];
    for (i, agent) in agents.iter().enumerate() {
        first[i + 1] = first[i] + agent.constraints.len();
    }
    let mut next = first.clone();
    let mut settings = Vec::new();
    let mut groups = evaluator.problem().groups.iter();
    for (k, constraint) in list.iter().enumerate() {
        if let Some(group) = constraint.group.as_ref().and_then(|_| groups.next()) {
            let mut own = constraint.margin.as_ref().map_or(0.0, |margin| margin.at(0));
            own += group.entries().map(|(i, place)| margins[first[i] + place]).fold(0.0, f64::max);
            group.members.iter().for_each(|&i| next[i as usize] += 1);
            settings.push((format!("constraint.{k}.margin"), format!("{own:?}")));
            continue;
        }
        let members = constraint.agents.clone().unwrap_or_else(|| (0..agents.len()).collect());
        let own = |place: usize| constraint.margin.as_ref().map_or(0.0, |margin| margin.at(place));
        let of = |(place, i): (usize, usize)| {
            next[i] += 1;
            own(place) + margins[next[i] - 1]
        };
        let numbers: Vec<f64> = members.into_iter().enumerate().map(of).collect();
        settings.push((format!("constraint.{k}.margin"), format!("{numbers:?}")));
    }
    config.with_all(settings.iter().map(|(key, value)| (key.as_str(), value.as_str())))
}
