//! Do kernels of neural networks compute what the processor's own code computes? In the emulation, or on a
//! card with `PHALANX_DEVICE=cuda`.

use std::sync::Arc;

use phalanx_gpu::{Gpu, Launch, Layout, Program, compile_ptx, nvrtc_is_present};

use super::super::part::{CardCritic, CardPolicy};
use super::{NetworkCritic, NetworkPolicy, Samples};
use crate::Ragged;
use crate::base::fields::Field;
use crate::base::stream::{Place, Purpose, Sequence, Stream};
use crate::learn::critic::{
    Critic, CriticInput, Descent, NeuralCritic, NeuralCriticSettings, QValues, SampleRequest, ValueReceiver,
    ValueRequest,
};
use crate::learn::shadow::Signals;
use crate::neural::{Loss, OptimizerKind};
use crate::policy::observation::Widths;
use crate::policy::{Baseline, GradientInput, GradientScratch, GradientSettings, NeuralPolicy, Policy};
use crate::utility::problem::{AgentProblem, Bound, Constraint, Problem, Scaling, ShadowReward};
use crate::utility::{Kind, LocalSpace, ScaledUtility};
use crate::world::{Line, Start, Trajectory, Wireless, WirelessSpec, World, sampled_channels};

const SEED: u64 = 77;
const ITERATION: usize = 5;
const BATCH: usize = 3;
const HORIZON: usize = 7;
const STATE_BITS: u32 = 4;

/// A world, and everything that kernels of neural networks read.
struct Setting {
    world: Box<dyn World>,
    problem: Problem,
    policy: NeuralPolicy,
    critic: NeuralCritic,
    samples: Samples,
    trajectories: Vec<Trajectory>,
    signals: Signals,
    mu: Ragged<f64>,
    rule: GradientSettings,
    kappa_g: usize,
}

fn random(which: u32) -> Sequence {
    Stream::new(3).sequence(Place { purpose: Purpose::Search, iteration: which, trajectory: 0 }, 0)
}

fn critic_settings() -> NeuralCriticSettings {
    NeuralCriticSettings {
        descent: Descent::new(OptimizerKind::Adam, 1e-2, 0.5),
        minibatch: 16,
        passes: 1,
        loss: Loss::Squared,
        polyak: 0.9,
        twin: false,
        merged: false,
    }
}

/// An objective and a constraint for every agent; the tests make up shadow rewards.
fn problem(world: &dyn World) -> Problem {
    let agent = |i: usize| {
        let space = LocalSpace { states: world.states(i), actions: world.actions(i), gamma: 0.99 };
        let utility = || ScaledUtility::from(Kind::of_reward(vec![1.0; space.cells()].into()));
        let constraint = Constraint {
            name: "made up".into(),
            utility: utility(),
            bound: Bound::AtLeast(0.5),
            shadow: ShadowReward::default(),
            margin: 0.0,
            group: None,
        };
        let (objective, constraints) = (utility(), vec![constraint]);
        Arc::new(AgentProblem {
            space,
            objective,
            shadow: ShadowReward::default(),
            constraints,
            events: Vec::new(),
            tails: Vec::new(),
        })
    };
    Problem {
        agents: (0..world.graph().agents()).map(agent).collect(),
        gamma: 0.99,
        scaling: Scaling::Normalised,
        sampled_channels: sampled_channels(world).len(),
        episodic: false,
        raw_lives: false,
        horizon: HORIZON,
        groups: Vec::new(),
    }
}

fn setting(
    is_wireless: bool,
    hidden: &[usize],
    rule: NeuralCriticSettings,
    wanted: SampleRequest,
) -> Setting {
    let world: Box<dyn World> = if is_wireless {
        Box::new(Wireless::new(&WirelessSpec { rows: 3, columns: 3, ..WirelessSpec::default() }).unwrap())
    } else {
        Box::new(Line::new(5, Start::Uniform, 0.1).unwrap())
    };
    let problem = problem(&*world);
    let (n, mut random) = (world.graph().agents(), random(0));
    let widths = Widths { embedding: 3, row_hidden: 5, hidden: hidden.to_vec() };
    let policy = NeuralPolicy::new(&*world, 1, &widths, 1.0, &Stream::new(SEED)).unwrap();
    let critic = NeuralCritic::new(&*world, &problem, 1, &widths, rule, wanted, Stream::new(SEED)).unwrap();
    let batch_room = HORIZON + wanted.batch_tail;
    let samples = Samples {
        agents: n,
        total: n,
        batch: BATCH,
        horizon: HORIZON,
        batch_room,
        chains: wanted.chains,
        chain_room: wanted.evaluation_pairs,
        per_step: 1,
    };
    let mut trajectories = Vec::new();
    for t in 0..BATCH + wanted.chains {
        let room = if t < BATCH { batch_room } else { wanted.evaluation_pairs };
        let mut trajectory = Trajectory::with_channels(n, room, problem.sampled_channels);
        for i in 0..n {
            for k in 0..room {
                let (state, action) = trajectory.pair_mut(i, k);
                *state = (random.next_u32() as usize % world.states(i)) as u8;
                *action = (random.next_u32() as usize % world.actions(i)) as u8;
                for channel in 0..problem.sampled_channels {
                    *trajectory.reward_mut(channel, i, k) = random.uniform() as f32;
                }
            }
        }
        trajectories.push(trajectory);
    }
    let mut signals = Signals::new(&problem);
    signals.rewards.data_mut().iter_mut().for_each(|r| *r = random.normal());
    let mut mu = Ragged::zeros(problem.agents.iter().map(|agent| agent.constraints.len()));
    mu.data_mut().iter_mut().for_each(|mu| *mu = random.uniform());
    let rule = GradientSettings {
        weights: (0..HORIZON).map(|k| 0.9f64.powi(k as i32)).collect(),
        baseline: Baseline::Mean,
        neighbour_mean: true,
        own_share: 0.0,
        all_actions: false,
        normalise: false,
        entropy: 0.1,
    };
    Setting { world, problem, policy, critic, samples, trajectories, signals, mu, rule, kappa_g: 1 }
}

fn by_entry<T: Copy + Default>(rows: usize, n: usize, value: impl Fn(usize, usize) -> Option<T>) -> Vec<T> {
    let mut out = vec![T::default(); rows * n];
    for e in 0..rows {
        for i in 0..n {
            out[e * n + i] = value(e, i).unwrap_or_default();
        }
    }
    out
}

impl Setting {
    /// What the rest of Algorithm 1 gives to neural networks.
    fn layout(&self) -> Layout {
        let (n, world) = (self.samples.agents, &*self.world);
        let (q, g) = (world.graph().neighbourhoods(1), world.graph().neighbourhoods(self.kappa_g));
        let cells = (0..n).map(|i| world.states(i) * world.actions(i)).max().unwrap();
        let (row, channels) = (cells + self.problem.sampled_channels, self.problem.sampled_channels);
        let slots = q.iter().map(<[u32]>::len).max().unwrap();
        let Samples { batch, batch_room, chains, chain_room, .. } = self.samples;
        let rows = batch * batch_room + chains * chain_room;
        let mut layout = Layout::default();
        for (name, value) in [
            ("PAIR_TYPE", 0),
            ("STATE_BITS", STATE_BITS as usize),
            ("HALO", 0),
            ("SPAN", 0),
            ("BATCH", BATCH),
            ("HORIZON", HORIZON),
            ("BATCH_ROOM", batch_room),
            ("CHAINS", chains),
            ("CHAIN_ROOM", chain_room),
            ("ROWS", rows),
            ("CHANNELS", channels),
            ("REWARD_ROW", row),
            ("MAX_STATES", (0..n).map(|i| world.states(i)).max().unwrap()),
            ("MAX_ACTIONS", (0..n).map(|i| world.actions(i)).max().unwrap()),
            ("PER_STEP", self.samples.per_step),
            ("BASELINE", self.rule.baseline as usize),
            ("ALL_ACTIONS", usize::from(self.rule.all_actions)),
            ("NORMALISE", usize::from(self.rule.normalise)),
            ("NEIGHBOUR_MEAN", usize::from(self.rule.neighbour_mean)),
            ("IS_PARTIAL", usize::from(self.kappa_g < 1)),
            ("BATCH_PURPOSE", Purpose::Batch as usize),
            ("CRITIC_PURPOSE", Purpose::Critic as usize),
            ("COMPLAINT_Q", 0),
            ("COMPLAINT_GRADIENT", 1),
            ("HAS_CLIP", 0),
        ] {
            if name == "PAIR_TYPE" { layout.constant(name, "u16") } else { layout.constant(name, value) }
        }
        layout.number("agents", n as i64);
        layout.number("key0", SEED as i64);
        layout.number("key1", 0);
        layout.real("gamma", self.problem.gamma);
        layout.number("parameters", self.policy.theta().data().len() as i64);
        let counts = |of: &dyn Fn(usize) -> usize| (0..n).map(|i| of(i) as u32).collect::<Vec<_>>();
        layout.array_from("state_count", &counts(&|i| world.states(i)));
        layout.array_from("action_count", &counts(&|i| world.actions(i)));
        layout.array_from("constraint_count", &counts(&|i| self.mu.row(i).len()));
        layout.array_from("q_count", &counts(&|i| q.row(i).len()));
        layout.array_from("q_group", &by_entry(slots, n, |m, i| q.row(i).get(m).copied()));
        let counted = |m: usize, i: usize| q.row(i).get(m).map(|j| u8::from(g.row(i).contains(j)));
        layout.array_from("g_member", &by_entry(slots, n, counted));
        let mut pairs = vec![0u16; rows * n];
        let mut sampled = vec![0f32; (channels * rows * n).max(1)];
        let mut first = 0;
        for trajectory in &self.trajectories {
            for k in 0..trajectory.steps() {
                for i in 0..n {
                    let at = (first + k) * n + i;
                    pairs[at] = u16::from(trajectory.states(i)[k])
                        | u16::from(trajectory.actions(i)[k]) << STATE_BITS;
                    for c in 0..channels {
                        sampled[c * rows * n + at] = trajectory.rewards(c, i)[k];
                    }
                }
            }
            first += trajectory.steps();
        }
        layout.array_from("pairs", &pairs);
        layout.array_from("sampled", &sampled);
        let utilities = 1 + self.mu.iter().map(<[f64]>::len).max().unwrap();
        let reward = |e: usize, i: usize| {
            let own = self.signals.rewards.row(i);
            let length = own.len() / (1 + self.mu.row(i).len());
            own.get(e / row * length + e % row).copied().filter(|_| e % row < length)
        };
        layout.array_from("rewards", &by_entry(utilities * row, n, reward));
        layout.array_from("mu", &by_entry(utilities - 1, n, |c, i| self.mu.row(i).get(c).copied()));
        layout.array_from("weights", &self.rule.weights);
        layout.array::<f64>("received", BATCH * HORIZON * self.samples.per_step * n);
        layout.array::<f64>("gradient_squares", n);
        layout.array_from("complaints", &[u32::MAX; 2]);
        layout.now("iteration", "long long");
        layout.now("entropy", "double");
        layout.text(phalanx_agent::elementary::C_TEXT);
        layout.text(include_str!("../kernels/common.cu"));
        layout
    }

    /// What neighbours send along the batch, by the processor: row i of `[trajectory][step]`.
    fn received(&self, i: usize, number: usize, out: &mut [f64]) {
        let groups = [1, self.kappa_g].map(|kappa| self.world.graph().neighbourhoods(kappa));
        let trajectory = &self.trajectories[number];
        out.fill(0.0);
        for &j in groups[0].row(i) {
            let inbox = ValueReceiver {
                to: i,
                from: groups[0].row(i),
                constrained: groups[1].row(i),
                number,
                trajectory,
                steps: HORIZON,
            };
            if self.samples.per_step > 1 {
                let actions = self.world.actions(i);
                self.critic.values().add_alternatives(j, &inbox, actions, &mut Vec::new(), out);
            } else {
                self.critic.values().add_taken(j, &inbox, &mut Vec::new(), out);
            }
        }
        if self.rule.neighbour_mean {
            out.iter_mut().for_each(|q| *q /= groups[0].row(i).len() as f64);
        }
    }
}

/// What runs the kernels.
#[derive(Clone, Copy, PartialEq)]
enum Device {
    /// The emulation, with plain sums.
    Plain,
    /// The emulation of a card's text: numbers in two parts, tensor cores in C.
    Tensors,
    Card,
}

/// How far a neural network's value may be off, whose size is about 1.
const VALUE: f64 = 1e-5;

impl Device {
    /// How far a gradient may be off, as a share of its norm: tensor cores multiply numbers of 16 bits.
    fn tolerance(self) -> f64 {
        if self == Device::Plain { 1e-5 } else { 1e-4 }
    }

    fn open(self) -> Option<Gpu> {
        match self {
            Device::Card => Some(Gpu::open(0).unwrap()),
            _ => Gpu::emulated().ok(),
        }
    }

    /// Whether an agent's parameters or moments are close. Adam divides by the size of a slope: where that is
    /// next to nothing in one of its steps, so is what is known of that step. Of a hundred numbers one may be
    /// off for that reason; moments are compared by their norm, too.
    fn is_close(self, found: &[f32], expected: &[f32], are_moments: bool) -> bool {
        let pairs = || found.iter().zip(expected).map(|(f, e)| (f64::from(f - e), f64::from(*e)));
        let off = pairs().filter(|(off, e)| off.abs() >= self.tolerance() * (1.0 + e.abs())).count();
        let most = if self == Device::Plain { 0 } else { found.len() / 100 };
        let (off_squares, squares) = pairs().fold((0.0, 0.0), |(o, s), (off, e)| (o + off * off, s + e * e));
        off <= most && (!are_moments || off_squares.sqrt() <= self.tolerance() * squares.sqrt())
    }

    /// Of several agents. A unit of a neural network is on or off: where its input is next to 0, numbers of
    /// 16 bits may tell the wrong one, which changes slopes as a whole. One agent may be off for that reason.
    fn close(self, found: &[f32], expected: &Ragged<f32>, what: &str) {
        let (offsets, expected) = (expected.offsets(), expected.data());
        assert_eq!(found.len(), expected.len(), "{what}");
        let is_off = |i: &usize| {
            let row = offsets[*i]..offsets[i + 1];
            !self.is_close(&found[row.clone()], &expected[row], what != "critic_weights")
        };
        let off: Vec<usize> = (0..offsets.len() - 1).filter(is_off).collect();
        assert!(off.len() <= usize::from(self != Device::Plain), "{what}: agents {off:?} are off");
    }
}

/// The settings on every device that there is to try.
fn check(make: impl Fn() -> Setting) {
    if std::env::var("PHALANX_DEVICE").is_ok_and(|device| device == "cuda") {
        return check_on(Device::Card, make());
    }
    check_on(Device::Plain, make());
    check_on(Device::Tensors, make());
}

fn run(program: &Program, launches: &[Launch]) {
    program.record(launches).unwrap().run().unwrap();
}

/// Compiles for a device, where that can be done.
fn compiles(layout: &Layout) {
    if nvrtc_is_present() {
        let ptx = compile_ptx(&layout.source(), "compute_90");
        let ptx = ptx.unwrap_or_else(|error| panic!("{error}"));
        if let Ok(path) = std::env::var("PHALANX_KEEP_PTX") {
            std::fs::write(path, ptx).unwrap();
        }
    }
}

/// Line 6, the values of line 8 and the gradient, on the processor and on the device.
fn check_on(device: Device, mut setting: Setting) {
    let Some(gpu) = device.open() else { return eprintln!("skipped: no C compiler") };
    let states: Vec<usize> = (0..setting.samples.agents).map(|i| setting.world.states(i)).collect();
    let own: Vec<usize> = (0..states.len()).collect();
    let critic = NetworkCritic::new(&setting.critic, setting.samples, &states, &own, &gpu).unwrap();
    let policy = NetworkPolicy::new(&setting.policy, setting.samples, &states, &gpu).unwrap();
    let mut layout = setting.layout();
    if device == Device::Tensors {
        layout.text(include_str!("tensors.c"));
    }
    policy.add_to(&mut layout);
    critic.add_to(&mut layout);
    if device == Device::Plain {
        compiles(&layout);
    }
    let program = layout.build(&gpu).unwrap();
    let weights = setting.critic.bank().weights.data().to_vec();
    program.array("critic_weights").write(0, &weights).unwrap();
    if setting.critic.rule().polyak > 0.0 {
        program.array("critic_target").write(0, &weights).unwrap();
    }
    program.array("theta").write(0, setting.policy.theta().data()).unwrap();
    program.set_now(&[ITERATION as u64, setting.rule.entropy.to_bits(), 0]).unwrap();
    run(&program, &policy.refresh());

    run(&program, &critic.learn());
    let (batch, evaluation) = setting.trajectories.split_at(BATCH);
    let input = CriticInput {
        iteration: ITERATION,
        policy: &setting.policy,
        mu: &setting.mu,
        signals: &setting.signals,
        batch,
        evaluation,
    };
    setting.critic.learn(input).unwrap();
    let mut found = vec![0f32; weights.len()];
    program.array("critic_weights").read(0, &mut found).unwrap();
    let moved = found.iter().zip(&weights).filter(|(a, b)| a != b).count();
    assert!(moved > weights.len() / 2, "{moved} parameters moved");
    let fields = setting.critic.fields();
    let single = |name: &str| {
        fields.iter().find_map(|(field, state)| match state {
            Field::SingleRows(rows) if *field == name && !rows.data().is_empty() => Some(rows),
            _ => None,
        })
    };
    for mirror in critic.mirrors() {
        let Some(expected) = single(mirror.field) else { continue };
        program.array(mirror.array).read(0, &mut found).unwrap();
        device.close(&found, expected, mirror.array);
    }
    // Values are compared for the same parameters.
    program.array("critic_weights").write(0, setting.critic.bank().weights.data()).unwrap();
    assert_eq!(setting.critic.count_steps(0), critic.steps());

    run(&program, &critic.values());
    let (n, mut received) = (
        setting.samples.agents,
        vec![0.0; BATCH * HORIZON * setting.samples.per_step * setting.samples.agents],
    );
    program.array("received").read(0, &mut received).unwrap();
    let wanted = ValueRequest {
        alternatives: setting.samples.per_step > 1,
        partial: setting.kappa_g < 1,
        levels: false,
    };
    setting.critic.set_multipliers(&setting.signals, &setting.mu);
    setting.critic.precompute(&setting.trajectories[..BATCH], HORIZON, wanted);
    let per_step = setting.samples.per_step;
    let mut own = vec![0.0; HORIZON * per_step];
    for i in 0..n {
        let senders = setting.world.graph().neighbourhoods(1).row(i).len() as f64;
        for t in 0..BATCH {
            setting.received(i, t, &mut own);
            for k in 0..HORIZON * per_step {
                let found = received[(t * HORIZON * per_step + k) * n + i];
                assert!(
                    (found - own[k]).abs() < senders * VALUE * (1.0 + own[k].abs()),
                    "agent {i}: {found} for {}",
                    own[k]
                );
            }
        }
    }

    run(&program, &policy.gradient());
    let mut gradient = vec![0.0; policy.parameters()];
    program.array("gradient").read(0, &mut gradient).unwrap();
    let mut squares = vec![0.0; n];
    program.array("gradient_squares").read(0, &mut squares).unwrap();
    for i in 0..n {
        let offsets = setting.policy.theta().offsets();
        let mut expected = vec![0.0; offsets[i + 1] - offsets[i]];
        let receive = |number: usize, _: &mut Vec<u32>, out: &mut [f64]| setting.received(i, number, out);
        let batch = &setting.trajectories[..BATCH];
        let input = GradientInput { agent: i, batch, receive: &receive, rule: &setting.rule };
        setting.policy.gradient(input, &mut GradientScratch::default(), &mut expected);
        let norm = expected.iter().map(|g| g * g).sum::<f64>().sqrt();
        assert!(norm > 1e-3, "{norm}");
        let found = &gradient[offsets[i]..offsets[i + 1]];
        for (k, (f, e)) in found.iter().zip(&expected).enumerate() {
            assert!((f - e).abs() < device.tolerance() * norm, "agent {i}, {k}: {f} for {e}");
        }
        assert!((squares[i] - norm * norm).abs() < device.tolerance() * norm * norm);
    }
    let mut complaints = [0u32; 2];
    program.array("complaints").read(0, &mut complaints).unwrap();
    assert_eq!(complaints, [u32::MAX; 2]);
}

#[test]
fn rows_of_a_view_and_two_layers() {
    check(|| setting(true, &[40, 12], critic_settings(), SampleRequest::chains(4, 12)));
}

#[test]
fn symbols_and_one_layer() {
    check(|| setting(false, &[32], critic_settings(), SampleRequest::chains(1, 50)));
}

#[test]
fn many_tiles_two_passes_and_plain_steps() {
    let rule = NeuralCriticSettings {
        descent: Descent::new(OptimizerKind::Sgd, 0.05, f64::INFINITY),
        minibatch: 100,
        passes: 2,
        loss: Loss::Huber { width: 1.0 },
        polyak: 0.0,
        ..critic_settings()
    };
    check(|| setting(true, &[33, 7], rule.clone(), SampleRequest::chains(13, 10)));
    check(|| setting(false, &[8, 34], rule.clone(), SampleRequest::chains(13, 10)));
}

#[test]
fn twins_and_merged_networks_on_the_batch() {
    let rule = NeuralCriticSettings { twin: true, ..critic_settings() };
    check(|| setting(false, &[16], rule.clone(), SampleRequest::batch(1)));
    let rule = NeuralCriticSettings { merged: true, ..critic_settings() };
    check(|| {
        let mut merged = setting(true, &[16], rule.clone(), SampleRequest::chains(2, 9));
        merged.rule.normalise = true;
        merged
    });
}

#[test]
fn constraints_of_near_neighbours_alone() {
    check(|| {
        let mut partial = setting(false, &[16], critic_settings(), SampleRequest::chains(2, 9));
        partial.kappa_g = 0;
        partial.rule.baseline = Baseline::None;
        partial
    });
}

#[test]
fn values_at_alternatives() {
    for (is_wireless, all_actions) in [(true, false), (false, true)] {
        check(|| {
            let mut setting = setting(is_wireless, &[20, 9], critic_settings(), SampleRequest::chains(2, 9));
            setting.samples.per_step = setting.world.actions(0);
            setting.rule.baseline = Baseline::Counterfactual;
            setting.rule.all_actions = all_actions;
            setting
        });
    }
}
