//! The certificate: what was shown, of which policy, on which episodes; and how to check it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::{AttemptReport, page};
use crate::base::error::ensure;
use crate::base::{durable, files, sealed};
use crate::policy;
use crate::run::assess::{Assessment, Interval};
use crate::run::config::Config;
use crate::run::evaluate::Evaluator;
use crate::world::Registry;
use crate::{Error, Result};

/// Names of its files.
const FILE: &str = "certificate.json";
const PAGE: &str = "certificate.html";
const POLICY: &str = "policy.safetensors";

/// What a certificate is not.
const STATEMENT: &str = "Every constraint listed here was tested on episodes that nothing had used before. If one of them did not \
                         hold, the probability of this certificate would be at most 1 - confidence; this is exact for events \
                         of whole episodes, and asymptotic in the number of episodes for other utilities. It speaks of the simulated \
                         world of its configuration. Its checksums show damage; they are no signature, and say nothing of who \
                         made it.";

/// One constraint of one agent, which holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CertifiedConstraint {
    /// The agent.
    pub agent: usize,
    /// The constraint's name.
    pub constraint: String,
    /// `at_least` or `at_most`.
    pub bound: String,
    /// The bound.
    pub threshold: f64,
    /// The utility, as estimated.
    pub value: f64,
    /// Its interval; all of them hold together.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
    /// Lower bound on its slack in a test of its own, with the attempt's error; at least 0.
    pub slack_at_least: f64,
}

/// A certificate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Certificate {
    /// What it says and what it does not.
    pub statement: String,
    /// Of the program.
    pub version: String,
    /// That all constraints hold.
    pub confidence: f64,
    /// The attempt that succeeded, and its error.
    pub attempt: usize,
    /// α_r.
    pub error: f64,
    /// Episodes that it was judged on, their seed and their length.
    pub episodes: usize,
    /// Seed.
    pub seed: u64,
    /// Steps.
    pub horizon: usize,
    /// F(θ), with an interval of its own.
    pub objective: f64,
    /// Its lower end.
    pub objective_lower: f64,
    /// Its upper end.
    pub objective_upper: f64,
    /// Every constraint.
    pub constraints: Vec<CertifiedConstraint>,
    /// The file with the policy, and its CRC-32C.
    pub policy: String,
    /// CRC-32C.
    pub policy_crc32c: u32,
    /// The configuration, which has world, graph, objective and constraints.
    pub config: String,
    /// What was tried; not repeated by a check.
    #[serde(skip_deserializing)]
    pub attempts: Vec<AttemptReport>,
}

/// What a check found.
#[derive(Debug, Clone, Serialize)]
pub struct CheckedCertificate {
    /// Whether every constraint passed.
    pub holds: bool,
    /// Episodes that were simulated.
    pub episodes: usize,
    /// Their seed.
    pub seed: u64,
    /// Whether they were those of the certificate, number for number.
    pub repeated: bool,
    /// Constraints that did not pass.
    pub failed: Vec<CertifiedConstraint>,
}

impl Certificate {
    pub(super) fn new(
        candidate: &Evaluator,
        assessment: &Assessment,
        tests: &[f64],
        report: &AttemptReport,
        confidence: f64,
    ) -> Self {
        let Interval { value, lower, upper } = assessment.objective;
        Certificate {
            statement: STATEMENT.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            confidence,
            attempt: report.attempt,
            error: report.error,
            episodes: assessment.episodes,
            seed: report.seed,
            horizon: assessment.horizon,
            objective: value,
            objective_lower: lower,
            objective_upper: upper,
            constraints: listed(assessment, tests),
            policy: POLICY.into(),
            policy_crc32c: 0,
            config: candidate.config().to_toml(),
            attempts: Vec::new(),
        }
    }

    /// Writes it with its page, and the policy in the file `policy` beside it.
    pub(super) fn write(&mut self, folder: &Path, policy: &Path) -> Result<()> {
        let copy = folder.join(POLICY);
        durable::replace_bytes(&copy, &files::read(policy)?)?;
        self.policy_crc32c = files::checksum(&copy, None).map_err(|e| Error::unreadable(&copy, e))?;
        durable::replace_bytes(&folder.join(PAGE), page::html(self).as_bytes())?;
        sealed::write(&folder.join(FILE), self)
    }

    /// Reads one; fails if it, or the policy beside it, was changed.
    pub fn read(path: &Path) -> Result<Self> {
        let certificate: Certificate = sealed::read(path, &[])?;
        let policy = certificate.policy_path(path);
        let found = files::checksum(&policy, None).map_err(|e| Error::unreadable(&policy, e))?;
        ensure(found == certificate.policy_crc32c, || {
            Error::file(&policy, "is not the policy that was certified: its checksum differs")
        })?;
        Ok(certificate)
    }

    fn policy_path(&self, path: &Path) -> std::path::PathBuf {
        let name = Path::new(&self.policy).file_name().unwrap_or_default();
        path.parent().unwrap_or(Path::new("")).join(name)
    }

    /// Repeats the recorded episodes and compares every number; or, with a seed, judges on new ones.
    pub fn check(
        path: &Path,
        fresh: Option<u64>,
        registry: &Registry,
        stop: &Arc<AtomicBool>,
    ) -> Result<CheckedCertificate> {
        let certificate = Certificate::read(path)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let config = Config::from_toml(&certificate.config, folder)
            .map_err(|error| Error::file(path, format!("its configuration is refused: {error}")))?
            .with_registry(registry.clone());
        let mut evaluator = Evaluator::new(&config)?;
        let theta = policy::load(evaluator.policy(), &certificate.policy_path(path))?;
        evaluator.set_theta(theta);
        evaluator.set_stop_flag(stop.clone());
        let Certificate { confidence, episodes, .. } = certificate;
        // A new judgement is one of its own, with all of the error.
        let (seed, error) = match fresh {
            Some(seed) => (seed, 1.0 - confidence),
            None => (certificate.seed, certificate.error),
        };
        let (assessment, tests) =
            evaluator.episodes(seed, config.horizon, episodes).judge(confidence, error)?;
        let found = listed(&assessment, &tests);
        if fresh.is_none() {
            let differs = |a: &CertifiedConstraint, b: &CertifiedConstraint| a != b;
            let pairs = found.iter().zip(&certificate.constraints);
            let changed = pairs.into_iter().find(|(a, b)| differs(a, b));
            let same_length = found.len() == certificate.constraints.len();
            let same_objective = assessment.objective.value == certificate.objective
                && assessment.objective.lower == certificate.objective_lower
                && assessment.objective.upper == certificate.objective_upper;
            let what = match changed {
                Some((a, b)) => Some(format!(
                    "{} of agent {} is {:?}, and {:?} in the certificate",
                    b.constraint, b.agent, a.value, b.value
                )),
                None if !same_length => Some("the number of constraints differs".into()),
                None if !same_objective => Some("the objective differs".into()),
                None => None,
            };
            if let Some(what) = what {
                return Err(Error::file(path, format!("its episodes give other numbers: {what}")));
            }
        }
        let failed: Vec<CertifiedConstraint> =
            found.into_iter().filter(|constraint| constraint.slack_at_least < 0.0).collect();
        Ok(CheckedCertificate { holds: failed.is_empty(), episodes, seed, repeated: fresh.is_none(), failed })
    }
}

fn listed(assessment: &Assessment, tests: &[f64]) -> Vec<CertifiedConstraint> {
    let list = assessment.constraints.iter().zip(tests).map(|(found, &slack_at_least)| CertifiedConstraint {
        agent: found.agent,
        constraint: found.constraint.to_string(),
        bound: found.bound.into(),
        threshold: found.threshold,
        value: found.utility.value,
        lower: found.utility.lower,
        upper: found.utility.upper,
        slack_at_least,
    });
    list.collect()
}
