//! Expectations over next states, one agent at a time.
//!
//! Given (s, a) the agents' next states are independent, and each depends on a few parents only. So E[v(s') |
//! s, a] is a chain of small sums, one over each agent's next state, instead of one over |S| of them: the
//! table shrinks by one next state and grows by the parents that this brings in. Actions are averaged out as
//! soon as nothing else depends on them. On a line of n binary agents an expectation under the policy costs
//! about n·2ⁿ⁺¹ operations in place of 4ⁿ.
//!
//! A *plan* (which sums, in which order, where each entry lies) depends on the graph alone and is made
//! once; the policy's probabilities enter when it is carried out.

use multiversion::multiversion;

use super::dynamics::Dynamics;
use super::layout::{Layout, Var};
use crate::graph::indexing::StateIndex;
use crate::policy::Tabular;
use crate::{Error, Result};

/// Largest table on the way; beyond, a computation is refused.
pub const LARGEST_INTERMEDIATE: usize = 1 << 25;

/// What is done about an agent's state and action in an expectation over next states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The state is an index of the result; the action is averaged under the policy.
    Follows,
    /// State and action are indices of the result.
    Free,
    /// State and action are held at 0.
    Pinned,
}

/// Where a step finds a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Table {
    /// ℙ_i, without the parents that it does not depend on.
    Law(usize),
    /// π_i.
    Policy(usize),
    /// Made by an earlier step.
    Made(usize),
    /// The number 1.
    One,
}

/// `out[o] = Σ_x left[o, x]·right[o, x]`.
///
/// Positions are linear in the indices, so those of an entry are a sum of two: `outer` (of its block) and
/// `inner` (of its place in the block).
#[derive(Debug, Clone)]
struct Step {
    right: Table,
    outer: Vec<[u32; 2]>,
    inner: Vec<[u32; 2]>,
    /// How many x, and what one of them adds to the positions on the left and on the right.
    terms: usize,
    strides: [usize; 2],
}

impl Step {
    /// A sum over `sum`, an index on both sides, or over nothing.
    fn new(left: &Layout, right: (Table, &Layout), sum: Option<Var>, out: &Layout) -> Result<Self> {
        /// Entries of a block: its positions stay in the fastest cache.
        const BLOCK: usize = 512;
        if out.size() > LARGEST_INTERMEDIATE as f64 {
            let message = format!(
                "an exact expectation would need a table of {:.2e} numbers; at most {LARGEST_INTERMEDIATE} are allowed",
                out.size()
            );
            return Err(Error::config("world", message));
        }
        let mut split = out.vars.len();
        let mut block = 1;
        while split > 0 && block * out.vars[split - 1].1 <= BLOCK {
            split -= 1;
            block *= out.vars[split].1;
        }
        let positions = |vars: &[(Var, usize)]| {
            let part = Layout { vars: vars.to_vec() };
            let pairs = part.positions_in(left).into_iter().zip(part.positions_in(right.1));
            pairs.map(|(l, r)| [l, r]).collect::<Vec<_>>()
        };
        let summed = left.only(|var| Some(var) == sum);
        Ok(Step {
            right: right.0,
            outer: positions(&out.vars[..split]),
            inner: positions(&out.vars[split..]),
            terms: summed.size() as usize,
            strides: [left, right.1].map(|table| sum.map_or(0, |var| table.stride(var))),
        })
    }

    fn len(&self) -> usize {
        self.outer.len() * self.inner.len()
    }

    fn run<const L: usize>(&self, left: &[[f64; L]], right: &[f64], out: &mut Vec<[f64; L]>) {
        // Every entry is written; what the last step left need not be cleared.
        out.resize(self.len(), [0.0; L]);
        run_step(self, left, right, out);
    }

    /// The adjoint: `left[o, x] += right[o, x]·out[o]`.
    fn run_back(&self, out: &[f64], right: &[f64], left: &mut [f64]) {
        let [ls, rs] = self.strides;
        let blocks = self.outer.iter().zip(out.chunks_exact(self.inner.len()));
        for (outer, block) in blocks {
            for (inner, value) in self.inner.iter().zip(block) {
                let (mut l, mut r) = ((outer[0] + inner[0]) as usize, (outer[1] + inner[1]) as usize);
                for _ in 0..self.terms {
                    left[l] += right[r] * value;
                    l += ls;
                    r += rs;
                }
            }
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx2"))]
fn run_step<const L: usize>(step: &Step, left: &[[f64; L]], right: &[f64], out: &mut [[f64; L]]) {
    let [ls, rs] = step.strides;
    for (outer, block) in step.outer.iter().zip(out.chunks_exact_mut(step.inner.len())) {
        for (inner, out) in step.inner.iter().zip(block) {
            let (mut l, mut r) = ((outer[0] + inner[0]) as usize, (outer[1] + inner[1]) as usize);
            let mut sum = [0.0; L];
            for _ in 0..step.terms {
                let (values, weight) = (&left[l], right[r]);
                for lane in 0..L {
                    sum[lane] += weight * values[lane];
                }
                l += ls;
                r += rs;
            }
            *out = sum;
        }
    }
}

/// A plan for E[v(s'_T) | …] of functions v of the next states of some agents T.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Steps that make a table from tables, before any v is known: (left, step).
    preparations: Vec<(Table, Step)>,
    steps: Vec<Step>,
    /// How v is laid out.
    pub input: Layout,
    /// How the result is laid out.
    pub output: Layout,
}

/// The tables of a plan under one policy.
pub struct Prepared<'a> {
    plan: &'a Plan,
    laws: &'a [Law],
    policy: &'a Tabular,
    made: Vec<Vec<f64>>,
}

/// ℙ_i, without the states and actions that it does not depend on.
#[derive(Debug, Clone)]
pub struct Law {
    table: Vec<f64>,
    layout: Layout,
}

impl Law {
    /// Drops what the law does not depend on.
    pub fn new(dynamics: &Dynamics, agent: usize) -> Self {
        let pairs = Layout::of_pairs(dynamics, dynamics.parents_of(agent));
        let mut layout = pairs.union(&Layout::new(dynamics, [Var::Next(agent)]));
        let mut table = dynamics.laws.row(agent).to_vec();
        for (var, size) in pairs.vars {
            let stride = layout.stride(var);
            let group = size * stride;
            let is_constant = |rows: &[f64]| (stride..group).all(|k| rows[k] == rows[k - stride]);
            if table.chunks_exact(group).all(is_constant) {
                table = table.chunks_exact(group).flat_map(|rows| rows[..stride].to_vec()).collect();
                layout = layout.without(var);
            }
        }
        Law { table, layout }
    }
}

/// A plan in the making.
struct Builder<'a> {
    dynamics: &'a Dynamics,
    laws: &'a [Law],
    observations: &'a StateIndex,
    roles: Vec<Role>,
    /// Agents whose next state is still to be summed out.
    waiting: Vec<usize>,
    /// The plan so far; its output is what the table of values looks like now.
    plan: Plan,
}

impl Plan {
    /// E[v(s'_targets) | ·] as a table over the states of agents that are not pinned and matter (`at_least`
    /// those in it), and over the actions of `free` agents; the role of all others is `outside`.
    pub fn new(
        dynamics: &Dynamics,
        laws: &[Law],
        observations: &StateIndex,
        free: &[usize],
        outside: Role,
        targets: &[usize],
        at_least: &[usize],
    ) -> Result<Plan> {
        let mut roles = vec![outside; dynamics.agents()];
        free.iter().for_each(|&i| roles[i] = Role::Free);
        let input = Layout::new(dynamics, targets.iter().map(|&i| Var::Next(i)));
        let (preparations, steps, output) = (Vec::new(), Vec::new(), input.clone());
        let plan = Plan { preparations, steps, input, output };
        let mut builder = Builder { dynamics, laws, observations, roles, waiting: targets.to_vec(), plan };
        while let Some(next) = builder.cheapest() {
            builder.sum_out(next)?;
        }
        let states = at_least.iter().map(|&i| Var::State(i));
        let actions = free.iter().map(|&i| Var::Action(i));
        let output = builder.plan.output.union(&Layout::new(dynamics, states.chain(actions)));
        if output != builder.plan.output {
            // Spread over indices on which nothing depends.
            builder.step(Table::One, &Layout::default(), None, output)?;
        }
        Ok(builder.plan)
    }

    /// Multiplications of one expectation.
    pub fn work(&self) -> usize {
        self.steps.iter().map(|step| step.len() * step.terms).sum()
    }

    /// The plan with the tables of `policy`.
    pub fn prepare<'a>(&'a self, laws: &'a [Law], policy: &'a Tabular) -> Prepared<'a> {
        let mut prepared = Prepared { plan: self, laws, policy, made: Vec::new() };
        for (left, step) in &self.preparations {
            let left: Vec<[f64; 1]> = prepared.table(*left).iter().map(|&x| [x]).collect();
            let mut out = Vec::with_capacity(step.len());
            step.run(&left, prepared.table(step.right), &mut out);
            prepared.made.push(out.into_iter().flatten().collect());
        }
        prepared
    }
}

impl Prepared<'_> {
    fn table(&self, table: Table) -> &[f64] {
        match table {
            Table::Law(i) => &self.laws[i].table,
            Table::Policy(i) => self.policy.probabilities(i),
            Table::Made(k) => &self.made[k],
            Table::One => &[1.0],
        }
    }

    /// The expectations of L functions at once: `values` is laid out as [`Plan::input`], the result as
    /// [`Plan::output`].
    pub fn apply<const L: usize>(&self, values: &[[f64; L]], workspace: &mut Workspace<L>) {
        workspace.now.clear();
        workspace.now.extend_from_slice(values);
        for step in &self.plan.steps {
            step.run(&workspace.now, self.table(step.right), &mut workspace.next);
            std::mem::swap(&mut workspace.now, &mut workspace.next);
        }
    }

    /// The adjoint: from weights on the entries of the result, the weights that they put on `values`.
    pub fn apply_back(&self, weights: &[f64]) -> Vec<f64> {
        let mut now = weights.to_vec();
        let inputs = self.plan.steps.iter().rev().skip(1).map(Step::len);
        let lengths = inputs.chain([self.plan.input.size() as usize]);
        for (step, length) in self.plan.steps.iter().rev().zip(lengths) {
            let mut before = vec![0.0; length];
            step.run_back(&now, self.table(step.right), &mut before);
            now = before;
        }
        now
    }
}

/// Memory for the tables on the way; the result of [`Prepared::apply`] is in `now`.
#[derive(Debug, Default)]
pub struct Workspace<const L: usize> {
    /// The last table.
    pub now: Vec<[f64; L]>,
    next: Vec<[f64; L]>,
}

impl Builder<'_> {
    /// Pinned indices do not count: they stay at 0.
    fn visible(&self, layout: &Layout) -> Layout {
        layout.only(|var| match var {
            Var::State(i) | Var::Action(i) => self.roles[i] != Role::Pinned,
            Var::Next(_) => true,
        })
    }

    fn policy_layout(&self, agent: usize) -> Layout {
        let states = self.observations.agents(agent).map(Var::State);
        Layout::new(self.dynamics, states.chain([Var::Action(agent)]))
    }

    /// Averaged actions that no law but agent i's still needs: (those not yet in the table, those in it).
    fn finished_by(&self, agent: usize) -> (Vec<usize>, Vec<usize>) {
        let values = &self.plan.output;
        let needed_later =
            |action: Var| self.waiting.iter().any(|&k| k != agent && self.laws[k].layout.contains(action));
        let together = values.union(&self.laws[agent].layout);
        let follows = |j: &usize| self.roles[*j] == Role::Follows && !needed_later(Var::Action(*j));
        together.acting().filter(follows).partition(|&j| !values.contains(Var::Action(j)))
    }

    /// The agent whose summation leaves the smallest table.
    fn cheapest(&self) -> Option<usize> {
        let size = |agent: usize| {
            let law = self.visible(&self.laws[agent].layout);
            let mut left = self.plan.output.union(&law).without(Var::Next(agent));
            for j in self.finished_by(agent).0 {
                left = left.union(&self.visible(&self.policy_layout(j))).without(Var::Action(j));
            }
            left.size()
        };
        self.waiting.iter().copied().min_by(|&a, &b| size(a).total_cmp(&size(b)))
    }

    /// Sums out the next state of `agent`, and the averaged actions that nothing else needs.
    fn sum_out(&mut self, agent: usize) -> Result<()> {
        let (fresh, present) = self.finished_by(agent);
        let (mut table, mut layout) = (Table::Law(agent), self.laws[agent].layout.clone());
        for j in fresh {
            let (policy, action) = (self.policy_layout(j), Var::Action(j));
            let out = layout.union(&policy).without(action);
            let step = Step::new(&layout, (Table::Policy(j), &policy), Some(action), &out)?;
            self.plan.preparations.push((table, step));
            (table, layout) = (Table::Made(self.plan.preparations.len() - 1), out);
        }
        self.sum_over(Var::Next(agent), table, &layout)?;
        for j in present {
            self.sum_over(Var::Action(j), Table::Policy(j), &self.policy_layout(j))?;
        }
        self.waiting.retain(|&k| k != agent);
        Ok(())
    }

    /// Multiplies the values with a table and sums over `var`, an index of both.
    fn sum_over(&mut self, var: Var, table: Table, layout: &Layout) -> Result<()> {
        let out = self.plan.output.union(&self.visible(layout)).without(var);
        self.step(table, layout, Some(var), out)
    }

    fn step(&mut self, table: Table, layout: &Layout, sum: Option<Var>, out: Layout) -> Result<()> {
        self.plan.steps.push(Step::new(&self.plan.output, (table, layout), sum, &out)?);
        self.plan.output = out;
        Ok(())
    }
}
