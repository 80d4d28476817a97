//! The utilities that come with the library, a line each.

use std::sync::Arc;

use super::bounds::UtilityBounds;
use super::conic::{Affine, Curvature, Program};
use super::distance::{NegDistBall, NegDistBox, NegDistHalfspace};
use super::entropy::{ActionEntropy, SaEntropy, StateEntropy};
use super::expert::{NegKlExpert, NegL2Expert, NegL2sqExpert};
use super::linear::Linear;
use super::norm::{ActionL2, ActionL2sq, ActiveL2, L2sq};
use super::range::{Extremes, Simplex};
use super::spec::Reader;
use super::{LocalSpace, Power, Utility};
use crate::Result;

/// What a utility of the library knows of itself beside its value and its gradient. It is asked with
/// occupancies that have no totals of channels behind their cells.
#[expect(unused_variables, reason = "of defaults")]
pub(crate) trait BaseUtility: Utility {
    /// From a file.
    fn read(read: &mut Reader<'_>) -> Result<Self>
    where
        Self: Sized;

    /// Whether every table has the agent's shape and every number makes sense.
    fn validate(&self, space: LocalSpace, field: &str) -> Result<()> {
        Ok(())
    }

    /// The tables at which it is smallest and largest.
    fn extremes(&self, simplex: Simplex) -> Extremes;

    /// Bounds on its gradient, see [`UtilityBounds::new`].
    fn bounds(&self, space: LocalSpace, start: &[f64]) -> Option<UtilityBounds> {
        None
    }

    /// How it bends: most are concave.
    fn curvature(&self) -> Curvature {
        Curvature::Concave
    }

    /// What its kernel text in `utilities.cu` reads of it.
    fn parameters(&self) -> KernelParameters<'_> {
        KernelParameters::default()
    }

    /// It, or minus it if it is convex, as a piece of a conic program in x = (1−γ) λ.
    fn conic(&self, program: &mut Program, x: &[Affine], space: LocalSpace) -> Affine;
}

/// Numbers and tables of a utility that kernel text reads.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KernelParameters<'a> {
    /// Of a distance.
    pub power: Option<Power>,
    /// A radius or a bound.
    pub number: f64,
    /// In the order of `table` and `other` in the text.
    pub tables: [Option<&'a Arc<[f64]>>; 2],
}

impl<'a> KernelParameters<'a> {
    /// One table.
    pub fn table(table: &'a Arc<[f64]>) -> Self {
        KernelParameters { tables: [Some(table), None], ..KernelParameters::default() }
    }
}

macro_rules! kinds {
    ($($name:literal => $kind:ident,)*) => {
        /// The base function of a utility, before scale and offset. λ is the occupancy measure of one agent
        /// and q = 1−γ; tables have the layout of λ and are shared, so that many agents can use one.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Kind {
            $(#[doc = concat!("`", $name, "`.")] $kind($kind),)*
            /// The discounted total of a reward channel that is recorded while simulating, which stands
            /// behind the cells of an occupancy row; for rewards that depend on neighbours (errata 24).
            Channel {
                /// Number among the sampled channels.
                place: usize,
                /// Smallest and largest reward of a step.
                range: [f64; 2],
            },
            /// The probability of an event of a whole episode, no function of the occupancy: the share of
            /// episodes in which it happened stands behind the totals of channels. Its shadow reward is 0,
            /// see `learn::episode_values`.
            Episode {
                /// `ever` or `chance`.
                name: &'static str,
                /// Place behind the cells.
                place: usize,
                /// Number among the agent's events.
                number: usize,
            },
            /// A utility written in Rust.
            Custom(Arc<dyn Utility>),
        }

        /// The names that [`UtilitySpec::kind`](super::UtilitySpec::kind) can have.
        pub const KNOWN_KINDS: &[&str] = &[$($name,)*];

        impl Kind {
            /// The name in model files; `custom` for [`Kind::Custom`], which has no form there.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Kind::$kind(_) => $name,)*
                    Kind::Channel { .. } => "return",
                    Kind::Episode { name, .. } => name,
                    Kind::Custom(_) => "custom",
                }
            }

            /// From a file; none if the name is not known.
            pub(super) fn read(read: &mut Reader<'_>) -> Option<Result<Self>> {
                match read.spec.kind.as_str() {
                    $($name => Some($kind::read(read).map(Kind::$kind)),)*
                    _ => None,
                }
            }

            /// The utility of the library that it is, if it is one.
            pub(crate) fn base(&self) -> Option<&dyn BaseUtility> {
                match self {
                    $(Kind::$kind(utility) => Some(utility),)*
                    Kind::Channel { .. } | Kind::Episode { .. } | Kind::Custom(_) => None,
                }
            }
        }

        impl Utility for Kind {
            fn value(&self, occupancy: &[f64], space: LocalSpace) -> f64 {
                let (occupancy, channels) = occupancy.split_at(space.cells());
                match self {
                    $(Kind::$kind(utility) => utility.value(occupancy, space),)*
                    Kind::Channel { place, .. } | Kind::Episode { place, .. } => channels[*place],
                    Kind::Custom(utility) => utility.value(occupancy, space),
                }
            }

            fn gradient(&self, occupancy: &[f64], space: LocalSpace, out: &mut [f64]) {
                let (occupancy, _) = occupancy.split_at(space.cells());
                let (out, channels) = out.split_at_mut(space.cells());
                channels.fill(0.0);
                match self {
                    $(Kind::$kind(utility) => utility.gradient(occupancy, space, out),)*
                    Kind::Channel { place, .. } => {
                        out.fill(0.0);
                        channels[*place] = 1.0;
                    }
                    Kind::Episode { .. } => out.fill(0.0),
                    Kind::Custom(utility) => utility.gradient(occupancy, space, out),
                }
            }

            fn range(&self, space: LocalSpace, mass: f64) -> Option<(f64, f64)> {
                match self {
                    Kind::Custom(utility) => utility.range(space, mass),
                    Kind::Channel { range: [low, high], .. } => Some((low * mass, high * mass)),
                    Kind::Episode { .. } => Some((0.0, 1.0)),
                    _ => {
                        let Extremes { lowest, highest } = self.extremes(space, mass)?;
                        Some((self.value(&lowest, space), self.value(&highest, space)))
                    }
                }
            }
        }
    };
}

kinds! {
    "linear" => Linear,
    "state_entropy" => StateEntropy,
    "sa_entropy" => SaEntropy,
    "action_entropy" => ActionEntropy,
    "action_l2sq" => ActionL2sq,
    "action_l2" => ActionL2,
    "active_l2" => ActiveL2,
    "l2sq" => L2sq,
    "neg_l2_expert" => NegL2Expert,
    "neg_l2sq_expert" => NegL2sqExpert,
    "neg_kl_expert" => NegKlExpert,
    "neg_dist_box" => NegDistBox,
    "neg_dist_halfspace" => NegDistHalfspace,
    "neg_dist_ball" => NegDistBall,
}

impl Kind {
    /// The tables at which it is smallest and largest; `None` for custom utilities and when there is no table
    /// of that mass.
    pub(super) fn extremes(&self, space: LocalSpace, mass: f64) -> Option<Extremes> {
        Some(self.base()?.extremes(Simplex::new(space, mass)?))
    }

    /// How it bends.
    pub(crate) fn curvature(&self) -> Curvature {
        self.base().map_or(Curvature::Unknown, BaseUtility::curvature)
    }

    /// Whether it is a sum of rewards that the occupancy tells.
    pub(crate) fn is_linear(&self) -> bool {
        self.curvature() == Curvature::Linear
    }

    /// factor · this, for an agent with (1−γ) λ_i = `x`; `None` if that is not concave.
    pub(crate) fn concave(
        &self,
        program: &mut Program,
        factor: f64,
        x: &[Affine],
        space: LocalSpace,
    ) -> Option<Affine> {
        // Without rows, which nothing would pull tight.
        if factor == 0.0 {
            return Some(Affine::default());
        }
        let is_concave = match self.curvature() {
            Curvature::Linear => true,
            Curvature::Concave => factor > 0.0,
            Curvature::Convex => factor < 0.0,
            Curvature::Unknown => false,
        };
        let base = self.base().filter(|_| is_concave)?;
        Some(base.conic(program, x, space).scaled(factor))
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;

    const SPACE: LocalSpace = LocalSpace { states: 2, actions: 2, gamma: 0.5 };
    const OCCUPANCY: [f64; 4] = [0.5, 0.25, 1.0, 0.25];

    /// Value and gradient at `OCCUPANCY` (mass 2, so q λ = [1/4, 1/8, 1/2, 1/8]) against numbers worked out
    /// by hand.
    fn assert_at_occupancy(kind: Kind, value: f64, gradient: [f64; 4]) {
        let mut out = [f64::NAN; 4];
        kind.gradient(&OCCUPANCY, SPACE, &mut out);
        let name = kind.name();
        assert!((kind.value(&OCCUPANCY, SPACE) - value).abs() < 1e-14, "{name}");
        for (cell, (got, want)) in out.iter().zip(gradient).enumerate() {
            assert!((got - want).abs() < 1e-14, "{name} cell {cell}: {got} {want}");
        }
    }

    fn table(values: [f64; 4]) -> Arc<[f64]> {
        values.into()
    }

    #[test]
    fn rewards_entropies_and_norms() {
        let r = table([1.0, -2.0, 3.0, 4.0]);
        assert_at_occupancy(Kind::Linear(Linear { r: r.clone() }), 4.0, [1.0, -2.0, 3.0, 4.0]);
        let (d0, d1): (f64, f64) = (0.375, 0.625);
        let (low, high) = (-0.5 * (d0.ln() + 1.0), -0.5 * (d1.ln() + 1.0));
        assert_at_occupancy(
            Kind::StateEntropy(Entropy(States)),
            -d0 * d0.ln() - d1 * d1.ln(),
            [low, low, high, high],
        );
        let (d0, d1): (f64, f64) = (0.75, 0.25);
        let (first, second) = (-0.5 * (d0.ln() + 1.0), -0.5 * (d1.ln() + 1.0));
        let slopes = [first, second, first, second];
        assert_at_occupancy(Kind::ActionEntropy(Entropy(Actions)), -d0 * d0.ln() - d1 * d1.ln(), slopes);
        let ln2 = std::f64::consts::LN_2;
        let slopes = [2.0, 3.0, 1.0, 3.0].map(|halvings| -0.5 * (1.0 - halvings * ln2));
        assert_at_occupancy(Kind::SaEntropy(Entropy(Pairs)), 1.75 * ln2, slopes);
        assert_at_occupancy(
            Kind::ActionL2sq(SquaredNorm(Actions)),
            1.5 * 1.5 + 0.5 * 0.5,
            [3.0, 1.0, 3.0, 1.0],
        );
        assert_at_occupancy(Kind::ActionL2(ActionL2 {}), 2.5 / 8.0, [0.375, 0.125, 0.375, 0.125]);
        assert_at_occupancy(Kind::ActiveL2(ActiveL2 {}), 0.25 / 8.0, [0.0, 0.125, 0.0, 0.125]);
        assert_at_occupancy(Kind::L2sq(SquaredNorm(Pairs)), 1.375, [1.0, 0.5, 2.0, 0.5]);
    }

    #[test]
    fn totals_of_channels_stand_behind_the_cells() {
        let row = [0.5, 0.25, 1.0, 0.25, 3.0, 7.0];
        let mut out = [f64::NAN; 6];
        let channel = Kind::Channel { place: 1, range: [0.0, 4.0] };
        channel.gradient(&row, SPACE, &mut out);
        assert_eq!((channel.value(&row, SPACE), out), (7.0, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]));
        Kind::L2sq(SquaredNorm(Pairs)).gradient(&row, SPACE, &mut out);
        assert_eq!(
            (Kind::L2sq(SquaredNorm(Pairs)).value(&row, SPACE), out),
            (1.375, [1.0, 0.5, 2.0, 0.5, 0.0, 0.0])
        );
    }

    #[test]
    fn experts() {
        // λ − expert = [0.3, 0, 0.4, 0], of length 0.5.
        let expert = table([0.2, 0.25, 0.6, 0.25]);
        assert_at_occupancy(
            Kind::NegL2Expert(NegL2Expert { expert: expert.clone() }),
            -0.5,
            [-0.6, 0.0, -0.8, 0.0],
        );
        assert_at_occupancy(Kind::NegL2sqExpert(NegL2sqExpert { expert }), -0.25, [-0.6, 0.0, -0.8, 0.0]);
        assert_at_occupancy(Kind::NegL2Expert(NegL2Expert { expert: table(OCCUPANCY) }), 0.0, [0.0; 4]);
        // p/e = 1/2, 1/2, 2, 1/2.
        let ln2 = std::f64::consts::LN_2;
        let expert = table([1.0, 0.5, 0.5, 0.5]);
        let (rare, often) = (-0.5 * (1.0 - ln2), -0.5 * (1.0 + ln2));
        assert_at_occupancy(Kind::NegKlExpert(NegKlExpert { expert }), 0.0, [rare, rare, often, rare]);
    }

    #[test]
    fn distances() {
        use Power::{One, Two};
        let (lo, hi) = (table([0.0, 0.65, f64::NEG_INFINITY, 0.0]), table([f64::INFINITY, 1.0, 0.7, 0.25]));
        // λ − Πλ = [0, −0.4, 0.3, 0].
        let boxed = |power| Kind::NegDistBox(NegDistBox { lo: lo.clone(), hi: hi.clone(), power });
        assert_at_occupancy(boxed(One), -0.5, [0.0, 0.8, -0.6, 0.0]);
        assert_at_occupancy(boxed(Two), -0.125, [0.0, 0.4, -0.3, 0.0]);
        // ⟨a, λ⟩ = 5.5, ‖a‖ = 5.
        let halfspace =
            |b, power| Kind::NegDistHalfspace(NegDistHalfspace { a: table([3.0, 0.0, 4.0, 0.0]), b, power });
        assert_at_occupancy(halfspace(3.0, One), -0.5, [-0.6, 0.0, -0.8, 0.0]);
        assert_at_occupancy(halfspace(3.0, Two), -0.125, [-0.3, 0.0, -0.4, 0.0]);
        assert_at_occupancy(halfspace(5.5, One), 0.0, [0.0; 4]);
        // λ − center = [0.3, 0, 0.4, 0].
        let ball = |radius, power| {
            Kind::NegDistBall(NegDistBall { center: table([0.2, 0.25, 0.6, 0.25]), radius, power })
        };
        assert_at_occupancy(ball(0.25, One), -0.25, [-0.6, 0.0, -0.8, 0.0]);
        assert_at_occupancy(ball(0.25, Two), -0.03125, [-0.15, 0.0, -0.2, 0.0]);
        assert_at_occupancy(ball(1.0, One), 0.0, [0.0; 4]);
    }

    #[test]
    fn unvisited_cells_give_finite_numbers_and_nan_stays_visible() {
        let expert = table([2.0, 0.0, 0.0, 0.0]);
        let mut out = [0.0; 4];
        for kind in [
            Kind::StateEntropy(Entropy(States)),
            Kind::SaEntropy(Entropy(Pairs)),
            Kind::ActionEntropy(Entropy(Actions)),
            Kind::NegKlExpert(NegKlExpert { expert }),
        ] {
            for occupancy in [[0.0; 4], [2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0]] {
                kind.gradient(&occupancy, SPACE, &mut out);
                assert!(
                    kind.value(&occupancy, SPACE).is_finite() && out.iter().all(|slope| slope.is_finite())
                );
            }
            assert!(kind.value(&[f64::NAN; 4], SPACE).is_nan());
        }
        assert_eq!(Kind::SaEntropy(Entropy(Pairs)).value(&[2.0, 0.0, 0.0, 0.0], SPACE), 0.0);
        let (lo, hi) = (table([0.0; 4]), table([1.0; 4]));
        assert!(
            Kind::NegDistBox(NegDistBox { lo, hi, power: Power::One }).value(&[f64::NAN; 4], SPACE).is_nan()
        );
    }
}
