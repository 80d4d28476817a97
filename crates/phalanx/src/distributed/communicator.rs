//! Processes that each hold a part of the graph.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use crate::base::error::ensure;
use crate::{Error, Result};

/// The processes of a run, from one of them.
pub trait Communicator: Send + Sync {
    /// Number of this one.
    fn rank(&self) -> usize;

    /// How many there are.
    fn count(&self) -> usize;

    /// Sends every message in `outgoing` to its peer and fills every one in `incoming` from its peer, whose
    /// next message to this one must be of that length. `meanwhile` is called while they are on their way.
    ///
    /// Fails if that cannot come to an end: a peer is gone, or the run has been told to stop.
    fn exchange(
        &self,
        outgoing: &[(usize, &[u8])],
        incoming: &mut [(usize, &mut [u8])],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<()>;

    /// Bytes actually sent so far; none where there is nothing to send them over.
    fn sent(&self) -> Option<u64>;

    /// What a process should say that has to give up because others are gone.
    fn advise(&self, advice: Box<dyn Fn() -> String + Send>) {
        drop(advice);
    }
}

/// One process that holds the whole graph.
pub struct SingleProcess;

impl Communicator for SingleProcess {
    fn rank(&self) -> usize {
        0
    }

    fn count(&self) -> usize {
        1
    }

    fn exchange(
        &self,
        _: &[(usize, &[u8])],
        _: &mut [(usize, &mut [u8])],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<()> {
        meanwhile();
        Ok(())
    }

    fn sent(&self) -> Option<u64> {
        None
    }
}

/// Threads that behave like processes, for tests and for trying out how a graph is partitioned.
pub struct ThreadCommunicator {
    rank: usize,
    /// To every peer.
    senders: Vec<Sender<Vec<u8>>>,
    /// From every peer; only this thread waits at them.
    receivers: Vec<Mutex<Receiver<Vec<u8>>>>,
    sent: AtomicU64,
}

impl ThreadCommunicator {
    /// Peers that can talk to each other, one for each thread.
    pub fn new(count: usize) -> Vec<Arc<ThreadCommunicator>> {
        let mut senders: Vec<Vec<Sender<Vec<u8>>>> = (0..count).map(|_| Vec::new()).collect();
        let mut receivers: Vec<Vec<Mutex<Receiver<Vec<u8>>>>> = (0..count).map(|_| Vec::new()).collect();
        for to in receivers.iter_mut() {
            for from in senders.iter_mut() {
                let (sender, receiver) = channel();
                from.push(sender);
                to.push(Mutex::new(receiver));
            }
        }
        let ends = senders.into_iter().zip(receivers).enumerate();
        ends.map(|(rank, (senders, receivers))| {
            Arc::new(ThreadCommunicator { rank, senders, receivers, sent: AtomicU64::new(0) })
        })
        .collect()
    }
}

impl Communicator for ThreadCommunicator {
    fn rank(&self) -> usize {
        self.rank
    }

    fn count(&self) -> usize {
        self.senders.len()
    }

    fn exchange(
        &self,
        outgoing: &[(usize, &[u8])],
        incoming: &mut [(usize, &mut [u8])],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<()> {
        let fault = |message: String| Error::Communicator { message, bad_input: false };
        let gone = |peer: usize| fault(format!("thread {peer} of {} has ended", self.count()));
        for &(peer, message) in outgoing {
            self.sent.fetch_add(message.len() as u64, Ordering::Relaxed);
            self.senders[peer].send(message.to_vec()).map_err(|_| gone(peer))?;
        }
        meanwhile();
        for (peer, room) in incoming {
            let receiver = self.receivers[*peer].lock().map_err(|_| gone(*peer))?;
            let message = receiver.recv().map_err(|_| gone(*peer))?;
            let (found, expected) = (message.len(), room.len());
            let unfit = || fault(format!("{found} bytes from {peer}, but {expected} were expected"));
            ensure(found == expected, unfit)?;
            room.copy_from_slice(&message);
        }
        Ok(())
    }

    fn sent(&self) -> Option<u64> {
        Some(self.sent.load(Ordering::Relaxed))
    }
}
