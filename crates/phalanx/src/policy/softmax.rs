//! Soft-max laws, and the slopes of their entropy in the logits.

/// Replaces a row of logits by its soft-max.
pub(crate) fn softmax(row: &mut [f64]) {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut total = 0.0;
    for x in row.iter_mut() {
        *x = (*x - largest).exp();
        total += *x;
    }
    row.iter_mut().for_each(|x| *x /= total);
}

/// ∂ log π(`action`)/∂ logit of b: 1[b = `action`] − π(b).
pub(crate) fn score(b: usize, action: u8, p: f64) -> f64 {
    f64::from(u8::from(b == usize::from(action))) - p
}

/// Slopes of `bonus`·entropy(π) in the logits, −`bonus`·π(b)·(ln π(b) + entropy), written over `out`. Returns the entropy.
pub(crate) fn entropy_slopes(law: &[f64], bonus: f64, out: &mut Vec<f64>) -> f64 {
    // A probability may have underflowed to 0.
    out.clear();
    out.extend(law.iter().map(|p| p.max(f64::MIN_POSITIVE).ln()));
    let entropy = -law.iter().zip(&*out).map(|(p, ln)| p * ln).sum::<f64>();
    out.iter_mut().zip(law).for_each(|(ln, p)| *ln = -bonus * p * (*ln + entropy));
    entropy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_finite_differences() {
        let logits = [0.3, -0.7, 1.1];
        let at = |logits: [f64; 3], slopes: &mut Vec<f64>| {
            let mut law = logits;
            softmax(&mut law);
            (law, entropy_slopes(&law, 2.0, slopes))
        };
        let (mut slopes, mut other) = (Vec::new(), Vec::new());
        let (law, _) = at(logits, &mut slopes);
        for b in 0..3 {
            let mut moved = |h: f64| {
                let mut logits = logits;
                logits[b] += h;
                at(logits, &mut other)
            };
            let ((up, entropy_up), (down, entropy_down)) = (moved(1e-5), moved(-1e-5));
            assert!((slopes[b] - 2.0 * (entropy_up - entropy_down) / 2e-5).abs() < 1e-8);
            assert!((score(b, 2, law[b]) - (up[2].ln() - down[2].ln()) / 2e-5).abs() < 1e-8);
        }
        assert_eq!(entropy_slopes(&[1.0, 0.0], 1.0, &mut slopes), 0.0);
        assert!(slopes.iter().all(|slope| *slope == 0.0));
    }
}
