//! Neural networks as critics: what they learn, and every option of how, against the same steps written out.

use crate::Receive;
use crate::support::{act, moment, sample};
use phalanx::Ragged;
use phalanx::base::fields::Field;
use phalanx::base::stream::Stream;
use phalanx::exact::ExactCritic;
use phalanx::exact::Truncation;
use phalanx::learn::critic::{
    Critic, CriticInput, Descent, NeuralCritic, NeuralCriticSettings, QValues, SampleRequest, ValueReceiver,
    ValueRequest,
};
use phalanx::learn::optimizer::OptimizerKind;
use phalanx::learn::shadow::Signals;
use phalanx::neural::{Batch, Loss, Net, Tape};
use phalanx::policy::observation::{Inputs, ObservationEncoder, Widths};
use phalanx::policy::{Acting, NeuralPolicy, Parameterisation, Policy, Tabular};
use phalanx::run::{Config, Session};
use phalanx::sample::rollout::StartFrom;
use phalanx::utility::problem::Problem;
use phalanx::world::Trajectory;
use phalanx::world::World;

/// World and problem; one constraint per agent, or none.
fn session(world: &str, constrained: bool) -> Session {
    let constraint = "[[constraint]]\nkind = \"state_entropy\"\nat_least = 0.1";
    let text = format!(
        "gamma = 0.5\nkappa = 0\n[world]\n{world}\n[objective]\nkind = \"return\"\n{}",
        if constrained { constraint } else { "" }
    );
    Session::new(&Config::from_toml(&text, std::path::Path::new(".")).unwrap()).unwrap()
}

const LINE: &str = "kind = \"line\"\nn = 3\nmixing = 0.2";
const WIRELESS: &str = "kind = \"wireless\"\nrows = 2\ncolumns = 3";

fn widths() -> Widths {
    Widths { embedding: 4, row_hidden: 6, hidden: vec![24] }
}

fn sgd(learning_rate: f64) -> Descent {
    Descent::new(OptimizerKind::Sgd, learning_rate, f64::INFINITY)
}

fn rule() -> NeuralCriticSettings {
    NeuralCriticSettings {
        descent: sgd(0.05),
        minibatch: 64,
        passes: 1,
        loss: Loss::Squared,
        polyak: 0.9,
        twin: false,
        merged: false,
    }
}

fn critic(
    session: &Session,
    kappa_q: usize,
    rule: NeuralCriticSettings,
    from: SampleRequest,
) -> NeuralCritic {
    critic_of(session, kappa_q, &widths(), rule, from)
}

fn critic_of(
    session: &Session,
    kappa_q: usize,
    widths: &Widths,
    rule: NeuralCriticSettings,
    from: SampleRequest,
) -> NeuralCritic {
    NeuralCritic::new(session.world(), session.problem(), kappa_q, widths, rule, from, Stream::new(21))
        .unwrap()
}

fn policy(world: &dyn World) -> Tabular {
    Tabular::new(world, 0, Parameterisation::Softmax, 1.0, &Stream::new(5)).unwrap()
}

fn signals(problem: &Problem) -> Signals {
    let mut signals = Signals::new(problem);
    let row = |i: usize| (0..problem.row_length(i)).map(move |x| 1.0 + ((7 * i + 3 * x) % 11) as f64);
    signals.evaluate(problem, &Ragged::from_rows((0..problem.agents.len()).map(row)), 1.0);
    // Of the size of 1, so that one step size suits all.
    signals.rewards.data_mut().iter_mut().enumerate().for_each(|(x, r)| *r = (*r + 0.7 * x as f64).sin());
    signals
}

fn multipliers(signals: &Signals) -> Ragged<f64> {
    let mut mu = Ragged::zeros_like(&signals.slack);
    mu.data_mut().iter_mut().enumerate().for_each(|(x, mu)| *mu = 0.3 + 0.2 * x as f64);
    mu
}

fn evaluate(
    critic: &mut dyn Critic,
    policy: &dyn Policy,
    signals: &Signals,
    iteration: usize,
    evaluation: &[Trajectory],
) {
    let mu = multipliers(signals);
    critic.evaluate(CriticInput { iteration, policy, mu: &mu, signals, batch: &[], evaluation }).unwrap();
    assert_eq!(critic.values_mut().set_multipliers(signals, &mu), None);
}

/// Agent j's own values along the first of some trajectories.
fn along(critic: &mut dyn Critic, j: usize, batch: &[Trajectory]) -> Vec<f64> {
    let (from, trajectory, steps) = (&[j as u32][..], &batch[0], batch[0].steps());
    critic.values_mut().precompute(
        batch,
        steps,
        ValueRequest { alternatives: false, partial: false, levels: true },
    );
    let mut out = vec![0.0; steps];
    let inbox = ValueReceiver { to: j, from, constrained: from, number: 0, trajectory, steps };
    critic.values().receive_taken(inbox, &mut Vec::new(), &mut out);
    out
}

/// A copy of what a critic carries from one iteration to the next.
fn singles(critic: &mut NeuralCritic, name: &str) -> Vec<f32> {
    let found = critic.fields().into_iter().find(|(field, _)| *field == name);
    match found {
        Some((_, Field::SingleRows(rows))) => rows.data().to_vec(),
        _ => panic!("no numbers {name}"),
    }
}

/// √(mean square of the difference) over √(mean square of what Q varies by), over all agents and a long
/// trajectory.
fn relative_error(
    found: &mut dyn Critic,
    truth: &mut dyn Critic,
    agents: usize,
    batch: &[Trajectory],
) -> f64 {
    let (mut wrong, mut spread) = (0.0, 0.0);
    for j in 0..agents {
        let (f, t) = (along(found, j, batch), along(truth, j, batch));
        let mean = t.iter().sum::<f64>() / t.len() as f64;
        wrong += f.iter().zip(&t).map(|(f, t)| (f - t).powi(2)).sum::<f64>();
        spread += t.iter().map(|t| (t - mean).powi(2)).sum::<f64>();
    }
    (wrong / spread).sqrt()
}

/// With all agents in the neighbourhood, what is learnt is the true Q_f + μ·Q_g.
#[test]
fn networks_learn_the_true_values() {
    let session = session(LINE, true);
    let (world, problem) = (session.world(), session.problem());
    let (policy, signals) = (policy(world), signals(problem));
    let mut truth = ExactCritic::new(world, problem, &policy, 2, Truncation::Fixed).unwrap();
    evaluate(&mut truth, &policy, &signals, 0, &[]);
    let test = sample(world, &policy, 1, 400, StartFrom::Uniform, 1);
    let adam =
        NeuralCriticSettings { descent: Descent { optimizer: OptimizerKind::Adam, ..sgd(1e-3) }, ..rule() };
    let online = NeuralCriticSettings { minibatch: 0, descent: sgd(0.005), ..rule() };
    for (name, rule, iterations, limit) in [
        ("adam", adam.clone(), 120, 0.1),
        (
            "twin",
            NeuralCriticSettings { twin: true, loss: Loss::Huber { width: 1.0 }, ..adam.clone() },
            120,
            0.15,
        ),
        (
            "merged, clipped",
            NeuralCriticSettings { merged: true, descent: Descent { clip: 1.0, ..adam.descent }, ..adam },
            120,
            0.1,
        ),
        (
            "minibatches without target",
            NeuralCriticSettings { polyak: 0.0, descent: sgd(0.02), ..rule() },
            120,
            0.15,
        ),
        ("online", online.clone(), 80, 0.12),
        ("online without target", NeuralCriticSettings { polyak: 0.0, ..online }, 80, 0.12),
    ] {
        let mut critic = critic(&session, 2, rule, SampleRequest::chains(2, 1000));
        let mut errors = vec![];
        for t in 0..iterations {
            let chains = sample(world, &policy, 2, 1001, StartFrom::Uniform, 100 + t as u64);
            evaluate(&mut critic, &policy, &signals, t, &chains);
            if t == 0 || t + 1 == iterations {
                errors.push(relative_error(&mut critic, &mut truth, 3, &test));
            }
        }
        assert!(errors[1] < limit && errors[1] < errors[0] / 3.0, "{name}: {errors:?}");
        // Another Q is not as close: that of f alone.
        truth.values_mut().set_multipliers(&signals, &Ragged::zeros_like(&signals.slack));
        let other = relative_error(&mut critic, &mut truth, 3, &test);
        assert!(other > 3.0 * limit, "{name}: {other}");
        truth.values_mut().set_multipliers(&signals, &multipliers(&signals));
    }
}

/// [utility][twin][parameter] of agent j, as f64.
fn networks(
    critic: &mut NeuralCritic,
    name: &str,
    session: &Session,
    kappa_q: usize,
    per_agent: usize,
) -> Vec<Vec<Vec<f64>>> {
    let mut numbers = singles(critic, name).into_iter().map(f64::from);
    (0..session.world().graph().agents())
        .map(|j| {
            let parameters = net(session, j, kappa_q).1.parameters();
            (0..per_agent).map(|_| numbers.by_ref().take(parameters).collect()).collect()
        })
        .collect()
}

fn net(session: &Session, j: usize, kappa_q: usize) -> (ObservationEncoder, Net) {
    let groups = session.world().graph().neighbourhoods(kappa_q);
    let sight = ObservationEncoder::new(session.world(), j, groups.row(j), true);
    let net = Net::new(sight.architecture(&widths(), 1), "net").unwrap();
    (sight, net)
}

/// Numbers and symbols of steps of a trajectory, in double precision.
fn inputs(
    sight: &ObservationEncoder,
    trajectory: &Trajectory,
    steps: std::ops::Range<usize>,
) -> (Vec<f64>, Vec<u8>) {
    let mut inputs = Inputs::default();
    for k in steps {
        sight.encode_step(trajectory, k, |m| trajectory.actions(m)[k], &mut inputs);
    }
    (inputs.rows.iter().map(|&x| f64::from(x)).collect(), inputs.symbols)
}

/// Σ_j of the smaller twin's value, weighed by (1, μ), from the parameters and the definition of the
/// networks.
#[test]
fn values_are_those_of_the_networks() {
    for world in [LINE, WIRELESS] {
        let session = session(world, true);
        let (world, signals) = (session.world(), signals(session.problem()));
        let policy = policy(world);
        let mu = multipliers(&signals);
        let chains = sample(world, &policy, 1, 31, StartFrom::Uniform, 2);
        for (twin, merged) in [(false, false), (true, false), (true, true)] {
            let rule = NeuralCriticSettings { twin, merged, ..rule() };
            let mut critic = critic(&session, 1, rule, SampleRequest::chains(1, 30));
            evaluate(&mut critic, &policy, &signals, 0, &chains);
            let (utilities, twins) = (if merged { 1 } else { 2 }, if twin { 2 } else { 1 });
            let parameters = networks(&mut critic, "critic", &session, 1, utilities * twins);
            let batch = sample(world, &policy, 2, 15, StartFrom::Uniform, 3);
            critic.precompute(&batch, 12, ValueRequest { alternatives: false, partial: false, levels: true });
            let mut smaller = [0; 2];
            for to in 0..world.graph().agents() {
                let groups = world.graph().neighbourhoods(1);
                for (number, trajectory) in batch.iter().enumerate() {
                    let inbox = ValueReceiver {
                        to,
                        from: groups.row(to),
                        constrained: groups.row(to),
                        number,
                        trajectory,
                        steps: 12,
                    };
                    let mut found = vec![0.0; 12];
                    critic.values().receive_taken(inbox, &mut Vec::new(), &mut found);
                    let mut expected = vec![0.0; 12];
                    for &j in groups.row(to) {
                        let j = j as usize;
                        let (sight, net) = net(&session, j, 1);
                        let (rows, symbols) = inputs(&sight, trajectory, 0..12);
                        let batch = Batch { size: 12, rows: &rows, symbols: &symbols };
                        for (u, twin) in parameters[j].chunks(twins).enumerate() {
                            let weight = if u == 0 { 1.0 } else { mu.row(j)[0] };
                            let values: Vec<Vec<f64>> = twin
                                .iter()
                                .map(|w| net.forward(w, batch, &mut Tape::default()).to_vec())
                                .collect();
                            for (k, expected) in expected.iter_mut().enumerate() {
                                let least = (0..twins).min_by(|&a, &b| values[a][k].total_cmp(&values[b][k]));
                                *expected += weight * values[least.unwrap()][k];
                                smaller[least.unwrap()] += 1;
                            }
                        }
                    }
                    for (f, e) in found.iter().zip(&expected) {
                        assert!((f - e).abs() < 1e-4 * (1.0 + e.abs()), "{found:?} is not {expected:?}");
                    }
                }
            }
            assert!(!twin || smaller.iter().all(|&count| count > 20), "{smaller:?}");
        }
    }
}

/// One network for f + μ·g is the network of a problem without constraints that pays r_f + μ·r_g, byte for
/// byte.
#[test]
fn merged_is_the_critic_of_the_sum() {
    for world in [LINE, WIRELESS] {
        let (constrained, plain) = (session(world, true), session(world, false));
        let world = constrained.world();
        let (policy, signals) = (policy(world), signals(constrained.problem()));
        let mu = multipliers(&signals);
        let mut summed = Signals::new(plain.problem());
        for j in 0..world.graph().agents() {
            let (f, g) = signals.rewards.row(j).split_at(plain.problem().row_length(j));
            let sum = f.iter().zip(g).map(|(f, g)| f + mu.row(j)[0] * g);
            summed.rewards.row_mut(j).iter_mut().zip(sum).for_each(|(to, from)| *to = from);
        }
        for minibatch in [16, 0] {
            let from = SampleRequest::chains(2, 40);
            let rule = NeuralCriticSettings { minibatch, ..rule() };
            let mut merged =
                critic(&constrained, 1, NeuralCriticSettings { merged: true, ..rule.clone() }, from);
            let mut alone = critic(&plain, 1, rule, from);
            for t in 0..2 {
                let chains = sample(world, &policy, 2, 41, StartFrom::Uniform, t);
                evaluate(&mut merged, &policy, &signals, t as usize, &chains);
                evaluate(&mut alone, &policy, &summed, t as usize, &chains);
            }
            assert_eq!(singles(&mut merged, "critic"), singles(&mut alone, "critic"));
            assert_eq!(singles(&mut merged, "critic.target"), singles(&mut alone, "critic.target"));
        }
    }
}

/// Gradient steps, targets, clipping and the smaller of two target values, written out in double precision
/// with a minibatch that holds all transitions, so that their order does not matter.
#[test]
fn gradient_steps_by_definition() {
    let session = session(LINE, true);
    let (world, problem) = (session.world(), session.problem());
    let (policy, signals) = (policy(world), signals(problem));
    let (eta, gamma, steps, tau) = (0.1, problem.gamma, 25, 0.75);
    let chains = sample(world, &policy, 2, steps + 1, StartFrom::Uniform, 4);
    for (twin, polyak, clip, loss, passes) in [
        (false, tau, f64::INFINITY, Loss::Squared, 1),
        (false, tau, 0.05, Loss::Squared, 2),
        (true, tau, f64::INFINITY, Loss::Huber { width: 0.3 }, 2),
        (true, 0.0, 0.1, Loss::Squared, 1),
    ] {
        let rule = NeuralCriticSettings {
            descent: Descent { clip, ..sgd(eta) },
            minibatch: 2 * steps,
            twin,
            polyak,
            loss,
            passes,
            ..rule()
        };
        let mut critic = critic(&session, 1, rule, SampleRequest::chains(2, steps));
        let twins = if twin { 2 } else { 1 };
        let mut all = networks(&mut critic, "critic", &session, 1, 2 * twins);
        let mut targets = all.clone();
        for t in 0..3 {
            evaluate(&mut critic, &policy, &signals, t, &chains);
            for j in 0..world.graph().agents() {
                let (sight, net) = net(&session, j, 1);
                let now = inputs_of(&sight, &chains, 0..steps);
                let next = inputs_of(&sight, &chains, 1..steps + 1);
                for u in 0..2 {
                    let reward = &signals.rewards.row(j)[4 * u..4 * u + 4];
                    let rewards: Vec<f64> = chains
                        .iter()
                        .flat_map(|chain| chain.states(j).iter().zip(chain.actions(j)).take(steps))
                        .map(|(&s, &a)| reward[usize::from(s) * 2 + usize::from(a)])
                        .collect();
                    let (w, slow) = (
                        &mut all[j][u * twins..(u + 1) * twins],
                        &mut targets[j][u * twins..(u + 1) * twins],
                    );
                    for _ in 0..passes {
                        let value = |w: &Vec<f64>, (rows, symbols): &(Vec<f64>, Vec<u8>)| {
                            net.forward(w, Batch { size: 2 * steps, rows, symbols }, &mut Tape::default())
                                .to_vec()
                        };
                        let valued: Vec<Vec<f64>> = if polyak > 0.0 { slow.iter() } else { w.iter() }
                            .map(|w| value(w, &next))
                            .collect();
                        let wanted: Vec<f64> = (0..2 * steps)
                            .map(|k| {
                                rewards[k] + gamma * valued.iter().map(|v| v[k]).fold(f64::INFINITY, f64::min)
                            })
                            .collect();
                        for (w, slow) in w.iter_mut().zip(slow.iter_mut()) {
                            let mut tape = Tape::default();
                            let batch = Batch { size: 2 * steps, rows: &now.0, symbols: &now.1 };
                            let values = net.forward(w, batch, &mut tape).to_vec();
                            let slopes: Vec<f64> = values
                                .iter()
                                .zip(&wanted)
                                .map(|(v, y)| match loss {
                                    Loss::Squared => 2.0 * (v - y) / (2 * steps) as f64,
                                    Loss::Huber { width } => {
                                        (v - y).clamp(-width, width) / (2 * steps) as f64
                                    }
                                })
                                .collect();
                            let mut gradient = vec![0.0; w.len()];
                            net.backward(w, batch, &mut tape, &slopes, &mut gradient);
                            let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
                            let shorter = if norm > clip { clip / norm } else { 1.0 };
                            w.iter_mut().zip(&gradient).for_each(|(w, g)| *w -= eta * shorter * g);
                            slow.iter_mut()
                                .zip(w.iter())
                                .for_each(|(s, w)| *s = polyak * *s + (1.0 - polyak) * w);
                        }
                    }
                }
            }
            let close = |found: &[Vec<Vec<f64>>], expected: &[Vec<Vec<f64>>]| {
                let pairs = found.iter().flatten().flatten().zip(expected.iter().flatten().flatten());
                pairs.map(|(f, e)| (f - e).abs()).fold(0.0, f64::max)
            };
            let found = networks(&mut critic, "critic", &session, 1, 2 * twins);
            assert!(close(&found, &all) < 1e-5, "iteration {t}: {}", close(&found, &all));
            if polyak > 0.0 {
                let found = networks(&mut critic, "critic.target", &session, 1, 2 * twins);
                assert!(close(&found, &targets) < 1e-5, "iteration {t}: {}", close(&found, &targets));
            }
        }
    }
}

/// The same steps of several trajectories, one after the other.
fn inputs_of(
    sight: &ObservationEncoder,
    chains: &[Trajectory],
    steps: std::ops::Range<usize>,
) -> (Vec<f64>, Vec<u8>) {
    let (mut rows, mut symbols) = (Vec::new(), Vec::new());
    for chain in chains {
        let (more_rows, more_symbols) = inputs(sight, chain, steps.clone());
        rows.extend(more_rows);
        symbols.extend(more_symbols);
    }
    (rows, symbols)
}

/// Networks with one hidden layer are asked anew for every alternative, those with more go on from its sums.
#[test]
fn alternatives_are_what_would_be_received() {
    for (world, hidden) in
        [LINE, WIRELESS].into_iter().flat_map(|w| [vec![24], vec![20, 9], vec![16, 8, 5]].map(|h| (w, h)))
    {
        let session = session(world, true);
        let world = session.world();
        let (policy, signals) = (policy(world), signals(session.problem()));
        let rule = NeuralCriticSettings { twin: true, ..rule() };
        let from = SampleRequest::chains(1, 50);
        let mut critic = critic_of(&session, 1, &Widths { hidden, ..widths() }, rule, from);
        let chains = sample(world, &policy, 1, 51, StartFrom::Uniform, 5);
        evaluate(&mut critic, &policy, &signals, 0, &chains);
        let batch = sample(world, &policy, 2, 10, StartFrom::Uniform, 6);
        let senders = world.graph().neighbourhoods(2);
        for to in 0..world.graph().agents() {
            let (from, actions, steps, number) = (senders.row(to), world.actions(to), 10, 1);
            critic.precompute(
                &batch,
                steps,
                ValueRequest { alternatives: true, partial: false, levels: true },
            );
            let mut found = vec![0.0; steps * actions];
            let inbox =
                ValueReceiver { to, from, constrained: from, number, trajectory: &batch[number], steps };
            critic.values().receive_alternatives(inbox, actions, &mut Vec::new(), &mut found);
            for b in 0..actions {
                let mut replaced = batch.clone();
                (0..steps).for_each(|k| *replaced[number].pair_mut(to, k).1 = b as u8);
                critic.precompute(
                    &replaced,
                    steps,
                    ValueRequest { alternatives: false, partial: false, levels: true },
                );
                let inbox = ValueReceiver {
                    to,
                    from,
                    constrained: from,
                    number,
                    trajectory: &replaced[number],
                    steps,
                };
                let mut expected = vec![0.0; steps];
                critic.values().receive_taken(inbox, &mut Vec::new(), &mut expected);
                for (f, e) in found.iter().skip(b).step_by(actions).zip(&expected) {
                    assert!((f - e).abs() < 1e-5 * (1.0 + e.abs()), "agent {to}: {f} is not {e}");
                }
            }
        }
    }
}

/// Acting side by side is acting alone, whatever the number of trajectories and their lengths.
#[test]
fn trajectories_side_by_side_are_those_alone() {
    for world in [LINE, WIRELESS] {
        let session = session(world, false);
        let world = session.world();
        let policy = NeuralPolicy::new(world, 1, &widths(), 2.0, &Stream::new(9)).unwrap();
        let together = sample(world, &policy, 40, 30, StartFrom::World, 7);
        for (k, expected) in together.iter().enumerate() {
            let alone = sample(world, &policy, k + 1, 30, StartFrom::World, 7);
            assert_eq!(&alone[k], expected, "{k}");
        }
        // Agent by agent, from the same numbers.
        let states: Vec<u8> = (0..policy.agents()).map(|i| together[3].states(i)[4]).collect();
        for draw in (0..1 << 31).step_by(1 << 25) {
            let (mut all, draws) = (vec![9; policy.agents()], vec![draw; policy.agents()]);
            all.copy_from_slice(&act(&policy, &states, &draws));
            let mut side_by_side = vec![9; 20 * policy.agents()];
            let repeat = |x: &[u8]| x.repeat(20);
            let draws = vec![draw; 20 * policy.agents()];
            let Acting::Together(together) = policy.acting() else { panic!("networks act together") };
            let moment = moment(&states);
            together.act(&[&moment; 20], 0, &draws, &mut side_by_side);
            assert_eq!(side_by_side, repeat(&all));
        }
    }
}
