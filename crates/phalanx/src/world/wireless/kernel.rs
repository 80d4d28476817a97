//! What kernel text of the wireless network's features reads, agent by agent.

use super::constants::Constants;
use super::features::{Rivals, Sends};
use super::grid::ACTIONS;
use crate::Ragged;
use crate::world::WorldKernel;
use crate::world::kernel::by_entry;

/// One who is not in a group.
const NOBODY: u32 = u32::MAX;

/// A group as the whole graph numbers its users; `first` is the first one of this part of it.
fn in_whole(first: usize, group: &[u32]) -> Vec<u32> {
    group.iter().map(|&user| first as u32 + user).collect()
}

/// [`Rivals`] of all users: of every access point the first indicator, and the rivals' numbers. The first
/// user is number `first`.
pub fn rivals(constants: &Constants, first: usize, groups: &Ragged<u32>) -> WorldKernel {
    let n = groups.rows();
    let (mut firsts, mut users) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for (agent, group) in groups.iter().enumerate() {
        let rivals = Rivals::new(constants, first + agent, &in_whole(first, group));
        firsts.push(rivals.points().iter().map(|(first, _)| *first).collect::<Vec<u32>>());
        let numbers = |(_, rivals): &(u32, Vec<usize>)| {
            let mut numbers = [NOBODY; 3];
            numbers.iter_mut().zip(rivals).for_each(|(number, &place)| *number = group[place]);
            numbers
        };
        users.push(rivals.points().iter().flat_map(numbers).collect::<Vec<u32>>());
    }
    let text = concat!(include_str!("features.cu"), include_str!("policy_features.cu"));
    WorldKernel::new(text, false)
        .constant("WORLD_POLICY_FEATURES", ACTIONS - 1)
        .array("wireless_rivals_first", by_entry(n, ACTIONS - 1, |i| &firsts[i], NOBODY))
        .array("wireless_rivals", by_entry(n, 3 * (ACTIONS - 1), |i| &users[i], NOBODY))
}

/// [`Sends`] of all users: where the sends of every member begin; and as each sender numbers them, where
/// those of the receiver and of its rivals begin. None if a user has none. The first user is number `first`.
pub fn sends(constants: &Constants, first: usize, groups: &Ragged<u32>) -> Option<WorldKernel> {
    let (n, grid) = (groups.rows(), constants.grid);
    let of_user = |(j, group): (usize, &[u32])| Sends::new(constants, first + j, &in_whole(first, group));
    let all: Vec<Sends> = groups.iter().enumerate().map(of_user).collect::<Option<_>>()?;
    // `user` is a number in the whole graph.
    let first_of = |sender: usize, user: usize| {
        let local = user.checked_sub(first).map(|user| user as u32);
        let place = local.and_then(|user| groups.row(sender).binary_search(&user).ok());
        place.map_or(NOBODY, |place| all[sender].sends_of(place))
    };
    let told = |agent: usize| -> Vec<u32> {
        let from = |&sender: &u32| {
            let sender = sender as usize;
            let mut firsts = vec![first_of(sender, first + agent)];
            for action in 1..ACTIONS as u8 {
                let rivals = grid.contenders(first + agent, action);
                firsts.extend(
                    rivals.map_or([NOBODY; 3], |rivals| rivals.map(|(user, _)| first_of(sender, user))),
                );
            }
            firsts
        };
        groups.row(agent).iter().flat_map(from).collect()
    };
    let slots = groups.iter().map(<[u32]>::len).max().unwrap_or(1);
    let own = |j: usize| (0..groups.row(j).len()).map(|place| all[j].sends_of(place)).collect::<Vec<u32>>();
    let text = concat!(include_str!("features.cu"), include_str!("critic_features.cu"));
    let kernel = WorldKernel::new(text, true)
        .constant("WORLD_FEATURES", 2 * slots)
        .array("wireless_sends", by_entry(n, slots, own, 0))
        .array("wireless_told", by_entry(n, slots * (1 + 3 * (ACTIONS - 1)), told, NOBODY));
    Some(kernel)
}
