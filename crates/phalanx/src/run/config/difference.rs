//! Where two configurations part.

use toml::{Table, Value};

use super::Config;

/// A setting that two configurations do not share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its dotted name.
    pub key: String,
    /// Its value in the first, as TOML; none if it is not there.
    pub first: Option<String>,
    /// Its value in the second.
    pub second: Option<String>,
}

impl Config {
    /// The first setting, by name, in which the resolved configurations differ.
    pub fn first_difference(&self, other: &Config) -> Option<Difference> {
        let resolved = |config: &Config| toml::from_str::<Table>(&config.to_toml()).unwrap_or_default();
        let (first, second) = (Value::Table(resolved(self)), Value::Table(resolved(other)));
        between("", Some(&first), Some(&second))
    }
}

fn between(key: &str, first: Option<&Value>, second: Option<&Value>) -> Option<Difference> {
    if first == second {
        return None;
    }
    let child = |part: &str| if key.is_empty() { part.to_string() } else { format!("{key}.{part}") };
    match (first, second) {
        (Some(Value::Table(first)), Some(Value::Table(second))) => {
            let mut keys: Vec<&String> = first.keys().chain(second.keys()).collect();
            keys.sort();
            keys.into_iter().find_map(|part| between(&child(part), first.get(part), second.get(part)))
        }
        (Some(Value::Array(first)), Some(Value::Array(second))) if first.len() == second.len() => {
            (0..first.len()).find_map(|k| between(&child(&k.to_string()), first.get(k), second.get(k)))
        }
        (first, second) => {
            let text = |value: Option<&Value>| value.map(ToString::to_string);
            Some(Difference { key: key.to_string(), first: text(first), second: text(second) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named_with_both_values() {
        let config = Config::preset("synthetic").unwrap();
        assert_eq!(config.first_difference(&config.clone()), None);
        // What is written out as its default is no difference.
        assert_eq!(config.first_difference(&config.with("dual.margin", "0").unwrap()), None);
        for (key, value, first, second) in [
            ("kappa_g", "0", Some("1"), Some("0")),
            ("constraint.0.at_least", "0.25", Some("0.5"), Some("0.25")),
            ("policy.box", "[-1, 1]", None, Some("[-1.0, 1.0]")),
            ("dual.kind", "proximal", Some("\"pi\""), Some("\"proximal\"")),
        ] {
            let found = config.first_difference(&config.with(key, value).unwrap()).unwrap();
            assert_eq!(
                (found.key.as_str(), found.first.as_deref(), found.second.as_deref()),
                (key, first, second)
            );
        }
    }
}
