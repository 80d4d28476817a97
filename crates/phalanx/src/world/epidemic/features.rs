//! What learners can know of an epidemic beyond neighbours' states one by one: how many of them are infected.
//!
//! Everything here has a size that does not depend on the number of contacts, so that hubs cost no more than
//! others.

use super::Epidemic;
use super::law::{ACTIONS, INFECTED, PROTECT, RECOVERED, TREAT};
use crate::world::{Columns, Digit, Features, Moment, Term, View};

/// Levels of exposure: 0, 1, 2, and 3 or more infected contacts.
pub const LEVELS: usize = 4;

fn level(infected_contacts: usize) -> usize {
    infected_contacts.min(LEVELS - 1)
}

/// What an agent does that matters to what comes next: susceptible and unprotected, or protected; infected
/// and untreated, or treated; recovered, whatever it does.
fn conduct(state: u8, action: u8) -> usize {
    match state {
        INFECTED => 2 + usize::from(action == TREAT),
        RECOVERED => 4,
        _ => usize::from(action == PROTECT),
    }
}

/// Who the members of a group are to an agent.
#[derive(Debug)]
pub struct Contacts {
    own: usize,
    /// One per member; none if everybody else in the group is a contact, as within one hop.
    roles: Option<Box<[Role]>>,
    /// Whether there is anybody farther away.
    far: bool,
    members: usize,
    states: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Role {
    Own,
    Contact,
    Far,
}

impl Contacts {
    /// Of `agent`; contacts beyond its group are left out.
    pub fn new(world: &Epidemic, agent: usize, group: &[u32]) -> Self {
        let contacts = world.graph.neighbours(agent);
        let own = group.iter().position(|&m| m as usize == agent).unwrap_or(0);
        let role = |&member: &u32| match contacts.binary_search(&member) {
            _ if member as usize == agent => Role::Own,
            Ok(_) => Role::Contact,
            Err(_) => Role::Far,
        };
        let far = group.iter().any(|member| role(member) == Role::Far);
        Contacts {
            own,
            roles: far.then(|| group.iter().map(role).collect()),
            far,
            members: group.len(),
            states: world.chances.states(),
        }
    }

    fn role(&self, member: usize) -> Role {
        match &self.roles {
            Some(roles) => roles[member],
            None if member == self.own => Role::Own,
            None => Role::Contact,
        }
    }

    /// What the member at a place in the group is, in kernel text: 0 the agent itself, 1 a contact, 2 farther
    /// away.
    pub(super) fn role_number(&self, member: usize) -> u8 {
        match self.role(member) {
            Role::Own => 0,
            Role::Contact => 1,
            Role::Far => 2,
        }
    }

    /// Whether there is anybody farther away.
    pub(super) fn reaches_far(&self) -> bool {
        self.far
    }

    /// How many contacts there are, how many of them are infected, and how many of those who are farther
    /// away.
    fn infected(&self, states: &[u8]) -> [usize; 3] {
        let mut counts = [0; 3];
        for (member, &state) in states.iter().enumerate() {
            let infected = usize::from(state == INFECTED);
            match self.role(member) {
                Role::Own => {}
                Role::Contact => {
                    counts[0] += 1;
                    counts[1] += infected;
                }
                Role::Far => counts[2] += infected,
            }
        }
        counts
    }

    fn level(&self, states: &[u8]) -> usize {
        level(self.infected(states)[1])
    }
}

/// Indicators of the own state together with the level of exposure, `[S][LEVELS]`: all that decides an
/// agent's next state. Where the group reaches farther than the contacts, also of how many are infected
/// there, `[LEVELS]`.
#[derive(Debug)]
pub struct Risk(pub Contacts);

impl Features for Risk {
    fn count(&self) -> usize {
        (self.0.states + usize::from(self.0.far)) * LEVELS
    }

    fn active(&self, states: &[u8], _actions: &[u8], out: &mut Vec<u32>) {
        let [_, near, far] = self.0.infected(states);
        out.push((usize::from(states[self.0.own]) * LEVELS + level(near)) as u32);
        if self.0.far {
            out.push((self.0.states * LEVELS + level(far)) as u32);
        }
    }

    fn terms(&self) -> Option<Vec<Term>> {
        let Contacts { own, states, far, members, .. } = self.0;
        let own_state =
            Digit { stride: LEVELS, cap: states - 1, members: vec![own], values: (0..states).collect() };
        let infected = |role: Role| Digit {
            stride: 1,
            cap: LEVELS - 1,
            members: (0..members).filter(|&member| self.0.role(member) == role).collect(),
            values: (0..states).map(|state| usize::from(state == usize::from(INFECTED))).collect(),
        };
        let mut terms = vec![Term { first: 0, digits: vec![own_state, infected(Role::Contact)] }];
        if far {
            terms.push(Term { first: states * LEVELS, digits: vec![infected(Role::Far)] });
        }
        Some(terms)
    }
}

/// Indicators of the own [`conduct`] and the level of exposure, `[conduct][LEVELS]`; then for every contact
/// one of the own state and the contact's conduct, `[S][conduct]`, and for everybody farther away one of its
/// conduct. The latter are shared: their weights count as often as there are such agents.
#[derive(Debug)]
pub struct Exposure(pub Contacts);

impl Exposure {
    /// Kinds of conduct: two of the susceptible, two of the infected, one of the recovered.
    fn conducts(&self) -> usize {
        self.0.states + 2
    }

    /// The indicator that `member` makes active if it takes `action`.
    fn feature(&self, states: &[u8], level: usize, member: usize, action: u8) -> usize {
        let (conduct, kinds) = (conduct(states[member], action), self.conducts());
        match self.0.role(member) {
            Role::Own => conduct * LEVELS + level,
            Role::Contact => (LEVELS + usize::from(states[self.0.own])) * kinds + conduct,
            Role::Far => (LEVELS + self.0.states) * kinds + conduct,
        }
    }

    /// Adds the values at the alternatives of every member that comes with room for them.
    fn add_around<'a>(
        &self,
        weights: &[f64],
        Moment { states, actions }: Moment<'_>,
        members: impl IntoIterator<Item = (usize, &'a mut [f64])>,
    ) {
        let level = self.0.level(states);
        let weight = |member: usize, action: u8| weights[self.feature(states, level, member, action)];
        let value: f64 = actions.iter().enumerate().map(|(member, &action)| weight(member, action)).sum();
        for (member, out) in members {
            let rest = value - weight(member, actions[member]);
            for (b, out) in (0..).zip(out) {
                *out += rest + weight(member, b);
            }
        }
    }
}

impl Features for Exposure {
    fn count(&self) -> usize {
        self.conducts() * (LEVELS + self.0.states + usize::from(self.0.far))
    }

    fn active(&self, states: &[u8], actions: &[u8], out: &mut Vec<u32>) {
        let level = self.0.level(states);
        let each = actions.iter().enumerate();
        out.extend(each.map(|(m, &a)| self.feature(states, level, m, a) as u32));
    }

    fn add_alternatives(&self, weights: &[f64], moment: Moment<'_>, member: usize, out: &mut [f64]) {
        self.add_around(weights, moment, [(member, out)]);
    }

    fn add_all_alternatives(&self, weights: &[f64], moment: Moment<'_>, _: &[usize], out: &mut [f64]) {
        self.add_around(weights, moment, out.chunks_exact_mut(ACTIONS).enumerate());
    }

    /// Of all indicators that of the chooser alone changes: with the exposure if it is the agent itself, else
    /// with the agent's state.
    fn add_changes<'a>(
        &self,
        weights: &[f64],
        columns: &dyn Fn(usize) -> Columns<'a>,
        member: usize,
        alternatives: usize,
        out: &mut [f64],
    ) -> bool {
        let steps = out.len() / alternatives;
        let own = &columns(self.0.own).states[..steps];
        let states = &columns(member).states[..steps];
        let kinds = self.conducts();
        let mut add = |k: usize, first: usize, stride: usize| {
            for (b, out) in (0..).zip(&mut out[k * alternatives..][..alternatives]) {
                *out += weights[first + stride * conduct(states[k], b)];
            }
        };
        match self.0.role(member) {
            Role::Own => {
                let mut infected = vec![0usize; steps];
                for contact in (0..self.0.members).filter(|&m| self.0.role(m) == Role::Contact) {
                    let counts = infected.iter_mut().zip(columns(contact).states);
                    counts.for_each(|(count, &state)| *count += usize::from(state == INFECTED));
                }
                (0..steps).for_each(|k| add(k, level(infected[k]), LEVELS));
            }
            Role::Contact => {
                (0..steps).for_each(|k| add(k, (LEVELS + usize::from(own[k])) * kinds, 1));
            }
            Role::Far => (0..steps).for_each(|k| add(k, (LEVELS + self.0.states) * kinds, 1)),
        }
        true
    }
}

/// One row: the own state and the level of exposure, each as indicators, and the share of contacts that are
/// infected. Where the group reaches farther than the contacts, also the level there.
#[derive(Debug)]
pub struct Outlook(pub Contacts);

impl View for Outlook {
    fn shape(&self) -> [usize; 2] {
        [1, self.0.states + LEVELS + 1 + if self.0.far { LEVELS } else { 0 }]
    }

    fn write(&self, states: &[u8], _shared: &[f32], out: &mut [f32]) {
        let [contacts, near, far] = self.0.infected(states);
        let size = self.0.states;
        out.fill(0.0);
        out[usize::from(states[self.0.own])] = 1.0;
        out[size + level(near)] = 1.0;
        out[size + LEVELS] = near as f32 / contacts.max(1) as f32;
        if self.0.far {
            out[size + LEVELS + 1 + level(far)] = 1.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::law::ACTIONS;
    use super::*;
    use crate::base::stream::{Place, Purpose, Stream};
    use crate::graph::Graph;
    use crate::world::{EpidemicModel, EpidemicSpec, World};

    fn worlds() -> [Epidemic; 2] {
        [EpidemicModel::Sis, EpidemicModel::Sirs].map(|model| {
            let graph = Graph::scale_free(12, 2, 3).unwrap();
            Epidemic::new(&EpidemicSpec { model, ..EpidemicSpec::default() }, graph).unwrap()
        })
    }

    /// Alternatives worked out from what changes are those worked out one by one, within one hop and within
    /// two.
    #[test]
    fn alternatives_are_the_sums_of_active_features() {
        let place = Place { purpose: Purpose::Evaluation, iteration: 0, trajectory: 0 };
        let mut words = Stream::new(4).sequence(place, 0);
        for (world, kappa) in worlds().iter().flat_map(|world| [0, 1, 2].map(|kappa| (world, kappa))) {
            for (agent, group) in world.graph().neighbourhoods(kappa).iter().enumerate() {
                let features = Exposure(Contacts::new(world, agent, group));
                let weights: Vec<f64> = (0..features.count()).map(|_| words.normal()).collect();
                let mut random = |size: usize| (words.next_u32() as usize % size) as u8;
                let states: Vec<u8> = group.iter().map(|_| random(world.states(0))).collect();
                let mut actions: Vec<u8> = group.iter().map(|_| random(ACTIONS)).collect();
                let taken = actions.clone();
                let counts = vec![ACTIONS; group.len()];
                let mut all = vec![0.0; ACTIONS * group.len()];
                features.add_all_alternatives(
                    &weights,
                    Moment { states: &states, actions: &taken },
                    &counts,
                    &mut all,
                );
                for (member, all) in all.chunks_exact(ACTIONS).enumerate() {
                    let mut out = [0.0; ACTIONS];
                    features.add_alternatives(
                        &weights,
                        Moment { states: &states, actions: &taken },
                        member,
                        &mut out,
                    );
                    // One step is a trajectory too; what all alternatives share does not count.
                    let column = |m: usize| Columns { states: &states[m..=m], actions: &taken[m..=m] };
                    let mut changes = [0.25; ACTIONS];
                    assert!(features.add_changes(&weights, &column, member, ACTIONS, &mut changes));
                    for b in 0..ACTIONS {
                        assert!((out[b] - out[0] - (changes[b] - changes[0])).abs() < 1e-12);
                    }
                    for b in 0..ACTIONS {
                        let mut active = Vec::new();
                        actions[member] = b as u8;
                        features.active(&states, &actions, &mut active);
                        actions[member] = taken[member];
                        let sum: f64 = active.iter().map(|&x| weights[x as usize]).sum();
                        assert!((out[b] - sum).abs() < 1e-12 && (all[b] - sum).abs() < 1e-12);
                    }
                }
                assert_eq!(actions, taken);
            }
        }
    }

    #[test]
    fn contacts_and_others_are_counted_apart() {
        let graph = Graph::line(4).unwrap();
        let world = Epidemic::new(&EpidemicSpec::default(), graph).unwrap();
        let active = |group: &[u32], states: &[u8]| {
            let mut active = Vec::new();
            Risk(Contacts::new(&world, 1, group)).active(states, &[], &mut active);
            active
        };
        let levels = LEVELS as u32;
        assert_eq!(active(&[1], &[1]), [levels]);
        assert_eq!(active(&[0, 1, 2], &[1, 0, 0]), [1]);
        // Agent 1 within two hops sees all four, but 3 is no contact of it.
        assert_eq!(active(&[0, 1, 2, 3], &[1, 0, 0, 1]), [1, 2 * levels + 1]);
        assert_eq!(active(&[0, 1, 2, 3], &[1, 1, 1, 0]), [levels + 2, 2 * levels]);
    }

    /// Only what changes somebody's next state is told apart.
    #[test]
    fn what_is_done_in_vain_is_not_told_apart() {
        let kinds = |state| [0, 1, 2].map(|action| conduct(state, action));
        assert_eq!([kinds(0), kinds(1), kinds(2)], [[0, 1, 0], [2, 2, 3], [4, 4, 4]]);
    }

    #[test]
    fn levels_of_exposure() {
        assert_eq!([0, 1, 2, 3, 4, 1_000].map(level), [0, 1, 2, 3, 3, 3]);
    }

    #[test]
    fn what_a_network_sees() {
        let graph = Graph::star(4).unwrap();
        let spec = EpidemicSpec { model: EpidemicModel::Sirs, ..EpidemicSpec::default() };
        let world = Epidemic::new(&spec, graph).unwrap();
        let view = Outlook(Contacts::new(&world, 0, &[0, 1, 2, 3]));
        let mut row = vec![f32::NAN; 3 + LEVELS + 1];
        assert_eq!(view.shape(), [1, row.len()]);
        view.write(&[2, 1, 0, 1], &[], &mut row);
        assert_eq!(row, [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 2.0 / 3.0]);
        // Agent 1 has the centre for its only contact.
        let view = Outlook(Contacts::new(&world, 1, &[0, 1, 2, 3]));
        let mut row = vec![f32::NAN; 3 + LEVELS + 1 + LEVELS];
        assert_eq!(view.shape(), [1, row.len()]);
        view.write(&[0, 1, 0, 1], &[], &mut row);
        assert_eq!(row, [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
    }
}
