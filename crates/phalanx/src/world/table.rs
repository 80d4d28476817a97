//! Any factored finite model from a file.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    Channel, Evolution, Factored, LARGEST_LOCAL_SPACE, OwnProblem, Surroundings, World, WorldKernel,
    WorldSettings,
};
use crate::base::error::ensure;
use crate::base::sampler::{outcome, write_thresholds};
use crate::base::stream::{Place, Stream};
use crate::graph::Graph;
use crate::graph::indexing::PairIndex;
use crate::utility::UtilitySpec;
use crate::{Error, Ragged, Result};

/// How far a law's sum may be from one (files print probabilities with limited digits).
const SUM_TOLERANCE: f64 = 1e-8;

/// The keys of `[world]` beside `kind = "table"`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSettings {
    /// The file.
    pub file: PathBuf,
    /// Train even if no occupancy can meet one of the file's own constraints.
    #[serde(default)]
    pub allow_infeasible: bool,
}

impl WorldSettings for TableSettings {
    fn build(&self, around: &Surroundings<'_>) -> Result<Arc<dyn World>> {
        let mut table = Table::read(&(around.locate)(&self.file))?;
        around.relink(&mut table.graph)?;
        Ok(Arc::new(table))
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.file)
    }

    fn allows_infeasible(&self) -> bool {
        self.allow_infeasible
    }
}

/// A model as it stands in the file, JSON or TOML.
///
/// `transition[i]` is `[joint state of parents][joint action of parents][next state]`, flattened row-major,
/// with the smallest parent id most significant.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Number of agents.
    pub n: usize,
    /// Discount factor, if the file states one.
    #[serde(default)]
    pub gamma: Option<f64>,
    /// |S_i|.
    pub state_sizes: Vec<usize>,
    /// |A_i|.
    pub action_sizes: Vec<usize>,
    /// Undirected communication links.
    pub edges: Vec<(usize, usize)>,
    /// Agents, ascending, that enter each transition law; they need not be neighbours.
    pub parents: Vec<Vec<usize>>,
    /// The laws.
    pub transition: Vec<Vec<f64>>,
    /// The start law.
    pub rho: StartLaw,
    /// Objectives, one per agent.
    #[serde(default)]
    pub f: Vec<UtilitySpec>,
    /// Constraints g ≥ 0, a list per agent.
    #[serde(default)]
    pub g: Vec<Vec<UtilitySpec>>,
}

/// The law of the first joint state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum StartLaw {
    /// Agents start independently.
    Product {
        /// One law per agent.
        local: Vec<Vec<f64>>,
    },
    /// One law over joint states (smallest agent id most significant).
    Joint {
        /// |S| probabilities.
        p: Vec<f64>,
    },
}

/// A factored world given by its tables.
#[derive(Debug, Clone)]
pub struct Table {
    graph: Graph,
    states: Vec<usize>,
    actions: Vec<usize>,
    parents: PairIndex,
    /// Row i is `transition[i]` of the model.
    laws: Ragged<f64>,
    /// The same as sampling thresholds, |S_i| − 1 per law.
    thresholds: Ragged<u32>,
    start: StartThresholds,
    start_law: StartLaw,
    channels: Vec<Channel>,
    own_problem: OwnProblem,
}

#[derive(Debug, Clone)]
enum StartThresholds {
    Product(Ragged<u32>),
    /// Cumulative probabilities of the joint states that can occur, and their numbers.
    Joint {
        cumulative: Vec<f64>,
        joint_states: Vec<u64>,
    },
}

impl Table {
    /// Reads a model from a `.json` or `.toml` file: the model itself, or `{"model": …}`, or
    /// `{"input": {"model": …}}`.
    pub fn read(path: &Path) -> Result<Self> {
        Table::parse(&crate::base::files::read_text(path)?, path)
    }

    /// As [`Table::read`], from text at hand; `path` says its format and is what errors call it.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let model: Model = crate::base::document::parse(text, path, &["input", "model"])?;
        Table::new(model).map_err(|error| Error::file(path, error.to_string()))
    }

    /// Checks a model and prepares it for sampling.
    pub fn new(model: Model) -> Result<Self> {
        check_sizes(&model)?;
        let graph = Graph::from_edges(model.n, model.edges.iter().copied())?;
        let groups = Ragged::from_rows(model.parents.iter().map(|row| row.iter().map(|&p| p as u32)));
        let parents = PairIndex::new(&groups, &model.state_sizes, &model.action_sizes, "parents")?;
        let mut thresholds = Ragged::with_capacity(model.n);
        for (i, laws) in model.transition.iter().enumerate() {
            let expected = parents.size(i) * model.state_sizes[i];
            ensure(laws.len() == expected, || {
                let (found, joint, next) = (laws.len(), parents.size(i), model.state_sizes[i]);
                let needed = format!("{joint} joint values of the parents × {next} next states = {expected}");
                Error::config(format!("transition[{i}]"), format!("{found} numbers, but {needed}"))
            })?;
            for (row, law) in laws.chunks(model.state_sizes[i]).enumerate() {
                check_law(law, || format!("transition[{i}], row {row} (agent {i})"))?;
            }
            thresholds.push_row(laws.chunks(model.state_sizes[i]).flat_map(thresholds_of));
        }
        Ok(Table {
            start: StartThresholds::new(&model)?,
            channels: reward_channel(&model),
            graph,
            parents,
            laws: Ragged::from_rows(model.transition),
            start_law: model.rho,
            thresholds,
            states: model.state_sizes,
            actions: model.action_sizes,
            own_problem: OwnProblem { objectives: model.f, constraints: model.g, gamma: model.gamma },
        })
    }
}

fn check_sizes(model: &Model) -> Result<()> {
    let n = model.n;
    ensure(n > 0, || Error::config("n", "0 agents; at least 1 is needed"))?;
    let lists = [
        ("state_sizes", model.state_sizes.len()),
        ("action_sizes", model.action_sizes.len()),
        ("parents", model.parents.len()),
        ("transition", model.transition.len()),
    ];
    for (name, length) in lists {
        ensure(length == n, || Error::config(name, format!("{length} entries for n = {n} agents")))?;
    }
    for (name, length) in [("f", model.f.len()), ("g", model.g.len())] {
        ensure(length == 0 || length == n, || {
            Error::config(name, format!("{length} entries for n = {n} agents; give n of them, or none"))
        })?;
    }
    for (name, sizes) in [("state_sizes", &model.state_sizes), ("action_sizes", &model.action_sizes)] {
        for (i, &size) in sizes.iter().enumerate() {
            ensure((1..=LARGEST_LOCAL_SPACE).contains(&size), || {
                Error::config(
                    format!("{name}[{i}]"),
                    format!("{size}; allowed are 1 to {LARGEST_LOCAL_SPACE}"),
                )
            })?;
        }
    }
    for (i, parents) in model.parents.iter().enumerate() {
        let error = |message: String| Error::config(format!("parents[{i}]"), message);
        if let Some(unknown) = parents.iter().find(|&&p| p >= n) {
            return Err(error(format!("names agent {unknown}, but agents are 0 to {}", n - 1)));
        }
        let ascends = parents.is_sorted_by(|a, b| a < b);
        ensure(ascends, || error(format!("{parents:?} is not strictly ascending")))?;
    }
    Ok(())
}

fn check_law(law: &[f64], place: impl Fn() -> String) -> Result<()> {
    if let Some(bad) = law.iter().find(|p| !(0.0..=1.0 + SUM_TOLERANCE).contains(*p)) {
        return Err(Error::config(place(), format!("{bad} is not a probability")));
    }
    let total: f64 = law.iter().sum();
    ensure((total - 1.0).abs() <= SUM_TOLERANCE, || {
        Error::config(place(), format!("the probabilities sum to {total}, not to 1"))
    })
}

fn thresholds_of(law: &[f64]) -> Vec<u32> {
    let mut thresholds = vec![0; law.len() - 1];
    write_thresholds(law, &mut thresholds);
    thresholds
}

impl StartThresholds {
    fn new(model: &Model) -> Result<Self> {
        match &model.rho {
            StartLaw::Product { local } => {
                let (laws, n) = (local.len(), model.n);
                ensure(laws == n, || Error::config("rho.local", format!("{laws} laws for n = {n} agents")))?;
                for (i, law) in local.iter().enumerate() {
                    let (numbers, states) = (law.len(), model.state_sizes[i]);
                    let place = || format!("rho.local[{i}]");
                    ensure(numbers == states, || {
                        Error::config(place(), format!("{numbers} numbers for {states} states"))
                    })?;
                    check_law(law, place)?;
                }
                Ok(StartThresholds::Product(Ragged::from_rows(local.iter().map(|law| thresholds_of(law)))))
            }
            StartLaw::Joint { p } => {
                let size = model.state_sizes.iter().try_fold(1usize, |size, &s| size.checked_mul(s));
                ensure(size == Some(p.len()), || {
                    let size = size.map_or("more than 10^19".into(), |size| size.to_string());
                    Error::config("rho.p", format!("{} numbers for {size} joint states", p.len()))
                })?;
                check_law(p, || "rho.p".into())?;
                let (mut cumulative, mut joint_states, mut sum) = (Vec::new(), Vec::new(), 0.0);
                for (state, &probability) in p.iter().enumerate().filter(|(_, p)| **p > 0.0) {
                    sum += probability;
                    cumulative.push(sum);
                    joint_states.push(state as u64);
                }
                Ok(StartThresholds::Joint { cumulative, joint_states })
            }
        }
    }
}

/// Linear objectives are rewards: offered as the channel `reward`, so that runs can report a return.
fn reward_channel(model: &Model) -> Vec<Channel> {
    let tables: Option<Vec<Vec<f64>>> = model.f.iter().map(UtilitySpec::reward_table).collect();
    let fits = |tables: &Vec<Vec<f64>>| {
        tables.len() == model.n
            && tables.iter().flatten().all(|r| r.is_finite())
            && tables.iter().enumerate().all(|(i, t)| t.len() == model.state_sizes[i] * model.action_sizes[i])
    };
    match tables.filter(fits) {
        Some(tables) => vec![Channel::table("reward", Ragged::from_rows(tables))],
        None => Vec::new(),
    }
}

impl World for Table {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn states(&self, agent: usize) -> usize {
        self.states[agent]
    }

    fn actions(&self, agent: usize) -> usize {
        self.actions[agent]
    }

    fn evolution(&self) -> Evolution<'_> {
        Evolution::Factored(self)
    }

    fn channels(&self) -> &[Channel] {
        &self.channels
    }

    fn own_problem(&self) -> Option<&OwnProblem> {
        Some(&self.own_problem)
    }
}

impl Factored for Table {
    fn parents(&self, agent: usize) -> Vec<u32> {
        self.parents.terms(agent).iter().map(|term| term.agent).collect()
    }

    fn transition(&self, agent: usize, states: &[u8], actions: &[u8], law: &mut [f64]) {
        let mut row = 0;
        for ((term, &state), &action) in self.parents.terms(agent).iter().zip(states).zip(actions) {
            row += term.state_stride as usize * usize::from(state)
                + term.action_stride as usize * usize::from(action);
        }
        let size = self.states[agent];
        law.copy_from_slice(&self.laws.row(agent)[row * size..(row + 1) * size]);
    }

    fn start(&self, stream: &Stream, place: Place, agents: Range<usize>, states: &mut [u8]) {
        match &self.start {
            StartThresholds::Product(thresholds) => {
                for (agent, state) in agents.zip(states) {
                    let draw = stream.words(place, agent as u32, 0)[0] >> 1;
                    *state = outcome(thresholds.row(agent), draw);
                }
            }
            StartThresholds::Joint { cumulative, joint_states } => {
                // One draw for all agents: a joint law cannot be sampled agent by agent.
                let total = cumulative.last().copied().unwrap_or(1.0);
                let draw = stream.sequence(place, u32::MAX).uniform() * total;
                let which = cumulative.partition_point(|&c| c <= draw).min(joint_states.len() - 1);
                let mut rest = joint_states[which];
                for agent in (0..self.states.len()).rev() {
                    let size = self.states[agent] as u64;
                    if agents.contains(&agent) {
                        states[agent - agents.start] = (rest % size) as u8;
                    }
                    rest /= size;
                }
            }
        }
    }

    fn step(&self, agents: Range<usize>, states: &[u8], actions: &[u8], draws: &[u32], next: &mut [u8]) {
        const TILE: usize = 64;
        let mut rows = [0; TILE];
        for first in (0..agents.len()).step_by(TILE) {
            let tile = first..(first + TILE).min(agents.len());
            let rows = &mut rows[..tile.len()];
            let members = agents.start + tile.start..agents.start + tile.end;
            self.parents.fill(members.clone(), states, actions, rows);
            let choices = next[tile.clone()].iter_mut().zip(&draws[tile]).zip(rows);
            for (agent, ((next, &draw), &mut row)) in members.zip(choices) {
                let width = self.states[agent] - 1;
                *next = outcome(&self.thresholds.row(agent)[row as usize * width..][..width], draw);
            }
        }
    }

    /// None where the start law is joint: one draw then decides over all agents.
    fn kernel(&self) -> Option<WorldKernel> {
        let StartThresholds::Product(start) = &self.start else { return None };
        let ends = |offsets: &[usize]| offsets.iter().map(|&end| end as u64).collect::<Vec<u64>>();
        let terms = Ragged::from_rows((0..self.states.len()).map(|i| {
            let terms = self.parents.terms(i).iter();
            terms.map(|term| [term.agent, term.state_stride, term.action_stride]).collect::<Vec<_>>()
        }));
        Some(
            WorldKernel::new(include_str!("table.cu"), true)
                .array("table_start", start.data().to_vec())
                .array("table_start_ends", ends(start.offsets()))
                .array("table_parents", terms.data().as_flattened().to_vec())
                .array("table_parent_ends", ends(terms.offsets()))
                .array("table_thresholds", self.thresholds.data().to_vec())
                .array("table_law_ends", ends(self.thresholds.offsets())),
        )
    }

    fn start_law(&self) -> Option<StartLaw> {
        Some(self.start_law.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::stream::Purpose;

    fn two_agents() -> Model {
        Model {
            n: 2,
            gamma: Some(0.9),
            state_sizes: vec![2, 3],
            action_sizes: vec![2, 1],
            edges: vec![(0, 1)],
            parents: vec![vec![0, 1], vec![1]],
            transition: vec![
                (0..12).flat_map(|k| [k as f64 / 12.0, 1.0 - k as f64 / 12.0]).collect(),
                vec![0.2, 0.3, 0.5, 1.0, 0.0, 0.0, 0.0, 0.25, 0.75],
            ],
            rho: StartLaw::Joint { p: vec![0.0, 0.0, 0.25, 0.5, 0.25, 0.0] },
            f: vec![],
            g: vec![],
        }
    }

    #[test]
    fn laws_are_read_in_the_documented_order() {
        let table = Table::new(two_agents()).unwrap();
        let mut law = [0.0; 2];
        table.transition(0, &[1, 2], &[1, 0], &mut law); // row ((1·3 + 2)·2 + 1) = 11
        assert_eq!(law, [11.0 / 12.0, 1.0 - 11.0 / 12.0]);
        let mut law = [0.0; 3];
        table.transition(1, &[2], &[0], &mut law);
        assert_eq!(law, [0.0, 0.25, 0.75]);
    }

    #[test]
    fn joint_start_states_keep_their_correlation() {
        let table = Table::new(two_agents()).unwrap();
        let mut counts = [0; 6];
        for trajectory in 0..4000 {
            let place = Place { purpose: Purpose::BatchStart, iteration: 0, trajectory };
            let mut states = [0; 2];
            table.start(&Stream::new(1), place, 0..2, &mut states);
            counts[usize::from(states[0]) * 3 + usize::from(states[1])] += 1;
        }
        assert_eq!([counts[0], counts[1], counts[5]], [0; 3]);
        for (count, probability) in [(counts[2], 0.25), (counts[3], 0.5), (counts[4], 0.25)] {
            assert!((count as f64 / 4000.0 - probability).abs() < 0.03, "{counts:?}");
        }
    }

    #[test]
    fn broken_models_name_the_place() {
        let broken = |change: &dyn Fn(&mut Model)| {
            let mut model = two_agents();
            change(&mut model);
            Table::new(model).unwrap_err().to_string()
        };
        for (message, wanted) in [
            (broken(&|m| m.transition[1][0] = 0.3), "transition[1], row 0"),
            (broken(&|m| m.transition[1][4] = f64::NAN), "transition[1], row 1"),
            (broken(&|m| m.transition[0].truncate(7)), "transition[0]: 7 numbers"),
            (broken(&|m| m.parents[0] = vec![1, 0]), "parents[0]"),
            (broken(&|m| m.parents[0] = vec![0, 7]), "names agent 7"),
            (broken(&|m| m.edges.push((0, 9))), "agent 9"),
            (broken(&|m| m.state_sizes[0] = 0), "state_sizes[0]"),
            (broken(&|m| m.n = 0), "n: 0 agents"),
            (broken(&|m| m.rho = StartLaw::Joint { p: vec![1.0] }), "rho.p"),
        ] {
            assert!(message.contains(wanted), "{message:?} should contain {wanted:?}");
        }
    }
}
