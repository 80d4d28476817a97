//! Pages for browsers that need nothing else: templates, their common style, and pictures inside them.

mod base64;
mod template;

pub use template::fill;

/// The style that all pages share.
pub const STYLE: &str = include_str!("style.css");

/// A picture of the type `image/KIND` as a data URI: as an image of its own, an SVG cannot meet the names of
/// another, nor run anything.
pub fn data_uri(kind: &str, bytes: &[u8]) -> String {
    format!("data:image/{kind};base64,{}", base64::encode(bytes))
}
