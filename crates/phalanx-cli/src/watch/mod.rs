//! `phalanx watch`: the page of `phalanx report`, kept up to date in a browser while the run trains.

mod http;
mod page;

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use page::LivePage;
use phalanx::Error;
use phalanx::run::Registry;

use crate::print;
use crate::stop::Stop;

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
/// Browsers that are answered at a time.
const MOST_CONNECTIONS: usize = 16;

/// `phalanx watch`.
pub fn run(args: &WatchArgs, registry: &Registry) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    // What is wrong with the folder is said here, not in the browser.
    let page = LivePage::new(&args.run, registry, args.threads)?;
    let cannot = |error: std::io::Error| Error::argument("port", format!("{}: {error}", args.port));
    // Of this machine alone: nobody else can connect.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(cannot)?;
    listener.set_nonblocking(true).map_err(cannot)?;
    let port = listener.local_addr().map_err(cannot)?.port();
    print(&format!("http://127.0.0.1:{port}/\n"));
    let connections = Arc::new(AtomicUsize::new(0));
    while !stop.flag.load(Ordering::Relaxed) {
        // An error here is that of a connection, which is gone.
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(PATIENCE);
            continue;
        };
        if connections.load(Ordering::Relaxed) >= MOST_CONNECTIONS {
            continue;
        }
        let (page, open) = (page.clone(), OpenConnection::new(&connections));
        let answer = move || {
            http::answer(&stream, port, |path, tag| page.answer(path, tag));
            drop(open);
        };
        // A machine without a thread to spare drops the connection; the browser asks again.
        let _ = thread::Builder::new().name("watch".into()).spawn(answer);
    }
    Ok(())
}

/// Counts as long as it lives.
struct OpenConnection(Arc<AtomicUsize>);

impl OpenConnection {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        OpenConnection(count.clone())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
