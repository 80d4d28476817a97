//! `phalanx watch`: the page of `phalanx report`, kept up to date in a browser while the run trains.

mod http;

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use phalanx::Error;
use phalanx::run::Registry;

use crate::report::{self, Document, Judging};
use crate::stop::Stop;
use crate::{on_threads, print};

#[derive(clap::Args)]
pub struct WatchArgs {
    /// Folder of the run, finished or not.
    run: PathBuf,
    /// Port of this machine to serve the page at [default: any that is free].
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Threads that judge the finished run [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// How often a stop is looked for.
const PATIENCE: Duration = Duration::from_millis(50);
/// The page is not made more often than this.
const MAKE_EVERY: Duration = Duration::from_millis(1000);
/// Browsers that are answered at a time.
const MOST_CONNECTIONS: usize = 16;

/// `phalanx watch`.
pub fn run(args: &WatchArgs, registry: &Registry) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    let page = Arc::new(LivePage::new(&args.run, registry, args.threads));
    // What is wrong with the folder is said here, not in the browser.
    page.made()?;
    let cannot = |error: std::io::Error| Error::argument("port", format!("{}: {error}", args.port));
    // Of this machine alone: nobody else can connect.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(cannot)?;
    listener.set_nonblocking(true).map_err(cannot)?;
    let port = listener.local_addr().map_err(cannot)?.port();
    print(&format!("http://127.0.0.1:{port}/\n"));
    while !stop.flag.load(Ordering::Relaxed) {
        // An error here is that of a connection, which is gone.
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(PATIENCE);
            continue;
        };
        if Arc::strong_count(&page) <= MOST_CONNECTIONS {
            let page = page.clone();
            thread::spawn(move || http::answer(&stream, port, |path, tag| page.answer(path, tag)));
        }
    }
    Ok(())
}

/// The page as it was when the run's files were as they are.
struct LivePage {
    run: PathBuf,
    registry: Registry,
    threads: Option<usize>,
    made: Mutex<Option<Made>>,
}

#[derive(Clone)]
struct Made {
    /// How many were made before.
    number: usize,
    state: Vec<(u64, Option<SystemTime>)>,
    at: Instant,
    whole: Arc<str>,
    main: Arc<str>,
}

impl LivePage {
    fn new(run: &Path, registry: &Registry, threads: Option<usize>) -> Self {
        LivePage { run: run.into(), registry: registry.clone(), threads, made: Mutex::default() }
    }

    /// By which it is known whether anything has changed.
    fn state(&self) -> Vec<(u64, Option<SystemTime>)> {
        let of = |name: &str| match self.run.join(name).metadata() {
            Ok(data) => (data.len(), data.modified().ok()),
            Err(_) => (0, None),
        };
        ["metrics.csv", "meta.json", "outcome.json"].map(of).into()
    }

    /// The page, made anew if the run has gone on. Where it cannot be made while the run writes its files,
    /// it stays as it was.
    fn made(&self) -> anyhow::Result<Made> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state();
        let is_new = |made: &Made| made.state == state || made.at.elapsed() < MAKE_EVERY;
        if let Some(made) = made.as_ref().filter(|made| is_new(made)) {
            return Ok(made.clone());
        }
        let judging = Judging { episodes: 400, seed: 1, confidence: 0.99 };
        let document = on_threads(self.threads, || Document::of(&self.run, &self.registry, Some(judging)))?;
        match document {
            Ok(document) => {
                let whole = report::whole(&document, include_str!("live.js")).into();
                let main = report::main_part(&document).into();
                let number = made.as_ref().map_or(0, |made| made.number + 1);
                Ok(made.insert(Made { number, state, at: Instant::now(), whole, main }).clone())
            }
            Err(error) => made.clone().ok_or(error),
        }
    }

    /// What a browser is given for a path; `tag`: the version that it has.
    fn answer(&self, path: &str, tag: Option<&str>) -> http::Answer {
        let made = match self.made() {
            Ok(made) => made,
            Err(error) => return http::Answer::Failed(error.to_string()),
        };
        let text = match path {
            "/" => made.whole,
            "/main" => made.main,
            _ => return http::Answer::NotFound,
        };
        let version = format!("\"{}-{}\"", std::process::id(), made.number);
        if tag == Some(&*version) {
            return http::Answer::Unchanged;
        }
        http::Answer::Page { text, version }
    }
}
