//! What an agent computes depends on its neighbourhood only.

mod support;

use phalanx::Ragged;
use phalanx::actor::{Baseline, GradientRule, Scratch};
use phalanx::critic::{Critic, Evidence, Lstd, QTables, StepRule, Td};
use phalanx::policy::{Parameterisation, Policy, Tabular};
use phalanx::problem::Problem;
use phalanx::rollout::{Request, StartFrom, Trajectory, simulate};
use phalanx::run::{Config, Session};
use phalanx::shadow::Signals;
use phalanx::stream::{Place, Purpose, Sequence, Stream};
use phalanx::world::{Line, Start, World};

const N: usize = 12;

fn line() -> Line {
    Line::new(N, Start::Uniform, 0.1).unwrap()
}

fn numbers(which: u32) -> Sequence {
    Stream::new(99).sequence(Place { purpose: Purpose::Graph, iteration: 0, trajectory: which }, 0)
}

fn policy(kappa: usize) -> Tabular {
    Tabular::new(&line(), kappa, Parameterisation::Softmax, 1.0, &Stream::new(5)).unwrap()
}

fn trajectory(steps: usize) -> Trajectory {
    let mut trajectories = [Trajectory::new(N, steps)];
    let request = Request {
        place: Place { purpose: Purpose::Batch, iteration: 0, trajectory: 0 },
        start_purpose: Purpose::BatchStart,
        start: StartFrom::World,
    };
    simulate(&line(), &policy(1), &Stream::new(6), &[request], &mut trajectories);
    let [trajectory] = trajectories;
    trajectory
}

/// Scrambles the pairs of all agents farther than `radius` from `agent`.
fn scrambled(trajectory: &Trajectory, agent: usize, radius: usize) -> Trajectory {
    let mut changed = trajectory.clone();
    let mut numbers = numbers(1);
    for j in (0..N).filter(|j| j.abs_diff(agent) > radius) {
        for k in 0..changed.steps() {
            let word = numbers.next_u32();
            let (s, a) = changed.pair_mut(j, k);
            (*s, *a) = ((word & 1) as u8, (word >> 1 & 1) as u8);
        }
    }
    assert_ne!(&changed, trajectory);
    changed
}

#[test]
fn a_policy_reads_its_kappa_hop_neighbourhood_only() {
    let mut numbers = numbers(2);
    for kappa in 0..4 {
        let policy = policy(kappa);
        let mut beyond_mattered = false;
        for agent in 0..N {
            for _ in 0..50 {
                let mut states: Vec<u8> = (0..N).map(|_| (numbers.next_u32() & 1) as u8).collect();
                let draw = [numbers.next_u32() >> 1];
                let act = |states: &[u8]| {
                    let mut action = [9];
                    policy.act(agent..agent + 1, states, &draw, &mut action);
                    action[0]
                };
                let before = act(&states);
                for j in (0..N).filter(|j| j.abs_diff(agent) > kappa) {
                    states[j] = (numbers.next_u32() & 1) as u8;
                }
                assert_eq!(act(&states), before, "agent {agent}, kappa {kappa}");
                // The neighbourhood itself does matter: flip its rim.
                for j in (0..N).filter(|j| j.abs_diff(agent) == kappa) {
                    states[j] ^= 1;
                }
                beyond_mattered |= act(&states) != before;
            }
        }
        assert!(beyond_mattered, "kappa {kappa}: a policy that never reads its rim would pass");
    }
}

fn problem() -> Problem {
    let text = format!(
        "[world]\nkind = \"line\"\nn = {N}\n[objective]\nkind = \"return\"\n[[constraint]]\n\
                        kind = \"state_entropy\"\nat_least = 0.5"
    );
    let config = Config::from_toml(&text, std::path::Path::new(".")).unwrap();
    Session::new(&config).unwrap().problem().clone()
}

fn signals(problem: &Problem) -> Signals {
    let mut signals = Signals::new(problem);
    signals.evaluate(
        problem,
        &Ragged::from_rows((0..N).map(|i| [20.0 + i as f64, 30.0, 10.0, 40.0 - i as f64])),
    );
    signals
}

#[test]
fn a_critic_reads_its_kappa_q_hop_neighbourhood_only() {
    let problem = problem();
    let signals = signals(&problem);
    let trajectory = trajectory(400);
    for kappa_q in 0..3 {
        let tables = || QTables::new(&line(), kappa_q, &problem).unwrap();
        let critics: [Box<dyn Fn() -> Box<dyn Critic>>; 2] = [
            Box::new(|| Box::new(Td::new(tables(), &problem, 399, StepRule::Constant(0.2), false))),
            Box::new(|| Box::new(Lstd::new(tables(), &problem, 399, 1e-6))),
        ];
        for make in critics {
            let learn = |trajectory: &Trajectory| {
                let mut critic = make();
                critic
                    .evaluate(Evidence {
                        iteration: 0,
                        policy: &policy(1),
                        signals: &signals,
                        batch: &[],
                        evaluation: std::slice::from_ref(trajectory),
                    })
                    .unwrap();
                critic
            };
            let before = learn(&trajectory);
            for agent in 0..N {
                let after = learn(&scrambled(&trajectory, agent, kappa_q));
                for which in 0..2 {
                    assert_eq!(
                        before.values().table(agent, which),
                        after.values().table(agent, which),
                        "agent {agent}"
                    );
                }
                let elsewhere = (agent + kappa_q + 1) % N;
                assert_ne!(before.values().table(elsewhere, 0), after.values().table(elsewhere, 0));
            }
        }
    }
}

/// With received Q values and multipliers held fixed, the gradient depends on nothing beyond N_i^κ.
#[test]
fn a_gradient_reads_its_kappa_hop_neighbourhood_only() {
    let steps = 60;
    let trajectory = trajectory(steps);
    for kappa in 0..3 {
        let policy = policy(kappa);
        for baseline in [Baseline::None, Baseline::Mean, Baseline::Counterfactual] {
            let weights = (0..steps).map(|k| 0.9f64.powi(k as i32)).collect();
            let rule = GradientRule { weights, baseline, neighbour_mean: false, all_actions: false, entropy: 0.0 };
            for agent in 0..N {
                let gradient = |trajectory: &Trajectory| {
                    let receive = |_: &Trajectory, _: &mut Vec<u32>, values: &mut [f64]| {
                        values.iter_mut().enumerate().for_each(|(k, v)| *v = (k as f64 * 0.7).sin());
                    };
                    let mut out = vec![0.0; policy.theta().row(agent).len()];
                    let batch = std::slice::from_ref(trajectory);
                    policy.gradient(agent, batch, &receive, &rule, &mut Scratch::default(), &mut out);
                    out
                };
                let before = gradient(&trajectory);
                assert_eq!(gradient(&scrambled(&trajectory, agent, kappa)), before, "agent {agent}");
                if kappa > 0 {
                    assert_ne!(gradient(&scrambled(&trajectory, agent, kappa - 1)), before, "agent {agent}");
                }
            }
        }
    }
}

/// What an agent receives comes from senders that read their own κ_q-hop neighbourhoods: nothing beyond 2·κ_q.
#[test]
fn received_values_come_from_twice_the_radius_at_most() {
    let problem = problem();
    let signals = signals(&problem);
    let evaluation = trajectory(400);
    let kappa_q = 1;
    let tables = QTables::new(&line(), kappa_q, &problem).unwrap();
    let mut critic = Td::new(tables, &problem, 399, StepRule::Constant(0.2), false);
    let evidence =
        Evidence { iteration: 0, policy: &policy(1), signals: &signals, batch: &[], evaluation: &[evaluation] };
    critic.evaluate(evidence).unwrap();
    critic.values_mut().weigh(&signals, &Ragged::from_rows((0..N).map(|i| [i as f64])));
    let groups = line().network().neighbourhoods(kappa_q);
    let batch = trajectory(50);
    for agent in 0..N {
        let received = |trajectory: &Trajectory| {
            let inbox = phalanx::critic::Inbox { to: agent, from: groups.row(agent), trajectory, steps: 50 };
            let mut out = vec![0.0; 100];
            critic.values().receive_alternatives(inbox, 2, &mut Vec::new(), &mut out);
            out
        };
        assert_eq!(received(&scrambled(&batch, agent, 2 * kappa_q)), received(&batch), "agent {agent}");
    }
}
