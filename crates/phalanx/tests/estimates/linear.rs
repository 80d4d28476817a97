//! Linear critics: least squares and temporal differences against what defines them, worked out without their
//! weights.

use crate::Receive;
use crate::support::{Reference, sample};
use phalanx::Ragged;
use phalanx::base::stream::Stream;
use phalanx::learn::critic::{
    AllFeatures, Critic, CriticFeatures, CriticInput, LinearCritic, LinearRule, Lstd, QTables, QValues,
    SampleRequest, StepSettings, ValueReceiver,
};
use phalanx::learn::shadow::Signals;
use phalanx::policy::{LinearPolicy, PolicyFeatures};
use phalanx::run::{Config, Session};
use phalanx::sample::rollout::StartFrom;
use phalanx::utility::problem::Problem;
use phalanx::world::Trajectory;
use phalanx::world::World;

/// World and problem of a configuration with one constraint on every agent.
fn session(world: &str) -> Session {
    let text = format!(
        "gamma = 0.8\nkappa = 0\n[world]\n{world}\n[objective]\nkind = \"return\"\n[[constraint]]\n\
         kind = \"state_entropy\"\nat_least = 0.1"
    );
    Session::new(&Config::from_toml(&text, std::path::Path::new(".")).unwrap()).unwrap()
}

const LINE: &str = "kind = \"line\"\nn = 5\nmixing = 0.1";
const WIRELESS: &str = "kind = \"wireless\"\nrows = 3\ncolumns = 3\ndeadline = [1, 2, 2, 1, 2, 2, 1, 1, 2]";

fn signals(problem: &Problem) -> Signals {
    let mut signals = Signals::new(problem);
    let row = |i: usize| (0..problem.row_length(i)).map(move |x| 1.0 + ((7 * i + 3 * x) % 11) as f64);
    signals.evaluate(problem, &Ragged::from_rows((0..problem.agents.len()).map(row)), 1.0);
    signals
}

/// One multiplier per agent.
fn multipliers(n: usize) -> Ragged<f64> {
    Ragged::from_rows((0..n).map(|i| [0.25 * i as f64]))
}

fn chains(world: &dyn World, count: usize, pairs: usize, seed: u64) -> Vec<Trajectory> {
    let policy = LinearPolicy::new(world, 1, PolicyFeatures::Pair, true, 1.0, &Stream::new(8)).unwrap();
    sample(world, &policy, count, pairs, StartFrom::Uniform, seed)
}

fn evaluate(critic: &mut dyn Critic, world: &dyn World, signals: &Signals, evaluation: &[Trajectory]) {
    let policy = LinearPolicy::new(world, 0, PolicyFeatures::Pair, true, 0.0, &Stream::new(0)).unwrap();
    let mu = multipliers(world.graph().agents());
    let evidence = CriticInput { iteration: 0, policy: &policy, mu: &mu, signals, batch: &[], evaluation };
    critic.evaluate(evidence).unwrap();
    assert_eq!(critic.values_mut().set_multipliers(signals, &mu), None);
}

/// Agent j's own values along a trajectory.
fn along(values: &dyn QValues, j: usize, trajectory: &Trajectory) -> Vec<f64> {
    let (from, steps) = (&[j as u32][..], trajectory.steps());
    let mut out = vec![0.0; steps];
    values.receive_taken(
        ValueReceiver { to: j, from, constrained: from, number: 0, trajectory, steps },
        &mut Vec::new(),
        &mut out,
    );
    out
}

#[track_caller]
fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    assert!(largest > 1e-6, "nothing to compare with");
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() <= tolerance * (1.0 + largest), "{found:?} is not {expected:?}");
    }
}

#[test]
fn features_of_the_own_pair_are_a_table() {
    for world in [LINE, WIRELESS] {
        let session = session(world);
        let (world, problem) = (session.world(), session.problem());
        let signals = signals(problem);
        let (chain, other) = (chains(world, 1, 301, 1), chains(world, 1, 60, 2));
        let tables = QTables::new(world, 0, problem).unwrap();
        let mut table = Lstd::new(tables, 300, 0.01);
        let features = AllFeatures::new(world, 0, CriticFeatures::Own, false).unwrap();
        let rule = LinearRule::Lstd { ridge: 0.01, average: 0.0 };
        let mut linear = LinearCritic::new(features, problem, rule, SampleRequest::chains(1, 300));
        assert_eq!(table.samples(), linear.samples());
        evaluate(&mut table, world, &signals, &chain);
        evaluate(&mut linear, world, &signals, &chain);
        for j in 0..world.graph().agents() {
            let [found, expected] =
                [linear.values(), table.values()].map(|values| along(values, j, &other[0]));
            assert_close(&found, &expected, 1e-12);
        }
    }
}

/// φ·φ' of two (state, action) pairs of a neighbourhood: how many indicators they share, from their
/// definition.
fn shared(
    world: &dyn World,
    kind: CriticFeatures,
    with_world: bool,
    j: usize,
    group: &[u32],
    a: (&Trajectory, usize),
    b: (&Trajectory, usize),
) -> f64 {
    let same =
        |m: usize| a.0.states(m)[a.1] == b.0.states(m)[b.1] && a.0.actions(m)[a.1] == b.0.actions(m)[b.1];
    let others = || group.iter().map(|&m| m as usize).filter(|&m| m != j);
    let generic = match kind {
        CriticFeatures::Own => usize::from(same(j)),
        CriticFeatures::Additive => usize::from(same(j)) + others().filter(|&m| same(m)).count(),
        CriticFeatures::Pair => usize::from(same(j)) * (1 + others().filter(|&m| same(m)).count()),
    };
    let active = |(trajectory, k): (&Trajectory, usize)| {
        let pick =
            |column: &dyn Fn(usize) -> u8| group.iter().map(|&m| column(m as usize)).collect::<Vec<_>>();
        let (states, actions) = (pick(&|m| trajectory.states(m)[k]), pick(&|m| trajectory.actions(m)[k]));
        let mut active = Vec::new();
        if let Some(features) = world.features(j, group).filter(|_| with_world) {
            features.active(&states, &actions, &mut active);
        }
        active
    };
    let (of_a, of_b) = (active(a), active(b));
    (generic + of_a.iter().filter(|x| of_b.contains(x)).count()) as f64
}

/// r_f + μ·r_g at a step, from the shadow rewards' layout: cells, then one weight per sampled channel.
fn reward(problem: &Problem, signals: &Signals, mu: f64, j: usize, trajectory: &Trajectory, k: usize) -> f64 {
    let (f, g) = signals.rewards.row(j).split_at(problem.row_length(j));
    let pays = |row: &[f64]| {
        let cell = usize::from(trajectory.states(j)[k]) * problem.agents[j].space.actions
            + usize::from(trajectory.actions(j)[k]);
        let (cells, channels) = row.split_at(problem.agents[j].space.cells());
        let sampled = channels.iter().enumerate();
        cells[cell] + sampled.map(|(c, weight)| weight * f64::from(trajectory.rewards(c, j)[k])).sum::<f64>()
    };
    pays(f) + mu * pays(g)
}

/// The equations ridge·w = Σ_t ω_t·mean_k φ_k·δ_k with δ = r + γQ' − Q, seen at the samples: Q_l = φ_l·w.
fn assert_solves(
    session: &Session,
    critic: &LinearCritic,
    kind: CriticFeatures,
    with_world: bool,
    ridge: f64,
    weighed: &[(f64, &Signals, &[Trajectory])],
) {
    let (world, problem) = (session.world(), session.problem());
    let groups = world.graph().neighbourhoods(1);
    for j in [0, 2, world.graph().agents() - 1] {
        let mu = multipliers(problem.agents.len()).row(j)[0];
        // (weight of the sample, its temporal difference, where it is).
        let mut terms = Vec::new();
        for &(weight, signals, trajectories) in weighed {
            let count: usize = trajectories.iter().map(|trajectory| trajectory.steps() - 1).sum();
            for trajectory in trajectories {
                let q = along(critic.values(), j, trajectory);
                for k in 0..trajectory.steps() - 1 {
                    let r = reward(problem, signals, mu, j, trajectory, k);
                    terms.push((
                        weight / count as f64 * (r + problem.gamma * q[k + 1] - q[k]),
                        (trajectory, k),
                    ));
                }
            }
        }
        let trajectory = &weighed[0].2[0];
        let found = &along(critic.values(), j, trajectory)[..20];
        let expected: Vec<f64> = (0..20)
            .map(|l| {
                let at = |place| shared(world, kind, with_world, j, groups.row(j), (trajectory, l), place);
                terms.iter().map(|&(term, place)| term * at(place)).sum::<f64>() / ridge
            })
            .collect();
        assert_close(found, &expected, 1e-9);
    }
}

const KINDS: [CriticFeatures; 3] = [CriticFeatures::Own, CriticFeatures::Additive, CriticFeatures::Pair];

#[test]
fn least_squares_solve_their_equations() {
    let ridge = 0.05;
    for (world, with_world) in [(LINE, false), (WIRELESS, true), (WIRELESS, false)] {
        let session = session(world);
        let (world, problem) = (session.world(), session.problem());
        let signals = signals(problem);
        for kind in KINDS {
            let features = AllFeatures::new(world, 1, kind, with_world).unwrap();
            let rule = LinearRule::Lstd { ridge, average: 0.0 };
            let mut critic = LinearCritic::new(features, problem, rule, SampleRequest::chains(3, 40));
            let samples = critic.samples();
            assert_eq!((samples.chains, samples.evaluation_pairs), (3, 41));
            let chains = chains(world, 3, 41, 3);
            evaluate(&mut critic, world, &signals, &chains);
            assert_solves(&session, &critic, kind, with_world, ridge, &[(1.0, &signals, &chains)]);
        }
    }
}

/// After two iterations with average ½ the equations weigh ½/(1 + ½) and 1/(1 + ½). The rewards are the last
/// ones for both: what was averaged is how often each feature met each of them.
#[test]
fn averaged_equations_weigh_iterations_geometrically() {
    let (ridge, average) = (0.05, 0.5);
    for (world, with_world) in [(LINE, false), (WIRELESS, true)] {
        let session = session(world);
        let (world, problem) = (session.world(), session.problem());
        let features = AllFeatures::new(world, 1, CriticFeatures::Additive, with_world).unwrap();
        let rule = LinearRule::Lstd { ridge, average };
        let mut critic = LinearCritic::new(features, problem, rule, SampleRequest::chains(1, 60));
        let (first, second) = (chains(world, 1, 61, 3), chains(world, 1, 61, 4));
        let signals = signals(problem);
        evaluate(&mut critic, world, &signals, &first);
        // Alone it counts in full.
        let kind = CriticFeatures::Additive;
        assert_solves(&session, &critic, kind, with_world, ridge, &[(1.0, &signals, &first)]);
        let mut changed = signals.clone();
        changed.rewards.data_mut().iter_mut().enumerate().for_each(|(x, r)| *r += (x as f64).sin());
        evaluate(&mut critic, world, &changed, &second);
        let weighed = [(1.0 / 3.0, &changed, &first[..]), (2.0 / 3.0, &changed, &second)];
        assert_solves(&session, &critic, kind, with_world, ridge, &weighed);
    }
}

/// Two agents, features of both pairs, three steps, η = ½ (¼ for each of two features), γ = 0.8:
///
/// | step | own (s, a) | other (s, a) | active |
/// |---|---|---|---|
/// | 0 | (1, 0) | (0, 1) | A, B |
/// | 1 | (1, 0) | (1, 1) | A, C |
/// | 2 | (0, 0) | (0, 1) | D, B |
#[test]
fn temporal_differences_by_hand() {
    let session = session("kind = \"line\"\nn = 2");
    let (world, problem) = (session.world(), session.problem());
    let mut trajectory = Trajectory::new(2, 3);
    for (k, pairs) in [[(1, 0), (0, 1)], [(1, 0), (1, 1)], [(0, 0), (0, 1)]].into_iter().enumerate() {
        for (agent, (state, action)) in pairs.into_iter().enumerate() {
            let (s, a) = trajectory.pair_mut(agent, k);
            (*s, *a) = (state, action);
        }
    }
    let mut signals = Signals::new(problem);
    // Agent 0: r_f(1, 0) = 3, and nothing else. Agent 1: r_f(0, 1) = 1, r_f(1, 1) = 5. No g.
    signals.rewards.row_mut(0)[2] = 3.0;
    (signals.rewards.row_mut(1)[1], signals.rewards.row_mut(1)[3]) = (1.0, 5.0);
    let features = AllFeatures::new(world, 1, CriticFeatures::Additive, true).unwrap();
    let rule = LinearRule::Td(StepSettings::constant(0.5));
    let mut critic = LinearCritic::new(features, problem, rule, SampleRequest::chains(1, 2));
    evaluate(&mut critic, world, &signals, std::slice::from_ref(&trajectory));
    let mut expected = Vec::new();
    for rewards in [[3.0, 3.0], [1.0, 5.0]] {
        let (mut a, mut b, mut c) = (0.0, 0.0, 0.0);
        let d = 0.0;
        let first = 0.25 * (rewards[0] + 0.8 * (a + c) - (a + b));
        (a, b) = (a + first, b + first);
        let second = 0.25 * (rewards[1] + 0.8 * (d + b) - (a + c));
        (a, c) = (a + second, c + second);
        expected.push([a + b, a + c, d + b]);
    }
    // ¼·3 = 0.75, then ¼·(3 + 0.6 − 0.75) = 0.7125.
    assert_close(&expected[0], &[2.2125, 2.175, 0.75], 1e-15);
    for j in 0..2 {
        assert_close(&along(critic.values(), j, &trajectory), &expected[j], 1e-14);
    }
    // A second evaluation goes on from there.
    evaluate(&mut critic, world, &signals, std::slice::from_ref(&trajectory));
    assert!((along(critic.values(), 0, &trajectory)[0] - expected[0][0]).abs() > 0.1);
}

#[test]
fn alternatives_are_what_would_be_received() {
    let table = Reference::read("line4_mixed_utilities");
    let text = format!("kind = \"table\"\nallow_infeasible = true\nfile = {:?}", table.path);
    let of_table = {
        let text = format!("kappa = 0\n[world]\n{text}");
        Session::new(&Config::from_toml(&text, std::path::Path::new(".")).unwrap()).unwrap()
    };
    for session in [session(LINE), session(WIRELESS), of_table] {
        let (world, problem) = (session.world(), session.problem());
        let signals = signals(problem);
        let learnt_from = chains(world, 1, 101, 5);
        let batch = chains(world, 1, 12, 6);
        let mu = Ragged::zeros_like(&signals.slack);
        let senders = world.graph().neighbourhoods(2);
        for kind in KINDS {
            let features = AllFeatures::new(world, 1, kind, true).unwrap();
            let rule = LinearRule::Td(StepSettings::constant(0.3));
            let from = SampleRequest::chains(1, 100);
            let mut critic = LinearCritic::new(features, problem, rule, from);
            let policy =
                LinearPolicy::new(world, 0, PolicyFeatures::Pair, true, 0.0, &Stream::new(0)).unwrap();
            let evaluation = &learnt_from[..];
            let evidence = CriticInput {
                iteration: 0,
                policy: &policy,
                mu: &mu,
                signals: &signals,
                batch: &[],
                evaluation,
            };
            critic.evaluate(evidence).unwrap();
            critic.values_mut().set_multipliers(&signals, &mu);
            for to in 0..world.graph().agents() {
                // Some senders within two hops see the receiver, some do not.
                let (from, actions, steps) = (senders.row(to), world.actions(to), 12);
                let mut found = vec![0.0; steps * actions];
                let inbox =
                    ValueReceiver { to, from, constrained: from, number: 0, trajectory: &batch[0], steps };
                critic.values().receive_alternatives(inbox, actions, &mut Vec::new(), &mut found);
                for b in 0..actions {
                    let mut replaced = batch[0].clone();
                    (0..steps).for_each(|k| *replaced.pair_mut(to, k).1 = b as u8);
                    let mut expected = vec![0.0; steps];
                    let inbox = ValueReceiver {
                        to,
                        from,
                        constrained: from,
                        number: 0,
                        trajectory: &replaced,
                        steps,
                    };
                    critic.values().receive_taken(inbox, &mut Vec::new(), &mut expected);
                    let found: Vec<f64> = found.iter().skip(b).step_by(actions).copied().collect();
                    assert_close(&found, &expected, 1e-12);
                }
            }
        }
    }
}
