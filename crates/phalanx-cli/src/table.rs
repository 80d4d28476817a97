//! Tables in the terminal.

use std::fmt::{Display, Write};

use phalanx::base::text;
use phalanx::distributed::{ProcessTraffic, TrafficBound};
use phalanx::learn::dual::MU_MAX;
use phalanx::learn::shield::ShieldReport;
use phalanx::run::{
    Assessment, Evaluation, Evaluator, EventCount, ExactEvaluation, Interval, Outcome, TailAssessment,
    Verdict, WORST_LISTED, least_slack,
};
use phalanx::utility::problem::Problem;

/// Agents shown at most.
const WORST: usize = 5;

/// A line of the form `name   value`.
pub fn line(text: &mut String, name: &str, value: impl Display) {
    let _ = writeln!(text, "{name:<18} {value}");
}

/// The closing table of a run: what was reached, the agents closest to or beyond their bounds, and where the
/// files are.
pub fn closing(evaluator: &Evaluator, outcome: &Outcome, evaluation: &Evaluation) -> String {
    let mut text = String::new();
    let agents = evaluator.world().graph().agents();
    let scaling = serde_json::to_string(&outcome.scaling).unwrap_or_default();
    line(&mut text, "iterations", format!("{} in {:.2} s", outcome.iterations, outcome.wall_s));
    // Nothing is sampled in the exact setting.
    if outcome.agent_steps > 0 {
        let millions = outcome.agent_steps_per_s / 1e6;
        line(&mut text, "agent-steps", format!("{} ({millions:.1} million per second)", outcome.agent_steps));
        line(&mut text, "sent by agents", format!("{} bytes", outcome.comm_bytes));
        let per_iteration = (agents * outcome.iterations.max(1)) as f64;
        let TrafficBound { states, q_values, duals } = outcome.traffic_bound;
        for ((kind, sent), bound) in outcome.traffic.kinds().into_iter().zip([states, q_values, duals]) {
            let each = sent.bytes as f64 / per_iteration;
            let messages = sent.messages as f64 / per_iteration;
            let what = format!("{each:.1} bytes in {messages:.1} messages per agent and iteration");
            // Not every algorithm knows one.
            let most = if bound > 0 { format!(", at most {bound} bytes") } else { String::new() };
            line(&mut text, &format!("  {}", kind.replace('_', " ")), what + &most);
        }
        for (rank, ProcessTraffic { bytes, bound }) in outcome.processes.iter().enumerate() {
            let what = format!("{bytes} bytes over MPI in the last iteration, at most {bound}");
            line(&mut text, &format!("  rank {rank}"), what);
        }
    }
    line(&mut text, "scaling", scaling.trim_matches('"'));
    line(&mut text, "evaluated on", format!("{} fresh episodes", outcome.evaluation_episodes));
    if let Some(return_) = outcome.return_ {
        line(&mut text, "return", format!("{return_:.4} per agent and episode"));
    }
    line(&mut text, "objective", format!("{:.6}", outcome.objective));
    let constraints = evaluator.problem().constraint_count();
    if constraints > 0 {
        let Outcome { violation_total: total, violation_max: most, .. } = outcome;
        let over = format!("over {constraints} constraints of {agents} agents");
        line(&mut text, "violation", format!("{total:.6} in total, {most:.6} at most, {over}"));
    }
    if let Some(ShieldReport { reverted, waited, never_safe }) = outcome.shield {
        let mut what = format!("went back {reverted} times");
        if waited > 0 {
            what +=
                &format!("; {waited} times an agent broke a bound and had no safe policy yet to go back to");
        }
        if never_safe > 0 {
            what += &format!("; {never_safe} agents never had one");
        }
        line(&mut text, "shield", what);
    }
    exactly(&mut text, outcome.exact.as_ref());
    if constraints > 0 {
        text += &worst_agents(evaluator, evaluation);
        let ceiling = *evaluator.config().dual.mu_max;
        let at_ceiling = evaluator.mu().data().iter().filter(|&&mu| mu >= ceiling && mu > 0.0).count();
        if at_ceiling > 0 {
            let _ = writeln!(
                text,
                "\n{at_ceiling} multipliers are at {MU_MAX} = {ceiling}: their constraints may be out of reach, or badly scaled"
            );
        }
    }
    let _ = writeln!(text, "\nfiles in {} (plots in plots/)", outcome.run.display());
    text
}

/// The line of exact values, if there are any.
fn exactly(text: &mut String, truth: Option<&ExactEvaluation>) {
    let Some(truth) = truth else { return };
    let return_ = truth.return_.map(|r| format!("return {r:.4}, ")).unwrap_or_default();
    let stationarity = format!("E {:.2e} (X {:.2e}, Y {:.2e})", truth.e, truth.x, truth.y);
    let ExactEvaluation { objective, violation_total: violation, .. } = truth;
    let value =
        format!("{return_}objective {objective:.6}, violation {violation:.6}, stationarity {stationarity}");
    line(text, "exactly", value);
}

/// The constraints with the least slack.
fn worst_agents(evaluator: &Evaluator, evaluation: &Evaluation) -> String {
    let mut text = format!(
        "\n{:>8}  {:<16} {:>10} {:>12} {:>10} {:>9}\n",
        "agent", "constraint", "value", "bound", "slack", "dual"
    );
    for (i, k) in least_slack(&evaluation.slack, WORST) {
        let slack = evaluation.slack.row(i)[k];
        let constraint = &evaluator.problem().agents[i].constraints[k];
        let relation = if constraint.bound.sign() > 0.0 { "≥" } else { "≤" };
        let _ = writeln!(
            text,
            "{i:>8}  {:<16} {:>10.4} {:>12} {slack:>10.4} {:>9.3}",
            text::name(&constraint.name),
            evaluation.values.row(i)[k],
            format!("{relation} {}", constraint.bound.threshold()),
            evaluator.mu().row(i)[k],
        );
    }
    let count = evaluation.slack.data().len();
    if count <= WORST {
        return text;
    }
    let agents = evaluator.world().graph().agents();
    let listed = count.min(WORST_LISTED);
    let place = if evaluator.config().output.agents.lists_all(agents) {
        " in agents.csv".into()
    } else {
        format!(": the worst {listed} in agents.csv, all in agents-summary.csv by quantiles")
    };
    text + &format!("          and {} more{place}\n", count - WORST)
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Safe => "safe",
        Verdict::Unsafe => "unsafe",
        Verdict::Undecided => "undecided",
    }
}

/// What `phalanx eval` says of a policy: estimates with intervals, verdicts, and the agents in most danger.
pub fn assessment(
    evaluator: &Evaluator,
    mut assessment: Assessment,
    truth: Option<&ExactEvaluation>,
) -> String {
    let mut text = String::new();
    let n = evaluator.world().graph().agents();
    let percent = 100.0 * assessment.confidence;
    let shown =
        |i: Interval| format!("{:.5}  ({percent} % interval {:.5} to {:.5})", i.value, i.lower, i.upper);
    line(&mut text, "episodes", format!("{} of {} steps", assessment.episodes, assessment.horizon));
    let links = &evaluator.config().links;
    if !links.is_off() {
        line(&mut text, "links", links.to_string());
    }
    if let Some(return_) = assessment.return_ {
        line(&mut text, "return", shown(return_));
    }
    if let (Some(published), Some(full)) = (assessment.mean_reward, assessment.mean_reward_full)
        && !assessment.events.is_empty()
    {
        line(
            &mut text,
            "mean reward",
            format!("{published:.3} of all agents per step, {full:.3} to the horizon"),
        );
    }
    for (name, found) in &assessment.measures {
        line(&mut text, &name.replace('_', " "), format!("{found:.3}"));
    }
    for event in assessment.events.iter().filter(|event| event.agent.is_none()) {
        let EventCount { name, count, episodes, upper, .. } = event;
        line(
            &mut text,
            name,
            format!("in {count} of {episodes} episodes, probability {upper:.5} at most ({percent} %)"),
        );
    }
    if let (Some(solved), Some(steps)) = (assessment.solved, assessment.steps) {
        let share = 100.0 * solved;
        line(&mut text, "solved", format!("{share:.1} % of the episodes, {steps:.1} steps on average"));
    }
    line(&mut text, "objective", shown(assessment.objective));
    if assessment.constraints.is_empty() && assessment.tails.is_empty() {
        exactly(&mut text, truth);
        return text;
    }
    let Assessment { violation_total: total, violation_max: most, .. } = assessment;
    line(&mut text, "violation", format!("{total:.5} in total, {most:.5} at most"));
    let verdicts = assessment.agents(n);
    let count = |wanted: Verdict| verdicts.iter().filter(|&&verdict| verdict == wanted).count();
    let (safe, broken) = (count(Verdict::Safe), count(Verdict::Unsafe));
    let undecided = n - safe - broken;
    line(&mut text, "agents", format!("{safe} safe, {broken} unsafe, {undecided} undecided"));
    exactly(&mut text, truth);
    let count = assessment.constraints.len();
    assessment.keep_worst(WORST);
    let _ = writeln!(
        text,
        "\n{:>8}  {:<16} {:>10} {:>23} {:>12}  verdict",
        "agent", "constraint", "value", "interval", "bound"
    );
    for c in &assessment.constraints {
        let relation = if c.bound == "at_least" { "≥" } else { "≤" };
        let _ = writeln!(
            text,
            "{:>8}  {:<16} {:>10.4} {:>23} {:>12}  {}",
            c.agent,
            text::name(&c.constraint),
            c.utility.value,
            format!("{:.4} to {:.4}", c.utility.lower, c.utility.upper),
            format!("{relation} {}", c.threshold),
            word(c.verdict)
        );
    }
    if count > WORST {
        let _ = writeln!(text, "          and {} more with --json", count - WORST);
    }
    assessment.tails.sort_by(|a, b| tail_slack(a).total_cmp(&tail_slack(b)).then(a.agent.cmp(&b.agent)));
    for tail in assessment.tails.iter().take(WORST) {
        let interval = format!("{:.4} to {:.4}", tail.cvar.lower, tail.cvar.upper);
        let bound = format!("≤ {}", tail.threshold);
        let name = text::name(&tail.constraint);
        let verdict = word(tail.verdict);
        let _ = writeln!(
            text,
            "{:>8}  {name:<16} {:>10.4} {interval:>23} {bound:>12}  {verdict} (worst episodes)",
            tail.agent, tail.cvar.value
        );
    }
    let tails = assessment.tails.len();
    if tails > WORST {
        let _ = writeln!(text, "          and {} more (worst episodes) with --json", tails - WORST);
    }
    let _ = writeln!(
        text,
        "\nAll {} intervals together hold with {percent} % confidence: jackknife over episodes, Student's t, Bonferroni,\n\
         widened by what steps beyond the horizon and rarely visited states could change.",
        count + tails
    );
    if evaluator.problem().has_events() {
        let _ = writeln!(text, "Those of `ever` and `chance` are exact binomial ones.");
    }
    if tails > 0 {
        let _ = writeln!(text, "Those of `cvar` assume no more than the range of the cost.");
    }
    if undecided > 0 {
        text += "`--until-decided` goes on until every agent is judged safe or unsafe.\n";
    }
    text + &safe_means(evaluator.problem())
}

/// Distance from the bound, negative if it is broken.
fn tail_slack(tail: &TailAssessment) -> f64 {
    tail.threshold - tail.cvar.value
}

/// What a verdict is about: it is easily taken for more.
fn safe_means(problem: &Problem) -> String {
    let has_tails = problem.agents.iter().any(|agent| !agent.tails.is_empty());
    let has_averages = problem
        .agents
        .iter()
        .flat_map(|agent| &agent.constraints)
        .any(|constraint| constraint.event().is_none());
    let kinds = [
        (has_averages, "in expectation over episodes"),
        (problem.has_events(), "by the share of episodes (`ever`, `chance`)"),
        (has_tails, "by the mean of the worst episodes (`cvar`)"),
    ];
    let kinds: Vec<&str> =
        kinds.into_iter().filter(|(is_there, _)| *is_there).map(|(_, words)| words).collect();
    format!(
        "Safe means: this policy, in this environment, keeps its bounds {}.\n`phalanx help eval` says what that covers.\n",
        kinds.join(", ")
    )
}
