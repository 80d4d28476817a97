//! How long the experiments that were asked for will take, said before they start.

use std::collections::BTreeSet;
use std::time::Instant;

use phalanx::run::Session;

use super::archive::ArchivedRun;
use super::catalogue::Experiment;
use super::context::{Record, Reproduction};
use super::setting::Setting;
use phalanx_pictures::statistics::mean;

/// In a line: runs that the archive does not have and how long they take by those that it has, and the time
/// that computed experiments took the last time.
pub fn words(wanted: &[&'static Experiment], reproduction: &Reproduction) -> anyhow::Result<String> {
    let settings = || wanted.iter().flat_map(|experiment| &experiment.settings);
    let mut archive = reproduction.archive(settings().map(|setting| setting.preset.as_str()))?;
    let (mut seconds, mut missing, mut all) = (0.0, 0, BTreeSet::new());
    for setting in settings() {
        let known = archive.runs(&setting.preset)?.clone();
        let mut each = None;
        let alike = reproduction.alike(setting)?;
        for seed in setting.seeds(&reproduction.seeds) {
            let checksums = reproduction.checksums(&alike, seed)?;
            if !all.insert((setting.preset.clone(), checksums.iter().min().cloned())) {
                continue;
            }
            if archive.find_any(&setting.preset, &checksums, &reproduction.provenance.commit)?.is_none() {
                let each: f64 = match each {
                    Some(each) => each,
                    None => *each.insert(seconds_of(setting, &known, reproduction)?),
                };
                (seconds, missing) = (seconds + each, missing + 1);
            }
        }
    }
    let computed = wanted.iter().filter(|experiment| experiment.settings.is_empty());
    let mut unknown = Vec::new();
    for experiment in computed {
        match Record::read(&reproduction.folder(&experiment.id))? {
            Some(record) if record.complete => seconds += record.wall_s,
            _ => unknown.push(experiment.id.as_str()),
        }
    }
    let mut words = format!(
        "{missing} of {} runs are to be trained; about {:.0} minutes of one core in all",
        all.len(),
        (seconds / 60.0).ceil()
    );
    if !unknown.is_empty() {
        words += &format!(", and {}, which was not timed yet", unknown.join(", "));
    }
    Ok(words + "\n")
}

/// Seconds of a run: those of finished runs like it, else by its first iterations.
fn seconds_of(setting: &Setting, known: &[ArchivedRun], reproduction: &Reproduction) -> anyhow::Result<f64> {
    let set = setting.set.join(" ");
    let alike: Vec<f64> = known.iter().filter(|run| run.set == set).map(|run| run.wall_s).collect();
    if !alike.is_empty() {
        return Ok(mean(&alike));
    }
    const TRIED: usize = 2;
    let config = setting.config(1, reproduction.length, &reproduction.registry)?;
    let mut session = super::on_one_thread(|| Session::new(&config))??;
    let begin = Instant::now();
    super::on_one_thread(move || (0..TRIED).try_for_each(|_| session.advance().map(|_| ())))??;
    Ok(begin.elapsed().as_secs_f64() / TRIED as f64 * config.iterations as f64)
}
