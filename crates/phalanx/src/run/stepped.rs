//! An episode whose actions come from elsewhere: the world alone, one step at a time.

use super::evaluate::{Evaluator, episode_request, evaluation_stream};
use crate::base::error::ensure;
use crate::base::stream::{Place, Stream};
use crate::sample::rollout::Request;
use crate::world::{Evolution, Factored, World};
use crate::{Error, Result};

/// The k-th evaluation episode of a seed: with the actions that the policy draws there, it is that of
/// [`Evaluator::episode`].
pub struct SteppedEpisode<'a> {
    world: &'a dyn World,
    factored: &'a dyn Factored,
    stream: Stream,
    place: Place,
    step: usize,
    states: Vec<u8>,
    next: Vec<u8>,
    /// `[action, world]` of two steps.
    draws: [Vec<u32>; 4],
    /// Place of the channel `reward`.
    channel: Option<usize>,
    rewards: Vec<f32>,
    earned: f64,
}

impl Evaluator {
    /// Episode number `k` of `seed`, from 0 and below 2²⁴. Refused where agents share what none of them owns.
    pub fn stepped(&self, k: u32, seed: u64) -> Result<SteppedEpisode<'_>> {
        let world = self.world();
        let Evolution::Factored(factored) = world.evolution() else {
            let message =
                "is simulated whole: its agents share what none of them owns, and cannot act apart from it";
            return Err(crate::world::kind_error(message));
        };
        ensure(k < 1 << 24, || Error::argument("episodes", "at most 16777216 are possible"))?;
        let n = world.graph().agents();
        let (stream, Request { place, start_purpose, .. }) = (evaluation_stream(seed), episode_request(k));
        let mut states = vec![0; n];
        factored.start(&stream, Place { purpose: start_purpose, ..place }, 0..n, &mut states);
        Ok(SteppedEpisode {
            channel: world.channels().iter().position(|channel| channel.name == "reward"),
            next: vec![0; n],
            draws: std::array::from_fn(|_| vec![0; n]),
            rewards: vec![0.0; n],
            step: 0,
            earned: 0.0,
            world,
            factored,
            stream,
            place,
            states,
        })
    }
}

impl SteppedEpisode<'_> {
    /// Everybody's state.
    pub fn states(&self) -> &[u8] {
        &self.states
    }

    /// What has been earned so far, mean over agents; none if the world has no channel `reward`.
    pub fn return_(&self) -> Option<f64> {
        self.channel.map(|_| self.earned / self.states.len() as f64)
    }

    /// Moves on by everybody's action.
    pub fn step(&mut self, actions: &[u8]) {
        let all = 0..self.states.len();
        if self.step.is_multiple_of(2) {
            let rows = self.draws.each_mut().map(|row| &mut row[..]);
            self.stream.step_pair(self.place, (self.step / 2) as u32, 0, rows);
        }
        let draws = &self.draws[self.step % 2 * 2 + 1];
        if let Some(channel) = self.channel {
            match self.world.channels()[channel].tables() {
                Some(tables) => {
                    for i in all.clone() {
                        let cell =
                            usize::from(self.states[i]) * self.world.actions(i) + usize::from(actions[i]);
                        self.earned += tables.row(i)[cell];
                    }
                }
                None => {
                    let (states, rewards) = (&self.states, &mut self.rewards);
                    self.factored.sample_rewards(channel, all.clone(), states, actions, draws, rewards);
                    self.earned += rewards.iter().map(|&reward| f64::from(reward)).sum::<f64>();
                }
            }
        }
        self.factored.step(all, &self.states, actions, draws, &mut self.next);
        std::mem::swap(&mut self.states, &mut self.next);
        self.step += 1;
    }
}

#[cfg(test)]
mod tests {
    use crate::run::{Config, Evaluator};

    #[test]
    fn with_the_policys_actions_it_is_the_evaluation_episode() {
        for name in ["synthetic", "wireless"] {
            let config = Config::preset(name).unwrap().with("policy.init_std", "1.0").unwrap();
            let evaluator = Evaluator::new(&config).unwrap();
            let n = evaluator.world().graph().agents();
            let whole = evaluator.episode(3, 5, 11).unwrap();
            let mut episode = evaluator.stepped(3, 5).unwrap();
            for k in 0..11 {
                let now = |column: &dyn Fn(usize) -> u8| (0..n).map(column).collect::<Vec<u8>>();
                assert_eq!(episode.states(), now(&|i| whole.states(i)[k]), "{name}, step {k}");
                episode.step(&now(&|i| whole.actions(i)[k]));
            }
            assert!(episode.return_().unwrap() > 0.0);
        }
    }
}
