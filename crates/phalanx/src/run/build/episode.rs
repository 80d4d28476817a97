//! Constraints on whole episodes: `ever` and `chance`.

use std::sync::Arc;

use crate::base::error::ensure;
use crate::run::config::ConstraintConfig;
use crate::utility::episode::{Cost, EpisodeEvent, Tail};
use crate::utility::problem::Bound;
use crate::utility::{LocalSpace, UtilitySpec, rewards};
use crate::world::{ChannelValues, World, sampled_number};
use crate::{Error, Result};

/// The kinds, which bound probabilities.
pub const EVER: &str = "ever";
pub const CHANCE: &str = "chance";

/// A bound on the worst episodes, which is judged only.
pub const CVAR: &str = "cvar";

/// Whether a kind bounds the probability of an event of whole episodes.
pub fn is_event(kind: &str) -> bool {
    [EVER, CHANCE].contains(&kind)
}

/// What events of a constraint are made from.
pub struct EventSource<'a> {
    pub world: &'a dyn World,
    pub constraint: &'a ConstraintConfig,
    pub spaces: &'a [LocalSpace],
    /// Where the constraint stands in the configuration.
    pub field: &'a str,
    pub horizon: usize,
}

impl EventSource<'_> {
    fn refused(&self, key: &str, message: impl Into<String>) -> Error {
        Error::config(format!("{}.{key}", self.field), message)
    }

    /// The events of the agents in `members`; fails if the constraint says something that `ever` and `chance`
    /// do not know, or an event that always or never happens.
    pub fn events(&self, bound: Bound, members: &[usize]) -> Result<Vec<EpisodeEvent>> {
        let ConstraintConfig { utility, states, event, budget, .. } = self.constraint;
        let (kind, threshold) = (utility.spec.kind.as_str(), bound.threshold());
        ensure(threshold > 0.0 && threshold < 1.0, || {
            let needed = "a probability above 0 and below 1 is needed";
            self.refused(bound.key(), format!("{threshold}; {needed}"))
        })?;
        let is_ever = kind == EVER;
        let right = matches!(bound, Bound::AtMost(_)) == is_ever;
        ensure(right, || {
            let message = match is_ever {
                true => "`ever` bounds the probability that it happens: use `at_most`",
                false => {
                    "`chance` bounds the probability that the cost keeps to its budget from below: use `at_least`"
                }
            };
            self.refused(bound.key(), message)
        })?;
        let r = utility.spec.r.clone().filter(|_| !is_ever);
        let plain = UtilitySpec { kind: kind.into(), r, ..Default::default() };
        ensure(plain == utility.spec && utility.file.is_none(), || {
            let takes = if is_ever { "`states` or `event`" } else { "`budget`, and `channel` or `r`" };
            Error::config(self.field, format!("kind `{kind}` takes {takes} only"))
        })?;
        if is_ever {
            for (key, given) in [("channel", utility.channel.is_some()), ("budget", budget.is_some())] {
                ensure(!given, || self.refused(key, "is for kind `chance`"))?;
            }
            return self.ever(states.as_deref(), event.as_deref(), members);
        }
        for (key, given) in [("states", states.is_some()), ("event", event.is_some())] {
            ensure(!given, || self.refused(key, "is for kind `ever`"))?;
        }
        let budget =
            budget.ok_or_else(|| self.refused("budget", "is missing: what the cost may add up to"))?;
        self.chance(budget, members)
    }

    fn ever(
        &self,
        states: Option<&[usize]>,
        event: Option<&str>,
        members: &[usize],
    ) -> Result<Vec<EpisodeEvent>> {
        match (states, event) {
            (Some(states), None) => {
                ensure(!states.is_empty(), || self.refused("states", "is empty: the event never happens"))?;
                let mut known: Vec<Arc<[bool]>> = Vec::new();
                members.iter().map(|&i| self.in_states(states, i, &mut known)).collect()
            }
            (None, Some(name)) => {
                let events = self.world.events();
                let found = events.iter().find(|event| event.name == name).ok_or_else(|| {
                    let names: Vec<&str> = events.iter().map(|event| event.name).collect();
                    let known = match names.is_empty() {
                        true => "this world has no named events; use `states`".to_string(),
                        false => format!("this world has {names:?}"),
                    };
                    self.refused("event", format!("`{name}` is unknown; {known}"))
                })?;
                let number = sampled_number(self.world, found.channel);
                Ok(vec![EpisodeEvent::Channel(number); members.len()])
            }
            _ => Err(Error::config(self.field, "kind `ever` needs exactly one of `states` and `event`")),
        }
    }

    /// Agents with as many states share a table.
    fn in_states(
        &self,
        states: &[usize],
        agent: usize,
        known: &mut Vec<Arc<[bool]>>,
    ) -> Result<EpisodeEvent> {
        let count = self.spaces[agent].states;
        if let Some(state) = states.iter().find(|&&state| state >= count) {
            let message = format!("names state {state}, but agent {agent} has the states 0 to {}", count - 1);
            return Err(self.refused("states", message));
        }
        let marked: Vec<bool> = (0..count).map(|state| states.contains(&state)).collect();
        ensure(!marked.iter().all(|&marked| marked), || {
            let message = format!("holds every state of agent {agent}: the event happens in every episode");
            self.refused("states", message)
        })?;
        let shared = known.iter().find(|table| table[..] == marked[..]).cloned();
        Ok(EpisodeEvent::States(shared.unwrap_or_else(|| {
            let table: Arc<[bool]> = marked.into();
            known.push(table.clone());
            table
        })))
    }

    /// The bounds on the worst episodes of the agents in `members`.
    pub fn tails(&self, bound: Bound, name: &Arc<str>, members: &[usize]) -> Result<Vec<Tail>> {
        let ConstraintConfig { utility, states, event, budget, level, .. } = self.constraint;
        let Bound::AtMost(at_most) = bound else {
            return Err(self.refused(bound.key(), "`cvar` bounds a cost from above: use `at_most`"));
        };
        let given = [("states", states.is_some()), ("event", event.is_some()), ("budget", budget.is_some())];
        for (key, given) in given {
            ensure(!given, || self.refused(key, "is not for kind `cvar`"))?;
        }
        let plain = UtilitySpec { kind: CVAR.into(), r: utility.spec.r.clone(), ..Default::default() };
        ensure(plain == utility.spec && utility.file.is_none(), || {
            Error::config(self.field, "kind `cvar` takes `level`, and `channel` or `r` only")
        })?;
        let level = level.ok_or_else(|| self.refused("level", "is missing, e.g. 0.9 for the worst tenth"))?;
        ensure((0.0..1.0).contains(&level), || {
            self.refused("level", format!("{level}; at least 0 and below 1 is needed"))
        })?;
        let cost = self.cost()?;
        let tail = |&i: &usize| {
            let (cost, range) = cost(i)?;
            Ok(Tail { name: name.clone(), cost, range, level, at_most })
        };
        members.iter().map(tail).collect()
    }

    /// What a step costs each agent, and the least and the most of it.
    fn cost(&self) -> Result<impl Fn(usize) -> Result<(Cost, [f64; 2])> + '_> {
        let utility = &self.constraint.utility;
        let place = match (&utility.channel, &utility.spec.r) {
            (Some(name), None) => {
                let channels = self.world.channels();
                let found = channels.iter().position(|channel| channel.name == *name);
                Some(found.ok_or_else(|| {
                    let names: Vec<&str> = channels.iter().map(|channel| channel.name.as_str()).collect();
                    self.refused("channel", format!("`{name}` is unknown; this world has {names:?}"))
                })?)
            }
            (None, Some(_)) => None,
            _ => {
                let kind = &utility.spec.kind;
                let message = format!("kind `{kind}` needs a cost: exactly one of `channel` and `r`");
                return Err(Error::config(self.field, message));
            }
        };
        Ok(move |i: usize| match place.map(|place| (place, &self.world.channels()[place].values)) {
            Some((place, &ChannelValues::Sampled { range: [low, high] })) => {
                let number = sampled_number(self.world, place);
                Ok((Cost::Channel { number, never_negative: low >= 0.0 }, [low, high]))
            }
            Some((_, ChannelValues::Table(tables))) => Ok(of_table(tables.row(i))),
            None => {
                let table = rewards(&utility.spec, self.spaces[i], self.field)?;
                Ok(of_table(&table))
            }
        })
    }

    fn chance(&self, budget: f64, members: &[usize]) -> Result<Vec<EpisodeEvent>> {
        ensure(budget.is_finite(), || {
            self.refused("budget", format!("{budget}; a finite number is needed"))
        })?;
        let cost = self.cost()?;
        let event = |&i: &usize| {
            let (cost, [low, high]) = cost(i)?;
            let ends = [low, high].map(|step| step * self.horizon as f64);
            ensure(budget >= ends[0] && budget < ends[1], || {
                let (relation, end) = match budget < ends[0] {
                    true => ("is always used up", ends[0]),
                    false => ("is never used up", ends[1]),
                };
                let over = format!("over {} steps the cost of agent {i} adds up to", self.horizon);
                let most = if budget < ends[0] { "least" } else { "most" };
                self.refused("budget", format!("{budget} {relation}: {over} {end} at {most}"))
            })?;
            Ok(EpisodeEvent::Cost { cost, budget })
        };
        members.iter().map(event).collect()
    }
}

/// A cost by own state and action, and the least and the most of it.
fn of_table(table: &[f64]) -> (Cost, [f64; 2]) {
    let least = table.iter().copied().fold(f64::INFINITY, f64::min);
    let most = table.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (Cost::Table(table.into()), [least, most])
}
