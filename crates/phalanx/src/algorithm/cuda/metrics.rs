//! What an iteration looked like: the numbers of all agents, added up on the card, or over all ranks.

use phalanx_gpu::Launch;

use super::shape::{METRICS, Shape};
use super::{CudaPrimalDual, failure};
use crate::Result;
use crate::algorithm::Summary;
use crate::learn::agent_metrics::AgentMetrics;

/// Agents whose numbers are summed up first.
pub const FOLD: usize = crate::base::parallel::FOLD;

/// The kernels that add up the numbers of all agents.
pub fn folds(shape: &Shape) -> Vec<Launch> {
    let groups = shape.agents.div_ceil(FOLD);
    let shared = size_of::<AgentMetrics>() * FOLD;
    vec![
        Launch { grid: [groups as u32, 1], ..Launch::blocks("fold_agents", FOLD, FOLD).sharing(shared) },
        Launch::blocks("fold_groups", FOLD, FOLD).sharing(shared),
    ]
}

impl CudaPrimalDual {
    /// The summary of the iteration, which fails if a number of it is not finite. Of several ranks that of
    /// the first is valid.
    pub(super) fn summary(&self) -> Result<Summary> {
        let all = match &self.borders {
            None => {
                let mut numbers = [0.0; METRICS];
                self.program.array("summary").read(0, &mut numbers).map_err(failure)?;
                self.check()?;
                bytemuck::cast(numbers)
            }
            Some(_) => {
                let own = self.own_metrics()?;
                self.check_over_ranks(&own)?;
                AgentMetrics::fold_all(&own, &self.host.halo)?
            }
        };
        let (host, agents) = (&self.host, self.shape.total);
        let is_paid = host.world.channels().iter().any(|channel| channel.name == "reward");
        Ok(Summary {
            return_: is_paid.then(|| all.return_ / (host.plan.batch * agents) as f64),
            ..Summary::of(host.progress.iteration as usize, &all, agents, host.constraints)
        })
    }

    /// What the agents of this rank contribute, in their order.
    fn own_metrics(&self) -> Result<Vec<AgentMetrics>> {
        let n = self.shape.agents;
        let mut numbers = vec![0.0; METRICS * n];
        let (metrics, squares) = numbers.split_at_mut((METRICS - 1) * n);
        self.program.array("metrics").read(0, metrics).map_err(failure)?;
        self.program.array("gradient_squares").read(0, squares).map_err(failure)?;
        let of = |i: usize| bytemuck::cast(std::array::from_fn::<f64, METRICS, _>(|m| numbers[m * n + i]));
        Ok(self.shape.own().map(of).collect())
    }
}
