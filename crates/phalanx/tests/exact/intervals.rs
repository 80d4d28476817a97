//! Confidence intervals hold what they promise, against exact values.

use crate::support::{binary_entropy, line_state_one};
use phalanx::run::{Config, Evaluator, Verdict};

/// The line with n = 5 and a policy that is not symmetric; `threshold` for all agents.
fn evaluator(threshold: f64) -> Evaluator {
    let config = Config::preset("synthetic").unwrap();
    let settings =
        [("world.n", "5"), ("policy.init_std", "1"), ("constraint.0.at_least", &threshold.to_string())];
    Evaluator::new(&config.with_all(settings).unwrap()).unwrap()
}

fn exact(evaluator: &Evaluator) -> (f64, Vec<f64>) {
    let d = line_state_one(evaluator.policy().tabular().unwrap(), 0.99);
    let objective = d.iter().enumerate().map(|(i, d)| if i == 0 { *d } else { 0.1 * d }).sum::<f64>() / 5.0;
    (objective, d.iter().map(|&d| binary_entropy(d)).collect())
}

#[test]
fn intervals_cover_the_exact_values() {
    let evaluator = evaluator(0.3);
    let (objective, entropies) = exact(&evaluator);
    let (mut covered, mut all_covered, mut objective_covered, mut half) = (0, 0, 0, 0.0);
    let runs = 200;
    for seed in 0..runs {
        let assessment = evaluator.assess(100, seed, 0.99).unwrap();
        let holds = |value: f64, lower: f64, upper: f64| usize::from((lower..=upper).contains(&value));
        let constraints = assessment.constraints.iter().zip(&entropies);
        let hits: usize = constraints.map(|(c, &exact)| holds(exact, c.utility.lower, c.utility.upper)).sum();
        covered += hits;
        all_covered += usize::from(hits == 5);
        objective_covered += holds(objective, assessment.objective.lower, assessment.objective.upper);
        half += (assessment.constraints[2].utility.upper - assessment.constraints[2].utility.lower) / 2.0;
    }
    assert!(covered as f64 >= 0.99 * (5 * runs) as f64, "{covered} of {}", 5 * runs);
    assert!(all_covered as f64 >= 0.97 * runs as f64, "{all_covered} of {runs}");
    assert!(objective_covered as f64 >= 0.97 * runs as f64, "{objective_covered} of {runs}");
    // Wide intervals would cover anything.
    assert!(half / (runs as f64) < 0.05, "{}", half / runs as f64);
}

#[test]
fn a_policy_at_the_threshold_is_undecided_and_others_are_told() {
    let (_, entropies) = exact(&evaluator(0.3));
    let runs = 200;
    let mut undecided = 0;
    let at_threshold = evaluator(entropies[2]);
    for seed in 0..runs {
        let assessment = at_threshold.assess(60, seed, 0.99).unwrap();
        undecided += usize::from(assessment.agents(5)[2] == Verdict::Undecided);
    }
    assert!(undecided as f64 >= 0.95 * runs as f64, "{undecided} of {runs}");
    let verdict = |threshold: f64| evaluator(threshold).assess(400, 1, 0.99).unwrap().agents(5)[2];
    assert_eq!([verdict(entropies[2] - 0.1), verdict(entropies[2] + 0.04)], [Verdict::Safe, Verdict::Unsafe]);
}

#[test]
fn the_jackknife_takes_the_bias_away() {
    // With four episodes only, plugging in is biased by far more than the corrected estimate.
    let evaluator = evaluator(0.3);
    let (_, entropies) = exact(&evaluator);
    let mean = |seeds: std::ops::Range<u64>| {
        let count = (seeds.end - seeds.start) as f64;
        let value = |seed| evaluator.assess(4, seed, 0.9).unwrap().constraints[1].utility.value;
        seeds.map(value).sum::<f64>() / count
    };
    let plug_in = {
        let agent = &evaluator.problem().agents[1];
        let values = (0..400).map(|seed| {
            let occupancy = evaluator.occupancy(4, seed).unwrap();
            agent.constraints[0].utility.value(occupancy.row(1), agent.space)
        });
        values.sum::<f64>() / 400.0
    };
    let (biased, corrected) = (plug_in - entropies[1], mean(0..400) - entropies[1]);
    assert!(biased < 0.0 && corrected.abs() < biased.abs() / 2.0, "{biased} {corrected}");
}

/// An event that no episode shows is not therefore impossible.
#[test]
fn an_event_too_rare_to_be_seen_is_not_safe() {
    // One agent; each step it falls into an absorbing bad state with probability 2·10⁻⁴.
    let folder = tempfile::tempdir().unwrap();
    let model = r#"{"n": 1, "gamma": 0.9, "state_sizes": [2], "action_sizes": [1], "edges": [], "parents": [[0]],
        "transition": [[0.9998, 0.0002, 0, 1]], "rho": {"kind": "product", "local": [[1, 0]]},
        "f": [{"kind": "linear", "r": [1, 0]}]}"#;
    std::fs::write(folder.path().join("model.json"), model).unwrap();
    let text = "horizon = 20\n[world]\nkind = \"table\"\nfile = \"model.json\"\n\
                [[constraint]]\nkind = \"linear\"\nr = [0, 1]\nscale = 0.1\nat_most = 0.001";
    let evaluator = Evaluator::new(&Config::from_toml(text, folder.path()).unwrap()).unwrap();
    // Exactly γ·p/(1 − γ·(1 − p)) = 0.0018: above the bound, and rarely seen in 30 episodes.
    for seed in 0..20 {
        let assessment = evaluator.assess(30, seed, 0.99).unwrap();
        assert_ne!(assessment.agents(1)[0], Verdict::Safe, "seed {seed}: {:?}", assessment.constraints);
    }
}
