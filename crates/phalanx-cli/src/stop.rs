//! Ctrl-C, SIGTERM and SIGHUP: a command is asked to come to a good end, and is ended if it does not come to
//! one within a second. What it has written by then can be gone on with, as after a kill.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use signal_hook::consts;

use crate::say_error;

/// Time to finish an iteration and to write a checkpoint.
const PATIENCE: Duration = Duration::from_millis(750);

/// How often the flag is looked at.
const INTERVAL: Duration = Duration::from_millis(20);

/// The wish to stop, as long as a command is under way.
pub struct Stop {
    /// Set by the first signal.
    pub flag: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    advice: Arc<Mutex<String>>,
}

impl Stop {
    /// Listens to the signals from now on; a second one ends the process at once.
    pub fn on_signals() -> anyhow::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [consts::SIGINT, consts::SIGTERM].into_iter().chain(hangup()) {
            signal_hook::flag::register_conditional_shutdown(signal, 1, flag.clone())?;
            signal_hook::flag::register(signal, flag.clone())?;
        }
        let stop = Stop { flag, is_over: Arc::default(), advice: Arc::default() };
        let (flag, is_over, advice) = (stop.flag.clone(), stop.is_over.clone(), stop.advice.clone());
        std::thread::Builder::new()
            .name("stop".into())
            .spawn(move || watch(&flag, &is_over, &advice))
            .map_err(|error| crate::threads::cannot_make(1, "threads", &error))?;
        Ok(stop)
    }

    /// What to say where the command has to be ended.
    pub fn advise(&self, advice: &str) {
        *self.advice.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = format!("; {advice}");
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn watch(flag: &AtomicBool, is_over: &AtomicBool, advice: &Mutex<String>) {
    let mut since = None;
    while !is_over.load(Ordering::Relaxed) {
        if flag.load(Ordering::Relaxed) && since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE {
            let advice = advice.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if std::io::stderr().is_terminal() {
                // A bar may stand in the line.
                let _ = std::io::stderr().write_all(b"\r\x1b[K");
            }
            if !crate::is_quiet() {
                say_error(&format!("stopped before the end{advice}"));
            }
            signal_hook::low_level::exit(1);
        }
        std::thread::sleep(INTERVAL);
    }
}

/// SIGHUP, unless hangups are ignored, as `nohup` asks for.
#[cfg(unix)]
fn hangup() -> Option<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Where it is not known, they are left alone.
    let is_ignored = mask.is_none_or(|mask| mask & (1 << (consts::SIGHUP - 1)) != 0);
    (!is_ignored).then_some(consts::SIGHUP)
}

#[cfg(not(unix))]
fn hangup() -> Option<i32> {
    None
}

/// A file that may not grow any more is an error of the write, not the end of the process.
pub fn let_writes_fail() {
    // Where the signal cannot be taken, it ends the process as before.
    #[cfg(unix)]
    let _ = signal_hook::flag::register(consts::SIGXFSZ, Arc::default());
}
