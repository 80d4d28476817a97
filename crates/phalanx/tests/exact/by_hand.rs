//! Every line of Algorithm 1, and TD updates of Algorithm 2, against numbers computed by hand on two agents.
//!
//! The line with n = 2: agent 0 copies agent 1's state, agent 1's next state is its action. γ = 1/2, B = 1, H
//! = 2, K = 2 with η_Q = 1/2, 1/3. f is the return (1 for agent 0 in state 1, 0.1 for agent 1), g = ‖λ‖² − 2.
//! The seed is one whose Q-evaluation visits the same pairs as its batch:
//!
//! | step | s | a | pair number in `[4 states][4 actions]` |
//! |---|---|---|---|
//! | 0 | (1, 0) | (1, 1) | 2·4 + 3 = 11 |
//! | 1 | (0, 1) | (0, 0) | 1·4 + 0 = 4 |
//!
//! and Q-evaluation: 11 → 4 → 11.

use phalanx::algorithm::LastIteration;
use phalanx::run::{Config, Session};

const CONFIG: &str = r#"
iterations = 1
seed = 2137
gamma = 0.5
horizon = 2
batch = 1
kappa = 1

[world]
kind = "line"
n = 2

[objective]
kind = "return"

[[constraint]]
kind = "l2sq"
at_least = 2.0

[critic]
steps = 2
start = "cold"
h = 1.0
k1 = 2.0

[dual]
kind = "proximal"
eta_mu = 4.0
mu_max = 10.0

[actor]
optimizer = "sgd"
eta_theta = 0.1
baseline = "none"
"#;

fn one_iteration(scaling: &str) -> Session {
    let config = Config::from_toml(CONFIG, std::path::Path::new(".")).unwrap();
    let mut session = Session::new(&config.with("scaling", scaling).unwrap()).unwrap();
    session.advance().unwrap();
    session
}

#[track_caller]
fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() < 1e-14, "{found:?} is not {expected:?}");
    }
}

#[test]
fn paper_scaling_is_the_literal_algorithm() {
    let session = one_iteration("paper");
    let LastIteration { trajectories, visits, signals, q, gradient } = session.algorithm().last().unwrap();

    // Line 3.
    let [batch, evaluation] = trajectories else { panic!("one batch and one evaluation trajectory") };
    assert_eq!([batch.states(0), batch.states(1)], [[1, 0], [0, 1]]);
    assert_eq!([batch.actions(0), batch.actions(1)], [[1, 0], [1, 0]]);
    assert_eq!([evaluation.states(0), evaluation.states(1)], [[1, 0, 1], [0, 1, 0]]);
    assert_eq!([evaluation.actions(0), evaluation.actions(1)], [[1, 0, 1], [1, 0, 1]]);

    // Line 4: weight 1 on the first pair, 1/2 on the second.
    assert_close(visits.occupancy.row(0), &[0.5, 0.0, 0.0, 1.0]);
    assert_close(visits.occupancy.row(1), &[0.0, 1.0, 0.5, 0.0]);

    // Line 5: g = 1 + 1/4 − 2; r_f as given, r_g = 2·λ.
    assert_close(signals.slack.data(), &[-0.75, -0.75]);
    assert_close(signals.rewards.row(0), &[0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 2.0]);
    assert_close(signals.rewards.row(1), &[0.0, 0.0, 0.1, 0.1, 0.0, 2.0, 1.0, 0.0]);

    // Line 6, eq:td_learning: Q(11) = 1/2·(r + γ·0), then Q(4) = 1/3·(r + γ·Q(11)); nothing else changes.
    let table = |first: f64, second: f64| {
        let mut q = [0.0; 16];
        (q[11], q[4]) = (first, second);
        q
    };
    for (agent, which, first, second) in [
        (0, 0, 0.5, 0.25 / 3.0),        // r_f0: 1, 0
        (0, 1, 1.0, (1.0 + 0.5) / 3.0), // r_g0: 2, 1
        (1, 0, 0.0, 0.1 / 3.0),         // r_f1: 0, 0.1
        (1, 1, 1.0, (1.0 + 0.5) / 3.0), // r_g1: 2, 1
    ] {
        assert_close(q.table(agent, which).unwrap(), &table(first, second));
    }

    // Line 7: μ = P_[0,10](−4·(−0.75)/2).
    assert_close(session.algorithm().mu().data(), &[1.5, 1.5]);

    // Line 8. Sums over both agents of Q_f + μ·Q_g: 0.5 + 1.5 + 0 + 1.5 at the first pair and
    // 1/12 + 0.75 + 1/30 + 0.75 at the second; weights γ^k/n; scores ±1/2 of the uniform policy.
    let first = 0.5 * 3.5 * 0.5;
    let second = 0.25 * (1.5 + 1.0 / 12.0 + 1.0 / 30.0) * 0.5;
    // Both agents see (s_0, s_1): observation 2, then 1. Both act at the first step and rest at the second.
    let expected = [0.0, 0.0, second, -second, -first, first, 0.0, 0.0];
    assert_close(gradient.row(0), &expected);
    assert_close(gradient.row(1), &expected);
    assert_close(&[first, second], &[0.875, 0.20208333333333334]);

    // Line 9.
    let theta = session.algorithm().policy().theta();
    assert_close(theta.row(0), &expected.map(|g| 0.1 * g));
    assert_close(theta.row(1), &expected.map(|g| 0.1 * g));
}

#[test]
fn authors_scaling_drops_the_discount_and_averages_over_neighbours() {
    let session = one_iteration("authors");
    let LastIteration { gradient, .. } = session.algorithm().last().unwrap();
    // μ = −4·(−0.75), without 1/n.
    assert_close(session.algorithm().mu().data(), &[3.0, 3.0]);
    let first = (0.5 + 3.0 + 0.0 + 3.0) / 2.0 * 0.5;
    let second = (1.0 / 12.0 + 1.5 + 1.0 / 30.0 + 1.5) / 2.0 * 0.5;
    assert_close(gradient.row(0), &[0.0, 0.0, second, -second, -first, first, 0.0, 0.0]);
}

#[test]
fn normalised_scaling_rescales_and_centres() {
    let session = one_iteration("normalised");
    let LastIteration { visits, signals, gradient, .. } = session.algorithm().last().unwrap();
    // Mass 1.5 becomes 1/(1−γ) = 2.
    assert_close(visits.occupancy.row(0), &[2.0 / 3.0, 0.0, 0.0, 4.0 / 3.0]);
    // g = 4/9 + 16/9 − 2; μ = max(0, −4·g).
    assert_close(signals.slack.row(0), &[2.0 / 9.0]);
    assert_close(session.algorithm().mu().data(), &[0.0, 0.0]);
    // f is multiplied by 1−γ: r = (0, 0, 1/2, 1/2), mean (1/2·4/3)/2 = 1/3. r_g = 2·λ, mean (4/3·2/3 +
    // 8/3·4/3)/2.
    let mean_g = (8.0 / 9.0 + 32.0 / 9.0) / 2.0;
    let (f, g) = (1.0 / 3.0, mean_g);
    let (low, high) = (4.0 / 3.0 - g, 8.0 / 3.0 - g);
    assert_close(signals.rewards.row(0), &[-f, -f, 0.5 - f, 0.5 - f, low, -g, -g, high]);
    // Agent 1: r = (0, 0, 0.05, 0.05), mean 0.05·(2/3)/2. With μ = 0 only Q_f counts.
    let (r0, r1) = ([1.0 / 6.0, -1.0 / 3.0], [-0.05 / 3.0, 0.1 / 3.0]);
    let q = |r: [f64; 2]| {
        let first = r[0] / 2.0;
        [first, (r[1] + first / 2.0) / 3.0]
    };
    let sums = [q(r0)[0] + q(r1)[0], q(r0)[1] + q(r1)[1]];
    // Weights γ^k·(2/1.5), no 1/n.
    let (first, second) = (4.0 / 3.0 * sums[0] * 0.5, 2.0 / 3.0 * sums[1] * 0.5);
    assert_close(gradient.row(1), &[0.0, 0.0, second, -second, -first, first, 0.0, 0.0]);
}
