//! `phalanx bench`: how fast a world is simulated, without learning.

use std::time::{Duration, Instant};

use phalanx::policy::{Parameterisation, Tabular};
use phalanx::rollout::{self, Request, StartFrom, Trajectory};
use phalanx::stream::{Place, Purpose, Stream};
use phalanx::world::{Line, Start, World};
use serde_json::json;

use crate::{on_threads, print};

#[derive(clap::Args)]
pub struct BenchArgs {
    /// World to simulate: line.
    world: String,
    /// Number of agents.
    #[arg(long, default_value_t = 1000)]
    n: usize,
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
    if args.world != "line" {
        let message = format!("`{}` is unknown; allowed is `line`", args.world);
        return Err(phalanx::Error::config("world", message).into());
    }
    on_threads(args.threads, || measure(args))?
}

fn measure(args: &BenchArgs) -> anyhow::Result<()> {
    let world = Line::new(args.n, Start::Uniform, 0.0).map_err(|error| match error {
        phalanx::Error::Config { message, .. } => phalanx::Error::config("--n", message),
        other => other,
    })?;
    let stream = Stream::new(1);
    let policy = Tabular::new(&world, 1, Parameterisation::Softmax, 1.0, &stream)?;
    // A large network is measured on fewer trajectories: memory, not statistics, is the limit.
    let batch = BATCH.min((100_000_000 / (args.n * HORIZON)).max(1) as u32);
    let mut trajectories = vec![Trajectory::new(world.network().agents(), HORIZON); batch as usize];
    let simulate = |iteration: u32, trajectories: &mut [Trajectory]| {
        let requests: Vec<Request> = (0..batch)
            .map(|trajectory| Request {
                place: Place { purpose: Purpose::Evaluation, iteration, trajectory },
                start_purpose: Purpose::EvaluationStart,
                start: StartFrom::World,
            })
            .collect();
        rollout::simulate(&world, &policy, &stream, &requests, trajectories);
    };
    simulate(0, &mut trajectories);
    let (begin, mut rounds) = (Instant::now(), 0);
    while begin.elapsed() < Duration::from_secs(1) {
        rounds += 1;
        simulate(rounds, &mut trajectories);
    }
    let env_steps = f64::from(rounds) * f64::from(batch) * HORIZON as f64 / begin.elapsed().as_secs_f64();
    let agent_steps = env_steps * args.n as f64;
    if args.json {
        let line = json!({
            "world": args.world, "n": args.n, "threads": rayon::current_num_threads(),
            "env_steps_per_s": env_steps, "agent_steps_per_s": agent_steps,
        });
        print(&format!("{line}\n"));
    } else {
        print(&format!(
            "{} agents on a line: {env_steps:.0} steps a second, {:.1} million agent-steps a second\n",
            args.n,
            agent_steps / 1e6
        ));
    }
    Ok(())
}
