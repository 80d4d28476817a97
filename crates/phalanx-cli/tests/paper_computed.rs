//! Experiments of `phalanx paper` that are computed rather than trained: each one cut short, and what must be
//! true of its numbers at any length.

use std::path::{Path, PathBuf};

use assert_cmd::Command;

/// A table by columns.
struct Sheet {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Sheet {
    /// Cells with commas stand in quotes, and none of them is looked at.
    fn read(file: &Path) -> Sheet {
        let text = std::fs::read_to_string(file).unwrap();
        let cells = |line: &str| {
            let mut inside = false;
            let split = line.split(|c| {
                inside ^= c == '"';
                c == ',' && !inside
            });
            split.map(str::to_string).collect::<Vec<String>>()
        };
        let mut lines = text.lines().map(cells);
        Sheet { columns: lines.next().unwrap(), rows: lines.collect() }
    }

    fn text<'a>(&self, row: &'a [String], column: &str) -> &'a str {
        let place = self.columns.iter().position(|name| name == column);
        &row[place.unwrap_or_else(|| panic!("no column {column} among {:?}", self.columns))]
    }

    /// A cell that has to be a finite number.
    fn number(&self, row: &[String], column: &str) -> f64 {
        let text = self.text(row, column);
        let number: f64 = text.parse().unwrap_or_else(|_| panic!("{column} is `{text}` in {row:?}"));
        assert!(number.is_finite(), "{column} is {number} in {row:?}");
        number
    }

    /// All cells of these columns are finite numbers; there is at least one row.
    fn check(&self, columns: &[&str]) {
        assert!(!self.rows.is_empty());
        for row in &self.rows {
            columns.iter().for_each(|column| {
                self.number(row, column);
            });
        }
    }
}

/// Makes an experiment in `root` and gives its folder.
fn make(root: &Path, id: &str) -> PathBuf {
    let mut command = Command::new(env!("CARGO_BIN_EXE_phalanx"));
    command
        .current_dir(root)
        .args(["paper", id, "--cut", "2", "--seeds", "1", "--out", "p"])
        .assert()
        .success();
    let folder = root.join("p").join(id);
    let record = std::fs::read_to_string(folder.join("experiment.json")).unwrap();
    assert!(record.contains("\"complete\": true"), "{record}");
    folder
}

fn made(id: &str) -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let folder = make(root.path(), id);
    (root, folder)
}

/// Figures are there in both forms, and say that they are not whole.
fn check_figures(folder: &Path, names: &[&str]) {
    for name in names {
        let svg = std::fs::read_to_string(folder.join(format!("figures/{name}.svg"))).unwrap();
        assert!(svg.contains("[CUT TO 2 ITERATIONS]") && !svg.contains("NaN"), "{name}");
        check_png(&folder.join(format!("figures/{name}.png")));
    }
}

fn check_png(file: &Path) -> usize {
    let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 1000, "{}", file.display());
    bytes.len()
}

#[test]
fn rate() {
    let (root, folder) = made("rate");
    let results = Sheet::read(&folder.join("results.csv"));
    results.check(&["eta_mu", "theorem", "T", "E_final", "E_min", "violation"]);
    for row in &results.rows {
        let [last, least] = ["E_final", "E_min"].map(|column| results.number(row, column));
        assert!(0.0 < least && least <= last, "{row:?}");
    }
    // More iterations lead nearer, where steps are not those of the theorem.
    let last = |t: f64| {
        let wanted = |row: &&Vec<String>| {
            [("eta_mu", 100.0), ("theorem", 0.0), ("T", t)].iter().all(|(c, x)| results.number(row, c) == *x)
        };
        results.number(results.rows.iter().find(wanted).unwrap(), "E_final")
    };
    assert!(last(100.0) < 0.5 * last(10.0), "{} {}", last(100.0), last(10.0));
    Sheet::read(&folder.join("slopes.csv")).check(&["eta_mu", "theorem", "E_final", "E_min", "promised"]);
    check_figures(&folder, &["rate"]);

    // Parts that are there are not made again.
    let parts = folder.join("parts").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let part = parts.into_iter().find(|path| path.to_string_lossy().contains("local-100-100-")).unwrap();
    std::fs::write(&part, r#"{"first":1.0,"last":0.125,"least":0.0625,"violation":0.5,"bound":8.0}"#)
        .unwrap();
    make(root.path(), "rate");
    let again = std::fs::read_to_string(folder.join("results.csv")).unwrap();
    assert!(again.contains("100,0,100,0.125,0.0625,0.5"), "{again}");
    // What was cut short is.
    std::fs::write(&part, "{\"last\":").unwrap();
    make(root.path(), "rate");
    let again = Sheet::read(&folder.join("results.csv"));
    assert_eq!(again.rows, results.rows);
}

#[test]
fn truncation() {
    let (_root, folder) = made("truncation");
    let results = Sheet::read(&folder.join("results.csv"));
    results.check(&["mixing", "kappa_q", "fixed", "averaged", "certificate"]);
    let mut whole = 0;
    for row in &results.rows {
        let number = |column: &str| results.number(row, column);
        // Smaller errors than 1e-12, with gradients of about 10, are written as 0.
        if number("kappa_q") == 2.0 {
            whole += 1;
            assert_eq!([number("fixed"), number("averaged")], [0.0; 2], "{row:?}");
            continue;
        }
        assert!(number("fixed") > 1e-4, "{row:?}");
        for error in ["fixed", "averaged"].map(number) {
            assert!(error <= number("certificate"), "{row:?}");
        }
        // The lemma's bound is there where its assumption holds.
        assert_eq!(results.text(row, "lemma").is_empty(), number("mixing") == 0.0, "{row:?}");
    }
    assert_eq!(whole, 2);
    let family = Sheet::read(&folder.join("counterexample.csv"));
    family.check(&["kappa", "error", "lemma", "certificate", "dq", "dq_lemma", "dq_certificate"]);
    for row in &family.rows {
        assert!(family.number(row, "error") <= family.number(row, "certificate"), "{row:?}");
        // The proof bounds the error of Q by c₀φ₀^κ, which is wrong from κ = 2 on.
        let is_wrong = family.number(row, "dq") > family.number(row, "dq_lemma");
        assert_eq!(is_wrong, family.number(row, "kappa") >= 2.0, "{row:?}");
    }
    check_figures(&folder, &["truncation", "counterexample"]);
    assert!(folder.join("models/line3-mixed.json").is_file());
}

#[test]
fn samples() {
    let (_root, folder) = made("samples");
    let results = Sheet::read(&folder.join("results.csv"));
    for row in &results.rows {
        let columns: &[&str] = match results.text(row, "what") {
            "estimate" => &["B", "seeds", "occupancy_error", "gradient_error"],
            _ => &["B", "K", "seeds", "E", "E_sd", "violation", "objective", "E_exact"],
        };
        columns.iter().for_each(|column| {
            results.number(row, column);
        });
    }
    let slopes = Sheet::read(&folder.join("slopes.csv"));
    assert_eq!(slopes.rows.len(), 2);
    for row in &slopes.rows {
        let slope = slopes.number(row, "slope");
        assert!((-0.6..=-0.4).contains(&slope), "{row:?}");
    }
    check_figures(&folder, &["estimates", "trained", "objective"]);
}

#[test]
fn cost() {
    let (_root, folder) = made("cost");
    let results = Sheet::read(&folder.join("results.csv"));
    results.check(&[
        "kappa",
        "diameter",
        "agents",
        "iterations",
        "seconds",
        "seconds_least",
        "bytes",
        "state_bytes",
    ]);
    for rows in results.rows.chunk_by(|a, b| results.text(a, "world") == results.text(b, "world")) {
        let bytes: Vec<f64> = rows.iter().map(|row| results.number(row, "bytes")).collect();
        assert!(bytes[0] == 0.0 && bytes.is_sorted() && bytes[1] > 0.0, "{bytes:?}");
        let whole = rows.last().unwrap();
        assert_eq!(results.number(whole, "kappa"), results.number(whole, "diameter"));
        assert_eq!(results.number(whole, "bytes_relative"), 1.0);
    }
    check_figures(&folder, &["time", "traffic"]);
}

#[test]
fn visual_pistonball() {
    let (_root, folder) = made("visual-pistonball");
    check_visual(&folder, &["start", "middle", "end", "neighbour"], 2);
    Sheet::read(&folder.join("results.csv")).check(&["solved"]);
}

#[test]
fn visual_wireless() {
    let (_root, folder) = made("visual-wireless");
    check_visual(&folder, &["first", "second"], 1);
    let [first, second] =
        ["first", "second"].map(|name| std::fs::read(folder.join(format!("figures/{name}.png"))));
    assert_ne!(first.unwrap(), second.unwrap());
}

fn check_visual(folder: &Path, stills: &[&str], policies: usize) {
    let results = Sheet::read(&folder.join("results.csv"));
    results.check(&["seed", "return", "violation", "episode", "steps"]);
    assert_eq!(results.rows.len(), policies);
    let mut pictures: Vec<PathBuf> =
        stills.iter().map(|name| folder.join(format!("figures/{name}.png"))).collect();
    let steps = results.number(&results.rows[0], "steps") as usize;
    pictures.extend((1..=steps).map(|step| folder.join(format!("frames/step-{step:04}.png"))));
    for picture in pictures {
        let size = check_png(&picture);
        assert!(size < 30_000, "{}: {size} bytes", picture.display());
    }
    assert!(std::fs::read(folder.join("figures/episode.gif")).unwrap().starts_with(b"GIF89a"));
}
