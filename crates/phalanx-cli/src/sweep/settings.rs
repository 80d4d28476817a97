//! From a sweep's file to its runs: the product of the grid, the draws of a random search, names and seeds.

use std::collections::{BTreeMap, BTreeSet};

use phalanx::algorithm::DEVICE;
use phalanx::base::elementary;
use phalanx::base::stream::{Place, Purpose, Stream};
use toml::Value;

use super::file::{Draw, Key, MOST_RUNS, Noise, Random, SweepFile};

/// What is special about a group of runs that differ in their seed only.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Keys of the grid and of the random search, with their values.
    pub values: Vec<(Key, Value)>,
}

impl Setting {
    /// What tables call it, such as `kappa=1,critic.average=0.5`.
    pub fn label(&self) -> String {
        let parts: Vec<String> =
            self.values.iter().map(|(key, value)| format!("{key}={}", plain(value))).collect();
        parts.join(",")
    }

    /// The same in characters that are safe in the name of a folder.
    fn folder_name(&self) -> String {
        let is_safe = |c: char| c.is_ascii_alphanumeric() || "=.+-_".contains(c);
        let mut name = String::new();
        for (key, value) in &self.values {
            if !name.is_empty() {
                name.push(',');
            }
            name.extend(key.chars().map(|c| if is_safe(c) || c == ',' { c } else { '_' }));
            name.push('=');
            let value = plain(value);
            let value = value.chars().filter(|c| !" \"'[]{}".contains(*c));
            name.extend(value.map(|c| match c {
                // Commas go between settings.
                ',' => '+',
                c if is_safe(c) => c,
                _ => '_',
            }));
        }
        name
    }
}

/// A value as a person would write it: strings without quotes, very large and small numbers with an exponent.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Float(number) => format!("{number:?}"),
        other => other.to_string(),
    }
}

/// Values of all settings together: more are a mistake, and take a while to list.
const MOST_VALUES: usize = 500_000;

/// Every setting of a sweep, in order: the last key of the grid changes fastest, then come the samples.
pub fn settings(file: &SweepFile) -> Result<Vec<Setting>, String> {
    let samples = file.random.as_ref().map_or(1, |random| random.samples);
    let counts = file.grid.iter().map(|(_, values)| values.len()).chain([samples, file.seeds.len()]);
    let runs = counts.fold(1usize, usize::saturating_mul);
    if runs > MOST_RUNS {
        return Err(format!("it asks for more than {MOST_RUNS} runs"));
    }
    let keys = file.grid.len() + file.random.as_ref().map_or(0, |random| random.keys.len());
    if (runs / file.seeds.len()).saturating_mul(keys) > MOST_VALUES {
        let settings = runs / file.seeds.len();
        return Err(format!(
            "it asks for {settings} settings of {keys} keys each; at most {MOST_VALUES} values are possible"
        ));
    }
    let points = file.grid.iter().map(|(_, values)| values.len()).product::<usize>();
    let found = (0..points).map(|number| point(&file.grid, number));
    let Some(random) = &file.random else { return Ok(found.collect()) };
    // Of a few values, the same may be drawn again; it would be the same runs. Many are told apart by their
    // text: comparing each with all before it takes minutes.
    let mut known = BTreeSet::new();
    let samples = (0..random.samples).map(|k| drawn(random, k));
    let samples: Vec<_> = samples.filter(|sample| known.insert(format!("{sample:?}"))).collect();
    let with = |setting: &Setting, sample: &Vec<(Key, Value)>| Setting {
        values: setting.values.iter().chain(sample).cloned().collect(),
    };
    Ok(found
        .flat_map(|setting| samples.iter().map(move |sample| with(&setting, sample)).collect::<Vec<_>>())
        .collect())
}

/// The point of the grid with a number, whose digits are those of the keys, the last one's the lowest.
fn point(grid: &[(Key, Vec<Value>)], mut number: usize) -> Setting {
    let mut values: Vec<(Key, Value)> = Vec::with_capacity(grid.len());
    for (key, all) in grid.iter().rev() {
        values.push((key.clone(), all[number % all.len()].clone()));
        number /= all.len();
    }
    values.reverse();
    Setting { values }
}

/// Sample `k` of a random search. It depends on the seed, on k and on each key's name: more samples, or
/// another key, leave those that are there as they are.
fn drawn(random: &Random, k: usize) -> Vec<(Key, Value)> {
    let stream = Stream::new(random.seed);
    let place = Place { purpose: Purpose::Search, iteration: k as u32, trajectory: 0 };
    let draw = |(key, draw): &(Key, Draw)| {
        let u = stream.sequence(place, hash(key) as u32).uniform();
        (key.clone(), draw.at(u))
    };
    random.keys.iter().map(draw).collect()
}

impl Draw {
    /// The value at quantile `u` in [0, 1).
    fn at(&self, u: f64) -> Value {
        let between = |low: f64, high: f64, log: bool| {
            if log { low * elementary::pow(high / low, u) } else { low + u * (high - low) }
        };
        match self {
            Draw::OneOf(values) => values[((u * values.len() as f64) as usize).min(values.len() - 1)].clone(),
            &Draw::Whole { low, high, log } => {
                // Every whole number has the stretch up to the next.
                let number = between(low as f64, high as f64 + 1.0, log).floor();
                Value::Integer((number as i64).clamp(low, high))
            }
            &Draw::Real { low, high, log } => {
                let number = between(low, high, log);
                // Four digits: names stay short, and a name tells the very value.
                let short = format!("{number:.3e}").parse().unwrap_or(number);
                Value::Float(short.clamp(low, high))
            }
        }
    }
}

/// A folder's name for each setting, without the seed. Where two would be the same, or one too long for a
/// file system, a number that the setting determines is put behind it.
pub fn folder_names(settings: &[Setting]) -> Vec<String> {
    /// Room is left for a seed within the usual 255 bytes.
    const LONGEST: usize = 180;
    let names: Vec<String> = settings.iter().map(Setting::folder_name).collect();
    let mut counts = BTreeMap::new();
    names.iter().for_each(|name| *counts.entry(name.as_str()).or_insert(0) += 1);
    let numbered = |(name, setting): (&String, &Setting)| {
        if counts[name.as_str()] == 1 && name.len() <= LONGEST {
            return name.clone();
        }
        let short: String = name.chars().take(LONGEST).collect();
        format!("{short}-{:08x}", hash(&setting.label()) as u32)
    };
    names.iter().zip(settings).map(numbered).collect()
}

/// The seed that a run's configuration is given. With noise of its own it comes from everything that the file
/// sets, so that different settings share no random numbers; else it is the plain seed. The device is no
/// setting in this sense: results do not depend on it.
pub fn run_seed(file: &SweepFile, setting: &Setting, seed: u64) -> u64 {
    if file.noise == Noise::Shared {
        return seed;
    }
    let pairs = file.set.iter().chain(&setting.values).filter(|(key, _)| **key != *DEVICE);
    let mut parts: Vec<String> = pairs.map(|(key, value)| format!("{key}={}", plain(value))).collect();
    // Where a key stands in the file does not matter.
    parts.sort();
    hash(&format!("{}\n{}\n{seed}", file.base, parts.join("\n"))) >> 33
}

/// 64 bits that are the same on every machine and in every version: FNV-1a, mixed once more so that all bits
/// depend on all characters.
fn hash(text: &str) -> u64 {
    let fnv = text.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = (fnv ^ (fnv >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> SweepFile {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sweep.toml");
        std::fs::write(&path, text).unwrap();
        SweepFile::read(&path).unwrap()
    }

    fn labels(text: &str) -> Vec<String> {
        settings(&read(text)).unwrap().iter().map(Setting::label).collect()
    }

    #[test]
    fn the_grid_is_a_product_in_the_order_of_the_file() {
        let text = "base = \"synthetic\"\n[grid]\nkappa = [0, 1]\n\"constraint.0.at_least\" = [0.3, 0.2]";
        assert_eq!(
            labels(text),
            [
                "kappa=0,constraint.0.at_least=0.3",
                "kappa=0,constraint.0.at_least=0.2",
                "kappa=1,constraint.0.at_least=0.3",
                "kappa=1,constraint.0.at_least=0.2",
            ]
        );
        // Without quotes it is the same key.
        assert_eq!(labels("base = \"x\"\n[grid]\ncritic.average = [0.5]"), ["critic.average=0.5"]);
        assert_eq!(labels("base = \"x\""), [""]);
    }

    #[test]
    fn folders_have_safe_names_of_their_own() {
        let text = "base = \"x\"\n[grid]\n\"dual.kind\" = [\"pi\", \"a/b\", \"a:b\"]\n\"policy.hidden\" = [[32, 16]]";
        let names = folder_names(&settings(&read(text)).unwrap());
        assert_eq!(names[0], "dual.kind=pi,policy.hidden=32+16");
        assert_eq!(
            labels("base = \"x\"\n[grid]\nkappa = [1e300, 0.1, 1e-9]"),
            ["kappa=1e300", "kappa=0.1", "kappa=1e-9"]
        );
        // Both would be `a_b`.
        assert!(
            names[1] != names[2] && names[1].starts_with("dual.kind=a_b,policy.hidden=32+16-"),
            "{names:?}"
        );
        let long = format!("base = \"x\"\n[grid]\nkappa = [\"{}\"]", "k".repeat(400));
        assert!(folder_names(&settings(&read(&long)).unwrap())[0].len() < 200);
    }

    #[test]
    fn samples_are_in_range_and_stay_when_more_are_asked_for() {
        let text = |samples: usize, more: &str| {
            format!(
                "base = \"x\"\n[random]\nsamples = {samples}\nseed = 3\nbatch = {{ low = 2, high = 4 }}\n\
                 \"actor.eta_theta\" = {{ low = 1e-4, high = 1.0, scale = \"log\" }}\n{more}"
            )
        };
        let many = settings(&read(&text(2000, ""))).unwrap();
        let numbers = |k: usize| many.iter().map(move |s| &s.values[k].1);
        for wanted in 2..=4 {
            let share =
                numbers(0).filter(|v| v.as_integer() == Some(wanted)).count() as f64 / many.len() as f64;
            assert!((share - 1.0 / 3.0).abs() < 0.05, "{wanted}: {share}");
        }
        let steps: Vec<f64> = numbers(1).map(|v| v.as_float().unwrap()).collect();
        assert!(steps.iter().all(|step| (1e-4..=1.0).contains(step)));
        // Half of them below the geometric mean of the ends.
        let below = steps.iter().filter(|&&step| step < 1e-2).count() as f64 / steps.len() as f64;
        assert!((below - 0.5).abs() < 0.05, "{below}");
        let few = settings(&read(&text(5, ""))).unwrap();
        assert_eq!(few, many[..5]);
        let wider = settings(&read(&text(5, "kappa = [0, 1]"))).unwrap();
        assert!(wider.iter().zip(&few).all(|(wide, few)| wide.values[..2] == few.values[..]));
        // Told apart in less than a second, however many they are.
        let begin = std::time::Instant::now();
        assert!(settings(&read(&text(50_000, ""))).unwrap().len() > 10_000);
        assert!(begin.elapsed().as_secs() < 10, "{:?}", begin.elapsed());
        // Sixteen keys of two values each are too many values in all.
        let twice = (0..16).map(|k| format!("k{k} = [0, 1]\n")).collect::<String>();
        let refused = settings(&read(&format!("base = \"x\"\n[grid]\n{twice}"))).unwrap_err();
        assert_eq!(refused, "it asks for 65536 settings of 16 keys each; at most 500000 values are possible");
        // Of two values there are no twenty different settings.
        assert_eq!(labels("base = \"x\"\n[random]\nsamples = 20\nkappa = [0, 1]").len(), 2);
    }

    #[test]
    fn noise_is_keyed_by_the_whole_setting() {
        let text = "base = \"x\"\nseeds = 2\n[set]\nbatch = 3\n[grid]\nkappa = [0, 1]\nhorizon = [5]";
        let file = read(text);
        let found = settings(&file).unwrap();
        let seeds: Vec<u64> =
            found.iter().flat_map(|s| [1, 2].map(|seed| run_seed(&file, s, seed))).collect();
        assert!(seeds.iter().all(|&seed| seed < 1 << 31));
        assert!((0..4).all(|k| !seeds[..k].contains(&seeds[k])), "{seeds:?}");
        // These must never change: finished runs would not be found again.
        assert_eq!(seeds, KNOWN);
        let moved = read("base = \"x\"\n[set]\nhorizon = 5\n[grid]\nbatch = [3]\nkappa = [0]");
        assert_eq!(run_seed(&moved, &settings(&moved).unwrap()[0], 1), seeds[0]);
        let elsewhere = read(&text.replace("batch = 3", "batch = 3\ndevice = \"cuda\""));
        assert_eq!(run_seed(&elsewhere, &found[0], 1), seeds[0]);
        let other = read(&text.replace("batch = 3", "batch = 4"));
        assert_ne!(run_seed(&other, &found[0], 1), seeds[0]);
        let shared = read(&format!("noise = \"shared\"\n{text}"));
        assert_eq!(run_seed(&shared, &found[0], 2), 2);
    }

    /// By the same formula in Python.
    const KNOWN: [u64; 4] = [1274675966, 33536014, 1828200478, 193718925];
}
