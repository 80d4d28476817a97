//! `report.html` in a browser: everything is loaded, nothing is wrong, the replay runs.
#![cfg(unix)]

mod browser;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use browser::attribute;
use tempfile::TempDir;

fn phalanx(folder: &Path, arguments: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_phalanx"))
        .current_dir(folder)
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A report with curves, stills, and a film of an episode.
fn report() -> TempDir {
    let folder = TempDir::new().unwrap();
    let experiments = "synthetic-kappa visual-pistonball";
    phalanx(folder.path(), &format!("paper {experiments} report --cut 2 --seeds 2 --jobs 1 --out paper"));
    folder
}

/// Files of a folder with this extension.
fn count(folder: &Path, extension: &str) -> usize {
    let files = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|found| found == extension)).count()
}

/// Opens the page, for five seconds of the browser's own time.
fn chromium(page: &Path, fragment: &str, extra: &[String]) -> Option<Output> {
    let extra = [&["--virtual-time-budget=5000".to_string()], extra].concat();
    browser::open(&format!("file://{}{fragment}", page.display()), &extra)
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
    let visual = folder.path().join("paper/visual-pistonball");
    let (frames, stills) = (count(&visual.join("frames"), "png"), count(&visual.join("figures"), "png"));
    assert!(frames > 1 && stills > 1);
    let curves = count(&folder.path().join("paper/synthetic-kappa/figures"), "png");
    assert_eq!(curves, 2, "those of ours, and of the authors' settings");
    // The curves, the stills, and the first picture of the replay.
    let figures = curves + stills + 1;
    assert_eq!(attribute(&dom, "<body", "data-figures"), format!("{figures}/{figures}"), "{log}");
    assert_eq!(attribute(&dom, "<body", "data-frames"), format!("{frames}/{frames}"));
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
