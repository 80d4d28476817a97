//! `report.html` in a browser: everything is loaded, nothing is wrong, the replay runs.
//!
//! Needs Chromium; without it the test says that it was skipped. `cargo xtask test` installs it where it can.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn phalanx(folder: &Path, arguments: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_phalanx"))
        .current_dir(folder)
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A report with curves, and a film of an episode.
fn report() -> TempDir {
    let folder = TempDir::new().unwrap();
    phalanx(folder.path(), "paper synthetic-kappa --cut 2 --seeds 2 --jobs 1 --out paper");
    // Frames of a policy that needs no training, with the record of the experiment beside them.
    phalanx(folder.path(), "render pistonball --policy wave --steps 8 --out paper/visual-pistonball/frames/");
    let record =
        std::fs::read_to_string(folder.path().join("paper/synthetic-kappa/experiment.json")).unwrap();
    let record = record.replace("\"id\": \"synthetic-kappa\"", "\"id\": \"visual-pistonball\"");
    std::fs::write(folder.path().join("paper/visual-pistonball/experiment.json"), record).unwrap();
    phalanx(folder.path(), "paper report --out paper");
    folder
}

/// Opens the page without any network; the browser's log is on standard error.
fn chromium(page: &Path, fragment: &str, extra: &[String]) -> Option<Output> {
    let profile = TempDir::new().unwrap();
    let mut command = Command::new("chromium");
    command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
    command.args(["--window-size=1300,1600", "--virtual-time-budget=5000"]);
    command.args(["--enable-logging=stderr", "--v=0", "--host-resolver-rules=MAP * ~NOTFOUND"]);
    command.arg(format!("--user-data-dir={}", profile.path().display()));
    command.args(extra).arg(format!("file://{}{fragment}", page.display()));
    match command.output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("chromium: {error}"),
    }
}

/// What stands in `name="…"` behind `from`.
fn attribute(page: &str, from: &str, name: &str) -> String {
    let behind = page.split_once(from).unwrap_or_else(|| panic!("no {from}")).1;
    let tag = behind.split_once('>').unwrap().0;
    let value = tag.split_once(&format!("{name}=\"")).unwrap_or_else(|| panic!("no {name} in {tag}")).1;
    value.split_once('"').unwrap().0.into()
}

#[test]
fn the_page_is_whole_and_the_replay_runs() {
    let folder = report();
    let page = folder.path().join("paper/report.html");
    let source = std::fs::read_to_string(&page).unwrap();
    for outside in ["http:", "https:", "src=\"/", "url("] {
        assert!(!source.contains(outside), "{outside} leads outside");
    }
    let Some(still) = chromium(&page, "", &["--dump-dom".into()]) else {
        println!("skipped: there is no chromium");
        return;
    };
    let dom = String::from_utf8_lossy(&still.stdout);
    let log = String::from_utf8_lossy(&still.stderr);
    assert!(!log.contains("CONSOLE"), "{log}");
    // The curves, and the first picture of the replay.
    assert_eq!(attribute(&dom, "<body", "data-figures"), "2/2", "{log}");
    assert_eq!(attribute(&dom, "<body", "data-frames"), "8/8");
    assert_eq!(attribute(&dom, "<body", "data-errors"), "0");
    assert_eq!(
        attribute(&dom, "id=\"replay-visual-pistonball\"", "data-frame"),
        "1",
        "it waits to be started"
    );

    let playing = chromium(&page, "#play", &["--dump-dom".into()]).unwrap();
    let dom = String::from_utf8_lossy(&playing.stdout);
    let frame: usize = attribute(&dom, "id=\"replay-visual-pistonball\"", "data-frame").parse().unwrap();
    assert!(frame > 1, "the replay stands still");

    let picture = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("report.png");
    chromium(&page, "", &[format!("--screenshot={}", picture.display())]).unwrap();
    let size = std::fs::metadata(&picture).unwrap().len();
    assert!(size > 20_000, "{size} bytes");
}
