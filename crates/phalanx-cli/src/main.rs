//! The `phalanx` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A panic is a bug, which the message above it says; scripts get the status of a failed run.
    std::panic::catch_unwind(phalanx_cli::main).unwrap_or(ExitCode::FAILURE)
}
