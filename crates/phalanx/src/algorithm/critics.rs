//! The critics that a run can choose from.

use std::sync::Arc;

use crate::base::section::{Family, Kind};
use crate::exact::TruncationKeys;
use crate::learn::critic::{
    CriticSettings, LinearCriticSettings, LstdSettings, MonteCarloSettings, NeuralSettings,
    ReturnsCriticSettings, TdSettings,
};

impl Family for dyn CriticSettings {
    const SECTION: &'static str = "critic";

    fn kinds() -> &'static [Kind<Self>] {
        KINDS
    }
}

/// One line per kind.
const KINDS: &[Kind<dyn CriticSettings>] = &[
    Kind { name: "td", read: |keys| Ok(Arc::new(TdSettings::read(keys)?)) },
    Kind { name: "lstd", read: |keys| Ok(Arc::new(LstdSettings::read(keys)?)) },
    Kind { name: "montecarlo", read: |keys| Ok(Arc::new(MonteCarloSettings::read(keys)?)) },
    Kind { name: "linear", read: |keys| Ok(Arc::new(LinearCriticSettings::read(keys)?)) },
    Kind { name: "network", read: |keys| Ok(Arc::new(NeuralSettings::read(keys)?)) },
    Kind { name: "returns", read: |keys| Ok(Arc::new(ReturnsCriticSettings::read(keys)?)) },
    Kind { name: "exact", read: |keys| Ok(Arc::new(keys.read::<TruncationKeys>()?)) },
];
