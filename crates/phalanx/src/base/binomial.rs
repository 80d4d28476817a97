//! What k events in n independent episodes say of their probability: exact bounds for a number of episodes
//! that was fixed beforehand, and bounds that hold at every number at once.

use crate::base::beta::{bisect, ln_beta, regularised_beta};
use crate::base::elementary::{exp_m1, ln, ln_1p};

/// The smallest p that k events or more in n trials contradict with an error of `miss`: a one-sided lower
/// bound (Clopper and Pearson, Biometrika 26, 1934).
pub fn lower_bound(k: u64, n: u64, miss: f64) -> f64 {
    if k == 0 { 0.0 } else { 1.0 - upper_bound(n - k, n, miss) }
}

/// The largest p at which k events or fewer in n trials have a probability of `miss` at least: a one-sided
/// upper bound (Clopper and Pearson). With k = 0 it is 1 − miss^(1/n).
pub fn upper_bound(k: u64, n: u64, miss: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    if k == 0 {
        // Without cancellation where the bound is tiny.
        return -exp_m1(ln(miss) / n as f64);
    }
    // P(Bin(n, p) ≤ k) = 1 − I_p(k + 1, n − k), which falls in p.
    bisect(|p| regularised_beta(k as f64 + 1.0, (n - k) as f64, p) < 1.0 - miss, k as f64 / n as f64, 1.0)
}

/// As [`lower_bound`] and [`upper_bound`], both with half the error.
pub fn interval(k: u64, n: u64, miss: f64) -> [f64; 2] {
    [lower_bound(k, n, miss / 2.0), upper_bound(k, n, miss / 2.0)]
}

/// A one-sided upper bound that holds at every n at once with an error of `miss`: one may look after every
/// episode and stop when one likes.
///
/// The likelihood of p < q against q, mixed over Beta(½, ½) cut at q, is a supermartingale under every
/// probability from q on, so that it exceeds 1/miss with probability `miss` at most (Ville). The bound is the
/// smallest q that is excluded. Literature: Robbins, "Statistical methods related to the law of the iterated
/// logarithm", Annals of Mathematical Statistics 41, 1970.
pub fn sequential_upper_bound(k: u64, n: u64, miss: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    bisect(|q| log_evidence_below(k as f64, n as f64, q) < -ln(miss), k as f64 / n as f64, 1.0)
}

/// The lower bound that belongs to [`sequential_upper_bound`].
pub fn sequential_lower_bound(k: u64, n: u64, miss: f64) -> f64 {
    1.0 - sequential_upper_bound(n - k, n, miss)
}

/// As [`interval`], at every n at once.
pub fn sequential_interval(k: u64, n: u64, miss: f64) -> [f64; 2] {
    [sequential_lower_bound(k, n, miss / 2.0), sequential_upper_bound(k, n, miss / 2.0)]
}

/// ln of the mixed likelihood ratio of probabilities below q against q itself.
fn log_evidence_below(k: f64, n: f64, q: f64) -> f64 {
    const PRIOR: f64 = 0.5;
    let (a, b) = (k + PRIOR, n - k + PRIOR);
    let below = |a: f64, b: f64| ln(regularised_beta(a, b, q).max(f64::MIN_POSITIVE)) + ln_beta(a, b);
    below(a, b) - below(PRIOR, PRIOR) - k * ln(q) - (n - k) * ln_1p(-q)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::stream::{Place, Purpose, Stream};

    #[test]
    fn published_bounds() {
        // Of Clopper and Pearson's intervals, and of the rule of three.
        for (k, n, miss, wanted) in [
            (0, 50, 0.05, 0.0582),
            (0, 300, 0.05, 0.00994),
            (0, 1000, 0.05, 0.002991),
            (0, 1000, 0.01, 0.004595),
            (0, 459, 0.01, 0.00998),
            (1, 662, 0.01, 0.00999),
            (2, 838, 0.01, 0.01000),
            (3, 1001, 0.01, 0.00999),
            (8, 50, 0.025, 0.2911),
            (50, 50, 0.025, 1.0),
        ] {
            let found = upper_bound(k, n, miss);
            assert!((found - wanted).abs() < 1e-2 * wanted, "{k} of {n}: {found}");
        }
        for (k, n, wanted) in [(50, 50, 0.9289), (23, 50, 0.3181), (8, 50, 0.0717), (0, 50, 0.0)] {
            assert!((lower_bound(k, n, 0.025) - wanted).abs() < 1e-4);
        }
    }

    #[test]
    fn bounds_are_where_the_law_says() {
        // P(Bin(20, p) ≤ 3), added up.
        let p = upper_bound(3, 20, 0.05);
        let term = |k: i32, choose: f64| choose * p.powi(k) * (1.0 - p).powi(20 - k);
        let law = term(0, 1.0) + term(1, 20.0) + term(2, 190.0) + term(3, 1140.0);
        assert!((law - 0.05).abs() < 1e-12, "{law}");
        assert!((upper_bound(1, 2, 0.19) - 0.9).abs() < 1e-12);
    }

    /// How often the sequential bounds exclude the truth at any of 1,000 looks: at most the error.
    #[test]
    fn sequential_bounds_hold_at_every_look() {
        let (repetitions, trials) = (2_000, 400);
        for (p, miss) in [(0.01, 0.1), (0.3, 0.05)] {
            let mut wrong = [0; 2];
            for repetition in 0..repetitions {
                let place = Place { purpose: Purpose::Evaluation, iteration: repetition, trajectory: 0 };
                let mut sequence = Stream::new(7).sequence(place, 0);
                let (mut k, mut excluded) = (0, [false; 2]);
                for n in 1..=trials {
                    k += u64::from(sequence.uniform() < p);
                    // Evidence alone is quicker than the bound.
                    let evidence = log_evidence_below(k as f64, n as f64, p);
                    let above = log_evidence_below((n - k) as f64, n as f64, 1.0 - p);
                    excluded[0] |= evidence >= -f64::ln(miss);
                    excluded[1] |= above >= -f64::ln(miss);
                }
                wrong[0] += usize::from(excluded[0]);
                wrong[1] += usize::from(excluded[1]);
            }
            let most = miss * f64::from(repetitions) + 3.0 * (miss * f64::from(repetitions)).sqrt();
            assert!(wrong.iter().all(|&wrong| (wrong as f64) < most), "{p}: {wrong:?} of {most}");
        }
    }

    #[test]
    fn sequential_bounds_cost_little() {
        let needed = (1..).find(|&n| sequential_upper_bound(0, n, 0.01) <= 0.01).unwrap();
        assert!((459..620).contains(&needed), "{needed}");
        let [low, high] = sequential_interval(30, 100, 0.05);
        assert!(low < 0.3 && 0.3 < high && high - low < 0.32, "{low} {high}");
        assert_eq!(sequential_interval(0, 10, 0.05)[0], 0.0);
    }
}
