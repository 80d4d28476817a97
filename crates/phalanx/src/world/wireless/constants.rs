//! What distinguishes one wireless network from another: size, deadlines, probabilities.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::grid::Grid;
use crate::base::error::ensure;
use crate::base::limits::check_memory;
use crate::base::stream::{Place, Purpose, Stream};
use crate::world::registry::check_probability;
use crate::{Error, Result};

/// Queues are bytes.
pub const LONGEST_DEADLINE: usize = 8;

/// The keys of `[world]` beside `kind = "wireless"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WirelessSpec {
    /// Rows of users, at least 2.
    pub rows: usize,
    /// Columns of users, at least 2.
    pub columns: usize,
    /// d_i: steps that a new packet has, 1 to 8.
    pub deadline: Deadlines,
    /// Seed of the random probabilities; the run's own seed does not change them.
    pub seed: u64,
    /// p_i: probability that a packet arrives, one per user.
    pub arrival: Probabilities,
    /// q_y: probability that a packet sent alone gets through, one per access point.
    pub success: Probabilities,
}

impl Default for WirelessSpec {
    /// The authors' constants.
    fn default() -> Self {
        WirelessSpec {
            rows: 5,
            columns: 5,
            deadline: Deadlines::Same(2),
            seed: 0,
            arrival: Probabilities::Same(0.5),
            success: Probabilities::Same(0.8),
        }
    }
}

/// One deadline for all users, or one each.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Deadlines {
    /// The same for everybody.
    Same(usize),
    /// One per user.
    Each(Vec<usize>),
}

/// One probability for all, one each, or random ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Probabilities {
    /// The same for all.
    Same(f64),
    /// One each.
    Each(Vec<f64>),
    /// Uniform between two numbers, independently.
    Random {
        /// Smallest.
        low: f64,
        /// Largest.
        high: f64,
    },
}

/// The constants of every user and access point.
#[derive(Debug, Clone)]
pub struct Constants {
    /// Where users and access points are.
    pub grid: Grid,
    /// d_i.
    pub deadline: Vec<u8>,
    /// p_i.
    pub arrival: Vec<f64>,
    /// q_y.
    pub success: Vec<f64>,
}

impl Constants {
    /// Checks what was asked for and draws what is random.
    pub fn new(spec: &WirelessSpec) -> Result<Self> {
        let (rows, columns) = (spec.rows, spec.columns);
        for (field, size) in [("world.rows", rows), ("world.columns", columns)] {
            ensure(size >= 2, || {
                let message = format!("{size}; at least 2 are needed: an access point is between four users");
                Error::config(field, message)
            })?;
        }
        let users = rows as u128 * columns as u128;
        if users >= u128::from(u32::MAX) {
            let message =
                format!("{rows} × {columns} columns make {users} users; below {} is possible", u32::MAX);
            return Err(Error::config("world.rows", message));
        }
        // Links while they are collected, constants, thresholds, the channel `send`, and what every run keeps
        // for an agent.
        let longest = match &spec.deadline {
            Deadlines::Same(d) => *d,
            Deadlines::Each(list) => list.iter().copied().max().unwrap_or(1),
        };
        let bytes = 512 + (40u128 << longest.min(LONGEST_DEADLINE));
        check_memory(users * bytes, "world.rows", &format!("{rows} × {columns} columns, {users} users,"))?;
        let grid = Grid { rows, columns };
        let deadline = spec.deadline.resolve(grid.users())?;
        let (users, points) = (grid.users(), grid.access_points());
        let arrival = spec.arrival.resolve("arrival", "users", users, spec.seed, 0)?;
        let success = spec.success.resolve("success", "access points", points, spec.seed, 1)?;
        Ok(Constants { grid, deadline, arrival, success })
    }
}

impl Deadlines {
    fn resolve(&self, users: usize) -> Result<Vec<u8>> {
        let allowed = |field: String, d: usize| match d {
            1..=LONGEST_DEADLINE => Ok(d as u8),
            _ => Err(Error::config(field, format!("{d} steps; allowed are 1 to {LONGEST_DEADLINE}"))),
        };
        match self {
            Deadlines::Same(d) => Ok(vec![allowed("world.deadline".into(), *d)?; users]),
            Deadlines::Each(list) => {
                check_length("deadline", list.len(), "users", users)?;
                let each = list.iter().enumerate();
                each.map(|(i, &d)| allowed(format!("world.deadline.{i}"), d)).collect()
            }
        }
    }
}

impl Probabilities {
    /// `count` numbers. The k-th random one depends on the seed, on which of the two keys it is for and on k
    /// alone.
    fn resolve(&self, key: &str, of_what: &str, count: usize, seed: u64, which: u32) -> Result<Vec<f64>> {
        let field = format!("world.{key}");
        match self {
            Probabilities::Same(p) => {
                check_probability(&field, *p)?;
                Ok(vec![*p; count])
            }
            Probabilities::Each(list) => {
                check_length(key, list.len(), of_what, count)?;
                for (k, &p) in list.iter().enumerate() {
                    check_probability(&format!("{field}.{k}"), p)?;
                }
                Ok(list.clone())
            }
            &Probabilities::Random { low, high } => {
                check_probability(&format!("{field}.low"), low)?;
                check_probability(&format!("{field}.high"), high)?;
                ensure(low <= high, || Error::config(field, format!("low = {low} is above high = {high}")))?;
                let stream = Stream::new(seed);
                let place = Place { purpose: Purpose::Constants, iteration: which, trajectory: 0 };
                let uniform = |k: usize| stream.sequence(place, k as u32).uniform();
                Ok((0..count).map(|k| (low + (high - low) * uniform(k)).clamp(low, high)).collect())
            }
        }
    }
}

fn check_length(key: &str, found: usize, of_what: &str, expected: usize) -> Result<()> {
    ensure(found == expected, || {
        let message =
            format!("{found} entries for {expected} {of_what}; give one each, or one number for all");
        Error::config(format!("world.{key}"), message)
    })
}

/// By hand, so that a value of the wrong type is named together with what is allowed.
impl<'de> Deserialize<'de> for Deadlines {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct OneOrEach;
        impl<'de> Visitor<'de> for OneOrEach {
            type Value = Deadlines;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a whole number of at least 1, or a list of them")
            }
            fn visit_i64<E: de::Error>(self, d: i64) -> std::result::Result<Deadlines, E> {
                let d = usize::try_from(d)
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(d), &self as &dyn de::Expected))?;
                Ok(Deadlines::Same(d))
            }
            fn visit_u64<E: de::Error>(self, d: u64) -> std::result::Result<Deadlines, E> {
                Ok(Deadlines::Same(usize::try_from(d).unwrap_or(usize::MAX)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> std::result::Result<Deadlines, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Deadlines::Each)
            }
        }
        deserializer.deserialize_any(OneOrEach)
    }
}

impl<'de> Deserialize<'de> for Probabilities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct OneOrEachOrRandom;
        impl<'de> Visitor<'de> for OneOrEachOrRandom {
            type Value = Probabilities;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number, a list of numbers, or { low = …, high = … }")
            }
            fn visit_f64<E: de::Error>(self, p: f64) -> std::result::Result<Probabilities, E> {
                Ok(Probabilities::Same(p))
            }
            fn visit_i64<E: de::Error>(self, p: i64) -> std::result::Result<Probabilities, E> {
                Ok(Probabilities::Same(p as f64))
            }
            fn visit_u64<E: de::Error>(self, p: u64) -> std::result::Result<Probabilities, E> {
                Ok(Probabilities::Same(p as f64))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> std::result::Result<Probabilities, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Probabilities::Each)
            }
            fn visit_map<A: de::MapAccess<'de>>(
                self,
                map: A,
            ) -> std::result::Result<Probabilities, A::Error> {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Between {
                    low: f64,
                    high: f64,
                }
                let Between { low, high } = Between::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Probabilities::Random { low, high })
            }
        }
        deserializer.deserialize_any(OneOrEachOrRandom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> WirelessSpec {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn every_form_of_a_constant_is_read_and_written_back() {
        for text in [
            "",
            "rows = 2\ncolumns = 3\ndeadline = 8\narrival = 1\nsuccess = 0.25",
            "deadline = [1, 2, 3]\narrival = [0, 0.5]\nsuccess = [0.1]",
            "arrival = { low = 0, high = 0.5 }\nseed = 7\nsuccess = { low = 0.5, high = 1.0 }",
        ] {
            let spec = read(text);
            assert_eq!(read(&toml::to_string(&spec).unwrap()), spec, "{text}");
        }
        let spec = read("arrival = { low = 0, high = 0.5 }\ndeadline = [1, 2]\nsuccess = 1");
        assert_eq!(spec.arrival, Probabilities::Random { low: 0.0, high: 0.5 });
        assert_eq!((spec.deadline, spec.success), (Deadlines::Each(vec![1, 2]), Probabilities::Same(1.0)));
    }

    #[test]
    fn random_constants_follow_the_seed_and_fill_their_range() {
        let spec = read(
            "rows = 40\ncolumns = 50\narrival = { low = 0.2, high = 0.4 }\nsuccess = { low = 0.5, high = 0.5 }",
        );
        let Constants { arrival, success, .. } = Constants::new(&spec).unwrap();
        assert_eq!((arrival.len(), success.len()), (2000, 39 * 49));
        let mean = arrival.iter().sum::<f64>() / 2000.0;
        let (least, most) = arrival.iter().fold((1.0f64, 0.0f64), |(l, m), &p| (l.min(p), m.max(p)));
        assert!((0.2..0.201).contains(&least) && (0.399..=0.4).contains(&most), "{least} to {most}");
        assert!((mean - 0.3).abs() < 4.0 * 0.2 / (12.0f64 * 2000.0).sqrt(), "{mean}");
        assert!(success.iter().all(|&q| q == 0.5));
        let seeded = |seed| Constants::new(&WirelessSpec { seed, ..spec.clone() }).unwrap().arrival;
        assert_eq!(seeded(0), arrival);
        assert_ne!(seeded(1), arrival);
        // The two keys do not share numbers.
        let both = read("arrival = { low = 0, high = 1 }\nsuccess = { low = 0, high = 1 }");
        let both = Constants::new(&both).unwrap();
        assert_ne!(both.arrival[..16], both.success[..]);
    }

    #[test]
    fn mistakes_are_named() {
        let tiny = "rows = 2\ncolumns = 2\n";
        for (text, wanted) in [
            ("rows = 1", "world.rows: 1; at least 2"),
            ("columns = 0", "world.columns: 0; at least 2"),
            ("rows = 100000\ncolumns = 100000", "world.rows: 100000 × 100000 columns make 10000000000 users"),
            ("deadline = 0", "world.deadline: 0 steps; allowed are 1 to 8"),
            ("deadline = 9", "world.deadline: 9 steps; allowed are 1 to 8"),
            ("deadline = [1, 2, 9, 4]", "world.deadline.2: 9 steps"),
            ("deadline = [1]", "world.deadline: 1 entries for 4 users"),
            ("arrival = 1.5", "world.arrival: 1.5 is not a probability"),
            ("arrival = nan", "world.arrival: NaN is not a probability"),
            ("arrival = [0.5, 0.5]", "world.arrival: 2 entries for 4 users"),
            ("success = [0.5, 0.5]", "world.success: 2 entries for 1 access points"),
            ("success = [-0.5]", "world.success.0: -0.5 is not"),
            ("success = { low = 0.5, high = 0.4 }", "world.success: low = 0.5 is above high = 0.4"),
            ("success = { low = -1, high = 0.4 }", "world.success.low: -1 is not"),
        ] {
            let small = if text.contains("rows") || text.contains("columns") { "" } else { tiny };
            let message = Constants::new(&read(&format!("{small}{text}"))).unwrap_err().to_string();
            assert!(message.contains(wanted), "{message:?} should contain {wanted:?}");
        }
    }
}
