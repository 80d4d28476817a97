//! Random small models in the format of the reference files' `input`, to compare two implementations on.
//!
//! Each choice is a coin of its own, so that a few dozen seeds meet every kind of model and most pairs of
//! kinds.

use serde_json::{Map, Value, json};

/// Neighbourhoods with a number of pairs in this range are avoided: their TD equations take a second to
/// solve. Those above it have none.
const SLOW: std::ops::RangeInclusive<usize> = 541..=1100;

/// The `input` object of a seed.
pub fn random_input(seed: u64) -> Value {
    let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(seed));
    let random = &mut random;

    // Agents, their graph, and the two radii.
    let n = *random.pick(&[1, 2, 2, 3, 3, 4, 4, 5, 5]);
    let wanted = if n > 2 && random.chance(0.3) { 600..=2500 } else { 1..=500 };
    let (states, actions, edges, dist, kappa, kappa_q) = loop {
        let states: Vec<usize> = (0..n).map(|_| *random.pick(&[1, 2, 2, 2, 3, 3, 4])).collect();
        let actions: Vec<usize> = (0..n).map(|_| *random.pick(&[1, 2, 2, 2, 3, 3])).collect();
        let joint: usize = states.iter().product();
        if joint > 60 || !wanted.contains(&(joint * actions.iter().product::<usize>())) {
            continue;
        }
        let edges = random_edges(random, n);
        let dist = distances(n, &edges);
        let kappa = random.below(4);
        let kappa_q = if random.chance(0.4) { kappa } else { random.below(4) };
        let pairs = |i: usize| -> usize {
            let near = (0..n).filter(|&j| dist[i][j].is_some_and(|d| d <= kappa_q));
            near.map(|j| states[j] * actions[j]).product()
        };
        if (0..n).all(|i| !SLOW.contains(&pairs(i))) {
            break (states, actions, edges, dist, kappa, kappa_q);
        }
    };
    let gamma = random.between(0.3, 0.96);

    // Transitions. Only with a start in every state may there be impossible ones.
    let sparse = random.chance(0.2);
    let parents = random_parents(random, n, &edges);
    let coupling = *random.pick(&[1.0, 1.0, 0.4, 0.1, 0.02, 0.0]);
    let own = *random.pick(&[1.0, 0.5, 0.2]);
    let transition: Vec<Vec<f64>> = (0..n)
        .map(|i| random_transition(random, i, &parents[i], &states, &actions, coupling, own, sparse))
        .collect();

    let zeros = !sparse && random.chance(0.3);
    let rho = if random.chance(0.5) {
        let local: Vec<Vec<f64>> = states.iter().map(|&size| random.start(size, zeros)).collect();
        json!({"kind": "product", "local": local})
    } else {
        json!({"kind": "joint", "p": random.start(states.iter().product(), zeros)})
    };

    // Utilities.
    let palette: &[&str] = match random.below(10) {
        0 | 1 => &["linear"],
        2..=4 => &["linear", "state_entropy", "action_l2sq", "l2sq", "neg_l2sq_expert", "set2"],
        _ => &[
            "linear",
            "state_entropy",
            "sa_entropy",
            "action_l2sq",
            "l2sq",
            "neg_l2_expert",
            "neg_l2sq_expert",
            "neg_kl_expert",
            "set1",
            "set2",
        ],
    };
    let most = *random.pick(&[0, 1, 1, 2, 3]);
    let mut f = Vec::new();
    let mut g = Vec::new();
    for i in 0..n {
        // Inside a set there is no reward: one agent has one that is never 0 everywhere.
        let kinds: Vec<&str> =
            palette.iter().copied().filter(|kind| i + 1 < n || !kind.starts_with("set")).collect();
        let kind = *random.pick(&kinds);
        f.push(random_utility(random, kind, states[i], actions[i], gamma));
        let constraints = random.below(most + 1);
        let mut list = Vec::new();
        for _ in 0..constraints {
            let kind = *random.pick(palette);
            list.push(random_utility(random, kind, states[i], actions[i], gamma));
        }
        g.push(list);
    }

    // The point.
    let bounds = *random.pick(&[[-2.0, 2.0], [-1.0, 3.0], [-4.0, 4.0]]);
    let at_bounds = if random.chance(0.35) { 0.3 } else { 0.0 };
    let theta: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let near = (0..n).filter(|&j| dist[i][j].is_some_and(|d| d <= kappa));
            let rows: usize = near.map(|j| states[j]).product();
            (0..rows * actions[i])
                .map(|_| {
                    if random.chance(at_bounds) {
                        *random.pick(&bounds)
                    } else {
                        random.between(bounds[0], bounds[1])
                    }
                })
                .collect()
        })
        .collect();
    let mu_bar = *random.pick(&[0.5, 2.0, 5.0]);
    let mu: Vec<Vec<f64>> = g
        .iter()
        .map(|list| {
            let mut entry = |_| match random.below(5) {
                0 => 0.0,
                1 => mu_bar,
                _ => random.between(0.0, mu_bar),
            };
            list.iter().map(&mut entry).collect()
        })
        .collect();

    json!({
        "name": format!("random_{seed}"),
        "format": 1,
        "model": {
            "n": n, "gamma": gamma, "state_sizes": states, "action_sizes": actions, "edges": edges,
            "parents": parents, "transition": transition, "rho": rho, "f": f, "g": g,
        },
        "kappa": kappa, "kappa_q": kappa_q, "theta": theta, "mu": mu, "mu_bar": mu_bar, "box": bounds,
        "estimator": {
            "B": 1 + random.below(400), "H": 1 + random.below(100), "delta0": random.between(0.0005, 0.1),
            "eps0": random.between(0.0, 0.2),
        },
        "algorithm": {
            "T": random.below(5), "eta_mu": *random.pick(&[0.5, 3.0, 8.0]), "eta_theta": *random.pick(&[0.05, 0.5]),
        },
    })
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In (0, 1).
    fn unit(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    fn between(&mut self, lo: f64, hi: f64) -> f64 {
        lo + (hi - lo) * self.unit()
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    fn list(&mut self, size: usize, lo: f64, hi: f64) -> Vec<f64> {
        (0..size).map(|_| self.between(lo, hi)).collect()
    }

    /// A law with all probabilities above 0.
    fn law(&mut self, size: usize) -> Vec<f64> {
        let weights = self.list(size, 0.05, 1.0);
        let total: f64 = weights.iter().sum();
        weights.iter().map(|x| x / total).collect()
    }

    /// A law that is sometimes certain, sometimes without one outcome.
    fn sparse_law(&mut self, size: usize) -> Vec<f64> {
        let mut law = self.law(size);
        let special = self.below(size);
        match self.below(3) {
            0 => (0..size).map(|k| if k == special { 1.0 } else { 0.0 }).collect(),
            1 if size > 1 => {
                law[special] = 0.0;
                let total: f64 = law.iter().sum();
                law.iter().map(|x| x / total).collect()
            }
            _ => law,
        }
    }

    fn start(&mut self, size: usize, zeros: bool) -> Vec<f64> {
        let mut law = self.law(size);
        if zeros {
            let kept = self.below(size);
            for k in 0..size {
                if k != kept && self.chance(0.4) {
                    law[k] = 0.0;
                }
            }
        }
        let total: f64 = law.iter().sum();
        law.iter().map(|x| x / total).collect()
    }
}

fn random_edges(random: &mut Random, n: usize) -> Vec<[usize; 2]> {
    let line: Vec<[usize; 2]> = (1..n).map(|i| [i - 1, i]).collect();
    match random.below(6) {
        0 | 1 => line,
        2 if n > 2 => line.into_iter().chain([[n - 1, 0]]).collect(),
        3 => (1..n).map(|i| [i, 0]).collect(),
        4 => line.into_iter().filter(|_| random.chance(0.6)).collect(),
        _ => {
            let mut edges = Vec::new();
            for i in 0..n {
                for j in i + 1..n {
                    if random.chance(0.35) {
                        edges.push([i, j]);
                    }
                }
            }
            edges
        }
    }
}

fn distances(n: usize, edges: &[[usize; 2]]) -> Vec<Vec<Option<usize>>> {
    let mut all = Vec::new();
    for i in 0..n {
        let mut from = vec![None; n];
        from[i] = Some(0);
        for round in 1..n {
            for &[a, b] in edges {
                for (x, y) in [(a, b), (b, a)] {
                    if from[x] == Some(round - 1) && from[y].is_none() {
                        from[y] = Some(round);
                    }
                }
            }
        }
        all.push(from);
    }
    all
}

fn random_parents(random: &mut Random, n: usize, edges: &[[usize; 2]]) -> Vec<Vec<usize>> {
    let kind = random.below(6);
    let linked = |i: usize, j: usize| edges.contains(&[i, j]) || edges.contains(&[j, i]);
    let mut parents = Vec::new();
    for i in 0..n {
        let set = (0..n).filter(|&j| match kind {
            0 | 1 => i == j || linked(i, j),
            2 => i == j,
            3 => j == i || j == i + 1,
            4 => random.chance(if i == j { 0.6 } else { 0.35 }),
            _ => random.chance(if i == j || linked(i, j) { 0.8 } else { 0.2 }),
        });
        parents.push(set.collect());
    }
    parents
}

/// `(1 - coupling)` times a law given the agent's own pair plus `coupling` times one given all parents. The
/// former is itself a mixture: only the part `own` depends on the pair.
#[allow(clippy::too_many_arguments)]
fn random_transition(
    random: &mut Random,
    i: usize,
    parents: &[usize],
    states: &[usize],
    actions: &[usize],
    coupling: f64,
    own: f64,
    sparse: bool,
) -> Vec<f64> {
    let size = states[i];
    let draw = |random: &mut Random| if sparse { random.sparse_law(size) } else { random.law(size) };
    let common = draw(random);
    let by_pair: Vec<Vec<f64>> = (0..size * actions[i]).map(|_| draw(random)).collect();
    let digit = |mut index: usize, sizes: &[usize]| {
        let mut found = 0;
        for &k in parents.iter().rev() {
            if k == i {
                found = index % sizes[k];
            }
            index /= sizes[k];
        }
        found
    };
    let joint_states: usize = parents.iter().map(|&k| states[k]).product();
    let joint_actions: usize = parents.iter().map(|&k| actions[k]).product();
    let mut out = Vec::new();
    for x in 0..joint_states {
        for u in 0..joint_actions {
            let pair = digit(x, states) * actions[i] + digit(u, actions);
            let law = draw(random);
            for k in 0..size {
                let alone = (1.0 - own) * common[k] + own * by_pair[pair][k];
                out.push((1.0 - coupling) * alone + coupling * law[k]);
            }
        }
    }
    out
}

fn random_utility(random: &mut Random, kind: &str, states: usize, actions: usize, gamma: f64) -> Value {
    let q = 1.0 - gamma;
    let size = states * actions;
    let total = 1.0 / q;
    let mean = total / size as f64;
    let mut spec = Map::new();
    let mut name = kind;
    let mut square = kind.contains("l2sq");
    match kind {
        "linear" => {
            let r = random.list(size, -1.0, 1.0);
            let nested: Vec<&[f64]> = r.chunks(actions).collect();
            spec.insert("r".into(), if random.chance(0.5) { json!(nested) } else { json!(r) });
        }
        "neg_l2_expert" | "neg_l2sq_expert" | "neg_kl_expert" => {
            // Not with the total of an occupancy: one of a single pair would be the expert itself, but for
            // rounding.
            let sum = random.between(0.5, 0.95) * total;
            let expert: Vec<f64> = random.law(size).iter().map(|x| x * sum).collect();
            spec.insert("expert".into(), json!(expert));
        }
        "set1" | "set2" => {
            let inside = random.chance(0.2);
            match random.below(3) {
                0 => {
                    name = "neg_dist_box";
                    let lo = if inside { vec![0.0; size] } else { random.list(size, 0.0, mean) };
                    let width = random.list(size, 0.0, mean);
                    let hi: Vec<f64> =
                        (0..size).map(|k| if inside { 2.0 * total } else { lo[k] + width[k] }).collect();
                    spec.insert("lo".into(), json!(lo));
                    spec.insert("hi".into(), json!(hi));
                }
                1 => {
                    name = "neg_dist_halfspace";
                    spec.insert("a".into(), json!(random.list(size, -1.0, 1.0)));
                    let b = if inside { 2.0 * total } else { random.between(-0.5, 0.1) * total };
                    spec.insert("b".into(), json!(b));
                }
                _ => {
                    name = "neg_dist_ball";
                    spec.insert("center".into(), json!(random.list(size, 0.0, 2.0 * mean)));
                    let radius = if inside { 4.0 * total } else { random.between(0.0, mean) };
                    spec.insert("radius".into(), json!(radius));
                }
            }
            if kind == "set2" {
                square = true;
                spec.insert("power".into(), json!(2));
            } else if random.chance(0.5) {
                spec.insert("power".into(), json!(1));
            }
        }
        _ => {}
    }
    spec.insert("kind".into(), json!(name));
    // A square grows with the square of the occupancy's total.
    let square_is_large = square && gamma > 0.6;
    if square_is_large || random.chance(0.5) {
        let sign = if random.chance(0.4) { -1.0 } else { 1.0 };
        let unit = if square { q * q } else { 1.0 };
        spec.insert("scale".into(), json!(sign * random.between(0.1, 1.5) * unit));
    }
    if random.chance(0.6) {
        spec.insert("offset".into(), json!(random.between(-1.0, 1.0)));
    }
    Value::Object(spec)
}
