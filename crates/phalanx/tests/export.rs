//! Does exported C act as the program does? Compiled, and compared on random observations. Python does the
//! same for ONNX and JSON (`crates/phalanx-py/tests/test_export.py`).
#![cfg(unix)]

use std::fmt::Write;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use phalanx::base::stream::{Place, Purpose, Sequence, Stream};
use phalanx::run::export::{ExportSettings, Format, export};
use phalanx::run::{Config, Evaluator};
use phalanx::world::Trajectory;

/// Random observations of all agents together.
const OBSERVATIONS: usize = 10_000;
/// Probabilities may differ by so much.
const TOLERANCE: f64 = 1e-6;

const LARGE_NETWORKS: (&str, &str) = ("policy.output_gain", "1.0");
const SPREAD: (&str, &str) = ("policy.init_std", "1.0");

/// Reads an agent and what it observes from each line; writes probabilities.
const STATES_MAIN: &str = "#include <stdio.h>\n#include \"policy.h\"\n\
int main(void) {\n    static unsigned char states[1 << 16];\n    double law[PHALANX_MOST_ACTIONS];\n    int agent, state, k, n;\n\
    while (scanf(\"%d\", &agent) == 1) {\n        for (k = 0; k < phalanx_members(agent); k++) {\n\
            if (scanf(\"%d\", &state) != 1) return 1;\n            states[k] = (unsigned char)state;\n        }\n\
        n = phalanx_law(agent, states, law);\n        if (n != phalanx_actions(agent)) return 1;\n\
        for (k = 0; k < n; k++) printf(\"%.17g \", law[k]);\n        printf(\"\\n\");\n    }\n\
    states[0] = 255;\n    return phalanx_law(-1, states, law) != -1 || phalanx_law(0, states, law) != -1;\n}\n";
const NUMBERS_MAIN: &str = "#include <stdio.h>\n#include \"policy.h\"\n\
int main(void) {\n    static float numbers[1 << 16];\n    double law[PHALANX_MOST_ACTIONS];\n    int agent, k, n;\n\
    while (scanf(\"%d\", &agent) == 1) {\n        for (k = 0; k < phalanx_numbers(agent); k++)\n\
            if (scanf(\"%f\", &numbers[k]) != 1) return 1;\n\
        n = phalanx_law_of_numbers(agent, numbers, law);\n        if (n != phalanx_actions(agent)) return 1;\n\
        for (k = 0; k < n; k++) printf(\"%.17g \", law[k]);\n        printf(\"\\n\");\n    }\n\
    return phalanx_law_of_numbers(PHALANX_AGENTS, numbers, law) != -1;\n}\n";

/// A policy of random parameters.
fn policy(preset: &str, settings: &[(&str, &str)]) -> Evaluator {
    Evaluator::new(&Config::preset(preset).unwrap().with_all(settings.iter().copied()).unwrap()).unwrap()
}

fn compiled(evaluator: &Evaluator, folder: &Path, main: &str) {
    let out = folder.to_path_buf();
    let settings = ExportSettings { to: Format::C, out, episodes: 3, seed: 1, confidence: 0.9 };
    export(evaluator, &settings).unwrap();
    std::fs::write(folder.join("main.c"), main).unwrap();
    let strict = ["-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror"];
    let files = ["main.c", "policy.c", "-o", "main", "-lm"];
    let status = Command::new("cc").args(strict).args(files).current_dir(folder).status().unwrap();
    assert!(status.success(), "{folder:?}");
}

/// What the compiled program says to `input`, line by line.
fn said(folder: &Path, input: &str) -> Vec<Vec<f64>> {
    let mut program = Command::new(folder.join("main"));
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_string());
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split_whitespace().map(|p| p.parse().unwrap()).collect()).collect()
}

fn random(seed: u64) -> Sequence {
    Stream::new(seed).sequence(Place { purpose: Purpose::Evaluation, iteration: 0, trajectory: 0 }, 0)
}

/// The largest difference from the program's own laws, over random observations of every agent in turn.
fn largest_difference(evaluator: &Evaluator) -> f64 {
    let (policy, world) = (evaluator.policy(), evaluator.world());
    let (groups, reads_numbers) = (policy.groups(), policy.rows_read(0).is_some());
    let folder = tempfile::tempdir().unwrap();
    compiled(evaluator, folder.path(), if reads_numbers { NUMBERS_MAIN } else { STATES_MAIN });
    let (mut words, mut input, mut expected) = (random(7), String::new(), Vec::new());
    let mut moment = Trajectory::for_world(world, 1);
    for agent in (0..policy.agents()).cycle().take(OBSERVATIONS) {
        let mut law = vec![0.0; policy.actions(agent)];
        write!(input, "{agent}").unwrap();
        if reads_numbers {
            let numbers: Vec<f32> =
                (0..policy.rows_read(agent).unwrap()).map(|_| words.normal() as f32).collect();
            numbers.iter().for_each(|x| write!(input, " {x:?}").unwrap());
            assert!(policy.law_of_rows(agent, &numbers, &mut law));
        } else {
            for &member in groups.row(agent) {
                let state = (words.next_u32() as usize % world.states(member as usize)) as u8;
                write!(input, " {state}").unwrap();
                *moment.pair_mut(member as usize, 0).0 = state;
            }
            policy.law(agent, &moment, 0, &mut law);
        }
        input.push('\n');
        expected.push(law);
    }
    let found = said(folder.path(), &input);
    assert_eq!(found.len(), expected.len());
    let pairs = found.iter().zip(&expected);
    let differences = pairs.flat_map(|(a, b)| {
        assert_eq!(a.len(), b.len());
        a.iter().zip(b).map(|(a, b)| (a - b).abs())
    });
    differences.fold(0.0, f64::max)
}

#[test]
fn c_acts_as_tables_do() {
    for kind in ["softmax", "direct"] {
        let evaluator = policy("synthetic", &[("policy.kind", kind), SPREAD]);
        assert_eq!(largest_difference(&evaluator), 0.0, "{kind}");
    }
}

#[test]
fn c_acts_as_linear_policies_do() {
    for features in ["own", "additive", "pair"] {
        for (preset, more) in [("wireless", ("kappa", "1")), ("epidemic", ("kappa", "2"))] {
            let settings =
                [("policy.kind", "linear"), ("policy.features", features), SPREAD, more, ("kappa_q", "2")];
            let difference = largest_difference(&policy(preset, &settings));
            assert!(difference < 1e-12, "{preset}, {features}: {difference:e}");
        }
    }
}

#[test]
fn c_acts_as_networks_do() {
    for (preset, settings) in [
        // Symbols; a view of states; a view of what is shared, of one moment and of several.
        ("synthetic", vec![("policy.kind", "network"), LARGE_NETWORKS]),
        ("wireless", vec![("policy.kind", "network"), ("policy.hidden", "[24, 16]"), LARGE_NETWORKS]),
        ("platoon-slowdown", vec![LARGE_NETWORKS]),
        ("pistonball", vec![LARGE_NETWORKS]),
    ] {
        let difference = largest_difference(&policy(preset, &settings));
        println!("{preset}: {difference:e}");
        assert!(difference < TOLERANCE, "{preset}: {difference:e}");
    }
}
