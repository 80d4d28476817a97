//! What a neural network looks like, and where its parameters lie.

use std::ops::Range;

use crate::{Error, Result};

/// The sizes of a neural network.
///
/// One sample is `rows.count · rows.width` numbers and, for each group of symbols, `slots` bytes. Every row
/// goes through one shared linear layer with ReLU, every symbol through its group's embedding table. The
/// concatenation `[rows | group 0 | group 1 | …]` goes through linear layers with ReLU (`hidden`) and a last
/// linear layer (`outputs`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Architecture {
    /// Rows of numbers, e.g. one per neighbour or frame; `None` for a neural network of symbols alone.
    pub rows: Option<Rows>,
    /// Groups of symbols, e.g. states and actions of the neighbours.
    pub symbols: Vec<Symbols>,
    /// Widths of the hidden layers.
    pub hidden: Vec<usize>,
    /// Numbers the neural network returns.
    pub outputs: usize,
}

/// Rows of numbers that share one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// Rows in a sample.
    pub count: usize,
    /// Numbers in a row.
    pub width: usize,
    /// Units that a row is turned into.
    pub hidden: usize,
}

/// Symbols that share one embedding table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbols {
    /// Symbols in a sample.
    pub slots: usize,
    /// Different symbols: 0, …, `vocabulary` − 1.
    pub vocabulary: usize,
    /// Numbers that a symbol is turned into.
    pub dimension: usize,
}

/// One linear layer: weights `[inputs][outputs]` at `offset`, then the biases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Linear {
    pub offset: usize,
    pub inputs: usize,
    pub outputs: usize,
}

/// One embedding table `[vocabulary][dimension]` at `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EmbeddingTable {
    pub offset: usize,
    pub symbols: Symbols,
    /// Its first slot among all the slots of a sample.
    pub slot: usize,
    /// Its first column in the concatenation.
    pub column: usize,
}

/// A named part of the parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// `rows.weight`, `rows.bias`, `symbols.0`, `hidden.0.weight`, `hidden.0.bias`, …, `output.weight`,
    /// `output.bias`.
    pub name: String,
    /// Row-major shape.
    pub shape: Vec<usize>,
    /// Where it lies in the slice of parameters.
    pub range: Range<usize>,
}

/// A checked architecture with its offsets. It holds no numbers: the parameters of one agent are one slice of
/// length [`Net::parameters`], in the order of [`Net::tensors`], weights `[in][out]` row-major with their
/// biases after them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Net {
    architecture: Architecture,
    pub(super) row_layer: Option<Linear>,
    pub(crate) tables: Vec<EmbeddingTable>,
    /// Hidden layers and the output layer.
    pub(crate) layers: Vec<Linear>,
    pub(super) slots: usize,
    parameters: usize,
}

/// Largest size of anything; products of three of them fit a `u64`.
const LARGEST: usize = 1 << 16;

impl Net {
    /// Checks an architecture and lays out its parameters. `field` is the setting that errors name.
    pub fn new(architecture: Architecture, field: &str) -> Result<Self> {
        validate(&architecture, field)?;
        let row_layer =
            (architecture.rows).map(|rows| Linear { offset: 0, inputs: rows.width, outputs: rows.hidden });
        let mut end = row_layer.map_or(0, |layer| layer.biases().end);
        let (mut slot, mut column) = (0, architecture.rows.map_or(0, |rows| rows.count * rows.hidden));
        let mut tables = Vec::new();
        for &symbols in &architecture.symbols {
            tables.push(EmbeddingTable { offset: end, symbols, slot, column });
            end += symbols.vocabulary * symbols.dimension;
            slot += symbols.slots;
            column += symbols.slots * symbols.dimension;
        }
        let mut layers = Vec::new();
        let mut inputs = column;
        for &outputs in architecture.hidden.iter().chain([&architecture.outputs]) {
            layers.push(Linear { offset: end, inputs, outputs });
            end += (inputs + 1) * outputs;
            inputs = outputs;
        }
        Ok(Net { architecture, row_layer, tables, layers, slots: slot, parameters: end })
    }

    /// The sizes.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// How many parameters there are.
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// How many numbers one sample has.
    pub fn row_inputs(&self) -> usize {
        self.architecture.rows.map_or(0, |rows| rows.count * rows.width)
    }

    /// How many symbols one sample has.
    pub fn symbol_inputs(&self) -> usize {
        self.slots
    }

    /// How many numbers the neural network returns for a sample.
    pub fn outputs(&self) -> usize {
        self.architecture.outputs
    }

    /// The last layer.
    pub(crate) fn output_layer(&self) -> &Linear {
        &self.layers[self.layers.len() - 1]
    }

    /// Columns of the concatenation that come from rows.
    pub(super) fn row_columns(&self) -> usize {
        self.architecture.rows.map_or(0, |rows| rows.count * rows.hidden)
    }

    /// Every part of the parameters, in order and without gaps.
    pub fn tensors(&self) -> Vec<Tensor> {
        let rows = self.row_layer.iter().flat_map(|layer| layer.tensors("rows"));
        let symbols = self.tables.iter().enumerate().map(|(g, table)| {
            let Symbols { vocabulary, dimension, .. } = table.symbols;
            Tensor { name: format!("symbols.{g}"), shape: vec![vocabulary, dimension], range: table.range() }
        });
        let last = self.layers.len() - 1;
        let layers = self.layers.iter().enumerate().flat_map(|(l, layer)| {
            let name = if l == last { "output".to_string() } else { format!("hidden.{l}") };
            layer.tensors(&name)
        });
        rows.chain(symbols).chain(layers).collect()
    }
}

impl Linear {
    /// Its weights and biases.
    fn tensors(&self, name: &str) -> [Tensor; 2] {
        let tensor = |part: &str, shape, range| Tensor { name: format!("{name}.{part}"), shape, range };
        let weight = tensor("weight", vec![self.inputs, self.outputs], self.weights());
        [weight, tensor("bias", vec![self.outputs], self.biases())]
    }

    pub fn weights(&self) -> Range<usize> {
        self.offset..self.offset + self.inputs * self.outputs
    }

    pub fn biases(&self) -> Range<usize> {
        let end = self.weights().end;
        end..end + self.outputs
    }
}

impl EmbeddingTable {
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.symbols.vocabulary * self.symbols.dimension
    }
}

fn validate(architecture: &Architecture, field: &str) -> Result<()> {
    let check = |name: String, value: usize, largest: usize| {
        let problem = match value {
            0 => "not allowed",
            v if v > largest => "too large",
            _ => return Ok(()),
        };
        Err(Error::config(format!("{field}.{name}"), format!("{value} is {problem}; use 1 to {largest}")))
    };
    if let Some(rows) = architecture.rows {
        for (name, value) in [("count", rows.count), ("width", rows.width), ("hidden", rows.hidden)] {
            check(format!("rows.{name}"), value, LARGEST)?;
        }
    }
    for (g, group) in architecture.symbols.iter().enumerate() {
        check(format!("symbols.{g}.slots"), group.slots, LARGEST)?;
        check(format!("symbols.{g}.vocabulary"), group.vocabulary, 256)?;
        check(format!("symbols.{g}.dimension"), group.dimension, LARGEST)?;
    }
    for (l, &width) in architecture.hidden.iter().enumerate() {
        check(format!("hidden.{l}"), width, LARGEST)?;
    }
    check("outputs".into(), architecture.outputs, LARGEST)?;
    if architecture.rows.is_none() && architecture.symbols.is_empty() {
        return Err(Error::config(field, "a network needs rows or symbols to read; it has neither"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_and_symbols() -> Architecture {
        Architecture {
            rows: Some(Rows { count: 2, width: 3, hidden: 4 }),
            symbols: vec![
                Symbols { slots: 3, vocabulary: 5, dimension: 2 },
                Symbols { slots: 1, vocabulary: 2, dimension: 6 },
            ],
            hidden: vec![7],
            outputs: 2,
        }
    }

    #[test]
    fn tensors_tile_the_parameters() {
        let net = Net::new(rows_and_symbols(), "net").unwrap();
        let tensors = net.tensors();
        let mut end = 0;
        for tensor in &tensors {
            assert_eq!(tensor.range.start, end, "{}", tensor.name);
            assert_eq!(tensor.range.len(), tensor.shape.iter().product::<usize>(), "{}", tensor.name);
            end = tensor.range.end;
        }
        assert_eq!(end, net.parameters());
        // (3+1)·4 + 5·2 + 2·6 + (8+6+6+1)·7 + (7+1)·2.
        assert_eq!(end, 16 + 10 + 12 + 147 + 16);
        let names: Vec<_> = tensors.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "rows.weight",
                "rows.bias",
                "symbols.0",
                "symbols.1",
                "hidden.0.weight",
                "hidden.0.bias",
                "output.weight",
                "output.bias"
            ]
        );
        assert_eq!((net.row_inputs(), net.symbol_inputs(), net.outputs()), (6, 4, 2));
    }

    #[test]
    fn unusable_sizes_are_named() {
        let message = |change: fn(&mut Architecture)| {
            let mut architecture = rows_and_symbols();
            change(&mut architecture);
            Net::new(architecture, "critic.net").unwrap_err().to_string()
        };
        assert_eq!(message(|a| a.hidden[0] = 0), "critic.net.hidden.0: 0 is not allowed; use 1 to 65536");
        assert_eq!(
            message(|a| a.symbols[1].vocabulary = 257),
            "critic.net.symbols.1.vocabulary: 257 is too large; use 1 to 256"
        );
        assert_eq!(
            message(|a| a.rows = Some(Rows { count: 1, width: 0, hidden: 2 })),
            "critic.net.rows.width: 0 is not allowed; use 1 to 65536"
        );
        assert_eq!(message(|a| a.outputs = 0), "critic.net.outputs: 0 is not allowed; use 1 to 65536");
        assert_eq!(
            message(|a| (a.rows, a.symbols) = (None, vec![])),
            "critic.net: a network needs rows or symbols to read; it has neither"
        );
    }
}
