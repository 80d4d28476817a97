//! Policies as JSON, and a short program that acts on it.

use phalanx_agent::policy::Policies;
use serde::Serialize;

use super::File;
use crate::{Error, Result};

/// The policies.
pub const POLICY: &str = "policy.json";
/// The program.
const PROGRAM: &str = "act.py";

/// The policies, and the program.
pub fn files(policies: &Policies) -> Result<Vec<File>> {
    let text = text(policies).map_err(|e| Error::write(POLICY, e.into()))?;
    let program = include_bytes!("act.py").to_vec();
    Ok(vec![
        File { name: POLICY.into(), bytes: text.into_bytes() },
        File { name: PROGRAM.into(), bytes: program },
    ])
}

/// The policies, one neural network or agent per line: people can find theirs.
fn text(policies: &Policies) -> serde_json::Result<String> {
    let Policies { format, version, kappa, networks, agents } = policies;
    let (format, version, kappa) = (format.clone(), *version, *kappa);
    let empty = Policies { format, version, kappa, networks: Vec::new(), agents: Vec::new() };
    let text = serde_json::to_string(&empty)? + "\n";
    let text = text.replace("\"networks\":[]", &format!("\n\"networks\":[{}]", lines(networks)?));
    Ok(text.replace("\"agents\":[]", &format!("\n\"agents\":[{}]", lines(agents)?)))
}

fn lines<T: Serialize>(items: &[T]) -> serde_json::Result<String> {
    let lines: Vec<String> = items.iter().map(serde_json::to_string).collect::<serde_json::Result<_>>()?;
    Ok(if lines.is_empty() { String::new() } else { format!("\n{}\n", lines.join(",\n")) })
}
