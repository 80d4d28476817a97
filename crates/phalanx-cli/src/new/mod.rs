//! `phalanx new`: files to begin with.

mod junctions;
mod problem;

use std::path::Path;

use clap::Subcommand;
use phalanx::Error;
use phalanx::base::{durable, text};

use crate::say;
use crate::shell::quoted;

#[derive(clap::Args)]
pub struct NewArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// A problem of your own: a commented model with its graph, and a configuration that trains on it.
    Problem(problem::ProblemArgs),
    /// A road network with flows, and a configuration that trains on it.
    Junctions(junctions::JunctionsArgs),
}

pub fn run(args: &NewArgs) -> anyhow::Result<()> {
    match &args.what {
        What::Problem(args) => problem::run(args),
        What::Junctions(args) => junctions::run(args),
    }
}

/// Writes files, by name, and says what to do with them.
fn write(out: &Path, files: &[(&str, String)], commands: &[String]) -> anyhow::Result<()> {
    // What somebody has changed must not be lost; the same once more may finish what was interrupted.
    for (name, text) in files {
        let path = out.join(name);
        if path.exists() && std::fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
            let message = format!("{} has another {name} already; name another folder", shown(out));
            return Err(Error::argument("out", message).into());
        }
    }
    durable::create_dirs(out).map_err(|error| Error::write(out, error))?;
    for (name, text) in files {
        durable::replace_bytes(&out.join(name), text.as_bytes())?;
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let (last, others) = names.split_last().unwrap_or((&"", &[]));
    say(&format!("{} and {last} are in {}", others.join(", "), shown(out)));
    commands.iter().for_each(|command| say(command));
    Ok(())
}

/// The command that trains on a configuration.
fn train(out: &Path, config: &str) -> String {
    format!("phalanx train {}", quoted(&out.join(config)))
}

fn shown(path: &Path) -> String {
    text::shown(&path.display().to_string())
}
