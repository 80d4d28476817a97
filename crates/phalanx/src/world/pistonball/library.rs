//! The game as the library has it: its reward, its end and its start.

use super::longest_way;
use super::physics::{BALL_RADIUS, Ball, LOWEST, MOVE, Physics, STEP, WALL, width};

/// What a step gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Reward, the same for every piston.
    pub reward: f64,
    /// Whether the ball has reached the left wall, or will in the next physics step.
    pub terminated: bool,
    /// Whether the time is up.
    pub truncated: bool,
}

/// Steps of an episode, unless stated otherwise.
pub const MAX_CYCLES: usize = 125;

/// Reward for the whole way to the left wall.
const WHOLE_WAY: f64 = 100.0;
/// Reward of a step that does not end the game.
const TIME_PENALTY: f64 = -0.1;
/// The game ends when the ball is expected within this distance of the wall.
const NEAR: f64 = 1.0;

/// PettingZoo's Pistonball (v6), number for number: the same start and actions give the same rewards.
///
/// ```
/// use phalanx::world::pistonball::{Library, draw_start};
///
/// let (heights, ball) = draw_start(5, || 0.5);
/// let mut game = Library::new(&heights, ball, 125);
/// let outcome = game.step(&[0, 0, 1, 1, 2]);
/// assert!(!outcome.terminated && !outcome.truncated);
/// ```
#[derive(Debug, Clone)]
pub struct Library {
    physics: Physics,
    /// Left edge of the ball, in whole pixels.
    edge: f64,
    /// Reward for a pixel.
    per_pixel: f64,
    steps: usize,
    max_cycles: usize,
}

impl Library {
    /// A game that lasts at most `max_cycles` steps. The ball has to start at least a pixel right of the left
    /// wall, else rewards are not defined: they are shares of its way.
    pub fn new(heights: &[f64], ball: Ball, max_cycles: usize) -> Self {
        let edge = left_edge(ball);
        let per_pixel = WHOLE_WAY / (edge - WALL);
        Library { physics: Physics::new(heights, ball), edge, per_pixel, steps: 0, max_cycles }
    }

    /// One step; an action is 0 down, 1 still, 2 up.
    pub fn step(&mut self, actions: &[u8]) -> Outcome {
        self.physics.advance(|piston| f64::from(actions[piston]) - 1.0);
        self.outcome()
    }

    /// One step; an action is −1, all the way down, to 1, all the way up.
    pub fn step_continuous(&mut self, actions: &[f64]) -> Outcome {
        self.physics.advance(|piston| actions[piston]);
        self.outcome()
    }

    /// The action of [`Library::step_continuous`] that moves `piston` to where `action` does in single
    /// precision.
    ///
    /// The library computes y − 4·action in the precision of the action, and NumPy takes the y of an `f32` as
    /// one too. Both ends of the way are then numbers that `f64` holds, and so near each other that their
    /// difference is exact.
    pub fn in_single_precision(&self, piston: usize, action: f32) -> f64 {
        let y = self.physics.heights()[piston];
        (y - f64::from(y as f32 - action * MOVE as f32)) / MOVE
    }

    /// Ball and pistons.
    pub fn physics(&self) -> &Physics {
        &self.physics
    }

    fn outcome(&mut self) -> Outcome {
        let ball = self.physics.ball();
        let edge = left_edge(ball);
        let terminated = has_arrived(ball);
        let mut reward = (self.edge - edge) * self.per_pixel;
        if !terminated {
            reward += TIME_PENALTY;
        }
        self.edge = edge;
        self.steps += 1;
        Outcome { reward, terminated, truncated: self.steps >= self.max_cycles }
    }
}

/// Whether the ball is at the left wall, or will be in the next physics step.
pub(super) fn has_arrived(ball: Ball) -> bool {
    left_edge(ball) + ball.vx * STEP <= WALL + NEAR
}

/// Left edge of the ball in whole pixels, not beyond the wall.
pub(super) fn left_edge(ball: Ball) -> f64 {
    (ball.x - BALL_RADIUS).trunc().max(WALL)
}

/// Smallest and largest reward of a step, by the shortest way that a ball can start with.
pub(super) fn range(pistons: usize) -> [f64; 2] {
    let shortest = (width(pistons) - FROM_RIGHT - f64::from(OFFSET_X) - BALL_RADIUS - WALL).max(1.0);
    let way = WHOLE_WAY * longest_way(pistons) / shortest;
    [TIME_PENALTY - way, way]
}

/// Pistons start on one of the lowest levels, so many.
const START_LEVELS: usize = 8;
/// The ball starts at most this far from its usual place.
const OFFSET_X: i32 = 30;
const OFFSET_Y: i32 = 15;
/// Its usual place: so far from the right end of the image, and this y.
const FROM_RIGHT: f64 = WALL + BALL_RADIUS + OFFSET_X as f64;
const START_Y: f64 = 410.0;
/// It starts with at most so many turns per second, either way.
const TURNS: f64 = 3.0;

/// Draws the start of a game with `n` pistons: their heights, and the ball. `uniform` draws from [0, 1).
///
/// The law of the library, in the order of the library; its random numbers are others.
pub fn draw_start(n: usize, mut uniform: impl FnMut() -> f64) -> (Vec<f64>, Ball) {
    let heights = (0..n).map(|_| LOWEST - MOVE * (uniform() * START_LEVELS as f64).floor()).collect();
    let mut offset = |most: i32| (uniform() * f64::from(2 * most + 1)).floor() - f64::from(most);
    let (down, right) = (offset(OFFSET_Y), offset(OFFSET_X));
    // A spin that the library draws, and overwrites.
    uniform();
    let spin = TURNS * std::f64::consts::TAU;
    let ball = Ball {
        x: (width(n) - FROM_RIGHT + right).max(WALL + BALL_RADIUS + 1.0),
        y: START_Y + down,
        vx: 0.0,
        vy: 0.0,
        angle: 0.0,
        omega: spin * (2.0 * uniform() - 1.0),
    };
    (heights, ball)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ends of every range, and a narrow game in which the wall is in the way.
    #[test]
    fn starts_between_their_ends() {
        let (heights, ball) = draw_start(10, || 0.0);
        assert_eq!(heights, [491.0; 10]);
        let spin = 6.0 * std::f64::consts::PI;
        assert_eq!(ball, Ball { x: 340.0, y: 395.0, vx: 0.0, vy: 0.0, angle: 0.0, omega: -spin });
        let (heights, ball) = draw_start(10, || 1.0 - f64::EPSILON);
        assert_eq!(heights, [463.0; 10]);
        assert_eq!((ball.x, ball.y), (400.0, 425.0));
        assert!((spin - ball.omega).abs() < 1e-12);
        assert_eq!(draw_start(2, || 0.0).1.x, 81.0);
    }

    /// Heights of PettingZoo 1.27 after one float32 action, then two float64 ones, then one float32 action of
    /// 0.3.
    #[test]
    fn precision_is_that_of_the_action() {
        let (_, ball) = draw_start(2, || 0.5);
        let mut game = Library::new(&[479.0; 2], ball, 125);
        let mut seen = Vec::new();
        for single in [true, false, false, true] {
            let action = if single { game.in_single_precision(0, 0.3) } else { 0.3 };
            game.step_continuous(&[action, 0.0]);
            seen.push(game.physics().heights()[0]);
        }
        let expected =
            [477.799_987_792_968_75, 476.599_987_792_968_76, 475.399_987_792_968_8, 474.199_981_689_453_1];
        assert_eq!(seen, expected);
    }

    #[test]
    fn draws_in_the_order_of_the_library() {
        let mut draws = 0;
        let (heights, ball) = draw_start(3, || {
            draws += 1;
            f64::from(draws - 1) / 8.0
        });
        assert_eq!(draws, 7);
        assert_eq!(heights, [491.0, 487.0, 483.0]);
        assert_eq!((ball.x, ball.y), (200.0 - 110.0 - 30.0 + 30.0, 395.0 + 11.0));
        assert_eq!(ball.omega, 6.0 * std::f64::consts::PI * 0.5);
    }
}
