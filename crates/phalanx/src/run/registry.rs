//! Worlds that a program adds to the built-in ones.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::sync::Arc;

use crate::world::World;
use crate::{Error, Result};

/// Makes a world from the keys of `[world]` other than `kind`.
type Build = dyn Fn(&toml::Table) -> Result<Arc<dyn World>> + Send + Sync;

/// Worlds by the name that `world.kind` has for them.
///
/// ```
/// use std::sync::Arc;
/// use phalanx::run::{Config, Registry, Session};
/// use phalanx::world::{Line, Start};
///
/// let mut registry = Registry::default();
/// registry.add("short-line", |_keys| Ok(Arc::new(Line::new(3, Start::Zeros, 0.0)?)));
/// let text = "iterations = 1\n[world]\nkind = \"short-line\"\n[objective]\nkind = \"return\"";
/// let config = Config::from_toml(text, std::path::Path::new("."))?.with_registry(registry);
/// assert_eq!(Session::new(&config)?.world().network().agents(), 3);
/// # Ok::<(), phalanx::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Registry {
    worlds: BTreeMap<String, Arc<Build>>,
}

impl Registry {
    /// Adds a world. `build` is given the keys of `[world]` and should refuse those that it does not know.
    pub fn add(
        &mut self,
        kind: &str,
        build: impl Fn(&toml::Table) -> Result<Arc<dyn World>> + Send + Sync + 'static,
    ) {
        self.worlds.insert(kind.into(), Arc::new(build));
    }

    pub(super) fn build(&self, kind: &str, keys: &toml::Table) -> Result<Arc<dyn World>> {
        let Some(build) = self.worlds.get(kind) else {
            let known: Vec<&str> = ["line", "wireless", "pistonball", "epidemic", "table"]
                .into_iter()
                .chain(self.worlds.keys().map(String::as_str))
                .collect();
            let message = format!(
                "`{kind}` is unknown; allowed are {} (a world of one's own is known to the program that registers it)",
                known.join(", ")
            );
            return Err(Error::config("world.kind", message));
        };
        build(keys)
    }
}

impl Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.worlds.keys()).finish()
    }
}
