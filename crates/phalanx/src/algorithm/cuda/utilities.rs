//! Objectives and constraints on the card.

use std::collections::HashMap;
use std::sync::Arc;

use phalanx_gpu::{Launch, Layout};

use super::super::primal_dual::PrimalDual;
use super::device::refused;
use super::rows::by_entry;
use super::shape::Shape;
use crate::Result;
use crate::base::error::ensure;
use crate::learn::dual::DualKind;
use crate::utility::problem::{AgentProblem, Bound, Problem, Scaling};
use crate::utility::{KNOWN_KINDS, KernelParameters, Kind, Power, ScaledUtility};
use crate::world::{World, sampled_number};

/// Numbers of a utility in `utilities.cu`.
const FIELDS: usize = 11;

/// The number of a sampled channel's total among the kinds, behind those of the library.
const CHANNEL: usize = KNOWN_KINDS.len();

/// Tables of all utilities, one after the other.
#[derive(Default)]
struct Tables {
    numbers: Vec<f64>,
    /// Where those are that are there already.
    places: HashMap<*const f64, usize>,
}

impl Tables {
    fn place(&mut self, table: &Arc<[f64]>) -> f64 {
        let numbers = &mut self.numbers;
        let place = self.places.entry(table.as_ptr()).or_insert_with(|| {
            let place = numbers.len();
            numbers.extend_from_slice(table);
            place
        });
        *place as f64
    }
}

/// Fails for kinds that have no kernel text.
pub fn check_kind(kind: &Kind) -> Result<()> {
    match kind {
        Kind::Episode { name, .. } => {
            Err(refused("constraint", format!("constraints of kind `{name}` are not available")))
        }
        Kind::Custom(_) => Err(refused("constraint", "utilities of your own are not available")),
        _ => Ok(()),
    }
}

/// The numbers of a utility: its kind, parameters and tables; then what makes a constraint of it.
fn fields(
    utility: &ScaledUtility,
    tables: &mut Tables,
    bound: Option<Bound>,
    factor: f64,
) -> Result<[f64; FIELDS]> {
    let kind = &utility.kind;
    check_kind(kind)?;
    let (parameters, channel) = match kind {
        Kind::Channel { place, .. } => (KernelParameters::default(), *place),
        kind => (kind.base().map(|base| base.parameters()).unwrap_or_default(), 0),
    };
    let number_of_kind = KNOWN_KINDS.iter().position(|name| *name == kind.name()).unwrap_or(CHANNEL);
    let power = match parameters.power {
        None => 0.0,
        Some(Power::One) => 1.0,
        Some(Power::Two) => 2.0,
    };
    let [table, other] = parameters.tables.map(|table| table.map_or(0.0, |table| tables.place(table)));
    let (is_at_most, threshold) = match bound {
        Some(Bound::AtMost(threshold)) => (1.0, threshold),
        Some(Bound::AtLeast(threshold)) => (0.0, threshold),
        None => (0.0, 0.0),
    };
    let (scale, offset) = (utility.scale, utility.offset);
    Ok([
        number_of_kind as f64,
        is_at_most,
        power,
        channel as f64,
        scale,
        offset,
        threshold,
        factor,
        parameters.number,
        table,
        other,
    ])
}

/// Adds the utilities of all agents, and what weighs their visits.
pub fn add_utilities(
    layout: &mut Layout,
    shape: &Shape,
    world: &dyn World,
    problem: &Problem,
    weights: &[f64],
) -> Result<()> {
    let (mut tables, mut places) = (Tables::default(), HashMap::<*const AgentProblem, u32>::new());
    let (mut numbers, mut problem_of) = (Vec::new(), Vec::with_capacity(shape.agents));
    for agent in &problem.agents {
        let next = places.len() as u32;
        let place = *places.entry(Arc::as_ptr(agent)).or_insert(next);
        problem_of.push(place);
        if place < next {
            continue;
        }
        let mut rows = vec![[0.0; FIELDS]; shape.utilities()];
        let all = agent.constraints.iter().map(|constraint| constraint.shadow).chain([agent.shadow]);
        ensure(all.into_iter().all(|shadow| shadow.shift == 0.0), || {
            refused("shadow_shift", "is not available")
        })?;
        rows[0] = fields(&agent.objective, &mut tables, None, agent.shadow.scale)?;
        for (row, constraint) in rows[1..].iter_mut().zip(&agent.constraints) {
            let factor = constraint.bound.sign() * constraint.shadow.scale;
            *row = fields(&constraint.utility, &mut tables, Some(constraint.bound), factor)?;
        }
        numbers.extend_from_slice(rows.as_flattened());
    }
    for (number, name) in KNOWN_KINDS.iter().chain(&["channel"]).enumerate() {
        layout.constant(name.to_uppercase(), number);
    }
    layout.array_from("utilities", &numbers);
    layout.array_from("utility_tables", if tables.numbers.is_empty() { &[0.0] } else { &tables.numbers[..] });
    layout.array_from("problem_of", &problem_of);
    layout.array_from("visit_weights", weights);
    layout.array::<f64>("occupancy", (shape.max_cells() + shape.channels) * shape.agents);
    layout.constant("SMALL_CELLS", small_cells(shape));
    add_return(layout, shape, world);
    Ok(())
}

/// Adds what lines 4, 5 and 7 read and write.
pub fn add_to(layout: &mut Layout, shape: &Shape, host: &PrimalDual) -> Result<()> {
    let (problem, plan, n) = (&host.problem, &host.plan, shape.agents);
    add_utilities(layout, shape, &*host.world, problem, &host.occupancy_weights)?;
    let row = shape.max_cells() + shape.channels;
    layout.array::<u32>("counts", shape.max_cells() * n);
    let keeps = plan.occupancy_average;
    layout.constant("HAS_RUNNING", usize::from(keeps > 0.0));
    layout.array::<f64>("running", if keeps > 0.0 { row * n } else { 1 });
    layout.real("keeps", keeps);
    layout.array::<f64>("rewards", shape.utilities() * row * n);
    layout.constant("IS_CENTRED", usize::from(problem.scaling == Scaling::Normalised));
    layout.real("largest_slack", f64::MAX / shape.total as f64);

    let dual = &plan.dual;
    layout.constant(
        "DUAL_KIND",
        match dual.kind {
            DualKind::Proximal => 0,
            DualKind::Descent => 1,
            DualKind::Pi => 2,
        },
    );
    let most = (shape.utilities() - 1).max(1);
    for name in ["slack", "mu", "integral"] {
        layout.array::<f64>(name, most * n);
    }
    for (name, value) in [
        ("eta_mu", *dual.eta_mu),
        ("eta_integral", *dual.eta_integral),
        ("mu_max", *dual.mu_max),
        ("centre", *dual.centre),
        ("margin", *dual.margin),
        ("slack_factor", dual.slack_factor),
    ] {
        layout.real(name, value);
    }
    let has_margins = problem.agents.iter().flat_map(|agent| &agent.constraints).any(|c| c.margin != 0.0);
    layout.constant("HAS_MARGINS", usize::from(has_margins));
    let margins = |i: usize| problem.agents[i].constraints.iter().map(|c| c.margin).collect::<Vec<f64>>();
    layout.array_from("margins", &if has_margins { by_entry(n, most, margins, |_| 0.0) } else { vec![0.0] });
    Ok(())
}

/// What the channel `reward` paid.
fn add_return(layout: &mut Layout, shape: &Shape, world: &dyn World) {
    let channels = world.channels();
    let place = channels.iter().position(|channel| channel.name == "reward");
    let tables = place.and_then(|place| channels[place].tables());
    let sampled = place.filter(|_| tables.is_none()).map(|place| sampled_number(world, place) as i64);
    layout.constant("RETURN_CHANNEL", sampled.unwrap_or(-1));
    layout.constant("HAS_RETURN", usize::from(place.is_some()));
    match tables {
        Some(tables) => {
            let table = by_entry(shape.agents, shape.max_cells(), |i| tables.row(i), |_| 0.0);
            layout.array_from("return_table", &table);
        }
        None => layout.array::<f64>("return_table", 1),
    }
}

/// Cells of the largest table whose visits are added up in phases, as in `sample::occupancy`; at least 1.
pub fn small_cells(shape: &Shape) -> usize {
    const SMALL: usize = 16;
    let cells = shape.states.iter().zip(&shape.actions).map(|(s, a)| s * a);
    cells.filter(|&cells| cells <= SMALL).max().unwrap_or(1)
}

/// A thread per item that counts visits, with the memory that phases take.
pub fn counting(kernel: &'static str, shape: &Shape, items: usize) -> Launch {
    const BLOCK: usize = 64;
    let bytes = small_cells(shape) * (4 * size_of::<f64>() + size_of::<u32>());
    Launch::blocks(kernel, items, BLOCK).sharing(bytes * BLOCK)
}

/// The kernels of lines 4 and 5.
pub fn launches(shape: &Shape) -> Vec<Launch> {
    vec![counting("count_visits", shape, shape.agents), Launch::over("evaluate_utilities", shape.agents)]
}
