//! The world against the rules in words, and against a simulator that was written from them.

use proptest::prelude::*;

use super::*;
use crate::base::sampler::outcome;
use crate::base::stream::Purpose;
use crate::world::check;

fn wireless(text: &str) -> Wireless {
    Wireless::new(&toml::from_str(text).unwrap()).unwrap()
}

/// Constants that differ from user to user.
const UNEQUAL: &str = "rows = 3\ncolumns = 4\ndeadline = [1, 2, 3, 1, 2, 3, 1, 2, 8, 1, 2, 3]\nseed = 3\n\
                       arrival = { low = 0, high = 1 }\nsuccess = { low = 0, high = 1 }";

#[test]
fn the_contract_holds() {
    for text in [
        "",
        "rows = 2\ncolumns = 2",
        "rows = 2\ncolumns = 7\ndeadline = 1",
        "rows = 6\ncolumns = 2\ndeadline = 8",
        "rows = 4\ncolumns = 3\narrival = 0\nsuccess = 1",
        "rows = 3\ncolumns = 3\narrival = 1\nsuccess = 0",
        "rows = 3\ncolumns = 3\narrival = 0.3\nsuccess = 1e-18",
        UNEQUAL,
    ] {
        check(&wireless(text)).unwrap_or_else(|broken| panic!("{text}: {broken}"));
    }
    let rewired = Wireless { graph: Graph::ring(9).unwrap(), ..wireless("rows = 3\ncolumns = 3") };
    assert_eq!(rewired.graph().neighbours(0), [1, 8]);
    check(&rewired).unwrap();
}

/// Neighbours within κ hops are the window of (2κ + 1)² users.
#[test]
fn links_are_shared_access_points() {
    let world = wireless("rows = 5\ncolumns = 7");
    for (kappa, centre, size) in [(1, 3 + 2 * 7, 9), (2, 3 + 2 * 7, 25), (1, 0, 4), (1, 3, 6), (2, 6, 9)] {
        assert_eq!(world.graph().neighbourhoods(kappa).row(centre).len(), size, "{kappa} {centre}");
    }
    for i in 0..35 {
        let others: Vec<u32> = world.parents(i).into_iter().filter(|&j| j as usize != i).collect();
        assert_eq!(world.graph().neighbours(i), others);
    }
}

/// A queue as a list of the steps that its packets have left, and the rules word for word.
struct Rules<'a> {
    world: &'a Wireless,
}

impl Rules<'_> {
    fn packets(queue: u8) -> Vec<usize> {
        (0..8).filter(|k| queue >> k & 1 == 1).map(|k| k + 1).collect()
    }

    /// The corner of the grid of access points that an action means, if it is inside.
    fn point(&self, user: usize, action: u8) -> Option<(isize, isize)> {
        let (row, column) = (
            (user / self.world.constants.grid.columns) as isize,
            (user % self.world.constants.grid.columns) as isize,
        );
        let point = match action {
            1 => (row - 1, column - 1),
            2 => (row - 1, column),
            3 => (row, column - 1),
            4 => (row, column),
            _ => return None,
        };
        let inside = point.0 >= 0
            && point.1 >= 0
            && point.0 < self.world.constants.grid.rows as isize - 1
            && point.1 < self.world.constants.grid.columns as isize - 1;
        inside.then_some(point)
    }

    /// The probability that a packet of `user` gets through.
    fn odds(&self, user: usize, queue: u8, actions: &[u8]) -> f64 {
        let Some(point) = self.point(user, actions[user]) else { return 0.0 };
        let others = (0..actions.len()).filter(|&j| j != user);
        if queue == 0 || others.into_iter().any(|j| self.point(j, actions[j]) == Some(point)) {
            return 0.0;
        }
        self.world.constants.success
            [point.0 as usize * (self.world.constants.grid.columns - 1) + point.1 as usize]
    }

    fn next(&self, user: usize, queue: u8, sent: bool, arrives: bool) -> u8 {
        let mut packets = Self::packets(queue);
        if sent {
            packets.remove(0);
        }
        let mut left: Vec<usize> = packets.into_iter().filter(|&k| k > 1).map(|k| k - 1).collect();
        if arrives {
            left.push(usize::from(self.world.constants.deadline[user]));
        }
        left.into_iter().map(|k| 1 << (k - 1)).sum()
    }

    fn law(&self, user: usize, queue: u8, actions: &[u8]) -> Vec<f64> {
        let (p, q) = (self.world.constants.arrival[user], self.odds(user, queue, actions));
        let mut law = vec![0.0; self.world.states(user)];
        for (sent, of_sent) in [(false, 1.0 - q), (true, q)] {
            if sent && queue == 0 {
                continue;
            }
            for (arrives, of_arrival) in [(false, 1.0 - p), (true, p)] {
                law[usize::from(self.next(user, queue, sent, arrives))] += of_sent * of_arrival;
            }
        }
        law
    }
}

/// Every joint action of small grids, every own state.
#[test]
fn laws_are_those_of_the_rules() {
    for text in [
        "rows = 2\ncolumns = 2\ndeadline = [1, 2, 3, 4]\nseed = 1\narrival = { low = 0, high = 1 }\nsuccess = [0.7]",
        "rows = 2\ncolumns = 3\ndeadline = [3, 2, 1, 1, 2, 3]\narrival = 0.25\nsuccess = [0.8, 0.3]",
        "rows = 3\ncolumns = 2\ndeadline = 2\narrival = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]\nsuccess = [1, 0.4]",
    ] {
        let world = wireless(text);
        let rules = Rules { world: &world };
        let n = world.graph().agents();
        for number in 0..5usize.pow(n as u32) {
            let actions: Vec<u8> = (0..n).map(|i| (number / 5usize.pow(i as u32) % 5) as u8).collect();
            for user in 0..n {
                let parents = world.parents(user);
                let seen: Vec<u8> = parents.iter().map(|&p| actions[p as usize]).collect();
                let mut states = vec![1; parents.len()];
                let mut law = vec![f64::NAN; world.states(user)];
                for queue in 0..world.states(user) as u8 {
                    states[parents.iter().position(|&p| p as usize == user).unwrap()] = queue;
                    world.transition(user, &states, &seen, &mut law);
                    for (found, expected) in law.iter().zip(rules.law(user, queue, &actions)) {
                        assert!(
                            (found - expected).abs() < 1e-14,
                            "user {user}, {queue}, {actions:?}: {law:?}"
                        );
                    }
                }
            }
        }
    }
}

/// Where a user's reward changes as the draw grows, with its next state: at most the ends of four intervals.
fn pieces(world: &Wireless, user: usize, states: &[u8], actions: &[u8]) -> Vec<(u32, u8, bool)> {
    let of_user = &world.users[user];
    let [first, second] = of_user.through[usize::from(actions[user])];
    let mut begins = vec![0, first, of_user.arrival, second];
    begins.sort_unstable();
    begins.dedup();
    begins.retain(|&begin| begin < DRAW_RANGE);
    let mut found = Vec::new();
    for (k, &begin) in begins.iter().enumerate() {
        let end = begins.get(k + 1).copied().unwrap_or(DRAW_RANGE);
        let outcomes = [begin, begin + (end - begin) / 2, end - 1].map(|draw| {
            let (mut next, mut reward) = ([255], [f32::NAN]);
            world.step(user..user + 1, states, actions, &[draw], &mut next);
            world.sample_rewards(REWARD, user..user + 1, states, actions, &[draw], &mut reward);
            assert!(reward == [0.0] || reward == [1.0]);
            (next[0], reward == [1.0])
        });
        assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]));
        found.push((end - begin, outcomes[0].0, outcomes[0].1));
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Next state and reward have the joint law of the rules, to 2⁻³⁰; the next state is the inverse
    /// cumulative law at every threshold.
    #[test]
    fn one_draw_decides_state_and_reward(
        (rows, columns) in (2usize..5, 2usize..5),
        seed in 0u64..1000,
        deadline in 1usize..=8,
        words in prop::collection::vec((any::<u8>(), 0u8..5), 16),
        draw in 0..DRAW_RANGE,
    ) {
        let any = Probabilities::Random { low: 0.0, high: 1.0 };
        let spec = WirelessSpec {
            rows, columns, deadline: Deadlines::Same(deadline), seed, arrival: any.clone(), success: any,
        };
        let world = Wireless::new(&spec).unwrap();
        let n = rows * columns;
        let states: Vec<u8> = words[..n].iter().map(|(word, _)| (usize::from(*word) % (1 << deadline)) as u8).collect();
        let actions: Vec<u8> = words[..n].iter().map(|(_, action)| *action).collect();
        let rules = Rules { world: &world };
        for user in 0..n {
            let (p, q) = (world.constants.arrival[user], rules.odds(user, states[user], &actions));
            let mut share = vec![[0.0; 2]; 1 << deadline];
            for (length, next, reward) in pieces(&world, user, &states, &actions) {
                share[usize::from(next)][usize::from(reward)] += f64::from(length) / f64::from(DRAW_RANGE);
            }
            let mut expected = vec![[0.0; 2]; 1 << deadline];
            for (sent, of_sent) in [(false, 1.0 - q), (true, q)] {
                if sent && q == 0.0 {
                    continue;
                }
                for (arrives, of_arrival) in [(false, 1.0 - p), (true, p)] {
                    let next = rules.next(user, states[user], sent, arrives);
                    expected[usize::from(next)][usize::from(sent)] += of_sent * of_arrival;
                }
            }
            for (found, wanted) in share.iter().flatten().zip(expected.iter().flatten()) {
                prop_assert!((found - wanted).abs() < 1e-9, "user {user}: {share:?}, but {expected:?}");
            }
            let parents = world.parents(user);
            let pick = |joint: &[u8]| parents.iter().map(|&p| joint[p as usize]).collect::<Vec<_>>();
            let mut law = vec![0.0; 1 << deadline];
            world.transition(user, &pick(&states), &pick(&actions), &mut law);
            let mut thresholds = vec![0; law.len() - 1];
            crate::base::sampler::write_thresholds(&law, &mut thresholds);
            let around = thresholds.iter().flat_map(|&t| [t.saturating_sub(1), t.min(DRAW_RANGE - 1)]);
            for draw in around.chain([0, draw, DRAW_RANGE - 1]) {
                let mut next = [255];
                world.step(user..user + 1, &states, &actions, &[draw], &mut next);
                prop_assert_eq!(next[0], outcome(&thresholds, draw), "user {} at {}", user, draw);
            }
        }
    }
}

#[test]
fn edge_users_may_choose_what_is_not_there() {
    let world = wireless("rows = 2\ncolumns = 3\nsuccess = 1\narrival = 0");
    let rewards = |actions: &[u8]| {
        let mut rewards = [f32::NAN; 6];
        world.sample_rewards(REWARD, 0..6, &[1, 2, 3, 1, 2, 0], actions, &[0; 6], &mut rewards);
        rewards
    };
    // Users 0 and 3 reach access point 0, 2 and 5 access point 1, 1 and 4 both.
    assert_eq!(rewards(&[4, 1, 2, 3, 2, 4]), [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    assert_eq!(rewards(&[4, 3, 0, 0, 0, 0]), [0.0; 6]);
    // User 5 has nothing to send, and is in the way all the same.
    assert_eq!(rewards(&[0, 0, 3, 2, 0, 1]), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(rewards(&[0, 0, 3, 2, 0, 2]), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    let send = world.channels()[1].tables().unwrap();
    assert_eq!(send.row(1), [0.0, 0.0, 0.0, 1.0, 1.0].repeat(4));
    assert_eq!(send.row(3), [0.0, 0.0, 1.0, 0.0, 0.0].repeat(4));
}

#[test]
fn contenders_are_the_three_others() {
    let world = wireless("rows = 3\ncolumns = 3");
    assert_eq!(world.constants.grid.contenders(4, 1), Some([(0, 4), (1, 3), (3, 2)]));
    assert_eq!(world.constants.grid.contenders(4, 4), Some([(5, 3), (7, 2), (8, 1)]));
    assert_eq!(
        (
            world.constants.grid.contenders(4, 0),
            world.constants.grid.contenders(2, 4),
            world.constants.grid.contenders(2, 9)
        ),
        (None, None, None)
    );
}

/// Rewards of a user change with nobody but its neighbours' actions, and do not depend on how agents are
/// split.
#[test]
fn rewards_are_local() {
    let world = wireless("rows = 4\ncolumns = 5\nsuccess = 0.9\ndeadline = 3");
    let n = 20;
    let mut words =
        Stream::new(5).sequence(Place { purpose: Purpose::EvaluationStart, iteration: 0, trajectory: 0 }, 0);
    let mut earned = 0.0;
    for _ in 0..300 {
        let mut joint = |size: u32| (0..n).map(|_| (words.next_u32() % size) as u8).collect::<Vec<u8>>();
        let (states, actions, others_s, others_a) = (joint(8), joint(5), joint(8), joint(5));
        let draws: Vec<u32> = (0..n).map(|_| words.next_u32() >> 1).collect();
        let mut all = vec![f32::NAN; n];
        world.sample_rewards(REWARD, 0..n, &states, &actions, &draws, &mut all);
        for i in 0..n {
            let near: Vec<u32> = world.parents(i);
            let mix = |own: &[u8], far: &[u8], keep: &dyn Fn(u32) -> bool| -> Vec<u8> {
                (0..n).map(|j| if keep(j as u32) { own[j] } else { far[j] }).collect()
            };
            let s = mix(&states, &others_s, &|j| j as usize == i);
            let a = mix(&actions, &others_a, &|j| near.contains(&j));
            let mut alone = [f32::NAN];
            world.sample_rewards(REWARD, i..i + 1, &s, &a, &draws[i..=i], &mut alone);
            assert_eq!(alone[0], all[i], "user {i}");
            earned += alone[0];
        }
    }
    assert!(earned > 100.0, "{earned}");
}

const HORIZON: usize = 12;

/// Mean return of an agent over an episode, by this world under a policy over own states.
fn simulated(world: &Wireless, policy: &Ragged<f64>, episodes: u32) -> f64 {
    let n = world.graph().agents();
    let stream = Stream::new(11);
    let (mut states, mut next) = (vec![0; n], vec![0; n]);
    let (mut actions, mut rewards) = (vec![0; n], vec![0.0; n]);
    let mut draws: [Vec<u32>; 4] = std::array::from_fn(|_| vec![0; n.next_multiple_of(16)]);
    let mut total = 0.0;
    for trajectory in 0..episodes {
        let place = Place { purpose: Purpose::Evaluation, iteration: 0, trajectory };
        world.start(&stream, Place { purpose: Purpose::EvaluationStart, ..place }, 0..n, &mut states);
        for step in 0..HORIZON {
            if step % 2 == 0 {
                let [a, b, c, d] = &mut draws;
                stream.step_pair(place, step as u32 / 2, 0, [a, b, c, d]);
            }
            let (act, move_on) = (&draws[step % 2 * 2], &draws[step % 2 * 2 + 1][..n]);
            for i in 0..n {
                let law = &policy.row(i)[usize::from(states[i]) * ACTIONS..][..ACTIONS];
                let mut left = f64::from(act[i]) / f64::from(DRAW_RANGE);
                let chosen = law.iter().position(|p| {
                    left -= p;
                    left < 0.0
                });
                actions[i] = chosen.unwrap_or(ACTIONS - 1) as u8;
            }
            world.step(0..n, &states, &actions, move_on, &mut next);
            world.sample_rewards(REWARD, 0..n, &states, &actions, move_on, &mut rewards);
            total += rewards.iter().map(|&r| f64::from(r)).sum::<f64>();
            std::mem::swap(&mut states, &mut next);
        }
    }
    total / f64::from(episodes) / n as f64
}

/// The same from the rules in words: queues of packets, lists of senders, numbers in sequence.
fn by_the_rules(world: &Wireless, plan: impl Fn(usize, &mut dyn FnMut() -> f64) -> u8, episodes: u32) -> f64 {
    let n = world.graph().agents();
    let mut words =
        Stream::new(99).sequence(Place { purpose: Purpose::Batch, iteration: 0, trajectory: 0 }, 0);
    let mut uniform = move || f64::from(words.next_u32()) / 4_294_967_296.0;
    let rules = Rules { world };
    let mut delivered = 0u64;
    for _ in 0..episodes {
        let mut queues: Vec<Vec<usize>> = (0..n)
            .map(|i| (1..=usize::from(world.constants.deadline[i])).filter(|_| uniform() < 0.5).collect())
            .collect();
        for _ in 0..HORIZON {
            let target: Vec<_> = (0..n).map(|i| rules.point(i, plan(i, &mut uniform))).collect();
            for i in 0..n {
                if let Some((row, column)) = target[i] {
                    let alone = target.iter().filter(|&&other| other == target[i]).count() == 1;
                    let y = row as usize * (world.constants.grid.columns - 1) + column as usize;
                    if alone && !queues[i].is_empty() && uniform() < world.constants.success[y] {
                        queues[i].remove(0);
                        delivered += 1;
                    }
                }
                queues[i].retain(|&left| left > 1);
                queues[i].iter_mut().for_each(|left| *left -= 1);
                if uniform() < world.constants.arrival[i] {
                    queues[i].push(usize::from(world.constants.deadline[i]));
                }
            }
        }
    }
    delivered as f64 / f64::from(episodes) / n as f64
}

fn uniform_policy(world: &Wireless) -> Ragged<f64> {
    Ragged::from_rows((0..world.graph().agents()).map(|i| vec![0.2; world.states(i) * ACTIONS]))
}

/// Mean returns on the paper's grid, as an independent simulation has found them (d = 2: also where the
/// published curves start).
#[test]
fn returns_of_the_uniform_policy_and_of_the_matching() {
    const EPISODES: u32 = 20_000;
    for (deadline, uniform_return, matching_return) in [(2, 1.80, 3.72), (3, 2.09, 4.09)] {
        let world = wireless(&format!("deadline = {deadline}"));
        let any_action = |_: usize, uniform: &mut dyn FnMut() -> f64| (uniform() * 5.0) as u8;
        let uniform = simulated(&world, &uniform_policy(&world), EPISODES);
        let again = by_the_rules(&world, any_action, EPISODES / 2);
        assert!((uniform - uniform_return).abs() < 0.02, "{uniform}");
        assert!((uniform - again).abs() < 0.015, "{uniform}, by the rules {again}");

        let Some(Script::Laws(policy)) = world.scripted("matching", HORIZON) else { panic!("no laws") };
        let plan: Vec<u8> =
            (0..25).map(|i| policy.row(i)[..ACTIONS].iter().position(|&p| p == 1.0).unwrap() as u8).collect();
        let matching = simulated(&world, &policy, EPISODES);
        let again = by_the_rules(&world, |i, _| plan[i], EPISODES / 2);
        let theory = 16.0 / 25.0 * matching::deliveries(deadline, 0.5, 0.8, HORIZON);
        assert!((matching - matching_return).abs() < 0.02, "{matching}");
        assert!(
            (matching - theory).abs() < 0.01 && (again - theory).abs() < 0.015,
            "{matching}, {again}, {theory}"
        );
    }
}

#[test]
fn unequal_constants_give_the_returns_of_the_rules() {
    let world = wireless(UNEQUAL);
    let any_action = |_: usize, uniform: &mut dyn FnMut() -> f64| (uniform() * 5.0) as u8;
    let uniform = simulated(&world, &uniform_policy(&world), 40_000);
    let again = by_the_rules(&world, any_action, 40_000);
    assert!((uniform - again).abs() < 0.015, "{uniform}, by the rules {again}");
    assert!(world.scripted("still", HORIZON).is_none());
    assert_eq!(world.scripted_names(), ["matching"]);
}
