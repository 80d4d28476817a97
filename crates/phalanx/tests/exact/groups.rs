//! One budget for several agents: do runs come to the conic optimum, with one multiplier for all members, and
//! is the assessment that of the sum?

use phalanx::exact::{Dynamics, optimum};
use phalanx::run::{Config, Evaluator, Session};

/// An epidemic on a ring whose members share treatment, and a line that shares its time in state 1.
fn models() -> [(&'static str, Config); 2] {
    let common = "algorithm = \"exact\"\nscaling = \"normalised\"\nkappa = 2\nkappa_q = 2\niterations = 3000\nhorizon = \
                  60\n[objective]\nkind = \"return\"\n[policy]\nkind = \"softmax\"\ninit_std = 0.1\n[critic]\ntruncation = \
                  \"none\"\n[dual]\nkind = \"pi\"\neta_mu = 3.0\neta_integral = 0.1\n[actor]\neta_theta = 0.05\nschedule = { kind \
                  = \"linear\", hold = 0.5, end = 0.01 }\n";
    let epidemic = "gamma = 0.9\n[world]\nkind = \"epidemic\"\nn = 3\ninfection = 0.2\nimport = 0.05\nrecovery = \
                    0.1\ntreated_recovery = 0.5\ntreat_cost = 0.05\nstart = 0.3\n[network]\nkind = \"line\"\n\
                    [[constraint]]\nname = \"treatment\"\nkind = \"return\"\nchannel = \"treatment\"\nscale = 0.1\ngroup = \
                    [0, 1, 2]\nat_most = 0.3\n";
    let line = "gamma = 0.9\n[world]\nkind = \"line\"\nn = 3\n[[constraint]]\nkind = \"linear\"\nr = [0.0, 0.0, 0.1, 0.1]\n\
                group = [0, 1, 2]\nat_most = 1.2\n";
    [("epidemic", epidemic), ("line", line)].map(|(name, text)| {
        // Keys of the whole run come first.
        let (first, rest) = text.split_once('\n').unwrap();
        let text = format!("{first}\n{common}{rest}");
        (name, Config::from_toml(&text, std::path::Path::new(".")).unwrap())
    })
}

#[test]
fn runs_come_to_the_conic_optimum() {
    for (name, config) in models() {
        let mut session = Session::new(&config).unwrap();
        while session.advance().unwrap().is_some() {}
        let best = optimum(&Dynamics::new(session.world()).unwrap(), session.problem()).unwrap();
        let found = session.evaluator().unwrap().exact().unwrap().unwrap();
        println!("{name}: {:.5} of {:.5}, violation {:.5}", found.objective, best.value, found.violation_max);
        assert!(
            found.objective >= best.value - 0.01 * best.value.abs(),
            "{name}: {} {}",
            found.objective,
            best.value
        );
        assert!(found.violation_max <= 2e-3 && found.violation_total <= 2e-3, "{name}: {found:?}");
        let first = session.mu().row(0)[0];
        assert!(first > 0.0 && session.mu().iter().all(|mu| mu[0] == first), "{name}: {:?}", session.mu());
        // The program's price is that of the one budget.
        let price = best.multipliers.row(0)[0];
        assert!((first - price).abs() < 0.1 * price, "{name}: {first} {price}");
    }
}

#[test]
fn sampled_runs_and_assessments_speak_of_the_sum() {
    for (name, config) in models() {
        let sampled =
            [("algorithm", "primal-dual"), ("iterations", "30"), ("kappa", "1"), ("critic.kind", "td")];
        let mut session = Session::new(&config.with_all(sampled).unwrap()).unwrap();
        let before = session.algorithm().traffic().duals;
        while session.advance().unwrap().is_some() {}
        let evaluation = session.evaluate().unwrap();
        let sum = evaluation.values.row(0)[0];
        assert!(evaluation.values.iter().all(|values| values[0] == sum));
        assert!(evaluation.slack.row(1)[0] >= 0.0 && evaluation.slack.row(2)[0] >= 0.0);
        let evaluator: Evaluator = session.evaluator().unwrap();
        let truth = evaluator.exact().unwrap().unwrap();
        let assessment = evaluator.assess(2000, 3, 0.99).unwrap();
        let agents = evaluator.problem().agents.iter().zip(truth.occupancy.iter());
        let exact: f64 =
            agents.map(|(agent, lambda)| agent.constraints[0].utility.value(lambda, agent.space)).sum();
        for found in &assessment.constraints {
            assert_eq!(found.utility, assessment.constraints[0].utility);
            assert!(
                found.utility.lower <= exact && exact <= found.utility.upper,
                "{name}: {exact} {found:?}"
            );
        }
        assert!((assessment.violation_total - assessment.violation_max).abs() < 1e-15);
        // A sum up two links and down again, every iteration, beside what neighbours send each other.
        let links = 2 * session.world().graph().edge_count() as u64;
        let sent = session.algorithm().traffic().duals.messages - before.messages;
        assert!(sent >= 30 * 4 && (sent - 30 * 4).is_multiple_of(30), "{name}: {sent} {links}");
    }
}
