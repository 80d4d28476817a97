//! Neighbours within κ_q send values of their objectives; those of their constraints count within κ_g only.

use crate::Receive;
use crate::support::sample;
use phalanx::Ragged;
use phalanx::base::stream::Stream;
use phalanx::exact::ExactCritic;
use phalanx::exact::Truncation;
use phalanx::learn::critic::{
    AllFeatures, Critic, CriticFeatures, CriticInput, Descent, LinearCritic, LinearRule, Lstd, MonteCarlo,
    NeuralCritic, NeuralCriticSettings, QTables, Returns, ReturnsSettings, SampleRequest, StepSettings, Td,
    ValueReceiver, ValueRequest,
};
use phalanx::learn::optimizer::OptimizerKind;
use phalanx::learn::shadow::Signals;
use phalanx::neural::Loss;
use phalanx::policy::observation::Widths;
use phalanx::policy::{Parameterisation, Tabular};
use phalanx::run::{Config, Session};
use phalanx::sample::rollout::StartFrom;
use phalanx::world::Trajectory;

const N: usize = 6;
const KAPPA_Q: usize = 2;
const STEPS: usize = 10;

fn session() -> Session {
    let text = format!(
        "gamma = 0.8\nkappa = 0\n[world]\nkind = \"line\"\nn = {N}\nmixing = 0.1\n[objective]\nkind = \"return\"\n\
         [[constraint]]\nkind = \"state_entropy\"\nat_least = 0.1\n[[constraint]]\nkind = \"action_l2\"\nat_most = 0.4"
    );
    Session::new(&Config::from_toml(&text, std::path::Path::new(".")).unwrap()).unwrap()
}

/// Critics of every kind that has values of single utilities.
fn critics(session: &Session, policy: &Tabular) -> Vec<(&'static str, Box<dyn Critic>)> {
    let (world, problem) = (session.world(), session.problem());
    let tables = || QTables::new(world, KAPPA_Q, problem).unwrap();
    let from = SampleRequest::chains(1, 100);
    let widths = Widths { embedding: 3, row_hidden: 3, hidden: vec![5] };
    let descent = Descent::new(OptimizerKind::Adam, 0.01, f64::INFINITY);
    let linear = |rule| {
        let features = AllFeatures::new(world, KAPPA_Q, CriticFeatures::Additive, true).unwrap();
        Box::new(LinearCritic::new(features, problem, rule, from))
    };
    let network = |twin| {
        let (minibatch, passes, loss, polyak, merged) = (16, 2, Loss::Squared, 0.0, false);
        let rule = NeuralCriticSettings { descent, minibatch, passes, loss, polyak, twin, merged };
        Box::new(NeuralCritic::new(world, problem, KAPPA_Q, &widths, rule, from, Stream::new(3)).unwrap())
    };
    let returns = ReturnsSettings { lambda: 0.9, descent, minibatch: 16, passes: 2, loss: Loss::Squared };
    let step = StepSettings::constant(0.2);
    vec![
        ("td", Box::new(Td::new(tables(), 100, step, false))),
        ("lstd", Box::new(Lstd::new(tables(), 100, 1e-3))),
        ("exact", Box::new(ExactCritic::new(world, problem, policy, KAPPA_Q, Truncation::Td).unwrap())),
        ("linear lstd", linear(LinearRule::Lstd { ridge: 1e-3, average: 0.0 })),
        ("linear td", linear(LinearRule::Td(step))),
        ("network", network(false)),
        ("twin networks", network(true)),
        ("montecarlo", Box::new(MonteCarlo::new(problem, 2))),
        (
            "returns",
            Box::new(Returns::new(world, problem, KAPPA_Q, &widths, returns, Stream::new(3)).unwrap()),
        ),
    ]
}

/// What `to` receives from `from` along every trajectory, with the constraints of `constrained`.
fn received(
    critic: &dyn Critic,
    to: usize,
    from: &[u32],
    constrained: &[u32],
    batch: &[Trajectory],
    alternatives: bool,
) -> Vec<f64> {
    let mut found = Vec::new();
    for (number, trajectory) in batch.iter().enumerate() {
        let inbox = ValueReceiver { to, from, constrained, number, trajectory, steps: STEPS };
        let mut out = vec![f64::NAN; STEPS * if alternatives { 2 } else { 1 }];
        if alternatives {
            critic.values().receive_alternatives(inbox, 2, &mut Vec::new(), &mut out);
        } else {
            critic.values().receive_taken(inbox, &mut Vec::new(), &mut out);
        }
        found.extend(out);
    }
    found
}

#[test]
fn constraints_beyond_their_radius_do_not_count() {
    let session = session();
    let (world, problem) = (session.world(), session.problem());
    let policy = Tabular::new(world, 1, Parameterisation::Softmax, 0.5, &Stream::new(4)).unwrap();
    let chain = sample(world, &policy, 1, 101, StartFrom::Uniform, 1);
    let batch = sample(world, &policy, 2, STEPS + 2, StartFrom::World, 2);
    let mut signals = Signals::new(problem);
    let row = |i: usize| (0..problem.row_length(i)).map(move |x| 1.0 + ((7 * i + 3 * x) % 5) as f64);
    signals.evaluate(problem, &Ragged::from_rows((0..N).map(row)), 1.0);
    let mu = Ragged::from_rows((0..N).map(|i| [0.5 + i as f64, 2.0]));
    let nothing = Ragged::zeros_like(&mu);
    let senders = world.graph().neighbourhoods(KAPPA_Q);
    for (name, mut critic) in critics(&session, &policy) {
        let (batch, evaluation) = (&batch[..], &chain[..]);
        let policy = &policy;
        // Twice: at first `returns` has no baseline.
        for iteration in 0..2 {
            let evidence = CriticInput { iteration, policy, mu: &mu, signals: &signals, batch, evaluation };
            critic.evaluate(evidence).unwrap();
        }
        for alternatives in [false, true] {
            if alternatives && !critic.values().knows_alternatives() {
                continue;
            }
            // Each sender's values with its constraints, and without: as if its multipliers were zero.
            let mut sent = |mu: &Ragged<f64>| {
                assert_eq!(critic.values_mut().set_multipliers(&signals, mu), None);
                critic.values_mut().precompute(
                    batch,
                    STEPS,
                    ValueRequest { alternatives, partial: false, levels: true },
                );
                let from = |to: usize, j: u32| received(&*critic, to, &[j], &[j], batch, alternatives);
                let all = (0..N).map(|to| senders.row(to).iter().map(|&j| from(to, j)).collect());
                all.collect::<Vec<Vec<Vec<f64>>>>()
            };
            let (without, with) = (sent(&nothing), sent(&mu));
            for kappa_g in 0..=KAPPA_Q {
                let constrained = world.graph().neighbourhoods(kappa_g);
                let wanted = ValueRequest { alternatives, partial: kappa_g < KAPPA_Q, levels: true };
                critic.values_mut().precompute(batch, STEPS, wanted);
                for to in 0..N {
                    let (from, near) = (senders.row(to), constrained.row(to));
                    let found = received(&*critic, to, from, near, batch, alternatives);
                    let mut expected = vec![0.0; found.len()];
                    let mut all = vec![0.0; found.len()];
                    for (place, j) in from.iter().enumerate() {
                        let counts = if near.contains(j) { &with } else { &without };
                        expected.iter_mut().zip(&counts[to][place]).for_each(|(sum, q)| *sum += q);
                        all.iter_mut().zip(&with[to][place]).for_each(|(sum, q)| *sum += q);
                    }
                    let close = |a: &[f64], b: &[f64]| {
                        a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-5 * (1.0 + b.abs()))
                    };
                    let name = format!("{name}, kappa_g {kappa_g}, agent {to}, alternatives: {alternatives}");
                    assert!(close(&found, &expected), "{name}: {found:?} is not {expected:?}");
                    assert_eq!(close(&found, &all), near.len() == from.len(), "{name}");
                }
            }
        }
    }
}
