//! The card of an exported policy: which problem it solves, and how sure it is that every constraint holds.

use std::fmt::Write;

use serde::Serialize;

use super::ExportSettings;
use crate::Result;
use crate::base::key::{GAMMA, HORIZON};
use crate::run::agents::WORST_LISTED;
use crate::run::assess::{Assessment, Interval, Verdict};
use crate::run::evaluate::Evaluator;
use crate::utility::problem::Bound;

/// For programs.
pub const FILE: &str = "card.json";
/// For people.
pub const PAGE: &str = "card.md";

/// What the files beside it are worth.
#[derive(Debug, Clone, Serialize)]
pub struct Card {
    /// Version of the program that wrote it.
    pub version: String,
    /// Format of the policy's files.
    pub to: &'static str,
    /// Their names.
    pub files: Vec<String>,
    /// Kind of policy.
    pub policy: &'static str,
    /// κ: how many hops an agent sees.
    pub kappa: usize,
    /// Seed of training.
    pub seed: u64,
    /// Iterations of training.
    pub iterations: usize,
    /// Agents of the graph.
    pub agents: usize,
    /// Links between them.
    pub links: usize,
    /// Agents whose constraints all hold, are not known to hold, or do not hold.
    pub verdicts: Verdicts,
    /// Seed of the episodes that judged.
    pub assessment_seed: u64,
    /// Constraints, the worst of them in a large graph, and all else that the episodes say.
    pub assessment: Assessment,
    /// One line for each constraint, whichever agents have it.
    pub summary: Vec<ConstraintSummary>,
    /// The configuration, which has world, graph, objective and constraints.
    pub config: String,
}

/// How many there are of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Verdicts {
    /// The whole interval keeps the bound.
    pub safe: usize,
    /// The interval holds the bound.
    pub undecided: usize,
    /// The whole interval breaks the bound.
    #[serde(rename = "unsafe")]
    pub unsafe_: usize,
}

impl Verdicts {
    fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Safe => self.safe += 1,
            Verdict::Undecided => self.undecided += 1,
            Verdict::Unsafe => self.unsafe_ += 1,
        }
    }
}

/// One constraint of all agents that have it.
#[derive(Debug, Clone, Serialize)]
pub struct ConstraintSummary {
    /// Its name.
    pub constraint: String,
    /// `at_least` or `at_most`.
    pub bound: String,
    /// The smallest and the largest threshold.
    pub thresholds: [f64; 2],
    /// How many agents keep it.
    pub verdicts: Verdicts,
    /// The agent closest to its bound, or farthest beyond it.
    pub worst_agent: usize,
    /// Its utility, and the interval of that.
    pub worst_value: f64,
    /// Lower end.
    pub worst_lower: f64,
    /// Upper end.
    pub worst_upper: f64,
}

/// A constraint of an agent, whatever it bounds.
struct Judged<'a> {
    name: &'a str,
    bound: &'a str,
    agent: usize,
    threshold: f64,
    interval: Interval,
    slack: f64,
    verdict: Verdict,
}

impl Card {
    /// Judges the policy on fresh episodes.
    pub(super) fn new(evaluator: &Evaluator, settings: &ExportSettings, files: &[String]) -> Result<Self> {
        let ExportSettings { to, episodes, seed, confidence, .. } = settings;
        let (config, graph) = (evaluator.config(), evaluator.world().graph());
        let mut assessment = evaluator.assess(*episodes, *seed, *confidence)?;
        let mut verdicts = Verdicts::default();
        assessment.agents(graph.agents()).into_iter().for_each(|verdict| verdicts.add(verdict));
        let summary = summary(&assessment);
        if !config.output.agents.lists_all(graph.agents()) {
            assessment.keep_worst(WORST_LISTED);
        }
        Ok(Card {
            version: env!("CARGO_PKG_VERSION").into(),
            to: to.name(),
            files: files.to_vec(),
            policy: evaluator.policy().kind(),
            kappa: config.kappa,
            seed: config.seed,
            iterations: config.iterations,
            agents: graph.agents(),
            links: graph.edge_count(),
            verdicts,
            assessment_seed: *seed,
            assessment,
            summary,
            config: config.to_toml(),
        })
    }

    /// The card for people.
    pub(super) fn page(&self) -> String {
        let Card { version, to, policy, kappa, seed, iterations, agents, links, .. } = self;
        let Assessment { episodes, horizon, confidence, objective, .. } = &self.assessment;
        let Verdicts { safe, undecided, unsafe_ } = self.verdicts;
        let mut page = String::from("# Policy card\n\n| | |\n|---|---|\n");
        for (what, value) in [
            ("verdicts", format!("{safe} agents safe, {undecided} undecided, {unsafe_} unsafe")),
            ("confidence", format!("{} %, of all verdicts together", 100.0 * confidence)),
            (
                "objective",
                format!("{:.6} ({:.6} to {:.6})", objective.value, objective.lower, objective.upper),
            ),
            ("episodes", format!("{episodes} of {horizon} steps, seed {}", self.assessment_seed)),
            ("graph", format!("{agents} agents, {links} links")),
            ("policy", format!("`{policy}`, κ = {kappa} (hops that an agent sees)")),
            ("training", format!("{iterations} iterations, seed {seed}")),
            ("files", format!("`{to}`, written by phalanx {version}")),
        ] {
            let _ = writeln!(page, "| {what} | {value} |");
        }
        page += "\n## Constraints\n\n";
        page += if self.summary.is_empty() {
            "None.\n"
        } else {
            "| constraint | bound | safe | undecided | unsafe | worst agent | its value | its interval |\n\
             |---|---|---|---|---|---|---|---|\n"
        };
        for row in &self.summary {
            let ConstraintSummary { constraint, thresholds: [low, high], verdicts, worst_agent, .. } = row;
            let relation = if row.bound == Bound::AtLeast(0.0).key() { "≥" } else { "≤" };
            let bound =
                if low == high { format!("{relation} {low}") } else { format!("{relation} {low} to {high}") };
            let Verdicts { safe, undecided, unsafe_ } = verdicts;
            let _ = writeln!(
                page,
                "| `{constraint}` | {bound} | {safe} | {undecided} | {unsafe_} | {worst_agent} | {:.6} | {:.6} to {:.6} |",
                row.worst_value, row.worst_lower, row.worst_upper
            );
        }
        let _ = write!(page, "\n## Problem\n\n```toml\n{}```\n", problem(&self.config));
        page += "\n## Files\n\n";
        for file in &self.files {
            let _ = writeln!(page, "- `{file}`");
        }
        page += "\nVerdicts speak of the simulated world of this problem, on episodes that training did not use. They are no \
                 certificate: `phalanx certify` makes one.\n";
        page
    }
}

/// One line for each name and side of a bound, in the order in which they come.
fn summary(assessment: &Assessment) -> Vec<ConstraintSummary> {
    let constraints = assessment.constraints.iter().map(|found| Judged {
        name: &found.constraint,
        bound: found.bound,
        agent: found.agent,
        threshold: found.threshold,
        interval: found.utility,
        slack: found.slack,
        verdict: found.verdict,
    });
    let tails = assessment.tails.iter().map(|found| Judged {
        name: &found.constraint,
        bound: Bound::AtMost(0.0).key(),
        agent: found.agent,
        threshold: found.threshold,
        interval: found.cvar,
        slack: found.threshold - found.cvar.value,
        verdict: found.verdict,
    });
    let mut rows: Vec<(f64, ConstraintSummary)> = Vec::new();
    for found in constraints.chain(tails) {
        let is_same =
            |(_, row): &(f64, ConstraintSummary)| row.constraint == found.name && row.bound == found.bound;
        let place = rows.iter().position(is_same).unwrap_or_else(|| {
            rows.push((f64::INFINITY, found.alone()));
            rows.len() - 1
        });
        let (least, row) = &mut rows[place];
        let verdicts = std::mem::take(&mut row.verdicts);
        let [low, high] = row.thresholds;
        if found.slack < *least {
            (*least, *row) = (found.slack, found.alone());
        }
        row.verdicts = verdicts;
        row.verdicts.add(found.verdict);
        row.thresholds = [low.min(found.threshold), high.max(found.threshold)];
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

impl Judged<'_> {
    /// The line of this one, which counts nobody yet.
    fn alone(&self) -> ConstraintSummary {
        ConstraintSummary {
            constraint: self.name.into(),
            bound: self.bound.into(),
            thresholds: [self.threshold; 2],
            verdicts: Verdicts::default(),
            worst_agent: self.agent,
            worst_value: self.interval.value,
            worst_lower: self.interval.lower,
            worst_upper: self.interval.upper,
        }
    }
}

/// The parts of a configuration that say what is wanted, and where.
fn problem(config: &str) -> String {
    const SECTIONS: [&str; 4] = ["world", "network", "objective", "constraint"];
    const KEYS: [&str; 2] = [GAMMA, HORIZON];
    let Ok(mut table) = config.parse::<toml::Table>() else { return config.into() };
    table.retain(|key, _| SECTIONS.contains(&key) || KEYS.contains(&key));
    toml::to_string(&table).unwrap_or_else(|_| config.into())
}
