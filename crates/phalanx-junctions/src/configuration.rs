//! CityFlow's configuration file, which names the other two.

use crate::error::{Result, Source};
use crate::json::{Item, parse};
use crate::simulation::Settings;

/// What a CityFlow configuration says.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// How to run.
    pub settings: Settings,
    /// The road network, with the folder in front as it stands in the file.
    pub roadnet_file: String,
    /// The flows, with the folder in front.
    pub flow_file: String,
}

impl Configuration {
    /// Reads a configuration.
    ///
    /// # Errors
    /// One line that names what is wrong. Lane changes are refused: CityFlow itself does not repeat them.
    pub fn read(text: &str) -> Result<Self> {
        let file = parse(text, Source::Configuration)?;
        let file = Item::new(&file, Source::Configuration, "file")?;
        let folder = file.field("dir")?.text()?;
        let path = |name| Ok(format!("{folder}{}", file.field(name)?.text()?));
        if let Some(lane_change) = file.optional("laneChange")
            && lane_change.flag()?
        {
            return Err(lane_change.error("lane changes are not simulated, must be false"));
        }
        let seed = file.field("seed")?;
        let number = seed.number()?.integer.and_then(|seed| i32::try_from(seed).ok());
        let settings = Settings {
            interval: file.field("interval")?.within(0.01, 10.0)?,
            seed: number.ok_or_else(|| seed.error("must be an integer of 32 bits"))? as u32,
            own_program: !file.field("rlTrafficLight")?.flag()?,
        };
        Ok(Self { settings, roadnet_file: path("roadnetFile")?, flow_file: path("flowFile")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_read() {
        let text = r#"{"interval": 1.0, "seed": 3, "dir": "data/", "roadnetFile": "r.json",
            "flowFile": "f.json", "rlTrafficLight": true, "laneChange": false, "saveReplay": false}"#;
        let configuration = Configuration::read(text).unwrap();
        assert_eq!(configuration.roadnet_file, "data/r.json");
        assert_eq!(configuration.settings, Settings { interval: 1.0, seed: 3, own_program: false });
        let changes = text.replace("\"laneChange\": false", "\"laneChange\": true");
        let message = Configuration::read(&changes).unwrap_err().to_string();
        assert_eq!(
            message,
            "configuration: line 2: file: laneChange: lane changes are not simulated, must be false"
        );
    }
}
