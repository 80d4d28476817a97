//! `phalanx agents`: agents as processes of their own, with the world beside them.

mod children;
mod episodes;

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::Duration;

use phalanx::run::{Evaluator, Registry, portable};
use phalanx::{Error, Result};
use phalanx_agent::Agent;
use phalanx_agent::addresses::Addresses;
use phalanx_agent::conductor::Conductor;
use phalanx_agent::message::WORLD;
use phalanx_agent::policy::Policies;
use phalanx_agent::program;
use phalanx_agent::udp::Pace;

use crate::{check_range, on_threads, print};
use children::Children;

#[derive(clap::Args)]
pub struct AgentsArgs {
    /// Folder of the run; with --agent also its exported policy.json.
    #[arg(value_name = "RUN")]
    source: PathBuf,
    /// Talk over UDP, the only way there is. Messages are neither encrypted nor signed.
    #[arg(long, required = true)]
    udp: bool,
    /// Episodes to run.
    #[arg(long, default_value_t = 20)]
    episodes: u32,
    /// Seed of these episodes, as of `phalanx eval`; the same for the world and all agents.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Steps of an episode [default: the run's horizon].
    #[arg(long, value_name = "N")]
    steps: Option<u32>,
    /// Act at a deadline with what is known by then, instead of waiting for every message.
    #[arg(long)]
    real_time: bool,
    /// Milliseconds from an agent's sensor to its action.
    #[arg(long, value_name = "MS", default_value_t = 20, requires = "real_time")]
    deadline: u64,
    /// Addresses, for agents on several machines: lines `AGENT HOST:PORT`, and one `world HOST:PORT`.
    #[arg(long, value_name = "FILE")]
    addresses: Option<PathBuf>,
    /// Run this agent only, at its address.
    #[arg(long, value_name = "K", conflicts_with = "world")]
    agent: Option<u32>,
    /// Run the environment only, at its address.
    #[arg(long)]
    world: bool,
    /// End when nobody has been heard for so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    silence: u64,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
    /// Be an agent of the process that started this one.
    #[arg(long, hide = true)]
    child: bool,
}

/// Agents that one machine is asked to carry.
const MOST_PROCESSES: usize = 1000;

/// `phalanx agents`.
pub fn run(args: &AgentsArgs, registry: &Registry) -> anyhow::Result<()> {
    args.check()?;
    let (pace, silence) = (args.pace(), Duration::from_secs(args.silence));
    match (args.agent, &args.addresses) {
        (Some(agent), _) if args.child => {
            program::for_parent(agent, args.seed, pace, silence)?;
            Ok(())
        }
        (Some(number), Some(file)) => {
            let policies = args.policies(registry)?;
            let agent = Agent::new(&policies, number, args.seed);
            let agent = agent.map_err(|error| Error::argument("agent", error.to_string()))?;
            program::at_address(agent, &addresses(file)?, pace, silence)?;
            Ok(())
        }
        (None, Some(file)) if args.world => on_threads(Some(1), || {
            let (evaluator, policies) = args.open(registry)?;
            let addresses = addresses(file)?;
            let all_known = (0..policies.agents.len() as u32).chain([WORLD]).try_for_each(|id| {
                addresses.of(id).map(|_| ()).map_err(|error| Error::file(file, error.to_string()))
            });
            all_known?;
            let socket = program::bind(addresses.of(WORLD)?)?;
            args.conduct(&evaluator, &policies, socket, &addresses)
        })?,
        _ => on_threads(Some(1), || {
            let (evaluator, policies) = args.open(registry)?;
            let socket = program::bind(([127, 0, 0, 1], 0).into())?;
            let (children, addresses) = Children::start(args, &policies, &socket)?;
            args.conduct(&evaluator, &policies, socket, &addresses)?;
            children.wait();
            Ok(())
        })?,
    }
}

impl AgentsArgs {
    fn check(&self) -> Result<()> {
        check_range("episodes", self.episodes, 1..=1 << 24)?;
        check_range("steps", self.steps.unwrap_or(1), 1..=1_000_000)?;
        check_range("deadline", self.deadline, 1..=60_000)?;
        check_range("silence", self.silence, 1..=86_400)?;
        let is_alone = self.agent.is_some() || self.world;
        if is_alone && self.addresses.is_none() && !self.child {
            let message = "is missing: one agent or the world alone must know where the others are";
            return Err(Error::argument("addresses", message));
        }
        if !is_alone && self.addresses.is_some() {
            let message = "goes with --agent K or --world, which say who of them this is";
            return Err(Error::argument("addresses", message));
        }
        Ok(())
    }

    fn pace(&self) -> Pace {
        let deadline = Duration::from_millis(self.deadline);
        if self.real_time { Pace::RealTime { deadline } } else { Pace::LockStep }
    }

    /// The run, and its policy as data.
    fn open(&self, registry: &Registry) -> Result<(Evaluator, Policies)> {
        let evaluator = Evaluator::from_run(&self.source, registry)?;
        // Worlds that cannot be apart from their agents are refused before anything is started.
        evaluator.stepped(0, self.seed)?;
        let policies = portable(&evaluator)?;
        // The first agent tells whether agents can have such a policy.
        let of_policy = |error: phalanx_agent::Error| phalanx::policy::kind_error(error.to_string());
        Agent::new(&policies, 0, self.seed).map_err(of_policy)?;
        Ok((evaluator, policies))
    }

    /// Policies of a run or of an exported file.
    fn policies(&self, registry: &Registry) -> Result<Policies> {
        if self.source.is_dir() {
            return Ok(self.open(registry)?.1);
        }
        Policies::read(&text_of(&self.source)?).map_err(|error| Error::file(&self.source, error.to_string()))
    }

    /// Runs the world.
    fn conduct(
        &self,
        evaluator: &Evaluator,
        policies: &Policies,
        socket: UdpSocket,
        addresses: &Addresses,
    ) -> anyhow::Result<()> {
        let silence = Duration::from_secs(self.silence);
        let mut conductor = Conductor::new(socket, policies, addresses, self.pace(), silence)?;
        let report = episodes::run(self, evaluator, &mut conductor)?;
        let text = if self.json { serde_json::to_string(&report)? + "\n" } else { report.in_words() };
        print(&text);
        Ok(())
    }
}

fn text_of(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).map_err(|error| Error::unreadable(file, error))
}

fn addresses(file: &Path) -> Result<Addresses> {
    Addresses::read(&text_of(file)?).map_err(|error| Error::file(file, error.to_string()))
}
