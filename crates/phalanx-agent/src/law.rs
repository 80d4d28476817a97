//! From what an agent reads to probabilities of its actions.

use crate::elementary::exp;
use crate::policy::{AgentPolicy, Network, Rule, Term};

/// Replaces a row of logits by its soft-max.
#[inline]
pub fn softmax(row: &mut [f64]) {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut total = 0.0;
    for x in row.iter_mut() {
        *x = exp(*x - largest);
        total += *x;
    }
    row.iter_mut().for_each(|x| *x /= total);
}

/// Buffers of neural networks, used again from one law to the next.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    numbers: Vec<f32>,
    layers: [Vec<f32>; 2],
}

impl AgentPolicy {
    /// The law of its actions, given its members' states in their order. Rules over [`Rule::Numbers`] do not
    /// read states: their law stays as it is. The policy must have passed
    /// [`Policies::check`](crate::policy::Policies::check), and states be in range.
    pub fn law(&self, networks: &[Network], states: &[u8], scratch: &mut Scratch, law: &mut [f64]) {
        match &self.rule {
            Rule::Table { probabilities } => law.copy_from_slice(&probabilities[self.joint_state(states)]),
            Rule::Linear { terms, weights } => {
                law.fill(0.0);
                for term in terms {
                    let row = &weights[term.row(states)];
                    law.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
                }
                softmax(law);
            }
            Rule::Symbols { network } => networks[*network].law(&[], states, &mut scratch.layers, law),
            Rule::Places { network, places, site } => {
                let Scratch { numbers, layers } = scratch;
                let network = &networks[*network];
                add_places(network.numbers() - site.len(), states, places, site, numbers);
                network.law(numbers, &[], layers, law);
            }
            Rule::Numbers { .. } => (),
        }
    }

    /// The same where it reads numbers: as many as its neural network has inputs.
    pub fn law_of_numbers(
        &self,
        networks: &[Network],
        numbers: &[f32],
        scratch: &mut Scratch,
        law: &mut [f64],
    ) {
        if let Rule::Numbers { network, .. } = self.rule {
            networks[network].law(numbers, &[], &mut scratch.layers, law);
        }
    }

    /// The number of the members' joint state, the last member's running fastest.
    fn joint_state(&self, states: &[u8]) -> usize {
        self.states.iter().zip(states).fold(0, |joint, (count, &state)| joint * count + usize::from(state))
    }

    /// The largest number of states of a member.
    pub(crate) fn most_states(&self) -> usize {
        self.states.iter().copied().max().unwrap_or(0)
    }
}

/// Σ over the members in state s of number d of their place, `[s][d]`, so many numbers; then the own site.
fn add_places(sums: usize, states: &[u8], places: &[Vec<f32>], site: &[f32], out: &mut Vec<f32>) {
    out.clear();
    out.resize(sums, 0.0);
    for (place, &state) in places.iter().zip(states) {
        let sums = &mut out[usize::from(state) * place.len()..][..place.len()];
        sums.iter_mut().zip(place).for_each(|(sum, x)| *sum += x);
    }
    out.extend_from_slice(site);
}

impl Term {
    /// The row that it names at these states of the members.
    pub fn row(&self, states: &[u8]) -> usize {
        self.digits.iter().fold(self.first, |row, digit| {
            let value = |&m: &usize| digit.values[usize::from(states[m])];
            row + digit.stride * digit.members.iter().map(value).fold(0, usize::saturating_add).min(digit.cap)
        })
    }
}

impl Network {
    /// Soft-max of what comes out for these numbers and symbols.
    fn law(&self, numbers: &[f32], symbols: &[u8], [x, y]: &mut [Vec<f32>; 2], law: &mut [f64]) {
        x.clear();
        match &self.row_layer {
            Some(layer) => {
                for row in numbers.chunks_exact(layer.weights.len().max(1)) {
                    layer.add(row, true, x);
                }
            }
            None => x.extend_from_slice(numbers),
        }
        symbols.iter().for_each(|&symbol| x.extend_from_slice(&self.embedding[usize::from(symbol)]));
        for (l, layer) in self.layers.iter().enumerate() {
            y.clear();
            layer.add(x, l + 1 < self.layers.len(), y);
            std::mem::swap(x, y);
        }
        law.iter_mut().zip(&*x).for_each(|(p, &logit)| *p = f64::from(logit));
        softmax(law);
    }
}

impl crate::policy::Layer {
    /// Adds `x` · weights + biases to the end of `out`.
    fn add(&self, x: &[f32], is_rectified: bool, out: &mut Vec<f32>) {
        let first = out.len();
        out.extend_from_slice(&self.biases);
        let out = &mut out[first..];
        for (&x, weights) in x.iter().zip(&self.weights) {
            out.iter_mut().zip(weights).for_each(|(sum, &w)| *sum = x.mul_add(w, *sum));
        }
        if is_rectified {
            out.iter_mut().for_each(|sum| *sum = sum.max(0.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Digit, Layer};

    fn agent(states: Vec<usize>, actions: usize, rule: Rule) -> AgentPolicy {
        let members: Vec<u32> = (0..states.len() as u32).collect();
        let usual = vec![0; states.len()];
        AgentPolicy { agent: 0, neighbours: vec![], members, states, usual, actions, rule }
    }

    fn law(agent: &AgentPolicy, networks: &[Network], states: &[u8]) -> Vec<f64> {
        let mut law = vec![0.0; agent.actions];
        agent.law(networks, states, &mut Scratch::default(), &mut law);
        law
    }

    #[test]
    fn tables_count_with_the_last_member_fastest() {
        let probabilities = (0..6).map(|k| vec![f64::from(k), 1.0]).collect();
        let agent = agent(vec![2, 3], 2, Rule::Table { probabilities });
        assert_eq!(law(&agent, &[], &[1, 2]), [5.0, 1.0]);
        assert_eq!(law(&agent, &[], &[1, 0]), [3.0, 1.0]);
    }

    #[test]
    fn terms_add_capped_digits() {
        let digit = |stride, cap, members| Digit { stride, cap, members, values: vec![0, 1, 5] };
        let term = Term { first: 4, digits: vec![digit(3, 9, vec![0]), digit(1, 2, vec![1, 2])] };
        assert_eq!(
            [[0, 0, 0], [1, 1, 0], [2, 1, 1], [0, 2, 1]].map(|states| term.row(&states)),
            [4, 8, 21, 6]
        );
        let weights = (0..22).map(|k| vec![0.0, (1.0 + f64::from(k)).ln()]).collect();
        let agent = agent(vec![3; 3], 2, Rule::Linear { terms: vec![term], weights });
        assert!((law(&agent, &[], &[1, 1, 0])[1] - 9.0 / 10.0).abs() < 1e-15);
    }

    #[test]
    fn networks_read_symbols_numbers_and_sums_over_places() {
        let layer = |weights: &[&[f32]], biases: &[f32]| Layer {
            weights: weights.iter().map(|row| row.to_vec()).collect(),
            biases: biases.to_vec(),
        };
        let odds = |law: Vec<f64>| (law[1] / law[0]).ln();
        // Two symbols of one number each, 1 or 2; the logit of action 1 is 10·first + second.
        let symbols = Network {
            rows: 0,
            row_layer: None,
            embedding: vec![vec![1.0], vec![2.0]],
            layers: vec![layer(&[&[0.0, 10.0], &[0.0, 1.0]], &[0.0, 0.0])],
        };
        let reader = agent(vec![2, 2], 2, Rule::Symbols { network: 0 });
        assert!((odds(law(&reader, &[symbols], &[1, 0])) - 21.0).abs() < 1e-6);
        // Sums [s][d] = [[3], [4]] and the site 5, where members 0 and 1 are at 3 and 4.
        let sums = Network {
            rows: 0,
            row_layer: None,
            embedding: vec![],
            layers: vec![layer(&[&[0.0, 1.0], &[0.0, 0.1], &[0.0, 0.01]], &[0.0, -0.4])],
        };
        let rule = Rule::Places { network: 0, places: vec![vec![3.0], vec![4.0]], site: vec![5.0] };
        let reader = agent(vec![2, 2], 2, rule);
        assert!((odds(law(&reader, &[sums], &[0, 1])) - 3.05).abs() < 1e-6);
        // Two rows through one layer, of which what is below 0 is cut.
        let rows = Network {
            rows: 2,
            row_layer: Some(layer(&[&[1.0]], &[-1.0])),
            embedding: vec![],
            layers: vec![layer(&[&[0.0, 1.0], &[0.0, 1.0]], &[0.0, 0.0])],
        };
        let reader = agent(vec![2], 2, Rule::Numbers { network: 0, site: Vec::new() });
        let mut found = vec![0.0; 2];
        reader.law_of_numbers(&[rows], &[0.5, 3.0], &mut Scratch::default(), &mut found);
        assert!((odds(found) - 2.0).abs() < 1e-6);
    }
}
