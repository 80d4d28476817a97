//! `phalanx paper` as a whole: every experiment, in its shortest form, and what it refuses.

use std::path::Path;
use std::process::{Command, Output};

fn phalanx(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_phalanx")).current_dir(folder).args(arguments).output().unwrap()
}

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn ids(folder: &Path) -> Vec<String> {
    let list = phalanx(folder, &["paper", "list"]);
    let list = String::from_utf8(list.stdout).unwrap();
    list.lines().filter_map(|line| line.split_whitespace().next()).map(String::from).collect()
}

/// All of them leave results and pictures, and the report speaks of each.
#[test]
fn all_experiments_in_their_shortest_form() {
    let folder = tempfile::tempdir().unwrap();
    let made = phalanx(folder.path(), &["paper", "all", "--cut", "1", "--seeds", "1", "--out", "p"]);
    assert!(made.status.success(), "{}", message(&made));
    let root = folder.path().join("p");
    let ids = ids(folder.path());
    assert!(ids.len() >= 20, "{ids:?}");
    for id in &ids {
        let results = std::fs::read_to_string(root.join(id).join("results.csv")).unwrap();
        assert!(results.lines().count() >= 2, "{id}: {results}");
        let figures: Vec<String> = root
            .join(id)
            .join("figures")
            .read_dir()
            .unwrap_or_else(|error| panic!("{id}: {error}"))
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(figures.iter().any(|name| name.ends_with(".png")), "{id}: {figures:?}");
        let record = std::fs::read_to_string(root.join(id).join("experiment.json")).unwrap();
        assert!(record.contains("\"complete\": true") && record.contains("cut to 1"), "{id}: {record}");
    }
    let claims: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(root.join("claims.json")).unwrap()).unwrap();
    let claims = claims["claims"].as_array().unwrap();
    assert!(claims.len() > 40, "{}", claims.len());
    let page = std::fs::read_to_string(root.join("report.html")).unwrap();
    let report = std::fs::read_to_string(root.join("REPORT.md")).unwrap();
    for id in &ids {
        assert!(page.contains(id.as_str()) && report.contains(id.as_str()), "{id}");
    }
    assert!(report.contains("Nothing in this report is evidence"));
}

/// Called again, nothing is trained twice; a lost run is made again, the same; missing seeds are named.
#[test]
fn experiments_go_on_where_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let call = |seeds: &str| {
        let output =
            phalanx(folder.path(), &["paper", "synthetic-eta", "--cut", "3", "--seeds", seeds, "--out", "p"]);
        assert!(output.status.success(), "{}", message(&output));
    };
    call("2");
    let experiment = folder.path().join("p/synthetic-eta");
    let numbers = || {
        let file = experiment.join("results.csv");
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(file).unwrap();
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        // All but the time.
        let wall = rows[0].iter().position(|name| name == "wall_s").unwrap();
        let cells = |row: &csv::StringRecord| {
            let cells = row.iter().enumerate().filter(|(k, _)| *k != wall);
            cells.map(|(_, cell)| cell.to_string()).collect::<Vec<_>>()
        };
        rows.iter().map(cells).collect::<Vec<_>>()
    };
    let first = numbers();
    let runs: Vec<_> =
        folder.path().join("p/runs").read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    // Five settings, ours and the authors', with two seeds each.
    assert_eq!(runs.len(), 20);
    let modified = |path: &Path| path.join("metrics.csv").metadata().unwrap().modified().unwrap();
    let before: Vec<_> = runs[1..].iter().map(|run| modified(run)).collect();
    let archive = folder.path().join("p/archive");
    // The archive has what a run came to.
    std::fs::remove_dir_all(&runs[0]).unwrap();
    call("2");
    assert_eq!(numbers(), first);
    assert!(!runs[0].exists());
    // Without it, finished runs count, and the one that is lost is made again.
    std::fs::remove_dir_all(&archive).unwrap();
    call("2");
    assert_eq!(numbers(), first);
    assert!(runs[0].exists());
    assert_eq!(runs[1..].iter().map(|run| modified(run)).collect::<Vec<_>>(), before);
    // A seed whose run cannot be made is named.
    std::fs::remove_dir_all(&archive).unwrap();
    std::fs::remove_dir_all(&runs[0]).unwrap();
    std::fs::write(&runs[0], "in the way").unwrap();
    let refused =
        phalanx(folder.path(), &["paper", "synthetic-eta", "--cut", "3", "--seeds", "2", "--out", "p"]);
    assert!(!refused.status.success());
    assert!(message(&refused).contains("is a file, not a folder"), "{}", message(&refused));
}

#[test]
fn what_cannot_be_made_is_refused_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str]| {
        let output = phalanx(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let text = message(&output);
        assert!(text.lines().filter(|line| line.starts_with("error: ")).count() == 1, "{text}");
        text
    };
    let unknown = refused(&["paper", "synthetic-capa"]);
    assert!(
        unknown.contains("`synthetic-capa` is unknown; allowed are list, all, report and synthetic-kappa")
    );
    assert!(refused(&["paper", "all", "--seeds", "0"]).contains("--seeds: 0; allowed are 1 to 1000"));
    assert!(refused(&["paper", "all", "--cut", "0"]).contains("--cut: 0; at least 1"));
    let made =
        phalanx(folder.path(), &["paper", "synthetic-kappa", "--cut", "1", "--seeds", "1", "--out", "p"]);
    assert!(made.status.success(), "{}", message(&made));
    let longer = refused(&["paper", "synthetic-kappa", "--cut", "2", "--seeds", "1", "--out", "p"]);
    assert!(longer.contains("cut to 1 iterations, but this call makes cut to 2"), "{longer}");
    let file = folder.path().join("p/synthetic-kappa/experiment.json");
    let record = std::fs::read_to_string(&file).unwrap();
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(record.contains(&version), "{record}");
    std::fs::write(&file, record.replace(&version, "\"version\": \"0.0.1\"")).unwrap();
    for what in
        [&["paper", "report", "--out", "p"][..], &["paper", "synthetic-kappa", "--cut", "1", "--out", "p"]]
    {
        assert!(refused(what).contains("made by phalanx 0.0.1"), "{what:?}");
    }
}
