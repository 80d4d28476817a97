//! Road networks and flows from CityFlow's files.

use std::path::Path;
use std::sync::Arc;

use phalanx_junctions::{Demand, Network};

use crate::base::files::read_text;
use crate::{Error, Result};

/// The road network and the flows in two files, with a way for every flow.
pub fn read_files(roadnet: &Path, flow: &Path) -> Result<(Arc<Network>, Arc<Demand>)> {
    let (network, demand) = read_any_files(roadnet, flow)?;
    demand.require_routes(&network).map_err(|error| Error::file(flow, error.to_string()))?;
    Ok((network, demand))
}

/// The same where flows without a way count as they do in CityFlow: their vehicles vanish.
pub fn read_any_files(roadnet: &Path, flow: &Path) -> Result<(Arc<Network>, Arc<Demand>)> {
    let network =
        Network::read(&read_text(roadnet)?).map_err(|error| Error::file(roadnet, error.to_string()))?;
    let demand =
        Demand::read(&read_text(flow)?, &network).map_err(|error| Error::file(flow, error.to_string()))?;
    Ok((Arc::new(network), Arc::new(demand)))
}
