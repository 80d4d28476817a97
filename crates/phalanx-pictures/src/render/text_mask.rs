//! Text as coverage: how much of each pixel is ink.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kuva::backend::raster::RasterBackend;
use kuva::render::render::{Primitive, Scene, TextAnchor, TextSpan};

use crate::plot::text::{LONGEST_LABEL, shortened};

/// The size in which texts are laid out, before they are scaled, and the row of their baseline.
const SIZE: u32 = 20;
const BASELINE: f64 = 24.0;

/// A text in one size, row by row.
#[derive(Debug)]
pub struct TextMask {
    pub width: usize,
    /// 0 is none, 255 all.
    pub coverage: Vec<u8>,
    /// Row of the baseline.
    pub baseline: i32,
}

/// What a text is known by: its letters, whether they are bold, and the bits of their size.
type Key = (String, bool, u32);

/// Texts that have been drawn before: most of an animation's texts are the same in every frame.
#[derive(Debug, Default)]
pub struct LetterCase {
    known: Mutex<HashMap<Key, Arc<TextMask>>>,
}

impl LetterCase {
    /// The text in letters of `pixels` height (an em).
    pub fn get(&self, content: &str, bold: bool, pixels: f32) -> anyhow::Result<Arc<TextMask>> {
        // Nothing that can panic is done while the texts are locked.
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (content.to_string(), bold, pixels.to_bits());
        if let Some(letters) = known().get(&key) {
            return Ok(letters.clone());
        }
        let letters = Arc::new(TextMask::draw(content, bold, pixels)?);
        known().insert(key, letters.clone());
        Ok(letters)
    }
}

impl TextMask {
    fn draw(content: &str, bold: bool, pixels: f32) -> anyhow::Result<TextMask> {
        // As a picture, black on white: the plotting crate has the only font in the program, and shows it in
        // pictures alone.
        let content = shortened(content, 2 * LONGEST_LABEL);
        // No letter in use is wider.
        let width = f64::from(SIZE) * 1.25 * (content.chars().count() + 1) as f64;
        let mut scene = Scene::new(width, 1.6 * f64::from(SIZE));
        let span = TextSpan { bold, ..TextSpan::plain(content) };
        let (x, y, anchor) = (0.1 * f64::from(SIZE), BASELINE, TextAnchor::Start);
        scene.add(Primitive::RichText { x, y, spans: vec![span], size: SIZE, anchor, color: None });
        let scale = pixels / SIZE as f32;
        let bytes = RasterBackend::new().with_scale(scale).render_scene(&scene);
        let bytes = bytes.map_err(|reason| anyhow::anyhow!("no text: {reason}"))?;
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info()?;
        let size = reader.output_buffer_size().unwrap_or(0);
        let mut picture = vec![0; size];
        let info = reader.next_frame(&mut picture)?;
        let (width, height) = (info.width as usize, info.height as usize);
        let channels = info.color_type.samples();
        // What is not white is ink.
        let ink = |x: usize, y: usize| 255 - picture[(y * width + x) * channels];
        // Without the room on both sides, so that a text stands where it begins and ends.
        let has_ink = |&x: &usize| (0..height).any(|y| ink(x, y) > 0);
        let left = (0..width).find(has_ink).unwrap_or(0);
        let right = (0..width).rfind(has_ink).map_or(left, |x| x + 1);
        let coverage = (0..height).flat_map(|y| (left..right).map(move |x| (x, y))).map(|(x, y)| ink(x, y));
        // As the crate cuts it.
        let baseline = (BASELINE as f32 * scale) as i32;
        Ok(TextMask { width: right - left, coverage: coverage.collect(), baseline })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_stand_on_their_baseline() {
        let case = LetterCase::default();
        for pixels in [9.0, 11.0, 13.0, 26.0] {
            let letters = case.get("HE", false, pixels).unwrap();
            let rows: Vec<&[u8]> = letters.coverage.chunks(letters.width).collect();
            let has_ink = |&y: &usize| rows[y].iter().any(|&c| c > 99);
            let below = (0..rows.len()).rfind(has_ink).unwrap() + 1;
            assert_eq!(below as i32, letters.baseline, "{pixels}");
            // Capitals of this font are 0.73 of an em high.
            let above = (0..rows.len()).find(has_ink).unwrap();
            assert!(((below - above) as f32 - 0.73 * pixels).abs() <= 1.0, "{pixels}: {above} to {below}");
        }
    }

    #[test]
    fn longer_texts_are_wider_and_empty_ones_are_nothing() {
        let case = LetterCase::default();
        let width = |text: &str| case.get(text, false, 12.0).unwrap().width;
        assert_eq!(width(""), 0);
        assert!(width("step 10") > width("step 1"));
        assert_eq!(case.known.lock().unwrap().len(), 3);
    }
}
