//! Kinds of worlds by name: those that come with the library, and those that a program adds.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::World;
use crate::base::document::{section, take, to_table};
use crate::base::error::ensure;
use crate::base::key::WORLD_N;
use crate::graph::{Graph, GraphConfig};
use crate::utility::{LocalSpace, Utility};
use crate::{Error, Result};

/// The settings of a kind of world: the keys of `[world]` beside `kind`, read straight into it. What others
/// want to know of a kind is asked here.
pub trait WorldSettings: Any + Debug + Send + Sync {
    /// Builds the world.
    fn build(&self, around: &Surroundings<'_>) -> Result<Arc<dyn World>>;

    /// The same with every default written out.
    fn completed(self) -> Self
    where
        Self: Sized,
    {
        self
    }

    /// The model file that it reads, its key `file`. Such a file may state γ, objectives and constraints.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Every file that it reads, with its key.
    fn files(&self) -> Vec<(&'static str, &Path)> {
        self.file().map(|file| ("file", file)).into_iter().collect()
    }

    /// Whether one of the model's own constraints may be out of reach.
    fn allows_infeasible(&self) -> bool {
        false
    }

    /// α, where every transition is mixed with α times the uniform law.
    fn mixing(&self) -> Option<f64> {
        None
    }

    /// What one of its agents is called.
    fn agent_name(&self) -> &'static str {
        "agent"
    }

    /// How to make a world of a given size, to measure how fast it is simulated. None: its size is not a
    /// setting.
    fn sized() -> Option<MakeSized>
    where
        Self: Sized,
    {
        None
    }
}

/// What a world is built in: the rest of the configuration, as far as a world may see it.
pub struct Surroundings<'a> {
    /// `[network]`.
    pub network: Option<&'a GraphConfig>,
    /// Where a file named in the configuration is.
    pub locate: &'a dyn Fn(&Path) -> PathBuf,
}

impl Surroundings<'_> {
    /// The links that `[network]` states; none if it states none. `agents`: how many there are, if the world
    /// knows.
    pub fn links(&self, agents: Option<usize>) -> Result<Option<Graph>> {
        self.network.map(|network| network.build(agents, self.locate)).transpose()
    }

    /// Replaces a world's own links by those that `[network]` states, if it states any.
    pub fn relink(&self, links: &mut Graph) -> Result<()> {
        if let Some(stated) = self.links(Some(links.agents()))? {
            *links = stated;
        }
        Ok(())
    }
}

/// Makes a world of about so many agents, or of a usual number.
pub type MakeSized = fn(Option<usize>) -> Result<SizedWorld>;

/// A world to measure.
#[derive(Debug)]
pub struct SizedWorld {
    /// The world.
    pub world: Arc<dyn World>,
    /// The radius of policies whose tables fit into memory.
    pub kappa: usize,
    /// Where its agents are, in words.
    pub shape: String,
}

/// The kind of world cannot be used.
pub(crate) fn kind_error(message: impl Into<String>) -> Error {
    Error::config("world.kind", message)
}

/// Whether the setting `field` is a probability.
pub(super) fn check_probability(field: &str, p: f64) -> Result<()> {
    ensure((0.0..=1.0).contains(&p), || {
        Error::config(field, format!("{p} is not a probability; allowed are 0 to 1"))
    })
}

/// Rows and columns of the squarest grid of no more than `agents` agents, with at least `smallest` of either.
pub(super) fn squarest(agents: usize, smallest: usize) -> Result<[usize; 2]> {
    let rows = agents.isqrt();
    if rows < smallest {
        let message = format!("{agents} agents; a grid has {} at the least", smallest * smallest);
        return Err(Error::config(WORLD_N, message));
    }
    Ok([rows, agents / rows])
}

/// A kind of world.
#[derive(Clone)]
pub struct WorldKind {
    name: String,
    read: Arc<Read>,
    sized: Option<MakeSized>,
}

/// Reads the keys of `[world]` other than `kind`; also returns them with every default written out.
type Read = dyn Fn(toml::Table) -> Result<(toml::Table, Arc<dyn WorldSettings>)> + Send + Sync;

impl WorldKind {
    /// The kind `name`, whose keys are read straight into its settings.
    pub fn of<T: WorldSettings + Serialize + DeserializeOwned>(name: &str) -> Self {
        let read = |keys: toml::Table| {
            let settings = section::<T>(keys, "world")?.completed();
            Ok((to_table(&settings, "world")?, Arc::new(settings) as Arc<dyn WorldSettings>))
        };
        WorldKind { name: name.into(), read: Arc::new(read), sized: T::sized() }
    }

    /// What `world.kind` calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// See [`WorldSettings::sized`].
    pub fn sized(&self) -> Option<MakeSized> {
        self.sized
    }
}

/// `[world]`: a kind and its settings.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "toml::Table")]
pub struct WorldConfig {
    kind: String,
    /// What is written to `config.toml` beside the kind.
    #[serde(flatten)]
    keys: toml::Table,
    /// None as long as nobody has registered the kind.
    #[serde(skip)]
    settings: Option<Arc<dyn WorldSettings>>,
}

impl TryFrom<toml::Table> for WorldConfig {
    type Error = Error;

    /// From the table as it was written. Kinds that do not come with the library are read when they are
    /// built.
    fn try_from(mut keys: toml::Table) -> Result<Self> {
        let registry = Registry::default();
        let Some(kind) = take::<String>(&mut keys, "world", "kind")? else {
            let names: Vec<String> = registry.worlds().map(|kind| format!("`{}`", kind.name)).collect();
            return Err(kind_error(format!("is missing; allowed are {}", names.join(", "))));
        };
        let Some(known) = registry.world(&kind) else {
            return Ok(WorldConfig { kind, keys, settings: None });
        };
        let (keys, settings) = (known.read)(keys)?;
        Ok(WorldConfig { kind, keys, settings: Some(settings) })
    }
}

impl WorldConfig {
    /// Builds the world; `registry` knows the kinds that do not come with the library.
    pub fn build(&self, registry: &Registry, around: &Surroundings<'_>) -> Result<Arc<dyn World>> {
        if let Some(settings) = &self.settings {
            return settings.build(around);
        }
        let known = registry.world(&self.kind).ok_or_else(|| {
            let names: Vec<&str> = registry.worlds().map(WorldKind::name).collect();
            let message = format!(
                "`{}` is unknown; allowed are {} (a world of your own is known only to the program that registers it)",
                self.kind,
                names.join(", ")
            );
            kind_error(message)
        })?;
        let (_, settings) = (known.read)(self.keys.clone())?;
        settings.build(around)
    }

    /// The name of the kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// What the kind is asked; none for kinds that do not come with the library.
    pub fn settings(&self) -> Option<&dyn WorldSettings> {
        self.settings.as_deref()
    }

    /// The settings of a certain kind, if it is of that kind.
    pub fn settings_of<T: WorldSettings>(&self) -> Option<&T> {
        self.settings().and_then(|settings| (settings as &dyn Any).downcast_ref())
    }

    /// The model file that it reads.
    pub fn file(&self) -> Option<&Path> {
        self.settings()?.file()
    }

    /// Every file that it reads, with its key.
    pub fn files(&self) -> Vec<(&'static str, &Path)> {
        self.settings().map(WorldSettings::files).unwrap_or_default()
    }

    /// The same with its files written as `locate` says.
    pub(crate) fn located(mut self, locate: &dyn Fn(&Path) -> PathBuf) -> Self {
        let files: Vec<(&str, PathBuf)> =
            self.files().into_iter().map(|(key, file)| (key, locate(file))).collect();
        for (key, file) in files {
            self.keys.insert(key.into(), file.display().to_string().into());
        }
        self
    }
}

/// Makes a world from the keys of `[world]` other than `kind`.
type Build = dyn Fn(&toml::Table) -> Result<Arc<dyn World>> + Send + Sync;

/// Makes an agent's utility.
type BuildUtility = dyn Fn(usize, LocalSpace) -> Result<Arc<dyn Utility>> + Send + Sync;

/// Settings of a world that a program has added.
struct Own {
    kind: String,
    keys: toml::Table,
    build: Arc<Build>,
}

impl Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(&self.kind).field(&self.keys).finish()
    }
}

impl WorldSettings for Own {
    fn build(&self, around: &Surroundings<'_>) -> Result<Arc<dyn World>> {
        let world = (self.build)(&self.keys)?;
        let is_free = around.network.is_none();
        ensure(is_free, || Error::config("network", format!("`{}` brings its own links", self.kind)))?;
        Ok(world)
    }
}

/// Worlds by the name that `world.kind` has for them, and utilities by the `kind` of an objective or a
/// constraint.
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
#[derive(Clone)]
pub struct Registry {
    /// Those of the library first.
    worlds: Vec<WorldKind>,
    utilities: BTreeMap<String, Arc<BuildUtility>>,
}

impl Default for Registry {
    /// What comes with the library.
    fn default() -> Self {
        Registry { worlds: super::kinds().into(), utilities: BTreeMap::new() }
    }
}

impl Registry {
    /// Adds a world. `build` is given the keys of `[world]` and should refuse those that it does not know.
    pub fn add(
        &mut self,
        kind: &str,
        build: impl Fn(&toml::Table) -> Result<Arc<dyn World>> + Send + Sync + 'static,
    ) {
        let (kind, build): (String, Arc<Build>) = (kind.into(), Arc::new(build));
        self.worlds.retain(|known| known.name != kind);
        let name = kind.clone();
        let read = move |keys: toml::Table| {
            let own = Own { kind: kind.clone(), keys: keys.clone(), build: build.clone() };
            Ok((keys, Arc::new(own) as Arc<dyn WorldSettings>))
        };
        self.worlds.push(WorldKind { name, read: Arc::new(read), sized: None });
    }

    /// Every kind of world.
    pub fn worlds(&self) -> impl Iterator<Item = &WorldKind> {
        self.worlds.iter()
    }

    fn world(&self, kind: &str) -> Option<&WorldKind> {
        self.worlds.iter().find(|known| known.name == kind)
    }

    /// Adds a utility. `build` is given the agent and its space; it may refuse, and should
    /// [check](crate::utility::check_gradient) a gradient that somebody wrote by hand. Beside `kind` a
    /// configuration may give `scale` and `offset`.
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
    /// let text = r#"
    ///     iterations = 1
    ///     world = { kind = "line", n = 3 }
    ///     objective = { kind = "return" }
    ///     constraint = [{ kind = "acting", at_most = 0.4 }]
    /// "#;
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

    /// What makes the utility `kind`; none if it is not one of these.
    pub(crate) fn utility(&self, kind: &str) -> Option<&BuildUtility> {
        self.utilities.get(kind).map(|build| &**build)
    }

    /// Names of the utilities.
    pub(crate) fn utility_names(&self) -> impl Iterator<Item = &str> {
        self.utilities.keys().map(String::as_str)
    }
}

impl Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.worlds.iter().map(WorldKind::name))
            .entries(self.utilities.keys())
            .finish()
    }
}
