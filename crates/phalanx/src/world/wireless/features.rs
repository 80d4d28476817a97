//! What learners can know of the wireless network beyond neighbours' states one by one: who is in whose way.

use super::constants::Constants;
use super::grid::ACTIONS;
use crate::world::{Columns, Digit, Features, Moment, Term, View};

/// Indicators over a group of users: the queue of every neighbour, and for every member the queue that it
/// sends from, if it is the only member to address its access point.
///
/// These see how actions interact. A critic that is a sum over single users cannot: its advantages would not
/// depend on what others do.
#[derive(Debug)]
pub struct Sends {
    members: Box<[Member]>,
    /// Of every access point: the places in the group of the four around it, or [`ABSENT`]. The first
    /// addresses it with action 4, the last with 1.
    points: Box<[[u8; 4]]>,
    count: usize,
}

#[derive(Debug)]
struct Member {
    /// First indicator of its queue; none for the agent itself, whose state is a generic feature.
    queue: Option<u32>,
    /// First indicator of its undisturbed sends.
    sends: u32,
    /// By action: the access point's number within the group, or [`NOWHERE`].
    targets: [u8; ACTIONS],
}

/// Access points that a group can number: enough for neighbourhoods of four hops.
const NOWHERE: u8 = 127;
const SLOTS: usize = NOWHERE as usize + 1;
/// One who is not in the group.
const ABSENT: u8 = u8::MAX;

impl Sends {
    /// Of `agent`'s group; none if it can address too many access points.
    pub fn new(constants: &Constants, agent: usize, group: &[u32]) -> Option<Self> {
        let grid = constants.grid;
        let mut points: Vec<usize> = Vec::new();
        let mut first = 0;
        let mut members = Vec::with_capacity(group.len());
        for &user in group {
            let user = user as usize;
            let mut targets = [NOWHERE; ACTIONS];
            for (action, target) in targets.iter_mut().enumerate() {
                let Some(y) = grid.access_point(user, action as u8) else { continue };
                let place = points.iter().position(|&other| other == y).unwrap_or_else(|| {
                    points.push(y);
                    points.len() - 1
                });
                *target = u8::try_from(place).ok().filter(|&place| place < NOWHERE)?;
            }
            let states = 1u32 << constants.deadline[user];
            let queue = (user != agent).then_some(first);
            let sends = first + if queue.is_some() { states } else { 0 };
            first = sends + states;
            members.push(Member { queue, sends, targets });
        }
        let place = |user: usize| group.iter().position(|&m| m as usize == user);
        let place = |user: usize| place(user).and_then(|place| u8::try_from(place).ok()).unwrap_or(ABSENT);
        let points = points.iter().map(|&y| grid.around(y).map(|(user, _)| place(user))).collect();
        Some(Sends { members: members.into(), points, count: first as usize })
    }

    /// First indicator of the undisturbed sends of the member at a place in the group.
    pub(super) fn sends_of(&self, place: usize) -> u32 {
        self.members[place].sends
    }

    /// Value of a member's undisturbed send: from an empty queue nothing is sent.
    fn send(&self, weights: &[f64], states: &[u8], member: usize) -> f64 {
        let queue = usize::from(states[member]);
        if queue == 0 { 0.0 } else { weights[self.members[member].sends as usize + queue] }
    }

    /// How many members address each access point.
    fn loads(&self, actions: &[u8]) -> [u8; SLOTS] {
        let mut loads = [0u8; SLOTS];
        for (member, &action) in self.members.iter().zip(actions) {
            loads[usize::from(member.targets[usize::from(action)])] += 1;
        }
        // Nobody sends to nowhere, and nobody does so alone.
        loads[usize::from(NOWHERE)] = 2;
        loads
    }
}

impl Features for Sends {
    fn count(&self) -> usize {
        self.count
    }

    fn active(&self, states: &[u8], actions: &[u8], out: &mut Vec<u32>) {
        let loads = self.loads(actions);
        for ((member, &queue), &action) in self.members.iter().zip(states).zip(actions) {
            out.extend(member.queue.map(|first| first + u32::from(queue)));
            let target = member.targets[usize::from(action)];
            if queue != 0 && loads[usize::from(target)] == 1 {
                out.push(member.sends + u32::from(queue));
            }
        }
    }

    /// Only the member's own send changes, and that of the one whose access point it joins.
    fn add_alternatives(&self, weights: &[f64], moment: Moment<'_>, chooser: usize, out: &mut [f64]) {
        let Moment { states, actions } = moment;
        let mut loads = self.loads(actions);
        let target = usize::from(self.members[chooser].targets[usize::from(actions[chooser])]);
        loads[target] -= u8::from(target != usize::from(NOWHERE));
        let mut common = 0.0;
        // The only one at an access point, who would lose its send.
        let mut who = [0u8; SLOTS];
        for (m, member) in self.members.iter().enumerate() {
            common += member.queue.map_or(0.0, |first| weights[first as usize + usize::from(states[m])]);
            let target = usize::from(member.targets[usize::from(actions[m])]);
            if m != chooser && loads[target] == 1 {
                who[target] = m as u8;
                common += self.send(weights, states, m);
            }
        }
        for (out, &target) in out.iter_mut().zip(&self.members[chooser].targets) {
            let change = match loads[usize::from(target)] {
                0 => self.send(weights, states, chooser),
                1 => -self.send(weights, states, who[usize::from(target)].into()),
                _ => 0.0,
            };
            *out += common + change;
        }
    }

    /// Everybody's sends are looked at once; then each member in turn is taken away from its access point.
    fn add_all_alternatives(&self, weights: &[f64], moment: Moment<'_>, _: &[usize], out: &mut [f64]) {
        let Moment { states, actions } = moment;
        let loads = self.loads(actions);
        // Of every access point: the value of all its sends if it has one sender, and the sum of senders'
        // numbers, which tells the other one of two.
        let (mut whose, mut common) = ([0u16; SLOTS], 0.0);
        let send = |m: usize| self.send(weights, states, m);
        for (m, member) in self.members.iter().enumerate() {
            common += member.queue.map_or(0.0, |first| weights[first as usize + usize::from(states[m])]);
            let target = usize::from(member.targets[usize::from(actions[m])]);
            whose[target] += m as u16;
            common += if loads[target] == 1 { send(m) } else { 0.0 };
        }
        for (chooser, out) in out.chunks_exact_mut(ACTIONS).enumerate() {
            let own = &self.members[chooser];
            let left = usize::from(own.targets[usize::from(actions[chooser])]);
            let value = send(chooser);
            // Without the chooser: its own send is gone, and one that it disturbed alone gets through.
            let without = if left == usize::from(NOWHERE) {
                common
            } else {
                match loads[left] {
                    1 => common - value,
                    2 => common + send(usize::from(whose[left]) - chooser),
                    _ => common,
                }
            };
            for (out, &target) in out.iter_mut().zip(&own.targets) {
                let at = usize::from(target);
                let change = if target == NOWHERE {
                    0.0
                } else if at == left {
                    match loads[at] {
                        1 => value,
                        2 => -send(usize::from(whose[at]) - chooser),
                        _ => 0.0,
                    }
                } else {
                    match loads[at] {
                        0 => value,
                        1 => -send(usize::from(whose[at])),
                        _ => 0.0,
                    }
                };
                *out += without + change;
            }
        }
    }

    /// Only the sends at the chooser's access points change: its own if nobody is there, that of the one who
    /// is there if it is one.
    fn add_changes<'a>(
        &self,
        weights: &[f64],
        columns: &dyn Fn(usize) -> Columns<'a>,
        chooser: usize,
        _alternatives: usize,
        out: &mut [f64],
    ) -> bool {
        let own = &self.members[chooser];
        let own_sends = &weights[own.sends as usize..];
        let queues = &columns(chooser).states[..out.len() / ACTIONS];
        let nobody = Rival { states: queues, actions: queues, action: ABSENT, sends: own_sends };
        for (choice, &point) in own.targets.iter().enumerate().filter(|(_, point)| **point != NOWHERE) {
            let mut rivals = [nobody; 3];
            let others = self.points[usize::from(point)].iter().zip([4, 3, 2, 1]);
            let others = others.filter(|&(&m, _)| m != ABSENT && usize::from(m) != chooser);
            for (rival, (&m, action)) in rivals.iter_mut().zip(others) {
                let Columns { states, actions } = columns(usize::from(m));
                let sends = &weights[self.members[usize::from(m)].sends as usize..];
                *rival = Rival {
                    states: &states[..queues.len()],
                    actions: &actions[..queues.len()],
                    action,
                    sends,
                };
            }
            for (k, (out, &queue)) in out.as_chunks_mut::<ACTIONS>().0.iter_mut().zip(queues).enumerate() {
                let (mut count, mut lost) = (0, 0.0);
                for rival in &rivals {
                    let is_there = rival.actions[k] == rival.action;
                    count += u32::from(is_there);
                    lost += send_if(is_there, rival.sends, rival.states[k]);
                }
                out[choice] += send_if(count == 0, own_sends, queue) - if count == 1 { lost } else { 0.0 };
            }
        }
        true
    }
}

/// One who may be in the way at an access point.
#[derive(Clone, Copy)]
struct Rival<'a, 'w> {
    states: &'a [u8],
    actions: &'a [u8],
    /// By which it addresses the access point.
    action: u8,
    /// Weights of its undisturbed sends, by queue.
    sends: &'w [f64],
}

/// Value of a send from a queue, if there is one: from an empty queue nothing is sent. Without branches,
/// which would be guessed wrongly half of the time.
#[inline(always)]
fn send_if(sends: bool, weights: &[f64], queue: u8) -> f64 {
    let mask = u64::from(sends & (queue != 0)).wrapping_neg();
    f64::from_bits(weights[usize::from(queue)].to_bits() & mask)
}

/// Indicators of a user's own queue together with those of all its rivals for one access point, for each of
/// its access points: who should give way to whom depends on all four at once.
#[derive(Debug)]
pub struct Rivals {
    /// Place of the agent in its group.
    own: usize,
    /// Places of the rivals within the group, by access point, with the first indicator of it.
    points: Vec<(u32, Vec<usize>)>,
    count: usize,
    /// The most states that a member has.
    states: usize,
}

/// What matters of a queue: empty, something due now, or later only.
const URGENCIES: usize = 3;

fn urgency(queue: u8) -> usize {
    match (queue, queue & 1) {
        (0, _) => 0,
        (_, 1) => 1,
        _ => 2,
    }
}

impl Rivals {
    /// Of `agent`; rivals beyond its group are left out.
    pub fn new(constants: &Constants, agent: usize, group: &[u32]) -> Self {
        let grid = constants.grid;
        let place = |user: usize| group.iter().position(|&m| m as usize == user);
        let mut first = 0;
        let mut points = Vec::new();
        for action in 1..ACTIONS as u8 {
            let Some(rivals) = grid.contenders(agent, action) else { continue };
            let rivals: Vec<usize> = rivals.iter().filter_map(|&(user, _)| place(user)).collect();
            let size = URGENCIES.pow(1 + rivals.len() as u32) as u32;
            points.push((first, rivals));
            first += size;
        }
        let states = group.iter().map(|&user| 1 << constants.deadline[user as usize]).max().unwrap_or(1);
        Rivals { own: place(agent).unwrap_or(0), points, count: first as usize, states }
    }

    /// Of every access point the first indicator, and the places of the rivals in the group.
    pub(super) fn points(&self) -> &[(u32, Vec<usize>)] {
        &self.points
    }
}

impl Features for Rivals {
    fn count(&self) -> usize {
        self.count
    }

    fn active(&self, states: &[u8], _actions: &[u8], out: &mut Vec<u32>) {
        let own = urgency(states[self.own]);
        out.extend(self.points.iter().map(|(first, rivals)| {
            let joint = rivals.iter().fold(own, |joint, &m| joint * URGENCIES + urgency(states[m]));
            first + joint as u32
        }));
    }

    /// Urgencies are the digits of a number in base 3, the own one first.
    fn terms(&self) -> Option<Vec<Term>> {
        let values: Vec<usize> = (0..self.states).map(|queue| urgency(queue as u8)).collect();
        let term = |(first, rivals): &(u32, Vec<usize>)| {
            let members = std::iter::once(self.own).chain(rivals.iter().copied());
            let digit = |(place, member): (usize, usize)| Digit {
                stride: URGENCIES.pow((rivals.len() - place) as u32),
                cap: URGENCIES - 1,
                members: vec![member],
                values: values.clone(),
            };
            Term { first: *first as usize, digits: members.enumerate().map(digit).collect() }
        };
        Some(self.points.iter().map(term).collect())
    }
}

/// Queues as the paper's neural networks see them: one row for each number of steps left, with one entry for
/// each user of the (2κ + 1)² window around the agent; 0 beyond the edge.
#[derive(Debug)]
pub struct Window {
    rows: usize,
    width: usize,
    /// Place of each member of the group in the window.
    places: Vec<usize>,
}

impl Window {
    /// Of `agent`'s group, which must lie within a window around it.
    pub fn new(constants: &Constants, agent: usize, group: &[u32]) -> Self {
        let columns = constants.grid.columns;
        let at = |user: usize| [user / columns, user % columns];
        let [row, column] = at(agent);
        let apart = |&user: &u32| {
            let [r, c] = at(user as usize);
            r.abs_diff(row).max(c.abs_diff(column))
        };
        let reach = group.iter().map(apart).max().unwrap_or(0);
        // Where nobody is as far away as the radius, the window ends with the farthest.
        let side = 2 * reach + 1;
        let place = |&user: &u32| {
            let [r, c] = at(user as usize);
            (r + reach - row) * side + c + reach - column
        };
        let rows = group.iter().map(|&user| constants.deadline[user as usize]).max().unwrap_or(1);
        Window { rows: rows.into(), width: side * side, places: group.iter().map(place).collect() }
    }
}

impl View for Window {
    fn shape(&self) -> [usize; 2] {
        [self.rows, self.width]
    }

    fn write(&self, states: &[u8], _shared: &[f32], out: &mut [f32]) {
        out.fill(0.0);
        for (row, out) in out.chunks_exact_mut(self.width).enumerate() {
            for (&queue, &place) in states.iter().zip(&self.places) {
                out[place] = f32::from(queue >> row & 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::stream::{Place, Purpose, Stream};
    use crate::world::{Wireless, WirelessSpec, World};

    /// Alternatives worked out from what changes are those worked out one by one.
    #[test]
    fn alternatives_are_the_sums_of_active_features() {
        let world = Wireless::new(&WirelessSpec { rows: 4, columns: 3, ..WirelessSpec::default() }).unwrap();
        let place = Place { purpose: Purpose::Evaluation, iteration: 0, trajectory: 0 };
        let mut words = Stream::new(4).sequence(place, 0);
        for agent in 0..12 {
            let group: Vec<u32> = world.graph().neighbourhoods(1).row(agent).to_vec();
            let sends = Sends::new(&world.constants, agent, &group).unwrap();
            let weights: Vec<f64> = (0..sends.count()).map(|_| words.normal()).collect();
            for _ in 0..200 {
                let states: Vec<u8> = group.iter().map(|_| (words.next_u32() % 4) as u8).collect();
                let mut actions: Vec<u8> = group.iter().map(|_| (words.next_u32() % 5) as u8).collect();
                let chooser = words.next_u32() as usize % group.len();
                let mut fast = [0.25; ACTIONS];
                let before = actions.clone();
                sends.add_alternatives(
                    &weights,
                    Moment { states: &states, actions: &before },
                    chooser,
                    &mut fast,
                );
                assert_eq!(actions, before);
                let mut all = vec![0.25; group.len() * ACTIONS];
                let counts = vec![ACTIONS; group.len()];
                sends.add_all_alternatives(
                    &weights,
                    Moment { states: &states, actions: &before },
                    &counts,
                    &mut all,
                );
                // One step is a trajectory too; what all alternatives share does not count.
                let column = |m: usize| Columns { states: &states[m..=m], actions: &before[m..=m] };
                let mut changes = [0.25; ACTIONS];
                assert!(sends.add_changes(&weights, &column, chooser, ACTIONS, &mut changes));
                for (value, change) in fast.iter().zip(changes) {
                    assert!((value - fast[0] - (change - changes[0])).abs() < 1e-12, "agent {agent}");
                }
                for (fast, all) in fast.iter().zip(&all[chooser * ACTIONS..]) {
                    assert!((fast - all).abs() < 1e-12, "agent {agent}, member {chooser}");
                }
                for (action, fast) in fast.into_iter().enumerate() {
                    actions[chooser] = action as u8;
                    let mut active = Vec::new();
                    sends.active(&states, &actions, &mut active);
                    let slow: f64 = active.iter().map(|&x| weights[x as usize]).sum();
                    assert!((fast - 0.25 - slow).abs() < 1e-12, "agent {agent}, action {action}");
                }
            }
        }
    }

    #[test]
    fn sends_by_hand() {
        // Users 0 1 / 2 3 share one access point; 0 reaches it with 4, 1 with 3, 2 with 2, 3 with 1.
        let world = Wireless::new(&WirelessSpec { rows: 2, columns: 2, ..WirelessSpec::default() }).unwrap();
        let sends = Sends::new(&world.constants, 0, &[0, 1, 2, 3]).unwrap();
        let active = |states: [u8; 4], actions: [u8; 4]| {
            let mut out = Vec::new();
            sends.active(&states, &actions, &mut out);
            out
        };
        // Own sends 0–3; then 4–7 queue of user 1, 8–11 its sends, 12–15 queue of user 2, …
        assert_eq!(sends.count(), 28);
        assert_eq!(active([2, 0, 3, 1], [4, 0, 0, 0]), [2, 4, 15, 21]);
        assert_eq!(active([2, 1, 3, 1], [4, 3, 0, 0]), [5, 15, 21]);
        assert_eq!(active([2, 1, 3, 1], [1, 3, 0, 0]), [5, 9, 15, 21]);
        assert_eq!(active([0, 1, 3, 1], [4, 0, 0, 0]), [5, 15, 21]);
    }

    #[test]
    fn rivals_by_hand() {
        // User 0 of a 2 × 3 grid reaches one access point with three rivals, user 1 two of them.
        let world = Wireless::new(&WirelessSpec { rows: 2, columns: 3, ..WirelessSpec::default() }).unwrap();
        let group = [0, 1, 2, 3, 4, 5];
        let active = |agent: usize, states: [u8; 6]| {
            let rivals = Rivals::new(&world.constants, agent, &group);
            let mut out = Vec::new();
            rivals.active(&states, &[], &mut out);
            (rivals.count(), out)
        };
        // Queues 0 1 2 / 3 0 1 are empty, due, later / due, empty, due.
        let states = [0, 1, 2, 3, 0, 1];
        // In base 3: 0110 for user 0; 1010 and 1201 for user 1.
        assert_eq!(active(0, states), (81, vec![9 + 3]));
        assert_eq!(active(1, states), (162, vec![27 + 3, 81 + 27 + 2 * 9 + 1]));
        // Alone, nobody is known to be in the way.
        assert_eq!(Rivals::new(&world.constants, 1, &[1]).count(), 6);
    }

    #[test]
    fn a_window_shows_bits_where_users_stand() {
        let world = Wireless::new(&WirelessSpec { rows: 3, columns: 4, ..WirelessSpec::default() }).unwrap();
        // Around user 4, at the left edge: nobody in the first column of the window.
        let group = world.graph().neighbourhoods(1);
        assert_eq!(group.row(4), [0, 1, 4, 5, 8, 9]);
        let window = Window::new(&world.constants, 4, group.row(4));
        assert_eq!(window.shape(), [2, 9]);
        let mut out = [9.0; 18];
        window.write(&[1, 2, 3, 0, 2, 1], &[], &mut out);
        let soon = [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        let later = [0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0];
        assert_eq!((&out[..9], &out[9..]), (&soon[..], &later[..]));
    }
}
