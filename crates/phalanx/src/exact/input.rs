//! A model with a policy and multipliers, as it stands in a file: what `phalanx exact` works on.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::error::ensure;
use crate::base::files;
use crate::base::key::{KAPPA, KAPPA_Q};
use crate::base::limits::MOST_HOPS;
use crate::base::range::{Discount, NonNegative, Positive, UpperEnd};
use crate::base::stream::Stream;
use crate::policy::{Parameterisation, Policy, Tabular};
use crate::utility::LocalSpace;
use crate::utility::problem::{AgentProblem, Bound, Constraint, Problem, Scaling, ShadowReward};
use crate::world::{Model, Table, World};
use crate::{Error, Ragged, Result};

/// The `input` object of a file. Only the model is needed: θ = 0 (uniform policies), μ = 0, κ = 1 otherwise.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// For people.
    pub name: Option<String>,
    /// Version of the format, 1.
    pub format: Option<u32>,
    /// Dynamics, objectives f and constraints g ≥ 0.
    pub model: Model,
    /// κ.
    pub kappa: Option<usize>,
    /// κ_q; κ if missing.
    pub kappa_q: Option<usize>,
    /// Soft-max parameters, row i as `[∏ S_{N_i^κ}][A_i]`.
    pub theta: Option<Vec<Vec<f64>>>,
    /// Multipliers, a list per agent.
    pub mu: Option<Vec<Vec<f64>>>,
    /// Upper end of U; none if missing.
    pub mu_bar: Option<f64>,
    /// Θ as a box.
    #[serde(rename = "box")]
    pub theta_box: Option<[f64; 2]>,
    /// Sample sizes at which prop:estimators is evaluated.
    pub estimator: Option<EstimatorInput>,
    /// A short run of Algorithm 1 with exact quantities.
    pub algorithm: Option<AlgorithmInput>,
}

/// Sample sizes of prop:estimators.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EstimatorInput {
    /// B.
    #[serde(rename = "B")]
    pub batch: f64,
    /// H.
    #[serde(rename = "H")]
    pub horizon: f64,
    /// δ₀.
    pub delta0: f64,
    /// ε₀.
    pub eps0: f64,
}

/// A run of Algorithm 1 in the exact setting.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlgorithmInput {
    /// T.
    #[serde(rename = "T")]
    pub iterations: usize,
    /// η_μ.
    pub eta_mu: f64,
    /// η_θ.
    pub eta_theta: f64,
}

/// A checked [`Input`], in the literal scaling of the paper.
#[derive(Debug, Clone)]
pub struct Case {
    /// The model as a world.
    pub world: Table,
    /// Its objectives and constraints.
    pub problem: Problem,
    /// Soft-max policies with the file's θ.
    pub policy: Tabular,
    /// N_i^{κ_q}.
    pub groups: Ragged<u32>,
    /// κ.
    pub kappa: usize,
    /// κ_q.
    pub kappa_q: usize,
    /// μ.
    pub mu: Ragged<f64>,
    /// Upper end of U, possibly infinite.
    pub mu_bar: f64,
    /// Θ as a box.
    pub theta_box: Option<[f64; 2]>,
    /// Sample sizes.
    pub estimator: Option<EstimatorInput>,
    /// A run of Algorithm 1.
    pub algorithm: Option<AlgorithmInput>,
}

impl Case {
    /// Reads `{"input": {…}}`, or the input object itself, from a `.json` or `.toml` file.
    pub fn read(path: &Path) -> Result<Self> {
        Case::parse(&files::read_text(path)?, path)
    }

    /// As [`Case::read`], from text at hand; `path` says its format and is what errors call it.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let input: Input = crate::base::document::parse(text, path, &["input"])?;
        Case::new(input).map_err(|error| Error::file(path, error.to_string()))
    }

    /// Checks an input.
    pub fn new(input: Input) -> Result<Self> {
        if let Some(format) = input.format.filter(|&format| format != 1) {
            return Err(Error::config("format", format!("{format}; this program reads format 1")));
        }
        let gamma = input.model.gamma.ok_or_else(|| Error::config("model.gamma", "is missing"))?;
        Discount::check("model.gamma", gamma)?;
        let (f, g) = (input.model.f.clone(), input.model.g.clone());
        if f.is_empty() {
            return Err(Error::config("model.f", "is missing: every agent needs an objective"));
        }
        let world = Table::new(input.model).map_err(|error| within("model", error))?;
        let agents = (0..f.len()).map(|i| {
            let space = LocalSpace { states: world.states(i), actions: world.actions(i), gamma };
            let objective = f[i].build(space, &format!("model.f[{i}]"))?;
            let own = g.get(i).map_or(&[][..], Vec::as_slice);
            let constraints = own.iter().enumerate().map(|(k, spec)| {
                let utility = spec.build(space, &format!("model.g[{i}][{k}]"))?;
                let name = spec.kind.as_str().into();
                Ok(Constraint {
                    name,
                    utility,
                    bound: Bound::AtLeast(0.0),
                    shadow: ShadowReward::default(),
                    margin: 0.0,
                    group: None,
                })
            });
            let constraints = constraints.collect::<Result<_>>()?;
            Ok(Arc::new(AgentProblem {
                space,
                objective,
                shadow: ShadowReward::default(),
                constraints,
                events: Vec::new(),
                tails: Vec::new(),
            }))
        });
        let problem = Problem {
            agents: agents.collect::<Result<_>>()?,
            gamma,
            scaling: Scaling::Paper,
            sampled_channels: 0,
            episodic: false,
            raw_lives: false,
            horizon: 1,
            groups: Vec::new(),
        };
        let kappa = input.kappa.unwrap_or(1);
        let kappa_q = input.kappa_q.unwrap_or(kappa);
        for (name, radius) in [(KAPPA, kappa), (KAPPA_Q, kappa_q)] {
            let message = || format!("{radius}; at most {MOST_HOPS} is possible");
            ensure(radius <= MOST_HOPS, || Error::config(name, message()))?;
        }
        let mut policy = Tabular::new(&world, kappa, Parameterisation::Softmax, 0.0, &Stream::new(0))?;
        if let Some(theta) = input.theta {
            let sizes: Vec<usize> = policy.theta().iter().map(<[f64]>::len).collect();
            let theta = rows("theta", theta, &sizes, "parameters (joint observations × actions)")?;
            policy.update(|own| *own = theta);
        }
        let counts: Vec<usize> = problem.agents.iter().map(|agent| agent.constraints.len()).collect();
        let mu = match input.mu {
            Some(mu) => rows("mu", mu, &counts, "constraints")?,
            None => Ragged::zeros(counts),
        };
        let mu_bar = input.mu_bar.unwrap_or(f64::INFINITY);
        UpperEnd::check("mu_bar", mu_bar)?;
        check_range("mu", &mu, 0.0..=mu_bar, &format!("is not in 0 to mu_bar = {mu_bar}"))?;
        check_box(policy.theta(), input.theta_box)?;
        if let Some(estimator) = &input.estimator {
            check_estimator(estimator)?;
        }
        if let Some(algorithm) = &input.algorithm {
            NonNegative::check("algorithm.eta_mu", algorithm.eta_mu)?;
            NonNegative::check("algorithm.eta_theta", algorithm.eta_theta)?;
        }
        Ok(Case {
            groups: world.graph().neighbourhoods(kappa_q),
            world,
            problem,
            policy,
            kappa,
            kappa_q,
            mu,
            mu_bar,
            theta_box: input.theta_box,
            estimator: input.estimator,
            algorithm: input.algorithm,
        })
    }
}

/// The same error with its field inside `parent`.
fn within(parent: &str, error: Error) -> Error {
    match error {
        Error::Config { field, message } => Error::config(format!("{parent}.{field}"), message),
        error => error,
    }
}

/// Lists of finite numbers of the given lengths.
fn rows(field: &str, lists: Vec<Vec<f64>>, lengths: &[usize], what: &str) -> Result<Ragged<f64>> {
    if lists.len() != lengths.len() {
        let message = format!("{} lists for n = {} agents", lists.len(), lengths.len());
        return Err(Error::config(field, message));
    }
    for (i, (list, &length)) in lists.iter().zip(lengths).enumerate() {
        if list.len() != length {
            let message = format!("{} numbers, but agent {i} has {length} {what}", list.len());
            return Err(Error::config(format!("{field}[{i}]"), message));
        }
        if let Some(k) = list.iter().position(|x| !x.is_finite()) {
            return Err(Error::config(format!("{field}[{i}][{k}]"), format!("{} is not finite", list[k])));
        }
    }
    Ok(Ragged::from_rows(lists))
}

fn check_box(theta: &Ragged<f64>, theta_box: Option<[f64; 2]>) -> Result<()> {
    let Some([low, high]) = theta_box else { return Ok(()) };
    if low > high || low.is_nan() || high.is_nan() {
        return Err(Error::config("box", format!("[{low}, {high}] holds no number")));
    }
    check_range("theta", theta, low..=high, &format!("is outside the box [{low}, {high}]"))
}

/// Whether all entries are in `range`; `what` is said of one that is not.
fn check_range(field: &str, rows: &Ragged<f64>, range: RangeInclusive<f64>, what: &str) -> Result<()> {
    for (i, row) in rows.iter().enumerate() {
        if let Some(k) = row.iter().position(|x| !range.contains(x)) {
            return Err(Error::config(format!("{field}[{i}][{k}]"), format!("{} {what}", row[k])));
        }
    }
    Ok(())
}

fn check_estimator(estimator: &EstimatorInput) -> Result<()> {
    Positive::check("estimator.B", estimator.batch)?;
    Positive::check("estimator.H", estimator.horizon)?;
    if !(estimator.delta0 > 0.0 && estimator.delta0 < 1.0) {
        let message = format!("{}; a probability is needed", estimator.delta0);
        return Err(Error::config("estimator.delta0", message));
    }
    if !(estimator.eps0.is_finite() && estimator.eps0 >= 0.0) {
        return Err(Error::config("estimator.eps0", format!("{}; at least 0 is needed", estimator.eps0)));
    }
    Ok(())
}
