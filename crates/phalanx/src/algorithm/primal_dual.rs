//! Primal-dual actor-critic with shadow rewards and κ-hop policies. Paper: alg:pdac.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::update::{Clock, Stage, ascend, finite};
use super::{Algorithm, Summary, undiscounted_returns};
use crate::base::fields::{Field, Fields};
use crate::base::parallel::{FOLD, blocks_of};
use crate::base::schedule::{EntropyBonus, Schedule};
use crate::base::stream::{Place, Purpose, Stream};
use crate::distributed::{Halo, Links, ProcessTraffic, TrafficBound, TrafficCounter, TrafficLimits};
use crate::learn::actor::{self, NeighbourValues, QGroups};
use crate::learn::agent_metrics::{AgentMetrics, agent_metrics};
use crate::learn::border_values::BorderValues;
use crate::learn::critic::{Critic, CriticInput, QValues, ValueRequest};
use crate::learn::dual::{Dual, DualSettings};
use crate::learn::optimizer::{Optimizer, OptimizerKind};
use crate::learn::shadow::Signals;
use crate::policy::{Baseline, GradientSettings, Policy};
use crate::sample::occupancy::{RunningOccupancy, Visits};
use crate::sample::rollout::{self, Request, StartFrom};
use crate::utility::problem::{Problem, Scaling};
use crate::world::{Trajectory, World};
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
    /// κ_g ≤ κ_q: radius within which neighbours' constraints count.
    pub kappa_g: usize,
    /// Share of the running λ̃ that is kept at an iteration; 0: the batch's own, as line 4 says.
    pub occupancy_average: f64,
    /// Line 7.
    pub dual: DualSettings,
    /// Start of every multiplier.
    pub mu_0: f64,
    /// Change of η_μ over the iterations.
    pub dual_schedule: Schedule,
    /// Line 8.
    pub baseline: Baseline,
    /// Whether the gradient sums over all actions instead of the one taken.
    pub all_actions: bool,
    /// Entropy bonus over the iterations.
    pub entropy: EntropyBonus,
    /// Line 9.
    pub optimizer: OptimizerKind,
    /// Largest norm of an agent's gradient.
    pub clip: f64,
    /// η_θ.
    pub eta_theta: f64,
    /// Whether step k counts γ^k in the gradient; else all steps that were lived count alike.
    pub discount: bool,
    /// Whether an agent's advantages are divided by their standard deviation.
    pub normalise: bool,
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
    agent_steps: u64,
    policy: Box<dyn Policy>,
    running: RunningOccupancy,
    dual: Dual,
    critic: Box<dyn Critic>,
    optimizer: Optimizer,
    exchange: TrafficCounter,
    // Derived from the settings.
    actions: Vec<usize>,
    q_groups: Ragged<u32>,
    g_groups: Ragged<u32>,
    occupancy_weights: Vec<f64>,
    gradient_rule: GradientSettings,
    largest: TrafficLimits,
    /// Constraints of all agents of the whole network.
    constraints: usize,
    halo: Arc<Halo>,
    border_values: BorderValues,
    /// Own agents that hear from nobody in other processes, and the others.
    inner: Vec<Range<usize>>,
    outer: Vec<Range<usize>>,
    // Results of the last iteration.
    trajectories: Vec<Trajectory>,
    visits: Visits,
    signals: Signals,
    gradient: Ragged<f64>,
    stage_times: [Duration; Stage::COUNT],
    process_traffic: Vec<ProcessTraffic>,
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
    /// Line 1: initial policy and multipliers. `world` is this process's part of the network.
    pub fn new(
        world: Arc<dyn World>,
        problem: Arc<Problem>,
        policy: Box<dyn Policy>,
        critic: Box<dyn Critic>,
        settings: Settings,
        stream: Stream,
        halo: Arc<Halo>,
    ) -> Result<Self> {
        let n = world.graph().agents();
        let actions: Vec<usize> = (0..n).map(|i| world.actions(i)).collect();
        let constraints: Vec<usize> = problem.agents.iter().map(|agent| agent.constraints.len()).collect();
        let q_groups = world.graph().neighbourhoods(settings.kappa_q);
        let g_groups = world.graph().neighbourhoods(settings.kappa_g);
        let gradient_rule = gradient_rule(&problem, &settings, world.graph().total());
        let needs_alternatives = gradient_rule.needs_alternatives(policy.is_direct());
        if needs_alternatives && !critic.values().knows_alternatives() {
            return Err(Error::config(
                "critic.kind",
                "cannot tell Q at other actions, which this actor needs",
            ));
        }
        let alternatives = if needs_alternatives { actions.clone() } else { vec![1; n] };
        let (network, blocks) = (world.graph(), world.graph().work_blocks());
        let visits = Visits::new((0..n).map(|i| problem.row_length(i))).restricted_to(blocks.clone());
        let groups = policy.groups();
        let own = network.owned_agents();
        let (links, largest) = Links::to(own, &groups, &q_groups, &g_groups, &constraints, &alternatives);
        let mut all_constraints = [network.owned_agents().map(|i| constraints[i]).sum::<usize>() as u64];
        halo.fold(&mut all_constraints, |a, b| a + b)?;
        let Settings { batch, horizon, .. } = settings;
        let border_values = BorderValues::new(&halo, &q_groups, alternatives, batch, horizon);
        let [inner, outer] = border_values.split(&network.owned()).map(|runs| blocks_of(&runs));
        Ok(PrimalDual {
            running: RunningOccupancy::new(settings.occupancy_average, &visits.occupancy),
            iteration: 0,
            agent_steps: 0,
            dual: Dual::new(&constraints, settings.mu_0),
            optimizer: Optimizer::new(settings.optimizer, policy.theta()),
            exchange: TrafficCounter::new(links.sum_over(&halo)?),
            largest: largest.max_over(&halo)?,
            constraints: all_constraints[0] as usize,
            halo,
            border_values,
            inner,
            outer,
            occupancy_weights: problem.occupancy_weights(settings.horizon, settings.batch),
            trajectories: Vec::new(),
            visits,
            signals: Signals::new(&problem).restricted_to(blocks),
            gradient: Ragged::zeros_like(policy.theta()),
            stage_times: [Duration::ZERO; Stage::COUNT],
            process_traffic: Vec::new(),
            world,
            problem,
            settings,
            stream,
            policy,
            critic,
            actions,
            q_groups,
            g_groups,
            gradient_rule,
        })
    }

    /// Line 3: the batch, and what the critic wants beside it. Trajectories are kept from one iteration to the next.
    fn sample(&mut self) -> Result<()> {
        let (samples, batch) = (self.critic.samples(), self.settings.batch);
        let steps = self.settings.horizon + samples.batch_tail;
        let world = self.world.clone();
        let room = |steps| Trajectory::for_world(&*world, steps);
        if self.trajectories.is_empty() {
            self.trajectories.extend((0..batch).map(|_| room(steps)));
        }
        self.trajectories.truncate(batch + samples.chains);
        let missing = batch + samples.chains - self.trajectories.len();
        self.trajectories.extend((0..missing).map(|_| room(samples.evaluation_pairs)));
        self.simulate_from(0)?;
        // Where episodes end early, more of them make up for the transitions that are missing.
        let wanted = samples.chains * samples.evaluation_pairs.saturating_sub(1);
        let mut done = self.evaluation_transitions();
        while done < wanted {
            // As many as it takes if they last as long as those before, but no more than there are: the first may have been
            // very short.
            let (missing, first) = (wanted - done, self.trajectories.len());
            let count = (missing * (first - batch)).div_ceil(done).min(first - batch);
            // Room for a whole chain each would be far too much where episodes are short.
            let typical = done.div_ceil(first - batch);
            let pairs = samples.evaluation_pairs.min(missing + 1).min((8 * typical).max(SHORTEST_CHAIN));
            self.trajectories.extend((0..count).map(|_| room(pairs)));
            self.simulate_from(first)?;
            done = self.evaluation_transitions();
        }
        // The last ones may be too many, or too long.
        while let Some(last) = self.trajectories.last_mut().filter(|_| done > wanted) {
            done -= last.transitions();
            if done < wanted {
                last.keep_transitions(wanted - done);
                break;
            }
            self.trajectories.pop();
        }
        Ok(())
    }

    fn evaluation_transitions(&self) -> usize {
        self.trajectories[self.settings.batch..].iter().map(Trajectory::transitions).sum()
    }

    /// Simulates the trajectories from number `first` on.
    fn simulate_from(&mut self, first: usize) -> Result<()> {
        let count = self.trajectories.len();
        let requests: Vec<Request> =
            requests(self.iteration as usize, self.settings.batch, count).skip(first).collect();
        let trajectories = &mut self.trajectories[first..];
        let (world, policy, stream) = (&*self.world, &*self.policy, &self.stream);
        rollout::simulate(world, policy, stream, &requests, trajectories, &self.halo)?;
        self.exchange.sampled(trajectories.iter().map(Trajectory::steps).sum());
        // The last pair of a chain is only looked at.
        let (batch, evaluation) = trajectories.split_at(self.settings.batch.saturating_sub(first));
        let steps: usize = batch.iter().map(Trajectory::steps).sum();
        let transitions: usize = evaluation.iter().map(Trajectory::transitions).sum();
        self.agent_steps += (self.world.graph().total() * (steps + transitions)) as u64;
        Ok(())
    }

    fn summary(&self) -> Result<Summary> {
        let (network, signals) = (self.world.graph(), &self.signals);
        let earned = undiscounted_returns(&*self.world, &self.visits.counts);
        let return_ = |i: usize| earned.as_ref().map_or(0.0, |earned| earned(i));
        let (slack, mu) = (&signals.slack, &self.dual.mu);
        let own =
            agent_metrics(network.owned_agents(), return_, &signals.objective, slack, mu, &self.gradient);
        let all = AgentMetrics::fold_all(&own, &self.halo)?;
        let agents = network.total();
        let episodes = (self.settings.batch * agents) as f64;
        Ok(Summary {
            return_: earned.as_ref().map(|_| all.return_ / episodes),
            ..Summary::of(self.iteration(), &all, agents, self.constraints)
        })
    }

    /// Whether what an iteration needs no more is given back at once: it is much of all memory then, and to have it again
    /// takes little of the time.
    fn is_large(&self) -> bool {
        self.actions.len() >= rollout::SPLIT_AGENTS
    }

    /// Steps of an iteration, and those of the batch, where no episode ends early.
    fn steps(&self) -> [usize; 2] {
        let (samples, Settings { batch, horizon, .. }) = (self.critic.samples(), &self.settings);
        [batch * (horizon + samples.batch_tail) + samples.chains * samples.evaluation_pairs, batch * horizon]
    }

    /// The most that this process can send in an iteration.
    fn process_bound(&self) -> u64 {
        let halo = &*self.halo;
        let [steps, batch] = self.steps();
        let needs_alternatives = self.gradient_rule.needs_alternatives(self.policy.is_direct());
        let values = if needs_alternatives { self.actions.iter().copied().max().unwrap_or(1) } else { 1 };
        let each = 2 * steps as u64 + self.largest.weighted_values(batch, values);
        let own = self.world.graph().owned_agents().count();
        let summed = if halo.partition().is_aligned() { own.div_ceil(FOLD) } else { own };
        halo.sent_agents() as u64 * each
            + (summed * size_of::<AgentMetrics>()) as u64
            + 64 * (halo.peers().count() as u64 + 1)
    }

    /// Fails everywhere if it failed in one process.
    fn agree<T>(&self, result: Result<T>) -> Result<T> {
        let network = self.world.graph();
        let result = result.map_err(|error| match error {
            Error::Diverged { iteration, agent, quantity, value } => {
                Error::Diverged { iteration, agent: network.global_id(agent) as usize, quantity, value }
            }
            other => other,
        });
        self.halo.all_ok(result)
    }

    /// Lines 4 to 7, up to the values that neighbours share.
    fn look(&mut self, clock: &mut Clock<'_>) -> Result<()> {
        let t = self.iteration as usize;
        let (batch, evaluation) = self.trajectories.split_at(self.settings.batch);
        // Line 4: λ̃_i.
        self.visits.clear();
        self.visits.add(batch, &self.occupancy_weights, &self.actions);
        self.visits.rescale(&self.problem);
        // Line 5: g̃_i and the shadow rewards r̃_{f_i}, r̃_{g_i}.
        let occupancy = self.running.update(&self.visits.occupancy);
        self.signals.evaluate(&self.problem, occupancy, self.visits.live());
        finite(&self.signals.slack, "g", t)?;
        finite(&self.signals.rewards, "the shadow reward", t)?;
        clock.stage(Stage::Occupancy);

        // Line 6: Q̃_{f_i}, Q̃_{g_i} ← Eval(π_θ, r̃).
        let (policy, signals) = (&*self.policy, &self.signals);
        let evidence = CriticInput { iteration: t, policy, mu: &self.dual.mu, signals, batch, evaluation };
        self.critic.evaluate(evidence)?;
        clock.stage(Stage::Critic);

        // Line 7: μ_i^{t+1} = P_U(−η_μ·g̃_i/n), or another dual update.
        let schedule = self.settings.dual_schedule.factor(t, self.settings.iterations);
        self.dual.update(&self.settings.dual, &self.signals.slack, schedule);
        finite(&self.dual.mu, "mu", t)?;
        clock.stage(Stage::Dual);
        if self.is_large() {
            self.trajectories.truncate(self.settings.batch);
        }
        if let Some((agent, value)) = self.critic.values_mut().weigh(&self.signals, &self.dual.mu) {
            return Err(Error::Diverged { iteration: t, agent, quantity: "Q", value });
        }
        Ok(())
    }

    /// Lines 8 and 9.
    fn improve(&mut self, clock: &mut Clock<'_>) -> Result<()> {
        let t = self.iteration as usize;
        let batch = &self.trajectories[..self.settings.batch];
        // Line 8: neighbours share μ_j^{t+1} and Q̃_j along the batch; each agent estimates ∇̃_{θ_i} L.
        let wanted = ValueRequest {
            alternatives: self.gradient_rule.needs_alternatives(self.policy.is_direct()),
            partial: self.settings.kappa_g < self.settings.kappa_q,
            levels: self.policy.is_direct() || self.settings.normalise,
        };
        self.critic.values_mut().prepare(batch, self.settings.horizon, wanted);
        let lived: usize = batch.iter().map(|trajectory| self.gradient_rule.steps(trajectory)).sum();
        self.exchange.record_q_messages(self.settings.batch, lived);
        if !self.settings.discount {
            // The literal scaling divides by n as well.
            let agents = if self.problem.scaling == Scaling::Paper { self.world.graph().total() } else { 1 };
            self.gradient_rule.weights.fill(1.0 / (lived * agents) as f64);
        }
        self.gradient_rule.entropy = self.settings.entropy.at(t, self.settings.iterations);
        let (rule, policy, values) = (&self.gradient_rule, &*self.policy, self.critic.values());
        let groups = QGroups { senders: &self.q_groups, constrained: &self.g_groups };
        let (heard, gradient) = (NeighbourValues { local: values, groups, remote: None }, &mut self.gradient);
        self.border_values.write(batch, values, &self.g_groups, wanted.alternatives);
        self.border_values.exchange(&self.halo, &mut || {
            actor::gradients_of(&self.inner, policy, batch, heard, rule, gradient);
        })?;
        let heard = NeighbourValues { remote: Some(&self.border_values), ..heard };
        actor::gradients_of(&self.outer, policy, batch, heard, rule, gradient);
        if self.is_large() {
            self.critic.values_mut().forget();
        }
        finite(&self.gradient, "the gradient", t)?;
        actor::clip(&mut self.gradient, self.settings.clip);
        clock.stage(Stage::Gradient);

        // Line 9: θ_i^{t+1} = P_Θ(θ_i + η_θ·∇̃_{θ_i} L).
        let eta = self.settings.eta_theta * self.settings.actor_schedule.factor(t, self.settings.iterations);
        ascend(&mut *self.policy, &mut self.optimizer, &self.gradient, eta, self.settings.theta_box);
        finite(self.policy.theta(), "theta", t)?;
        clock.stage(Stage::Update);
        Ok(())
    }
}

impl Algorithm for PrimalDual {
    /// One iteration of Algorithm 1, lines 3 to 9.
    fn step(&mut self) -> Result<Summary> {
        let begin = Instant::now();
        let sent = self.halo.peers().sent();
        let mut times = self.stage_times;
        // Line 3: B trajectories of length H under π_θ; beside them the trajectory that Algorithm 2 evaluates on.
        self.sample()?;
        let mut clock = Clock::start(&mut times, begin);
        clock.stage(Stage::Sampling);
        let looked = self.look(&mut clock);
        self.agree(looked)?;
        let improved = self.improve(&mut clock);
        self.agree(improved)?;
        let summary = self.summary()?;
        clock.stage(Stage::Update);
        self.stage_times = times;
        self.process_traffic = ProcessTraffic::gather(&self.halo, sent, self.process_bound())?;
        self.iteration += 1;
        Ok(summary)
    }

    /// Gives back the memory of the last iteration's trajectories, the largest part in a large network.
    fn forget_samples(&mut self) {
        self.trajectories = Vec::new();
    }

    /// Everything that the next iteration depends on: θ, optimiser, μ, integral, critic, counters.
    fn fields(&mut self) -> Fields<'_> {
        let mut fields = vec![
            ("iteration", Field::Counter(&mut self.iteration)),
            ("agent_steps", Field::Counter(&mut self.agent_steps)),
        ];
        fields.push(("theta", Field::Rows(self.policy.theta_mut())));
        fields.extend(self.optimizer.fields());
        fields.extend(self.running.fields());
        fields.extend(self.dual.fields());
        fields.extend(self.critic.fields());
        fields.extend(self.exchange.fields());
        fields
    }

    /// To be called after [`PrimalDual::fields`] have been written to.
    fn restored(&mut self) {
        self.policy.refresh();
    }

    /// The policy after the last iteration.
    fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// μ after the last iteration.
    fn mu(&self) -> &Ragged<f64> {
        &self.dual.mu
    }

    /// Iterations done.
    fn iteration(&self) -> usize {
        self.iteration as usize
    }

    /// Starts from another policy.
    fn start_from(&mut self, theta: Ragged<f64>) {
        *self.policy.theta_mut() = theta;
        self.policy.refresh();
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

    /// Time spent so far, by stage.
    fn stage_times(&self) -> [Duration; Stage::COUNT] {
        self.stage_times
    }

    /// Messages and bytes so far.
    fn traffic(&self) -> crate::distributed::Traffic {
        self.exchange.traffic()
    }

    fn traffic_bound(&self) -> TrafficBound {
        let [steps, batch] = self.steps();
        self.largest.bound(steps, batch)
    }

    fn carried(&self) -> &[ProcessTraffic] {
        &self.process_traffic
    }

    /// Agent-steps simulated so far: n·(B·H + K) an iteration. Where episodes end early, the batch has fewer, and
    /// Q-evaluation some more than it keeps.
    fn agent_steps(&self) -> u64 {
        self.agent_steps
    }
}

/// Room that a further chain of Q-evaluation has at least.
const SHORTEST_CHAIN: usize = 256;

fn gradient_rule(problem: &Problem, settings: &Settings, n: usize) -> GradientSettings {
    let mut weights = problem.occupancy_weights(settings.horizon, settings.batch);
    match problem.scaling {
        Scaling::Normalised => {}
        Scaling::Paper => weights.iter_mut().for_each(|w| *w /= n as f64),
        Scaling::Authors => weights.fill(1.0 / settings.batch as f64),
    }
    GradientSettings {
        weights,
        baseline: settings.baseline,
        neighbour_mean: problem.scaling == Scaling::Authors,
        all_actions: settings.all_actions,
        normalise: settings.normalise,
        entropy: 0.0,
    }
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
