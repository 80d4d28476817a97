//! Episodes that end early, against numbers computed by hand: nothing comes after the end, while an episode
//! that is cut off at the horizon would have gone on.
//!
//! Two agents with states 0, 1, 2 and actions 0, 1, γ = ½, H = 3, and two episodes (`support::corridor`), as
//! (s, a, reward):
//!
//! | step | short, agent 0 | agent 1 | cut, agent 0 | agent 1 |
//! |---|---|---|---|---|
//! | 0 | (0, 1, 0) | (0, 1, 0) | (0, 0, ½) | (0, 1, 1) |
//! | 1 | (1, 1, 1) | (2, 0, 3) | (0, 1, 0) | (1, 0, 1) |
//! | 2 | ended | ended | (2, 1, ¼) | (1, 0, 1) |

use std::collections::HashMap;

use crate::Receive;
use crate::support::corridor::{Step, configured, cut, episode, short, small};
use phalanx::Ragged;
use phalanx::algorithm::mean_return;
use phalanx::base::fields::Field;
use phalanx::base::stream::Stream;
use phalanx::learn::critic::{
    AllFeatures, Critic, CriticFeatures, CriticInput, Descent, LinearCritic, LinearRule, Lstd, MonteCarlo,
    NeuralCritic, NeuralCriticSettings, QTables, Returns, ReturnsSettings, SampleRequest, StepSettings, Td,
    ValueReceiver, ValueRequest,
};
use phalanx::learn::optimizer::OptimizerKind;
use phalanx::learn::shadow::Signals;
use phalanx::neural::{Loss, Net, Tape};
use phalanx::policy::observation::{Inputs, ObservationEncoder, Widths};
use phalanx::run::Session;
use phalanx::sample::occupancy::Visits;
use phalanx::utility::problem::Problem;
use phalanx::world::Trajectory;

const GAMMA: f64 = 0.5;

#[track_caller]
fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() <= tolerance, "{found:?} is not {expected:?}");
    }
}

/// Visits of both episodes, rescaled as the problem says.
fn visits(problem: &Problem) -> Visits {
    let mut visits = Visits::new((0..2).map(|i| problem.row_length(i)));
    visits.add(&[short(), cut()], &problem.occupancy_weights(3, 2), &[2, 2]);
    visits.rescale(problem);
    visits
}

#[test]
fn occupancies_have_their_mass_over_the_steps_that_were_lived() {
    let session = small("normalised");
    let found = visits(session.problem());
    // Weights 4/7, 2/7, 1/7; lived are 6/7 of the first episode's mass of 1, and all of the second's.
    assert_close(&[found.lived_fraction()], &[13.0 / 14.0], 1e-15);
    let thirteenths = |row: [f64; 6]| row.map(|x| x / 13.0);
    assert_close(&found.occupancy.row(0)[..6], &thirteenths([8.0, 12.0, 0.0, 4.0, 0.0, 2.0]), 1e-15);
    assert_close(&found.occupancy.row(1)[..6], &thirteenths([0.0, 16.0, 6.0, 0.0, 4.0, 0.0]), 1e-15);
    for i in 0..2 {
        assert_close(&[found.occupancy.row(i)[..6].iter().sum()], &[1.0 / (1.0 - GAMMA)], 1e-15);
    }
    // Nothing is earned after the end: discounted totals are what they are.
    let totals = [0, 1].map(|i| found.occupancy.row(i)[6]);
    assert_close(&totals, &[17.0 / 28.0, 13.0 / 7.0], 1e-15);
    assert_close(found.counts.row(0), &[1.0, 2.0, 0.0, 1.0, 0.0, 1.0, 1.75], 0.0);
    assert_eq!(mean_return(session.world(), &found.counts, 2.0), Some((1.75 + 6.0) / 4.0));
    let mut signals = Signals::new(session.problem());
    signals.evaluate(session.problem(), &found.occupancy, found.lived_fraction());
    assert_close(&signals.objective, &[17.0 / 56.0, 13.0 / 14.0], 1e-15);
}

#[test]
fn scalings_of_raw_occupancies() {
    // Weights ½, ¼, 1/8; the authors' entropies are over the steps that were lived, the paper's formulas are
    // literal.
    let [paper, authors] = ["paper", "authors"].map(|scaling| visits(small(scaling).problem()));
    let eighths = [4.0, 6.0, 0.0, 2.0, 0.0, 1.0].map(|x| x / 8.0);
    assert_close(&paper.occupancy.row(0)[..6], &eighths, 1e-15);
    assert_close(&authors.occupancy.row(0)[..6], &eighths.map(|x| x * 14.0 / 13.0), 1e-15);
    for found in [paper, authors] {
        assert_close(
            &[found.lived_fraction(), found.occupancy.row(0)[6]],
            &[13.0 / 14.0, 17.0 / 32.0],
            1e-15,
        );
    }
}

/// The authors' code: sums over the steps that were lived, plain slopes at them, and what each step pays
/// beside.
#[test]
fn the_authors_count_what_was_lived_as_it_is() {
    let keys = "gamma = 0.5\nhorizon = 3\nbatch = 2\nkappa = 1\nscaling = \"authors\"\nraw_lives = true";
    let constraint =
        "[[constraint]]\nkind = \"state_entropy\"\nat_least = 0.1\nshadow_scale = 15.0\nshadow_shift = -1.0";
    let session = Session::new(&configured(keys, constraint)).unwrap();
    let (problem, found) = (session.problem(), visits(session.problem()));
    assert_close(&found.occupancy.row(0)[..6], &[4.0, 6.0, 0.0, 2.0, 0.0, 1.0].map(|x| x / 8.0), 1e-15);
    let mut signals = Signals::new(problem);
    signals.evaluate(problem, &found.occupancy, found.lived_fraction());
    let entropy_slope = |lambda: f64| -0.5 * ((0.5 * lambda).ln() + 1.0);
    let expected = [10.0, 2.0, 1.0].map(|eighths: f64| 15.0 * entropy_slope(eighths / 8.0) - 1.0);
    let paid = &signals.rewards.row(0)[7..13];
    assert_close(&[paid[0], paid[2], paid[4]], &expected, 1e-12);
    assert_close(&signals.rewards.row(0)[..7], &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], 0.0);
    let with_shift = configured(keys, constraint).with_all([("objective.shadow_shift", "-0.5")]).unwrap();
    let session = Session::new(&with_shift).unwrap();
    signals.evaluate(session.problem(), &found.occupancy, found.lived_fraction());
    assert_close(&signals.rewards.row(0)[..7], &[-0.5, -0.5, -0.5, -0.5, -0.5, -0.5, 1.0], 0.0);
    let elsewhere = [("objective.shadow_shift", "1"), ("scaling", "normalised"), ("raw_lives", "false")];
    let refused = Session::new(&configured(keys, "").with_all(elsewhere).unwrap());
    assert!(refused.err().unwrap().to_string().starts_with("objective.shadow_shift: is for scaling"));
}

/// d/dε of g at the occupancy when a step in a cell weighs ε more, which also makes the episodes that much
/// longer.
#[test]
fn shadow_rewards_are_derivatives_of_the_rescaled_occupancy() {
    for scaling in ["normalised", "authors", "paper"] {
        let session = small(scaling);
        let problem = session.problem();
        let found = visits(problem);
        let mut signals = Signals::new(problem);
        signals.evaluate(problem, &found.occupancy, found.lived_fraction());
        for (i, agent) in problem.agents.iter().enumerate() {
            let cells = agent.space.cells();
            let weights = problem.occupancy_weights(3, 2);
            let mut raw = vec![0.0; cells];
            for trajectory in [short(), cut()] {
                let pairs = trajectory.states(i).iter().zip(trajectory.actions(i)).zip(&weights);
                pairs.for_each(|((&s, &a), w)| raw[2 * usize::from(s) + usize::from(a)] += w);
            }
            let value = |changed: &[f64]| {
                let lived: f64 = changed.iter().sum();
                let factor = if scaling == "paper" { 1.0 } else { problem.mass(3) / lived };
                let mut row: Vec<f64> = changed.iter().map(|x| factor * x).collect();
                row.push(found.occupancy.row(i)[cells]);
                agent.constraints[0].slack(&row, agent.space)
            };
            assert_close(signals.slack.row(i), &[value(&raw)], 1e-14);
            let visited: Vec<usize> = (0..cells).filter(|&cell| raw[cell] > 0.0).collect();
            let derivatives = visited.iter().map(|&cell| {
                let at = |epsilon: f64| {
                    let mut changed = raw.clone();
                    changed[cell] += epsilon;
                    value(&changed)
                };
                (at(1e-5) - at(-1e-5)) / 2e-5
            });
            let mut derivatives: Vec<f64> = derivatives.collect();
            let row = &signals.rewards.row(i)[cells + 1..2 * cells + 1];
            let mut rewards: Vec<f64> = visited.iter().map(|&cell| row[cell]).collect();
            if scaling == "authors" {
                // Not centred: only what one cell pays more than another is a derivative.
                for numbers in [&mut rewards, &mut derivatives] {
                    let first = numbers[0];
                    numbers.iter_mut().for_each(|x| *x -= first);
                }
            }
            assert!(derivatives.iter().any(|d| d.abs() > 0.1), "{derivatives:?}");
            assert_close(&rewards, &derivatives, 1e-8);
            // The channel pays f alone, as it is.
            let pays = if scaling == "normalised" { 0.5 } else { 1.0 };
            assert_eq!([signals.rewards.row(i)[cells], signals.rewards.row(i)[2 * cells + 1]], [pays, 0.0]);
        }
    }
}

/// Shadow rewards that pay for every cell and, of f, half of what the channel does.
fn signals(problem: &Problem) -> Signals {
    let mut signals = Signals::new(problem);
    for j in 0..2 {
        let row = signals.rewards.row_mut(j);
        row.iter_mut().enumerate().for_each(|(x, r)| *r = 1.0 + ((5 * x + 3 * j) % 7) as f64 / 4.0);
        (row[6], row[13]) = (0.5, 0.0);
    }
    signals
}

const MU: [f64; 2] = [0.25, 2.0];

/// f + μ·g of agent j at step k.
fn pays(signals: &Signals, j: usize, trajectory: &Trajectory, k: usize) -> f64 {
    let cell = 2 * usize::from(trajectory.states(j)[k]) + usize::from(trajectory.actions(j)[k]);
    let row = signals.rewards.row(j);
    row[cell] + 0.5 * f64::from(trajectory.rewards(0, j)[k]) + MU[j] * row[7 + cell]
}

/// Lets `critic` learn from trajectories, as its batch and as its chains.
fn teach(critic: &mut dyn Critic, session: &Session, trajectories: &[Trajectory]) {
    let signals = signals(session.problem());
    let (policy, mu) = (session.policy(), Ragged::from_rows(MU.map(|mu| [mu])));
    let (batch, evaluation) = (trajectories, trajectories);
    let evidence = CriticInput { iteration: 0, policy, mu: &mu, signals: &signals, batch, evaluation };
    critic.evaluate(evidence).unwrap();
    assert_eq!(critic.values_mut().set_multipliers(&signals, &mu), None);
}

/// Agent j's own values at the first `steps` steps of every trajectory.
fn values(critic: &mut dyn Critic, j: usize, batch: &[Trajectory], steps: usize) -> Vec<f64> {
    critic.values_mut().precompute(
        batch,
        steps,
        ValueRequest { alternatives: false, partial: false, levels: true },
    );
    let mut found = Vec::new();
    for (number, trajectory) in batch.iter().enumerate() {
        let (from, steps) = (&[j as u32][..], steps.min(trajectory.steps()));
        let mut out = vec![f64::NAN; steps];
        let inbox = ValueReceiver { to: j, from, constrained: from, number, trajectory, steps };
        critic.values().receive_taken(inbox, &mut Vec::new(), &mut out);
        found.extend(out);
    }
    found
}

#[test]
fn sampled_returns_stop_at_the_end() {
    let session = small("normalised");
    let signals = signals(session.problem());
    let mut critic = MonteCarlo::new(session.problem(), 1);
    let batch = [short(), cut()];
    teach(&mut critic, &session, &batch);
    for j in 0..2 {
        let r = |episode: usize, k| pays(&signals, j, &batch[episode], k);
        // Of the cut one, the third step is the tail: it counts, but nobody asks for its value.
        let tail = r(1, 1) + 0.5 * r(1, 2);
        let expected = [r(0, 0) + 0.5 * r(0, 1), r(0, 1), r(1, 0) + 0.5 * tail, tail];
        assert_close(&values(&mut critic, j, &batch, 2), &expected, 1e-14);
    }
}

/// Temporal differences over indicators, from their definition: `see` names those that are active.
fn differences(
    j: usize,
    trajectories: &[Trajectory],
    rule: StepSettings,
    signals: &Signals,
    see: impl Fn(&Trajectory, usize) -> Vec<String>,
) -> Vec<f64> {
    let mut weights: HashMap<String, f64> = HashMap::new();
    let value = |weights: &HashMap<String, f64>, trajectory: &Trajectory, k: usize| -> f64 {
        see(trajectory, k).iter().map(|name| weights.get(name).copied().unwrap_or(0.0)).sum()
    };
    let mut update = 0;
    for trajectory in trajectories {
        for k in 0..trajectory.steps() {
            let next = match (k + 1 < trajectory.steps(), trajectory.ended()) {
                (true, _) => value(&weights, trajectory, k + 1),
                (false, true) => 0.0,
                (false, false) => continue,
            };
            let now = value(&weights, trajectory, k);
            let difference = pays(signals, j, trajectory, k) + GAMMA * next - now;
            let active = see(trajectory, k);
            for name in &active {
                let step = rule.step(update) / active.len() as f64;
                *weights.entry(name.clone()).or_default() += step * difference;
            }
            update += 1;
        }
    }
    let places = trajectories.iter().flat_map(|t| (0..t.steps()).map(move |k| (t, k)));
    places.map(|(trajectory, k)| value(&weights, trajectory, k)).collect()
}

/// What both agents see and do at a step, each by itself.
fn pairs(trajectory: &Trajectory, k: usize) -> [String; 2] {
    [0, 1].map(|m| format!("{m}: {}, {}", trajectory.states(m)[k], trajectory.actions(m)[k]))
}

#[test]
fn temporal_differences_value_the_end_at_nothing() {
    let session = small("normalised");
    let (world, problem) = (session.world(), session.problem());
    let signals = signals(problem);
    // The steps η go on from one trajectory to the next.
    let rule = StepSettings::harmonic(1.0, 2.0);
    let chains = [short(), cut(), short()];
    let mut tables = Td::new(QTables::new(world, 1, problem).unwrap(), 6, rule, false);
    let linear = |kind| {
        let features = AllFeatures::new(world, 1, kind, false).unwrap();
        let from = SampleRequest::chains(1, 6);
        LinearCritic::new(features, problem, LinearRule::Td(rule), from)
    };
    let (mut own, mut additive) = (linear(CriticFeatures::Own), linear(CriticFeatures::Additive));
    teach(&mut tables, &session, &chains);
    teach(&mut own, &session, &chains);
    teach(&mut additive, &session, &chains);
    for j in 0..2 {
        let expected = differences(j, &chains, rule, &signals, |t, k| vec![pairs(t, k).join("; ")]);
        assert_close(&values(&mut tables, j, &chains, 9), &expected, 1e-14);
        let expected = differences(j, &chains, rule, &signals, |t, k| vec![pairs(t, k)[j].clone()]);
        assert_close(&values(&mut own, j, &chains, 9), &expected, 1e-14);
        let expected = differences(j, &chains, rule, &signals, |t, k| pairs(t, k).to_vec());
        assert_close(&values(&mut additive, j, &chains, 9), &expected, 1e-14);
    }
}

/// Fewer updates than transitions: the last ones are not made.
#[test]
fn temporal_differences_stop_after_k() {
    let session = small("normalised");
    let rule = StepSettings::constant(0.5);
    let [mut one, mut two] = [1, 2].map(|steps| {
        let tables = QTables::new(session.world(), 1, session.problem()).unwrap();
        Td::new(tables, steps, rule, false)
    });
    let last = |critic: &mut Td| {
        teach(critic, &session, &[short()]);
        values(critic, 0, &[short()], 2)[1]
    };
    assert_eq!(last(&mut one), 0.0);
    assert_close(&[last(&mut two)], &[0.5 * pays(&signals(session.problem()), 0, &short(), 1)], 1e-15);
}

/// X → Y → end, and X → X cut off: three transitions and two unknowns, with a ridge of ¼.
#[test]
fn least_squares_value_the_end_at_nothing() {
    let session = small("normalised");
    let (world, problem) = (session.world(), session.problem());
    let signals = signals(problem);
    let (x, y): (Step, Step) = ([(0, 1, 0.5), (1, 0, 2.0)], [(2, 0, 1.0), (2, 1, 0.0)]);
    let again: Step = [(0, 1, 0.0), (1, 0, 1.0)];
    let chains = [episode(&[x, y], true), episode(&[again, x], false)];
    let mut joint = Lstd::new(QTables::new(world, 1, problem).unwrap(), 3, 0.25);
    let mut alone = Lstd::new(QTables::new(world, 0, problem).unwrap(), 3, 0.25);
    let features = AllFeatures::new(world, 0, CriticFeatures::Own, false).unwrap();
    let rule = LinearRule::Lstd { ridge: 0.25, average: 0.0 };
    let mut linear = LinearCritic::new(features, problem, rule, SampleRequest::chains(1, 3));
    let critics: [&mut dyn Critic; 3] = [&mut joint, &mut alone, &mut linear];
    for critic in critics {
        teach(critic, &session, &chains);
        for j in 0..2 {
            let r = |episode: usize, k| pays(&signals, j, &chains[episode], k);
            // (⅓ + ¼)·Q(Y) = ⅓·r(Y), and (⅔ + ¼ − ⅓γ)·Q(X) − ⅓γ·Q(Y) = ⅓·(r(X) + r'(X)).
            let of_y = r(0, 1) / 3.0 / (7.0 / 12.0);
            let of_x = ((r(0, 0) + r(1, 0)) / 3.0 + of_y / 6.0) / 0.75;
            assert_close(&values(critic, j, &chains, 2), &[of_x, of_y, of_x, of_x], 1e-13);
        }
    }
}

fn widths() -> Widths {
    Widths { embedding: 4, row_hidden: 4, hidden: vec![16] }
}

/// X → Y → end and Z → Z cut off: Q(Y) = r(Y), Q(X) = r(X) + γ·Q(Y), Q(Z) = r(Z)/(1 − γ).
fn loops() -> ([Trajectory; 2], [[f64; 3]; 2]) {
    let (x, y): (Step, Step) = ([(0, 1, 0.5), (1, 0, 2.0)], [(2, 0, 1.0), (2, 1, 0.0)]);
    let z: Step = [(1, 1, 0.25), (0, 0, 1.0)];
    let chains = [episode(&[x, y], true), episode(&[z, z], false)];
    let session = small("normalised");
    let signals = signals(session.problem());
    let expected = [0, 1].map(|j| {
        let r = |episode: usize, k| pays(&signals, j, &chains[episode], k);
        [r(0, 0) + 0.5 * r(0, 1), r(0, 1), 2.0 * r(1, 0)]
    });
    (chains, expected)
}

#[test]
fn networks_value_the_end_at_nothing() {
    let session = small("normalised");
    let (chains, expected) = loops();
    let rule = |optimizer, minibatch, polyak| NeuralCriticSettings {
        descent: Descent::new(optimizer, 0.01, f64::INFINITY),
        minibatch,
        passes: 40,
        loss: Loss::Squared,
        polyak,
        twin: false,
        merged: false,
    };
    let (adam, sgd) = (OptimizerKind::Adam, OptimizerKind::Sgd);
    // Online there are no passes.
    for (rule, rounds) in [
        (rule(adam, 2, 0.5), 40),
        (rule(adam, 3, 0.0), 60),
        (rule(sgd, 0, 0.5), 1500),
        (rule(sgd, 0, 0.0), 1500),
    ] {
        for from in [SampleRequest::batch(1), SampleRequest::chains(1, 3)] {
            let stream = Stream::new(3);
            let name = format!("{rule:?}, {from:?}");
            let (world, problem) = (session.world(), session.problem());
            let mut critic =
                NeuralCritic::new(world, problem, 1, &widths(), rule.clone(), from, stream).unwrap();
            (0..rounds).for_each(|_| teach(&mut critic, &session, &chains));
            for (j, [of_x, of_y, of_z]) in expected.iter().enumerate() {
                let found = values(&mut critic, j, &chains, 2);
                for (found, expected) in found.iter().zip([of_x, of_y, of_z, of_z]) {
                    assert!(
                        (found - expected).abs() < 0.02 * expected,
                        "{name}, agent {j}: {found}, {expected}"
                    );
                }
            }
        }
    }
}

fn returns(session: &Session, lambda: f64, passes: usize) -> Returns {
    let descent = Descent::new(OptimizerKind::Adam, 0.01, f64::INFINITY);
    let rule = ReturnsSettings { lambda, descent, minibatch: 2, passes, loss: Loss::Squared };
    Returns::new(session.world(), session.problem(), 1, &widths(), rule, Stream::new(3)).unwrap()
}

/// Weights of all networks, and sizes of all returns, `[agent][utility]`.
fn learnt(critic: &mut Returns) -> (Vec<f32>, Vec<f64>) {
    let (mut weights, mut squares) = (Vec::new(), Vec::new());
    for (name, field) in critic.fields() {
        match (name, field) {
            ("critic", Field::SingleRows(found)) => weights = found.data().to_vec(),
            ("critic.squares", Field::Rows(found)) => squares = found.data().to_vec(),
            _ => {}
        }
    }
    (weights, squares.iter().map(|square| square.sqrt()).collect())
}

/// V_f + μ·V_g of agent j at every step of a trajectory, from the networks themselves.
fn baselines(session: &Session, critic: &mut Returns, j: usize, trajectory: &Trajectory) -> Vec<f64> {
    let (weights, sizes) = learnt(critic);
    let sight = ObservationEncoder::new(session.world(), j, &[0, 1], false);
    let net = Net::new(sight.architecture(&widths(), 2), "critic.hidden").unwrap();
    let mut inputs = Inputs::default();
    sight.encode([(trajectory, trajectory.steps())], &mut inputs);
    let mut tape = Tape::default();
    let own = &weights[j * net.parameters()..(j + 1) * net.parameters()];
    let outputs = net.forward(own, inputs.batch(), &mut tape).chunks_exact(2);
    let sizes = &sizes[2 * j..2 * j + 2];
    outputs.map(|v| sizes[0] * f64::from(v[0]) + MU[j] * sizes[1] * f64::from(v[1])).collect()
}

#[test]
fn advantages_are_sums_of_differences_of_the_learnt_values() {
    let session = small("normalised");
    let signals = signals(session.problem());
    let batch = [short(), cut(), short()];
    for lambda in [0.0, 0.7, 1.0] {
        let mut critic = returns(&session, lambda, 30);
        assert_eq!(critic.samples().batch_tail, 1);
        // At first nothing is known about the size of returns; from then on values matter.
        (0..3).for_each(|_| teach(&mut critic, &session, &batch));
        let values_before = [0, 1].map(|j| {
            let of = |t| baselines(&session, &mut critic, j, t);
            batch.iter().map(of).collect::<Vec<_>>()
        });
        teach(&mut critic, &session, &batch);
        for (j, before) in values_before.iter().enumerate() {
            let mut expected = Vec::new();
            for (trajectory, v) in batch.iter().zip(before) {
                let differences: Vec<f64> = (0..trajectory.transitions())
                    .map(|k| {
                        let next = v.get(k + 1).copied().unwrap_or(0.0);
                        pays(&signals, j, trajectory, k) + GAMMA * next - v[k]
                    })
                    .collect();
                expected.extend((0..2).map(|k| {
                    let later = differences[k..].iter().enumerate();
                    later.map(|(l, d)| (GAMMA * lambda).powi(l as i32) * d).sum::<f64>()
                }));
                assert!(v.iter().all(|v| v.abs() > 0.01), "{v:?}");
            }
            assert_close(&values(&mut critic, j, &batch, 2), &expected, 1e-5);
        }
    }
}

#[test]
fn without_values_advantages_are_sampled_returns() {
    let session = small("normalised");
    let signals = signals(session.problem());
    let batch = [short(), cut()];
    let mut critic = returns(&session, 1.0, 1);
    for (name, field) in critic.fields() {
        match field {
            Field::SingleRows(weights) => weights.data_mut().fill(0.0),
            Field::Rows(squares) => squares.data_mut().fill(4.0),
            Field::Counter(steps) => *steps = 7,
            Field::Numbers(_) | Field::SingleNumbers(_) => unreachable!(),
        }
        assert!(name.starts_with("critic"));
    }
    teach(&mut critic, &session, &batch);
    for j in 0..2 {
        let r = |episode: usize, k| pays(&signals, j, &batch[episode], k);
        // The state that the cut one stands in is worth V = 0.
        let expected = [r(0, 0) + 0.5 * r(0, 1), r(0, 1), r(1, 0) + 0.5 * r(1, 1), r(1, 1)];
        assert_close(&values(&mut critic, j, &batch, 2), &expected, 1e-14);
    }
    // What the networks aim at are returns in units of their mean square, of which 2 % are new.
    let (_, sizes) = learnt(&mut critic);
    let r = |k| signals.rewards.row(0)[[1, 3][k]] + 0.5 * [0.0, 1.0][k];
    let s = |k| signals.rewards.row(0)[[0, 1][k]] + 0.5 * [0.5, 0.0][k];
    let targets = [r(0) + 0.5 * r(1), r(1), s(0) + 0.5 * s(1), s(1)];
    let square = targets.iter().map(|t| t * t).sum::<f64>() / 4.0;
    assert_close(&[sizes[0] * sizes[0]], &[0.98 * 4.0 + 0.02 * square], 1e-12);
}

#[test]
fn values_learn_that_nothing_comes_after_the_end() {
    let session = small("normalised");
    let (chains, expected) = loops();
    for lambda in [0.0, 0.9] {
        let mut critic = returns(&session, lambda, 20);
        (0..150).for_each(|_| teach(&mut critic, &session, &chains));
        for (j, &[of_x, of_y, of_z]) in expected.iter().enumerate() {
            let mut of = |t: &Trajectory| baselines(&session, &mut critic, j, t);
            let [of_short, of_cut] = [of(&chains[0]), of(&chains[1])];
            for (found, expected) in of_short.iter().chain(&of_cut).zip([of_x, of_y, of_z, of_z]) {
                assert!(
                    (found - expected).abs() < 0.03 * expected,
                    "λ {lambda}, agent {j}: {found}, {expected}"
                );
            }
        }
    }
}
