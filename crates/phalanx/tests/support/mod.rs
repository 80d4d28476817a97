//! Shared by the integration tests: reference models with exact values, and the exact occupancy of a line.
#![allow(dead_code)] // Every test binary uses its own part.

pub mod corridor;

use std::path::PathBuf;

use phalanx::base::stream::{Place, Purpose, Stream};
use phalanx::distributed::Halo;
use phalanx::policy::{Acting, Parameterisation, Policy, Tabular};
use phalanx::sample::rollout::{Request, StartFrom, simulate};
use phalanx::world::Trajectory;
use phalanx::world::{Table, World};
use serde_json::Value;

/// Names of the reference files.
pub const REFERENCES: [&str; 6] =
    ["line3_entropy", "line4_mixed_utilities", "star4_joint_rho", "ring5_weak", "paper_line5", "grid2x3"];

/// A model with parameters and quantities that were computed by enumeration.
pub struct Reference {
    pub path: PathBuf,
    pub value: Value,
    pub table: Table,
}

impl Reference {
    pub fn read(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/reference");
        let path = folder.join(format!("{name}.json"));
        let value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let table = Table::read(&path).unwrap();
        Reference { path, value, table }
    }

    pub fn input(&self, key: &str) -> &Value {
        &self.value["input"][key]
    }

    pub fn output(&self, key: &str) -> &Value {
        &self.value["output"][key]
    }

    pub fn agents(&self) -> usize {
        self.table.graph().agents()
    }

    pub fn gamma(&self) -> f64 {
        self.input("model")["gamma"].as_f64().unwrap()
    }

    pub fn kappa(&self) -> usize {
        self.input("kappa").as_u64().unwrap() as usize
    }

    /// The soft-max policy of the file, or the same laws as a direct one.
    pub fn policy(&self, parameterisation: Parameterisation) -> Tabular {
        let softmax = Parameterisation::Softmax;
        let mut policy = Tabular::new(&self.table, self.kappa(), softmax, 0.0, &Stream::new(0)).unwrap();
        policy.update(|theta| {
            for i in 0..self.agents() {
                theta.row_mut(i).copy_from_slice(&numbers(&self.input("theta")[i]));
            }
        });
        if parameterisation == softmax {
            return policy;
        }
        let mut direct =
            Tabular::new(&self.table, self.kappa(), parameterisation, 0.0, &Stream::new(0)).unwrap();
        direct.update(|theta| {
            for i in 0..self.agents() {
                theta.row_mut(i).copy_from_slice(policy.probabilities(i));
            }
        });
        direct
    }
}

/// Trajectories of `steps` pairs under `policy`, all of the numbers from `seed`.
pub fn sample(
    world: &dyn World,
    policy: &dyn Policy,
    trajectories: usize,
    steps: usize,
    start: StartFrom,
    seed: u64,
) -> Vec<Trajectory> {
    let room = Trajectory::for_world(world, steps);
    let mut batch = vec![room; trajectories];
    let requests: Vec<Request> = (0..trajectories)
        .map(|k| Request {
            place: Place { purpose: Purpose::Batch, iteration: 0, trajectory: k as u32 },
            start_purpose: Purpose::BatchStart,
            start,
        })
        .collect();
    let halo = Halo::single(world.graph().agents());
    simulate(world, policy, &Stream::new(seed), &requests, &mut batch, &halo).unwrap();
    batch
}

/// All numbers in a possibly nested list, in order.
pub fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().unwrap()],
    }
}

/// d_i(1), the normalised discounted probability that agent i of the paper's line is in state 1, from a
/// uniform start, by enumeration of the 2ⁿ joint states.
pub fn line_state_one(policy: &Tabular, gamma: f64) -> Vec<f64> {
    let n = policy.agents();
    let size = 1usize << n;
    let bit = |state: usize, i: usize| (state >> (n - 1 - i)) & 1;
    // P(agent i next in 1 | joint state), then the joint transition as a product over agents.
    let mut matrix = vec![0.0; size * size];
    for state in 0..size {
        let joint: Vec<u8> = (0..n).map(|i| bit(state, i) as u8).collect();
        let mut law = vec![1.0];
        for i in 0..n {
            let mut observation = [0];
            policy.observations().fill(i..i + 1, &joint, &mut observation);
            let acts = policy.probabilities(i)[observation[0] as usize * 2 + 1];
            let one = match i {
                0 => bit(state, 1) as f64,
                _ if i == n - 1 => acts,
                _ => acts * if bit(state, i + 1) == 1 { 1.0 } else { 0.8 },
            };
            law = law.iter().flat_map(|p| [p * (1.0 - one), p * one]).collect();
        }
        matrix[state * size..(state + 1) * size].copy_from_slice(&law);
    }
    let mut now = vec![1.0 / size as f64; size];
    let mut occupancy = vec![0.0; size];
    let mut weight = 1.0 - gamma;
    while weight > 1e-9 {
        let mut next = vec![0.0; size];
        for (state, &p) in now.iter().enumerate() {
            occupancy[state] += weight * p;
            if p > 0.0 {
                let row = &matrix[state * size..(state + 1) * size];
                next.iter_mut().zip(row).for_each(|(next, q)| *next += p * q);
            }
        }
        now = next;
        weight *= gamma;
    }
    (0..n).map(|i| (0..size).filter(|&s| bit(s, i) == 1).map(|s| occupancy[s]).sum()).collect()
}

/// Entropy of a coin.
pub fn binary_entropy(p: f64) -> f64 {
    -(p * p.ln() + (1.0 - p) * (1.0 - p).ln())
}

/// Exact normalised objective and total violation of a policy on the paper's line with entropy ≥ `threshold`.
pub fn line_objective_and_violation(policy: &Tabular, gamma: f64, threshold: f64) -> (f64, f64) {
    let d = line_state_one(policy, gamma);
    let reward = |i: usize| if i == 0 { 1.0 } else { 0.1 };
    let objective = d.iter().enumerate().map(|(i, d)| reward(i) * d).sum::<f64>() / d.len() as f64;
    let violation = d.iter().map(|&d| (threshold - binary_entropy(d)).max(0.0)).sum();
    (objective, violation)
}

/// A trajectory of one step in which agents are in `states`.
pub fn moment(states: &[u8]) -> Trajectory {
    let mut moment = Trajectory::new(states.len(), 1);
    states.iter().enumerate().for_each(|(i, &s)| *moment.pair_mut(i, 0).0 = s);
    moment
}

/// What everybody does in `states`.
pub fn act(policy: &dyn Policy, states: &[u8], draws: &[u32]) -> Vec<u8> {
    let mut actions = vec![255; states.len()];
    match policy.acting() {
        Acting::Alone(alone) => alone.act(0..states.len(), states, draws, &mut actions),
        Acting::Together(together) => together.act(&[&moment(states)], 0, draws, &mut actions),
    }
    actions
}
