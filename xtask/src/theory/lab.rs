//! Runs `phalanx` and keeps what it says.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use phalanx_pictures::plot::figure::{self, Figure};
use serde_json::Value;

/// The folder of the project's figures, from the project's folder.
const FIGURES: &str = "docs/theory";

/// The command line, a folder for its runs, and the figures made of them.
pub struct Lab {
    program: PathBuf,
    scratch: PathBuf,
    figures: Vec<(&'static str, Figure)>,
}

/// A run that has come to its end.
pub struct Run {
    folder: PathBuf,
    columns: HashMap<String, Vec<f64>>,
}

impl Lab {
    /// Expects `release/phalanx` in the target folder.
    pub fn new() -> Result<Lab> {
        let target = PathBuf::from(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
        let scratch = target.join("theory");
        if scratch.exists() {
            std::fs::remove_dir_all(&scratch)?;
        }
        std::fs::create_dir_all(&scratch)?;
        Ok(Lab { program: target.join("release/phalanx"), scratch, figures: Vec::new() })
    }

    /// Standard output of `phalanx` with these arguments.
    pub fn phalanx(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new(&self.program)
            .args(arguments)
            .output()
            .context("cannot run release/phalanx; start this from the project's folder")?;
        let command = arguments.join(" ");
        ensure!(output.status.success(), "phalanx {command}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }

    /// `phalanx train docs/theory/<config>.toml` with settings like `dual.eta_mu=3`.
    pub fn train(&self, config: &str, settings: &[String]) -> Result<Run> {
        let source = format!("{FIGURES}/{config}.toml");
        let folder = self.scratch.join(format!("{config} {}", settings.join(" ")).replace(['/', '"'], ""));
        let mut arguments = vec!["train", &source, "--out", path(&folder)?];
        for setting in settings {
            arguments.extend(["--set", setting]);
        }
        arguments.extend(["--set", "checkpoint.seconds=inf"]);
        self.phalanx(&arguments)?;
        let metrics = std::fs::read_to_string(folder.join("metrics.csv"))?;
        println!("{config} {}", settings.join(" "));
        Ok(Run { folder, columns: columns(&metrics) })
    }

    /// Makes an experiment of the paper, and takes its tables (by the names they get here), figures and models over.
    pub fn paper(&self, id: &str, tables: &[(&str, &str)]) -> Result<()> {
        let folder = self.scratch.join("paper").join(id);
        self.phalanx(&["paper", id, "--out", path(&self.scratch.join("paper"))?])?;
        for (table, name) in tables {
            self.write(
                &format!("{name}.csv"),
                &std::fs::read_to_string(folder.join(format!("{table}.csv")))?,
            )?;
        }
        for part in ["figures", "models"] {
            // Not every experiment has models.
            for entry in folder.join(part).read_dir().into_iter().flatten() {
                let file = entry?.path();
                let name =
                    file.file_name().and_then(|name| name.to_str()).context("a file without a name")?;
                if !name.ends_with(".png") {
                    self.write(name, &std::fs::read_to_string(&file)?)?;
                }
            }
        }
        println!("paper {id}");
        Ok(())
    }

    /// The share of its (discounted) time that each agent of a line spends in state 1, from sampled episodes.
    pub fn shares_of_state_one(&self, run: &Run) -> Result<Vec<f64>> {
        let file = run.folder.join("occupancy.json");
        self.phalanx(&["occupancy", path(&run.folder)?, "--out", path(&file)?, "--episodes", "1000"])?;
        let occupancy: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
        let lambda: Vec<Vec<f64>> = serde_json::from_value(occupancy["lambda"].clone())?;
        // By state and action.
        Ok(lambda.iter().map(|cells| (cells[2] + cells[3]) / cells.iter().sum::<f64>()).collect())
    }

    /// A new file in the folder of figures.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let file = Path::new(FIGURES).join(name);
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Keeps a figure for [`Lab::draw`], and writes the numbers in it.
    pub fn figure(&mut self, name: &'static str, table: &Table, figure: Figure) -> Result<()> {
        self.figures.push((name, figure));
        self.write(&format!("{name}.csv"), &table.to_csv())
    }

    /// Draws all figures: as SVG for the document, as PNG into the folder of the runs.
    pub fn draw(self) -> Result<()> {
        let (names, figures): (Vec<_>, Vec<_>) = self.figures.iter().cloned().unzip();
        for (name, picture) in names.into_iter().zip(figure::draw(&figures)?) {
            self.write(&format!("{name}.svg"), &picture.svg)?;
            std::fs::write(self.scratch.join(format!("{name}.png")), picture.png)?;
        }
        Ok(())
    }
}

impl Run {
    /// A column of `metrics.csv`.
    pub fn column(&self, name: &str) -> Result<&[f64]> {
        self.columns.get(name).map(Vec::as_slice).with_context(|| format!("no column {name} in metrics.csv"))
    }

    /// The last value of a column.
    pub fn last(&self, column: &str) -> Result<f64> {
        self.column(column)?.last().copied().context("a run without iterations")
    }
}

fn columns(csv: &str) -> HashMap<String, Vec<f64>> {
    let mut lines = csv.lines();
    let mut columns: Vec<(String, Vec<f64>)> =
        lines.next().unwrap_or_default().split(',').map(|name| (name.to_string(), Vec::new())).collect();
    for line in lines {
        for ((_, values), field) in columns.iter_mut().zip(line.split(',')) {
            values.push(field.parse().unwrap_or(f64::NAN));
        }
    }
    columns.into_iter().collect()
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().context("a folder whose name is no text")
}

/// Numbers with names, as they stand in a CSV file.
pub struct Table {
    names: Vec<&'static str>,
    rows: Vec<Vec<f64>>,
}

impl Table {
    /// An empty table.
    pub fn new(names: &[&'static str]) -> Table {
        Table { names: names.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; what is not known is NaN.
    pub fn push(&mut self, row: &[f64]) {
        assert_eq!(row.len(), self.names.len());
        self.rows.push(row.to_vec());
    }

    /// Two columns.
    pub fn points(&self, x: &str, y: &str) -> Vec<(f64, f64)> {
        let [x, y] = [x, y].map(|name| self.column(name));
        self.rows.iter().map(|row| (row[x], row[y])).collect()
    }

    /// The table of those rows in which a column has the given value.
    pub fn only(&self, name: &str, value: f64) -> Table {
        let column = self.column(name);
        let rows = self.rows.iter().filter(|row| row[column] == value).cloned().collect();
        Table { names: self.names.clone(), rows }
    }

    fn column(&self, name: &str) -> usize {
        self.names.iter().position(|other| *other == name).expect("a column of the table")
    }

    fn to_csv(&self) -> String {
        let mut text = self.names.join(",") + "\n";
        for row in &self.rows {
            let fields: Vec<String> = row.iter().map(|&x| number(x)).collect();
            let _ = writeln!(text, "{}", fields.join(","));
        }
        text
    }
}

/// Smaller numbers than this are rounding errors: they differ between machines.
pub const ROUNDING: f64 = 1e-13;

/// Six digits.
fn number(x: f64) -> String {
    match x {
        x if x.is_nan() => String::new(),
        x if x.abs() < ROUNDING => "0".into(),
        x if x == x.round() => format!("{x}"),
        x => format!("{x:.5e}").parse::<f64>().map_or_else(|_| String::new(), |x| format!("{x:?}")),
    }
}
