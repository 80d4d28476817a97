//! Everything that can be said exactly about a model, a policy and multipliers, as one JSON object.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::certificate::Certificate;
use super::constants::{Constants, SCORE_BOUND, eps1};
use super::decay::Decay;
use super::dynamics::Dynamics;
use super::fosp::{Domain, Stationarity};
use super::induced::Induced;
use super::input::{AlgorithmInput, Case};
use super::layout::{Layout, members};
use super::smoothness::distance;
use super::system::{Chain, System, Values};
use super::truncation::{LARGEST_TD_TABLE, Truncated, Truncation};
use crate::base::key::KAPPA;
use crate::learn::agent_metrics::Violations;
use crate::learn::shadow::Signals;
use crate::policy::{Parameterisation, Policy, Tabular};
use crate::{Error, Ragged, Result};

/// Most entries of P_π and of a whole Q-function, which a report sums up.
pub const LARGEST_REPORTED: u128 = 1 << 24;

/// The `output` object for `case`.
pub fn report(case: &Case) -> Result<Value> {
    let system = System::new(&case.world, &case.problem, &case.policy)?;
    check_size(&system)?;
    let chain = system.under(&case.policy)?;
    let signals = chain.signals(&case.problem);
    let values = chain.values(&signals.rewards)?;
    Report { case, dynamics: &system.dynamics, chain: &chain, signals: &signals, values: &values }.write()
}

fn check_size(system: &System) -> Result<()> {
    let states = system.dynamics.joint_states as u128;
    for (what, other) in [("joint actions", system.dynamics.joint_actions()), ("joint next states", states)] {
        let entries = states.saturating_mul(other);
        if entries > LARGEST_REPORTED {
            let message = format!(
                "{states} joint states × {other} {what} are {entries} pairs; a report takes at most {LARGEST_REPORTED}"
            );
            return Err(Error::config("model", message));
        }
    }
    Ok(())
}

struct Report<'a> {
    case: &'a Case,
    dynamics: &'a Dynamics,
    chain: &'a Chain<'a>,
    signals: &'a Signals,
    values: &'a Values,
}

impl Report<'_> {
    fn write(&self) -> Result<Value> {
        let (case, chain, signals) = (self.case, self.chain, self.signals);
        let n = case.problem.agents.len() as f64;
        let mut out = Map::new();
        let mut put = |key: &str, value: Value| out.insert(key.into(), value);

        let hops = |row: Vec<Option<u32>>| list(row.iter().map(|d| d.map_or(-1, i64::from)));
        put("dist", list(self.dynamics.graph.distances().map(hops)));
        put("neigh", lists(&self.dynamics.graph.neighbourhoods(case.kappa)));
        put("neigh_q", lists(&case.groups));
        let agents = || 0..case.policy.agents();
        put("policy", lists(case.policy.laws()));
        let states = self.dynamics.joint_states;
        put("P_pi", table(&chain.transition_matrix(), &[states, states], 256));
        put("state_occupancy", table(&chain.state_occupancy, &[states], MOST_LISTED));
        put("lambda", lists(&chain.occupancy()));
        put("f", json!(signals.objective));
        put("g", lists(&signals.slack));
        let (objective, lagrangian) = objective_and_lagrangian(signals, &case.mu);
        put("F", json!(objective));
        put("L", json!(lagrangian));
        let shadow = |i: usize| signals.rewards.row(i).chunks_exact(self.dynamics.cells(i));
        put("shadow_f", list(agents().map(|i| shadow(i).next())));
        put("shadow_g", list(agents().map(|i| list(shadow(i).skip(1)))));

        let (fixed, fixed_values) = self.tables(Truncation::Fixed, &chain.state_occupancy)?;
        let (averaged, averaged_values) = self.tables(Truncation::Averaged, &chain.state_occupancy)?;
        let (full, deviations) = self.full(&fixed)?;
        put("Qf_full", list(full.iter().map(|q| &q[0])));
        put("Qg_full", list(full.iter().map(|q| &q[1..])));
        let cut = self.gradient(&fixed_values);
        for (name, tables, gradient) in
            [("fixed", &fixed, &cut), ("avg", &averaged, &self.gradient(&averaged_values))]
        {
            put(&format!("Qf_hat_{name}"), self.listed(tables, true));
            put(&format!("Qg_hat_{name}"), self.listed(tables, false));
            put(&format!("grad_trunc_{name}"), lists(gradient));
        }
        if self.pairs().iter().all(|pairs| pairs.iter().product::<usize>() <= LARGEST_TD_TABLE) {
            let (tables, values) = self.tables(Truncation::Td, &chain.state_occupancy)?;
            put("Qf_hat_td_occupancy", self.listed(&tables, true));
            put("grad_trunc_td_occupancy", lists(&self.gradient(&values)));
            let (tables, _) = self.tables(Truncation::Td, &chain.stationary()?)?;
            put("Qf_hat_td_stationary", self.listed(&tables, true));
        }

        let whole = chain.action_values(self.values, &case.mu);
        let truth = self.gradient(&whole);
        let direct = |values: &Ragged<f64>| chain.gradient(values, Parameterisation::Direct, 1.0 / n);
        let truth_direct = direct(&whole);
        put("grad_true", lists(&truth));
        put("grad_error_fixed", list(truth.iter().zip(cut.iter()).map(|(a, b)| distance(a, b))));
        put("grad_direct_true", lists(&truth_direct));
        put("grad_direct_trunc_fixed", lists(&direct(&fixed_values)));
        put("metrics", self.metrics(&truth, &truth_direct));

        let decay = Decay::new(self.dynamics, self.chain.system.gamma);
        put("decay", self.decay(&decay));
        put("closed_loop", self.closed_loop(&decay, &deviations));
        let constants = Constants::new(&case.problem, self.dynamics, case.mu_bar);
        put("constants", self.constants(constants.as_ref()));
        if let Some(estimator) = &case.estimator {
            put("eps1", json!(eps1(estimator, self.chain.system.gamma)));
            let errors = |c: Constants| c.estimators(estimator, &case.groups, &decay, case.kappa_q);
            put("estimators", json!(constants.and_then(errors)));
        }
        // Beyond the number of agents a radius changes nothing: its entry is the one before.
        let radii = case.kappa.min(case.problem.agents.len());
        let khop =
            (0..radii).map(|kappa| Induced::new(self.chain.system, chain, kappa).map(|found| json!(found)));
        let mut khop = khop.collect::<Result<Vec<Value>>>()?;
        for kappa in radii..case.kappa {
            let mut same = khop.last().cloned().unwrap_or_default();
            same[KAPPA] = json!(kappa);
            khop.push(same);
        }
        put("khop", json!(khop));
        if let Some(algorithm) = &case.algorithm {
            put("algorithm1", self.algorithm(algorithm)?);
        }
        Ok(Value::Object(out))
    }

    /// Truncated tables, and the action values that follow from them.
    fn tables(&self, kind: Truncation, weights: &[f64]) -> Result<(Ragged<f64>, Ragged<f64>)> {
        let truncated = Truncated::new(self.chain.system, &self.case.policy, &self.case.groups, kind)?;
        let tables = truncated.tables(self.chain, self.values, weights);
        let action_values = self.chain.truncated_action_values(&tables, &self.case.mu, &self.case.groups);
        Ok((tables, action_values))
    }

    /// ∇L from n times the derivatives by action.
    fn gradient(&self, action_values: &Ragged<f64>) -> Ragged<f64> {
        self.chain.gradient(action_values, Parameterisation::Softmax, 1.0 / self.case.policy.agents() as f64)
    }

    /// [joint states, joint actions] of every agent's group.
    fn pairs(&self) -> Vec<[usize; 2]> {
        let dynamics = self.dynamics;
        let product = |group: &[u32], sizes: &[usize]| group.iter().map(|&k| sizes[k as usize]).product();
        let shape = |group| [product(group, &dynamics.states), product(group, &dynamics.actions)];
        self.case.groups.iter().map(shape).collect()
    }

    /// Tables of f, or lists of those of g.
    fn listed(&self, tables: &Ragged<f64>, of_f: bool) -> Value {
        let agents = self.pairs().into_iter().enumerate().map(|(j, shape)| {
            let mut own =
                tables.row(j).chunks_exact(shape[0] * shape[1]).map(|t| table(t, &shape, MOST_LISTED));
            if of_f { own.next().unwrap_or(Value::Null) } else { Value::Array(own.skip(1).collect()) }
        });
        Value::Array(agents.collect())
    }

    /// Checksums of every whole Q-function, and how far the fixed tables of f are from it at most.
    fn full(&self, fixed: &Ragged<f64>) -> Result<(Vec<Vec<Value>>, Vec<f64>)> {
        let (dynamics, n) = (self.dynamics, self.case.policy.agents());
        // Tables over everybody are whole; one agent's at a time are held.
        let everyone = Ragged::from_rows((0..n).map(|_| 0..n as u32));
        let whole = Truncated::new(self.chain.system, &self.case.policy, &everyone, Truncation::Fixed)?;
        let all_pairs = Layout::of_pairs(dynamics, 0..n);
        let (mut checksums, mut deviations) = (Vec::new(), Vec::new());
        for (i, group) in members(&self.case.groups).into_iter().enumerate() {
            let tables = whole.own_tables(i, self.chain, self.values, &self.chain.state_occupancy);
            let tables: Vec<&[f64]> = tables.chunks_exact(all_pairs.size() as usize).collect();
            let pairs = all_pairs.positions_in(&Layout::of_pairs(dynamics, group));
            let cut = |z: u32| fixed.row(i)[z as usize];
            let off = tables[0].iter().zip(pairs).map(|(q, z)| (q - cut(z)).abs());
            deviations.push(off.fold(0.0, f64::max));
            checksums.push(tables.into_iter().map(checksum).collect());
        }
        Ok((checksums, deviations))
    }

    fn metrics(&self, truth: &Ragged<f64>, truth_direct: &Ragged<f64>) -> Value {
        let case = self.case;
        let slack = &self.signals.slack;
        let at = |gradient, domain| Stationarity::new(gradient, domain, &case.mu, slack, case.mu_bar);
        let free = at(truth, Domain::Everywhere);
        let boxed = at(truth, Domain::for_policy(&case.policy, case.theta_box));
        let (policy, actions) = (case.policy.laws(), case.policy.action_counts());
        let simplex = at(truth_direct, Domain::Simplices { policy, actions });
        json!({
            "X": free.x, "Y": free.y, "E": free.e,
            "X_box": boxed.x, "E_box": boxed.e,
            "X_simplex": simplex.x, "E_simplex": simplex.e,
            "violation_max": Violations::from_slack(slack).max,
        })
    }

    fn decay(&self, decay: &Decay) -> Value {
        let case = self.case;
        let reward = self.signals.rewards.data().iter().fold(0.0, |m: f64, r| m.max(r.abs()));
        let constraints = case.mu.iter().map(<[f64]>::len).max().unwrap_or(0);
        let largest_mu = case.mu.data().iter().copied().fold(0.0, f64::max);
        let half = decay.truncation(reward, case.kappa_q);
        let best = decay.best(reward, case.kappa_q);
        json!({
            "M": decay.influence,
            "chi_at_0": decay.chi_at_0,
            "two_over_gamma": finite_or_inf(decay.two_over_gamma),
            "omega_sup": decay.omega_sup.map(finite_or_inf),
            "M_r_point_inf": reward,
            "M_pi": SCORE_BOUND,
            "omega": half.as_ref().map(|t| t.omega),
            "chi": half.as_ref().map(|t| t.chi),
            "c0": half.as_ref().map(|t| t.c0),
            "phi0": half.as_ref().map(|t| t.phi0),
            "lemma_bound": half.as_ref().map(|t| decay.lemma_bound(t, constraints, largest_mu)),
            "best_c0phi": best.as_ref().map(|t| t.q_error()),
            "best_omega": best.as_ref().map(|t| t.omega),
        })
    }

    fn closed_loop(&self, decay: &Decay, deviations: &[f64]) -> Value {
        let case = self.case;
        let certificate = Certificate::new(self.dynamics, decay, &case.policy, &case.groups);
        let certified = certificate.q_deviations(&self.signals.rewards);
        let of_f = certified.map(|rows| rows.iter().map(|row| row[0]).collect::<Vec<_>>());
        json!({
            "B": certificate.policy_influence,
            "C": certificate.closed_loop,
            "spectral_radius_gamma_C": certificate.spectral_radius,
            "q": certificate.outside,
            "dQf_actual": deviations,
            "dQf_certified": of_f,
            "grad_certified": certificate.gradient_error(&self.signals.rewards, &case.mu),
        })
    }

    fn constants(&self, constants: Option<&Constants>) -> Value {
        let eta_mu = self.case.algorithm.map_or(1.0, |algorithm| algorithm.eta_mu);
        constants.map_or(Value::Null, |c| {
            json!({
                "L_theta": c.l_theta, "L_tt": c.l_tt, "L_tm": c.l_tm, "M_theta": c.m_theta,
                "eta_theta": c.eta_theta(eta_mu),
                "M_r_inf": c.m_r_inf, "M_r_2": c.m_r_2, "L_lambda": c.l_lambda,
            })
        })
    }

    /// Algorithm 1 with exact quantities, the literal updates and fixed truncation.
    fn algorithm(&self, settings: &AlgorithmInput) -> Result<Value> {
        let case = self.case;
        let n = case.policy.agents() as f64;
        let truncated = Truncated::new(self.chain.system, &case.policy, &case.groups, Truncation::Fixed)?;
        let mut policy: Tabular = case.policy.clone();
        let mut trajectory = Vec::new();
        for t in 0..settings.iterations {
            let chain = self.chain.system.under(&policy)?;
            let signals = chain.signals(&case.problem);
            let mut mu = signals.slack.clone();
            mu.data_mut().iter_mut().for_each(|g| *g = (-settings.eta_mu * *g / n).clamp(0.0, case.mu_bar));
            let values = chain.values(&signals.rewards)?;
            let whole = chain.action_values(&values, &mu);
            let truth = chain.gradient(&whole, Parameterisation::Softmax, 1.0 / n);
            let domain = Domain::for_policy(&policy, case.theta_box);
            let at = Stationarity::new(&truth, domain, &mu, &signals.slack, case.mu_bar);
            let (objective, lagrangian) = objective_and_lagrangian(&signals, &mu);
            trajectory.push(json!({
                "t": t, "mu_next": lists(&mu), "F": objective, "L": lagrangian, "g": lists(&signals.slack),
                "X_box": at.x, "Y": at.y, "E_box": at.e,
            }));
            let tables = truncated.tables(&chain, &values, &chain.state_occupancy);
            let used = chain.truncated_action_values(&tables, &mu, &case.groups);
            let step = chain.gradient(&used, Parameterisation::Softmax, settings.eta_theta / n);
            let [low, high] = case.theta_box.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
            drop(chain);
            policy.update(|theta| {
                let steps = theta.data_mut().iter_mut().zip(step.data());
                steps.for_each(|(x, d)| *x = (*x + d).clamp(low, high));
            });
        }
        Ok(json!({ "trajectory": trajectory, "theta_final": lists(policy.theta()) }))
    }
}

fn objective_and_lagrangian(signals: &Signals, mu: &Ragged<f64>) -> (f64, f64) {
    let n = signals.objective.len() as f64;
    let objective = signals.objective.iter().sum::<f64>() / n;
    let penalty: f64 = signals.slack.data().iter().zip(mu.data()).map(|(g, mu)| mu * g).sum();
    (objective, objective + penalty / n)
}

fn list<T: Serialize>(items: impl Iterator<Item = T>) -> Value {
    json!(items.collect::<Vec<_>>())
}

fn lists<T: Serialize>(rows: &Ragged<T>) -> Value {
    list(rows.iter())
}

/// JSON has no infinity.
fn finite_or_inf(x: f64) -> Value {
    if x.is_infinite() { json!("inf") } else { json!(x) }
}

/// Tables with more entries than this are cut to their first few.
const MOST_LISTED: usize = 512;

/// How many of them.
const HEAD: usize = 16;

fn table(entries: &[f64], shape: &[usize], most: usize) -> Value {
    let mut object = json!({ "shape": shape, "checksum": checksum(entries) });
    let (key, shown) = if entries.len() <= most { ("values", entries) } else { ("head", &entries[..HEAD]) };
    object[key] = json!(shown);
    object
}

/// Sums that tell two tables apart.
fn checksum(entries: &[f64]) -> Value {
    let weighted = |(k, x): (usize, &f64)| x * ((k % 97) as f64 + 1.0) / 97.0;
    json!({
        "len": entries.len(),
        "sum": entries.iter().sum::<f64>(),
        "sumsq": entries.iter().map(|x| x * x).sum::<f64>(),
        "max_abs": entries.iter().fold(0.0, |m: f64, x| m.max(x.abs())),
        "weighted": entries.iter().enumerate().map(weighted).sum::<f64>(),
        "first": entries.first(),
        "last": entries.last(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::document;
    use crate::exact::Input;

    #[test]
    fn a_radius_beyond_the_graph_takes_no_time() {
        let text = r#"{"kappa": 1000, "model": {"n": 1, "gamma": 0.5, "state_sizes": [1], "action_sizes": [2],
            "edges": [], "parents": [[0]], "transition": [[1.0, 1.0]], "rho": {"kind": "joint", "p": [1.0]},
            "f": [{"kind": "linear", "r": [0.0, 1.0]}]}}"#;
        let path = std::path::Path::new("a.json");
        let input: Input = document::parse(text, path, &[]).unwrap();
        let found = report(&Case::new(input).unwrap()).unwrap();
        assert_eq!(found["khop"].as_array().unwrap().len(), 1000);
        assert_eq!(found["khop"][999][KAPPA], 999);
        let input: Input = document::parse(&text.replace("1000", "1000000000000"), path, &[]).unwrap();
        let message = Case::new(input).map(|_| ()).unwrap_err().to_string();
        assert!(message.contains("kappa: 1000000000000; at most"), "{message}");
    }
}
