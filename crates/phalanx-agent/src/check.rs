//! Reading policies: a file that cannot be used gives an error, never a panic later on.

use std::path::Path;

use crate::error::{Error, Result, ensure};
use crate::hops;
use crate::policy::{AgentPolicy, FORMAT, Layer, Network, Policies, Rule, VERSION};

/// States and actions are stored as bytes.
const LARGEST_SPACE: usize = 256;

/// The largest κ: neighbours and members of more hops than that are not what messages are for.
pub const LARGEST_KAPPA: usize = 63;

impl Policies {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Policies> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::new(format!("{}: cannot be read: {error}", path.display())))?;
        Policies::read(&text).map_err(|error| Error::new(format!("{}: {error}", path.display())))
    }

    /// Reads the text of a file.
    pub fn read(text: &str) -> Result<Policies> {
        let policies: Policies =
            serde_json::from_str(text).map_err(|error| Error::new(format!("no policies: {error}")))?;
        policies.check()?;
        Ok(policies)
    }

    /// A number that differs from that of other policies, whatever the file looks like.
    pub fn checksum(&self) -> u32 {
        // Maps of strings only: writing them cannot fail.
        crc32c::crc32c(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Whether every length and every index fits, and everybody reads those within κ hops.
    pub fn check(&self) -> Result<()> {
        ensure(self.format == FORMAT, || format!("format is `{}`, not `{FORMAT}`", self.format))?;
        ensure(self.version == VERSION, || {
            format!("version {}; this program reads version {VERSION}", self.version)
        })?;
        ensure(self.kappa <= LARGEST_KAPPA, || format!("kappa {}; at most {LARGEST_KAPPA}", self.kappa))?;
        for (number, network) in self.networks.iter().enumerate() {
            network.check().map_err(|error| Error::new(format!("network {number}: {error}")))?;
        }
        for (number, agent) in self.agents.iter().enumerate() {
            let of_agent = |error| Error::new(format!("agent {number}: {error}"));
            ensure(agent.agent as usize == number, || format!("is numbered {}", agent.agent))
                .and_then(|()| self.check_links(agent))
                .map_err(of_agent)?;
        }
        // Hops are counted once all links are known to be in range.
        for (number, agent) in self.agents.iter().enumerate() {
            let of_agent = |error| Error::new(format!("agent {number}: {error}"));
            self.check_members(agent).and_then(|()| agent.check_rule(&self.networks)).map_err(of_agent)?;
        }
        Ok(())
    }

    fn check_links(&self, agent: &AgentPolicy) -> Result<()> {
        ensure(agent.neighbours.is_sorted_by(|a, b| a < b), || "neighbours do not ascend".into())?;
        for &j in &agent.neighbours {
            let other = self.agents.get(j as usize);
            ensure(other.is_some() && j != agent.agent, || format!("agent {j} cannot be a neighbour"))?;
            ensure(other.is_some_and(|other| other.neighbours.binary_search(&agent.agent).is_ok()), || {
                format!("agent {j} is a neighbour that does not know it")
            })?;
        }
        Ok(())
    }

    fn check_members(&self, agent: &AgentPolicy) -> Result<()> {
        let within = hops::within(self, agent.agent, self.kappa);
        ensure(within.iter().map(|(m, _)| *m).eq(agent.members.iter().copied()), || {
            format!("members are not the agents within {} hops", self.kappa)
        })?;
        ensure(agent.states.len() == agent.members.len(), || "members and states differ in number".into())?;
        ensure(agent.usual.len() == agent.members.len(), || "members and usual differ in number".into())?;
        for (&states, &usual) in agent.states.iter().zip(&agent.usual) {
            ensure((1..=LARGEST_SPACE).contains(&states), || {
                format!("{states} states; allowed are 1 to {LARGEST_SPACE}")
            })?;
            ensure(usize::from(usual) < states, || format!("state {usual} of {states} as the usual one"))?;
        }
        ensure((1..=LARGEST_SPACE).contains(&agent.actions), || {
            format!("{} actions; allowed are 1 to {LARGEST_SPACE}", agent.actions)
        })
    }
}

impl AgentPolicy {
    fn check_rule(&self, networks: &[Network]) -> Result<()> {
        let outputs = |network: usize| {
            let found =
                networks.get(network).ok_or_else(|| Error::new(format!("there is no network {network}")))?;
            let outputs = found.outputs();
            ensure(outputs == self.actions, || {
                format!("network {network} has {outputs} outputs for {} actions", self.actions)
            })?;
            Ok(found)
        };
        match &self.rule {
            Rule::Table { probabilities } => {
                let joint = self.states.iter().try_fold(1_usize, |joint, &s| joint.checked_mul(s));
                ensure(joint == Some(probabilities.len()), || {
                    format!("{} rows of probabilities for the joint states", probabilities.len())
                })?;
                for row in probabilities {
                    self.check_row(row)?;
                    ensure(row.iter().all(|p| *p >= 0.0) && row.iter().sum::<f64>() > 0.0, || {
                        "a row is no law".into()
                    })?;
                }
                Ok(())
            }
            Rule::Linear { weights, .. } => {
                weights.iter().try_for_each(|row| self.check_row(row))?;
                self.check_terms()
            }
            Rule::Symbols { network } => {
                let found = outputs(*network)?;
                ensure(found.embedding.len() >= self.most_states(), || "a state has no embedding".into())?;
                let width = self.members.len() * found.embedding.first().map_or(0, Vec::len);
                ensure(found.row_layer.is_none() && found.inputs() == width, || {
                    format!("network {network} reads {} numbers, not {width}", found.inputs())
                })
            }
            Rule::Numbers { network, .. } => outputs(*network).map(|_| ()),
            Rule::Places { network, places, site } => {
                let found = outputs(*network)?;
                let width = places.first().map_or(0, Vec::len);
                ensure(places.len() == self.members.len(), || "members and places differ in number".into())?;
                ensure(places.iter().all(|place| place.len() == width), || {
                    "places differ in the number of their numbers".into()
                })?;
                let numbers = places.iter().flatten().chain(site);
                ensure(numbers.into_iter().all(|x| x.is_finite()), || "a place has no finite number".into())?;
                // Members may have fewer states than others that share the neural network.
                let sums = found.numbers().checked_sub(site.len());
                let fits = sums.is_some_and(|sums| {
                    sums >= self.most_states() * width && sums.checked_rem(width).unwrap_or(sums) == 0
                });
                ensure(fits, || {
                    let least = self.most_states() * width + site.len();
                    format!("network {network} reads {} numbers, not {least}", found.numbers())
                })
            }
        }
    }

    fn check_row(&self, row: &[f64]) -> Result<()> {
        ensure(row.len() == self.actions, || {
            format!("a row of {} numbers for {} actions", row.len(), self.actions)
        })?;
        ensure(row.iter().all(|x| x.is_finite()), || "a number is not finite".into())
    }

    fn check_terms(&self) -> Result<()> {
        let Rule::Linear { terms, weights } = &self.rule else { return Ok(()) };
        for term in terms {
            let mut last = term.first;
            for digit in &term.digits {
                let mut most = 0_usize;
                for &m in &digit.members {
                    let states = self.states.get(m);
                    let values = states.and_then(|&states| digit.values.get(..states));
                    let values =
                        values.ok_or_else(|| Error::new(format!("a digit cannot read member {m}")))?;
                    most = most.saturating_add(values.iter().copied().max().unwrap_or(0));
                }
                last = last.saturating_add(digit.stride.saturating_mul(most.min(digit.cap)));
            }
            ensure(last < weights.len(), || {
                format!("a term names row {last}, and there are {} of weights", weights.len())
            })?;
        }
        Ok(())
    }
}

impl Network {
    /// How many numbers come out.
    pub fn outputs(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.biases.len())
    }

    /// How many numbers the first layer behind rows and embeddings reads.
    pub fn inputs(&self) -> usize {
        self.layers.first().map_or(0, |layer| layer.weights.len())
    }

    /// How many numbers it reads where there are no symbols.
    pub fn numbers(&self) -> usize {
        self.row_layer.as_ref().map_or(self.inputs(), |layer| self.rows * layer.weights.len())
    }

    fn check(&self) -> Result<()> {
        ensure(!self.layers.is_empty(), || "has no layers".into())?;
        self.layers.iter().chain(&self.row_layer).try_for_each(Layer::check)?;
        for pair in self.layers.windows(2) {
            ensure(pair[0].biases.len() == pair[1].weights.len(), || "layers do not fit each other".into())?;
        }
        let width = self.embedding.first().map_or(0, Vec::len);
        ensure(self.embedding.iter().all(|row| row.len() == width), || "embeddings differ in length".into())?;
        ensure(self.embedding.iter().flatten().all(|x| x.is_finite()), || {
            "an embedding has no finite number".into()
        })?;
        // Rows are read by their layer; without symbols nothing else may be missing.
        if let Some(layer) = &self.row_layer {
            let from_rows = self.rows.checked_mul(layer.biases.len());
            let fits = if self.embedding.is_empty() {
                from_rows == Some(self.inputs())
            } else {
                from_rows.is_some_and(|width| width <= self.inputs())
            };
            let reads = self.rows.checked_mul(layer.weights.len()).is_some();
            ensure(fits && reads, || "the layer of the rows does not fit the first layer".into())?;
        }
        Ok(())
    }
}

impl Layer {
    fn check(&self) -> Result<()> {
        ensure(!self.weights.is_empty() && !self.biases.is_empty(), || "a layer is empty".into())?;
        ensure(self.weights.iter().all(|row| row.len() == self.biases.len()), || {
            "weights and biases differ in length".into()
        })?;
        let numbers = self.weights.iter().flatten().chain(&self.biases);
        ensure(numbers.into_iter().all(|x| x.is_finite()), || "a weight is not finite".into())
    }
}
