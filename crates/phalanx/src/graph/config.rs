//! `[network]`: graphs by the name of their generator, each with the settings that lie beside it.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Graph;
use super::edge_list::Edges;
use super::generate::{ErdosRenyi, Geometric, Grid};
use super::social::{ScaleFree, SmallWorld};
use crate::base::document::{section, take, to_table};
use crate::base::error::{Error, Result};
use crate::base::key::WORLD_N;

/// Name of the key that chooses a generator.
pub(crate) const NETWORK_KIND: &str = "network.kind";

/// Every generator, a line each: its name, its keys, and what they are read into.
const KINDS: [GraphKind; 10] = [
    GraphKind { name: "line", keys: &[], read: |_| shape(Graph::line) },
    GraphKind { name: "ring", keys: &[], read: |_| shape(Graph::ring) },
    GraphKind { name: "grid", keys: &["rows", "columns"], read: settings::<Grid> },
    GraphKind { name: "star", keys: &[], read: |_| shape(Graph::star) },
    GraphKind { name: "complete", keys: &[], read: |_| shape(Graph::complete) },
    GraphKind { name: "geometric", keys: &["radius", "seed"], read: settings::<Geometric> },
    GraphKind { name: "erdos_renyi", keys: &["probability", "seed"], read: settings::<ErdosRenyi> },
    GraphKind { name: "small_world", keys: &["neighbours", "rewire", "seed"], read: settings::<SmallWorld> },
    GraphKind { name: "scale_free", keys: &["links", "seed"], read: settings::<ScaleFree> },
    GraphKind { name: "edges", keys: &["file"], read: settings::<Edges> },
];

/// The settings of a generator: the keys of `[network]` beside `kind`.
pub(super) trait GraphSettings: Debug + Send + Sync {
    /// The graph. `locate` tells where a file named in the configuration is.
    fn build(&self, agents: Agents<'_>, locate: &dyn Fn(&Path) -> PathBuf) -> Result<Graph>;

    /// The file that it reads, its key `file`.
    fn file(&self) -> Option<&Path> {
        None
    }
}

/// How many agents the world has, if it knows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Agents<'a> {
    kind: &'a str,
    pub known: Option<usize>,
}

impl Agents<'_> {
    /// Their number, which this generator needs.
    pub fn needed(self) -> Result<usize> {
        let message = format!("is missing; a network of kind `{}` needs the number of agents", self.kind);
        self.known.ok_or_else(|| Error::config(WORLD_N, message))
    }
}

struct GraphKind {
    name: &'static str,
    keys: &'static [&'static str],
    read: fn(toml::Table) -> Result<Read>,
}

/// The keys as they are written back, and what they were read into.
type Read = (toml::Table, Arc<dyn GraphSettings>);

fn settings<T: GraphSettings + Serialize + DeserializeOwned + 'static>(keys: toml::Table) -> Result<Read> {
    let settings: T = section(keys, "network")?;
    Ok((to_table(&settings, "network")?, Arc::new(settings)))
}

/// A generator without settings.
type Shape = fn(usize) -> Result<Graph>;

impl GraphSettings for Shape {
    fn build(&self, agents: Agents<'_>, _: &dyn Fn(&Path) -> PathBuf) -> Result<Graph> {
        self(agents.needed()?)
    }
}

fn shape(build: Shape) -> Result<Read> {
    Ok((toml::Table::new(), Arc::new(build)))
}

/// `[network]`: replaces the world's own links; in an epidemic, who meets whom.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "toml::Table")]
pub struct GraphConfig {
    kind: String,
    /// What is written to `config.toml` beside the kind.
    #[serde(flatten)]
    keys: toml::Table,
    #[serde(skip)]
    settings: Arc<dyn GraphSettings>,
}

impl TryFrom<toml::Table> for GraphConfig {
    type Error = Error;

    /// From the table as it was written.
    fn try_from(mut keys: toml::Table) -> Result<Self> {
        let Some(kind) = take::<String>(&mut keys, "network", "kind")? else {
            return Err(Error::config("network", "missing field `kind`"));
        };
        let Some(known) = KINDS.iter().find(|known| known.name == kind) else {
            let allowed = KINDS.map(|known| known.name).join(", ");
            return Err(Error::config(NETWORK_KIND, format!("`{kind}` is unknown; allowed are {allowed}")));
        };
        if let Some((key, value)) = keys.iter().find(|(key, _)| !known.keys.contains(&key.as_str())) {
            return Err(not_for_this_kind(key, value));
        }
        let (keys, settings) = (known.read)(keys).map_err(|error| {
            if let Error::Config { message, .. } = &error
                && let Some(key) = message.strip_prefix("missing field `")
            {
                let key = key.trim_end_matches('`');
                return Error::config(format!("network.{key}"), format!("is missing; `{kind}` needs it"));
            }
            error
        })?;
        Ok(GraphConfig { kind, keys, settings })
    }
}

impl GraphConfig {
    /// The graph of `agents` agents, or of as many as the generator knows. `locate` tells where a file named
    /// in the configuration is.
    pub fn build(&self, agents: Option<usize>, locate: &dyn Fn(&Path) -> PathBuf) -> Result<Graph> {
        self.settings.build(Agents { kind: &self.kind, known: agents }, locate)
    }

    /// The file that it reads.
    pub fn file(&self) -> Option<&Path> {
        self.settings.file()
    }

    /// The same with its file written as `locate` says.
    pub(crate) fn located(mut self, locate: &dyn Fn(&Path) -> PathBuf) -> Self {
        if let Some(file) = self.file().map(locate) {
            self.keys.insert("file".into(), file.display().to_string().into());
        }
        self
    }
}

/// What is wrong with the value of `key`, which generators have it, or which keys there are.
fn not_for_this_kind(key: &str, value: &toml::Value) -> Error {
    let name = format!("network.{key}");
    let users: Vec<&GraphKind> = KINDS.iter().filter(|kind| kind.keys.contains(&key)).collect();
    if let Some(user) = users.first() {
        let alone = toml::Table::from_iter([(key.to_string(), value.clone())]);
        return match (user.read)(alone) {
            Err(Error::Config { field, message }) if field == name => Error::Config { field, message },
            _ => {
                let users: Vec<&str> = users.iter().map(|kind| kind.name).collect();
                Error::config(name, format!("is for kind {}", users.join(" and ")))
            }
        };
    }
    let mut keys = vec!["kind"];
    for key in KINDS.iter().flat_map(|kind| kind.keys) {
        // What several kinds have comes after what one of them has.
        keys.retain(|known| known != key);
        keys.push(key);
    }
    let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    Error::config(name, format!("unknown field `{key}`, expected one of {}", keys.join(", ")))
}
