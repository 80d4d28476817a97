//! Networks as data, for other programs.

use std::ops::Range;

use phalanx_agent::policy::{Layer, Network};

use super::architecture::{Linear, Net};

impl Net {
    /// The network with parameters `w`, as data.
    ///
    /// It must have one group of symbols at most, as those of policies.
    pub fn portable(&self, w: &[f32]) -> Network {
        let layer = |linear: &Linear| Layer {
            weights: matrix(w, linear.weights(), linear.outputs),
            biases: w[linear.biases()].to_vec(),
        };
        let embedding = self.tables.first().map(|table| matrix(w, table.range(), table.symbols.dimension));
        Network {
            rows: self.architecture().rows.map_or(0, |rows| rows.count),
            row_layer: self.row_layer.as_ref().map(layer),
            embedding: embedding.unwrap_or_default(),
            layers: self.layers.iter().map(layer).collect(),
        }
    }
}

/// Some of the parameters, in rows of `columns` numbers.
fn matrix(w: &[f32], range: Range<usize>, columns: usize) -> Vec<Vec<f32>> {
    w[range].chunks_exact(columns).map(<[f32]>::to_vec).collect()
}
