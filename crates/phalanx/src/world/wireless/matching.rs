//! The scripted policy `matching`: the best fixed plan of who uses which access point.

use std::collections::BTreeMap;

use super::Wireless;
use super::assignment::{Edge, maximum_weight_matching};
use super::constants::Constants;
use super::grid::ACTIONS;
use crate::Ragged;
use crate::world::World;

/// Every user always sends to the access point that it is matched with, or does nothing: a law over actions
/// for each state, row i as `[S_i][A_i]`.
///
/// Among the plans in which nobody shares an access point this one has the most expected deliveries in
/// `horizon` steps.
pub fn policy(world: &Wireless, horizon: usize) -> Ragged<f64> {
    Ragged::from_rows(plan(world, horizon).into_iter().enumerate().map(|(user, action)| {
        let law = move |a: usize| if a == usize::from(action) { 1.0 } else { 0.0 };
        (0..world.states(user)).flat_map(move |_| (0..ACTIONS).map(law))
    }))
}

/// The action of each user.
fn plan(world: &Wireless, horizon: usize) -> Vec<u8> {
    let Constants { grid, deadline, arrival, success } = &*world.constants;
    // Users with equal constants share a value.
    let mut known: BTreeMap<(usize, u64, u64), f64> = BTreeMap::new();
    let mut edges: Vec<Edge> = Vec::new();
    let mut actions = Vec::new();
    for user in 0..world.graph().agents() {
        for action in 1..ACTIONS as u8 {
            let Some(y) = grid.access_point(user, action) else { continue };
            let (d, p, q) = (usize::from(deadline[user]), arrival[user], success[y]);
            let value = known.entry((d, p.to_bits(), q.to_bits()));
            edges.push((user, y, *value.or_insert_with(|| deliveries(d, p, q, horizon))));
            actions.push(action);
        }
    }
    let matching = maximum_weight_matching(world.graph().agents(), grid.access_points(), &edges);
    matching.edge.into_iter().map(|edge| edge.map_or(0, |number| actions[number])).collect()
}

/// Expected deliveries in `horizon` steps of a user that always sends to an access point of its own.
///
/// The law of its queue is carried forward from fair coins; once it stands still, so do the deliveries of a
/// step.
pub fn deliveries(deadline: usize, arrival: f64, success: f64, horizon: usize) -> f64 {
    let newest = 1 << (deadline - 1);
    let mut law = vec![1.0 / (2 * newest) as f64; 2 * newest];
    let mut total = 0.0;
    for step in 0..horizon {
        let sent = success * (1.0 - law[0]);
        total += sent;
        let mut next = vec![0.0; law.len()];
        for (queue, &p) in law.iter().enumerate() {
            let without_earliest = queue & queue.wrapping_sub(1);
            for (left, share) in [(queue, 1.0 - success), (without_earliest, success)] {
                next[left >> 1] += p * share * (1.0 - arrival);
                next[left >> 1 | newest] += p * share * arrival;
            }
        }
        let moved = law.iter().zip(&next).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
        if moved < 1e-16 {
            return total + sent * (horizon - step - 1) as f64;
        }
        law = next;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Deadlines, Probabilities, WirelessSpec};

    #[test]
    fn deliveries_by_hand() {
        // One bit: a packet is there with probability 1/2, then with probability p; each is sent at once or
        // lost.
        let one = |h| deliveries(1, 0.3, 0.8, h);
        assert!((one(1) - 0.8 * 0.5).abs() < 1e-15 && (one(4) - 0.8 * (0.5 + 3.0 * 0.3)).abs() < 1e-15);
        assert!((one(1_000_001) - 0.8 * (0.5 + 300_000.0)).abs() < 1e-6);
        // Never through; always through: what arrives is delivered, save what the first coins leave too late.
        assert_eq!(deliveries(3, 0.5, 0.0, 10), 0.0);
        let first_two = 0.75 + (0.25 + 0.75 * 0.5);
        assert!((deliveries(2, 0.5, 1.0, 2) - first_two).abs() < 1e-15);
    }

    fn world(
        rows: usize,
        columns: usize,
        arrival: Vec<f64>,
        success: Vec<f64>,
        deadline: Vec<usize>,
    ) -> Wireless {
        let (arrival, success) = (Probabilities::Each(arrival), Probabilities::Each(success));
        let deadline = Deadlines::Each(deadline);
        Wireless::new(&WirelessSpec { rows, columns, deadline, arrival, success, seed: 0 }).unwrap()
    }

    fn value(world: &Wireless, plan: &[u8]) -> Option<f64> {
        let mut used = vec![false; world.constants.grid.access_points()];
        let mut total = 0.0;
        for (user, &action) in plan.iter().enumerate() {
            if action == 0 {
                continue;
            }
            let Constants { grid, deadline, arrival, success } = &*world.constants;
            let y = grid.access_point(user, action)?;
            if std::mem::replace(&mut used[y], true) {
                return None;
            }
            total += deliveries(deadline[user].into(), arrival[user], success[y], 5);
        }
        Some(total)
    }

    /// Every plan of a grid of 2 × 3 and of 2 × 2 is tried.
    #[test]
    fn no_plan_without_collisions_delivers_more() {
        let wireless = [
            world(2, 3, vec![0.9, 0.2, 0.5, 0.4, 0.8, 0.1], vec![0.3, 0.9], vec![1, 2, 3, 2, 1, 4]),
            world(2, 3, vec![0.1, 0.9, 0.1, 0.1, 0.8, 0.1], vec![0.9, 0.2], vec![2; 6]),
            world(2, 2, vec![0.5, 0.5, 0.6, 0.5], vec![0.7], vec![3; 4]),
        ];
        for world in wireless {
            let n = world.graph().agents();
            let found = plan(&world, 5);
            let mut best = 0.0f64;
            for number in 0..5usize.pow(n as u32) {
                let plan: Vec<u8> = (0..n).map(|i| (number / 5usize.pow(i as u32) % 5) as u8).collect();
                best = best.max(value(&world, &plan).unwrap_or(0.0));
            }
            assert!((value(&world, &found).unwrap() - best).abs() < 1e-12, "{found:?}");
        }
    }

    #[test]
    fn the_policy_is_the_plan_in_every_state() {
        let world = world(2, 3, vec![0.5; 6], vec![0.8, 0.0], vec![1, 2, 3, 1, 2, 3]);
        let plan = plan(&world, 12);
        // An access point where nothing gets through is left to nobody.
        assert_eq!(plan.iter().filter(|&&action| action != 0).count(), 1);
        let policy = policy(&world, 12);
        for (user, &action) in plan.iter().enumerate() {
            assert_eq!(policy.row(user).len(), world.states(user) * ACTIONS);
            for law in policy.row(user).chunks(ACTIONS) {
                assert_eq!((law.iter().sum::<f64>(), law[usize::from(action)]), (1.0, 1.0));
            }
        }
    }
}
