//! Numbers that are known to lie where they may: a setting of such a type is checked when it is read.

use std::ops::Deref;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::limits::{MOST_ITERATIONS, MOST_STEPS, MOST_TRAJECTORIES};

/// Reads a number that must be a `T`, for fields that say so and then hold it plainly.
pub fn plain<'de, D, T>(deserializer: D) -> Result<T::Target, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Deref<Target: Copy>,
{
    Ok(*T::deserialize(deserializer)?)
}

/// The same for a number that may be missing.
pub fn optional<'de, D, T>(deserializer: D) -> Result<Option<T::Target>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Deref<Target: Copy>,
{
    plain::<D, T>(deserializer).map(Some)
}

/// A number with a range, and what is said of one outside it.
macro_rules! range {
    ($(#[$doc:meta])* $name:ident($number:ty), $allows:expr, $needs:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
        #[serde(transparent)]
        pub struct $name(pub $number);

        impl $name {
            /// The number in a type that says it is in range, or what is wrong with it.
            pub fn new(value: $number) -> Result<Self, String> {
                let allows: fn($number) -> bool = $allows;
                if allows(value) { Ok($name(value)) } else { Err(format!("{value}; {}", $needs)) }
            }

            /// Whether the setting `field` may have this value.
            pub fn check(field: &str, value: $number) -> crate::Result<()> {
                $name::new(value).map(|_| ()).map_err(|message| crate::Error::config(field, message))
            }
        }

        impl Deref for $name {
            type Target = $number;

            fn deref(&self) -> &$number {
                &self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $name::new(<$number>::deserialize(deserializer)?).map_err(D::Error::custom)
            }
        }
    };
}

range! {
    /// Above 0, finite.
    Positive(f64), |x| x > 0.0 && x.is_finite(), "a finite number above 0 is needed"
}
range! {
    /// At least 0, finite.
    NonNegative(f64), |x| x >= 0.0 && x.is_finite(), "a finite number of at least 0 is needed"
}
range! {
    /// At least 0; `inf` for no upper end.
    UpperEnd(f64), |x| x >= 0.0, "at least 0 is needed"
}
range! {
    /// Above 0; `inf` for no limit.
    Limit(f64), |x| x > 0.0, "a number above 0 is needed, `inf` for none"
}
range! {
    /// 0 to 1, both included.
    Fraction(f64), |x| (0.0..=1.0).contains(&x), "allowed are 0 to 1"
}
range! {
    /// Above 0, below 1.
    OpenUnit(f64), |x| x > 0.0 && x < 1.0, "more than 0 and less than 1 is needed"
}
range! {
    /// What is kept of something: at least 0, below 1.
    Share(f64), |x| (0.0..1.0).contains(&x), "a share of at least 0 and below 1 is needed"
}
range! {
    /// γ: at least 0, below 1.
    Discount(f64), |x| (0.0..1.0).contains(&x), "a discount factor of at least 0 and below 1 is needed"
}
range! {
    /// Passes over samples, which are counted with 32 bits.
    Passes(usize), |x| (1..=u32::MAX as usize).contains(&x), "1 to 4294967295 are possible"
}
range! {
    /// Passes of MAPPO over its batch, or parts of it.
    Rounds(usize), |x| (1..=1 << 24).contains(&x), "allowed are 1 to 16777216"
}

/// At least 1, and no more than there are numbers for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct CountTo<const MOST: usize>(pub usize);

/// At least 1.
pub type Count = CountTo<{ usize::MAX }>;
/// Iterations of a run.
pub type Iterations = CountTo<MOST_ITERATIONS>;
/// Steps of an episode.
pub type Steps = CountTo<MOST_STEPS>;
/// Trajectories that are sampled for one purpose.
pub type Trajectories = CountTo<MOST_TRAJECTORIES>;

impl<const MOST: usize> Deref for CountTo<MOST> {
    type Target = usize;

    fn deref(&self) -> &usize {
        &self.0
    }
}

impl<'de, const MOST: usize> Deserialize<'de> for CountTo<MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match usize::deserialize(deserializer)? {
            0 => Err(D::Error::custom("0; at least 1 is needed")),
            value if value > MOST => Err(D::Error::custom(format!("{value}; at most {MOST} is possible"))),
            value => Ok(CountTo(value)),
        }
    }
}
