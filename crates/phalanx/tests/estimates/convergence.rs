//! Every estimator converges to what it is said to estimate, at the rate of independent samples, and to
//! nothing else; the forms of the policy gradient agree exactly.

use crate::Receive;
use crate::support::{Reference, sample};
use phalanx::Ragged;
use phalanx::exact::ExactCritic;
use phalanx::exact::{Case, Chain, Input, System, Truncated, Truncation, Values};
use phalanx::graph::indexing::StateIndex;
use phalanx::learn::actor::Actor;
use phalanx::learn::critic::{
    Critic, CriticInput, Lstd, MonteCarlo, QTables, QValues, StepSettings, Td, ValueReceiver,
};
use phalanx::learn::shadow::Signals;
use phalanx::policy::{Baseline, GradientSettings, Policy};
use phalanx::policy::{Parameterisation, Tabular};
use phalanx::run::{Config, Session};
use phalanx::sample::occupancy::Visits;
use phalanx::sample::rollout::StartFrom;
use phalanx::world::Trajectory;
use phalanx::world::World;
use rayon::prelude::*;

/// What is left of a discounted sum where it is cut off, in parts of its whole: far below any sampling error
/// here.
const CUT: f64 = 1e-5;

/// Steps after which γ^k is below [`CUT`].
fn horizon(gamma: f64) -> usize {
    (CUT.ln() / gamma.ln()).ceil() as usize
}

fn case(name: &str, change: impl FnOnce(&mut Input)) -> Case {
    let mut input: Input = serde_json::from_value(Reference::read(name).value["input"].clone()).unwrap();
    change(&mut input);
    Case::new(input).unwrap()
}

fn unchanged(name: &str) -> Case {
    case(name, |_| {})
}

/// A reference model made quick to sample: a low discount for short trajectories, moderate multipliers for a
/// gradient that stands out of the constraints' noise, and a policy nearer to uniform, so that no pair is
/// rare.
///
/// The agents of `paper_line5` depend strongly on their neighbours: there the truncations differ most.
fn softened(name: &str, kappa_q: usize) -> Case {
    case(name, |input| {
        input.model.gamma = Some(0.8);
        input.kappa_q = Some(kappa_q);
        input.mu.iter_mut().flatten().flatten().for_each(|mu| *mu = 1.0);
        input.theta.iter_mut().flatten().flatten().for_each(|theta| *theta *= 0.5);
    })
}

fn system(case: &Case) -> System {
    System::new(&case.world, &case.problem, &case.policy).unwrap()
}

/// What the estimators are compared with.
struct Truth<'a> {
    case: &'a Case,
    chain: Chain<'a>,
    signals: Signals,
    values: Values,
}

impl<'a> Truth<'a> {
    fn new(case: &'a Case, system: &'a System) -> Self {
        let chain = system.under(&case.policy).unwrap();
        let signals = chain.signals(&case.problem);
        let values = chain.values(&signals.rewards).unwrap();
        Truth { case, chain, signals, values }
    }

    /// Truncated tables over `groups`, where an average is taken under `weights` of the joint states.
    fn tables_over(&self, groups: &Ragged<u32>, kind: Truncation, weights: &[f64]) -> Ragged<f64> {
        let truncated = Truncated::new(self.chain.system, &self.case.policy, groups, kind).unwrap();
        truncated.tables(&self.chain, &self.values, weights)
    }

    /// The same over N_j^{κ_q} of the case, under the discounted occupancy.
    fn tables(&self, kind: Truncation) -> Ragged<f64> {
        self.tables_over(&self.case.groups, kind, &self.chain.state_occupancy)
    }

    /// Fixed point of temporal differences for pairs whose joint states have the law `weights`.
    fn fixed_point(&self, weights: &[f64]) -> Ragged<f64> {
        self.tables_over(&self.case.groups, Truncation::Td, weights)
    }

    fn truncated_gradient(&self, kind: Truncation) -> Ragged<f64> {
        let (mu, groups) = (&self.case.mu, &self.case.groups);
        self.gradient(&self.chain.truncated_action_values(&self.tables(kind), mu, groups))
    }

    fn true_gradient(&self) -> Ragged<f64> {
        self.gradient(&self.chain.action_values(&self.values, &self.case.mu))
    }

    fn gradient(&self, action_values: &Ragged<f64>) -> Ragged<f64> {
        let n = self.case.policy.agents() as f64;
        self.chain.gradient(action_values, Parameterisation::Softmax, 1.0 / n)
    }

    fn evidence<'b>(&'b self, evaluation: Option<&'b Trajectory>) -> CriticInput<'b> {
        let (policy, mu, signals) = (&self.case.policy, &self.case.mu, &self.signals);
        let evaluation = evaluation.map_or(&[][..], std::slice::from_ref);
        CriticInput { iteration: 0, policy, mu, signals, batch: &[], evaluation }
    }

    fn sample(&self, trajectories: usize, steps: usize, start: StartFrom, seed: u64) -> Vec<Trajectory> {
        sample(&self.case.world, &self.case.policy, trajectories, steps, start, seed)
    }
}

/// Row j of `tables` is `[1 + m_j][…]`; its first part plus the others times μ_j.
fn weighed(tables: &Ragged<f64>, mu: &Ragged<f64>) -> Ragged<f64> {
    Ragged::from_rows(tables.iter().zip(mu.iter()).map(|(row, mu)| {
        let size = row.len() / (1 + mu.len());
        let gs = |x: usize| mu.iter().enumerate().map(move |(k, mu)| mu * row[(1 + k) * size + x]);
        (0..size).map(|x| row[x] + gs(x).sum::<f64>()).collect::<Vec<_>>()
    }))
}

fn everyone(case: &Case) -> Ragged<u32> {
    case.world.graph().neighbourhoods(case.policy.agents())
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// How much a study samples.
#[derive(Clone, Copy)]
struct Size {
    /// Independent repetitions, which tell the spread: with 64 of them, within a tenth.
    replicas: usize,
    /// N. What a sample is, a trajectory or a step of one, is the estimator's matter.
    samples: usize,
}

/// Replicas of an estimator, held against its target.
struct Study {
    what: String,
    target: Vec<f64>,
    /// Of the replicas with the most samples.
    mean: Vec<f64>,
    /// Of that mean.
    standard_error: Vec<f64>,
    /// Root-mean-square error of a replica with N, 4N and 16N samples.
    errors: Vec<f64>,
}

impl Study {
    /// Runs replicas of `estimate(samples, seed)` with N, 4N and 16N samples and checks that they converge to
    /// `target`.
    fn new(
        what: impl Into<String>,
        target: &[f64],
        Size { replicas, samples }: Size,
        estimate: impl Fn(usize, u64) -> Vec<f64> + Sync,
    ) -> Self {
        let count = replicas as f64;
        let mut errors = Vec::new();
        let mut found = Vec::new();
        for (stage, samples) in [samples, 4 * samples, 16 * samples].into_iter().enumerate() {
            let seed = |replica: usize| (1000 * (stage + 1) + replica) as u64;
            found = (0..replicas).into_par_iter().map(|r| estimate(samples, seed(r))).collect::<Vec<_>>();
            errors.push((found.iter().map(|x| distance(x, target).powi(2)).sum::<f64>() / count).sqrt());
        }
        let column = |k: usize| found.iter().map(move |x| x[k]);
        let mean: Vec<f64> = (0..target.len()).map(|k| column(k).sum::<f64>() / count).collect();
        let variance = |k: usize| column(k).map(|x| (x - mean[k]).powi(2)).sum::<f64>() / (count - 1.0);
        let standard_error = (0..target.len()).map(|k| (variance(k) / count).sqrt()).collect();
        let study = Study { what: what.into(), target: target.to_vec(), mean, standard_error, errors };
        study.check();
        study
    }

    /// The mean cannot be told from the target, entry by entry, and the errors halve with four times the
    /// samples.
    fn check(&self) {
        let Study { what, target, mean, standard_error, errors } = self;
        for (k, ((mean, target), se)) in mean.iter().zip(target).zip(standard_error).enumerate() {
            // Entries without spread, such as the gradient of an action without effect, are known up to
            // rounding.
            let allowed = 5.0 * se + 1e-9 * (1.0 + target.abs());
            let error = (mean - target).abs();
            assert!(error <= allowed, "{what}[{k}]: {mean} is not {target} (standard error {se})");
        }
        for pair in errors.windows(2) {
            let rate = pair[0] / pair[1];
            assert!((1.6..2.5).contains(&rate), "{what}: errors {errors:?} with N, 4N and 16N samples");
        }
    }

    /// Standard error of the mean as a whole.
    fn noise(&self) -> f64 {
        self.standard_error.iter().map(|se| se * se).sum::<f64>().sqrt()
    }

    /// The estimates stay away from `other`, as far as the target does.
    fn is_not(&self, name: &str, other: &[f64]) -> &Self {
        let (what, noise) = (&self.what, self.noise());
        let gap = distance(&self.target, other);
        assert!(gap > 10.0 * noise, "{what}: {name} is {gap} away, too near to tell with noise {noise}");
        let found = distance(&self.mean, other);
        assert!(found > 0.8 * gap, "{what}: {found} from {name}, which the target is {gap} from");
        self
    }
}

#[test]
fn sampled_occupancies_converge_to_lambda() {
    for name in ["line3_entropy", "star4_joint_rho"] {
        let case = unchanged(name);
        let system = system(&case);
        let truth = Truth::new(&case, &system);
        let steps = horizon(case.problem.gamma);
        let cells = || case.problem.agents.iter().map(|agent| agent.space.cells());
        let lambda = truth.chain.occupancy();
        let study = Study::new(
            format!("λ of {name}"),
            lambda.data(),
            Size { replicas: 256, samples: 16 },
            |trajectories, seed| {
                let batch = truth.sample(trajectories, steps, StartFrom::World, seed);
                let mut visits = Visits::new(cells());
                let weights = case.problem.occupancy_weights(steps, trajectories);
                visits.add(&batch, &weights, case.policy.action_counts());
                visits.occupancy.data().to_vec()
            },
        );
        let long_run = truth.chain.stationary().unwrap().into_iter().map(|p| p / (1.0 - case.problem.gamma));
        study.is_not("where the chain ends up", truth.chain.local(&long_run.collect::<Vec<_>>()).data());
    }
}

/// All joint values of agents with the given sizes, the smallest agent most significant.
fn joint_values(sizes: &[usize]) -> Vec<Vec<u8>> {
    sizes.iter().fold(vec![Vec::new()], |joint, &size| {
        let longer = |start: &Vec<u8>, last: usize| start.iter().copied().chain([last as u8]).collect();
        joint.iter().flat_map(|start| (0..size).map(move |last| longer(start, last))).collect()
    })
}

/// Place of a joint value in [`joint_values`].
fn number(values: impl Iterator<Item = u8>, sizes: &[usize]) -> usize {
    values.zip(sizes).fold(0, |number, (value, size)| number * size + usize::from(value))
}

/// Returns averaged over the visits to each joint pair are the whole Q, not a truncated one. Visits of one
/// trajectory depend on each other, a bias of the order 1/N that drowns in the error of the mean.
#[test]
fn montecarlo_values_converge_to_q() {
    const STEPS: usize = 100;
    let case = softened("line3_entropy", 0);
    let system = system(&case);
    let truth = Truth::new(&case, &system);
    let (states, actions) = (&system.dynamics.states, &system.dynamics.actions);
    let (n, joint_actions) = (states.len(), joint_values(actions).len());
    let pairs = joint_values(states).len() * joint_actions;
    let whole = truth.tables_over(&everyone(&case), Truncation::Fixed, &truth.chain.state_occupancy);
    let exact = weighed(&whole, &case.mu);
    let mut critic = MonteCarlo::new(&case.problem, horizon(case.problem.gamma));
    critic.evaluate(truth.evidence(None)).unwrap();
    assert_eq!(critic.values_mut().set_multipliers(&truth.signals, &case.mu), None);
    let (tail, values) = (critic.samples().batch_tail, critic.values());
    let study =
        Study::new("Q by returns", exact.data(), Size { replicas: 64, samples: 50 }, |trajectories, seed| {
            let batch = truth.sample(trajectories, STEPS + tail, StartFrom::Uniform, seed);
            let (mut sums, mut counts) = (vec![0.0; n * pairs], vec![0.0; pairs]);
            let (mut scratch, mut returns) = (Vec::new(), vec![0.0; STEPS]);
            for trajectory in &batch {
                let pair = |k: usize| {
                    let state = number((0..n).map(|i| trajectory.states(i)[k]), states);
                    state * joint_actions + number((0..n).map(|i| trajectory.actions(i)[k]), actions)
                };
                let visited: Vec<usize> = (0..STEPS).map(pair).collect();
                visited.iter().for_each(|&z| counts[z] += 1.0);
                for j in 0..n {
                    let inbox = ValueReceiver {
                        to: j,
                        from: &[j as u32],
                        constrained: &[j as u32],
                        number: 0,
                        trajectory,
                        steps: STEPS,
                    };
                    values.receive_taken(inbox, &mut scratch, &mut returns);
                    visited.iter().zip(&returns).for_each(|(&z, value)| sums[j * pairs + z] += value);
                }
            }
            sums.chunks_exact(pairs)
                .flat_map(|sums| sums.iter().zip(&counts).map(|(sum, n)| sum / n))
                .collect()
        });
    let own = weighed(&truth.tables(Truncation::Averaged), &case.mu);
    let spread_out = (0..n).flat_map(|j| {
        let own = own.row(j);
        joint_values(states).into_iter().flat_map(move |s| {
            joint_values(actions)
                .into_iter()
                .map(move |a| own[usize::from(s[j]) * actions[j] + usize::from(a[j])])
        })
    });
    study.is_not("Q truncated to the agent itself", &spread_out.collect::<Vec<_>>());
}

/// ∇̃ of line 8 in the literal scaling, from trajectories of the length that the critic wants.
fn sampled_gradient(
    truth: &Truth<'_>,
    critic: &dyn Critic,
    groups: &Ragged<u32>,
    baseline: Baseline,
    trajectories: usize,
    seed: u64,
) -> Vec<f64> {
    let case = truth.case;
    let steps = horizon(case.problem.gamma);
    let batch = truth.sample(trajectories, steps + critic.samples().batch_tail, StartFrom::World, seed);
    let n = case.policy.agents() as f64;
    let weights = case.problem.occupancy_weights(steps, trajectories).into_iter().map(|w| w / n).collect();
    let rule = GradientSettings {
        weights,
        baseline,
        neighbour_mean: false,
        own_share: 0.0,
        all_actions: false,
        normalise: false,
        entropy: 0.0,
    };
    let mut gradient = Ragged::zeros_like(case.policy.theta());
    let mut actor = Actor::single(case.world.graph(), groups);
    actor.gradients(&case.policy, &batch, critic.values(), &rule, &mut gradient).unwrap();
    gradient.data().to_vec()
}

#[test]
fn gradients_with_exact_tables_converge_to_the_truncated_gradient() {
    let cases = [softened("paper_line5", 0), softened("paper_line5", 1)];
    let systems = [system(&cases[0]), system(&cases[1])];
    let truths = [Truth::new(&cases[0], &systems[0]), Truth::new(&cases[1], &systems[1])];
    let (fixed, averaged) = (Truncation::Fixed, Truncation::Averaged);
    for kappa_q in [0, 1] {
        let (case, truth, elsewhere) = (&cases[kappa_q], &truths[kappa_q], &truths[1 - kappa_q]);
        for (kind, other) in [(fixed, averaged), (averaged, fixed)] {
            let mut critic =
                ExactCritic::new(&case.world, &case.problem, &case.policy, kappa_q, kind).unwrap();
            critic.evaluate(truth.evidence(None)).unwrap();
            assert_eq!(critic.values_mut().set_multipliers(&truth.signals, &case.mu), None);
            let target = truth.truncated_gradient(kind);
            let study = |baseline, size| {
                let what = format!("{baseline:?} gradient with {kind:?} tables of radius {kappa_q}");
                let study = Study::new(what, target.data(), size, |trajectories, seed| {
                    sampled_gradient(truth, &critic, &case.groups, baseline, trajectories, seed)
                });
                study.is_not("that of another radius", elsewhere.truncated_gradient(kind).data());
                study
            };
            // The literal estimator is too noisy to tell the truncations of one radius apart.
            study(Baseline::None, Size { replicas: 128, samples: 30 });
            study(Baseline::Counterfactual, Size { replicas: 128, samples: 20 })
                .is_not("that of the other truncation", truth.truncated_gradient(other).data())
                .is_not("the true one", truth.true_gradient().data());
        }
    }
}

fn montecarlo_gradients(case: &Case, name: &str, other: impl Fn(&Truth<'_>) -> Ragged<f64>) {
    let system = system(case);
    let truth = Truth::new(case, &system);
    let mut critic = MonteCarlo::new(&case.problem, horizon(case.problem.gamma));
    assert_eq!(critic.values_mut().set_multipliers(&truth.signals, &case.mu), None);
    let (target, everyone) = (truth.true_gradient(), everyone(case));
    for baseline in [Baseline::None, Baseline::Mean] {
        let what = format!("{baseline:?} gradient by returns");
        Study::new(what, target.data(), Size { replicas: 128, samples: 25 }, |trajectories, seed| {
            sampled_gradient(&truth, &critic, &everyone, baseline, trajectories, seed)
        })
        .is_not(name, other(&truth).data());
    }
}

#[test]
fn montecarlo_gradients_converge_to_the_true_gradient() {
    let truncated = |truth: &Truth<'_>| truth.truncated_gradient(Truncation::Averaged);
    montecarlo_gradients(&softened("paper_line5", 0), "a truncated one", truncated);
    // Agents hardly depend on each other here: truncation changes less than could be told.
    let zero = |truth: &Truth<'_>| Ragged::zeros_like(truth.case.policy.theta());
    montecarlo_gradients(&unchanged("line4_mixed_utilities"), "zero", zero);
}

/// All tables, `[agent][utility][pair]`.
fn tables_of(values: &dyn QValues, mu: &Ragged<f64>) -> Vec<f64> {
    let tables = (0..mu.rows()).flat_map(|j| (0..=mu.row(j).len()).map(move |which| (j, which)));
    tables.flat_map(|(j, which)| values.table(j, which).unwrap().to_vec()).collect()
}

/// The tables that a critic learns from one trajectory of its own, from the uniform start.
fn learnt(truth: &Truth<'_>, critic: &mut dyn Critic, seed: u64) -> Vec<f64> {
    let trajectory = truth.sample(1, critic.samples().evaluation_pairs, StartFrom::Uniform, seed);
    critic.evaluate(truth.evidence(trajectory.first())).unwrap();
    tables_of(critic.values(), &truth.case.mu)
}

/// Steps h/(k + k1) of temporal differences, for the tables of radius 0, that make the error fall as 1/√k
/// where joint states have the given law: h·a must exceed 1/2, where a ≥ (1 − γ)·(least weight of a pair) is
/// the slowest decay.
fn harmonic(truth: &Truth<'_>, law: &[f64]) -> [f64; 2] {
    let weights = truth.chain.local(law);
    let least = weights.data().iter().copied().fold(1.0, f64::min);
    let h = 2.0 / ((1.0 - truth.case.problem.gamma) * least);
    [h, 2.0 * h]
}

#[test]
fn td_on_one_trajectory_converges_to_the_stationary_fixed_point() {
    let case = softened("paper_line5", 0);
    let system = system(&case);
    let truth = Truth::new(&case, &system);
    let stationary = truth.chain.stationary().unwrap();
    let [h, k1] = harmonic(&truth, &stationary);
    let tables = QTables::new(&case.world, 0, &case.problem).unwrap();
    let target = truth.fixed_point(&stationary);
    Study::new("TD", target.data(), Size { replicas: 128, samples: 5000 }, |steps, seed| {
        let rule = StepSettings::harmonic(h, k1);
        learnt(&truth, &mut Td::new(tables.clone(), steps, rule, false), seed)
    })
    .is_not("Q with the others held", truth.tables(Truncation::Fixed).data())
    .is_not("the mean of Q over the others", truth.tables(Truncation::Averaged).data());
}

/// (1/K)·Σ_{k<K} of the law of s^k from the uniform start: where K transitions depart from.
fn law_of_departures(chain: &Chain<'_>, steps: usize) -> Vec<f64> {
    let size = chain.system.dynamics.joint_states;
    let mut now = vec![1.0 / size as f64; size];
    let mut mean = vec![0.0; size];
    for _ in 0..steps {
        mean.iter_mut().zip(&now).for_each(|(mean, p)| *mean += p / steps as f64);
        now = chain.advance(&now);
    }
    mean
}

/// A warm critic with few steps sees many short trajectories: its limit is the fixed point of their law,
/// which is not the stationary one. The policy stands still here, and the steps fall from one evaluation to
/// the next.
#[test]
fn warm_td_on_short_trajectories_converges_to_the_fixed_point_of_their_law() {
    const STEPS: usize = 2;
    let case = case("line3_entropy", |input| input.kappa_q = Some(0));
    let system = system(&case);
    let truth = Truth::new(&case, &system);
    let law = law_of_departures(&truth.chain, STEPS);
    let [h, k1] = harmonic(&truth, &law);
    let tables = QTables::new(&case.world, 0, &case.problem).unwrap();
    let target = truth.fixed_point(&law);
    Study::new("warm TD", target.data(), Size { replicas: 64, samples: 4000 }, |trajectories, seed| {
        let batch = truth.sample(trajectories, STEPS + 1, StartFrom::Uniform, seed);
        let mut carried = vec![0.0; target.data().len()];
        for (evaluation, trajectory) in batch.iter().enumerate() {
            let rule = StepSettings::harmonic(h, k1 + (evaluation * STEPS) as f64);
            let mut critic = Td::new(tables.clone(), STEPS, rule, true);
            carried_by(&mut critic).copy_from_slice(&carried);
            critic.evaluate(truth.evidence(Some(trajectory))).unwrap();
            carried.copy_from_slice(carried_by(&mut critic));
        }
        carried
    })
    .is_not("the stationary fixed point", truth.fixed_point(&truth.chain.stationary().unwrap()).data());
}

/// LSTD solves for one trajectory at a time and pools nothing over evaluations, so K → ∞ is its only limit.
/// The K transitions depart from the mean law of s^0 … s^{K−1}, whose fixed point is 1/K from the stationary
/// one: far less than the sampling error.
#[test]
fn lstd_on_one_trajectory_converges_to_the_stationary_fixed_point() {
    for kappa_q in [0, 1] {
        let case = softened("paper_line5", kappa_q);
        let system = system(&case);
        let truth = Truth::new(&case, &system);
        let target = truth.fixed_point(&truth.chain.stationary().unwrap());
        let tables = QTables::new(&case.world, kappa_q, &case.problem).unwrap();
        let what = format!("LSTD of radius {kappa_q}");
        let study = Study::new(what, target.data(), Size { replicas: 64, samples: 10_000 }, |steps, seed| {
            learnt(&truth, &mut Lstd::new(tables.clone(), steps, 1e-12), seed)
        });
        study.is_not("Q with the others held", truth.tables(Truncation::Fixed).data());
        if kappa_q == 0 {
            study.is_not("the mean of Q over the others", truth.tables(Truncation::Averaged).data());
        }
        let gaps = [1000, 4000].map(|steps| {
            distance(truth.fixed_point(&law_of_departures(&truth.chain, steps)).data(), target.data())
        });
        assert!((3.9..4.1).contains(&(gaps[0] / gaps[1])) && gaps[1] < 0.1 * study.noise(), "{gaps:?}");
    }
}

/// Entry by entry within 1e-12 of the largest.
fn assert_close(what: &str, found: &Ragged<f64>, expected: &Ragged<f64>) {
    let size = expected.data().iter().fold(0.0, |size: f64, x| size.max(x.abs()));
    for (k, (f, e)) in found.data().iter().zip(expected.data()).enumerate() {
        assert!((f - e).abs() <= 1e-12 * size, "{what}[{k}]: {f} is not {e}");
    }
}

/// rᵀ·∂λ/∂θ of the Lagrangian, λ differentiated.
///
/// ∂/∂θ_i(x, b) moves π_i(·|x) towards action b: ∂π = π_i(b|x)·(π with b forced at x − π), and everything
/// that is linear in π changes alike. With d = ρ + γ·Pᵀd that gives ∂d = (I − γ·Pᵀ)⁻¹·γ·(∂P)ᵀd.
fn by_the_occupancy(truth: &Truth<'_>, direct: &Tabular) -> Ragged<f64> {
    let (case, chain) = (truth.case, &truth.chain);
    let (gamma, n) = (case.problem.gamma, case.policy.agents());
    let d = &chain.state_occupancy;
    let rewards = weighed(&truth.signals.rewards, &case.mu);
    let moved = |to: &[f64], from: &[f64], by: f64| -> Vec<f64> {
        to.iter().zip(from).map(|(to, from)| by * (to - from)).collect()
    };
    let derivative = |i: usize, entry: usize| {
        let (actions, p) = (case.policy.actions(i), case.policy.probabilities(i)[entry]);
        let mut forced = direct.clone();
        forced.update(|theta| {
            let first = entry / actions * actions;
            theta.row_mut(i)[first..first + actions].fill(0.0);
            theta.row_mut(i)[entry] = 1.0;
        });
        let forced = chain.system.under(&forced).unwrap();
        let change = moved(&forced.advance(d), &chain.advance(d), gamma * p);
        let visits = chain.local(&chain.discounted_visits(&change).unwrap());
        let choices = moved(forced.local(d).data(), chain.local(d).data(), p);
        let change = visits.data().iter().zip(&choices).map(|(visits, choices)| visits + choices);
        change.zip(rewards.data()).map(|(change, r)| change * r).sum::<f64>() / n as f64
    };
    let entries = |i: usize| 0..case.policy.theta().row(i).len();
    Ragged::from_rows((0..n).map(|i| entries(i).map(|entry| derivative(i, entry)).collect::<Vec<_>>()))
}

/// E[Σ_k γ^k·r(s^k, a^k)·Σ_{k' ≤ k} ∇log π(a^k'|s^k')] by enumeration of joint states and actions: m(s) =
/// E[Σ_{k' < k} ∇log π(a^k'|s^k'); s^k = s] is carried from step to step beside the law of s^k.
fn by_score_sums(truth: &Truth<'_>) -> Ragged<f64> {
    let (case, dynamics) = (truth.case, &truth.chain.system.dynamics);
    let (policy, gamma, n) = (&case.policy, case.problem.gamma, case.policy.agents());
    let rewards = weighed(&truth.signals.rewards, &case.mu);
    let states = joint_values(&dynamics.states);
    let parents = StateIndex::new(&dynamics.parents, &dynamics.states, "parents").unwrap();
    let parents_actions = StateIndex::new(&dynamics.parents, &dynamics.actions, "parents").unwrap();
    let numbers = |index: &StateIndex, values: &[u8]| {
        let mut numbers = vec![0; n];
        index.fill(0..n, values, &mut numbers);
        numbers
    };
    let mut law = dynamics.start.to_vec();
    let mut scores = vec![vec![0.0; policy.theta().data().len()]; states.len()];
    let mut gradient: Ragged<f64> = Ragged::zeros_like(policy.theta());
    let mut discount = 1.0;
    while discount > 1e-17 {
        let mut next_law = vec![0.0; states.len()];
        let mut next_scores = vec![vec![0.0; gradient.data().len()]; states.len()];
        for (s, state) in states.iter().enumerate() {
            let observed = numbers(policy.observations(), state);
            for action in joint_values(&dynamics.actions) {
                let mut probability = 1.0;
                let mut reward = 0.0;
                // Σ_{k' ≤ k} of the scores, on the event that (s, a) is met, given a.
                let mut sums = scores[s].clone();
                for i in 0..n {
                    let actions = policy.actions(i);
                    let row = observed[i] as usize * actions;
                    let pi = &policy.probabilities(i)[row..row + actions];
                    let taken = usize::from(action[i]);
                    probability *= pi[taken];
                    reward += rewards.row(i)[usize::from(state[i]) * actions + taken] / n as f64;
                    let first = policy.theta().offsets()[i] + row;
                    for (b, p) in pi.iter().enumerate() {
                        sums[first + b] += law[s] * (f64::from(u8::from(b == taken)) - p);
                    }
                }
                let weight = discount * probability * reward;
                gradient.data_mut().iter_mut().zip(&sums).for_each(|(g, sum)| *g += weight * sum);
                let (from, by) = (numbers(&parents, state), numbers(&parents_actions, &action));
                for (t, next) in states.iter().enumerate() {
                    let local = |i: usize| {
                        let place = from[i] as usize * parents_actions.size(i) + by[i] as usize;
                        dynamics.laws.row(i)[place * dynamics.states[i] + usize::from(next[i])]
                    };
                    let p = probability * (0..n).map(local).product::<f64>();
                    next_law[t] += p * law[s];
                    next_scores[t].iter_mut().zip(&sums).for_each(|(next, sum)| *next += p * sum);
                }
            }
        }
        (law, scores) = (next_law, next_scores);
        discount *= gamma;
    }
    gradient
}

#[test]
fn the_forms_of_the_policy_gradient_agree() {
    for name in ["line3_entropy", "line4_mixed_utilities", "star4_joint_rho"] {
        let case = unchanged(name);
        let system = system(&case);
        let truth = Truth::new(&case, &system);
        let by_q = truth.true_gradient();
        let direct = Reference::read(name).policy(Parameterisation::Direct);
        assert_close(&format!("{name}: by λ"), &by_the_occupancy(&truth, &direct), &by_q);
        assert_close(&format!("{name}: by scores"), &by_score_sums(&truth), &by_q);
    }
}

/// Inside a run the shadow rewards are sampled, but nothing else about the exact critic's tables is.
#[test]
fn the_exact_critic_of_a_run_has_the_tables_of_the_batchs_shadow_rewards() {
    let file = Reference::read("line4_mixed_utilities").path;
    let kinds = [("fixed", Truncation::Fixed), ("averaged", Truncation::Averaged), ("td", Truncation::Td)];
    for (key, kind) in kinds {
        let text = format!(
            "batch = 5\nhorizon = 20\nkappa = 1\nkappa_q = 1\n[critic]\nkind = \"exact\"\ntruncation = {key:?}\n\
             [world]\nkind = \"table\"\nallow_infeasible = true\nfile = {file:?}"
        );
        let config = Config::from_toml(&text, std::path::Path::new(".")).unwrap();
        let mut session = Session::new(&config).unwrap();
        let problem = session.problem().clone();
        let groups = session.world().graph().neighbourhoods(1);
        let mut before = Vec::new();
        // Twice, so that tables left over from an earlier policy or batch would be found out.
        for _ in 0..2 {
            let policy = session.algorithm().policy().tabular().unwrap().clone();
            session.advance().unwrap();
            let last = session.algorithm().last().unwrap();
            let mut signals = Signals::new(&problem);
            signals.evaluate(&problem, &last.visits.occupancy, 1.0);
            let system = System::new(session.world(), &problem, &policy).unwrap();
            let chain = system.under(&policy).unwrap();
            let (rewards, weights) = (&signals.rewards, &chain.state_occupancy);
            let truncated = Truncated::new(&system, &policy, &groups, kind).unwrap();
            let exact = truncated.tables(&chain, &chain.values(rewards).unwrap(), weights);
            let found = tables_of(last.q, session.algorithm().mu());
            // Not `assert_eq`, which would print a thousand numbers.
            assert!(found == exact.data() && found != before, "{key}");
            before = found;
        }
    }
}

/// What a warm critic carries over.
fn carried_by(critic: &mut Td) -> &mut [f64] {
    match critic.fields().pop() {
        Some((_, phalanx::base::fields::Field::Rows(rows))) => rows.data_mut(),
        other => panic!("{other:?}"),
    }
}
