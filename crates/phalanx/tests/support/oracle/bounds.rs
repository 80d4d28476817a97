//! Distances from stationarity, and the bounds of the paper.

use super::*;

/// The root of an increasing function, between `lo` where it is below 0 and `hi` where it is not.
pub fn bisect(mut lo: f64, mut hi: f64, increasing: impl Fn(f64) -> f64) -> f64 {
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
pub fn maximise_in_box(c: &[f64], lo: &[f64], hi: &[f64]) -> f64 {
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

pub fn box_measure(theta: &Matrix, gradient: &Matrix, bounds: [f64; 2]) -> f64 {
    let theta = theta.concat();
    let lo: Vec<f64> = theta.iter().map(|x| bounds[0] - x).collect();
    let hi: Vec<f64> = theta.iter().map(|x| bounds[1] - x).collect();
    maximise_in_box(&gradient.concat(), &lo, &hi)
}

pub fn dual_measure(n: usize, mu: &Matrix, g: &Matrix, mu_bar: f64) -> f64 {
    let mu = mu.concat();
    let c: Vec<f64> = g.concat().iter().map(|g| -g / n as f64).collect();
    let lo: Vec<f64> = mu.iter().map(|x| -x).collect();
    let hi: Vec<f64> = mu.iter().map(|x| mu_bar - x).collect();
    maximise_in_box(&c, &lo, &hi)
}

/// The nearest point of the simplex: `max(v - tau, 0)` with the `tau` that makes the sum 1.
pub fn project_on_simplex(v: &[f64]) -> Vec<f64> {
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
pub fn simplex_measure(model: &Model, policy: &Matrix, gradient: &Matrix) -> f64 {
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
pub fn influence(model: &Model) -> Matrix {
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

pub enum Supremum {
    /// The assumption fails.
    None,
    Finite(f64),
    Infinite,
}

pub struct Decay {
    pub gamma: f64,
    /// `(distance, M_ij)` of the entries that are not 0, for every i.
    pub rows: Vec<Vec<(f64, f64)>>,
    pub supremum: Supremum,
}

impl Decay {
    pub fn new(model: &Model, m: &Matrix) -> Decay {
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
    pub fn chi(&self, w: f64) -> (f64, f64) {
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

    pub fn c0(&self, w: f64, m_r: f64) -> f64 {
        let chi = self.chi(w).0;
        2.0 * self.gamma * chi * m_r / (2.0 - self.gamma * chi)
    }

    pub fn omega(&self) -> Option<f64> {
        match self.supremum {
            Supremum::Finite(sup) => Some(sup / 2.0),
            _ => None,
        }
    }

    pub fn report(&self, model: &Model, m: &Matrix, m_r: f64, mu: &Matrix, kappa_q: i64) -> Value {
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
                // The logarithm of c0 phi0^kappa_q is convex: its slope, here times a positive factor,
                // changes sign at most once in [0, sup).
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
pub fn spectral_radius(a: &Matrix) -> f64 {
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
pub fn closed_loop(
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
                // Outside the neighbourhood k differs from i, so (I - gamma C)^{-1} - I is the inverse itself
                // there.
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

pub struct Constants {
    pub m_r_inf: f64,
    pub m_r_2: f64,
    pub l_lambda: f64,
}

impl Constants {
    /// Nothing when some utility has no uniform bound.
    pub fn new(model: &Model) -> Option<Constants> {
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

    pub fn report(&self, model: &Model, mu_bar: f64, eta_mu: f64) -> Value {
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
