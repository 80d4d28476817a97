//! Pictures inside the page. As an image of its own, an SVG cannot meet the names of another, nor run anything.

use std::path::Path;

use phalanx::Error;

use super::super::base64;

/// The file as a data URI.
pub fn inline(file: &Path) -> anyhow::Result<String> {
    let kind = match file.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => "svg+xml",
        _ => "png",
    };
    let bytes = std::fs::read(file).map_err(|error| Error::file(file, format!("cannot be read: {error}")))?;
    Ok(format!("data:image/{kind};base64,{}", base64::encode(&bytes)))
}
