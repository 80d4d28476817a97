//! Who is where: lines `AGENT HOST:PORT` and one `world HOST:PORT`; `#` begins a comment.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{SocketAddr, ToSocketAddrs};

use crate::error::{Error, Result, ensure};
use crate::message::WORLD;

/// Addresses of agents and the world.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Addresses {
    found: BTreeMap<u32, SocketAddr>,
}

impl Addresses {
    /// Reads the text of a file. Names of hosts are looked up.
    pub fn read(text: &str) -> Result<Addresses> {
        Addresses::read_with(text, |place| {
            place.to_socket_addrs()?.next().ok_or_else(|| std::io::Error::other("nothing is known of it"))
        })
    }

    /// The same where `look_up` tells the address at `HOST:PORT`.
    pub fn read_with(text: &str, look_up: impl Fn(&str) -> std::io::Result<SocketAddr>) -> Result<Addresses> {
        let mut addresses = Addresses::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                let of_line = |error| Error::new(format!("line {number}: {error}"));
                addresses.read_line(line, &look_up).map_err(of_line)?;
            }
        }
        Ok(addresses)
    }

    fn read_line(&mut self, line: &str, look_up: impl Fn(&str) -> std::io::Result<SocketAddr>) -> Result<()> {
        let mut words = line.split_whitespace();
        let (Some(name), Some(place), None) = (words.next(), words.next(), words.next()) else {
            return Err(Error::new("is not `AGENT HOST:PORT` or `world HOST:PORT`"));
        };
        let id =
            match name {
                "world" => WORLD,
                name => name.parse().ok().filter(|id| *id != WORLD).ok_or_else(|| {
                    Error::new(format!("`{name}` is neither an agent's number nor `world`"))
                })?,
            };
        let address =
            look_up(place).map_err(|error| Error::new(format!("`{place}` is no address: {error}")))?;
        ensure(address.port() != 0, || format!("`{place}` is no address: port 0"))?;
        self.add(id, address)
    }

    /// Adds the address of an agent, or of [`WORLD`].
    pub fn add(&mut self, id: u32, address: SocketAddr) -> Result<()> {
        let is_taken = self.found.values().any(|other| *other == address);
        ensure(!is_taken, || format!("{address} is somebody else's address already"))?;
        ensure(self.found.insert(id, address).is_none(), || format!("{} has an address already", name(id)))
    }

    /// The address of an agent, or of [`WORLD`].
    pub fn of(&self, id: u32) -> Result<SocketAddr> {
        let missing = || Error::new(format!("there is no address of {}", name(id)));
        self.found.get(&id).copied().ok_or_else(missing)
    }

    /// As the text of a file.
    pub fn text(&self) -> String {
        self.found.iter().fold(String::new(), |mut text, (&id, address)| {
            let name = if id == WORLD { "world".to_string() } else { id.to_string() };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name} {address}");
            text
        })
    }
}

fn name(id: u32) -> String {
    if id == WORLD { "the world".into() } else { format!("agent {id}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_is_written() {
        let text = "# ours\n1 127.0.0.1:5001\n0 127.0.0.1:5000 # left\n\nworld [::1]:5002\n";
        let addresses = Addresses::read(text).unwrap();
        assert_eq!(addresses.of(1).unwrap().port(), 5001);
        assert_eq!(addresses.of(WORLD).unwrap().port(), 5002);
        assert_eq!(Addresses::read(&addresses.text()).unwrap(), addresses);
        assert!(addresses.of(2).unwrap_err().to_string().contains("agent 2"));
    }

    #[test]
    fn lines_that_say_something_else_are_refused() {
        for (text, words) in [
            ("1", "line 1: is not `AGENT HOST:PORT`"),
            ("1 127.0.0.1:1 2", "is not `AGENT HOST:PORT`"),
            ("\nx 127.0.0.1:1", "line 2: `x` is neither"),
            ("4294967295 127.0.0.1:1", "is neither"),
            ("1 127.0.0.1", "is no address"),
            ("1 127.0.0.1:0", "port 0"),
            ("1 127.0.0.1:1\n1 127.0.0.1:2", "line 2: agent 1 has an address already"),
            ("1 127.0.0.1:1\nworld 127.0.0.1:1", "somebody else's"),
        ] {
            let message = Addresses::read(text).unwrap_err().to_string();
            assert!(message.contains(words), "{text}: {message}");
        }
    }
}
