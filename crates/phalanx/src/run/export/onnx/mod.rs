//! Policies as models of ONNX, one file for each agent, or for each neural network that agents share.

mod graph;
mod linear;
mod protobuf;

use std::collections::BTreeMap;

use phalanx_agent::policy::{AgentPolicy, Layer, Network, Policies, Rule};

use super::{File, Format, network_of};
use crate::base::error::ensure;
use crate::{Error, Result};
use graph::{Graph, Input, OUTPUT};

/// What the names of all files end in.
pub const ENDING: &str = ".onnx";

/// Files that a folder should hold at most.
const MOST_FILES: usize = 10_000;

/// One model for each agent; agents that share a neural network share its model.
pub fn files(policies: &Policies) -> Result<Vec<File>> {
    let mut users = vec![0; policies.networks.len()];
    for agent in &policies.agents {
        network_of(&agent.rule).into_iter().for_each(|network| users[network] += 1);
    }
    let mut models = BTreeMap::new();
    for agent in &policies.agents {
        let shared = network_of(&agent.rule).filter(|&network| users[network] > 1);
        let (number, name) = match shared {
            Some(network) => (network, format!("network-{network}{ENDING}")),
            None => (agent.agent as usize, format!("agent-{}{ENDING}", agent.agent)),
        };
        models.entry((shared.is_some(), number)).or_insert((name, agent));
    }
    ensure(models.len() <= MOST_FILES, || {
        let (count, json) = (models.len(), Format::Json.name());
        Error::argument("to", format!("{count} models are too many for a folder ({MOST_FILES}); use {json}"))
    })?;
    Ok(models
        .into_values()
        .map(|(name, agent)| File { name, bytes: model(agent, &policies.networks) })
        .collect())
}

/// The model of one agent.
fn model(agent: &AgentPolicy, networks: &[Network]) -> Vec<u8> {
    let states = Input::States(agent.members.len());
    let mut graph = Graph::default();
    let input = match &agent.rule {
        Rule::Table { probabilities } => {
            table(&mut graph, &agent.states, probabilities);
            states
        }
        Rule::Linear { terms, weights } => {
            linear::linear(&mut graph, terms, weights);
            states
        }
        Rule::Symbols { network } => {
            let network = &networks[*network];
            let embedding = graph.floats("embedding", &network.embedding);
            let found = graph.node("Gather", &[embedding, "states"], "embedded", &[("axis", 0)]);
            let width = network.embedding.first().map_or(0, Vec::len);
            let flat = graph.reshape(found, &[agent.members.len() * width], "embedded_flat");
            layers(&mut graph, flat, &network.layers);
            states
        }
        Rule::Numbers { network, .. } | Rule::Places { network, .. } => {
            let network = &networks[*network];
            let (width, flat) = match &network.row_layer {
                None => (network.layers.first().map_or(0, |layer| layer.weights.len()), "numbers"),
                Some(layer) => {
                    let width = layer.weights.len();
                    let rows = graph.reshape("numbers", &[network.rows, width], "rows");
                    let seen = dense(&mut graph, rows, layer, "row_layer");
                    let seen = graph.node("Relu", &[&seen], "row_layer.relu", &[]);
                    let sizes = [network.rows * layer.biases.len()];
                    (network.rows * width, graph.reshape(seen, &sizes, "rows_flat"))
                }
            };
            layers(&mut graph, flat, &network.layers);
            Input::Numbers(width)
        }
    };
    graph.into_file(&format!("agent {}", agent.agent), input, agent.actions)
}

/// The row of the joint state, the last member's state running fastest.
fn table(graph: &mut Graph, states: &[usize], probabilities: &[Vec<f64>]) {
    let mut strides = vec![1; states.len()];
    for member in (1..states.len()).rev() {
        strides[member - 1] = strides[member] * states[member] as i64;
    }
    let strides = graph.ints("strides", &[states.len()], &strides);
    let parts = graph.node("Mul", &["states", strides], "parts", &[]);
    let row = graph.sum(parts, 1, "row");
    let laws = graph.doubles("laws", probabilities);
    graph.node("Gather", &[laws, row], OUTPUT, &[("axis", 0)]);
}

/// The outputs of layers, with max(0, ·) after all but the last, and their soft-max.
fn layers(graph: &mut Graph, input: &str, layers: &[Layer]) {
    let mut now = input.to_string();
    for (number, layer) in layers.iter().enumerate() {
        let name = format!("layer-{number}");
        now = dense(graph, &now, layer, &name);
        if number + 1 < layers.len() {
            now = graph.node("Relu", &[&now], &format!("{name}.relu"), &[]).to_string();
        }
    }
    graph.softmax_of_floats(&now);
}

/// `input · weights + biases`; the name of it.
fn dense(graph: &mut Graph, input: &str, layer: &Layer, name: &str) -> String {
    let (weights, biases) = (format!("{name}.weights"), format!("{name}.biases"));
    graph.floats(&weights, &layer.weights);
    graph.float_list(&biases, &layer.biases);
    let product = format!("{name}.product");
    graph.node("MatMul", &[input, &weights], &product, &[]);
    graph.node("Add", &[&product, &biases], name, &[]).to_string()
}
