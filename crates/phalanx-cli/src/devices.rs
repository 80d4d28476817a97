//! `phalanx devices`.

use phalanx::algorithm::{DeviceDescription, devices as present};
use serde_json::json;

use crate::print;

#[derive(clap::Args)]
pub struct DevicesArgs {
    /// Print one line of JSON and nothing else.
    #[arg(long)]
    json: bool,
}

/// Lists the GPUs that `--device cuda` could use.
pub fn devices(args: &DevicesArgs) -> anyhow::Result<()> {
    let found = present()?;
    if args.json {
        let list: Vec<_> = found
            .iter()
            .map(|DeviceDescription { number, name, memory, capability: [major, minor] }| {
                json!({"number": number, "name": name, "memory": memory, "capability": format!("{major}.{minor}")})
            })
            .collect();
        print(&format!("{}\n", json!(list)));
        return Ok(());
    }
    for DeviceDescription { number, name, memory, capability: [major, minor] } in &found {
        let gigabytes = *memory as f64 / 1e9;
        print(&format!("{number}  {name}, {gigabytes:.1} GB, compute capability {major}.{minor}\n"));
    }
    if found.is_empty() {
        print("no GPU\n");
    }
    Ok(())
}
