//! What a policy earns: occupancies, Q values, their truncations, gradients.

use super::*;

/// `pi_i(b|x)` with the shape of `theta`.
pub fn soft_max(model: &Model, theta: &Matrix) -> Matrix {
    let mut policy = theta.clone();
    for i in 0..model.n {
        for row in policy[i].chunks_mut(model.actions[i]) {
            let top = largest(row);
            let total: f64 = row.iter().map(|x| (x - top).exp()).sum();
            for x in row {
                *x = (*x - top).exp() / total;
            }
        }
    }
    policy
}

/// What follows from a policy.
pub struct Point {
    pub policy: Matrix,
    /// `pi(a|s)`
    pub pi: Matrix,
    pub p_pi: Matrix,
    pub d: Vec<f64>,
    /// Joint occupancy, number `s |A| + a`; so are `q_f[i]` and `q_g[i][k]`.
    pub lam: Vec<f64>,
    pub local: Matrix,
    pub f: Vec<f64>,
    pub g: Matrix,
    pub shadow_f: Matrix,
    pub shadow_g: Vec<Matrix>,
    pub q_f: Matrix,
    pub q_g: Vec<Matrix>,
}

impl Point {
    pub fn solve(model: &Model, neigh: &[Vec<usize>], policy: &Matrix) -> Point {
        let n = model.n;
        let (states, actions) = (model.state_list.len(), model.action_list.len());

        let mut pi = vec![vec![1.0; actions]; states];
        let mut p_pi = vec![vec![0.0; states]; states];
        for s in 0..states {
            for a in 0..actions {
                for i in 0..n {
                    let x = encode(&model.state_list[s], &neigh[i], &model.states);
                    pi[s][a] *= policy[i][x * model.actions[i] + model.action_list[a][i]];
                }
                for next in 0..states {
                    p_pi[s][next] += pi[s][a] * model.kernel[s * actions + a][next];
                }
            }
        }

        let d = solve_vector(identity_minus(model.gamma, &transpose(&p_pi)), &model.rho);
        let mut lam = vec![0.0; states * actions];
        let mut local: Matrix = (0..n).map(|i| vec![0.0; model.states[i] * model.actions[i]]).collect();
        for s in 0..states {
            for a in 0..actions {
                lam[s * actions + a] = d[s] * pi[s][a];
                for i in 0..n {
                    let k = model.state_list[s][i] * model.actions[i] + model.action_list[a][i];
                    local[i][k] += d[s] * pi[s][a];
                }
            }
        }

        let f = (0..n).map(|i| model.f[i].value(&local[i])).collect();
        let g = (0..n).map(|i| model.g[i].iter().map(|u| u.value(&local[i])).collect()).collect();
        let shadow_f: Matrix = (0..n).map(|i| model.f[i].shadow_reward(&local[i])).collect();
        let shadow_g: Vec<Matrix> =
            (0..n).map(|i| model.g[i].iter().map(|u| u.shadow_reward(&local[i])).collect()).collect();

        let full_q = |i: usize, reward: &Vec<f64>| -> Vec<f64> {
            let width = model.actions[i];
            let paid = |s: usize, a: usize| reward[model.state_list[s][i] * width + model.action_list[a][i]];
            let mean: Vec<f64> =
                (0..states).map(|s| (0..actions).map(|a| pi[s][a] * paid(s, a)).sum()).collect();
            let v = solve_vector(identity_minus(model.gamma, &p_pi), &mean);
            let mut q = Vec::new();
            for s in 0..states {
                for a in 0..actions {
                    q.push(paid(s, a) + model.gamma * dot(&model.kernel[s * actions + a], &v));
                }
            }
            q
        };
        let q_f = (0..n).map(|i| full_q(i, &shadow_f[i])).collect();
        let q_g = (0..n).map(|i| shadow_g[i].iter().map(|r| full_q(i, r)).collect()).collect();
        Point { policy: policy.clone(), pi, p_pi, d, lam, local, f, g, shadow_f, shadow_g, q_f, q_g }
    }

    pub fn objective(&self) -> f64 {
        sum(&self.f) / self.f.len() as f64
    }

    pub fn lagrangian(&self, mu: &Matrix) -> f64 {
        let n = self.f.len();
        (0..n).map(|i| self.f[i] + dot(&mu[i], &self.g[i])).sum::<f64>() / n as f64
    }

    /// All shadow rewards.
    pub fn rewards(&self) -> Matrix {
        let mut all = self.shadow_f.clone();
        all.extend(self.shadow_g.iter().flatten().cloned());
        all
    }
}

/// The cells of a truncated table: which one every joint pair `s |A| + a` is in.
pub struct Cells {
    pub agents: Vec<usize>,
    pub states: usize,
    pub actions: usize,
    pub of: Vec<usize>,
}

impl Cells {
    pub fn new(model: &Model, agents: &[usize]) -> Cells {
        let states = count(agents, &model.states);
        let actions = count(agents, &model.actions);
        let mut of = Vec::new();
        for s in &model.state_list {
            for a in &model.action_list {
                of.push(encode(s, agents, &model.states) * actions + encode(a, agents, &model.actions));
            }
        }
        Cells { agents: agents.to_vec(), states, actions, of }
    }
}

/// All agents outside at state 0 and action 0.
pub fn fixed(model: &Model, cells: &Cells, q: &[f64]) -> Vec<f64> {
    let all: Vec<usize> = (0..model.n).collect();
    let mut out = Vec::new();
    for x in 0..cells.states {
        for u in 0..cells.actions {
            let s = encode(&decode(x, &cells.agents, &model.states), &all, &model.states);
            let a = encode(&decode(u, &cells.agents, &model.actions), &all, &model.actions);
            out.push(q[s * model.action_list.len() + a]);
        }
    }
    out
}

/// The mean within every cell, 0 where a cell has no weight.
pub fn average(cells: &Cells, weight: &[f64], q: &[f64]) -> Vec<f64> {
    let size = cells.states * cells.actions;
    let mut total = vec![0.0; size];
    let mut mass = vec![0.0; size];
    for sa in 0..q.len() {
        total[cells.of[sa]] += weight[sa] * q[sa];
        mass[cells.of[sa]] += weight[sa];
    }
    (0..size).map(|z| if mass[z] > 0.0 { total[z] / mass[z] } else { 0.0 }).collect()
}

/// Fixed points of tabular TD(0) on the cells around agent i, for each of its rewards.
pub fn temporal_difference(
    model: &Model,
    point: &Point,
    cells: &Cells,
    i: usize,
    weight: &[f64],
    rewards: &[Vec<f64>],
) -> Matrix {
    let (states, actions) = (model.state_list.len(), model.action_list.len());
    let size = cells.states * cells.actions;
    let mut mass = vec![0.0; size];
    let mut p_bar = vec![vec![0.0; size]; size];
    let mut r_bar = vec![vec![0.0; rewards.len()]; size];
    for s in 0..states {
        for a in 0..actions {
            let sa = s * actions + a;
            let z = cells.of[sa];
            mass[z] += weight[sa];
            for h in 0..rewards.len() {
                let k = model.state_list[s][i] * model.actions[i] + model.action_list[a][i];
                r_bar[z][h] += weight[sa] * rewards[h][k];
            }
            for next in 0..states {
                let p = weight[sa] * model.kernel[sa][next];
                if p == 0.0 {
                    continue;
                }
                for b in 0..actions {
                    p_bar[z][cells.of[next * actions + b]] += p * point.pi[next][b];
                }
            }
        }
    }
    for z in 0..size {
        if mass[z] > 0.0 {
            p_bar[z].iter_mut().for_each(|p| *p /= mass[z]);
            r_bar[z].iter_mut().for_each(|r| *r /= mass[z]);
        }
    }
    transpose(&solve(identity_minus(model.gamma, &p_bar), r_bar))
}

/// The Cesàro limit of the state's law, from `rho`: exactly zero on transient states.
pub fn stationary(p: &Matrix, rho: &[f64]) -> Vec<f64> {
    let n = p.len();
    let mut reach: Vec<Vec<bool>> =
        (0..n).map(|i| (0..n).map(|j| i == j || p[i][j] > 0.0).collect()).collect();
    for k in 0..n {
        for i in 0..n {
            for j in 0..n {
                reach[i][j] = reach[i][j] || (reach[i][k] && reach[k][j]);
            }
        }
    }
    let recurrent: Vec<bool> = (0..n).map(|i| (0..n).all(|j| !reach[i][j] || reach[j][i])).collect();
    let transient: Vec<usize> = (0..n).filter(|&i| !recurrent[i]).collect();
    let mut law = vec![0.0; n];
    for first in 0..n {
        // Every class once, at its smallest state.
        if !recurrent[first] || (0..first).any(|j| reach[first][j]) {
            continue;
        }
        let class: Vec<usize> = (0..n).filter(|&j| reach[first][j]).collect();
        let within: Matrix = class.iter().map(|&i| class.iter().map(|&j| p[i][j]).collect()).collect();
        let mut system = identity_minus(1.0, &transpose(&within));
        let mut right = vec![0.0; class.len()];
        system[0] = vec![1.0; class.len()];
        right[0] = 1.0;
        let inside = solve_vector(system, &right);

        let stay: Matrix = transient.iter().map(|&i| transient.iter().map(|&j| p[i][j]).collect()).collect();
        let enter: Vec<f64> = transient.iter().map(|&i| class.iter().map(|&j| p[i][j]).sum()).collect();
        let absorbed = solve_vector(identity_minus(1.0, &stay), &enter);
        let mut mass: f64 = class.iter().map(|&i| rho[i]).sum();
        for (t, &i) in transient.iter().enumerate() {
            mass += rho[i] * absorbed[t];
        }
        for (k, &i) in class.iter().enumerate() {
            law[i] = mass * inside[k];
        }
    }
    law
}

/// `Q_fj + sum_k mu_jk Q_gjk` for every j.
pub fn combine(q_f: &Matrix, q_g: &[Matrix], mu: &Matrix) -> Matrix {
    let mut out = q_f.clone();
    for j in 0..q_f.len() {
        for k in 0..q_g[j].len() {
            for z in 0..out[j].len() {
                out[j][z] += mu[j][k] * q_g[j][k][z];
            }
        }
    }
    out
}

/// Truncated tables as tables over all joint pairs.
pub fn spread(cells: &[Cells], tables: &Matrix) -> Matrix {
    cells.iter().zip(tables).map(|(c, table)| c.of.iter().map(|&z| table[z]).collect()).collect()
}

/// `(1/n) sum_{j in agents} w_j`
pub fn mean_over(w: &Matrix, agents: &[usize]) -> Vec<f64> {
    let mut out = vec![0.0; w[0].len()];
    for &j in agents {
        for z in 0..out.len() {
            out[z] += w[j][z] / w.len() as f64;
        }
    }
    out
}

/// `G_i(w_i)` for every i.
pub fn soft_gradient(model: &Model, neigh: &[Vec<usize>], point: &Point, w: &Matrix) -> Matrix {
    let actions = model.action_list.len();
    let mut out: Matrix = point.policy.iter().map(|p| vec![0.0; p.len()]).collect();
    for i in 0..model.n {
        for s in 0..model.state_list.len() {
            let x = encode(&model.state_list[s], &neigh[i], &model.states);
            for a in 0..actions {
                let weighted = point.lam[s * actions + a] * w[i][s * actions + a];
                for b in 0..model.actions[i] {
                    let k = x * model.actions[i] + b;
                    let hit = if model.action_list[a][i] == b { 1.0 } else { 0.0 };
                    out[i][k] += weighted * (hit - point.policy[i][k]);
                }
            }
        }
    }
    out
}

/// `D_i(w_i)` for every i.
pub fn direct_gradient(model: &Model, neigh: &[Vec<usize>], point: &Point, w: &Matrix) -> Matrix {
    let actions = model.action_list.len();
    let mut out: Matrix = point.policy.iter().map(|p| vec![0.0; p.len()]).collect();
    for i in 0..model.n {
        for s in 0..model.state_list.len() {
            let x = encode(&model.state_list[s], &neigh[i], &model.states);
            for a in 0..actions {
                let mut others = 1.0;
                for k in 0..model.n {
                    if k != i {
                        let y = encode(&model.state_list[s], &neigh[k], &model.states);
                        others *= point.policy[k][y * model.actions[k] + model.action_list[a][k]];
                    }
                }
                let b = model.action_list[a][i];
                out[i][x * model.actions[i] + b] += point.d[s] * others * w[i][s * actions + a];
            }
        }
    }
    out
}
