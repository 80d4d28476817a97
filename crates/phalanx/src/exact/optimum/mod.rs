//! The true constrained optimum over all policies, when the utilities are concave.
//!
//! Over *all* stationary policies of the joint state, not only those that look κ hops far, eq:dec_prob is a
//! convex program in the joint occupancy λ (Paper: eq:Lambda, lemma:boundedness_dual): the policies that an
//! algorithm can learn do at most as well. The set of their occupancies is not convex (errata 10), so the
//! optimum is an upper bound for them; on the paper's line it is attained for every κ.

mod ever;
mod polytope;
mod program;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

use super::Dynamics;
use crate::utility::conic::{Affine, Curvature, Program, Row};
use crate::utility::problem::{Constraint, Problem};
use crate::utility::{LocalSpace, ScaledUtility};
use crate::{Error, Ragged, Result};

pub use ever::{EverOptimum, ever_optimum};
pub(super) use polytope::JointLaws;
use polytope::{Occupancies, local_marginals};
use program::{Solution, Unsolved};

/// Most joint (state, action) pairs that the program takes on.
const LARGEST_PROGRAM: u128 = 1 << 16;

/// Most multiplications of one iteration, of which there are about thirty: half a minute in all.
const LARGEST_WORK: f64 = 4e8;

/// The best that any policy can do. Paper: eq:dec_prob.
#[derive(Debug, Clone)]
pub struct Optimum {
    /// F* = (1/n) Σ f_i.
    pub value: f64,
    /// How far `value` is from the upper bound that the dual program proves.
    pub gap: f64,
    /// λ_i*, row i as `[S_i][A_i]`, of mass 1/(1−γ).
    pub occupancy: Ragged<f64>,
    /// λ*, as `[S][A]` with the smallest agent id most significant. π*(a|s) = λ*(s, a) / Σ_a λ*(s, a).
    pub joint: Vec<f64>,
    /// μ*_ik for L = (1/n) Σ [f_i + Σ_k μ_ik g_ik]. Where several are optimal, one of them.
    pub multipliers: Ragged<f64>,
    /// g_ik(λ_i*).
    pub slack: Ragged<f64>,
}

/// The policy that keeps farthest from violating any constraint. Paper: lemma:boundedness_dual, Slater's
/// condition.
#[derive(Debug, Clone)]
pub struct SlaterPoint {
    /// ξ = max over policies of min g_ik: positive if Slater's condition holds, negative if no policy is
    /// feasible, infinite without constraints.
    pub margin: f64,
    /// How far `margin` is from the upper bound that the dual program proves.
    pub gap: f64,
    /// F there.
    pub value: f64,
    /// λ_i there, row i as `[S_i][A_i]`.
    pub occupancy: Ragged<f64>,
    /// g_ik there.
    pub slack: Ragged<f64>,
    /// Weights of sum 1, positive on the constraints that keep the margin from being larger.
    pub weights: Ragged<f64>,
}

impl SlaterPoint {
    /// A bound on Σ μ*_ik, hence on every multiplier, if Slater's condition holds: n (F* − F) / ξ.
    ///
    /// Paper: lemma:boundedness_dual, which has no 1/n. Here F* ≥ F + (1/n) Σ μ*_ik g_ik ≥ F + (ξ/n) Σ μ*_ik.
    pub fn multiplier_bound(&self, optimum: &Optimum) -> Option<f64> {
        let n = self.occupancy.rows() as f64;
        (self.margin > 0.0).then(|| n * (optimum.value - self.value) / self.margin)
    }
}

/// Maximises (1/n) Σ f_i(λ_i) subject to g_ik(λ_i) ≥ 0 over the occupancies of all policies.
///
/// Solved as a conic program by an interior-point method. F* is accurate to 1e−7, mostly 1e−10, of the
/// utilities' largest coefficient ([`Optimum::gap`] tells), multipliers and occupancies to about the root of
/// that. Cost: some thirty iterations of |S||A| (m + n)² + |S|³/3 for joint states with m possible
/// successors.
///
/// # Errors
/// A utility whose sign makes it not concave, or that is written in Rust; a world that is too large, e.g.
/// with more than 2¹⁶ pairs; constraints that no policy satisfies together.
pub fn optimum(dynamics: &Dynamics, problem: &Problem) -> Result<Optimum> {
    let mut model = Model::new(dynamics, problem)?;
    let mut objective = Affine::default();
    for i in 0..problem.agents.len() {
        objective.add(1.0, &model.objective(i)?);
    }
    let rows = model.constrain(|slack| slack)?;
    let solution =
        model.program.maximise(&objective).map_err(|unsolved| explain(&unsolved, dynamics, problem))?;
    let Point { joint, occupancy, value, slack } = model.point(&solution);
    let n = problem.agents.len() as f64;
    Ok(Optimum {
        value,
        gap: (solution.bound / n - value).abs(),
        occupancy,
        joint,
        // The program maximises Σ f_i, so that its prices are those of L without 1/n.
        multipliers: prices(&rows, &solution),
        slack,
    })
}

/// Maximises the smallest g_ik over the occupancies of all policies. The objective may be anything.
///
/// # Errors
/// As [`optimum`], apart from infeasible constraints, which show as a negative margin.
pub fn slater_point(dynamics: &Dynamics, problem: &Problem) -> Result<SlaterPoint> {
    let mut model = Model::new(dynamics, problem)?;
    let constrained = problem.constraint_count() > 0;
    let margin =
        if constrained { Affine::variable(model.program.variable(), 1.0) } else { Affine::default() };
    let rows = model.constrain(|slack| slack.plus(-1.0, &margin))?;
    let solution = model.program.maximise(&margin).map_err(|unsolved| gave_up(&unsolved))?;
    let Point { occupancy, value, slack, .. } = model.point(&solution);
    let margin = slack.data().iter().copied().fold(f64::INFINITY, f64::min);
    let gap = if constrained { (solution.bound - margin).abs() } else { 0.0 };
    Ok(SlaterPoint { margin, gap, value, occupancy, slack, weights: prices(&rows, &solution) })
}

/// The largest value that each g_ik alone can take over all policies. One program per constraint.
///
/// # Errors
/// As [`slater_point`].
pub fn largest_slacks(dynamics: &Dynamics, problem: &Problem) -> Result<Ragged<f64>> {
    let model = Model::new(dynamics, problem)?;
    let alone = |i: usize, k: usize| {
        let mut model = model.clone();
        let slack = model.slack(i, k)?;
        let solution = model.program.maximise(&slack).map_err(|unsolved| gave_up(&unsolved))?;
        Ok(model.point(&solution).slack.row(i)[k])
    };
    let rows =
        problem.agents.par_iter().enumerate().map(|(i, agent)| {
            (0..agent.constraints.len()).map(|k| alone(i, k)).collect::<Result<Vec<f64>>>()
        });
    Ok(Ragged::from_rows(rows.collect::<Result<Vec<_>>>()?))
}

/// The occupancies of a world, and the pieces of its problem as far as they were asked for: a piece that
/// nothing bounds would leave the solver with a variable that may go anywhere.
#[derive(Debug, Clone)]
struct Model<'a> {
    dynamics: &'a Dynamics,
    problem: &'a Problem,
    program: Program,
    occupancies: Occupancies,
}

/// A policy's occupancies, and the utilities there.
struct Point {
    joint: Vec<f64>,
    occupancy: Ragged<f64>,
    value: f64,
    slack: Ragged<f64>,
}

impl<'a> Model<'a> {
    fn new(dynamics: &'a Dynamics, problem: &'a Problem) -> Result<Self> {
        check_size(dynamics)?;
        check_problem(dynamics, problem)?;
        let mut program = Program::default();
        let occupancies = Occupancies::declare(&mut program, dynamics, problem.gamma);
        Ok(Model { dynamics, problem, program, occupancies })
    }

    /// f_i.
    fn objective(&mut self, i: usize) -> Result<Affine> {
        let utility = &self.problem.agents[i].objective;
        self.piece(i, utility, 1.0).ok_or_else(|| not_concave(format!("f[{i}]"), utility, "maximising it"))
    }

    /// g_ik.
    fn slack(&mut self, i: usize, k: usize) -> Result<Affine> {
        let problem = self.problem;
        let Constraint { bound, group, .. } = &problem.agents[i].constraints[k];
        // Of a group, the sum.
        let members: Vec<(usize, usize)> =
            group.map_or(vec![(i, k)], |number| problem.groups[number].entries().collect());
        let mut sum = Affine::default();
        for (i, k) in members {
            let utility = &problem.agents[i].constraints[k].utility;
            let piece = self.piece(i, utility, bound.sign()).ok_or_else(|| {
                let aim = format!("keeping it {} {}", bound.key(), bound.threshold());
                not_concave(format!("g[{i}][{k}]"), utility, &aim)
            })?;
            sum.add(1.0, &piece);
        }
        Ok(sum.shifted(-bound.sign() * bound.threshold()))
    }

    /// sign · utility of agent i, if that is concave.
    fn piece(&mut self, i: usize, utility: &ScaledUtility, sign: f64) -> Option<Affine> {
        let space = self.problem.agents[i].space;
        let marginal = &self.occupancies.marginals[i];
        let base = utility.kind.concave(&mut self.program, sign * utility.scale, marginal, space)?;
        Some(base.shifted(sign * utility.offset))
    }

    /// Requires `row` of every g_ik to be nonnegative.
    fn constrain(&mut self, row: impl Fn(Affine) -> Affine) -> Result<Ragged<Row>> {
        let mut rows = Ragged::with_capacity(self.problem.agents.len());
        // All members of a group have its one row.
        let mut of_groups: Vec<Option<Row>> = vec![None; self.problem.groups.len()];
        for (i, agent) in self.problem.agents.iter().enumerate() {
            let require = |(k, constraint): (usize, &Constraint)| {
                let known = constraint.group.and_then(|number| of_groups[number]);
                if let Some(row) = known {
                    return Ok(row);
                }
                let required = self.slack(i, k).map(|slack| self.program.require_nonnegative(row(slack)))?;
                constraint.group.into_iter().for_each(|number| of_groups[number] = Some(required));
                Ok(required)
            };
            let constraints = agent.constraints.iter().enumerate();
            rows.push_row(constraints.map(require).collect::<Result<Vec<Row>>>()?);
        }
        Ok(rows)
    }

    fn point(&self, solution: &Solution) -> Point {
        let joint = self.occupancies.joint(&solution.variables, self.dynamics);
        let occupancy = local_marginals(&joint, self.dynamics);
        let mut total = 0.0;
        let mut slack = Ragged::with_capacity(occupancy.rows());
        let mut values = slack.clone();
        for (agent, lambda) in self.problem.agents.iter().zip(occupancy.iter()) {
            total += agent.objective.value(lambda, agent.space);
            let value = |constraint: &Constraint| constraint.utility.value(lambda, agent.space);
            values.push_row(agent.constraints.iter().map(value));
            slack.push_row(
                agent.constraints.iter().map(|constraint| constraint.bound.slack(value(constraint))),
            );
        }
        self.problem.groups.iter().for_each(|group| {
            group.share(&mut values, &mut slack);
        });
        Point { joint, value: total / occupancy.rows() as f64, slack, occupancy }
    }
}

/// The multipliers of `rows`.
fn prices(rows: &Ragged<Row>, solution: &Solution) -> Ragged<f64> {
    Ragged::from_rows(rows.iter().map(|rows| rows.iter().map(|row| solution.price(*row))))
}

/// Whether the program is small enough to be solved while one waits.
fn check_size(dynamics: &Dynamics) -> Result<()> {
    let (states, actions) = (dynamics.joint_states, dynamics.joint_actions());
    let pairs = actions.saturating_mul(states as u128);
    let successors: f64 = (0..dynamics.agents()).map(|i| most_successors(dynamics, i) as f64).product();
    // Every pair is eliminated with its row of successors and marginals; what is left is dense in the states.
    let work = pairs as f64 * (successors + dynamics.agents() as f64).powi(2) + (states as f64).powi(3) / 3.0;
    if pairs <= LARGEST_PROGRAM && work <= LARGEST_WORK {
        return Ok(());
    }
    let message = format!(
        "the optimum would be over {states} joint states x {actions} joint actions = {pairs} pairs with up to \
         {successors} successors each, about {work:.0e} multiplications per iteration; at most {LARGEST_PROGRAM} \
         pairs and {LARGEST_WORK:.0e} multiplications are taken on"
    );
    Err(Error::config("world", message))
}

/// The largest number of next states that agent i can get to in one step.
fn most_successors(dynamics: &Dynamics, i: usize) -> usize {
    let laws = dynamics.laws.row(i).chunks_exact(dynamics.states[i]);
    laws.map(|law| law.iter().filter(|p| **p > 0.0).count()).max().unwrap_or(1)
}

/// Whether `problem` is one of this world, with utilities that make sense.
fn check_problem(dynamics: &Dynamics, problem: &Problem) -> Result<()> {
    if !(0.0..1.0).contains(&problem.gamma) {
        let message = format!("is {}, but must be in [0, 1)", problem.gamma);
        return Err(Error::config(crate::base::key::GAMMA, message));
    }
    let refuse = |message: String| Err(Error::config("problem", message));
    let (agents, found) = (dynamics.agents(), problem.agents.len());
    if agents != found {
        return refuse(format!("has {found} agents, but the world has {agents}"));
    }
    for (i, agent) in problem.agents.iter().enumerate() {
        let LocalSpace { states, actions, gamma } = agent.space;
        let expected = (dynamics.states[i], dynamics.actions[i]);
        if (states, actions) != expected {
            return refuse(format!(
                "agent {i} has {states} states and {actions} actions, but {} and {} in the world",
                expected.0, expected.1
            ));
        }
        if gamma != problem.gamma {
            return refuse(format!("agent {i} discounts by {gamma}, but the problem by {}", problem.gamma));
        }
        agent.objective.validate(agent.space, &format!("f[{i}]"))?;
        for (k, constraint) in agent.constraints.iter().enumerate() {
            constraint.utility.validate(agent.space, &format!("g[{i}][{k}]"))?;
        }
    }
    Ok(())
}

fn not_concave(field: String, utility: &ScaledUtility, aim: &str) -> Error {
    let name = utility.kind.name();
    let with_scale =
        if utility.scale < 0.0 { format!(" with scale {}", utility.scale) } else { String::new() };
    let reason = match utility.kind.curvature() {
        Curvature::Unknown => format!("a {name} utility has no known conic form"),
        Curvature::Convex => format!("{name} is convex"),
        Curvature::Concave | Curvature::Linear => format!("{name} is concave"),
    };
    let message = format!("{reason}, so {aim}{with_scale} is no convex program; its optimum is not computed");
    Error::config(field, message)
}

/// Why there is no optimum: a solver that got stuck, or constraints in each other's way.
fn explain(unsolved: &Unsolved, dynamics: &Dynamics, problem: &Problem) -> Error {
    let SlaterPoint { margin, gap, weights, .. } = match slater_point(dynamics, problem) {
        Ok(slater) => slater,
        Err(error) => return error,
    };
    // Close to the edge of feasibility a solver may get stuck before it can tell.
    if *unsolved != Unsolved::Infeasible && margin + gap >= 0.0 {
        return gave_up(unsolved);
    }
    // A weight below this is rounding.
    const COUNTS: f64 = 1e-3;
    let mut culprits = Vec::new();
    for (i, agent) in problem.agents.iter().enumerate() {
        for (k, Constraint { name, bound, .. }) in agent.constraints.iter().enumerate() {
            if weights.row(i)[k] > COUNTS {
                culprits.push(format!("g[{i}][{k}] ({name} {} {})", bound.key(), bound.threshold()));
            }
        }
    }
    let message = match &culprits[..] {
        [alone] => format!("no policy satisfies {alone}: its slack is at most {margin:.3e}"),
        _ => format!(
            "no policy satisfies all constraints: of {}, one always has a slack of {margin:.3e} or less",
            culprits.join(" and ")
        ),
    };
    Error::config("g", message)
}

fn gave_up(unsolved: &Unsolved) -> Error {
    let message = format!("the conic solver found no solution of the needed accuracy ({unsolved})");
    Error::config("optimum", message)
}
