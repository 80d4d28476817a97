//! Lines 7 to 9 on the card: multipliers, steps along the gradient, and the numbers of an iteration.

use phalanx_gpu::Layout;

use super::super::primal_dual::PrimalDual;
use super::metrics::FOLD;
use super::part::CardPolicy;
use super::shape::{METRICS, Shape};
use super::support;
use crate::learn::optimizer::OptimizerKind;

/// Arrays and numbers of lines 7 to 9 and of the summary.
pub fn add_to(layout: &mut Layout, shape: &Shape, host: &PrimalDual, policy: &dyn CardPolicy) {
    let (n, parameters) = (shape.agents, policy.parameters());
    let is_adam = host.optimizer.kind() == OptimizerKind::Adam;
    layout.constant("IS_ADAM", usize::from(is_adam));
    for name in ["first", "second"] {
        layout.array::<f64>(name, if is_adam { parameters } else { 1 });
    }
    let theta_box = host.plan.policy.theta_box();
    layout.constant("HAS_BOX", usize::from(theta_box.is_some()));
    let [low, high] = theta_box.unwrap_or_default();
    let [beta0, beta1] = crate::neural::BETA;
    for (name, value) in [
        ("box_low", low),
        ("box_high", high),
        ("beta0", beta0),
        ("beta1", beta1),
        ("rest0", 1.0 - beta0),
        ("rest1", 1.0 - beta1),
        ("epsilon", crate::neural::Adam::new(0.0).epsilon),
    ] {
        layout.real(name, value);
    }
    let groups = n.div_ceil(FOLD);
    layout.number("parameters", parameters as i64);
    layout.number("groups", groups as i64);
    layout.array::<f64>("metrics", (METRICS - 1) * n);
    layout.array::<f64>("gradient_squares", n);
    layout.array::<f64>("group_metrics", METRICS * groups);
    layout.array::<f64>("summary", METRICS);
    let needs_received = !support::is_fused(host);
    let received = if needs_received { shape.batch * shape.horizon * shape.per_step() * n } else { 1 };
    layout.array::<f64>("received", received);
    layout.now("iteration", "long long");
    for name in ["dual_factor", "entropy", "rate", "correction0", "correction1", "running_weight"] {
        layout.now(name, "double");
    }
}
