//! The paper's rewards on the same physics. Paper: subsec: pistonball.

use super::library::{has_arrived, left_edge};
use super::physics::{Ball, Physics};
use super::{longest_way, observe, under, write_heights};
use crate::world::Episode;

/// Reward for each pixel that the ball goes to the left, and to the right.
const PER_PIXEL_LEFT: f64 = 0.5;
const PER_PIXEL_RIGHT: f64 = -1.0;
/// Reward of a step once the ball has stayed.
const STAY_PENALTY: f64 = -1.0;
/// Steps with the same pistons under the ball after which it has stayed.
const STAYED: usize = 3;
/// First step, counted from 1, that may be penalised.
const FIRST_PENALTY: usize = 10;

/// An episode with rewards of the pistons near the ball: those between the first and the last one under it
/// now or at the step before. They earn by how far its left edge moved, in whole pixels, and lose while it
/// stays.
///
/// The text leaves the numbers open; these are of the authors' code.
#[derive(Debug, Clone)]
pub struct PaperGame {
    physics: Physics,
    /// Left edge of the ball, in whole pixels.
    edge: f64,
    /// First and last piston under the ball.
    under: [usize; 2],
    /// Steps since they changed.
    unchanged: usize,
    steps: usize,
}

impl PaperGame {
    /// An episode from a start.
    pub fn new(heights: &[f64], ball: Ball) -> Self {
        PaperGame {
            physics: Physics::new(heights, ball),
            edge: left_edge(ball),
            under: under(ball.x, heights.len()),
            unchanged: 0,
            steps: 0,
        }
    }

    /// Ball and pistons.
    pub fn physics(&self) -> &Physics {
        &self.physics
    }
}

impl Episode for PaperGame {
    fn observe(&self, states: &mut [u8], shared: &mut [f32]) {
        observe(&self.physics, states, shared);
    }

    fn step(&mut self, actions: &[u8], _draws: &[u32], rewards: &mut [f32]) -> bool {
        let (rewards, heights) = rewards.split_at_mut(actions.len());
        write_heights(&self.physics, heights);
        self.physics.advance(|piston| f64::from(actions[piston]) - 1.0);
        self.steps += 1;
        let ball = self.physics.ball();
        let (edge, under) = (left_edge(ball), under(ball.x, rewards.len()));
        let ended = has_arrived(ball);
        self.unchanged = if under == self.under { self.unchanged + 1 } else { 0 };
        let left = self.edge - edge;
        let mut reward = if left >= 0.0 { PER_PIXEL_LEFT * left } else { -PER_PIXEL_RIGHT * left };
        if self.unchanged >= STAYED && self.steps >= FIRST_PENALTY && !ended {
            reward += STAY_PENALTY;
        }
        let [first, last] = [under[0].min(self.under[0]), under[1].max(self.under[1])];
        rewards.fill(0.0);
        rewards[first..=last].fill(reward as f32);
        (self.edge, self.under) = (edge, under);
        ended
    }
}

/// Smallest and largest reward of a step.
pub fn range(pistons: usize) -> [f64; 2] {
    let way = longest_way(pistons);
    [PER_PIXEL_RIGHT * way + STAY_PENALTY, PER_PIXEL_LEFT * way]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pistons all down: the ball falls straight, so nothing moves sideways and from step 10 on it has
    /// stayed.
    #[test]
    fn staying_costs_from_the_tenth_step_on() {
        let ball = Ball { x: 260.0, y: 400.0, vx: 0.0, vy: 0.0, angle: 0.0, omega: 0.0 };
        let mut game = PaperGame::new(&[491.0; 10], ball);
        for step in 1..=15 {
            let mut rewards = [f32::NAN; 20];
            assert!(!game.step(&[1; 10], &[0; 10], &mut rewards));
            // The ball covers 220 to 300: pistons 4 (200 to 240), 5 and 6 (280 to 320).
            let near = |i: usize| if (4..=6).contains(&i) && step >= 10 { -1.0 } else { 0.0 };
            assert_eq!(rewards[..10], std::array::from_fn::<f32, 10, _>(near), "step {step}");
            assert_eq!(rewards[10..], [0.0; 10], "all pistons are down");
        }
    }

    /// A slope to the left: what is earned is half a pixel's worth for everyone whom the ball was or is
    /// above.
    #[test]
    fn going_left_pays_those_under_the_ball() {
        let heights: Vec<f64> = (0..10).map(|i| 491.0 - 4.0 * f64::from(i)).collect();
        let ball = Ball { x: 300.0, y: 400.0, vx: 0.0, vy: 0.0, angle: 0.0, omega: 0.0 };
        let mut game = PaperGame::new(&heights, ball);
        let mut paid = 0;
        for step in 1..=60 {
            let before = game.physics.ball();
            let mut rewards = [f32::NAN; 20];
            let ended = game.step(&[1; 10], &[0; 10], &mut rewards);
            // Sixteen moves from the bottom to the top.
            assert_eq!(rewards[10..], std::array::from_fn::<f32, 10, _>(|i| i as f32 / 16.0));
            let after = game.physics.ball();
            let edge = |ball: Ball| (ball.x - 40.0).trunc().max(40.0);
            let left = edge(before) - edge(after);
            let is_under = |i: usize, ball: Ball| {
                ball.x - 40.0 < 80.0 + 40.0 * i as f64 && ball.x + 40.0 > 40.0 + 40.0 * i as f64
            };
            for (i, &reward) in rewards[..10].iter().enumerate() {
                let near = is_under(i, before) || is_under(i, after);
                let expected = if left >= 0.0 { 0.5 * left } else { left };
                if left != 0.0 {
                    assert_eq!(
                        f64::from(reward),
                        if near { expected } else { 0.0 },
                        "step {step}, piston {i}"
                    );
                    paid += 1;
                }
            }
            if ended {
                assert!(paid > 50);
                return;
            }
        }
        panic!("the ball has not arrived");
    }
}
