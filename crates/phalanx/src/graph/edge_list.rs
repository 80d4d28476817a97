//! Networks from text files: one link per line, as two agent numbers.
//!
//! ```text
//! # Lines starting with '#' and blank lines do not count.
//! 0 1
//! 1, 2
//! group north 0 1
//! agent 2 hub
//! ```

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::config::{Agents, GraphSettings};
use super::{Graph, MAX_AGENTS, check_agents};
use crate::base::builtin::builtin;
use crate::base::error::{Error, Result, ensure};
use crate::base::files;
use crate::base::limits::check_memory;

impl Graph {
    /// Reads a graph from the edge list at `path`.
    ///
    /// A line holds two agent numbers from 0, separated by white space or a comma; blank lines and lines
    /// starting with `#` are skipped. A line `group NAME 0 1 …` names a group of agents, for constraints that
    /// they have together; a line `agent 3 hub` says of which kind an agent is, and if there is one, there
    /// must be one for every agent. There are `agents` agents, or one more than the largest number in the
    /// file. As in [`Graph::from_edges`], self loops are ignored and repeated links count once. Fails,
    /// naming the line, on anything else, and on a file without links. Linear in the size of the file and
    /// the agents, up to the logarithm of the largest degree.
    pub fn read_edge_list(path: &Path, agents: Option<usize>) -> Result<Graph> {
        agents.map_or(Ok(()), check_agents)?;
        let text = files::read_text(path)?;
        Graph::parse_edge_list(&text, path, agents)
    }

    /// As [`Graph::read_edge_list`], from text at hand; `path` is what errors call it.
    pub fn parse_edge_list(text: &str, path: &Path, agents: Option<usize>) -> Result<Graph> {
        agents.map_or(Ok(()), check_agents)?;
        let Parsed { links, groups, kinds } =
            parse(text, agents).map_err(|message| Error::file(path, message))?;
        let largest = links.iter().map(|&(a, b)| a.max(b)).max().unwrap_or(0);
        let agents = agents.unwrap_or(largest as usize + 1);
        // A single line may name an agent so large that there is no room for all those before it.
        check_memory(16 * agents as u128, "network.file", &format!("agents up to {largest}"))?;
        let stranger = |(name, members): &(String, Vec<u32>)| {
            let last = *members.last()?;
            (last as usize >= agents)
                .then(|| format!("group {name} has agent {last}, but agents are 0 to {}", agents - 1))
        };
        groups.iter().find_map(stranger).map_or(Ok(()), |message| Err(Error::file(path, message)))?;
        let kinds = numbered(&kinds, agents).map_err(|message| Error::file(path, message))?;
        Ok(Graph { groups: groups.into(), kinds: kinds.into(), ..Graph::from_links(agents, &links) })
    }
}

/// The keys of `[network]` beside `kind = "edges"`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Edges {
    file: PathBuf,
}

impl GraphSettings for Edges {
    fn build(&self, agents: Agents<'_>, locate: &dyn Fn(&Path) -> PathBuf) -> Result<Graph> {
        match builtin(&self.file) {
            Some(text) => Graph::parse_edge_list(text, &self.file, agents.known),
            None => Graph::read_edge_list(&locate(&self.file), agents.known),
        }
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.file)
    }
}

/// Names and agents of groups.
type Groups = Vec<(String, Vec<u32>)>;

/// What a file says.
struct Parsed {
    links: Vec<(u32, u32)>,
    groups: Groups,
    /// Agents with their kinds, as they come.
    kinds: Vec<(u32, String)>,
}

/// The links in `text`, at least one, its groups and kinds, or what is wrong in which line.
fn parse(text: &str, agents: Option<usize>) -> std::result::Result<Parsed, String> {
    // Some Windows editors put a byte-order mark before the first line.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut links, mut groups, mut kinds) = (Vec::new(), Groups::new(), Vec::new());
    let lines = (1..).zip(text.lines().map(str::trim));
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let in_line = |message: String| format!("line {number}: {message}");
        match line.split_once(char::is_whitespace) {
            Some(("group", rest)) => groups.push(parse_group(rest, agents, &groups).map_err(in_line)?),
            Some(("agent", rest)) => kinds.push(parse_kind(rest, agents).map_err(in_line)?),
            _ => links.push(parse_link(line, agents).map_err(in_line)?),
        }
    }
    ensure(!links.is_empty(), || {
        "no links found, expected lines with two agent numbers such as `0 1`".to_string()
    })?;
    Ok(Parsed { links, groups, kinds })
}

fn parse_kind(text: &str, agents: Option<usize>) -> std::result::Result<(u32, String), String> {
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        [agent, kind] => Ok((parse_agent(agent, agents)?, kind.to_string())),
        _ => Err(format!("`agent {text}` is no agent with its kind, such as `agent 3 hub`")),
    }
}

/// Kinds by agent, numbered in the order of the file; empty if it names none.
fn numbered(kinds: &[(u32, String)], agents: usize) -> std::result::Result<Vec<u16>, String> {
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let (mut names, mut found): (Vec<&str>, Vec<Option<u16>>) = (Vec::new(), vec![None; agents]);
    for (agent, name) in kinds {
        let number = names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        let entry = found
            .get_mut(*agent as usize)
            .ok_or_else(|| format!("agent {agent} has a kind, but agents are 0 to {}", agents - 1))?;
        ensure(entry.is_none(), || format!("agent {agent} has two kinds"))?;
        *entry = Some(u16::try_from(number).map_err(|_| "has more than 65536 kinds".to_string())?);
    }
    match found.iter().position(Option::is_none) {
        Some(agent) => {
            Err(format!("agent {agent} has no kind, but others have; add a line `agent {agent} KIND`"))
        }
        None => Ok(found.into_iter().flatten().collect()),
    }
}

fn parse_group(
    text: &str,
    agents: Option<usize>,
    before: &Groups,
) -> std::result::Result<(String, Vec<u32>), String> {
    let mut columns = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|column| !column.is_empty());
    let name = columns.next().ok_or("a group needs a name and agents, such as `group north 0 1`")?;
    ensure(before.iter().all(|(known, _)| known != name), || format!("group {name} is there twice"))?;
    let mut members =
        columns.map(|column| parse_agent(column, agents)).collect::<std::result::Result<Vec<u32>, _>>()?;
    ensure(!members.is_empty(), || format!("group {name} has no agents"))?;
    members.sort_unstable();
    ensure(members.windows(2).all(|pair| pair[0] < pair[1]), || format!("group {name} has an agent twice"))?;
    Ok((name.to_string(), members))
}

fn parse_link(line: &str, agents: Option<usize>) -> std::result::Result<(u32, u32), String> {
    // A comma, where there is one, is the separator; else `1,,2` and `1,` would pass for something.
    let by_comma = line.contains(',');
    let columns = line.split(|c: char| if by_comma { c == ',' } else { c.is_whitespace() });
    let mut columns = columns.map(str::trim).filter(|column| by_comma || !column.is_empty());
    let count = columns.clone().count();
    match (columns.next(), columns.next(), count) {
        (Some(a), Some(b), 2) => Ok((parse_agent(a, agents)?, parse_agent(b, agents)?)),
        _ => {
            let plural = if count == 1 { "" } else { "s" };
            Err(format!("`{line}` has {count} column{plural}, expected two agent numbers such as `0 1`"))
        }
    }
}

fn parse_agent(column: &str, agents: Option<usize>) -> std::result::Result<u32, String> {
    let last = agents.unwrap_or(MAX_AGENTS) - 1;
    ensure(!column.is_empty() && column.bytes().all(|byte| byte.is_ascii_digit()), || {
        format!("`{column}` is not an agent number, expected a whole number from 0 to {last}")
    })?;
    // Digits that do not parse are a number too large even for u32, hence unknown as well.
    match column.parse::<u32>() {
        Ok(agent) if agent as usize <= last => Ok(agent),
        _ => Err(format!("agent {column} is unknown, agents are 0 to {last}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: impl AsRef<[u8]>) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn read(text: &str, agents: Option<usize>) -> Result<Graph> {
        Graph::read_edge_list(written(text).path(), agents)
    }

    /// The message without the file's name.
    fn message(text: &str, agents: Option<usize>) -> String {
        let file = written(text);
        let message = Graph::read_edge_list(file.path(), agents).unwrap_err().to_string();
        message.strip_prefix(&format!("{}: ", file.path().display())).unwrap().to_owned()
    }

    #[test]
    fn separators_comments_and_blank_lines() {
        let text = "\u{feff}# a square\r\n0 1\r\n\r\n  1\t2  \n2,3\n  # closing it\n3 , 0\n1 0\n2 2";
        assert_eq!(read(text, None).unwrap(), Graph::ring(4).unwrap());
    }

    #[test]
    fn kinds_are_numbered_as_they_come() {
        let graph = read("0 1\n1 2\nagent 1 hub\nagent 0 leaf\nagent 2 leaf\n", None).unwrap();
        assert_eq!(graph.kinds(), [1, 0, 1]);
        assert!(read("0 1\n", None).unwrap().kinds().is_empty());
        for (text, expected) in [
            ("0 1\nagent 0 hub", "agent 1 has no kind, but others have; add a line `agent 1 KIND`"),
            ("0 1\nagent 0 hub\nagent 0 hub\nagent 1 hub", "agent 0 has two kinds"),
            ("0 1\nagent 7 hub", "agent 7 has a kind, but agents are 0 to 1"),
            ("0 1\nagent 0", "line 2: `agent 0` is no agent with its kind, such as `agent 3 hub`"),
        ] {
            assert_eq!(message(text, None), expected);
        }
    }

    #[test]
    fn agents_without_links() {
        let graph = read("0 1\n", Some(3)).unwrap();
        assert_eq!((graph.agents(), graph.edge_count()), (3, 1));
        let graph = read("0 1\n4 4\n", None).unwrap();
        assert_eq!((graph.agents(), graph.edge_count()), (5, 1));
    }

    #[test]
    fn a_generated_network_survives_the_file() {
        let graph = Graph::random_geometric(200, 0.15, 5).unwrap();
        let text: String =
            (0..200).flat_map(|i| graph.neighbours(i).iter().map(move |j| format!("{i} {j}\n"))).collect();
        assert_eq!(read(&text, Some(200)).unwrap(), graph);
    }

    #[test]
    fn mistakes_are_located_and_explained() {
        for (text, agents, expected) in [
            ("0 1\n# two\n\n1 12\n", Some(10), "line 4: agent 12 is unknown, agents are 0 to 9"),
            ("0 10", Some(10), "line 1: agent 10 is unknown, agents are 0 to 9"),
            ("4294967295 0", None, "line 1: agent 4294967295 is unknown, agents are 0 to 4294967294"),
            (
                "0 99999999999999999999999",
                None,
                "line 1: agent 99999999999999999999999 is unknown, agents are 0 to 4294967294",
            ),
            ("0 1\n0 b", Some(3), "line 2: `b` is not an agent number, expected a whole number from 0 to 2"),
            ("-1 0", Some(3), "line 1: `-1` is not an agent number, expected a whole number from 0 to 2"),
            ("0 1.5", Some(3), "line 1: `1.5` is not an agent number, expected a whole number from 0 to 2"),
            ("0,", Some(3), "line 1: `` is not an agent number, expected a whole number from 0 to 2"),
            ("0 1\n7", None, "line 2: `7` has 1 column, expected two agent numbers such as `0 1`"),
            ("0 1 0.5", None, "line 1: `0 1 0.5` has 3 columns, expected two agent numbers such as `0 1`"),
            ("0,,1", None, "line 1: `0,,1` has 3 columns, expected two agent numbers such as `0 1`"),
            ("", None, "no links found, expected lines with two agent numbers such as `0 1`"),
            ("# nothing\n", Some(4), "no links found, expected lines with two agent numbers such as `0 1`"),
        ] {
            assert_eq!(message(text, agents), expected, "{text:?}");
        }
    }

    #[test]
    fn unreadable_files_are_named() {
        let missing = Path::new("/nonexistent/links.txt");
        let message = Graph::read_edge_list(missing, None).unwrap_err().to_string();
        assert!(message.starts_with("/nonexistent/links.txt: cannot be read: "), "{message}");
        let binary = written([0xff, 0xfe, 0x00]);
        let message = Graph::read_edge_list(binary.path(), None).unwrap_err().to_string();
        assert!(message.contains("cannot be read: "), "{message}");
    }

    #[test]
    fn a_network_needs_agents() {
        let message = read("0 1", Some(0)).unwrap_err().to_string();
        assert_eq!(message, "network.agents: 0 agents given, allowed are 1 to 4294967295");
    }
}
