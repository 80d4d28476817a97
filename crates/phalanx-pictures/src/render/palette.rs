//! The colours of an animation: a GIF has room for 256.

use std::collections::HashMap;

use super::raster::Image;

/// Colours in use, with how many pixels have them.
pub type Histogram = HashMap<[u8; 3], u64>;

/// Adds the pixels of an image.
pub fn count(histogram: &mut Histogram, image: &Image) {
    for run in image.pixels.chunk_by(|a, b| a == b) {
        *histogram.entry(run[0]).or_default() += run.len() as u64;
    }
}

/// At most [`Palette::MOST`] colours such that every colour in use is near one of them.
#[derive(Debug)]
pub struct Palette {
    colours: Vec<[u8; 3]>,
    nearest: HashMap<[u8; 3], u8>,
}

impl Palette {
    /// One number is left for "as before".
    pub const MOST: usize = 255;

    /// Chooses colours, the most frequent first, so that the flat ones of a drawing are exact. A colour is
    /// left out if one within `reach` (in each of red, green and blue) has been chosen; `reach` is as small
    /// as possible: 0 if all have room.
    pub fn of(histogram: &Histogram) -> Palette {
        let mut by_count: Vec<([u8; 3], u64)> = histogram.iter().map(|(&c, &n)| (c, n)).collect();
        by_count.sort_by_key(|&(colour, count)| (std::cmp::Reverse(count), colour));
        let used: Vec<[u8; 3]> = by_count.into_iter().map(|(colour, _)| colour).collect();
        let colours = (0..=u8::MAX).find_map(|reach| chosen(&used, reach)).unwrap_or_default();
        // The first of equals, so that a colour that was chosen is itself.
        let nearest = |&colour: &[u8; 3]| {
            let number = (0..colours.len()).min_by_key(|&k| distance(colours[k], colour)).unwrap_or(0);
            (colour, number as u8)
        };
        let nearest = used.iter().map(nearest).collect();
        Palette { colours, nearest }
    }

    /// Red, green, blue of every colour.
    pub fn bytes(&self) -> Vec<u8> {
        self.colours.concat()
    }

    /// The numbers of an image's colours, all of which must have been in the histogram.
    pub fn numbers(&self, image: &Image) -> Vec<u8> {
        let mut numbers = Vec::with_capacity(image.pixels.len());
        for run in image.pixels.chunk_by(|a, b| a == b) {
            let number = self.nearest.get(&run[0]).copied().unwrap_or(0);
            numbers.resize(numbers.len() + run.len(), number);
        }
        numbers
    }
}

/// None if more than [`Palette::MOST`] colours are farther than `reach` from one another.
fn chosen(used: &[[u8; 3]], reach: u8) -> Option<Vec<[u8; 3]>> {
    let mut chosen: Vec<[u8; 3]> = Vec::new();
    for &colour in used {
        if chosen.iter().all(|&other| distance(other, colour) > reach) {
            chosen.push(colour);
        }
        if chosen.len() > Palette::MOST {
            return None;
        }
    }
    Some(chosen)
}

fn distance(a: [u8; 3], b: [u8; 3]) -> u8 {
    a.into_iter().zip(b).map(|(a, b)| a.abs_diff(b)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn palette(pixels: Vec<[u8; 3]>) -> (Palette, Image) {
        let image = Image { width: pixels.len(), height: 1, pixels };
        let mut histogram = Histogram::new();
        count(&mut histogram, &image);
        (Palette::of(&histogram), image)
    }

    fn worst(pixels: Vec<[u8; 3]>) -> u8 {
        let (palette, image) = palette(pixels);
        assert!(palette.colours.len() <= Palette::MOST);
        let shown = palette.numbers(&image);
        let errors =
            image.pixels.iter().zip(shown).map(|(&p, k)| distance(p, palette.colours[usize::from(k)]));
        errors.max().unwrap()
    }

    #[test]
    fn few_colours_are_exact_and_many_are_close() {
        assert_eq!(worst((0..255).map(|k| [k, 255 - k, 7]).collect()), 0);
        // 4096 colours in steps of 17: with a reach of 34, each chosen one stands for up to 3 × 3 × 3 or
        // more.
        let many = (0..4096).map(|k: u32| [k % 16, k / 16 % 16, k / 256].map(|c| 17 * c as u8)).collect();
        let error = worst(many);
        assert!((17..=51).contains(&error), "{error}");
    }

    #[test]
    fn the_most_frequent_colours_are_exact() {
        let mut pixels: Vec<[u8; 3]> =
            (0..3000u32).map(|k| [k as u8, (k >> 4) as u8, (k >> 2) as u8]).collect();
        let flat = [[0, 114, 178], [1, 114, 178], [255, 255, 255]];
        for colour in flat.iter().take(1).chain(&flat[2..]) {
            pixels.extend([*colour; 500]);
        }
        let (palette, image) = palette(pixels);
        let numbers = palette.numbers(&image);
        for (pixel, number) in image.pixels.iter().zip(numbers) {
            if *pixel == flat[0] || *pixel == flat[2] {
                assert_eq!(palette.colours[usize::from(number)], *pixel);
            }
        }
    }
}
