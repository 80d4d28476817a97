//! Policies that agents share: one row of θ per kind, whose gradient is the sum of its agents', and laws that
//! follow from places alone.

use crate::gradients::{Law, Made, STEPS, climbed, rules, samples, softmax, widths};
use crate::support::{Reference, moment, sample};
use phalanx::Ragged;
use phalanx::base::stream::Stream;
use phalanx::graph::Graph;
use phalanx::learn::actor::Actor;
use phalanx::neural::{Architecture, Batch, Net, Rows, Tape};
use phalanx::policy::{KindsKey, Policy, Reads, SharedKeys, SharedPolicy};
use phalanx::sample::rollout::StartFrom;
use phalanx::world::{Epidemic, EpidemicSpec, Line, Start, Wireless, WirelessSpec, World};

const KAPPA: usize = 1;

fn worlds() -> Vec<Box<dyn World>> {
    let wireless = WirelessSpec { rows: 3, columns: 4, ..WirelessSpec::default() };
    vec![
        Box::new(Line::new(5, Start::Uniform, 0.1).unwrap()),
        Box::new(Reference::read("star4_joint_rho").table),
        Box::new(Wireless::new(&wireless).unwrap()),
        Box::new(Epidemic::new(&EpidemicSpec::default(), Graph::scale_free(9, 2, 3).unwrap()).unwrap()),
    ]
}

fn policy(world: &dyn World, reads: Reads, kinds: Vec<u16>) -> SharedPolicy {
    let sharing = SharedKeys { kinds: KindsKey::Listed(kinds), reads: Some(reads) };
    let mut policy = SharedPolicy::new(world, KAPPA, &sharing, &widths(), 1.0, &Stream::new(11)).unwrap();
    for (x, theta) in policy.theta_mut().data_mut().iter_mut().enumerate() {
        *theta += f64::from((x as f32 * 0.73).sin() * 0.1);
    }
    policy.refresh();
    policy
}

/// What agent i reads, written out: sums over the neighbours of each state's indicator times each number of
/// its place; or the view as it is. Then the site.
pub fn read(world: &dyn World, agent: usize, reads: Reads, states: &[u8]) -> Vec<f64> {
    let group = world.graph().neighbourhoods(KAPPA).row(agent).to_vec();
    let hops = |m: usize| if m == agent { vec![1.0, 0.0] } else { vec![0.0, 1.0 / (group.len() - 1) as f32] };
    let own = world.place(agent, agent, KAPPA).is_some();
    let place = |m: usize| world.place(agent, m, KAPPA).unwrap_or_else(|| hops(m));
    let site = if own { world.site(agent) } else { vec![(group.len() as f32 - 1.0).ln_1p()] };
    let mut numbers = Vec::new();
    match reads {
        Reads::States => {
            for s in 0..(0..states.len()).map(|i| world.states(i)).max().unwrap() {
                for d in 0..place(agent).len() {
                    let members = group.iter().filter(|&&m| usize::from(states[m as usize]) == s);
                    numbers.push(members.map(|&m| f64::from(place(m as usize)[d])).sum());
                }
            }
        }
        Reads::View => {
            let view = world.view(agent, &group).unwrap();
            let mut rows = vec![0.0; view.shape().iter().product()];
            let seen: Vec<u8> = group.iter().map(|&m| states[m as usize]).collect();
            view.write(&seen, &[], &mut rows);
            numbers.extend(rows.iter().map(|&x| f64::from(x)));
        }
    }
    numbers.extend(site.iter().map(|&x| f64::from(x)));
    numbers
}

/// The law of an agent in double precision, from the row of θ of its kind.
fn law<'a>(world: &'a dyn World, agent: usize, reads: Reads) -> Law<'a> {
    let actions = world.actions(agent);
    let width = read(world, agent, reads, &vec![0; world.graph().agents()]).len();
    let rows = Some(Rows { count: 1, width, hidden: widths().row_hidden });
    let architecture =
        Architecture { rows, symbols: Vec::new(), hidden: widths().hidden.clone(), outputs: actions };
    let net = Net::new(architecture, "net").unwrap();
    Box::new(move |theta, states| {
        let rows = read(world, agent, reads, states);
        softmax(net.forward(theta, Batch { size: 1, rows: &rows, symbols: &[] }, &mut Tape::default()))
    })
}

fn readable(world: &dyn World) -> Vec<Reads> {
    let has_view = world.view(0, world.graph().neighbourhoods(KAPPA).row(0)).is_some();
    if has_view { vec![Reads::States, Reads::View] } else { vec![Reads::States] }
}

#[test]
fn the_gradient_of_a_kind_is_the_derivative_of_what_its_agents_climb_together() {
    const H: f64 = 1e-5;
    for world in worlds() {
        let (world, agents) = (&*world, world.graph().agents());
        let senders = world.graph().neighbourhoods(1);
        for reads in readable(world) {
            let policy = policy(world, reads, vec![0, 1, 1]);
            let batch = sample(world, &policy, 2, STEPS + 2, StartFrom::Uniform, 4);
            for rule in rules().iter().step_by(3) {
                let mut found = Ragged::zeros_like(policy.theta());
                let mut actor = Actor::single(world.graph(), &senders);
                actor.gradients(&policy, &batch, &Made, rule, &mut found).unwrap();
                for kind in [0, 1] {
                    let mut theta = policy.theta().row(kind).to_vec();
                    let members: Vec<_> = (0..agents)
                        .filter(|&i| policy.row_of(i) == kind)
                        .map(|i| {
                            let law = law(world, i, reads);
                            let from = senders.row(i);
                            let samples = samples(&law, &theta, i, from, &batch, rule, agents);
                            (law, samples)
                        })
                        .collect();
                    let mut climb = |x: usize, h: f64| {
                        let before = std::mem::replace(&mut theta[x], policy.theta().row(kind)[x] + h);
                        let heights =
                            members.iter().map(|(law, samples)| climbed(law, samples, rule, false, &theta));
                        let height = heights.sum::<f64>();
                        theta[x] = before;
                        height
                    };
                    let found = found.row(kind);
                    let expected: Vec<f64> = (0..found.len())
                        .step_by(3)
                        .map(|x| (climb(x, H) - climb(x, -H)) / (2.0 * H))
                        .collect();
                    let largest = expected.iter().fold(0.0f64, |m, x| m.max(x.abs()));
                    assert!(largest > 1e-3, "nothing to compare with");
                    for (f, e) in found.iter().step_by(3).zip(&expected) {
                        assert!((f - e).abs() <= 5e-5 * (1.0 + largest), "{reads:?} {kind}: {f} is not {e}");
                    }
                }
            }
        }
    }
}

#[test]
fn laws_are_those_of_the_definition() {
    for world in worlds() {
        let world = &*world;
        for reads in readable(world) {
            let policy = policy(world, reads, vec![0]);
            for trajectory in sample(world, &policy, 2, 20, StartFrom::Uniform, 6) {
                for (agent, k) in (0..world.graph().agents()).flat_map(|i| [3, 11].map(|k| (i, k))) {
                    let states: Vec<u8> =
                        (0..world.graph().agents()).map(|m| trajectory.states(m)[k]).collect();
                    let mut found = vec![0.0; world.actions(agent)];
                    policy.law(agent, &moment(&states), 0, &mut found);
                    let wanted = law(world, agent, reads)(policy.theta().row(0), &states);
                    for (f, w) in found.iter().zip(&wanted) {
                        assert!((f - w).abs() < 1e-5, "{f} is not {w}");
                    }
                }
            }
        }
    }
}

/// A user in the middle of a large grid acts as one in the middle of a small one, and as often.
#[test]
fn a_policy_acts_alike_on_another_graph() {
    let grid =
        |rows, columns| Wireless::new(&WirelessSpec { rows, columns, ..WirelessSpec::default() }).unwrap();
    let (small, large) = (grid(3, 3), grid(9, 11));
    let (trained, mut other) =
        (policy(&small, Reads::States, vec![0]), policy(&large, Reads::States, vec![0]));
    *other.theta_mut() = trained.theta().clone();
    other.refresh();
    // Of the same parities as the middle of the small grid.
    let (middle, there) = (4, 5 * 11 + 7);
    for number in 0..200u32 {
        let queue = |place: usize| ((number.wrapping_mul(2_654_435_761)) >> (2 * place + 8) & 3) as u8;
        let window: Vec<u8> = (0..9).map(queue).collect();
        let mut states = vec![1; 99];
        for (k, &queue) in window.iter().enumerate() {
            states[(4 + k / 3) * 11 + 6 + k % 3] = queue;
        }
        let (mut a, mut b) = ([0.0; 5], [0.0; 5]);
        trained.law(middle, &moment(&window), 0, &mut a);
        other.law(there, &moment(&states), 0, &mut b);
        assert_eq!(a, b);
    }
}
