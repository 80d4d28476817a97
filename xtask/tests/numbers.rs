//! Do the numbers in the documentation agree with the files that they come from, and with each other?
//!
//! A number is marked by comments that nobody sees in a page, `<!--=KEY-->VALUE<!--/-->`:
//!
//! * `paper/EXPERIMENT/METHOD/SETTING/COLUMN`: that cell of `docs/paper/EXPERIMENT/summary.csv`, or of
//!   `slopes.csv` where there is no summary, rounded to the decimals of the value. Method and setting are the
//!   first two columns.
//! * `bench/FILE`: the value, which may be several cells of a table, stands in `bench-runs/FILE` as it is
//!   written here. In a JSON file some number rounds to it, in units or in thousands, millions or
//!   billions, and to each number of several cells; `bench/FILE/NAME` looks at numbers of that name alone.
//! * any other key: all its places have the same value, and there are two at least.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

/// A marked number.
#[derive(Debug, PartialEq)]
struct Mark<'a> {
    /// Counted from 1.
    line: usize,
    key: &'a str,
    value: &'a str,
}

const BEGIN: &str = "<!--=";
const END: &str = "<!--/-->";

/// The marks of a page, and what is wrong with the others, each with its line.
fn marks(text: &str) -> (Vec<Mark<'_>>, Vec<(usize, String)>) {
    let (mut found, mut wrong, mut in_code) = (Vec::new(), Vec::new(), false);
    for (line, text) in text.lines().enumerate().map(|(line, text)| (line + 1, text)) {
        if text.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        // There a comment would be a block of HTML, in which Markdown is left as it is.
        let is_lead = |c: char| c.is_whitespace() || c.is_ascii_digit() || "-*.>".contains(c);
        if text.trim_start_matches(is_lead).starts_with(BEGIN) {
            wrong.push((line, "a mark begins the line; put a word in front of it".to_string()));
        }
        let mut rest = text;
        while let Some(at) = rest.find(BEGIN) {
            let (before, mark) = rest.split_at(at);
            if before.contains(END) {
                wrong.push((line, format!("{END} ends no mark")));
            }
            let Some((key, after)) = mark[BEGIN.len()..].split_once("-->") else {
                wrong.push((line, format!("no --> after {BEGIN}")));
                rest = "";
                break;
            };
            let value = after.split_once(END).map(|(value, after)| (value.trim(), after));
            match value.filter(|(value, _)| !value.contains("<!--")) {
                None => wrong.push((line, format!("{key}: no {END} on its line"))),
                Some(("", _)) => wrong.push((line, format!("{key}: no value"))),
                Some((value, _)) => found.push(Mark { line, key, value }),
            }
            rest = value.map_or("", |(_, after)| after);
        }
        if rest.contains(END) {
            wrong.push((line, format!("{END} ends no mark")));
        }
    }
    (found, wrong)
}

/// A number as a page writes it, and half a unit of its last digit.
fn number(text: &str) -> Option<(f64, f64)> {
    let plain = text.replace('−', "-").replace(',', "");
    let decimals = plain.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let is_plain = plain.chars().all(|c| c.is_ascii_digit() || "-.".contains(c));
    let value = plain.parse().ok().filter(|_| is_plain)?;
    Some((value, 0.5 * 0.1_f64.powi(i32::try_from(decimals).ok()?)))
}

/// Whether a page may write `text` for `exact`.
fn rounds(exact: f64, text: &str) -> bool {
    number(text).is_some_and(|(value, half)| (exact - value).abs() <= half + 1e-9 * exact.abs().max(1.0))
}

/// What is wrong with the marked numbers of pages, given as names and texts, with files of the repository as
/// `read` has them.
fn problems(pages: &[(String, String)], read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let (mut problems, mut shared) = (Vec::new(), BTreeMap::<&str, Vec<(String, &str)>>::new());
    for (name, text) in pages {
        let (found, wrong) = marks(text);
        problems.extend(wrong.into_iter().map(|(line, why)| format!("{name}:{line}: {why}")));
        for Mark { line, key, value } in found {
            let place = format!("{name}:{line}");
            let sourced = match key.split('/').collect::<Vec<_>>()[..] {
                ["paper", experiment, method, setting, column] => {
                    cell(experiment, [method, setting], column, read)
                        .and_then(|cell| agree(value, &cell, is_cell(value, &cell)))
                }
                ["bench", file] => in_file(file, None, value, read),
                ["bench", file, name] => in_file(file, Some(name), value, read),
                ["paper" | "bench", ..] => Err("no such kind of key".to_string()),
                _ => {
                    shared.entry(key).or_default().push((place.clone(), value));
                    Ok(())
                }
            };
            problems.extend(sourced.err().map(|why| format!("{place}: {key}: {why}")));
        }
    }
    for (key, places) in shared {
        let (first, value) = &places[0];
        if places.len() == 1 {
            problems.push(format!("{first}: {key}: {value} stands in one place only"));
        }
        let others = places.iter().filter(|(_, other)| other != value);
        problems
            .extend(others.map(|(place, other)| format!("{place}: {key}: {other}, but {value} in {first}")));
    }
    problems
}

/// Whether a page may write `value` for a cell, a number or, for the seeds of a setting say, a word.
fn is_cell(value: &str, cell: &str) -> bool {
    cell.parse().map_or(value == cell, |exact| rounds(exact, value))
}

fn agree(value: &str, source: &str, is_right: bool) -> Result<(), String> {
    if is_right { Ok(()) } else { Err(format!("{value}, but {source} in the file")) }
}

/// A cell of the table of an experiment.
fn cell(
    experiment: &str,
    row: [&str; 2],
    column: &str,
    read: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let tables = ["summary", "slopes"].map(|table| format!("docs/paper/{experiment}/{table}.csv"));
    let table = tables.iter().find_map(|table| read(table)).ok_or("no such experiment")?;
    let mut table = csv::Reader::from_reader(table.as_bytes());
    let headers = table.headers().map_err(|error| error.to_string())?.clone();
    let at = headers.iter().position(|header| header == column).ok_or("no such column")?;
    let rows: Vec<_> = table.records().flatten().filter(|found| found.iter().take(2).eq(row)).collect();
    match &rows[..] {
        [row] => Ok(row[at].to_string()),
        [] => Err("no such row".to_string()),
        _ => Err("several such rows".to_string()),
    }
}

/// Whether a file of `bench-runs` has a number, under a name if there is one.
fn in_file(
    file: &str,
    name: Option<&str>,
    value: &str,
    read: &dyn Fn(&str) -> Option<String>,
) -> Result<(), String> {
    let text = read(&format!("bench-runs/{file}")).ok_or("no such file")?;
    let stands = if file.ends_with(".json") {
        let json: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let mut numbers = Vec::new();
        collect(&json, name, name.is_none(), &mut numbers);
        let is_there = |cell: &str| {
            [1.0, 1e3, 1e6, 1e9].iter().any(|unit| numbers.iter().any(|it| rounds(it / unit, cell.trim())))
        };
        value.split('|').all(is_there)
    } else {
        name.is_none() && stands_in(value, &text)
    };
    if stands { Ok(()) } else { Err(format!("{value} does not stand in the file")) }
}

/// The numbers of a JSON document, all of them or those under a name.
fn collect(json: &Value, name: Option<&str>, is_wanted: bool, numbers: &mut Vec<f64>) {
    match json {
        Value::Number(number) if is_wanted => numbers.extend(number.as_f64()),
        Value::Array(entries) => {
            entries.iter().for_each(|entry| collect(entry, name, is_wanted, numbers));
        }
        Value::Object(entries) => {
            for (key, entry) in entries {
                collect(entry, name, is_wanted || name == Some(key.as_str()), numbers);
            }
        }
        _ => {}
    }
}

/// Whether a number stands in a text, not as a part of a longer one.
fn stands_in(value: &str, text: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    text.match_indices(value).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + value.len()..]);
        let goes_on = after.starts_with(is_digit)
            || after.strip_prefix(['.', ',']).is_some_and(|rest| rest.starts_with(is_digit));
        !goes_on && !before.ends_with(|c| is_digit(c) || c == '.' || c == ',')
    })
}

#[test]
fn marked_numbers_agree() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = vec!["README.md".to_string()];
    for folder in ["docs", "docs/book/src"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        pages.extend(names.filter(|name| name.ends_with(".md")).map(|name| format!("{folder}/{name}")));
    }
    pages.sort();
    let read = |name: &str| std::fs::read_to_string(root.join(name)).ok();
    let with_text = |name: String| {
        let text = read(&name).unwrap();
        (name, text)
    };
    let pages: Vec<_> = pages.into_iter().map(with_text).collect();
    assert!(pages.iter().any(|(_, text)| !marks(text).0.is_empty()), "no number is marked");
    let problems = problems(&pages, &read);
    assert!(
        problems.is_empty(),
        "numbers that disagree (CONTRIBUTING.md, Numbers):\n{}",
        problems.join("\n")
    );
}

/// What is wrong with a page beside made-up files.
fn wrong_in(text: &str) -> Vec<String> {
    let read = |name: &str| {
        let text = match name {
            "docs/paper/panel/summary.csv" => {
                "method,setting,seeds,return_mean\nours,κ = 1,3,5.159400\nours,κ = 0,3,\n\"with, comma\",,3,-0.031\n"
            }
            "docs/paper/rate/slopes.csv" => "eta_mu,theorem,E_final\n10,0,-0.583536\n",
            "bench-runs/a.md" => "took 0.69 s, 26.45 GB and 8.20",
            "bench-runs/a.json" => "{\"runs\": [{\"rate\": 133854965.4, \"bytes\": [4945, 12.5]}]}",
            _ => return None,
        };
        Some(text.to_string())
    };
    problems(&[("page.md".to_string(), text.to_string())], &read)
}

#[test]
fn right_numbers_pass() {
    for text in [
        "5.16 is not marked",
        "a <!--=paper/panel/ours/κ = 1/return_mean-->5.16<!--/--> b",
        "| <!--=paper/panel/ours/κ = 1/return_mean-->5<!--/--> | <!--=paper/panel/ours/κ = 1/seeds-->3<!--/--> |",
        "a <!--=paper/panel/with, comma//return_mean-->−.031<!--/-->",
        "a <!--=paper/rate/10/0/E_final-->−0.58<!--/-->",
        "a <!--=bench/a.md-->0.69<!--/--> <!--=bench/a.md-->26.45<!--/--> <!--=bench/a.md-->8.20<!--/-->",
        "| <!--=bench/a.json-->133.85 | 12.5<!--/--> | <!--=bench/a.json/bytes-->4,945<!--/-->",
        "a <!--=own-->1 kB<!--/-->\nb <!--=own-->1 kB<!--/-->",
        "```text\na <!--=own-->1\n```",
    ] {
        assert_eq!(wrong_in(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn wrong_numbers_are_named() {
    for (text, problem) in [
        (
            "\na <!--=paper/panel/ours/κ = 1/return_mean-->5.15<!--/-->",
            "page.md:2: paper/panel/ours/κ = 1/return_mean: 5.15, but 5.159400 in the file",
        ),
        (
            "a <!--=paper/panel/ours/κ = 0/return_mean-->5.15<!--/-->",
            "page.md:1: paper/panel/ours/κ = 0/return_mean: 5.15, but  in the file",
        ),
        (
            "a <!--=paper/rate/10/0/E_final-->0.58<!--/-->",
            "page.md:1: paper/rate/10/0/E_final: 0.58, but -0.583536 in the file",
        ),
        ("a <!--=paper/panel/ours/x/seeds-->3<!--/-->", "page.md:1: paper/panel/ours/x/seeds: no such row"),
        ("a <!--=paper/panel/ours/x/y-->3<!--/-->", "page.md:1: paper/panel/ours/x/y: no such column"),
        ("a <!--=paper/x/ours/x/seeds-->3<!--/-->", "page.md:1: paper/x/ours/x/seeds: no such experiment"),
        ("a <!--=paper/panel/seeds-->3<!--/-->", "page.md:1: paper/panel/seeds: no such kind of key"),
        ("a <!--=bench/a.md-->26.4<!--/-->", "page.md:1: bench/a.md: 26.4 does not stand in the file"),
        ("a <!--=bench/a.md-->20<!--/-->", "page.md:1: bench/a.md: 20 does not stand in the file"),
        ("a <!--=bench/b.md-->20<!--/-->", "page.md:1: bench/b.md: no such file"),
        (
            "a <!--=bench/a.json-->133.84<!--/-->",
            "page.md:1: bench/a.json: 133.84 does not stand in the file",
        ),
        (
            "a <!--=bench/a.json/rate-->12.5<!--/-->",
            "page.md:1: bench/a.json/rate: 12.5 does not stand in the file",
        ),
        ("a <!--=own-->1<!--/-->", "page.md:1: own: 1 stands in one place only"),
        ("a <!--=own-->1<!--/-->\nb <!--=own-->2<!--/-->", "page.md:2: own: 2, but 1 in page.md:1"),
        ("a <!--=own-->1", "page.md:1: own: no <!--/--> on its line"),
        ("a <!--=own-->1 <!--=own-->1<!--/-->", "page.md:1: own: no <!--/--> on its line"),
        ("a <!--=own-->  <!--/-->", "page.md:1: own: no value"),
        ("a <!--=own", "page.md:1: no --> after <!--="),
        ("a 1<!--/-->", "page.md:1: <!--/--> ends no mark"),
        (
            "- <!--=own-->1<!--/--> <!--=own-->1<!--/-->",
            "page.md:1: a mark begins the line; put a word in front of it",
        ),
    ] {
        assert_eq!(wrong_in(text), [problem], "{text}");
    }
}
