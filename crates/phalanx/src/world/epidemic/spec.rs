//! What distinguishes one epidemic from another: the disease, and what can be done about it.

use serde::{Deserialize, Serialize};

use crate::base::error::ensure;
use crate::base::range::NonNegative;
use crate::world::registry::check_probability;
use crate::{Error, Result};

/// What becomes of those who recover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EpidemicModel {
    /// They can be infected again at once: susceptible, infected, susceptible.
    #[default]
    Sis,
    /// They are immune for a while: susceptible, infected, recovered, susceptible.
    Sirs,
}

/// R → S in a step where nothing is said.
const DEFAULT_WANING: f64 = 0.1;

/// The keys of `[world]` beside `kind = "epidemic"`. Who meets whom is said by `[network]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EpidemicSpec {
    /// `sis` or `sirs`.
    pub model: EpidemicModel,
    /// Number of agents; a grid and a file of links know theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n: Option<usize>,
    /// β: probability that an infected contact infects a susceptible agent in a step.
    pub infection: f64,
    /// ε: probability of infection from elsewhere in a step, so that the disease never dies out for good.
    pub import: f64,
    /// δ: probability to recover in a step.
    pub recovery: f64,
    /// δ⁺: probability to recover in a step under treatment.
    pub treated_recovery: f64,
    /// ω: probability that immunity is lost in a step, for `sirs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waning: Option<f64>,
    /// ψ: share of infections, from contacts and from elsewhere, that protecting oneself averts.
    pub protection: f64,
    /// What protecting costs in `reward`.
    pub protect_cost: f64,
    /// What treatment costs in `reward`.
    pub treat_cost: f64,
    /// Probability that an agent is infected at the start.
    pub start: f64,
}

impl Default for EpidemicSpec {
    fn default() -> Self {
        EpidemicSpec {
            model: EpidemicModel::Sis,
            n: None,
            infection: 0.15,
            import: 0.01,
            recovery: 0.1,
            treated_recovery: 0.5,
            waning: None,
            protection: 0.8,
            protect_cost: 0.1,
            treat_cost: 0.2,
            start: 0.1,
        }
    }
}

impl EpidemicSpec {
    /// ω; 0 where nobody is immune.
    pub(super) fn waning(&self) -> f64 {
        match self.model {
            EpidemicModel::Sis => 0.0,
            EpidemicModel::Sirs => self.waning.unwrap_or(DEFAULT_WANING),
        }
    }

    /// Refuses what is no probability, no cost, or of no use to the model.
    pub(super) fn check(&self) -> Result<()> {
        let probabilities = [
            ("infection", self.infection),
            ("import", self.import),
            ("recovery", self.recovery),
            ("treated_recovery", self.treated_recovery),
            ("waning", self.waning()),
            ("protection", self.protection),
            ("start", self.start),
        ];
        for (key, value) in probabilities {
            check_probability(&format!("world.{key}"), value)?;
        }
        NonNegative::check("world.protect_cost", self.protect_cost)?;
        NonNegative::check("world.treat_cost", self.treat_cost)?;
        ensure(self.model == EpidemicModel::Sirs || self.waning.is_none(), || {
            Error::config("world.waning", "is for model `sirs`; in `sis` nobody is immune")
        })
    }
}
