//! What truncation saves: the first question of sec:numerical_exp.

use super::{Claim, Rows, Test};

const PLACE: &str = "sec:numerical_exp";

/// Its claims.
pub fn claims() -> Vec<Claim> {
    let at_one = || Rows::all("cost").with("kappa", "1").called("κ = 1, every network");
    let claim = |id: &str, sentence: &str, column: &'static str, high: f64| {
        let tests = vec![Test::Within { which: at_one(), column, low: 0.0, high }];
        Claim::new(&format!("cost.{id}"), PLACE, sentence, tests)
    };
    vec![
        claim(
            "time",
            "The policy gradient truncation effectively alleviates the computational load: at κ = 1 an iteration takes at \
             most 80 % of the time at full range.",
            "seconds_relative",
            0.8,
        ),
        claim("traffic", "… and an agent sends at most half of the bytes.", "bytes_relative", 0.5),
    ]
}
