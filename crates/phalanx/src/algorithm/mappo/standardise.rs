//! Advantages of size 1.

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
