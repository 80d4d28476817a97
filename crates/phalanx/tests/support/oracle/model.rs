//! A model of the file format with its utilities.

use super::*;

pub struct Model {
    pub n: usize,
    pub gamma: f64,
    pub states: Vec<usize>,
    pub actions: Vec<usize>,
    pub parents: Vec<Vec<usize>>,
    pub transition: Matrix,
    pub rho: Vec<f64>,
    pub f: Vec<Utility>,
    pub g: Vec<Vec<Utility>>,
    pub dist: Vec<Vec<i64>>,
    /// The local states of every joint state, and the local actions of every joint action.
    pub state_list: Vec<Vec<usize>>,
    pub action_list: Vec<Vec<usize>>,
    /// `P(s'|s,a)`, one row per `s |A| + a`.
    pub kernel: Matrix,
}

impl Model {
    pub fn read(value: &Value) -> Model {
        let n = value["n"].as_u64().unwrap() as usize;
        let gamma = number(&value["gamma"]);
        let states = indices(&value["state_sizes"]);
        let actions = indices(&value["action_sizes"]);
        let all: Vec<usize> = (0..n).collect();
        let state_list: Vec<_> = (0..count(&all, &states)).map(|s| decode(s, &all, &states)).collect();
        let action_list: Vec<_> = (0..count(&all, &actions)).map(|a| decode(a, &all, &actions)).collect();
        let parents: Vec<_> = (0..n).map(|i| indices(&value["parents"][i])).collect();
        let transition: Matrix = (0..n).map(|i| numbers(&value["transition"][i])).collect();

        let mut dist = vec![vec![-1; n]; n];
        for i in 0..n {
            dist[i][i] = 0;
        }
        for edge in value["edges"].as_array().unwrap() {
            let ends = indices(edge);
            if ends[0] != ends[1] {
                dist[ends[0]][ends[1]] = 1;
                dist[ends[1]][ends[0]] = 1;
            }
        }
        for k in 0..n {
            for i in 0..n {
                for j in 0..n {
                    if dist[i][k] >= 0 && dist[k][j] >= 0 {
                        let through = dist[i][k] + dist[k][j];
                        if dist[i][j] < 0 || through < dist[i][j] {
                            dist[i][j] = through;
                        }
                    }
                }
            }
        }

        let rho = match value["rho"]["kind"].as_str().unwrap() {
            "joint" => numbers(&value["rho"]["p"]),
            "product" => {
                let local: Matrix = (0..n).map(|i| numbers(&value["rho"]["local"][i])).collect();
                state_list.iter().map(|s| (0..n).map(|i| local[i][s[i]]).product()).collect()
            }
            other => panic!("unknown start law {other}"),
        };

        let mut kernel = Vec::new();
        for s in &state_list {
            for a in &action_list {
                let mut row = Vec::new();
                for next in &state_list {
                    let mut p = 1.0;
                    for i in 0..n {
                        let x = encode(s, &parents[i], &states);
                        let u = encode(a, &parents[i], &actions);
                        p *= transition[i][(x * count(&parents[i], &actions) + u) * states[i] + next[i]];
                    }
                    row.push(p);
                }
                kernel.push(row);
            }
        }

        let utility = |v: &Value, i: usize| Utility::read(v, gamma, states[i], actions[i]);
        let f = (0..n).map(|i| utility(&value["f"][i], i)).collect();
        let constraints =
            |i: usize| value["g"][i].as_array().unwrap().iter().map(|v| utility(v, i)).collect();
        let g = (0..n).map(constraints).collect();
        Model {
            n,
            gamma,
            states,
            actions,
            parents,
            transition,
            rho,
            f,
            g,
            dist,
            state_list,
            action_list,
            kernel,
        }
    }

    /// The law of agent i's first state.
    pub fn start(&self, i: usize) -> Vec<f64> {
        let mut law = vec![0.0; self.states[i]];
        for (s, values) in self.state_list.iter().enumerate() {
            law[values[i]] += self.rho[s];
        }
        law
    }

    pub fn most_constraints(&self) -> usize {
        self.g.iter().map(|g| g.len()).max().unwrap().max(1)
    }
}

pub fn neighbourhoods(dist: &[Vec<i64>], radius: i64) -> Vec<Vec<usize>> {
    dist.iter().map(|row| (0..row.len()).filter(|&j| row[j] >= 0 && row[j] <= radius).collect()).collect()
}

pub struct Utility {
    pub kind: String,
    pub spec: Value,
    pub scale: f64,
    pub offset: f64,
    pub power: u64,
    pub q: f64,
    pub states: usize,
    pub actions: usize,
}

impl Utility {
    pub fn read(spec: &Value, gamma: f64, states: usize, actions: usize) -> Utility {
        Utility {
            kind: spec["kind"].as_str().unwrap().to_string(),
            spec: spec.clone(),
            scale: spec["scale"].as_f64().unwrap_or(1.0),
            offset: spec["offset"].as_f64().unwrap_or(0.0),
            power: spec["power"].as_u64().unwrap_or(1),
            q: 1.0 - gamma,
            states,
            actions,
        }
    }

    pub fn list(&self, key: &str) -> Vec<f64> {
        numbers(&self.spec[key])
    }

    /// `q sum_a lam(s,a)` for every s.
    pub fn state_law(&self, lam: &[f64]) -> Vec<f64> {
        (0..self.states).map(|s| self.q * sum(&lam[s * self.actions..(s + 1) * self.actions])).collect()
    }

    /// `sum_s lam(s,a)` for every a.
    pub fn action_sums(&self, lam: &[f64]) -> Vec<f64> {
        (0..self.actions).map(|a| (0..self.states).map(|s| lam[s * self.actions + a]).sum()).collect()
    }

    /// The nearest point of the set of a `neg_dist_*` utility.
    pub fn project(&self, lam: &[f64]) -> Vec<f64> {
        match self.kind.as_str() {
            "neg_dist_box" => {
                let (lo, hi) = (self.list("lo"), self.list("hi"));
                (0..lam.len()).map(|k| lam[k].max(lo[k]).min(hi[k])).collect()
            }
            "neg_dist_halfspace" => {
                let a = self.list("a");
                let excess = dot(&a, lam) - number(&self.spec["b"]);
                if excess <= 0.0 {
                    return lam.to_vec();
                }
                (0..lam.len()).map(|k| lam[k] - excess / dot(&a, &a) * a[k]).collect()
            }
            "neg_dist_ball" => {
                let center = self.list("center");
                let radius = number(&self.spec["radius"]);
                let away = difference(lam, &center);
                let distance = norm(&away);
                if distance <= radius {
                    return lam.to_vec();
                }
                (0..lam.len()).map(|k| center[k] + radius * away[k] / distance).collect()
            }
            other => panic!("{other} has no set"),
        }
    }

    pub fn value(&self, lam: &[f64]) -> f64 {
        let q = self.q;
        let base = match self.kind.as_str() {
            "linear" => dot(&self.list("r"), lam),
            "state_entropy" => -self.state_law(lam).iter().map(|d| d * d.max(1e-12).ln()).sum::<f64>(),
            "sa_entropy" => -lam.iter().map(|x| q * x * (q * x).max(1e-12).ln()).sum::<f64>(),
            "action_l2sq" => self.action_sums(lam).iter().map(|m| m * m).sum(),
            "l2sq" => dot(lam, lam),
            "neg_l2_expert" => -norm(&difference(lam, &self.list("expert"))),
            "neg_l2sq_expert" => -norm(&difference(lam, &self.list("expert"))).powi(2),
            "neg_kl_expert" => {
                let expert = self.list("expert");
                -(0..lam.len()).map(|k| q * lam[k] * (lam[k] / expert[k]).ln()).sum::<f64>()
            }
            _ => {
                let distance = norm(&difference(lam, &self.project(lam)));
                if self.power == 1 { -distance } else { -distance * distance / 2.0 }
            }
        };
        self.scale * base + self.offset
    }

    pub fn shadow_reward(&self, lam: &[f64]) -> Vec<f64> {
        let q = self.q;
        let every = 0..lam.len();
        let gradient: Vec<f64> = match self.kind.as_str() {
            "linear" => self.list("r"),
            "state_entropy" => {
                let d = self.state_law(lam);
                every.map(|k| -q * (d[k / self.actions].max(1e-12).ln() + 1.0)).collect()
            }
            "sa_entropy" => every.map(|k| -q * ((q * lam[k]).max(1e-12).ln() + 1.0)).collect(),
            "action_l2sq" => {
                let m = self.action_sums(lam);
                every.map(|k| 2.0 * m[k % self.actions]).collect()
            }
            "l2sq" => every.map(|k| 2.0 * lam[k]).collect(),
            "neg_l2_expert" => {
                let away = difference(lam, &self.list("expert"));
                let distance = norm(&away);
                every.map(|k| if distance == 0.0 { 0.0 } else { -away[k] / distance }).collect()
            }
            "neg_l2sq_expert" => {
                let expert = self.list("expert");
                every.map(|k| -2.0 * (lam[k] - expert[k])).collect()
            }
            "neg_kl_expert" => {
                let expert = self.list("expert");
                every.map(|k| -q * ((lam[k] / expert[k]).ln() + 1.0)).collect()
            }
            _ => {
                let away = difference(lam, &self.project(lam));
                let distance = norm(&away);
                let divisor = if self.power == 1 { distance } else { 1.0 };
                every.map(|k| if distance == 0.0 { 0.0 } else { -away[k] / divisor }).collect()
            }
        };
        gradient.iter().map(|x| self.scale * x).collect()
    }

    /// `(sup |r|_inf, sup |r|_2, L_lambda)`, or nothing without a uniform bound. `start` is the agent's start
    /// law.
    pub fn bounds(&self, start: &[f64]) -> Option<(f64, f64, f64)> {
        let q = self.q;
        let (s, a) = (self.states as f64, self.actions as f64);
        let (inf, two, smooth) = match self.kind.as_str() {
            "linear" => {
                let r = self.list("r");
                (largest(&r).max(-smallest(&r)), norm(&r), 0.0)
            }
            "state_entropy" => {
                let least = q * smallest(start);
                if least <= 0.0 {
                    return None;
                }
                let u = q * (least.ln() + 1.0).abs().max(1.0);
                (u, u * (s * a).sqrt(), q * q * a.sqrt() / least)
            }
            "action_l2sq" => (2.0 / q, 2.0 * s.sqrt() / q, 2.0 * s.sqrt()),
            "l2sq" => (2.0 / q, 2.0 / q, 2.0),
            "neg_l2sq_expert" => {
                let expert = self.list("expert");
                (2.0 * (1.0 / q + largest(&expert)), 2.0 * (1.0 / q + norm(&expert)), 2.0)
            }
            "neg_dist_box" | "neg_dist_halfspace" | "neg_dist_ball" if self.power == 2 => {
                let point = match self.kind.as_str() {
                    "neg_dist_ball" => self.list("center"),
                    _ => self.project(&vec![0.0; self.states * self.actions]),
                };
                let v = 1.0 / q + norm(&point);
                (v, v, 1.0)
            }
            _ => return None,
        };
        let scale = self.scale.abs();
        Some((scale * inf, scale * two, scale * smooth))
    }
}
