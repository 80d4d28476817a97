//! `phalanx paper`: the paper's experiments, made again one by one or all together, and what became of its claims.

mod baseline_table;
mod catalogue;
mod claims;
mod cost;
mod course;
mod curves;
mod lab;
mod models;
mod panels;
mod parts;
mod rate;
mod report;
mod samples;
mod setting;
mod shown;
mod trained;
mod truncation;
mod versus;
mod visual;

use std::path::PathBuf;

use catalogue::{ALL, Experiment};
use lab::{Lab, Length};
use phalanx::Error;
use phalanx::run::Registry;

use crate::fleet::Workers;
use crate::{print, sheet, statistics, train};

#[derive(clap::Args)]
pub struct PaperArgs {
    /// `list`, `all`, `report`, or experiments by their IDs.
    #[arg(required = true, value_name = "list|all|report|ID")]
    what: Vec<String>,
    /// Seeds of every training run: 1 to N.
    #[arg(long, value_name = "N", default_value_t = 3)]
    seeds: u64,
    /// A fifteenth of the iterations and two seeds, in minutes: shows that everything works, not what the paper claims.
    #[arg(long, conflicts_with = "seeds")]
    quick: bool,
    /// At most N iterations a training run, for tests; marked as such everywhere.
    #[arg(long, value_name = "N", conflicts_with = "quick")]
    cut: Option<usize>,
    /// Runs at a time, on one thread each [default: all cores].
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Folder for everything [default: paper, with --quick paper-quick].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// `phalanx paper`.
pub fn paper(args: &PaperArgs, registry: &Registry) -> anyhow::Result<()> {
    if args.what.iter().any(|word| word == "list") {
        list();
        return Ok(());
    }
    let wanted = wanted(&args.what)?;
    let lab = lab(args, registry)?;
    for experiment in wanted {
        lab.check()?;
        print(&format!("{}: {} ({})\n", experiment.id, experiment.title, experiment.label));
        let bench = lab.begin(experiment.id)?;
        experiment.make(&bench)?;
        bench.finish()?;
        print(&format!("  {}\n", lab.folder(experiment.id).display()));
    }
    if args.what.iter().any(|word| matches!(word.as_str(), "all" | "report")) {
        for file in report::write(&lab.root, &lab.provenance.commit)? {
            print(&format!("{}\n", file.display()));
        }
    }
    Ok(())
}

fn list() {
    let width = ALL.iter().map(|experiment| experiment.id.len()).max().unwrap_or(0);
    for Experiment { id, title, label, .. } in ALL {
        print(&format!("{id:width$}  {title} ({label})\n"));
    }
}

/// The experiments that were asked for, in the paper's order.
fn wanted(what: &[String]) -> phalanx::Result<Vec<&'static Experiment>> {
    for word in what.iter().filter(|word| !matches!(word.as_str(), "all" | "report")) {
        if catalogue::find(word).is_none() {
            let known: Vec<&str> = ALL.iter().map(|experiment| experiment.id).collect();
            let message =
                format!("`{word}` is unknown; allowed are list, all, report and {}", known.join(", "));
            return Err(Error::config("ID", message));
        }
    }
    let all = what.iter().any(|word| word == "all");
    Ok(ALL.iter().filter(|experiment| all || what.iter().any(|word| word == experiment.id)).collect())
}

fn lab(args: &PaperArgs, registry: &Registry) -> anyhow::Result<Lab> {
    const MOST_SEEDS: u64 = 1000;
    if !(1..=MOST_SEEDS).contains(&args.seeds) {
        return Err(Error::config("--seeds", format!("{}; allowed are 1 to {MOST_SEEDS}", args.seeds)).into());
    }
    if args.cut == Some(0) {
        return Err(Error::config("--cut", "0; at least 1 is needed").into());
    }
    let (length, seeds, default) = match (args.quick, args.cut) {
        (true, _) => (Length::Quick, 2, "paper-quick"),
        (_, Some(most)) => (Length::Cut(most), args.seeds, "paper-cut"),
        _ => (Length::Whole, args.seeds, "paper"),
    };
    Ok(Lab {
        root: args.out.clone().unwrap_or_else(|| default.into()),
        seeds: (1..=seeds).collect(),
        length,
        workers: Workers::of(args.jobs, None, false)?,
        stop: train::stop_on_signals()?,
        registry: registry.clone(),
        provenance: train::provenance(),
    })
}
