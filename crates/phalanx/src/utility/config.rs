//! `[objective]` and `[[constraint]]`: a utility as a configuration has it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::UtilitySpec;
use super::problem::{Scaling, ShadowReward};
use crate::base::document::{section, take};
use crate::base::error::ensure;
use crate::base::key::SCALING;
use crate::{Error, Result};

/// `[objective]`, and what a `[[constraint]]` shares with it.
#[derive(Debug, Clone, Serialize)]
pub struct UtilityConfig {
    /// Reward channel of kind `return`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// File with a table per agent, in place of tables written in the config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Factor on the shadow reward, for `scaling = "authors"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shadow_scale: Option<f64>,
    /// What every step pays beside the shadow reward, for `scaling = "authors"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shadow_shift: Option<f64>,
    /// Kind and parameters.
    #[serde(flatten)]
    pub spec: UtilitySpec,
}

/// One `[[constraint]]`.
#[derive(Debug, Clone, Serialize)]
pub struct ConstraintConfig {
    /// The bounded utility.
    #[serde(flatten)]
    pub utility: UtilityConfig,
    /// Name in results; the kind if not given.
    pub name: String,
    /// Lower bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Upper bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Agents that have it; all if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<usize>>,
    /// Agents whose sum is bounded, or their label in the graph's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupConfig>,
    /// Local states that are the event of kind `ever`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states: Option<Vec<usize>>,
    /// Event of the world, of kind `ever`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// What the cost of kind `chance` may add up to over an episode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<f64>,
    /// Of kind `cvar`: the mean is over the worst 1 − `level` of the episodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<f64>,
    /// Slack that multipliers aim at, on top of `dual.margin`: one for all, or one for each of its agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<Margin>,
    /// Train even if no occupancy can meet the bound.
    pub allow_infeasible: bool,
}

/// Agents with one budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a list of agents, or a label of the graph's file, is needed")]
pub enum GroupConfig {
    /// By their numbers.
    Agents(Vec<usize>),
    /// By the label that the graph's file has for them.
    Label(String),
}

/// A slack to aim at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a number, or a list with one for each agent of the constraint, is needed")]
pub enum Margin {
    /// The same for all agents.
    All(f64),
    /// One for each, in their order.
    Each(Vec<f64>),
}

impl Margin {
    /// That of the agent at `place`.
    pub fn at(&self, place: usize) -> f64 {
        match self {
            Margin::All(margin) => *margin,
            Margin::Each(margins) => margins[place],
        }
    }

    /// Whether it is one for so many agents.
    pub fn check(&self, agents: usize) -> std::result::Result<(), String> {
        let numbers = match self {
            Margin::All(margin) => std::slice::from_ref(margin),
            Margin::Each(margins) => {
                let count = margins.len();
                ensure(count == agents, || format!("has {count} numbers for {agents} agents"))?;
                margins
            }
        };
        let wrong = numbers.iter().find(|x| !(x.is_finite() && **x >= 0.0));
        wrong.map_or(Ok(()), |x| Err(format!("{x}; a finite number of at least 0 is needed")))
    }
}

/// Takes a number that must be finite out of a table.
fn take_finite(table: &mut toml::Table, section: &str, key: &str) -> Result<Option<f64>> {
    let number: Option<f64> = take(table, section, key)?;
    match number.filter(|number| !number.is_finite()) {
        Some(x) => Err(Error::config(format!("{section}.{key}"), format!("{x}; a finite number is needed"))),
        None => Ok(number),
    }
}

impl UtilityConfig {
    /// From the table as it was written; `name` is what errors call it.
    pub(crate) fn read(mut table: toml::Table, name: &str) -> Result<Self> {
        ensure(table.contains_key("kind"), || {
            Error::config(format!("{name}.kind"), "is missing, e.g. `return` or `state_entropy`")
        })?;
        Ok(UtilityConfig {
            channel: take(&mut table, name, "channel")?,
            file: take(&mut table, name, "file")?,
            shadow_scale: take_finite(&mut table, name, "shadow_scale")?,
            shadow_shift: take_finite(&mut table, name, "shadow_shift")?,
            spec: section(table, name)?,
        })
    }

    /// What is made of its shadow reward; `name` is what errors call it.
    pub(crate) fn shadow(&self, scaling: Scaling, name: &str) -> Result<ShadowReward> {
        for (key, given) in [("shadow_scale", self.shadow_scale), ("shadow_shift", self.shadow_shift)] {
            ensure(given.is_none() || scaling == Scaling::Authors, || {
                Error::config(format!("{name}.{key}"), format!("is for {SCALING} = \"authors\""))
            })?;
        }
        let unchanged = ShadowReward::default();
        Ok(ShadowReward {
            scale: self.shadow_scale.unwrap_or(unchanged.scale),
            shift: self.shadow_shift.unwrap_or(unchanged.shift),
        })
    }
}

impl ConstraintConfig {
    /// From the table of constraint `number`.
    pub(crate) fn read(mut table: toml::Table, number: usize) -> Result<Self> {
        let section = format!("constraint.{number}");
        let name: Option<String> = take(&mut table, &section, "name")?;
        let at_least = take_finite(&mut table, &section, "at_least")?;
        let at_most = take_finite(&mut table, &section, "at_most")?;
        if at_least.is_some() == at_most.is_some() {
            return Err(Error::config(section, "give exactly one of `at_least` and `at_most`"));
        }
        let agents = take(&mut table, &section, "agents")?;
        let group = take(&mut table, &section, "group")?;
        let states = take(&mut table, &section, "states")?;
        let event = take(&mut table, &section, "event")?;
        let budget = take(&mut table, &section, "budget")?;
        let level = take(&mut table, &section, "level")?;
        let margin = take(&mut table, &section, "margin")?;
        let allow_infeasible: Option<bool> = take(&mut table, &section, "allow_infeasible")?;
        let utility = UtilityConfig::read(table, &section)?;
        Ok(ConstraintConfig {
            name: name.unwrap_or_else(|| utility.spec.kind.clone()),
            utility,
            at_least,
            at_most,
            agents,
            group,
            states,
            event,
            budget,
            level,
            margin,
            allow_infeasible: allow_infeasible.unwrap_or(false),
        })
    }
}
