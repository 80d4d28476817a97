//! Reading numbers, indexing joint states, and linear algebra by plain loops.

use super::*;

pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// All numbers of a (nested) list, row by row.
pub fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        other => vec![number(other)],
    }
}

pub fn indices(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as usize).collect()
}

pub fn sum(x: &[f64]) -> f64 {
    x.iter().sum()
}

pub fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| a * b).sum()
}

pub fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

pub fn difference(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(a, b)| a - b).collect()
}

pub fn l1_distance(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| (a - b).abs()).sum()
}

pub fn largest(x: &[f64]) -> f64 {
    x.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

pub fn smallest(x: &[f64]) -> f64 {
    x.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Mixed radix number of the values of `agents`, where `values` and `sizes` are those of all agents.
pub fn encode(values: &[usize], agents: &[usize], sizes: &[usize]) -> usize {
    agents.iter().fold(0, |index, &k| index * sizes[k] + values[k])
}

/// Inverse of [`encode`]: the values of all agents, zero for those that are not in `agents`.
pub fn decode(mut index: usize, agents: &[usize], sizes: &[usize]) -> Vec<usize> {
    let mut values = vec![0; sizes.len()];
    for &k in agents.iter().rev() {
        values[k] = index % sizes[k];
        index /= sizes[k];
    }
    values
}

pub fn count(agents: &[usize], sizes: &[usize]) -> usize {
    agents.iter().map(|&k| sizes[k]).product()
}

pub fn checksum(x: &[f64]) -> Value {
    let weighted: f64 = x.iter().enumerate().map(|(k, v)| v * ((k % 97) + 1) as f64 / 97.0).sum();
    json!({
        "len": x.len(), "sum": sum(x), "sumsq": dot(x, x),
        "max_abs": x.iter().fold(0.0, |most: f64, v| most.max(v.abs())),
        "weighted": weighted, "first": x[0], "last": x[x.len() - 1],
    })
}

pub fn table(x: &[f64], shape: &[usize], limit: usize) -> Value {
    if x.len() <= limit {
        json!({"shape": shape, "checksum": checksum(x), "values": x})
    } else {
        json!({"shape": shape, "checksum": checksum(x), "head": x[..16]})
    }
}

/// Solves `a x = b` for every column of `b` by Gaussian elimination with partial pivoting.
pub fn solve(mut a: Matrix, mut b: Matrix) -> Matrix {
    let n = a.len();
    for c in 0..n {
        let mut pivot = c;
        for r in c + 1..n {
            if a[r][c].abs() > a[pivot][c].abs() {
                pivot = r;
            }
        }
        assert!(a[pivot][c] != 0.0, "singular system");
        a.swap(c, pivot);
        b.swap(c, pivot);
        for r in c + 1..n {
            let factor = a[r][c] / a[c][c];
            if factor == 0.0 {
                continue;
            }
            let (above, below) = a.split_at_mut(r);
            for k in c..n {
                below[0][k] -= factor * above[c][k];
            }
            for k in 0..b[r].len() {
                b[r][k] -= factor * b[c][k];
            }
        }
    }
    for r in (0..n).rev() {
        for k in 0..b[r].len() {
            let mut value = b[r][k];
            for c in r + 1..n {
                value -= a[r][c] * b[c][k];
            }
            b[r][k] = value / a[r][r];
        }
    }
    b
}

pub fn solve_vector(a: Matrix, b: &[f64]) -> Vec<f64> {
    solve(a, b.iter().map(|&x| vec![x]).collect()).into_iter().map(|row| row[0]).collect()
}

pub fn transpose(a: &Matrix) -> Matrix {
    (0..a[0].len()).map(|c| a.iter().map(|row| row[c]).collect()).collect()
}

/// `I - factor a`
pub fn identity_minus(factor: f64, a: &Matrix) -> Matrix {
    let mut out = a.clone();
    for r in 0..a.len() {
        for c in 0..a.len() {
            out[r][c] = (if r == c { 1.0 } else { 0.0 }) - factor * a[r][c];
        }
    }
    out
}

pub fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let columns = transpose(b);
    a.iter().map(|row| columns.iter().map(|column| dot(row, column)).collect()).collect()
}
