//! `phalanx bench`: how fast a world is simulated, without learning.

mod traffic;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use phalanx::base::stream::{Place, Purpose, Stream};
use phalanx::distributed::Halo;
use phalanx::policy::{Parameterisation, Tabular};
use phalanx::run::Registry;
use phalanx::sample::rollout::{self, Request, StartFrom};
use phalanx::world::{Evolution, SizedWorld, Trajectory, WorldKind, junctions};
use serde_json::json;

use crate::{on_threads, print};

#[derive(clap::Args)]
pub struct BenchArgs {
    /// World to simulate: line, wireless, pistonball, platoon, epidemic or junctions.
    world: String,
    /// Number of agents; `wireless`, `epidemic` and `junctions` take the squarest grid of no more than these
    /// [default: 1000, 10 pistons, 8 vehicles, 16 junctions].
    #[arg(long)]
    n: Option<usize>,
    /// junctions: measure the traffic engine alone on this road network, with its own program.
    #[arg(long, value_name = "FILE.json", requires = "flow", conflicts_with = "n")]
    roadnet: Option<PathBuf>,
    /// junctions: the flows on it.
    #[arg(long, value_name = "FILE.json", requires = "roadnet")]
    flow: Option<PathBuf>,
    /// Threads to use [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Trajectories at a time and their length.
const BATCH: u32 = 16;
const HORIZON: usize = 128;

pub fn run(args: &BenchArgs) -> anyhow::Result<()> {
    on_threads(args.threads, || {
        if let (Some(roadnet), Some(flow)) = (&args.roadnet, &args.flow) {
            if args.world == junctions::KIND {
                return traffic::measure(roadnet, flow, args.json);
            }
            let message = format!("is for `{}`, not for `{}`", junctions::KIND, args.world);
            return Err(phalanx::Error::argument("roadnet", message).into());
        }
        let blame = |error| match error {
            phalanx::Error::Config { message, .. } => phalanx::Error::argument("n", message),
            other => other,
        };
        let registry = Registry::default();
        match registry.worlds().find(|kind| kind.name() == args.world).and_then(WorldKind::sized) {
            Some(make) => measure(args, &make(args.n).map_err(blame)?),
            None => {
                let sized = registry.worlds().filter(|kind| kind.sized().is_some());
                let names: Vec<String> = sized.map(|kind| format!("`{}`", kind.name())).collect();
                let (last, others) = names.split_last().expect("there are worlds");
                let message =
                    format!("`{}` is unknown; allowed are {} and {last}", args.world, others.join(", "));
                Err(phalanx::Error::config("world", message).into())
            }
        }
    })?
}

fn measure(args: &BenchArgs, SizedWorld { world, kappa, shape }: &SizedWorld) -> anyhow::Result<()> {
    let world = &**world;
    let n = world.graph().agents();
    let stream = Stream::new(1);
    // Pistons move at random: a fixed policy may end its episodes early.
    let init_std = if matches!(world.evolution(), Evolution::Joint(_)) { 0.0 } else { 1.0 };
    let policy = Tabular::new(world, *kappa, Parameterisation::Softmax, init_std, &stream)?;
    // A large graph is measured on fewer trajectories: memory, not statistics, is the limit; of a joint
    // world, the physics, with as many steps as there are pistons.
    let work = if matches!(world.evolution(), Evolution::Joint(_)) { n * n } else { n };
    let batch = BATCH.min((100_000_000 / (work * HORIZON)).max(1) as u32);
    let mut trajectories = vec![Trajectory::for_world(world, HORIZON); batch as usize];
    let halo = Halo::single(n);
    let simulate = |iteration: u32, trajectories: &mut [Trajectory]| {
        let requests: Vec<Request> = (0..batch)
            .map(|trajectory| Request {
                place: Place { purpose: Purpose::Evaluation, iteration, trajectory },
                start_purpose: Purpose::EvaluationStart,
                start: StartFrom::World,
            })
            .collect();
        rollout::simulate(world, &policy, &stream, &requests, trajectories, &halo)
    };
    simulate(0, &mut trajectories)?;
    let (begin, mut rounds, mut steps) = (Instant::now(), 0, 0);
    while begin.elapsed() < Duration::from_secs(1) {
        rounds += 1;
        simulate(rounds, &mut trajectories)?;
        steps += trajectories.iter().map(Trajectory::steps).sum::<usize>();
    }
    let env_steps = steps as f64 / begin.elapsed().as_secs_f64();
    let agent_steps = env_steps * n as f64;
    if args.json {
        let line = json!({
            "world": args.world, "n": n, "threads": rayon::current_num_threads(),
            "env_steps_per_s": env_steps, "agent_steps_per_s": agent_steps,
        });
        print(&format!("{line}\n"));
    } else {
        print(&format!(
            "{n} agents {shape}: {env_steps:.0} steps per second, {:.1} million agent-steps per second\n",
            agent_steps / 1e6
        ));
    }
    Ok(())
}
