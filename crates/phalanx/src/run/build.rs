//! From a configuration to the objects of a run: world, problem, policy, critic, algorithm.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::config::{
    Config, ConstraintConfig, CriticKind, CriticStart, CriticStep, DEFAULT_GAMMA, NetworkConfig,
    UtilityConfig, WorldConfig, check_gamma,
};
use super::preset;
use crate::algorithm::{PrimalDual, Settings};
use crate::critic::{Critic, Lstd, MonteCarlo, QTables, StepRule, Td};
use crate::dual::DualRule;
use crate::memory::room_for;
use crate::network::Network;
use crate::policy::Tabular;
use crate::problem::{AgentProblem, Bound, Constraint, Problem, Scaling};
use crate::stream::Stream;
use crate::utility::{Kind, LocalSpace, LocalTable, ScaledUtility, UtilitySpec};
use crate::world::{LARGEST_LOCAL_SPACE, Line, Table, World};
use crate::{Error, Result, document};

/// `config` with what only the world's file can tell: builds world and problem, and so finds their mistakes too.
pub fn resolve(config: &Config) -> Result<Config> {
    let world = world(config)?;
    let (problem, _) = problem(config, &*world)?;
    Ok(with_gamma(config, &problem))
}

/// `config` with the problem's discount factor.
pub(super) fn with_gamma(config: &Config, problem: &Problem) -> Config {
    let mut resolved = config.clone();
    resolved.gamma = Some(problem.gamma);
    resolved
}

/// Builds the world with its links.
pub fn world(config: &Config) -> Result<Arc<dyn World>> {
    match &config.world {
        WorldConfig::Line { n, start, mixing } => {
            let line = Line::new(*n, *start, *mixing)?;
            Ok(match network(config, *n)? {
                Some(network) => Arc::new(line.with_network(network)),
                None => Arc::new(line),
            })
        }
        WorldConfig::Table { file, .. } => {
            let table = Table::read(&config.locate(file))?;
            Ok(match network(config, table.network().agents())? {
                Some(network) => Arc::new(table.with_network(network)),
                None => Arc::new(table),
            })
        }
        WorldConfig::Own { kind, keys } => {
            let world = config.registry.build(kind, keys)?;
            if config.network.is_some() {
                return Err(Error::config("network", format!("`{kind}` brings its own links")));
            }
            Ok(world)
        }
    }
}

fn network(config: &Config, n: usize) -> Result<Option<Network>> {
    let Some(NetworkConfig { kind, rows, columns, radius, probability, seed, file }) = &config.network else {
        return Ok(None);
    };
    let missing =
        |key: &str| Error::config(format!("network.{key}"), format!("is missing; `{kind}` needs it"));
    let given = [
        ("rows", rows.is_some(), &["grid"][..]),
        ("columns", columns.is_some(), &["grid"]),
        ("radius", radius.is_some(), &["geometric"]),
        ("probability", probability.is_some(), &["erdos_renyi"]),
        ("seed", seed.is_some(), &["geometric", "erdos_renyi"]),
        ("file", file.is_some(), &["edges"]),
    ];
    if let Some((key, _, users)) =
        given.iter().find(|(_, given, users)| *given && !users.contains(&kind.as_str()))
    {
        return Err(Error::config(format!("network.{key}"), format!("is for kind {}", users.join(" and "))));
    }
    let seed = seed.unwrap_or(0);
    let network = match kind.as_str() {
        "line" => Network::line(n),
        "ring" => Network::ring(n),
        "star" => Network::star(n),
        "complete" => Network::complete(n),
        "grid" => {
            let (rows, columns) =
                (rows.ok_or_else(|| missing("rows"))?, columns.ok_or_else(|| missing("columns"))?);
            let agents = rows as u128 * columns as u128;
            if agents != n as u128 {
                let message =
                    format!("{rows} × {columns} columns make {agents} agents, but the world has {n}");
                return Err(Error::config("network.rows", message));
            }
            Network::grid(rows, columns)
        }
        "geometric" => Network::random_geometric(n, radius.ok_or_else(|| missing("radius"))?, seed),
        "erdos_renyi" => Network::erdos_renyi(n, probability.ok_or_else(|| missing("probability"))?, seed),
        "edges" => {
            let file = file.as_ref().ok_or_else(|| missing("file"))?;
            Network::read_edge_list(&config.locate(file), Some(n))
        }
        other => Err(Error::config(
            "network.kind",
            format!(
                "`{other}` is unknown; allowed are line, ring, grid, star, complete, geometric, erdos_renyi, edges"
            ),
        )),
    }?;
    if network.agents() != n {
        return Err(Error::config(
            "network",
            format!("links {} agents, but the world has {n}", network.agents()),
        ));
    }
    Ok(Some(network))
}

/// Builds every agent's objective and constraints. Also returns warnings: bounds that cannot be met but are allowed.
pub fn problem(config: &Config, world: &dyn World) -> Result<(Problem, Vec<String>)> {
    let own = world.own_problem();
    let gamma = config.gamma.or(own.and_then(|own| own.gamma)).unwrap_or(DEFAULT_GAMMA);
    check_gamma("gamma", gamma).map_err(|error| of_model(config, error))?;
    let spaces: Vec<LocalSpace> = (0..world.network().agents())
        .map(|i| LocalSpace { states: world.states(i), actions: world.actions(i), gamma })
        .collect();
    let objectives = objectives(config, world, &spaces)?;
    let mut agents: Vec<AgentProblem> = objectives
        .into_iter()
        .zip(&spaces)
        .map(|(objective, &space)| AgentProblem { space, objective, constraints: Vec::new() })
        .collect();
    let mut problem = Problem { agents: Vec::new(), gamma, scaling: config.scaling };
    let mass = problem.mass(config.horizon);
    let mut warnings = Vec::new();
    match (&config.constraint, own) {
        (Some(list), _) => {
            for (k, constraint) in list.iter().enumerate() {
                let field = format!("constraint.{k}");
                warnings.extend(add_constraint(config, world, constraint, &field, mass, &mut agents)?);
            }
        }
        (None, Some(own)) => {
            let added = add_own_constraints(config, &own.constraints, mass, &mut agents);
            warnings.extend(added.map_err(|error| of_model(config, error))?);
        }
        (None, None) => {}
    }
    problem.agents = agents;
    Ok((problem, warnings))
}

fn objectives(config: &Config, world: &dyn World, spaces: &[LocalSpace]) -> Result<Vec<ScaledUtility>> {
    let mut objectives = match (&config.objective, world.own_problem()) {
        (Some(utility), _) => utilities(config, world, utility, spaces, None, "objective")?,
        (None, Some(own)) if !own.objectives.is_empty() => own
            .objectives
            .iter()
            .zip(spaces)
            .enumerate()
            .map(|(i, (spec, &space))| spec.build(space, &format!("f[{i}]")))
            .collect::<Result<_>>()
            .map_err(|error| of_model(config, error))?,
        _ => {
            return Err(Error::config(
                "objective",
                "is missing, e.g. [objective] with kind = \"return\" (of a reward channel) or kind = \"linear\" and a table r",
            ));
        }
    };
    if config.scaling == Scaling::Normalised {
        for (objective, space) in objectives.iter_mut().zip(spaces) {
            if matches!(objective.kind, Kind::Linear { .. }) {
                objective.scale *= 1.0 - space.gamma;
                objective.offset *= 1.0 - space.gamma;
            }
        }
    }
    Ok(objectives)
}

/// One utility of the configuration, for every agent (or those in `agents`).
fn utilities(
    config: &Config,
    world: &dyn World,
    utility: &UtilityConfig,
    spaces: &[LocalSpace],
    agents: Option<&[usize]>,
    field: &str,
) -> Result<Vec<ScaledUtility>> {
    let everyone: Vec<usize>;
    let agents = match agents {
        Some(agents) => agents,
        None => {
            everyone = (0..spaces.len()).collect();
            &everyone
        }
    };
    if utility.spec.kind == "return" {
        return returns(world, utility, spaces, agents, field);
    }
    if utility.channel.is_some() {
        return Err(Error::config(format!("{field}.channel"), "is for kind `return`"));
    }
    let tables = utility.file.as_ref().map(|file| read_tables(config, file, spaces)).transpose()?;
    let mut built: Vec<ScaledUtility> = Vec::with_capacity(agents.len());
    for &i in agents {
        let spec = tables.as_ref().map_or(utility.spec.clone(), |tables| tables.spec_of(i, &utility.spec));
        built.push(spec.build(spaces[i], field).map_err(|error| match error {
            Error::Config { field, message } if field.ends_with(".kind") => {
                Error::config(field, format!("{message}, return"))
            }
            Error::Config { field, message } => Error::config(field, format!("{message} (agent {i})")),
            other => other,
        })?);
    }
    Ok(built)
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
    let channel = world.channels().iter().find(|channel| channel.name == name).ok_or_else(|| {
        let names: Vec<&str> = world.channels().iter().map(|channel| channel.name.as_str()).collect();
        Error::config(format!("{field}.channel"), format!("`{name}` is unknown; this world has {names:?}"))
    })?;
    let spec = UtilitySpec { scale: utility.spec.scale, offset: utility.spec.offset, ..Default::default() };
    if spec != (UtilitySpec { kind: String::new(), ..utility.spec.clone() }) || utility.file.is_some() {
        return Err(Error::config(field, "kind `return` takes `channel`, `scale` and `offset` only"));
    }
    // Agents with equal rewards share one table.
    let mut shared: Vec<Arc<[f64]>> = Vec::new();
    agents
        .iter()
        .map(|&i| {
            let row = channel.tables.row(i);
            let r = match shared.iter().rev().take(8).find(|table| table[..] == *row) {
                Some(table) => table.clone(),
                None => {
                    let table: Arc<[f64]> = row.into();
                    shared.push(table.clone());
                    table
                }
            };
            let (scale, offset) = (spec.scale.unwrap_or(1.0), spec.offset.unwrap_or(0.0));
            let utility = ScaledUtility { kind: Kind::Linear { r }, scale, offset };
            utility.validate(spaces[i], field)?;
            Ok(utility)
        })
        .collect()
}

/// A file with one table an agent, for utilities whose parameters differ between agents. `lambda` is what an
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
    let gamma = spaces[0].gamma;
    if let Some(made_with) = tables.gamma.filter(|made_with| (made_with - gamma).abs() > 1e-12) {
        let message = format!("was made with gamma = {made_with}, but this run has gamma = {gamma}");
        return Err(Error::file(file, message));
    }
    let TablesFile { gamma: _, r, expert, lo, hi, a, b, center, radius } = &tables;
    let of_tables = [("r", r), ("lambda", expert), ("lo", lo), ("hi", hi), ("a", a), ("center", center)];
    let lengths = of_tables.map(|(key, list)| (key, list.as_ref().map(Vec::len)));
    let of_numbers = [("b", b), ("radius", radius)].map(|(key, list)| (key, list.as_ref().map(Vec::len)));
    for (key, length) in lengths.into_iter().chain(of_numbers) {
        if let Some(length) = length.filter(|&length| length != spaces.len()) {
            let message = format!("`{key}` has {length} entries for {} agents", spaces.len());
            return Err(Error::file(file, message));
        }
    }
    Ok(tables)
}

impl TablesFile {
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

/// Adds one `[[constraint]]` to its agents; a warning if its bound is out of reach and that is allowed.
fn add_constraint(
    config: &Config,
    world: &dyn World,
    constraint: &ConstraintConfig,
    field: &str,
    mass: f64,
    agents: &mut [AgentProblem],
) -> Result<Option<String>> {
    let n = agents.len();
    let members: Vec<usize> = match &constraint.agents {
        Some(list) => list.clone(),
        None => (0..n).collect(),
    };
    if let Some(unknown) = members.iter().find(|&&i| i >= n) {
        return Err(Error::config(
            format!("{field}.agents"),
            format!("names agent {unknown}, but agents are 0 to {}", n - 1),
        ));
    }
    if members.is_empty() {
        return Err(Error::config(format!("{field}.agents"), "is empty; leave it out for all agents"));
    }
    let mut seen = members.clone();
    seen.sort_unstable();
    if let Some(twice) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::config(format!("{field}.agents"), format!("names agent {} twice", twice[0])));
    }
    if constraint.shadow_scale.is_some() && config.scaling != Scaling::Authors {
        return Err(Error::config(format!("{field}.shadow_scale"), "is for scaling = \"authors\""));
    }
    let bound = match (constraint.at_least, constraint.at_most) {
        (Some(threshold), _) => Bound::AtLeast(threshold),
        (None, Some(threshold)) => Bound::AtMost(threshold),
        (None, None) => return Err(Error::config(field, "give exactly one of `at_least` and `at_most`")),
    };
    let name: Arc<str> = constraint.name.as_str().into();
    let spaces: Vec<LocalSpace> = agents.iter().map(|agent| agent.space).collect();
    let built = utilities(config, world, &constraint.utility, &spaces, Some(&members), field)?;
    let (mut out_of_reach, mut least_violation) = (0, 0.0);
    for (&i, utility) in members.iter().zip(built) {
        if let Some((best, extreme)) = best_slack(&utility, bound, spaces[i], mass) {
            if !constraint.allow_infeasible {
                return Err(Error::config(field, infeasible(constraint, bound, i, extreme)));
            }
            out_of_reach += 1;
            least_violation -= best;
        }
        let shadow_scale = constraint.shadow_scale.unwrap_or(1.0);
        // Most agents have one constraint; a growing vector would make room for four.
        agents[i].constraints.reserve_exact(1);
        let name = if agents[i].constraints.is_empty() {
            name.clone()
        } else {
            distinct_name(&name, &agents[i].constraints)
        };
        agents[i].constraints.push(Constraint { name, utility, bound, shadow_scale });
    }
    Ok((out_of_reach > 0).then(|| {
        format!(
            "{field} ({name}): no policy can meet the bound {} for {out_of_reach} of {} agents; their violations sum \
             to at least {least_violation:.6}",
            bound.threshold(),
            members.len()
        )
    }))
}

/// The largest possible slack where it is negative, with the utility's extreme value.
fn best_slack(utility: &ScaledUtility, bound: Bound, space: LocalSpace, mass: f64) -> Option<(f64, f64)> {
    let (min, max) = utility.range(space, mass)?;
    let extreme = match bound {
        Bound::AtLeast(_) => max,
        Bound::AtMost(_) => min,
    };
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
    agents: &mut [AgentProblem],
) -> Result<Option<String>> {
    let allowed = matches!(config.world, WorldConfig::Table { allow_infeasible: true, .. });
    let (mut out_of_reach, mut least_violation) = (0, 0.0);
    let bound = Bound::AtLeast(0.0);
    for (i, (list, agent)) in lists.iter().zip(agents).enumerate() {
        agent.constraints.reserve_exact(list.len());
        for (k, spec) in list.iter().enumerate() {
            let field = format!("g[{i}][{k}]");
            let utility = spec.build(agent.space, &field)?;
            if let Some((best, _)) = best_slack(&utility, bound, agent.space, mass) {
                if !allowed {
                    let message = format!(
                        "is {best} at most, so it cannot reach 0; change it, or set world.allow_infeasible = true"
                    );
                    return Err(Error::config(field, message));
                }
                out_of_reach += 1;
                least_violation -= best;
            }
            let name = distinct_name(&spec.kind, &agent.constraints);
            agent.constraints.push(Constraint { name, utility, bound, shadow_scale: 1.0 });
        }
    }
    Ok((out_of_reach > 0).then(|| {
        format!(
            "no policy can meet {out_of_reach} constraints of the model; their violations sum to at least \
             {least_violation:.6}"
        )
    }))
}

/// `name`, numbered on if the agent has a constraint of that name.
fn distinct_name(name: &str, others: &[Constraint]) -> Arc<str> {
    let taken = |candidate: &str| others.iter().any(|other| &*other.name == candidate);
    let numbered = (2..).map(|k| format!("{name}-{k}"));
    std::iter::once(name.to_string()).chain(numbered).find(|c| !taken(c)).unwrap_or_default().into()
}

/// Says which file a mistake in a model's own utilities is in.
fn of_model(config: &Config, error: Error) -> Error {
    match (&config.world, error) {
        (WorldConfig::Table { file, .. }, error @ Error::Config { .. }) => {
            Error::file(config.locate(file), error.to_string())
        }
        (_, error) => error,
    }
}

/// Builds Algorithm 1.
pub fn algorithm(config: &Config, world: &Arc<dyn World>, problem: &Arc<Problem>) -> Result<PrimalDual> {
    check_fit(config, &**world, problem)?;
    check_room(config, world.network().agents())?;
    let stream = Stream::new(config.seed);
    let policy = Tabular::new(&**world, config.kappa, config.policy.kind, config.policy.init_std, &stream)?;
    let n = world.network().agents();
    let settings = Settings {
        iterations: config.iterations,
        horizon: config.horizon,
        batch: config.batch,
        kappa_q: config.kappa_q,
        dual: DualRule {
            kind: config.dual.kind,
            eta_mu: config.dual.eta_mu,
            eta_integral: config.dual.eta_integral,
            mu_max: config.dual.mu_max,
            centre: config.dual.centre,
            slack_factor: if config.scaling == Scaling::Paper { 1.0 / n as f64 } else { 1.0 },
        },
        mu_0: config.dual.mu_0,
        dual_schedule: config.dual.schedule,
        baseline: config.actor.baseline.unwrap_or(crate::actor::Baseline::None),
        optimizer: config.actor.optimizer,
        eta_theta: config.actor.eta_theta,
        actor_schedule: config.actor.schedule,
        theta_box: config.policy.theta_box,
    };
    let critic = critic(config, &**world, problem)?;
    PrimalDual::new(world.clone(), problem.clone(), policy, critic, settings, stream)
}

/// Whether world, problem and configuration speak of the same thing; they may have been put together in Rust.
fn check_fit(config: &Config, world: &dyn World, problem: &Problem) -> Result<()> {
    let n = world.network().agents();
    if problem.agents.len() != n {
        let message = format!("has {} agents, but the world has {n}", problem.agents.len());
        return Err(Error::config("problem", message));
    }
    if problem.scaling != config.scaling {
        let message =
            format!("is {:?} in the configuration, but {:?} in the problem", config.scaling, problem.scaling);
        return Err(Error::config("scaling", message));
    }
    for (i, agent) in problem.agents.iter().enumerate() {
        let expected =
            LocalSpace { states: world.states(i), actions: world.actions(i), gamma: problem.gamma };
        if agent.space != expected {
            let message = format!("agent {i} has {:?}, but its world {expected:?}", agent.space);
            return Err(Error::config("problem", message));
        }
        let sizes = [expected.states, expected.actions];
        if sizes.iter().any(|size| !(1..=LARGEST_LOCAL_SPACE).contains(size)) {
            let message =
                format!("agent {i} has {sizes:?} states and actions; 1 to {LARGEST_LOCAL_SPACE} are allowed");
            return Err(Error::config("world", message));
        }
        agent.objective.validate(agent.space, "objective")?;
        agent.constraints.iter().try_for_each(|c| c.utility.validate(agent.space, &c.name))?;
    }
    Ok(())
}

/// Whether weights and trajectories fit into memory; the larger part is blamed.
fn check_room(config: &Config, n: usize) -> Result<()> {
    let [n, batch, horizon, steps] =
        [n, config.batch, config.horizon, config.critic.steps].map(|x| x as u128);
    let tail = if config.critic.kind == CriticKind::Montecarlo { steps } else { 0 };
    // A byte of state and one of action; an f64 for each weight and step size.
    let evaluation = (2 * n + 8) * (steps + 1);
    let of_batch = 2 * n * batch * (horizon + tail) + 16 * horizon;
    room_for(evaluation, "critic.steps", &format!("{steps} steps of {n} agents"))?;
    let field = if batch > horizon { "batch" } else { "horizon" };
    let what = format!("{batch} trajectories of {} steps of {n} agents", horizon + tail);
    room_for(evaluation + of_batch, field, &what)
}

fn critic(config: &Config, world: &dyn World, problem: &Problem) -> Result<Box<dyn Critic>> {
    let critic = &config.critic;
    let tables = || QTables::new(world, config.kappa_q, problem);
    Ok(match critic.kind {
        CriticKind::Td => {
            let rule = match critic.step {
                CriticStep::Harmonic => StepRule::Harmonic { h: critic.h, k1: critic.k1 },
                CriticStep::Constant => StepRule::Constant(critic.eta_q),
            };
            Box::new(Td::new(tables()?, problem, critic.steps, rule, critic.start == CriticStart::Warm))
        }
        CriticKind::Lstd => {
            let tables = tables()?;
            let largest = (0..problem.agents.len()).map(|j| tables.index().size(j)).max().unwrap_or(0);
            // Every thread solves a dense system over the pairs that can have been visited.
            let unknowns = largest.min(critic.steps + 1) as u128;
            let bytes = 8 * unknowns * unknowns * rayon::current_num_threads() as u128;
            room_for(bytes, "critic.steps", &format!("LSTD over {unknowns} pairs"))?;
            Box::new(Lstd::new(tables, problem, critic.steps, critic.ridge))
        }
        CriticKind::Montecarlo => Box::new(MonteCarlo::new(problem, critic.steps)),
    })
}
