//! Values that agents of a kind learn together: what `critic.sharing` does, written out in double precision
//! with derivatives by central differences.

use std::path::Path;
use std::sync::Arc;

use crate::gradients::widths;
use crate::shared::read;
use crate::support::sample;
use phalanx::Ragged;
use phalanx::base::fields::Field;
use phalanx::base::stream::{Place, Purpose, Stream};
use phalanx::distributed::Halo;
use phalanx::learn::critic::{
    Critic, CriticContext, CriticInput, Descent, QValues, ReturnsSettings, SharedReturns, ValueReceiver,
};
use phalanx::learn::optimizer::OptimizerKind;
use phalanx::learn::shadow::{Signals, reward_column};
use phalanx::neural::{Architecture, Batch, Loss, Net, Rows, Tape, shuffle};
use phalanx::policy::{KindsKey, Policy, Reads, SharedKeys, SharedPolicy};
use phalanx::run::{Config, Session};
use phalanx::sample::rollout::StartFrom;
use phalanx::world::{Trajectory, World};

const LAMBDA: f64 = 0.8;
const RATE: f64 = 0.05;
const MINIBATCH: usize = 7;
const PASSES: usize = 2;
const KINDS: [u16; 3] = [0, 1, 1];

/// A session of one iteration, with two utilities per agent.
fn session(world: &str) -> Session {
    let text = format!(
        "kappa = 1\n{world}\n[objective]\nkind = \"return\"\n[[constraint]]\nkind = \"state_entropy\"\nat_least = 0.1\n\
         [policy]\nkind = \"shared\"\n[critic]\nkind = \"linear\""
    );
    Session::new(&Config::from_toml(&text, Path::new(".")).unwrap()).unwrap()
}

fn policy(world: &dyn World, reads: Reads) -> SharedPolicy {
    let sharing = SharedKeys { kinds: KindsKey::Listed(KINDS.to_vec()), reads: Some(reads) };
    SharedPolicy::new(world, 1, &sharing, &widths(), 1.0, &Stream::new(11)).unwrap()
}

/// Shadow rewards that differ between agents, states and utilities.
fn signals(session: &Session) -> Signals {
    let problem = session.problem();
    let mut signals = Signals::new(problem);
    let row = |i: usize| (0..problem.row_length(i)).map(move |x| 10.0 + ((7 * i + 3 * x) % 11) as f64);
    signals.evaluate(problem, &Ragged::from_rows((0..problem.agents.len()).map(row)), 1.0);
    signals
}

/// Weights by kind, one after the other, and mean squares of returns, `[kind][utility]`.
fn learnt(critic: &mut SharedReturns) -> (Vec<f64>, Vec<f64>) {
    let (mut weights, mut squares) = (Vec::new(), Vec::new());
    for (name, field) in critic.fields() {
        match (name, field) {
            ("critic", Field::SingleNumbers(found)) => {
                weights = found.iter().map(|&x| f64::from(x)).collect()
            }
            ("critic.squares", Field::Numbers(found)) => squares = found.to_vec(),
            _ => {}
        }
    }
    (weights, squares)
}

/// One agent's samples.
struct Seen {
    agent: usize,
    /// What it reads at every step of the batch.
    inputs: Vec<Vec<f64>>,
    /// λ-returns `[utility][step of the batch]`, NaN where a step has no successor, and advantages likewise.
    targets: [Vec<f64>; 2],
    advantages: [Vec<f64>; 2],
}

fn outputs(net: &Net, theta: &[f64], inputs: &[&Vec<f64>]) -> Vec<f64> {
    let rows: Vec<f64> = inputs.iter().flat_map(|input| input.iter().copied()).collect();
    net.forward(theta, Batch { size: inputs.len(), rows: &rows, symbols: &[] }, &mut Tape::default()).to_vec()
}

impl Seen {
    fn new(world: &dyn World, reads: Reads, agent: usize, batch: &[Trajectory]) -> Self {
        let moments =
            batch.iter().flat_map(|trajectory| (0..trajectory.steps()).map(move |k| (trajectory, k)));
        let inputs = moments.map(|(trajectory, k)| {
            let states: Vec<u8> = (0..world.graph().agents()).map(|m| trajectory.states(m)[k]).collect();
            read(world, agent, reads, &states)
        });
        Seen { agent, inputs: inputs.collect(), targets: Default::default(), advantages: Default::default() }
    }

    /// By their definition: a sum over all steps that follow.
    fn judge(
        &mut self,
        net: &Net,
        theta: &[f64],
        squares: &[f64],
        signals: &Signals,
        session: &Session,
        batch: &[Trajectory],
    ) {
        let (gamma, actions) = (session.problem().gamma, session.world().actions(self.agent));
        let values = outputs(net, theta, &self.inputs.iter().collect::<Vec<_>>());
        for utility in 0..2 {
            let row = signals.rewards.row(self.agent);
            let row = &row[utility * row.len() / 2..(utility + 1) * row.len() / 2];
            let value = |sample: usize| squares[utility].sqrt().max(1e-6) * values[2 * sample + utility];
            let (mut targets, mut advantages, mut first, mut column) = (vec![], vec![], 0, vec![]);
            for trajectory in batch {
                let (steps, transitions) = (trajectory.steps(), trajectory.transitions());
                reward_column(row, trajectory, self.agent, actions, transitions, &mut column);
                let delta = |l: usize| column[l] + gamma * value(first + l + 1) - value(first + l);
                for k in 0..steps {
                    let terms = (k..transitions).map(|l| (gamma * LAMBDA).powi((l - k) as i32) * delta(l));
                    let advantage: f64 = if k < transitions { terms.sum() } else { f64::NAN };
                    advantages.push(advantage);
                    targets.push(advantage + value(first + k));
                }
                first += steps;
            }
            (self.targets[utility], self.advantages[utility]) = (targets, advantages);
        }
    }

    /// The mean loss of some steps.
    fn loss(&self, net: &Net, theta: &[f64], squares: &[f64], steps: &[usize]) -> f64 {
        let inputs: Vec<&Vec<f64>> = steps.iter().map(|&step| &self.inputs[step]).collect();
        let values = outputs(net, theta, &inputs);
        let wanted = steps.iter().flat_map(|&step| [0, 1].map(|u| self.targets[u][step] / squares[u].sqrt()));
        values.iter().zip(wanted).map(|(value, wanted)| (value - wanted).powi(2)).sum::<f64>()
            / values.len() as f64
    }
}

#[test]
fn a_kind_follows_the_mean_of_its_agents_gradients() {
    const H: f64 = 1e-5;
    let line = "[world]\nkind = \"line\"\nn = 5\nmixing = 0.1";
    let grid = "[world]\nkind = \"wireless\"\nrows = 2\ncolumns = 3";
    let people = "[world]\nkind = \"epidemic\"\nn = 6\n[network]\nkind = \"star\"";
    for (text, reads) in [(line, Reads::States), (grid, Reads::States), (people, Reads::View)] {
        let (session, stream) = (session(text), Stream::new(5));
        let (world, agents) = (session.world(), session.world().graph().agents());
        let (policy, signals) = (policy(world, reads), signals(&session));
        let batch = sample(world, &policy, 2, 6, StartFrom::Uniform, 4);
        let rule = ReturnsSettings {
            lambda: LAMBDA,
            descent: Descent::new(OptimizerKind::Sgd, RATE, f64::INFINITY),
            minibatch: MINIBATCH,
            passes: PASSES,
            loss: Loss::Squared,
        };
        let context = CriticContext {
            world,
            problem: session.problem(),
            policy: &policy,
            kappa_q: 1,
            batch: 2,
            horizon: 5,
            halo: &Arc::new(Halo::single(agents)),
            stream: &stream,
        };
        let mut critic = SharedReturns::new(context, &widths(), rule).unwrap();
        let (mut theta, mut squares) = learnt(&mut critic);
        let mut seen: Vec<Seen> = (0..agents).map(|j| Seen::new(world, reads, j, &batch)).collect();
        let rows = Some(Rows { count: 1, width: seen[0].inputs[0].len(), hidden: widths().row_hidden });
        let architecture =
            Architecture { rows, symbols: vec![], hidden: widths().hidden.clone(), outputs: 2 };
        let net = Net::new(architecture, "net").unwrap();
        assert_eq!(theta.len(), 2 * net.parameters());
        let samples: Vec<usize> = (0..12).filter(|step| step % 6 != 5).collect();
        let mu = Ragged::from_rows((0..agents).map(|_| [0.5]));
        for iteration in 0..2 {
            let (policy, signals, batch) = (&policy, &signals, &batch[..]);
            critic
                .evaluate(CriticInput { iteration, policy, mu: &mu, signals, batch, evaluation: &[] })
                .unwrap();
            for kind in 0..2 {
                let theta = &mut theta[kind * net.parameters()..][..net.parameters()];
                let squares = &mut squares[2 * kind..2 * kind + 2];
                let members: Vec<usize> = (0..agents).filter(|&j| policy.row_of(j) == kind).collect();
                for &j in &members {
                    seen[j].judge(&net, theta, squares, signals, &session, batch);
                }
                for (utility, squares) in squares.iter_mut().enumerate() {
                    let square = |&j: &usize| samples.iter().map(move |&k| (j, k));
                    let all =
                        members.iter().flat_map(square).map(|(j, k)| seen[j].targets[utility][k].powi(2));
                    let mean = all.sum::<f64>() / (members.len() * samples.len()) as f64;
                    *squares = if iteration == 0 { mean } else { 0.98 * *squares + 0.02 * mean };
                }
                let place =
                    Place { purpose: Purpose::CriticOrder, iteration: iteration as u32, trajectory: 0 };
                let orders: Vec<Vec<usize>> = members
                    .iter()
                    .map(|&j| {
                        let mut order = Vec::new();
                        shuffle(PASSES, samples.len(), &mut stream.sequence(place, j as u32), &mut order);
                        order.iter().map(|&k| samples[k as usize]).collect()
                    })
                    .collect();
                let passes = (0..PASSES).map(|pass| pass * samples.len()..(pass + 1) * samples.len());
                let steps = passes.flat_map(|pass| {
                    let end = pass.end;
                    pass.step_by(MINIBATCH).map(move |first| first..(first + MINIBATCH).min(end))
                });
                for step in steps {
                    let loss = |theta: &[f64]| {
                        let of = |(&j, order): (&usize, &Vec<usize>)| {
                            seen[j].loss(&net, theta, squares, &order[step.clone()])
                        };
                        members.iter().zip(&orders).map(of).sum::<f64>() / members.len() as f64
                    };
                    let mut moved = theta.to_vec();
                    let slope = |x: usize| {
                        let mut at = |h: f64| {
                            moved[x] = theta[x] + h;
                            loss(&moved)
                        };
                        let slope = (at(H) - at(-H)) / (2.0 * H);
                        moved[x] = theta[x];
                        slope
                    };
                    let slopes: Vec<f64> = (0..theta.len()).map(slope).collect();
                    assert!(slopes.iter().any(|slope| slope.abs() > 1e-2), "nothing to compare with");
                    theta.iter_mut().zip(&slopes).for_each(|(x, slope)| *x -= RATE * slope);
                }
            }
            let (found, sizes) = learnt(&mut critic);
            for (found, wanted) in found.iter().zip(&theta) {
                assert!((found - wanted).abs() < 2e-5, "{text} {iteration}: {found} is not {wanted}");
            }
            for (found, wanted) in sizes.iter().zip(&squares) {
                assert!((found / wanted - 1.0).abs() < 1e-4, "{text} {iteration}: {found} is not {wanted}");
            }
            assert_eq!(critic.set_multipliers(signals, &mu), None);
            for j in 0..agents as u32 {
                let from = &[j][..];
                let (trajectory, mut out) = (&batch[1], [0.0; 5]);
                let inbox = ValueReceiver {
                    to: j as usize,
                    from,
                    constrained: from,
                    number: 1,
                    trajectory,
                    steps: 5,
                };
                critic.add_taken(j, &inbox, &mut Vec::new(), &mut out);
                let [f, g] = &seen[j as usize].advantages;
                for (found, (f, g)) in out.iter().zip(f[6..].iter().zip(&g[6..])) {
                    let wanted = f + 0.5 * g;
                    assert!((found - wanted).abs() < 1e-4 * (1.0 + wanted.abs()), "{found} is not {wanted}");
                }
            }
        }
    }
}

#[test]
fn threads_do_not_change_what_is_learnt() {
    let settings = "iterations=4 batch=6 critic.kind=returns critic.sharing=kind critic.hidden=[8] critic.minibatch=16 \
                    critic.passes=2 actor.baseline=none actor.all_actions=false policy.kinds=[0,1,1]";
    let settings = settings.split_whitespace().map(|setting| setting.split_once('=').unwrap());
    let config = Config::preset("wireless-shared").unwrap().with_all(settings).unwrap();
    let train = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut session = Session::new(&config).unwrap();
            while session.advance().unwrap().is_some() {}
            let critic = session.fields().into_iter().find_map(|(name, field)| match field {
                Field::SingleNumbers(weights) if name == "critic" => Some(weights.to_vec()),
                _ => None,
            });
            (session.policy().theta().clone(), critic.unwrap())
        })
    };
    assert!(train(1) == train(4));
}
