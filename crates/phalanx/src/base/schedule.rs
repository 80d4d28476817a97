//! How a step size changes over the iterations.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::base::elementary::pow;

/// Factor on a step size at iteration t of T.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields, remote = "Self")]
pub enum Schedule {
    /// 1. (With braces, or keys that it does not have would be accepted.)
    Constant {},
    /// 1 until `hold`·T, then linearly down (or up) to `end` at `until`·T and from there on.
    Linear {
        /// Share of the iterations before the change begins.
        hold: f64,
        /// Factor at the end of the change.
        end: f64,
        /// Share of the iterations at which it is reached.
        #[serde(default = "all")]
        until: f64,
    },
    /// T^`exponent` throughout; 1/3 is the η_μ of thm:convergence.
    Total {
        /// The exponent.
        exponent: f64,
    },
    /// (t + 1)^`exponent`; 1/3 is the adaptive η_μ^t of thm:convergence.
    Power {
        /// The exponent.
        exponent: f64,
    },
}

fn all() -> f64 {
    1.0
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule::Constant {}
    }
}

impl Serialize for Schedule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Schedule::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Schedule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let schedule = Schedule::deserialize(deserializer)?;
        schedule.check().map_err(D::Error::custom)?;
        Ok(schedule)
    }
}

impl Schedule {
    fn check(self) -> Result<(), String> {
        match self {
            Schedule::Linear { hold, end, .. }
                if !((0.0..=1.0).contains(&hold) && end >= 0.0 && end.is_finite()) =>
            {
                Err(format!("hold = {hold} must be in 0 to 1 and end = {end} at least 0"))
            }
            Schedule::Linear { hold, until, .. } if !((0.0..=1.0).contains(&until) && until >= hold) => {
                Err(format!("until = {until} must be at least hold = {hold} and at most 1"))
            }
            Schedule::Power { exponent } | Schedule::Total { exponent } if !exponent.is_finite() => {
                Err(format!("exponent = {exponent} must be finite"))
            }
            _ => Ok(()),
        }
    }

    /// The factor at iteration `t` (from 0) of `total`.
    pub fn factor(self, t: usize, total: usize) -> f64 {
        match self {
            Schedule::Constant {} => 1.0,
            Schedule::Linear { hold, end, until } => {
                let progress = (t + 1) as f64 / total.max(1) as f64;
                let share = match progress > hold {
                    true if hold < until => ((progress - hold) / (until - hold)).min(1.0),
                    true => 1.0,
                    false => 0.0,
                };
                1.0 + share * (end - 1.0)
            }
            Schedule::Total { exponent } => pow(total as f64, exponent),
            Schedule::Power { exponent } => pow((t + 1) as f64, exponent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_by_hand() {
        let linear = Schedule::Linear { hold: 0.5, end: 0.1, until: 1.0 };
        let early = Schedule::Linear { hold: 0.0, end: 0.0, until: 0.8 };
        assert!((early.factor(3, 10) - 0.5).abs() < 1e-12 && early.factor(7, 10).abs() < 1e-12);
        assert_eq!(early.factor(9, 10), 0.0);
        // All at once, if there is no time between.
        let sudden = Schedule::Linear { hold: 0.5, end: 0.25, until: 0.5 };
        assert_eq!([4, 5].map(|t| sudden.factor(t, 10)), [1.0, 0.25]);
        assert_eq!(Schedule::Linear { hold: 1.0, end: 0.1, until: 1.0 }.factor(9, 10), 1.0);
        assert_eq!(Schedule::Constant {}.factor(7, 10), 1.0);
        assert_eq!([linear.factor(0, 10), linear.factor(4, 10)], [1.0, 1.0]);
        assert!((linear.factor(9, 10) - 0.1).abs() < 1e-12);
        assert!((linear.factor(7, 10) - (1.0 - 0.6 * 0.9)).abs() < 1e-12);
        assert!((Schedule::Total { exponent: 1.0 / 3.0 }.factor(0, 1000) - 10.0).abs() < 1e-12);
        assert!((Schedule::Power { exponent: 1.0 / 3.0 }.factor(7, 0) - 2.0).abs() < 1e-12);
    }
}
