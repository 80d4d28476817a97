//! How far a pair (θ, μ) is from a first-order stationary point. Paper: eq:metrics.
//!
//! 𝒳 and 𝒴 are maxima of a linear function over a convex set cut with the unit ball around the point. For
//! boxes and products of simplices the maximiser is the projection of a long enough gradient step, cut where
//! it leaves the ball: exact up to rounding, without an iterative solver.
//!
//! ℰ depends on how utilities are scaled and ignores a violated constraint whose multiplier sits at its upper
//! end (errata 11, 12): report the violation next to it.

use super::decay::last_before;
use crate::Ragged;
use crate::base::elementary::powi;
use crate::policy::{Parameterisation, Policy, Tabular};
use crate::utility::project_onto_simplex;

/// Where θ may lie.
#[derive(Debug, Clone, Copy)]
pub enum Domain<'a> {
    /// Anywhere.
    Everywhere,
    /// Every entry in [low, high].
    Box {
        /// The parameters, shaped like the gradient.
        theta: &'a Ragged<f64>,
        /// Lower end, −∞ allowed.
        low: f64,
        /// Upper end, +∞ allowed.
        high: f64,
    },
    /// θ is the policy itself (direct parameterisation): every local law in its simplex.
    Simplices {
        /// Row i holds agent i's laws, one after the other.
        policy: &'a Ragged<f64>,
        /// |A_i|, the length of agent i's laws.
        actions: &'a [usize],
    },
}

impl<'a> Domain<'a> {
    /// Where the parameters of `policy` may lie: in a box if one is given, in simplices if they are its laws.
    pub fn for_policy(policy: &'a Tabular, theta_box: Option<[f64; 2]>) -> Self {
        match (policy.parameterisation(), theta_box) {
            (Parameterisation::Direct, _) => {
                Domain::Simplices { policy: policy.theta(), actions: policy.action_counts() }
            }
            (Parameterisation::Softmax, Some([low, high])) => {
                Domain::Box { theta: policy.theta(), low, high }
            }
            (Parameterisation::Softmax, None) => Domain::Everywhere,
        }
    }
}

/// The stationarity metrics. Paper: eq:metrics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stationarity {
    /// 𝒳 = max ⟨∇_θ L, θ′ − θ⟩ over θ′ ∈ Θ, ‖θ′ − θ‖ ≤ 1.
    pub x: f64,
    /// 𝒴 = −min ⟨∇_μ L, μ′ − μ⟩ over μ′ ∈ U, ‖μ′ − μ‖ ≤ 1.
    pub y: f64,
    /// ℰ = 𝒳² + 𝒴².
    pub e: f64,
}

impl Stationarity {
    /// The metrics at a point of `domain` with multipliers `mu` in [0, `mu_bar`], which may be infinite.
    ///
    /// `gradient` is ∇_θ L; `slack` holds g_ik, a row per agent, so that ∇_μ L = g/n.
    pub fn new(
        gradient: &Ragged<f64>,
        domain: Domain,
        mu: &Ragged<f64>,
        slack: &Ragged<f64>,
        mu_bar: f64,
    ) -> Self {
        let x = match domain {
            Domain::Everywhere => norm(gradient.data()),
            Domain::Box { theta, low, high } => {
                let lo: Vec<f64> = theta.data().iter().map(|t| low - t).collect();
                let hi: Vec<f64> = theta.data().iter().map(|t| high - t).collect();
                largest_in_box(gradient.data(), &lo, &hi)
            }
            Domain::Simplices { policy, actions } => largest_on_simplices(gradient, policy, actions),
        };
        let n = slack.rows() as f64;
        let descent: Vec<f64> = slack.data().iter().map(|g| -g / n).collect();
        let lo: Vec<f64> = mu.data().iter().map(|mu| -mu).collect();
        let hi: Vec<f64> = mu.data().iter().map(|mu| mu_bar - mu).collect();
        let y = largest_in_box(&descent, &lo, &hi);
        Stationarity { x, y, e: x * x + y * y }
    }
}

/// max ⟨c, d⟩ over lo ≤ d ≤ hi, ‖d‖₂ ≤ 1.
///
/// The box must contain 0; an end on the wrong side of it by rounding counts as 0. Ends may be infinite. NaN
/// or ∞ in `c` gives NaN. Cost: k log k for k entries.
pub fn largest_in_box(c: &[f64], lo: &[f64], hi: &[f64]) -> f64 {
    dot(c, &maximiser_in_box(c, lo, hi))
}

/// d(t) = clip(t·c, lo, hi) for the largest t with ‖d(t)‖ ≤ 1, or the corner that c points to.
///
/// An entry stops at its end when t passes |end / c|. Between two such breakpoints ‖d(t)‖² = stopped +
/// t²·moving.
fn maximiser_in_box(c: &[f64], lo: &[f64], hi: &[f64]) -> Vec<f64> {
    let scale = largest_size(c);
    if !scale.is_finite() {
        return vec![f64::NAN; c.len()];
    }
    let mut d = vec![0.0; c.len()];
    // (breakpoint, entry) of those that move at all. Slopes are divided by the largest: no square overflows.
    let slope = |k: usize| c[k] / scale;
    let end = |k: usize| if c[k] > 0.0 { hi[k].max(0.0) } else { lo[k].min(0.0) };
    let mut order: Vec<(f64, usize)> =
        (0..c.len()).filter(|&k| c[k] != 0.0).map(|k| (end(k) / slope(k), k)).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    // Σ slope² of the entries from each place of the order on. Summed, not subtracted: nothing cancels.
    let mut moving = vec![0.0; order.len() + 1];
    for (place, &(_, k)) in order.iter().enumerate().rev() {
        moving[place] = moving[place + 1] + powi(slope(k), 2);
    }
    let mut stopped = 0.0;
    for (place, &(breakpoint, k)) in order.iter().enumerate() {
        let room = 1.0 - stopped;
        // An infinite end is never reached, whatever rounding makes of the product.
        if breakpoint.is_infinite() || breakpoint * breakpoint * moving[place] >= room {
            let t = if moving[place] > 0.0 { (room / moving[place]).sqrt() } else { 0.0 };
            order[place..].iter().for_each(|&(_, k)| d[k] = t * slope(k));
            break;
        }
        d[k] = end(k);
        stopped += d[k] * d[k];
    }
    d
}

/// max ⟨c, d⟩ over ‖d‖₂ ≤ 1 such that every law of `point` + d is a distribution.
///
/// Row i of `c` and of `point` is a sequence of blocks of `widths[i]` entries; those of `point` are laws. NaN
/// or ∞ in `c` gives NaN. Cost: about sixty projections of the whole table.
pub fn largest_on_simplices(c: &Ragged<f64>, point: &Ragged<f64>, widths: &[usize]) -> f64 {
    let gaps = gaps_to_best(c, widths);
    // d sums to 0 over a block, so ⟨c, d⟩ = ⟨gaps, d⟩, where nothing cancels.
    dot(&gaps, &maximiser_on_simplices(&gaps, point, widths))
}

/// c minus the largest entry of its block. A constant on a block changes no direction, and without it what
/// decides between the best entries stays exact however far the step goes.
fn gaps_to_best(c: &Ragged<f64>, widths: &[usize]) -> Vec<f64> {
    let blocks = c.iter().zip(widths).flat_map(|(row, &width)| row.chunks_exact(width));
    let mut gaps = Vec::with_capacity(c.data().len());
    for block in blocks {
        let best = block.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        gaps.extend(block.iter().map(|c| c - best));
    }
    gaps
}

/// d(t) = Π(point + t·c) − point for the largest t with ‖d(t)‖ ≤ 1, or its limit as t → ∞.
///
/// ‖d(t)‖ never decreases in t. In the limit all mass of a law is on the entries where c is largest.
fn maximiser_on_simplices(gaps: &[f64], point: &Ragged<f64>, widths: &[usize]) -> Vec<f64> {
    let scale = largest_size(gaps);
    if !scale.is_finite() {
        return vec![f64::NAN; gaps.len()];
    }
    // Π(point + t·gaps/scale) − point; t may be infinite.
    let direction = |t: f64| -> Vec<f64> {
        let mut moved = point.clone();
        for (x, gap) in moved.data_mut().iter_mut().zip(gaps) {
            // 0·∞ is no number; the best entries of a block stay where they are.
            if *gap != 0.0 {
                *x += t * (gap / scale);
            }
        }
        for (i, &width) in widths.iter().enumerate() {
            moved.row_mut(i).chunks_exact_mut(width).for_each(|law| project_onto_simplex(law, 1.0));
        }
        moved.data().iter().zip(point.data()).map(|(x, p)| x - p).collect()
    };
    let limit = direction(f64::INFINITY);
    if norm(&limit) <= 1.0 {
        return limit;
    }
    // Π is nonexpansive: ‖d(t)‖ ≤ t ‖gaps / scale‖, and that norm is at least 1.
    let mut low = 1.0 / gaps.iter().map(|gap| powi(gap / scale, 2)).sum::<f64>().sqrt();
    let mut high = 2.0 * low;
    while norm(&direction(high)) < 1.0 && high < f64::MAX / 2.0 {
        (low, high) = (high, 2.0 * high);
    }
    direction(last_before(low, high, |t| norm(&direction(t)) >= 1.0))
}

/// The largest |entry|; NaN if there is one.
fn largest_size(values: &[f64]) -> f64 {
    let larger = |largest: f64, x: f64| if x > largest || x.is_nan() { x } else { largest };
    values.iter().map(|x| x.abs()).fold(0.0, larger)
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    // From +0: the sum of nothing would be −0.
    x.iter().zip(y).fold(0.0, |sum, (a, b)| sum + a * b)
}

fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    const INF: f64 = f64::INFINITY;

    const REFERENCES: [&str; 7] = [
        "line3_entropy",
        "line4_mixed_utilities",
        "ring5_weak",
        "grid2x3",
        "star4_joint_rho",
        "paper_line5",
        "lemma_counterexample",
    ];

    #[test]
    fn boxes_by_hand() {
        // No end in the way: the norm.
        assert!((largest_in_box(&[3.0, -4.0], &[-INF; 2], &[INF; 2]) - 5.0).abs() < 1e-15);
        // The corner (0.3, −0.4) is inside the ball.
        assert!((largest_in_box(&[3.0, -4.0], &[-0.3, -0.4], &[0.3, 9.0]) - 2.5).abs() < 1e-15);
        // The first entry stops at 0.6, the second goes on to the ball at 0.8.
        assert!((largest_in_box(&[5.0, 1.0], &[0.0; 2], &[0.6, INF]) - 3.8).abs() < 1e-14);
        // Entries at their ends do not move outwards; zeros of c stay.
        assert_eq!(largest_in_box(&[1.0, -1.0, 0.0], &[-1.0, 0.0, -INF], &[0.0, 1.0, INF]), 0.0);
        assert_eq!(largest_in_box(&[2.0, 7.0], &[0.0; 2], &[INF, 0.0]), 2.0);
        // Ends on the wrong side by rounding count as 0.
        assert_eq!(largest_in_box(&[1.0, -1.0], &[-1.0, 1e-17], &[-1e-17, 1.0]), 0.0);
        assert_eq!(largest_in_box(&[], &[], &[]), 0.0);
    }

    #[test]
    fn sizes_of_any_order_neither_overflow_nor_hide_nan() {
        let free = |c: &[f64]| largest_in_box(c, &vec![-INF; c.len()], &vec![INF; c.len()]);
        assert!((free(&[3e200, -4e200]) / 5e200 - 1.0).abs() < 1e-15);
        assert!((free(&[3e-200, -4e-200]) / 5e-200 - 1.0).abs() < 1e-15);
        assert!((largest_in_box(&[1.0, 1e-200], &[0.0; 2], &[0.5, INF]) - 0.5).abs() < 1e-15);
        assert!(free(&[1.0, f64::NAN]).is_nan() && free(&[f64::NAN, 0.0]).is_nan() && free(&[INF]).is_nan());
        let laws = Ragged::from_rows([[0.5, 0.5]]);
        assert!(largest_on_simplices(&Ragged::from_rows([[1.0, f64::NAN]]), &laws, &[2]).is_nan());
        let tiny = Ragged::from_rows([[0.0, 1e-300]]);
        assert!((largest_on_simplices(&tiny, &laws, &[2]) / 0.5e-300 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn simplices_by_hand() {
        let laws = |rows: &[[f64; 2]]| Ragged::from_rows([rows.concat()]);
        // One fair coin: all mass to the better side, (−½, ½), is inside the ball.
        let one = largest_on_simplices(&laws(&[[0.0, 2.0]]), &laws(&[[0.5, 0.5]]), &[2]);
        assert!((one - 1.0).abs() < 1e-15);
        // From the wrong corner the ball cuts the edge of length √2.
        let cut = largest_on_simplices(&laws(&[[0.0, 2.0]]), &laws(&[[1.0, 0.0]]), &[2]);
        assert!((cut - 2f64.sqrt()).abs() < 1e-14);
        // At the best corner, and where c is constant, nothing is to be gained.
        assert_eq!(
            largest_on_simplices(&laws(&[[5.0, 5.0], [0.0, 1.0]]), &laws(&[[0.3, 0.7], [0.0, 1.0]]), &[2]),
            0.0
        );
        // Two coins from their wrong corners share the ball as their slopes 3 : 4; ends are not in the way.
        let both =
            largest_on_simplices(&laws(&[[0.0, 3.0], [0.0, 4.0]]), &laws(&[[1.0, 0.0], [1.0, 0.0]]), &[2]);
        assert!((both - 5.0 / 2f64.sqrt()).abs() < 1e-14);
        // A gap of 1e−12 beside one of 1: the path must be followed to t ~ 1e12 before the ball ends it.
        let c = Ragged::from_rows([vec![0.0, 1e-12, 0.0, 1e-12], vec![1.0]]);
        let point = Ragged::from_rows([vec![1.0, 0.0, 1.0, 0.0], vec![1.0]]);
        let close = largest_on_simplices(&c, &point, &[2, 1]);
        assert!((close / 1e-12 - 1.0).abs() < 1e-12);
    }

    /// Numbers a search may move to, among them the ends.
    fn any_interval() -> impl Strategy<Value = (f64, f64)> {
        let width = || prop_oneof![Just(0.0), Just(INF), 0.0..0.5f64, 0.0..2.0f64];
        (width(), width()).prop_map(|(below, above)| (-below, above))
    }

    fn any_slope() -> impl Strategy<Value = f64> {
        prop_oneof![Just(0.0), -1.0..1.0f64, -1e-6..1e-6f64]
    }

    proptest! {
        #[test]
        fn box_maximiser_is_feasible_and_no_direction_beats_it(
            entries in prop::collection::vec((any_slope(), any_interval()), 1..12),
            trials in prop::collection::vec(prop::collection::vec(-1.0..1.0f64, 12), 30),
            size in prop_oneof![0.01..1.0f64, 1.0..30.0f64],
        ) {
            let c: Vec<f64> = entries.iter().map(|entry| entry.0).collect();
            let (lo, hi): (Vec<f64>, Vec<f64>) = entries.iter().map(|entry| entry.1).unzip();
            let best = largest_in_box(&c, &lo, &hi);
            let d = maximiser_in_box(&c, &lo, &hi);
            prop_assert!(norm(&d) <= 1.0 + 1e-14);
            for k in 0..c.len() {
                prop_assert!(lo[k] <= d[k] && d[k] <= hi[k]);
            }
            for trial in &trials {
                // Towards c from a random direction, back into the box, then into the ball, which keeps the
                // box.
                let mut d: Vec<f64> = (0..c.len())
                    .map(|k| (size * (trial[k] + c[k])).clamp(lo[k], hi[k]))
                    .collect();
                let length = norm(&d).max(1.0);
                d.iter_mut().for_each(|d| *d /= length);
                prop_assert!(dot(&c, &d) <= best + 1e-14);
            }
        }

        #[test]
        fn simplex_maximiser_is_feasible_and_no_direction_beats_it(
            widths in prop::collection::vec(1..5usize, 1..4),
            slopes in prop::collection::vec(any_slope(), 36),
            weights in prop::collection::vec(prop_oneof![Just(0.0), 0.0..1.0f64], 36),
            trials in prop::collection::vec(prop::collection::vec(-1.0..1.0f64, 36), 20),
            size in prop_oneof![0.01..1.0f64, 1.0..30.0f64],
        ) {
            // Three laws per agent, entries at 0 among them.
            let cut = |values: &[f64]| {
                let mut rest = values.iter().copied();
                Ragged::from_rows(widths.iter().map(|width| rest.by_ref().take(3 * width).collect::<Vec<_>>()))
            };
            let project = |table: &mut Ragged<f64>| {
                for (i, &width) in widths.iter().enumerate() {
                    table.row_mut(i).chunks_exact_mut(width).for_each(|law| project_onto_simplex(law, 1.0));
                }
            };
            let (c, mut point) = (cut(&slopes), cut(&weights));
            project(&mut point);
            let best = largest_on_simplices(&c, &point, &widths);
            let d = maximiser_on_simplices(&gaps_to_best(&c, &widths), &point, &widths);
            prop_assert!(norm(&d) <= 1.0 + 1e-14);
            prop_assert!((dot(c.data(), &d) - best).abs() <= 1e-13);
            let mut moved = point.clone();
            moved.data_mut().iter_mut().zip(&d).for_each(|(p, d)| *p += d);
            for (row, &width) in moved.iter().zip(&widths) {
                for law in row.chunks_exact(width) {
                    prop_assert!(law.iter().all(|p| *p >= 0.0));
                    prop_assert!((law.iter().sum::<f64>() - 1.0).abs() <= 1e-13);
                }
            }
            for trial in &trials {
                let mut there = cut(trial);
                for ((there, c), p) in there.data_mut().iter_mut().zip(c.data()).zip(point.data()) {
                    *there = p + size * (*there + c);
                }
                project(&mut there);
                let d: Vec<f64> = there.data().iter().zip(point.data()).map(|(there, p)| there - p).collect();
                prop_assert!(dot(c.data(), &d) / norm(&d).max(1.0) <= best + 1e-13);
            }
        }

        /// A point inside all ends within reach of the ball is as good as free.
        #[test]
        fn far_ends_do_not_matter(c in prop::collection::vec(any_slope(), 1..12)) {
            let free = largest_in_box(&c, &vec![-1.0; c.len()], &vec![1.0; c.len()]);
            prop_assert!((free - norm(&c)).abs() <= 1e-14);
        }
    }

    #[test]
    fn a_violated_constraint_at_mu_bar_is_ignored() {
        // Errata 11: g < 0 pushes μ up, but there is no room; the second pushes down from ½.
        let (mu, slack) = (Ragged::from_rows([[5.0], [0.5]]), Ragged::from_rows([[-1.0], [2.0]]));
        let nothing = Ragged::from_rows([vec![0.0], vec![]]);
        let at_end = Stationarity::new(&nothing, Domain::Everywhere, &mu, &slack, 5.0);
        assert_eq!(at_end, Stationarity { x: 0.0, y: 0.5, e: 0.25 });
        // Without an upper end: slopes ½ and 1 (down), the latter stops at ½.
        let free = Stationarity::new(&nothing, Domain::Everywhere, &mu, &slack, INF);
        assert!((free.y - (0.5 * 0.75f64.sqrt() + 0.5)).abs() < 1e-15);
    }

    fn rows(value: &Value) -> Ragged<f64> {
        let row =
            |row: &Value| row.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect::<Vec<_>>();
        Ragged::from_rows(value.as_array().unwrap().iter().map(row))
    }

    /// The metrics of the reference files, computed by enumeration in another language.
    #[test]
    fn reference_metrics() {
        for name in REFERENCES {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/").to_owned() + name + ".json";
            let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
            let (input, output) = (&file["input"], &file["output"]);
            let (mu, slack) = (rows(&input["mu"]), rows(&output["g"]));
            let mu_bar = input["mu_bar"].as_f64().unwrap();
            let actions: Vec<usize> = input["model"]["action_sizes"]
                .as_array()
                .unwrap()
                .iter()
                .map(|size| size.as_u64().unwrap() as usize)
                .collect();
            let (theta, policy) = (rows(&input["theta"]), rows(&output["policy"]));
            let [low, high] = [0, 1].map(|end| input["box"][end].as_f64().unwrap());
            let at = |gradient: &str, domain| {
                Stationarity::new(&rows(&output[gradient]), domain, &mu, &slack, mu_bar)
            };
            let free = at("grad_true", Domain::Everywhere);
            let boxed = at("grad_true", Domain::Box { theta: &theta, low, high });
            let direct = at("grad_direct_true", Domain::Simplices { policy: &policy, actions: &actions });
            for (key, found) in [
                ("X", free.x),
                ("X_box", boxed.x),
                ("X_simplex", direct.x),
                ("Y", free.y),
                ("E", free.e),
                ("E_box", boxed.e),
                ("E_simplex", direct.e),
            ] {
                let expected = output["metrics"][key].as_f64().unwrap();
                let error = (found - expected).abs();
                assert!(error <= 1e-9 * (1.0 + expected.abs()), "{name} {key}: {found}, not {expected}");
            }
        }
    }
}
