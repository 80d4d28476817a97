//! Raw results, kept with their date: `bench-runs/YYYY-MM-DD-<what>.json`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::laboratory::{Laboratory, Measured, Trial};
use super::machine;

/// Runs in a laboratory, and a file that grows with each, so that an interrupted measurement leaves what it
/// has.
pub struct Record<'a> {
    pub laboratory: &'a Laboratory,
    path: PathBuf,
    content: Value,
}

/// A new file of today's; one of the same day stays, and the new one gets a number.
pub fn unused(what: &str, extension: &str, folder: &Path) -> Result<PathBuf> {
    let date = machine::today().context("the command `date` does not tell the date")?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let name = |k: usize| match k {
        1 => folder.join(format!("{date}-{what}.{extension}")),
        _ => folder.join(format!("{date}-{what}-{k}.{extension}")),
    };
    (1..).map(name).find(|path| !path.exists()).context("no name is free")
}

impl<'a> Record<'a> {
    /// A new file, as [`unused`] names it.
    pub fn new(what: &str, folder: &Path, laboratory: &'a Laboratory) -> Result<Self> {
        let path = unused(what, "json", folder)?;
        let content = json!({
            "what": what,
            "date": machine::today(),
            "program": laboratory.version()?,
            "host": machine::describe(),
            "runs": [],
            "skipped": [],
        });
        let record = Record { laboratory, path, content };
        record.write()?;
        println!("\nraw results: {}", record.path.display());
        Ok(record)
    }

    /// Carries out a run of some `group`, and keeps it with what else is known of it.
    pub fn measure(&mut self, group: &str, about: Value, trial: &Trial) -> Result<Measured> {
        let measured = self.laboratory.run(trial)?;
        let mut run = measured.0.clone();
        run["group"] = json!(group);
        run["about"] = about;
        self.push("runs", run)?;
        Ok(measured)
    }

    /// Notes what was not run, and why.
    pub fn skip(&mut self, what: &str, why: &str) -> Result<()> {
        self.push("skipped", json!({ "what": what, "why": why }))
    }

    fn push(&mut self, list: &str, entry: Value) -> Result<()> {
        if let Some(list) = self.content[list].as_array_mut() {
            list.push(entry);
        }
        self.write()
    }

    fn write(&self) -> Result<()> {
        // A line for each entry, and for each run in the lists: short, and fit to be compared by line.
        let line = |(key, value): (&String, &Value)| match value.as_array().filter(|list| !list.is_empty()) {
            Some(list) => {
                let entries: Vec<String> = list.iter().map(Value::to_string).collect();
                format!("{}: [\n{}\n]", json!(key), entries.join(",\n"))
            }
            None => format!("{}: {value}", json!(key)),
        };
        let lines: Vec<String> = self.content.as_object().into_iter().flatten().map(line).collect();
        let text = format!("{{\n{}\n}}", lines.join(",\n"));
        std::fs::write(&self.path, text + "\n")
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}
