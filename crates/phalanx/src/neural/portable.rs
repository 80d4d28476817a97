//! Networks as data, for other programs.

use std::ops::Range;

use phalanx_agent::policy::{Layer, Network};

use super::architecture::Net;

impl Net {
    /// The neural network with parameters `w`, as data.
    ///
    /// It must have one group of symbols at most, as those of policies.
    pub fn portable(&self, w: &[f32]) -> Network {
        let embedding = self.tables.first().map(|table| matrix(w, table.range(), table.symbols.dimension));
        Network {
            rows: self.architecture().rows.map_or(0, |rows| rows.count),
            row_layer: self.row_layer.map(|linear| layer(w, linear.weights(), linear.biases())),
            embedding: embedding.unwrap_or_default(),
            layers: self.layers.iter().map(|linear| layer(w, linear.weights(), linear.biases())).collect(),
        }
    }
}

/// The layer with its weights and biases in these ranges of the parameters.
fn layer(w: &[f32], weights: Range<usize>, biases: Range<usize>) -> Layer {
    Layer { weights: matrix(w, weights, biases.len()), biases: w[biases].to_vec() }
}

/// Some of the parameters, in rows of `columns` numbers.
fn matrix(w: &[f32], range: Range<usize>, columns: usize) -> Vec<Vec<f32>> {
    w[range].chunks_exact(columns).map(<[f32]>::to_vec).collect()
}
