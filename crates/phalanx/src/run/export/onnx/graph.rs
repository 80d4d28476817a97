//! Models of ONNX: operators, constants, one input and one output. Field numbers are those of `onnx.proto3`.

use super::protobuf::Message;
use crate::base::durable::little_endian;

/// Version of the operators.
pub const OPSET: u64 = 17;
/// Version of the file format that came with them.
const IR_VERSION: u64 = 8;

/// Types of numbers, as ONNX counts them.
const FLOAT: u64 = 1;
const INT64: u64 = 7;
const DOUBLE: u64 = 11;

/// Name of the dimension that may have any size.
const BATCH: &str = "batch";
/// Name of the only output.
pub const OUTPUT: &str = "probabilities";

/// The only input of a model.
#[derive(Debug, Clone, Copy)]
pub enum Input {
    /// `states`: so many whole numbers per sample.
    States(usize),
    /// `numbers`: so many numbers per sample, in single precision.
    Numbers(usize),
}

impl Input {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Input::States(_) => "states",
            Input::Numbers(_) => "numbers",
        }
    }

    fn described(self) -> Message {
        match self {
            Input::States(count) => described(self.name(), INT64, count),
            Input::Numbers(count) => described(self.name(), FLOAT, count),
        }
    }
}

/// A model on its way: operators in the order in which they are carried out.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: Vec<Message>,
    constants: Vec<Message>,
}

impl Graph {
    /// Adds an operator of `inputs`; returns the name of what it computes, `output`.
    pub fn node<'a>(
        &mut self,
        operator: &str,
        inputs: &[&str],
        output: &'a str,
        settings: &[(&str, i64)],
    ) -> &'a str {
        let setting = |&(name, value): &(&str, i64)| {
            const IS_INT: u64 = 2;
            Message::default().text(1, name).int(3, value as u64).int(20, IS_INT)
        };
        let settings: Vec<Message> = settings.iter().map(setting).collect();
        let node = Message::default().texts(1, inputs).text(2, output).text(3, output);
        self.nodes.push(node.text(4, operator).messages(5, &settings));
        output
    }

    /// Adds whole numbers; returns their name.
    pub fn ints<'a>(&mut self, name: &'a str, shape: &[usize], values: &[i64]) -> &'a str {
        self.constant(name, INT64, shape, &little_endian(values))
    }

    /// Adds numbers in double precision; returns their name.
    pub fn doubles<'a>(&mut self, name: &'a str, rows: &[Vec<f64>]) -> &'a str {
        let shape = [rows.len(), rows.first().map_or(0, Vec::len)];
        self.constant(name, DOUBLE, &shape, &little_endian(&rows.concat()))
    }

    /// Adds a matrix in single precision; returns its name.
    pub fn floats<'a>(&mut self, name: &'a str, rows: &[Vec<f32>]) -> &'a str {
        let shape = [rows.len(), rows.first().map_or(0, Vec::len)];
        self.constant(name, FLOAT, &shape, &little_endian(&rows.concat()))
    }

    /// Adds a list in single precision; returns its name.
    pub fn float_list<'a>(&mut self, name: &'a str, values: &[f32]) -> &'a str {
        self.constant(name, FLOAT, &[values.len()], &little_endian(values))
    }

    fn constant<'a>(&mut self, name: &'a str, kind: u64, shape: &[usize], bytes: &[u8]) -> &'a str {
        let tensor = Message::default().ints(1, shape.iter().map(|&size| size as u64)).int(2, kind);
        self.constants.push(tensor.text(8, name).bytes(9, bytes));
        name
    }

    /// Adds the sum over an axis, which disappears; returns its name.
    pub fn sum<'a>(&mut self, of: &str, axis: i64, output: &'a str) -> &'a str {
        let axes = format!("{output}.axes");
        self.ints(&axes, &[1], &[axis]);
        self.node("ReduceSum", &[of, &axes], output, &[("keepdims", 0)])
    }

    /// Gives every sample another shape; returns the name of the result.
    pub fn reshape<'a>(&mut self, of: &str, sample: &[usize], output: &'a str) -> &'a str {
        let shape = format!("{output}.shape");
        // 0: as many samples as before.
        let sizes: Vec<i64> = std::iter::once(0).chain(sample.iter().map(|&size| size as i64)).collect();
        self.ints(&shape, &[sizes.len()], &sizes);
        self.node("Reshape", &[of, &shape], output, &[])
    }

    /// Ends with the soft-max, in double precision, of logits in double precision.
    pub fn softmax(&mut self, logits: &str) {
        self.node("Softmax", &[logits], OUTPUT, &[("axis", 1)]);
    }

    /// Ends with the soft-max, in double precision, of logits in single precision.
    pub fn softmax_of_floats(&mut self, logits: &str) {
        let wide = self.node("Cast", &[logits], "wide_logits", &[("to", DOUBLE as i64)]);
        self.softmax(wide);
    }

    /// The bytes of the model's file.
    pub fn into_file(self, name: &str, input: Input, actions: usize) -> Vec<u8> {
        let graph = Message::default().messages(1, &self.nodes).text(2, name).messages(5, &self.constants);
        let graph = graph.message(11, &input.described()).message(12, &described(OUTPUT, DOUBLE, actions));
        let operators = Message::default().text(1, "").int(2, OPSET);
        let model =
            Message::default().int(1, IR_VERSION).text(2, "phalanx").text(3, env!("CARGO_PKG_VERSION"));
        model.message(7, &graph).message(8, &operators).into_bytes()
    }
}

/// The description of an input or output of any number of samples.
fn described(name: &str, kind: u64, columns: usize) -> Message {
    let batch = Message::default().text(2, BATCH);
    let columns = Message::default().int(1, columns as u64);
    let shape = Message::default().message(1, &batch).message(1, &columns);
    let tensor = Message::default().int(1, kind).message(2, &shape);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}
