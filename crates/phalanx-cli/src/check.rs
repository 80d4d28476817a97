//! `phalanx check`.

use std::fmt::Write;
use std::path::Path;

use phalanx::base::key::{GAMMA, KAPPA, KAPPA_Q};
use phalanx::base::text;
use phalanx::exact::{Case, SamplePlan, Steps, TdBound, TruncationBound};
use phalanx::learn::dual::MU_MAX;
use phalanx::run::check::{
    Check, ClosedLoop, DecayCheck, Feasibility, Multipliers, Sizes, Subject, Targets, TdCheck, TdMeasured,
    Theorems, TruncationCheck,
};
use phalanx::run::{Evaluator, Registry};
use phalanx::world::MIXING;

use crate::table::line;
use crate::{Source, on_threads, open_run, print, say};

#[derive(clap::Args)]
pub struct CheckArgs {
    /// Preset, TOML file, run folder (its policy), or model with policy and multipliers (as for `phalanx
    /// exact`).
    #[arg(value_name = "PRESET|FILE|RUN")]
    source: String,
    /// Change a setting of a preset or TOML file.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// How close to stationary the theorems are asked to get.
    #[arg(long, default_value_t = 0.1, allow_negative_numbers = true)]
    epsilon: f64,
    /// Probability with which they may fail.
    #[arg(long, default_value_t = 0.05, allow_negative_numbers = true)]
    delta: f64,
    /// Threads to use [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Constraints shown at most.
const MOST_CONSTRAINTS: usize = 12;

/// `phalanx check`.
pub fn check(args: &CheckArgs, registry: &Registry) -> anyhow::Result<()> {
    on_threads(args.threads, || {
        let check = examine(args, registry)?;
        if args.json {
            print(&format!("{}\n", serde_json::to_string(&check)?));
        } else {
            print(&in_words(&check));
        }
        Ok(())
    })?
}

/// Checks what the source holds: a run's policy, a model with its own, or the initial one of a configuration.
fn examine(args: &CheckArgs, registry: &Registry) -> phalanx::Result<Check> {
    let targets = Targets { epsilon: args.epsilon, delta: args.delta };
    let path = Path::new(&args.source);
    let evaluator = if let Some(run) = open_run(&args.source, &args.sets, registry)? {
        run
    } else if path.extension().is_some_and(|extension| extension == "json") {
        if !args.sets.is_empty() {
            let message = "goes with a preset or a TOML file, not with a model";
            return Err(phalanx::Error::argument("set", message));
        }
        return Check::new(&Subject::from(&Case::read(path)?), targets);
    } else {
        let source = Source { source: args.source.clone(), sets: args.sets.clone() };
        let evaluator = Evaluator::new(&source.load(None, registry)?)?;
        evaluator.warnings().iter().for_each(|warning| say(&format!("warning: {warning}")));
        evaluator
    };
    Check::new(&Subject::try_from(&evaluator)?, targets)
}

fn in_words(check: &Check) -> String {
    let mut text = String::new();
    sizes(&mut text, &check.sizes);
    decay(&mut text, &check.decay);
    closed_loop(&mut text, &check.closed_loop);
    truncation(&mut text, &check.truncation, &check.sizes);
    feasibility(&mut text, &check.feasibility);
    theorems(&mut text, &check.theorems);
    td(&mut text, &check.td);
    text += "\nAdvice\n";
    for advice in &check.advice {
        let _ = writeln!(text, "- {advice}");
    }
    text
}

/// A number in scientific form, or a dash.
fn or_dash(x: Option<f64>) -> String {
    x.map_or_else(|| "-".into(), |x| format!("{x:.3e}"))
}

fn sizes(text: &mut String, sizes: &Sizes) {
    let Sizes { agents, joint_states, joint_actions, gamma, kappa, kappa_q, diameter } = sizes;
    line(text, "agents", format!("{agents}: {joint_states} joint states x {joint_actions} joint actions"));
    line(text, "gamma", format!("{gamma}"));
    let radii = format!("{KAPPA} {kappa} (policies), {KAPPA_Q} {kappa_q} (Q); the diameter is {diameter}");
    line(text, "radii", radii);
}

fn decay(text: &mut String, decay: &DecayCheck) {
    let DecayCheck { chi_at_0, two_over_gamma, .. } = decay;
    let (verdict, relation) = if decay.holds { ("holds", "below") } else { ("fails", "not below") };
    let assumption =
        format!("{verdict}: chi(0+) = {chi_at_0:.3} is {relation} 2/gamma = {two_over_gamma:.3}");
    line(text, "decay assumption", assumption);
    let influences = decay.binding_row.iter().map(|influence| match influence.agent {
        agent if agent == decay.binding_agent => format!("itself {:.2}", influence.size),
        agent => format!("agent {agent} {:.2}", influence.size),
    });
    let row: Vec<String> = influences.collect();
    line(text, "", format!("binding agent {}: {}", decay.binding_agent, row.join(", ")));
    if let Some(bound) = &decay.bound {
        let omega_sup = decay.omega_sup.unwrap_or(f64::INFINITY);
        let TruncationBound { kappa_q, omega, c0, phi0, .. } = bound;
        let best = format!("omega {omega:.3}, c0 {c0:.3e}, phi0 {phi0:.3}");
        line(text, "", format!("omega < {omega_sup:.3}; best for {KAPPA_Q} = {kappa_q}: {best}"));
    } else if decay.holds {
        line(text, "", "any omega will do: nobody influences anybody at a distance");
    }
    if let Some(gamma) = decay.gamma_below {
        let mixing = decay.mixing_above.map(|mixing| format!(", or with {MIXING} > {mixing:.4}"));
        line(text, "", format!("would hold with {GAMMA} < {gamma:.4}{}", mixing.unwrap_or_default()));
    }
}

fn closed_loop(text: &mut String, closed: &ClosedLoop) {
    let radius = closed.spectral_radius;
    let (verdict, more) = match (closed.holds, closed.gradient_error) {
        (true, Some(error)) => ("holds", format!("; gradient error at most {error:.3e}")),
        (true, None) => ("holds", "; direct policies have no bounded score".into()),
        (false, _) => ("none", " is not below 1".into()),
    };
    line(text, "certificate", format!("{verdict}: spectral radius {radius:.3}{more}"));
}

fn truncation(text: &mut String, check: &TruncationCheck, sizes: &Sizes) {
    let at = match check.multipliers {
        Multipliers::Given => "the multipliers given",
        Multipliers::Optimal => "the optimal multipliers",
        Multipliers::Ones => "multipliers of 1",
    };
    let _ = writeln!(
        text,
        "\nError of the truncated gradient at {at}, largest over agents; the gradient itself is {:.3e}\n\
         {:>9} {:>10} {:>12} {:>12} {:>12} {:>12}",
        check.gradient, KAPPA_Q, "neighbours", "predicted", "certified", "fixed", "averaged"
    );
    for row in &check.rows {
        let mark = if row.kappa_q == sizes.kappa_q.min(sizes.diameter) { "*" } else { "" };
        let errors = [row.predicted, row.certified, row.fixed, row.averaged].map(or_dash);
        let errors = errors.map(|error| format!("{error:>12}")).join(" ");
        let kappa_q = format!("{mark}{}", row.kappa_q);
        let _ = writeln!(text, "{kappa_q:>9} {:>10} {errors}", row.neighbours);
    }
}

fn feasibility(text: &mut String, check: &Feasibility) {
    text.push('\n');
    let Feasibility { objective, violation_total, .. } = check;
    line(text, "objective", format!("{objective:.6}; violations sum to {violation_total:.6}"));
    for note in &check.notes {
        line(text, "no optimum", note);
    }
    if let Some((optimum, gap)) = check.optimum.zip(check.gap) {
        line(text, "optimum", format!("{optimum:.6}; this policy lacks {gap:.6}"));
    }
    if let Some(margin) = check.slater_margin {
        line(text, "Slater margin", format!("{margin:.6}"));
    }
    if check.constraints.is_empty() {
        return;
    }
    if let Some(bound) = check.dual_bound {
        line(text, "multipliers", format!("{bound:.4} at most; {MU_MAX} = {}", check.mu_max));
    }
    let _ = writeln!(
        text,
        "\n{:>8}  {:<16} {:>10} {:>12} {:>11}",
        "agent", "constraint", "slack", "largest", "multiplier"
    );
    let number = |x: Option<f64>| x.map_or_else(|| "-".into(), |x| format!("{x:.4}"));
    for constraint in check.constraints.iter().take(MOST_CONSTRAINTS) {
        let _ = writeln!(
            text,
            "{:>8}  {:<16} {:>10.4} {:>12} {:>11}",
            constraint.agent,
            text::name(&constraint.constraint),
            constraint.slack,
            number(constraint.largest_slack),
            number(constraint.multiplier)
        );
    }
    if !check.slacks_over_policies {
        text.push_str("          largest: over all occupancies, whether the world lets them happen or not\n");
    }
    if check.constraints.len() > MOST_CONSTRAINTS {
        let _ =
            writeln!(text, "          and {} more with --json", check.constraints.len() - MOST_CONSTRAINTS);
    }
}

fn theorems(text: &mut String, check: &Theorems) {
    let Targets { epsilon, delta } = check.targets;
    text.push('\n');
    if let Some(note) = &check.note {
        line(text, "theorems", format!("say nothing: {note}"));
        return;
    }
    if let Some(Steps { eta_mu, eta_theta }) = check.exact {
        let steps = format!("eta_mu {eta_mu:.3e}, eta_theta {eta_theta:.3e}");
        line(text, "Theorem 1", format!("{steps} for {} iterations", check.iterations));
    }
    line(text, "Theorem 2", format!("for epsilon = {epsilon} with probability {}", 1.0 - delta));
    let _ = writeln!(
        text,
        "{:>9} {:>10} {:>10} {:>8} {:>8} {:>10} {:>10} {:>10} {:>10}",
        "", "T", "B", "H", "paper's", "epsilon_0", "eta_mu", "eta_theta", "samples"
    );
    for (name, plan) in [("orders", &check.orders), ("explicit", &check.explicit)] {
        let Some(SamplePlan { iterations, steps, estimator, literal_horizon, samples }) = plan else {
            continue;
        };
        let _ = writeln!(
            text,
            "{name:>9} {iterations:>10} {:>10.2e} {:>8} {literal_horizon:>8} {:>10.2e} {:>10.2e} {:>10.2e} {samples:>10.2e}",
            estimator.batch, estimator.horizon, estimator.eps0, steps.eta_mu, steps.eta_theta,
        );
    }
}

fn td(text: &mut String, check: &TdCheck) {
    text.push('\n');
    for note in &check.notes {
        line(text, "TD", note);
    }
    if let (Some(setting), Some(bound)) = (&check.setting, &check.bound) {
        line(text, "TD exploration", format!("sigma {:.3e} within k0 = {} steps", setting.sigma, setting.k0));
        let TdBound { h, k1, c, c_prime, .. } = bound;
        line(text, "TD steps", format!("h {h:.3e}, k1 {k1:.3e}, C {c:.3e}, C' {c_prime:.3e}"));
        line(text, "TD error", format!("at most {:.3e} after {} steps", bound.error, check.steps));
    }
    if let Some(TdMeasured { to_fixed, largest_q, to_limit, limit_to_fixed }) = check.measured {
        let to_tables = format!("{to_fixed:.3e} to the paper's tables (entries up to {largest_q:.3e})");
        line(text, "", format!("measured: {to_tables}"));
        if let Some((limit, between)) = to_limit.zip(limit_to_fixed) {
            let to_limit = format!("{limit:.3e} to TD's own limit, which is {between:.3e} from those tables");
            line(text, "", format!("          {to_limit}"));
        }
    }
}
