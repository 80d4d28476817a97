//! `phalanx render`: an episode as an animation, as one picture, or as a picture per step.

use std::path::{Path, PathBuf};

use phalanx::Error;
use phalanx::base::{durable, own_folder};
use phalanx::run::{Registry, RunFolder};
use phalanx_pictures::render::{FPS, Reel, frame_name};
use rayon::prelude::*;

use crate::eval::PolicyArgs;
use crate::target::Target;
use crate::{check_range, print};

#[derive(clap::Args)]
pub struct RenderArgs {
    #[command(flatten)]
    policy: PolicyArgs,
    /// Seed of the episode; `phalanx eval` runs the same episodes with the same seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Which of the seed's episodes, from 0.
    #[arg(long, value_name = "K", default_value_t = 0)]
    episode: u32,
    /// Steps to run [default: the horizon, at most 250].
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// Draw these steps alone, e.g. 1,10,20 [default: all; in one PNG at most 12, evenly spaced].
    #[arg(long, value_name = "STEPS", value_delimiter = ',')]
    only: Vec<usize>,
    /// Steps per second of an animation.
    #[arg(long, default_value_t = 2.0)]
    fps: f64,
    /// FILE.gif: animation; FILE.png: one picture; DIR/: a PNG per step [default: plots/episode.gif of the
    /// run, or episode.gif].
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Steps that are drawn without being asked for.
const MOST_UNASKED: usize = 250;
/// Steps that are put into one picture without being asked for, and at all.
const SHEET_UNASKED: usize = 12;
const SHEET_MOST: usize = 48;

/// `phalanx render`.
pub fn render(args: &RenderArgs, registry: &Registry) -> anyhow::Result<()> {
    let target = Target::of(args.out.as_deref(), &args.policy.source)?;
    check_range("fps", args.fps, FPS)?;
    check(&target)?;
    args.steps.map_or(Ok(()), |steps| check_range("steps", steps, 1..=Reel::MOST_STEPS))?;
    check_range("episode", args.episode, 0..=Reel::MOST_EPISODES - 1)?;
    let evaluator = args.policy.open(registry)?;
    let horizon = evaluator.config().horizon;
    let steps = args.steps.unwrap_or(horizon.min(MOST_UNASKED));
    let reel = Reel::of_policy(&evaluator, args.episode, args.seed, steps, title(args))?;
    let shown = shown_steps(&args.only, reel.steps(), &target)?;
    prepare(&target)?;
    let written = write(&reel, &shown, &target, args.fps)?;
    let mut message = format!("{written}: {}", steps_in_words(shown.len(), reel.steps()));
    if reel.ended {
        message += " (the episode ended there)";
    } else if reel.steps() < horizon && args.steps.is_none() {
        message += &format!(" (an episode in training has {horizon}; --steps draws more)");
    }
    print(&format!("{message}\n"));
    Ok(())
}

/// Whether the target may be written to.
fn check(target: &Target) -> phalanx::Result<()> {
    match target {
        Target::Frames(folder) => own_folder::check(folder, COMMAND, || holds_frames(folder)),
        file => RunFolder::check_output(file.path()),
    }
}

/// Makes the folder that the target is in.
fn prepare(target: &Target) -> phalanx::Result<()> {
    match target {
        Target::Frames(folder) => own_folder::claim(folder, COMMAND, || holds_frames(folder)),
        file if file.folder().as_os_str().is_empty() => Ok(()),
        file => durable::create_dirs(file.folder()).map_err(|error| Error::write(file.folder(), error)),
    }
}

/// Which command folders of pictures belong to.
const COMMAND: &str = "render";

/// Whether a folder holds pictures of steps and nothing else, as earlier versions left it.
fn holds_frames(folder: &Path) -> bool {
    let mut names = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.all(|name| name.to_str().is_some_and(is_frame))
}

fn is_frame(name: &str) -> bool {
    name.starts_with("step-") && name.ends_with(".png")
}

fn title(args: &RenderArgs) -> String {
    format!("{}: episode {} of seed {}", args.policy.title(), args.episode, args.seed)
}

fn steps_in_words(shown: usize, steps: usize) -> String {
    let plural = if steps == 1 { "" } else { "s" };
    if shown == steps { format!("{steps} step{plural}") } else { format!("{shown} of {steps} steps") }
}

/// The steps to draw, from 0.
fn shown_steps(only: &[usize], steps: usize, target: &Target) -> phalanx::Result<Vec<usize>> {
    if let Some(step) = only.iter().find(|step| !(1..=steps).contains(step)) {
        return Err(Error::argument("only", format!("step {step}; the episode has steps 1 to {steps}")));
    }
    let is_sheet = matches!(target, Target::Sheet(_));
    if is_sheet && only.len() > SHEET_MOST {
        let message = format!("{} steps in one picture; allowed are {SHEET_MOST}", only.len());
        return Err(Error::argument("only", message));
    }
    if !only.is_empty() {
        return Ok(only.iter().map(|step| step - 1).collect());
    }
    if is_sheet && steps > SHEET_UNASKED {
        // The first, the last, and what is between them.
        return Ok((0..SHEET_UNASKED).map(|k| k * (steps - 1) / (SHEET_UNASKED - 1)).collect());
    }
    Ok((0..steps).collect())
}

/// Draws the steps and writes them; says what was written.
fn write(reel: &Reel, shown: &[usize], target: &Target, fps: f64) -> anyhow::Result<String> {
    let save = durable::replace_bytes;
    match target {
        Target::Animation(file) => save(file, &reel.animation(shown, fps)?)?,
        Target::Sheet(file) => save(file, &reel.sheet(shown)?)?,
        Target::Frames(folder) => {
            shown.par_iter().try_for_each(|&step| {
                anyhow::Ok(save(&folder.join(frame_name(step)), &reel.frame(step)?)?)
            })?;
            let others = other_frames(folder, shown);
            let note =
                if others == 0 { String::new() } else { format!(" (beside {others} that were there)") };
            return Ok(format!("{}{note}", folder.join("step-….png").display()));
        }
    }
    Ok(target.path().display().to_string())
}

/// How many pictures of steps are in the folder that were not drawn now: a program that makes a film of the
/// folder would take them, too.
fn other_frames(folder: &Path, shown: &[usize]) -> usize {
    let ours: Vec<String> = shown.iter().map(|&step| frame_name(step)).collect();
    let is_other = |name: &str| is_frame(name) && !ours.iter().any(|ours| ours == name);
    let entries = folder.read_dir().into_iter().flatten().flatten();
    entries.filter(|entry| is_other(&entry.file_name().to_string_lossy())).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sheet_has_the_first_and_the_last_step() {
        let (sheet, frames) = (Target::Sheet("a.png".into()), Target::Frames("a/".into()));
        assert_eq!(shown_steps(&[], 125, &sheet).unwrap()[..3], [0, 11, 22]);
        assert_eq!(shown_steps(&[], 125, &sheet).unwrap().last(), Some(&124));
        assert_eq!(shown_steps(&[], 12, &sheet).unwrap(), (0..12).collect::<Vec<_>>());
        assert_eq!(shown_steps(&[], 125, &frames).unwrap().len(), 125);
        assert_eq!(shown_steps(&[3, 1], 5, &frames).unwrap(), [2, 0]);
        for only in [vec![0], vec![6], vec![1; 49]] {
            assert!(shown_steps(&only, 5, &sheet).is_err());
        }
    }
}
