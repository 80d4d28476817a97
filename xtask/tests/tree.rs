//! What holds of the tree as a whole: nothing large comes in by accident (a run's folder, a page with all its
//! pictures), comments keep to the line limit, which `cargo fmt` holds for code only, "per" is written where
//! it is meant, and crates can be published.

use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Bytes that a tracked file may have.
const LARGEST: u64 = 2_000_000;

/// Files that may be larger, each with its reason.
const EXCEPTED: [&str; 0] = [];

/// `max_width` of rustfmt.toml.
const WIDEST: usize = 110;

/// The tracked files, with their names; none, with a word, outside a repository.
fn tracked() -> Vec<(String, PathBuf)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let listed = Command::new("git").arg("-C").arg(&root).args(["ls-files", "-z"]).output();
    let Some(listed) = listed.ok().filter(|listed| listed.status.success()) else {
        // Past the test's capture: a person shall see it.
        let _ = writeln!(std::io::stderr(), "skipped: {} is in no git repository", root.display());
        return Vec::new();
    };
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    let names = names.split('\0').filter(|name| !name.is_empty());
    names.map(|name| (name.to_string(), root.join(name))).collect()
}

#[test]
fn no_tracked_file_is_large() {
    let mut large = Vec::new();
    for (name, path) in tracked() {
        // A file that was deleted and is still listed has no size.
        let size = path.symlink_metadata().map_or(0, |data| data.len());
        if size > LARGEST && !EXCEPTED.contains(&name.as_str()) {
            large.push(format!("{name}: {size} bytes"));
        }
    }
    assert!(large.is_empty(), "larger than {LARGEST} bytes:\n{}", large.join("\n"));
}

/// Functions that change the file system.
const CHANGES: [&str; 9] = [
    "fs::write",
    "fs::rename",
    "fs::remove_",
    "fs::create_dir",
    "fs::copy",
    "fs::set_permissions",
    "File::create",
    "File::options",
    "OpenOptions",
];

/// Where they may stand: in what every change goes through, in what writes its temporary files, and in what
/// compiles kernels, whose files are no results and may be lost.
const CHANGING: [&str; 6] = [
    "base/durable.rs",
    "base/tensor.rs",
    "run/agents.rs",
    "run/folder.rs",
    "phalanx-gpu/src/cache.rs",
    "phalanx-gpu/src/emulator.rs",
];

#[test]
fn files_are_changed_in_one_place() {
    let mut found = Vec::new();
    let is_source =
        |name: &str| name.starts_with("crates/") && name.contains("/src/") && name.ends_with(".rs");
    for (name, path) in
        tracked().into_iter().filter(|(name, _)| is_source(name) && !name.ends_with("tests.rs"))
    {
        let source = std::fs::read_to_string(path).unwrap_or_default();
        let program = source.split("#[cfg(test)]").next().unwrap_or_default();
        for (line, text) in program.lines().enumerate() {
            let is_change = CHANGES.iter().any(|change| text.contains(change));
            if is_change && !CHANGING.iter().any(|allowed| name.ends_with(allowed)) {
                found.push(format!("{name}:{}: {}", line + 1, text.trim()));
            }
        }
    }
    assert!(found.is_empty(), "use base::durable, so that a test can let it go wrong:\n{}", found.join("\n"));
}

#[test]
fn comments_keep_to_the_line_limit() {
    let mut wide = Vec::new();
    for (name, path) in tracked().into_iter().filter(|(name, _)| name.ends_with(".rs")) {
        let source = std::fs::read_to_string(path).unwrap_or_default();
        for (line, text) in source.lines().enumerate() {
            if text.trim_start().starts_with("//") && text.chars().count() > WIDEST {
                wide.push(format!("{name}:{}", line + 1));
            }
        }
    }
    assert!(wide.is_empty(), "comments of more than {WIDEST} characters:\n{}", wide.join("\n"));
}

/// What is counted per agent, step, episode or iteration.
const COUNTED: [&str; 33] = [
    "%",
    "actions",
    "agent-steps",
    "bytes",
    "constraints",
    "cost",
    "draws",
    "entries",
    "episodes",
    "exchanges",
    "gb",
    "iterations",
    "kb",
    "kernels",
    "mb",
    "messages",
    "ms",
    "number",
    "numbers",
    "once",
    "parameters",
    "points",
    "return",
    "reward",
    "rewards",
    "s",
    "samples",
    "seconds",
    "steps",
    "times",
    "transitions",
    "twice",
    "values",
];

/// What stands behind "4 bytes an agent", but not behind "how many bytes an agent sends".
const GOING_ON: [&str; 11] = ["and", "at", "for", "from", "in", "of", "on", "or", "than", "with", "|"];

/// "An agent" and the like where "per agent" is meant: behind a number or what is counted, if nothing more is
/// said of the agent, or beside another one ("an agent and step").
fn misused_articles(text: &str) -> Vec<String> {
    let is_unit = |word: &str| ["agent", "step", "episode", "iteration"].contains(&word);
    let is_comment = |word: &&str| !["//", "///", "//!", "#", "*", ">", "\\"].contains(word);
    let words: Vec<&str> = text.split_whitespace().filter(is_comment).collect();
    let bare = |word: &str| word.trim_end_matches(|c: char| !c.is_alphanumeric()).to_string();
    let mut found = Vec::new();
    for at in 1..words.len().saturating_sub(1) {
        let (before, unit) = (words[at - 1], words[at + 1]);
        if !["a", "an"].contains(&words[at]) || !is_unit(&bare(unit)) {
            continue;
        }
        let is_end = unit != bare(unit);
        let next = words.get(at + 2).copied().unwrap_or_default();
        let other = words.get(at + 3).copied().unwrap_or_default();
        let before = before.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '%').to_lowercase();
        let is_number = before.starts_with(|c: char| c.is_ascii_digit())
            && before.ends_with(|c: char| c.is_alphanumeric() || "%⁰¹²³⁴⁵⁶⁷⁸⁹".contains(c));
        // What a program fills in, as in `{bytes} an agent`.
        let is_counted = is_number || before.ends_with('}') || COUNTED.contains(&before.as_str());
        let is_all = is_end || next.is_empty() || GOING_ON.contains(&next);
        if (is_counted && is_all) || (!is_end && next == "and" && is_unit(&bare(other))) {
            found.push([words[at - 1], words[at], unit, next, other].join(" "));
        }
    }
    found
}

/// In documentation, comments, and what programs say.
#[test]
fn per_is_written_where_it_is_meant() {
    let ends = [".md", ".rs", ".py", ".pyi", ".toml", ".cu", ".h", ".html", ".js", ".ipynb"];
    let mut found = Vec::new();
    for (name, path) in tracked().into_iter().filter(|(name, _)| ends.iter().any(|end| name.ends_with(end))) {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        // Those of this file are examples.
        let misused = if name.ends_with("tests/tree.rs") { Vec::new() } else { misused_articles(&text) };
        found.extend(misused.into_iter().map(|words| format!("{name}: {words}")));
    }
    assert!(found.is_empty(), "write \"per agent\" and the like:\n{}", found.join("\n"));
}

#[test]
fn misused_articles_are_found() {
    let wrong = [
        "4.4 kB an agent, with everything",
        "| Bytes an agent at n = 10 |",
        "0.05 a step, twice",
        "return 18.97 an agent and episode",
        "(a few ms a step)",
        "{each:.1} an iteration",
        "steps an episode | seconds",
    ];
    for text in wrong {
        assert!(!misused_articles(text).is_empty(), "{text}");
    }
    let fine = [
        "How many numbers an agent reads",
        "drives have 600. A step is",
        "in a step, or an episode",
        "over an episode, per agent",
        "at κ = 1 an iteration takes",
        "to an agent and its neighbours",
    ];
    for text in fine {
        assert!(misused_articles(text).is_empty(), "{text}");
    }
}

/// Functions of the standard library that call the C library, whose last digits vary.
const VARYING: [&str; 30] = [
    "exp",
    "exp2",
    "exp_m1",
    "ln",
    "ln_1p",
    "log",
    "log2",
    "log10",
    "powf",
    "powi",
    "sin",
    "cos",
    "tan",
    "sin_cos",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "hypot",
    "cbrt",
    "gamma",
    "ln_gamma",
    "to_degrees",
    "to_radians",
];

/// Results use `phalanx_agent::elementary` instead, which gives the same bits everywhere.
#[test]
fn results_do_not_use_the_c_library() {
    let mut found = Vec::new();
    for (name, path) in tracked() {
        let is_library =
            ["crates/phalanx/src/", "crates/phalanx-agent/src/"].iter().any(|at| name.starts_with(at));
        if !is_library
            || !name.ends_with(".rs")
            || name.ends_with("tests.rs")
            || name.ends_with("elementary.rs")
        {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap_or_default();
        // Tests are at the end of a file.
        let code = text.split("#[cfg(test)]\n").next().unwrap_or_default();
        for (number, line) in
            code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"))
        {
            let is_called = |function: &str| {
                [".", "f64::", "f32::"].iter().any(|at| line.contains(&format!("{at}{function}(")))
            };
            if let Some(function) = VARYING.iter().find(|function| is_called(function)) {
                found.push(format!("{name}:{}: {function}", number + 1));
            }
        }
    }
    assert!(found.is_empty(), "use phalanx_agent::elementary:\n{}", found.join("\n"));
}

/// A file from elsewhere would be missing in the package of the crate; through a symbolic link, it would be
/// missing where the checkout has none.
#[test]
fn crates_embed_their_own_files() {
    let mut found = Vec::new();
    for (name, path) in tracked().into_iter().filter(|(name, _)| name.ends_with(".rs")) {
        let ["crates", of, "src", ..] = name.split('/').collect::<Vec<_>>()[..] else { continue };
        let own = Path::new("crates").join(of);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        for embedded in text.split("include_").skip(1).filter_map(quoted) {
            let place = normalised(&Path::new(&name).parent().unwrap().join(embedded));
            let file = path.parent().unwrap().join(embedded);
            let is_file = file.symlink_metadata().is_ok_and(|data| data.is_file());
            if !place.starts_with(&own) || !is_file {
                found.push(format!("{name}: {embedded}"));
            }
        }
    }
    assert!(found.is_empty(), "not a file of the crate itself:\n{}", found.join("\n"));
}

/// The path in `str!("…")` or `bytes!("…")`.
fn quoted(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("str!(\"").or(text.strip_prefix("bytes!(\""))?;
    rest.split('"').next()
}

/// Without `..`, whether the file is there or not.
fn normalised(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => whole = whole.parent().map(Path::to_path_buf).unwrap_or_default(),
            part => whole.push(part),
        }
    }
    whole
}

/// What registries ask for and `cargo package` does not: at most five keywords and categories, and no path
/// without the version that stands for it.
#[test]
fn published_crates_describe_themselves() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let arguments = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let listed = Command::new(env!("CARGO")).args(arguments).current_dir(&root).output().unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let is_published = |package: &serde_json::Value| package["publish"].is_null();
    let published: Vec<&str> =
        packages.iter().filter(|it| is_published(it)).filter_map(|it| it["name"].as_str()).collect();
    assert!(published.contains(&"phalanx") && published.contains(&"phalanx-cli"), "{published:?}");
    for package in packages.iter().filter(|package| is_published(package)) {
        let name = package["name"].as_str().unwrap();
        for key in ["description", "license", "readme", "rust_version"] {
            assert!(package[key].is_string(), "{name}: no {key}");
        }
        for (key, longest) in [("keywords", 20), ("categories", 64)] {
            let words = package[key].as_array().unwrap();
            assert!((1..=5).contains(&words.len()), "{name}: {} {key}", words.len());
            assert!(words.iter().all(|word| word.as_str().unwrap().len() <= longest), "{name}: {words:?}");
        }
        for dependency in package["dependencies"].as_array().unwrap() {
            if dependency["path"].is_string() {
                let (other, wanted) = (dependency["name"].as_str().unwrap(), &dependency["req"]);
                assert!(published.contains(&other), "{name} needs {other}, which is not published");
                let version = package["version"].as_str().unwrap();
                assert_eq!(wanted, &format!("^{version}"), "{name}: the version of {other}");
            }
        }
    }
}

/// One version in the crates, the changelog, and what people cite.
#[test]
fn the_version_is_the_same_everywhere() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let cited = read("CITATION.cff");
    assert!(cited.lines().any(|line| line == format!("version: {version}")), "{cited}");
    let dated = cited.lines().find_map(|line| line.strip_prefix("date-released: ")).unwrap();
    assert!(read("CHANGELOG.md").contains(&format!("\n## [{version}] - {dated}\n")), "{version} of {dated}");
}
