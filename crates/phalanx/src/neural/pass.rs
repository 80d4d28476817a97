//! Forward and backward passes of a batch.
//!
//! The embeddings of a batch repeat: there are few symbols and many samples. Where it pays, the first layer
//! therefore never sees the embeddings of the samples. Each slot's part of its weights is multiplied with the
//! embedding *table* instead, and a sample adds up one row per slot of the products; backward, the gradients
//! of the samples with the same symbol are added up first. The sums are the same in another order.

use super::architecture::{EmbeddingTable, Linear, Net, Symbols};
use super::kernel::{Form, ensure_length, multiply};
use super::lanes::Lanes;
use super::matrix::{Codes, Finish, Matrix, MatrixMut, Start};
use super::ops::{GatherSum, add_rows, gather, scatter, scatter_sum};

/// Samples for one neural network.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a, T> {
    /// How many.
    pub size: usize,
    /// `size` × (rows · width) numbers.
    pub rows: &'a [T],
    /// `size` × slots of all groups, one byte each, below the group's vocabulary.
    pub symbols: &'a [u8],
}

/// What a forward pass leaves for the backward pass, in buffers that are used again. One tape serves neural
/// networks of any size, one after the other.
#[derive(Debug, Clone, Default)]
pub struct Tape<T> {
    pub(super) scratch: Vec<T>,
    /// What the first layer reads: `[rows | embeddings]`, or the rows alone where embeddings come in
    /// products.
    pub(super) input: Vec<T>,
    /// What each layer returns; the last one holds the outputs.
    pub(super) layers: Vec<Vec<T>>,
    /// Products of embedding tables and weights, then their gradients.
    products: Vec<T>,
    /// Gradients of the layer at hand and of the one below.
    pub(super) above: Vec<T>,
    pub(super) below: Vec<T>,
    /// Size of the batch of the last forward pass.
    size: usize,
}

impl Net {
    /// The outputs, `size` × [`Net::outputs`].
    ///
    /// `w` are the parameters. Cost: 2 operations a weight and sample. Symbols must be below their
    /// vocabulary.
    pub fn forward<'t, T: Lanes>(&self, w: &[T], batch: Batch<T>, tape: &'t mut Tape<T>) -> &'t [T] {
        self.check(w, batch);
        let Tape { scratch, input, layers, products, size, .. } = tape;
        *size = batch.size;
        if layers.len() < self.layers.len() {
            layers.resize_with(self.layers.len(), Vec::new);
        }
        let tabled = self.is_tabled(batch.size);
        let width = self.input_width(tabled);
        let input = ensure_length(input, batch.size * width);
        if let Some(layer) = &self.row_layer {
            self.each_row_block(batch, width, |x, column, stride| {
                let start = Start::Bias(&w[layer.biases()]);
                let y =
                    MatrixMut { data: &mut input[column..], rows: x.rows, columns: layer.outputs, stride };
                multiply(Form::Plain, x, layer.matrix(w), start, Finish::Relu, y, scratch);
            });
        }
        if !tabled {
            for table in &self.tables {
                let y = MatrixMut::new(input, batch.size, width).columns(table.column, table.width());
                gather(table.matrix(w), self.codes(table, batch), y);
            }
        }
        let last = self.layers.len() - 1;
        for (l, layer) in self.layers.iter().enumerate() {
            let (below, here) = layers.split_at_mut(l);
            let y = ensure_length(&mut here[0], batch.size * layer.outputs);
            let finish = if l == last { Finish::Plain } else { Finish::Relu };
            let bias = &w[layer.biases()];
            let (x, start) = match below.last() {
                Some(x) => (Matrix::new(x, batch.size, layer.inputs), Start::Bias(bias)),
                None if tabled => {
                    for (g, table) in self.tables.iter().enumerate() {
                        self.multiply_table(w, table, scratch, products);
                        let Symbols { slots, vocabulary, .. } = table.symbols;
                        let codes = self.codes(table, batch);
                        let table = Matrix::new(products, slots * vocabulary, layer.outputs);
                        let start = if g == 0 { Start::Bias(bias) } else { Start::Result };
                        let y = MatrixMut::new(y, batch.size, layer.outputs);
                        T::dispatch(GatherSum { table, codes, vocabulary, start, y });
                    }
                    (Matrix::new(input, batch.size, width), Start::Result)
                }
                None => (Matrix::new(input, batch.size, width), Start::Bias(bias)),
            };
            let weights = layer.weight_rows(w, 0, x.columns);
            let y = MatrixMut::new(y, batch.size, layer.outputs);
            multiply(Form::Plain, x, weights, start, finish, y, scratch);
        }
        &layers[last][..batch.size * self.outputs()]
    }

    /// The gradient of Σ `d_outputs` · outputs in the parameters, for the batch and parameters of the last
    /// forward pass.
    ///
    /// `gradient` is overwritten. Cost: 4 operations a weight and sample, 2 for the layer of the rows.
    pub fn backward<T: Lanes>(
        &self,
        w: &[T],
        batch: Batch<T>,
        tape: &mut Tape<T>,
        d_outputs: &[T],
        gradient: &mut [T],
    ) {
        self.check(w, batch);
        assert_eq!(gradient.len(), self.parameters(), "a gradient for each parameter");
        assert_eq!(d_outputs.len(), batch.size * self.outputs(), "a derivative for each output");
        assert_eq!(tape.size, batch.size, "backward follows the forward pass of the same batch");
        let Tape { scratch, input, layers, products, above, below, .. } = tape;
        let size = batch.size;
        ensure_length(above, d_outputs.len()).copy_from_slice(d_outputs);
        for (l, layer) in self.layers.iter().enumerate().skip(1).rev() {
            let x = Matrix::new(&layers[l - 1], size, layer.inputs);
            let dy = Matrix::new(above, size, layer.outputs);
            layer.backward(x, dy, scratch, gradient);
            let dx = MatrixMut::new(ensure_length(below, size * layer.inputs), size, layer.inputs);
            let (weights, mask) = (layer.matrix(w), Finish::Mask(x));
            multiply(Form::RightTransposed, dy, weights, Start::Zero, mask, dx, scratch);
            std::mem::swap(above, below);
        }
        let layer = &self.layers[0];
        let tabled = self.is_tabled(size);
        let width = self.input_width(tabled);
        let dy = Matrix::new(above, size, layer.outputs);
        let x = Matrix::new(input, size, width);
        layer.backward(x, dy, scratch, gradient);
        if tabled {
            for table in &self.tables {
                self.backward_products(w, table, dy, batch, scratch, products, gradient);
            }
        }
        let dx = ensure_length(below, size * width);
        if let Some(row_layer) = &self.row_layer {
            let columns = self.row_columns();
            let mask = Finish::Mask(x.columns(0, columns));
            let d_rows = MatrixMut::new(dx, size, width).columns(0, columns);
            let weights = layer.weight_rows(w, 0, columns);
            multiply(Form::RightTransposed, dy, weights, Start::Zero, mask, d_rows, scratch);
            gradient[row_layer.offset..row_layer.biases().end].fill(T::ZERO);
            self.each_row_block(batch, width, |x, column, stride| {
                let dy = Matrix { data: &dx[column..], rows: x.rows, columns: row_layer.outputs, stride };
                let (weights, biases) = gradient[row_layer.offset..row_layer.biases().end]
                    .split_at_mut(row_layer.weights().len());
                let dw = MatrixMut::new(weights, row_layer.inputs, row_layer.outputs);
                multiply(Form::LeftTransposed, x, dy, Start::Result, Finish::Plain, dw, scratch);
                add_rows(dy, biases);
            });
        }
        if !tabled {
            for table in &self.tables {
                let (column, columns) = (table.column, table.width());
                let d_table = MatrixMut::new(dx, size, width).columns(column, columns);
                let weights = layer.weight_rows(w, column, columns);
                multiply(Form::RightTransposed, dy, weights, Start::Zero, Finish::Plain, d_table, scratch);
                let d_table = Matrix::new(dx, size, width).columns(column, columns);
                let target = &mut gradient[table.range()];
                target.fill(T::ZERO);
                let target = MatrixMut::new(target, table.symbols.vocabulary, table.symbols.dimension);
                scatter(d_table, self.codes(table, batch), target);
            }
        }
    }

    pub(super) fn check<T: Lanes>(&self, w: &[T], batch: Batch<T>) {
        assert_eq!(w.len(), self.parameters(), "parameters of another network");
        assert_eq!(batch.rows.len(), batch.size * self.row_inputs(), "rows of another network");
        assert_eq!(batch.symbols.len(), batch.size * self.symbol_inputs(), "symbols of another network");
    }

    /// Whether embeddings come in products of tables and weights: fewer operations for all groups together.
    fn is_tabled(&self, size: usize) -> bool {
        let (mut dense, mut tabled) = (0, 0);
        for Symbols { slots, vocabulary, dimension } in self.tables.iter().map(|table| table.symbols) {
            dense += slots * size * dimension;
            // Adding up rows takes about as long as this many multiplications.
            tabled += slots * (vocabulary * dimension + size * 2);
        }
        tabled < dense
    }

    /// Columns that the first layer reads from memory.
    fn input_width(&self, tabled: bool) -> usize {
        if tabled { self.row_columns() } else { self.layers[0].inputs }
    }

    /// Calls `each` with the rows of a batch, the place in the input where they go, and the stride there: all
    /// at once where the rows lie without gaps, else one row of every sample at a time.
    fn each_row_block<T: Lanes>(
        &self,
        batch: Batch<T>,
        width: usize,
        mut each: impl FnMut(Matrix<T>, usize, usize),
    ) {
        let Some(rows) = self.architecture().rows else { return };
        if width == rows.count * rows.hidden || batch.size == 1 {
            each(Matrix::new(batch.rows, batch.size * rows.count, rows.width), 0, rows.hidden);
        } else if batch.size > 0 {
            let all = Matrix::new(batch.rows, batch.size, rows.count * rows.width);
            (0..rows.count)
                .for_each(|r| each(all.columns(r * rows.width, rows.width), r * rows.hidden, width));
        }
    }

    fn codes<'a, T>(&self, table: &EmbeddingTable, batch: Batch<'a, T>) -> Codes<'a> {
        let data = batch.symbols.get(table.slot..).unwrap_or(&[]);
        Codes { data, slots: table.symbols.slots, stride: self.slots }
    }

    /// The product of a table with each slot's part of the first layer's weights, `[slot][symbol][output]`.
    fn multiply_table<T: Lanes>(
        &self,
        w: &[T],
        table: &EmbeddingTable,
        scratch: &mut Vec<T>,
        products: &mut Vec<T>,
    ) {
        let layer = &self.layers[0];
        let Symbols { slots, vocabulary, dimension } = table.symbols;
        let products = ensure_length(products, slots * vocabulary * layer.outputs);
        for (slot, y) in products.chunks_exact_mut(vocabulary * layer.outputs).enumerate() {
            let weights = layer.weight_rows(w, table.column + slot * dimension, dimension);
            let y = MatrixMut::new(y, vocabulary, layer.outputs);
            multiply(Form::Plain, table.matrix(w), weights, Start::Zero, Finish::Plain, y, scratch);
        }
    }

    /// Backward through the products of a table.
    #[allow(clippy::too_many_arguments)]
    fn backward_products<T: Lanes>(
        &self,
        w: &[T],
        table: &EmbeddingTable,
        dy: Matrix<T>,
        batch: Batch<T>,
        scratch: &mut Vec<T>,
        products: &mut Vec<T>,
        gradient: &mut [T],
    ) {
        let layer = &self.layers[0];
        let Symbols { slots, vocabulary, dimension } = table.symbols;
        let products = ensure_length(products, slots * vocabulary * layer.outputs);
        products.fill(T::ZERO);
        let d_products = MatrixMut::new(products, slots * vocabulary, layer.outputs);
        scatter_sum(dy, self.codes(table, batch), vocabulary, d_products);
        for (slot, dp) in products.chunks_exact(vocabulary * layer.outputs).enumerate() {
            let dp = Matrix::new(dp, vocabulary, layer.outputs);
            let row = table.column + slot * dimension;
            let dw = &mut gradient[layer.offset + row * layer.outputs..][..dimension * layer.outputs];
            let dw = MatrixMut::new(dw, dimension, layer.outputs);
            multiply(Form::LeftTransposed, table.matrix(w), dp, Start::Zero, Finish::Plain, dw, scratch);
            let start = if slot == 0 { Start::Zero } else { Start::Result };
            let d_table = MatrixMut::new(&mut gradient[table.range()], vocabulary, dimension);
            let weights = layer.weight_rows(w, row, dimension);
            multiply(Form::RightTransposed, dp, weights, start, Finish::Plain, d_table, scratch);
        }
    }
}

impl Linear {
    pub(super) fn matrix<'a, T>(&self, w: &'a [T]) -> Matrix<'a, T> {
        self.weight_rows(w, 0, self.inputs)
    }

    /// The weights of the inputs from `first` on, `count` of them.
    fn weight_rows<'a, T>(&self, w: &'a [T], first: usize, count: usize) -> Matrix<'a, T> {
        Matrix::new(&w[self.weights()][first * self.outputs..], count, self.outputs)
    }

    /// Backward to the biases and to the weights of the inputs that `x` has.
    fn backward<T: Lanes>(&self, x: Matrix<T>, dy: Matrix<T>, scratch: &mut Vec<T>, gradient: &mut [T]) {
        let dw = MatrixMut::new(&mut gradient[self.weights()], x.columns, self.outputs);
        multiply(Form::LeftTransposed, x, dy, Start::Zero, Finish::Plain, dw, scratch);
        let db = &mut gradient[self.biases()];
        db.fill(T::ZERO);
        add_rows(dy, db);
    }
}

impl EmbeddingTable {
    pub(super) fn matrix<'a, T>(&self, w: &'a [T]) -> Matrix<'a, T> {
        Matrix::new(&w[self.range()], self.symbols.vocabulary, self.symbols.dimension)
    }

    /// Columns of the concatenation.
    fn width(&self) -> usize {
        self.symbols.slots * self.symbols.dimension
    }
}
