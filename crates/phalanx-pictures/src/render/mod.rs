//! Episodes as animations, as one picture, or as a picture per step.
//!
//! `episode` runs an episode and turns it into a world's `film::Film`; a world draws a step as shapes
//! (`line`, `wireless`, `pistonball`, `platoon`, `epidemic`, `junctions`; all others: `states`); `film` puts
//! a title, a status and a legend around them, `raster` turns them into pixels, and `animation` and `still`
//! into files. [`Board`] draws a moment of a game that somebody else plays.

mod animation;
mod board;
mod epidemic;
mod episode;
mod film;
mod graph_map;
mod junctions;
mod line;
mod palette;
mod pistonball;
mod platoon;
mod raster;
mod reel;
mod shape;
mod states;
mod still;
mod text_mask;
mod verdicts;
mod wireless;

pub use animation::FPS;
pub use board::{Board, Moment};
pub use episode::{agent_map, check_map, verdict_map};
pub use reel::Reel;

/// Names that sort by step, from 0.
pub fn frame_name(step: usize) -> String {
    format!("step-{:04}.png", step + 1)
}

#[cfg(test)]
mod tests {
    use super::raster::Raster;
    use super::*;

    /// Every colour of an animation is close to what was drawn, and the flat ones are exact.
    #[test]
    fn an_animation_of_the_grid_keeps_its_colours() {
        let film = wireless::invented(5, 5, 3, 4);
        let raster = Raster::default();
        let images: Vec<raster::Image> =
            (0..4).map(|k| raster.draw(&film::frame(&film, "grid", k), 1.0).unwrap()).collect();
        let bytes = animation::encode(4, 2.0, |k| Ok(images[k].clone())).unwrap();
        let mut options = gif::DecodeOptions::new();
        options.set_color_output(gif::ColorOutput::RGBA);
        let mut decoder = options.read_info(&bytes[..]).unwrap();
        let mut shown = vec![[0u8; 3]; images[0].pixels.len()];
        for image in &images {
            let frame = decoder.read_next_frame().unwrap().unwrap();
            let places = (0..frame.height).flat_map(|y| (0..frame.width).map(move |x| (x, y)));
            for ((x, y), pixel) in places.zip(frame.buffer.chunks_exact(4)) {
                if pixel[3] > 0 {
                    let at = usize::from(frame.top + y) * image.width + usize::from(frame.left + x);
                    shown[at].copy_from_slice(&pixel[..3]);
                }
            }
            let error = |(a, b): (&[u8; 3], &[u8; 3])| a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max();
            let worst = image.pixels.iter().zip(&shown).filter_map(error).max();
            assert!(worst <= Some(16), "{worst:?}");
            let flat = image.pixels.iter().zip(&shown).filter(|(a, b)| a == b).count();
            assert!(flat * 100 > 95 * image.pixels.len(), "{flat}");
        }
    }
}
