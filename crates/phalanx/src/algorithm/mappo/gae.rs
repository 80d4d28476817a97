//! Generalised advantage estimation.

/// Â_k = Σ_{l ≥ k} (γλ)^{l−k}·δ_l along an episode, with δ_k = r_k + γ·V_{k+1} − V_k; written over `out`. `behind` is the value
/// after the last step: 0 if the episode ended there.
///
/// Literature: Schulman and others, "High-dimensional continuous control using generalized advantage estimation", ICLR 2016.
pub fn advantages(rewards: &[f64], values: &[f64], behind: f64, gamma: f64, lambda: f64, out: &mut [f64]) {
    let (mut next, mut advantage) = (behind, 0.0);
    for ((out, r), &value) in out.iter_mut().zip(rewards).zip(values).rev() {
        advantage = r + gamma * next - value + gamma * lambda * advantage;
        *out = advantage;
        next = value;
    }
}

/// Shifts and scales numbers to mean 0 and standard deviation 1 (a little less, by `epsilon`).
pub fn standardise(numbers: &mut [f64], epsilon: f64) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    let scale = 1.0 / (variance.sqrt() + epsilon);
    numbers.iter_mut().for_each(|x| *x = (*x - mean) * scale);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_steps_by_hand() {
        let (rewards, values) = ([1.0, 0.0, 2.0], [0.5, 1.0, -1.0]);
        let mut out = [f64::NAN; 3];
        // Ended: δ = 1 + .5·1 − .5, 0 + .5·(−1) − 1, 2 + 0 + 1 = 1, −1.5, 3.
        advantages(&rewards, &values, 0.0, 0.5, 0.5, &mut out);
        assert_eq!(out, [1.0 + 0.25 * (-1.5 + 0.25 * 3.0), -1.5 + 0.25 * 3.0, 3.0]);
        // Cut before a state of value 4: the last δ is 2 more.
        advantages(&rewards, &values, 4.0, 0.5, 0.5, &mut out);
        assert_eq!(out[2], 5.0);
        // λ = 0 is the temporal difference, λ = 1 the return minus the value.
        advantages(&rewards, &values, 0.0, 0.5, 0.0, &mut out);
        assert_eq!(out, [1.0, -1.5, 3.0]);
        advantages(&rewards, &values, 0.0, 0.5, 1.0, &mut out);
        assert_eq!(out, [1.0 + 0.25 * 2.0 - 0.5, 0.5 * 2.0 - 1.0, 2.0 + 1.0]);
    }

    #[test]
    fn standardised_numbers_by_hand() {
        let mut numbers = [1.0, 3.0, 5.0, 7.0];
        standardise(&mut numbers, 0.0);
        let unit = 5.0f64.sqrt();
        assert_eq!(numbers.map(|x| (x * unit * 1e12).round()), [-3e12, -1e12, 1e12, 3e12]);
        // Numbers that do not differ become 0.
        let mut equal = [2.0; 3];
        standardise(&mut equal, 1e-5);
        assert_eq!(equal, [0.0; 3]);
    }
}
