//! What single episodes say: returns, mean rewards, how they ended, which of the world's events happened.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;

use super::Interval;
use crate::algorithm::EpisodeNumbers;
use crate::base::binomial;
use crate::base::elementary::powi;
use crate::world::{Event, Trajectory, World, sampled_channels, sampled_number};

/// How often an event of the world happened within the training horizon.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventCount {
    /// Its name.
    pub name: &'static str,
    /// Whose; none if it happens to all agents at once.
    pub agent: Option<usize>,
    /// Episodes in which it happened.
    pub count: u64,
    /// All episodes.
    pub episodes: u64,
    /// Upper bound on its probability (Clopper and Pearson), at the confidence of the assessment, for this
    /// event alone.
    pub upper: f64,
}

/// Running sums over episodes.
pub(super) struct PerEpisode<'a> {
    world: &'a dyn World,
    /// That of training.
    horizon: usize,
    /// Of every episode: undiscounted return, mean over agents; none without the channel `reward`.
    returns: Option<Vec<f64>>,
    /// Sums of it over episodes, by agent.
    agent_returns: Vec<f64>,
    /// Sums over episodes of the mean reward of all agents together, over the steps that the world's
    /// publication counts, and over all.
    mean_rewards: [f64; 2],
    /// Sums of every sampled channel over agents and steps, and their numbers.
    channels: Vec<[f64; 2]>,
    /// Sums over episodes of what the world measures.
    measures: Vec<f64>,
    /// Episodes that ended within the training horizon, and steps of all within it.
    ended: usize,
    steps: usize,
    /// Episodes in which each event happened, `[event][agent]`.
    events: Vec<u64>,
}

impl<'a> PerEpisode<'a> {
    pub fn new(world: &'a dyn World, horizon: usize) -> Self {
        let is_paid = world.channels().iter().any(|channel| channel.name == "reward");
        PerEpisode {
            world,
            horizon,
            returns: is_paid.then(Vec::new),
            agent_returns: vec![0.0; if is_paid { world.graph().agents() } else { 0 }],
            mean_rewards: [0.0; 2],
            channels: vec![[0.0; 2]; sampled_channels(world).len()],
            measures: vec![0.0; world.measures().len()],
            ended: 0,
            steps: 0,
            events: vec![0; world.events().len() * world.graph().agents()],
        }
    }

    pub fn add(&mut self, trajectory: &Trajectory) {
        let (world, n, horizon) = (self.world, self.world.graph().agents(), self.horizon);
        let steps = trajectory.steps().min(horizon);
        self.ended += usize::from(trajectory.ended() && trajectory.steps() <= horizon);
        self.steps += steps;
        if let Some(along) = rewards_along(world) {
            // Agents side by side, summed up in their order.
            let each = |steps: usize| {
                let each = (0..n).into_par_iter().map(|i| along(trajectory, i, steps));
                each.collect::<Vec<f64>>()
            };
            let (all, published) = (each(steps), world.published_steps(trajectory, horizon));
            let counted = if published == steps { None } else { Some(each(published).iter().sum()) };
            self.add_returns(&all, steps, (counted, published));
        }
        for (number, place) in sampled_channels(world).into_iter().enumerate() {
            let first = world.channel_start(place).min(steps);
            let along = |i| trajectory.rewards(number, i)[first..steps].iter().map(|&r| f64::from(r)).sum();
            self.add_channel(number, n * (steps - first), (0..n).map(along));
        }
        if let Some(last) = steps.checked_sub(1) {
            self.measures.iter_mut().zip(trajectory.measures(last)).for_each(|(sum, found)| *sum += found);
        }
        for (number, event) in world.events().iter().enumerate() {
            let channel = sampled_number(world, event.channel);
            let happened = |i| trajectory.rewards(channel, i)[..steps].iter().any(|&x| x != 0.0);
            self.add_event(number, (0..n).map(happened));
        }
    }

    /// The e-th of some episodes of which a card tells. None of them ended early.
    pub fn add_numbers(&mut self, numbers: &EpisodeNumbers, e: usize) {
        let (world, n, steps) = (self.world, self.world.graph().agents(), self.horizon);
        self.steps += steps;
        if let Some(all) = numbers.returns(e) {
            self.add_returns(all, steps, (None, steps));
        }
        for (number, place) in sampled_channels(world).into_iter().enumerate() {
            let first = world.channel_start(place).min(steps);
            self.add_channel(number, n * (steps - first), numbers.totals(number, e).iter().copied());
        }
        for number in 0..world.events().len() {
            self.add_event(number, numbers.happened(number, e).iter().map(|&happened| happened != 0.0));
        }
    }

    /// What every agent earned in so many steps; what all earned in those that were published, if they are
    /// others, and their number.
    fn add_returns(&mut self, all: &[f64], steps: usize, (counted, published): (Option<f64>, usize)) {
        self.agent_returns.iter_mut().zip(all).for_each(|(sum, earned)| *sum += earned);
        let total = all.iter().sum::<f64>();
        if let Some(returns) = &mut self.returns {
            returns.push(total / all.len() as f64);
        }
        self.mean_rewards[0] += counted.unwrap_or(total) / published.max(1) as f64;
        self.mean_rewards[1] += total / steps.max(1) as f64;
    }

    /// Totals of a sampled channel, by agent, over so many steps of all of them.
    fn add_channel(&mut self, number: usize, steps: usize, totals: impl Iterator<Item = f64>) {
        let [sum, count] = &mut self.channels[number];
        *count += steps as f64;
        totals.for_each(|total| *sum += total);
    }

    /// To which agents an event happened.
    fn add_event(&mut self, number: usize, happened: impl Iterator<Item = bool>) {
        let n = self.world.graph().agents();
        let counts = self.events[number * n..].iter_mut();
        counts.zip(happened).for_each(|(count, happened)| *count += u64::from(happened));
    }

    /// Undiscounted return, mean over agents.
    pub fn return_(&self, quantile: f64) -> Option<Interval> {
        self.returns.as_ref().map(|returns| mean_interval(returns, quantile))
    }

    /// The same by agent.
    pub fn agent_returns(&self) -> Option<Vec<f64>> {
        let episodes = self.returns.as_ref()?.len() as f64;
        Some(self.agent_returns.iter().map(|sum| sum / episodes).collect())
    }

    /// Mean over episodes of the mean reward of all agents together, as published and in full.
    pub fn mean_rewards(&self) -> Option<[f64; 2]> {
        let episodes = self.returns.as_ref()?.len() as f64;
        Some(self.mean_rewards.map(|sum| sum / episodes))
    }

    /// Undiscounted mean per step and agent of every sampled channel, by name.
    pub fn channel_means(&self) -> BTreeMap<String, f64> {
        let places = sampled_channels(self.world).into_iter().zip(&self.channels);
        places.map(|(place, [sum, count])| (self.world.channels()[place].name.clone(), sum / count)).collect()
    }

    /// Mean over so many episodes of what the world measures, by name.
    pub fn measures(&self, episodes: usize) -> BTreeMap<&'static str, f64> {
        let sums = self.world.measures().iter().zip(&self.measures);
        sums.map(|(&name, sum)| (name, sum / episodes as f64)).collect()
    }

    /// Share of so many episodes that ended early, and their mean length.
    pub fn ends(&self, episodes: usize) -> [f64; 2] {
        [self.ended, self.steps].map(|count| count as f64 / episodes as f64)
    }

    /// Every event, bounded with an error of `miss` each.
    pub fn events(&self, episodes: usize, miss: f64) -> Vec<EventCount> {
        let (n, episodes) = (self.world.graph().agents(), episodes as u64);
        let rows = self.world.events().iter().zip(self.events.chunks_exact(n));
        let count = |name, agent, count| {
            let upper = binomial::upper_bound(count, episodes, miss);
            EventCount { name, agent, count, episodes, upper }
        };
        rows.flat_map(|(&Event { name, is_shared, .. }, counts)| {
            let each = counts.iter().enumerate().take(if is_shared { 1 } else { n });
            each.map(|(i, &found)| count(name, (!is_shared).then_some(i), found)).collect::<Vec<_>>()
        })
        .collect()
    }
}

/// What an agent earned from the channel `reward` in the first steps of a trajectory, undiscounted; none
/// without such a channel.
fn rewards_along(world: &dyn World) -> Option<impl Fn(&Trajectory, usize, usize) -> f64 + Sync + '_> {
    let place = world.channels().iter().position(|channel| channel.name == "reward")?;
    let (tables, channel) = (world.channels()[place].tables(), sampled_number(world, place));
    Some(move |trajectory: &Trajectory, agent: usize, steps: usize| match tables {
        Some(tables) => {
            let pairs = trajectory.states(agent).iter().zip(trajectory.actions(agent)).take(steps);
            let (row, actions) = (tables.row(agent), world.actions(agent));
            pairs.map(|(&s, &a)| row[usize::from(s) * actions + usize::from(a)]).sum()
        }
        None => trajectory.rewards(channel, agent).iter().take(steps).map(|&r| f64::from(r)).sum(),
    })
}

fn mean_interval(samples: &[f64], quantile: f64) -> Interval {
    let e = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / e;
    let variance = samples.iter().map(|x| powi(x - mean, 2)).sum::<f64>() / (e - 1.0);
    let half = quantile * (variance / e).sqrt();
    Interval { value: mean, lower: mean - half, upper: mean + half }
}
