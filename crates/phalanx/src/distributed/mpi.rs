//! Processes that talk to each other over MPI.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mpi::environment::Universe;
use mpi::request::{Request, Scope};
use mpi::topology::{Communicator as _, SimpleCommunicator};
use mpi::traits::{Destination, Source};

use super::Communicator;
use crate::{Error, Result};

/// The ranks that `mpirun` started.
pub struct Mpi {
    rank: usize,
    count: usize,
    sent: AtomicU64,
    /// Whether this rank's work is over, so that being told to stop is nothing to report.
    is_done: AtomicBool,
    /// What to tell the user if the run cannot go on.
    advice: Mutex<Box<dyn Fn() -> String + Send>>,
}

/// Keeps MPI running; drop it last.
pub struct Session {
    _universe: Universe,
}

/// Bytes of a message at most: MPI counts them in 31 bits.
const LARGEST: usize = 1 << 30;

/// Looks before others get a chance to use the processor.
const LOOKS: usize = 256;

/// `mpirun` tells all ranks to stop when one of them has died, which the others would wait for in vain, and
/// kills them about a second later. Before that, each says how the run can go on.
const BEFORE_WORD: Duration = Duration::from_millis(600);

/// How long a rank may take to end in good order once it was told to stop; what holds it up may be a rank
/// that is gone.
const PATIENCE: Duration = Duration::from_secs(25);

/// Starts MPI. A while after `stop` is set, this process says so, and at last it ends, whatever it is doing.
pub fn start(stop: Arc<AtomicBool>) -> Result<(Session, Arc<Mpi>)> {
    let refused = |message: &str| Error::argument("mpi", message);
    // Several threads work, but one at a time talks.
    let started = mpi::initialize_with_threading(mpi::Threading::Serialized);
    let (universe, threading) = started.ok_or_else(|| refused("MPI is running already"))?;
    if threading < mpi::Threading::Serialized {
        return Err(refused("this MPI library does not allow calls from more than one thread"));
    }
    let world = universe.world();
    let peers = Mpi {
        rank: world.rank() as usize,
        count: world.size() as usize,
        sent: AtomicU64::new(0),
        is_done: AtomicBool::new(false),
        advice: Mutex::new(Box::new(String::new)),
    };
    let peers = Arc::new(peers);
    let watched = peers.clone();
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(BEFORE_WORD / 12);
        }
        std::thread::sleep(BEFORE_WORD);
        if watched.is_done.load(Ordering::Relaxed) {
            return;
        }
        watched.warn();
        std::thread::sleep(PATIENCE);
        // Messages that are under way cannot be taken back.
        std::process::exit(1);
    });
    Ok((Session { _universe: universe }, peers))
}

impl Mpi {
    /// Ends the watch over this rank.
    pub fn done(&self) {
        self.is_done.store(true, Ordering::Relaxed);
    }

    /// Says how the run can go on if it does not end in good order.
    fn warn(&self) {
        let advice = self.advice.lock().unwrap_or_else(PoisonError::into_inner)();
        eprintln!(
            "error: rank {}: the run was told to stop, or one of its processes has died{advice}",
            self.rank
        );
    }

    /// Waits until a request is done.
    fn finish<'a, D: ?Sized, S: Scope<'a>>(mut request: Request<'a, D, S>) {
        let mut looks = 0;
        loop {
            match request.test() {
                Ok(_) => return,
                Err(unfinished) => request = unfinished,
            }
            looks += 1;
            if looks % LOOKS == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

impl Communicator for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn count(&self) -> usize {
        self.count
    }

    fn exchange(
        &self,
        outgoing: &[(usize, &[u8])],
        incoming: &mut [(usize, &mut [u8])],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<()> {
        let world = SimpleCommunicator::world();
        mpi::request::scope(|scope| {
            let mut receives = Vec::with_capacity(incoming.len());
            for (peer, room) in incoming.iter_mut() {
                let process = world.process_at_rank(*peer as i32);
                for part in room.chunks_mut(LARGEST) {
                    receives.push(process.immediate_receive_into(scope, part));
                }
            }
            let mut sends = Vec::with_capacity(outgoing.len());
            for &(peer, message) in outgoing {
                let process = world.process_at_rank(peer as i32);
                for part in message.chunks(LARGEST) {
                    self.sent.fetch_add(part.len() as u64, Ordering::Relaxed);
                    sends.push(process.immediate_send(scope, part));
                }
            }
            meanwhile();
            receives.into_iter().for_each(Mpi::finish);
            sends.into_iter().for_each(Mpi::finish);
        });
        Ok(())
    }

    fn sent(&self) -> Option<u64> {
        Some(self.sent.load(Ordering::Relaxed))
    }

    fn advise(&self, advice: Box<dyn Fn() -> String + Send>) {
        *self.advice.lock().unwrap_or_else(PoisonError::into_inner) = advice;
    }
}
