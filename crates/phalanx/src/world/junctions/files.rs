//! Road networks and flows from CityFlow's files.

use std::path::Path;
use std::sync::Arc;

use phalanx_junctions::{Demand, Network};

use crate::base::files::read_text;
use crate::{Error, Result};

/// The road network and the flows in two files, with a way for every flow and no time that does not count.
pub fn read_files(roadnet: &Path, flow: &Path) -> Result<(Arc<Network>, Arc<Demand>)> {
    let (network, demand) = read_any_files(roadnet, flow)?;
    let checked = demand.require_routes(&network).and_then(|()| demand.require_times());
    checked.map_err(|error| Error::file(flow, error.to_string()))?;
    Ok((network, demand))
}

/// The same where flows count as they do in CityFlow: vehicles without a way vanish, times that are no
/// integers are ignored.
pub fn read_any_files(roadnet: &Path, flow: &Path) -> Result<(Arc<Network>, Arc<Demand>)> {
    let network =
        Network::read(&read_text(roadnet)?).map_err(|error| Error::file(roadnet, error.to_string()))?;
    let demand =
        Demand::read(&read_text(flow)?, &network).map_err(|error| Error::file(flow, error.to_string()))?;
    Ok((Arc::new(network), Arc::new(demand)))
}
