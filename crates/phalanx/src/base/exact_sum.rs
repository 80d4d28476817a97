//! Sums that do not depend on the order of their terms.

use bytemuck::{Pod, Zeroable};

/// A row of sums in fixed point, with 80 binary digits behind the point: adding integers has no order, so
/// threads and processes can share the work as they like.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExactSums(Vec<Sum>);

/// One of them. What cannot be added (not finite, or 2⁴⁶ and more) is lost for good.
#[derive(Debug, Clone, Copy, Default, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Sum(i128);

const DIGITS: f64 = (1u128 << 80) as f64;
/// The largest term: 2¹⁹ processes and agents in a block can add as many of them without a carry.
const LARGEST: f64 = (1u64 << 46) as f64;
/// Beyond all sums.
const LOST: i128 = i128::MAX;

impl Sum {
    fn add_integer(&mut self, term: i128) {
        let is_lost = self.0 == LOST || term == LOST;
        self.0 = if is_lost { LOST } else { self.0.saturating_add(term) };
    }
}

impl ExactSums {
    /// So many zeros.
    pub fn zeros(length: usize) -> Self {
        ExactSums(vec![Sum::default(); length])
    }

    /// Adds a row of terms.
    pub fn add(&mut self, terms: &[f64]) {
        self.add_at(0, terms);
    }

    /// Adds a row of terms to the sums from number `first` on.
    pub fn add_at(&mut self, first: usize, terms: &[f64]) {
        for (sum, &term) in self.0[first..].iter_mut().zip(terms) {
            sum.add_integer(if term.abs() < LARGEST { (term * DIGITS) as i128 } else { LOST });
        }
    }

    /// Adds other sums.
    pub fn merge(&mut self, others: &[Sum]) {
        self.0.iter_mut().zip(others).for_each(|(sum, other)| sum.add_integer(other.0));
    }

    /// The sums as they are sent.
    pub fn sums(&self) -> &[Sum] {
        &self.0
    }

    /// The sums, rounded once; NaN where a term could not be added.
    pub fn write(&self, out: &mut [f64]) {
        for (out, sum) in out.iter_mut().zip(&self.0) {
            *out = if sum.0 == LOST { f64::NAN } else { sum.0 as f64 / DIGITS };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(sums: &ExactSums) -> f64 {
        let mut out = [0.0];
        sums.write(&mut out);
        out[0]
    }

    #[test]
    fn the_order_and_the_grouping_do_not_matter() {
        let terms: Vec<f64> =
            (0..1000).map(|k| ((k * 7919 % 1000) as f64 - 480.0) * 1e-3_f64.powi(k % 5)).collect();
        let mut forward = ExactSums::zeros(1);
        terms.iter().for_each(|&x| forward.add(&[x]));
        let mut halves = [ExactSums::zeros(1), ExactSums::zeros(1)];
        terms.iter().rev().enumerate().for_each(|(k, &x)| halves[k % 2].add(&[x]));
        let [mut a, b] = halves;
        a.merge(b.sums());
        assert_eq!(forward, a);
        assert!((total(&forward) - terms.iter().sum::<f64>()).abs() < 1e-9);
    }

    #[test]
    fn small_terms_are_kept() {
        let mut sums = ExactSums::zeros(1);
        [1e6, 1e-18, -1e6].iter().for_each(|&x| sums.add(&[x]));
        assert!((total(&sums) - 1e-18).abs() < 1e-23);
    }

    #[test]
    fn what_is_no_number_stays_none() {
        for bad in [f64::NAN, f64::INFINITY, 1e300] {
            let mut sums = ExactSums::zeros(1);
            [1.0, bad, -1.0].iter().for_each(|&x| sums.add(&[x]));
            assert!(total(&sums).is_nan());
            let mut other = ExactSums::zeros(1);
            other.merge(sums.sums());
            assert!(total(&other).is_nan());
        }
    }
}
