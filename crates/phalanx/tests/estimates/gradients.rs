//! The gradients that policies return are derivatives of what they are meant to climb.
//!
//! With the received values held fixed that is Σ_k w_k·(value − baseline)·ln π(a^k|x^k), or Σ_k w_k·Σ_b
//! π(b|x^k)·value(b) over all actions, plus the entropy bonus. The laws are written out here once more, in
//! double precision, and derived by central differences.

use crate::support::{Reference, act, moment, sample};
use phalanx::Ragged;
use phalanx::base::stream::Stream;
use phalanx::learn::actor::Actor;
use phalanx::learn::critic::{QValues, ValueReceiver};
use phalanx::learn::shadow::Signals;
use phalanx::neural::{Batch, Net, Tape};
use phalanx::policy::observation::{Inputs, ObservationEncoder, Widths};
use phalanx::policy::{Baseline, GradientSettings};
use phalanx::policy::{LinearPolicy, NeuralPolicy, Parameterisation, Policy, PolicyFeatures, Tabular};
use phalanx::sample::rollout::StartFrom;
use phalanx::world::Trajectory;
use phalanx::world::{Line, Start, Wireless, WirelessSpec, World};

const KAPPA: usize = 1;
pub const STEPS: usize = 9;

/// Values that no critic has learnt: numbers by sender, trajectory, step and the receiver's action.
pub struct Made;

impl Made {
    fn value(j: u32, number: usize, step: usize, action: usize) -> f64 {
        let x = (j as usize * 7919 + number * 104_729 + step * 1299 + action * 31) as f64;
        2.0 * (x * 0.618).sin() + 0.5
    }
}

impl QValues for Made {
    fn set_multipliers(&mut self, _: &Signals, _: &Ragged<f64>) -> Option<(usize, f64)> {
        None
    }

    fn add_taken(&self, sender: u32, inbox: &ValueReceiver<'_>, _: &mut Vec<u32>, out: &mut [f64]) {
        for (k, out) in out.iter_mut().enumerate() {
            let taken = usize::from(inbox.trajectory.actions(inbox.to)[k]);
            *out += Made::value(sender, inbox.number, k, taken);
        }
    }

    fn knows_alternatives(&self) -> bool {
        true
    }

    fn add_alternatives(
        &self,
        sender: u32,
        inbox: &ValueReceiver<'_>,
        actions: usize,
        _: &mut Vec<u32>,
        out: &mut [f64],
    ) {
        for (k, out) in out.chunks_exact_mut(actions).enumerate() {
            for (b, out) in out.iter_mut().enumerate() {
                *out += Made::value(sender, inbox.number, k, b);
            }
        }
    }

    fn table(&self, _: usize, _: usize) -> Option<&[f64]> {
        None
    }
}

/// π_i(· | states) from a row of θ.
pub type Law<'a> = Box<dyn Fn(&[f64], &[u8]) -> Vec<f64> + 'a>;

pub fn softmax(logits: &[f64]) -> Vec<f64> {
    let total: f64 = logits.iter().map(|x| x.exp()).sum();
    logits.iter().map(|x| x.exp() / total).collect()
}

/// θ(x, ·) with x numbered row-major over the states of N_i^κ.
fn table_row<'t>(
    world: &dyn World,
    group: &[u32],
    actions: usize,
    theta: &'t [f64],
    states: &[u8],
) -> &'t [f64] {
    let number = |x: usize, &m: &u32| x * world.states(m as usize) + usize::from(states[m as usize]);
    &theta[group.iter().fold(0, number) * actions..][..actions]
}

/// One entry for every neighbour's state, together with the own one if they are `pairs`, and what the world
/// adds.
fn linear_law(
    world: &dyn World,
    group: &[u32],
    agent: usize,
    pairs: bool,
    theta: &[f64],
    states: &[u8],
) -> Vec<f64> {
    let actions = world.actions(agent);
    let (mut logits, mut first) = (vec![0.0; actions], 0);
    for &m in group {
        let m = m as usize;
        let (size, row) = match pairs && m != agent {
            true => {
                let size = world.states(m);
                (size * world.states(agent), usize::from(states[agent]) * size + usize::from(states[m]))
            }
            false => (world.states(m), usize::from(states[m])),
        };
        let entries = &theta[(first + row) * actions..];
        logits.iter_mut().zip(entries).for_each(|(logit, x)| *logit += x);
        first += size;
    }
    if let Some(features) = world.policy_features(agent, group) {
        let seen: Vec<u8> = group.iter().map(|&m| states[m as usize]).collect();
        let mut active = Vec::new();
        features.active(&seen, &[], &mut active);
        for row in active {
            let entries = &theta[(first + row as usize) * actions..];
            logits.iter_mut().zip(entries).for_each(|(logit, x)| *logit += x);
        }
        first += features.count();
    }
    assert_eq!(first * actions, theta.len());
    softmax(&logits)
}

pub fn widths() -> Widths {
    Widths { embedding: 3, row_hidden: 6, hidden: vec![8, 5] }
}

/// Policies of every kind with random parameters. Tables over many queues would be too large.
fn policies(world: &dyn World) -> Vec<Box<dyn Policy>> {
    let stream = Stream::new(11);
    let linear = |features| LinearPolicy::new(world, KAPPA, features, true, 0.7, &stream).unwrap();
    let mut network = NeuralPolicy::new(world, KAPPA, &widths(), 1.0, &stream).unwrap();
    // Biases of 0 would put empty queues on the kink of a ReLU.
    for (x, theta) in network.theta_mut().data_mut().iter_mut().enumerate() {
        *theta += f64::from((x as f32 * 0.73).sin() * 0.1);
    }
    network.refresh();
    let mut policies: Vec<Box<dyn Policy>> = vec![
        Box::new(linear(PolicyFeatures::Additive)),
        Box::new(linear(PolicyFeatures::Pair)),
        Box::new(network),
    ];
    if world.states(0) < 4 {
        for parameterisation in [Parameterisation::Softmax, Parameterisation::Direct] {
            policies.push(Box::new(Tabular::new(world, KAPPA, parameterisation, 1.0, &stream).unwrap()));
        }
    }
    policies
}

/// The law of an agent in double precision, by the definition of its kind.
fn law<'a>(kind: &str, world: &'a dyn World, agent: usize) -> Law<'a> {
    let group = world.graph().neighbourhoods(KAPPA).row(agent).to_vec();
    let actions = world.actions(agent);
    match kind {
        "softmax" => Box::new(move |theta, x| softmax(table_row(world, &group, actions, theta, x))),
        "direct" => Box::new(move |theta, x| table_row(world, &group, actions, theta, x).to_vec()),
        "linear-additive" => Box::new(move |theta, x| linear_law(world, &group, agent, false, theta, x)),
        "linear-pair" => Box::new(move |theta, x| linear_law(world, &group, agent, true, theta, x)),
        "network" => {
            let sight = ObservationEncoder::new(world, agent, &group, false);
            let net = Net::new(sight.architecture(&widths(), actions), "net").unwrap();
            Box::new(move |theta, x| {
                let mut inputs = Inputs::default();
                sight.encode_step(&moment(x), 0, |_| 0, &mut inputs);
                let rows: Vec<f64> = inputs.rows.iter().map(|&x| f64::from(x)).collect();
                let batch = Batch { size: 1, rows: &rows, symbols: &inputs.symbols };
                softmax(net.forward(theta, batch, &mut Tape::default()))
            })
        }
        other => panic!("{other} is not tested"),
    }
}

fn worlds() -> Vec<Box<dyn World>> {
    let wireless = "rows = 2\ncolumns = 3\ndeadline = [2, 3, 1, 2, 2, 3]";
    let wireless: WirelessSpec = toml::from_str(wireless).unwrap();
    vec![
        Box::new(Line::new(5, Start::Uniform, 0.1).unwrap()),
        Box::new(Reference::read("line4_mixed_utilities").table),
        Box::new(Wireless::new(&wireless).unwrap()),
    ]
}

/// One step of the batch, as agent i sees it.
pub struct Sample {
    states: Vec<u8>,
    action: usize,
    weight: f64,
    /// By the own action.
    values: Vec<f64>,
    /// Of the values, under the policy that acted.
    expected: f64,
}

pub fn samples(
    law: &Law<'_>,
    theta: &[f64],
    agent: usize,
    senders: &[u32],
    batch: &[Trajectory],
    rule: &GradientSettings,
    agents: usize,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (number, trajectory) in batch.iter().enumerate() {
        for (k, &weight) in rule.weights.iter().enumerate() {
            let states: Vec<u8> = (0..agents).map(|m| trajectory.states(m)[k]).collect();
            let law = law(theta, &states);
            let made = |j, b| Made::value(j, number, k, b);
            let count = if rule.neighbour_mean { senders.len() as f64 } else { 1.0 };
            let heard = |b| senders.iter().map(|&j| made(j, b)).sum::<f64>() / count;
            let value = |b| rule.own_share * made(agent as u32, b) + (1.0 - rule.own_share) * heard(b);
            let values: Vec<f64> = (0..law.len()).map(value).collect();
            let expected = law.iter().zip(&values).map(|(p, v)| p * v).sum();
            let action = usize::from(trajectory.actions(agent)[k]);
            samples.push(Sample { states, action, weight, values, expected });
        }
    }
    samples
}

/// What is climbed, with values and baselines held fixed.
pub fn climbed(
    law: &Law<'_>,
    samples: &[Sample],
    rule: &GradientSettings,
    is_direct: bool,
    theta: &[f64],
) -> f64 {
    let mass: f64 = samples.iter().map(|sample| sample.weight).sum();
    let mean = samples.iter().map(|sample| sample.weight * sample.values[sample.action]).sum::<f64>() / mass;
    let mut total = 0.0;
    for Sample { states, action, weight, values, expected } in samples {
        let law = law(theta, states);
        total += weight
            * match rule.baseline {
                // The direct parameterisation has no score: it sums over all actions too, less the
                // expectation.
                _ if is_direct => law.iter().zip(values).map(|(p, v)| p * (v - expected)).sum::<f64>(),
                _ if rule.all_actions => law.iter().zip(values).map(|(p, v)| p * v).sum::<f64>(),
                Baseline::None => values[*action] * law[*action].ln(),
                Baseline::Mean => (values[*action] - mean) * law[*action].ln(),
                Baseline::Counterfactual => (values[*action] - expected) * law[*action].ln(),
            };
        if rule.entropy > 0.0 {
            total -= weight * rule.entropy * law.iter().map(|p| p * p.ln()).sum::<f64>();
        }
    }
    total
}

pub fn rules() -> Vec<GradientSettings> {
    let rule = |baseline, neighbour_mean, all_actions, entropy| {
        let weights = (0..STEPS).map(|k| 0.3 * 0.8f64.powi(k as i32)).collect();
        GradientSettings {
            weights,
            baseline,
            neighbour_mean,
            own_share: 0.0,
            all_actions,
            normalise: false,
            entropy,
        }
    };
    use Baseline::{Counterfactual, Mean, None};
    vec![
        rule(None, false, false, 0.0),
        rule(Mean, false, false, 0.0),
        rule(Counterfactual, false, false, 0.0),
        rule(None, true, false, 0.0),
        rule(Mean, true, false, 0.0),
        rule(Counterfactual, true, true, 0.0),
        GradientSettings { own_share: 0.3, ..rule(None, true, false, 0.0) },
        GradientSettings { own_share: 1.0, ..rule(Counterfactual, true, false, 0.0) },
        rule(None, false, true, 0.0),
        rule(Mean, false, true, 0.0),
        rule(None, false, false, 0.4),
        rule(Mean, false, false, 0.4),
        rule(Counterfactual, false, false, 0.4),
        rule(Counterfactual, false, true, 0.4),
    ]
}

#[test]
fn gradients_are_derivatives() {
    const H: f64 = 1e-5;
    for world in worlds() {
        let (world, agents) = (&*world, world.graph().agents());
        let senders = world.graph().neighbourhoods(1);
        for policy in policies(world) {
            let batch = sample(world, &*policy, 3, STEPS + 2, StartFrom::Uniform, 4);
            // Networks compute in single precision.
            let tolerance = if policy.is_single() { 3e-5 } else { 1e-8 };
            for rule in rules().iter().filter(|rule| rule.entropy == 0.0 || !policy.is_direct()) {
                let mut found = Ragged::zeros_like(policy.theta());
                let mut actor = Actor::single(world.graph(), &senders);
                actor.gradients(&*policy, &batch, &Made, rule, &mut found).unwrap();
                for agent in [0, agents / 2, agents - 1] {
                    let law = law(policy.kind(), world, agent);
                    let mut theta = policy.theta().row(agent).to_vec();
                    let from = senders.row(agent);
                    let samples = samples(&law, &theta, agent, from, &batch, rule, agents);
                    let mut climb = |x: usize, h: f64| {
                        let before = std::mem::replace(&mut theta[x], policy.theta().row(agent)[x] + h);
                        let height = climbed(&law, &samples, rule, policy.is_direct(), &theta);
                        theta[x] = before;
                        height
                    };
                    let found = found.row(agent);
                    let expected: Vec<f64> =
                        (0..found.len()).map(|x| (climb(x, H) - climb(x, -H)) / (2.0 * H)).collect();
                    let largest = expected.iter().fold(0.0f64, |m, x| m.max(x.abs()));
                    assert!(largest > 1e-3, "nothing to compare with");
                    for (x, (f, e)) in found.iter().zip(&expected).enumerate() {
                        assert!(
                            (f - e).abs() <= tolerance * (1.0 + largest),
                            "{}, agent {agent}, {x}: {f} is not {e}, {rule:?}",
                            policy.kind()
                        );
                    }
                }
            }
        }
    }
}

/// The laws here are those that actions are drawn from.
#[test]
fn actions_are_drawn_from_the_laws() {
    for world in worlds() {
        let (world, agents) = (&*world, world.graph().agents());
        let batch = sample(world, &*policies(world)[0], 1, 40, StartFrom::Uniform, 5);
        for policy in policies(world) {
            for agent in 0..agents {
                let law = law(policy.kind(), world, agent);
                for k in 0..40 {
                    let states: Vec<u8> = (0..agents).map(|m| batch[0].states(m)[k]).collect();
                    let mut below = 0.0;
                    for (b, p) in law(policy.theta().row(agent), &states).into_iter().enumerate() {
                        // In the middle of the action's interval of [0, 1), in units of 2⁻³¹.
                        let draw = ((below + 0.5 * p) * f64::from(1u32 << 31)) as u32;
                        let action = act(&*policy, &states, &vec![draw; agents])[agent];
                        assert!(
                            usize::from(action) == b || p < 1e-5,
                            "{}, agent {agent}, {b}",
                            policy.kind()
                        );
                        below += p;
                    }
                }
            }
        }
    }
}
