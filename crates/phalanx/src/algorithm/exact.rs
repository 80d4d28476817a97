//! Algorithm 1 in the exact setting: occupancies, shadow Q-functions and gradients without sampling error, so
//! that truncation is all that is left of it. Paper: thm:convergence, rmk:exact_setting_error.

use std::sync::Arc;

use super::kind::{AlgorithmKind, Plan, Task};
use super::update::{EXACT_REMEDY, REWARD, Stage, advised, ascend, finite, finite_slack};
use super::{Algorithm, Progress, Summary};
use crate::base::fields::{Field, Fields};
use crate::base::key::{ALGORITHM, SCALING};
use crate::exact::{
    Chain, Constants, Domain, Stationarity, System, Truncated, Truncation, TruncationKeys, local_constants,
};
use crate::learn::actor::{StepRule, rule_error};
use crate::learn::dual::Dual;
use crate::learn::optimizer::Optimizer;
use crate::learn::shadow::{Signals, weighed};
use crate::policy::{self, Policy, Tabular};
use crate::utility::problem::{Problem, Scaling};
use crate::world::World;
use crate::{Error, Ragged, Result};

/// `exact`.
#[derive(Debug)]
pub(super) struct ExactKind;

impl AlgorithmKind for ExactKind {
    fn is_exact(&self) -> bool {
        true
    }

    fn build(&self, mut plan: Plan, task: Task) -> Result<Box<dyn Algorithm>> {
        let Task { world, problem, .. } = task;
        plan.scale_dual(&problem, world.graph().total());
        let tables = plan.policy.tables().ok_or_else(policy::not_tables)?;
        let tables = tables.build(&*world, plan.kappa, &plan.stream())?;
        Ok(Box::new(ExactPrimalDual::new(&*world, problem, tables, plan)?))
    }
}

/// State and buffers of the exact algorithm.
pub struct ExactPrimalDual {
    problem: Arc<Problem>,
    plan: Plan,
    // What an iteration changes.
    progress: Progress,
    policy: Tabular,
    dual: Dual,
    optimizer: Optimizer,
    // Derived from the settings.
    system: System,
    groups: Ragged<u32>,
    /// None if nothing is truncated.
    truncated: Option<Truncated>,
    /// Factor on Σ_j: 1/n in the paper's scaling, else 1.
    factor: f64,
    /// L_θθ and L_θμ in the units of the steps, where a rule needs them.
    smoothness: Option<[f64; 2]>,
}

impl ExactPrimalDual {
    /// Line 1; refuses graphs whose joint space is too large.
    pub fn new(world: &dyn World, problem: Arc<Problem>, policy: Tabular, plan: Plan) -> Result<Self> {
        let n = policy.agents() as f64;
        let factor = match problem.scaling {
            Scaling::Normalised => 1.0,
            Scaling::Paper => 1.0 / n,
            Scaling::Authors => {
                let message = format!(
                    "`authors` describes sampled episodes; with {ALGORITHM} = \"exact\" use `normalised` or `paper`"
                );
                return Err(Error::config(SCALING, message));
            }
        };
        let system = System::new(world, &problem, &policy)?;
        let groups = world.graph().neighbourhoods(plan.kappa_q);
        let truncated = match plan.critic.keys::<TruncationKeys>()?.truncation {
            Truncation::None => None,
            kind => Some(Truncated::new(&system, &policy, &groups, kind)?),
        };
        let smoothness = match plan.actor.rule {
            StepRule::Constant => None,
            StepRule::Theorem => {
                let constants = Constants::new(&problem, &system.dynamics, *plan.dual.mu_max);
                let constants = constants.ok_or_else(|| {
                    rule_error(
                        "`theorem` needs bounded shadow rewards, which a utility here does not have (errata 8); use \
                         squared distances and a start law of full support, or `local`",
                    )
                })?;
                // The constants are those of L = (1/n) Σ_i …; without 1/n all derivatives are n times larger.
                Some([constants.l_tt, constants.l_tm].map(|constant| n * factor * constant))
            }
            StepRule::Local => {
                let ends = if plan.dual.mu_max.is_finite() { *plan.dual.mu_max } else { 1.0 };
                Some(local_constants(&system, &problem, &policy, ends)?.map(|constant| n * factor * constant))
            }
        };
        let constraints: Vec<usize> = problem.agents.iter().map(|agent| agent.constraints.len()).collect();
        Ok(ExactPrimalDual {
            progress: Progress::new(),
            dual: Dual::new(&constraints, *plan.dual.mu_0).with_margins(&problem),
            optimizer: Optimizer::new(plan.actor.optimizer, policy.theta()),
            problem,
            plan,
            policy,
            system,
            groups,
            truncated,
            factor,
            smoothness,
        })
    }

    /// Line 8: the gradient, times n if there is no 1/n in this scaling; and n·∇L whole, for the metrics.
    fn gradients(&self, chain: &Chain<'_>, signals: &Signals) -> Result<[Ragged<f64>; 2]> {
        // Everything is linear in the rewards, so those of an agent are added up before anything is solved.
        let rewards = signals.rewards.iter().zip(self.dual.mu.iter());
        let rewards = Ragged::from_rows(rewards.map(|(rewards, mu)| weighed(rewards, mu)));
        let none = Ragged::zeros(std::iter::repeat_n(0, rewards.rows()));
        let values = chain.values(&rewards)?;
        let (problem, mu) = (&*self.problem, &self.dual.mu);
        let mut whole = chain.action_values(&values, &none);
        chain.add_event_values(problem, mu, None, &mut whole);
        let used = match &self.truncated {
            None => whole.clone(),
            Some(truncated) => {
                let tables = truncated.tables(chain, &values, &chain.state_occupancy);
                let mut used = chain.truncated_action_values(&tables, &none, &self.groups);
                chain.add_event_values(problem, mu, Some(&self.groups), &mut used);
                used
            }
        };
        Ok([used, whole])
    }

    fn eta_theta(&self, eta_mu: f64) -> f64 {
        match self.smoothness {
            None => *self.plan.actor.eta_theta,
            Some([l_tt, l_tm]) => 1.0 / (l_tt + 4.0 * l_tm * l_tm * eta_mu),
        }
    }

    /// One iteration of Algorithm 1, lines 3 to 9, with exact quantities.
    fn iterate(&mut self) -> Result<Summary> {
        let (t, plan, theta_box) = (self.iteration(), &self.plan, self.plan.policy.theta_box());
        self.progress.start();

        // Lines 3 to 5: λ_i, g_i and the shadow rewards.
        let chain = self.system.under(&self.policy)?;
        let signals = chain.signals(&self.problem);
        finite_slack(&signals.slack, signals.slack.rows(), t)?;
        finite(&signals.rewards, REWARD, t)?;
        self.progress.stage(Stage::Occupancy);

        // Line 7: μ^{t+1}.
        let schedule = plan.dual.schedule.factor(t, plan.iterations);
        let graph = &self.system.dynamics.graph;
        self.dual.update(&plan.dual, &signals.dual_slack(&self.problem, graph), schedule);
        finite(&self.dual.mu, "mu", t)?;
        self.progress.stage(Stage::Dual);

        // Lines 6 and 8: Q and the gradient, truncated and whole.
        let [used, whole] = self.gradients(&chain, &signals)?;
        self.progress.stage(Stage::Critic);
        let gradient = chain.ascent(&used, self.factor);
        finite(&gradient, "the gradient", t)?;
        let truth = chain.gradient(&whole, self.policy.parameterisation(), 1.0 / self.policy.agents() as f64);
        let domain = Domain::for_policy(&self.policy, theta_box);
        let stationarity =
            Stationarity::new(&truth, domain, &self.dual.mu, &signals.slack, *plan.dual.mu_max);
        let distance = Ragged::from_rows([[stationarity.x, stationarity.y, stationarity.e]]);
        finite(&distance, "the distance from a stationary point", t)?;
        self.progress.stage(Stage::Gradient);

        // Line 9.
        let summary = Summary::new(t, &signals, &self.dual.mu, &gradient, None)?;
        let summary = Summary { stationarity: Some(stationarity), ..summary };
        let eta =
            self.eta_theta(schedule * *plan.dual.eta_mu) * plan.actor.schedule.factor(t, plan.iterations);
        drop(chain);
        ascend(&mut self.policy, &mut self.optimizer, &gradient, eta, theta_box);
        finite(self.policy.theta(), "theta", t)?;
        self.progress.stage(Stage::Update);
        self.progress.iteration += 1;
        Ok(summary)
    }
}

impl Algorithm for ExactPrimalDual {
    fn step(&mut self) -> Result<Summary> {
        self.iterate().map_err(|error| advised(error, EXACT_REMEDY))
    }

    fn fields(&mut self) -> Fields<'_> {
        let mut fields = vec![("iteration", Field::Counter(&mut self.progress.iteration))];
        fields.push(("theta", Field::Rows(self.policy.theta_mut())));
        fields.extend(self.optimizer.fields(false));
        fields.extend(self.dual.fields());
        fields
    }

    fn policy(&self) -> &dyn Policy {
        &self.policy
    }

    fn policy_mut(&mut self) -> &mut dyn Policy {
        &mut self.policy
    }

    fn mu(&self) -> &Ragged<f64> {
        &self.dual.mu
    }

    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn knows_stationarity(&self) -> bool {
        true
    }
}
