//! Policies as constant arrays of C.

use std::fmt::{Debug, Write};

use phalanx_agent::policy::{AgentPolicy, Layer, Network, Policies, Rule, Term};

use super::Uses;

/// How many numbers there are in all.
pub fn numbers(policies: &Policies) -> usize {
    let rows = |rows: &[Vec<f64>]| rows.iter().map(Vec::len).sum::<usize>();
    let own = |agent: &AgentPolicy| match &agent.rule {
        Rule::Table { probabilities } => rows(probabilities),
        Rule::Linear { weights, .. } => rows(weights),
        _ => 0,
    };
    let networks = policies.networks.iter().map(|network| parameters(network).len());
    policies.agents.iter().map(own).chain(networks).sum()
}

/// The most numbers that go into a layer of a neural network, or come out of it.
pub fn widest(policies: &Policies) -> usize {
    let of_network = |network: &Network| {
        let rows = network.row_layer.as_ref().map_or(0, |layer| network.rows * layer.biases.len());
        let sizes = |layer: &Layer| layer.weights.len().max(layer.biases.len());
        network.layers.iter().map(sizes).fold(rows, usize::max)
    };
    policies.networks.iter().map(of_network).max().unwrap_or(0)
}

/// Types and arrays of everything that the code reads.
pub fn text(policies: &Policies, uses: &Uses) -> String {
    let mut text = String::new();
    if uses.networks() {
        text += NETWORK_TYPES;
        for (number, network) in policies.networks.iter().enumerate() {
            network_arrays(&mut text, number, network);
        }
        let rows: Vec<String> = policies.networks.iter().enumerate().map(network_row).collect();
        array(&mut text, "struct network", "networks", &rows);
    }
    let terms = if uses.terms { term_arrays(&mut text, &policies.agents) } else { Vec::new() };
    let _ = writeln!(text, "/* Whose states agents read, and how many states each has. */\n{MEMBER_TYPE}");
    let members: Vec<String> = (policies.agents.iter())
        .flat_map(|agent| agent.members.iter().zip(&agent.states))
        .map(|(member, states)| format!("{{{member}, {states}}}"))
        .collect();
    array(&mut text, "struct member", "members", &members);
    for agent in &policies.agents {
        if let Rule::Table { probabilities: rows } | Rule::Linear { weights: rows, .. } = &agent.rule {
            let numbers: Vec<String> = rows.iter().map(|row| list(row)).collect();
            array(&mut text, "double", &format!("numbers_{}", agent.agent), &numbers);
        }
    }
    agent_array(&mut text, &policies.agents, &terms, uses.networks());
    text
}

const NETWORK_TYPES: &str = "/* Weights stand as [input][output]. */
struct layer {
    int inputs, outputs;
    const float *weights, *biases;
};

/* Rows of numbers, or symbols of so many dimensions each; then layers. */
struct network {
    int rows;
    struct layer row_layer;
    int dimension;
    const float *embedding;
    int layers;
    const struct layer *layer;
};

";

const MEMBER_TYPE: &str = "struct member {
    int agent, states;
};
";

/// An array with one entry per line; nothing if there are none, which C does not know.
fn array(text: &mut String, kind: &str, name: &str, entries: &[String]) {
    if !entries.is_empty() {
        let _ = writeln!(text, "static const {kind} {name}[] = {{\n    {}\n}};\n", entries.join(",\n    "));
    }
}

/// Numbers, as Rust writes them: C reads the same ones.
fn list(numbers: &[impl Debug]) -> String {
    let numbers: Vec<String> = numbers.iter().map(|number| format!("{number:?}")).collect();
    numbers.join(", ")
}

/// All parameters of a neural network: row layer, embedding, layers, each layer's weights before its biases.
fn parameters(network: &Network) -> Vec<f32> {
    let layer = |layer: &Layer| [layer.weights.concat(), layer.biases.clone()].concat();
    let mut all = network.row_layer.as_ref().map(layer).unwrap_or_default();
    all.extend(network.embedding.concat());
    all.extend(network.layers.iter().flat_map(layer));
    all
}

/// The parameters of a neural network, and where its layers find theirs.
fn network_arrays(text: &mut String, number: usize, network: &Network) {
    const PER_LINE: usize = 8;
    let parameters = parameters(network);
    let float = |x: &f32| format!("{x:?}f");
    let lines = parameters.chunks(PER_LINE).map(|line| line.iter().map(float).collect::<Vec<_>>().join(", "));
    array(text, "float", &format!("parameters_{number}"), &lines.collect::<Vec<_>>());
    let mut first = embedding_place(network) + network.embedding.iter().map(Vec::len).sum::<usize>();
    let layers = network.layers.iter().map(|layer| {
        let row = layer_row(number, layer, first);
        first += (layer.weights.len() + 1) * layer.biases.len();
        row
    });
    let layers: Vec<String> = layers.collect();
    array(text, "struct layer", &format!("layers_{number}"), &layers);
}

/// Where the embedding begins: behind the layer of the rows.
fn embedding_place(network: &Network) -> usize {
    network.row_layer.as_ref().map_or(0, |layer| (layer.weights.len() + 1) * layer.biases.len())
}

fn layer_row(number: usize, layer: &Layer, first: usize) -> String {
    let (inputs, outputs) = (layer.weights.len(), layer.biases.len());
    let biases = first + inputs * outputs;
    format!("{{{inputs}, {outputs}, parameters_{number} + {first}, parameters_{number} + {biases}}}")
}

fn network_row((number, network): (usize, &Network)) -> String {
    let (rows, place) = (network.rows, embedding_place(network));
    let row_layer = network.row_layer.as_ref().map(|layer| layer_row(number, layer, 0));
    let row_layer = row_layer.unwrap_or_else(|| "{0, 0, NULL, NULL}".into());
    let dimension = network.embedding.first().map_or(0, Vec::len);
    let layers = network.layers.len();
    format!("{{{rows}, {row_layer}, {dimension}, parameters_{number} + {place}, {layers}, layers_{number}}}")
}

/// Terms of all agents, their digits, and what these read. Returns the first term of every agent, and their
/// number.
fn term_arrays(text: &mut String, agents: &[AgentPolicy]) -> Vec<[usize; 2]> {
    let (mut terms, mut digits, mut places) = (Vec::new(), Vec::new(), Vec::new());
    let (mut values, mut lists): (Vec<String>, Vec<(&[usize], usize)>) = (Vec::new(), Vec::new());
    let none: &[Term] = &[];
    let mut spans = Vec::with_capacity(agents.len());
    for agent in agents {
        let own = if let Rule::Linear { terms, .. } = &agent.rule { terms } else { none };
        spans.push([terms.len(), own.len()]);
        for term in own {
            terms.push(format!("{{{}, {}, {}}}", term.first, term.digits.len(), digits.len()));
            for digit in &term.digits {
                let known = lists.iter().find(|(list, _)| *list == digit.values).map(|(_, first)| *first);
                let first = known.unwrap_or_else(|| {
                    lists.push((&digit.values, values.len()));
                    values.extend(digit.values.iter().map(ToString::to_string));
                    lists[lists.len() - 1].1
                });
                digits.push(format!(
                    "{{{}, {}, {}, {}, {first}}}",
                    digit.stride,
                    digit.cap,
                    digit.members.len(),
                    places.len()
                ));
                places.extend(digit.members.iter().map(ToString::to_string));
            }
        }
    }
    *text += TERM_TYPES;
    array(text, "struct term", "terms", &terms);
    array(text, "struct digit", "digits", &digits);
    array(text, "int", "places", &places);
    array(text, "int", "values", &values);
    spans
}

const TERM_TYPES: &str = "/* A term names the row `row` + the sum of stride * digit over its digits. */
struct term {
    long row;
    int count, first_digit;
};

/* The smaller of `cap` and the sum of what the states of `count` members stand for. */
struct digit {
    long stride, cap;
    int count, first_place, first_value;
};

";

fn agent_array(text: &mut String, agents: &[AgentPolicy], terms: &[[usize; 2]], with_networks: bool) {
    *text += "enum kind { TABLE, TERMS, SYMBOLS, NUMBERS };\n\nstruct agent {\n    enum kind kind;\n    int actions, members, \
              first_member;\n    const double *numbers;\n    int terms, first_term;\n";
    *text += if with_networks { "    const struct network *network;\n};\n\n" } else { "};\n\n" };
    let mut first_member = 0;
    let row = |(place, agent): (usize, &AgentPolicy)| {
        let numbers = format!("numbers_{}", agent.agent);
        let (kind, numbers, network) = match &agent.rule {
            Rule::Table { .. } => ("TABLE", numbers, None),
            Rule::Linear { .. } => ("TERMS", numbers, None),
            Rule::Symbols { network } => ("SYMBOLS", "NULL".into(), Some(network)),
            Rule::Numbers { network, .. } | Rule::Places { network, .. } => {
                ("NUMBERS", "NULL".into(), Some(network))
            }
        };
        let [first_term, count] = terms.get(place).copied().unwrap_or_default();
        let network = match network {
            _ if !with_networks => String::new(),
            Some(network) => format!(", networks + {network}"),
            None => ", NULL".into(),
        };
        let (actions, members) = (agent.actions, agent.members.len());
        let first = first_member;
        first_member += members;
        format!("{{{kind}, {actions}, {members}, {first}, {numbers}, {count}, {first_term}{network}}}")
    };
    let rows: Vec<String> = agents.iter().enumerate().map(row).collect();
    array(text, "struct agent", "agents", &rows);
}
