//! Do the library's modules use only those above them? Their order is that of the `mod` lines in lib.rs.

use std::fs;
use std::path::{Path, PathBuf};

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The root modules, in the order of lib.rs.
fn modules() -> Vec<String> {
    let lib = fs::read_to_string(sources().join("lib.rs")).unwrap();
    let name = |line: &str| {
        let line = line.trim().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')).map(str::to_string)
    };
    lib.lines().filter_map(name).collect()
}

/// Every file of a root module: `NAME.rs` and all below `NAME/`.
fn files(module: &str) -> Vec<PathBuf> {
    let mut found = vec![sources().join(format!("{module}.rs"))];
    let mut folders = vec![sources().join(module)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "rs") && path.is_file());
    found
}

/// The first names behind every `crate::`, of every member where it opens a list.
fn used(source: &str) -> Vec<String> {
    let code: Vec<&str> = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let first_name = |path: &str| {
        path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
    };
    let mut names = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            names.push(first_name(rest));
            continue;
        };
        let (mut depth, mut member) = (0, String::new());
        for c in list.chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => names.push(first_name(&std::mem::take(&mut member))),
                _ => {}
            }
            if c != ',' || depth > 0 {
                member.push(c);
            }
        }
        names.push(first_name(&member));
    }
    names
}

#[test]
fn a_module_uses_those_above_it_only() {
    let modules = modules();
    assert!((2..=12).contains(&modules.len()), "{modules:?}");
    let mut wrong = Vec::new();
    for (place, module) in modules.iter().enumerate() {
        let files = files(module);
        assert!(!files.is_empty(), "{module} has no file");
        for file in files {
            let source = fs::read_to_string(&file).unwrap();
            let below = |name: &String| modules[place + 1..].contains(name);
            wrong.extend(used(&source).into_iter().filter(below).map(|name| (file.clone(), name)));
        }
    }
    assert!(wrong.is_empty(), "these use a module below their own: {wrong:#?}");
}

#[test]
fn lists_of_paths_are_read() {
    let source =
        "use crate::{Error, graph::{Graph, edge::{a}}, run};\n// crate::no\nlet x = crate::world::f();";
    assert_eq!(used(source), ["Error", "graph", "run", "world"]);
}
