//! `phalanx completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{Cli, print};

#[derive(clap::Args)]
pub struct CompletionsArgs {
    /// For which shell.
    shell: Shell,
}

/// Prints the script that a shell reads to complete commands and flags.
pub fn completions(args: &CompletionsArgs) {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "phalanx", &mut script);
    print(&String::from_utf8_lossy(&script));
}
