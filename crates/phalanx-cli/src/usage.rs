//! Help, and mistakes in the command line itself, which are one line as all others are.

use std::io::{IsTerminal, Write};

use clap::error::ErrorKind;

use crate::{print, say_error};

/// What somebody who names no command can begin with. Nothing was done, so the exit status is that of bad
/// input.
const FIRST_STEPS: &str = "\
Phalanx trains safe policies for many agents on a graph. Three things to try:

  phalanx train synthetic                ten agents in a line learn within a second; says who is safe
  phalanx new problem --out my-problem   a small problem of your own, with comments; it trains at once
  phalanx presets                        everything else that is built in

`phalanx --help` lists all commands, `phalanx COMMAND --help` what a command can do.
";

/// Shows how to begin; gives the exit status.
pub fn first_steps() -> u8 {
    // Where it cannot be written to, nobody is told.
    let _ = std::io::stderr().write_all(FIRST_STEPS.as_bytes());
    2
}

/// Shows help or says what is wrong with the command line; gives the exit status.
pub fn report(error: &clap::Error) -> u8 {
    let text = error.render();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let is_coloured = std::io::stdout().is_terminal();
            print(&if is_coloured { text.ansi().to_string() } else { text.to_string() });
            0
        }
        // A part of the command is missing: help is the answer, and still not what was meant.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // Where it cannot be written to, nobody is told.
            let _ = std::io::stderr().write_all(text.to_string().as_bytes());
            2
        }
        _ => {
            say_error(&in_one_line(&text.to_string()));
            2
        }
    }
}

/// What is wrong, without the summary of all flags that follows.
fn in_one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let said =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    // That a flag could be a value after all helps nobody who mistyped it.
    let said: Vec<&str> = said.filter(|line| !line.starts_with("tip: to pass")).collect();
    let mut message = String::new();
    for line in said {
        let line = line.strip_prefix("error: ").unwrap_or(line);
        // A list goes on behind its colon.
        let joint = if message.is_empty() || message.ends_with(':') { "" } else { ";" };
        let space = if message.is_empty() { "" } else { " " };
        message += &format!("{joint}{space}{line}");
    }
    message + "; see --help"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use clap::{Command, CommandFactory};

    use crate::Cli;

    /// Commands without commands in them, each with its long flags.
    fn collect(command: &Command, path: &str, found: &mut Vec<(String, BTreeSet<String>)>) {
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            let path = format!("{path} {}", inner.get_name()).trim().to_string();
            if inner.has_subcommands() {
                collect(inner, &path, found);
                continue;
            }
            let flags = inner.get_arguments().filter(|argument| !argument.is_hide_set());
            found.push((path, flags.filter_map(|argument| argument.get_long()).map(String::from).collect()));
        }
    }

    /// The cells of the tables in the part about commands.
    fn rows(reference: &str) -> Vec<Vec<String>> {
        let (_, commands) = reference.split_once("\n## Commands\n").unwrap();
        let commands = commands.split("\n## ").next().unwrap().replace("\\|", "/");
        let lines = commands.lines().filter(|line| line.starts_with("| `"));
        lines.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().into()).collect()).collect()
    }

    /// Flags between backticks, as in `--set KEY=VALUE`.
    fn flags(text: &str) -> BTreeSet<String> {
        let code = text.split('`').skip(1).step_by(2);
        code.flat_map(str::split_whitespace)
            .filter_map(|word| word.strip_prefix("--").map(String::from))
            .collect()
    }

    /// A flag stands in the row of its command, or in a row of flags that names the command.
    #[test]
    fn the_reference_knows_every_flag_of_every_command() {
        let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/reference.md");
        let rows = rows(&std::fs::read_to_string(book).unwrap());
        let mut commands = Vec::new();
        collect(&Cli::command(), "", &mut commands);
        assert!(commands.len() > 20 && rows.len() > 50, "{commands:?}");
        let names = |row: &[String], path: &str| row[1].split(", ").any(|name| name == path);
        let mut wrong = Vec::new();
        for (path, known) in &commands {
            let own = rows.iter().find(|row| {
                let rest = row[0].trim_matches('`').strip_prefix(path.as_str());
                row.len() == 2 && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            });
            let Some(own) = own else {
                wrong.push(format!("no row of `{path}`"));
                continue;
            };
            // `new junctions` is meant by `new`, too.
            let group = path.split(' ').next().unwrap_or_default();
            let mut shown = flags(&own.concat());
            for row in rows.iter().filter(|row| row.len() == 3 && (names(row, path) || names(row, group))) {
                shown.extend(flags(&row.concat()));
                let stale = flags(&row[0]).into_iter().filter(|flag| !known.contains(flag));
                wrong.extend(stale.map(|flag| format!("`{path}` has no --{flag}")));
            }
            wrong.extend(known.difference(&shown).map(|flag| format!("no --{flag} of `{path}`")));
        }
        for row in rows.iter().filter(|row| row.len() == 3) {
            for name in row[1].split(", ") {
                let is_known =
                    commands.iter().any(|(path, _)| path.split(' ').next() == Some(name) || path == name);
                if !is_known {
                    wrong.push(format!("{}: no command `{name}`", row[0]));
                }
            }
        }
        assert!(wrong.is_empty(), "in the reference: {wrong:#?}");
    }
}
