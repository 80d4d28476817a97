//! Comparison of JSON objects number by number.

use serde_json::Value;

/// Every place where `found` is not `expected`: numbers within 1e-9·(1 + |expected|), `best_*` within 1e-6.
pub fn mismatches(found: &Value, expected: &Value) -> Vec<String> {
    let mut places = Vec::new();
    compare(found, expected, "", &mut places);
    places
}

fn compare(found: &Value, expected: &Value, path: &str, places: &mut Vec<String>) {
    match (found, expected) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys()) {
                let child = format!("{path}.{key}");
                match (a.get(key), b.get(key)) {
                    (Some(x), Some(y)) => compare(x, y, &child, places),
                    (x, y) => places.push(format!("{child}: {x:?} where {y:?} is expected")),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (k, (x, y)) in a.iter().zip(b).enumerate() {
                compare(x, y, &format!("{path}[{k}]"), places);
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            let (x, y) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            let tolerance = if path.contains(".best_") { 1e-6 } else { 1e-9 };
            if (x - y).abs() > tolerance * (1.0 + y.abs()) {
                places.push(format!("{path}: {x} where {y} is expected"));
            }
        }
        (a, b) if a == b => {}
        (a, b) => places.push(format!("{path}: {a} where {b} is expected")),
    }
}
