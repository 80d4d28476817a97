//! `meta.json`: what a run says about its own making, and how far it is.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::config::Config;
use crate::base::error::ensure;
use crate::base::{files, sealed};
use crate::world::Registry;
use crate::{Error, Result};

pub(super) const FILE: &str = "meta.json";
/// The configuration of a run, complete.
pub(super) const CONFIG: &str = "config.toml";
/// The policy that a run began with, where it was given one.
pub(super) const INITIAL_POLICY: &str = "init.safetensors";

/// What a run says about its own making.
#[derive(Debug, Clone, Default)]
pub struct Provenance {
    /// Commit that the program was built from.
    pub commit: String,
    /// How it was called.
    pub command_line: Vec<String>,
}

/// The content of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Meta {
    pub version: String,
    commit: String,
    command_line: Vec<String>,
    pub status: String,
    /// Whether it began at another run's policy.
    #[serde(default)]
    pub is_warm: bool,
    /// Of `config.toml` and of every file that it names; earlier versions did not keep it.
    config_crc32c: Option<u32>,
    /// Of the policy that it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    init_crc32c: Option<u32>,
}

/// The keys that earlier versions wrote.
const EARLIER_KEYS: [&str; 6] = ["version", "commit", "command_line", "status", "is_warm", "config_crc32c"];

pub(super) const RUNNING: &str = "running";
pub(super) const FINISHED: &str = "finished";

impl Meta {
    fn new(provenance: Provenance) -> Self {
        let Provenance { commit, command_line } = provenance;
        let (version, status) = (env!("CARGO_PKG_VERSION").into(), RUNNING.into());
        let [config_crc32c, init_crc32c] = [None; 2];
        Meta { version, commit, command_line, status, is_warm: false, config_crc32c, init_crc32c }
    }

    /// That of a run which begins in `folder`, where its configuration is, and its policy if it was given
    /// one.
    pub fn begin(folder: &Path, config_crc32c: u32, provenance: Provenance) -> Result<Self> {
        let init = folder.join(INITIAL_POLICY);
        let is_warm = init.is_file();
        let init_crc32c = is_warm.then(|| files::checksum(&init, None)).transpose();
        Ok(Meta {
            is_warm,
            config_crc32c: Some(config_crc32c),
            init_crc32c: init_crc32c.map_err(|e| Error::unreadable(&init, e))?,
            ..Meta::new(provenance)
        })
    }

    /// That of the run in `folder`; one that was killed before it had one is running.
    pub fn read(folder: &Path) -> Result<Self> {
        let file = folder.join(FILE);
        if file.exists() {
            return Meta::parse(&files::read_text(&file)?, &file);
        }
        let is_warm = folder.join(INITIAL_POLICY).exists();
        Ok(Meta { is_warm, ..Meta::new(Provenance { commit: "unknown".into(), command_line: Vec::new() }) })
    }

    /// As [`Meta::read`], from text at hand; `path` is what errors call it.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        sealed::parse(text, path, &EARLIER_KEYS)
    }

    pub fn write(&self, folder: &Path) -> Result<()> {
        sealed::write(&folder.join(FILE), self)
    }

    pub fn is_finished(&self) -> bool {
        self.status == FINISHED
    }

    /// Whether the configuration with this checksum is still the one that the run began with.
    pub fn has_config(&self, checksum: u32) -> bool {
        self.config_crc32c.is_none_or(|expected| expected == checksum)
    }

    /// Whether the policy that the run began with is still the same.
    pub fn check_initial_policy(&self, folder: &Path) -> Result<()> {
        let Some(expected) = self.init_crc32c else { return Ok(()) };
        let init = folder.join(INITIAL_POLICY);
        let found = files::checksum(&init, None).map_err(|e| Error::unreadable(&init, e))?;
        ensure(found == expected, || Error::file(&init, "is damaged: it is not what the run began with"))
    }
}

/// The configuration of the run in a folder, if it is the one that the run began with, and its checksum.
pub(super) fn checked_config(folder: &Path, meta: &Meta, registry: &Registry) -> Result<(Config, u32)> {
    let config = Config::of_run(folder)?.with_registry(registry.clone());
    let checksum = input_checksum(folder, &config)?;
    ensure(meta.has_config(checksum), || changed_config(folder))?;
    Ok((config, checksum))
}

/// Says that the configuration of a run is another one now.
pub(super) fn changed_config(folder: &Path) -> Error {
    let message = "was changed after the run began, or a file that it names was; put it back as it was, or train a new run from it";
    Error::file(folder.join(CONFIG), message)
}

/// Checksum of a run's `config.toml` and of every file that it names.
pub(super) fn input_checksum(folder: &Path, config: &Config) -> Result<u32> {
    let mut checksum = 0;
    for file in [vec![folder.join(CONFIG)], config.input_files()].concat() {
        checksum = crc32c::crc32c_append(checksum, &files::read(&file)?);
    }
    Ok(checksum)
}
