//! Your own utility: stay close to a wanted share of time in state 1, on both sides.
//!
//! `cargo run --release --example own_utility -p phalanx`

use std::sync::Arc;

use phalanx::run::{self, Config, Session};
use phalanx::utility::{Kind, LocalSpace, ScaledUtility, Utility, check_gradient};

/// −(d(1) − target)², where d(1) is the normalised discounted time in state 1.
#[derive(Debug)]
struct Share {
    target: f64,
}

impl Share {
    fn time_in_one(occupancy: &[f64], space: LocalSpace) -> f64 {
        (1.0 - space.gamma) * occupancy[space.actions..2 * space.actions].iter().sum::<f64>()
    }
}

impl Utility for Share {
    fn value(&self, occupancy: &[f64], space: LocalSpace) -> f64 {
        -(Share::time_in_one(occupancy, space) - self.target).powi(2)
    }

    fn gradient(&self, occupancy: &[f64], space: LocalSpace, out: &mut [f64]) {
        out.fill(0.0);
        let slope = -2.0 * (Share::time_in_one(occupancy, space) - self.target) * (1.0 - space.gamma);
        out[space.actions..2 * space.actions].fill(slope);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A gradient that is not the gradient is found before it spoils a run.
    let space = LocalSpace { states: 2, actions: 2, gamma: 0.9 };
    check_gradient(&Share { target: 0.6 }, space, &[2.0, 1.0, 4.0, 3.0], 1e-6)?;

    // The synthetic line, with this utility as everybody's objective and its entropy constraints kept.
    let config = Config::preset("synthetic")?;
    let world = run::world(&config)?;
    let (mut problem, _) = run::problem(&config, &*world)?;
    let share: Arc<dyn Utility> = Arc::new(Share { target: 0.6 });
    for i in 0..problem.agents.len() {
        problem.agent_mut(i).objective =
            ScaledUtility { kind: Kind::Custom(share.clone()), scale: 1.0, offset: 0.0 };
    }
    let mut session = Session::with(&config, world, problem)?;
    while session.advance()?.is_some() {}
    let result = session.evaluate()?;
    println!("mean squared distance from the target: {:.5}", -result.objective);
    println!("total violation: {:.5}", result.violations.total);
    assert!(result.objective > -0.002);
    Ok(())
}
