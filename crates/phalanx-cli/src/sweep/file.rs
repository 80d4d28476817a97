//! The file that describes a sweep.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use phalanx::base::document;
use phalanx::base::key::{KAPPA, SEED};
use phalanx::run::preset;
use phalanx::{Error, Result};
use toml::{Table, Value};

/// The dotted name of a setting, which all runs share: there can be tens of thousands.
pub type Key = Arc<str>;

/// What the file says, checked as far as it can be without building anything.
pub struct SweepFile {
    /// Where it is.
    pub path: PathBuf,
    /// Preset or configuration file, as written.
    pub base: String,
    /// Seeds of every setting.
    pub seeds: Vec<u64>,
    /// Whether settings share random numbers.
    pub noise: Noise,
    /// Settings of all runs.
    pub set: Vec<(Key, Value)>,
    /// Keys and their values, of which the product is taken.
    pub grid: Vec<(Key, Vec<Value>)>,
    /// Keys that are drawn.
    pub random: Option<Random>,
}

/// Where a run's randomness comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Noise {
    /// From its setting and its seed.
    Own,
    /// From its seed: runs of one seed share what they can.
    Shared,
}

/// `[random]`.
pub struct Random {
    /// How many settings to draw.
    pub samples: usize,
    /// Seed of the draws.
    pub seed: u64,
    /// What is drawn.
    pub keys: Vec<(Key, Draw)>,
}

/// Where a value is drawn from.
pub enum Draw {
    /// One of these.
    OneOf(Vec<Value>),
    /// Whole numbers, both ends included.
    Whole { low: i64, high: i64, log: bool },
    /// Numbers.
    Real { low: f64, high: f64, log: bool },
}

/// What a part of the file says, or what is wrong with it.
type Checked<T> = std::result::Result<T, String>;

const TOP_KEYS: [&str; 6] = ["base", "seeds", "noise", "set", "grid", "random"];

/// More settings or seeds are a mistake.
pub const MOST_RUNS: usize = 100_000;

impl SweepFile {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self> {
        SweepFile::checked(path, document::read(path, &[])?)
    }

    /// The same from text at hand; `path` is what errors call it.
    pub fn parse(path: &Path, text: &str) -> Result<Self> {
        SweepFile::checked(path, document::parse(text, path, &[])?)
    }

    fn checked(path: &Path, table: Table) -> Result<Self> {
        SweepFile::from_table(path, table).map_err(|message| Error::file(path, message))
    }

    fn from_table(path: &Path, table: Table) -> Checked<Self> {
        if let Some(key) = table.keys().find(|key| !TOP_KEYS.contains(&key.as_str())) {
            return Err(format!("`{key}` is unknown; allowed are {}", TOP_KEYS.join(", ")));
        }
        let base = match table.get("base") {
            Some(Value::String(base)) => base.clone(),
            Some(other) => return Err(format!("base: {other}; the name of a preset or a file is needed")),
            None => return Err("base is missing: name a preset or a configuration file".into()),
        };
        let noise = match table.get("noise").map(|value| (value, value.as_str())) {
            None | Some((_, Some("own"))) => Noise::Own,
            Some((_, Some("shared"))) => Noise::Shared,
            Some((value, _)) => return Err(format!("noise: {value}; allowed are \"own\" and \"shared\"")),
        };
        let section = |name: &str| match table.get(name) {
            None => Ok(Table::new()),
            Some(Value::Table(section)) => Ok(section.clone()),
            Some(other) => Err(format!("{name}: {other}; a section [{name}] is needed")),
        };
        let file = SweepFile {
            path: path.to_path_buf(),
            base,
            seeds: seeds(table.get("seeds"))?,
            noise,
            set: leaves(&section("set")?, &|_| false),
            grid: grid(&section("grid")?)?,
            random: table.contains_key("random").then(|| random(section("random")?)).transpose()?,
        };
        file.check_keys()?;
        Ok(file)
    }

    /// No key may be in two places, nor be the seed, which has a place of its own.
    fn check_keys(&self) -> Checked<()> {
        let drawn = self.random.iter().flat_map(|random| &random.keys).map(|(key, _)| ("random", key));
        let set = self.set.iter().map(|(key, _)| ("set", key));
        let mut seen: Vec<(&str, &Key)> = Vec::new();
        for (section, key) in set.chain(self.grid.iter().map(|(key, _)| ("grid", key))).chain(drawn) {
            if **key == *SEED {
                return Err(format!("{section}.seed: seeds are given as `seeds = [1, 2, 3]` or `seeds = 3`"));
            }
            if let Some((other, _)) = seen.iter().find(|(_, known)| *known == key) {
                return Err(format!("{section}.{key}: it is in [{other}] already"));
            }
            seen.push((section, key));
        }
        Ok(())
    }

    /// Relative files are looked up beside the file of the sweep.
    pub fn locate(&self, file: &str) -> String {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        if preset::builtin(Path::new(file)).is_some() || preset::text(file).is_some() {
            return file.into();
        }
        folder.join(file).display().to_string()
    }
}

fn seeds(value: Option<&Value>) -> Checked<Vec<u64>> {
    let wanted = "a list such as [1, 2, 3], or their number, is needed";
    match value {
        None => Ok(vec![1]),
        Some(Value::Integer(count)) => match usize::try_from(*count) {
            Ok(count) if (1..=MOST_RUNS).contains(&count) => Ok((1..=count as u64).collect()),
            _ => Err(format!("seeds: {count}; allowed are 1 to {MOST_RUNS}")),
        },
        Some(Value::Array(list)) => {
            let whole = |value: &Value| value.as_integer().and_then(|seed| u64::try_from(seed).ok());
            let seed = |value: &Value| {
                whole(value).ok_or_else(|| format!("seeds: {value} is not a whole number of at least 0"))
            };
            check_list("seeds", list)?;
            list.iter().map(seed).collect()
        }
        Some(other) => Err(format!("seeds: {other}; {wanted}")),
    }
}

fn check_list(name: &str, list: &[Value]) -> Checked<()> {
    if list.is_empty() {
        return Err(format!("{name}: the list is empty; at least one value is needed"));
    }
    match list.iter().enumerate().find(|(k, value)| list[..*k].contains(value)) {
        Some((_, value)) => Err(format!("{name}: {value} is there twice")),
        None => Ok(()),
    }
}

fn grid(section: &Table) -> Checked<Vec<(Key, Vec<Value>)>> {
    let entry = |(key, value): (Key, Value)| match value {
        Value::Array(list) => check_list(&format!("grid.{key}"), &list).map(|()| (key, list)),
        other => Err(format!("grid.{key}: {other} is not a list; write [{other}]")),
    };
    leaves(section, &|_| false).into_iter().map(entry).collect()
}

fn random(mut section: Table) -> Checked<Random> {
    let mut whole = |name: &str, range: std::ops::RangeInclusive<usize>| match section.remove(name) {
        None => Ok(None),
        Some(value) => {
            let number = value.as_integer().and_then(|number| usize::try_from(number).ok());
            let number = number.filter(|number| range.contains(number));
            let (low, high) = (range.start(), range.end());
            number.map(Some).ok_or(format!("random.{name}: {value}; allowed are {low} to {high}"))
        }
    };
    let samples =
        whole("samples", 1..=MOST_RUNS)?.ok_or("random.samples is missing: how many settings to draw")?;
    let seed = whole("seed", 0..=i64::MAX as usize)?.unwrap_or(1) as u64;
    let is_range = |table: &Table| table.contains_key("low") || table.contains_key("high");
    let entry = |(key, value): (Key, Value)| Ok((key.clone(), draw(&format!("random.{key}"), value)?));
    let keys = leaves(&section, &is_range).into_iter().map(entry).collect::<Checked<Vec<_>>>()?;
    if keys.is_empty() {
        return Err(format!("random: there is no key to draw; write for example {KAPPA} = [0, 1, 2]"));
    }
    Ok(Random { samples, seed, keys })
}

fn draw(name: &str, value: Value) -> Checked<Draw> {
    let range = match value {
        Value::Array(list) => return check_list(name, &list).map(|()| Draw::OneOf(list)),
        Value::Table(range) => range,
        other => return Err(format!("{name}: {other}; a list or {{ low = …, high = … }} is needed")),
    };
    if let Some(key) = range.keys().find(|key| !["low", "high", "scale"].contains(&key.as_str())) {
        return Err(format!("{name}.{key} is unknown; allowed are low, high and scale"));
    }
    let log = match range.get("scale").map(|scale| (scale, scale.as_str())) {
        None | Some((_, Some("linear"))) => false,
        Some((_, Some("log"))) => true,
        Some((scale, _)) => return Err(format!("{name}.scale: {scale}; allowed are \"linear\" and \"log\"")),
    };
    let end = |end: &str| {
        let value = range.get(end).ok_or(format!("{name}.{end} is missing"))?;
        let number = value.as_float().or(value.as_integer().map(|whole| whole as f64));
        let number = number.filter(|number| number.is_finite());
        number.map(|number| (number, value)).ok_or(format!("{name}.{end}: {value} is not a number"))
    };
    let ((low, low_value), (high, high_value)) = (end("low")?, end("high")?);
    if low >= high {
        return Err(format!("{name}: low = {low_value} is not below high = {high_value}"));
    }
    if log && low <= 0.0 {
        return Err(format!("{name}.low: {low_value}; on a logarithmic scale it must be above 0"));
    }
    Ok(match (low_value, high_value) {
        (&Value::Integer(low), &Value::Integer(high)) => Draw::Whole { low, high, log },
        _ => Draw::Real { low, high, log },
    })
}

/// Dotted names and values. `critic.average = 1` is a section to TOML and `"critic.average" = 1` a key: both
/// name the same setting. A quoted name is taken with all that follows, as for `--set`, as is what `is_leaf`
/// says.
fn leaves(table: &Table, is_leaf: &dyn Fn(&Table) -> bool) -> Vec<(Key, Value)> {
    let mut found = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) if !key.contains('.') && !is_leaf(inner) => {
                let below = leaves(inner, is_leaf).into_iter();
                found.extend(below.map(|(rest, value)| (format!("{key}.{rest}").into(), value)));
            }
            value => found.push((key.as_str().into(), value.clone())),
        }
    }
    found
}
