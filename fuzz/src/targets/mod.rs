//! What is fuzzed: one file per kind of input.

mod agents;
mod checkpoint;
mod config;
mod edges;
mod model;
mod policy;
mod replay;
mod report;
mod results;
mod sweep;
mod tables;
mod tensors;
mod traffic;

use crate::Verdict;
use crate::choices::Choices;

/// A reader, and what stands behind it.
#[derive(Clone, Copy)]
pub struct Target {
    /// What it is called.
    pub name: &'static str,
    /// What it reads.
    pub about: &'static str,
    /// The source files that read it, as the beginnings of their paths in `crates`.
    pub reads: &'static [&'static str],
    body: fn(&mut Choices<'_>) -> Verdict,
}

impl Target {
    /// Reads what the choices make.
    pub fn run(&self, input: &[u8]) -> Verdict {
        (self.body)(&mut Choices::new(input))
    }

    /// The same, printing the files that the choices make.
    pub fn show(&self, input: &[u8]) -> Verdict {
        (self.body)(&mut Choices::shown(input))
    }
}

/// What reads configurations.
const CONFIG: [&str; 3] =
    ["phalanx/src/run/config/", "phalanx/src/base/document.rs", "phalanx/src/base/value.rs"];

/// All of them.
pub const TARGETS: [Target; 21] = [
    Target {
        name: "config",
        reads: &CONFIG,
        about: "a configuration, its world, problem and algorithm",
        body: config::document,
    },
    Target { name: "set", reads: &CONFIG, about: "--set on a preset", body: config::settings },
    Target {
        name: "model",
        reads: &["phalanx/src/world/table.rs", "phalanx/src/base/value.rs"],
        about: "a model file as a world of its own",
        body: model::world,
    },
    Target {
        name: "exact",
        reads: &["phalanx/src/exact/input.rs", "phalanx/src/exact/report.rs"],
        about: "a model file with policy and multipliers, its exact report and optimum",
        body: model::exact,
    },
    Target {
        name: "tables",
        reads: &["phalanx/src/run/build/utilities.rs", "phalanx/src/utility/"],
        about: "tables of utilities, one per agent",
        body: tables::utilities,
    },
    Target {
        name: "edges",
        reads: &["phalanx/src/graph/edge_list.rs"],
        about: "an edge list, its graph and neighbourhoods",
        body: edges::edges,
    },
    Target {
        name: "replay",
        reads: &["phalanx-cli/src/replay/"],
        about: "a recorded game, played again",
        body: replay::replay,
    },
    Target {
        name: "traffic",
        reads: &[
            "phalanx-junctions/src/network/",
            "phalanx-junctions/src/demand/",
            "phalanx-junctions/src/json/",
        ],
        about: "a road network and its flows, and some seconds of traffic",
        body: traffic::roads,
    },
    Target {
        name: "phases",
        reads: &["phalanx-cli/src/replay/junctions.rs"],
        about: "phases of signals, a row per step",
        body: traffic::phases,
    },
    Target {
        name: "sweep",
        reads: &["phalanx-cli/src/sweep/file.rs", "phalanx-cli/src/sweep/settings.rs"],
        about: "a sweep's file, its settings and runs",
        body: sweep::sweep,
    },
    Target {
        name: "policy",
        reads: &["phalanx/src/policy/file.rs"],
        about: "policy.safetensors into policies of four kinds",
        body: policy::policy,
    },
    Target {
        name: "multipliers",
        reads: &["phalanx/src/run/multipliers.rs"],
        about: "multipliers.safetensors",
        body: policy::multipliers,
    },
    Target {
        name: "usual_states",
        reads: &["phalanx/src/run/usual_states.rs"],
        about: "usual_states.json",
        body: results::usual_states,
    },
    Target {
        name: "checkpoint",
        reads: &["phalanx/src/run/checkpoint.rs"],
        about: "files of state into runs, and one more iteration",
        body: checkpoint::state_file,
    },
    Target {
        name: "manifest",
        reads: &["phalanx/src/run/checkpoint.rs"],
        about: "a checkpoint's manifest: verify and restore",
        body: checkpoint::manifest,
    },
    Target {
        name: "outcome",
        reads: &["phalanx/src/run/outcome.rs"],
        about: "outcome.json and meta.json",
        body: results::outcome,
    },
    Target {
        name: "metrics",
        reads: &["phalanx-pictures/src/plot/read.rs"],
        about: "metrics.csv, agents.csv, agents-summary.csv and their figures",
        body: results::figures,
    },
    Target {
        name: "report",
        reads: &["phalanx-paper/src/sheet.rs", "phalanx-paper/src/claims/"],
        about: "experiment.json and results.csv, and the claims judged by them",
        body: report::report,
    },
    Target {
        name: "portable",
        reads: &["phalanx-agent/src/check.rs", "phalanx-agent/src/law.rs"],
        about: "policies as data, and a step of every agent",
        body: agents::policies,
    },
    Target {
        name: "datagram",
        reads: &["phalanx-agent/src/message.rs", "phalanx-agent/src/agent.rs"],
        about: "messages to an agent, among true ones",
        body: agents::datagrams,
    },
    Target {
        name: "addresses",
        reads: &["phalanx-agent/src/addresses.rs"],
        about: "a file of addresses",
        body: agents::addresses,
    },
];

/// The target of a name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
