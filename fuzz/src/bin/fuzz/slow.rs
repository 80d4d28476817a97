//! Inputs that take too long.
//!
//! libFuzzer's own alarm counts the time of a machine that is busy with something else, and allocates in a
//! signal handler, where it can wait for itself for ever. This one counts the processor's time.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Processor time that an input may take.
const MOST: Duration = Duration::from_secs(1);

/// Time by the clock: what waits for something that does not come takes no processor's.
const MOST_WAITING: Duration = Duration::from_secs(60);

/// How often the input under way is looked at.
const INTERVAL: Duration = Duration::from_millis(100);

/// The input under way.
#[derive(Default)]
struct Current {
    number: u64,
    /// Whether it has still to end.
    is_running: bool,
    input: Vec<u8>,
}

/// Ends the process where an input takes too long, and leaves it in a folder.
pub struct Watch(Arc<Mutex<Current>>);

impl Watch {
    pub fn new(artifacts: PathBuf) -> Self {
        let current = Arc::new(Mutex::new(Current::default()));
        let watched = current.clone();
        std::thread::spawn(move || watch(&watched, &artifacts));
        Watch(current)
    }

    /// The next input.
    pub fn begin(&self, input: &[u8]) {
        let mut current = lock(&self.0);
        current.number += 1;
        current.is_running = true;
        current.input.clear();
        current.input.extend_from_slice(input);
    }

    /// It has ended; what libFuzzer does by itself until the next one does not count.
    pub fn end(&self) {
        lock(&self.0).is_running = false;
    }
}

fn lock(current: &Mutex<Current>) -> MutexGuard<'_, Current> {
    current.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn watch(current: &Mutex<Current>, artifacts: &std::path::Path) {
    let (mut number, mut since, mut used) = (0, Instant::now(), Duration::ZERO);
    loop {
        std::thread::sleep(INTERVAL);
        let now = lock(current);
        if now.number != number || !now.is_running {
            (number, since, used) = (now.number, Instant::now(), processor_time());
            continue;
        }
        if processor_time().saturating_sub(used) >= MOST || since.elapsed() >= MOST_WAITING {
            let file = artifacts.join(format!("timeout-{:08x}", crc32c::crc32c(&now.input)));
            let written = std::fs::write(&file, &now.input);
            eprintln!("slow input in {}: {written:?}", file.display());
            signal_hook::low_level::exit(70);
        }
    }
}

/// What this process has used so far, in ticks of a hundredth of a second.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may hold anything.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}
