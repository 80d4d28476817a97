//! Numbers that are not finite: which agent's, and what they are.

use super::super::update::{REMEDY, REWARD, advised};
use super::rows::RowsForm;
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

/// The place of θ among them.
const THETA: usize = 5;

impl CudaPrimalDual {
    /// Fails if a number of the last iteration is not finite.
    pub(super) fn check(&self) -> Result<()> {
        match self.complaint()? {
            Some((what, agent)) => Err(self.diverged(what, agent)?),
            None => Ok(()),
        }
    }

    /// The same for all ranks: fails everywhere if it fails somewhere, for what an iteration looks at first.
    /// `own` are the numbers of the agents here.
    pub(super) fn check_over_ranks(&self, own: &[AgentMetrics]) -> Result<()> {
        let overflow = || own.iter().position(|agent| agent.overflow(self.shape.total).is_some());
        let of_metrics = || Some((ABOUT.len(), self.shape.own().nth(overflow()?)?));
        let found = self.complaint()?.or_else(of_metrics);
        let found = found.map(|(what, agent)| Ok((what, self.diverged(what, agent)?))).transpose()?;
        // The earlier it is looked at, the larger is the number.
        let mine = found.as_ref().map_or(0, |(what, _)| COMPLAINTS.len() - what) as u64;
        let mut first = [mine];
        self.host.halo.fold(&mut first, u64::max)?;
        self.host.halo.all_ok(match found {
            Some((_, error)) if mine == first[0] => Err(error),
            _ => Ok(()),
        })
    }

    /// What is not finite, as a place in [`COMPLAINTS`] and after it, and the first agent of whom that holds.
    fn complaint(&self) -> Result<Option<(usize, usize)>> {
        let mut first = [u32::MAX; COMPLAINTS.len() + METRICS];
        self.program.array("complaints").read(0, &mut first).map_err(failure)?;
        for (what, agent) in first.iter().enumerate().filter(|(_, agent)| **agent != u32::MAX) {
            // Networks of ghosts learn from what they do not know; their parameters are nobody's.
            let is_ghosts = what == THETA && self.borders.is_some() && self.bad_parameter("theta")?.is_none();
            if !is_ghosts {
                return Ok(Some((what, *agent as usize)));
            }
        }
        Ok(None)
    }

    fn diverged(&self, what: usize, agent: usize) -> Result<Error> {
        let iteration = self.host.progress.iteration as usize;
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
        let agent = self.host.world.graph().global_id(agent) as usize;
        let error = Error::Diverged { iteration, agent, quantity, value, advice: "" };
        Ok(advised(error, REMEDY))
    }

    /// The first number of an agent that is not finite, or its largest one.
    fn first_bad(&self, agent: usize, array: &'static str) -> Result<(usize, f64)> {
        let memory = self.program.array(array);
        let (n, count) = (self.shape.agents, memory.bytes() / size_of::<f64>());
        let by_agent = self.mirrors.iter().find(|mirror| mirror.array == "theta").map(|mirror| &mirror.form);
        let is_parameter = ["gradient", "theta"].contains(&array);
        let mut found = (agent, 0.0f64);
        if is_parameter && (array == "theta" || by_agent == Some(&RowsForm::RowAfterRow)) {
            return Ok(self.bad_parameter(array)?.unwrap_or(found));
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

    /// The first number of an own agent that is not finite, in θ or its gradient.
    fn bad_parameter(&self, array: &'static str) -> Result<Option<(usize, f64)>> {
        let (memory, n) = (self.program.array(array), self.shape.agents);
        let mut all = vec![0.0f64; memory.bytes() / size_of::<f64>()];
        memory.read(0, &mut all).map_err(failure)?;
        let form = self.mirrors.iter().find(|mirror| mirror.array == "theta").map(|mirror| &mirror.form);
        let offsets = self.host.policy.theta().offsets();
        let agent = |place: usize| match form {
            Some(RowsForm::RowAfterRow) => offsets.partition_point(|&start| start <= place) - 1,
            _ => place % n,
        };
        let own: Vec<usize> = self.shape.own().collect();
        let bad = all.iter().enumerate().filter(|(_, x)| !x.is_finite());
        let mut bad = bad.map(|(place, &x)| (agent(place), x));
        Ok(bad.find(|(agent, _)| own.binary_search(agent).is_ok()))
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
        Ok(metrics.overflow(self.shape.total).unwrap_or(("the summary", f64::NAN)))
    }
}
