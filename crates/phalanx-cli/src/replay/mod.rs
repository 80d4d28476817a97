//! `phalanx replay`: re-simulates a recorded game from its start and its actions.

pub mod junctions;
mod pistonball;
mod platoon;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use phalanx::Error;
use phalanx::base::files;
use phalanx::world::junctions as traffic;

use crate::print;

#[derive(clap::Args)]
pub struct ReplayArgs {
    /// World of the game: pistonball, platoon or junctions.
    world: String,
    /// Recorded game of pistonball or platoon: a row with the start, then a row with the actions of every
    /// step.
    #[arg(value_name = "FILE.csv")]
    file: Option<PathBuf>,
    #[command(flatten)]
    traffic: junctions::TrafficArgs,
}

/// A text in the form of the file, from its text; the path is what errors call it.
type Replay = fn(&Path, &str) -> Result<String, Error>;

/// Worlds whose games are replayed.
const WORLDS: [(&str, Replay); 2] = [("pistonball", pistonball::replay), ("platoon", platoon::replay)];

pub fn replay(args: &ReplayArgs) -> anyhow::Result<()> {
    let wrong = |message: &str| Err(Error::config("world", format!("`{}` {message}", args.world)).into());
    if args.world == traffic::KIND {
        return match args.file {
            Some(_) => wrong("is given by --roadnet, --flow and --phases, not by a recorded game"),
            None => Ok(args.traffic.replay()?),
        };
    }
    if args.traffic.is_given() {
        return wrong("is replayed from a recorded game; --roadnet and the like are for `junctions`");
    }
    let Some(file) = &args.file else {
        return wrong("needs a recorded game, FILE.csv");
    };
    print(&replay_text(&args.world, file, || files::read_text(file))?);
    Ok(())
}

/// The recorded game in a text, re-simulated; `file` is what errors call it.
pub fn replay_text(
    world: &str,
    file: &Path,
    text: impl FnOnce() -> Result<String, Error>,
) -> Result<String, Error> {
    let Some((_, replay)) = WORLDS.iter().find(|(name, _)| *name == world) else {
        let names = WORLDS.map(|(name, _)| name).into_iter().chain([traffic::KIND]);
        let names = names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        return Err(Error::config("world", format!("`{world}` is unknown; allowed are {names}")));
    };
    replay(file, &text()?)
}

/// The column of what agents do, a digit per agent.
const ACTIONS: &str = "actions";

/// The rows of a recorded game, the start first, which has to be there, as have the columns `needed`.
fn rows<'a>(
    file: &'a Path,
    text: &'a str,
    needed: &[&str],
) -> Result<(Row<'a>, impl Iterator<Item = Result<Row<'a>, Error>>), Error> {
    let mut lines = text.lines().enumerate();
    let Some((_, header)) = lines.next() else { return Err(Error::file(file, "is empty")) };
    let columns: Vec<&str> = header.split(',').map(str::trim).collect();
    if let Some(column) = needed.iter().find(|column| !columns.contains(column)) {
        return Err(Error::file(file, format!("line 1: column {column} is missing")));
    }
    let mut rows = lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(move |(number, line)| Row::new(file, &columns, number + 1, line));
    let Some(start) = rows.next().transpose()? else {
        return Err(Error::file(file, "has no rows; the first states the start of the game"));
    };
    Ok((start, rows))
}

/// A row of the file: its fields by the name of their column. All columns that are needed are there.
pub struct Row<'a> {
    file: &'a Path,
    /// Number of the line in the file, from 1.
    line: usize,
    pub fields: HashMap<&'a str, &'a str>,
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
    pub fn blame(&self, column: &str, message: impl std::fmt::Display) -> Error {
        Error::file(self.file, format!("line {}, column {column}: {message}", self.line))
    }

    pub fn number(&self, column: &str) -> Result<f64, Error> {
        self.parse(column, self.fields[column])
    }

    /// The numbers of a field, between semicolons.
    pub fn numbers(&self, column: &str) -> Result<Vec<f64>, Error> {
        self.fields[column].split(';').map(|text| self.parse(column, text)).collect()
    }

    /// The number of a column, if it is between two others.
    pub fn between(&self, column: &str, number: f64, [low, high]: [f64; 2]) -> Result<f64, Error> {
        let is_within = (low..=high).contains(&number);
        let message = || self.blame(column, format!("{number} is not between {low} and {high}"));
        is_within.then_some(number).ok_or_else(message)
    }

    /// Actions below `count` of so many agents, a digit each.
    pub fn actions(&self, agents: usize, count: u8, called: &str) -> Result<Vec<u8>, Error> {
        let mut actions = Vec::with_capacity(agents);
        for digit in self.fields[ACTIONS].chars() {
            let action = digit.to_digit(10).map(|digit| digit as u8).filter(|action| *action < count);
            actions.push(action.ok_or_else(|| {
                let allowed: Vec<String> = (0..count).map(|action| action.to_string()).collect();
                let (last, others) = allowed.split_last().expect("there are actions");
                let message = format!("`{digit}` is no action; allowed are {} and {last}", others.join(", "));
                self.blame(ACTIONS, message)
            })?);
        }
        if actions.len() != agents {
            return Err(self.blame(ACTIONS, format!("{} actions for {agents} {called}", actions.len())));
        }
        Ok(actions)
    }

    pub fn parse(&self, column: &str, text: &str) -> Result<f64, Error> {
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| self.blame(column, format!("`{text}` is not a finite number")))
    }
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
