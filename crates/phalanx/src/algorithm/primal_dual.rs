//! Primal-dual actor-critic with shadow rewards and κ-hop policies. Paper: alg:pdac.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::actor::{self, GradientRule};
use crate::critic::{Critic, Evidence, QValues};
use crate::dual::{Dual, DualRule};
use crate::exchange::InProcess;
use crate::occupancy::Visits;
use crate::optimizer::{Optimizer, OptimizerKind};
use crate::parallel::agent_blocks;
use crate::policy::{Parameterisation, Tabular};
use crate::problem::{Problem, Scaling};
use crate::projection::clip;
use crate::rollout::{self, Request, StartFrom, Trajectory};
use crate::schedule::Schedule;
use crate::shadow::Signals;
use crate::state::{Field, Fields};
use crate::stream::{Place, Purpose, Stream};
use crate::utility::project_onto_simplex;
use crate::world::World;
use crate::{Error, Ragged, Result};

/// The constants of Algorithm 1.
#[derive(Debug, Clone)]
pub struct Settings {
    /// T, which schedules refer to.
    pub iterations: usize,
    /// H.
    pub horizon: usize,
    /// B.
    pub batch: usize,
    /// κ_q: radius of truncated Q-functions.
    pub kappa_q: usize,
    /// Line 7.
    pub dual: DualRule,
    /// Start of every multiplier.
    pub mu_0: f64,
    /// Change of η_μ over the iterations.
    pub dual_schedule: Schedule,
    /// Line 8.
    pub baseline: actor::Baseline,
    /// Line 9.
    pub optimizer: OptimizerKind,
    /// η_θ.
    pub eta_theta: f64,
    /// Change of η_θ over the iterations.
    pub actor_schedule: Schedule,
    /// Θ_i as a box, for soft-max policies.
    pub theta_box: Option<[f64; 2]>,
}

/// State and buffers of Algorithm 1.
pub struct PrimalDual {
    world: Arc<dyn World>,
    problem: Arc<Problem>,
    settings: Settings,
    stream: Stream,
    // What an iteration changes.
    iteration: u64,
    policy: Tabular,
    dual: Dual,
    critic: Box<dyn Critic>,
    optimizer: Optimizer,
    exchange: InProcess,
    // Derived from the settings.
    actions: Vec<usize>,
    q_groups: Ragged<u32>,
    occupancy_weights: Vec<f64>,
    gradient_rule: GradientRule,
    // Results of the last iteration.
    trajectories: Vec<Trajectory>,
    visits: Visits,
    signals: Signals,
    gradient: Ragged<f64>,
    stage_times: [Duration; Stage::COUNT],
}

/// Intermediate results of an iteration.
#[derive(Clone, Copy)]
pub struct LastIteration<'a> {
    /// Line 3: the batch, then the trajectory of Q-evaluation if there is one.
    pub trajectories: &'a [Trajectory],
    /// Line 4.
    pub visits: &'a Visits,
    /// Line 5.
    pub signals: &'a Signals,
    /// Line 6.
    pub q: &'a dyn QValues,
    /// Line 8.
    pub gradient: &'a Ragged<f64>,
}

/// The parts of an iteration, for timing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Line 3, and the trajectory of Algorithm 2.
    Sampling,
    /// Lines 4 and 5.
    Occupancy,
    /// Line 6.
    Critic,
    /// Line 7.
    Dual,
    /// Line 8.
    Gradient,
    /// Line 9.
    Update,
}

impl Stage {
    /// How many there are.
    pub const COUNT: usize = 6;
    /// All, in order, with their names in `timings.csv`.
    pub const NAMES: [&'static str; Stage::COUNT] =
        ["sampling", "occupancy", "critic", "dual", "gradient", "update"];
}

/// What an iteration looked like, estimated from its own batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// t.
    pub iteration: usize,
    /// Undiscounted sum of the channel `reward` over an episode, mean over agents; none without such a channel.
    pub return_: Option<f64>,
    /// F̃ = mean of f̃_i.
    pub objective: f64,
    /// Σ max(0, −g̃_ik).
    pub violation_total: f64,
    /// Largest of them.
    pub violation_max: f64,
    /// Mean over constraints.
    pub violation_mean: f64,
    /// Mean of μ^{t+1}.
    pub mu_mean: f64,
    /// Largest of μ^{t+1}.
    pub mu_largest: f64,
    /// ‖∇̃_θ L‖₂.
    pub gradient_norm: f64,
}

impl PrimalDual {
    /// Line 1: initial policy and multipliers.
    pub fn new(
        world: Arc<dyn World>,
        problem: Arc<Problem>,
        policy: Tabular,
        critic: Box<dyn Critic>,
        settings: Settings,
        stream: Stream,
    ) -> Result<Self> {
        let n = world.network().agents();
        let actions: Vec<usize> = (0..n).map(|i| world.actions(i)).collect();
        let constraints: Vec<usize> = problem.agents.iter().map(|agent| agent.constraints.len()).collect();
        let q_groups = world.network().neighbourhoods(settings.kappa_q);
        let gradient_rule = gradient_rule(&problem, &settings, n);
        let needs_alternatives = gradient_rule.needs_alternatives(policy.parameterisation());
        if needs_alternatives && !critic.values().knows_alternatives() {
            return Err(Error::config(
                "critic.kind",
                "cannot tell Q at other actions, which this actor needs",
            ));
        }
        let alternatives = if needs_alternatives { actions.clone() } else { vec![1; n] };
        let policy_groups = Ragged::from_rows(
            (0..n).map(|i| policy.observations().terms(i).iter().map(|term| term.agent).collect::<Vec<_>>()),
        );
        Ok(PrimalDual {
            iteration: 0,
            dual: Dual::new(&constraints, settings.mu_0),
            optimizer: Optimizer::new(settings.optimizer, policy.theta()),
            exchange: InProcess::new(&policy_groups, &q_groups, &constraints, &alternatives),
            occupancy_weights: problem.occupancy_weights(settings.horizon, settings.batch),
            trajectories: Vec::new(),
            visits: Visits::new((0..n).map(|i| world.states(i) * actions[i])),
            signals: Signals::new(&problem),
            gradient: Ragged::zeros_like(policy.theta()),
            stage_times: [Duration::ZERO; Stage::COUNT],
            world,
            problem,
            settings,
            stream,
            policy,
            critic,
            actions,
            q_groups,
            gradient_rule,
        })
    }

    /// One iteration of Algorithm 1, lines 3 to 9.
    pub fn step(&mut self) -> Result<Summary> {
        self.make_room();
        let t = self.iteration();
        let mut clock = Clock::start(&mut self.stage_times);

        // Line 3: B trajectories of length H under π_θ; beside them the trajectory that Algorithm 2 evaluates on.
        let requests: Vec<Request> = requests(t, self.settings.batch, self.trajectories.len()).collect();
        let sampler = self.policy.sampler();
        rollout::simulate(&*self.world, sampler, &self.stream, &requests, &mut self.trajectories);
        self.exchange.sampled(self.trajectories.iter().map(Trajectory::steps).sum());
        let (batch, evaluation) = self.trajectories.split_at(self.settings.batch);
        clock.stage(Stage::Sampling);

        // Line 4: λ̃_i.
        self.visits.clear();
        self.visits.add(batch, &self.occupancy_weights, &self.actions);
        // Line 5: g̃_i and the shadow rewards r̃_{f_i}, r̃_{g_i}.
        self.signals.evaluate(&self.problem, &self.visits.occupancy);
        finite(&self.signals.slack, "g", t)?;
        finite(&self.signals.rewards, "the shadow reward", t)?;
        clock.stage(Stage::Occupancy);

        // Line 6: Q̃_{f_i}, Q̃_{g_i} ← Eval(π_θ, r̃).
        self.critic.evaluate(Evidence { signals: &self.signals, evaluation: evaluation.first() });
        clock.stage(Stage::Critic);

        // Line 7: μ_i^{t+1} = P_U(−η_μ·g̃_i/n), or another dual update.
        let schedule = self.settings.dual_schedule.factor(t, self.settings.iterations);
        self.dual.update(&self.settings.dual, &self.signals.slack, schedule);
        finite(&self.dual.mu, "mu", t)?;
        clock.stage(Stage::Dual);

        // Line 8: neighbours share μ_j^{t+1} and Q̃_j along the batch; each agent estimates ∇̃_{θ_i} L.
        if let Some((agent, value)) = self.critic.values_mut().weigh(&self.signals, &self.dual.mu) {
            return Err(Error::Diverged { iteration: t, agent, quantity: "Q", value });
        }
        self.exchange.shared(self.settings.batch, self.settings.horizon);
        let (rule, groups) = (&self.gradient_rule, &self.q_groups);
        actor::gradients(&self.policy, batch, self.critic.values(), groups, rule, &mut self.gradient);
        finite(&self.gradient, "the gradient", t)?;
        clock.stage(Stage::Gradient);

        // Line 9: θ_i^{t+1} = P_Θ(θ_i + η_θ·∇̃_{θ_i} L).
        let eta = self.settings.eta_theta * self.settings.actor_schedule.factor(t, self.settings.iterations);
        ascend(&mut self.policy, &mut self.optimizer, &self.gradient, eta, self.settings.theta_box);
        finite(self.policy.theta(), "theta", t)?;
        clock.stage(Stage::Update);

        self.iteration += 1;
        Ok(self.summary())
    }

    /// Room for line 3's trajectories, kept from one iteration to the next.
    fn make_room(&mut self) {
        if !self.trajectories.is_empty() {
            return;
        }
        let (n, samples) = (self.actions.len(), self.critic.samples());
        let steps = self.settings.horizon + samples.batch_tail;
        self.trajectories.extend((0..self.settings.batch).map(|_| Trajectory::new(n, steps)));
        if samples.evaluation_pairs > 0 {
            self.trajectories.push(Trajectory::new(n, samples.evaluation_pairs));
        }
    }

    /// Gives back the memory of the last iteration's trajectories, the largest part in a large network.
    pub fn forget_samples(&mut self) {
        self.trajectories = Vec::new();
    }

    /// Everything that the next iteration depends on: θ, optimiser, μ, integral, critic, counters.
    pub fn fields(&mut self) -> Fields<'_> {
        let mut fields = vec![("iteration", Field::Counter(&mut self.iteration))];
        fields.push(("theta", Field::Numbers(self.policy.theta_mut().data_mut())));
        fields.extend(self.optimizer.fields());
        fields.extend(self.dual.fields());
        fields.extend(self.critic.memory().map(|numbers| ("critic", Field::Numbers(numbers))));
        fields.extend(self.exchange.fields());
        fields
    }

    /// To be called after [`PrimalDual::fields`] have been written to.
    pub fn restored(&mut self) {
        self.policy.refresh();
    }

    /// The policy after the last iteration.
    pub fn policy(&self) -> &Tabular {
        &self.policy
    }

    /// μ after the last iteration.
    pub fn mu(&self) -> &Ragged<f64> {
        &self.dual.mu
    }

    /// Iterations done.
    pub fn iteration(&self) -> usize {
        self.iteration as usize
    }

    /// Starts from another policy.
    pub fn start_from(&mut self, theta: Ragged<f64>) {
        self.policy.update(|own| *own = theta);
    }

    /// What the last iteration found on its way, for tests and diagnostics.
    pub fn last(&self) -> LastIteration<'_> {
        LastIteration {
            trajectories: &self.trajectories,
            visits: &self.visits,
            signals: &self.signals,
            q: self.critic.values(),
            gradient: &self.gradient,
        }
    }

    /// Time spent so far, by stage.
    pub fn stage_times(&self) -> [Duration; Stage::COUNT] {
        self.stage_times
    }

    /// Messages and bytes so far.
    pub fn traffic(&self) -> crate::exchange::Traffic {
        self.exchange.traffic()
    }

    /// Agent-steps simulated in one iteration: n·(B·H + K).
    pub fn agent_steps_per_iteration(&self) -> u64 {
        let samples = self.critic.samples();
        let batch = self.settings.batch * (self.settings.horizon + samples.batch_tail);
        let evaluation = samples.evaluation_pairs.saturating_sub(1);
        (self.actions.len() * (batch + evaluation)) as u64
    }

    fn summary(&self) -> Summary {
        let n = self.actions.len() as f64;
        let episodes = self.settings.batch as f64;
        let violations = Violations::of(self.signals.slack.data());
        let mu = self.dual.mu.data();
        Summary {
            iteration: self.iteration() - 1,
            return_: mean_return(&*self.world, &self.visits.counts, episodes),
            objective: self.signals.objective.iter().sum::<f64>() / n,
            violation_total: violations.total,
            violation_max: violations.max,
            violation_mean: violations.mean,
            mu_mean: if mu.is_empty() { 0.0 } else { mu.iter().sum::<f64>() / mu.len() as f64 },
            mu_largest: mu.iter().copied().fold(0.0, f64::max),
            gradient_norm: self.gradient.data().iter().map(|g| g * g).sum::<f64>().sqrt(),
        }
    }
}

/// Constraint violations max(0, −g_ik), summed up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Violations {
    /// Their sum.
    pub total: f64,
    /// The largest.
    pub max: f64,
    /// Their mean.
    pub mean: f64,
}

impl Violations {
    /// From all g_ik, in agent order. A NaN makes them NaN.
    pub fn of(slack: &[f64]) -> Self {
        let (mut total, mut max) = (0.0, 0.0f64);
        for &g in slack {
            let violation = clip(-g, 0.0, f64::INFINITY);
            total += violation;
            max = if max > violation { max } else { violation };
        }
        Violations { total, max, mean: if slack.is_empty() { 0.0 } else { total / slack.len() as f64 } }
    }
}

/// Undiscounted return of the channel `reward` over an episode, mean over agents.
pub fn mean_return(world: &dyn World, counts: &Ragged<f64>, episodes: f64) -> Option<f64> {
    let channel = world.channels().iter().find(|channel| channel.name == "reward")?;
    let total: f64 = counts.data().iter().zip(channel.tables.data()).map(|(count, r)| count * r).sum();
    Some(total / (episodes * counts.rows() as f64))
}

fn gradient_rule(problem: &Problem, settings: &Settings, n: usize) -> GradientRule {
    let mut weights = problem.occupancy_weights(settings.horizon, settings.batch);
    match problem.scaling {
        Scaling::Normalised => {}
        Scaling::Paper => weights.iter_mut().for_each(|w| *w /= n as f64),
        Scaling::Authors => weights.fill(1.0 / settings.batch as f64),
    }
    GradientRule { weights, baseline: settings.baseline, neighbour_mean: problem.scaling == Scaling::Authors }
}

fn requests(iteration: usize, batch: usize, count: usize) -> impl Iterator<Item = Request> {
    (0..count).map(move |k| {
        let (purpose, start_purpose, start) = if k < batch {
            (Purpose::Batch, Purpose::BatchStart, StartFrom::World)
        } else {
            (Purpose::Critic, Purpose::CriticStart, StartFrom::Uniform)
        };
        let place = Place { purpose, iteration: iteration as u32, trajectory: k as u32 };
        Request { place, start_purpose, start }
    })
}

fn ascend(
    policy: &mut Tabular,
    optimizer: &mut Optimizer,
    gradient: &Ragged<f64>,
    eta: f64,
    theta_box: Option<[f64; 2]>,
) {
    let actions: Vec<usize> = (0..policy.agents()).map(|i| policy.actions(i)).collect();
    let direct = policy.parameterisation() == Parameterisation::Direct;
    let (step, first, second) = optimizer.begin(eta);
    policy.update(|theta| {
        let blocks = agent_blocks(gradient.rows());
        let moments = first.split_rows_mut(&blocks).into_iter().zip(second.split_rows_mut(&blocks));
        let rows: Vec<_> = theta.split_rows_mut(&blocks).into_iter().zip(moments).collect();
        blocks.par_iter().zip(rows).for_each(|(block, (mut theta, (mut first, mut second)))| {
            for i in block.clone() {
                let theta = theta.row_mut(i);
                step.ascend(theta, gradient.row(i), first.row_mut(i), second.row_mut(i));
                if direct {
                    theta.chunks_exact_mut(actions[i]).for_each(|law| project_onto_simplex(law, 1.0));
                } else if let Some([low, high]) = theta_box {
                    theta.iter_mut().for_each(|x| *x = clip(*x, low, high));
                }
            }
        });
    });
}

/// Stops a run at the first value that is not finite.
fn finite(values: &Ragged<f64>, quantity: &'static str, iteration: usize) -> Result<()> {
    if values.data().iter().all(|x| x.is_finite()) {
        return Ok(());
    }
    let bad = |row: &[f64]| row.iter().copied().find(|x| !x.is_finite());
    match values.iter().enumerate().find_map(|(agent, row)| Some((agent, bad(row)?))) {
        Some((agent, value)) => Err(Error::Diverged { iteration, agent, quantity, value }),
        None => Ok(()),
    }
}

/// Adds up the time between calls.
struct Clock<'a> {
    times: &'a mut [Duration; Stage::COUNT],
    last: Instant,
}

impl<'a> Clock<'a> {
    fn start(times: &'a mut [Duration; Stage::COUNT]) -> Self {
        Clock { times, last: Instant::now() }
    }

    fn stage(&mut self, stage: Stage) {
        let now = Instant::now();
        self.times[stage as usize] += now - self.last;
        self.last = now;
    }
}
