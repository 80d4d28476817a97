//! `phalanx report` and `phalanx watch` in a browser: everything is loaded, nothing is wrong, nothing leads
//! outside, and the page follows the run.
#![cfg(unix)]

mod browser;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use browser::attribute;
use tempfile::TempDir;

fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_phalanx"));
    command.current_dir(folder).args(arguments.split_whitespace());
    command
}

fn phalanx(folder: &Path, arguments: &str) -> String {
    let output = command(folder, arguments).output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const SHORT: &str = "--set iterations=20 --set evaluation.episodes=20 --threads 1";

/// Nothing but what is in the page itself.
fn leads_nowhere(page: &str) {
    for outside in ["http:", "https:", "src=\"/", "url(", "@import", "{{"] {
        assert!(!page.contains(outside), "{outside} leads outside");
    }
}

#[test]
fn a_report_is_one_whole_page() {
    let folder = TempDir::new().unwrap();
    phalanx(folder.path(), &format!("train synthetic {SHORT} --out run"));
    let said = phalanx(folder.path(), "report run --episodes 50 --confidence 0.9");
    assert_eq!(said, "run/report.html\n");
    let file = folder.path().join("run/report.html");
    let page = std::fs::read_to_string(&file).unwrap();
    leads_nowhere(&page);
    // The verdicts are those of `eval`.
    let judged = phalanx(folder.path(), "eval run --episodes 50 --confidence 0.9 --json");
    let judged: serde_json::Value = serde_json::from_str(&judged).unwrap();
    for verdict in ["safe", "unsafe", "undecided"] {
        let shown = format!("<li class=\"{verdict}\"><b>{}</b>", judged[verdict]);
        assert!(page.contains(&shown), "{shown}");
    }
    for constraint in judged["constraints"].as_array().unwrap() {
        let number = |key: &str| constraint[key].as_f64().unwrap();
        let row = format!(
            "<tr><td>{}</td><td>state_entropy</td><td>{:.4}</td><td>{:.4} to {:.4}</td>",
            constraint["agent"],
            number("value"),
            number("lower"),
            number("upper")
        );
        assert!(page.contains(&row), "{row}");
    }
    let Some(seen) = browser::open(&format!("file://{}", file.display()), &dump()) else {
        println!("skipped: there is no chromium");
        return;
    };
    let (dom, log) = (String::from_utf8_lossy(&seen.stdout), String::from_utf8_lossy(&seen.stderr));
    assert!(!log.contains("CONSOLE"), "{log}");
    // The map, four figures and the episode.
    assert_eq!(attribute(&dom, "<body", "data-figures"), "6/6", "{log}");
    assert_eq!(attribute(&dom, "<body", "data-errors"), "0");
}

fn dump() -> Vec<String> {
    ["--virtual-time-budget=5000", "--dump-dom"].map(String::from).into()
}

#[test]
fn a_report_needs_a_run_and_a_page_to_write() {
    let folder = TempDir::new().unwrap();
    phalanx(folder.path(), &format!("train synthetic {SHORT} --out run"));
    for (arguments, wanted) in [
        ("report nowhere", "error: nowhere: is not the folder of a run"),
        ("report run --out page.pdf", "error: --out: page.pdf: write FILE.html"),
        ("report run --episodes 2", "error: --episodes"),
        ("watch nowhere", "error: nowhere: is not the folder of a run"),
    ] {
        let output = command(folder.path(), arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.starts_with(wanted) && said.lines().count() == 1, "{arguments}: {said}");
    }
    // A run that was stopped has curves, and no verdict.
    std::fs::remove_file(folder.path().join("run/outcome.json")).unwrap();
    let meta = std::fs::read_to_string(folder.path().join("run/meta.json")).unwrap();
    let meta = meta.lines().filter(|line| !line.contains("\"crc32c\"")).collect::<Vec<_>>().join("\n");
    let meta = meta.replace("\"finished\"", "\"stopped\"");
    let meta = meta.trim_end().trim_end_matches('}').trim_end().trim_end_matches(',').to_string() + "\n}\n";
    std::fs::write(folder.path().join("run/meta.json"), meta).unwrap();
    phalanx(folder.path(), "report run --out stopped.html");
    let page = std::fs::read_to_string(folder.path().join("stopped.html")).unwrap();
    assert!(page.contains("20 of 20 iterations. Status: stopped.") && !page.contains("id=\"verdict\""));
}

/// `phalanx watch`, which is ended with the test.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn of(folder: &Path, run: &str) -> Server {
        let mut child =
            command(folder, &format!("watch {run} --threads 1")).stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Server { child, address: address.trim().into() }
    }

    /// The whole answer to a request with this host; an empty one for its own.
    fn ask(&self, method: &str, path: &str, host: &str) -> String {
        let own = self.address.trim_start_matches("http://").trim_end_matches('/');
        let host = if host.is_empty() { own } else { host };
        let mut stream = TcpStream::connect(own).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_page_follows_the_run_on_this_machine_alone() {
    let folder = TempDir::new().unwrap();
    let mut training =
        command(folder.path(), "train pistonball --set iterations=100000 --threads 1 --out run")
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
    let metrics = folder.path().join("run/metrics.csv");
    while std::fs::read_to_string(&metrics).map_or(0, |text| text.lines().count()) < 3 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let server = Server::of(folder.path(), "run");
    assert!(server.address.starts_with("http://127.0.0.1:"), "{}", server.address);
    let page = server.ask("GET", "/", "");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains(" of 100000 iterations."), "{page}");
    leads_nowhere(page.split_once("\r\n\r\n").unwrap().1);
    assert!(server.ask("GET", "/", "example.org").starts_with("HTTP/1.1 403 "));
    assert!(server.ask("POST", "/", "").starts_with("HTTP/1.1 405 "));
    assert!(server.ask("GET", "/config.toml", "").starts_with("HTTP/1.1 404 "));
    if let Some(seen) = browser::open(&server.address, &["--timeout=6000".into(), "--dump-dom".into()]) {
        let (dom, log) = (String::from_utf8_lossy(&seen.stdout), String::from_utf8_lossy(&seen.stderr));
        assert!(!log.contains("CONSOLE"), "{log}");
        assert_eq!(attribute(&dom, "<body", "data-errors"), "0");
        let refreshed: usize = attribute(&dom, "<body", "data-refreshed").parse().unwrap();
        assert!(refreshed > 0, "the page stands still");
    }
    training.kill().unwrap();
    training.wait().unwrap();
    // Stopped by Ctrl-C, it ends well.
    let id = server.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let mut server = server;
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn the_page_of_a_finished_run_has_verdicts() {
    let folder = TempDir::new().unwrap();
    phalanx(folder.path(), &format!("train synthetic {SHORT} --out run"));
    let page = Server::of(folder.path(), "run").ask("GET", "/main", "");
    assert!(page.contains("id=\"verdict\"") && page.contains("One episode"));
}
