//! A few numbers about a few seeds.

use phalanx_pictures::statistics::{deviation, interquartile_mean, mean};

/// Mean, standard error and interquartile mean of the same quantity over seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// Its standard error; one seed has none.
    pub error: Option<f64>,
    /// The mean of the middle half.
    pub iqm: f64,
}

impl Spread {
    /// Of these values; none of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let error = (values.len() > 1).then(|| deviation(values) / (values.len() as f64).sqrt());
        (!values.is_empty()).then(|| Spread { mean: mean(values), error, iqm: interquartile_mean(values) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_numbers() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[2.5]), Some(Spread { mean: 2.5, error: None, iqm: 2.5 }));
        // Variance 20/3 over four values; the middle two are 2 and 4.
        let four = Spread::of(&[6.0, 0.0, 4.0, 2.0]).unwrap();
        assert_eq!((four.mean, four.iqm), (3.0, 3.0));
        assert!((four.error.unwrap() - (20.0f64 / 3.0 / 4.0).sqrt()).abs() < 1e-15);
        // An outlier does not move it.
        assert_eq!(Spread::of(&[1.0, 2.0, 3.0, 1e9]).unwrap().iqm, 2.5);
        // A quarter of three values is three quarters of the first: (0.25·1 + 2 + 0.25·6)/1.5.
        assert!((Spread::of(&[1.0, 2.0, 6.0]).unwrap().iqm - 2.5).abs() < 1e-15);
    }
}
