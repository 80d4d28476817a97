//! The worlds whose size is varied, and what their presets make agents send.

use super::laboratory::Trial;

/// A world and the settings of its preset that count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct World {
    pub name: &'static str,
    pub preset: &'static str,
    /// B and H.
    pub batch: usize,
    pub horizon: usize,
    /// Pairs of the longest trajectory, and of all in an iteration.
    pub longest: usize,
    pub pairs: usize,
    /// Values that an agent wants of a neighbour for a step: one for each action.
    pub values: usize,
    layout: Layout,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Layout {
    Line,
    /// Four neighbours.
    Grid,
    /// Eight, and the size is given as rows and columns.
    Cells,
}

/// `synthetic`: tables. K = 500 transitions beside the batch.
pub const LINE: World = World {
    name: "line",
    preset: "synthetic",
    batch: 5,
    horizon: 125,
    longest: 501,
    pairs: 5 * 125 + 501,
    values: 2,
    layout: Layout::Line,
};

/// `wireless-grid`: linear policies and critics that learn on the batch.
pub const WIRELESS: World = World {
    name: "wireless",
    preset: "wireless-grid",
    batch: 20,
    horizon: 12,
    longest: 13,
    pairs: 20 * 13,
    values: 5,
    layout: Layout::Cells,
};

/// `epidemic-grid`: the same.
pub const EPIDEMIC: World = World {
    name: "epidemic",
    preset: "epidemic-grid",
    batch: 10,
    horizon: 40,
    longest: 41,
    pairs: 10 * 41,
    values: 3,
    layout: Layout::Grid,
};

/// All of them.
pub const WORLDS: [World; 3] = [LINE, WIRELESS, EPIDEMIC];

impl World {
    /// A run with `n` agents.
    pub fn trial(&self, n: usize, kappa: usize, iterations: usize) -> Trial {
        let trial = Trial::of(self.preset, iterations).set("kappa", kappa).set("kappa_q", kappa);
        match self.layout {
            Layout::Line | Layout::Grid => trial.set("world.n", n),
            Layout::Cells => {
                let rows = squarest(n);
                trial.set("world.rows", rows).set("world.columns", n / rows)
            }
        }
    }

    /// Agents of a process with a border on both sides that its neighbours must know of, and pairs of agents with the border
    /// between them, on one side. Processes hold consecutive agents: of a grid, whole rows.
    pub fn border(&self, n: usize, kappa: usize) -> (usize, usize) {
        let columns = match self.layout {
            Layout::Line => 1,
            Layout::Grid | Layout::Cells => n / squarest(n),
        };
        // Columns that a row may be apart if `rows` rows are.
        let width = |rows: usize| match self.layout {
            Layout::Line => 1,
            Layout::Grid => 2 * (kappa - rows) + 1,
            Layout::Cells => 2 * kappa + 1,
        };
        (2 * kappa * columns, columns * (1..=kappa).map(|rows| rows * width(rows)).sum::<usize>())
    }

    /// Bytes that such a process sends in an iteration: a state and an action of every agent that others must know of at every
    /// step, and values for every pair along the batch.
    pub fn halo_bytes(&self, n: usize, kappa: usize) -> usize {
        let (told, pairs) = self.border(n, kappa);
        2 * told * self.pairs + 2 * pairs * 8 * self.values * self.batch * self.horizon
    }

    /// Times that neighbours exchange messages in an iteration: actions and states at every step, and the values.
    pub fn exchanges(&self) -> usize {
        2 * self.longest
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

    #[test]
    fn borders_counted_by_hand() {
        assert_eq!((LINE.border(100, 1), LINE.border(100, 2)), ((2, 1), (4, 3)));
        // Each agent of the border row knows one across; with κ = 2 three in the next row and one behind, and the row behind
        // knows one.
        assert_eq!((EPIDEMIC.border(100, 1), EPIDEMIC.border(100, 2)), ((20, 10), (40, 50)));
        assert_eq!(WIRELESS.border(100, 1), (20, 30));
        assert_eq!(LINE.border(100, 0), (0, 0));
    }

    #[test]
    fn halo_bytes_are_those_of_a_real_run() {
        // `mpirun -n 2 phalanx train epidemic-grid --mpi` sends 208,216 bytes from rank 0 to rank 1 in an iteration: half of
        // these, less the states of the start, which everybody knows, and 16 bytes for agreements.
        assert_eq!(EPIDEMIC.halo_bytes(400, 1) / 2, 208_216 + 10 * 20 - 16);
    }
}
