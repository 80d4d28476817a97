//! Primal-dual actor-critic with shadow rewards and κ-hop policies. Paper: alg:pdac.

use std::sync::Arc;

use super::summary::finite_metrics;
use super::update::{REMEDY, REWARD, Stage, advised, ascend, finite, finite_slack};
use super::{Algorithm, AlgorithmKind, Plan, Progress, Summary, Task, undiscounted_returns};
use crate::base::fields::{Field, Fields};
use crate::base::stream::Stream;
use crate::distributed::{Halo, Links, ProcessTraffic, Traffic, TrafficBound, TrafficCounter, TrafficLimits};
use crate::graph::Graph;
use crate::learn::actor::{self, Actor, sum_bytes};
use crate::learn::agent_metrics::{AgentMetrics, folded_bytes};
use crate::learn::critic::{self, Critic, CriticContext, CriticInput, QValues, SharedSums, ValueRequest};
use crate::learn::dual::Dual;
use crate::learn::episode_values::{EpisodeValues, without_events};
use crate::learn::optimizer::Optimizer;
use crate::learn::shadow::Signals;
use crate::learn::shield::{SHIELD, Shield, ShieldReport};
use crate::policy::{self, GradientSettings, Policy};
use crate::sample::batch::Sampling;
use crate::sample::occupancy::{RunningOccupancy, Visits};
use crate::sample::rollout::SPLIT_AGENTS;
use crate::sample::usual_states::UsualStates;
use crate::utility::problem::{Problem, Scaling};
use crate::world::{Trajectory, World};
use crate::{Error, Ragged, Result};

/// `primal-dual`: Algorithm 1 of the paper; and `penalty`, the same with multipliers that stay where they
/// start.
#[derive(Debug)]
pub(super) struct PrimalDualKind {
    /// Multipliers stay at `dual.mu_0`: a fixed penalty on violated constraints, or with 0 and
    /// `actor.entropy` a fixed entropy penalty.
    pub(super) is_held: bool,
}

impl AlgorithmKind for PrimalDualKind {
    fn is_local(&self) -> bool {
        true
    }

    fn build(&self, mut plan: Plan, task: Task) -> Result<Box<dyn Algorithm>> {
        let (world, problem) = (&*task.world, &*task.problem);
        plan.check_memory(problem)?;
        plan.scale_dual(problem, world.graph().total());
        if self.is_held {
            plan.dual = plan.dual.held();
        }
        let policy = self.policy(&plan, world)?;
        let critic = plan.critic.build(CriticContext {
            world,
            problem,
            policy: &*policy,
            kappa_q: plan.kappa_q,
            batch: plan.batch,
            horizon: plan.horizon,
            halo: &task.halo,
            stream: &plan.stream(),
        })?;
        super::cuda::on_device(PrimalDual::new(task, policy, critic, plan)?)
    }
}

/// State and buffers of Algorithm 1.
pub struct PrimalDual {
    pub(super) world: Arc<dyn World>,
    pub(super) problem: Arc<Problem>,
    pub(super) plan: Plan,
    pub(super) stream: Stream,
    pub(super) halo: Arc<Halo>,
    // What an iteration changes.
    pub(super) progress: Progress,
    pub(super) policy: Box<dyn Policy>,
    pub(super) running: RunningOccupancy,
    pub(super) dual: Dual,
    pub(super) critic: Box<dyn Critic>,
    pub(super) optimizer: Optimizer,
    pub(super) exchange: TrafficCounter,
    // Derived from the settings.
    pub(super) actions: Vec<usize>,
    pub(super) occupancy_weights: Vec<f64>,
    pub(super) wanted: ValueRequest,
    pub(super) gradient_settings: GradientSettings,
    pub(super) actor: Actor,
    /// Constraints on whole episodes, if there are any.
    pub(super) episode_values: Option<EpisodeValues>,
    /// Safety while learning, if it is wanted.
    pub(super) shield: Option<Shield>,
    pub(super) shield_report: Option<ShieldReport>,
    /// What agents assume of those they hear nothing from, where links are faulty.
    pub(super) usual: Option<UsualStates>,
    pub(super) largest: TrafficLimits,
    /// Constraints of all agents of the whole graph.
    pub(super) constraints: usize,
    // Results of the last iteration.
    pub(super) trajectories: Vec<Trajectory>,
    pub(super) visits: Visits,
    pub(super) signals: Signals,
    pub(super) gradient: Ragged<f64>,
    pub(super) process_traffic: Vec<ProcessTraffic>,
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

impl PrimalDual {
    /// Line 1: initial policy and multipliers.
    pub fn new(task: Task, policy: Box<dyn Policy>, critic: Box<dyn Critic>, plan: Plan) -> Result<Self> {
        let Task { world, problem, halo } = task;
        let (graph, n) = (world.graph(), world.graph().agents());
        let actions: Vec<usize> = (0..n).map(|i| world.actions(i)).collect();
        let constraints: Vec<usize> = problem.agents.iter().map(|agent| agent.constraints.len()).collect();
        let gradient_settings = plan.gradient_settings(&problem, graph.total());
        let wanted = ValueRequest {
            alternatives: gradient_settings.needs_alternatives(policy.is_direct()),
            partial: plan.kappa_g < plan.kappa_q,
            levels: policy.is_direct() || plan.actor.normalise,
        };
        if wanted.alternatives && !critic.values().knows_alternatives() {
            return Err(critic::kind_error("cannot tell Q at other actions, which this actor needs"));
        }
        if problem.has_events() && policy.is_direct() {
            let message = "`direct` needs Q at other actions, which constraints on whole episodes do not have; use `softmax`";
            return Err(policy::kind_error(message));
        }
        if policy.is_shared() && !plan.safety.is_off() {
            let message = "works on policies per agent; with policy.kind = \"shared\" use `none`";
            return Err(Error::config(SHIELD, message));
        }
        let wants = if wanted.alternatives { actions.clone() } else { vec![1; n] };
        let groups = [plan.kappa_q, plan.kappa_g].map(|kappa| graph.neighbourhoods(kappa));
        let events: Vec<usize> = problem.agents.iter().map(|agent| agent.events.len()).collect();
        let sent = [&constraints[..], &events[..]];
        let (links, largest) =
            Links::to(graph.owned_agents(), &policy.groups(), &groups[0], &groups[1], sent, &wants);
        let mut all_constraints = [graph.owned_agents().map(|i| constraints[i] as u64).sum()];
        halo.fold(&mut all_constraints, |a, b| a + b)?;
        let batch = [plan.batch, plan.horizon];
        let visits = Visits::for_problem(&problem).restricted_to(graph.work_blocks());
        Ok(PrimalDual {
            running: RunningOccupancy::new(plan.occupancy_average, &visits.occupancy),
            progress: Progress::new(),
            dual: Dual::new(&constraints, *plan.dual.mu_0).with_margins(&problem),
            optimizer: Optimizer::new(plan.actor.optimizer, policy.theta()),
            exchange: TrafficCounter::new(links.sum_over(&halo)?, policy.is_shared()),
            occupancy_weights: problem.occupancy_weights(plan.horizon, plan.batch),
            episode_values: EpisodeValues::new(&problem, &halo, graph, &groups[1], policy.theta(), batch)?,
            actor: Actor::new(halo.clone(), graph, groups, wants, batch),
            shield: Shield::new(plan.safety, policy.theta(), &Ragged::zeros(constraints.iter().copied())),
            shield_report: None,
            usual: policy.usual_states().map(|_| UsualStates::new(&problem)),
            largest: largest.max_over(&halo)?,
            constraints: all_constraints[0] as usize,
            trajectories: Vec::new(),
            visits,
            signals: Signals::new(&problem).restricted_to(graph.work_blocks()),
            gradient: Ragged::zeros_like(policy.theta()),
            process_traffic: Vec::new(),
            world,
            problem,
            stream: plan.stream(),
            plan,
            halo,
            policy,
            critic,
            actions,
            wanted,
            gradient_settings,
        })
    }

    fn summary(&self, own: &[AgentMetrics]) -> Result<Summary> {
        let all = AgentMetrics::fold_all(own, &self.halo)?;
        let agents = self.world.graph().total();
        let is_paid = undiscounted_returns(&*self.world, &self.visits.counts).is_some();
        Ok(Summary {
            return_: is_paid.then(|| all.return_ / (self.plan.batch * agents) as f64),
            ..Summary::of(self.iteration(), &all, agents, self.constraints)
        })
    }

    /// Steps of an iteration, and those of the batch, where no episode ends early.
    pub(super) fn steps(&self) -> [usize; 2] {
        let (samples, Plan { batch, horizon, .. }) = (self.critic.samples(), &self.plan);
        [batch * (horizon + samples.batch_tail) + samples.chains * samples.evaluation_pairs, batch * horizon]
    }

    /// Lets agents assume the usual states of now, those of other processes' agents too.
    fn share_usual_states(&mut self) -> Result<()> {
        let Some(usual) = &self.usual else { return Ok(()) };
        let (mut states, mut messages) = (usual.states(), self.halo.messages());
        self.halo.pack(&[&states], &mut messages);
        self.halo.exchange(&mut messages, &mut || ())?;
        self.halo.unpack(&messages, 0, &mut states);
        self.policy.set_usual_states(states);
        Ok(())
    }

    /// The most that this process can send in an iteration.
    fn process_bound(&self) -> u64 {
        let most = self.actions.iter().copied().max().unwrap_or(1);
        let values = if self.wanted.alternatives { most } else { 1 };
        let values = values + usize::from(self.episode_values.is_some());
        let numbers = self.gradient.data().len();
        let gradients = if self.policy.is_shared() { sum_bytes(numbers, 1, &self.halo) } else { 0 };
        let gradients = gradients * (1 + usize::from(self.episode_values.is_some()));
        // Processes agree to begin, one round more.
        let of_critic = self.critic.sums(self.steps()[1]);
        let of_critic = of_critic.map_or(0, |sums| sum_bytes(sums.numbers, sums.rounds + 1, &self.halo));
        let folded = folded_bytes(self.world.graph().owned_agents().count(), &self.halo);
        let summed = folded + gradients + of_critic;
        self.largest.process_bound(&self.halo, self.steps(), values, summed)
    }
}

/// Fails everywhere if `lines` fail in one process; agents are named by their numbers in the whole graph.
fn all_ok<T>(halo: &Halo, graph: &Graph, lines: impl FnOnce() -> Result<T>) -> Result<T> {
    halo.all_ok(lines().map_err(|error| match advised(error, REMEDY) {
        Error::Diverged { iteration, agent, quantity, value, advice } => {
            Error::Diverged { iteration, agent: graph.global_id(agent) as usize, quantity, value, advice }
        }
        other => other,
    }))
}

impl Algorithm for PrimalDual {
    /// One iteration of Algorithm 1, lines 3 to 9.
    fn step(&mut self) -> Result<Summary> {
        self.progress.start();
        let sent = self.halo.peers().sent();
        let (t, plan, problem, graph) = (self.iteration(), &self.plan, &*self.problem, self.world.graph());
        let Plan { batch, horizon, iterations, .. } = *plan;
        // In a large graph, what an iteration needs no more is given back at once: it is much of all memory
        // then, and to have it again takes little of the time.
        let is_large = self.actions.len() >= SPLIT_AGENTS;

        // Line 3: B trajectories of length H under π_θ; beside them the trajectory that Algorithm 2 evaluates
        // on.
        let (world, policy, stream, halo) = (&*self.world, &*self.policy, &self.stream, &*self.halo);
        let wanted = self.critic.samples();
        let sampling = Sampling { world, policy, stream, halo, iteration: t, batch, horizon, wanted };
        let steps = sampling.run(&mut self.trajectories)?;
        self.exchange.sampled(steps.simulated);
        self.progress.agent_steps += (graph.total() * steps.counted) as u64;
        self.progress.stage(Stage::Sampling);

        let mut begin = || {
            // Line 4: λ̃_i.
            let batch = &self.trajectories[..batch];
            self.visits.clear();
            self.visits.add(batch, &self.occupancy_weights, &self.actions);
            self.visits.count_events(batch, problem, batch.len());
            self.visits.rescale(problem);
            self.usual.iter_mut().for_each(|usual| usual.add(&self.visits, problem));

            // Line 5: g̃_i and the shadow rewards r̃_{f_i}, r̃_{g_i}.
            let occupancy = self.running.update(&self.visits.occupancy);
            self.signals.evaluate(problem, occupancy, self.visits.lived_fraction());
            self.signals.share_groups(problem, graph, halo)?;
            finite_slack(&self.signals.slack, graph.total(), t)?;
            finite(&self.signals.rewards, REWARD, t)?;
            self.progress.stage(Stage::Occupancy);
            Ok(())
        };
        let begun = begin();
        let transitions = self.trajectories[..batch].iter().map(Trajectory::transitions).sum();
        let begun = match self.critic.sums(transitions) {
            None => begun,
            Some(SharedSums { rounds, numbers }) => {
                // Agents of all processes learn together: none may have failed before.
                all_ok(halo, graph, || begun)?;
                self.exchange.record_gradient_sums(graph.total(), numbers, rounds);
                Ok(())
            }
        };
        let values = all_ok(halo, graph, || {
            begun?;
            // Line 6: Q̃_{f_i}, Q̃_{g_i} ← Eval(π_θ, r̃).
            let (batch, evaluation) = self.trajectories.split_at(batch);
            // Constraints on whole episodes have values of their own.
            let (mu, signals) = (&*without_events(problem, &self.dual.mu), &self.signals);
            let input = CriticInput { iteration: t, policy, mu, signals, batch, evaluation };
            let values = self.critic.evaluate(input)?;
            self.progress.stage(Stage::Critic);

            // Line 7: μ_i^{t+1} = P_U(−η_μ·g̃_i/n), or another dual update.
            let factor = plan.dual.schedule.factor(t, iterations);
            self.dual.update(&plan.dual, &self.signals.dual_slack(problem, graph), factor);
            finite(&self.dual.mu, "mu", t)?;
            self.progress.stage(Stage::Dual);
            if is_large {
                self.trajectories.truncate(plan.batch);
            }
            values.set_multipliers(&self.signals, &without_events(problem, &self.dual.mu), t)
        })?;

        let own = all_ok(halo, graph, || {
            // Line 8: neighbours share μ_j^{t+1} and Q̃_j along the batch; each agent estimates ∇̃_{θ_i} L.
            let (rule, batch) = (&mut self.gradient_settings, &self.trajectories[..batch]);
            let values = values.precompute(batch, horizon, self.wanted);
            let lived: usize = batch.iter().map(|trajectory| rule.steps(trajectory)).sum();
            self.exchange.record_q_messages(batch.len(), lived);
            if self.policy.is_shared() {
                self.exchange.record_gradient_sums(graph.total(), self.gradient.data().len(), 1);
            }
            problem.groups.iter().for_each(|group| self.exchange.record_group_messages(group.messages()));
            if !plan.actor.discount {
                // The literal scaling divides by n as well.
                let agents = if problem.scaling == Scaling::Paper { graph.total() } else { 1 };
                rule.weights.fill(1.0 / (lived * agents) as f64);
            }
            rule.entropy = plan.actor.entropy_at(t, iterations);
            rule.own_share = plan.actor.own_share_at(t, iterations);
            self.actor.gradients(&*self.policy, batch, values.values(), rule, &mut self.gradient)?;
            if is_large {
                values.release();
            }
            if let Some(episode_values) = &mut self.episode_values {
                episode_values.add_gradients(&*self.policy, batch, &self.dual.mu, &mut self.gradient)?;
            }
            finite(&self.gradient, "the gradient", t)?;
            actor::clip(&mut self.gradient, *plan.actor.clip);
            self.progress.stage(Stage::Gradient);

            // Line 9: θ_i^{t+1} = P_Θ(θ_i + η_θ·∇̃_{θ_i} L).
            let eta = *plan.actor.eta_theta * plan.actor.schedule.factor(t, iterations);
            if let Some(shield) = &mut self.shield {
                shield.observe(self.policy.theta(), &self.signals.dual_slack(problem, graph));
            }
            ascend(&mut *self.policy, &mut self.optimizer, &self.gradient, eta, plan.policy.theta_box());
            if let Some(shield) = &mut self.shield {
                shield.guard(&mut *self.policy);
            }
            finite(self.policy.theta(), "theta", t)?;
            self.progress.stage(Stage::Update);
            // What the agents here contribute to the summary.
            let earned = undiscounted_returns(world, &self.visits.counts);
            let return_ = |i: usize| earned.as_ref().map_or(0.0, |earned| earned(i));
            let row = |i| self.policy.stands_for_row(i).then(|| self.gradient.row(self.policy.row_of(i)));
            let of = |i| {
                let gradient = row(i).unwrap_or_default();
                AgentMetrics::for_agent(i, return_(i), &self.signals, &self.dual.mu, gradient)
            };
            finite_metrics(t, graph.total(), graph.owned_agents().map(of))
        })?;

        let summary = self.summary(&own)?;
        let report = self.shield.as_ref().map(|shield| shield.report(self.world.graph(), &self.halo));
        self.shield_report = report.transpose()?;
        self.progress.stage(Stage::Update);
        self.process_traffic = ProcessTraffic::gather(&self.halo, sent, self.process_bound())?;
        self.share_usual_states()?;
        self.progress.iteration += 1;
        Ok(summary)
    }

    fn restored(&mut self) {
        self.policy.refresh();
        self.usual.iter().for_each(|usual| self.policy.set_usual_states(usual.states()));
    }

    fn share_restored(&mut self) -> Result<()> {
        self.share_usual_states()
    }

    /// Gives back the memory of the last iteration's trajectories, the largest part in a large graph.
    fn forget_samples(&mut self) {
        self.trajectories = Vec::new();
    }

    /// Everything that the next iteration depends on: θ, optimiser, μ, integral, critic, counters.
    fn fields(&mut self) -> Fields<'_> {
        let mut fields = vec![
            ("iteration", Field::Counter(&mut self.progress.iteration)),
            ("agent_steps", Field::Counter(&mut self.progress.agent_steps)),
        ];
        let is_shared = self.policy.is_shared();
        fields.push(("theta", Field::of_theta(self.policy.theta_mut(), is_shared)));
        fields.extend(self.optimizer.fields(is_shared));
        fields.extend(self.running.fields());
        fields.extend(self.dual.fields());
        fields.extend(self.critic.fields());
        fields.extend(self.episode_values.iter_mut().flat_map(EpisodeValues::fields));
        fields.extend(self.shield.iter_mut().flat_map(Shield::fields));
        fields.extend(self.usual.iter_mut().flat_map(UsualStates::fields));
        fields.extend(self.exchange.fields());
        fields
    }

    /// The policy after the last iteration.
    fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    fn policy_mut(&mut self) -> &mut dyn Policy {
        &mut *self.policy
    }

    /// μ after the last iteration.
    fn mu(&self) -> &Ragged<f64> {
        &self.dual.mu
    }

    fn progress(&self) -> &Progress {
        &self.progress
    }

    /// What the last iteration found on its way, for tests and diagnostics.
    fn last(&self) -> Option<LastIteration<'_>> {
        Some(LastIteration {
            trajectories: &self.trajectories,
            visits: &self.visits,
            signals: &self.signals,
            q: self.critic.values(),
            gradient: &self.gradient,
        })
    }

    /// Messages and bytes so far.
    fn traffic(&self) -> Traffic {
        self.exchange.traffic()
    }

    fn traffic_bound(&self) -> TrafficBound {
        let [steps, batch] = self.steps();
        self.largest.bound(steps, batch)
    }

    fn process_traffic(&self) -> &[ProcessTraffic] {
        &self.process_traffic
    }

    fn shield(&self) -> Option<ShieldReport> {
        self.shield_report
    }
}
