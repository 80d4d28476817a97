//! General utilities: functions of one agent's discounted occupancy measure, and their gradients.
//!
//! An agent's objective f_i and its constraints g_i ≥ 0 are functions of its local occupancy measure
//! λ_i(s, a) = Σ_k γ^k P(s_i^k = s, a_i^k = a) (Paper: eq:local_occupancy_measure, eq:dec_prob), a table of
//! nonnegative numbers that sum to 1/(1−γ), flat and row-major `[states][actions]`. The gradient of a utility
//! is the *shadow reward* that the critic evaluates (Paper: def:shadow).
//!
//! * [`Kind`]: the utilities that come with the library; [`ScaledUtility`]: one of them, scaled and shifted.
//! * [`Utility`]: the interface for your own, to be wrapped in [`Kind::Custom`]; test it with
//!   [`check_gradient`].
//! * [`UtilitySpec`]: a utility as written in a model file.
//!
//! Constraints read g ≥ 0 everywhere. The paper's examples in sec:example have g ≤ 0 or dist ≤ d₀; write them
//! as −⟨c, λ⟩ and d₀ − dist (errata 15).

mod bounds;
mod check;
mod config;
pub(crate) mod conic;
mod distance;
mod entropy;
pub mod episode;
mod expert;
mod formulas;
pub mod group;
mod kinds;
mod linear;
mod marginal;
mod norm;
pub mod problem;
mod range;
mod simplex;
mod spec;
mod table;
#[cfg(test)]
mod tests;
mod validate;

pub use bounds::UtilityBounds;
pub use check::{GradientMismatch, check_gradient};
pub use config::{ConstraintConfig, GroupConfig, Margin, UtilityConfig};
pub use distance::{NegDistBall, NegDistBox, NegDistHalfspace};
pub use entropy::{ActionEntropy, Entropy, SaEntropy, StateEntropy};
pub use expert::{NegKlExpert, NegL2Expert, NegL2sqExpert};
pub use formulas::{LOG_FLOOR, Power};
use formulas::{dot, floored, residual_to_slope, squared_distance, write_difference};
pub(crate) use kinds::KernelParameters;
pub use kinds::{KNOWN_KINDS, Kind};
pub use linear::Linear;
pub(crate) use linear::rewards;
pub use marginal::{Actions, Marginal, Pairs, States};
pub use norm::{ActionL2, ActionL2sq, ActiveL2, L2sq, SquaredNorm};
pub use simplex::project_onto_simplex;
pub use spec::UtilitySpec;
pub use table::{Entry, LocalTable};

/// The shape of one agent's tables, and the discount that gives an occupancy measure its mass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalSpace {
    /// Number of local states |S_i|.
    pub states: usize,
    /// Number of local actions |A_i|.
    pub actions: usize,
    /// Discount γ in [0, 1).
    pub gamma: f64,
}

impl LocalSpace {
    /// Number of entries of a table over (s_i, a_i).
    pub fn cells(&self) -> usize {
        self.states * self.actions
    }
}

/// A function of one agent's occupancy measure: the interface for utilities of your own.
///
/// Tables are flat, row-major `[states][actions]`; `occupancy` is unnormalised: a complete one has mass
/// 1/(1−γ), one estimated from episodes of H steps has (1−γ^H)/(1−γ).
///
/// ```
/// use phalanx::utility::{LocalSpace, Utility, check_gradient};
///
/// /// Rewards visits with diminishing returns: Σ √((1−γ) λ + 0.01).
/// #[derive(Debug)]
/// struct Coverage;
///
/// impl Utility for Coverage {
///     fn value(&self, occupancy: &[f64], space: LocalSpace) -> f64 {
///         occupancy.iter().map(|x| ((1.0 - space.gamma) * x + 0.01).sqrt()).sum()
///     }
///
///     fn gradient(&self, occupancy: &[f64], space: LocalSpace, out: &mut [f64]) {
///         let q = 1.0 - space.gamma;
///         for (slope, x) in out.iter_mut().zip(occupancy) {
///             *slope = q / (2.0 * (q * x + 0.01).sqrt());
///         }
///     }
/// }
///
/// let space = LocalSpace { states: 2, actions: 2, gamma: 0.9 };
/// check_gradient(&Coverage, space, &[1.0, 2.0, 3.0, 4.0], 1e-6)?;
/// # Ok::<(), phalanx::utility::GradientMismatch>(())
/// ```
pub trait Utility: Send + Sync + std::fmt::Debug {
    /// The utility at `occupancy`.
    fn value(&self, occupancy: &[f64], space: LocalSpace) -> f64;

    /// Writes ∂ value / ∂ λ(s, a), the shadow reward (Paper: def:shadow), into every entry of `out`. What
    /// `out` held before is meaningless.
    fn gradient(&self, occupancy: &[f64], space: LocalSpace, out: &mut [f64]);

    /// Smallest and largest value over all nonnegative tables of total mass `mass`; `None` when not known. It
    /// tells whether a threshold can be met at all, before any training.
    fn range(&self, space: LocalSpace, mass: f64) -> Option<(f64, f64)> {
        let _ = (space, mass);
        None
    }
}

/// Whether it is the same one.
impl PartialEq for dyn Utility {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

/// `scale · base(λ) + offset`. A constraint "base ≥ c" is `scale: 1, offset: −c`; "base ≤ c" is
/// `scale: −1, offset: c` (errata 15).
#[derive(Debug, Clone, PartialEq)]
pub struct ScaledUtility {
    /// The base function.
    pub kind: Kind,
    /// Factor on the base function and its gradient.
    pub scale: f64,
    /// Added to the scaled value; does not enter the gradient.
    pub offset: f64,
}

impl From<Kind> for ScaledUtility {
    /// The base function itself.
    fn from(kind: Kind) -> Self {
        ScaledUtility { kind, scale: 1.0, offset: 0.0 }
    }
}

impl ScaledUtility {
    /// The utility at `occupancy`.
    pub fn value(&self, occupancy: &[f64], space: LocalSpace) -> f64 {
        self.scale * self.kind.value(occupancy, space) + self.offset
    }

    /// Writes the shadow reward, scale · ∇ base (Paper: def:shadow), into every entry of `out`.
    pub fn gradient(&self, occupancy: &[f64], space: LocalSpace, out: &mut [f64]) {
        self.kind.gradient(occupancy, space, out);
        if self.scale != 1.0 {
            out.iter_mut().for_each(|slope| *slope *= self.scale);
        }
    }

    /// Smallest and largest value over all nonnegative tables of total mass `mass`; `None` when not known,
    /// which only happens for [`Kind::Custom`] and when there is no such table.
    pub fn range(&self, space: LocalSpace, mass: f64) -> Option<(f64, f64)> {
        let (low, high) = self.kind.range(space, mass)?;
        let (at_low, at_high) = (self.scale * low + self.offset, self.scale * high + self.offset);
        // A negative scale turns the largest base value into the smallest utility.
        Some(if self.scale < 0.0 { (at_high, at_low) } else { (at_low, at_high) })
    }
}

/// So that [`check_gradient`] and [`Kind::Custom`] take one.
impl Utility for ScaledUtility {
    fn value(&self, occupancy: &[f64], space: LocalSpace) -> f64 {
        ScaledUtility::value(self, occupancy, space)
    }

    fn gradient(&self, occupancy: &[f64], space: LocalSpace, out: &mut [f64]) {
        ScaledUtility::gradient(self, occupancy, space, out);
    }

    fn range(&self, space: LocalSpace, mass: f64) -> Option<(f64, f64)> {
        ScaledUtility::range(self, space, mass)
    }
}
