//! What a check means, in words: what holds, and what to change.

use super::{Check, Feasibility, Subject};
use crate::base::elementary::{log10, powi};
use crate::base::key::{GAMMA, KAPPA_Q, SCALING};
use crate::exact::{Dynamics, ever_optimum};
use crate::learn::dual::{DualKind, MU_MAX};
use crate::utility::problem::{Constraint, Scaling};
use crate::world::MIXING;

/// A truncation error of more than this part of the gradient is worth a larger radius.
const TOLERABLE_ERROR: f64 = 0.1;

/// Room that multipliers are given above the largest optimal one.
const ROOM: f64 = 2.0;

/// One sentence or two an item.
pub(super) fn advice(check: &Check, subject: &Subject<'_>) -> Vec<String> {
    let mut advice = vec![on_decay(check), on_certificate(check)];
    advice.extend(on_radius(check));
    advice.extend(on_feasibility(&check.feasibility));
    advice.extend(on_mu_max(&check.feasibility, subject));
    advice.extend(on_dual(&check.feasibility, subject));
    advice.extend(on_theorems(check));
    advice.extend(on_td(check));
    advice.extend(on_events(subject));
    advice
}

/// What carries over to constraints on whole episodes, and the best that policies with clock and flags do.
fn on_events(subject: &Subject<'_>) -> Option<String> {
    let problem = subject.problem;
    let is_event = |constraint: &&Constraint| constraint.event().is_some();
    let first = problem.agents.iter().flat_map(|agent| &agent.constraints).find(is_event)?;
    let mut text = format!(
        "Constraints on whole episodes (`{}`) are no functions of occupancies: duality and gradients carry over, on states with a \
         flag and a clock, but the truncation lemma does not. Neighbours beyond kappa_g are left out of their gradients, and \
         no power of {GAMMA} bounds what that changes.",
        first.name
    );
    let dynamics = Dynamics::new(subject.world).ok();
    if let Some(best) = dynamics.and_then(|dynamics| ever_optimum(&dynamics, problem).ok()) {
        text += &format!(" Policies that also see clock and flags reach an objective of {:.6}.", best.value);
    }
    Some(text)
}

fn on_decay(check: &Check) -> String {
    let decay = &check.decay;
    if let Some(gamma) = decay.gamma_below {
        let mixing =
            decay.mixing_above.map(|mixing| format!(" or {MIXING} > {mixing:.3}")).unwrap_or_default();
        return format!(
            "The decay assumption fails, so the truncation lemma and both theorems promise nothing here; it would hold \
             with {GAMMA} < {gamma:.3}{mixing}. Training does not need it."
        );
    }
    let exceeded =
        in_use(check).and_then(|row| row.predicted.zip(row.fixed)).filter(|(bound, error)| error > bound);
    match exceeded {
        Some((bound, error)) => format!(
            "The decay assumption holds, yet the truncation error {error:.2e} exceeds the lemma's bound {bound:.2e}: the \
             lemma forgets that policies carry influence too."
        ),
        None => "The decay assumption holds.".into(),
    }
}

fn on_certificate(check: &Check) -> String {
    let closed = &check.closed_loop;
    let measured = "go by the measured errors";
    match (closed.gradient_error, closed.mixing_above) {
        (Some(error), _) if error < check.truncation.gradient => {
            format!(
                "The closed-loop certificate holds: truncation changes no gradient by more than {error:.2e}."
            )
        }
        (Some(error), _) => format!(
            "The closed-loop certificate holds, but its bound {error:.2e} exceeds the gradient itself: {measured}."
        ),
        (None, Some(mixing)) => format!(
            "There is no closed-loop certificate at this policy ({measured}); there would be one with {MIXING} > \
             {mixing:.3}."
        ),
        (None, None) => format!("There is no certified bound at this policy: {measured}."),
    }
}

/// The row of the κ_q in use.
fn in_use(check: &Check) -> Option<&super::TruncationRow> {
    let kappa_q = check.sizes.kappa_q.min(check.sizes.diameter);
    check.truncation.rows.iter().find(|row| row.kappa_q == kappa_q)
}

/// Averaged tables count: sampling critics estimate those (errata 3).
fn on_radius(check: &Check) -> Option<String> {
    let gradient = check.truncation.gradient;
    let share = |error: f64| error / gradient;
    let now = in_use(check)?.averaged.map(share).filter(|share| *share > TOLERABLE_ERROR)?;
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let enough = check.truncation.rows.iter().find_map(|row| {
        let share = row.averaged.map(share).filter(|share| *share <= TOLERABLE_ERROR)?;
        (row.kappa_q > check.sizes.kappa_q)
            .then(|| format!("; {KAPPA_Q} = {} leaves {}", row.kappa_q, percent(share)))
    });
    let cost = percent(now);
    Some(format!("Truncation changes the gradient by {cost} at this policy{}.", enough.unwrap_or_default()))
}

fn on_feasibility(feasibility: &Feasibility) -> Option<String> {
    let out_of_reach = |slack: Option<f64>| slack.is_some_and(|slack| slack < 0.0);
    let impossible = feasibility.constraints.iter().find(|constraint| out_of_reach(constraint.largest_slack));
    if let Some(constraint) = impossible {
        let slack = constraint.largest_slack.unwrap_or_default();
        return Some(format!(
            "No policy meets `{}` of agent {}: its slack is {slack:.3e} at most. Change its bound.",
            constraint.constraint, constraint.agent
        ));
    }
    match feasibility.slater_margin {
        Some(margin) if margin < 0.0 => Some(format!(
            "Every constraint can be met alone, but not all together: one is always violated by {:.3e} or more.",
            -margin
        )),
        Some(margin) => Some(format!("All constraints can be met together, with {margin:.3} to spare.")),
        None => None,
    }
}

fn on_mu_max(feasibility: &Feasibility, subject: &Subject<'_>) -> Option<String> {
    let largest = feasibility.largest_multiplier()?;
    let (mu, agent, mu_max) = (largest.multiplier?, largest.agent, subject.mu_max);
    let (roomy, bound) = (ROOM * mu, feasibility.dual_bound.unwrap_or(f64::INFINITY));
    let always =
        if bound.is_finite() { format!("; {} is always enough", round_up(bound)) } else { String::new() };
    if mu <= mu_max {
        return Some(format!(
            "mu_max = {mu_max} leaves room for every multiplier: the largest is {mu:.3} (agent {agent}){always}."
        ));
    }
    let enough =
        if roomy < bound { format!("{}{always}", round_up(roomy)) } else { round_up(bound).to_string() };
    let scaled = match subject.problem.scaling {
        Scaling::Normalised => String::new(),
        Scaling::Paper | Scaling::Authors => format!(
            " With {SCALING} = \"normalised\" linear objectives, and multipliers with them, are 1-gamma times as large."
        ),
    };
    Some(format!(
        "mu_max = {mu_max} is below agent {agent}'s multiplier {mu:.3}: its constraint cannot be met. Set {MU_MAX} to at \
         least {enough}.{scaled}"
    ))
}

/// The paper's update has no memory: it holds μ only while g = −(μ − centre)/η_μ (errata 4).
fn on_dual(feasibility: &Feasibility, subject: &Subject<'_>) -> Option<String> {
    let dual = subject.dual.filter(|dual| dual.kind == DualKind::Proximal)?;
    let largest = feasibility.largest_multiplier()?;
    let mu = largest.multiplier?;
    let step = match subject.problem.scaling {
        Scaling::Paper => *dual.eta_mu / subject.problem.agents.len() as f64,
        Scaling::Normalised | Scaling::Authors => *dual.eta_mu,
    };
    let violation = (mu - *dual.centre) / step;
    (violation > 0.0).then(|| {
        format!(
            "dual.kind = \"proximal\" has no memory: agent {}'s multiplier {mu:.3} takes a lasting violation of \
             {violation:.2e}; \"pi\" needs none.",
            largest.agent
        )
    })
}

fn on_theorems(check: &Check) -> Option<String> {
    let (steps, explicit) = (check.theorems.exact?, check.theorems.explicit?);
    Some(format!(
        "The theorems' settings are no settings for a run: eta_theta = {:.1e}, and {:.1e} samples for epsilon = {}.",
        steps.eta_theta, explicit.samples, check.theorems.targets.epsilon
    ))
}

fn on_td(check: &Check) -> Option<String> {
    let (bound, measured) = (check.td.bound?, check.td.measured?);
    let limit = measured.limit_to_fixed.map(|gap| {
        format!(" TD's own limit is {gap:.2e} away from the tables that the paper means: more steps do not help there.")
    });
    Some(format!(
        "{} TD steps with the proposition's step sizes come within {:.2e} of Q (whose size is {:.2e}); promised is \
         {:.1e}.{}",
        check.td.steps,
        measured.to_fixed,
        measured.largest_q,
        bound.error,
        limit.unwrap_or_default()
    ))
}

/// Rounded up to two digits.
fn round_up(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let digits = 1 - log10(x).floor() as i32;
    // What is above by rounding only is not rounded up. Dividing by a power of ten gives the nearest decimal.
    let whole = (x * powi(10f64, digits) * (1.0 - 1e-9)).ceil();
    if digits > 0 { whole / powi(10f64, digits) } else { whole * powi(10f64, -digits) }
}

#[cfg(test)]
mod tests {
    use super::round_up;

    #[test]
    fn two_digits_are_enough() {
        for (x, expected) in
            [(0.0, 0.0), (157.0, 160.0), (160.0, 160.0), (0.0785, 0.079), (1.0, 1.0), (9.91, 10.0)]
        {
            assert_eq!(round_up(x), expected);
        }
    }
}
