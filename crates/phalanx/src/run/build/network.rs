//! Links between agents, as the configuration has them.

use crate::base::memory::check_memory;
use crate::graph::Graph;
use crate::run::config::{Config, GraphConfig};
use crate::run::preset;
use crate::{Error, Result};

/// What `[network]` says of a world of `n` agents; none if it says nothing.
pub(super) fn links(config: &Config, n: usize) -> Result<Option<Graph>> {
    let Some(section) = &config.network else { return Ok(None) };
    let network = build(config, section, Some(n))?;
    if network.agents() != n {
        let message = format!("links {} agents, but the world has {n}", network.agents());
        return Err(Error::config("network", message));
    }
    Ok(Some(network))
}

/// Who meets whom in a world that is its links: what `[network]` says, or the squarest grid of `n` agents.
pub(super) fn contacts(config: &Config, n: Option<usize>) -> Result<Graph> {
    if let Some(n) = n {
        // Links while they are collected, rewards and what every run keeps for an agent at the least.
        check_memory(512 * n as u128, "world.n", &format!("{n} agents"))?;
    }
    match (&config.network, n) {
        (Some(section), _) => build(config, section, n),
        (None, Some(n)) => Graph::squarest_grid(n).map_err(|error| match error {
            Error::Config { message, .. } => Error::config("world.n", message),
            other => other,
        }),
        (None, None) => {
            let message = "is missing; give the number of agents, or a [network] that knows it: a grid or a file of links";
            Err(Error::config("world.n", message))
        }
    }
}

fn build(config: &Config, section: &GraphConfig, n: Option<usize>) -> Result<Graph> {
    let GraphConfig { kind, rows, columns, radius, probability, neighbours, rewire, links, seed, file } =
        section;
    let missing =
        |key: &str| Error::config(format!("network.{key}"), format!("is missing; `{kind}` needs it"));
    let given = [
        ("rows", rows.is_some(), &["grid"][..]),
        ("columns", columns.is_some(), &["grid"]),
        ("radius", radius.is_some(), &["geometric"]),
        ("probability", probability.is_some(), &["erdos_renyi"]),
        ("neighbours", neighbours.is_some(), &["small_world"]),
        ("rewire", rewire.is_some(), &["small_world"]),
        ("links", links.is_some(), &["scale_free"]),
        ("seed", seed.is_some(), &["geometric", "erdos_renyi", "small_world", "scale_free"]),
        ("file", file.is_some(), &["edges"]),
    ];
    if let Some((key, _, users)) =
        given.iter().find(|(_, given, users)| *given && !users.contains(&kind.as_str()))
    {
        return Err(Error::config(format!("network.{key}"), format!("is for kind {}", users.join(" and "))));
    }
    let agents = || {
        let message = format!("is missing; a network of kind `{kind}` needs the number of agents");
        n.ok_or_else(|| Error::config("world.n", message))
    };
    let seed = seed.unwrap_or(0);
    match kind.as_str() {
        "line" => Graph::line(agents()?),
        "ring" => Graph::ring(agents()?),
        "star" => Graph::star(agents()?),
        "complete" => Graph::complete(agents()?),
        "grid" => {
            let (rows, columns) =
                (rows.ok_or_else(|| missing("rows"))?, columns.ok_or_else(|| missing("columns"))?);
            let agents = rows as u128 * columns as u128;
            if let Some(n) = n.filter(|&n| n as u128 != agents) {
                let message =
                    format!("{rows} × {columns} columns make {agents} agents, but the world has {n}");
                return Err(Error::config("network.rows", message));
            }
            check_memory(
                256 * agents,
                "network.rows",
                &format!("{rows} × {columns} columns, {agents} agents,"),
            )?;
            Graph::grid(rows, columns)
        }
        "geometric" => Graph::random_geometric(agents()?, radius.ok_or_else(|| missing("radius"))?, seed),
        "erdos_renyi" => {
            Graph::erdos_renyi(agents()?, probability.ok_or_else(|| missing("probability"))?, seed)
        }
        "small_world" => {
            let neighbours = neighbours.ok_or_else(|| missing("neighbours"))?;
            Graph::small_world(agents()?, neighbours, rewire.ok_or_else(|| missing("rewire"))?, seed)
        }
        "scale_free" => Graph::scale_free(agents()?, links.ok_or_else(|| missing("links"))?, seed),
        "edges" => {
            let file = file.as_ref().ok_or_else(|| missing("file"))?;
            match preset::builtin(file) {
                Some(text) => Graph::parse_edge_list(text, file, n),
                None => Graph::read_edge_list(&config.locate(file), n),
            }
        }
        other => {
            let allowed =
                "line, ring, grid, star, complete, geometric, erdos_renyi, small_world, scale_free, edges";
            Err(Error::config("network.kind", format!("`{other}` is unknown; allowed are {allowed}")))
        }
    }
}
