//! Whether events of a whole episode happened, and which steps could still change that.

use crate::utility::episode::{Cost, EpisodeEvent};
use crate::world::Trajectory;

/// What became of an event in a trajectory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Decision {
    /// Whether it happened.
    pub happened: bool,
    /// The actions of so many steps could matter: those after them came when it had been decided.
    pub steps: usize,
}

/// Looks at the first `horizon` steps of agent i, who has so many actions.
pub fn decide(
    event: &EpisodeEvent,
    trajectory: &Trajectory,
    agent: usize,
    actions: usize,
    horizon: usize,
) -> Decision {
    let steps = trajectory.steps().min(horizon);
    match event {
        EpisodeEvent::States(marked) => {
            let mut states = trajectory.states(agent)[..steps].iter();
            // The action of a step shows in the next state.
            match states.position(|&state| marked[usize::from(state)]) {
                Some(k) => Decision { happened: true, steps: k },
                None => Decision { happened: false, steps: steps.saturating_sub(1) },
            }
        }
        EpisodeEvent::Channel(number) => {
            let found = trajectory.rewards(*number, agent)[..steps].iter().position(|&x| x != 0.0);
            Decision { happened: found.is_some(), steps: found.map_or(steps, |k| k + 1) }
        }
        EpisodeEvent::Cost { cost, budget } => {
            let paid = |k: usize| paid(cost, trajectory, agent, actions, k);
            let (mut total, is_final) = (0.0, cost.never_negative());
            for k in 0..steps {
                total += paid(k);
                if is_final && total > *budget {
                    return Decision { happened: true, steps: k + 1 };
                }
            }
            Decision { happened: total > *budget, steps }
        }
    }
}

/// What agent i, who has so many actions, pays at step k.
fn paid(cost: &Cost, trajectory: &Trajectory, agent: usize, actions: usize, k: usize) -> f64 {
    match cost {
        Cost::Table(table) => {
            let pair = (trajectory.states(agent)[k], trajectory.actions(agent)[k]);
            table[usize::from(pair.0) * actions + usize::from(pair.1)]
        }
        Cost::Channel { number, .. } => f64::from(trajectory.rewards(*number, agent)[k]),
    }
}

/// What the first `horizon` steps cost agent i.
pub fn total_cost(cost: &Cost, trajectory: &Trajectory, agent: usize, actions: usize, horizon: usize) -> f64 {
    (0..trajectory.steps().min(horizon)).map(|k| paid(cost, trajectory, agent, actions, k)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_by_hand() {
        let mut trajectory = Trajectory::with_channels(1, 5, 1);
        for (k, (state, cost)) in [(0, 0.0), (1, 2.0), (2, 0.0), (0, -1.5), (1, 4.0)].into_iter().enumerate()
        {
            *trajectory.pair_mut(0, k).0 = state;
            *trajectory.reward_mut(0, 0, k) = cost;
        }
        let decided = |event: &EpisodeEvent, horizon| {
            let Decision { happened, steps } = decide(event, &trajectory, 0, 1, horizon);
            (happened, steps)
        };
        let in_state = EpisodeEvent::States([false, false, true].into());
        assert_eq!([2, 3, 5].map(|h| decided(&in_state, h)), [(false, 1), (true, 2), (true, 2)]);
        let pays = EpisodeEvent::Channel(0);
        assert_eq!([1, 2, 9].map(|h| decided(&pays, h)), [(false, 1), (true, 2), (true, 2)]);
        let table = |budget| EpisodeEvent::Cost { cost: Cost::Table([0.0, 1.0, 3.0].into()), budget };
        assert_eq!([0.5, 3.9, 4.0].map(|b| decided(&table(b), 5)), [(true, 2), (true, 3), (true, 5)]);
        assert_eq!(decided(&table(5.0), 5), (false, 5));
        // What is paid back counts, so that nothing is decided before the end.
        let cost = Cost::Channel { number: 0, never_negative: false };
        let channel = |budget| EpisodeEvent::Cost { cost: cost.clone(), budget };
        assert_eq!((decided(&channel(1.0), 4), decided(&channel(4.5), 5)), ((false, 4), (false, 5)));
        assert_eq!(decided(&channel(4.4), 5), (true, 5));
    }
}
