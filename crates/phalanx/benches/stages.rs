//! Each stage of an iteration on the synthetic line, by number of agents. Time is for all agents together.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use phalanx::Ragged;
use phalanx::base::stream::{Place, Purpose, Stream};
use phalanx::distributed::Halo;
use phalanx::learn::actor::Actor;
use phalanx::learn::critic::{Critic, CriticInput, QTables, StepSettings, Td};
use phalanx::learn::shadow::Signals;
use phalanx::policy::{Baseline, GradientSettings, Policy};
use phalanx::policy::{Parameterisation, Tabular};
use phalanx::run::{Config, Session};
use phalanx::sample::occupancy::Visits;
use phalanx::sample::rollout::{Request, StartFrom, simulate};
use phalanx::world::Trajectory;

const HORIZON: usize = 125;
const BATCH: usize = 5;
const STEPS: usize = 500;

fn requests() -> Vec<Request> {
    (0..=BATCH)
        .map(|k| Request {
            place: Place { purpose: Purpose::Batch, iteration: 0, trajectory: k as u32 },
            start_purpose: Purpose::BatchStart,
            start: StartFrom::World,
        })
        .collect()
}

fn stages(c: &mut Criterion) {
    for n in [10, 1000] {
        let config = Config::preset("synthetic").and_then(|c| c.with("world.n", &n.to_string())).unwrap();
        let session = Session::new(&config).unwrap();
        let (world, problem) = (session.world(), session.problem());
        let stream = Stream::new(1);
        let policy = Tabular::new(world, 1, Parameterisation::Softmax, 1.0, &stream).unwrap();
        let (actions, halo) = (vec![2; n], &Halo::single(n));
        let groups = world.graph().neighbourhoods(1);
        let mut trajectories = vec![Trajectory::new(n, HORIZON); BATCH];
        trajectories.push(Trajectory::new(n, STEPS + 1));
        simulate(world, &policy, &stream, &requests(), &mut trajectories, halo).unwrap();
        let (batch, evaluation) = trajectories.split_at(BATCH);
        let weights = problem.occupancy_weights(HORIZON, BATCH);
        let mut visits = Visits::new(vec![4; n]);
        visits.add(batch, &weights, &actions);
        let mut signals = Signals::new(problem);
        signals.evaluate(problem, &visits.occupancy, 1.0);
        let tables = QTables::new(world, 1, problem).unwrap();
        let mut critic = Td::new(tables, STEPS, StepSettings::harmonic(50.0, 100.0), true);
        let mu = Ragged::from_rows(vec![[1.0]; n]);
        let evidence =
            CriticInput { iteration: 0, policy: &policy, mu: &mu, signals: &signals, batch, evaluation };
        critic.evaluate(evidence).expect("tables need no solver");
        let rule = GradientSettings {
            weights,
            baseline: Baseline::Counterfactual,
            neighbour_mean: false,
            own_share: 0.0,
            all_actions: false,
            normalise: false,
            entropy: 0.0,
        };

        let mut group = c.benchmark_group("stage");
        group.throughput(Throughput::Elements((n * (BATCH * HORIZON + STEPS)) as u64));
        let mut fresh = trajectories.clone();
        group.bench_function(BenchmarkId::new("sampling", n), |b| {
            b.iter(|| simulate(world, &policy, &stream, &requests(), &mut fresh, halo));
        });
        group.bench_function(BenchmarkId::new("occupancy", n), |b| {
            b.iter(|| {
                visits.clear();
                visits.add(batch, &rule.weights, &actions);
            });
        });
        let mut fresh = Signals::new(problem);
        group.bench_function(BenchmarkId::new("shadow rewards", n), |b| {
            b.iter(|| fresh.evaluate(problem, &visits.occupancy, 1.0));
        });
        group.bench_function(BenchmarkId::new("critic", n), |b| b.iter(|| critic.learn(evidence)));
        critic.values_mut().set_multipliers(&signals, &mu);
        let mut gradient = Ragged::zeros_like(policy.theta());
        let mut actor = Actor::single(world.graph(), &groups);
        group.bench_function(BenchmarkId::new("gradient", n), |b| {
            b.iter(|| actor.gradients(&policy, batch, critic.values(), &rule, &mut gradient));
        });
        group.finish();
    }
}

criterion_group!(benches, stages);
criterion_main!(benches);
