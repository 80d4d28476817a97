//! One utility of the configuration, for every agent that has it.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use crate::base::document;
use crate::base::error::ensure;
use crate::base::key::GAMMA;
use crate::run::config::{Config, UtilityConfig};
use crate::run::preset;
use crate::utility::{Kind, LocalSpace, LocalTable, ScaledUtility, UtilitySpec};
use crate::world::{ChannelValues, Evolution, World, sampled_number};
use crate::{Error, Result};

/// One utility of the configuration, for every agent in `agents`.
pub(super) fn utilities(
    config: &Config,
    world: &dyn World,
    utility: &UtilityConfig,
    spaces: &[LocalSpace],
    agents: &[usize],
    field: &str,
) -> Result<Vec<ScaledUtility>> {
    if utility.spec.kind == "return" {
        return returns(world, utility, spaces, agents, field);
    }
    let no_channel = utility.channel.is_none();
    ensure(no_channel, || Error::config(format!("{field}.channel"), "is for kind `return`"))?;
    if let Some(build) = config.registry().utility(&utility.spec.kind) {
        // A utility that the program has registered.
        return scaled(utility, "`scale` and `offset`", spaces, agents, field, |i| {
            build(i, spaces[i]).map(Kind::Custom).map_err(|error| match error {
                Error::Config { field: of, message } => Error::config(format!("{field}.{of}"), message),
                other => other,
            })
        });
    }
    let tables = utility.file.as_ref().map(|file| read_tables(config, file, spaces)).transpose()?;
    let build = |&i: &usize| {
        let spec = tables.as_ref().map_or(utility.spec.clone(), |tables| tables.spec_of(i, &utility.spec));
        spec.build(spaces[i], field).map_err(|error| match error {
            Error::Config { field, message } if field.ends_with(".kind") => {
                let own =
                    config.registry().utility_names().map(|name| format!(", {name}")).collect::<String>();
                let hint = "(a utility of your own is known only to the program that registers it)";
                Error::config(field, format!("{message}, return{own} {hint}"))
            }
            Error::Config { field, message } => Error::config(field, format!("{message} (agent {i})")),
            other => other,
        })
    };
    agents.iter().map(build).collect()
}

/// Utilities that `kind` makes, which has no parameters in the configuration but those that it `takes`.
fn scaled(
    utility: &UtilityConfig,
    takes: &str,
    spaces: &[LocalSpace],
    agents: &[usize],
    field: &str,
    mut kind: impl FnMut(usize) -> Result<Kind>,
) -> Result<Vec<ScaledUtility>> {
    let UtilitySpec { kind: name, scale, offset, .. } = &utility.spec;
    let plain = UtilitySpec { kind: name.clone(), scale: *scale, offset: *offset, ..Default::default() };
    let is_plain = plain == utility.spec && utility.file.is_none();
    ensure(is_plain, || Error::config(field, format!("kind `{name}` takes {takes} only")))?;
    let build = |&i: &usize| {
        let (scale, offset) = (scale.unwrap_or(1.0), offset.unwrap_or(0.0));
        let utility = ScaledUtility { kind: kind(i)?, scale, offset };
        utility.validate(spaces[i], field)?;
        Ok(utility)
    };
    agents.iter().map(build).collect()
}

/// Discounted returns of a reward channel.
fn returns(
    world: &dyn World,
    utility: &UtilityConfig,
    spaces: &[LocalSpace],
    agents: &[usize],
    field: &str,
) -> Result<Vec<ScaledUtility>> {
    let name = utility.channel.as_deref().unwrap_or("reward");
    let found = world.channels().iter().position(|channel| channel.name == name);
    let place = found.ok_or_else(|| {
        let names: Vec<&str> = world.channels().iter().map(|channel| channel.name.as_str()).collect();
        Error::config(format!("{field}.channel"), format!("`{name}` is unknown; this world has {names:?}"))
    })?;
    // Agents with equal rewards share one table.
    let mut shared: Vec<Arc<[f64]>> = Vec::new();
    let mut table_of = |row: &[f64]| {
        let known = shared.iter().rev().take(8).find(|table| table[..] == *row).cloned();
        known.unwrap_or_else(|| {
            let table: Arc<[f64]> = row.into();
            shared.push(table.clone());
            table
        })
    };
    scaled(utility, "`channel`, `scale` and `offset`", spaces, agents, field, |i| {
        Ok(match &world.channels()[place].values {
            ChannelValues::Table(tables) => Kind::of_reward(table_of(tables.row(i))),
            ChannelValues::Sampled { range } => {
                Kind::Channel { place: sampled_number(world, place), range: lived(world, *range) }
            }
        })
    })
}

/// The range of a reward per step, if after an episode's end none is earned.
fn lived(world: &dyn World, [low, high]: [f64; 2]) -> [f64; 2] {
    match world.evolution() {
        Evolution::Factored(_) => [low, high],
        Evolution::Joint(_) => [low.min(0.0), high.max(0.0)],
    }
}

/// A file with one table per agent, for utilities whose parameters differ between agents. `lambda` is what an
/// occupancy file calls its tables; it serves as the expert.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TablesFile {
    gamma: Option<f64>,
    r: Option<Vec<LocalTable>>,
    #[serde(alias = "lambda")]
    expert: Option<Vec<LocalTable>>,
    lo: Option<Vec<LocalTable>>,
    hi: Option<Vec<LocalTable>>,
    a: Option<Vec<LocalTable>>,
    b: Option<Vec<f64>>,
    center: Option<Vec<LocalTable>>,
    radius: Option<Vec<f64>>,
}

fn read_tables(config: &Config, file: &Path, spaces: &[LocalSpace]) -> Result<TablesFile> {
    let tables: TablesFile = match preset::builtin(file) {
        Some(text) => document::parse(text, file, &[]),
        None => document::read(&config.locate(file), &[]),
    }?;
    tables.check(file, spaces)?;
    Ok(tables)
}

/// Every agent's utility with the tables in a text; `file` is what errors call it.
pub(in crate::run) fn from_text(
    text: &str,
    file: &Path,
    shared: &UtilitySpec,
    spaces: &[LocalSpace],
) -> Result<Vec<ScaledUtility>> {
    let tables: TablesFile = document::parse(text, file, &[])?;
    tables.check(file, spaces)?;
    let build = |(i, &space): (usize, &LocalSpace)| tables.spec_of(i, shared).build(space, "objective");
    spaces.iter().enumerate().map(build).collect()
}

impl TablesFile {
    /// Whether it has an entry for every agent, and was made for the same discount factor.
    fn check(&self, file: &Path, spaces: &[LocalSpace]) -> Result<()> {
        let gamma = spaces[0].gamma;
        if let Some(made_with) = self.gamma.filter(|made_with| (made_with - gamma).abs() > 1e-12) {
            let message = format!("was made with {GAMMA} = {made_with}, but this run has {GAMMA} = {gamma}");
            return Err(Error::file(file, message));
        }
        let TablesFile { gamma: _, r, expert, lo, hi, a, b, center, radius } = self;
        let of_tables = [("r", r), ("lambda", expert), ("lo", lo), ("hi", hi), ("a", a), ("center", center)];
        let lengths = of_tables.map(|(key, list)| (key, list.as_ref().map(Vec::len)));
        let of_numbers = [("b", b), ("radius", radius)].map(|(key, list)| (key, list.as_ref().map(Vec::len)));
        for (key, length) in lengths.into_iter().chain(of_numbers) {
            let (length, n) = (length.unwrap_or(spaces.len()), spaces.len());
            let message = || format!("`{key}` has {length} entries for {n} agents");
            ensure(length == n, || Error::file(file, message()))?;
        }
        Ok(())
    }

    /// Agent i's utility: `shared` with what the file says of agent i.
    fn spec_of(&self, agent: usize, shared: &UtilitySpec) -> UtilitySpec {
        fn pick<T: Clone>(list: &Option<Vec<T>>, shared: &Option<T>, agent: usize) -> Option<T> {
            list.as_ref().map_or(shared.clone(), |list| list.get(agent).cloned())
        }
        UtilitySpec {
            r: pick(&self.r, &shared.r, agent),
            expert: pick(&self.expert, &shared.expert, agent),
            lo: pick(&self.lo, &shared.lo, agent),
            hi: pick(&self.hi, &shared.hi, agent),
            a: pick(&self.a, &shared.a, agent),
            b: pick(&self.b, &shared.b, agent),
            center: pick(&self.center, &shared.center, agent),
            radius: pick(&self.radius, &shared.radius, agent),
            ..shared.clone()
        }
    }
}
