//! One process per agent, on this machine.

use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use phalanx::Error;
use phalanx_agent::addresses::Addresses;
use phalanx_agent::message::WORLD;
use phalanx_agent::policy::Policies;

use super::{AgentsArgs, MOST_PROCESSES};

/// The processes. They end with this one: each of them ends when its standard input does.
pub struct Children {
    children: Vec<(Child, ChildStdin)>,
}

/// How long they may take to end by themselves.
const LEAVING: Duration = Duration::from_secs(2);

impl Children {
    /// Starts all agents, and gathers where they and the world, on `socket`, are.
    pub fn start(
        args: &AgentsArgs,
        policies: &Policies,
        socket: &UdpSocket,
    ) -> anyhow::Result<(Children, Addresses)> {
        let count = policies.agents.len();
        if count > MOST_PROCESSES {
            let message =
                format!("{count} agents would be as many processes; at most {MOST_PROCESSES} are started");
            return Err(Error::argument("udp", message).into());
        }
        let program = std::env::current_exe().context("this program cannot be found to start agents")?;
        let is_python = program.file_stem().is_some_and(|name| name.to_string_lossy().starts_with("python"));
        if is_python {
            let message =
                "agents are processes of the `phalanx` program, which Python has not got; run it instead";
            return Err(Error::argument("udp", message).into());
        }
        let mut started = Children { children: Vec::with_capacity(count) };
        for number in 0..count {
            let mut command = Command::new(&program);
            command.args(["agents", "-", "--udp", "--child", "--agent", &number.to_string()]);
            command.arg(format!("--seed={}", args.seed)).arg(format!("--silence={}", args.silence));
            if args.real_time {
                command.arg("--real-time").arg(format!("--deadline={}", args.deadline));
            }
            let mut child = (command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn())
                .with_context(|| format!("agent {number} cannot be started"))?;
            let stdin = child.stdin.take().context("an agent has no standard input")?;
            started.children.push((child, stdin));
        }
        let addresses = started.gather(policies, socket)?;
        Ok((started, addresses))
    }

    /// Hands out the policies, asks everybody for its address, and tells everybody all of them.
    fn gather(&mut self, policies: &Policies, socket: &UdpSocket) -> anyhow::Result<Addresses> {
        let policies = serde_json::to_string(policies)? + "\n";
        for (number, (_, stdin)) in self.children.iter_mut().enumerate() {
            stdin.write_all(policies.as_bytes()).with_context(|| gone(number))?;
        }
        let mut addresses = Addresses::default();
        addresses.add(WORLD, socket.local_addr()?)?;
        for (number, (child, _)) in self.children.iter_mut().enumerate() {
            let mut line = String::new();
            let stdout = child.stdout.take().with_context(|| gone(number))?;
            BufReader::new(stdout).read_line(&mut line)?;
            let address = line.trim().parse().ok().with_context(|| gone(number))?;
            addresses.add(number as u32, address)?;
        }
        let text = addresses.text() + "\n";
        for (number, (_, stdin)) in self.children.iter_mut().enumerate() {
            stdin.write_all(text.as_bytes()).with_context(|| gone(number))?;
        }
        Ok(addresses)
    }

    /// Waits for their end, for a while.
    pub fn wait(mut self) {
        let start = Instant::now();
        let all_gone = |children: &mut Vec<(Child, ChildStdin)>| {
            children.iter_mut().all(|(child, _)| child.try_wait().is_ok_and(|status| status.is_some()))
        };
        while !all_gone(&mut self.children) && start.elapsed() < LEAVING {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn gone(number: usize) -> String {
    format!("agent {number} ended before it began")
}

impl Drop for Children {
    /// Ends those that are still there.
    fn drop(&mut self) {
        for (child, _) in &mut self.children {
            if !child.try_wait().is_ok_and(|status| status.is_some()) {
                // One that has just ended cannot be ended, and need not be.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}
