//! What a piston sees.

use super::physics::{BALL_RADIUS, COLUMN, LOWEST, MOVE};
use super::{column_centre, scaled_height, under};
use crate::world::View;

/// Moments that a neural network sees at a time.
const FRAMES: usize = 4;
/// Numbers about the ball.
const OF_BALL: usize = 5;
/// A ball that rests on a piston is so much above the piston's y.
const RESTS: f64 = BALL_RADIUS + 5.0;
/// Typical sizes of angular velocity and velocity (the authors').
const OMEGA: f32 = 8.0;
const SPEED_X: f32 = 15.0;
const SPEED_Y: f32 = 8.0;
/// Where a ball out of sight seems to be: so far to its side, and below everything.
const FAR: f32 = 3.0;

/// One frame: the heights of the neighbourhood, from −1 to 1, then five numbers about the ball relative to
/// the agent: x offset, lower edge, ω, vx, vy. If no part of the ball is above the neighbourhood, (±3, −3, 0,
/// 0, 0) tells the side.
#[derive(Debug)]
pub struct Frame {
    agent: usize,
    group: Vec<u32>,
    /// Pixels that an x offset of 1 stands for.
    reach: f64,
}

impl Frame {
    /// What `agent` sees of `group`, itself among it.
    pub fn new(agent: usize, group: &[u32]) -> Self {
        let farthest = group.iter().map(|&m| (m as usize).abs_diff(agent)).max().unwrap_or(0);
        Frame { agent, group: group.to_vec(), reach: farthest.max(1) as f64 * COLUMN }
    }
}

impl View for Frame {
    fn shape(&self) -> [usize; 2] {
        [1, self.group.len() + OF_BALL]
    }

    fn write(&self, states: &[u8], shared: &[f32], out: &mut [f32]) {
        let (heights, ball) = out.split_at_mut(self.group.len());
        for (height, &level) in heights.iter_mut().zip(states) {
            *height = scaled_height(LOWEST - MOVE * f64::from(level)) as f32;
        }
        let &[x, y, vx, vy, omega, ..] = shared else { return ball.fill(0.0) };
        let (x, y) = (f64::from(x), f64::from(y));
        let offset = x - column_centre(self.agent);
        let [first, last] = under(x, usize::MAX);
        let visible = self.group.iter().any(|&m| (first..=last).contains(&(m as usize)));
        ball.copy_from_slice(&if visible {
            let edge = scaled_height(y + RESTS) as f32;
            [(offset / self.reach) as f32, edge, omega / OMEGA, vx / SPEED_X, vy / SPEED_Y]
        } else {
            [if offset < 0.0 { -FAR } else { FAR }, -FAR, 0.0, 0.0, 0.0]
        });
    }

    fn states(&self, rows: &[f32]) -> Option<Vec<i64>> {
        let levels = rows.get(..self.group.len())?.iter();
        Some(levels.map(|height| ((height + 1.0) * 8.0).round() as i64).collect())
    }

    fn frames(&self) -> usize {
        FRAMES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_by_hand() {
        let frame = Frame::new(5, &[3, 4, 5, 6, 7]);
        let mut out = [f32::NAN; 10];
        // Middle of piston 5: 260. A ball that rests on its lowest level.
        frame.write(&[0, 8, 16, 4, 0], &[300.0, 446.0, 30.0, -16.0, 4.0, 9.0], &mut out);
        assert_eq!(out, [-1.0, 0.0, 1.0, -0.5, -1.0, 0.5, -1.0, 0.5, 2.0, -2.0]);
        // Columns 3 to 7 reach from 160 to 360: a ball at 400 touches the edge from outside.
        frame.write(&[0; 5], &[400.0, 446.0, 30.0, -16.0, 4.0, 9.0], &mut out);
        assert_eq!(out[5..], [3.0, -3.0, 0.0, 0.0, 0.0]);
        frame.write(&[0; 5], &[399.0, 446.0, 0.0, 0.0, 0.0, 9.0], &mut out);
        assert_eq!(out[5], (399.0f32 - 260.0) / 80.0);
        frame.write(&[0; 5], &[119.0, 446.0, 30.0, -16.0, 4.0, 9.0], &mut out);
        assert_eq!(out[5..], [-3.0, -3.0, 0.0, 0.0, 0.0]);
        // Alone, an offset is in columns.
        let mut out = [f32::NAN; 6];
        Frame::new(0, &[0]).write(&[16], &[80.0, 382.0, 0.0, 0.0, 0.0, 0.0], &mut out);
        assert_eq!(out, [1.0, 0.5, 1.0, 0.0, 0.0, 0.0]);
    }
}
