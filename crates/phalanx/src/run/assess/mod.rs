//! How sure a policy is to be safe: every constraint's value with a confidence interval.
//!
//! Method: the delete-one jackknife over independent episodes. It takes away the leading bias of a non-linear
//! utility of an estimated occupancy (errata 22) and estimates its variance without knowing its gradient;
//! Student's t with one degree of freedom less than there are episodes gives the interval. Assumptions:
//! independent episodes (keyed streams), and a utility that is smooth where the policy is; at a kink of an
//! unsquared distance the interval is a guide only.
//!
//! A (state, action) that fewer than ten episodes visited adds what it could change if it were as frequent as
//! that allows: an event too rare to be seen must not pass for one that cannot happen.
//!
//! Episodes are cut at a horizon. In the normalised scaling they are run until γ^H ≤ 0.001, and intervals are
//! widened by what the missing tail could change: γ^H·(mass)·(largest − smallest shadow reward), to first
//! order. The other scalings define their utilities on episodes of length H, so nothing is missing.

mod jackknife;
mod per_episode;
mod tails;
mod until_decided;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::agents::keep_least;
use super::evaluate::Episodes;
use crate::base::elementary::ln;
use crate::base::error::ensure;
use crate::base::key::GAMMA;
use crate::base::limits::MOST_STEPS;
use crate::utility::problem::{Bound, Problem, Scaling};
use crate::{Error, Result};
use jackknife::Jackknife;
pub use per_episode::EventCount;
pub use tails::TailAssessment;
pub use until_decided::UntilDecided;

/// What is left of the discounted mass when episodes are cut, in the normalised scaling.
const REMAINDER: f64 = 1e-3;

/// An estimate with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

impl Interval {
    /// With its ends cut to what is possible, where that is known. The estimate itself stays: one without
    /// bias may be beyond.
    fn within(self, range: Option<(f64, f64)>) -> Self {
        let Some((low, high)) = range else { return self };
        let Interval { value, lower, upper } = self;
        Interval {
            value,
            lower: lower.clamp(low.min(value), value),
            upper: upper.clamp(value, high.max(value)),
        }
    }
}

/// What can be said about a constraint, or about all constraints of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The whole interval keeps the bound.
    Safe,
    /// The interval holds the bound: more episodes would tell, or nothing would.
    Undecided,
    /// The whole interval breaks the bound.
    Unsafe,
}

impl Verdict {
    /// That of a utility which must keep a bound.
    fn of(bound: Bound, utility: Interval) -> Self {
        match [utility.lower, utility.upper].map(|end| bound.slack(end)) {
            [a, b] if a >= 0.0 && b >= 0.0 => Verdict::Safe,
            [a, b] if a < 0.0 && b < 0.0 => Verdict::Unsafe,
            _ => Verdict::Undecided,
        }
    }
}

/// Errors that are allowed.
#[derive(Debug, Clone, Copy)]
struct Levels {
    /// Of every interval that is no constraint's.
    alone: f64,
    /// Of every constraint's interval.
    each: f64,
    /// The same for constraints on whole episodes.
    each_event: f64,
    /// Whether intervals of events must hold at every number of episodes at once.
    at_any_time: bool,
}

/// One constraint of one agent.
#[derive(Debug, Clone, Serialize)]
pub struct ConstraintAssessment {
    /// The agent.
    pub agent: usize,
    /// The constraint's name.
    #[serde(serialize_with = "as_text")]
    pub constraint: Arc<str>,
    /// `at_least` or `at_most`.
    pub bound: &'static str,
    /// The bound.
    pub threshold: f64,
    /// The utility.
    #[serde(flatten)]
    pub utility: Interval,
    /// g at the estimate: its distance from the bound, negative if it is broken.
    #[serde(skip)]
    pub slack: f64,
    /// What follows.
    pub verdict: Verdict,
}

impl ConstraintAssessment {
    /// The bound.
    fn utility_bound(&self) -> Bound {
        if self.bound == Bound::AtLeast(0.0).key() {
            Bound::AtLeast(self.threshold)
        } else {
            Bound::AtMost(self.threshold)
        }
    }
}

fn as_text<S: serde::Serializer>(name: &Arc<str>, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(name)
}

/// A policy's assessment.
#[derive(Debug, Clone, Serialize)]
pub struct Assessment {
    /// Episodes run.
    pub episodes: usize,
    /// Their length.
    pub horizon: usize,
    /// Confidence of all constraints' intervals together (Bonferroni), and of each of the others alone.
    pub confidence: f64,
    /// Undiscounted return over the training horizon, mean over agents.
    #[serde(rename = "return")]
    pub return_: Option<Interval>,
    /// The same by agent, at the estimates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returns: Option<Vec<f64>>,
    /// Mean over episodes of the mean reward per step, summed over agents, over the steps that the world's
    /// publication counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_reward: Option<f64>,
    /// The same over all steps of the training horizon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_reward_full: Option<f64>,
    /// Undiscounted mean per step and agent of every channel that is recorded while simulating.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub channel_means: BTreeMap<String, f64>,
    /// Mean over episodes of what the world measures over the training horizon, by name.
    #[serde(flatten)]
    pub measures: BTreeMap<&'static str, f64>,
    /// Share of the episodes that ended before the training horizon, where they can: what `solved` means is
    /// the world's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solved: Option<f64>,
    /// Mean length of the episodes within the training horizon, where they can end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<f64>,
    /// F(θ).
    pub objective: Interval,
    /// Σ max(0, −g) at the estimates.
    pub violation_total: f64,
    /// The largest violation at the estimates.
    pub violation_max: f64,
    /// Every constraint.
    pub constraints: Vec<ConstraintAssessment>,
    /// Bounds on the worst episodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tails: Vec<TailAssessment>,
    /// The world's events.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventCount>,
}

impl Assessment {
    /// Keeps the constraints with the least slack, `count` at most, least first, and no returns by agent.
    pub fn keep_worst(&mut self, count: usize) {
        self.returns = None;
        keep_least(&mut self.constraints, count, |a, b| {
            a.slack.total_cmp(&b.slack).then(a.agent.cmp(&b.agent))
        });
    }

    /// Each agent's verdict, the worst of its constraints': unsafe if any is, safe if all are.
    pub fn agents(&self, n: usize) -> Vec<Verdict> {
        let mut verdicts = vec![Verdict::Safe; n];
        for constraint in &self.constraints {
            let verdict = &mut verdicts[constraint.agent];
            *verdict = constraint.verdict.max(*verdict);
        }
        for tail in &self.tails {
            let verdict = &mut verdicts[tail.agent];
            *verdict = tail.verdict.max(*verdict);
        }
        verdicts
    }
}

/// The length of episodes that `problem` should be assessed on; fails where γ is so close to 1 that they
/// would never end.
pub fn assessment_horizon(problem: &Problem, horizon: usize) -> Result<usize> {
    if problem.scaling != Scaling::Normalised || problem.gamma == 0.0 {
        return Ok(horizon);
    }
    let gamma = problem.gamma;
    let needed = (ln(REMAINDER) / ln(gamma)).ceil();
    ensure(needed <= MOST_STEPS as f64, || {
        let message = format!(
            "{gamma} needs episodes of {needed} steps until γ^H is {REMAINDER}, and {MOST_STEPS} are possible; use a \
             smaller one"
        );
        Error::config(GAMMA, message)
    })?;
    Ok(horizon.max(needed as usize))
}

impl Episodes<'_> {
    /// Assesses the policy; the horizon is that of training. Intervals of constraints hold together.
    pub(super) fn assess(self, confidence: f64) -> Result<Assessment> {
        let miss = 1.0 - confidence;
        let each = miss / self.task.problem.judged_count() as f64;
        self.assess_with(confidence, Levels { alone: miss, each, each_event: each, at_any_time: false })
    }

    /// Assesses the policy for a certificate: intervals that hold together with `confidence`, and for every
    /// constraint alone a lower bound on its slack with an error of `error`.
    pub(super) fn judge(self, confidence: f64, error: f64) -> Result<(Assessment, Vec<f64>)> {
        let miss = 1.0 - confidence;
        let each = miss / self.task.problem.judged_count() as f64;
        let together = Levels { alone: miss, each, each_event: each, at_any_time: false };
        // Of a two-sided interval only one end counts. Where rarely visited states widen it, that has its own
        // error: a third for the end, two for the widening.
        let single =
            Levels { alone: miss, each: 2.0 / 3.0 * error, each_event: 2.0 * error, at_any_time: false };
        let [assessment, alone] = self.assess_at(confidence, [together, single])?;
        let lower = |found: &ConstraintAssessment| {
            let slack = |end: f64| found.utility_bound().slack(end);
            slack(found.utility.lower).min(slack(found.utility.upper))
        };
        let tests = alone.constraints.iter().map(lower).collect();
        Ok((assessment, tests))
    }

    /// The same with the errors that are allowed.
    fn assess_with(self, confidence: f64, levels: Levels) -> Result<Assessment> {
        let [assessment] = self.assess_at(confidence, [levels])?;
        Ok(assessment)
    }

    /// The same episodes at several levels.
    fn assess_at<const L: usize>(self, confidence: f64, levels: [Levels; L]) -> Result<[Assessment; L]> {
        let (task, horizon, episodes) = (self.task, self.horizon, self.episodes);
        ensure(episodes >= 3, || {
            Error::argument("episodes", format!("{episodes}; an interval needs at least 3"))
        })?;
        ensure(confidence > 0.0 && confidence < 1.0, || {
            Error::argument("confidence", format!("{confidence}; a number between 0 and 1 is needed"))
        })?;
        let length = assessment_horizon(&task.problem, horizon)?;
        self.progress.inspect(|progress| progress.begin(2 * episodes));
        let source = Episodes { horizon: length, ..self };
        let weights = task.problem.occupancy_weights(length, episodes);
        let card = source.on_card(horizon)?;
        let pooled = source.visits_on(card.as_ref(), &weights)?;
        let mut jackknife = Jackknife::new(task, horizon, &weights, episodes, &pooled)?;
        // The same episodes once more, one left out at a time: cheaper than keeping them.
        match &card {
            None => source.for_each_chunk(|batch| jackknife.leave_out(batch))?,
            Some(card) => jackknife.leave_out_on(card, &|| source.go_on())?,
        }
        let finished = levels.map(|levels| jackknife.finish(levels));
        let mut all = Vec::with_capacity(L);
        for assessment in finished {
            all.push(assessment?);
        }
        // As many as there were levels.
        all.try_into().map_err(|_| Error::Stopped)
    }
}
