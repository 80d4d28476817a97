//! `phalanx replay`: the actions of a recorded game once more, from its start.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use phalanx::Error;
use phalanx::base::files;
use phalanx::world::pistonball::physics::{
    BALL_RADIUS, Ball, HEIGHT, LEVELS, LOWEST, MOVE, Physics, WALL, width,
};
use phalanx::world::pistonball::{Library, MOST_PISTONS};

use crate::print;

#[derive(clap::Args)]
pub struct ReplayArgs {
    /// World of the game: pistonball.
    world: String,
    /// Recorded game: a row with the start, then a row with the actions of every step.
    #[arg(value_name = "FILE.csv")]
    file: PathBuf,
}

/// Columns of a game; all but the first and the last three have to be there.
const COLUMNS: &str = "step,actions,piston_y,ball_x,ball_y,ball_vx,ball_vy,ball_angle,ball_omega,\
                       reward,terminated,truncated";
const ACTIONS: &str = "actions";
const HEIGHTS: &str = "piston_y";
const FEWEST_PISTONS: usize = 2;
/// Written in place of actions beside the start, one per piston.
const NO_ACTION: &str = "-";

pub fn replay(args: &ReplayArgs) -> anyhow::Result<()> {
    if args.world != "pistonball" {
        let message = format!("`{}` is unknown; allowed is `pistonball`", args.world);
        return Err(Error::config("world", message).into());
    }
    let text = files::read_text(&args.file)?;
    print(&replay_text(&args.file, &text)?);
    Ok(())
}

/// The recorded game in a text, once more; `file` is what errors call it.
pub fn replay_text(file: &Path, text: &str) -> Result<String, Error> {
    Game::parse(file, text).map(|game| game.replay())
}

/// A row of the file: its fields by the name of their column. All columns that are needed are there.
struct Row<'a> {
    file: &'a Path,
    /// Number of the line in the file, from 1.
    line: usize,
    fields: HashMap<&'a str, &'a str>,
}

impl<'a> Row<'a> {
    fn new(file: &'a Path, columns: &[&'a str], line: usize, text: &'a str) -> Result<Self, Error> {
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let row = Row { file, line, fields: columns.iter().copied().zip(fields.iter().copied()).collect() };
        match columns.get(fields.len()) {
            Some(column) => {
                Err(row.blame(column, format!("missing; {} of {} fields", fields.len(), columns.len())))
            }
            None if fields.len() > columns.len() => {
                let message = format!("line {line}: {} fields for {} columns", fields.len(), columns.len());
                Err(Error::file(file, message))
            }
            None => Ok(row),
        }
    }

    /// The file is unusable because of this row's field in `column`.
    fn blame(&self, column: &str, message: impl std::fmt::Display) -> Error {
        Error::file(self.file, format!("line {}, column {column}: {message}", self.line))
    }

    fn number(&self, column: &str) -> Result<f64, Error> {
        self.parse(column, self.fields[column])
    }

    fn parse(&self, column: &str, text: &str) -> Result<f64, Error> {
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| self.blame(column, format!("`{text}` is not a finite number")))
    }

    /// The pistons' y.
    fn heights(&self) -> Result<Vec<f64>, Error> {
        let mut heights = Vec::new();
        for text in self.fields[HEIGHTS].split(';') {
            let height = self.parse(HEIGHTS, text)?;
            let level = (LOWEST - height) / MOVE;
            if level.fract() != 0.0 || !(0.0..LEVELS as f64).contains(&level) {
                let message =
                    format!("{text} is no height; allowed are {LOWEST} - {MOVE} k, k = 0 to {}", LEVELS - 1);
                return Err(self.blame(HEIGHTS, message));
            }
            heights.push(height);
        }
        if !(FEWEST_PISTONS..=MOST_PISTONS).contains(&heights.len()) {
            let message =
                format!("{} pistons; allowed are {FEWEST_PISTONS} to {MOST_PISTONS}", heights.len());
            return Err(self.blame(HEIGHTS, message));
        }
        Ok(heights)
    }

    /// The ball, which has to be between the walls and right of where the game ends.
    fn ball(&self, pistons: usize) -> Result<Ball, Error> {
        let between = |column: &str, low: f64, high: f64| {
            let number = self.number(column)?;
            if (low..=high).contains(&number) {
                Ok(number)
            } else {
                Err(self.blame(column, format!("{number} is not between {low} and {high}")))
            }
        };
        Ok(Ball {
            x: between("ball_x", WALL + BALL_RADIUS + 1.0, width(pistons) - WALL)?,
            y: between("ball_y", WALL, HEIGHT - WALL)?,
            vx: between("ball_vx", -FASTEST, FASTEST)?,
            vy: between("ball_vy", -FASTEST, FASTEST)?,
            angle: self.number("ball_angle")?,
            omega: between("ball_omega", -FASTEST, FASTEST)?,
        })
    }

    fn actions(&self, pistons: usize) -> Result<Vec<u8>, Error> {
        let mut actions = Vec::with_capacity(pistons);
        for digit in self.fields[ACTIONS].chars() {
            let '0'..='2' = digit else {
                let message = format!("`{digit}` is no action; allowed are 0, 1 and 2");
                return Err(self.blame(ACTIONS, message));
            };
            actions.push(digit as u8 - b'0');
        }
        if actions.len() != pistons {
            let message = format!("{} actions for {pistons} pistons", actions.len());
            return Err(self.blame(ACTIONS, message));
        }
        Ok(actions)
    }
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
        let mut lines = text.lines().enumerate();
        let Some((_, header)) = lines.next() else { return Err(Error::file(file, "is empty")) };
        let columns: Vec<&str> = header.split(',').map(str::trim).collect();
        for column in COLUMNS.split(',').skip(1).take(8) {
            if !columns.contains(&column) {
                return Err(Error::file(file, format!("line 1: column {column} is missing")));
            }
        }
        let mut rows = lines
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(number, line)| Row::new(file, &columns, number + 1, line));
        let Some(start) = rows.next().transpose()? else {
            return Err(Error::file(file, "has no rows; the first states the start of the game"));
        };
        let heights = start.heights()?;
        let n = heights.len();
        let unused = start.fields[ACTIONS];
        if unused.chars().count() != n {
            let message =
                format!("`{unused}` does not fit {n} pistons; the start has {}", NO_ACTION.repeat(n));
            return Err(start.blame(ACTIONS, message));
        }
        let ball = start.ball(n)?;
        let actions = rows.map(|row| row?.actions(n)).collect::<Result<_, _>>()?;
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

/// The shortest digits that stand for `number`, as Python writes them: `144.0`, `1e-05`, `1.5e+16`.
fn as_in_python(number: f64) -> String {
    // Rust has an exponent from the same size on, but writes it differently.
    let text = format!("{number:?}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, size) = exponent.strip_prefix('-').map_or(('+', exponent), |size| ('-', size));
            format!("{}e{sign}{size:0>2}", digits.strip_suffix(".0").unwrap_or(digits))
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_python_writes_them() {
        for (number, wanted) in [
            (144.0, "144.0"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (-0.1, "-0.1"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-1.25e-7, "-1.25e-07"),
            (3.0e-123, "3e-123"),
            (123456789012345.6, "123456789012345.6"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
        ] {
            assert_eq!(as_in_python(number), wanted);
        }
    }
}
