//! Generalised advantage estimation.

/// Â_k = Σ_{l ≥ k} (γλ)^{l−k}·δ_l along an episode, with δ_k = r_k + γ·V_{k+1} − V_k; written over `out`.
/// `bootstrap` is the value after the last step: 0 if the episode ended there.
///
/// Literature: Schulman and others, "High-dimensional continuous control using generalized advantage
/// estimation", ICLR 2016.
pub fn advantages(rewards: &[f64], values: &[f64], bootstrap: f64, gamma: f64, lambda: f64, out: &mut [f64]) {
    let (mut next, mut advantage) = (bootstrap, 0.0);
    for ((out, r), &value) in out.iter_mut().zip(rewards).zip(values).rev() {
        advantage = r + gamma * next - value + gamma * lambda * advantage;
        *out = advantage;
        next = value;
    }
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
}
