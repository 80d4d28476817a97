//! Utilities as written in model files.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{KNOWN_KINDS, Kind, LocalSpace, LocalTable, Power, ScaledUtility};
use crate::base::error::ensure;
use crate::{Error, Result};

/// A utility object of a model file, `[objective]` or `[[constraint]]`: `scale · base + offset`, see [`Kind`]
/// for the base functions and their parameters. Which of the other keys are needed depends on `kind`; keys
/// that it does not use are rejected.
///
/// ```
/// use phalanx::utility::{LocalSpace, UtilitySpec};
///
/// // "The entropy of the local state is at least 0.5."
/// let spec: UtilitySpec = serde_json::from_str(r#"{"kind": "state_entropy", "offset": -0.5}"#)?;
/// let space = LocalSpace { states: 2, actions: 2, gamma: 0.5 };
/// let g = spec.build(space, "g[0][0]")?;
/// assert!((g.value(&[0.5, 0.5, 1.0, 0.0], space) - (2f64.ln() - 0.5)).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UtilitySpec {
    /// Name of the base function.
    pub kind: String,
    /// Reward of `linear`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r: Option<LocalTable>,
    /// Occupancy measure to imitate, of `neg_l2_expert`, `neg_l2sq_expert` and `neg_kl_expert`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert: Option<LocalTable>,
    /// Lower ends of `neg_dist_box`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lo: Option<LocalTable>,
    /// Upper ends of `neg_dist_box`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hi: Option<LocalTable>,
    /// Normal vector of `neg_dist_halfspace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a: Option<LocalTable>,
    /// Right-hand side of `neg_dist_halfspace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<f64>,
    /// Centre of `neg_dist_ball`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub center: Option<LocalTable>,
    /// Radius of `neg_dist_ball`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radius: Option<f64>,
    /// 1 (default) for −D, 2 for −D²/2, of the three distances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<i64>,
    /// Factor, 1 when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// Summand, 0 when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<f64>,
}

impl UtilitySpec {
    /// The utility for an agent with the given space. `field` names this object in error messages, e.g.
    /// `g[2][0]`.
    pub fn build(&self, space: LocalSpace, field: &str) -> Result<ScaledUtility> {
        let mut read = Reader { spec: self, space, field, used: Vec::new() };
        let kind = Kind::read(&mut read).ok_or_else(|| {
            let message = format!("`{}` is not known; known are {}", self.kind, KNOWN_KINDS.join(", "));
            Error::config(format!("{field}.kind"), message)
        })??;
        read.reject_unused()?;
        let utility =
            ScaledUtility { kind, scale: self.scale.unwrap_or(1.0), offset: self.offset.unwrap_or(0.0) };
        utility.validate(space, field)?;
        Ok(utility)
    }
}

/// Access to the keys of one object, with what error messages need.
pub(crate) struct Reader<'a> {
    pub spec: &'a UtilitySpec,
    space: LocalSpace,
    field: &'a str,
    /// Keys that were asked for.
    used: Vec<&'static str>,
}

impl Reader<'_> {
    fn error(&self, key: &str, message: String) -> Error {
        Error::config(format!("{}.{key}", self.field), message)
    }

    fn missing(&self, key: &str, what: &str) -> Error {
        self.error(key, format!("is missing: kind `{}` needs {what}", self.spec.kind))
    }

    pub fn table(&mut self, key: &'static str, table: &Option<LocalTable>) -> Result<Arc<[f64]>> {
        self.used.push(key);
        let LocalSpace { states, actions, .. } = self.space;
        let needed = || self.missing(key, &format!("a table of {states} states x {actions} actions"));
        let table = table.as_ref().ok_or_else(needed)?;
        Ok(table.entries(self.space, &format!("{}.{key}", self.field))?.into())
    }

    pub fn number(&mut self, key: &'static str, number: Option<f64>) -> Result<f64> {
        self.used.push(key);
        number.ok_or_else(|| self.missing(key, "a number"))
    }

    pub fn power(&mut self) -> Result<Power> {
        self.used.push("power");
        match self.spec.power {
            None | Some(1) => Ok(Power::One),
            Some(2) => Ok(Power::Two),
            Some(other) => Err(self.error("power", format!("is {other}, but must be 1 or 2"))),
        }
    }

    fn reject_unused(&self) -> Result<()> {
        let spec = self.spec;
        let given = [
            ("r", spec.r.is_some()),
            ("expert", spec.expert.is_some()),
            ("lo", spec.lo.is_some()),
            ("hi", spec.hi.is_some()),
            ("a", spec.a.is_some()),
            ("b", spec.b.is_some()),
            ("center", spec.center.is_some()),
            ("radius", spec.radius.is_some()),
            ("power", spec.power.is_some()),
        ];
        given.iter().filter(|(_, present)| *present).try_for_each(|(key, _)| {
            let message = || format!("key `{key}` is not used by kind `{}`", spec.kind);
            ensure(self.used.contains(key), || Error::config(self.field, message()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::utility::{NegDistBall, Utility};

    const SPACE: LocalSpace = LocalSpace { states: 2, actions: 2, gamma: 0.9 };

    fn build(json: &str) -> Result<ScaledUtility> {
        serde_json::from_str::<UtilitySpec>(json).unwrap().build(SPACE, "g[2][0]")
    }

    fn message(json: &str) -> String {
        build(json).unwrap_err().to_string()
    }

    #[test]
    fn every_known_kind_can_be_written() {
        for &kind in KNOWN_KINDS {
            let parameters = match kind {
                "linear" => r#", "r": [[1, 2], [3, 4]]"#,
                "neg_dist_box" => r#", "lo": [0, 0, 0, "-inf"], "hi": [1, 1, 1, 1]"#,
                "neg_dist_halfspace" => r#", "a": [1, 1, 0, 0], "b": 2, "power": 2"#,
                "neg_dist_ball" => r#", "center": [1, 1, 1, 1], "radius": 0.5, "power": 1"#,
                kind if kind.ends_with("expert") => r#", "expert": [1, 2, 3, 4]"#,
                _ => "",
            };
            let json = format!(r#"{{"kind": "{kind}"{parameters}, "scale": 2, "offset": -0.5}}"#);
            let utility = build(&json).unwrap();
            assert_eq!(utility.kind.name(), kind);
            let base = utility.kind.value(&[1.0, 2.0, 3.0, 5.0], SPACE);
            assert_eq!(utility.value(&[1.0, 2.0, 3.0, 5.0], SPACE), 2.0 * base - 0.5);
            let spec: UtilitySpec = serde_json::from_str(&json).unwrap();
            let copy = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
            assert_eq!(spec, copy);
            assert_eq!(toml::from_str::<UtilitySpec>(&toml::to_string(&spec).unwrap()).unwrap(), spec);
        }
    }

    #[test]
    fn defaults() {
        let utility = build(r#"{"kind": "neg_dist_ball", "center": [0, 0, 0, 0], "radius": 1}"#).unwrap();
        assert_eq!((utility.scale, utility.offset), (1.0, 0.0));
        assert!(matches!(utility.kind, Kind::NegDistBall(NegDistBall { power: Power::One, .. })));
    }

    #[test]
    fn linear_utilities_are_rewards() {
        let reward = |json| serde_json::from_str::<UtilitySpec>(json).unwrap().reward_table();
        let linear = reward(r#"{"kind": "linear", "r": [[1, 2], [3, 4]], "scale": 0.5, "offset": 7}"#);
        assert_eq!(linear, Some(vec![0.5, 1.0, 1.5, 2.0]));
        assert_eq!(reward(r#"{"kind": "l2sq"}"#), None);
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(
            message(r#"{"kind": "linear", "r": [1, 2, 3]}"#),
            "g[2][0].r: has 3 entries, but the agent's table has 2 states x 2 actions = 4"
        );
        assert_eq!(
            message(r#"{"kind": "linear"}"#),
            "g[2][0].r: is missing: kind `linear` needs a table of 2 states x 2 actions"
        );
        assert_eq!(
            message(r#"{"kind": "neg_dist_halfspace", "a": [1, 0, 0, 0]}"#),
            "g[2][0].b: is missing: kind `neg_dist_halfspace` needs a number"
        );
        assert_eq!(
            message(r#"{"kind": "l2sq", "r": [1, 2, 3, 4]}"#),
            "g[2][0]: key `r` is not used by kind `l2sq`"
        );
        assert_eq!(
            message(r#"{"kind": "neg_dist_ball", "center": [0, 0, 0, 0], "radius": 1, "power": 3}"#),
            "g[2][0].power: is 3, but must be 1 or 2"
        );
        let unknown = message(r#"{"kind": "entropy"}"#);
        assert!(
            unknown.starts_with("g[2][0].kind: `entropy` is not known; known are linear, state_entropy, ")
        );
        assert!(unknown.ends_with(", neg_dist_ball"));
        assert!(build(r#"{"kind": "linear", "r": ["inf", 0, 0, 0]}"#).is_err());
        let typo = serde_json::from_str::<UtilitySpec>(r#"{"kind": "l2sq", "ofset": 1}"#).unwrap_err();
        assert!(typo.to_string().starts_with("unknown field `ofset`, expected one of `kind`, `r`"));
    }
}
