//! Expectations over next states, one agent at a time.
//!
//! Given (s, a) the agents' next states are independent, and each depends on a few parents only. So
//! E[v(s') | s, a] is a chain of small sums, one over each agent's next state, instead of one over |S| of them: the
//! table shrinks by one next state and grows by the parents that this brings in. Actions are averaged out as soon as
//! nothing else depends on them. On a line of n binary agents an expectation under the policy costs about n·2ⁿ⁺¹
//! operations in place of 4ⁿ.
//!
//! A *plan* (which sums, in which order, where each entry lies) depends on the network alone and is made once; the
//! policy's probabilities enter when it is carried out.

use multiversion::multiversion;

use super::dynamics::Dynamics;
use crate::graph::indexing::StateIndex;
use crate::policy::Tabular;
use crate::{Error, Result};

/// Largest table on the way; beyond, a computation is refused.
pub const LARGEST_INTERMEDIATE: usize = 1 << 25;

/// An index of a table. Tables are laid out with states first, then actions, then next states, each by agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Var {
    /// s_i.
    State(usize),
    /// a_i.
    Action(usize),
    /// s'_i.
    Next(usize),
}

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

/// Which indices a table has, the last one fastest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    vars: Vec<(Var, usize)>,
}

impl Layout {
    /// The given indices with their sizes, in the order of [`Var`].
    pub fn new(mut vars: Vec<(Var, usize)>) -> Self {
        vars.sort_unstable_by_key(|&(var, _)| var);
        vars.dedup_by_key(|&mut (var, _)| var);
        Layout { vars }
    }

    /// Number of entries, if it can be had.
    pub fn len(&self) -> Option<usize> {
        let total = self.vars.iter().try_fold(1usize, |total, &(_, size)| total.checked_mul(size))?;
        (total <= LARGEST_INTERMEDIATE).then_some(total)
    }

    /// The indices.
    pub fn vars(&self) -> impl Iterator<Item = Var> {
        self.vars.iter().map(|&(var, _)| var)
    }

    fn contains(&self, var: Var) -> bool {
        self.vars.binary_search_by_key(&var, |&(var, _)| var).is_ok()
    }

    fn without(&self, var: Var) -> Layout {
        Layout { vars: self.vars.iter().copied().filter(|&(v, _)| v != var).collect() }
    }

    fn union(&self, other: &Layout) -> Layout {
        Layout::new(self.vars.iter().chain(&other.vars).copied().collect())
    }

    /// What one unit of `var` adds to a position; 0 if the table does not have it.
    fn stride(&self, var: Var) -> usize {
        match self.vars.iter().position(|&(v, _)| v == var) {
            Some(k) => self.vars[k + 1..].iter().map(|&(_, size)| size).product(),
            None => 0,
        }
    }

    /// For every entry of this layout, where its values lie in a table laid out as `other`. Indices that `other` does
    /// not have are ignored, those that it has beside are 0.
    pub fn positions_in(&self, other: &Layout) -> Vec<u32> {
        let mut positions = vec![0u32];
        for &(var, size) in &self.vars {
            let stride = other.stride(var) as u32;
            positions =
                positions.iter().flat_map(|&p| (0..size as u32).map(move |x| p + x * stride)).collect();
        }
        positions
    }
}

/// States and actions of `agents`: how a table over their pairs is laid out.
pub fn pair_layout(dynamics: &Dynamics, agents: &[usize]) -> Layout {
    let states = agents.iter().map(|&i| (Var::State(i), dynamics.states[i]));
    let actions = agents.iter().map(|&i| (Var::Action(i), dynamics.actions[i]));
    Layout::new(states.chain(actions).collect())
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
/// Positions are linear in the indices, so those of an entry are a sum of two: `outer` (of its block) and `inner` (of
/// its place in the block).
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
    fn new(left: &Layout, right: (Table, &Layout), sum: Option<(Var, usize)>, out: &Layout) -> Self {
        /// Entries of a block: its positions stay in the fastest cache.
        const BLOCK: usize = 512;
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
        let (terms, strides) = match sum {
            Some((var, size)) => (size, [left.stride(var), right.1.stride(var)]),
            None => (1, [0, 0]),
        };
        Step {
            right: right.0,
            outer: positions(&out.vars[..split]),
            inner: positions(&out.vars[split..]),
            terms,
            strides,
        }
    }

    fn len(&self) -> usize {
        self.outer.len() * self.inner.len()
    }

    fn run<const L: usize>(&self, left: &[[f64; L]], right: &[f64], out: &mut Vec<[f64; L]>) {
        out.clear();
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
    laws: &'a Laws,
    policy: &'a Tabular,
    made: Vec<Vec<f64>>,
}

/// ℙ_i of every agent, without the states and actions that it does not depend on.
#[derive(Debug, Clone)]
pub struct Laws {
    tables: Vec<Vec<f64>>,
    layouts: Vec<Layout>,
}

impl Laws {
    /// Drops from every law what it does not depend on.
    pub fn new(dynamics: &Dynamics) -> Self {
        let (mut tables, mut layouts) = (Vec::new(), Vec::new());
        for i in 0..dynamics.agents() {
            let parents = dynamics.parents.row(i).iter().map(|&p| p as usize);
            let mut vars = vec![(Var::Next(i), dynamics.states[i])];
            for p in parents {
                vars.extend([(Var::State(p), dynamics.states[p]), (Var::Action(p), dynamics.actions[p])]);
            }
            let mut layout = Layout::new(vars);
            let mut table = dynamics.laws.row(i).to_vec();
            for (var, size) in layout.vars.clone() {
                if var == Var::Next(i) {
                    continue;
                }
                let stride = layout.stride(var);
                let group = size * stride;
                let ignored = table
                    .chunks_exact(group)
                    .all(|rows| (stride..group).all(|k| rows[k] == rows[k - stride]));
                if ignored {
                    table = table.chunks_exact(group).flat_map(|rows| rows[..stride].to_vec()).collect();
                    layout = layout.without(var);
                }
            }
            tables.push(table);
            layouts.push(layout);
        }
        Laws { tables, layouts }
    }

    /// The agents whose action enters agent i's law.
    fn acting(&self, agent: usize) -> impl Iterator<Item = usize> {
        self.layouts[agent].vars().filter_map(|var| match var {
            Var::Action(j) => Some(j),
            Var::State(_) | Var::Next(_) => None,
        })
    }
}

/// A plan in the making.
struct Builder<'a> {
    dynamics: &'a Dynamics,
    laws: &'a Laws,
    observations: &'a StateIndex,
    roles: &'a [Role],
    preparations: Vec<(Table, Step)>,
    steps: Vec<Step>,
    /// Agents whose next state is still to be summed out.
    waiting: Vec<usize>,
    /// What the table of values looks like now.
    values: Layout,
}

impl Plan {
    /// E[v(s'_targets) | ·] as a table over the states of agents that are not pinned and matter (`at_least` those in
    /// it), and over the actions of free agents.
    pub fn new(
        dynamics: &Dynamics,
        laws: &Laws,
        observations: &StateIndex,
        roles: &[Role],
        targets: &[usize],
        at_least: &[usize],
    ) -> Result<Plan> {
        let input = Layout::new(targets.iter().map(|&i| (Var::Next(i), dynamics.states[i])).collect());
        let mut builder = Builder {
            dynamics,
            laws,
            observations,
            roles,
            preparations: Vec::new(),
            steps: Vec::new(),
            waiting: targets.to_vec(),
            values: input.clone(),
        };
        while !builder.waiting.is_empty() {
            let next = builder.cheapest();
            builder.sum_out(next)?;
        }
        let states = at_least.iter().map(|&i| (Var::State(i), dynamics.states[i]));
        let free = (0..roles.len()).filter(|&i| roles[i] == Role::Free);
        let actions = free.map(|i| (Var::Action(i), dynamics.actions[i]));
        let output = builder.values.union(&Layout::new(states.chain(actions).collect()));
        if output != builder.values {
            // Spread over indices on which nothing depends.
            builder.step(Table::One, &Layout::default(), None, output.clone())?;
        }
        let Builder { preparations, steps, .. } = builder;
        Ok(Plan { preparations, steps, input, output })
    }

    /// Multiplications of one expectation.
    pub fn work(&self) -> usize {
        self.steps.iter().map(|step| step.len() * step.terms).sum()
    }

    /// The plan with the tables of `policy`.
    pub fn prepare<'a>(&'a self, laws: &'a Laws, policy: &'a Tabular) -> Prepared<'a> {
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
            Table::Law(i) => &self.laws.tables[i],
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
        let lengths = inputs.chain(self.plan.input.len());
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
    /// Sizes of pinned indices do not count: they stay at 0.
    fn visible(&self, layout: &Layout) -> Layout {
        let pinned = |var: Var| match var {
            Var::State(i) | Var::Action(i) => self.roles[i] == Role::Pinned,
            Var::Next(_) => false,
        };
        Layout { vars: layout.vars.iter().copied().filter(|&(var, _)| !pinned(var)).collect() }
    }

    fn policy_layout(&self, agent: usize) -> Layout {
        let states = self.observations.terms(agent).iter().map(|term| {
            let i = term.agent as usize;
            (Var::State(i), self.dynamics.states[i])
        });
        Layout::new(states.chain([(Var::Action(agent), self.dynamics.actions[agent])]).collect())
    }

    /// Averaged actions that no law but agent i's still needs: (those not yet in the table, those in it).
    fn finished_by(&self, agent: usize) -> (Vec<usize>, Vec<usize>) {
        let needed_later = |j: usize| {
            self.waiting.iter().any(|&k| k != agent && self.laws.acting(k).any(|acting| acting == j))
        };
        let follows = |j: &usize| self.roles[*j] == Role::Follows && !needed_later(*j);
        let mut all: Vec<usize> = self.laws.acting(agent).collect();
        all.extend(self.values.vars().filter_map(|var| match var {
            Var::Action(j) => Some(j),
            Var::State(_) | Var::Next(_) => None,
        }));
        all.sort_unstable();
        all.dedup();
        all.into_iter().filter(follows).partition(|&j| !self.values.contains(Var::Action(j)))
    }

    /// The agent whose summation leaves the smallest table.
    fn cheapest(&self) -> usize {
        let size = |&agent: &usize| {
            let mut vars =
                self.values.union(&self.visible(&self.laws.layouts[agent])).without(Var::Next(agent));
            for j in self.finished_by(agent).0 {
                vars = vars.union(&self.visible(&self.policy_layout(j))).without(Var::Action(j));
            }
            vars.vars.iter().map(|&(_, size)| size as f64).product::<f64>()
        };
        let mut best = self.waiting[0];
        for agent in &self.waiting[1..] {
            if size(agent) < size(&best) {
                best = *agent;
            }
        }
        best
    }

    /// Sums out the next state of `agent`, and the averaged actions that nothing else needs.
    fn sum_out(&mut self, agent: usize) -> Result<()> {
        let (fresh, present) = self.finished_by(agent);
        let (mut table, mut layout) = (Table::Law(agent), self.laws.layouts[agent].clone());
        for j in fresh {
            let policy = self.policy_layout(j);
            let out = layout.union(&policy).without(Var::Action(j));
            let sum = Some((Var::Action(j), self.dynamics.actions[j]));
            let step = Step::new(&layout, (Table::Policy(j), &policy), sum, &self.checked(&out)?);
            self.preparations.push((table, step));
            (table, layout) = (Table::Made(self.preparations.len() - 1), out);
        }
        let out = self.values.union(&self.visible(&layout)).without(Var::Next(agent));
        self.step(table, &layout, Some((Var::Next(agent), self.dynamics.states[agent])), out)?;
        for j in present {
            let policy = self.policy_layout(j);
            let out = self.values.union(&self.visible(&policy)).without(Var::Action(j));
            self.step(Table::Policy(j), &policy, Some((Var::Action(j), self.dynamics.actions[j])), out)?;
        }
        self.waiting.retain(|&k| k != agent);
        Ok(())
    }

    fn step(&mut self, table: Table, layout: &Layout, sum: Option<(Var, usize)>, out: Layout) -> Result<()> {
        let out = self.checked(&out)?;
        self.steps.push(Step::new(&self.values, (table, layout), sum, &out));
        self.values = out;
        Ok(())
    }

    fn checked(&self, layout: &Layout) -> Result<Layout> {
        if layout.len().is_some() {
            return Ok(layout.clone());
        }
        let size: f64 = layout.vars.iter().map(|&(_, size)| size as f64).product();
        let message = format!(
            "an exact expectation would need a table of {size:.2e} numbers; at most {LARGEST_INTERMEDIATE} are allowed"
        );
        Err(Error::config("world", message))
    }
}
