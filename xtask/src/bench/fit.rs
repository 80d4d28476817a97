//! Least squares with coefficients that cannot be negative: times add up, they do not cancel.

/// Coefficients x ≥ 0 that make the rows of `equations`, (terms, value), nearly Σ terms·x = value. Errors count relative to
/// the value.
///
/// Coefficients that come out negative are taken out, the one that matters most first, and stay 0.
pub fn fit(equations: &[(Vec<f64>, f64)]) -> Vec<f64> {
    let columns = equations.first().map_or(0, |(terms, _)| terms.len());
    let scaled: Vec<Vec<f64>> =
        equations.iter().map(|(terms, value)| terms.iter().map(|x| x / value).collect()).collect();
    // In units in which every column is about as large, or the equations would be badly conditioned.
    let size = |c: usize| scaled.iter().map(|row| row[c] * row[c]).sum::<f64>().sqrt();
    let sizes: Vec<f64> = (0..columns).map(size).collect();
    let mut used: Vec<usize> = (0..columns).filter(|&c| sizes[c] > 0.0).collect();
    loop {
        let rows: Vec<Vec<f64>> =
            scaled.iter().map(|row| used.iter().map(|&c| row[c] / sizes[c]).collect()).collect();
        let found = normal_equations(&rows, used.len());
        let worst = (0..used.len()).min_by(|&a, &b| found[a].total_cmp(&found[b]));
        match worst.filter(|&k| found[k] < 0.0) {
            Some(k) => used.remove(k),
            None => {
                let mut x = vec![0.0; columns];
                used.iter().zip(found).for_each(|(&c, value)| x[c] = value / sizes[c]);
                return x;
            }
        };
    }
}

/// x that minimises Σ (row·x − 1)².
fn normal_equations(rows: &[Vec<f64>], columns: usize) -> Vec<f64> {
    let sum = |f: &dyn Fn(&Vec<f64>) -> f64| rows.iter().map(f).sum::<f64>();
    let mut system: Vec<Vec<f64>> = (0..columns)
        .map(|a| {
            // A trace of regularisation, for columns that the measurements cannot tell apart.
            let ridge = |b: usize| if a == b { 1e-9 } else { 0.0 };
            let mut row: Vec<f64> = (0..columns).map(|b| sum(&|row| row[a] * row[b]) + ridge(b)).collect();
            row.push(sum(&|row| row[a]));
            row
        })
        .collect();
    for c in 0..columns {
        // Positive definite: no pivots are needed.
        let pivot = system[c].clone();
        for (r, row) in system.iter_mut().enumerate() {
            if r != c {
                let factor = row[c] / pivot[c];
                row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
            }
        }
    }
    (0..columns).map(|c| system[c][columns] / system[c][c]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plane_is_found_again() {
        let row = |a: f64, b: f64| (vec![a, b], 2e-6 * a + 30.0 * b);
        let found = fit(&[row(1e6, 1.0), row(2e6, 3.0), row(5e5, 0.5), row(1e6, 2.0)]);
        assert!((found[0] - 2e-6).abs() < 1e-11 && (found[1] - 30.0).abs() < 1e-4, "{found:?}");
    }

    #[test]
    fn nothing_is_negative() {
        let found =
            fit(&[(vec![1.0, 1.0, 0.0], 1.0), (vec![1.0, 2.0, 0.0], 0.9), (vec![1.0, 3.0, 0.0], 0.8)]);
        assert!(found[0] > 0.8 && found[1] == 0.0 && found[2] == 0.0, "{found:?}");
    }
}
