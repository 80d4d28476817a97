//! Do completions and manual pages know every command, and can the shells and `man` read them?

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn phalanx(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_phalanx")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// The commands as `--help` lists them, inner ones with the names of the outer in front: `eval`,
/// `new junctions`.
fn commands(outer: &str) -> Vec<String> {
    let arguments: Vec<&str> = outer.split_whitespace().chain(["--help"]).collect();
    let help = text(phalanx(&arguments).stdout);
    let Some(listed) = help.split("Commands:").nth(1).and_then(|rest| rest.split("Options:").next()) else {
        return Vec::new();
    };
    let lines = listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = lines.filter_map(|line| line.split_whitespace().next()).filter(|&name| name != "help");
    names
        .map(|name| format!("{outer} {name}").trim().to_owned())
        .flat_map(|name| std::iter::once(name.clone()).chain(commands(&name)))
        .collect()
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = text(phalanx(&["completions", shell]).stdout);
        for word in commands("").iter().flat_map(|command| command.split_whitespace()) {
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert!(script.contains("confidence"), "{shell}");
    }
}

/// What a person gets who types `phalanx cer` and presses the tabulator.
#[test]
fn bash_completes() {
    if Command::new("bash").arg("--version").output().is_err() {
        eprintln!("skipped: no bash");
        return;
    }
    let mut bash = Command::new("bash").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = bash.stdin.take().unwrap();
    input.write_all(&phalanx(&["completions", "bash"]).stdout).unwrap();
    input
        .write_all(
            b"\nCOMP_WORDS=(phalanx cer) COMP_CWORD=1\n_phalanx phalanx cer phalanx\necho \"${COMPREPLY[@]}\"\n\
              COMP_WORDS=(phalanx eval --conf) COMP_CWORD=2\n_phalanx phalanx --conf eval\necho \"${COMPREPLY[@]}\"\n",
        )
        .unwrap();
    drop(input);
    assert_eq!(text(bash.wait_with_output().unwrap().stdout), "certify\n--confidence\n");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("share/man1");
    // Once more into the same folder is fine.
    for _ in 0..2 {
        phalanx(&["man", "--out", out.to_str().unwrap()]);
    }
    let commands = commands("");
    assert!(commands.contains(&"train".into()) && commands.contains(&"man".into()), "{commands:?}");
    let pages = commands.iter().map(|name| format!("phalanx-{}.1", name.replace(' ', "-")));
    let mut expected: Vec<String> = pages.chain(["phalanx.1".into()]).collect();
    expected.sort();
    let mut found: Vec<String> =
        out.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    assert_eq!(found, expected);
    let page = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let (program, eval) = (page("phalanx.1"), page("phalanx-eval.1"));
    assert!(program.contains(".TH phalanx 1") && program.contains("phalanx\\-certify(1)"), "{program}");
    // A page names the whole command, and its flags.
    assert!(eval.contains("phalanx\\-eval") && eval.contains("\\-\\-confidence"), "{eval}");
    for program in ["mandoc", "groff"] {
        if Command::new(program).arg("--version").output().is_err() {
            eprintln!("skipped: no {program}");
            continue;
        }
        let options: &[&str] =
            if program == "groff" { &["-man", "-Tutf8", "-k", "-ww", "-z"] } else { &["-Tlint", "-Werror"] };
        let output = Command::new(program).args(options).arg(out.join("phalanx-eval.1")).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{}", text(output.stderr));
    }
}
