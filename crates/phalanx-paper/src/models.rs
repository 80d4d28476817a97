//! Models with policies and multipliers, as `phalanx exact` reads them.

use phalanx::base::elementary::sin;
use serde_json::{Value, json};

/// The paper's line of `n` agents (`world::Line`) with an entropy of at least 0.5 each, policies of the
/// agents' own state with parameters between −1 and 1, and multipliers of 1. `mixing` is the weight of
/// uniform transitions.
pub fn line(n: usize, gamma: f64, mixing: f64) -> Value {
    let to_one = |i: usize, own_action: usize, right_state: usize| match (i, own_action, right_state) {
        (0, _, right) => right as f64,
        (_, 0, _) => 0.0,
        (_, _, 1) => 1.0,
        (i, ..) if i + 1 == n => 1.0,
        _ => 0.8,
    };
    // Parents are the agent itself and its right neighbour, the less significant digit.
    let transition = |i: usize| {
        let others = if i + 1 < n { 2 } else { 1 };
        let mut table = Vec::new();
        for states in 0..2 * others {
            for actions in 0..2 * others {
                let p = to_one(i, actions / others, if others == 2 { states % 2 } else { 0 });
                let p = (1.0 - mixing) * p + 0.5 * mixing;
                table.extend([1.0 - p, p]);
            }
        }
        table
    };
    let parents = |i: usize| if i + 1 < n { vec![i, i + 1] } else { vec![i] };
    let reward = |i: usize| if i == 0 { 1.0 } else { 0.1 };
    // Numbers without a pattern, but the same everywhere.
    let theta =
        |i: usize| (0..4).map(|k| four_digits(sin((4 * i + k + 1).pow(2) as f64))).collect::<Vec<_>>();
    let mut input = on_a_line(n, gamma, parents, transition, |i| [0.0, 0.0, reward(i), reward(i)], theta);
    input["model"]["g"] = json!(vec![[json!({ "kind": "state_entropy", "offset": -0.5 })]; n]);
    input["kappa"] = json!(0);
    input["kappa_q"] = json!(0);
    input["mu"] = json!(vec![[1.0]; n]);
    input["mu_bar"] = json!(10.0);
    json!({ "input": input })
}

/// Agents on a line with two states and two actions each, which begin in either state, and their policies'
/// parameters.
fn on_a_line(
    n: usize,
    gamma: f64,
    parents: impl Fn(usize) -> Vec<usize>,
    transition: impl Fn(usize) -> Vec<f64>,
    reward: impl Fn(usize) -> [f64; 4],
    theta: impl Fn(usize) -> Vec<f64>,
) -> Value {
    json!({
        "model": {
            "n": n,
            "gamma": gamma,
            "state_sizes": vec![2; n],
            "action_sizes": vec![2; n],
            "edges": (1..n).map(|i| [i - 1, i]).collect::<Vec<_>>(),
            "parents": (0..n).map(parents).collect::<Vec<_>>(),
            "transition": (0..n).map(transition).collect::<Vec<_>>(),
            "rho": { "kind": "product", "local": vec![[0.5, 0.5]; n] },
            "f": (0..n).map(|i| json!({ "kind": "linear", "r": reward(i) })).collect::<Vec<_>>(),
        },
        "theta": (0..n).map(theta).collect::<Vec<_>>(),
    })
}

fn four_digits(x: f64) -> f64 {
    (1e4 * x).round() / 1e4
}

/// The counterexample to the truncated-gradient lemma for radius κ: on a line of κ + 2 agents, the last one
/// influences the state of its neighbour a little, and agent 0, κ hops from that neighbour, copies it.
/// Rewards are those of agent 0.
pub fn counterexample(kappa: usize) -> Value {
    let n = kappa + 2;
    let last = n - 1;
    // Everybody tosses a coin; that of agent κ is biased by the last agent's action.
    let transition = |i: usize| -> Vec<f64> {
        if i != kappa {
            return vec![0.5; 8];
        }
        let toss = |actions: usize| if actions % 2 == 1 { [0.475, 0.525] } else { [0.525, 0.475] };
        (0..16).flat_map(|k| toss(k % 4)).collect()
    };
    let parents = |i: usize| if i == kappa { vec![kappa, last] } else { vec![i] };
    // The last digit of an observation is that of the farthest agent to the right: of agent 0 it is agent κ.
    let theta = |i: usize| -> Vec<f64> {
        let seen = (i + kappa).min(last) - i.saturating_sub(kappa) + 1;
        let copy = [8.0, 0.0, 0.0, 8.0];
        (0..1 << (seen + 1)).map(|k: usize| if i == 0 { copy[k % 4] } else { 0.0 }).collect()
    };
    let reward = |i: usize| if i == 0 { [-1.0, 1.0, -1.0, 1.0] } else { [0.0; 4] };
    let mut input = on_a_line(n, 0.9, parents, transition, reward, theta);
    input["kappa"] = json!(kappa);
    json!({ "input": input })
}
