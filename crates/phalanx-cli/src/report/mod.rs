//! `phalanx report`: one page about a run that needs nothing else, not even a network.

mod document;
mod problem;
mod repeat;
mod verdict;

use std::path::PathBuf;

use phalanx::Error;
use phalanx::base::durable;
use phalanx::run::{Registry, RunFolder};
use phalanx_pictures::page;

pub use document::{Document, Judging};
pub use problem::{CONFIG, ProblemPart};

use crate::{on_threads, print};

#[derive(clap::Args)]
pub struct ReportArgs {
    /// Folder of the run, finished or not.
    run: PathBuf,
    /// HTML file to write [default: report.html in the run's folder].
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
    /// Episodes that the policy is judged on.
    #[arg(long, default_value_t = 400)]
    episodes: usize,
    /// Seed of these episodes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Confidence of all constraints' intervals together.
    #[arg(long, default_value_t = 0.99)]
    confidence: f64,
    /// Threads to use [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// `phalanx report`.
pub fn run(args: &ReportArgs, registry: &Registry) -> anyhow::Result<()> {
    let out = args.out.clone().unwrap_or_else(|| args.run.join("report.html"));
    if out.extension().is_none_or(|extension| extension != "html") {
        let message = format!("{}: write FILE.html", out.display());
        return Err(Error::argument("out", message).into());
    }
    RunFolder::check_output(&out)?;
    on_threads(args.threads, || {
        let judging = Judging { episodes: args.episodes, seed: args.seed, confidence: args.confidence };
        let problem = ProblemPart::of(&args.run, registry)?;
        let mut document = Document::of(&args.run, &problem, judging)?;
        if document.is_finished {
            document.judge(&args.run, registry, judging)?;
        }
        if let Some(folder) = out.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            durable::create_dirs(folder).map_err(|error| Error::write(folder, error))?;
        }
        durable::replace_bytes(&out, whole(&document, SCRIPT).as_bytes())?;
        print(&format!("{}\n", out.display()));
        Ok(())
    })?
}

const SCRIPT: &str = include_str!("script.js");

/// The page, with a script.
pub fn whole(document: &Document, script: &str) -> String {
    let template = include_str!("page.html")
        .replace("{{>main}}", MAIN)
        .replace("{{>style}}", page::STYLE)
        .replace("{{>script}}", script);
    page::fill(&template, &[&document.value], "html")
}

/// What is on the page.
pub fn main_part(document: &Document) -> String {
    page::fill(MAIN, &[&document.value], "html")
}

const MAIN: &str = include_str!("main.html");
