//! Who is how many hops away.

use std::collections::HashSet;

use crate::policy::Policies;

/// The agents at most `most` hops from `start`, ascending, with their hops.
pub fn within(policies: &Policies, start: u32, most: usize) -> Vec<(u32, u8)> {
    let mut found = vec![(start, 0_u8)];
    let mut seen = HashSet::from([start]);
    let mut next = 0;
    while let Some(&(agent, hops)) = found.get(next) {
        next += 1;
        if usize::from(hops) == most {
            continue;
        }
        for &other in policies.agents.get(agent as usize).map_or(&[][..], |policy| &policy.neighbours) {
            if seen.insert(other) {
                found.push((other, hops + 1));
            }
        }
    }
    found.sort_unstable();
    found
}
