//! Every quantity of the reference files by plain loops over all joint states and actions.
//!
//! Written from the definitions of the file format alone. It shares no code with the library, so that the two
//! can be compared; it is slow and simple on purpose.

mod arithmetic;
mod bounds;
mod model;
mod values;

use serde_json::{Map, Value, json};

use arithmetic::*;
use bounds::*;
use model::*;
use values::*;

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
