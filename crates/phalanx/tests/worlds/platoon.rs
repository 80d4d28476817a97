//! Does the platoon drive as the published environment does? Recorded drives, published numbers of constant
//! actions and rules, and what a collision leaves behind.

use phalanx::base::stream::{Place, Purpose, Stream};
use phalanx::run::{Config, Evaluator};
use phalanx::world::platoon::{NamedStart, Scenario, Start};
use phalanx::world::{Joint, Platoon, PlatoonSpec, World, check};

fn config(scenario: &str) -> Config {
    let text = format!(
        "gamma = 0.99\nhorizon = 600\nkappa = 0\n[world]\nkind = \"platoon\"\nscenario = \"{scenario}\"\n\
         start = \"published\"\n[objective]\nkind = \"return\""
    );
    Config::from_toml(&text, std::path::Path::new(".")).unwrap()
}

/// R̄ over the 50 published starts, counted to the horizon also after a collision.
fn mean_reward(scenario: &str, policy: &str) -> f64 {
    let evaluator = Evaluator::scripted(&config(scenario), policy).unwrap();
    let assessment = evaluator.assess(50, 1, 0.99).unwrap();
    assessment.return_.unwrap().value * 8.0 / 600.0
}

#[test]
fn constants_and_rules_earn_what_was_published_or_measured() {
    // Full means of the original environment; the linear rules' gains have three digits.
    for (scenario, policy, wanted, tolerance) in [
        ("slowdown", "constant0", -6642.0, 1.0),
        ("slowdown", "constant1", -5719.0, 1.0),
        ("slowdown", "constant2", -4742.0, 1.0),
        ("slowdown", "constant3", -478.1, 0.06),
        ("slowdown", "linear", -320.8, 0.3),
        ("catchup", "constant0", -419.7, 0.06),
        ("catchup", "constant1", -6700.0, 1.0),
        ("catchup", "constant2", -419.7, 0.06),
        ("catchup", "constant3", -78.2, 0.06),
        ("catchup", "linear", -31.4, 0.3),
        // Two seconds ahead: how the other vehicle is expected to go on was not published.
        ("catchup", "look-ahead", -34.6, 0.5),
    ] {
        let found = mean_reward(scenario, policy);
        assert!((found - wanted).abs() <= tolerance, "{scenario} {policy}: {found}, not {wanted}");
    }
}

#[test]
fn a_platoon_keeps_the_contract() {
    for (n, scenario) in
        [(1, Scenario::Catchup), (8, Scenario::Slowdown), (20, Scenario::Catchup), (8, Scenario::Braking)]
    {
        let spec = PlatoonSpec { n, scenario, start: Start::Named(NamedStart::Law) };
        check(&Platoon::new(&spec).unwrap()).unwrap();
    }
}

/// Steps of one action from the start ξ = 0: channels by step, `[channel][vehicle]`.
fn driven(scenario: Scenario, action: u8, steps: usize) -> Vec<Vec<f32>> {
    let world = Platoon::new(&PlatoonSpec { n: 8, scenario, start: Start::At(0.0) }).unwrap();
    let place = Place { purpose: Purpose::Batch, iteration: 0, trajectory: 0 };
    let mut episode = world.begin(&Stream::new(1), place);
    let step = |_| {
        let mut rewards = vec![f32::NAN; world.channels().len() * 8];
        assert!(!episode.step(&[action; 8], &[0; 8], &mut rewards), "an end would be a prize");
        rewards
    };
    (0..steps).map(step).collect()
}

#[test]
fn a_collision_costs_until_the_end() {
    let steps = driven(Scenario::Slowdown, 0, 600);
    let first = steps.iter().position(|rewards| rewards[0] == -1000.0).unwrap();
    for (k, rewards) in steps.iter().enumerate() {
        let (paid, jerk) = (&rewards[..8], &rewards[16..24]);
        assert_eq!(paid.iter().all(|&reward| reward == -1000.0), k >= first, "{k}");
        assert!(k <= first || jerk.iter().all(|&jerk| jerk == 0.0));
    }
}

#[test]
fn jerk_leaves_out_the_brake_that_no_vehicle_has() {
    // ξ = 1 starts at 37.5 m/s: the first step drops everybody to 30.
    let world = PlatoonSpec { start: Start::At(1.0), ..PlatoonSpec::default() };
    let world = Platoon::new(&world).unwrap();
    let place = Place { purpose: Purpose::Batch, iteration: 0, trajectory: 0 };
    let mut episode = world.begin(&Stream::new(1), place);
    let mut rewards = vec![0.0; world.channels().len() * 8];
    for k in 0..10 {
        episode.step(&[3; 8], &[0; 8], &mut rewards);
        let jerk = &rewards[16..24];
        assert!(jerk.iter().all(|&jerk| jerk <= 2500.0 && (k >= 2 || jerk == 0.0)), "{k}: {jerk:?}");
    }
}

#[test]
fn penalties_and_closeness_are_channels() {
    let steps = driven(Scenario::Catchup, 1, 160);
    let mut near = 0;
    for rewards in steps.iter().take_while(|rewards| rewards[0] != -1000.0) {
        for i in 0..8 {
            let (reward, training) = (rewards[i], rewards[8 + i]);
            let (is_near, spacing) = (rewards[24 + i], rewards[32 + i]);
            near += usize::from(is_near == 1.0);
            assert_eq!(training < reward, is_near == 1.0 && training != reward);
            assert!(spacing <= -reward + 1e-3);
        }
    }
    assert!(near > 0);
}
