//! `--mpi` in a program that was built without it.

use phalanx::run::Registry;

use super::{ResumeArgs, TrainArgs};

fn missing() -> anyhow::Result<()> {
    let message = "this program was built without MPI; build it with `cargo build --release --features mpi`";
    Err(phalanx::Error::config("--mpi", message).into())
}

pub fn train(_: &TrainArgs, _: &Registry) -> anyhow::Result<()> {
    missing()
}

pub fn resume(_: &ResumeArgs, _: &Registry) -> anyhow::Result<()> {
    missing()
}
