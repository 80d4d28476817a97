//! Do all targets survive the inputs that are kept, and some thousand random ones? `cargo xtask fuzz` looks
//! for worse, led by coverage.

use std::path::Path;
use std::time::Duration;

use phalanx_fuzz::find;
use phalanx_fuzz::statistics::Statistics;

/// Bytes of a random input.
const LENGTH: usize = 96;

/// No input may take longer. More than the second of `cargo xtask fuzz`: machines of tests are busy.
const LONGEST: Duration = Duration::from_secs(10);

/// Tries what is kept of a target and `count` random inputs, always the same ones.
fn survives(name: &str, count: usize) {
    let target = find(name).unwrap();
    let mut statistics = Statistics::default();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(format!("{name}.txt"));
    for line in std::fs::read_to_string(kept).unwrap().lines() {
        let byte = |k: usize| u8::from_str_radix(&line[k..k + 2], 16).unwrap();
        statistics.run(target, &(0..line.len()).step_by(2).map(byte).collect::<Vec<u8>>());
    }
    let mut state = 1_u64;
    for _ in 0..count {
        let input: Vec<u8> = (0..LENGTH)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 56) as u8
            })
            .collect();
        statistics.run(target, &input);
    }
    let Statistics { executions, past_first_check, slowest, .. } = statistics;
    let share = past_first_check as f64 / executions as f64;
    assert!(share >= 0.3, "{name}: {past_first_check} of {executions} inputs got past the first check");
    assert!(slowest < LONGEST, "{name}: an input took {slowest:?}");
}

/// A test for every target, so that they run side by side.
macro_rules! survive {
    ($($name:ident: $count:literal,)*) => {
        $(#[test]
        fn $name() {
            survives(stringify!($name), $count);
        })*

        #[test]
        fn every_target_has_a_test() {
            let tested = [$(stringify!($name)),*];
            assert_eq!(phalanx_fuzz::TARGETS.map(|target| target.name), tested);
        }
    };
}

survive! {
    config: 20_000,
    set: 20_000,
    model: 30_000,
    exact: 20_000,
    tables: 200_000,
    edges: 60_000,
    replay: 40_000,
    traffic: 4_000,
    phases: 60_000,
    sweep: 8_000,
    policy: 100_000,
    multipliers: 300_000,
    usual_states: 100_000,
    checkpoint: 20_000,
    manifest: 60_000,
    outcome: 100_000,
    metrics: 15_000,
    report: 20_000,
    portable: 40_000,
    datagram: 100_000,
    addresses: 60_000,
}
