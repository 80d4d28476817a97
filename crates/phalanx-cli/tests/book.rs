//! The book in `docs/book`, and `docs/theory.md`: every command in them is run, every file in them is used,
//! in the order of the page.
//!
//! How a block is marked, in its info string, with spaces after the language:
//!
//! * `json` and `toml`: `file=NAME` writes the block to that file, `append=NAME` adds it there;
//!   `part-of=NAME` says that its lines stand in that file of the same page.
//! * `same-as=PATH`: the block is that file of the repository, which is compiled or run elsewhere.
//! * `console`: lines with `$ ` are run in a fresh folder, where they must succeed; other lines must occur in
//!   the output of the command above them. `…` stands for anything. `output=sketch` leaves numbers and
//!   verdicts open, `fails=N` wants that exit status, `short=N` runs with N iterations and takes the output
//!   as a sketch, `elsewhere` is for commands that other checks run or that are not ours. A line `^C`
//!   interrupts the command above it once its run has begun.
//! * `rust`: with `same-as` only. `text`: anything.
//! * `python`: run by `crates/phalanx-py/tests/test_docs.py`.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_phalanx");

#[test]
fn welcome_and_installation() {
    Page::read("welcome.md").run();
    Page::read("install.md").run();
}

#[test]
fn the_problem() {
    Page::read("problem.md").run();
}

#[test]
fn a_first_run() {
    Page::read("first-run.md").run();
}

#[test]
fn the_glossary() {
    Page::read("glossary.md").run();
}

/// From nothing to a certified policy, as a newcomer would: twelve commands at the most, three minutes at the
/// most on two cores.
#[test]
fn a_problem_of_your_own() {
    let page = Page::read("own-problem.md");
    let commands = page.text.lines().filter(|line| line.starts_with("$ phalanx")).count();
    assert!(commands <= 12, "{commands} commands");
    page.run();
}

#[test]
fn your_own_model() {
    Page::read("own-model.md").run();
}

#[test]
fn your_own_utility() {
    Page::read("own-utility.md").run();
}

#[test]
fn your_own_world() {
    Page::read("own-world.md").run();
}

#[test]
fn python() {
    for name in TESTED.into_iter().filter(|name| name.starts_with("python")) {
        Page::read(name).run();
    }
}

#[test]
fn a_platoon() {
    Page::read("platoon.md").run();
}

#[test]
fn junctions() {
    Page::read("junctions.md").run();
}

#[test]
fn choosing_bounds() {
    Page::read("choosing-bounds.md").run();
}

#[test]
fn safety_that_a_person_can_sign() {
    Page::read("safety.md").run();
}

#[test]
fn faulty_links() {
    Page::read("links.md").run();
}

#[test]
fn the_algorithm() {
    Page::read("algorithm.md").run();
}

#[test]
fn what_safe_means() {
    Page::read("what-safe-means.md").run();
}

#[test]
fn tables_linear_models_networks() {
    Page::read("models.md").run();
}

#[test]
fn one_policy_for_all_agents() {
    Page::read("shared.md").run();
}

#[test]
fn several_processes() {
    Page::read("processes.md").run();
}

#[test]
fn on_a_gpu() {
    Page::read("gpu.md").run();
}

#[test]
fn agents_at_work() {
    Page::read("agents.md").run();
}

#[test]
fn wireless_access() {
    Page::read("wireless.md").run();
}

#[test]
fn an_epidemic() {
    Page::read("epidemic.md").run();
}

#[test]
fn pistonball() {
    Page::read("pistonball.md").run();
}

#[test]
fn policies_for_other_programs() {
    Page::read("export.md").run();
}

#[test]
fn reading_the_results() {
    Page::read("results.md").run();
}

#[test]
fn many_runs() {
    Page::read("sweeps.md").run();
}

#[test]
fn the_exact_setting() {
    Page::read("exact.md").run();
}

#[test]
fn the_paper() {
    Page::read("paper.md").run();
}

#[test]
fn reference() {
    Page::read("reference.md").run();
}

/// From the folder of the book.
const THEORY: &str = "../../theory.md";
const README: &str = "../../../README.md";

/// Its commands are run in the project's folder, or what looks like it.
#[test]
fn theory() {
    let page = Page::read(THEORY);
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(source().join("../.."), folder.path().join("docs")).unwrap();
    page.run_in(folder.path());
}

/// Short enough to be read, with a picture at its beginning; its commands are run, too.
#[test]
fn the_readme() {
    let page = Page::read(README);
    let words: usize = {
        let mut is_code = false;
        let prose = page.text.lines().filter(|line| {
            let is_fence = line.starts_with("```");
            is_code ^= is_fence;
            !is_code && !is_fence
        });
        prose.map(|line| line.split_whitespace().count()).sum()
    };
    assert!(words <= 800, "{words} words");
    assert!(page.text.lines().count() <= 120, "{} lines", page.text.lines().count());
    assert!(page.text.lines().take(25).any(|line| line.starts_with("![")), "a picture comes late");
    page.run();
}

const TESTED: [&str; 36] = [
    "welcome.md",
    "install.md",
    "problem.md",
    "first-run.md",
    "python.md",
    "results.md",
    "algorithm.md",
    "what-safe-means.md",
    "models.md",
    "shared.md",
    "exact.md",
    "glossary.md",
    "own-problem.md",
    "own-model.md",
    "own-utility.md",
    "python-own.md",
    "own-world.md",
    "python-pettingzoo.md",
    "choosing-bounds.md",
    "safety.md",
    "python-exact.md",
    "sweeps.md",
    "gpu.md",
    "processes.md",
    "export.md",
    "agents.md",
    "links.md",
    "wireless.md",
    "pistonball.md",
    "platoon.md",
    "epidemic.md",
    "junctions.md",
    "python-envs.md",
    "paper.md",
    "reference.md",
    "python-api.md",
];

#[test]
fn every_page_is_in_the_summary_and_tested() {
    let summary = std::fs::read_to_string(source().join("SUMMARY.md")).unwrap();
    // Chapters that stand elsewhere in `docs` have tests of their own, or nothing that runs.
    let here: Vec<&str> = links(&summary).into_iter().filter(|target| !target.starts_with("../")).collect();
    assert_eq!(here, TESTED);
    let mut found: Vec<String> =
        source().read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.retain(|name| name != "SUMMARY.md" && name.ends_with(".md"));
    found.sort();
    let mut tested = TESTED;
    tested.sort();
    assert_eq!(found, tested);
}

#[test]
fn links_lead_somewhere() {
    for name in TESTED.into_iter().chain([THEORY, README]) {
        let page = Page::read(name);
        let folder = source().join(name).parent().unwrap().to_path_buf();
        for target in links(&page.text).into_iter().filter(|target| !target.starts_with("http")) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { source().join(name) } else { folder.join(file) };
            let is_heading = |line: &str| line.starts_with('#') && slug(line) == anchor;
            let has_heading =
                || std::fs::read_to_string(&path).is_ok_and(|text| text.lines().any(is_heading));
            let leads = if anchor.is_empty() { path.exists() } else { has_heading() };
            assert!(leads, "{name}: {target} leads nowhere");
        }
    }
}

/// A new setting must be added to the reference.
#[test]
fn the_reference_shows_every_default() {
    let page = Page::read("reference.md");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("minimal.toml"), page.file("minimal.toml")).unwrap();
    let command = "phalanx config minimal.toml";
    let resolved = String::from_utf8(shell(command, folder.path()).stdout).unwrap();
    let shown = page.blocks.iter().find_map(|block| block.body.strip_prefix(&format!("$ {command}\n")));
    assert_eq!(shown.unwrap(), resolved);
}

/// The rule in words on the page "Your own model", as a table.
#[test]
fn the_machines_follow_the_rule_on_their_page() {
    let page = Page::read("own-model.md");
    let model: serde_json::Value = serde_json::from_str(page.file("machines.json")).unwrap();
    for (machine, parents) in [vec![0], vec![0, 1], vec![1, 2]].into_iter().enumerate() {
        let mut expected: Vec<f64> = Vec::new();
        let joint: u32 = 1 << parents.len();
        for (states, actions) in
            (0..joint).flat_map(|states| (0..joint).map(move |actions| (states, actions)))
        {
            // The machine itself is its last parent, the least significant digit.
            let (own, serviced, before_worn) = (states & 1, actions & 1, states >> 1);
            let worn = match (own, serviced) {
                (_, 1) => 0.1,
                (1, _) => 1.0,
                _ if before_worn == 1 => 0.4,
                _ => 0.1,
            };
            expected.extend([1.0 - worn, worn]);
        }
        assert_eq!(model["parents"][machine], serde_json::json!(parents));
        let written: Vec<f64> = serde_json::from_value(model["transition"][machine].clone()).unwrap();
        assert_eq!(written, expected, "machine {machine}");
    }
}

/// One page.
struct Page {
    name: String,
    text: String,
    blocks: Vec<Block>,
}

/// A fenced block.
struct Block {
    place: String,
    language: String,
    options: BTreeMap<String, String>,
    body: String,
}

impl Page {
    fn read(name: &str) -> Page {
        let text = std::fs::read_to_string(source().join(name)).unwrap();
        let mut blocks = Vec::new();
        let mut open: Option<Block> = None;
        for (number, line) in text.lines().enumerate() {
            let Some(info) = line.strip_prefix("```") else {
                if let Some(block) = &mut open {
                    block.body += line;
                    block.body += "\n";
                }
                continue;
            };
            match open.take() {
                Some(block) => blocks.push(block),
                None => open = Some(Block::new(format!("{name}, line {}", number + 1), info)),
            }
        }
        assert!(open.is_none(), "{name}: the last block is not closed");
        Page { name: name.into(), text, blocks }
    }

    /// The text of a file that the page writes.
    fn file(&self, name: &str) -> &str {
        let writes = |block: &&Block| block.options.get("file").is_some_and(|file| file == name);
        let block = self.blocks.iter().find(writes);
        &block.unwrap_or_else(|| panic!("{}: no block writes {name}", self.name)).body
    }

    fn run(&self) {
        self.run_in(tempfile::tempdir().unwrap().path());
    }

    fn run_in(&self, folder: &Path) {
        for block in &self.blocks {
            block.check_options();
            match block.language.as_str() {
                "text" | "python" => {}
                "console" => block.run_commands(folder),
                "json" | "toml" | "rust" if block.options.contains_key("same-as") => block.check_copy(),
                "json" | "toml" => self.write(block, folder),
                other => panic!("{}: a block of `{other}` is not tested by anything", block.place),
            }
        }
    }

    fn write(&self, block: &Block, folder: &Path) {
        let place = &block.place;
        if let Some(name) = block.options.get("part-of") {
            let whole: Vec<String> = self.file(name).lines().map(squeeze).collect();
            for line in block.body.lines().map(squeeze).filter(|line| !line.is_empty()) {
                assert!(whole.contains(&line), "{place}: `{line}` is not in {name}");
            }
            return;
        }
        let mut text = String::new();
        if let Some(name) = block.options.get("append") {
            text = std::fs::read_to_string(folder.join(name)).unwrap() + "\n";
        }
        let name = block.options.get("file").or(block.options.get("append"));
        let name = name.unwrap_or_else(|| panic!("{place}: a block without file=, append= or part-of="));
        assert!(!name.starts_with('/') && !name.contains(".."), "{place}: {name}");
        std::fs::write(folder.join(name), text + &block.body).unwrap();
    }
}

impl Block {
    fn new(place: String, info: &str) -> Block {
        let mut parts = info.split_whitespace();
        let language = parts.next().unwrap_or_default().to_string();
        let options = parts.map(|part| {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            (key.to_string(), value.to_string())
        });
        Block { place, language, options: options.collect(), body: String::new() }
    }

    fn check_options(&self) {
        let known: &[&str] = match self.language.as_str() {
            "console" => &["fails", "output", "short", "elsewhere"],
            "json" | "toml" => &["file", "append", "part-of", "same-as"],
            "rust" => &["same-as"],
            "python" => &["short"],
            _ => &[],
        };
        for (key, value) in &self.options {
            assert!(known.contains(&key.as_str()), "{}: unknown mark `{key}`", self.place);
            assert!(key != "output" || value == "sketch", "{}: output={value}", self.place);
        }
    }

    fn check_copy(&self) {
        let path = &self.options["same-as"];
        let whole = std::fs::read_to_string(source().join("../../..").join(path)).unwrap();
        assert_eq!(self.body.trim_end(), whole.trim_end(), "{}: not as in {path}", self.place);
    }

    fn run_commands(&self, folder: &Path) {
        let mut lines = self.body.lines().peekable();
        while let Some(line) = lines.next() {
            let command =
                line.strip_prefix("$ ").unwrap_or_else(|| panic!("{}: output before a command", self.place));
            let is_interrupted = lines.next_if_eq(&"^C").is_some();
            let mut shown = Vec::new();
            while let Some(output) = lines.next_if(|line| !line.starts_with("$ ")) {
                shown.push(output);
            }
            if self.options.contains_key("elsewhere") {
                assert!(!command.starts_with("phalanx "), "{}: `{command}` could be run", self.place);
                continue;
            }
            let command = &self.shortened(command);
            let output = if is_interrupted { interrupted(command, folder) } else { shell(command, folder) };
            self.compare(command, &shown, &output);
        }
    }

    /// The command with the number of iterations that `short=` asks for.
    fn shortened(&self, command: &str) -> String {
        let Some(iterations) = self.options.get("short") else { return command.into() };
        let (before, after) = command.split_once("--set iterations=").expect("`short` with iterations set");
        let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
        format!("{before}--set iterations={iterations}{after}")
    }

    fn compare(&self, command: &str, shown: &[&str], output: &Output) {
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let status = self.options.get("fails").map_or(0, |status| status.parse().unwrap());
        let said = format!("{}: `{command}` says\n{stdout}{stderr}", self.place);
        assert_eq!(output.status.code(), Some(status), "{said}");
        // The message of a failure must be on standard error.
        let text = if status == 0 { format!("{stdout}{stderr}") } else { stderr.into_owned() };
        let is_sketch = self.options.contains_key("output") || self.options.contains_key("short");
        let form = |line: &str| if is_sketch { sketch(&squeeze(line)) } else { squeeze(line) };
        let found: Vec<String> = text.lines().map(form).collect();
        for line in shown {
            let wanted = form(line);
            assert!(found.iter().any(|line| matches(line, &wanted)), "no line `{wanted}`: {said}");
        }
    }
}

/// Runs a command line with the program in front of everything else on the path.
fn shell(command: &str, folder: &Path) -> Output {
    spawn(command, folder).wait_with_output().unwrap()
}

/// Starts a training run and presses Ctrl-C once it has begun.
fn interrupted(command: &str, folder: &Path) -> Output {
    let (_, run) = command.split_once("--out ").expect("an interrupted command with --out");
    let meta = folder.join(run.split(' ').next().unwrap()).join("meta.json");
    let process = spawn(&format!("exec {command}"), folder);
    let begin = Instant::now();
    while !meta.exists() && begin.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    // Enough for a few iterations.
    std::thread::sleep(Duration::from_millis(50));
    assert!(Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap().success());
    process.wait_with_output().unwrap()
}

fn spawn(command: &str, folder: &Path) -> Child {
    let programs = Path::new(BINARY).parent().unwrap().display();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder).env("PATH", path);
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src")
}

/// What stands in `](…)`.
fn links(text: &str) -> Vec<&str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target).collect()
}

/// A heading as the part of a link after `#`.
fn slug(heading: &str) -> String {
    let words = heading.trim_start_matches(['#', ' ']).to_lowercase().replace(' ', "-");
    words.chars().filter(|&c| c.is_alphanumeric() || c == '-').collect()
}

/// The line with single spaces.
fn squeeze(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The line without its numbers and verdicts.
fn sketch(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        if c == '-' && rest.peek().is_some_and(char::is_ascii_digit) && !out.ends_with(char::is_alphanumeric)
        {
            continue;
        }
        if !c.is_ascii_digit() {
            out.push(c);
            continue;
        }
        while rest.next_if(|&c| c.is_ascii_digit() || c == '.').is_some() {}
        if rest.peek() == Some(&'e') {
            let mut ahead = rest.clone().skip(1).skip_while(|&c| c == '-').peekable();
            if ahead.peek().is_some_and(char::is_ascii_digit) {
                while rest.next_if(|&c| c.is_ascii_digit() || c == 'e' || c == '-').is_some() {}
            }
        }
        out.push('#');
    }
    out.replace("unsafe", "safe").replace("undecided", "safe")
}

/// Whether the pieces of `wanted` between `…` occur in `line`, in order.
fn matches(line: &str, wanted: &str) -> bool {
    let mut rest = line;
    wanted.split('…').map(str::trim).all(|piece| match rest.split_once(piece) {
        Some((_, behind)) => {
            rest = behind;
            true
        }
        None => false,
    })
}

#[test]
fn lines_are_compared_as_documented() {
    assert_eq!(sketch("a-1 -2.5e-7 to 3e5, 4 s."), "a-# # to #, # s.");
    assert_eq!(sketch("0.0066 undecided"), sketch("-0.0019 unsafe"));
    assert!(matches("error: /x/y.json: no", "error: …/y.json: no"));
    assert!(matches("anything", "…"));
    assert!(!matches("b a", "a…b"));
}
