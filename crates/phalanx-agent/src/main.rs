//! The `phalanx-agent` command: one agent of a graph, on a machine that has nothing else.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use phalanx_agent::addresses::Addresses;
use phalanx_agent::program::{self, SILENCE};
use phalanx_agent::udp::Pace;
use phalanx_agent::{Agent, Error, Result};

const USAGE: &str = "\
One agent of a network, over UDP, as long as its world is there.

Usage: phalanx-agent POLICY.json --agent K --addresses FILE [options]

  --agent K          number of the agent
  --addresses FILE   who is where: lines `AGENT HOST:PORT`, and one `world HOST:PORT`
  --seed S           seed of the episodes, the same for all [default: 1]
  --deadline MS      act so many milliseconds after the sensor at the latest [default: wait for neighbours]
  --silence S        end when nothing has come from the world for so many seconds [default: 60]

Messages are neither encrypted nor signed: use a network that you trust.
";

/// What the user typed.
struct Options {
    policy: PathBuf,
    agent: u32,
    addresses: PathBuf,
    seed: u64,
    pace: Pace,
    silence: Duration,
}

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    // Wrong input is told from what fails later on.
    let (status, done) = match Options::read(&arguments).and_then(|options| options.open()) {
        Ok((agent, addresses, options)) => {
            (1, program::at_address(agent, &addresses, options.pace, options.silence).map(|_| ()))
        }
        Err(error) => (2, Err(error)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(status)
        }
    }
}

impl Options {
    fn read(arguments: &[String]) -> Result<Options> {
        let (mut policy, mut agent, mut addresses) = (None, None, None);
        let (mut seed, mut pace, mut silence) = (1, Pace::LockStep, SILENCE);
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            if !word.starts_with("--") {
                policy = Some(PathBuf::from(word));
                continue;
            }
            let value = rest.next().ok_or_else(|| Error::new(format!("{word}: has no value")))?;
            let number = || {
                value
                    .parse::<u64>()
                    .map_err(|_| Error::new(format!("{word}: `{value}` is no whole number from 0")))
            };
            match word.as_str() {
                "--agent" => {
                    let found = u32::try_from(number()?);
                    agent = Some(found.map_err(|_| Error::new(format!("--agent: {value} is too large")))?);
                }
                "--addresses" => addresses = Some(PathBuf::from(value)),
                "--seed" => seed = number()?,
                "--deadline" => {
                    pace = Pace::RealTime { deadline: Duration::from_millis(number()?.clamp(1, MOST)) }
                }
                "--silence" => silence = Duration::from_secs(number()?.clamp(1, MOST)),
                _ => return Err(Error::new(format!("`{word}` is unknown; see phalanx-agent --help"))),
            }
        }
        let missing = |what: &str| Error::new(format!("{what} is missing; see phalanx-agent --help"));
        Ok(Options {
            policy: policy.ok_or_else(|| missing("POLICY.json"))?,
            agent: agent.ok_or_else(|| missing("--agent"))?,
            addresses: addresses.ok_or_else(|| missing("--addresses"))?,
            seed,
            pace,
            silence,
        })
    }

    fn open(self) -> Result<(Agent, Addresses, Options)> {
        let agent = Agent::load(&self.policy, self.agent, self.seed)?;
        let of_file = |error: String| Error::new(format!("{}: {error}", self.addresses.display()));
        let text = std::fs::read_to_string(&self.addresses)
            .map_err(|error| of_file(format!("cannot be read: {error}")))?;
        let addresses = Addresses::read(&text).map_err(|error| of_file(error.to_string()))?;
        Ok((agent, addresses, self))
    }
}

/// The longest times, in milliseconds or seconds.
const MOST: u64 = 86_400_000;
