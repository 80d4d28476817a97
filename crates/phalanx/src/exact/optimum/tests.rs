//! The optimum against closed forms, decision processes, and certificates that need no solver.

use std::sync::Arc;

use super::super::dynamics::digits;
use super::polytope::JointLaws;
use super::*;
use crate::base::stream::{Place, Purpose, Sequence, Stream};
use crate::utility::problem::{AgentProblem, Bound, Constraint, Scaling, ShadowReward};
use crate::utility::*;
use crate::world::{Line, Model as WorldModel, Start, StartLaw, Table, World};

fn random(seed: u64) -> Sequence {
    Stream::new(seed).sequence(Place { purpose: Purpose::PolicyInit, iteration: 0, trajectory: 0 }, 0)
}

/// A law over `size` outcomes, some of them impossible.
fn random_law(rng: &mut Sequence, size: usize) -> Vec<f64> {
    let weights: Vec<f64> = (0..size).map(|_| (rng.uniform() - 0.2).max(0.0) + 1e-3).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| w / total).collect()
}

fn first_of(size: usize) -> Vec<f64> {
    (0..size).map(|s| if s == 0 { 1.0 } else { 0.0 }).collect()
}

/// Agents that all influence each other; all start in state 0, from where everything can be reached.
fn random_world(rng: &mut Sequence, state_sizes: Vec<usize>, action_sizes: Vec<usize>) -> Dynamics {
    let n = state_sizes.len();
    let pairs: usize = state_sizes.iter().chain(&action_sizes).product();
    let mut laws = |size: usize| (0..pairs).flat_map(|_| random_law(rng, size)).collect::<Vec<_>>();
    let model = WorldModel {
        n,
        gamma: None,
        edges: (1..n).map(|i| (i - 1, i)).collect(),
        parents: vec![(0..n).collect(); n],
        transition: state_sizes.iter().map(|&size| laws(size)).collect(),
        rho: StartLaw::Product { local: state_sizes.iter().map(|&size| first_of(size)).collect() },
        state_sizes,
        action_sizes,
        f: vec![],
        g: vec![],
    };
    Dynamics::new(&Table::new(model).unwrap()).unwrap()
}

fn linear(r: &[f64]) -> ScaledUtility {
    Kind::Linear(Linear { r: r.into() }).into()
}

fn at_least(utility: impl Into<ScaledUtility>, threshold: f64) -> Constraint {
    let utility = utility.into();
    let name = utility.kind.name().into();
    Constraint {
        name,
        utility,
        bound: Bound::AtLeast(threshold),
        shadow: ShadowReward::default(),
        margin: 0.0,
        group: None,
    }
}

/// A problem on `dynamics`; agent i has the i-th objective and the i-th list of constraints.
fn problem(
    dynamics: &Dynamics,
    gamma: f64,
    parts: impl IntoIterator<Item = (ScaledUtility, Vec<Constraint>)>,
) -> Problem {
    let agents = parts.into_iter().enumerate().map(|(i, (objective, constraints))| {
        let space = LocalSpace { states: dynamics.states[i], actions: dynamics.actions[i], gamma };
        AgentProblem {
            space,
            objective,
            shadow: ShadowReward::default(),
            constraints,
            events: Vec::new(),
            tails: Vec::new(),
        }
    });
    Problem {
        agents: agents.map(Arc::new).collect(),
        gamma,
        scaling: Scaling::Paper,
        sampled_channels: 0,
        episodic: false,
        raw_lives: false,
        horizon: 1,
        groups: Vec::new(),
    }
}

/// The paper's line with the entropy of every agent's state at least `threshold`.
fn line(n: usize, start: Start, gamma: f64, threshold: f64) -> (Dynamics, Problem) {
    let world = Line::new(n, start, 0.0).unwrap();
    let dynamics = Dynamics::new(&world).unwrap();
    let rewards = world.channels()[0].tables().unwrap().iter();
    let parts = rewards.map(|r| (linear(r), vec![at_least(Kind::StateEntropy(Entropy(States)), threshold)]));
    let problem = problem(&dynamics, gamma, parts);
    (dynamics, problem)
}

/// λ of a policy `[S][A]`, by adding up γ^k P^k.
fn occupancy_of(policy: &[f64], dynamics: &Dynamics, gamma: f64) -> Vec<f64> {
    let laws = JointLaws::new(dynamics);
    let actions = policy.len() / dynamics.joint_states;
    let mut joint = vec![0.0; policy.len()];
    let mut now = dynamics.start.to_vec();
    let mut left = 1.0;
    while left > 1e-14 {
        let mut later = vec![0.0; now.len()];
        for pair in 0..policy.len() {
            let mass = now[pair / actions] * policy[pair];
            joint[pair] += mass;
            laws.successors(pair).iter().for_each(|&(to, p)| later[to] += gamma * mass * p);
        }
        left *= gamma;
        now = later;
    }
    joint
}

fn local_values(pair: usize, dynamics: &Dynamics) -> (Vec<u8>, Vec<u8>) {
    let actions = dynamics.joint_actions() as usize;
    (digits(pair / actions, &dynamics.states), digits(pair % actions, &dynamics.actions))
}

fn random_policy(rng: &mut Sequence, dynamics: &Dynamics) -> Vec<f64> {
    (0..dynamics.joint_states).flat_map(|_| random_law(rng, dynamics.joint_actions() as usize)).collect()
}

/// Local occupancies of a policy.
fn local_occupancy(policy: &[f64], dynamics: &Dynamics, gamma: f64) -> Ragged<f64> {
    local_marginals(&occupancy_of(policy, dynamics, gamma), dynamics)
}

fn value_of(occupancy: &Ragged<f64>, problem: &Problem) -> f64 {
    let agents = problem.agents.iter().zip(occupancy.iter());
    agents.map(|(agent, lambda)| agent.objective.value(lambda, agent.space)).sum::<f64>()
        / problem.agents.len() as f64
}

fn smallest_slack(occupancy: &Ragged<f64>, problem: &Problem) -> f64 {
    let agents = problem.agents.iter().zip(occupancy.iter());
    agents
        .flat_map(|(agent, lambda)| agent.constraints.iter().map(|g| g.slack(lambda, agent.space)))
        .fold(f64::INFINITY, f64::min)
}

/// The largest return of any policy when agent i is paid row i of `rewards` for its own state and action.
fn largest_return(rewards: &Ragged<f64>, dynamics: &Dynamics, gamma: f64) -> f64 {
    let laws = JointLaws::new(dynamics);
    let actions = dynamics.joint_actions() as usize;
    let mut values = vec![0.0; dynamics.joint_states];
    let mut left = 1.0;
    while left > 1e-14 {
        let q = |pair| {
            let (s, a) = local_values(pair, dynamics);
            let paid = |i: usize| rewards.row(i)[usize::from(s[i]) * dynamics.actions[i] + usize::from(a[i])];
            (0..dynamics.agents()).map(paid).sum::<f64>()
                + gamma * laws.successors(pair).iter().map(|&(to, p)| p * values[to]).sum::<f64>()
        };
        let best = |state| (0..actions).map(|a| q(state * actions + a)).fold(f64::NEG_INFINITY, f64::max);
        values = (0..dynamics.joint_states).map(best).collect();
        left *= gamma;
    }
    values.iter().zip(&dynamics.start).map(|(v, p)| v * p).sum()
}

/// What proves an optimum, without the solver: by concavity F* ≤ L(λ*, μ*) + (1/n) max ⟨r, λ − λ*⟩ with r the
/// shadow reward of L at λ*, and the maximum is the return of an ordinary decision process. Returns the
/// right-hand side.
fn certified_bound(optimum: &Optimum, dynamics: &Dynamics, problem: &Problem) -> f64 {
    let mut rewards = Ragged::<f64>::zeros_like(&optimum.occupancy);
    let (mut lagrangian, mut here) = (0.0, 0.0);
    for (i, agent) in problem.agents.iter().enumerate() {
        let lambda = optimum.occupancy.row(i);
        agent.objective.gradient(lambda, agent.space, rewards.row_mut(i));
        lagrangian += agent.objective.value(lambda, agent.space);
        for (k, constraint) in agent.constraints.iter().enumerate() {
            let mu = optimum.multipliers.row(i)[k];
            assert!(mu >= 0.0);
            lagrangian += mu * optimum.slack.row(i)[k];
            let mut slopes = vec![0.0; lambda.len()];
            constraint.utility.gradient(lambda, agent.space, &mut slopes);
            let sign = constraint.bound.sign();
            rewards.row_mut(i).iter_mut().zip(slopes).for_each(|(r, slope)| *r += mu * sign * slope);
        }
        here += rewards.row(i).iter().zip(lambda).map(|(r, x)| r * x).sum::<f64>();
    }
    let improvement = largest_return(&rewards, dynamics, problem.gamma) - here;
    (lagrangian + improvement) / problem.agents.len() as f64
}

/// Checks `optimum` in every way that does not need its solver; `size` is that of F.
fn assert_optimal(optimum: &Optimum, dynamics: &Dynamics, problem: &Problem, size: f64, what: &str) {
    let bound = certified_bound(optimum, dynamics, problem);
    // Of first order in the error of λ*, which F* is only of second order in: about the root of its accuracy.
    assert!((bound - optimum.value).abs() < 1e-5 * size, "{what}: {} is not {bound}", optimum.value);
    assert!(optimum.gap < 1e-7 * size, "{what}: gap {}", optimum.gap);
    assert!(optimum.slack.data().iter().all(|g| *g > -1e-7 * size), "{what}: {:?}", optimum.slack);
    // It is the occupancy of a policy.
    let actions = dynamics.joint_actions() as usize;
    let policy: Vec<f64> = optimum
        .joint
        .chunks_exact(actions)
        .flat_map(|row| row.iter().map(|x| x / row.iter().sum::<f64>()))
        .collect();
    let again = local_occupancy(&policy, dynamics, problem.gamma);
    for (found, expected) in optimum.occupancy.data().iter().zip(again.data()) {
        assert!((found - expected).abs() < 1e-6, "{what}: {found} {expected}");
    }
}

#[test]
fn line_has_its_closed_form() {
    // The root of H(p) = ½ above ½; exact.md, section 6.
    let p: f64 = 0.800290097446023;
    let (gamma, q) = (0.99, 1.0 - 0.99);
    for (n, start, starts_in_one) in
        [(4, Start::Uniform, 0.5), (5, Start::Uniform, 0.5), (4, Start::Zeros, 0.0)]
    {
        let (dynamics, problem) = line(n, start, gamma, 0.5);
        let found = optimum(&dynamics, &problem).unwrap();
        let in_one: Vec<f64> =
            (0..n).map(|i| if i == 0 { q * starts_in_one + gamma * p } else { p }).collect();
        let total: f64 = (0..n).map(|i| if i == 0 { 1.0 } else { 0.1 } * in_one[i] / q).sum();
        assert!((found.value * n as f64 / total - 1.0).abs() < 1e-9, "{} {total}", found.value);
        let logit = (p / (1.0 - p)).ln();
        for i in 0..n {
            let lambda = found.occupancy.row(i);
            let close = |x: f64, y: f64| (x - y).abs() < 1e-6 * (1.0 + y.abs());
            assert!(close((lambda[2] + lambda[3]) * q, in_one[i]), "{i}: {lambda:?}");
            assert!(close((lambda[0] + lambda[1]) * q, 1.0 - in_one[i]), "{i}: {lambda:?}");
            let mu = match i {
                0 => 0.0,
                1 => (gamma + 0.1) / (q * logit),
                _ => 0.1 / (q * logit),
            };
            let mu_found = found.multipliers.row(i)[0];
            assert!((mu_found - mu).abs() < 1e-6 * (1.0 + mu), "mu[{i}] is {mu_found}, not {mu}");
        }
    }
}

#[test]
fn multipliers_keep_the_bound_of_the_paper() {
    let (dynamics, problem) = line(4, Start::Uniform, 0.9, 0.5);
    let best = optimum(&dynamics, &problem).unwrap();
    let slater = slater_point(&dynamics, &problem).unwrap();
    // Every agent can be a fair coin.
    assert!((slater.margin - (2f64.ln() - 0.5)).abs() < 1e-6 && slater.gap < 1e-6);
    assert!((slater.weights.data().iter().sum::<f64>() - 1.0).abs() < 1e-6);
    assert_eq!(slater.margin, smallest_slack(&slater.occupancy, &problem));
    let bound = slater.multiplier_bound(&best).unwrap();
    let total: f64 = best.multipliers.data().iter().sum();
    assert!(total > 0.0 && total <= bound, "{total} {bound}");
    for largest in largest_slacks(&dynamics, &problem).unwrap().data() {
        assert!((largest - slater.margin).abs() < 1e-6);
    }
}

/// One agent with a linear objective: an ordinary decision process.
#[test]
fn linear_objectives_are_decision_processes() {
    for (seed, gamma) in [(1, 0.0), (2, 0.5), (3, 0.9), (4, 0.97)] {
        let rng = &mut random(seed);
        let dynamics = random_world(rng, vec![5], vec![3]);
        let reward: Vec<f64> = (0..15).map(|_| rng.normal()).collect();
        let problem = problem(&dynamics, gamma, [(linear(&reward), vec![])]);
        let best = optimum(&dynamics, &problem).unwrap();
        let expected = largest_return(&Ragged::from_rows([reward]), &dynamics, gamma);
        assert!((best.value - expected).abs() < 1e-8 * (1.0 + expected.abs()), "{} {expected}", best.value);
        let mass: f64 = best.occupancy.data().iter().sum();
        assert!((mass * (1.0 - gamma) - 1.0).abs() < 1e-9);
        let slater = slater_point(&dynamics, &problem).unwrap();
        assert_eq!((slater.margin, slater.gap), (f64::INFINITY, 0.0));
        assert_eq!(slater.multiplier_bound(&best), Some(0.0));
    }
}

/// Every kind that has a concave sign, with that sign. Sets and experts have too much mass to be reached, so
/// that there is no kink on the way.
fn concave_utilities(near: &[f64], rng: &mut Sequence) -> Vec<ScaledUtility> {
    let reward: Arc<[f64]> = near.iter().map(|_| rng.normal()).collect();
    let beyond: Arc<[f64]> = near.iter().map(|x| 1.5 * x).collect();
    let a: Arc<[f64]> = near.iter().map(|_| 0.5 + rng.uniform()).collect();
    let hi: Arc<[f64]> =
        beyond.iter().enumerate().map(|(k, x)| if k % 2 == 0 { f64::INFINITY } else { 2.0 * x }).collect();
    let mut lo = beyond.to_vec();
    lo[0] = f64::NEG_INFINITY;
    let positive = |kind| ScaledUtility { kind, scale: 0.7, offset: -0.3 };
    let negative = |kind| ScaledUtility { kind, scale: -0.7, offset: 0.3 };
    let mut utilities = vec![
        positive(Kind::Linear(Linear { r: reward.clone() })),
        negative(Kind::Linear(Linear { r: reward })),
        positive(Kind::StateEntropy(Entropy(States))),
        positive(Kind::SaEntropy(Entropy(Pairs))),
        positive(Kind::ActionEntropy(Entropy(Actions))),
        negative(Kind::ActionL2sq(SquaredNorm(Actions))),
        negative(Kind::ActiveL2(ActiveL2 {})),
        negative(Kind::L2sq(SquaredNorm(Pairs))),
        positive(Kind::NegL2Expert(NegL2Expert { expert: beyond.clone() })),
        positive(Kind::NegL2sqExpert(NegL2sqExpert { expert: beyond.clone() })),
        positive(Kind::NegKlExpert(NegKlExpert { expert: near.into() })),
    ];
    for power in [Power::One, Power::Two] {
        utilities.push(positive(Kind::NegDistBox(NegDistBox {
            lo: lo.clone().into(),
            hi: hi.clone(),
            power,
        })));
        utilities.push(positive(Kind::NegDistHalfspace(NegDistHalfspace { a: a.clone(), b: 0.1, power })));
        utilities.push(positive(Kind::NegDistBall(NegDistBall {
            center: beyond.clone(),
            radius: 0.2,
            power,
        })));
    }
    utilities
}

#[test]
fn every_kind_as_objective_and_as_constraint() {
    let gamma = 0.8;
    let rng = &mut random(5);
    let dynamics = random_world(rng, vec![2, 3], vec![2, 2]);
    let policies: Vec<Ragged<f64>> =
        (0..40).map(|_| local_occupancy(&random_policy(rng, &dynamics), &dynamics, gamma)).collect();
    let rewards: Vec<Vec<f64>> = [4, 6].map(|cells| (0..cells).map(|_| rng.normal()).collect()).into();
    let assert_best = |best: &Optimum, problem: &Problem, what: &str| {
        let values = policies.iter().map(|lambda| value_of(lambda, problem).abs());
        assert_optimal(best, &dynamics, problem, 1.0 + values.fold(0.0, f64::max), what);
        for lambda in policies.iter().filter(|lambda| smallest_slack(lambda, problem) >= 0.0) {
            assert!(value_of(lambda, problem) <= best.value + 1e-8, "{what}");
        }
    };
    for utility in concave_utilities(policies[0].row(1), rng) {
        let name = utility.kind.name();
        let wanted = problem(&dynamics, gamma, [(linear(&rewards[0]), vec![]), (utility.clone(), vec![])]);
        assert_best(&optimum(&dynamics, &wanted).unwrap(), &wanted, &format!("f {name}"));
        // A threshold between the largest value and the one that comes for free is active.
        let bounded = |bound| {
            let constraint = Constraint { bound, ..at_least(utility.clone(), 0.0) };
            problem(
                &dynamics,
                gamma,
                [(linear(&rewards[0]), vec![]), (linear(&rewards[1]), vec![constraint])],
            )
        };
        let free = optimum(&dynamics, &bounded(Bound::AtLeast(-1e3))).unwrap();
        let largest = largest_slacks(&dynamics, &bounded(Bound::AtLeast(0.0))).unwrap().row(1)[0];
        let threshold = 0.5 * (largest + free.slack.row(1)[0] - 1e3);
        let active = bounded(Bound::AtLeast(threshold));
        let best = optimum(&dynamics, &active).unwrap();
        assert_best(&best, &active, &format!("g {name}"));
        let (mu, slack) = (best.multipliers.row(1)[0], best.slack.row(1)[0]);
        assert!(mu > 1e-6 && slack.abs() < 1e-7 && best.value < free.value, "{name}: {mu} {slack}");
        // The same with the opposite scale and side.
        let ScaledUtility { kind, scale, offset } = utility;
        let turned = ScaledUtility { kind, scale: -scale, offset: -offset };
        let constraint = Constraint { bound: Bound::AtMost(-threshold), ..at_least(turned, 0.0) };
        let parts = [(linear(&rewards[0]), vec![]), (linear(&rewards[1]), vec![constraint])];
        let same = optimum(&dynamics, &problem(&dynamics, gamma, parts)).unwrap();
        assert!(
            (same.value - best.value).abs() < 1e-8 && (same.multipliers.row(1)[0] / mu - 1.0).abs() < 1e-5
        );
    }
}

/// Sets that can be reached, where powers of distances have their kinks.
#[test]
fn no_distance_is_left_to_a_set_in_reach() {
    let gamma = 0.8;
    let rng = &mut random(6);
    let dynamics = random_world(rng, vec![3], vec![2]);
    let near = local_occupancy(&random_policy(rng, &dynamics), &dynamics, gamma);
    let near: Arc<[f64]> = near.data().into();
    let (lo, hi): (Arc<[f64]>, Arc<[f64]>) =
        (near.iter().map(|x| 0.9 * x).collect(), near.iter().map(|x| 1.1 * x).collect());
    for kind in [
        Kind::NegL2Expert(NegL2Expert { expert: near.clone() }),
        Kind::NegDistBox(NegDistBox { lo, hi, power: Power::One }),
        Kind::NegDistHalfspace(NegDistHalfspace { a: near.clone(), b: 1e3, power: Power::One }),
        Kind::NegDistBall(NegDistBall { center: near, radius: 0.1, power: Power::Two }),
    ] {
        let name = kind.name();
        let problem = problem(&dynamics, gamma, [(kind.into(), vec![])]);
        let best = optimum(&dynamics, &problem).unwrap();
        assert!(best.value.abs() < 1e-7, "{name}: {}", best.value);
    }
}

/// State 2 is never reached: its occupancy, and its term in the entropy, are 0.
#[test]
fn states_out_of_reach_are_no_obstacle() {
    let model = WorldModel {
        n: 1,
        gamma: None,
        state_sizes: vec![3],
        action_sizes: vec![2],
        edges: vec![],
        parents: vec![vec![0]],
        // Action a leads to state a.
        transition: vec![[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]].concat().repeat(3)],
        rho: StartLaw::Product { local: vec![vec![1.0, 0.0, 0.0]] },
        f: vec![],
        g: vec![],
    };
    let dynamics = Dynamics::new(&Table::new(model).unwrap()).unwrap();
    let best = |gamma, kind: Kind| {
        let problem = problem(&dynamics, gamma, [(kind.into(), vec![])]);
        optimum(&dynamics, &problem).unwrap()
    };
    let entropy = best(0.9, Kind::StateEntropy(Entropy(States)));
    assert!((entropy.value - 2f64.ln()).abs() < 1e-9, "{}", entropy.value);
    assert_eq!(entropy.occupancy.row(0)[4..], [0.0, 0.0]);
    // With γ = 0 only the start counts.
    let at_start = best(0.0, Kind::SaEntropy(Entropy(Pairs)));
    assert!((at_start.value - 2f64.ln()).abs() < 1e-9);
    assert_eq!(at_start.occupancy.row(0)[2..], [0.0; 4]);
}

#[test]
fn impossible_constraints_are_named() {
    // Not even a fair coin has entropy 0.7 > ln 2.
    let (dynamics, mut problem) = line(3, Start::Uniform, 0.9, 0.4);
    problem.agent_mut(2).constraints[0].bound = Bound::AtLeast(0.7);
    let message = optimum(&dynamics, &problem).unwrap_err().to_string();
    assert_eq!(
        message,
        "g: no policy satisfies g[2][0] (state_entropy at_least 0.7): its slack is at most -6.853e-3"
    );
    assert!(slater_point(&dynamics, &problem).unwrap().margin < 0.0);
    // Each of these can be met, but not both: agent 0 copies agent 1.
    let (dynamics, mut problem) = line(3, Start::Uniform, 0.9, 0.0);
    let often = linear(&[0.0, 0.0, 0.1, 0.1]);
    problem.agent_mut(0).constraints =
        vec![Constraint { bound: Bound::AtMost(0.3), ..at_least(often.clone(), 0.0) }];
    problem.agent_mut(1).constraints = vec![at_least(often, 0.7)];
    assert!(largest_slacks(&dynamics, &problem).unwrap().data().iter().all(|g| *g > 0.0));
    let message = optimum(&dynamics, &problem).unwrap_err().to_string();
    let start = "g: no policy satisfies all constraints: of g[0][0] (linear at_most 0.3) and g[1][0] (linear at_least 0.7), \
                 one always has a slack of -";
    assert!(message.starts_with(start), "{message}");
}

#[test]
fn what_has_no_convex_program_is_named() {
    #[derive(Debug)]
    struct Own;
    impl Utility for Own {
        fn value(&self, occupancy: &[f64], _: LocalSpace) -> f64 {
            occupancy[0]
        }
        fn gradient(&self, _: &[f64], _: LocalSpace, out: &mut [f64]) {
            out.fill(0.0);
            out[0] = 1.0;
        }
    }
    let (dynamics, problem) = line(3, Start::Uniform, 0.9, 0.4);
    let with_objective = |objective: ScaledUtility| {
        let mut problem = problem.clone();
        problem.agent_mut(1).objective = objective;
        optimum(&dynamics, &problem).unwrap_err().to_string()
    };
    let with_constraint = |constraint: Constraint| {
        let mut problem = problem.clone();
        problem.agent_mut(2).constraints.push(constraint);
        optimum(&dynamics, &problem).unwrap_err().to_string()
    };
    let end = "is no convex program; its optimum is not computed";
    assert_eq!(
        with_objective(Kind::L2sq(SquaredNorm(Pairs)).into()),
        format!("f[1]: l2sq is convex, so maximising it {end}")
    );
    let turned = ScaledUtility { kind: Kind::StateEntropy(Entropy(States)), scale: -2.0, offset: 0.0 };
    assert_eq!(
        with_objective(turned),
        format!("f[1]: state_entropy is concave, so maximising it with scale -2 {end}")
    );
    assert_eq!(
        with_objective(Kind::Custom(Arc::new(Own)).into()),
        format!("f[1]: a custom utility has no known conic form, so maximising it {end}")
    );
    assert_eq!(
        with_constraint(at_least(Kind::ActionL2sq(SquaredNorm(Actions)), 3.0)),
        format!("g[2][1]: action_l2sq is convex, so keeping it at_least 3 {end}")
    );
    assert_eq!(
        with_constraint(Constraint {
            bound: Bound::AtMost(1.0),
            ..at_least(Kind::SaEntropy(Entropy(Pairs)), 0.0)
        }),
        format!("g[2][1]: sa_entropy is concave, so keeping it at_most 1 {end}")
    );
    // With factor 0 anything is a constant.
    let mut constant = problem.clone();
    constant.agent_mut(1).objective =
        ScaledUtility { kind: Kind::Custom(Arc::new(Own)), scale: 0.0, offset: 2.0 };
    assert!(optimum(&dynamics, &constant).is_ok());
    // The margin does not depend on the objective.
    constant.agent_mut(1).objective = Kind::L2sq(SquaredNorm(Pairs)).into();
    assert!(slater_point(&dynamics, &constant).unwrap().margin > 0.0);
}

#[test]
fn shapes_and_sizes_are_checked() {
    let (dynamics, problem) = line(3, Start::Uniform, 0.9, 0.4);
    let (other, _) = line(4, Start::Uniform, 0.9, 0.4);
    let message = optimum(&other, &problem).unwrap_err().to_string();
    assert_eq!(message, "problem: has 3 agents, but the world has 4");
    let mut wrong = problem.clone();
    wrong.agent_mut(1).space.actions = 3;
    let message = optimum(&dynamics, &wrong).unwrap_err().to_string();
    assert_eq!(message, "problem: agent 1 has 2 states and 3 actions, but 2 and 2 in the world");
    let mut wrong = problem.clone();
    wrong.gamma = 1.0;
    assert_eq!(optimum(&dynamics, &wrong).unwrap_err().to_string(), "gamma: is 1, but must be in [0, 1)");
    wrong.gamma = 0.8;
    let message = optimum(&dynamics, &wrong).unwrap_err().to_string();
    assert_eq!(message, "problem: agent 0 discounts by 0.9, but the problem by 0.8");
    let mut wrong = problem;
    wrong.agent_mut(1).objective = linear(&[1.0]);
    assert!(optimum(&dynamics, &wrong).unwrap_err().to_string().starts_with("f[1].r: has 1 entries"));
    let (large, problem) = line(9, Start::Uniform, 0.9, 0.4);
    let message = optimum(&large, &problem).unwrap_err().to_string();
    assert!(
        message.starts_with(
            "world: the optimum would be over 512 joint states x 512 joint actions = 262144 pairs"
        )
    );
}
