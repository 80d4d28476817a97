//! What makes the parameters of a utility unusable.

use super::table::check_length;
use super::{LocalSpace, ScaledUtility};
use crate::base::error::ensure;
use crate::{Error, Result};

impl ScaledUtility {
    /// Whether every table has the agent's shape and every number makes sense. Utilities that come out of
    /// [`UtilitySpec::build`](super::UtilitySpec::build) pass. Check those put together in Rust once, before
    /// use: evaluating one with a table of the wrong length panics or gives nonsense. `field` names the
    /// utility in error messages, e.g. `g[2][0]`.
    pub fn validate(&self, space: LocalSpace, field: &str) -> Result<()> {
        let LocalSpace { states, actions, .. } = space;
        ensure(space.cells() > 0, || {
            let message =
                format!("the agent has {states} states and {actions} actions, but needs one of each");
            Error::config(field, message)
        })?;
        for (key, number) in [("scale", self.scale), ("offset", self.offset)] {
            check_number(number, &format!("{field}.{key}"), "finite", f64::is_finite)?;
        }
        self.kind.base().map_or(Ok(()), |base| base.validate(space, field))
    }
}

/// Whether a table has the agent's shape and finite entries.
pub(super) fn finite_table(table: &[f64], space: LocalSpace, field: &str, key: &str) -> Result<()> {
    check_table(table, space, &format!("{field}.{key}"), "finite", f64::is_finite)
}

pub(super) fn check_number(
    value: f64,
    field: &str,
    requirement: &str,
    holds: impl Fn(f64) -> bool,
) -> Result<()> {
    ensure(holds(value), || Error::config(field, format!("is {value}, but must be {requirement}")))
}

pub(super) fn check_table(
    table: &[f64],
    space: LocalSpace,
    field: &str,
    requirement: &str,
    holds: impl Fn(f64) -> bool,
) -> Result<()> {
    check_length(table.len(), space, field)?;
    table.iter().enumerate().try_for_each(|(cell, &entry)| {
        ensure(holds(entry), || {
            Error::config(field, format!("{} is {entry}, but must be {requirement}", at(cell, space)))
        })
    })
}

pub(super) fn at(cell: usize, space: LocalSpace) -> String {
    format!("entry {cell} (state {}, action {})", cell / space.actions, cell % space.actions)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::*;

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
            verdict(Kind::Linear(Linear { r: table([0.0, 0.0, nan, 0.0]) })),
            "f[3].r: entry 2 (state 1, action 0) is NaN, but must be finite"
        );
        assert_eq!(
            verdict(Kind::Linear(Linear { r: Arc::new([1.0, 2.0, 3.0]) })),
            "f[3].r: has 3 entries, but the agent's table has 2 states x 2 actions = 4"
        );
        assert_eq!(
            verdict(Kind::NegL2sqExpert(NegL2sqExpert { expert: table([1.0, 1.0, 0.0, 0.0]) })),
            "fine"
        );
        assert_eq!(
            verdict(Kind::NegKlExpert(NegKlExpert { expert: table([1.0, -1.0, 0.0, 0.0]) })),
            "f[3].expert: entry 1 (state 0, action 1) is -1, but must be finite and at least 0"
        );
        let boxed = |lo, hi| Kind::NegDistBox(NegDistBox { lo: table(lo), hi: table(hi), power });
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
        let halfspace = |a, b| Kind::NegDistHalfspace(NegDistHalfspace { a: table(a), b, power });
        assert_eq!(
            verdict(halfspace([0.0; 4], 1.0)),
            "f[3].a: has squared length 0, but a normal vector must not vanish"
        );
        assert_eq!(verdict(halfspace([1.0; 4], inf)), "f[3].b: is inf, but must be finite");
        let ball = |radius| Kind::NegDistBall(NegDistBall { center: table([0.0; 4]), radius, power });
        assert_eq!(verdict(ball(-0.5)), "f[3].radius: is -0.5, but must be finite and at least 0");
        assert_eq!(verdict(ball(0.0)), "fine");
        let scaled = ScaledUtility { kind: Kind::L2sq(SquaredNorm(Pairs)), scale: nan, offset: 0.0 };
        assert_eq!(
            scaled.validate(SPACE, "f[3]").unwrap_err().to_string(),
            "f[3].scale: is NaN, but must be finite"
        );
        let no_actions = LocalSpace { actions: 0, ..SPACE };
        assert!(
            ScaledUtility::from(Kind::StateEntropy(Entropy(States))).validate(no_actions, "f[3]").is_err()
        );
    }
}
