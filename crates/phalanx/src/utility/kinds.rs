//! The utilities that come with the library: formulas and gradients.

use std::sync::Arc;

use super::{LocalSpace, Utility};

/// Logarithms are taken of max(x, `LOG_FLOOR`): the gradient of an entropy is unbounded where an occupancy
/// vanishes (errata 8), and states that a batch of trajectories never visited do have occupancy 0.
pub const LOG_FLOOR: f64 = 1e-12;

/// How a distance D enters a utility.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// −D: in the units of the occupancy, but with a kink at the boundary of the set (errata 8).
    One,
    /// −D²/2: smooth.
    Two,
}

/// The base function of a utility, before scale and offset. Below, λ is the occupancy measure of one agent
/// and q = 1−γ; tables have the layout of λ and are shared, so that many agents can use one.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// ⟨r, λ⟩, the discounted return of reward r; gradient r. Paper: eq:cmdp-LP.
    Linear {
        /// Reward per (state, action).
        r: Arc<[f64]>,
    },
    /// −Σ_s d_s ln d_s with d_s = q Σ_a λ(s, a); gradient −q (ln d_s + 1). Paper: exp:entropy. The "entropy
    /// of λ_i" of the paper's experiments is this one, of states only (errata 23).
    StateEntropy,
    /// −Σ p ln p with p = q λ, the entropy of (state, action) pairs; gradient −q (ln p + 1). What the
    /// notation Entropy(λ_i) of the paper's experiments suggests, but not what it means there (errata 23).
    SaEntropy,
    /// −Σ_a d_a ln d_a with d_a = q Σ_s λ(s, a), the entropy of actions; gradient −q (ln d_a + 1). Paper:
    /// subsec: benefits_general, the requirement that is set against the entropy penalty.
    ActionEntropy,
    /// ‖Σ_s λ(s, ·)‖², large for agents that keep to one action; gradient 2 Σ_s λ(s, a). Paper:
    /// sec:numerical_exp, ℓ₂-constraints, whose normalised form is `scale` = q²/2, with values between
    /// 1/(2|A|) and 1/2 (errata 10, 23). Convex, and stationary at a uniform action marginal: start from an
    /// asymmetric policy (errata 10).
    ActionL2sq,
    /// (q²/2)·‖Σ_s λ(s, ·)‖² over the actions from `from` on: the normalised form of [`Kind::ActionL2sq`], with values
    /// between 1/(2|A|) and 1/2 (errata 23). `from` = 1 leaves action 0 out: the authors' code sets the occupancy of
    /// doing nothing to 0 before it takes the norm.
    ActionL2 {
        /// First action that counts.
        from: usize,
    },
    /// The discounted total of a reward channel that is recorded while simulating, which stands behind the cells of
    /// an occupancy row; for rewards that depend on neighbours (errata 24).
    Channel {
        /// Number among the sampled channels.
        place: usize,
        /// Smallest and largest reward of a step.
        range: [f64; 2],
    },
    /// ‖λ‖² of the whole table, the other reading of the paper's ℓ₂-constraints (errata 23); gradient 2 λ.
    L2sq,
    /// −‖λ − expert‖₂; gradient −(λ − expert)/‖λ − expert‖₂, and 0 at the expert. Paper: sec:example,
    /// safety-aware apprenticeship learning. Not smooth at the expert (errata 8).
    NegL2Expert {
        /// Occupancy measure to imitate.
        expert: Arc<[f64]>,
    },
    /// −‖λ − expert‖₂²; gradient −2 (λ − expert). The smooth variant of [`Kind::NegL2Expert`] (errata 8).
    NegL2sqExpert {
        /// Occupancy measure to imitate.
        expert: Arc<[f64]>,
    },
    /// −Σ p ln(p/e) with p = q λ and e = q expert; gradient −q (ln(p/e) + 1). Paper: sec:example,
    /// safety-aware apprenticeship learning. Both p and e are floored inside the logarithm ([`LOG_FLOOR`]),
    /// so that a cell the expert never visits is very costly instead of infinitely so.
    NegKlExpert {
        /// Occupancy measure to imitate, nonnegative.
        expert: Arc<[f64]>,
    },
    /// Minus the Euclidean distance D (see [`Power`]) to the box lo ≤ λ ≤ hi; gradient −(λ − Πλ)/D, 0 inside
    /// (power 1), or −(λ − Πλ) (power 2), Π the projection onto the box. Paper: exp:feasibility.
    NegDistBox {
        /// Lower ends, −∞ allowed.
        lo: Arc<[f64]>,
        /// Upper ends, +∞ allowed.
        hi: Arc<[f64]>,
        /// −D or −D²/2.
        power: Power,
    },
    /// The same for the halfspace ⟨a, λ⟩ ≤ b. Paper: exp:feasibility.
    NegDistHalfspace {
        /// Normal vector, not 0.
        a: Arc<[f64]>,
        /// Right-hand side.
        b: f64,
        /// −D or −D²/2.
        power: Power,
    },
    /// The same for the ball ‖λ − center‖₂ ≤ radius. Paper: exp:feasibility.
    NegDistBall {
        /// Centre, e.g. the occupancy measure of a known safe policy.
        center: Arc<[f64]>,
        /// Radius ≥ 0.
        radius: f64,
        /// −D or −D²/2.
        power: Power,
    },
    /// A utility written in Rust.
    Custom(Arc<dyn Utility>),
}

impl Kind {
    /// The name in model files; `custom` for [`Kind::Custom`], which has no form there.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Linear { .. } => "linear",
            Kind::StateEntropy => "state_entropy",
            Kind::SaEntropy => "sa_entropy",
            Kind::ActionEntropy => "action_entropy",
            Kind::ActionL2sq => "action_l2sq",
            Kind::ActionL2 { from: 0 } => "action_l2",
            Kind::ActionL2 { .. } => "active_l2",
            Kind::Channel { .. } => "return",
            Kind::L2sq => "l2sq",
            Kind::NegL2Expert { .. } => "neg_l2_expert",
            Kind::NegL2sqExpert { .. } => "neg_l2sq_expert",
            Kind::NegKlExpert { .. } => "neg_kl_expert",
            Kind::NegDistBox { .. } => "neg_dist_box",
            Kind::NegDistHalfspace { .. } => "neg_dist_halfspace",
            Kind::NegDistBall { .. } => "neg_dist_ball",
            Kind::Custom(_) => "custom",
        }
    }
}

impl Utility for Kind {
    fn value(&self, occupancy: &[f64], space: LocalSpace) -> f64 {
        let (occupancy, channels) = occupancy.split_at(space.cells());
        let q = 1.0 - space.gamma;
        match self {
            Kind::Channel { place, .. } => channels[*place],
            Kind::ActionL2 { from } => {
                let marginal = |action: usize| q * action_marginal(occupancy, action, space.actions);
                (*from..space.actions).map(|action| 0.5 * marginal(action).powi(2)).sum()
            }
            Kind::Linear { r } => dot(r, occupancy),
            Kind::StateEntropy => occupancy
                .chunks_exact(space.actions)
                .map(|row| entropy_term(q * row.iter().sum::<f64>()))
                .sum(),
            Kind::SaEntropy => occupancy.iter().map(|x| entropy_term(q * x)).sum(),
            Kind::ActionEntropy => (0..space.actions)
                .map(|action| entropy_term(q * action_marginal(occupancy, action, space.actions)))
                .sum(),
            Kind::ActionL2sq => (0..space.actions)
                .map(|action| action_marginal(occupancy, action, space.actions).powi(2))
                .sum(),
            Kind::L2sq => dot(occupancy, occupancy),
            Kind::NegL2Expert { expert } => -squared_distance(occupancy, expert).sqrt(),
            Kind::NegL2sqExpert { expert } => -squared_distance(occupancy, expert),
            Kind::NegKlExpert { expert } => {
                -occupancy.iter().zip(&**expert).map(|(x, e)| q * x * log_ratio(q * x, q * e)).sum::<f64>()
            }
            Kind::NegDistBox { lo, hi, power } => {
                let squared: f64 = (0..occupancy.len())
                    .map(|cell| box_residual(occupancy[cell], lo[cell], hi[cell]).powi(2))
                    .sum();
                of_distance(squared.sqrt(), *power)
            }
            Kind::NegDistHalfspace { a, b, power } => {
                of_distance(excess(dot(a, occupancy), *b) / dot(a, a).sqrt(), *power)
            }
            Kind::NegDistBall { center, radius, power } => {
                of_distance(excess(squared_distance(occupancy, center).sqrt(), *radius), *power)
            }
            Kind::Custom(utility) => utility.value(occupancy, space),
        }
    }

    fn gradient(&self, occupancy: &[f64], space: LocalSpace, out: &mut [f64]) {
        let (occupancy, _) = occupancy.split_at(space.cells());
        let (out, channels) = out.split_at_mut(space.cells());
        channels.fill(0.0);
        let q = 1.0 - space.gamma;
        match self {
            Kind::Channel { place, .. } => {
                out.fill(0.0);
                channels[*place] = 1.0;
            }
            Kind::ActionL2 { from } => {
                for action in 0..space.actions {
                    let marginal = action_marginal(occupancy, action, space.actions);
                    let value = if action < *from { 0.0 } else { q * q * marginal };
                    out[action..].iter_mut().step_by(space.actions).for_each(|slope| *slope = value);
                }
            }
            Kind::Linear { r } => out.copy_from_slice(r),
            Kind::StateEntropy => {
                let rows = occupancy.chunks_exact(space.actions).zip(out.chunks_exact_mut(space.actions));
                for (row, slopes) in rows {
                    slopes.fill(-q * (floored(q * row.iter().sum::<f64>()).ln() + 1.0));
                }
            }
            Kind::SaEntropy => {
                for (slope, x) in out.iter_mut().zip(occupancy) {
                    *slope = -q * (floored(q * x).ln() + 1.0);
                }
            }
            Kind::ActionEntropy => {
                for action in 0..space.actions {
                    let marginal = q * action_marginal(occupancy, action, space.actions);
                    let value = -q * (floored(marginal).ln() + 1.0);
                    out[action..].iter_mut().step_by(space.actions).for_each(|slope| *slope = value);
                }
            }
            Kind::ActionL2sq => {
                for action in 0..space.actions {
                    let marginal = action_marginal(occupancy, action, space.actions);
                    out[action..].iter_mut().step_by(space.actions).for_each(|slope| *slope = 2.0 * marginal);
                }
            }
            Kind::L2sq => {
                for (slope, x) in out.iter_mut().zip(occupancy) {
                    *slope = 2.0 * x;
                }
            }
            Kind::NegL2Expert { expert } => {
                write_difference(occupancy, expert, out);
                residual_to_slope(out, Power::One);
            }
            Kind::NegL2sqExpert { expert } => {
                write_difference(occupancy, expert, out);
                out.iter_mut().for_each(|slope| *slope *= -2.0);
            }
            Kind::NegKlExpert { expert } => {
                for ((slope, x), e) in out.iter_mut().zip(occupancy).zip(&**expert) {
                    *slope = -q * (log_ratio(q * x, q * e) + 1.0);
                }
            }
            Kind::NegDistBox { lo, hi, power } => {
                for (cell, slope) in out.iter_mut().enumerate() {
                    *slope = box_residual(occupancy[cell], lo[cell], hi[cell]);
                }
                residual_to_slope(out, *power);
            }
            Kind::NegDistHalfspace { a, b, power } => {
                let along_normal = excess(dot(a, occupancy), *b) / dot(a, a);
                for (slope, normal) in out.iter_mut().zip(&**a) {
                    *slope = along_normal * normal;
                }
                residual_to_slope(out, *power);
            }
            Kind::NegDistBall { center, radius, power } => {
                write_difference(occupancy, center, out);
                let from_center = dot(out, out).sqrt();
                let outside = excess(from_center, *radius);
                let share = if outside == 0.0 { 0.0 } else { outside / from_center };
                out.iter_mut().for_each(|slope| *slope *= share);
                residual_to_slope(out, *power);
            }
            Kind::Custom(utility) => utility.gradient(occupancy, space, out),
        }
    }

    fn range(&self, space: LocalSpace, mass: f64) -> Option<(f64, f64)> {
        super::range::range(self, space, mass)
    }
}

/// Σ_s λ(s, action).
fn action_marginal(occupancy: &[f64], action: usize, actions: usize) -> f64 {
    occupancy[action..].iter().step_by(actions).sum()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    debug_assert_eq!(x.len(), y.len());
    x.iter().zip(y).map(|(a, b)| a * b).sum()
}

fn squared_distance(x: &[f64], y: &[f64]) -> f64 {
    debug_assert_eq!(x.len(), y.len());
    x.iter().zip(y).map(|(a, b)| (a - b).powi(2)).sum()
}

fn write_difference(x: &[f64], y: &[f64], out: &mut [f64]) {
    for ((difference, a), b) in out.iter_mut().zip(x).zip(y) {
        *difference = a - b;
    }
}

fn floored(x: f64) -> f64 {
    // Not `f64::max`, which would turn a NaN into the floor and hide that training diverged.
    if x < LOG_FLOOR { LOG_FLOOR } else { x }
}

/// −x ln x.
fn entropy_term(x: f64) -> f64 {
    -x * floored(x).ln()
}

/// ln(p/e).
fn log_ratio(p: f64, e: f64) -> f64 {
    (floored(p) / floored(e)).ln()
}

/// How far `x` is beyond `bound`; NaN stays NaN.
fn excess(x: f64, bound: f64) -> f64 {
    if x <= bound { 0.0 } else { x - bound }
}

/// `x` minus its projection onto [lo, hi]; NaN stays NaN.
pub(super) fn box_residual(x: f64, lo: f64, hi: f64) -> f64 {
    if x < lo { x - lo } else { excess(x, hi) }
}

fn of_distance(distance: f64, power: Power) -> f64 {
    match power {
        Power::One => -distance,
        Power::Two => -0.5 * distance * distance,
    }
}

/// From λ − Πλ, with Π the projection onto a convex set, to the gradient of minus the distance to that set.
fn residual_to_slope(residual: &mut [f64], power: Power) {
    let factor = match power {
        Power::One => {
            let distance = dot(residual, residual).sqrt();
            if distance == 0.0 { 0.0 } else { -1.0 / distance }
        }
        Power::Two => -1.0,
    };
    residual.iter_mut().for_each(|entry| *entry *= factor);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: LocalSpace = LocalSpace { states: 2, actions: 2, gamma: 0.5 };
    const OCCUPANCY: [f64; 4] = [0.5, 0.25, 1.0, 0.25];

    /// Value and gradient at `OCCUPANCY` (mass 2, so q λ = [1/4, 1/8, 1/2, 1/8]) against numbers worked out
    /// by hand.
    fn assert_at_occupancy(kind: Kind, value: f64, gradient: [f64; 4]) {
        let mut out = [f64::NAN; 4];
        kind.gradient(&OCCUPANCY, SPACE, &mut out);
        let name = kind.name();
        assert!((kind.value(&OCCUPANCY, SPACE) - value).abs() < 1e-14, "{name}");
        for (cell, (got, want)) in out.iter().zip(gradient).enumerate() {
            assert!((got - want).abs() < 1e-14, "{name} cell {cell}: {got} {want}");
        }
    }

    fn table(values: [f64; 4]) -> Arc<[f64]> {
        values.into()
    }

    #[test]
    fn rewards_entropies_and_norms() {
        let r = table([1.0, -2.0, 3.0, 4.0]);
        assert_at_occupancy(Kind::Linear { r: r.clone() }, 4.0, [1.0, -2.0, 3.0, 4.0]);
        let (d0, d1): (f64, f64) = (0.375, 0.625);
        let (low, high) = (-0.5 * (d0.ln() + 1.0), -0.5 * (d1.ln() + 1.0));
        assert_at_occupancy(Kind::StateEntropy, -d0 * d0.ln() - d1 * d1.ln(), [low, low, high, high]);
        let (d0, d1): (f64, f64) = (0.75, 0.25);
        let (first, second) = (-0.5 * (d0.ln() + 1.0), -0.5 * (d1.ln() + 1.0));
        let slopes = [first, second, first, second];
        assert_at_occupancy(Kind::ActionEntropy, -d0 * d0.ln() - d1 * d1.ln(), slopes);
        let ln2 = std::f64::consts::LN_2;
        let slopes = [2.0, 3.0, 1.0, 3.0].map(|halvings| -0.5 * (1.0 - halvings * ln2));
        assert_at_occupancy(Kind::SaEntropy, 1.75 * ln2, slopes);
        assert_at_occupancy(Kind::ActionL2sq, 1.5 * 1.5 + 0.5 * 0.5, [3.0, 1.0, 3.0, 1.0]);
        assert_at_occupancy(Kind::ActionL2 { from: 0 }, 2.5 / 8.0, [0.375, 0.125, 0.375, 0.125]);
        assert_at_occupancy(Kind::ActionL2 { from: 1 }, 0.25 / 8.0, [0.0, 0.125, 0.0, 0.125]);
        assert_at_occupancy(Kind::L2sq, 1.375, [1.0, 0.5, 2.0, 0.5]);
    }

    #[test]
    fn totals_of_channels_stand_behind_the_cells() {
        let row = [0.5, 0.25, 1.0, 0.25, 3.0, 7.0];
        let mut out = [f64::NAN; 6];
        let channel = Kind::Channel { place: 1, range: [0.0, 4.0] };
        channel.gradient(&row, SPACE, &mut out);
        assert_eq!((channel.value(&row, SPACE), out), (7.0, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]));
        Kind::L2sq.gradient(&row, SPACE, &mut out);
        assert_eq!((Kind::L2sq.value(&row, SPACE), out), (1.375, [1.0, 0.5, 2.0, 0.5, 0.0, 0.0]));
    }

    #[test]
    fn experts() {
        // λ − expert = [0.3, 0, 0.4, 0], of length 0.5.
        let expert = table([0.2, 0.25, 0.6, 0.25]);
        assert_at_occupancy(Kind::NegL2Expert { expert: expert.clone() }, -0.5, [-0.6, 0.0, -0.8, 0.0]);
        assert_at_occupancy(Kind::NegL2sqExpert { expert }, -0.25, [-0.6, 0.0, -0.8, 0.0]);
        assert_at_occupancy(Kind::NegL2Expert { expert: table(OCCUPANCY) }, 0.0, [0.0; 4]);
        // p/e = 1/2, 1/2, 2, 1/2.
        let ln2 = std::f64::consts::LN_2;
        let expert = table([1.0, 0.5, 0.5, 0.5]);
        let (rare, often) = (-0.5 * (1.0 - ln2), -0.5 * (1.0 + ln2));
        assert_at_occupancy(Kind::NegKlExpert { expert }, 0.0, [rare, rare, often, rare]);
    }

    #[test]
    fn distances() {
        use Power::{One, Two};
        let (lo, hi) = (table([0.0, 0.65, f64::NEG_INFINITY, 0.0]), table([f64::INFINITY, 1.0, 0.7, 0.25]));
        // λ − Πλ = [0, −0.4, 0.3, 0].
        let boxed = |power| Kind::NegDistBox { lo: lo.clone(), hi: hi.clone(), power };
        assert_at_occupancy(boxed(One), -0.5, [0.0, 0.8, -0.6, 0.0]);
        assert_at_occupancy(boxed(Two), -0.125, [0.0, 0.4, -0.3, 0.0]);
        // ⟨a, λ⟩ = 5.5, ‖a‖ = 5.
        let halfspace = |b, power| Kind::NegDistHalfspace { a: table([3.0, 0.0, 4.0, 0.0]), b, power };
        assert_at_occupancy(halfspace(3.0, One), -0.5, [-0.6, 0.0, -0.8, 0.0]);
        assert_at_occupancy(halfspace(3.0, Two), -0.125, [-0.3, 0.0, -0.4, 0.0]);
        assert_at_occupancy(halfspace(5.5, One), 0.0, [0.0; 4]);
        // λ − center = [0.3, 0, 0.4, 0].
        let ball = |radius, power| Kind::NegDistBall { center: table([0.2, 0.25, 0.6, 0.25]), radius, power };
        assert_at_occupancy(ball(0.25, One), -0.25, [-0.6, 0.0, -0.8, 0.0]);
        assert_at_occupancy(ball(0.25, Two), -0.03125, [-0.15, 0.0, -0.2, 0.0]);
        assert_at_occupancy(ball(1.0, One), 0.0, [0.0; 4]);
    }

    #[test]
    fn unvisited_cells_give_finite_numbers_and_nan_stays_visible() {
        let expert = table([2.0, 0.0, 0.0, 0.0]);
        let mut out = [0.0; 4];
        for kind in [Kind::StateEntropy, Kind::SaEntropy, Kind::ActionEntropy, Kind::NegKlExpert { expert }] {
            for occupancy in [[0.0; 4], [2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0]] {
                kind.gradient(&occupancy, SPACE, &mut out);
                assert!(
                    kind.value(&occupancy, SPACE).is_finite() && out.iter().all(|slope| slope.is_finite())
                );
            }
            assert!(kind.value(&[f64::NAN; 4], SPACE).is_nan());
        }
        assert_eq!(Kind::SaEntropy.value(&[2.0, 0.0, 0.0, 0.0], SPACE), 0.0);
        let (lo, hi) = (table([0.0; 4]), table([1.0; 4]));
        assert!(Kind::NegDistBox { lo, hi, power: Power::One }.value(&[f64::NAN; 4], SPACE).is_nan());
    }
}
