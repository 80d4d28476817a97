//! Bad input gets exit status 2 and one clear line, with nothing written.
//!
//! The real binary runs in a temporary folder with three files that work (`line.toml`, `table.toml`,
//! `model.json`); every case of `bad_input/cases.toml` breaks one thing. The closing tests are about the two
//! neighbours of that contract: bounds that are out of reach on purpose, and presets, which are good input.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use assert_cmd::Command;
use serde::Deserialize;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_phalanx");

/// `bad_input/cases.toml`, which explains itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    not_finite: Vec<[String; 2]>,
    command_lines: Vec<Vec<String>>,
    files: BTreeMap<String, String>,
    group: Vec<Group>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Group {
    command: String,
    file: Option<String>,
    files: BTreeMap<String, String>,
    says: Option<String>,
    set: Vec<[String; 3]>,
    edit: Vec<[String; 4]>,
    text: Vec<[String; 3]>,
    append: Vec<[String; 3]>,
    call: Vec<[String; 3]>,
}

/// One mistake.
struct Broken {
    name: String,
    /// Files beside the three that work, or in their place.
    files: Vec<(String, Vec<u8>)>,
    arguments: Vec<String>,
    /// What the message must contain: the field or file, the value, what is allowed.
    words: Vec<String>,
}

/// A command line, separated by spaces; the message must contain all of `words`, separated by ` … `.
fn called(name: &str, arguments: &str, words: &str) -> Broken {
    Broken {
        name: name.into(),
        files: Vec::new(),
        arguments: arguments.split(' ').map(Into::into).collect(),
        words: words.split(" … ").map(Into::into).collect(),
    }
}

impl Broken {
    fn set(mut self, setting: &str) -> Self {
        self.arguments.extend(["--set".into(), setting.into()]);
        self
    }

    /// Settings, separated by spaces.
    fn set_all(self, settings: &str) -> Self {
        settings.split(' ').filter(|setting| !setting.is_empty()).fold(self, Broken::set)
    }

    fn with(mut self, file: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((file.into(), content.into()));
        self
    }
}

impl Cases {
    fn read() -> Self {
        toml::from_str(include_str!("bad_input/cases.toml")).unwrap()
    }

    /// The text of a file that works.
    fn file(&self, name: &str) -> &str {
        &self.files[name]
    }

    fn broken_inputs(&self) -> Vec<Broken> {
        let groups = self.group.iter().flat_map(|group| self.cases_of(group));
        groups.chain(self.not_finite()).chain(unwritable()).collect()
    }

    fn cases_of(&self, group: &Group) -> Vec<Broken> {
        let file = group.file.as_deref().unwrap_or_default();
        let working = || self.file(file);
        let of = |name: &str, words: &str| called(name, &group.command, words);
        let mut all = Vec::new();
        let put = |broken: Broken| match &group.file {
            Some(file) => broken.with(file, working()),
            None => broken,
        };
        all.extend(group.set.iter().map(|[name, settings, words]| put(of(name, words)).set_all(settings)));
        all.extend(group.call.iter().map(|[name, command, words]| put(called(name, command, words))));
        let edited = group.edit.iter().map(|[name, from, to, words]| {
            assert_eq!(working().matches(from).count(), 1, "{name}: {from:?} must occur once");
            of(name, words).with(file, working().replace(from, to))
        });
        all.extend(edited);
        all.extend(group.text.iter().map(|[name, text, words]| of(name, words).with(file, text.as_str())));
        let longer = |text: &str| format!("{}{text}\n", working());
        all.extend(group.append.iter().map(|[name, text, words]| of(name, words).with(file, longer(text))));
        for broken in &mut all {
            broken.words.extend(group.says.clone());
            broken.files.extend(group.files.iter().map(|(name, text)| (name.clone(), text.clone().into())));
        }
        all
    }

    /// nan and ±inf in every place that takes a number, with the settings that make it count.
    fn not_finite(&self) -> Vec<Broken> {
        let mut all = Vec::new();
        for [key, others] in &self.not_finite {
            for value in ["nan", "inf", "-inf"] {
                let settings = format!("{key}={value} {others}");
                let broken = called(settings.trim_end(), "train line.toml", &format!("{key} … {value}"));
                all.push(broken.set_all(&settings));
            }
        }
        all
    }
}

/// Cases that a text file cannot hold, or not well.
fn unwritable() -> Vec<Broken> {
    let config = |name: &str, text: Vec<u8>, words: &str| {
        called(name, "train line.toml", words).with("line.toml", text)
    };
    let model = |name: &str, text: Vec<u8>, words: &str| {
        called(name, "train table.toml", words).with("model.json", text)
    };
    let crowd = |name: &str, arguments: &str, n: usize, words: &str| {
        called(name, arguments, words).with("case.json", many_agents(n))
    };
    vec![
        config("not UTF-8", b"iterations = 3 # \xff\xfe\n".into(), "line.toml … UTF-8"),
        config("nested too deeply", format!("x = {}", "[".repeat(100_000)).into(), "line.toml … recurs"),
        config("dotted too deeply", format!("{}x = 1", "x.".repeat(100_000)).into(), "line.toml … recurs"),
        called("unknown key with a bar", "train line.toml", "unknown field `a | b` … kappa").set("a | b=1"),
        called("a policy with a bar", "train line.toml", "policy.kind … a | b … softmax … direct")
            .set("policy.kind=a | b"),
        called("an edge list that is not UTF-8", "train line.toml", "UTF-8 … links.txt")
            .set_all("network.kind=edges network.file=links.txt")
            .with("links.txt", b"0 1\n\xff\xfe 2\n"),
        model("a model nested too deeply", vec![b'['; 100_000], "cannot be parsed … recursion … model.json"),
        model("a model that is not UTF-8", b"{\"n\": \xff".into(), "model.json … UTF-8"),
        crowd(
            "a case with too many joint states",
            "exact case.json",
            17,
            "case.json … 131072 joint states … 65536",
        ),
        crowd(
            "a case with too many pairs",
            "exact case.json",
            13,
            "case.json … 8192 joint states … pairs … 16777216",
        ),
        crowd("a program with too many pairs", "exact case.json --optimum", 10, "case.json … pairs … 65536"),
    ]
}

/// A case of `n` independent agents with two states and two actions.
fn many_agents(n: usize) -> String {
    let list = |entry: &str| vec![entry; n].join(", ");
    let parents: Vec<String> = (0..n).map(|i| format!("[{i}]")).collect();
    format!(
        r#"{{"model": {{"n": {n}, "gamma": 0.9, "state_sizes": [{}], "action_sizes": [{}], "edges": [], "parents": [{}],
        "transition": [{}], "rho": {{"kind": "product", "local": [{}]}}, "f": [{}]}}}}"#,
        list("2"),
        list("2"),
        parents.join(", "),
        list("[0.5, 0.5, 0.25, 0.75, 1, 0, 0, 1]"),
        list("[0.5, 0.5]"),
        list(r#"{"kind": "linear", "r": [0, 0, 1, 1]}"#)
    )
}

/// Files that every folder has.
const WORKING: [&str; 3] = ["line.toml", "table.toml", "model.json"];

/// A new folder with the three files that work, and with `files`.
fn folder(cases: &Cases, files: &[(String, Vec<u8>)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let working = WORKING.map(|name| (name.to_string(), cases.file(name).into()));
    for (name, content) in working.iter().chain(files) {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}

/// The program in `folder`, with 4 GB of address space where that can be limited: what asks for too much must
/// be refused, and must not fill the machine that runs the tests if it is not.
fn phalanx(folder: &Path) -> Command {
    let mut command = if cfg!(unix) {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -v 4194304 2>/dev/null; exec \"$0\" \"$@\"", BINARY]);
        shell
    } else {
        Command::new(BINARY)
    };
    command.current_dir(folder).env("RAYON_NUM_THREADS", "2").env_remove("RUST_BACKTRACE");
    command.timeout(Duration::from_secs(60));
    command
}

/// Everything below `folder`: contents of files, nothing for folders.
fn snapshot(folder: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let content = path.is_file().then(|| std::fs::read(&path).unwrap());
            found.insert(path.strip_prefix(folder).unwrap().display().to_string(), content);
            if path.is_dir() {
                open.push(path);
            }
        }
    }
    found
}

/// What the program does wrong with a broken input, if anything.
fn misbehaviour(cases: &Cases, broken: &Broken) -> Option<String> {
    let folder = folder(cases, &broken.files);
    let before = snapshot(folder.path());
    let output = phalanx(folder.path()).args(&broken.arguments).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    let mut wrong = Vec::new();
    if output.status.code() != Some(2) {
        wrong.push(format!("{}, not exit status: 2", output.status));
    }
    if !message.starts_with("error: ") || !message.ends_with('\n') || message.lines().count() != 1 {
        wrong.push("the message is not one line `error: …`".to_string());
    }
    wrong.extend(
        broken
            .words
            .iter()
            .filter(|word| !message.contains(*word))
            .map(|word| format!("{word:?} is not said")),
    );
    if message.matches("os error").count() > 1 {
        wrong.push("the reason is said twice".to_string());
    }
    if !output.stdout.is_empty() {
        wrong.push(format!("standard output has {} bytes", output.stdout.len()));
    }
    if snapshot(folder.path()) != before {
        wrong.push("something was written".to_string());
    }
    let excerpt: String = message.chars().take(300).collect();
    let arguments: Vec<String> =
        broken.arguments.iter().map(|argument| argument.chars().take(80).collect()).collect();
    (!wrong.is_empty()).then(|| {
        format!("{}: phalanx {}\n    {}\n    {excerpt:?}", broken.name, arguments.join(" "), wrong.join("; "))
    })
}

#[test]
fn bad_input_is_refused_in_one_line_with_nothing_written() {
    let cases = Cases::read();
    let all = cases.broken_inputs();
    let wrong: Vec<String> = all.iter().filter_map(|broken| misbehaviour(&cases, broken)).collect();
    assert!(wrong.is_empty(), "{} of {} inputs:\n\n{}\n", wrong.len(), all.len(), wrong.join("\n\n"));
}

#[test]
fn bad_command_lines_are_refused_with_nothing_written() {
    let cases = Cases::read();
    let folder = folder(&cases, &[]);
    let before = snapshot(folder.path());
    for arguments in &cases.command_lines {
        let output = phalanx(folder.path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{arguments:?}: {output:?}");
        assert_eq!(snapshot(folder.path()), before, "{arguments:?}");
    }
}

/// JSON has no way to name such a folder, and `--json` must name the run.
#[cfg(unix)]
#[test]
fn a_results_folder_that_is_not_utf8_is_refused() {
    use std::os::unix::ffi::OsStrExt;

    let folder = folder(&Cases::read(), &[]);
    let before = snapshot(folder.path());
    let out = std::ffi::OsStr::from_bytes(b"results\xff");
    let output = phalanx(folder.path()).args(["train", "line.toml", "--out"]).arg(out).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.starts_with("error: ") && message.contains("--out"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert_eq!(snapshot(folder.path()), before);
}

/// Each entry above differs in one thing from what works.
#[test]
fn the_files_that_entries_break_work() {
    let cases = Cases::read();
    let others = ["model.toml", "expert.json", "wireless.toml"];
    let mut files = others.map(|name| (name.to_string(), cases.file(name).into())).to_vec();
    files.push(("links.txt".into(), b"0 1\n1 2\n2 3\n".to_vec()));
    let folder = folder(&cases, &files);
    let expert = ["--set", "objective.kind=neg_l2sq_expert", "--set", "objective.file=expert.json"];
    let links = ["--set", "network.kind=edges", "--set", "network.file=links.txt"];
    let models = |settings: &'static str| {
        settings.split(' ').flat_map(|setting| ["--set", setting]).collect::<Vec<_>>()
    };
    let linear =
        models("policy.kind=linear critic.kind=linear policy.box=[-1,1] critic.episode=1000000000000");
    let network =
        models("policy.kind=network policy.hidden=[] critic.kind=network critic.minibatch=1000000000000");
    let online = models(
        "policy.kind=network critic.kind=network critic.optimizer=sgd critic.minibatch=0 critic.clip=inf",
    );
    for (config, settings) in [
        ("line.toml", &[][..]),
        ("line.toml", &expert),
        ("line.toml", &links),
        ("table.toml", &[]),
        ("table.toml", &["--set", "world.file=model.toml"]),
        ("wireless.toml", &[]),
        ("line.toml", &linear),
        ("line.toml", &network),
        ("wireless.toml", &linear),
        ("wireless.toml", &online),
    ] {
        let output = phalanx(folder.path()).args(["train", config]).args(settings).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{config} {settings:?}: {output:?}");
        assert!(output.stderr.is_empty(), "{config} {settings:?}: {output:?}");
    }
}

/// A policy of another kind or shape is refused by `--init` and by `eval`, with both kinds or shapes.
#[test]
fn policies_of_other_models_are_refused() {
    let folder = folder(&Cases::read(), &[]);
    let run = |arguments: &str| phalanx(folder.path()).args(arguments.split(' ')).output().unwrap();
    let models = [
        ("linear", "policy.kind=linear"),
        ("additive", "policy.kind=linear --set policy.features=additive"),
        ("farther", "policy.kind=linear --set kappa=2"),
        ("network", "policy.kind=network --set policy.hidden=[8]"),
        ("wider", "policy.kind=network --set policy.hidden=[9]"),
        ("deeper", "policy.kind=network --set policy.hidden=[8,8]"),
        ("more", "policy.kind=network --set policy.hidden=[8] --set world.n=5"),
        ("table", "policy.kind=softmax"),
    ];
    for (name, model) in models {
        let output = run(&format!("train line.toml --set {model} --out {name}"));
        assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
    }
    for (from, to, words) in [
        ("linear", "table", "`linear-pair` … `softmax`"),
        ("linear", "network", "`linear-pair` … `network`"),
        ("linear", "additive", "`linear-pair` … `linear-additive`"),
        ("network", "linear", "`network` … `linear-pair`"),
        ("linear", "farther", "theta.0 … [6, 2] … [10, 2]"),
        ("farther", "linear", "theta.0 … [10, 2] … [6, 2]"),
        ("network", "wider", "theta.0.hidden.0.weight … [8, 8] … [8, 9]"),
        ("network", "deeper", "20 tensors … 28"),
        ("deeper", "network", "28 tensors … 20"),
        ("more", "network", "25 tensors … 20"),
        ("network", "more", "20 tensors … 25"),
    ] {
        let model = models.iter().find(|(name, _)| *name == to).unwrap().1;
        let before = snapshot(folder.path());
        let output = run(&format!("train line.toml --set {model} --init {from} --out new"));
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{from} as {to}: {message}");
        assert!(message.starts_with("error: ") && message.lines().count() == 1, "{message}");
        let missing: Vec<&str> = words.split(" … ").filter(|word| !message.contains(word)).collect();
        assert!(missing.is_empty(), "{from} as {to}: {missing:?} are not in {message}");
        assert!(snapshot(folder.path()) == before, "{from} as {to}");
        // A run whose policy is another run's.
        let kept = std::fs::read(folder.path().join(to).join("policy.safetensors")).unwrap();
        let copy =
            |bytes: &[u8]| std::fs::write(folder.path().join(to).join("policy.safetensors"), bytes).unwrap();
        copy(&std::fs::read(folder.path().join(from).join("policy.safetensors")).unwrap());
        let output = run(&format!("eval {to}"));
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{from} as {to}: {message}");
        let missing: Vec<&str> = words.split(" … ").filter(|word| !message.contains(word)).collect();
        assert!(missing.is_empty() && message.lines().count() == 1, "{from} as {to}: {message}");
        copy(&kept);
    }
}

/// The one line that the program prints with `--json`.
fn json_line(stdout: &[u8]) -> serde_json::Value {
    let text = std::str::from_utf8(stdout).unwrap();
    assert!(text.ends_with('\n') && text.lines().count() == 1, "not one line: {text:?}");
    serde_json::from_str(text).unwrap()
}

#[test]
fn bounds_out_of_reach_can_be_allowed_and_say_the_least_violation() {
    // Four binary agents. With full mass the entropy is at most ln 2; 125 steps have the mass m < 1 only, of
    // which half in each state gives −m ln(m/2).
    let mass = 1.0 - 0.99f64.powi(125);
    for (scaling, maximum) in [("normalised", 2f64.ln()), ("paper", -mass * (mass / 2.0).ln())] {
        let least = 4.0 * (0.8 - maximum);
        let folder = folder(&Cases::read(), &[]);
        let output = phalanx(folder.path())
            .args(["train", "line.toml", "--json", "--set", "gamma=0.99", "--set", "horizon=125"])
            .args(["--set", "constraint.0.at_least=0.8", "--set", "constraint.0.allow_infeasible=true"])
            .args(["--set", &format!("scaling={scaling}")])
            .output()
            .unwrap();
        let warning = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{warning}");
        assert!(warning.starts_with("warning: ") && warning.lines().count() == 1, "{warning}");
        let mut numbers = warning.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
        assert!(
            numbers.any(|number| (number - least).abs() < 1e-5),
            "{scaling}: {least} is not in {warning}"
        );
        for word in ["constraint.0", "state_entropy", "0.8"] {
            assert!(warning.contains(word), "{word} is not in {warning}");
        }
        let reached = json_line(&output.stdout)["violation_total"].as_f64().unwrap();
        assert!(reached >= least - 1e-9, "{scaling}: {reached} < {least}");
    }
}

#[test]
fn every_preset_trains_and_prints_one_line_of_json() {
    const NUMBERS: [&str; 11] = [
        "seed",
        "iterations",
        "return",
        "objective",
        "violation_total",
        "violation_max",
        "violation_mean",
        "wall_s",
        "agent_steps",
        "agent_steps_per_s",
        "comm_bytes",
    ];
    let folder = folder(&Cases::read(), &[]);
    let list = phalanx(folder.path()).arg("presets").output().unwrap().stdout;
    let list = String::from_utf8(list).unwrap();
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"synthetic"), "{list}");
    for name in names {
        // One of them has ten thousand agents: four hundred episodes of theirs would take a while.
        let short = ["--set", "iterations=2", "--set", "evaluation.episodes=20"];
        let mut train = phalanx(folder.path());
        if name == "wireless-grid" {
            // On a busy machine it is slow, not hanging.
            train.timeout(Duration::from_secs(600));
        }
        let output = train.args(["train", name, "--json"]).args(short).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
        assert!(output.stderr.is_empty(), "{name}: {output:?}");
        let outcome = json_line(&output.stdout);
        for field in NUMBERS {
            assert!(outcome[field].is_number(), "{name}: {field} is {}", outcome[field]);
        }
        assert_eq!(outcome["iterations"], 2, "{name}");
        let run = folder.path().join(outcome["run"].as_str().unwrap());
        assert!(run.join("policy.safetensors").is_file(), "{name}: {}", run.display());
    }
}

/// On machines with a driver there is nothing to refuse.
#[test]
fn without_a_driver_a_gpu_is_refused_in_one_line() {
    let folder = folder(&Cases::read(), &[]);
    let before = snapshot(folder.path());
    let listed = phalanx(folder.path()).arg("devices").output().unwrap();
    let message = String::from_utf8_lossy(&listed.stderr).into_owned();
    if !message.contains("no NVIDIA driver") {
        return eprintln!("skipped: there is a driver");
    }
    for arguments in [&["devices"][..], &["train", "line.toml", "--device", "cuda"]] {
        let output = phalanx(folder.path()).args(arguments).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.starts_with("error: device: no NVIDIA driver"), "{message}");
        assert!(message.ends_with("use device = \"cpu\"\n") && message.lines().count() == 1, "{message}");
    }
    assert_eq!(snapshot(folder.path()), before);
}
