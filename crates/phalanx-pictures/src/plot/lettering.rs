//! Texts of all pictures: what can be written, how wide it is, and its letters.

use kuva::backend::raster::RasterBackend;
use kuva::render::render::{Primitive, Scene, TextAnchor, TextSpan};

/// Labels are cut to this many characters, other texts to twice as many.
pub const LONGEST_LABEL: usize = 60;

/// Text without control characters (XML has no way to write them). Of a long text the middle is left out:
/// names of runs tend to differ at their ends.
pub fn shortened(content: &str, longest: usize) -> String {
    let clean = |c: char| if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') { ' ' } else { c };
    let text: Vec<char> = content.chars().map(clean).collect();
    if text.len() <= longest {
        return text.into_iter().collect();
    }
    let (head, tail) = (longest / 2, longest - longest / 2 - 1);
    text[..head].iter().chain(['…'].iter()).chain(&text[text.len() - tail..]).collect()
}

/// Text for a label, where the crate would take what is between two `$` for a formula.
pub fn plain(content: &str, longest: usize) -> String {
    shortened(content, longest).replace('$', "\\$")
}

/// About how wide a text is drawn: the crate does not tell.
pub fn text_width(content: &str, size: u32) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | ' ' | '\u{2009}' => 0.31,
        'f' | 't' | 'r' | 'I' | '(' | ')' | '-' => 0.4,
        'c' | 's' | 'z' | 'k' | 'v' | 'x' | 'y' | '_' => 0.57,
        'm' | 'w' | 'M' | 'W' | '−' | '×' | '…' | '%' => 0.95,
        c if c.is_ascii() => 0.63,
        _ => 0.8,
    };
    f64::from(size) * content.chars().map(em).sum::<f64>()
}

/// A line of text as a PNG, black on white, with its baseline in row [`letter_baseline`]: the crate has the only
/// font in the program, and shows it in pictures alone.
pub fn lettering(content: &str, bold: bool, pixels: f32) -> Result<Vec<u8>, String> {
    let content = shortened(content, 2 * LONGEST_LABEL);
    // No letter in use is wider.
    let width = f64::from(LETTER_SIZE) * 1.25 * (content.chars().count() + 1) as f64;
    let mut scene = Scene::new(width, 1.6 * f64::from(LETTER_SIZE));
    let span = TextSpan { bold, ..TextSpan::plain(content) };
    let (size, anchor) = (LETTER_SIZE, TextAnchor::Start);
    let (x, y) = (0.1 * f64::from(LETTER_SIZE), LETTER_BASELINE);
    scene.add(Primitive::RichText { x, y, spans: vec![span], size, anchor, color: None });
    RasterBackend::new().with_scale(pixels / LETTER_SIZE as f32).render_scene(&scene)
}

/// Row of the baseline in a picture of [`lettering`].
pub fn letter_baseline(pixels: f32) -> i32 {
    // As the crate cuts it.
    (LETTER_BASELINE as f32 * (pixels / LETTER_SIZE as f32)) as i32
}

/// The size in which [`lettering`] lays out, before it is scaled.
const LETTER_SIZE: u32 = 20;
const LETTER_BASELINE: f64 = 24.0;
