//! The commands that repeat a run.

use std::path::{Path, PathBuf};

use phalanx::base::text;
use phalanx_pictures::plot;

use super::Judging;
use crate::shell::quoted;

/// The policy that a run began with, in its folder, if it was given one.
const INITIAL_POLICY: &str = "init.safetensors";
/// What `--init` looks for in a folder.
const POLICY: &str = "policy.safetensors";

/// What a reader must know of a run that did not begin from nothing.
pub fn beginning(run: &Path) -> Option<&'static str> {
    let text = "This run began with the policy of another one, which its folder has kept as init.safetensors. The first two \
                commands put it where `--init` looks for it.";
    run.join(INITIAL_POLICY).is_file().then_some(text)
}

/// They train a run of the same numbers beside this one, and judge it.
pub fn commands(run: &Path, judging: Judging) -> Vec<String> {
    let repeated = beside(run, "repeated");
    let (config, out) = (quoted(&run.join("config.toml")), quoted(&repeated));
    let mut commands = Vec::new();
    let mut train = format!("phalanx train {config} --out {out}");
    if run.join(INITIAL_POLICY).is_file() {
        let start = beside(run, "start");
        let (from, to) = (quoted(&run.join(INITIAL_POLICY)), quoted(&start.join(POLICY)));
        commands.extend([format!("mkdir {}", quoted(&start)), format!("cp {from} {to}")]);
        train += &format!(" --init {}", quoted(&start));
    }
    let Judging { episodes, seed, confidence } = judging;
    let eval = format!("phalanx eval {out} --episodes {episodes} --seed {seed} --confidence {confidence}");
    commands.extend([train, eval]);
    commands.iter().map(|command| text::shown(command)).collect()
}

/// A folder beside the run's, named after it.
fn beside(run: &Path, what: &str) -> PathBuf {
    let name = format!("{}-{what}", plot::name_of(run));
    if run.file_name().is_some() { run.with_file_name(name) } else { run.join("..").join(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUDGING: Judging = Judging { episodes: 400, seed: 1, confidence: 0.99 };

    #[test]
    fn the_repeated_run_is_another_one_and_is_what_is_judged() {
        let commands = commands(Path::new("my runs/a"), JUDGING);
        let [train, eval] = &commands[..] else { panic!("{commands:?}") };
        assert_eq!(
            train,
            &format!("phalanx train {} --out {}", q("my runs/a/config.toml"), q("my runs/a-repeated"))
        );
        assert_eq!(
            eval,
            &format!("phalanx eval {} --episodes 400 --seed 1 --confidence 0.99", q("my runs/a-repeated"))
        );
    }

    fn q(path: &str) -> String {
        quoted(Path::new(path))
    }
}
