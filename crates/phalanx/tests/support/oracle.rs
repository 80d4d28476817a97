//! Every quantity of the reference files by plain loops over all joint states and actions.
//!
//! Written from the definitions of the file format alone. It shares no code with the library, so that the two can be
//! compared; it is slow and simple on purpose.

use serde_json::{Map, Value, json};

type Matrix = Vec<Vec<f64>>;

/// Tables of temporal differences are left out when a neighbourhood has more pairs than this.
const TD_LIMIT: usize = 1100;

/// The `output` object that belongs to an `input` object.
pub fn output(input: &Value) -> Value {
    let model = Model::read(&input["model"]);
    let n = model.n;
    let gamma = model.gamma;
    let kappa = input["kappa"].as_i64().unwrap();
    let kappa_q = input["kappa_q"].as_i64().unwrap();
    let neigh = neighbourhoods(&model.dist, kappa);
    let neigh_q = neighbourhoods(&model.dist, kappa_q);
    let theta: Matrix = (0..n).map(|i| numbers(&input["theta"][i])).collect();
    let mu: Matrix = (0..n).map(|i| numbers(&input["mu"][i])).collect();
    let mu_bar = number(&input["mu_bar"]);
    let bounds = [number(&input["box"][0]), number(&input["box"][1])];
    let policy = soft_max(&model, &theta);
    let point = Point::solve(&model, &neigh, &policy);
    let every_agent: Vec<usize> = (0..n).collect();

    let mut out = Map::new();
    out.insert("dist".into(), json!(model.dist));
    out.insert("neigh".into(), json!(neigh));
    out.insert("neigh_q".into(), json!(neigh_q));
    out.insert("policy".into(), json!(policy));
    let states = model.state_list.len();
    out.insert("P_pi".into(), table(&point.p_pi.concat(), &[states, states], 256));
    out.insert("state_occupancy".into(), table(&point.d, &[states], 512));
    out.insert("lambda".into(), json!(point.local));
    out.insert("f".into(), json!(point.f));
    out.insert("g".into(), json!(point.g));
    out.insert("F".into(), json!(point.objective()));
    out.insert("L".into(), json!(point.lagrangian(&mu)));
    out.insert("shadow_f".into(), json!(point.shadow_f));
    out.insert("shadow_g".into(), json!(point.shadow_g));
    out.insert("Qf_full".into(), point.q_f.iter().map(|q| checksum(q)).collect());
    let sums: Vec<Vec<Value>> = point.q_g.iter().map(|qs| qs.iter().map(|q| checksum(q)).collect()).collect();
    out.insert("Qg_full".into(), json!(sums));

    // Truncated Q.
    let cells: Vec<Cells> = (0..n).map(|i| Cells::new(&model, &neigh_q[i])).collect();
    let show = |i: usize, q: &Vec<f64>| table(q, &[cells[i].states, cells[i].actions], 512);
    let show_f = |qs: &Matrix| -> Value { qs.iter().enumerate().map(|(i, q)| show(i, q)).collect() };
    let show_g = |all: &Vec<Matrix>| -> Value {
        let rows: Vec<Vec<Value>> =
            all.iter().enumerate().map(|(i, qs)| qs.iter().map(|q| show(i, q)).collect()).collect();
        json!(rows)
    };
    let fixed_f: Matrix = (0..n).map(|i| fixed(&model, &cells[i], &point.q_f[i])).collect();
    let fixed_g: Vec<Matrix> =
        (0..n).map(|i| point.q_g[i].iter().map(|q| fixed(&model, &cells[i], q)).collect()).collect();
    let avg_f: Matrix = (0..n).map(|i| average(&cells[i], &point.lam, &point.q_f[i])).collect();
    let avg_g: Vec<Matrix> =
        (0..n).map(|i| point.q_g[i].iter().map(|q| average(&cells[i], &point.lam, q)).collect()).collect();
    out.insert("Qf_hat_fixed".into(), show_f(&fixed_f));
    out.insert("Qg_hat_fixed".into(), show_g(&fixed_g));
    out.insert("Qf_hat_avg".into(), show_f(&avg_f));
    out.insert("Qg_hat_avg".into(), show_g(&avg_g));

    // Gradients.
    let w_true = combine(&point.q_f, &point.q_g, &mu);
    let w_fixed = spread(&cells, &combine(&fixed_f, &fixed_g, &mu));
    let w_avg = spread(&cells, &combine(&avg_f, &avg_g, &mu));
    let of_all = |w: &Matrix| -> Matrix { (0..n).map(|_| mean_over(w, &every_agent)).collect() };
    let of_near = |w: &Matrix| -> Matrix { (0..n).map(|i| mean_over(w, &neigh_q[i])).collect() };
    let grad_true = soft_gradient(&model, &neigh, &point, &of_all(&w_true));
    let grad_fixed = soft_gradient(&model, &neigh, &point, &of_near(&w_fixed));
    let grad_avg = soft_gradient(&model, &neigh, &point, &of_near(&w_avg));
    let direct_true = direct_gradient(&model, &neigh, &point, &of_all(&w_true));
    let direct_fixed = direct_gradient(&model, &neigh, &point, &of_near(&w_fixed));
    let grad_error: Vec<f64> = (0..n).map(|i| norm(&difference(&grad_true[i], &grad_fixed[i]))).collect();
    out.insert("grad_true".into(), json!(grad_true));
    out.insert("grad_trunc_fixed".into(), json!(grad_fixed));
    out.insert("grad_trunc_avg".into(), json!(grad_avg));
    out.insert("grad_error_fixed".into(), json!(grad_error));
    out.insert("grad_direct_true".into(), json!(direct_true));
    out.insert("grad_direct_trunc_fixed".into(), json!(direct_fixed));

    // Fixed points of temporal differences.
    if cells.iter().all(|c| c.states * c.actions <= TD_LIMIT) {
        let actions = model.action_list.len();
        let law = stationary(&point.p_pi, &model.rho);
        let pairs: Vec<f64> = (0..states * actions)
            .map(|sa| law[sa / actions] * point.pi[sa / actions][sa % actions])
            .collect();
        let mut occupancy_f = Vec::new();
        let mut occupancy_g = Vec::new();
        let mut stationary_f = Vec::new();
        for i in 0..n {
            let mut rewards = vec![point.shadow_f[i].clone()];
            rewards.extend(point.shadow_g[i].iter().cloned());
            let mut found = temporal_difference(&model, &point, &cells[i], i, &point.lam, &rewards);
            occupancy_f.push(found.remove(0));
            occupancy_g.push(found);
            let only_f = &rewards[..1];
            stationary_f.push(temporal_difference(&model, &point, &cells[i], i, &pairs, only_f).remove(0));
        }
        let w = spread(&cells, &combine(&occupancy_f, &occupancy_g, &mu));
        let gradient = soft_gradient(&model, &neigh, &point, &of_near(&w));
        out.insert("Qf_hat_td_occupancy".into(), show_f(&occupancy_f));
        out.insert("Qf_hat_td_stationary".into(), show_f(&stationary_f));
        out.insert("grad_trunc_td_occupancy".into(), json!(gradient));
    }

    // Stationarity.
    let x = norm(&grad_true.concat());
    let x_box = box_measure(&theta, &grad_true, bounds);
    let x_simplex = simplex_measure(&model, &policy, &direct_true);
    let y = dual_measure(n, &mu, &point.g, mu_bar);
    let violation = point.g.concat().iter().fold(0.0, |worst: f64, g| worst.max(-g));
    out.insert(
        "metrics".into(),
        json!({
            "X": x, "X_box": x_box, "X_simplex": x_simplex, "Y": y,
            "E": x * x + y * y, "E_box": x_box * x_box + y * y, "E_simplex": x_simplex * x_simplex + y * y,
            "violation_max": violation,
        }),
    );

    // Bounds.
    let m = influence(&model);
    let decay = Decay::new(&model, &m);
    let m_r = point.rewards().concat().iter().fold(0.0, |most: f64, r| most.max(r.abs()));
    out.insert("decay".into(), decay.report(&model, &m, m_r, &mu, kappa_q));
    out.insert(
        "closed_loop".into(),
        closed_loop(&model, &neigh, &neigh_q, &cells, &point, &m, &mu, &fixed_f),
    );
    let constants = Constants::new(&model);
    let eta_mu = number(&input["algorithm"]["eta_mu"]);
    out.insert(
        "constants".into(),
        constants.as_ref().map_or(Value::Null, |c| c.report(&model, mu_bar, eta_mu)),
    );

    let batch = number(&input["estimator"]["B"]);
    let horizon = number(&input["estimator"]["H"]);
    let delta0 = number(&input["estimator"]["delta0"]);
    let eps0 = number(&input["estimator"]["eps0"]);
    let g1 = 1.0 - gamma;
    let cut = gamma.powf(2.0 * horizon);
    let eps1 = ((4.0 + 2.0 * cut * batch - 16.0 * delta0.ln()) / (g1 * g1 * batch)).sqrt();
    out.insert("eps1".into(), json!(eps1));
    let estimators = match (&constants, decay.omega()) {
        (Some(c), Some(omega)) => {
            let m_pi = 2f64.sqrt();
            let first = (1.0 + mu_bar) * c.m_r_2 * m_pi / (g1 * g1);
            let second = (g1 * eps0 + c.l_lambda * eps1 / c.m_r_2).powi(2);
            let eps2 = 4.0 * first * first * (second + (2.0 - 8.0 * delta0.ln()) / batch + cut);
            let c0 = decay.c0(omega, c.m_r_inf);
            let third = (1.0 + mu_bar) * m_pi * c0 * (-omega).exp().powi(kappa_q as i32) / g1;
            let eps3 = 4.0 * third * third;
            let sizes: f64 = neigh_q.iter().map(|set| (set.len() * set.len()) as f64).sum();
            json!({
                "eps1": eps1, "eps2": eps2, "eps3": eps3,
                "eps_mu": (c.m_r_2 * eps1).powi(2) / n as f64,
                "eps_theta": sizes / (n * n) as f64 * eps2 + n as f64 * eps3,
            })
        }
        _ => Value::Null,
    };
    out.insert("estimators".into(), estimators);

    let hops: Vec<Value> = (0..kappa).map(|k| khop(&model, &neigh, &policy, &point, k)).collect();
    out.insert("khop".into(), json!(hops));

    // Algorithm 1 with exact quantities.
    let rounds = input["algorithm"]["T"].as_u64().unwrap();
    let eta_theta = number(&input["algorithm"]["eta_theta"]);
    let mut theta = theta;
    let mut trajectory = Vec::new();
    for t in 0..rounds {
        let policy = soft_max(&model, &theta);
        let point = Point::solve(&model, &neigh, &policy);
        let mut mu_next = point.g.clone();
        for value in mu_next.iter_mut().flatten() {
            *value = (-eta_mu * *value / n as f64).max(0.0).min(mu_bar);
        }
        let w_true = combine(&point.q_f, &point.q_g, &mu_next);
        let gradient = soft_gradient(&model, &neigh, &point, &of_all(&w_true));
        let x_box = box_measure(&theta, &gradient, bounds);
        let y = dual_measure(n, &mu_next, &point.g, mu_bar);
        trajectory.push(json!({
            "t": t, "mu_next": mu_next, "F": point.objective(), "L": point.lagrangian(&mu_next), "g": point.g,
            "X_box": x_box, "Y": y, "E_box": x_box * x_box + y * y,
        }));
        let fixed_f: Matrix = (0..n).map(|i| fixed(&model, &cells[i], &point.q_f[i])).collect();
        let fixed_g: Vec<Matrix> =
            (0..n).map(|i| point.q_g[i].iter().map(|q| fixed(&model, &cells[i], q)).collect()).collect();
        let w_fixed = spread(&cells, &combine(&fixed_f, &fixed_g, &mu_next));
        let step = soft_gradient(&model, &neigh, &point, &of_near(&w_fixed));
        for i in 0..n {
            for k in 0..theta[i].len() {
                theta[i][k] = (theta[i][k] + eta_theta * step[i][k]).max(bounds[0]).min(bounds[1]);
            }
        }
    }
    out.insert("algorithm1".into(), json!({"trajectory": trajectory, "theta_final": theta}));
    Value::Object(out)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// All numbers of a (nested) list, row by row.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        other => vec![number(other)],
    }
}

fn indices(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as usize).collect()
}

fn sum(x: &[f64]) -> f64 {
    x.iter().sum()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| a * b).sum()
}

fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

fn difference(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(a, b)| a - b).collect()
}

fn l1_distance(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| (a - b).abs()).sum()
}

fn largest(x: &[f64]) -> f64 {
    x.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn smallest(x: &[f64]) -> f64 {
    x.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Mixed radix number of the values of `agents`, where `values` and `sizes` are those of all agents.
fn encode(values: &[usize], agents: &[usize], sizes: &[usize]) -> usize {
    agents.iter().fold(0, |index, &k| index * sizes[k] + values[k])
}

/// Inverse of [`encode`]: the values of all agents, zero for those that are not in `agents`.
fn decode(mut index: usize, agents: &[usize], sizes: &[usize]) -> Vec<usize> {
    let mut values = vec![0; sizes.len()];
    for &k in agents.iter().rev() {
        values[k] = index % sizes[k];
        index /= sizes[k];
    }
    values
}

fn count(agents: &[usize], sizes: &[usize]) -> usize {
    agents.iter().map(|&k| sizes[k]).product()
}

fn checksum(x: &[f64]) -> Value {
    let weighted: f64 = x.iter().enumerate().map(|(k, v)| v * ((k % 97) + 1) as f64 / 97.0).sum();
    json!({
        "len": x.len(), "sum": sum(x), "sumsq": dot(x, x),
        "max_abs": x.iter().fold(0.0, |most: f64, v| most.max(v.abs())),
        "weighted": weighted, "first": x[0], "last": x[x.len() - 1],
    })
}

fn table(x: &[f64], shape: &[usize], limit: usize) -> Value {
    if x.len() <= limit {
        json!({"shape": shape, "checksum": checksum(x), "values": x})
    } else {
        json!({"shape": shape, "checksum": checksum(x), "head": x[..16]})
    }
}

/// Solves `a x = b` for every column of `b` by Gaussian elimination with partial pivoting.
fn solve(mut a: Matrix, mut b: Matrix) -> Matrix {
    let n = a.len();
    for c in 0..n {
        let mut pivot = c;
        for r in c + 1..n {
            if a[r][c].abs() > a[pivot][c].abs() {
                pivot = r;
            }
        }
        assert!(a[pivot][c] != 0.0, "singular system");
        a.swap(c, pivot);
        b.swap(c, pivot);
        for r in c + 1..n {
            let factor = a[r][c] / a[c][c];
            if factor == 0.0 {
                continue;
            }
            let (above, below) = a.split_at_mut(r);
            for k in c..n {
                below[0][k] -= factor * above[c][k];
            }
            for k in 0..b[r].len() {
                b[r][k] -= factor * b[c][k];
            }
        }
    }
    for r in (0..n).rev() {
        for k in 0..b[r].len() {
            let mut value = b[r][k];
            for c in r + 1..n {
                value -= a[r][c] * b[c][k];
            }
            b[r][k] = value / a[r][r];
        }
    }
    b
}

fn solve_vector(a: Matrix, b: &[f64]) -> Vec<f64> {
    solve(a, b.iter().map(|&x| vec![x]).collect()).into_iter().map(|row| row[0]).collect()
}

fn transpose(a: &Matrix) -> Matrix {
    (0..a[0].len()).map(|c| a.iter().map(|row| row[c]).collect()).collect()
}

/// `I - factor a`
fn identity_minus(factor: f64, a: &Matrix) -> Matrix {
    let mut out = a.clone();
    for r in 0..a.len() {
        for c in 0..a.len() {
            out[r][c] = (if r == c { 1.0 } else { 0.0 }) - factor * a[r][c];
        }
    }
    out
}

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let columns = transpose(b);
    a.iter().map(|row| columns.iter().map(|column| dot(row, column)).collect()).collect()
}

struct Model {
    n: usize,
    gamma: f64,
    states: Vec<usize>,
    actions: Vec<usize>,
    parents: Vec<Vec<usize>>,
    transition: Matrix,
    rho: Vec<f64>,
    f: Vec<Utility>,
    g: Vec<Vec<Utility>>,
    dist: Vec<Vec<i64>>,
    /// The local states of every joint state, and the local actions of every joint action.
    state_list: Vec<Vec<usize>>,
    action_list: Vec<Vec<usize>>,
    /// `P(s'|s,a)`, one row per `s |A| + a`.
    kernel: Matrix,
}

impl Model {
    fn read(value: &Value) -> Model {
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
    fn start(&self, i: usize) -> Vec<f64> {
        let mut law = vec![0.0; self.states[i]];
        for (s, values) in self.state_list.iter().enumerate() {
            law[values[i]] += self.rho[s];
        }
        law
    }

    fn most_constraints(&self) -> usize {
        self.g.iter().map(|g| g.len()).max().unwrap().max(1)
    }
}

fn neighbourhoods(dist: &[Vec<i64>], radius: i64) -> Vec<Vec<usize>> {
    dist.iter().map(|row| (0..row.len()).filter(|&j| row[j] >= 0 && row[j] <= radius).collect()).collect()
}

struct Utility {
    kind: String,
    spec: Value,
    scale: f64,
    offset: f64,
    power: u64,
    q: f64,
    states: usize,
    actions: usize,
}

impl Utility {
    fn read(spec: &Value, gamma: f64, states: usize, actions: usize) -> Utility {
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

    fn list(&self, key: &str) -> Vec<f64> {
        numbers(&self.spec[key])
    }

    /// `q sum_a lam(s,a)` for every s.
    fn state_law(&self, lam: &[f64]) -> Vec<f64> {
        (0..self.states).map(|s| self.q * sum(&lam[s * self.actions..(s + 1) * self.actions])).collect()
    }

    /// `sum_s lam(s,a)` for every a.
    fn action_sums(&self, lam: &[f64]) -> Vec<f64> {
        (0..self.actions).map(|a| (0..self.states).map(|s| lam[s * self.actions + a]).sum()).collect()
    }

    /// The nearest point of the set of a `neg_dist_*` utility.
    fn project(&self, lam: &[f64]) -> Vec<f64> {
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

    fn value(&self, lam: &[f64]) -> f64 {
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

    fn shadow_reward(&self, lam: &[f64]) -> Vec<f64> {
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

    /// `(sup |r|_inf, sup |r|_2, L_lambda)`, or nothing without a uniform bound. `start` is the agent's start law.
    fn bounds(&self, start: &[f64]) -> Option<(f64, f64, f64)> {
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

/// `pi_i(b|x)` with the shape of `theta`.
fn soft_max(model: &Model, theta: &Matrix) -> Matrix {
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
struct Point {
    policy: Matrix,
    /// `pi(a|s)`
    pi: Matrix,
    p_pi: Matrix,
    d: Vec<f64>,
    /// Joint occupancy, number `s |A| + a`; so are `q_f[i]` and `q_g[i][k]`.
    lam: Vec<f64>,
    local: Matrix,
    f: Vec<f64>,
    g: Matrix,
    shadow_f: Matrix,
    shadow_g: Vec<Matrix>,
    q_f: Matrix,
    q_g: Vec<Matrix>,
}

impl Point {
    fn solve(model: &Model, neigh: &[Vec<usize>], policy: &Matrix) -> Point {
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

    fn objective(&self) -> f64 {
        sum(&self.f) / self.f.len() as f64
    }

    fn lagrangian(&self, mu: &Matrix) -> f64 {
        let n = self.f.len();
        (0..n).map(|i| self.f[i] + dot(&mu[i], &self.g[i])).sum::<f64>() / n as f64
    }

    /// All shadow rewards.
    fn rewards(&self) -> Matrix {
        let mut all = self.shadow_f.clone();
        all.extend(self.shadow_g.iter().flatten().cloned());
        all
    }
}

/// The cells of a truncated table: which one every joint pair `s |A| + a` is in.
struct Cells {
    agents: Vec<usize>,
    states: usize,
    actions: usize,
    of: Vec<usize>,
}

impl Cells {
    fn new(model: &Model, agents: &[usize]) -> Cells {
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
fn fixed(model: &Model, cells: &Cells, q: &[f64]) -> Vec<f64> {
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
fn average(cells: &Cells, weight: &[f64], q: &[f64]) -> Vec<f64> {
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
fn temporal_difference(
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
fn stationary(p: &Matrix, rho: &[f64]) -> Vec<f64> {
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
fn combine(q_f: &Matrix, q_g: &[Matrix], mu: &Matrix) -> Matrix {
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
fn spread(cells: &[Cells], tables: &Matrix) -> Matrix {
    cells.iter().zip(tables).map(|(c, table)| c.of.iter().map(|&z| table[z]).collect()).collect()
}

/// `(1/n) sum_{j in agents} w_j`
fn mean_over(w: &Matrix, agents: &[usize]) -> Vec<f64> {
    let mut out = vec![0.0; w[0].len()];
    for &j in agents {
        for z in 0..out.len() {
            out[z] += w[j][z] / w.len() as f64;
        }
    }
    out
}

/// `G_i(w_i)` for every i.
fn soft_gradient(model: &Model, neigh: &[Vec<usize>], point: &Point, w: &Matrix) -> Matrix {
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
fn direct_gradient(model: &Model, neigh: &[Vec<usize>], point: &Point, w: &Matrix) -> Matrix {
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

/// The root of an increasing function, between `lo` where it is below 0 and `hi` where it is not.
fn bisect(mut lo: f64, mut hi: f64, increasing: impl Fn(f64) -> f64) -> f64 {
    loop {
        let middle = lo + (hi - lo) / 2.0;
        if middle <= lo || middle >= hi {
            return hi;
        }
        if increasing(middle) < 0.0 {
            lo = middle;
        } else {
            hi = middle;
        }
    }
}

/// `max <c,d>` with `lo <= d <= hi` and `|d| <= 1`, where `lo <= 0 <= hi`.
fn maximise_in_box(c: &[f64], lo: &[f64], hi: &[f64]) -> f64 {
    let clipped = |t: f64| -> Vec<f64> { (0..c.len()).map(|k| (t * c[k]).max(lo[k]).min(hi[k])).collect() };
    let mut corner = Vec::new();
    let mut last = 0.0;
    for k in 0..c.len() {
        let bound = if c[k] > 0.0 {
            hi[k]
        } else if c[k] < 0.0 {
            lo[k]
        } else {
            0.0
        };
        corner.push(bound);
        if bound != 0.0 {
            last = f64::max(last, bound / c[k]);
        }
    }
    if norm(&corner) <= 1.0 {
        return dot(c, &corner);
    }
    let t = bisect(0.0, 2.0 * last, |t| norm(&clipped(t)) - 1.0);
    dot(c, &clipped(t))
}

fn box_measure(theta: &Matrix, gradient: &Matrix, bounds: [f64; 2]) -> f64 {
    let theta = theta.concat();
    let lo: Vec<f64> = theta.iter().map(|x| bounds[0] - x).collect();
    let hi: Vec<f64> = theta.iter().map(|x| bounds[1] - x).collect();
    maximise_in_box(&gradient.concat(), &lo, &hi)
}

fn dual_measure(n: usize, mu: &Matrix, g: &Matrix, mu_bar: f64) -> f64 {
    let mu = mu.concat();
    let c: Vec<f64> = g.concat().iter().map(|g| -g / n as f64).collect();
    let lo: Vec<f64> = mu.iter().map(|x| -x).collect();
    let hi: Vec<f64> = mu.iter().map(|x| mu_bar - x).collect();
    maximise_in_box(&c, &lo, &hi)
}

/// The nearest point of the simplex: `max(v - tau, 0)` with the `tau` that makes the sum 1.
fn project_on_simplex(v: &[f64]) -> Vec<f64> {
    let mut sorted = v.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let mut total = 0.0;
    let mut tau = 0.0;
    for (k, x) in sorted.iter().enumerate() {
        total += x;
        let candidate = (total - 1.0) / (k + 1) as f64;
        if x - candidate > 0.0 {
            tau = candidate;
        }
    }
    v.iter().map(|x| (x - tau).max(0.0)).collect()
}

/// `max <c,d>` with every row of `policy + d` in a simplex and `|d| <= 1`.
fn simplex_measure(model: &Model, policy: &Matrix, gradient: &Matrix) -> f64 {
    let mut rows = Vec::new();
    for i in 0..model.n {
        for (p, c) in policy[i].chunks(model.actions[i]).zip(gradient[i].chunks(model.actions[i])) {
            // A constant does not change <c,d>, as d sums to 0; with it nothing is lost at large t.
            let top = largest(c);
            rows.push((p.to_vec(), c.iter().map(|x| x - top).collect::<Vec<f64>>()));
        }
    }
    let c: Vec<f64> = rows.iter().flat_map(|(_, c)| c.clone()).collect();
    let moved = |t: f64| -> Vec<f64> {
        let mut d = Vec::new();
        for (p, c) in &rows {
            let aim: Vec<f64> = (0..p.len()).map(|k| p[k] + t * c[k]).collect();
            d.extend(difference(&project_on_simplex(&aim), p));
        }
        d
    };
    let mut limit = Vec::new();
    for (p, c) in &rows {
        let face: Vec<usize> = (0..p.len()).filter(|&k| c[k] == 0.0).collect();
        let near = project_on_simplex(&face.iter().map(|&k| p[k]).collect::<Vec<f64>>());
        let mut end = vec![0.0; p.len()];
        for (&k, x) in face.iter().zip(near) {
            end[k] = x;
        }
        limit.extend(difference(&end, p));
    }
    if norm(&limit) <= 1.0 {
        return dot(&c, &limit);
    }
    let mut high = 1.0;
    while norm(&moved(high)) < 1.0 && high < 1e300 {
        high *= 2.0;
    }
    let t = bisect(0.0, high, |t| norm(&moved(t)) - 1.0);
    dot(&c, &moved(t))
}

/// `M[i][j]`: how far agent j can move the law of agent i's next state.
fn influence(model: &Model) -> Matrix {
    let n = model.n;
    let mut m = vec![vec![0.0; n]; n];
    for i in 0..n {
        let parents = &model.parents[i];
        let actions = count(parents, &model.actions);
        let row = |s: &[usize], a: &[usize]| -> &[f64] {
            let at = encode(s, parents, &model.states) * actions + encode(a, parents, &model.actions);
            &model.transition[i][at * model.states[i]..(at + 1) * model.states[i]]
        };
        for &j in parents {
            for x in 0..count(parents, &model.states) {
                for u in 0..actions {
                    let s = decode(x, parents, &model.states);
                    let a = decode(u, parents, &model.actions);
                    for other_s in 0..model.states[j] {
                        for other_a in 0..model.actions[j] {
                            let (mut s2, mut a2) = (s.clone(), a.clone());
                            s2[j] = other_s;
                            a2[j] = other_a;
                            m[i][j] = f64::max(m[i][j], l1_distance(row(&s, &a), row(&s2, &a2)));
                        }
                    }
                }
            }
        }
    }
    m
}

enum Supremum {
    /// The assumption fails.
    None,
    Finite(f64),
    Infinite,
}

struct Decay {
    gamma: f64,
    /// `(distance, M_ij)` of the entries that are not 0, for every i.
    rows: Vec<Vec<(f64, f64)>>,
    supremum: Supremum,
}

impl Decay {
    fn new(model: &Model, m: &Matrix) -> Decay {
        let mut rows = vec![Vec::new(); model.n];
        for i in 0..model.n {
            for j in 0..model.n {
                if m[i][j] > 0.0 {
                    rows[i].push((model.dist[i][j].max(0) as f64, m[i][j]));
                }
            }
        }
        let mut decay = Decay { gamma: model.gamma, rows, supremum: Supremum::None };
        let limit = 2.0 / model.gamma;
        if decay.chi(0.0).0 < limit {
            if decay.rows.iter().flatten().all(|(distance, _)| *distance == 0.0) {
                decay.supremum = Supremum::Infinite;
            } else {
                let mut high = 1.0;
                while decay.chi(high).0 < limit {
                    high *= 2.0;
                }
                decay.supremum = Supremum::Finite(bisect(0.0, high, |w| decay.chi(w).0 - limit));
            }
        }
        decay
    }

    /// `chi(w)` and its slope.
    fn chi(&self, w: f64) -> (f64, f64) {
        let mut best = (0.0, 0.0);
        for row in &self.rows {
            let value: f64 = row.iter().map(|(d, m)| (w * d).exp() * m).sum();
            let slope: f64 = row.iter().map(|(d, m)| d * (w * d).exp() * m).sum();
            if value > best.0 || (value == best.0 && slope > best.1) {
                best = (value, slope);
            }
        }
        best
    }

    fn c0(&self, w: f64, m_r: f64) -> f64 {
        let chi = self.chi(w).0;
        2.0 * self.gamma * chi * m_r / (2.0 - self.gamma * chi)
    }

    fn omega(&self) -> Option<f64> {
        match self.supremum {
            Supremum::Finite(sup) => Some(sup / 2.0),
            _ => None,
        }
    }

    fn report(&self, model: &Model, m: &Matrix, m_r: f64, mu: &Matrix, kappa_q: i64) -> Value {
        let m_pi = 2f64.sqrt();
        let mut out = json!({
            "M": m, "chi_at_0": self.chi(0.0).0, "two_over_gamma": 2.0 / self.gamma, "omega_sup": null,
            "M_r_point_inf": m_r, "M_pi": m_pi, "omega": null, "chi": null, "c0": null, "phi0": null,
            "lemma_bound": null, "best_c0phi": null, "best_omega": null,
        });
        match self.supremum {
            Supremum::None => {}
            Supremum::Infinite => out["omega_sup"] = json!("inf"),
            Supremum::Finite(sup) => {
                let omega = sup / 2.0;
                let power = |w: f64| (-w).exp().powi(kappa_q as i32);
                let constraints = model.most_constraints() as f64;
                let most = mu.concat().iter().fold(0.0, |most: f64, &x| most.max(x));
                let c0 = self.c0(omega, m_r);
                out["omega_sup"] = json!(sup);
                out["omega"] = json!(omega);
                out["chi"] = json!(self.chi(omega).0);
                out["c0"] = json!(c0);
                out["phi0"] = json!((-omega).exp());
                out["lemma_bound"] =
                    json!((1.0 + constraints * most) * m_pi * c0 * power(omega) / (1.0 - self.gamma));
                // The logarithm of c0 phi0^kappa_q is convex: its slope, here times a positive factor, changes
                // sign at most once in [0, sup).
                let slope = |w: f64| {
                    let (chi, chi_slope) = self.chi(w);
                    2.0 * chi_slope - kappa_q as f64 * chi * (2.0 - self.gamma * chi)
                };
                let best = if slope(0.0) >= 0.0 { 0.0 } else { bisect(0.0, sup, slope) };
                out["best_omega"] = json!(best);
                out["best_c0phi"] = json!(self.c0(best, m_r) * power(best));
            }
        }
        out
    }
}

/// The spectral radius of a matrix without negative entries: `|A^(2^k)|^(1/2^k)`.
fn spectral_radius(a: &Matrix) -> f64 {
    let mut power = a.clone();
    let mut log = 0.0;
    for k in 0..60 {
        let size = largest(&power.concat());
        if size == 0.0 {
            return 0.0;
        }
        log += size.ln() / 2f64.powi(k);
        power.iter_mut().flatten().for_each(|x| *x /= size);
        power = product(&power, &power);
    }
    log.exp()
}

#[allow(clippy::too_many_arguments)]
fn closed_loop(
    model: &Model,
    neigh: &[Vec<usize>],
    neigh_q: &[Vec<usize>],
    cells: &[Cells],
    point: &Point,
    m: &Matrix,
    mu: &Matrix,
    fixed_f: &Matrix,
) -> Value {
    let n = model.n;
    let mut b = vec![vec![0.0; n]; n];
    for i in 0..n {
        let row = |s: &[usize]| -> &[f64] {
            let x = encode(s, &neigh[i], &model.states);
            &point.policy[i][x * model.actions[i]..(x + 1) * model.actions[i]]
        };
        for &k in &neigh[i] {
            for s in &model.state_list {
                for other in 0..model.states[k] {
                    let mut s2 = s.clone();
                    s2[k] = other;
                    b[i][k] = f64::max(b[i][k], l1_distance(row(s), row(&s2)));
                }
            }
        }
    }
    let mut left = b.clone();
    for i in 0..n {
        for k in 0..n {
            left[i][k] = if i == k { 1.0 } else { b[i][k] / 2.0 };
        }
    }
    let half: Matrix = m.iter().map(|row| row.iter().map(|x| x / 2.0).collect()).collect();
    let c = product(&left, &half);
    let scaled: Matrix = c.iter().map(|row| row.iter().map(|x| model.gamma * x).collect()).collect();
    let radius = spectral_radius(&scaled);

    let mut actual = vec![0.0; n];
    for i in 0..n {
        for (sa, &z) in cells[i].of.iter().enumerate() {
            actual[i] = f64::max(actual[i], (fixed_f[i][z] - point.q_f[i][sa]).abs());
        }
    }
    let mut out = json!({
        "B": b, "C": c, "spectral_radius_gamma_C": radius, "q": null, "dQf_actual": actual, "dQf_certified": null,
        "grad_certified": null,
    });
    if radius < 1.0 {
        let identity = identity_minus(0.0, &c);
        let inverse = solve(identity_minus(1.0, &scaled), identity);
        let mut q = vec![0.0; n];
        for i in 0..n {
            for k in 0..n {
                // Outside the neighbourhood k differs from i, so (I - gamma C)^{-1} - I is the inverse itself there.
                if !neigh_q[i].contains(&k) {
                    q[i] += inverse[i][k];
                }
            }
        }
        let range = |r: &Vec<f64>| largest(r) - smallest(r);
        let certified: Vec<f64> = (0..n).map(|i| range(&point.shadow_f[i]) * q[i]).collect();
        let mut total = 0.0;
        for j in 0..n {
            let mut spread = range(&point.shadow_f[j]);
            for k in 0..mu[j].len() {
                spread += mu[j][k] * range(&point.shadow_g[j][k]);
            }
            total += spread * q[j];
        }
        out["q"] = json!(q);
        out["dQf_certified"] = json!(certified);
        out["grad_certified"] = json!(2f64.sqrt() / (n as f64 * (1.0 - model.gamma)) * total);
    }
    out
}

struct Constants {
    m_r_inf: f64,
    m_r_2: f64,
    l_lambda: f64,
}

impl Constants {
    /// Nothing when some utility has no uniform bound.
    fn new(model: &Model) -> Option<Constants> {
        let mut out = Constants { m_r_inf: 0.0, m_r_2: 0.0, l_lambda: 0.0 };
        for i in 0..model.n {
            let start = model.start(i);
            for utility in std::iter::once(&model.f[i]).chain(&model.g[i]) {
                let (inf, two, smooth) = utility.bounds(&start)?;
                out.m_r_inf = out.m_r_inf.max(inf);
                out.m_r_2 = out.m_r_2.max(two);
                out.l_lambda = out.l_lambda.max(smooth);
            }
        }
        Some(out)
    }

    fn report(&self, model: &Model, mu_bar: f64, eta_mu: f64) -> Value {
        let n = model.n as f64;
        let g1 = 1.0 - model.gamma;
        let m_pi = 2f64.sqrt();
        let weight = 1.0 + model.most_constraints() as f64 * mu_bar;
        let l_theta = 4.0 * self.l_lambda * n / g1.powi(4)
            + 8.0 * n * self.m_r_inf / g1.powi(3)
            + 2.0 * n * self.m_r_inf / g1.powi(2);
        let l_tt = weight * l_theta;
        let l_tm = self.m_r_2 * m_pi / (g1 * g1);
        json!({
            "L_theta": l_theta, "L_tt": l_tt, "L_tm": l_tm,
            "M_theta": n.sqrt() * weight * self.m_r_2 * m_pi / (g1 * g1),
            "eta_theta": 1.0 / (l_tt + 4.0 * l_tm * l_tm * eta_mu),
            "M_r_inf": self.m_r_inf, "M_r_2": self.m_r_2, "L_lambda": self.l_lambda,
        })
    }
}

/// The policy that sees k hops only.
fn khop(model: &Model, neigh: &[Vec<usize>], policy: &Matrix, point: &Point, k: i64) -> Value {
    let n = model.n;
    let mut induced = policy.clone();
    let mut gap = 0.0;
    for i in 0..n {
        let near: Vec<usize> = neigh[i].iter().copied().filter(|&j| model.dist[i][j] <= k).collect();
        let width = model.actions[i];
        let rows = count(&neigh[i], &model.states);
        for x in 0..rows {
            let s = decode(x, &neigh[i], &model.states);
            let seen = encode(&s, &near, &model.states);
            let kept = encode(&decode(seen, &near, &model.states), &neigh[i], &model.states);
            for b in 0..width {
                induced[i][x * width + b] = policy[i][kept * width + b];
            }
            for y in 0..rows {
                if encode(&decode(y, &neigh[i], &model.states), &near, &model.states) == seen {
                    let (one, two) = (&policy[i][x * width..][..width], &policy[i][y * width..][..width]);
                    gap = f64::max(gap, l1_distance(one, two));
                }
            }
        }
    }
    let other = Point::solve(model, neigh, &induced);
    let l1: Vec<f64> = (0..n).map(|i| l1_distance(&other.local[i], &point.local[i])).collect();
    json!({
        "kappa": k, "policy_gap": gap, "l1": l1,
        "bound": n as f64 * gap / (1.0 - model.gamma).powi(2),
    })
}
