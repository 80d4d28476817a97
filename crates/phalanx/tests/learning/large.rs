//! Large networks: what is summed up is what would have been listed, and a run resumes and evaluates all the
//! same.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use phalanx::distributed::SingleProcess;
use phalanx::run::{
    Config, Ending, Evaluator, MOST_LISTED, Provenance, Registry, ResumeOutcome, Run, RunFolder, Session,
    WORST_LISTED,
};

/// A line of `n` agents with tiny episodes.
fn config(n: usize, settings: &[(&str, &str)]) -> Config {
    let n = n.to_string();
    let small = [
        ("world.n", n.as_str()),
        ("gamma", "0.5"),
        ("horizon", "8"),
        ("batch", "2"),
        ("critic.steps", "10"),
        ("iterations", "3"),
        ("evaluation.episodes", "3"),
        ("policy.init_std", "1.0"),
        ("constraint.0.at_least", "0.6"),
    ];
    let all = small.into_iter().chain(settings.iter().copied());
    Config::preset("synthetic").unwrap().with_all(all).unwrap()
}

/// Trains until `stop_after` iterations are done.
fn run_until(run: &mut Run, stop_after: usize) -> Ending {
    let stop = Arc::new(AtomicBool::new(false));
    let watch = |summary: &phalanx::algorithm::Summary| {
        stop.store(summary.iteration + 1 >= stop_after, Ordering::Relaxed);
    };
    run.train(&stop, watch).unwrap()
}

fn run(config: &Config, path: &Path, stop_after: usize) {
    let session = Session::new(config).unwrap();
    run_until(&mut Run::begin(session, path, Provenance::default()).unwrap(), stop_after);
}

/// Rows below the header.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.records().map(|row| row.unwrap().iter().map(str::to_string).collect()).collect()
}

fn number(text: &str) -> f64 {
    text.parse().unwrap()
}

/// Mean and quantiles straight from the definition.
fn expected(mut numbers: Vec<f64>) -> Vec<f64> {
    let shares = [0.0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0];
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    numbers.sort_by(f64::total_cmp);
    let quantile = |share: f64| {
        let place = share * (numbers.len() - 1) as f64;
        let (low, part) = (place.floor() as usize, place.fract());
        let high = (low + 1).min(numbers.len() - 1);
        numbers[low] * (1.0 - part) + numbers[high] * part
    };
    std::iter::once(mean).chain(shares.map(quantile)).collect()
}

#[test]
fn summaries_are_those_of_the_full_lists() {
    let folder = tempfile::tempdir().unwrap();
    let (all, worst) = (folder.path().join("all"), folder.path().join("worst"));
    let n = WORST_LISTED + 500;
    run(&config(n, &[("output.agents", "all")]), &all, usize::MAX);
    run(&config(n, &[("output.agents", "summary")]), &worst, usize::MAX);
    // The same run: only the lists are shorter.
    for name in ["metrics.csv", "policy.safetensors", "multipliers.safetensors", "agents-summary.csv"] {
        assert!(std::fs::read(all.join(name)).unwrap() == std::fs::read(worst.join(name)).unwrap(), "{name}");
    }
    let (full, cut) = (rows(&all.join("agents.csv")), rows(&worst.join("agents.csv")));
    assert_eq!((full.len(), cut.len()), (n, WORST_LISTED));
    let slack = |row: &Vec<String>| number(&row[2]) - number(&row[4]);
    let mut sorted = full.clone();
    sorted.sort_by(|a, b| slack(a).total_cmp(&slack(b)));
    assert_eq!(cut, sorted[..WORST_LISTED]);
    let (returns, least) = (rows(&all.join("returns.csv")), rows(&worst.join("returns.csv")));
    assert_eq!((returns.len(), least.len()), (n, WORST_LISTED));
    let mut sorted = returns.clone();
    sorted.sort_by(|a, b| number(&a[1]).total_cmp(&number(&b[1])));
    assert_eq!(least, sorted[..WORST_LISTED]);

    let column = |rows: &[Vec<String>], k: usize| rows.iter().map(|row| number(&row[k])).collect::<Vec<_>>();
    let quantities = BTreeMap::from([
        ("value", column(&full, 2)),
        ("slack", full.iter().map(slack).collect()),
        ("violation", column(&full, 6)),
        ("dual", column(&full, 5)),
        ("return", column(&returns, 1)),
        ("objective", column(&returns, 2)),
    ]);
    let summary = rows(&worst.join("agents-summary.csv"));
    assert_eq!(summary.len(), quantities.len());
    for row in &summary {
        let numbers = &quantities[row[0].as_str()];
        assert_eq!(number(&row[2]) as usize, n);
        assert_eq!(number(&row[3]) as usize, numbers.iter().filter(|x| **x < 0.0).count(), "{row:?}");
        for (found, wanted) in row[4..].iter().zip(expected(numbers.clone())) {
            let found = number(found);
            assert!((found - wanted).abs() < 1e-12, "{}: {found} instead of {wanted}", row[0]);
        }
    }
    // The mean of the agents' returns is the run's.
    let outcome = RunFolder::outcome(&all).unwrap().unwrap();
    let mean = |k: usize| column(&returns, k).iter().sum::<f64>() / n as f64;
    assert!((mean(1) - outcome.return_.unwrap()).abs() < 1e-12);
    assert!((mean(2) - outcome.objective).abs() < 1e-12);
}

#[test]
fn large_runs_resume_and_evaluate_to_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(MOST_LISTED + 1, &[("dual.mu_0", "0.25")]);
    let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
    run(&config, &whole, usize::MAX);
    run(&config, &parts, 2);
    let resumed = Run::resume(&parts, &Registry::default(), Arc::new(SingleProcess)).unwrap();
    let ResumeOutcome::Ready { run: mut resumed, .. } = resumed else { panic!("the run is not finished") };
    assert!(matches!(run_until(&mut resumed, usize::MAX), Ending::Finished(..)));
    let session = resumed.session();
    for name in [
        "metrics.csv",
        "agents.csv",
        "returns.csv",
        "agents-summary.csv",
        "policy.safetensors",
        "multipliers.safetensors",
    ] {
        assert!(
            std::fs::read(whole.join(name)).unwrap() == std::fs::read(parts.join(name)).unwrap(),
            "{name}"
        );
    }
    assert_eq!(rows(&whole.join("agents.csv")).len(), WORST_LISTED);
    // Policy and multipliers are the trained ones, though no list has all of them.
    let again = Evaluator::from_run(&whole, &Registry::default()).unwrap();
    assert_eq!(again.policy().theta(), session.policy().theta());
    assert_eq!(again.mu(), session.mu());
    assert!(again.mu().data().iter().any(|&mu| mu > 0.0));
    let evaluation = again.evaluate().unwrap();
    assert_eq!(evaluation.objective, session.evaluate().unwrap().objective);
    // And a run can start from them.
    let mut warm = Session::new(&config).unwrap();
    warm.warm_start(&whole.join("policy.safetensors")).unwrap();
    assert_eq!(warm.policy().theta(), session.policy().theta());
}
