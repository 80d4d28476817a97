//! Animated GIFs: one palette for all frames, and of each frame only what has changed.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use gif::{Encoder, Frame, Repeat};
use rayon::prelude::*;

use super::palette::{self, Histogram, Palette};
use super::raster::Image;

/// Frames per second that can be shown: browsers slow faster ones down.
pub const FPS: RangeInclusive<f64> = 0.1..=50.0;

/// How long frames are shown, in hundredths of a second: each, and the last one, before it begins again.
fn delays(fps: f64) -> [u16; 2] {
    let each = (100.0 / fps).round() as u16;
    [each, each.max(200)]
}

/// The GIF of `frames` images of equal size, as bytes; plays for ever.
///
/// `draw` gives the k-th image. It is asked for each one twice, since the palette must be known before the
/// first is written and many images are more than fit in memory.
pub fn encode(
    frames: usize,
    fps: f64,
    draw: impl Fn(usize) -> anyhow::Result<Image> + Sync,
) -> anyhow::Result<Vec<u8>> {
    let (mut histogram, mut size) = (Histogram::new(), None);
    in_order(frames, &draw, |_, image| {
        palette::count(&mut histogram, &image);
        size = Some((image.width, image.height));
        Ok(())
    })?;
    let (width, height) = size.ok_or_else(|| anyhow::anyhow!("an animation without frames"))?;
    let palette = Palette::of(&histogram);
    // Filled up to 256 colours, so that [`AS_BEFORE`] is one of them.
    let mut colours = palette.bytes();
    colours.resize(3 * (Palette::MOST + 1), 0);
    let mut encoder = Encoder::new(Vec::new(), u16::try_from(width)?, u16::try_from(height)?, &colours)?;
    encoder.set_repeat(Repeat::Infinite)?;
    let [each, last] = delays(fps);
    let mut before: Vec<u8> = Vec::new();
    in_order(frames, &draw, |k, image| {
        let now = palette.numbers(&image);
        let delay = if k + 1 == frames { last } else { each };
        encoder.write_frame(&changes(&before, &now, width, delay)?)?;
        before = now;
        Ok(())
    })?;
    Ok(encoder.into_inner()?)
}

/// Draws on all threads, a few frames at a time, and hands the images over one by one.
fn in_order(
    frames: usize,
    draw: &(impl Fn(usize) -> anyhow::Result<Image> + Sync),
    mut take: impl FnMut(usize, Image) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    const AT_ONCE: usize = 16;
    for first in (0..frames).step_by(AT_ONCE) {
        let last = frames.min(first + AT_ONCE);
        let images: Vec<Image> = (first..last).into_par_iter().map(draw).collect::<anyhow::Result<_>>()?;
        (first..last).zip(images).try_for_each(|(k, image)| take(k, image))?;
    }
    Ok(())
}

/// The number that means "as before".
const AS_BEFORE: u8 = Palette::MOST as u8;

/// The smallest rectangle that holds all changes; the whole image if there is none before it.
fn changes(before: &[u8], now: &[u8], width: usize, delay: u16) -> anyhow::Result<Frame<'static>> {
    let is_first = before.is_empty();
    let changed = |at: usize| is_first || before[at] != now[at];
    let height = now.len() / width;
    let row_changed = |&y: &usize| (y * width..(y + 1) * width).any(changed);
    let column_changed = |&x: &usize| (0..height).any(|y| changed(y * width + x));
    // If nothing has changed the frame still takes its time; one pixel will do.
    let top = (0..height).find(row_changed).unwrap_or(0);
    let bottom = (0..height).rfind(row_changed).unwrap_or(0);
    let left = (0..width).find(column_changed).unwrap_or(0);
    let right = (0..width).rfind(column_changed).unwrap_or(0);
    let pixels = (top..=bottom).flat_map(|y| (left..=right).map(move |x| y * width + x));
    let buffer: Vec<u8> = pixels.map(|at| if changed(at) { now[at] } else { AS_BEFORE }).collect();
    Ok(Frame {
        delay,
        transparent: (!is_first).then_some(AS_BEFORE),
        top: u16::try_from(top)?,
        left: u16::try_from(left)?,
        width: u16::try_from(right - left + 1)?,
        height: u16::try_from(bottom - top + 1)?,
        buffer: Cow::Owned(buffer),
        ..Frame::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(pixels: &[[u8; 3]], width: usize) -> Image {
        Image { width, height: pixels.len() / width, pixels: pixels.to_vec() }
    }

    #[test]
    fn frames_come_back_as_they_were() {
        let (w, r, b) = ([255; 3], [213, 94, 0], [0, 114, 178]);
        let images = [[w, w, w, w, r, w], [w, w, w, w, b, w], [w, w, w, w, b, w], [r, w, w, w, b, b]]
            .map(|p| image(&p, 3));
        let bytes = encode(images.len(), 4.0, |k| Ok(images[k].clone())).unwrap();
        let mut options = gif::DecodeOptions::new();
        options.set_color_output(gif::ColorOutput::Indexed);
        let mut decoder = options.read_info(&bytes[..]).unwrap();
        let palette = decoder.global_palette().unwrap().to_vec();
        let mut canvas = vec![[0; 3]; 6];
        let mut found = Vec::new();
        while let Some(frame) = decoder.read_next_frame().unwrap() {
            let places = (0..frame.height).flat_map(|y| (0..frame.width).map(move |x| (x, y)));
            for ((x, y), &number) in places.zip(frame.buffer.iter()) {
                if Some(number) != frame.transparent {
                    let at = usize::from(frame.top + y) * 3 + usize::from(frame.left + x);
                    canvas[at].copy_from_slice(&palette[3 * usize::from(number)..][..3]);
                }
            }
            found.push((canvas.clone(), frame.buffer.len(), frame.delay));
        }
        let shown: Vec<_> = found.iter().map(|(canvas, ..)| image(canvas, 3)).collect();
        assert_eq!(shown, images);
        assert_eq!(found.iter().map(|f| f.1).collect::<Vec<_>>(), [6, 1, 1, 6]);
        assert_eq!(found.iter().map(|f| f.2).collect::<Vec<_>>(), [25, 25, 25, 200]);
    }

    #[test]
    fn speeds_that_a_gif_cannot_have_are_refused() {
        assert_eq!((delays(50.0), delays(0.1)), ([2, 200], [1000, 1000]));
        assert!(FPS.contains(&50.0) && FPS.contains(&0.1));
        for fps in [0.0, -1.0, 51.0, f64::NAN, f64::INFINITY] {
            assert!(!FPS.contains(&fps));
        }
    }
}
