//! Parameters to begin with.

use super::architecture::Net;
use super::real::Real;
use crate::base::stream::Sequence;

/// The gain of hidden layers: √2 keeps the size of a signal through a ReLU.
const HIDDEN_GAIN: f64 = std::f64::consts::SQRT_2;

impl Net {
    /// Orthogonal weights (gain √2, and `output_gain` for the last layer: about 0.01 for policies, 1 for
    /// critics), zero biases, standard normal embeddings.
    pub fn initialise<T: Real>(&self, output_gain: f64, sequence: &mut Sequence) -> Vec<T> {
        let mut w = vec![T::ZERO; self.parameters()];
        let last = self.layers.len() - 1;
        if let Some(layer) = &self.row_layer {
            orthogonal(&mut w[layer.weights()], layer.outputs, HIDDEN_GAIN, sequence);
        }
        for table in &self.tables {
            w[table.range()].iter_mut().for_each(|x| *x = T::from_f64(sequence.normal()));
        }
        for (l, layer) in self.layers.iter().enumerate() {
            let gain = if l == last { output_gain } else { HIDDEN_GAIN };
            orthogonal(&mut w[layer.weights()], layer.outputs, gain, sequence);
        }
        w
    }
}

/// A random matrix with orthogonal columns of length `gain`, or rows if it has fewer of them: normal numbers
/// made orthonormal by Gram–Schmidt, which gives every rotation the same chance.
///
/// Literature: Saxe, McClelland, Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep
/// linear neural networks", ICLR 2014.
fn orthogonal<T: Real>(weights: &mut [T], columns: usize, gain: f64, sequence: &mut Sequence) {
    let rows = weights.len() / columns;
    let (count, length) = (rows.min(columns), rows.max(columns));
    let mut vectors: Vec<f64> = (0..count * length).map(|_| sequence.normal()).collect();
    for v in 0..count {
        let (done, rest) = vectors.split_at_mut(v * length);
        let vector = &mut rest[..length];
        // Twice, because the first pass leaves what rounding lost.
        for _ in 0..2 {
            for other in done.chunks_exact(length) {
                let dot: f64 = vector.iter().zip(other).map(|(a, b)| a * b).sum();
                vector.iter_mut().zip(other).for_each(|(a, b)| *a -= dot * b);
            }
        }
        let norm = vector.iter().map(|a| a * a).sum::<f64>().sqrt();
        vector.iter_mut().for_each(|a| *a /= norm);
    }
    for (i, weight) in weights.iter_mut().enumerate() {
        let (row, column) = (i / columns, i % columns);
        let (vector, entry) = if rows >= columns { (column, row) } else { (row, column) };
        *weight = T::from_f64(gain * vectors[vector * length + entry]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::stream::{Place, Purpose, Stream};
    use crate::neural::{Architecture, Rows, Symbols};

    fn sequence(agent: u32) -> Sequence {
        Stream::new(3).sequence(Place { purpose: Purpose::PolicyInit, iteration: 0, trajectory: 0 }, agent)
    }

    #[test]
    fn weights_are_orthogonal() {
        for (rows, columns, gain) in [(40, 7, 1.5), (7, 40, 0.01), (12, 12, 1.0), (1, 5, 2.0), (96, 1, 1.0)] {
            let mut w = vec![0.0f64; rows * columns];
            orthogonal(&mut w, columns, gain, &mut sequence(1));
            // WᵀW for tall matrices, WWᵀ for wide ones.
            let (count, length) = (rows.min(columns), rows.max(columns));
            let at =
                |v: usize, e: usize| if rows >= columns { w[e * columns + v] } else { w[v * columns + e] };
            for a in 0..count {
                for b in 0..count {
                    let dot: f64 = (0..length).map(|e| at(a, e) * at(b, e)).sum();
                    let expected = if a == b { gain * gain } else { 0.0 };
                    assert!((dot - expected).abs() < 1e-12, "{rows}×{columns}: {a} {b} {dot}");
                }
            }
        }
    }

    #[test]
    fn every_part_gets_its_numbers() {
        let architecture = Architecture {
            rows: Some(Rows { count: 2, width: 3, hidden: 8 }),
            symbols: vec![Symbols { slots: 2, vocabulary: 250, dimension: 40 }],
            hidden: vec![16],
            outputs: 4,
        };
        let net = Net::new(architecture, "net").unwrap();
        let w: Vec<f32> = net.initialise(0.01, &mut sequence(1));
        assert_eq!(w, net.initialise::<f32>(0.01, &mut sequence(1)));
        assert_ne!(w, net.initialise::<f32>(0.01, &mut sequence(2)));
        let square = |name: &str| {
            let tensor = net.tensors().into_iter().find(|t| t.name == name).unwrap();
            let part = &w[tensor.range];
            part.iter().map(|x| f64::from(x * x)).sum::<f64>() / part.len() as f64
        };
        assert_eq!((square("rows.bias"), square("hidden.0.bias"), square("output.bias")), (0.0, 0.0, 0.0));
        // 3 rows of squared length 2 over 3·8 numbers; 16 columns over 96·16; 4 columns of 10⁻⁴ over 16·4.
        assert!((square("rows.weight") - 0.25).abs() < 1e-6);
        assert!((square("hidden.0.weight") - 2.0 / 96.0).abs() < 1e-6);
        assert!((square("output.weight") - 1e-4 / 16.0).abs() < 1e-9);
        assert!((square("symbols.0") - 1.0).abs() < 0.05);
    }
}
