//! Raw results, kept with their date: `bench-runs/YYYY-MM-DD-<what>.json`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::laboratory::{Laboratory, Measured};
use super::machine;

/// A file that grows with every run, so that an interrupted measurement leaves what it has.
pub struct Record {
    path: PathBuf,
    content: Value,
}

impl Record {
    /// A new file; one of the same day stays, and the new one gets a number.
    pub fn new(what: &str, folder: &Path, laboratory: &Laboratory) -> Result<Self> {
        let date = machine::today().context("the command `date` does not tell the date")?;
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let name = |k: usize| match k {
            1 => folder.join(format!("{date}-{what}.json")),
            _ => folder.join(format!("{date}-{what}-{k}.json")),
        };
        let path = (1..).map(name).find(|path| !path.exists()).context("no name is free")?;
        let content = json!({
            "what": what,
            "date": date,
            "program": laboratory.version()?,
            "host": machine::describe(),
            "runs": [],
            "skipped": [],
        });
        let record = Record { path, content };
        record.write()?;
        println!("\nraw results: {}", record.path.display());
        Ok(record)
    }

    /// Adds a run of some `group`, with what else is known of it.
    pub fn add(&mut self, group: &str, about: Value, measured: &Measured) -> Result<()> {
        let mut run = measured.raw().clone();
        run["group"] = json!(group);
        run["about"] = about;
        run["iteration_s"] = json!(measured.iteration_s());
        self.push("runs", run)
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

/// The file of `what` with the latest date in its name.
pub fn newest(what: &str, folder: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    // A number behind the name counts, not the full stop in its place.
    let key = |name: &String| {
        let (date, number) = name.strip_suffix(".json")?.split_once(&format!("-{what}"))?;
        let number = if number.is_empty() { 1 } else { number.strip_prefix('-')?.parse::<usize>().ok()? };
        Some((date.to_string(), number))
    };
    let latest = names.filter_map(|name| Some((key(&name)?, name))).max();
    let (_, name) = latest.with_context(|| format!("no *-{what}.json in {}", folder.display()))?;
    Ok(folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_file_is_found() {
        let folder = std::env::temp_dir().join(format!("phalanx-newest-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in [
            "2026-01-09-scale.json",
            "2026-01-10-scale-9.json",
            "2026-01-10-scale-10.json",
            "2026-01-11-stages.json",
        ] {
            std::fs::write(folder.join(name), "{}").unwrap();
        }
        assert!(newest("scale", &folder).unwrap().ends_with("2026-01-10-scale-10.json"));
        assert!(newest("other", &folder).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
