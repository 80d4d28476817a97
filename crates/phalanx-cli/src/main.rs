//! The `phalanx` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    phalanx_cli::main_with(phalanx::run::Registry::default())
}
