//! Pistonball as a world of agents: what a piston sees, and what scripted policies achieve.

use phalanx::base::stream::Stream;
use phalanx::policy::observation::{Inputs, ObservationEncoder, Widths};
use phalanx::policy::{NeuralPolicy, Policy};
use phalanx::run::{Config, Evaluator};
use phalanx::world::Trajectory;
use phalanx::world::{Pistonball, PistonballSpec, World, check};

const N: usize = 12;
const KAPPA: usize = 2;
/// Sees pistons 3 to 7, whose columns reach from 160 to 360; the ball's radius is 40.
const AGENT: usize = 5;
const FRAMES: usize = 4;
/// Heights of five pistons, and five numbers about the ball.
const FRAME: usize = 10;

fn world(game: &str) -> Pistonball {
    let spec: PistonballSpec = toml::from_str(&format!("n = {N}\ngame = \"{game}\"")).unwrap();
    Pistonball::new(&spec).unwrap()
}

/// Six moments: pistons move, and the ball is in sight from step 2 to 4.
fn moments(world: &dyn World) -> Trajectory {
    let mut trajectory = Trajectory::for_world(world, 6);
    for k in 0..6 {
        for i in 0..N {
            *trajectory.pair_mut(i, k).0 = ((3 * i + 2 * k) % 17) as u8;
        }
        let x = [470.0, 450.0, 390.0, 330.0, 270.0, 110.0][k];
        let ball = [x, 380.0 + k as f32, -20.0 - k as f32, 5.0, 3.0, 0.5];
        trajectory.global_state_mut(k).copy_from_slice(&ball);
    }
    trajectory
}

/// What the network of `AGENT` is given at step k.
fn seen(world: &dyn World, trajectory: &Trajectory, k: usize) -> Vec<f32> {
    let groups = world.graph().neighbourhoods(KAPPA);
    let sight = ObservationEncoder::new(world, AGENT, groups.row(AGENT), false);
    let mut inputs = Inputs::default();
    sight.encode_step(trajectory, k, |_| 0, &mut inputs);
    assert_eq!((inputs.size, inputs.rows.len()), (1, FRAMES * FRAME));
    assert!(inputs.symbols.is_empty());
    inputs.rows
}

#[test]
fn worlds_keep_the_contract() {
    for (n, game) in [(2, "paper"), (10, "paper"), (5, "pettingzoo")] {
        let spec: PistonballSpec = toml::from_str(&format!("n = {n}\ngame = \"{game}\"")).unwrap();
        check(&Pistonball::new(&spec).unwrap()).unwrap_or_else(|broken| panic!("{n}, {game}: {broken}"));
    }
}

#[test]
fn an_episode_begins_as_if_it_had_always_looked_so() {
    let world = world("paper");
    let trajectory = moments(&world);
    let frames =
        |k: usize| seen(&world, &trajectory, k).chunks(FRAME).map(<[f32]>::to_vec).collect::<Vec<_>>();
    let now: Vec<Vec<f32>> = (0..6).map(|k| frames(k)[0].clone()).collect();
    assert!((1..6).all(|k| now[k] != now[k - 1]));
    for (k, moments) in
        [(0, [0, 0, 0, 0]), (1, [1, 0, 0, 0]), (2, [2, 1, 0, 0]), (3, [3, 2, 1, 0]), (5, [5, 4, 3, 2])]
    {
        assert_eq!(frames(k), moments.map(|m| now[m].clone()), "step {k}");
    }
}

/// One agent's law and what its network is given, after a change of the trajectory.
#[test]
fn a_piston_sees_its_neighbourhood_and_the_ball_above_it() {
    let world = world("paper");
    let widths = Widths { embedding: 4, row_hidden: 8, hidden: vec![16] };
    let policy = NeuralPolicy::new(&world, KAPPA, &widths, 5.0, &Stream::new(1)).unwrap();
    let trajectory = moments(&world);
    let law = |trajectory: &Trajectory, k| {
        let mut law = [0.0; 3];
        policy.law(AGENT, trajectory, k, &mut law);
        assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        law
    };
    let differs = |k: usize, change: &dyn Fn(&mut Trajectory)| {
        let mut changed = trajectory.clone();
        change(&mut changed);
        assert_ne!(changed, trajectory);
        let differs = seen(&world, &changed, k) != seen(&world, &trajectory, k);
        assert_eq!(law(&changed, k) != law(&trajectory, k), differs);
        differs
    };
    for piston in 0..N {
        for moment in 0..6 {
            let moves = |trajectory: &mut Trajectory| *trajectory.pair_mut(piston, moment).0 ^= 8;
            for k in 0..6 {
                let near = piston.abs_diff(AGENT) <= KAPPA;
                let recent = moment <= k && moment + FRAMES > k;
                assert_eq!(differs(k, &moves), near && recent, "piston {piston}, moment {moment}, step {k}");
            }
        }
    }
    // Steps 0 and 1: the ball is on the right, out of sight.
    let place = |moment: usize, number: usize, value: f32| {
        move |trajectory: &mut Trajectory| trajectory.global_state_mut(moment)[number] = value
    };
    for (number, value) in
        [(0, 400.0), (0, 401.0), (0, 460.0), (1, 300.0), (2, 9.0), (3, -9.0), (4, 0.0), (5, 9.0)]
    {
        assert!(!differs(1, &place(1, number, value)), "number {number} of a ball out of sight: {value}");
    }
    for x in [399.0, 300.0, 119.0] {
        assert!(differs(1, &place(1, 0, x)), "a ball at {x}");
    }
    // Step 3: above the neighbourhood everything is seen but the angle.
    for (number, value) in [(0, 331.0), (1, 300.0), (2, 9.0), (3, -9.0), (4, 0.0)] {
        assert!(differs(3, &place(3, number, value)), "number {number} of a ball in sight");
    }
    assert!(!differs(3, &place(3, 5, 9.0)), "the ball's angle");
    // Step 5: it is gone to the left.
    assert!(!differs(5, &place(5, 0, 60.0)) && differs(5, &place(5, 0, 410.0)));
}

#[test]
fn waves_win_and_chance_loses() {
    let config = Config::preset("pistonball").unwrap().with("evaluation.episodes", "200").unwrap();
    let returns = |name: &str| {
        let session = Evaluator::scripted(&config, name).unwrap();
        let solved = (0..40).filter(|&k| session.episode(k, 3, config.horizon).unwrap().ended()).count();
        (session.evaluate().unwrap().return_.unwrap(), solved)
    };
    let (wave, solved) = returns("wave");
    assert!(wave > 40.0 && solved >= 30, "{wave}, {solved} of 40");
    let (random, solved) = returns("random");
    assert!(random < -40.0 && solved < 20, "{random}, {solved} of 40");
}

#[test]
fn unknown_scripts_are_told_the_known_ones() {
    let config = Config::preset("pistonball").unwrap();
    let message = Evaluator::scripted(&config, "tsunami").err().unwrap().to_string();
    assert!(message.contains("`tsunami`") && message.contains("uniform, still, random, wave"), "{message}");
}
