//! The worlds whose size is varied.

use super::laboratory::Trial;

/// A world with its preset, and how that is told the number of agents.
#[derive(Debug, Clone, Copy)]
pub struct World {
    pub name: &'static str,
    preset: &'static str,
    /// Whether the size is given as rows and columns.
    has_rows: bool,
}

/// Tables.
pub const LINE: World = World { name: "line", preset: "synthetic", has_rows: false };

/// All of them; the others have linear policies and critics.
pub const WORLDS: [World; 3] = [
    LINE,
    World { name: "wireless", preset: "wireless-grid", has_rows: true },
    World { name: "epidemic", preset: "epidemic-grid", has_rows: false },
];

impl World {
    /// A run with `n` agents.
    pub fn trial(&self, n: usize, kappa: usize, iterations: usize) -> Trial {
        let trial = Trial::of(self.preset, iterations).set("kappa", kappa).set("kappa_q", kappa);
        if !self.has_rows {
            return trial.set("world.n", n);
        }
        let rows = squarest(n);
        trial.set("world.rows", rows).set("world.columns", n / rows)
    }
}

/// Rows of the squarest grid.
fn squarest(n: usize) -> usize {
    (1..=n.isqrt()).rev().find(|rows| n.is_multiple_of(*rows)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_square() {
        assert_eq!([1000, 10_000, 100_000, 7].map(squarest), [25, 100, 250, 1]);
    }
}
