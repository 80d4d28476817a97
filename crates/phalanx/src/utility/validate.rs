//! What makes the parameters of a utility unusable.

use super::table::check_length;
use super::{Kind, LocalSpace, ScaledUtility};
use crate::{Error, Result};

impl ScaledUtility {
    /// Whether every table has the agent's shape and every number makes sense. Utilities that come out of
    /// [`UtilitySpec::build`](super::UtilitySpec::build) pass. Check those put together in Rust once, before
    /// use: evaluating one with a table of the wrong length panics or gives nonsense. `field` names the
    /// utility in error messages, e.g. `g[2][0]`.
    pub fn validate(&self, space: LocalSpace, field: &str) -> Result<()> {
        if space.cells() == 0 {
            let LocalSpace { states, actions, .. } = space;
            let message =
                format!("the agent has {states} states and {actions} actions, but needs one of each");
            return Err(Error::config(field, message));
        }
        check_finite(self.scale, &format!("{field}.scale"))?;
        check_finite(self.offset, &format!("{field}.offset"))?;
        let finite_table = |table: &[f64], key: &str| {
            check_table(table, space, &format!("{field}.{key}"), "finite", f64::is_finite)
        };
        match &self.kind {
            Kind::StateEntropy
            | Kind::SaEntropy
            | Kind::ActionEntropy
            | Kind::ActionL2sq
            | Kind::ActionL2 { .. }
            | Kind::Channel { .. }
            | Kind::L2sq
            | Kind::Custom(_) => Ok(()),
            Kind::Linear { r } => finite_table(r, "r"),
            Kind::NegL2Expert { expert } | Kind::NegL2sqExpert { expert } | Kind::NegKlExpert { expert } => {
                let occupancy = |x: f64| x.is_finite() && x >= 0.0;
                check_table(expert, space, &format!("{field}.expert"), "finite and at least 0", occupancy)
            }
            Kind::NegDistBox { lo, hi, power: _ } => check_box(lo, hi, space, field),
            Kind::NegDistHalfspace { a, b, power: _ } => {
                finite_table(a, "a")?;
                let squared: f64 = a.iter().map(|x| x * x).sum();
                if !squared.is_normal() {
                    let message =
                        format!("has squared length {squared}, but a normal vector must not vanish");
                    return Err(Error::config(format!("{field}.a"), message));
                }
                check_finite(*b, &format!("{field}.b"))
            }
            Kind::NegDistBall { center, radius, power: _ } => {
                finite_table(center, "center")?;
                check_number(*radius, &format!("{field}.radius"), "finite and at least 0", |x| {
                    x.is_finite() && x >= 0.0
                })
            }
        }
    }
}

/// Ends may be infinite as long as every interval contains a number.
fn check_box(lo: &[f64], hi: &[f64], space: LocalSpace, field: &str) -> Result<()> {
    check_table(lo, space, &format!("{field}.lo"), "a number below infinity", |x| x < f64::INFINITY)?;
    check_table(hi, space, &format!("{field}.hi"), "a number above -infinity", |x| x > f64::NEG_INFINITY)?;
    match (0..lo.len()).find(|&cell| lo[cell] > hi[cell]) {
        None => Ok(()),
        Some(cell) => {
            let message = format!("{} is {}, above {field}.hi = {}", at(cell, space), lo[cell], hi[cell]);
            Err(Error::config(format!("{field}.lo"), message))
        }
    }
}

fn check_finite(value: f64, field: &str) -> Result<()> {
    check_number(value, field, "finite", f64::is_finite)
}

fn check_number(value: f64, field: &str, requirement: &str, holds: impl Fn(f64) -> bool) -> Result<()> {
    if holds(value) {
        return Ok(());
    }
    Err(Error::config(field, format!("is {value}, but must be {requirement}")))
}

fn check_table(
    table: &[f64],
    space: LocalSpace,
    field: &str,
    requirement: &str,
    holds: impl Fn(f64) -> bool,
) -> Result<()> {
    check_length(table.len(), space, field)?;
    match table.iter().position(|entry| !holds(*entry)) {
        None => Ok(()),
        Some(cell) => {
            let message = format!("{} is {}, but must be {requirement}", at(cell, space), table[cell]);
            Err(Error::config(field, message))
        }
    }
}

fn at(cell: usize, space: LocalSpace) -> String {
    format!("entry {cell} (state {}, action {})", cell / space.actions, cell % space.actions)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Power;
    use super::*;

    const SPACE: LocalSpace = LocalSpace { states: 2, actions: 2, gamma: 0.9 };

    fn verdict(kind: Kind) -> String {
        match ScaledUtility::from(kind).validate(SPACE, "f[3]") {
            Ok(()) => "fine".to_string(),
            Err(error) => error.to_string(),
        }
    }

    fn table(values: [f64; 4]) -> Arc<[f64]> {
        values.into()
    }

    #[test]
    fn numbers_that_make_no_sense_are_named() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let power = Power::One;
        assert_eq!(
            verdict(Kind::Linear { r: table([0.0, 0.0, nan, 0.0]) }),
            "f[3].r: entry 2 (state 1, action 0) is NaN, but must be finite"
        );
        assert_eq!(
            verdict(Kind::Linear { r: Arc::new([1.0, 2.0, 3.0]) }),
            "f[3].r: has 3 entries, but the agent's table has 2 states x 2 actions = 4"
        );
        assert_eq!(verdict(Kind::NegL2sqExpert { expert: table([1.0, 1.0, 0.0, 0.0]) }), "fine");
        assert_eq!(
            verdict(Kind::NegKlExpert { expert: table([1.0, -1.0, 0.0, 0.0]) }),
            "f[3].expert: entry 1 (state 0, action 1) is -1, but must be finite and at least 0"
        );
        let boxed = |lo, hi| Kind::NegDistBox { lo: table(lo), hi: table(hi), power };
        assert_eq!(verdict(boxed([-inf; 4], [inf; 4])), "fine");
        assert_eq!(
            verdict(boxed([0.0, 0.5, 0.0, 0.0], [1.0, 0.25, 1.0, 1.0])),
            "f[3].lo: entry 1 (state 0, action 1) is 0.5, above f[3].hi = 0.25"
        );
        assert_eq!(
            verdict(boxed([inf; 4], [inf; 4])),
            "f[3].lo: entry 0 (state 0, action 0) is inf, but must be a number below infinity"
        );
        assert!(verdict(boxed([0.0; 4], [nan; 4])).contains("f[3].hi: entry 0"));
        let halfspace = |a, b| Kind::NegDistHalfspace { a: table(a), b, power };
        assert_eq!(
            verdict(halfspace([0.0; 4], 1.0)),
            "f[3].a: has squared length 0, but a normal vector must not vanish"
        );
        assert_eq!(verdict(halfspace([1.0; 4], inf)), "f[3].b: is inf, but must be finite");
        let ball = |radius| Kind::NegDistBall { center: table([0.0; 4]), radius, power };
        assert_eq!(verdict(ball(-0.5)), "f[3].radius: is -0.5, but must be finite and at least 0");
        assert_eq!(verdict(ball(0.0)), "fine");
        let scaled = ScaledUtility { kind: Kind::L2sq, scale: nan, offset: 0.0 };
        assert_eq!(
            scaled.validate(SPACE, "f[3]").unwrap_err().to_string(),
            "f[3].scale: is NaN, but must be finite"
        );
        let no_actions = LocalSpace { actions: 0, ..SPACE };
        assert!(ScaledUtility::from(Kind::StateEntropy).validate(no_actions, "f[3]").is_err());
    }
}
