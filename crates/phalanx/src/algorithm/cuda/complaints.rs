//! Numbers that are not finite: which agent's, and what they are.

use super::super::update::{REMEDY, REWARD, advised};
use super::shape::{COMPLAINTS, METRICS};
use super::{CudaPrimalDual, failure};
use crate::learn::agent_metrics::AgentMetrics;
use crate::{Error, Result};

/// What complaints are about, in the order of [`COMPLAINTS`], and the array to look at.
const ABOUT: [(&str, &str); 6] = [
    ("g", "slack"),
    (REWARD, "rewards"),
    ("mu", "mu"),
    ("Q", "weighted"),
    ("the gradient", "gradient"),
    ("theta", "theta"),
];

impl CudaPrimalDual {
    /// Fails if a number of the last iteration is not finite.
    pub(super) fn check(&self) -> Result<()> {
        let mut first = [u32::MAX; COMPLAINTS.len() + METRICS];
        self.program.array("complaints").read(0, &mut first).map_err(failure)?;
        let Some(what) = first.iter().position(|&agent| agent != u32::MAX) else { return Ok(()) };
        let (iteration, agent) = (self.host.progress.iteration as usize, first[what] as usize);
        let (agent, quantity, value) = match ABOUT.get(what) {
            Some(&(quantity, array)) => {
                let (agent, value) = self.first_bad(agent, array)?;
                (agent, quantity, value)
            }
            None => {
                let (quantity, value) = self.bad_metric(agent)?;
                (agent, quantity, value)
            }
        };
        let error = Error::Diverged { iteration, agent, quantity, value, advice: "" };
        Err(advised(error, REMEDY))
    }

    /// The first number of an agent that is not finite, or its largest one.
    fn first_bad(&self, agent: usize, array: &'static str) -> Result<(usize, f64)> {
        let memory = self.program.array(array);
        let (n, count) = (self.shape.agents, memory.bytes() / size_of::<f64>());
        let by_agent = self.mirrors.iter().find(|mirror| mirror.array == "theta").map(|mirror| &mirror.form);
        let is_parameter = ["gradient", "theta"].contains(&array);
        let mut found = (agent, 0.0f64);
        if is_parameter && (array == "theta" || by_agent == Some(&super::rows::RowsForm::RowAfterRow)) {
            let mut all = vec![0.0; count];
            memory.read(0, &mut all).map_err(failure)?;
            let place = all.iter().position(|x: &f64| !x.is_finite()).unwrap_or(0);
            let offsets = self.host.policy.theta().offsets();
            found.0 = match by_agent {
                Some(super::rows::RowsForm::RowAfterRow) => {
                    offsets.partition_point(|&start| start <= place) - 1
                }
                _ => place % n,
            };
            found.1 = all[place];
            return Ok(found);
        }
        for entry in 0..count / n {
            let mut number = [0.0f64];
            memory.read(entry * n + agent, &mut number).map_err(failure)?;
            if !number[0].is_finite() {
                return Ok((agent, number[0]));
            }
            if number[0].abs() > found.1.abs() {
                found.1 = number[0];
            }
        }
        Ok(found)
    }

    /// What an agent contributes to the summary that no summary can hold.
    fn bad_metric(&self, agent: usize) -> Result<(&'static str, f64)> {
        let n = self.shape.agents;
        let mut numbers = [0.0f64; METRICS];
        for (which, number) in numbers.iter_mut().enumerate() {
            let (array, at) =
                if which == METRICS - 1 { ("gradient_squares", 0) } else { ("metrics", which * n) };
            self.program.array(array).read(at + agent, std::slice::from_mut(number)).map_err(failure)?;
        }
        let metrics: AgentMetrics = bytemuck::cast(numbers);
        Ok(metrics.overflow(n).unwrap_or(("the summary", f64::NAN)))
    }
}
