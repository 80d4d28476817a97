//! Views as tables, for those who cannot call them.

/// A view as a table: each of its numbers is a function of one member's state.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewTable {
    /// Of every number: the member, or none if it never changes.
    pub members: Vec<Option<u8>>,
    /// Of every number: what it is in every state of that member.
    pub values: Vec<Vec<f32>>,
}

/// Finds out of whom every number of a view tells, by trying: `write` writes `count` numbers for states. None
/// if some number tells of several members.
pub fn view_table(states: &[usize], count: usize, write: impl Fn(&[u8], &mut [f32])) -> Option<ViewTable> {
    if states.len() >= usize::from(u8::MAX) {
        return None;
    }
    let mut at = vec![0; states.len()];
    let mut usual = vec![0.0; count];
    write(&at, &mut usual);
    let mut table =
        ViewTable { members: vec![None; count], values: usual.iter().map(|&value| vec![value]).collect() };
    let mut seen = vec![0.0; count];
    for (m, &size) in states.iter().enumerate() {
        let mut of_member = vec![Vec::with_capacity(size); count];
        for state in 0..size {
            at[m] = state as u8;
            write(&at, &mut seen);
            of_member.iter_mut().zip(&seen).for_each(|(values, &value)| values.push(value));
        }
        at[m] = 0;
        for (k, values) in of_member.into_iter().enumerate() {
            if values.iter().any(|value| value.to_bits() != usual[k].to_bits()) {
                if table.members[k].is_some() {
                    return None;
                }
                table.members[k] = Some(m as u8);
                table.values[k] = values;
            }
        }
    }
    // Numbers that depend on several members only when these change together.
    for attempt in 1..=ATTEMPTS {
        for (m, state) in at.iter_mut().enumerate() {
            *state = ((attempt * 40_503 + m * 7_919 + attempt * m) % 65_537 % states[m]) as u8;
        }
        write(&at, &mut seen);
        let expected = |k: usize| table.values[k][table.members[k].map_or(0, |m| at[usize::from(m)].into())];
        if (0..count).any(|k| seen[k].to_bits() != expected(k).to_bits()) {
            return None;
        }
    }
    Some(table)
}

/// Joint states that are tried.
const ATTEMPTS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_one_member_are_found() {
        let write = |states: &[u8], out: &mut [f32]| {
            out.copy_from_slice(&[7.0, f32::from(states[1]), f32::from(states[0]).sqrt()]);
        };
        let table = view_table(&[3, 2], 3, write).unwrap();
        assert_eq!(table.members, [None, Some(1), Some(0)]);
        assert_eq!(table.values, [vec![7.0], vec![0.0, 1.0], vec![0.0, 1.0, 2f32.sqrt()]]);
    }

    #[test]
    fn numbers_of_several_members_are_refused() {
        let sum = |states: &[u8], out: &mut [f32]| out[0] = f32::from(states[0] + states[1]);
        assert_eq!(view_table(&[2, 2], 1, sum), None);
        // It changes only where both do.
        let product = |states: &[u8], out: &mut [f32]| out[0] = f32::from(states[0] * states[1]);
        assert_eq!(view_table(&[2, 2], 1, product), None);
    }
}
