//! A run among many, and how it ended.

use std::path::PathBuf;

use super::{Config, Outcome};

/// A run to be carried out.
#[derive(Debug, Clone)]
pub struct Job {
    /// What it is called in messages; no two have the same.
    pub name: String,
    /// Its folder, of its own.
    pub folder: PathBuf,
    /// What to run.
    pub config: Config,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub enum JobOutcome {
    /// It is finished, now or since an earlier call.
    Done(Box<Outcome>),
    /// It failed, and why.
    Failed(String),
    /// Another process is training in its folder, so it was left alone.
    Busy,
    /// The user stopped it; it goes on from a checkpoint, or has not begun.
    Stopped,
}
