//! What lies in the folder of all experiments.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use phalanx::Result;
use serde::Serialize;
use serde_json::{Value, json};

use super::tables;
use crate::baseline_table;
use crate::catalogue::{self, ALL, Experiment};
use crate::claims::Evidence;
use crate::context::Record;
use crate::distinct;
use crate::setting::Setting;
use crate::sheet::{Sheet, if_there};
use crate::summary;

/// Everything that a report is made of.
#[derive(Debug)]
pub struct Gathered {
    /// Complete experiments, in the order of the paper.
    pub experiments: Vec<CompleteExperiment>,
    /// The others, each with the reason.
    pub absent: Vec<Absent>,
    /// How settings were chosen, for templates: `words` or a `table`.
    pub tuning: Value,
}

/// A complete experiment.
#[derive(Debug)]
pub struct CompleteExperiment {
    /// How it was made.
    pub record: Record,
    /// What it is, in a line.
    pub title: String,
    /// Where the paper has it.
    pub label: String,
    /// Its tables by name: `results`, `summary` and whatever else it wrote.
    pub sheets: BTreeMap<String, Sheet>,
    /// Drawings: SVG where there is one.
    pub figures: Vec<PathBuf>,
    /// An episode, picture by picture.
    pub frames: Vec<PathBuf>,
}

/// An experiment without results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Absent {
    /// Its name.
    pub id: String,
    /// What it is.
    pub title: String,
    /// Why there is nothing.
    pub reason: &'static str,
}

impl Gathered {
    /// Reads what is there. Fails for results that another version made, and for files that cannot be read.
    pub fn read(root: &Path) -> Result<Gathered> {
        let mut gathered = Gathered { experiments: Vec::new(), absent: Vec::new(), tuning: tuning(root)? };
        let known = ALL.iter().map(|experiment| experiment.id.clone());
        let other = folders(root)?.into_iter().filter(|name| catalogue::find(name).is_none());
        for id in known.chain(other) {
            let described = catalogue::find(&id);
            let (title, label) = described.map_or((id.clone(), String::new()), |experiment| {
                (experiment.title.clone(), experiment.label.clone())
            });
            let folder = root.join(&id);
            let reason = match Record::read(&folder)? {
                None if described.is_none() => continue,
                None => "not made",
                Some(record) if record.id != id => "holds a copy of another experiment",
                Some(record) if !record.complete => "begun, but not complete",
                Some(record) => {
                    let mut sheets = sheets(&folder)?;
                    let trained = sheets.get("results").filter(|results| summary::is_of(results));
                    match outdated(&record, described, trained, root)? {
                        Some(reason) => reason,
                        None => {
                            if let Some(summary) = trained.map(summary::of) {
                                sheets.insert("summary".into(), summary);
                            }
                            gathered.experiments.push(CompleteExperiment {
                                record,
                                title,
                                label,
                                sheets,
                                figures: figures(&folder.join("figures"))?,
                                frames: with_extension(&folder.join("frames"), "png")?,
                            });
                            continue;
                        }
                    }
                }
            };
            gathered.absent.push(Absent { id, title, reason });
        }
        Ok(gathered)
    }

    /// What claims are judged by.
    pub fn evidence(&self) -> Evidence {
        let mut evidence = Evidence::default();
        for found in &self.experiments {
            for (name, sheet) in &found.sheets {
                let id = &found.record.id;
                let key = if name == "results" { id.clone() } else { format!("{id}/{name}") };
                evidence.sheets.insert(key, sheet.clone());
            }
        }
        evidence
    }
}

/// Why a complete experiment does not count, if it does not; `trained` are its runs, if it has any.
fn outdated(
    record: &Record,
    described: Option<&Experiment>,
    trained: Option<&Sheet>,
    root: &Path,
) -> Result<Option<&'static str>> {
    Ok(match () {
        () if trained.is_some_and(|runs| runs.column("commit").is_none()) => {
            Some("made by an earlier program, which did not say by which commit; make it again")
        }
        () if described.is_some_and(|it| it.definition() != record.definition) => {
            Some("made by an earlier program, which computed something else; make it again")
        }
        () if described.zip(trained).is_some_and(|(it, runs)| !are_of_catalogue(runs, it)) => {
            Some("made with other settings than those of this program; make it again")
        }
        () if record.id == baseline_table::ID && !baseline_table::is_of_these_runs(root)? => {
            Some("made of other runs than those that are here; make it again")
        }
        () => None,
    })
}

/// Whether all runs have settings of the catalogue, as they are now.
fn are_of_catalogue(runs: &Sheet, experiment: &Experiment) -> bool {
    let described = |setting: &Setting| {
        [setting.method.clone(), setting.name.clone(), setting.preset.clone(), setting.set.join(" ")]
    };
    let known: Vec<[String; 4]> = experiment.settings.iter().map(described).collect();
    let columns = ["method", "setting", "preset", "set"];
    let is_known = |row: &Vec<String>| known.contains(&columns.map(|column| runs.text(row, column).into()));
    known.is_empty() || runs.rows.iter().all(is_known)
}

/// How a status begins that is no result.
const UNFINISHED: [&str; 2] = ["failed", "refused"];

impl CompleteExperiment {
    /// Runs without a result: method, setting, seed and reason.
    pub fn failures(&self) -> Vec<String> {
        let Some(results) = self.sheets.get("results") else { return Vec::new() };
        let failed = results.rows.iter().filter(|row| {
            let status = results.text(row, "status");
            UNFINISHED.iter().any(|word| status.starts_with(word))
        });
        let words = failed.map(|row| {
            let [method, setting, seed, status] =
                ["method", "setting", "seed", "status"].map(|column| results.text(row, column));
            let seed = if seed.is_empty() { String::new() } else { format!("seed {seed}") };
            // Computed experiments name their rows in the first columns.
            let named = if method.is_empty() { row.iter().take(2).cloned().collect() } else { Vec::new() };
            let who = [vec![method.to_string(), setting.to_string()], named, vec![seed]].concat();
            let who: Vec<String> = who.into_iter().filter(|part| !part.is_empty()).collect();
            format!("{}: {status}", who.join(", "))
        });
        words.collect()
    }

    /// Settings of the catalogue that have no runs.
    pub fn unmade(&self) -> Vec<String> {
        let found = catalogue::find(&self.record.id).zip(self.sheets.get("results"));
        let Some((experiment, results)) = found else { return Vec::new() };
        let is_there = |setting: &&Setting| {
            let names = [setting.method.as_str(), setting.name.as_str()];
            results
                .rows
                .iter()
                .any(|row| ["method", "setting"].map(|column| results.text(row, column)) == names)
        };
        experiment.settings.iter().filter(|setting| !is_there(setting)).map(Setting::title).collect()
    }

    /// Who made it: the commits of its runs, or of the program.
    pub fn commits(&self) -> Vec<&str> {
        let Some(results) = self.sheets.get("results").filter(|results| results.column("commit").is_some())
        else {
            return vec![&self.record.commit];
        };
        let named = results.rows.iter().map(|row| results.text(row, "commit"));
        distinct(named.filter(|commit| !commit.is_empty()))
    }

    /// Presets and settings, each combination once, by column: method, setting, preset, settings on top.
    pub fn settings(&self) -> Vec<BTreeMap<&str, &str>> {
        let Some(results) = self.sheets.get("results") else { return Vec::new() };
        if results.column("preset").is_none() {
            return Vec::new();
        }
        distinct(results.rows.iter().map(|row| {
            let cell = |column| (column, results.text(row, column));
            ["method", "setting", "preset", "set"].map(cell).into()
        }))
    }
}

/// Subfolders with a record, in the order of their names.
pub fn folders(root: &Path) -> Result<Vec<String>> {
    let made = entries(root)?.into_iter().filter(|path| path.join("experiment.json").is_file());
    Ok(made.filter_map(|path| Some(path.file_name()?.to_str()?.to_string())).collect())
}

/// What is in a folder, in the order of the names; nothing if there is no such folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = if_there(folder, std::fs::read_dir(folder))?;
    let entries = read.into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn with_extension(folder: &Path, wanted: &str) -> Result<Vec<PathBuf>> {
    let is_wanted = |path: &PathBuf| path.extension().is_some_and(|extension| extension == wanted);
    Ok(entries(folder)?.into_iter().filter(is_wanted).collect())
}

fn sheets(folder: &Path) -> Result<BTreeMap<String, Sheet>> {
    let mut sheets = BTreeMap::new();
    for file in with_extension(folder, "csv")? {
        if let (Some(sheet), Some(name)) = (Sheet::read(&file)?, file.file_stem()) {
            sheets.insert(name.to_string_lossy().into_owned(), sheet);
        }
    }
    Ok(sheets)
}

/// Every drawing once: what is there as SVG is not taken as PNG, too.
fn figures(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = with_extension(folder, "svg")?;
    let raster = with_extension(folder, "png")?;
    files.extend(raster.into_iter().filter(|png| !png.with_extension("svg").is_file()));
    files.sort_by_key(|file| {
        let moment = MOMENTS.iter().position(|moment| file.file_stem().is_some_and(|stem| stem == *moment));
        (moment.unwrap_or(MOMENTS.len()), file.clone())
    });
    Ok(files)
}

/// Stills of an episode stand in the order of time.
const MOMENTS: [&str; 5] = ["start", "first", "middle", "second", "end"];

/// How the settings of the catalogue were found.
const OWN_TUNING: &str = include_str!("tuning.md");

/// What `tuning.md` or `tuning.csv` says, of settings of one's own; else how those of the catalogue were
/// found.
fn tuning(root: &Path) -> Result<Value> {
    let file = root.join("tuning.md");
    let words = if_there(&file, std::fs::read_to_string(&file))?;
    let table = if words.is_none() { Sheet::read(&root.join("tuning.csv"))? } else { None };
    Ok(match table {
        Some(table) => json!({ "table": tables::whole(&table) }),
        None => json!({ "words": words.as_deref().unwrap_or(OWN_TUNING).trim() }),
    })
}
