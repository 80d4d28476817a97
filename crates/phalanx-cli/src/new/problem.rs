//! `phalanx new problem`: a small problem that trains at once, with a comment at everything that one would
//! change.

use std::fmt::Write;
use std::path::PathBuf;

use crate::shell::quoted;

#[derive(clap::Args)]
pub struct ProblemArgs {
    /// Folder to write to; it is made if it is not there.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Agents: machines one behind the other.
    #[arg(long, value_name = "N", default_value_t = 4)]
    agents: usize,
}

const MODEL: &str = "model.toml";
const CONFIG: &str = "problem.toml";
/// More would make a file that nobody reads.
const MOST_AGENTS: usize = 100;

pub fn run(args: &ProblemArgs) -> anyhow::Result<()> {
    crate::check_range("agents", args.agents, 1..=MOST_AGENTS)?;
    let files = [(MODEL, model(args.agents)), (CONFIG, include_str!("problem.toml").into())];
    let run = quoted(&args.out.join("run"));
    let config = quoted(&args.out.join(CONFIG));
    let commands = [
        format!("phalanx train {config} --out {run}"),
        format!("phalanx eval {run} --until-decided"),
        format!("phalanx report {run}"),
        format!("phalanx certify {config}"),
    ];
    super::write(&args.out, &files, &commands)
}

/// Laws of the next state, fresh or worn: of the first machine, and of one that gets parts from the one
/// before it.
const FIRST: &str = "\
  [ # fresh: run,      service
    0.9, 0.1,  0.9, 0.1,
    # worn:  run,      service
    0.0, 1.0,  0.9, 0.1],
";
const OTHER: &str = "\
  [ # before: run, run;  run, service;  service, run;  service, service
    # fresh behind a fresh one
    0.9, 0.1,  0.9, 0.1,  0.9, 0.1,  0.9, 0.1,
    # worn behind a fresh one
    0.0, 1.0,  0.9, 0.1,  0.0, 1.0,  0.9, 0.1,
    # fresh behind a worn one, which sends bad parts
    0.6, 0.4,  0.9, 0.1,  0.6, 0.4,  0.9, 0.1,
    # worn behind a worn one
    0.0, 1.0,  0.9, 0.1,  0.0, 1.0,  0.9, 0.1],
";

fn model(agents: usize) -> String {
    let list =
        |entry: &dyn Fn(usize) -> String, count: usize| (0..count).map(entry).collect::<Vec<_>>().join(", ");
    let same = |text: &'static str| list(&|_| text.into(), agents);
    let edges = list(&|i| format!("[{i}, {}]", i + 1), agents - 1);
    let parents = list(&|i| if i == 0 { "[0]".into() } else { format!("[{}, {i}]", i - 1) }, agents);
    let mut transition = String::from(FIRST);
    for _ in 1..agents {
        transition += OTHER;
    }
    let mut text = include_str!("model.toml")
        .replace("{agents}", &agents.to_string())
        .replace("{twos}", &same("2"))
        .replace("{edges}", &edges)
        .replace("{parents}", &parents)
        .replace("{transition}", &transition)
        .replace("{starts}", &same("[1.0, 0.0]"));
    for _ in 0..agents {
        // Rows: fresh and worn. Columns: run and service.
        let _ = writeln!(text, "[[f]]\nkind = \"linear\"\nr = [[1.0, 0.0], [0.95, 0.0]]");
    }
    text
}
