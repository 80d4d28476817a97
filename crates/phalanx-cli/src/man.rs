//! `phalanx man`.

use std::path::PathBuf;

use clap::CommandFactory;
use clap_mangen::Man;
use phalanx::Error;
use phalanx::base::durable;

use crate::{Cli, say};

#[derive(clap::Args)]
pub struct ManArgs {
    /// Folder to write to; it is made if it is not there.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Writes a manual page for the program and one for each of its commands, inner ones too.
pub fn man(args: &ManArgs) -> anyhow::Result<()> {
    let mut program = Cli::command().disable_help_subcommand(true);
    // From here on, commands know their whole names.
    program.build();
    durable::create_dirs(&args.out).map_err(|error| Error::write(&args.out, error))?;
    let mut commands = Vec::new();
    collect(&program, &mut commands);
    for &command in &commands {
        let page = Man::new(command.clone()).manual("Phalanx");
        let mut text = Vec::new();
        page.render(&mut text)?;
        durable::replace_bytes(&args.out.join(page.get_filename()), &text)?;
    }
    say(&format!("{} manual pages are in {}", commands.len(), args.out.display()));
    Ok(())
}

/// A command, its commands, and theirs.
fn collect<'a>(command: &'a clap::Command, found: &mut Vec<&'a clap::Command>) {
    found.push(command);
    command.get_subcommands().for_each(|inner| collect(inner, found));
}
