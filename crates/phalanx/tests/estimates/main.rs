//! Questions about critics, gradients and what they are estimated from.

#[path = "../support/mod.rs"]
mod support;

mod constraint_radius;
mod convergence;
mod estimators;
mod gradients;
mod linear;
mod locality;
mod network;
mod shared;
mod shared_critic;
mod termination;

use phalanx::learn::critic::{QValues, ValueReceiver};

/// What all senders tell a receiver, summed in their order.
trait Receive: QValues {
    fn receive_taken(&self, inbox: ValueReceiver<'_>, scratch: &mut Vec<u32>, out: &mut [f64]) {
        out.fill(0.0);
        inbox.from.iter().for_each(|&j| self.add_taken(j, &inbox, scratch, out));
    }

    fn receive_alternatives(
        &self,
        inbox: ValueReceiver<'_>,
        actions: usize,
        scratch: &mut Vec<u32>,
        out: &mut [f64],
    ) {
        out.fill(0.0);
        inbox.from.iter().for_each(|&j| self.add_alternatives(j, &inbox, actions, scratch, out));
    }
}

impl<Q: QValues + ?Sized> Receive for Q {}
