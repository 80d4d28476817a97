//! Whether influence decays: the paper's assumption, and the certificate that stands in for it.

use serde::Serialize;

use super::Point;
use crate::Ragged;
use crate::exact::{Certificate, TruncationBound};

/// assump:decay_transition at one γ.
#[derive(Debug, Clone, Serialize)]
pub struct DecayCheck {
    /// Whether χ(ω) < 2/γ for some ω > 0, i.e. χ(0) < 2/γ.
    pub holds: bool,
    /// χ(0), the largest row sum of M.
    pub chi_at_0: f64,
    /// 2/γ.
    pub two_over_gamma: f64,
    /// The agent whose row is the largest.
    pub binding_agent: usize,
    /// Its row of M, without zeros.
    pub binding_row: Vec<Influence>,
    /// sup{ω : χ(ω) < 2/γ} if the assumption holds; `None` too if every ω will do.
    pub omega_sup: Option<f64>,
    /// The lemma's c₀ and φ₀ at the ω that is best for κ_q, with M_r at this policy. Paper:
    /// lemma:truncated_grad.
    pub bound: Option<TruncationBound>,
    /// The assumption would hold for every γ below this, if it fails.
    pub gamma_below: Option<f64>,
    /// On a line it would hold for every `world.mixing` above this, if it fails (errata 2).
    pub mixing_above: Option<f64>,
}

/// M_ij of one agent i.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Influence {
    /// j.
    pub agent: usize,
    /// M_ij.
    pub size: f64,
}

impl DecayCheck {
    pub(super) fn new(point: &Point<'_>) -> Self {
        let decay = point.decay;
        let holds = decay.omega_sup.is_some();
        let row = decay.influence[decay.binding].iter().enumerate();
        DecayCheck {
            holds,
            chi_at_0: decay.chi_at_0,
            two_over_gamma: decay.two_over_gamma,
            binding_agent: decay.binding,
            binding_row: row
                .filter(|(_, size)| **size > 0.0)
                .map(|(agent, &size)| Influence { agent, size })
                .collect(),
            omega_sup: decay.omega_sup.filter(|omega| omega.is_finite()),
            bound: decay.best(point.reward_bound(), point.subject.kappa_q),
            gamma_below: (!holds).then(|| 2.0 / decay.chi_at_0),
            // Mixing with weight α multiplies M by 1 − α.
            mixing_above: point.enough_mixing(decay.two_over_gamma / decay.chi_at_0).filter(|_| !holds),
        }
    }
}

/// The closed-loop certificate at κ_q. Errata 1.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ClosedLoop {
    /// Whether there is one: the radius is below 1.
    pub holds: bool,
    /// Spectral radius of γC.
    pub spectral_radius: f64,
    /// What the error of a truncated gradient cannot exceed.
    pub gradient_error: Option<f64>,
    /// On a line there is one for every `world.mixing` above this, if there is none.
    pub mixing_above: Option<f64>,
}

impl ClosedLoop {
    pub(super) fn new(point: &Point<'_>, mu: &Ragged<f64>) -> Self {
        let certificate = point.certificate(point.groups);
        let radius = certificate.spectral_radius;
        let holds = certificate.outside.is_some();
        ClosedLoop {
            holds,
            spectral_radius: radius,
            gradient_error: point.certified(&certificate, mu),
            // C is linear in M.
            mixing_above: point.enough_mixing(1.0 / radius).filter(|_| !holds),
        }
    }
}

impl Point<'_> {
    /// The weight α of a line beyond which 1 − α is less than `factor` of what it is now.
    fn enough_mixing(&self, factor: f64) -> Option<f64> {
        self.subject.mixing.map(|now| 1.0 - (1.0 - now) * factor)
    }

    pub(super) fn certificate(&self, groups: &Ragged<u32>) -> Certificate {
        Certificate::new(&self.chain.system.dynamics, self.decay, self.subject.policy, groups)
    }

    /// The certified error of a truncated gradient.
    pub(super) fn certified(&self, certificate: &Certificate, mu: &Ragged<f64>) -> Option<f64> {
        certificate.gradient_error(&self.signals.rewards, mu).filter(|_| self.has_bounded_score())
    }
}
