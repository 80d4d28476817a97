//! Finished training runs in a kilobyte each, in `archive/`: tables, claims and figures are made from them
//! alone, so that the experiments can be run in parts, and drawn again without running.
//!
//! A run counts if its commit gives the bytes of this program: both are known by a short run of the preset,
//! whose checksum is its fingerprint (`archive/fingerprints.csv`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use phalanx::base::durable;
use phalanx::run::{Config, Outcome, Provenance, Registry, Run, Session};
use phalanx::{Error, Result};
use phalanx_pictures::plot::{Metrics, Point};
use phalanx_pictures::statistics::mean;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::sheet::if_there;
use super::training_metrics;

/// A finished run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArchivedRun {
    /// Checksum of its configuration.
    pub config: String,
    /// Settings on top of the preset, for people.
    pub set: String,
    pub seed: u64,
    /// The program that trained it.
    pub commit: String,
    pub iterations: usize,
    pub wall_s: f64,
    pub agent_steps: u64,
    pub comm_bytes: u64,
    #[serde(rename = "return")]
    pub return_: Option<f64>,
    pub objective: f64,
    pub violation_total: f64,
    pub violation_max: f64,
    pub violation_mean: f64,
    pub violation_peak: Option<f64>,
    pub violation_start: Option<f64>,
    pub return_start: Option<f64>,
    pub early_return: Option<f64>,
    pub settled: Option<f64>,
    pub returns: Numbers,
    pub violations: Numbers,
    /// What each agent's first constraint bounds, in the closing evaluation; of small graphs.
    #[serde(default)]
    pub values: Numbers,
}

/// Numbers with a few digits in one cell; those that are none are NaN.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Numbers(pub Vec<f64>);

/// Parts of a curve.
const WINDOWS: usize = 60;

impl Numbers {
    /// Means over equal parts of training.
    fn curve(values: &[f64]) -> Numbers {
        let windows = WINDOWS.min(values.len());
        let bound = |k: usize| k * values.len() / windows.max(1);
        Numbers((0..windows).map(|k| digits(mean(&values[bound(k)..bound(k + 1)]), 4)).collect())
    }

    /// A curve against a quantity that grows evenly to `end` over training: each value at the middle of its
    /// part.
    pub fn points(&self, end: f64) -> Vec<Point> {
        let width = end / self.0.len().max(1) as f64;
        self.0.iter().enumerate().map(|(k, &value)| ((k as f64 + 0.5) * width, value)).collect()
    }
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let words: Vec<String> = self.0.iter().map(f64::to_string).collect();
        serializer.serialize_str(&words.join(" "))
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let values = text.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>();
        values.map(Numbers).map_err(serde::de::Error::custom)
    }
}

/// So many significant digits.
fn digits(value: f64, count: usize) -> f64 {
    format!("{value:.*e}", count - 1).parse().unwrap_or(f64::NAN)
}

/// Six decimals, as tables have; none if it is no number.
fn rounded(value: f64) -> Option<f64> {
    value.is_finite().then(|| (1e6 * value).round() / 1e6)
}

impl ArchivedRun {
    /// What is kept of the run in the folder of `outcome`.
    pub fn of(outcome: &Outcome, config: &Config, set: &[String]) -> Result<ArchivedRun> {
        let metrics = Metrics::read(&outcome.run)?;
        let course = |quantity: fn(&Metrics) -> f64| rounded(quantity(&metrics));
        let result = |value: f64| rounded(value).unwrap_or(f64::NAN);
        Ok(ArchivedRun {
            config: checksum(config),
            set: set.join(" "),
            seed: outcome.seed,
            commit: commit_of(&outcome.run)?,
            iterations: outcome.iterations,
            wall_s: (100.0 * outcome.wall_s).round() / 100.0,
            agent_steps: outcome.agent_steps,
            comm_bytes: outcome.comm_bytes,
            return_: outcome.return_.and_then(rounded),
            objective: result(outcome.objective),
            violation_total: result(outcome.violation_total),
            violation_max: result(outcome.violation_max),
            violation_mean: result(outcome.violation_mean),
            violation_peak: course(training_metrics::peak_violation),
            violation_start: course(training_metrics::violation_at_start),
            return_start: course(training_metrics::return_at_start),
            early_return: course(training_metrics::early_return),
            settled: course(training_metrics::settled),
            returns: Numbers::curve(&metrics.return_),
            violations: Numbers::curve(&metrics.violation_total),
            values: values_of(&outcome.run)?,
        })
    }
}

/// Every agent's value of its first constraint.
fn values_of(run: &Path) -> Result<Numbers> {
    #[derive(Deserialize)]
    struct Row {
        agent: u64,
        value: f64,
    }
    const MOST_AGENTS: usize = 100;
    let rows: Vec<Row> = read_rows(&run.join("agents.csv"))?;
    let mut values: Vec<f64> = Vec::new();
    for row in rows.iter().filter(|row| row.agent < MOST_AGENTS as u64) {
        if row.agent == values.len() as u64 {
            values.push(digits(row.value, 6));
        }
    }
    Ok(Numbers(values))
}

/// The checksum that a configuration is known by: of what was written, so that new keys with defaults do not
/// change it.
pub fn checksum(config: &Config) -> String {
    format!("{:08x}", crc32c::crc32c(config.written().as_bytes()))
}

/// A preset's name as part of a file's.
pub fn slug(preset: &str) -> String {
    preset.replace('/', "-")
}

/// The commit that a run's folder names.
fn commit_of(run: &Path) -> Result<String> {
    #[derive(Deserialize)]
    struct Meta {
        commit: String,
    }
    let file = run.join("meta.json");
    let text = std::fs::read_to_string(&file).map_err(|error| Error::file(&file, error.to_string()))?;
    let meta: Meta = serde_json::from_str(&text).map_err(|error| Error::file(&file, error.to_string()))?;
    Ok(meta.commit)
}

/// What a commit's short run of a preset gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    pub preset: String,
    pub commit: String,
    /// CRC-32C of `metrics.csv` and `policy.safetensors`.
    pub fingerprint: String,
}

/// Settings of that run: `phalanx train PRESET` with these leaves the same two files.
const SHORT_RUN: [(&str, &str); 3] = [("iterations", "2"), ("seed", "1"), ("evaluation.episodes", "3")];

impl Fingerprint {
    /// That of the running program, which `provenance` names.
    pub fn of(preset: &str, registry: &Registry, provenance: Provenance) -> anyhow::Result<Fingerprint> {
        let config = Config::preset(preset)?.with_registry(registry.clone()).with_all(SHORT_RUN)?;
        let commit = provenance.commit.clone();
        let folder = tempfile::tempdir()?;
        let folder = folder.path().join("run");
        Run::begin(Session::new(&config)?, &folder, provenance)?.train(&Default::default(), |_| {})?;
        let mut sum = 0;
        for name in ["metrics.csv", "policy.safetensors"] {
            let file = folder.join(name);
            let bytes = std::fs::read(&file).map_err(|error| Error::file(&file, error.to_string()))?;
            sum = crc32c::crc32c_append(sum, &bytes);
        }
        Ok(Fingerprint { preset: preset.into(), commit, fingerprint: format!("{sum:08x}") })
    }
}

/// Runs and fingerprints in a folder.
#[derive(Debug)]
pub struct Archive {
    folder: PathBuf,
    pub fingerprints: Vec<Fingerprint>,
    /// By preset.
    runs: BTreeMap<String, Vec<ArchivedRun>>,
}

const FINGERPRINTS: &str = "fingerprints.csv";

impl Archive {
    /// What is in the folder; nothing if there is none.
    pub fn open(folder: &Path) -> Result<Archive> {
        let fingerprints = read_rows(&folder.join(FINGERPRINTS))?;
        Ok(Archive { folder: folder.into(), fingerprints, runs: BTreeMap::new() })
    }

    /// The runs of a preset.
    pub fn runs(&mut self, preset: &str) -> Result<&mut Vec<ArchivedRun>> {
        if !self.runs.contains_key(preset) {
            let rows = read_rows(&self.folder.join(slug(preset) + ".csv"))?;
            self.runs.insert(preset.into(), rows);
        }
        Ok(self.runs.entry(preset.into()).or_default())
    }

    /// Reads the runs again when they are next asked for; what was added and not written is lost.
    pub fn forget_runs(&mut self) {
        self.runs.clear();
    }

    /// What the short run of a preset gave with a commit.
    fn fingerprint(&self, preset: &str, commit: &str) -> Option<&str> {
        let mut all = self.fingerprints.iter();
        let found = all.find(|known| known.preset == preset && known.commit == commit)?;
        Some(&found.fingerprint)
    }

    /// Whether two commits give the same bytes.
    pub fn agree(&self, preset: &str, one: &str, other: &str) -> bool {
        one == other || {
            let [one, other] = [one, other].map(|commit| self.fingerprint(preset, commit));
            one.is_some() && one == other
        }
    }

    /// Whether the short run of a preset is known with a commit.
    pub fn knows(&self, preset: &str, commit: &str) -> bool {
        self.fingerprint(preset, commit).is_some()
    }

    /// The run with a configuration, of a commit that gives the bytes of `commit`.
    pub fn find(&mut self, preset: &str, config: &str, commit: &str) -> Result<Option<ArchivedRun>> {
        let found: Vec<ArchivedRun> =
            self.runs(preset)?.iter().filter(|run| run.config == config).cloned().collect();
        Ok(found.into_iter().find(|run| self.agree(preset, &run.commit, commit)))
    }

    /// The run with one of these configurations, the first that there is.
    pub fn find_any(
        &mut self,
        preset: &str,
        configs: &[String],
        commit: &str,
    ) -> Result<Option<ArchivedRun>> {
        for config in configs {
            if let Some(run) = self.find(preset, config, commit)? {
                return Ok(Some(run));
            }
        }
        Ok(None)
    }

    /// Adds a run in place of an earlier one with its configuration.
    pub fn add(&mut self, preset: &str, run: ArchivedRun) -> Result<()> {
        let runs = self.runs(preset)?;
        runs.retain(|earlier| earlier.config != run.config);
        runs.push(run);
        runs.sort_by(|one, other| (&one.set, one.seed).cmp(&(&other.set, other.seed)));
        Ok(())
    }

    /// Writes everything that was looked at.
    pub fn write(&mut self) -> Result<()> {
        durable::create_dirs(&self.folder).map_err(|error| Error::write(&self.folder, error))?;
        self.fingerprints
            .sort_by(|one, other| (&one.preset, &one.commit).cmp(&(&other.preset, &other.commit)));
        write_rows(&self.folder.join(FINGERPRINTS), &self.fingerprints)?;
        let kept = self.runs.iter().filter(|(_, runs)| !runs.is_empty());
        kept.into_iter()
            .try_for_each(|(preset, runs)| write_rows(&self.folder.join(slug(preset) + ".csv"), runs))
    }
}

fn read_rows<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>> {
    let Some(text) = if_there(file, std::fs::read(file))? else { return Ok(Vec::new()) };
    let rows = csv::Reader::from_reader(&*text).into_deserialize().collect::<std::result::Result<_, _>>();
    rows.map_err(|error| Error::file(file, format!("cannot be read: {error}")))
}

fn write_rows<T: Serialize>(file: &Path, rows: &[T]) -> Result<()> {
    let failed = |error: String| Error::file(file, error);
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row).map_err(|error| failed(error.to_string()))?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(error.to_string()))?;
    durable::replace_bytes(file, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::ALL;
    use crate::distinct;

    fn run(config: &str, commit: &str) -> ArchivedRun {
        ArchivedRun {
            config: config.into(),
            set: "kappa=1 constraint=[{ kind = \"a\", at_least = 1 }]".into(),
            seed: 3,
            commit: commit.into(),
            iterations: 400,
            wall_s: 1.25,
            agent_steps: 500_000,
            comm_bytes: 7,
            return_: None,
            objective: 0.1,
            violation_total: 0.0,
            violation_max: 0.0,
            violation_mean: 0.0,
            violation_peak: Some(1e-6),
            violation_start: None,
            return_start: None,
            early_return: Some(-3.25),
            settled: None,
            returns: Numbers(vec![f64::INFINITY, 1.5]),
            violations: Numbers::default(),
            values: Numbers(vec![0.25, 3.0]),
        }
    }

    #[test]
    fn runs_of_commits_with_the_same_bytes_are_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = Archive::open(folder.path()).unwrap();
        for (commit, fingerprint) in [("old", "1"), ("same", "2"), ("new", "2")] {
            let [preset, commit, fingerprint] = ["paper/synthetic", commit, fingerprint].map(String::from);
            archive.fingerprints.push(Fingerprint { preset, commit, fingerprint });
        }
        for (config, commit) in [("a", "old"), ("a", "same"), ("b", "old"), ("c", "unknown")] {
            archive.add("paper/synthetic", run(config, commit)).unwrap();
        }
        archive.write().unwrap();
        let mut archive = Archive::open(folder.path()).unwrap();
        let mut find = |config: &str, commit: &str| archive.find("paper/synthetic", config, commit).unwrap();
        assert_eq!(find("a", "new"), Some(run("a", "same")), "read as it was written");
        assert_eq!(find("b", "new"), None, "the old commit gives other bytes");
        assert_eq!(find("c", "new"), None);
        assert!(find("c", "unknown").is_some());
        let both = ["missing", "a"].map(String::from);
        assert_eq!(archive.find_any("paper/synthetic", &both, "new").unwrap(), Some(run("a", "same")));
        assert_eq!(archive.find_any("paper/synthetic", &both[..1], "new").unwrap(), None);
        assert!(archive.runs("wireless").unwrap().is_empty());
    }

    /// The presets whose runs are in the archive's files: those of experiments that are there.
    fn archived_presets(folder: &Path) -> Vec<String> {
        let settings = ALL.iter().flat_map(|experiment| &experiment.settings);
        let known = distinct(settings.map(|setting| setting.preset.clone()));
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let presets = files.filter(|file| !file.ends_with(FINGERPRINTS)).map(|file| {
            let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap();
            let preset = known.iter().find(|preset| slug(preset) == stem);
            preset.unwrap_or_else(|| panic!("{}: no experiment trains such a preset", file.display())).clone()
        });
        presets.collect()
    }

    /// A run counts if its commit gives this program's bytes on a short run of its preset.
    #[test]
    fn archived_runs_are_those_of_this_program() {
        #[cfg(target_arch = "x86_64")]
        let has_fused_products = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        #[cfg(not(target_arch = "x86_64"))]
        let has_fused_products = false;
        if !has_fused_products {
            println!("skipped: sums differ on processors without AVX2 and FMA");
            return;
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/paper/archive");
        let mut archive = Archive::open(&folder).unwrap();
        let presets = archived_presets(&folder);
        assert!(!presets.is_empty());
        for preset in presets {
            let provenance = Provenance { commit: "this".into(), command_line: Vec::new() };
            let made = Fingerprint::of(&preset, &Registry::default(), provenance);
            archive.fingerprints.push(made.unwrap());
            let commits = distinct(archive.runs(&preset).unwrap().iter().map(|run| run.commit.clone()));
            assert!(!commits.is_empty(), "{preset}: no runs were read");
            for commit in commits {
                assert!(
                    archive.agree(&preset, &commit, "this"),
                    "{preset}: runs of commit {commit} have other bytes; run `phalanx paper` again for them"
                );
            }
        }
    }

    #[test]
    fn curves_are_means_of_equal_parts() {
        let values: Vec<f64> = (0..240).map(f64::from).collect();
        let Numbers(windows) = Numbers::curve(&values);
        assert_eq!((windows.len(), windows[0], windows[59]), (60, 1.5, 237.5));
        assert_eq!(Numbers::curve(&[1.0, 2.0]).points(20.0), [(5.0, 1.0), (15.0, 2.0)]);
        assert_eq!(Numbers::curve(&[1.0 / 3.0]).0, [0.3333]);
        assert!(Numbers::curve(&[]).0.is_empty());
    }
}
