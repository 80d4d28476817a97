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
    use std::path::Path;

    use clap::{Command, CommandFactory};

    use crate::Cli;

    /// Commands and long flags of a command, with those of the commands in it.
    fn collect(command: &Command, path: &str, found: &mut Vec<String>) {
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            let path = format!("{path} {}", inner.get_name()).trim().to_string();
            if !inner.has_subcommands() {
                found.push(format!("| `{path}"));
            }
            let flags = inner.get_arguments().filter(|argument| !argument.is_hide_set());
            found.extend(flags.filter_map(|argument| argument.get_long()).map(|long| format!("`--{long}")));
            collect(inner, &path, found);
        }
    }

    #[test]
    fn the_reference_knows_every_command_and_flag() {
        let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/reference.md");
        let reference = std::fs::read_to_string(book).unwrap();
        let mut wanted = Vec::new();
        collect(&Cli::command(), "", &mut wanted);
        assert!(wanted.len() > 60, "{wanted:?}");
        wanted.retain(|name| !reference.contains(name.as_str()));
        wanted.sort();
        wanted.dedup();
        assert!(wanted.is_empty(), "the reference lacks {wanted:?}");
    }
}
