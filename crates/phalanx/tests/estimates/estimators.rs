//! Sampled quantities against exact ones on reference models.

use crate::support::{REFERENCES, Reference, numbers, sample};
use phalanx::Ragged;
use phalanx::learn::actor::Actor;
use phalanx::learn::critic::{Critic, CriticInput, Lstd, MonteCarlo, QTables};
use phalanx::learn::shadow::Signals;
use phalanx::policy::{Baseline, GradientSettings, Policy};
use phalanx::policy::{Parameterisation, Tabular};
use phalanx::run::{Config, Session};
use phalanx::sample::occupancy::Visits;
use phalanx::sample::rollout::StartFrom;
use phalanx::utility::problem::Problem;
use phalanx::world::World;

/// The problem that the file carries, in the literal scaling.
fn problem(reference: &Reference) -> Problem {
    let text = format!(
        "scaling = \"paper\"\n[world]\nkind = \"table\"\nallow_infeasible = true\nfile = {:?}",
        reference.path
    );
    let config = Config::from_toml(&text, std::path::Path::new(".")).unwrap();
    Session::new(&config).unwrap().problem().clone()
}

fn exact_signals(reference: &Reference, problem: &Problem) -> Signals {
    let lambda = (0..reference.agents()).map(|i| numbers(&reference.output("lambda")[i]));
    let mut signals = Signals::new(problem);
    signals.evaluate(problem, &Ragged::from_rows(lambda), 1.0);
    signals
}

/// ‖found − exact‖ / ‖exact‖ over all agents.
fn relative_error(found: &Ragged<f64>, exact: &serde_json::Value) -> f64 {
    let exact = numbers(exact);
    let difference: f64 = found.data().iter().zip(&exact).map(|(f, e)| (f - e).powi(2)).sum();
    (difference / exact.iter().map(|e| e * e).sum::<f64>()).sqrt()
}

#[test]
fn utilities_and_shadow_rewards_are_the_reference_ones() {
    for name in REFERENCES {
        let reference = Reference::read(name);
        let signals = exact_signals(&reference, &problem(&reference));
        let close = |found: &[f64], expected: &serde_json::Value, what: &str| {
            let expected = numbers(expected);
            assert_eq!(found.len(), expected.len(), "{name} {what}");
            for (f, e) in found.iter().zip(expected) {
                assert!((f - e).abs() <= 1e-9 * (1.0 + e.abs()), "{name} {what}: {f} is not {e}");
            }
        };
        close(&signals.objective, reference.output("f"), "f");
        for i in 0..reference.agents() {
            close(signals.slack.row(i), &reference.output("g")[i], "g");
            let cells = reference.table.states(i) * reference.table.actions(i);
            let (f, g) = signals.rewards.row(i).split_at(cells);
            close(f, &reference.output("shadow_f")[i], "shadow reward of f");
            close(g, &reference.output("shadow_g")[i], "shadow reward of g");
        }
    }
}

#[test]
fn sampled_occupancies_approach_the_exact_ones() {
    for name in REFERENCES {
        let reference = Reference::read(name);
        let policy = reference.policy(Parameterisation::Softmax);
        let steps = (1e-6f64.ln() / reference.gamma().ln()) as usize;
        let problem = problem(&reference);
        let actions: Vec<usize> = (0..reference.agents()).map(|i| reference.table.actions(i)).collect();
        let mut errors = Vec::new();
        for trajectories in [100, 10_000] {
            let batch = sample(&reference.table, &policy, trajectories, steps, StartFrom::World, 1);
            let cells = (0..reference.agents()).map(|i| reference.table.states(i) * actions[i]);
            let mut visits = Visits::new(cells);
            visits.add(&batch, &problem.occupancy_weights(steps, trajectories), &actions);
            errors.push(relative_error(&visits.occupancy, reference.output("lambda")));
        }
        // A hundred times the samples: a tenth of the error, give or take.
        assert!(errors[1] < 0.01 && errors[1] < errors[0] / 3.0, "{name}: {errors:?}");
    }
}

/// ∇̃ of line 8 with critic `critic`, at the file's θ and μ.
fn sampled_gradient(
    reference: &Reference,
    policy: &Tabular,
    critic: &mut dyn Critic,
    baseline: Baseline,
    trajectories: usize,
) -> Ragged<f64> {
    let problem = problem(reference);
    let signals = exact_signals(reference, &problem);
    let steps = (1e-4f64.ln() / reference.gamma().ln()) as usize;
    let samples = critic.samples();
    let evaluation =
        sample(&reference.table, policy, 1, samples.evaluation_pairs.max(1), StartFrom::Uniform, 7);
    let mu = Ragged::from_rows((0..reference.agents()).map(|i| numbers(&reference.input("mu")[i])));
    let (iteration, signals) = (0, &signals);
    let evidence = CriticInput { iteration, policy, mu: &mu, signals, batch: &[], evaluation: &evaluation };
    critic.evaluate(evidence).unwrap();
    assert_eq!(critic.values_mut().set_multipliers(signals, &mu), None);
    let batch =
        sample(&reference.table, policy, trajectories, steps + samples.batch_tail, StartFrom::World, 8);
    let n = reference.agents() as f64;
    let weights = problem.occupancy_weights(steps, trajectories).into_iter().map(|w| w / n).collect();
    let rule = GradientSettings {
        weights,
        baseline,
        neighbour_mean: false,
        own_share: 0.0,
        all_actions: false,
        normalise: false,
        entropy: 0.0,
    };
    let everyone = reference.table.graph().neighbourhoods(reference.agents());
    let mut gradient = Ragged::zeros_like(policy.theta());
    let mut actor = Actor::single(reference.table.graph(), &everyone);
    actor.gradients(policy, &batch, critic.values(), &rule, &mut gradient).unwrap();
    gradient
}

#[test]
fn montecarlo_gradients_approach_the_true_ones() {
    for name in ["line3_entropy", "ring5_weak", "line4_mixed_utilities"] {
        let reference = Reference::read(name);
        let policy = reference.policy(Parameterisation::Softmax);
        let mut critic = MonteCarlo::new(&problem(&reference), 60);
        let mut error = |baseline, trajectories| {
            let gradient = sampled_gradient(&reference, &policy, &mut critic, baseline, trajectories);
            relative_error(&gradient, reference.output("grad_true"))
        };
        let errors = [error(Baseline::Mean, 400), error(Baseline::Mean, 40_000)];
        assert!(errors[1] < 0.1 && errors[1] < errors[0] / 3.0, "{name}: {errors:?}");
        // Without a baseline the same limit, more slowly.
        let plain = error(Baseline::None, 40_000);
        assert!(plain < 0.3, "{name}: {plain}");
    }
}

/// With every agent in every neighbourhood, tables hold the full Q: both parameterisations approach their
/// exact gradients.
#[test]
fn table_gradients_approach_the_true_ones_without_truncation() {
    let reference = Reference::read("line3_entropy");
    let problem = problem(&reference);
    for (parameterisation, baseline, exact) in [
        (Parameterisation::Softmax, Baseline::Counterfactual, "grad_true"),
        (Parameterisation::Softmax, Baseline::Mean, "grad_true"),
        (Parameterisation::Direct, Baseline::None, "grad_direct_true"),
    ] {
        let policy = reference.policy(parameterisation);
        let tables = QTables::new(&reference.table, 2, &problem).unwrap();
        let mut critic = Lstd::new(tables, 2_000_000, 1e-12);
        let gradient = sampled_gradient(&reference, &policy, &mut critic, baseline, 20_000);
        let mut exact = reference.output(exact).clone();
        if parameterisation == Parameterisation::Direct {
            // Ours is less each row's expectation under π, which the projection onto the simplex does not
            // see.
            for i in 0..reference.agents() {
                let mut row = numbers(&exact[i]);
                for (law, row) in policy.probabilities(i).chunks(2).zip(row.chunks_mut(2)) {
                    let expected = law[0] * row[0] + law[1] * row[1];
                    row.iter_mut().for_each(|x| *x -= expected);
                }
                exact[i] = row.into();
            }
        }
        let error = relative_error(&gradient, &exact);
        assert!(error < 0.03, "{parameterisation:?} {baseline:?}: {error}");
    }
}

/// LSTD on one long trajectory approaches the fixed point of TD under the stationary law.
#[test]
fn lstd_approaches_the_fixed_point_of_td() {
    for name in ["line3_entropy", "ring5_weak"] {
        let reference = Reference::read(name);
        let problem = problem(&reference);
        let policy = reference.policy(Parameterisation::Softmax);
        let signals = exact_signals(&reference, &problem);
        let mut errors = Vec::new();
        for steps in [30_000, 3_000_000] {
            let kappa_q = reference.input("kappa_q").as_u64().unwrap() as usize;
            let tables = QTables::new(&reference.table, kappa_q, &problem).unwrap();
            let mut critic = Lstd::new(tables, steps, 1e-12);
            let evaluation = sample(&reference.table, &policy, 1, steps + 1, StartFrom::Uniform, 3);
            let mu = Ragged::zeros_like(&signals.slack);
            let (policy, evaluation) = (&policy, &evaluation);
            let evidence =
                CriticInput { iteration: 0, policy, mu: &mu, signals: &signals, batch: &[], evaluation };
            critic.evaluate(evidence).unwrap();
            let found = (0..reference.agents()).map(|j| critic.values().table(j, 0).unwrap().to_vec());
            let tables = reference.output("Qf_hat_td_stationary").as_array().unwrap().iter();
            let exact = tables.map(|table| table["values"].clone()).collect();
            errors.push(relative_error(&Ragged::from_rows(found), &exact));
        }
        assert!(errors[1] < 0.005 && errors[1] < errors[0] / 3.0, "{name}: {errors:?}");
    }
}
