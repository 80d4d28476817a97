//! Where the chain ends up: the law of one endless trajectory.

use super::system::{Chain, identity_minus};
use crate::base::elimination::Dense;
use crate::{Error, Result};

/// Most joint states for which the law is found by elimination, which is cubic; beyond, by iteration.
const ELIMINATED: usize = 1024;

/// Steps of the iteration before it is given up.
const MOST_STEPS: usize = 100_000;

impl Chain<'_> {
    /// lim (1/K)·Σ_{k<K} P(s^k = ·), from the start law: the stationary law where there is only one. Up to a
    /// thousand joint states, those that are left for ever have exactly 0.
    pub fn stationary(&self) -> Result<Vec<f64>> {
        let size = self.system.dynamics.joint_states;
        if size > ELIMINATED {
            return self.stationary_by_iteration();
        }
        let matrix = self.transition_matrix();
        let closed = closed_classes(&matrix, size);
        let weights = absorbed(&matrix, size, &self.system.dynamics.start, &closed);
        let mut law = vec![0.0; size];
        for (members, weight) in closed.iter().zip(weights) {
            for (&s, p) in members.iter().zip(class_law(&matrix, size, members)) {
                law[s] = weight * p;
            }
        }
        Ok(law)
    }

    /// Half a step at a time: a chain that may stay where it is has the same limit and no periods.
    fn stationary_by_iteration(&self) -> Result<Vec<f64>> {
        let mut law = self.system.dynamics.start.to_vec();
        for _ in 0..MOST_STEPS {
            let (mut change, stepped) = (0.0, self.advance(&law));
            for (now, next) in law.iter_mut().zip(stepped) {
                let half = 0.5 * (*now + next);
                change += (half - *now).abs();
                *now = half;
            }
            if change <= 4.0 * f64::EPSILON {
                return Ok(law);
            }
        }
        let message = format!(
            "the law of an endless trajectory was not reached in {MOST_STEPS} steps: the chain mixes too slowly"
        );
        Err(Error::config("world", message))
    }
}

/// The classes that are never left: from all that a member can reach, there is a way back to it.
fn closed_classes(matrix: &[f64], size: usize) -> Vec<Vec<usize>> {
    let successors = |row: &[f64]| row.iter().map(|&p| p > 0.0).collect();
    let mut reached: Vec<Vec<bool>> = matrix.chunks_exact(size).map(successors).collect();
    // Warshall's closure: whoever reaches k reaches what k does.
    for k in 0..size {
        let beyond = reached[k].clone();
        for row in reached.iter_mut().filter(|row| row[k]) {
            row.iter_mut().zip(&beyond).for_each(|(reached, beyond)| *reached |= beyond);
        }
    }
    let mut closed = Vec::new();
    for s in 0..size {
        let class: Vec<usize> = (0..size).filter(|&t| reached[s][t]).collect();
        // Every class once, by its first member.
        if class.first() == Some(&s) && class.iter().all(|&t| reached[t][s]) {
            closed.push(class);
        }
    }
    closed
}

/// Probability of ending in each closed class.
fn absorbed(matrix: &[f64], size: usize, start: &[f64], closed: &[Vec<usize>]) -> Vec<f64> {
    let mut kept = vec![false; size];
    closed.iter().flatten().for_each(|&s| kept[s] = true);
    let transient: Vec<usize> = (0..size).filter(|&s| !kept[s]).collect();
    let system = identity_minus(transient.len(), |i, j| matrix[transient[j] * size + transient[i]]);
    let visits = system.solve(Dense::from_fn(transient.len(), 1, |i, _| start[transient[i]]));
    let weight = |members: &Vec<usize>| {
        let at_once: f64 = members.iter().map(|&s| start[s]).sum();
        let later = transient
            .iter()
            .enumerate()
            .map(|(i, &t)| visits[(i, 0)] * members.iter().map(|&s| matrix[t * size + s]).sum::<f64>());
        at_once + later.sum::<f64>()
    };
    closed.iter().map(weight).collect()
}

/// The stationary law of a closed class by state reduction (Grassmann, Taksar and Heyman, 1985), which
/// subtracts nothing and so loses no digits.
fn class_law(matrix: &[f64], size: usize, members: &[usize]) -> Vec<f64> {
    let m = members.len();
    let mut p: Vec<f64> =
        members.iter().flat_map(|&s| members.iter().map(move |&t| matrix[s * size + t])).collect();
    for k in (1..m).rev() {
        let out: f64 = p[k * m..k * m + k].iter().sum();
        for i in 0..k {
            p[i * m + k] /= out;
        }
        for i in 0..k {
            let share = p[i * m + k];
            for j in 0..k {
                p[i * m + j] += share * p[k * m + j];
            }
        }
    }
    let mut law = vec![1.0];
    for k in 1..m {
        law.push((0..k).map(|i| law[i] * p[i * m + k]).sum());
    }
    let total: f64 = law.iter().sum();
    law.iter().map(|p| p / total).collect()
}

#[cfg(test)]
mod tests {
    use super::super::system::tests::line;
    use crate::base::stream::Stream;
    use crate::exact::System;
    use crate::policy::{Parameterisation, Tabular};

    #[test]
    fn eliminated_and_iterated_laws_agree_and_stay() {
        let (world, problem) = line(6, 0.99);
        let policy = Tabular::new(&world, 1, Parameterisation::Softmax, 1.0, &Stream::new(5)).unwrap();
        let system = System::new(&world, &problem, &policy).unwrap();
        let chain = system.under(&policy).unwrap();
        let law = chain.stationary().unwrap();
        let others = [chain.stationary_by_iteration().unwrap(), chain.advance(&law)];
        for other in &others {
            assert!(law.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-13));
        }
    }
}
