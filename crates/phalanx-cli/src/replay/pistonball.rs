//! Games of Pistonball.

use std::path::Path;

use phalanx::Error;
use phalanx::world::pistonball::physics::{
    BALL_RADIUS, Ball, HEIGHT, LEVELS, LOWEST, MOVE, Physics, WALL, width,
};
use phalanx::world::pistonball::{Library, MOST_PISTONS};

use super::{ACTIONS, Row, as_in_python, rows};

/// Columns of a game; all but the first and the last three have to be there.
const COLUMNS: &str = "step,actions,piston_y,ball_x,ball_y,ball_vx,ball_vy,ball_angle,ball_omega,\
                       reward,terminated,truncated";
const HEIGHTS: &str = "piston_y";
/// Down, still and up.
const MOVES: u8 = 3;
const FEWEST_PISTONS: usize = 2;
/// Written in place of actions beside the start, one per piston.
const NO_ACTION: &str = "-";

/// The game in the form of its file.
pub fn replay(file: &Path, text: &str) -> Result<String, Error> {
    Game::parse(file, text).map(|game| game.replay())
}

/// The pistons' y.
fn heights(row: &Row<'_>) -> Result<Vec<f64>, Error> {
    let mut heights = Vec::new();
    for height in row.numbers(HEIGHTS)? {
        let level = (LOWEST - height) / MOVE;
        if level.fract() != 0.0 || !(0.0..LEVELS as f64).contains(&level) {
            let message =
                format!("{height} is no height; allowed are {LOWEST} - {MOVE} k, k = 0 to {}", LEVELS - 1);
            return Err(row.blame(HEIGHTS, message));
        }
        heights.push(height);
    }
    if !(FEWEST_PISTONS..=MOST_PISTONS).contains(&heights.len()) {
        let message = format!("{} pistons; allowed are {FEWEST_PISTONS} to {MOST_PISTONS}", heights.len());
        return Err(row.blame(HEIGHTS, message));
    }
    Ok(heights)
}

/// The ball, which has to be between the walls and right of where the game ends.
fn ball(row: &Row<'_>, pistons: usize) -> Result<Ball, Error> {
    let between = |column: &str, low: f64, high: f64| row.between(column, row.number(column)?, [low, high]);
    Ok(Ball {
        x: between("ball_x", WALL + BALL_RADIUS + 1.0, width(pistons) - WALL)?,
        y: between("ball_y", WALL, HEIGHT - WALL)?,
        vx: between("ball_vx", -FASTEST, FASTEST)?,
        vy: between("ball_vy", -FASTEST, FASTEST)?,
        angle: row.number("ball_angle")?,
        omega: between("ball_omega", -FASTEST, FASTEST)?,
    })
}

/// No game comes near it; beyond, the ball would tunnel through walls.
const FASTEST: f64 = 1e4;

/// The start of a game and what was done in it.
struct Game {
    heights: Vec<f64>,
    ball: Ball,
    actions: Vec<Vec<u8>>,
}

impl Game {
    fn parse(file: &Path, text: &str) -> Result<Self, Error> {
        let needed: Vec<&str> = COLUMNS.split(',').skip(1).take(8).collect();
        let (start, rows) = rows(file, text, &needed)?;
        let heights = heights(&start)?;
        let n = heights.len();
        let unused = start.fields[ACTIONS];
        if unused.chars().count() != n {
            let message =
                format!("`{unused}` does not fit {n} pistons; the start has {}", NO_ACTION.repeat(n));
            return Err(start.blame(ACTIONS, message));
        }
        let ball = ball(&start, n)?;
        let actions = rows.map(|row| row?.actions(n, MOVES, "pistons")).collect::<Result<_, _>>()?;
        Ok(Game { heights, ball, actions })
    }

    /// The game in the form of the file.
    fn replay(&self) -> String {
        let mut library = Library::new(&self.heights, self.ball, self.actions.len());
        let mut text = COLUMNS.to_string() + "\n";
        text += &row(0, &NO_ACTION.repeat(self.heights.len()), library.physics(), 0.0, [false, false]);
        for (step, actions) in self.actions.iter().enumerate() {
            let outcome = library.step(actions);
            let digits: String = actions.iter().map(|&action| char::from(b'0' + action)).collect();
            // A game that ends at the wall with its last row was not cut short.
            let flags = [outcome.terminated, outcome.truncated && !outcome.terminated];
            text += &row(step + 1, &digits, library.physics(), outcome.reward, flags);
        }
        text
    }
}

fn row(step: usize, actions: &str, physics: &Physics, reward: f64, flags: [bool; 2]) -> String {
    let heights: Vec<String> = physics.heights().iter().map(f64::to_string).collect();
    let Ball { x, y, vx, vy, angle, omega } = physics.ball();
    let numbers = [x, y, vx, vy, angle, omega, reward].map(as_in_python).join(",");
    let [terminated, truncated] = flags.map(u8::from);
    format!("{step},{actions},{},{numbers},{terminated},{truncated}\n", heights.join(";"))
}
