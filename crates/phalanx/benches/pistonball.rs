//! The physics of Pistonball with random moves: steps of the game per second, by number of pistons.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use phalanx::base::stream::{Place, Purpose, Sequence, Stream};
use phalanx::world::pistonball::physics::Physics;
use phalanx::world::pistonball::{MAX_CYCLES, draw_start};

/// Games whose starts and moves are drawn beforehand.
const GAMES: usize = 16;

fn uniform(draws: &mut Sequence) -> f64 {
    f64::from(draws.next_u32()) / (f64::from(u32::MAX) + 1.0)
}

fn steps(c: &mut Criterion) {
    let mut group = c.benchmark_group("pistonball");
    group.throughput(Throughput::Elements((GAMES * MAX_CYCLES) as u64));
    for n in [10, 20] {
        let place = Place { purpose: Purpose::Evaluation, iteration: 0, trajectory: 0 };
        let mut draws = Stream::new(1).sequence(place, 0);
        let games: Vec<_> = (0..GAMES)
            .map(|_| {
                let (heights, ball) = draw_start(n, || uniform(&mut draws));
                let moves: Vec<f64> =
                    (0..n * MAX_CYCLES).map(|_| (3.0 * uniform(&mut draws)).floor() - 1.0).collect();
                (heights, ball, moves)
            })
            .collect();
        group.bench_function(BenchmarkId::new("random moves", n), |b| {
            b.iter(|| {
                for (heights, ball, moves) in &games {
                    let mut physics = Physics::new(heights, *ball);
                    for up in moves.chunks_exact(n) {
                        physics.advance(|piston| up[piston]);
                    }
                    black_box(physics.ball());
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, steps);
criterion_main!(benches);
