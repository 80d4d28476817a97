//! An episode that is ready to be drawn, in any of the forms in which pictures are written.

use phalanx::run::Evaluator;

use super::animation;
use super::episode::film_of;
use super::film::{self, Film};
use super::raster::{Image, Raster};
use super::still;

/// An episode with its title.
pub struct Reel {
    film: Box<dyn Film>,
    title: String,
    /// Whether the episode ended with its last step, so that there are no more.
    pub ended: bool,
    raster: Raster,
}

/// Pixels of a sheet per unit of length: it is for print. Frames are for screens.
pub(super) const SHEET_SCALE: f32 = 2.0;

impl Reel {
    /// Steps at most.
    pub const MOST_STEPS: usize = 1000;
    /// Episodes of a seed that have numbers of their own.
    pub const MOST_EPISODES: u32 = 1 << 24;

    /// Episode number `k` of those that `phalanx eval` runs with `seed`, over at most `steps` steps.
    pub fn of_policy(
        evaluator: &Evaluator,
        k: u32,
        seed: u64,
        steps: usize,
        title: String,
    ) -> phalanx::Result<Self> {
        let (film, ended) = film_of(evaluator, k, seed, steps)?;
        Ok(Reel { film, title, ended, raster: Raster::default() })
    }

    /// Steps of the episode.
    pub fn steps(&self) -> usize {
        self.film.steps()
    }

    /// What has been achieved up to and including a step.
    pub fn status(&self, step: usize) -> String {
        self.film.status(step)
    }

    /// The step that has a name in this world, from 0.
    pub fn moment(&self, name: &str) -> Option<usize> {
        self.film.moments().into_iter().find(|(other, _)| *other == name).map(|(_, step)| step)
    }

    /// A step as a PNG, in all its colours.
    pub fn frame(&self, step: usize) -> anyhow::Result<Vec<u8>> {
        still::encode(&self.image(step)?)
    }

    /// A step as a PNG of at most 255 colours, which is a third of the size.
    pub fn small_frame(&self, step: usize) -> anyhow::Result<Vec<u8>> {
        still::encode_small(&self.image(step)?)
    }

    /// Steps in one PNG.
    pub fn sheet(&self, shown: &[usize]) -> anyhow::Result<Vec<u8>> {
        still::encode(&self.raster.draw(&film::sheet(&*self.film, &self.title, shown), SHEET_SCALE)?)
    }

    /// Steps as an animated GIF, with so many per second.
    pub fn animation(&self, shown: &[usize], fps: f64) -> anyhow::Result<Vec<u8>> {
        let each = self.film.moments_per_step().max(1);
        let fps = (each as f64 * fps).min(*animation::FPS.end());
        animation::encode(each * shown.len(), fps, |k| {
            self.raster.draw(&film::moment(&*self.film, &self.title, shown[k / each], k % each), 1.0)
        })
    }

    fn image(&self, step: usize) -> anyhow::Result<Image> {
        self.raster.draw(&film::frame(&*self.film, &self.title, step), 1.0)
    }
}
