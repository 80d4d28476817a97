//! `phalanx report` and `phalanx watch` in a browser: everything is loaded, nothing is wrong, nothing leads
//! outside, and the page follows the run.
#![cfg(unix)]

mod browser;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
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
    has_a_picture(&format!("file://{}", file.display()), "run-report.png", "--virtual-time-budget=5000");
}

fn dump() -> Vec<String> {
    ["--virtual-time-budget=5000", "--dump-dom"].map(String::from).into()
}

/// That a browser draws something at an address.
fn has_a_picture(address: &str, name: &str, wait: &str) {
    let picture = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&picture);
    browser::open(address, &[wait.into(), format!("--screenshot={}", picture.display())]).unwrap();
    let size = std::fs::metadata(&picture).unwrap().len();
    assert!(size > 20_000, "{name}: {size} bytes");
}

/// The commands of a page that repeat its run.
fn commands(page: &str) -> Vec<String> {
    let listed = page.split_once("<h2>How to repeat it</h2>").unwrap().1;
    let listed = listed.split_once("<pre>").unwrap().1.split_once("</pre>").unwrap().0;
    listed.replace("&#39;", "'").replace("&amp;", "&").lines().map(String::from).collect()
}

/// What is shown to be pasted is pasted: into a shell, where the program is in its path.
fn paste(folder: &Path, command: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_phalanx")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let output =
        Command::new("sh").args(["-c", command]).current_dir(folder).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_commands_of_a_report_repeat_the_run() {
    let folder = TempDir::new().unwrap();
    let train = |more: &str| paste(folder.path(), &format!("phalanx train synthetic {SHORT} {more}"));
    train("--out 'my runs/first'");
    train("--seed 2 --init 'my runs/first' --out 'my runs/second'");
    for run in ["first", "second"] {
        let run = folder.path().join("my runs").join(run);
        paste(folder.path(), &format!("phalanx report '{}' --episodes 50", run.display()));
        let page = std::fs::read_to_string(run.join("report.html")).unwrap();
        let commands = commands(&page);
        let began = run.join("init.safetensors").is_file();
        assert_eq!(commands.len(), if began { 4 } else { 2 }, "{commands:?}");
        assert_eq!(page.contains("began with the policy of another one"), began);
        let said = commands.iter().map(|command| paste(folder.path(), command)).collect::<Vec<_>>();
        assert!(said.last().unwrap().contains("agents "), "{said:?}");
        let repeated = run.with_file_name(format!("{}-repeated", run.file_name().unwrap().display()));
        for file in ["metrics.csv", "policy.safetensors"] {
            let [one, other] = [&run, &repeated].map(|run| std::fs::read(run.join(file)).unwrap());
            assert!(one == other, "{file} of {}", run.display());
        }
    }
}

#[test]
fn a_page_has_what_the_environment_brings_along() {
    let folder = TempDir::new().unwrap();
    phalanx(folder.path(), "new problem --out own --agents 3");
    let short = "--set iterations=20 --set evaluation.episodes=20 --threads 1 --out run";
    phalanx(folder.path(), &format!("train own/problem.toml {short}"));
    phalanx(folder.path(), "report run --episodes 50");
    let page = std::fs::read_to_string(folder.path().join("run/report.html")).unwrap();
    for wanted in [
        "<td>objective</td><td>linear</td>",
        "defined by the environment, 3 in all",
        "<td>constraint</td><td>linear</td>",
    ] {
        assert!(page.contains(wanted), "{wanted}");
    }
    // Another graph, and no constraints: agents and links are shown all the same.
    let ring = "--set constraint=[] --set network.kind=ring --set world.n=6";
    phalanx(folder.path(), &format!("train synthetic {SHORT} {ring} --out free"));
    phalanx(folder.path(), "report free --episodes 50");
    let page = std::fs::read_to_string(folder.path().join("free/report.html")).unwrap();
    assert!(
        page.contains("<dt>network.kind</dt><dd>ring</dd>") && page.contains("The agents and their links.")
    );
    assert!(!page.contains("id=\"verdict\""));
}

/// Bounds on the worst episodes are judged like all others.
#[test]
fn tails_are_listed_and_counted() {
    let folder = TempDir::new().unwrap();
    let toml = phalanx(folder.path(), "config synthetic");
    let (before, _) = toml.split_once("[[constraint]]").unwrap();
    let own = "[[constraint]]\nname = \"rare\"\nkind = \"cvar\"\nlevel = 0.9\nr = [[0.0, 0.0], [1.0, 1.0]]\nat_most = 100.0\n";
    std::fs::write(folder.path().join("tails.toml"), format!("{before}{own}")).unwrap();
    phalanx(folder.path(), &format!("train tails.toml {SHORT} --out run"));
    phalanx(folder.path(), "report run --episodes 50");
    let page = std::fs::read_to_string(folder.path().join("run/report.html")).unwrap();
    assert_eq!(page.matches("<td>rare (worst episodes)</td>").count(), 10);
    assert!(page.contains("All 10 intervals together"));
    let said = phalanx(folder.path(), "eval run --episodes 50");
    assert!(said.contains("and 5 more (worst episodes) with --json"), "{said}");
    assert!(said.contains("All 10 intervals together hold") && said.contains("(`cvar`)"), "{said}");
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
    // What was edited is no run without curves.
    let metrics = folder.path().join("run/metrics.csv");
    let rows = std::fs::read_to_string(&metrics).unwrap();
    std::fs::write(&metrics, rows.replacen("\n1,", "\nx,", 1)).unwrap();
    let output = command(folder.path(), "report run").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("metrics.csv"), "{said}");
    std::fs::write(&metrics, rows).unwrap();
    // A run that was stopped has curves and the graph, and no verdict.
    std::fs::remove_file(folder.path().join("run/outcome.json")).unwrap();
    let meta = std::fs::read_to_string(folder.path().join("run/meta.json")).unwrap();
    let meta = meta.lines().filter(|line| !line.contains("\"crc32c\"")).collect::<Vec<_>>().join("\n");
    let meta = meta.replace("\"finished\"", "\"stopped\"");
    let meta = meta.trim_end().trim_end_matches('}').trim_end().trim_end_matches(',').to_string() + "\n}\n";
    std::fs::write(folder.path().join("run/meta.json"), meta).unwrap();
    phalanx(folder.path(), "report run --out stopped.html");
    let page = std::fs::read_to_string(folder.path().join("stopped.html")).unwrap();
    assert!(page.contains("20 of 20 iterations. Status: stopped.") && !page.contains("id=\"verdict\""));
    assert!(page.contains("The agents and their links."));
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
    if let Some(seen) = browser::open(&server.address, &[WAIT.into(), "--dump-dom".into()]) {
        let (dom, log) = (String::from_utf8_lossy(&seen.stdout), String::from_utf8_lossy(&seen.stderr));
        assert!(!log.contains("CONSOLE"), "{log}");
        assert_eq!(attribute(&dom, "<body", "data-errors"), "0");
        let refreshed: usize = attribute(&dom, "<body", "data-refreshed").parse().unwrap();
        assert!(refreshed > 0, "the page stands still");
        // Three curves and the graph.
        assert_eq!(attribute(&dom, "<body", "data-figures"), "4/4", "{log}");
        has_a_picture(&server.address, "watch-training.png", WAIT);
    }
    training.kill().unwrap();
    training.wait().unwrap();
    // Stopped by Ctrl-C, it ends well.
    let id = server.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let mut server = server;
    assert!(server.child.wait().unwrap().success());
}

/// The browser's own time, in which it asks again and again.
const WAIT: &str = "--virtual-time-budget=60000";

/// The part of the page that is refreshed, as soon as it has something.
fn main_with(server: &Server, wanted: &str) -> String {
    let begun = std::time::Instant::now();
    loop {
        let page = server.ask("GET", "/main", "");
        if page.contains(wanted) {
            return page;
        }
        assert!(begun.elapsed().as_secs() < 60, "no {wanted} in\n{page}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn the_page_of_a_finished_run_has_verdicts() {
    let folder = TempDir::new().unwrap();
    phalanx(folder.path(), &format!("train synthetic {SHORT} --out run"));
    let server = Server::of(folder.path(), "run");
    let page = main_with(&server, "id=\"verdict\"");
    assert!(page.contains("One episode") && !page.contains("is being judged"));
    if let Some(seen) = browser::open(&server.address, &[WAIT.into(), "--dump-dom".into()]) {
        let (dom, log) = (String::from_utf8_lossy(&seen.stdout), String::from_utf8_lossy(&seen.stderr));
        assert!(!log.contains("CONSOLE"), "{log}");
        assert_eq!(attribute(&dom, "<body", "data-figures"), "6/6", "{log}");
        assert_eq!(attribute(&dom, "<body", "data-errors"), "0");
        has_a_picture(&server.address, "watch-finished.png", WAIT);
    }
}

#[test]
fn a_page_that_cannot_be_renewed_says_so() {
    let folder = TempDir::new().unwrap();
    phalanx(folder.path(), &format!("train synthetic {SHORT} --out run"));
    let server = Server::of(folder.path(), "run");
    let page = main_with(&server, "id=\"verdict\"");
    assert!(!page.contains("role=\"alert\""));
    let metrics = folder.path().join("run/metrics.csv");
    let rows = std::fs::read_to_string(&metrics).unwrap();
    std::fs::write(&metrics, format!("{rows}20,nonsense\n")).unwrap();
    let stale = main_with(&server, "role=\"alert\"");
    assert!(stale.contains("metrics.csv") && stale.contains("Below is what they said before."), "{stale}");
    assert!(stale.contains("id=\"verdict\""), "the last page stays");
    // It is not made again and again.
    let tag = |page: &str| page.lines().find(|line| line.starts_with("ETag")).unwrap().to_string();
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert_eq!(tag(&server.ask("GET", "/main", "")), tag(&stale));
    std::fs::write(&metrics, rows).unwrap();
    let page = main_with(&server, "is being judged");
    assert!(!page.contains("role=\"alert\""), "{page}");
    main_with(&server, "id=\"verdict\"");
    // A policy that cannot be read is said, beside what can be shown.
    std::fs::write(folder.path().join("run/policy.safetensors"), "none").unwrap();
    let page = main_with(&server, "role=\"alert\"");
    assert!(page.contains("The policy cannot be judged") && page.contains("What was reached"), "{page}");
}
