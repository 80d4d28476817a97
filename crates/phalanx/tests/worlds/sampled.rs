//! Rewards that are recorded while simulating: whatever is reported of them, or learnt from them, is what
//! trajectories hold.

use phalanx::Ragged;
use phalanx::algorithm::LastIteration;
use phalanx::run::{Config, Evaluator, Session};
use phalanx::world::Trajectory;
use phalanx::world::{Wireless, WirelessSpec};

/// A small wireless network that trains for a few iterations.
fn config(settings: &[(&str, &str)]) -> Config {
    let small = [("world.rows", "3"), ("world.columns", "3"), ("iterations", "4"), ("batch", "6")];
    let small = small.into_iter().chain([("evaluation.episodes", "50")]).chain(settings.iter().copied());
    Config::preset("wireless").unwrap().with_all(small).unwrap()
}

/// Bounds on packets that get through, and on attempts to send any: a sampled channel and a table.
const BOUNDS: &str = r#"
iterations = 300
seed = 1
gamma = 0.8
horizon = 12
batch = 20
[world]
kind = "wireless"
rows = 2
columns = 2
[objective]
kind = "return"
[[constraint]]
name = "through"
kind = "return"
channel = "reward"
at_least = 0.5
[[constraint]]
name = "attempts"
kind = "return"
channel = "send"
at_most = 1.8
[policy]
kind = "linear"
init_std = 0.1
[critic]
kind = "linear"
on = "batch"
features = "own"
ridge = 1e-3
average = 0.8
[dual]
eta_mu = 2.0
eta_integral = 0.1
[actor]
eta_theta = 0.05
all_actions = true
"#;

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-10 * (1.0 + expected.abs()), "{found} is not {expected}");
}

/// Undiscounted reward of an episode over `steps` steps, mean over agents and episodes.
fn mean_return(episodes: &[Trajectory], agents: usize, steps: usize) -> f64 {
    let of = |episode: &Trajectory, i: usize| {
        episode.rewards(0, i).iter().take(steps).map(|&r| f64::from(r)).sum::<f64>()
    };
    let total: f64 = episodes.iter().flat_map(|episode| (0..agents).map(move |i| of(episode, i))).sum();
    total / (episodes.len() * agents) as f64
}

/// Σ_k γ^k·r^k of what steps pay, mean over episodes.
fn discounted(episodes: &[Trajectory], gamma: f64, pays: impl Fn(&Trajectory, usize) -> f64) -> f64 {
    let of = |episode: &Trajectory| {
        (0..episode.steps()).map(|k| gamma.powi(k as i32) * pays(episode, k)).sum::<f64>()
    };
    episodes.iter().map(of).sum::<f64>() / episodes.len() as f64
}

/// What makes a cut-off discounted sum one of full mass.
fn full_mass(gamma: f64, steps: usize) -> f64 {
    1.0 / (1.0 - gamma.powi(steps as i32))
}

/// The rewards themselves, from states, actions and what became of the queues.
#[test]
fn a_packet_that_got_through_is_paid_for_and_gone() {
    // Nothing ever arrives and every packet that is sent alone gets through.
    let spec: WirelessSpec =
        toml::from_str("rows = 3\ncolumns = 4\ndeadline = 3\narrival = 0.0\nsuccess = 1.0").unwrap();
    let world = Wireless::new(&spec).unwrap();
    let settings =
        [("world.deadline", "3"), ("world.arrival", "0.0"), ("world.success", "1.0"), ("world.columns", "4")];
    let evaluator = Evaluator::new(&config(&settings)).unwrap();
    let mut paid = 0;
    for k in 0..40 {
        let episode = evaluator.episode(k, 3, 4).unwrap();
        for i in 0..12 {
            for t in 0..3 {
                let (queue, action) = (episode.states(i)[t], episode.actions(i)[t]);
                let alone =
                    world.constants().grid.contenders(i, action).is_some_and(|others| {
                        others.iter().all(|&(other, by)| episode.actions(other)[t] != by)
                    });
                let through = queue != 0 && alone;
                assert_eq!(episode.rewards(0, i)[t], f32::from(u8::from(through)));
                let left = if through { queue & (queue - 1) } else { queue };
                assert_eq!(episode.states(i)[t + 1], left >> 1);
                paid += u32::from(through);
            }
        }
    }
    assert!(paid > 100, "{paid}");
}

#[test]
fn training_reports_what_its_batch_earned() {
    for policy in ["linear", "network", "softmax"] {
        let kappa = if policy == "softmax" { "0" } else { "1" };
        let mut session = Session::new(&config(&[("policy.kind", policy), ("kappa", kappa)])).unwrap();
        let gamma = session.problem().gamma;
        for _ in 0..3 {
            let summary = session.advance().unwrap().unwrap();
            let LastIteration { trajectories, visits, signals, .. } = session.algorithm().last().unwrap();
            let batch = &trajectories[..6];
            // The critic's last step is not part of the episode.
            assert_eq!(batch[0].steps(), 13);
            assert_close(summary.return_.unwrap(), mean_return(batch, 9, 12));
            let mut objective = 0.0;
            for i in 0..9 {
                let cut = |episode: &Trajectory, k: usize| {
                    if k < 12 { f64::from(episode.rewards(0, i)[k]) } else { 0.0 }
                };
                let total = discounted(batch, gamma, cut) * full_mass(gamma, 12);
                assert_close(visits.occupancy.row(i)[20], total);
                assert_close(signals.objective[i], (1.0 - gamma) * total);
                objective += (1.0 - gamma) * total / 9.0;
                let cells = &visits.occupancy.row(i)[..20];
                assert_close(cells.iter().sum(), 1.0 / (1.0 - gamma));
            }
            assert_close(summary.objective, objective);
        }
    }
}

/// Σ over the batch of w_k·r̃ is 0 for every shadow reward: table and channels together.
#[test]
fn shadow_rewards_are_centred_along_the_batch() {
    let text = BOUNDS.replace("iterations = 300", "iterations = 3");
    let mut session = Session::new(&Config::from_toml(&text, std::path::Path::new(".")).unwrap()).unwrap();
    let gamma = session.problem().gamma;
    let mut sampled = 0;
    for _ in 0..3 {
        session.advance().unwrap();
        let LastIteration { trajectories, signals, .. } = session.algorithm().last().unwrap();
        for i in 0..4 {
            for row in signals.rewards.row(i).chunks(21) {
                let pays = |episode: &Trajectory, k: usize| {
                    let cell = usize::from(episode.states(i)[k]) * 5 + usize::from(episode.actions(i)[k]);
                    row[cell] + row[20] * f64::from(episode.rewards(0, i)[k])
                };
                let cut = |episode: &Trajectory, k: usize| if k < 12 { pays(episode, k) } else { 0.0 };
                assert!(discounted(trajectories, gamma, cut).abs() < 1e-12);
                sampled += u32::from(row[20] != 0.0);
                // A constant on the cells pays for the mean of the channel.
                assert!(row.iter().any(|&r| r != 0.0));
            }
        }
    }
    assert_eq!(sampled, 3 * 4 * 2, "f and the bound on it are sampled, the other is a table");
}

/// The channel's derivative enters with the bound's sign and its scaling.
#[test]
fn shadow_rewards_of_channels_have_their_scale() {
    let text = BOUNDS.replace("iterations = 300", "iterations = 1");
    for (scaling, objective) in [("normalised", 1.0 - 0.8), ("paper", 1.0), ("authors", 1.0)] {
        let config = Config::from_toml(&text, std::path::Path::new(".")).unwrap();
        let mut session = Session::new(&config.with("scaling", scaling).unwrap()).unwrap();
        session.advance().unwrap();
        let LastIteration { visits, signals, trajectories, .. } = session.algorithm().last().unwrap();
        let mass = if scaling == "normalised" { full_mass(0.8, 12) } else { 1.0 };
        for i in 0..4 {
            let rows: Vec<&[f64]> = signals.rewards.row(i).chunks(21).collect();
            assert_close(rows[0][20], objective);
            assert_close(rows[1][20], 1.0);
            assert_eq!(rows[2][20], 0.0);
            let reward = |episode: &Trajectory, k: usize| {
                if k < 12 { f64::from(episode.rewards(0, i)[k]) } else { 0.0 }
            };
            let total = discounted(trajectories, 0.8, reward) * mass;
            assert_close(visits.occupancy.row(i)[20], total);
            assert_close(signals.objective[i], objective * total);
            assert_close(signals.slack.row(i)[0], total - 0.5);
            // Four users share one access point: each can address it in one way.
            let action = 4 - i as u8;
            let send = |episode: &Trajectory, k: usize| {
                f64::from(u8::from(k < 12 && episode.actions(i)[k] == action))
            };
            assert_close(signals.slack.row(i)[1], 1.8 - discounted(trajectories, 0.8, send) * mass);
        }
    }
}

#[test]
fn evaluations_agree_with_single_episodes() {
    for policy in ["linear", "network"] {
        let text = BOUNDS.replace("iterations = 300", "iterations = 5");
        let config = Config::from_toml(&text, std::path::Path::new(".")).unwrap();
        let mut session = Session::new(&config.with("policy.kind", policy).unwrap()).unwrap();
        while session.advance().unwrap().is_some() {}
        // An assessment runs on until little is left of the discounted mass.
        let trained = session.evaluator().unwrap();
        let assessment = trained.assess(40, 9, 0.9).unwrap();
        let steps = assessment.horizon;
        assert!(steps > 12 && 0.8f64.powi(steps as i32) <= 1e-3);
        let episodes: Vec<Trajectory> = (0..40).map(|k| trained.episode(k, 9, steps).unwrap()).collect();
        assert_close(assessment.return_.unwrap().value, mean_return(&episodes, 4, 12));
        let mut objective = 0.0;
        for i in 0..4 {
            let through = discounted(&episodes, 0.8, |episode, k| f64::from(episode.rewards(0, i)[k]));
            let through = through * full_mass(0.8, steps);
            objective += 0.2 * through / 4.0;
            let action = 4 - i as u8;
            let sends = |episode: &Trajectory, k: usize| f64::from(u8::from(episode.actions(i)[k] == action));
            let sends = discounted(&episodes, 0.8, sends) * full_mass(0.8, steps);
            // Linear in the occupancy: the jackknife finds no bias.
            let [first, second] = [0, 1].map(|k| &assessment.constraints[2 * i + k]);
            assert_eq!((&*first.constraint, &*second.constraint), ("through", "attempts"));
            assert_close(first.utility.value, through);
            assert_close(second.utility.value, sends);
            assert_close(first.slack, through - 0.5);
            assert_close(second.slack, 1.8 - sends);
        }
        assert_close(assessment.objective.value, objective);
        // λ itself has cells and nothing behind them.
        let lambda: Ragged<f64> = trained.occupancy(40, 9).unwrap();
        for i in 0..4 {
            assert_eq!(lambda.row(i).len(), session.world().states(i) * 5);
            assert_close(lambda.row(i).iter().sum(), 5.0);
        }
    }
}

#[test]
fn bounds_on_sampled_and_on_table_channels_are_learnt() {
    let config = Config::from_toml(BOUNDS, std::path::Path::new(".")).unwrap();
    let mut session = Session::new(&config).unwrap();
    let first = session.advance().unwrap().unwrap();
    while session.advance().unwrap().is_some() {}
    let last = session.evaluate().unwrap();
    // Uniform users send 1 of 5 units of mass, and collide: 5·0.2·0.8³·0.8·P(a packet waits) < 0.41 get
    // through.
    assert!(first.violation_total > 0.4, "{first:?}");
    assert!(last.violations.max < 0.1, "{:?}", last.violations);
    for i in 0..4 {
        let [through, sends] = [last.values.row(i)[0], last.values.row(i)[1]];
        assert!(through > 0.4 && sends < 1.9, "agent {i}: {through}, {sends}");
    }
    assert!(last.objective > 1.2 * first.objective, "{} → {}", first.objective, last.objective);
}
