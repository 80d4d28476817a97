//! Broken run folders, checkpoints and policies: one clear line, exit status 2, nothing changed.

use std::path::Path;
use std::process::{Command, Output};

const CONFIG: &str = r#"
iterations = 40
horizon = 10
batch = 2
[world]
kind = "line"
n = 4
[objective]
kind = "return"
[[constraint]]
kind = "state_entropy"
at_least = 0.1
[critic]
steps = 20
[evaluation]
episodes = 4
"#;

fn phalanx(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_phalanx")).args(arguments).current_dir(folder).output().unwrap()
}

/// A folder with a finished run `done`, one with other shapes `other`, one that uses direct policies
/// `direct`, and one that was stopped half-way `half`.
fn runs() -> tempfile::TempDir {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use phalanx::run::{Config, Provenance, Run, Session};

    let folder = tempfile::tempdir().unwrap();
    let config = Config::from_toml(CONFIG, folder.path()).unwrap();
    for (name, setting, stop_at) in [
        ("done", ("kappa", "1"), usize::MAX),
        ("other", ("kappa", "2"), usize::MAX),
        ("direct", ("policy.kind", "direct"), usize::MAX),
        ("half", ("kappa", "1"), 20),
    ] {
        let session = Session::new(&config.with(setting.0, setting.1).unwrap()).unwrap();
        let mut run = Run::begin(session, &folder.path().join(name), Provenance::default()).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let progress = |summary: &phalanx::algorithm::Summary| {
            stop.store(summary.iteration + 1 >= stop_at, Ordering::Relaxed);
        };
        run.train(&stop, progress).unwrap();
    }
    folder
}

/// What is broken, how, the command, and words of the message in their order.
type Entry = (&'static str, fn(&Path), &'static str, &'static str);

fn write(path: &Path, name: &str, text: &[u8]) {
    std::fs::write(path.join(name), text).unwrap();
}

fn remove(path: &Path, name: &str) {
    std::fs::remove_file(path.join(name)).unwrap();
}

fn copy(path: &Path, from: &str, to: &str) {
    std::fs::copy(path.join(from), path.join(to)).unwrap();
}

fn nothing(_: &Path) {}

const BROKEN: [Entry; 41] = [
    ("no such run", nothing, "resume nowhere", "nowhere … is not a run"),
    ("a file", |p| write(p, "file", b"x"), "resume file", "file … is not a run"),
    ("an empty folder", |p| std::fs::create_dir(p.join("empty")).unwrap(), "resume empty", "no config.toml"),
    ("no configuration", |p| remove(p, "half/config.toml"), "resume half", "no config.toml"),
    (
        "a broken configuration",
        |p| write(p, "half/config.toml", b"kappa = "),
        "resume half",
        "config.toml … parsed",
    ),
    ("an empty configuration", |p| write(p, "half/config.toml", b""), "resume half", "world"),
    (
        "a configuration that is not text",
        |p| write(p, "half/config.toml", b"\xff\xfe"),
        "resume half",
        "config.toml",
    ),
    (
        "half a meta",
        |p| write(p, "half/meta.json", b"{\"status\": \"ru"),
        "resume half",
        "meta.json … parsed",
    ),
    ("a meta of another form", |p| write(p, "half/meta.json", b"[1]"), "resume half", "meta.json … object"),
    (
        "a meta without a status",
        |p| write(p, "half/meta.json", b"{}"),
        "resume half",
        "meta.json … missing field",
    ),
    (
        "another configuration than the checkpoint's",
        |p| {
            let text = std::fs::read_to_string(p.join("half/config.toml")).unwrap();
            write(p, "half/config.toml", text.replace("batch = 2", "batch = 3").as_bytes());
        },
        "resume half",
        "config.toml … was changed",
    ),
    ("no such run to evaluate", nothing, "eval nowhere", "nowhere … neither a preset"),
    (
        "an empty folder to evaluate",
        |p| std::fs::create_dir(p.join("empty")).unwrap(),
        "eval empty",
        "not a run",
    ),
    ("a run without a policy", nothing, "eval half", "half … no policy yet … resume"),
    (
        "a policy that is cut off",
        |p| cut(p, "done/policy.safetensors"),
        "eval done",
        "policy.safetensors … whole",
    ),
    (
        "an empty policy",
        |p| write(p, "done/policy.safetensors", b""),
        "eval done",
        "policy.safetensors … whole",
    ),
    (
        "a policy that is no policy",
        |p| write(p, "done/policy.safetensors", &[7; 99]),
        "eval done",
        "policy.saf",
    ),
    (
        "a policy of another shape",
        |p| copy(p, "other/policy.safetensors", "done/policy.safetensors"),
        "eval done",
        "theta.0 … [8, 2] … [4, 2]",
    ),
    (
        "a policy of another kind",
        |p| copy(p, "direct/policy.safetensors", "done/policy.safetensors"),
        "eval done",
        "kind `direct` … `softmax`",
    ),
    (
        "multipliers that are cut off",
        |p| cut(p, "done/multipliers.safetensors"),
        "eval done",
        "multipliers.safetensors … whole",
    ),
    (
        "multipliers of another run",
        |p| copy(p, "done/policy.safetensors", "done/multipliers.safetensors"),
        "eval done",
        "multipliers.safetensors … mu",
    ),
    (
        "usual states that are cut off",
        |p| cut(p, "done/usual_states.json"),
        "eval done --loss 0.1",
        "usual_states.json … parsed",
    ),
    ("a loss above 1", nothing, "eval done --loss 1.5", "--loss … 1.5 … 0 to 1"),
    ("a loss in words", nothing, "eval done --loss much", "much … --loss"),
    ("a silent agent that is not there", nothing, "eval done --silent 0,99", "--silent … 99"),
    (
        "states that are always too old",
        nothing,
        "eval done --delay 3 --max-age 2",
        "--max-age … 2 … delay of 3",
    ),
    ("a picture of a loss above 1", nothing, "plot done --loss 0,2", "--loss … 2 … 0 to 1"),
    ("episodes of a picture without a loss", nothing, "plot done --episodes 9", "--loss"),
    ("no confidence", nothing, "eval done --confidence 0", "--confidence … 0 … between 0 and 1"),
    ("full confidence", nothing, "eval done --confidence 1", "--confidence … 1 … between 0 and 1"),
    ("nan confidence", nothing, "eval done --confidence nan", "--confidence … NaN"),
    ("one episode", nothing, "eval done --episodes 1", "--episodes … 1 … at least 3"),
    ("a preset without a policy", nothing, "eval synthetic", "--policy … missing … uniform"),
    ("an unknown policy", nothing, "eval synthetic --policy wave", "--policy … wave … uniform"),
    ("a run with a policy", nothing, "eval done --policy uniform", "--policy … leave it out"),
    ("settings for a run", nothing, "eval done --set kappa=2", "--set … not with a run"),
    ("no episodes", nothing, "occupancy done --out o.json --episodes 0", "--episodes … 0"),
    ("an unknown format", nothing, "export done --to tflite --out x", "--to … `tflite` … onnx, json, c"),
    (
        "a card of nothing",
        nothing,
        "export done --to json --out x --episodes 2",
        "--episodes … 2 … at least 3",
    ),
    (
        "a card of all",
        nothing,
        "export done --to c --out x --confidence 1",
        "--confidence … 1 … between 0 and 1",
    ),
    ("a start from nowhere", nothing, "train synthetic --init nowhere --out new", "nowhere … cannot be read"),
];

fn cut(path: &Path, name: &str) {
    let bytes = std::fs::read(path.join(name)).unwrap();
    write(path, name, &bytes[..bytes.len() / 2]);
}

/// Every file below a folder with its content.
fn snapshot(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(snapshot(&path));
        } else {
            found.push((path.clone(), std::fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn broken_runs_are_refused_in_one_line_with_nothing_changed() {
    let mut misbehaved = Vec::new();
    for (name, break_it, command, words) in BROKEN {
        let folder = runs();
        break_it(folder.path());
        let before = snapshot(folder.path());
        let output = phalanx(&command.split(' ').collect::<Vec<_>>(), folder.path());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        let mut rest = message.as_str();
        let said = words.split(" … ").all(|word| match rest.split_once(word) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        });
        let one_line = message.starts_with("error: ") && message.trim_end().lines().count() == 1;
        let unchanged = snapshot(folder.path()) == before;
        if output.status.code() != Some(2) || !said || !one_line || !output.stdout.is_empty() || !unchanged {
            misbehaved.push(format!("{name}: {:?}, unchanged: {unchanged}, {message}", output.status.code()));
        }
    }
    assert!(misbehaved.is_empty(), "\n{}", misbehaved.join("\n"));
}

/// Damage that a run survives: it goes back to what is whole, says so, and ends as if nothing had happened.
#[test]
fn damaged_checkpoints_are_passed_over() {
    type Damage = (&'static str, fn(&Path), &'static str);
    let damage: [Damage; 5] = [
        ("state cut off", |p| cut(p, "half/checkpoints/000000020.safetensors"), "damaged"),
        ("no state", |p| remove(p, "half/checkpoints/000000020.safetensors"), "cannot be read"),
        ("half a manifest", |p| cut(p, "half/checkpoints/000000020.json"), "parsed"),
        ("no metrics", |p| remove(p, "half/metrics.csv"), "metrics.csv"),
        ("metrics cut off", |p| cut(p, "half/metrics.csv"), "metrics.csv"),
    ];
    for (name, break_it, word) in damage {
        let folder = runs();
        break_it(folder.path());
        let output = phalanx(&["resume", "half", "--json"], folder.path());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{name}: {message}");
        assert!(message.contains(word) && message.contains("starts at iteration 0"), "{name}: {message}");
        for file in ["metrics.csv", "agents.csv", "policy.safetensors"] {
            let read = |run: &str| std::fs::read(folder.path().join(run).join(file)).unwrap();
            assert!(read("half") == read("done"), "{name}: {file}");
        }
    }
}
