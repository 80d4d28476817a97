//! What kernel text of an epidemic's features reads, agent by agent.

use super::Epidemic;
use super::features::Contacts;
use crate::Ragged;
use crate::world::WorldKernel;
use crate::world::kernel::by_entry;

/// The roles of the members of every group, by entry, and whether there is anybody beyond the contacts.
fn roles(world: &Epidemic, groups: &Ragged<u32>) -> (Vec<u8>, Vec<u8>) {
    let all = contacts(world, groups);
    let row = |i: usize| (0..groups.row(i).len()).map(|place| all[i].role_number(place)).collect::<Vec<u8>>();
    let far = all.iter().map(|contacts| u8::from(contacts.reaches_far())).collect();
    (by_entry(groups.rows(), slots(groups), row, 0), far)
}

fn contacts(world: &Epidemic, groups: &Ragged<u32>) -> Vec<Contacts> {
    groups.iter().enumerate().map(|(i, group)| Contacts::new(world, i, group)).collect()
}

fn slots(groups: &Ragged<u32>) -> usize {
    groups.iter().map(<[u32]>::len).max().unwrap_or(1)
}

/// [`Risk`](super::features::Risk) of all agents.
pub fn risk(world: &Epidemic, groups: &Ragged<u32>) -> WorldKernel {
    let (roles, far) = roles(world, groups);
    WorldKernel::new(concat!(include_str!("features.cu"), include_str!("policy_features.cu")), false)
        .constant("WORLD_POLICY_FEATURES", 2)
        .array("epidemic_seen_role", roles)
        .array("epidemic_sees_far", far)
}

/// [`Exposure`](super::features::Exposure) of all agents; and what each agent is to those in its group.
pub fn exposure(world: &Epidemic, groups: &Ragged<u32>) -> WorldKernel {
    let all = contacts(world, groups);
    let told = |i: usize| -> Vec<u8> {
        let role = |&sender: &u32| {
            // Groups are mutual.
            let place = groups.row(sender as usize).binary_search(&(i as u32)).unwrap_or(0);
            all[sender as usize].role_number(place)
        };
        groups.row(i).iter().map(role).collect()
    };
    WorldKernel::new(concat!(include_str!("features.cu"), include_str!("critic_features.cu")), true)
        .constant("WORLD_FEATURES", slots(groups))
        .repeating()
        .array("epidemic_role", roles(world, groups).0)
        .array("epidemic_told_role", by_entry(groups.rows(), slots(groups), told, 0))
}
