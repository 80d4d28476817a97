//! One agent as a process.

use std::io::{BufRead, Read, Write};
use std::net::UdpSocket;
use std::time::Duration;

use crate::addresses::Addresses;
use crate::agent::Agent;
use crate::counts::Counts;
use crate::error::{Error, Result};
use crate::policy::Policies;
use crate::udp::{Pace, work};

/// How long the world may be silent, unless somebody says otherwise.
pub const SILENCE: Duration = Duration::from_secs(60);

/// Lets an agent work at its address in the file of addresses.
pub fn at_address(mut agent: Agent, addresses: &Addresses, pace: Pace, silence: Duration) -> Result<Counts> {
    let socket = bind(addresses.of(agent.number())?)?;
    work(&mut agent, &socket, addresses, pace, silence)
}

/// Lets an agent work for the process that started it. Standard input brings the policies in one line; then
/// it says its address in a line on standard output, and reads everybody's, up to an empty line. The end of
/// standard input is the end of this process: nobody is there any more.
pub fn for_parent(number: u32, seed: u64, pace: Pace, silence: Duration) -> Result<Counts> {
    let failed = |error: std::io::Error| Error::new(format!("the process that started it is gone: {error}"));
    let mut lines = std::io::stdin().lock().lines();
    let policies = Policies::read(&lines.next().transpose().map_err(failed)?.unwrap_or_default())?;
    let mut agent = Agent::new(&policies, number, seed)?;
    let socket = bind(([127, 0, 0, 1], 0).into())?;
    let own = socket.local_addr().map_err(failed)?;
    let mut out = std::io::stdout();
    writeln!(out, "{own}").and_then(|()| out.flush()).map_err(failed)?;
    let mut text = String::new();
    for line in lines {
        let line = line.map_err(failed)?;
        if line.is_empty() {
            break;
        }
        text += &line;
        text += "\n";
    }
    let addresses = Addresses::read(&text)?;
    let wait = || {
        let mut byte = [0];
        while std::io::stdin().read(&mut byte).is_ok_and(|read| read > 0) {}
        std::process::exit(1);
    };
    std::thread::Builder::new().spawn(wait).map_err(failed)?;
    work(&mut agent, &socket, &addresses, pace, silence)
}

/// A socket at an address.
pub fn bind(address: std::net::SocketAddr) -> Result<UdpSocket> {
    UdpSocket::bind(address).map_err(|error| Error::new(format!("cannot listen at {address}: {error}")))
}
