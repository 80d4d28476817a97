//! MAPPO-Lagrangian, whole and in two decentralised forms: what the paper compares with. Paper: subsec:
//! app_baseline.
//!
//! Every agent has an actor, a critic of the reward, and for each constraint a critic of the cost and a
//! multiplier. Beside the published programs, neural networks have no layer normalisation, and values are
//! normalised once per iteration (`docs/decisions.md`).
//!
//! Literature: Gu and others, "Multi-agent constrained policy optimisation", 2021.

mod actors;
mod normaliser;
mod rewards;
mod settings;
mod steps;
mod surrogate;
mod value_loss;
mod values;

use std::sync::Arc;

use self::actors::{Actor, ActorScratch, ActorSettings};
use self::rewards::{Rewards, received};
use self::steps::Steps;
use self::surrogate::Surrogate;
use self::values::{Experience, Values};
use super::update::{Stage, advised, finite, finite_slack};
use super::{Algorithm, Plan, Progress, Summary, undiscounted_returns};
use crate::base::fields::{Field, Fields};
use crate::base::parallel::{agent_blocks, for_each_agent};
use crate::base::ragged::RowsMut;
use crate::base::stream::{Place, Purpose, Stream};
use crate::distributed::{Halo, Links, Traffic, TrafficCounter};
use crate::learn::shadow::Signals;
use crate::neural::{BankPart, Descent, OptimizerKind, shuffle};
use crate::policy::{NeuralPolicy, Policy};
use crate::sample::batch::{SampleRequest, Sampling};
use crate::sample::occupancy::Visits;
use crate::utility::problem::Problem;
use crate::world::Trajectory;
use crate::world::World;
use crate::{Ragged, Result};

pub(super) use settings::MappoKind;
pub use settings::{ActorSees, Behaviour, MappoSettings, Scope};

/// Added to the root of Adam's second moment, as in the published programs.
const EPSILON: f64 = 1e-5;

/// State and buffers of MAPPO-Lagrangian.
pub struct Mappo {
    world: Arc<dyn World>,
    problem: Arc<Problem>,
    plan: Plan,
    stream: Stream,
    // What an iteration changes.
    progress: Progress,
    /// Gradient steps of every neural network so far.
    steps: u64,
    policy: NeuralPolicy,
    values: Values,
    lambda: Ragged<f64>,
    exchange: TrafficCounter,
    // Derived from the settings.
    rewards: Rewards,
    groups: Ragged<u32>,
    actions: Vec<usize>,
    occupancy_weights: Vec<f64>,
    // Results of the last iteration.
    trajectories: Vec<Trajectory>,
    visits: Visits,
    signals: Signals,
    gradient: Ragged<f64>,
}

impl Mappo {
    /// Actors, critics and multipliers to begin with; refuses problems that are not cumulative.
    pub fn new(
        world: Arc<dyn World>,
        problem: Arc<Problem>,
        mut policy: NeuralPolicy,
        plan: Plan,
    ) -> Result<Self> {
        policy.parts_mut().1.add_moments();
        let n = world.graph().agents();
        let rewards = Rewards::new(&problem)?;
        let groups = match plan.mappo.scope {
            Scope::Global => Ragged::from_rows((0..n).map(|_| 0..n as u32)),
            Scope::Local | Scope::Aggregate => world.graph().neighbourhoods(plan.kappa),
        };
        let stream = plan.stream();
        let values = Values::new(&*world, &problem, &groups, &plan.mappo, &stream)?;
        let constraints: Vec<usize> = problem.agents.iter().map(|agent| agent.constraints.len()).collect();
        let mut lambda = Ragged::zeros(constraints);
        lambda.data_mut().fill(*plan.mappo.lambda_0);
        let visits = Visits::for_problem(&problem);
        Ok(Mappo {
            progress: Progress::new(),
            steps: 0,
            gradient: Ragged::zeros_like(policy.theta()),
            values,
            lambda,
            exchange: traffic(&policy, &groups, plan.mappo.scope),
            rewards,
            groups,
            actions: (0..n).map(|i| world.actions(i)).collect(),
            occupancy_weights: problem.occupancy_weights(plan.horizon, plan.batch),
            trajectories: Vec::new(),
            visits,
            signals: Signals::new(&problem),
            world,
            problem,
            stream,
            plan,
            policy,
        })
    }

    /// B episodes, one step longer than H: those that go on are valued at the state behind.
    fn sample(&mut self) -> Result<()> {
        let Plan { batch, horizon, .. } = self.plan;
        let (world, policy, stream, iteration) = (&*self.world, &self.policy, &self.stream, self.iteration());
        let (halo, wanted) = (&Halo::single(self.actions.len()), SampleRequest::batch(1));
        let sampling = Sampling { world, policy, stream, halo, iteration, batch, horizon, wanted };
        let lived = sampling.run(&mut self.trajectories)?.simulated;
        self.exchange.observed(lived);
        self.progress.agent_steps += (self.actions.len() * lived) as u64;
        Ok(())
    }

    /// What every agent learns from at every sample.
    fn received(&self, steps: &[usize]) -> Ragged<f64> {
        let n = self.actions.len();
        let (mut column, mut rewards) = (Vec::new(), Vec::new());
        let mut own = Ragged::with_capacity(n);
        for i in 0..n {
            self.rewards.reward_along(i, 0, &self.trajectories, steps, &mut column, &mut rewards);
            own.push_row(rewards.iter().copied());
        }
        received(self.plan.mappo.scope, own, &self.groups)
    }

    /// Ĵ_c − b of every constraint.
    fn excess(&self) -> Ragged<f64> {
        let mut excess = self.signals.slack.clone();
        if self.plan.mappo.behaviour == Behaviour::Faithful {
            // The published programs know one cost, the same for all: the mean over the agents that have a
            // constraint.
            let most = excess.iter().map(<[f64]>::len).max().unwrap_or(0);
            for k in 0..most {
                let all: Vec<f64> = excess.iter().filter_map(|row| row.get(k).copied()).collect();
                let mean = all.iter().sum::<f64>() / all.len() as f64;
                for i in 0..excess.rows() {
                    excess.row_mut(i).iter_mut().skip(k).take(1).for_each(|slack| *slack = mean);
                }
            }
        }
        excess.data_mut().iter_mut().for_each(|slack| *slack = -*slack);
        excess
    }

    fn steps(&self, rate: f64) -> Steps {
        let MappoSettings { epochs, minibatches, max_gradient, decay, .. } = self.plan.mappo;
        let rate = rate * decay.factor(self.iteration(), self.plan.iterations);
        let descent = Descent { epsilon: EPSILON, ..Descent::new(OptimizerKind::Adam, rate, *max_gradient) };
        Steps { descent, before: self.steps, epochs: *epochs, minibatches: *minibatches }
    }

    /// Proximal steps of all actors, each followed by its multipliers.
    fn improve(&mut self, steps: &[usize], advantages: &Ragged<f64>, excess: &Ragged<f64>) {
        let MappoSettings { clip, entropy, lambda_rate, learning_rate, scope, .. } = self.plan.mappo;
        let rule = ActorSettings {
            surrogate: Surrogate { clip: *clip, entropy: *entropy },
            lambda_rate: *lambda_rate,
            gamma: self.problem.gamma,
            steps: self.steps(*learning_rate),
        };
        let (n, iteration, stream) = (self.actions.len(), self.iteration() as u32, self.stream);
        let place = |number| Place { purpose: Purpose::UpdateOrder, iteration, trajectory: number };
        let in_turn = scope == Scope::Global;
        let blocks = if in_turn { std::iter::once(0..n).collect() } else { agent_blocks(n) };
        let (encoders, bank) = self.policy.parts_mut();
        let batch = &self.trajectories[..];
        let results =
            self.lambda.split_rows_mut(&blocks).into_iter().zip(self.gradient.split_rows_mut(&blocks));
        let parts = bank.split_mut(&blocks).into_iter().zip(results);
        // Agent i's steps. `product` weighs its samples, if there is one, and takes its change in.
        let improve = |scratch: &mut ActorScratch, i: usize, part: &mut Part<'_>, product: &mut [f64]| {
            let (bank, (lambda, gradient)) = part;
            for network in bank.networks_mut(i) {
                let (lambda, gradient) = (lambda.row_mut(i), gradient.row_mut(i));
                let (rule, encoder, excess) = (&rule, &encoders[i], excess.row(i));
                let mut actor = Actor { rule, encoder, network, lambda, excess, gradient };
                let mut sequence = stream.sequence(place(0), i as u32);
                actor.improve(i, (batch, steps), advantages.row(i), product, &mut sequence, scratch);
                if !product.is_empty() {
                    actor.pass_on(product, scratch);
                }
            }
        };
        if in_turn {
            // One after another: each weighs its samples by how the laws of those before it have changed.
            let (mut order, mut scratch) = (Vec::new(), ActorScratch::default());
            shuffle(1, n, &mut stream.sequence(place(1), 0), &mut order);
            let mut product = vec![1.0; steps.iter().sum()];
            for mut part in parts {
                order.iter().for_each(|&i| improve(&mut scratch, i as usize, &mut part, &mut product));
            }
        } else {
            for_each_agent(&blocks, parts, |scratch, i, part| improve(scratch, i, part, &mut []));
        }
        self.policy.adopt();
    }

    /// One iteration.
    fn iterate(&mut self) -> Result<Summary> {
        let t = self.iteration();
        self.progress.start();

        // B episodes under π_θ.
        self.sample()?;
        self.progress.stage(Stage::Sampling);

        // Objective and constraints of the batch, as for every other algorithm.
        self.visits.clear();
        self.visits.add(&self.trajectories, &self.occupancy_weights, &self.actions);
        self.visits.rescale(&self.problem);
        self.signals.evaluate(&self.problem, &self.visits.occupancy, self.visits.lived_fraction());
        finite_slack(&self.signals.slack, self.actions.len(), t)?;
        let excess = self.excess();
        self.progress.stage(Stage::Occupancy);

        // Â_r and Â_c by the critics as they are; then the critics learn.
        let horizon = self.plan.horizon;
        let steps: Vec<usize> =
            self.trajectories.iter().map(|trajectory| trajectory.transitions().min(horizon)).collect();
        let samples: usize = steps.iter().sum();
        let received = self.received(&steps);
        let mut advantages =
            Ragged::zeros(self.lambda.iter().map(|constraints| (1 + constraints.len()) * samples));
        let of_critics = self.steps(*self.plan.mappo.critic_learning_rate);
        let experience = Experience {
            iteration: t as u32,
            batch: &self.trajectories,
            steps: &steps,
            rewards: &self.rewards,
            received: &received,
            stream: &self.stream,
        };
        self.values.learn(&experience, of_critics, &mut advantages);
        finite(&advantages, "the advantage", t)?;
        self.progress.stage(Stage::Critic);

        // θ up the clipped surrogate of Â_r − λ·Â_c, and λ up the constraint, minibatch by minibatch.
        self.improve(&steps, &advantages, &excess);
        self.exchange.record_q_messages(self.plan.batch, samples);
        self.steps += of_critics.minibatches(samples).steps(samples);
        finite(&self.lambda, "lambda", t)?;
        finite(&self.gradient, "the gradient", t)?;
        finite(self.policy.theta(), "theta", t)?;
        self.progress.stage(Stage::Update);

        let earned = undiscounted_returns(&*self.world, &self.visits.counts);
        let earned = earned.as_ref().map(|earned| (earned as &dyn Fn(usize) -> f64, self.plan.batch));
        let summary = Summary::new(t, &self.signals, &self.lambda, &self.gradient, earned)?;
        self.progress.iteration += 1;
        Ok(summary)
    }
}

/// Networks, multipliers and gradients of a block of agents.
type Part<'a> = (BankPart<'a>, (RowsMut<'a, f64>, RowsMut<'a, f64>));

/// What may help against steps that are too large.
const REMEDY: &str =
    "try a smaller mappo.learning_rate, mappo.critic_learning_rate or mappo.lambda_rate, or smaller rewards";

impl Algorithm for Mappo {
    fn step(&mut self) -> Result<Summary> {
        self.iterate().map_err(|error| advised(error, REMEDY))
    }

    /// Gives back the memory of the last iteration's trajectories.
    fn forget_samples(&mut self) {
        self.trajectories = Vec::new();
    }

    fn fields(&mut self) -> Fields<'_> {
        let mut fields = vec![
            ("iteration", Field::Counter(&mut self.progress.iteration)),
            ("agent_steps", Field::Counter(&mut self.progress.agent_steps)),
            ("steps", Field::Counter(&mut self.steps)),
        ];
        fields.extend(self.policy.fields());
        fields.push(("mu", Field::Rows(&mut self.lambda)));
        fields.extend(self.values.fields());
        fields.extend(self.exchange.fields());
        fields
    }

    fn policy(&self) -> &dyn Policy {
        &self.policy
    }

    fn policy_mut(&mut self) -> &mut dyn Policy {
        &mut self.policy
    }

    /// λ after the last iteration.
    fn mu(&self) -> &Ragged<f64> {
        &self.lambda
    }

    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn traffic(&self) -> Traffic {
        self.exchange.traffic()
    }
}

/// Who sends whom something: states as far as actors and critics see, rewards from those whose rewards count.
/// Costs and multipliers are everyone's own.
fn traffic(policy: &NeuralPolicy, critics: &Ragged<u32>, scope: Scope) -> TrafficCounter {
    let n = policy.agents();
    let actors = policy.groups();
    let seen = if actors.data().len() > critics.data().len() { &actors } else { critics };
    let alone = Ragged::from_rows((0..n as u32).map(|i| [i]));
    let paying = if scope == Scope::Local { &alone } else { critics };
    // With the team's reward comes the product of ratios.
    let numbers = if scope == Scope::Global { 2 } else { 1 };
    let (links, _) = Links::to(0..n, seen, paying, &alone, [&vec![0; n]; 2], &vec![numbers; n]);
    TrafficCounter::new(links, false)
}
