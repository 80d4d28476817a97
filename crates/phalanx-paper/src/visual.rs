//! `visual-pistonball` and `visual-wireless`: what trained policies do, as the paper shows it. Paper:
//! fig:visualization, fig:neighbor, fig:wire-visual.

use phalanx::run::{Evaluator, Outcome};
use rayon::prelude::*;
use serde::Deserialize;

use super::catalogue;
use super::context::{ExperimentContext, Length};
use super::setting::Setting;
use super::sheet::{Sheet, number, optional};
use phalanx_pictures::render::{Reel, frame_name};

/// Columns of `results.csv`: one row per policy, with the evaluation of its run, the episode that is shown,
/// and which share of the first twenty are solved.
const COLUMNS: &str = "pictures,preset,set,seed,return,violation,episode,steps,solved,status";

/// One seed is enough to look at.
const SEED: u64 = 1;
/// Seed of the episodes, and how many are looked through for one that is solved.
const EPISODES_SEED: u64 = 1;
const EPISODES: u32 = 20;

/// A policy to be shown: one of a panel, and what is drawn of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    /// What was trained: a setting of another experiment.
    experiment: String,
    method: String,
    setting: String,
    /// What stands above its pictures.
    title: String,
    /// Moments and the names of their pictures.
    stills: Vec<(String, String)>,
    /// Whether its whole episode is drawn.
    is_film: bool,
    /// Whether its episodes come to an end of their own, which is looked for.
    is_solvable: bool,
}

impl Shown {
    /// What was trained.
    pub fn setting(&self) -> anyhow::Result<Setting> {
        catalogue::setting(&self.experiment, &self.method, &self.setting)
    }
}

/// Draws the policies and writes `results.csv`.
pub fn make(context: &ExperimentContext<'_>, all: &[Shown]) -> anyhow::Result<()> {
    let settings = all.iter().map(Shown::setting).collect::<anyhow::Result<Vec<Setting>>>()?;
    // Those of panels are shared, and there already if these were made.
    let runs = context.train_in_folders(&settings, SEED)?.into_iter().zip(&settings);
    let runs = runs.map(|(run, setting)| run.map_err(|reason| anyhow::anyhow!("{}: {reason}", setting.name)));
    let runs = runs.collect::<anyhow::Result<Vec<Outcome>>>()?;
    let mut results = Sheet::new(COLUMNS);
    for ((shown, setting), outcome) in all.iter().zip(&settings).zip(runs) {
        context.reproduction.check()?;
        let evaluator = Evaluator::from_run(&outcome.run, &context.reproduction.registry)?;
        let most =
            if let Length::Cut(_) = context.reproduction.length { 12 } else { evaluator.config().horizon };
        let mut solved = Vec::new();
        for k in (0..EPISODES).filter(|_| shown.is_solvable) {
            if evaluator.episode(k, EPISODES_SEED, most)?.ended() {
                solved.push(k);
            }
        }
        let episode = solved.first().copied().unwrap_or(0);
        let title = context.reproduction.length.titled(format!("{}: episode {episode}", shown.title));
        let reel = Reel::of_policy(&evaluator, episode, EPISODES_SEED, most, title)?;
        draw(context, &reel, shown)?;
        let pictures: Vec<&str> = shown.stills.iter().map(|(_, name)| name.as_str()).collect();
        results.push(vec![
            pictures.join(" "),
            setting.preset.clone(),
            setting.set.join(" "),
            SEED.to_string(),
            optional(outcome.return_),
            number(outcome.violation_total),
            episode.to_string(),
            reel.steps().to_string(),
            if shown.is_solvable { number(solved.len() as f64 / f64::from(EPISODES)) } else { String::new() },
            reel.status(reel.steps().saturating_sub(1)),
        ]);
    }
    context.sheet("results.csv", &results)
}

/// Draws the stills, and the whole episode as `figures/episode.gif` and `frames/step-….png`.
fn draw(context: &ExperimentContext<'_>, reel: &Reel, shown: &Shown) -> anyhow::Result<()> {
    for (moment, name) in &shown.stills {
        let step = reel.moment(moment).unwrap_or(0);
        context.write(&format!("figures/{name}.png"), &reel.small_frame(step)?)?;
    }
    if shown.is_film {
        let steps: Vec<usize> = (0..reel.steps()).collect();
        let frames = steps.par_iter().map(|&step| anyhow::Ok((step, reel.small_frame(step)?)));
        for (step, frame) in frames.collect::<anyhow::Result<Vec<_>>>()? {
            context.write(&format!("frames/{}", frame_name(step)), &frame)?;
        }
        context.reproduction.check()?;
        context.write("figures/episode.gif", &reel.animation(&steps, 3.0)?)?;
    }
    Ok(())
}
