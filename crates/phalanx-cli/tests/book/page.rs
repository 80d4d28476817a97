//! A page of the book and its fenced blocks: what is run, and what is compared.
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

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use super::lines::{Prose, is_code, is_command, matches, settings, sketch, squeeze};
use super::place::Place;

/// The folder of the pages.
pub fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src")
}

/// One page.
pub struct Page {
    name: String,
    pub text: String,
    pub blocks: Vec<Block>,
}

/// A fenced block.
pub struct Block {
    place: String,
    language: String,
    options: BTreeMap<String, String>,
    pub body: String,
}

impl Page {
    pub fn read(name: &str) -> Page {
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
    pub fn file(&self, name: &str) -> &str {
        let writes = |block: &&Block| block.options.get("file").is_some_and(|file| file == name);
        let block = self.blocks.iter().find(writes);
        &block.unwrap_or_else(|| panic!("{}: no block writes {name}", self.name)).body
    }

    pub fn run(&self) -> Place {
        let place = Place::new();
        self.run_in(&place);
        place
    }

    pub fn run_in(&self, place: &Place) {
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
