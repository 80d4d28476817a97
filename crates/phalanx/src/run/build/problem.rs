//! Objectives and constraints of all agents, with the check that their bounds can be met.

use std::sync::Arc;

use super::episode::{self, EventSource};
use super::utilities::utilities;
use crate::base::error::ensure;
use crate::base::key::GAMMA;
use crate::base::range::Discount;
use crate::run::config::{Config, ConstraintConfig, DEFAULT_GAMMA};
use crate::utility::group::Group;
use crate::utility::problem::{AgentProblem, Bound, Constraint, Interner, Problem, Scaling, ShadowReward};
use crate::utility::{GroupConfig, Kind, LocalSpace, Margin, ScaledUtility, UtilitySpec};
use crate::world::{Evolution, World, sampled_channels};
use crate::{Error, Result};

/// Builds every agent's objective and constraints. Also returns warnings: bounds that cannot be met but are
/// allowed.
pub fn problem(config: &Config, world: &dyn World) -> Result<(Problem, Vec<String>)> {
    let own = world.own_problem();
    let gamma = config.gamma.or(own.and_then(|own| own.gamma)).unwrap_or(DEFAULT_GAMMA);
    Discount::check(GAMMA, gamma).map_err(|error| of_model(config, error))?;
    let spaces: Vec<LocalSpace> = (0..world.graph().agents())
        .map(|i| LocalSpace { states: world.states(i), actions: world.actions(i), gamma })
        .collect();
    let objectives = objectives(config, world, &spaces)?;
    let shadow = config.objective.as_ref().map(|objective| objective.shadow(config.scaling, "objective"));
    let shadow = shadow.transpose()?.unwrap_or_default();
    let mut sharing = Interner::default();
    let mut agents: Vec<Arc<AgentProblem>> = objectives
        .into_iter()
        .zip(&spaces)
        .map(|(objective, &space)| {
            let (constraints, events, tails) = (Vec::new(), Vec::new(), Vec::new());
            sharing.entry(AgentProblem { space, objective, shadow, constraints, events, tails })
        })
        .collect();
    let mut problem = Problem {
        agents: Vec::new(),
        gamma,
        scaling: config.scaling,
        sampled_channels: sampled_channels(world).len(),
        episodic: matches!(world.evolution(), Evolution::Joint(_)),
        raw_lives: config.raw_lives,
        horizon: config.horizon,
        groups: Vec::new(),
    };
    let mass = problem.mass(config.horizon);
    let (mut warnings, mut groups) = (Vec::new(), Vec::new());
    match (&config.constraint, own) {
        (Some(list), _) => {
            for (k, constraint) in list.iter().enumerate() {
                let field = format!("constraint.{k}");
                let added =
                    add_constraint(config, world, constraint, &field, mass, (&mut agents, &mut groups))?;
                warnings.extend(added);
            }
        }
        (None, Some(own)) => {
            let added = add_own_constraints(config, &own.constraints, mass, &mut agents);
            warnings.extend(added.map_err(|error| of_model(config, error))?);
        }
        (None, None) => {}
    }
    (problem.agents, problem.groups) = (agents, groups);
    Ok((problem, warnings))
}

fn objectives(config: &Config, world: &dyn World, spaces: &[LocalSpace]) -> Result<Vec<ScaledUtility>> {
    let everybody: Vec<usize> = (0..spaces.len()).collect();
    let mut objectives = match (&config.objective, world.own_problem()) {
        (Some(utility), _) if episode::is_event(&utility.spec.kind) || utility.spec.kind == episode::CVAR => {
            let message = format!("`{}` is for constraints", utility.spec.kind);
            return Err(Error::config("objective.kind", message));
        }
        (Some(utility), _) => utilities(config, world, utility, spaces, &everybody, "objective")?,
        (None, Some(own)) if !own.objectives.is_empty() => own
            .objectives
            .iter()
            .zip(spaces)
            .enumerate()
            .map(|(i, (spec, &space))| spec.build(space, &format!("f[{i}]")))
            .collect::<Result<_>>()
            .map_err(|error| of_model(config, error))?,
        _ => {
            let message = "is missing, e.g. [objective] with kind = \"return\" (of a reward channel) or kind = \"linear\" and \
                           a table r";
            return Err(Error::config("objective", message));
        }
    };
    if config.scaling == Scaling::Normalised {
        for (objective, space) in objectives.iter_mut().zip(spaces) {
            if objective.kind.is_linear() || matches!(objective.kind, Kind::Channel { .. }) {
                objective.scale *= 1.0 - space.gamma;
                objective.offset *= 1.0 - space.gamma;
            }
        }
    }
    Ok(objectives)
}

/// Adds one `[[constraint]]` to its agents; a warning if its bound is out of reach and that is allowed.
fn add_constraint(
    config: &Config,
    world: &dyn World,
    constraint: &ConstraintConfig,
    field: &str,
    mass: f64,
    (agents, groups): (&mut [Arc<AgentProblem>], &mut Vec<Group>),
) -> Result<Option<String>> {
    let n = agents.len();
    let refused = |key: &str, message: String| Error::config(format!("{field}.{key}"), message);
    let of_group = constraint.group.as_ref().map(|group| group_members(group, world)).transpose();
    let of_group = of_group.map_err(|message| refused("group", message))?;
    ensure(of_group.is_none() || constraint.agents.is_none(), || {
        refused("group", "is given beside `agents`; name its agents in one of them".into())
    })?;
    let is_group = of_group.is_some();
    let list = if is_group { "group" } else { "agents" };
    let members: Vec<usize> =
        of_group.or_else(|| constraint.agents.clone()).unwrap_or_else(|| (0..n).collect());
    if let Some(unknown) = members.iter().find(|&&i| i >= n) {
        let message = format!("names agent {unknown}, but agents are 0 to {}", n - 1);
        return Err(refused(list, message));
    }
    ensure(!members.is_empty(), || refused(list, "is empty; leave it out for all agents".into()))?;
    let mut seen = members.clone();
    seen.sort_unstable();
    if let Some(twice) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(refused(list, format!("names agent {} twice", twice[0])));
    }
    let shadow = constraint.utility.shadow(config.scaling, field)?;
    let bound = match (constraint.at_least, constraint.at_most) {
        (Some(threshold), _) => Bound::AtLeast(threshold),
        (None, Some(threshold)) => Bound::AtMost(threshold),
        (None, None) => return Err(Error::config(field, "give exactly one of `at_least` and `at_most`")),
    };
    if let Some(margin) = &constraint.margin {
        margin.check(members.len()).map_err(|message| refused("margin", message))?;
    }
    let margin = |place: usize| constraint.margin.as_ref().map_or(0.0, |margin| margin.at(place));
    let name: Arc<str> = constraint.name.as_str().into();
    let spaces: Vec<LocalSpace> = agents.iter().map(|agent| agent.space).collect();
    let kind = &constraint.utility.spec.kind;
    ensure(!is_group || !episode::is_event(kind), || {
        refused("group", format!("sums up utilities of occupancies; `{kind}` is none"))
    })?;
    ensure(!is_group || !matches!(constraint.margin, Some(Margin::Each(_))), || {
        refused("margin", "of a group is one number: all its agents have one multiplier".into())
    })?;
    if kind == episode::CVAR {
        ensure(!is_group, || refused("group", "is not for `cvar`".into()))?;
        let source = EventSource { world, constraint, spaces: &spaces, field, horizon: config.horizon };
        let mut sharing = Interner::default();
        for (&i, tail) in members.iter().zip(source.tails(bound, &name, &members)?) {
            let mut agent = AgentProblem::clone(&agents[i]);
            agent.tails.push(tail);
            agents[i] = sharing.entry(agent);
        }
        return Ok(None);
    }
    ensure(constraint.level.is_none(), || refused("level", format!("is for `cvar`, not for `{kind}`")))?;
    let (built, events) = if episode::is_event(kind) {
        let source = EventSource { world, constraint, spaces: &spaces, field, horizon: config.horizon };
        (Vec::new(), source.events(bound, &members)?)
    } else {
        for (key, given) in [
            ("states", constraint.states.is_some()),
            ("event", constraint.event.is_some()),
            ("budget", constraint.budget.is_some()),
        ] {
            ensure(!given, || {
                refused(key, format!("is for constraints on whole episodes, not for `{kind}`"))
            })?;
        }
        (utilities(config, world, &constraint.utility, &spaces, &members, field)?, Vec::new())
    };
    let (mut out_of_reach, mut least_violation) = (0, 0.0);
    let mut sharing = Interner::default();
    let mut group = is_group.then(|| group(&name, &members, bound, world)).transpose().map_err(|far| {
        let message = format!(
            "is not connected: agent {far} cannot be reached from agent {} by links within it",
            seen[0]
        );
        refused("group", message)
    })?;
    if is_group {
        let ends = members
            .iter()
            .zip(&built)
            .map(|(&i, utility)| utility.range(spaces[i], mass).map(|range| bound.easiest(range)));
        let best = ends.sum::<Option<f64>>().map(|sum| (bound.slack(sum), sum));
        if let Some((slack, sum)) = best.filter(|(slack, sum)| *slack < -1e-9 * (1.0 + sum.abs())) {
            let message = || infeasible(constraint, bound, seen[0], sum);
            ensure(constraint.allow_infeasible, || Error::config(field, message()))?;
            (out_of_reach, least_violation) = (members.len(), -slack);
        }
    }
    for (place_in_list, (&i, event)) in members.iter().zip(events).enumerate() {
        let mut agent = AgentProblem::clone(&agents[i]);
        let name = distinct_name(&name, &agent.constraints);
        let number = agent.events.len();
        let place = sampled_channels(world).len() + number;
        // The probability that the event happens, or that it does not.
        let (name_of_kind, scale, offset) = match bound {
            Bound::AtMost(_) => (episode::EVER, 1.0, 0.0),
            Bound::AtLeast(_) => (episode::CHANCE, -1.0, 1.0),
        };
        let kind = Kind::Episode { name: name_of_kind, place, number };
        let utility = ScaledUtility { kind, scale, offset };
        agent.events.push(event);
        let margin = margin(place_in_list);
        let shadow = ShadowReward::default();
        agent.constraints.push(Constraint { name, utility, bound, shadow, margin, group: None });
        agents[i] = sharing.entry(agent);
    }
    for (place_in_list, (&i, utility)) in members.iter().zip(built).enumerate() {
        if let Some((best, extreme)) = best_slack(&utility, bound, spaces[i], mass).filter(|_| !is_group) {
            let message = || infeasible(constraint, bound, i, extreme);
            ensure(constraint.allow_infeasible, || Error::config(field, message()))?;
            out_of_reach += 1;
            least_violation -= best;
        }
        let mut agent = AgentProblem::clone(&agents[i]);
        let name = distinct_name(&name, &agent.constraints);
        let margin = margin(place_in_list);
        if let Some(group) = &mut group
            && let Ok(member) = group.members.binary_search(&(i as u32))
        {
            group.places[member] = agent.constraints.len();
        }
        let number = group.as_ref().map(|_| groups.len());
        agent.constraints.push(Constraint { name, utility, bound, shadow, margin, group: number });
        agents[i] = sharing.entry(agent);
    }
    groups.extend(group);
    Ok((out_of_reach > 0).then(|| {
        format!(
            "{field} ({name}): no policy can meet the bound {} for {out_of_reach} of {} agents; their violations sum \
             to at least {least_violation:.6}",
            bound.threshold(),
            members.len()
        )
    }))
}

/// The agents that `group` names.
fn group_members(group: &GroupConfig, world: &dyn World) -> std::result::Result<Vec<usize>, String> {
    match group {
        GroupConfig::Agents(agents) => Ok(agents.clone()),
        GroupConfig::Label(label) => {
            let found = world.graph().group(label).map(|agents| agents.iter().map(|&i| i as usize).collect());
            found.ok_or_else(|| {
                let known: Vec<&str> = world.graph().group_names().collect();
                format!("`{label}` is no group of the graph's file, which has {known:?}")
            })
        }
    }
}

/// The group; an agent that is not connected to the others if there is one.
fn group(
    name: &Arc<str>,
    members: &[usize],
    bound: Bound,
    world: &dyn World,
) -> std::result::Result<Group, u32> {
    let members = members.iter().map(|&i| i as u32).collect();
    Group::new(name.clone(), members, bound, world.graph())
}

/// The largest possible slack where it is negative, with the utility's extreme value.
fn best_slack(utility: &ScaledUtility, bound: Bound, space: LocalSpace, mass: f64) -> Option<(f64, f64)> {
    let extreme = bound.easiest(utility.range(space, mass)?);
    let slack = bound.slack(extreme);
    // Closed forms of the ends carry rounding errors.
    (slack < -1e-9 * (1.0 + extreme.abs())).then_some((slack, extreme))
}

fn infeasible(constraint: &ConstraintConfig, bound: Bound, agent: usize, extreme: f64) -> String {
    let relation = match bound {
        Bound::AtLeast(_) => "above the maximum",
        Bound::AtMost(_) => "below the minimum",
    };
    format!(
        "{} = {} is {relation} {extreme} of `{}` (agent {agent}); change it, or set allow_infeasible = true",
        bound.key(),
        bound.threshold(),
        constraint.utility.spec.kind
    )
}

/// Adds the constraints of a model file; a warning if some are out of reach and that is allowed.
fn add_own_constraints(
    config: &Config,
    lists: &[Vec<UtilitySpec>],
    mass: f64,
    agents: &mut [Arc<AgentProblem>],
) -> Result<Option<String>> {
    let allowed = config.world.settings().is_some_and(|settings| settings.allows_infeasible());
    let (mut out_of_reach, mut least_violation) = (0, 0.0);
    let bound = Bound::AtLeast(0.0);
    let mut sharing = Interner::default();
    for (i, (list, agent)) in lists.iter().zip(agents).enumerate() {
        let mut extended = AgentProblem::clone(agent);
        for (k, spec) in list.iter().enumerate() {
            let field = format!("g[{i}][{k}]");
            let utility = spec.build(agent.space, &field)?;
            if let Some((best, _)) = best_slack(&utility, bound, agent.space, mass) {
                let hint = "change it, or set world.allow_infeasible = true";
                let message = || format!("is {best} at most, so it cannot reach 0; {hint}");
                ensure(allowed, || Error::config(field, message()))?;
                out_of_reach += 1;
                least_violation -= best;
            }
            let name = distinct_name(&spec.kind.as_str().into(), &extended.constraints);
            extended.constraints.push(Constraint {
                name,
                utility,
                bound,
                shadow: ShadowReward::default(),
                margin: 0.0,
                group: None,
            });
        }
        *agent = sharing.entry(extended);
    }
    Ok((out_of_reach > 0).then(|| {
        format!(
            "no policy can meet {out_of_reach} constraints of the model; their violations sum to at least \
             {least_violation:.6}"
        )
    }))
}

/// `name`, numbered on if the agent has a constraint of that name.
fn distinct_name(name: &Arc<str>, others: &[Constraint]) -> Arc<str> {
    let is_free = |candidate: &Arc<str>| others.iter().all(|other| other.name != *candidate);
    let numbered = (2..).map(|k| format!("{name}-{k}").into());
    std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or_default()
}

/// Says which file a mistake in a model's own utilities is in.
fn of_model(config: &Config, error: Error) -> Error {
    match (config.world.file(), error) {
        (Some(file), error @ Error::Config { .. }) => Error::file(config.locate(file), error.to_string()),
        (_, error) => error,
    }
}
