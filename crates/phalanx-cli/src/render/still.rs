//! PNGs.

use super::raster::Image;

/// An image as the bytes of a PNG.
pub fn encode(image: &Image) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder =
        png::Encoder::new(&mut bytes, u32::try_from(image.width)?, u32::try_from(image.height)?);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(image.pixels.as_flattened())?;
    writer.finish()?;
    Ok(bytes)
}
