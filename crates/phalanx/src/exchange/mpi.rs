//! Processes that talk to each other over MPI.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mpi::environment::Universe;
use mpi::request::{Request, Scope};
use mpi::topology::{Communicator, SimpleCommunicator};
use mpi::traits::{Destination, Source};

use super::Peers;
use crate::{Error, Result};

/// The ranks that `mpirun` started.
pub struct Mpi {
    rank: usize,
    count: usize,
    sent: AtomicU64,
    /// Set by whoever wants the run to end.
    stop: Arc<AtomicBool>,
    /// What to tell the user if it cannot go on.
    advice: Mutex<String>,
}

/// Keeps MPI running; drop it last.
pub struct Session {
    _universe: Universe,
}

/// Bytes of a message at most: MPI counts them in 31 bits.
const LARGEST: usize = 1 << 30;

/// Looks before others get a chance to use the processor.
const LOOKS: usize = 256;

/// How long a rank waits for another after all were told to stop. `mpirun` does that when one of them has died, and kills the
/// others about a second later.
const PATIENCE: Duration = Duration::from_millis(400);

/// Starts MPI. Setting `stop` makes ranks give up that wait for each other.
pub fn start(stop: Arc<AtomicBool>) -> Result<(Session, Arc<Mpi>)> {
    let refused = |message: &str| Error::config("--mpi", message);
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
        stop,
        advice: Mutex::new(String::new()),
    };
    Ok((Session { _universe: universe }, Arc::new(peers)))
}

impl Mpi {
    /// What to tell the user if a rank has to give up.
    pub fn advise(&self, advice: String) {
        *self.advice.lock().unwrap_or_else(PoisonError::into_inner) = advice;
    }

    /// Ends this process: another one does not answer, and messages that are under way cannot be taken back.
    fn give_up(&self) -> ! {
        let advice = self.advice.lock().unwrap_or_else(PoisonError::into_inner);
        eprintln!(
            "error: rank {}: the run was told to stop, or one of its processes has died{advice}",
            self.rank
        );
        std::process::exit(1)
    }

    /// Waits until a request is done.
    fn finish<'a, D: ?Sized, S: Scope<'a>>(
        &self,
        mut request: Request<'a, D, S>,
        told: &mut Option<Instant>,
    ) {
        let mut looks = 0;
        loop {
            match request.test() {
                Ok(_) => return,
                Err(unfinished) => request = unfinished,
            }
            looks += 1;
            if looks % LOOKS != 0 {
                std::hint::spin_loop();
                continue;
            }
            std::thread::yield_now();
            if self.stop.load(Ordering::Relaxed) && told.get_or_insert_with(Instant::now).elapsed() > PATIENCE
            {
                self.give_up();
            }
        }
    }
}

impl Peers for Mpi {
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
            let mut told = None;
            receives.into_iter().for_each(|request| self.finish(request, &mut told));
            sends.into_iter().for_each(|request| self.finish(request, &mut told));
        });
        Ok(())
    }

    fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}
