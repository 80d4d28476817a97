//! What a hostile user tried, command by command: numbers, files and folders that must not break anything.
//! Every refusal is one line and exit status 2, a run that cannot go on is one line and status 1, and nothing
//! is left behind that was not there.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const PHALANX: &str = env!("CARGO_BIN_EXE_phalanx");

fn phalanx(arguments: &str, folder: &Path) -> Output {
    Command::new(PHALANX).args(arguments.split_whitespace()).current_dir(folder).output().unwrap()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// One line on standard error that contains all of `wanted`, separated by ` … `, and this exit status.
fn fails(output: &Output, status: i32, wanted: &str, what: &str) {
    let said = words(output);
    let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(output.status.code(), Some(status), "{what}: {said}");
    assert!(errors.len() == 1 && said.ends_with('\n'), "{what}: {said}");
    let others = said.lines().filter(|line| !line.starts_with("warning: ") && !line.starts_with("note: "));
    assert_eq!(others.count(), 1, "{what}: {said}");
    assert!(
        wanted.split(" … ").all(|word| said.contains(word)),
        "{what}: {said:?} should contain {wanted:?}"
    );
    assert!(said.chars().count() < 800 && !said.contains("panicked"), "{what}: {said}");
}

fn succeeds(arguments: &str, folder: &Path) -> Output {
    let output = phalanx(arguments, folder);
    assert!(output.status.success(), "{arguments}: {}", words(&output));
    output
}

const SHORT: &str = "--set iterations=2 --set evaluation.episodes=3 --json";

/// Horizons, discounts and products of them (M1, M2, M3).
#[test]
fn numbers_that_no_machine_holds_are_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for (arguments, wanted) in [
        (
            "train exact --set world.n=3 --set iterations=1 --set horizon=1000000000000 --out a",
            "horizon … at most",
        ),
        (
            "train exact --set world.n=4 --set iterations=1 --set horizon=4611686018427387904 --out a",
            "horizon",
        ),
        ("train synthetic --set horizon=1000000000000 --out a", "horizon … at most"),
        ("train synthetic --set batch=16000000 --set horizon=16000000 --out a", "memory"),
        ("train synthetic --set critic.steps=1000000000000000 --out a", "critic.steps … at most"),
        ("train baselines/mappo-l-pistonball --set batch=16000000 --set horizon=16000000 --out a", "memory"),
        ("train synthetic --set evaluation.episodes=100000000000 --out a", "evaluation.episodes"),
        ("train synthetic --set world.n=1000000000000 --out a", "world.n … allowed"),
        ("train synthetic --set world.n=4000000000 --out a", "world.n … memory"),
        ("train synthetic --threads 100000 --out a", "--threads … 1 to 1024"),
        ("bench line --n 1000000000000", "--n … allowed"),
        ("bench line --n 4000000000", "--n … memory"),
        ("bench line --threads 100000", "--threads … 1 to 1024"),
        ("eval synthetic --policy uniform --set gamma=0.9999999999999999 --episodes 3", "gamma … smaller"),
        ("eval synthetic --policy uniform --set gamma=0.99999999 --episodes 3", "gamma … smaller"),
        ("eval synthetic --policy uniform --set gamma=0.9999999 --episodes 3", "gamma … smaller"),
    ] {
        fails(&phalanx(arguments, here), 2, wanted, arguments);
    }
    assert_eq!(here.read_dir().unwrap().count(), 0);
    succeeds(&format!("train synthetic --set gamma=0.9999999999999999 {SHORT} --out b2"), here);
    fails(&phalanx("eval b2", here), 2, "gamma", "eval");
    fails(&phalanx("occupancy b2 --out o.json", here), 2, "gamma", "occupancy");
    assert!(!here.join("o.json").exists());
}

/// `RAYON_NUM_THREADS`, and threads that cannot be made (L1, L2).
#[test]
fn threads_are_limited_and_named() {
    let folder = tempfile::tempdir().unwrap();
    for (number, wanted) in
        [("100000", "RAYON_NUM_THREADS … 100000 … 1024"), ("999999", "RAYON_NUM"), ("x", "RAYON_NUM")]
    {
        let mut command = Command::new(PHALANX);
        let command = command.args(["train", "synthetic", "--out", "a"]).env("RAYON_NUM_THREADS", number);
        fails(&command.current_dir(folder.path()).output().unwrap(), 2, wanted, number);
    }
    let sweep = "base = \"synthetic\"\nseeds = 3\n[set]\niterations = 2\n\"evaluation.episodes\" = 3\n";
    std::fs::write(folder.path().join("sw.toml"), sweep).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), open).unwrap();
    for processes in ["1", "2", "3", "5"] {
        for arguments in [
            "sweep sw.toml --jobs 4 --out sw",
            "train synthetic --threads 64 --out t",
            "eval synthetic --policy uniform --threads 64",
        ] {
            // As an ordinary user: root may make as many as it likes.
            let mut command = Command::new("prlimit");
            command.args([&format!("--nproc={processes}:{processes}"), PHALANX]).args(arguments.split(' '));
            let output = command.current_dir(folder.path()).uid(65_534).output().unwrap();
            let said = words(&output);
            if said.contains("failed to") || output.status.success() {
                println!("skipped: the limit does not hold here: {said}");
                continue;
            }
            fails(&output, 2, "could not be made", arguments);
        }
        let _ = std::fs::remove_dir_all(folder.path().join("sw"));
    }
}

/// What is too large for numbers stops a run in the iteration that finds it (M5, M9).
#[test]
fn a_number_that_is_not_finite_stops_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let rows = "[[0.5, 0.5, 0.25, 0.75, 1, 0, 0, 1], [0.5, 0.5, 0.25, 0.75, 1, 0, 0, 1]]";
    let rho = "{\"kind\": \"product\", \"local\": [[0.5, 0.5], [0.5, 0.5]]}";
    for (name, f) in [
        ("scaled", "\"r\": [0, 1, 0, 1], \"scale\": 1e308, \"offset\": 1e308"),
        ("single", "\"r\": [0, -1e308, 0, 0]"),
        ("square", "\"r\": [0, 1e155, 0, 1e155]"),
        ("large", "\"r\": [1e308, 1e308, 1e308, 1e308]"),
    ] {
        let f = format!("{{\"kind\": \"linear\", {f}}}");
        let model = format!(
            "{{\"n\": 2, \"gamma\": 0.9, \"state_sizes\": [2, 2], \"action_sizes\": [2, 2], \"edges\": [[0, 1]], \
             \"parents\": [[0], [1]], \"transition\": {rows}, \"rho\": {rho}, \"f\": [{f}, {f}]}}"
        );
        std::fs::write(here.join(format!("{name}.json")), model).unwrap();
        let config = format!("[world]\nkind = \"table\"\nfile = \"{name}.json\"\n");
        std::fs::write(here.join(format!("{name}.toml")), config).unwrap();
    }
    for (k, (arguments, wanted)) in [
        ("train synthetic --set objective.scale=1e200", "iteration 0, agent 0 … smaller rewards and scales"),
        ("train synthetic --set objective.scale=1e308", "iteration 0, agent"),
        ("train synthetic --set constraint.0.scale=1e308 --set constraint.0.allow_infeasible=true", "iteration 0, agent"),
        ("train synthetic --set constraint.0.at_least=-1e308", "iteration 0, agent 0: g times the number of agents"),
        ("train pistonball20 --set constraint=[{kind=\"action_l2sq\",at_least=1e308,allow_infeasible=true}]", "iteration 0, agent 0"),
        ("train wireless-grid --set actor.entropy=1 --set actor.entropy_schedule={kind=\"linear\",hold=0,end=1e308}", "iteration … agent"),
        ("train scaled.toml", "iteration 0, agent 0"),
        ("train single.toml", "iteration 0, agent 0"),
        ("train square.toml", "iteration 0, agent 0 … smaller rewards and scales"),
        ("train large.toml", "iteration 0, agent 0"),
        ("train baselines/mappo-l-pistonball --set iterations=1 --set batch=1 --set policy.output_gain=1e100", "mappo.learning_rate"),
    ].iter().enumerate() {
        let begin = Instant::now();
        let output = phalanx(&format!("{arguments} {SHORT} --out run{k}"), here);
        fails(&output, 1, wanted, arguments);
        assert!(begin.elapsed() < Duration::from_secs(20), "{arguments} took {:?}", begin.elapsed());
    }
    // Where all numbers are finite, so is everything that is written.
    succeeds(&format!("train synthetic --set objective.scale=1e100 {SHORT} --out large"), here);
    for run in here.read_dir().unwrap().flatten() {
        for name in ["metrics.csv", "agents.csv", "returns.csv", "agents-summary.csv", "outcome.json"] {
            let text = std::fs::read_to_string(run.path().join(name)).unwrap_or_default().to_lowercase();
            let is_finite = !["nan", "inf"]
                .iter()
                .any(|word| text.split([',', '\n', ' ']).any(|cell| cell.trim_start_matches('-') == *word));
            assert!(is_finite, "{}/{name}: {text}", run.path().display());
        }
    }
}

/// Devices, pipes and folders in place of files (L3).
#[test]
fn only_regular_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    assert!(Command::new("mkfifo").arg(here.join("pipe")).status().unwrap().success());
    std::fs::File::create(here.join("huge.toml")).unwrap().set_len(3 << 30).unwrap();
    for file in ["/dev/zero", "/dev/urandom", "pipe", "/"] {
        for command in [
            "train",
            "exact",
            "sweep",
            "replay pistonball",
            "config",
            "train synthetic --set network.kind=edges --set network.file=",
        ] {
            let joint = if command.ends_with('=') { "" } else { " " };
            let begin = Instant::now();
            let output = phalanx(&format!("{command}{joint}{file}"), here);
            let what = format!("{command} {file}");
            assert_eq!(output.status.code(), Some(2), "{what}: {}", words(&output));
            assert!(begin.elapsed() < Duration::from_secs(5), "{what}");
        }
    }
    fails(&phalanx("train huge.toml", here), 2, "huge.toml … at most 1073741824", "a sparse file");
}

/// A run of six iterations, stopped after so many; none if it is only begun.
fn part_of_a_run(path: &Path, iterations: Option<usize>) {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use phalanx::run::{Config, Provenance, Run, Session};

    let settings = [("iterations", "6"), ("evaluation.episodes", "3"), ("checkpoint.seconds", "0")];
    let config = Config::preset("synthetic").unwrap().with_all(settings).unwrap();
    let mut run = Run::begin(Session::new(&config).unwrap(), path, Provenance::default()).unwrap();
    if let Some(iterations) = iterations {
        let stop = Arc::new(AtomicBool::new(false));
        let decide = |done: usize| stop.store(done >= iterations, Ordering::Relaxed);
        run.train(&stop, |summary| decide(summary.iteration + 1)).unwrap();
    }
}

/// Checkpoints whose manifest or state lies (M7, L4, L5).
#[test]
fn forged_checkpoints_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for (name, iterations) in [("a", Some(3)), ("b", Some(3)), ("state", Some(3)), ("c", None)] {
        part_of_a_run(&here.join(name), iterations);
    }
    // As an earlier version would have written them: without checksums of their own.
    for iteration in [2, 3] {
        let path = here.join(format!("a/checkpoints/00000000{iteration}.json"));
        let text = std::fs::read_to_string(&path).unwrap();
        let mut manifest: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
        manifest.retain(|key, _| !["crc32c", "logs_crc32c"].contains(&key.as_str()));
        manifest["pieces"][0]["last"] = u32::MAX.into();
        std::fs::write(&path, serde_json::to_string(&manifest).unwrap()).unwrap();
    }
    let mut limited = Command::new("prlimit");
    let limited =
        limited.args(["--as=4000000000", PHALANX, "resume", "a"]).current_dir(here).output().unwrap();
    fails(&limited, 2, "names agents 0 to 4294967295 … has 10", "pieces");

    let manifest = here.join("b/checkpoints/000000003.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("\"metrics_bytes\": ", "\"metrics_bytes\": 1")).unwrap();
    let said = words(&succeeds("resume b --json", here));
    assert!(said.contains("checkpoint 3 cannot be used") && said.contains("is damaged"), "{said}");
    let rows = std::fs::read_to_string(here.join("b/metrics.csv")).unwrap();
    assert!(rows.starts_with("iteration,") && rows.lines().count() == 7, "{rows}");

    // A state under another number, with a manifest that fits it.
    let of = |ending: &str| [2, 3].map(|k| here.join(format!("state/checkpoints/00000000{k}.{ending}")));
    let ([_, newest], [older, _]) = (of("json"), of("safetensors"));
    std::fs::copy(&older, of("safetensors")[1].clone()).unwrap();
    let text = std::fs::read_to_string(&newest).unwrap();
    let mut manifest: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    manifest.retain(|key, _| !["crc32c", "logs_crc32c"].contains(&key.as_str()));
    let older: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&of("json")[0]).unwrap()).unwrap();
    manifest.insert("pieces".into(), older["pieces"].clone());
    std::fs::write(&newest, serde_json::to_string(&manifest).unwrap()).unwrap();
    fails(&phalanx("resume state", here), 2, "checkpoint 3 is that of iteration 2", "state");

    // Before the first checkpoint a configuration is guarded as well.
    let config = std::fs::read_to_string(here.join("c/config.toml")).unwrap();
    std::fs::write(here.join("c/config.toml"), config.replace("seed = 1", "seed = 2")).unwrap();
    fails(&phalanx("resume c", here), 2, "c/config.toml … was changed after the run began", "config");
}

/// Leftovers of a kill do not stop a run or a sweep from beginning (M6).
#[test]
fn a_folder_that_was_not_yet_a_run_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let sweep = "base = \"synthetic\"\nseeds = 2\n[set]\niterations = 2\n\"evaluation.episodes\" = 3\n";
    std::fs::write(here.join("sw.toml"), sweep).unwrap();
    for name in ["limbo/seed1", "q", "r"] {
        std::fs::create_dir_all(here.join(name)).unwrap();
        std::fs::write(here.join(name).join("lock"), "").unwrap();
    }
    for name in
        ["limbo/seed1/config.toml.tmp", "q/config.toml.tmp", "r/init.safetensors", "r/init.safetensors.tmp"]
    {
        std::fs::write(here.join(name), "x").unwrap();
    }
    std::fs::write(here.join("limbo/.phalanx"), "sweep\n").unwrap();
    succeeds("sweep sw.toml --out limbo --json", here);
    for name in ["q", "r"] {
        succeeds(&format!("train synthetic {SHORT} --out {name}"), here);
    }
    assert!(!here.join("r/init.safetensors").exists());
    // Somebody else's file with such a name is not ours.
    std::fs::create_dir(here.join("theirs")).unwrap();
    std::fs::write(here.join("theirs/config.toml.tmp"), "precious").unwrap();
    fails(&phalanx("train synthetic --out theirs", here), 2, "not empty", "theirs");
}

/// Folders and files of others (M8, L6, L11).
#[test]
fn nobody_elses_files_are_touched() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let sweep = "base = \"synthetic\"\nseeds = 1\n[set]\niterations = 2\n\"evaluation.episodes\" = 3\n";
    for name in ["sw.toml", "...toml", "..toml"] {
        std::fs::write(here.join(name), sweep).unwrap();
    }
    succeeds(&format!("train synthetic {SHORT} --out run"), here);
    for (name, file) in [
        ("mine", "REPORT.md"),
        ("mine", "report.html"),
        ("docs", "summary.md"),
        ("pictures", "step-0001.txt"),
        ("figures", "return.svg"),
    ] {
        std::fs::create_dir_all(here.join(name)).unwrap();
        std::fs::write(here.join(name).join(file), "precious").unwrap();
    }
    let config = std::fs::read(here.join("run/config.toml")).unwrap();
    let before: Vec<_> = entries(here);
    for (arguments, wanted) in [
        ("paper report --out mine", "mine … holds no experiment"),
        ("paper report --out /", "/ … holds no experiment"),
        ("paper rate --out mine", "mine is not empty … not made by `phalanx paper`"),
        ("render run --out /", "/ is not empty … not made by `phalanx render`"),
        ("render run --out pictures", "pictures is not empty"),
        ("render run --out run/", "run/ is not empty"),
        ("plot run run --out figures", "figures is not empty … not made by `phalanx plot`"),
        ("sweep sw.toml --out docs", "docs is not empty … not made by `phalanx sweep`"),
        ("sweep ...toml", "--out … is needed"),
        ("sweep ..toml", "--out … is needed"),
        ("occupancy run --out run/config.toml", "--out … run/config.toml is a file of the run itself"),
        ("occupancy run --out run/policy.safetensors", "a file of the run itself"),
        ("occupancy run --out docs/../run/./tb/../meta.json", "a file of the run itself"),
        ("occupancy run --out run/checkpoints/x.json", "a file of the run itself"),
        ("export run --to json --out run", "run is not empty … not made by `phalanx export --to json`"),
        ("train synthetic --out run", "run is not empty: it holds a run; resume it"),
    ] {
        fails(&phalanx(arguments, here), 2, wanted, arguments);
    }
    assert_eq!(entries(here), before);
    assert_eq!(std::fs::read(here.join("run/config.toml")).unwrap(), config);
    // Folders of one's own are taken again.
    for arguments in [
        "sweep sw.toml --json",
        "plot run run",
        "render run --steps 2 --out frames/",
        "occupancy run --episodes 3 --out run/o.json",
        "export run --to onnx --episodes 3 --out run/models",
    ] {
        succeeds(arguments, here);
        succeeds(arguments, here);
    }
}

/// All files below a folder with their sizes.
fn entries(folder: &Path) -> Vec<(std::path::PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in folder.read_dir().unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(entries(&entry.path()))
        } else {
            found.push((entry.path(), entry.metadata().unwrap().len()))
        }
    }
    found.sort();
    found
}

/// Long values, control characters, usage errors, help that nobody can read (L7, L8, L9).
#[test]
fn messages_are_one_short_line() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let long = "x".repeat(100_000);
    std::fs::write(here.join("edges.txt"), format!("0 1\n{}\n", "7".repeat(150_000))).unwrap();
    for (arguments, wanted) in [
        (format!("train synthetic --set kappa={long}"), "kappa … characters"),
        (format!("train synthetic --set {long}=1"), "characters"),
        (format!("train {long}"), "characters"),
        (
            "train synthetic --set network.kind=edges --set network.file=edges.txt".into(),
            "edges.txt … line 2",
        ),
        ("train synthetic --sett kappa=1".into(), "--sett … --help"),
        ("train".into(), "PRESET|FILE.toml … --help"),
        ("train synthetic --set -1".into(), "-1"),
        ("trian synthetic".into(), "trian"),
        ("eval".into(), "--help"),
        ("bench line --n x".into(), "--n"),
    ] {
        fails(&phalanx(&arguments, here), 2, wanted, &arguments.chars().take(60).collect::<String>());
    }
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let help = Command::new(PHALANX).arg("--help").stdout(full).output().unwrap();
    fails(&help, 1, "cannot write to standard output", "--help");

    let name = "constraint.0.name=\"\\u001b[31m<script>\\n|x\"";
    let train = [
        "train",
        "synthetic",
        "--set",
        "iterations=2",
        "--set",
        "evaluation.episodes=3",
        "--set",
        name,
        "--out",
        "run",
    ];
    let output = Command::new(PHALANX).args(train).current_dir(here).output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && !table.contains('\u{1b}') && table.contains("\\u{1b}[31m"), "{table}");
    let sweep = "base = \"synthetic\"\nseeds = 1\n[set]\niterations = 2\n\"evaluation.episodes\" = 3\n\
                 [grid]\n\"constraint.0.name\" = [\"a\\n|b\\u001b[31m<script>\"]\n";
    std::fs::write(here.join("sw.toml"), sweep).unwrap();
    let output = succeeds("sweep sw.toml --out sw", here);
    let text = std::fs::read_to_string(here.join("sw/summary.md")).unwrap();
    for text in [text, String::from_utf8(output.stdout).unwrap()] {
        assert!(!text.contains('\u{1b}') && !text.contains("<script>") && text.contains("\\|b"), "{text}");
        assert!(text.lines().nth(2).unwrap().ends_with('|'), "{text}");
    }
}

/// Full disks and files that may not grow (L11, L12).
#[test]
fn what_cannot_be_written_leaves_nothing_and_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    succeeds(&format!("train synthetic {SHORT} --out run"), here);
    let limited = |arguments: &str| {
        let mut command = Command::new("prlimit");
        command.args(["--fsize=8192", PHALANX]).args(arguments.split_whitespace());
        command.current_dir(here).output().unwrap()
    };
    fails(
        &limited("train synthetic --set iterations=100000 --json --out big"),
        1,
        "cannot write … File too large … phalanx resume big",
        "train",
    );
    for (arguments, left) in [
        ("render run --steps 5 --out film.gif", "film.gif"),
        ("plot run run --out figures", "figures/return.png"),
    ] {
        fails(&limited(arguments), 1, "cannot write … File too large", arguments);
        assert!(!here.join(left).exists(), "{left} is there");
    }
}
