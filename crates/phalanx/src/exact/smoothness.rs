//! Lipschitz constants of ∇L as they are around a policy, not as lemma:properties bounds them (errata 7).

use super::system::System;
use crate::base::stream::{Place, Purpose, Stream};
use crate::policy::{Parameterisation, Policy, Tabular};
use crate::utility::problem::Problem;
use crate::{Ragged, Result};

/// Random pairs of points that are compared.
const POINTS: u32 = 12;

/// How far apart.
const REACH: f64 = 0.3;

/// The largest L_θθ and L_θμ of L = (1/n) Σ [f + μg] seen between random points around `policy`, with
/// multipliers in 0 to `mu_max`. Not a bound: a usable guess.
pub fn local_constants(
    system: &System,
    problem: &Problem,
    policy: &Tabular,
    mu_max: f64,
) -> Result<[f64; 2]> {
    let stream = Stream::new(0);
    let (mut l_tt, mut l_tm) = (0.0f64, 0.0f64);
    for point in 0..POINTS {
        let place = Place { purpose: Purpose::PolicyInit, iteration: 1, trajectory: point };
        let mut numbers = stream.sequence(place, 0);
        let mut moved = |from: &Tabular| {
            let mut to = from.clone();
            to.update(|theta| theta.data_mut().iter_mut().for_each(|x| *x += REACH * numbers.normal()));
            to
        };
        let near = moved(policy);
        let far = moved(&near);
        let mut multipliers = || {
            let counts = problem.agents.iter().map(|agent| agent.constraints.len());
            let mut mu: Ragged<f64> = Ragged::zeros(counts);
            mu.data_mut().iter_mut().for_each(|mu| *mu = mu_max * numbers.uniform());
            mu
        };
        let (mu, other) = (multipliers(), multipliers());
        let [a, b] = [gradient(system, problem, &near, &mu)?, gradient(system, problem, &far, &mu)?];
        l_tt = l_tt.max(distance(a.data(), b.data()) / distance(near.theta().data(), far.theta().data()));
        if !mu.data().is_empty() {
            let c = gradient(system, problem, &near, &other)?;
            l_tm = l_tm.max(distance(a.data(), c.data()) / distance(mu.data(), other.data()));
        }
    }
    Ok([l_tt, l_tm])
}

fn gradient(system: &System, problem: &Problem, policy: &Tabular, mu: &Ragged<f64>) -> Result<Ragged<f64>> {
    let chain = system.under(policy)?;
    let rewards = chain.signals(problem).rewards;
    let whole = chain.action_values(&chain.values(&rewards)?, mu);
    Ok(chain.gradient(&whole, Parameterisation::Softmax, 1.0 / policy.agents() as f64))
}

/// ‖a − b‖₂.
pub(super) fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}
