//! `usual_states.json`: the state that every agent was in most often, which others assume when messages are
//! lost.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::checksums;
use super::config::Config;
use super::evaluate::Evaluator;
use crate::base::error::ensure;
use crate::base::{files, sealed};
use crate::policy::LinkSettings;
use crate::sample::usual_states::UsualStates;
use crate::world::World;
use crate::{Error, Result};

pub(super) const FILE: &str = "usual_states.json";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// By agent.
    states: Vec<u8>,
}

/// Writes the usual states of a run.
pub(super) fn write(folder: &Path, states: &[u8]) -> Result<()> {
    sealed::write(&folder.join(FILE), &Document { states: states.to_vec() })
}

/// Those of the run in `folder`; none if an earlier version finished it.
pub(super) fn read(folder: &Path, world: &dyn World) -> Result<Option<Vec<u8>>> {
    let path = folder.join(FILE);
    if !path.exists() {
        return Ok(None);
    }
    let counts: Vec<usize> = (0..world.graph().agents()).map(|i| world.states(i)).collect();
    let states = parse(&files::read_text(&path)?, &path, &counts)?;
    checksums::check(folder, FILE)?;
    Ok(Some(states))
}

/// Those in a text at hand, of agents that have so many states; `path` is what errors call it.
pub(super) fn parse(text: &str, path: &Path, counts: &[usize]) -> Result<Vec<u8>> {
    let Document { states } = sealed::parse(text, path, &[])?;
    let (found, agents) = (states.len(), counts.len());
    ensure(found == agents, || {
        Error::file(path, format!("has the states of {found} agents, but this model has {agents}"))
    })?;
    let numbered = states.iter().zip(counts).enumerate();
    match numbered.into_iter().find(|(_, (state, count))| usize::from(**state) >= **count) {
        None => Ok(states),
        Some((i, (state, count))) => {
            Err(Error::file(path, format!("agent {i} has no state {state}; it has {count}, numbered from 0")))
        }
    }
}

/// Episodes that usual states are estimated by.
const EPISODES: usize = 100;

/// The usual states of a policy where every message arrives.
pub(super) fn estimate(evaluator: &Evaluator) -> Result<Vec<u8>> {
    let mut config: Config = evaluator.config().clone();
    config.links = LinkSettings::default();
    let mut reliable = Evaluator::new(&config)?;
    reliable.set_theta(evaluator.policy().theta().clone());
    let (problem, horizon) = (reliable.problem(), reliable.config().horizon);
    let episodes = reliable.episodes(reliable.config().seed, horizon, EPISODES);
    let mut usual = UsualStates::new(problem);
    usual.add(&episodes.visits(&problem.occupancy_weights(horizon, EPISODES))?, problem);
    Ok(usual.states())
}
