//! PNGs.

use super::palette::{self, Histogram, Palette};
use super::raster::Image;

/// An image as the bytes of a PNG.
pub fn encode(image: &Image) -> anyhow::Result<Vec<u8>> {
    write(image, image.pixels.as_flattened(), |encoder| encoder.set_color(png::ColorType::Rgb))
}

/// The same with the colours of a GIF: for the many pictures of a film.
pub fn encode_small(image: &Image) -> anyhow::Result<Vec<u8>> {
    let mut histogram = Histogram::new();
    palette::count(&mut histogram, image);
    let palette = Palette::of(&histogram);
    write(image, &palette.numbers(image), |encoder| {
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_palette(palette.bytes());
        // Numbers of colours are in no order, so neighbours do not foretell each other.
        encoder.set_filter(png::Filter::NoFilter);
    })
}

fn write(
    image: &Image,
    data: &[u8],
    set_up: impl FnOnce(&mut png::Encoder<'_, &mut Vec<u8>>),
) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder =
        png::Encoder::new(&mut bytes, u32::try_from(image.width)?, u32::try_from(image.height)?);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    set_up(&mut encoder);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(data)?;
    writer.finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_colours_come_back_as_they_were() {
        let (w, r, b) = ([255; 3], [213, 94, 0], [0, 114, 178]);
        let image = Image { width: 3, height: 2, pixels: vec![w, r, w, b, b, w] };
        let bytes = encode_small(&image).unwrap();
        let mut decoder = png::Decoder::new(std::io::Cursor::new(&bytes));
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        let mut found = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut found).unwrap();
        assert_eq!(found, image.pixels.as_flattened());
    }
}
