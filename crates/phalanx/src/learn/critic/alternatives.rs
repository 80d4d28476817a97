//! Values of a neural network critic at all alternatives of one agent's action, without a whole pass for
//! each.

use super::HIDDEN;
use crate::Result;
use crate::neural::{Architecture, Batch, Net, Rows, Symbols, Tape};

/// A neural network in two parts: up to the sums in its first hidden layer, and from there on. A neighbour's
/// action enters those sums as one term, so that its alternatives need the second part only.
#[derive(Debug)]
pub struct Split {
    front: Net,
    back: Net,
    /// Its last group of symbols.
    actions: Symbols,
    /// Where the embeddings of actions lie, and the weights of the first hidden layer that they meet.
    table: usize,
    weights: usize,
}

/// Buffers of one thread.
#[derive(Default)]
pub struct AlternativesScratch {
    terms: Vec<f32>,
    sums: Vec<f32>,
    tape: Tape<f32>,
}

impl Split {
    /// The parts of a neural network whose last group of symbols are actions; none if it has fewer than two
    /// hidden layers.
    pub fn new(net: &Net) -> Result<Option<Self>> {
        let whole = net.architecture();
        let (&[first, second, ref rest @ ..], Some(actions)) = (&whole.hidden[..], net.tables.last()) else {
            return Ok(None);
        };
        let front = Architecture { hidden: Vec::new(), outputs: first, ..whole.clone() };
        let rows = Some(Rows { count: 1, width: first, hidden: second });
        let back = Architecture { rows, symbols: Vec::new(), hidden: rest.to_vec(), outputs: whole.outputs };
        Ok(Some(Split {
            front: Net::new(front, HIDDEN)?,
            back: Net::new(back, HIDDEN)?,
            actions: actions.symbols,
            table: actions.offset,
            weights: net.layers[0].offset + actions.column * first,
        }))
    }

    /// Sums in the first hidden layer that one sample has.
    pub fn width(&self) -> usize {
        self.front.outputs()
    }

    /// The sums in the first hidden layer of every sample, `[sample][unit]`.
    pub fn sums<'t>(&self, w: &[f32], batch: Batch<'_, f32>, tape: &'t mut Tape<f32>) -> &'t [f32] {
        // Parameters follow each other in the order of the layers.
        self.front.forward(&w[..self.front.parameters()], batch, tape)
    }

    /// The neural network's outputs with the action in `slot` replaced by each of `actions` alternatives,
    /// `[sample][action]`. `sums` are those of samples in which it was `taken`.
    pub fn outputs<'s>(
        &self,
        w: &[f32],
        sums: &[f32],
        slot: usize,
        taken: &[u8],
        actions: usize,
        scratch: &'s mut AlternativesScratch,
    ) -> &'s [f32] {
        let Symbols { slots, vocabulary, dimension } = self.actions;
        debug_assert!(slot < slots && actions <= vocabulary);
        let width = self.width();
        let AlternativesScratch { terms, sums: changed, tape } = scratch;
        // What every action adds to the sums.
        terms.clear();
        terms.resize(vocabulary * width, 0.0);
        for (action, term) in terms.chunks_exact_mut(width).enumerate() {
            let embedding = &w[self.table + action * dimension..][..dimension];
            for (d, &x) in embedding.iter().enumerate() {
                let weights = &w[self.weights + (slot * dimension + d) * width..][..width];
                term.iter_mut().zip(weights).for_each(|(t, &w)| *t += x * w);
            }
        }
        changed.clear();
        for (sums, &taken) in sums.chunks_exact(width).zip(taken) {
            let without = &terms[usize::from(taken) * width..][..width];
            for term in terms.chunks_exact(width).take(actions) {
                let units = sums.iter().zip(without).zip(term);
                changed.extend(units.map(|((sum, out), with)| (sum - out + with).max(0.0)));
            }
        }
        let batch = Batch { size: taken.len() * actions, rows: changed, symbols: &[] };
        self.back.forward(&w[self.front.parameters()..], batch, tape)
    }
}
