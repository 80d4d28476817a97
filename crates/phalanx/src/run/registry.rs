//! Worlds and utilities that a program adds to the built-in ones.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::sync::Arc;

use crate::utility::{LocalSpace, Utility};
use crate::world::World;
use crate::{Error, Result};

/// Makes a world from the keys of `[world]` other than `kind`.
type Build = dyn Fn(&toml::Table) -> Result<Arc<dyn World>> + Send + Sync;

/// Makes an agent's utility.
type BuildUtility = dyn Fn(usize, LocalSpace) -> Result<Arc<dyn Utility>> + Send + Sync;

/// Worlds by the name that `world.kind` has for them, and utilities by the `kind` of an objective or a constraint.
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
/// assert_eq!(Session::new(&config)?.world().graph().agents(), 3);
/// # Ok::<(), phalanx::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Registry {
    worlds: BTreeMap<String, Arc<Build>>,
    utilities: BTreeMap<String, Arc<BuildUtility>>,
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

    /// Adds a utility. `build` is given the agent and its space; it may refuse, and should [check](crate::utility::check_gradient) a
    /// gradient that somebody wrote by hand. Beside `kind` a configuration may give `scale` and `offset`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use phalanx::run::{Config, Registry, Session};
    /// use phalanx::utility::{LocalSpace, Utility};
    ///
    /// /// The share of time in which an agent acts.
    /// #[derive(Debug)]
    /// struct Acting;
    ///
    /// impl Utility for Acting {
    ///     fn value(&self, occupancy: &[f64], space: LocalSpace) -> f64 {
    ///         (1.0 - space.gamma) * occupancy.iter().skip(1).step_by(space.actions).sum::<f64>()
    ///     }
    ///     fn gradient(&self, _: &[f64], space: LocalSpace, out: &mut [f64]) {
    ///         out.fill(0.0);
    ///         out.iter_mut().skip(1).step_by(space.actions).for_each(|slope| *slope = 1.0 - space.gamma);
    ///     }
    /// }
    ///
    /// let mut registry = Registry::default();
    /// registry.add_utility("acting", |_agent, _space| Ok(Arc::new(Acting)));
    /// let text = "iterations = 1\n[world]\nkind = \"line\"\nn = 3\n[objective]\nkind = \"return\"\n[[constraint]]\nkind = \"acting\"\nat_most = 0.4";
    /// let config = Config::from_toml(text, std::path::Path::new("."))?.with_registry(registry);
    /// let values = Session::new(&config)?.evaluate()?.values;
    /// assert!(values.data().iter().all(|share| (share - 0.5).abs() < 0.05));
    /// # Ok::<(), phalanx::Error>(())
    /// ```
    pub fn add_utility(
        &mut self,
        kind: &str,
        build: impl Fn(usize, LocalSpace) -> Result<Arc<dyn Utility>> + Send + Sync + 'static,
    ) {
        self.utilities.insert(kind.into(), Arc::new(build));
    }

    /// The utility `kind` of an agent; none if it is not one of these.
    pub(super) fn utility(
        &self,
        kind: &str,
        agent: usize,
        space: LocalSpace,
    ) -> Option<Result<Arc<dyn Utility>>> {
        self.utilities.get(kind).map(|build| build(agent, space))
    }

    /// Whether there is a utility of this name.
    pub(super) fn has_utility(&self, kind: &str) -> bool {
        self.utilities.contains_key(kind)
    }

    /// Names of the utilities.
    pub(super) fn utility_names(&self) -> impl Iterator<Item = &str> {
        self.utilities.keys().map(String::as_str)
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
        f.debug_list().entries(self.worlds.keys()).entries(self.utilities.keys()).finish()
    }
}
