//! JSON documents that notice damage: their last field is the checksum of everything before it.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::{document, durable, files};
use crate::base::error::ensure;
use crate::{Error, Result};

/// What stands before the checksum.
const SEAL: &str = ",\n  \"crc32c\": ";

/// Writes an object, durably.
pub fn write(path: &Path, value: &dyn erased_serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Error::write(path, e.into()))?;
    durable::replace_bytes(path, seal(&text).as_bytes())
}

/// The text of an object with its checksum.
pub fn seal(object: &str) -> String {
    sealed(object.strip_suffix('}').unwrap_or(object).trim_end())
}

/// An object without its end, with its checksum and end.
fn sealed(content: &str) -> String {
    format!("{content}{SEAL}{}\n}}\n", crc32c::crc32c(content.as_bytes()))
}

/// Reads what [`write`] wrote. Earlier versions wrote no checksum; such a document has no other keys than
/// `earlier`, so that one whose last key is damaged is not taken for one.
pub fn read<T: DeserializeOwned>(path: &Path, earlier: &[&str]) -> Result<T> {
    parse(&files::read_text(path)?, path, earlier)
}

/// As [`read`], with the text at hand.
pub fn parse<T: DeserializeOwned>(text: &str, path: &Path, earlier: &[&str]) -> Result<T> {
    match text.rsplit_once(SEAL) {
        Some((content, _)) => {
            ensure(sealed(content) == text, || Error::file(path, DAMAGED))?;
            document::parse(&format!("{content}\n}}"), path, &[])
        }
        None => {
            let keys: serde_json::Map<String, serde_json::Value> = document::parse(text, path, &[])?;
            let unknown = keys.keys().any(|key| !earlier.contains(&key.as_str()));
            ensure(!unknown, || Error::file(path, DAMAGED))?;
            document::parse(text, path, &[])
        }
    }
}

const DAMAGED: &str = "is damaged: its checksum is not that of its content";

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Content {
        name: String,
        numbers: Vec<f64>,
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let content = Content { name: "{\"}\n".into(), numbers: vec![0.1, 2.0] };
        write(&path, &content).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let read = || read::<Content>(&path, &["name", "numbers"]);
        assert_eq!(read().unwrap(), content);
        for place in 0..8 * whole.len() {
            let mut damaged = whole.clone();
            damaged[place / 8] ^= 1 << (place % 8);
            std::fs::write(&path, damaged).unwrap();
            assert!(read().is_err(), "bit {place}");
        }
        // As earlier versions wrote it, and with a key that they did not know.
        std::fs::write(&path, r#"{"name": "a", "numbers": []}"#).unwrap();
        assert_eq!(read().unwrap().name, "a");
        std::fs::write(&path, r#"{"name": "a", "numbers": [], "crc32b": 7}"#).unwrap();
        assert!(read().unwrap_err().to_string().contains("is damaged"));
    }
}
