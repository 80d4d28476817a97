//! The book in `docs/book`, and `docs/theory.md`: every command in them is run, every file in them is used,
//! in the order of the page.
//!
//! How a block is marked, in its info string, with spaces after the language:
//!
//! * `json`, `toml` and `c`: `file=NAME` writes the block to that file, `append=NAME` adds it there;
//!   `part-of=NAME` says that its lines stand in that file of the same page.
//! * `toml with=NAME`: an excerpt; the program must read it behind that file, which stays as it is.
//!   `toml defaults`: the keys of a world with their defaults; `except=KEY,KEY` names those that have none
//!   and want a file.
//! * `same-as=PATH`: the block is that file of the repository, which is compiled or run elsewhere;
//!   `c lines-of=PATH`: its lines stand in that file.
//! * `console`: lines with `$ ` are run in a fresh folder, where they must succeed; other lines must occur in
//!   the output of the command above them. `…` stands for anything. `fails=N` wants that exit status,
//!   `short=N` trains for N iterations and takes the output as a sketch, which leaves numbers and verdicts
//!   open. So does `output=sketch`, for what looks at runs that were cut short. A line `^C` interrupts the
//!   command above it once its run has begun. `elsewhere=REASON` is for commands that are not run here, with
//!   one of the `REASONS`; those of ours must have the flags that they use.
//! * `python`: run by `crates/phalanx-py/tests/test_docs.py`.
//! * `text`: pictures, formulas and messages; neither commands nor configurations nor code.
#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
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

/// From nothing to a certified policy, as a newcomer would: at most twelve commands, and at most three
/// minutes of machine time.
///
/// Processor time of the commands alone is counted, since a busy machine takes longer on the clock, and other
/// tests run at the same time. The limit is that of a released program on one core; the program of tests, a
/// part of which is not optimised, needs less than a twentieth of it.
#[test]
fn a_problem_of_your_own() {
    let page = Page::read("own-problem.md");
    let commands = page.text.lines().filter(|line| line.starts_with("$ ")).count();
    assert!(commands <= 12, "{commands} commands");
    let seconds = page.run().processor_seconds();
    assert!(seconds > 0.0 && seconds <= 180.0, "{seconds} s of processor time");
}

/// What `phalanx` alone says to somebody new, tried.
#[test]
fn the_first_steps_can_be_taken() {
    let place = Place::new();
    let output = place.shell("phalanx");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    let steps: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("  phalanx ")).collect();
    assert_eq!(steps.len(), 3, "{said}");
    for step in steps {
        let (arguments, what) = step.split_once("  ").expect("what a step does");
        assert!(!what.trim().is_empty(), "{said}");
        let output = place.shell(&format!("phalanx {arguments}"));
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn your_own_data() {
    Page::read("own-data.md").run();
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

/// Its commands are run in the project's folder, or what looks like it.
#[test]
fn theory() {
    let place = Place::new();
    std::os::unix::fs::symlink(source().join("../.."), place.folder().join("docs")).unwrap();
    Page::read("../../theory.md").run_in(&place);
}

#[test]
fn what_was_found_about_pistonball() {
    Page::read("../../pistonball.md").run();
}

#[test]
fn how_cost_grows() {
    Page::read("../../scaling.md").run();
}

#[test]
fn what_has_no_commands_or_few() {
    Page::read("../../stability.md").run();
    Page::read("../../decisions.md").run();
    Page::read("../../errata.md").run();
    Page::read("../../paper-map.md").run();
    Page::read("../../paper/REPORT.md").run();
    Page::read("../../paper/tuning.md").run();
}

/// From the folder of the book.
const README: &str = "../../../README.md";

/// Short enough to be read, with a picture at its beginning and everything that a visitor looks for; its
/// commands are run, too.
#[test]
fn the_readme() {
    let page = Page::read(README);
    let headings: Vec<&str> = page.text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    for wanted in ["How it compares", "Install", "A problem of your own", "Limits", "Cite"] {
        assert!(headings.contains(&wanted), "no section `{wanted}`: {headings:?}");
    }
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

/// The chapters, in the order of the summary. Those of Python are run by `python`, any other by a test of its
/// own.
const TESTED: [&str; 46] = [
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
    "../../theory.md",
    "../../errata.md",
    "glossary.md",
    "own-problem.md",
    "own-data.md",
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
    "../../scaling.md",
    "export.md",
    "agents.md",
    "links.md",
    "wireless.md",
    "pistonball.md",
    "../../pistonball.md",
    "platoon.md",
    "epidemic.md",
    "junctions.md",
    "python-envs.md",
    "paper.md",
    "../../paper/REPORT.md",
    "../../paper/tuning.md",
    "../../paper-map.md",
    "reference.md",
    "python-api.md",
    "../../stability.md",
    "../../decisions.md",
];

#[test]
fn every_page_is_in_the_summary_and_tested() {
    let summary = std::fs::read_to_string(source().join("SUMMARY.md")).unwrap();
    assert_eq!(links(&summary), TESTED);
    let tests = include_str!("book.rs");
    for name in TESTED.into_iter().filter(|name| !name.starts_with("python")) {
        assert!(tests.contains(&format!("Page::read(\"{name}\")")), "no test runs {name}");
    }
    let mut found: Vec<String> =
        source().read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.retain(|name| name != "SUMMARY.md" && name.ends_with(".md"));
    found.sort();
    let mut tested = TESTED.to_vec();
    tested.retain(|name| !name.starts_with("../"));
    tested.sort();
    assert_eq!(found, tested);
}

#[test]
fn the_book_has_pictures() {
    let mut pictures = BTreeSet::new();
    for name in TESTED {
        let text = std::fs::read_to_string(source().join(name)).unwrap();
        let images = text.split("![").skip(1).filter_map(|rest| rest.split_once("](")?.1.split_once(')'));
        let folder = source().join(name).parent().unwrap().to_path_buf();
        pictures.extend(images.filter_map(|(target, _)| folder.join(target).canonicalize().ok()));
    }
    assert!(pictures.len() >= 15, "{pictures:?}");
}

#[test]
fn links_lead_somewhere() {
    for name in TESTED.into_iter().chain([README]) {
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
    let place = Place::new();
    std::fs::write(place.folder().join("minimal.toml"), page.file("minimal.toml")).unwrap();
    let command = "phalanx config minimal.toml";
    let resolved = String::from_utf8(place.shell(command).stdout).unwrap();
    let shown = page.blocks.iter().find_map(|block| block.body.strip_prefix(&format!("$ {command}\n")));
    assert_eq!(shown.unwrap(), resolved);
}

/// Those of configurations are held by `crates/phalanx-py/tests/test_docs.py`.
#[test]
fn the_keys_of_other_files_are_on_their_pages() {
    let place = Place::new();
    let write = |name: &str, text: &str| std::fs::write(place.folder().join(name), text).unwrap();
    write("sweep.toml", "nothing = 1");
    write("model.json", "{\"nothing\": 1}");
    write("table.toml", "[world]\nkind = \"table\"\nfile = \"model.json\"");
    let cases = [
        ("phalanx sweep sweep.toml", "sweeps.md"),
        ("phalanx config table.toml", "own-model.md"),
        ("phalanx exact model.json", "exact.md"),
    ];
    for (command, name) in cases {
        let said = String::from_utf8(place.shell(command).stderr).unwrap();
        let (_, keys) = said.split_once("expected one of ").or(said.split_once("allowed are ")).expect(&said);
        let keys: Vec<&str> = keys.split(',').map(|key| key.trim().trim_matches('`')).collect();
        assert!(keys.len() > 5, "{said}");
        let text = Page::read(name).text;
        for key in keys {
            let forms = [format!("`{key}`"), format!("`[{key}]`"), format!("\"{key}\":")];
            assert!(forms.iter().any(|form| text.contains(form)), "{name} says nothing of {key}");
        }
    }
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
        let mut prose = Prose::default();
        for (number, line) in text.lines().enumerate() {
            let is_code = open.is_none() && prose.is_indented_code(line);
            assert!(!is_code, "{name}, line {}: code without a fence, which nothing tests", number + 1);
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

    fn run(&self) -> Place {
        let place = Place::new();
        self.run_in(&place);
        place
    }

    fn run_in(&self, place: &Place) {
        let mut is_cut_short = false;
        for block in &self.blocks {
            block.check_options();
            is_cut_short |= block.has("short") || block.body.contains("\n^C\n");
            assert!(is_cut_short || !block.has("output"), "{}: nothing was cut short", block.place);
            match block.language.as_str() {
                "text" => block.check_text(),
                "python" => {
                    let is_run = self.name.starts_with("python") || self.name == "export.md";
                    assert!(is_run, "{}: test_docs.py does not run this page", block.place);
                }
                "console" => block.run_commands(place),
                "json" | "toml" | "rust" if block.has("same-as") => block.check_copy(),
                "c" if block.has("lines-of") => block.check_lines(),
                "toml" if block.has("with") => block.check_excerpt(place),
                "toml" if block.has("defaults") => block.check_defaults(place),
                "json" | "toml" | "c" => self.write(block, &place.folder()),
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
            "json" => &["file", "append", "part-of", "same-as"],
            "toml" => &["file", "append", "part-of", "same-as", "with", "defaults", "except"],
            "rust" => &["same-as"],
            "c" => &["file", "lines-of"],
            "python" => &["short"],
            _ => &[],
        };
        for (key, value) in &self.options {
            assert!(known.contains(&key.as_str()), "{}: unknown mark `{key}`", self.place);
            assert!(key != "output" || value == "sketch", "{}: output={value}", self.place);
            let is_reason = REASONS.iter().any(|(reason, _)| reason == value);
            assert!(key != "elsewhere" || is_reason, "{}: elsewhere={value} is no reason", self.place);
        }
    }

    fn has(&self, option: &str) -> bool {
        self.options.contains_key(option)
    }

    fn check_text(&self) {
        for line in self.body.lines() {
            assert!(!is_command(line) && !is_code(line), "{}: `{line}` is not tested", self.place);
        }
    }

    /// The program reads the block behind the file that it is an excerpt for.
    fn check_excerpt(&self, place: &Place) {
        let whole = std::fs::read_to_string(place.folder().join(&self.options["with"])).unwrap();
        let output = place.config(&format!("{whole}\n{}", self.body));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", self.place);
    }

    /// What the block says of a world is what the program fills in.
    fn check_defaults(&self, place: &Place) {
        let objective = "[objective]\nkind = \"return\"\n";
        let kind = self.body.lines().nth(1).filter(|line| line.starts_with("kind = "));
        let kind = kind.unwrap_or_else(|| panic!("{}: [world] and kind are its first lines", self.place));
        let resolved = place.config(&format!("[world]\n{kind}\n{objective}")).stdout;
        let except: Vec<&str> = self.options.get("except").iter().flat_map(|keys| keys.split(',')).collect();
        let is_file = |line: &str| except.iter().any(|key| line.starts_with(&format!("{key} = ")));
        let (files, shown): (Vec<_>, Vec<_>) =
            settings(&self.body).into_iter().partition(|(_, line)| is_file(line));
        let mut known = settings(&String::from_utf8_lossy(&resolved));
        known.retain(|(table, _)| table.starts_with("world"));
        assert_eq!(shown, known, "{}", self.place);
        assert_eq!(files.len(), except.len(), "{}: {files:?}", self.place);
        if !files.is_empty() {
            let lines: String = files.iter().map(|(_, line)| format!("{line}\n")).collect();
            let output = place.config(&format!("[world]\n{kind}\n{lines}{objective}"));
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("No such file"), "{}: {said}", self.place);
        }
    }

    fn check_lines(&self) {
        let path = &self.options["lines-of"];
        let whole = std::fs::read_to_string(source().join("../../..").join(path)).unwrap();
        for line in self.body.lines() {
            assert!(whole.contains(line), "{}: `{line}` is not in {path}", self.place);
        }
    }

    fn check_copy(&self) {
        let path = &self.options["same-as"];
        let whole = std::fs::read_to_string(source().join("../../..").join(path)).unwrap();
        assert_eq!(self.body.trim_end(), whole.trim_end(), "{}: not as in {path}", self.place);
    }

    fn run_commands(&self, place: &Place) {
        // A command goes on behind a backslash.
        let body = self.body.replace("\\\n", " ");
        let mut lines = body.lines().peekable();
        while let Some(line) = lines.next() {
            let command =
                line.strip_prefix("$ ").unwrap_or_else(|| panic!("{}: output before a command", self.place));
            let is_interrupted = lines.next_if_eq(&"^C").is_some();
            let mut shown = Vec::new();
            while let Some(output) = lines.next_if(|line| !line.starts_with("$ ")) {
                shown.push(output);
            }
            if self.has("elsewhere") {
                self.check_flags(command, place);
                continue;
            }
            let command = &self.shortened(command);
            let output = if is_interrupted { place.interrupted(command) } else { place.shell(command) };
            self.compare(command, &shown, &output);
        }
    }

    /// A command that is not run here has flags that there are.
    fn check_flags(&self, command: &str, place: &Place) {
        let mut words = command.split_whitespace().skip_while(|&word| word != "phalanx").skip(1);
        let Some(name) = words.next() else { return };
        let help = String::from_utf8(place.shell(&format!("phalanx {name} --help")).stdout).unwrap();
        for flag in words.filter(|word| word.starts_with("--")) {
            let is_known = help.split_whitespace().any(|word| word == flag);
            assert!(is_known, "{}: `phalanx {name}` has no {flag}", self.place);
        }
    }

    /// The command with the number of iterations that `short=` asks for.
    fn shortened(&self, command: &str) -> String {
        let Some(iterations) = self.options.get("short") else { return command.into() };
        let Some((before, after)) = command.split_once("--set iterations=") else {
            assert!(command.starts_with("phalanx train "), "{}: `short` is for training", self.place);
            let (train, comment) = command.split_once('#').unwrap_or((command, ""));
            return format!("{train} --set iterations={iterations} #{comment}");
        };
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
        let is_sketch = self.has("output") || self.has("short");
        let form = |line: &str| if is_sketch { sketch(&squeeze(line)) } else { squeeze(line) };
        let found: Vec<String> = text.lines().map(form).collect();
        for line in shown {
            let wanted = form(line);
            assert!(found.iter().any(|line| matches(line, &wanted)), "no line `{wanted}`: {said}");
        }
    }
}

/// Why a command is not run here.
const REASONS: [(&str, &str); 6] = [
    ("build", "compiles or installs for minutes; `cargo xtask test` does the like"),
    ("files", "needs road networks that are not in the repository"),
    ("gpu", "needs an NVIDIA card; `cargo xtask gpu` runs the like"),
    ("hosts", "needs several machines"),
    ("mpi", "needs Open MPI, as `tests/mpi.rs` does"),
    ("tool", "a program that is not ours"),
];

/// Where the commands of a page are run: a fresh folder, and beside it their processor time.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        std::fs::create_dir(place.folder()).unwrap();
        place
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("work")
    }

    /// Runs a command line with the program in front of everything else on the path.
    fn shell(&self, command: &str) -> Output {
        self.spawn(command).wait_with_output().unwrap()
    }

    /// Asks the program to read a configuration and to fill in what it does not say.
    fn config(&self, text: &str) -> Output {
        let file = self.folder().join(".excerpt.toml");
        std::fs::write(&file, text).unwrap();
        let output = self.shell("phalanx config .excerpt.toml");
        std::fs::remove_file(file).unwrap();
        output
    }

    /// Starts a training run and presses Ctrl-C once it has begun.
    fn interrupted(&self, command: &str) -> Output {
        let (_, run) = command.split_once("--out ").expect("an interrupted command with --out");
        let meta = self.folder().join(run.split(' ').next().unwrap()).join("meta.json");
        let process = self.spawn(&format!("exec {command}"));
        let begin = Instant::now();
        while !meta.exists() && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        // Enough for a few iterations.
        std::thread::sleep(Duration::from_millis(50));
        assert!(Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap().success());
        process.wait_with_output().unwrap()
    }

    fn spawn(&self, command: &str) -> Child {
        let programs = Path::new(BINARY).parent().unwrap().display();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("trap 'times >> \"$TIMES\"' EXIT\n{command}")]);
        shell.current_dir(self.folder()).env("PATH", path).env("TIMES", self.0.path().join("times"));
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// What the commands so far have taken, of users and of the system: numbers like `0m1.23s`.
    fn processor_seconds(&self) -> f64 {
        let times = std::fs::read_to_string(self.0.path().join("times")).unwrap().replace(',', ".");
        let seconds = times.split_whitespace().map(|time| {
            let (minutes, seconds) = time.trim_end_matches('s').split_once('m').unwrap();
            minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
        });
        seconds.sum()
    }
}

/// What stands between the fenced blocks of a page.
#[derive(Default)]
struct Prose {
    is_list: bool,
    is_code: bool,
    is_paragraph: bool,
}

impl Prose {
    /// Whether the next line is code by its indentation alone: four spaces behind an empty line, outside of
    /// a list.
    fn is_indented_code(&mut self, line: &str) -> bool {
        if line.trim().is_empty() {
            self.is_paragraph = false;
            return false;
        }
        let is_indented = line.starts_with("    ") || line.starts_with('\t');
        if !line.starts_with([' ', '\t']) {
            let is_number = |(number, _): (&str, &str)| number.chars().all(|c| c.is_ascii_digit());
            let is_item = line.starts_with("- ") || line.starts_with("* ");
            self.is_list = is_item || line.split_once(". ").is_some_and(is_number);
        }
        self.is_code = is_indented && !self.is_list && (self.is_code || !self.is_paragraph);
        self.is_paragraph = !self.is_code;
        self.is_code
    }
}

/// Whether this line is meant for a shell.
fn is_command(line: &str) -> bool {
    let programs = ["$", "phalanx", "cargo", "mpirun", "pip", "python", "python3", "apt-get"];
    line.split_once(' ').is_some_and(|(first, _)| programs.contains(&first))
}

/// Whether this line is one of a configuration or of a program.
fn is_code(line: &str) -> bool {
    let line = line.split(" #").next().unwrap_or_default().trim();
    let is_table = line.starts_with('[') && line.ends_with(']') && !line.contains([' ', ',', '=']);
    is_table || ["import ", "from ", "#include ", "int ", "fn "].iter().any(|start| line.starts_with(start))
}

/// The lines `key = value` of a configuration, without comments, each behind its table.
fn settings(text: &str) -> Vec<(String, String)> {
    let mut table = String::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let line = squeeze(line.split(" #").next().unwrap_or_default());
        if let Some(name) = line.strip_prefix('[') {
            table = name.trim_end_matches(']').to_string();
        } else if !line.is_empty() {
            found.push((table.clone(), line));
        }
    }
    found.sort();
    found
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

#[test]
fn code_is_known_by_its_lines() {
    let refused =
        ["$ ls", "phalanx train synthetic", "[world]", "[[constraint]] # one", "import numpy as np"];
    assert!(refused.into_iter().all(|line| is_command(line) || is_code(line)));
    let allowed = ["0 — 1 — 2", "error: rank 0", "transition[i] = [joint state][next state]", "# AGENT HOST"];
    assert!(!allowed.into_iter().any(|line| is_command(line) || is_code(line)));
    let is_code = |text: &str| {
        let mut prose = Prose::default();
        text.lines().any(|line| prose.is_indented_code(line))
    };
    assert!(is_code("Say:\n\n    phalanx train\n") && is_code("- a\n\nSay:\n\n    phalanx train\n"));
    assert!(!is_code("- a\n    goes on\n\n    and on\n") && !is_code("a line\n    goes on\n"));
}
