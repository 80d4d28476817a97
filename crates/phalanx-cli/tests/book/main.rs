//! The book in `docs/book`, and `docs/theory.md`: every command in them is run, every file in them is used,
//! in the order of the page. How a block is marked stands in `page.rs`.

#![cfg(unix)]

mod lines;
mod page;
mod place;

use std::collections::BTreeSet;

use page::{Page, source};
use place::Place;

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
    let tests = include_str!("main.rs");
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

/// What stands in `](…)`.
fn links(text: &str) -> Vec<&str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target).collect()
}

/// A heading as the part of a link after `#`.
fn slug(heading: &str) -> String {
    let words = heading.trim_start_matches(['#', ' ']).to_lowercase().replace(' ', "-");
    words.chars().filter(|&c| c.is_alphanumeric() || c == '-').collect()
}
