//! Flags of faulty links: messages that are lost or late, and agents that fall silent.

use phalanx::Error;
use phalanx::policy::LINKS;

/// What happens to messages, in place of what the run's `[links]` say.
#[derive(clap::Args)]
pub struct LinkArgs {
    /// Probability that a message is lost on a link [default: the run's].
    #[arg(long, value_name = "P")]
    loss: Option<f64>,
    /// Steps that a message takes [default: the run's].
    #[arg(long, value_name = "STEPS")]
    delay: Option<usize>,
    /// Agents that send nothing, e.g. 3,7 [default: the run's].
    #[arg(long, value_name = "AGENTS", value_delimiter = ',')]
    silent: Option<Vec<usize>>,
    /// Steps after which a state is too old to be used [default: the run's].
    #[arg(long, value_name = "STEPS")]
    max_age: Option<usize>,
}

/// Names of the flags, which are keys of the configuration too.
const NAMES: [&str; 4] = ["loss", "delay", "silent", "max_age"];

impl LinkArgs {
    /// The settings that they stand for, as for `--set`.
    pub fn sets(&self) -> Vec<String> {
        let values = [
            // As TOML has it: `nan`, not `NaN`.
            self.loss.map(|loss| format!("{loss:?}").to_lowercase()),
            self.delay.map(|delay| delay.to_string()),
            self.silent.as_ref().map(|agents| format!("{agents:?}")),
            self.max_age.map(|age| age.to_string()),
        ];
        let given = NAMES.iter().zip(values).filter_map(|(name, value)| Some((name, value?)));
        given.map(|(name, value)| format!("{LINKS}.{name}={value}")).collect()
    }

    /// An error about a setting that stands for a flag names the flag.
    pub fn name_flag(error: Error) -> Error {
        let Error::Config { field, message } = &error else { return error };
        let key = field.strip_prefix(LINKS).and_then(|key| key.strip_prefix('.')).unwrap_or_default();
        match NAMES.iter().find(|name| key.split('.').next() == Some(name)) {
            Some(&"max_age") => Error::argument("max-age", message.as_str()),
            Some(name) => Error::argument(name, message.as_str()),
            None => error,
        }
    }
}
