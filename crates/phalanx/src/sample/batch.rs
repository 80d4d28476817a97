//! Line 3 of Algorithm 1: the batch, and what the critic wants beside it.

use super::rollout::{self, Request, StartFrom};
use crate::Result;
use crate::base::stream::{Place, Purpose, Stream};
use crate::distributed::Halo;
use crate::policy::Policy;
use crate::world::{Trajectory, World};

/// Samples that a critic wants beside the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleRequest {
    /// Trajectories of its own, from the uniform ρ₀.
    pub chains: usize,
    /// State–action pairs of each of them.
    pub evaluation_pairs: usize,
    /// Steps that every batch trajectory is carried on beyond the horizon.
    pub batch_tail: usize,
}

impl SampleRequest {
    /// So many trajectories of its own, of `transitions` each.
    pub fn chains(chains: usize, transitions: usize) -> Self {
        SampleRequest { chains, evaluation_pairs: transitions + 1, batch_tail: 0 }
    }

    /// The batch alone, carried on for so many steps.
    pub fn batch(batch_tail: usize) -> Self {
        SampleRequest { batch_tail, ..SampleRequest::default() }
    }
}

/// What the trajectories of an iteration have in common.
pub struct Sampling<'a> {
    /// Where agents live.
    pub world: &'a dyn World,
    /// How they act.
    pub policy: &'a dyn Policy,
    /// Where random numbers come from.
    pub stream: &'a Stream,
    /// Borders with other processes.
    pub halo: &'a Halo,
    /// t.
    pub iteration: usize,
    /// B.
    pub batch: usize,
    /// H.
    pub horizon: usize,
    /// What the critic wants.
    pub wanted: SampleRequest,
}

/// Steps of all trajectories.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampledSteps {
    /// That were simulated.
    pub simulated: usize,
    /// That are learnt from: the last pair of a chain is only looked at.
    pub counted: usize,
}

/// Room that a further chain of Q-evaluation has at least.
const SHORTEST_CHAIN: usize = 256;

impl Sampling<'_> {
    /// Fills `trajectories`, which are kept from one iteration to the next: B of the batch, then those of
    /// Q-evaluation.
    pub fn run(&self, trajectories: &mut Vec<Trajectory>) -> Result<SampledSteps> {
        let (wanted, batch) = (self.wanted, self.batch);
        let room = |steps| Trajectory::for_world(self.world, steps);
        if trajectories.is_empty() {
            trajectories.extend((0..batch).map(|_| room(self.horizon + wanted.batch_tail)));
        }
        trajectories.truncate(batch + wanted.chains);
        let missing = batch + wanted.chains - trajectories.len();
        trajectories.extend((0..missing).map(|_| room(wanted.evaluation_pairs)));
        let mut steps = SampledSteps::default();
        self.simulate_from(0, trajectories, &mut steps)?;
        // Where episodes end early, more of them make up for the transitions that are missing.
        let transitions = wanted.chains * wanted.evaluation_pairs.saturating_sub(1);
        let count_done = |all: &[Trajectory]| all[batch..].iter().map(Trajectory::transitions).sum::<usize>();
        let mut done = count_done(trajectories);
        while done < transitions {
            // As many as it takes if they last as long as those before, but no more than there are: the first
            // may have been very short.
            let (missing, first) = (transitions - done, trajectories.len());
            let count = (missing * (first - batch)).div_ceil(done).min(first - batch);
            // Room for a whole chain each would be far too much where episodes are short.
            let typical = done.div_ceil(first - batch);
            let pairs = wanted.evaluation_pairs.min(missing + 1).min((8 * typical).max(SHORTEST_CHAIN));
            trajectories.extend((0..count).map(|_| room(pairs)));
            self.simulate_from(first, trajectories, &mut steps)?;
            done = count_done(trajectories);
        }
        // The last ones may be too many, or too long.
        while let Some(last) = trajectories.last_mut().filter(|_| done > transitions) {
            done -= last.transitions();
            if done < transitions {
                last.keep_transitions(transitions - done);
                break;
            }
            trajectories.pop();
        }
        Ok(steps)
    }

    /// Simulates the trajectories from number `first` on.
    fn simulate_from(
        &self,
        first: usize,
        trajectories: &mut [Trajectory],
        steps: &mut SampledSteps,
    ) -> Result<()> {
        let requests: Vec<Request> = (first..trajectories.len()).map(|k| self.request(k)).collect();
        let trajectories = &mut trajectories[first..];
        rollout::simulate(self.world, self.policy, self.stream, &requests, trajectories, self.halo)?;
        let (batch, evaluation) = trajectories.split_at(self.batch.saturating_sub(first));
        let of_batch: usize = batch.iter().map(Trajectory::steps).sum();
        steps.simulated += of_batch + evaluation.iter().map(Trajectory::steps).sum::<usize>();
        steps.counted += of_batch + evaluation.iter().map(Trajectory::transitions).sum::<usize>();
        Ok(())
    }

    /// Trajectory number `k`: the batch starts by the world's law, the others at the uniform one.
    fn request(&self, k: usize) -> Request {
        let (purpose, start_purpose, start) = if k < self.batch {
            (Purpose::Batch, Purpose::BatchStart, StartFrom::World)
        } else {
            (Purpose::Critic, Purpose::CriticStart, StartFrom::Uniform)
        };
        let place = Place { purpose, iteration: self.iteration as u32, trajectory: k as u32 };
        Request { place, start_purpose, start }
    }
}
