//! Policies for other programs: JSON, ONNX, C; with a card that says what they are worth.

mod c;
mod card;
mod json;
mod onnx;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use phalanx_agent::policy::{Policies, Rule};
use serde::Serialize;

use super::evaluate::Evaluator;
use super::portable::portable;
use crate::base::{durable, own_folder};
use crate::{Error, Result};
pub use card::Card;

/// What policies are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Models of ONNX.
    Onnx,
    /// JSON, with a short program that reads it.
    Json,
    /// Source of C99.
    C,
}

impl Format {
    const ALL: [Format; 3] = [Format::Onnx, Format::Json, Format::C];

    /// Its name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Onnx => "onnx",
            Format::Json => "json",
            Format::C => "c",
        }
    }

    fn files(self, policies: &Policies) -> Result<Vec<File>> {
        match self {
            Format::Onnx => onnx::files(policies),
            Format::Json => json::files(policies),
            Format::C => c::files(policies),
        }
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Format::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let known = Format::ALL.map(Format::name).join(", ");
            Error::argument("to", format!("`{name}` is unknown; allowed are {known}"))
        })
    }
}

/// How policies are to be exported.
#[derive(Debug, Clone)]
pub struct ExportSettings {
    /// As what.
    pub to: Format,
    /// Folder, new, empty, or of an earlier export to the same format.
    pub out: PathBuf,
    /// Episodes that the card's verdicts rest on.
    pub episodes: usize,
    /// Their seed.
    pub seed: u64,
    /// Confidence of all verdicts together.
    pub confidence: f64,
}

/// What was written.
#[derive(Debug, Clone, Serialize)]
pub struct Exported {
    /// The folder.
    pub out: PathBuf,
    /// Names of all files in it, the card's among them.
    pub files: Vec<String>,
    /// What the card says.
    pub card: Card,
}

/// A file on its way into the folder.
struct File {
    name: String,
    bytes: Vec<u8>,
}

/// Writes the policies of `evaluator`, and a card, into a folder.
pub fn export(evaluator: &Evaluator, settings: &ExportSettings) -> Result<Exported> {
    let ExportSettings { to, out, .. } = settings;
    // Each format has folders of its own: files of two would be taken for one export.
    let command = format!("export --to {}", to.name());
    own_folder::check(out, &command, || false)?;
    let files = to.files(&portable(evaluator)?)?;
    let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
    let card = Card::new(evaluator, settings, &names)?;
    own_folder::claim(out, &command, || false)?;
    remove_earlier(out, &names)?;
    for File { name, bytes } in &files {
        durable::replace_bytes(&out.join(name), bytes)?;
    }
    // The card comes last: a folder that has one is complete.
    durable::replace_json(&out.join(card::FILE), &card)?;
    durable::replace_bytes(&out.join(card::PAGE), card.page().as_bytes())?;
    let files = names.into_iter().chain([card::FILE, card::PAGE].map(String::from)).collect();
    Ok(Exported { out: out.clone(), files, card })
}

/// Removes the card of an earlier export, and its models of agents that are no more.
fn remove_earlier(out: &Path, names: &[String]) -> Result<()> {
    for entry in out.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let is_model = name.ends_with(onnx::ENDING) && !names.contains(&name);
        if is_model || [card::FILE, card::PAGE].contains(&name.as_str()) {
            durable::remove(&entry.path()).map_err(|e| Error::write(entry.path(), e))?;
        }
    }
    Ok(())
}

/// The place of the neural network that a rule reads, if it reads one.
fn network_of(rule: &Rule) -> Option<usize> {
    match rule {
        Rule::Table { .. } | Rule::Linear { .. } => None,
        Rule::Symbols { network } | Rule::Numbers { network, .. } | Rule::Places { network, .. } => {
            Some(*network)
        }
    }
}
