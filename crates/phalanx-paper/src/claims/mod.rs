//! The sentences of the paper's experimental section that can be true or false, and what became of them.
//!
//! `claims.toml` lists them. A claim is a list of tests on `results.csv`; all must hold. Verdicts are
//! computed, never written down.

mod evidence;
mod exact;
mod holm;
mod published;
mod test;
mod verdict;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;

pub use evidence::{Evidence, Rows};
pub use published::GROUP as PUBLISHED;
use serde::{Deserialize, Serialize};
pub use test::Test;
pub use verdict::{Estimate, Finding, Iqm, MISS, Verdict, short};

use super::distinct;
use super::setting::{LITERAL, OURS};

/// A sentence of the paper.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name, `environment.what`.
    pub id: String,
    /// Label of the section or figure.
    pub place: String,
    /// The sentence, in short.
    pub sentence: String,
    /// All must hold.
    pub tests: Vec<Test>,
    /// Whose runs it is about: `ours`, where it says what the method can do, or `authors`, where it says what
    /// happens in the paper's own runs. Their verdict counts; that of the others stands beside it.
    #[serde(default = "ours")]
    pub about: String,
    /// What is missing to compare with the paper, if something is.
    #[serde(default)]
    pub not_comparable: String,
    /// If this holds, the claim is true without content, unless it is wrong.
    pub vacuous: Option<Test>,
    /// Why it may fail, as far as that is known; shown where it does not hold.
    #[serde(default)]
    pub why: String,
}

fn ours() -> String {
    OURS.into()
}

/// A sentence that no experiment here can decide.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Untested {
    /// Label of the section or figure.
    pub place: String,
    /// The sentence, in short.
    pub sentence: String,
    /// Why it is left open.
    pub reason: String,
}

/// `claims.toml`.
#[derive(Debug, Deserialize)]
pub struct Claims {
    /// In the order of the paper.
    #[serde(rename = "claim")]
    pub all: Vec<Claim>,
    /// Sentences that are left open.
    pub untested: Vec<Untested>,
    /// What groups of claims are called.
    pub groups: BTreeMap<String, String>,
    /// Columns of tables in words.
    pub columns: BTreeMap<String, String>,
    /// By column, the share of a mean below which a difference is no effect.
    pub smallest: BTreeMap<String, f64>,
}

/// All of them.
pub static CLAIMS: LazyLock<Claims> =
    LazyLock::new(|| toml::from_str(include_str!("claims.toml")).expect("a test reads this file"));

impl Claim {
    /// What it needs, each once, in the order of the tests.
    pub fn experiments(&self) -> Vec<&str> {
        distinct(self.all_tests().flat_map(Test::rows).map(Rows::id))
    }

    fn all_tests(&self) -> impl Iterator<Item = &Test> {
        self.tests.iter().chain(&self.vacuous)
    }

    fn judge(&self, evidence: &Evidence) -> Judged {
        let rows: Vec<&Rows> = self.tests.iter().flat_map(Test::rows).collect();
        let by_method = rows.iter().any(|rows| rows.by_method);
        let has = |method: &str| rows.iter().all(|rows| evidence.rows(rows, method).is_ok());
        let beside = if self.about == OURS { LITERAL } else { OURS };
        let methods = match by_method {
            false => vec!["all"],
            true if has(beside) => vec![self.about.as_str(), beside],
            true => vec![self.about.as_str()],
        };
        let judgement = |method: &&str| {
            Judgement::of(method, self.all_tests().map(|test| test.judge(evidence, method)).collect())
        };
        Judged {
            id: self.id.clone(),
            place: self.place.clone(),
            sentence: self.sentence.clone(),
            experiments: self.experiments().into_iter().map(String::from).collect(),
            verdict: Verdict::Missing,
            why: String::new(),
            judgements: methods.iter().map(judgement).collect(),
        }
    }

    /// What follows from the findings.
    fn conclude(&self, judged: &mut Judged) {
        for judgement in &mut judged.judgements {
            let (tests, vacuous) = judgement.findings.split_at(self.tests.len());
            let is_vacuous = vacuous.iter().any(|finding| finding.verdict == Verdict::Holds);
            judgement.verdict = match Verdict::of_all(tests.iter().map(|finding| finding.verdict)) {
                // What is wrong has content.
                Verdict::Holds | Verdict::Undecided if is_vacuous => Verdict::Vacuous,
                verdict => verdict,
            };
        }
        let is_open = |it: &Judgement| !matches!(it.verdict, Verdict::Holds | Verdict::Missing);
        judged.verdict = judged.judgements.first().map_or(Verdict::Missing, |judgement| judgement.verdict);
        judged.why = if judged.judgements.iter().any(is_open) { self.why.clone() } else { String::new() };
        if !self.not_comparable.is_empty() && judged.verdict != Verdict::Missing {
            (judged.verdict, judged.why) = (Verdict::NotComparable, self.not_comparable.clone());
        }
    }
}

/// What became of a claim, for one method.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgement {
    /// Whose rows were judged: `ours`, `authors`, or `all` where the claim itself names methods.
    pub method: String,
    /// What follows from all findings.
    pub verdict: Verdict,
    /// One per test.
    pub findings: Vec<Finding>,
}

impl Judgement {
    fn of(method: &str, findings: Vec<Finding>) -> Judgement {
        let verdict = Verdict::of_all(findings.iter().map(|finding| finding.verdict));
        Judgement { method: method.into(), verdict, findings }
    }
}

/// A claim with its verdicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// Its name.
    pub id: String,
    /// Label of the section or figure.
    pub place: String,
    /// The sentence, in short.
    pub sentence: String,
    /// What it needs.
    pub experiments: Vec<String>,
    /// The verdict that counts: that of the runs which the claim is about.
    pub verdict: Verdict,
    /// First that which counts; then, where there are such rows, that of the other settings.
    pub judgements: Vec<Judgement>,
    /// Why, where it does not hold and the reason is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl Judged {
    /// Its group: what stands before the point of its name.
    pub fn group(&self) -> &str {
        self.id.split('.').next().unwrap_or_default()
    }
}

/// Judges all claims by what there is: first the paper's own, then whether what it published is reached.
pub fn judge(evidence: &Evidence) -> Vec<Judged> {
    judge_claims(&CLAIMS.all, evidence).into_iter().chain(published::judge(evidence)).collect()
}

fn judge_claims(claims: &[Claim], evidence: &Evidence) -> Vec<Judged> {
    let mut judged: Vec<Judged> = claims.iter().map(|claim| claim.judge(evidence)).collect();
    // A panel is an experiment, and a method trained for it.
    let mut panels: BTreeMap<(&str, String), Vec<&mut Finding>> = BTreeMap::new();
    for (claim, judged) in claims.iter().zip(&mut judged) {
        for judgement in &mut judged.judgements {
            for (test, finding) in claim.tests.iter().zip(&mut judgement.findings) {
                let experiment = test.rows().first().map_or("", |rows| rows.id());
                panels.entry((experiment, judgement.method.clone())).or_default().push(finding);
            }
        }
    }
    panels.values_mut().for_each(|panel| holm::correct(panel));
    claims.iter().zip(&mut judged).for_each(|(claim, judged)| claim.conclude(judged));
    judged
}
