//! `phalanx paper`.

use std::path::PathBuf;

use phalanx::run::Registry;

#[derive(clap::Args)]
pub struct PaperArgs {
    /// `list`, `all`, `report`, or experiments by their IDs.
    #[arg(required = true, value_name = "list|all|report|ID")]
    what: Vec<String>,
    /// Seeds of every training run: 1 to N.
    #[arg(long, value_name = "N", default_value_t = 3)]
    seeds: u64,
    /// A fifteenth of the iterations and two seeds, in minutes: shows that everything works, not what the
    /// paper claims.
    #[arg(long, conflicts_with = "seeds")]
    quick: bool,
    /// At most N iterations per training run, for tests; marked as such everywhere.
    #[arg(long, value_name = "N", conflicts_with = "quick")]
    cut: Option<usize>,
    /// Runs at a time, on one thread each [default: all cores].
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Folder for everything [default: paper, with --quick paper-quick].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// `phalanx paper` in a program that was built without it.
#[cfg(not(feature = "paper"))]
pub fn paper(args: &PaperArgs, _: &Registry) -> anyhow::Result<()> {
    let PaperArgs { what: _, seeds: _, quick: _, cut: _, jobs: _, out: _ } = args;
    anyhow::bail!(
        "this program was built without the paper; build it with `cargo build --release -p phalanx-cli`"
    )
}

/// `phalanx paper`.
#[cfg(feature = "paper")]
pub fn paper(args: &PaperArgs, registry: &Registry) -> anyhow::Result<()> {
    use std::sync::Arc;

    use phalanx::Error;
    use phalanx_paper::{Length, Reproduction};

    use crate::batch::{self, Workers};
    use crate::stop::Stop;
    use crate::threads::on_threads;
    use crate::{check_range, print, train};

    if args.what.iter().any(|word| word == "list") {
        print(&phalanx_paper::list());
        return Ok(());
    }
    const MOST_SEEDS: u64 = 1000;
    check_range("seeds", args.seeds, 1..=MOST_SEEDS)?;
    if args.cut == Some(0) {
        return Err(Error::argument("cut", "0; at least 1 is needed").into());
    }
    let (length, seeds, default) = match (args.quick, args.cut) {
        (true, _) => (Length::Quick, 2, "paper-quick"),
        (_, Some(most)) => (Length::Cut(most), args.seeds, "paper-cut"),
        _ => (Length::Whole, args.seeds, "paper"),
    };
    let (workers, stop) = (Workers::of(args.jobs, None, false)?, Stop::on_signals()?);
    stop.advise("the same command goes on from here");
    let flag = Arc::clone(&stop.flag);
    let provenance = train::provenance();
    let reproduction = Reproduction {
        root: args.out.clone().unwrap_or_else(|| default.into()),
        seeds: (1..=seeds).collect(),
        length,
        stop: Arc::clone(&flag),
        registry: registry.clone(),
        provenance: provenance.clone(),
        run_jobs: Box::new(move |jobs| batch::run_jobs(jobs, &workers, &flag, &provenance)),
        print,
    };
    on_threads(None, || phalanx_paper::reproduce(&args.what, &reproduction))?
}
