//! What an agent computes depends on its neighbourhood only: on the line, where that is an interval, and on
//! the grid of the wireless network, where it is a window, and an epidemic on a grid.

use crate::Receive;
use crate::support::{act, sample};
use phalanx::Ragged;
use phalanx::base::stream::{Place, Purpose, Sequence, Stream};
use phalanx::graph::Graph;
use phalanx::learn::critic::{
    AllFeatures, Critic, CriticFeatures, CriticInput, Descent, LinearCritic, LinearRule, Lstd, NeuralCritic,
    NeuralCriticSettings, QTables, QValues, Returns, ReturnsSettings, SampleRequest, StepSettings, Td,
    ValueReceiver, ValueRequest,
};
use phalanx::learn::optimizer::OptimizerKind;
use phalanx::learn::shadow::Signals;
use phalanx::neural::Loss;
use phalanx::policy::observation::Widths;
use phalanx::policy::{Baseline, GradientInput, GradientScratch, GradientSettings};
use phalanx::policy::{LinearPolicy, NeuralPolicy, Parameterisation, Policy, PolicyFeatures, Tabular};
use phalanx::policy::{Reads, SharedKeys, SharedPolicy};
use phalanx::run::{Config, Session};
use phalanx::sample::rollout::StartFrom;
use phalanx::utility::problem::Problem;
use phalanx::world::Trajectory;
use phalanx::world::{Epidemic, EpidemicModel, EpidemicSpec, Line, Start, Wireless, WirelessSpec, World};

/// A world with its problem, and with agents in the middle and at the edge of it.
struct Setting {
    world: Box<dyn World>,
    problem: Problem,
    agents: Vec<usize>,
}

fn settings() -> [Setting; 3] {
    let problem = |world: &str| {
        let text = format!(
            "{world}\n[objective]\nkind = \"return\"\n[[constraint]]\nkind = \"state_entropy\"\nat_least = 0.5"
        );
        let config = Config::from_toml(&text, std::path::Path::new(".")).unwrap();
        let session = Session::new(&config.with("kappa", "0").unwrap()).unwrap();
        session.problem().clone()
    };
    let epidemic = EpidemicSpec { model: EpidemicModel::Sirs, ..EpidemicSpec::default() };
    let wireless = WirelessSpec { rows: 5, columns: 6, ..WirelessSpec::default() };
    [
        Setting {
            world: Box::new(Line::new(12, Start::Uniform, 0.1).unwrap()),
            problem: problem("[world]\nkind = \"line\"\nn = 12"),
            agents: (0..12).collect(),
        },
        Setting {
            world: Box::new(Wireless::new(&wireless).unwrap()),
            problem: problem("[world]\nkind = \"wireless\"\nrows = 5\ncolumns = 6"),
            agents: vec![0, 8, 17, 29],
        },
        Setting {
            world: Box::new(Epidemic::new(&epidemic, Graph::grid(5, 6).unwrap()).unwrap()),
            problem: problem("[world]\nkind = \"epidemic\"\nmodel = \"sirs\"\nn = 30"),
            agents: vec![0, 8, 17, 29],
        },
    ]
}

fn numbers(which: u32) -> Sequence {
    Stream::new(99).sequence(Place { purpose: Purpose::Graph, iteration: 0, trajectory: which }, 0)
}

fn widths() -> Widths {
    Widths { embedding: 3, row_hidden: 5, hidden: vec![7] }
}

/// Policies of every kind with random parameters. Tables over windows of users would be too large.
fn policies(world: &dyn World, kappa: usize) -> Vec<Box<dyn Policy>> {
    let stream = Stream::new(5);
    let linear = |features| LinearPolicy::new(world, kappa, features, true, 1.0, &stream).unwrap();
    let shared = |reads| {
        let sharing = SharedKeys { reads: Some(reads), ..SharedKeys::default() };
        SharedPolicy::new(world, kappa, &sharing, &widths(), 3.0, &stream).unwrap()
    };
    let mut policies: Vec<Box<dyn Policy>> = vec![
        Box::new(linear(PolicyFeatures::Additive)),
        Box::new(linear(PolicyFeatures::Pair)),
        Box::new(NeuralPolicy::new(world, kappa, &widths(), 3.0, &stream).unwrap()),
        Box::new(shared(Reads::States)),
    ];
    // Windows of users differ in size at the edge of a small grid, and views of an epidemic with what is far.
    if world.view(0, world.graph().neighbourhoods(kappa).row(0)).is_some() && kappa <= 1 {
        policies.push(Box::new(shared(Reads::View)));
    }
    // Of neighbours this sees what the world tells; beyond one hop only an epidemic does.
    if world.scripted_names().contains(&"treat") {
        policies.push(Box::new(linear(PolicyFeatures::Own)));
    }
    if kappa == 0 || world.states(0) == 2 {
        let table = Tabular::new(world, kappa, Parameterisation::Softmax, 1.0, &stream).unwrap();
        policies.push(Box::new(table));
    }
    policies
}

/// Agents farther than `radius` from `agent`.
fn beyond(world: &dyn World, agent: usize, radius: usize) -> Vec<usize> {
    let groups = world.graph().neighbourhoods(radius);
    let near = groups.row(agent);
    (0..world.graph().agents()).filter(|&j| !near.contains(&(j as u32))).collect()
}

/// Scrambles states, actions and rewards of all agents farther than `radius` from `agent`.
fn scrambled(world: &dyn World, trajectory: &Trajectory, agent: usize, radius: usize) -> Trajectory {
    let mut changed = trajectory.clone();
    let mut numbers = numbers(1);
    for j in beyond(world, agent, radius) {
        for k in 0..changed.steps() {
            let (s, a) = changed.pair_mut(j, k);
            *s = (numbers.next_u32() as usize % world.states(j)) as u8;
            *a = (numbers.next_u32() as usize % world.actions(j)) as u8;
            for channel in 0..changed.channels() {
                *changed.reward_mut(channel, j, k) = numbers.uniform() as f32;
            }
        }
    }
    assert_ne!(&changed, trajectory);
    changed
}

fn trajectory(world: &dyn World, steps: usize, seed: u64) -> Trajectory {
    let policy = LinearPolicy::new(world, 1, PolicyFeatures::Pair, true, 1.0, &Stream::new(5)).unwrap();
    sample(world, &policy, 1, steps, StartFrom::World, seed).remove(0)
}

#[test]
fn a_policy_reads_its_kappa_hop_neighbourhood_only() {
    let mut numbers = numbers(2);
    for Setting { world, agents, .. } in settings() {
        let n = world.graph().agents();
        for (kappa, policy) in
            (0..3).flat_map(|kappa| policies(&*world, kappa).into_iter().map(move |p| (kappa, p)))
        {
            let kind = policy.kind();
            let mut rim_mattered = false;
            for &agent in &agents {
                let far = beyond(&*world, agent, kappa);
                let rim: Vec<usize> = match kappa {
                    0 => vec![agent],
                    _ => beyond(&*world, agent, kappa - 1).into_iter().filter(|j| !far.contains(j)).collect(),
                };
                for _ in 0..50 {
                    let mut random = |j: usize| (numbers.next_u32() as usize % world.states(j)) as u8;
                    let mut states: Vec<u8> = (0..n).map(&mut random).collect();
                    let moved: Vec<u8> = (0..n).map(&mut random).collect();
                    let draws = vec![numbers.next_u32() >> 1; n];
                    let act = |states: &[u8]| act(&*policy, states, &draws)[agent];
                    let before = act(&states);
                    far.iter().for_each(|&j| states[j] = moved[j]);
                    assert_eq!(act(&states), before, "{kind}, agent {agent}, kappa {kappa}");
                    // The neighbourhood itself does matter.
                    rim.iter().for_each(|&j| states[j] = moved[j]);
                    rim_mattered |= act(&states) != before;
                }
            }
            assert!(rim_mattered, "{kind}, kappa {kappa}: a policy that never reads its rim would pass");
        }
    }
}

/// With received Q values and multipliers held fixed, the gradient depends on nothing beyond N_i^κ.
#[test]
fn a_gradient_reads_its_kappa_hop_neighbourhood_only() {
    let steps = 60;
    let baselines = [Baseline::None, Baseline::Mean, Baseline::Counterfactual];
    let rules = baselines.map(|baseline| (baseline, false, 0.0)).into_iter();
    let rules: Vec<_> = rules.chain([(Baseline::None, true, 0.3)]).collect();
    for Setting { world, agents, .. } in settings() {
        let trajectory = trajectory(&*world, steps, 6);
        for (kappa, policy) in
            (0..3).flat_map(|kappa| policies(&*world, kappa).into_iter().map(move |p| (kappa, p)))
        {
            for &(baseline, all_actions, entropy) in &rules {
                let weights = (0..steps).map(|k| 0.9f64.powi(k as i32)).collect();
                let rule = GradientSettings {
                    weights,
                    baseline,
                    neighbour_mean: false,
                    own_share: 0.0,
                    all_actions,
                    normalise: false,
                    entropy,
                };
                for &agent in &agents {
                    let gradient = |trajectory: &Trajectory| {
                        let receive = |_: usize, _: &mut Vec<u32>, values: &mut [f64]| {
                            values.iter_mut().enumerate().for_each(|(k, v)| *v = (k as f64 * 0.7).sin());
                        };
                        let mut out = vec![0.0; policy.theta().row(policy.row_of(agent)).len()];
                        let batch = std::slice::from_ref(trajectory);
                        let input = GradientInput { agent, batch, receive: &receive, rule: &rule };
                        policy.gradient(input, &mut GradientScratch::default(), &mut out);
                        out
                    };
                    let name = format!("{}, agent {agent}, kappa {kappa}, {rule:?}", policy.kind());
                    let before = gradient(&trajectory);
                    assert!(gradient(&scrambled(&*world, &trajectory, agent, kappa)) == before, "{name}");
                    if kappa > 0 {
                        let nearer = scrambled(&*world, &trajectory, agent, kappa - 1);
                        assert!(gradient(&nearer) != before, "{name}");
                    }
                }
            }
        }
    }
}

fn signals(problem: &Problem) -> Signals {
    let mut signals = Signals::new(problem);
    let row = |i: usize| (0..problem.row_length(i)).map(move |x| 10.0 + ((7 * i + 3 * x) % 11) as f64);
    signals.evaluate(problem, &Ragged::from_rows((0..problem.agents.len()).map(row)), 1.0);
    signals
}

type MakeCritic<'a> = Box<dyn Fn() -> Box<dyn Critic> + 'a>;

/// Critics of every kind that learn from one trajectory of `steps` transitions.
fn critics<'a>(
    world: &'a dyn World,
    problem: &'a Problem,
    kappa_q: usize,
    steps: usize,
) -> Vec<(String, MakeCritic<'a>)> {
    let from = SampleRequest::chains(1, steps);
    let mut critics: Vec<(String, MakeCritic<'a>)> = Vec::new();
    if world.states(0) == 2 {
        let tables = move || QTables::new(world, kappa_q, problem).unwrap();
        let td = move || Td::new(tables(), steps, StepSettings::constant(0.2), false);
        critics.push(("td".into(), Box::new(move || Box::new(td()))));
        critics.push(("lstd".into(), Box::new(move || Box::new(Lstd::new(tables(), steps, 1e-6)))));
    }
    let lstd = LinearRule::Lstd { ridge: 1e-3, average: 0.0 };
    let td = LinearRule::Td(StepSettings::constant(0.2));
    let mut linear =
        vec![(CriticFeatures::Own, lstd), (CriticFeatures::Additive, lstd), (CriticFeatures::Pair, td)];
    if world.states(0) == 2 {
        linear.push((CriticFeatures::Pair, lstd));
    }
    for (features, rule) in linear {
        let make = move || {
            let features = AllFeatures::new(world, kappa_q, features, true).unwrap();
            LinearCritic::new(features, problem, rule, from)
        };
        critics.push((format!("{features:?}, {rule:?}"), Box::new(move || Box::new(make()))));
    }
    for (minibatch, optimizer, twin, merged) in
        [(32, OptimizerKind::Adam, true, false), (0, OptimizerKind::Sgd, false, true)]
    {
        let make = move || {
            let rule = NeuralCriticSettings {
                descent: Descent::new(optimizer, 1e-3, 1.0),
                minibatch,
                passes: 2,
                loss: Loss::Huber { width: 1.0 },
                polyak: 0.5,
                twin,
                merged,
            };
            NeuralCritic::new(world, problem, kappa_q, &widths(), rule, from, Stream::new(3)).unwrap()
        };
        critics.push((format!("network, minibatch {minibatch}"), Box::new(move || Box::new(make()))));
    }
    critics
}

/// What `critic` makes of `evaluation`, ready to be asked about the first `steps` steps of `batch`.
fn learnt(
    make: &MakeCritic<'_>,
    world: &dyn World,
    signals: &Signals,
    evaluation: &Trajectory,
    batch: &[Trajectory],
    alternatives: bool,
) -> Box<dyn Critic> {
    let mut critic = make();
    let policy = LinearPolicy::new(world, 0, PolicyFeatures::Pair, true, 0.0, &Stream::new(0)).unwrap();
    let mu = Ragged::from_rows((0..policy.agents()).map(|i| [0.5 + i as f64]));
    let evaluation = std::slice::from_ref(evaluation);
    let evidence = CriticInput { iteration: 0, policy: &policy, mu: &mu, signals, batch: &[], evaluation };
    critic.evaluate(evidence).unwrap();
    assert_eq!(critic.values_mut().set_multipliers(signals, &mu), None);
    critic.values_mut().precompute(
        batch,
        batch[0].steps(),
        ValueRequest { alternatives, partial: false, levels: true },
    );
    critic
}

/// Agent j's own values along a trajectory.
fn own_values(values: &dyn QValues, agent: usize, trajectory: &Trajectory) -> Vec<f64> {
    let (from, steps) = (&[agent as u32][..], trajectory.steps());
    let mut out = vec![0.0; steps];
    values.receive_taken(
        ValueReceiver { to: agent, from, constrained: from, number: 0, trajectory, steps },
        &mut Vec::new(),
        &mut out,
    );
    out
}

#[test]
fn a_critic_reads_its_kappa_q_hop_neighbourhood_only() {
    for Setting { world, problem, agents } in settings() {
        let (world, signals) = (&*world, signals(&problem));
        let (evaluation, batch) = (trajectory(world, 201, 6), [trajectory(world, 40, 7)]);
        for kappa_q in 0..3 {
            for (name, make) in critics(world, &problem, kappa_q, 200) {
                let learn =
                    |evaluation: &Trajectory| learnt(&make, world, &signals, evaluation, &batch, false);
                let before = learn(&evaluation);
                for &agent in agents.iter().step_by(3) {
                    let after = learn(&scrambled(world, &evaluation, agent, kappa_q));
                    let of = |critic: &dyn Critic, j: usize| own_values(critic.values(), j, &batch[0]);
                    assert!(
                        of(&*before, agent) == of(&*after, agent),
                        "{name}, agent {agent}, kappa_q {kappa_q}"
                    );
                    let elsewhere = beyond(world, agent, kappa_q)[0];
                    assert!(of(&*before, elsewhere) != of(&*after, elsewhere), "{name}, kappa_q {kappa_q}");
                }
            }
        }
    }
}

/// What an agent receives comes from senders that read their own κ_q-hop neighbourhoods: nothing beyond
/// 2·κ_q.
#[test]
fn received_values_come_from_twice_the_radius_at_most() {
    let kappa_q = 1;
    for Setting { world, problem, agents } in settings() {
        let (world, signals) = (&*world, signals(&problem));
        let (evaluation, batch) = (trajectory(world, 201, 6), trajectory(world, 40, 7));
        let groups = world.graph().neighbourhoods(kappa_q);
        for (name, make) in critics(world, &problem, kappa_q, 200) {
            for alternatives in [false, true] {
                for &agent in agents.iter().step_by(2) {
                    let received = |trajectory: &Trajectory| {
                        let along = std::slice::from_ref(trajectory);
                        let critic = learnt(&make, world, &signals, &evaluation, along, alternatives);
                        let (from, steps, actions) =
                            (groups.row(agent), trajectory.steps(), world.actions(agent));
                        let inbox = ValueReceiver {
                            to: agent,
                            from,
                            constrained: from,
                            number: 0,
                            trajectory,
                            steps,
                        };
                        let mut out = vec![0.0; steps * if alternatives { actions } else { 1 }];
                        if alternatives {
                            critic.values().receive_alternatives(inbox, actions, &mut Vec::new(), &mut out);
                        } else {
                            critic.values().receive_taken(inbox, &mut Vec::new(), &mut out);
                        }
                        out
                    };
                    let before = received(&batch);
                    let at = |radius| received(&scrambled(world, &batch, agent, radius));
                    assert!(at(2 * kappa_q) == before, "{name}, agent {agent}");
                    // Features of the own pair alone end at the senders themselves.
                    assert!(at(0) != before, "{name}, agent {agent}");
                }
            }
        }
    }
}

/// Advantages are known along the batch that they were learnt from: agent j's depend on the neighbourhood
/// that its baseline sees, and what is received from its senders' alone.
#[test]
fn sampled_returns_read_the_neighbourhoods_of_their_senders_only() {
    for Setting { world, problem, agents } in settings() {
        let (world, signals) = (&*world, signals(&problem));
        let mu = Ragged::from_rows((0..world.graph().agents()).map(|i| [0.5 + i as f64]));
        let policy = LinearPolicy::new(world, 0, PolicyFeatures::Pair, true, 0.0, &Stream::new(0)).unwrap();
        let batch = trajectory(world, 60, 7);
        for kappa_q in 0..3 {
            let groups = world.graph().neighbourhoods(kappa_q);
            let received = |trajectory: &Trajectory, agent: usize, from: &[u32]| {
                let descent = Descent::new(OptimizerKind::Adam, 1e-2, 1.0);
                let rule =
                    ReturnsSettings { lambda: 0.9, descent, minibatch: 32, passes: 2, loss: Loss::Squared };
                let mut critic =
                    Returns::new(world, &problem, kappa_q, &widths(), rule, Stream::new(3)).unwrap();
                let (policy, batch) = (&policy, std::slice::from_ref(trajectory));
                // The second time, values are subtracted that were learnt the first time.
                for iteration in 0..2 {
                    let evidence =
                        CriticInput { iteration, policy, mu: &mu, signals: &signals, batch, evaluation: &[] };
                    critic.evaluate(evidence).unwrap();
                }
                assert_eq!(critic.set_multipliers(&signals, &mu), None);
                let mut out = vec![0.0; 40];
                let inbox =
                    ValueReceiver { to: agent, from, constrained: from, number: 0, trajectory, steps: 40 };
                critic.receive_taken(inbox, &mut Vec::new(), &mut out);
                out
            };
            for &agent in agents.iter().step_by(3) {
                let name = format!("agent {agent}, kappa_q {kappa_q}");
                for (from, radius) in [(&[agent as u32][..], kappa_q), (groups.row(agent), 2 * kappa_q)] {
                    let before = received(&batch, agent, from);
                    let at = |radius| received(&scrambled(world, &batch, agent, radius), agent, from);
                    assert!(at(radius) == before, "{name}");
                    assert!(kappa_q == 0 || at(radius - 1) != before, "{name}");
                }
            }
        }
    }
}
