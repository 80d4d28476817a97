//! Experiments in parts: what a call has computed, the next one only reads.

use phalanx::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::ExperimentContext;

impl ExperimentContext<'_> {
    /// The part called `name`: read from `parts/`, or made and written there; what another commit made is not
    /// taken. Fails if the user has asked to stop. (A folder holds results of one length only, which
    /// [`super::context::Reproduction::begin`] sees to.)
    pub fn part<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        make: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        self.reproduction.check()?;
        let file = self.file("parts").join(format!("{name}-{}.json", self.reproduction.provenance.commit));
        // What cannot be read was cut short, or is of an older program: it is made once more.
        let read = |text: String| serde_json::from_str(&text).ok();
        if let Some(part) = std::fs::read_to_string(&file).ok().and_then(read) {
            return Ok(part);
        }
        let text = serde_json::to_string(&make()?)?;
        let unfinished = file.with_extension("json.new");
        std::fs::create_dir_all(self.file("parts"))
            .and_then(|()| std::fs::write(&unfinished, &text))
            .and_then(|()| std::fs::rename(&unfinished, &file))
            .map_err(|error| Error::write(&file, error))?;
        // As a later call will read it, to the last digit.
        Ok(serde_json::from_str(&text)?)
    }
}
