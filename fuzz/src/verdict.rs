//! How far an input got.

use phalanx::Result;

/// What became of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The first check refused it: its syntax, a name that it must or must not have, or a type is wrong.
    Malformed,
    /// A later check refused it.
    Refused,
    /// It was read, and what stands behind it was made.
    Accepted,
}

/// What first checks say: those of TOML, JSON, CSV and safetensors, and of the deserialiser.
const FIRST: [&str; 32] = [
    "cannot be parsed",
    "is not valid",
    "invalid type",
    "invalid value",
    "invalid length",
    "unknown field",
    "unknown variant",
    "missing field",
    "duplicate field",
    "expected value",
    "is expected",
    "not a whole safetensors",
    "is not whole",
    "cannot be read",
    " is missing",
    "columns instead of",
    // Edge lists.
    "is not an agent number",
    "expected two agent numbers",
    // Recorded games.
    "missing; ",
    " fields for ",
    // Tables.
    "no column `",
    "is empty",
    // A document's own checksum; that of a file which it names is looked at later.
    "its checksum is not that of its content",
    " cells, the header ",
    // What JSON says of itself.
    " at line ",
    // Road networks and flows.
    " goes on with ",
    "was expected, found",
    "' must follow the name",
    "starts with its name in quotes",
    "a string ",
    "must be a ",
    "must be an ",
];

impl Verdict {
    /// How far something got that ended so.
    pub fn of<T>(result: &Result<T>) -> Self {
        match result {
            Ok(_) => Verdict::Accepted,
            Err(error) => Verdict::of_message(&error.to_string()),
        }
    }

    fn of_message(message: &str) -> Self {
        if FIRST.iter().any(|words| message.contains(words)) { Verdict::Malformed } else { Verdict::Refused }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phalanx::run::Config;

    #[test]
    fn first_checks_are_told_from_later_ones() {
        let small = Config::preset("synthetic").unwrap();
        let set = |key: &str, value: &str| Verdict::of(&small.with(key, value));
        assert_eq!(set("kapa", "1"), Verdict::Malformed);
        assert_eq!(set("kappa", "'x'"), Verdict::Malformed);
        assert_eq!(set("kappa_g", "2"), Verdict::Refused);
        assert_eq!(set("gamma", "1.5"), Verdict::Refused);
        assert_eq!(set("kappa", "2"), Verdict::Accepted);
        let text = Config::from_toml("kappa = ", std::path::Path::new("."));
        assert_eq!(Verdict::of(&text), Verdict::Malformed);
    }
}
