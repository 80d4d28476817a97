//! Primal-dual actor-critic with shadow rewards and κ-hop policies. Paper: alg:pdac.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::update::{Clock, Stage, ascend, finite};
use super::{Algorithm, Summary, mean_return};
use crate::actor::{self, GradientRule, QGroups};
use crate::critic::{Critic, Evidence, QValues, Wanted};
use crate::dual::{Dual, DualRule};
use crate::exchange::InProcess;
use crate::occupancy::{RunningOccupancy, Visits};
use crate::optimizer::{Optimizer, OptimizerKind};
use crate::policy::Policy;
use crate::problem::{Problem, Scaling};
use crate::rollout::{self, Request, StartFrom, Trajectory};
use crate::schedule::{EntropyBonus, Schedule};
use crate::shadow::Signals;
use crate::state::{Field, Fields};
use crate::stream::{Place, Purpose, Stream};
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
    /// κ_g ≤ κ_q: radius within which neighbours' constraints count.
    pub kappa_g: usize,
    /// Share of the running λ̃ that is kept at an iteration; 0: the batch's own, as line 4 says.
    pub occupancy_average: f64,
    /// Line 7.
    pub dual: DualRule,
    /// Start of every multiplier.
    pub mu_0: f64,
    /// Change of η_μ over the iterations.
    pub dual_schedule: Schedule,
    /// Line 8.
    pub baseline: actor::Baseline,
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
    exchange: InProcess,
    // Derived from the settings.
    actions: Vec<usize>,
    q_groups: Ragged<u32>,
    /// Where it is another group.
    g_groups: Option<Ragged<u32>>,
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

impl PrimalDual {
    /// Line 1: initial policy and multipliers.
    pub fn new(
        world: Arc<dyn World>,
        problem: Arc<Problem>,
        policy: Box<dyn Policy>,
        critic: Box<dyn Critic>,
        settings: Settings,
        stream: Stream,
    ) -> Result<Self> {
        let n = world.network().agents();
        let actions: Vec<usize> = (0..n).map(|i| world.actions(i)).collect();
        let constraints: Vec<usize> = problem.agents.iter().map(|agent| agent.constraints.len()).collect();
        let q_groups = world.network().neighbourhoods(settings.kappa_q);
        let differ = settings.kappa_g != settings.kappa_q;
        let g_groups = differ.then(|| world.network().neighbourhoods(settings.kappa_g));
        let gradient_rule = gradient_rule(&problem, &settings, n);
        let needs_alternatives = gradient_rule.needs_alternatives(policy.is_direct());
        if needs_alternatives && !critic.values().knows_alternatives() {
            return Err(Error::config(
                "critic.kind",
                "cannot tell Q at other actions, which this actor needs",
            ));
        }
        let alternatives = if needs_alternatives { actions.clone() } else { vec![1; n] };
        let visits = Visits::new((0..n).map(|i| problem.row_length(i)));
        Ok(PrimalDual {
            running: RunningOccupancy::new(settings.occupancy_average, &visits.occupancy),
            iteration: 0,
            agent_steps: 0,
            dual: Dual::new(&constraints, settings.mu_0),
            optimizer: Optimizer::new(settings.optimizer, policy.theta()),
            exchange: InProcess::new(
                &policy.groups(),
                &q_groups,
                g_groups.as_ref().unwrap_or(&q_groups),
                &constraints,
                &alternatives,
            ),
            occupancy_weights: problem.occupancy_weights(settings.horizon, settings.batch),
            trajectories: Vec::new(),
            visits,
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
            g_groups,
            gradient_rule,
        })
    }

    /// Line 3: the batch, and what the critic wants beside it. Trajectories are kept from one iteration to the next.
    fn sample(&mut self) {
        let (samples, batch) = (self.critic.samples(), self.settings.batch);
        let steps = self.settings.horizon + samples.batch_tail;
        let world = self.world.clone();
        let room = |steps| Trajectory::of(&*world, steps);
        if self.trajectories.is_empty() {
            self.trajectories.extend((0..batch).map(|_| room(steps)));
        }
        self.trajectories.truncate(batch + samples.chains);
        let missing = batch + samples.chains - self.trajectories.len();
        self.trajectories.extend((0..missing).map(|_| room(samples.evaluation_pairs)));
        self.simulate_from(0);
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
            self.simulate_from(first);
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
    }

    fn evaluation_transitions(&self) -> usize {
        self.trajectories[self.settings.batch..].iter().map(Trajectory::transitions).sum()
    }

    /// Simulates the trajectories from number `first` on.
    fn simulate_from(&mut self, first: usize) {
        let count = self.trajectories.len();
        let requests: Vec<Request> =
            requests(self.iteration as usize, self.settings.batch, count).skip(first).collect();
        let trajectories = &mut self.trajectories[first..];
        rollout::simulate(&*self.world, &*self.policy, &self.stream, &requests, trajectories);
        self.exchange.sampled(trajectories.iter().map(Trajectory::steps).sum());
        // The last pair of a chain is only looked at.
        let (batch, evaluation) = trajectories.split_at(self.settings.batch.saturating_sub(first));
        let steps: usize = batch.iter().map(Trajectory::steps).sum();
        let transitions: usize = evaluation.iter().map(Trajectory::transitions).sum();
        self.agent_steps += (self.actions.len() * (steps + transitions)) as u64;
    }

    fn summary(&self) -> Summary {
        let episodes = self.settings.batch as f64;
        let signals = &self.signals;
        Summary {
            return_: mean_return(&*self.world, &self.visits.counts, episodes),
            ..Summary::new(self.iteration() - 1, signals, &self.dual.mu, &self.gradient)
        }
    }
}

impl Algorithm for PrimalDual {
    /// One iteration of Algorithm 1, lines 3 to 9.
    fn step(&mut self) -> Result<Summary> {
        let t = self.iteration();
        let begin = Instant::now();

        // Line 3: B trajectories of length H under π_θ; beside them the trajectory that Algorithm 2 evaluates on.
        self.sample();
        let mut clock = Clock::start(&mut self.stage_times, begin);
        let (batch, evaluation) = self.trajectories.split_at(self.settings.batch);
        clock.stage(Stage::Sampling);

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
        let evidence = Evidence { iteration: t, policy, mu: &self.dual.mu, signals, batch, evaluation };
        self.critic.evaluate(evidence)?;
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
        let wanted = Wanted {
            alternatives: self.gradient_rule.needs_alternatives(self.policy.is_direct()),
            partial: self.settings.kappa_g < self.settings.kappa_q,
        };
        self.critic.values_mut().prepare(batch, self.settings.horizon, wanted);
        let lived: usize = batch.iter().map(|trajectory| self.gradient_rule.steps(trajectory)).sum();
        self.exchange.shared(self.settings.batch, lived);
        if !self.settings.discount {
            // The literal scaling divides by n as well.
            let agents = if self.problem.scaling == Scaling::Paper { self.actions.len() } else { 1 };
            self.gradient_rule.weights.fill(1.0 / (lived * agents) as f64);
        }
        self.gradient_rule.entropy = self.settings.entropy.at(t, self.settings.iterations);
        let (rule, senders) = (&self.gradient_rule, &self.q_groups);
        let groups = QGroups { senders, constrained: self.g_groups.as_ref().unwrap_or(senders) };
        actor::gradients(&*self.policy, batch, self.critic.values(), groups, rule, &mut self.gradient);
        finite(&self.gradient, "the gradient", t)?;
        actor::clip(&mut self.gradient, self.settings.clip);
        clock.stage(Stage::Gradient);

        // Line 9: θ_i^{t+1} = P_Θ(θ_i + η_θ·∇̃_{θ_i} L).
        let eta = self.settings.eta_theta * self.settings.actor_schedule.factor(t, self.settings.iterations);
        ascend(&mut *self.policy, &mut self.optimizer, &self.gradient, eta, self.settings.theta_box);
        finite(self.policy.theta(), "theta", t)?;
        clock.stage(Stage::Update);

        self.iteration += 1;
        Ok(self.summary())
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
        fields.push(("theta", Field::Numbers(self.policy.theta_mut().data_mut())));
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
    fn traffic(&self) -> crate::exchange::Traffic {
        self.exchange.traffic()
    }

    /// Agent-steps simulated so far: n·(B·H + K) an iteration. Where episodes end early, the batch has fewer, and
    /// Q-evaluation some more than it keeps.
    fn agent_steps(&self) -> u64 {
        self.agent_steps
    }
}

/// Room that a further chain of Q-evaluation has at least.
const SHORTEST_CHAIN: usize = 256;

fn gradient_rule(problem: &Problem, settings: &Settings, n: usize) -> GradientRule {
    let mut weights = problem.occupancy_weights(settings.horizon, settings.batch);
    match problem.scaling {
        Scaling::Normalised => {}
        Scaling::Paper => weights.iter_mut().for_each(|w| *w /= n as f64),
        Scaling::Authors => weights.fill(1.0 / settings.batch as f64),
    }
    GradientRule {
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
